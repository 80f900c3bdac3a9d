"""One tool's work on one model, in a process that has nothing else to do: for `peers.py`.

Run: python tests/benchmarks/simplifying.py TOOL SOURCE TARGET [loaded]

It imports next to nothing before the tool does, so that the whole process costs what it costs its
users, and no tool finds loaded what it would have had to load. With `loaded` the tool mends a small
sample before, and the work is what it costs from load to saved.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # as `typing` says it, which costs milliseconds
if TYPE_CHECKING:
    from typing import Any

SAMPLE = os.path.join(
    os.path.dirname(__file__), "..", "..", "samples", "flatten_pool", "flatten_pool.onnx"
)


def simplify(tool: str, source: str, target: str) -> None:
    """One tool's work, from file to file."""
    model: Any
    if tool == "plain copy":
        import shutil

        shutil.copyfile(f"{source[: -len('.onnx')]}.data", f"{target[: -len('.onnx')]}.data")
        return
    if tool.startswith("surgeon"):
        import surgeon

        model = surgeon.apply(source, "clean", verify=tool == "surgeon checked").model
        model.save(target, external_data="copy" if tool == "surgeon copying" else "keep")
        return
    import onnx

    external = "_outside" in source
    if tool == "onnxruntime":
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.optimized_model_filepath = target
        if external:
            entry = "session.optimized_model_external_initializers_file_name"
            options.add_session_config_entry(entry, f"{os.path.basename(target)}.data")
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        return
    model = onnx.load(source)
    if tool == "onnxsim":
        import onnxsim

        model = onnxsim.simplify(model)[0]
    elif tool == "onnxslim":
        import onnxslim

        model = onnxslim.slim(model)
    elif tool == "onnxscript":
        from onnxscript import optimizer

        model = optimizer.optimize(model)
    elif tool == "onnxoptimizer":
        import onnxoptimizer

        passes = onnxoptimizer.get_fuse_and_elimination_passes()
        model = onnxoptimizer.optimize(model, passes)
    else:
        import onnx_graphsurgeon as gs

        graph = gs.import_onnx(model)
        model = gs.export_onnx(graph.fold_constants().cleanup().toposort())
    onnx.save(
        model,
        target,
        save_as_external_data=external,
        location=f"{os.path.basename(target)}.data" if external else None,
    )


def main() -> None:
    """Says the CPU seconds of the work and the peak of the memory, as JSON."""
    if sys.argv[4:] == ["loaded"]:
        simplify(sys.argv[1], SAMPLE, sys.argv[3])
    before = time.process_time()
    simplify(*sys.argv[1:4])
    said = f'"cpu": {time.process_time() - before}'
    if os.path.exists("/proc/self/status"):  # the kernel's other figure counts what the parent held
        with open("/proc/self/status") as file:
            line = next(row for row in file if row.startswith("VmHWM"))
        said += f', "peak": {int(line.split()[1]) / 1000}'
    print(f"{{{said}}}")


if __name__ == "__main__":
    main()
