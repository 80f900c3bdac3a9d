"""surgeon's `clean` beside other simplifiers, in one run, as a table for docs/benchmarks.md.

Run: make bench, or
    python tests/benchmarks/peers.py --python .venv-bench/bin/python --write docs/benchmarks.md

Each tool gets each model in processes of its own: nodes without Constant, CPU seconds from load to
saved where the tool is loaded, those of a whole process that does nothing else, the peak of its
memory, whether the result equals the original in onnxruntime on three input sets of other sizes,
and how long it runs there on one thread, with onnxruntime's own optimisations off and on: the best
of many runs, all results of a model in turns, as the machine is not equally fast all the time. The
whole process is the tool's command where it has one. The samples hold ATen nodes, which onnxruntime
does not load: there is nothing to compare with. With `--external`, models of 0.5, 2.5 and 8 GB of
external data too, of which only the cost is measured. There `surgeon` writes into the folder where
the data are, `surgeon copying` gives the result data of its own, as the others do, and `plain copy`
is what copying them costs alone.
"""

from __future__ import annotations

import argparse
import compileall
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PEERS = ("onnxsim", "onnxslim", "onnxscript", "onnxoptimizer", "onnx-graphsurgeon", "onnxruntime")
TOOLS = ("surgeon", "surgeon checked", *PEERS)
RUNS, SECONDS_OF_RUNS = 200, 1.0  # of one model, for its latency
LARGE = 50_000  # nodes from which on only those are measured that end in time
IN_TIME = ("surgeon", "onnxsim", "onnx-graphsurgeon")
HEADS = (
    *("model", "tool", "nodes", "equal", "ms as is", "ms optimised"),
    *("CPU in process", "CPU whole", "peak MB"),
)
EXTERNAL = {"0.5 GB outside": 8, "2.5 GB outside": 40, "8 GB outside": 125}  # layers of 64 MB
COPY = "plain copy"
SIMPLIFYING = Path(__file__).with_name("simplifying.py")
FOR_ALL = 40  # layers up to which other tools are tried: they hold the weights several times
BLANK = ["", ""]  # for what was not run
LONG = 20.0  # CPU seconds above which a tool is run once, as what it loads is nothing beside them
SHORT = 2.0  # below which three runs cost little, and noise much
COMMANDS = {  # as users call them
    "surgeon": ["surgeon", "apply", "clean", "IN", "OUT", "--no-verify"],
    "surgeon checked": ["surgeon", "apply", "clean", "IN", "OUT"],
    "onnxsim": ["onnxsim", "IN", "OUT", "0"],
    "onnxslim": ["onnxslim", "IN", "OUT"],
}


def run(command: list[str], seconds: float, **variables: str) -> dict[str, Any]:
    """A process of its own: its CPU seconds, its peak memory, and what it says itself as JSON."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        environment = {**os.environ, **variables}
        process = subprocess.Popen(command, stdout=out, stderr=errors, env=environment)
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        lines = out.read().strip().splitlines()
        if status or not lines:
            last = (errors.read().strip().splitlines() or ["no message"])[-1]
            killed = f"no end in {seconds:.0f} s" if process.returncode == -9 else last[:60]
            return {"failed": killed}
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "peak": usage.ru_maxrss * unit / 1e6,
        **(json.loads(lines[-1]) if lines[-1].startswith("{") else {}),
        "whole": usage.ru_utime + usage.ru_stime,
    }


def measure(
    python: str, tool: str, source: Path, target: Path, seconds: float, *, once: bool = False
) -> dict[str, Any]:
    """What a tool costs: one run, its command, and a run where all is loaded; `once`, one run."""
    work = [python, str(SIMPLIFYING), tool, str(source), str(target)]
    got = run(work, seconds, OMP_NUM_THREADS="1")
    if once or "failed" in got or got["cpu"] > LONG:
        return got
    command = work
    if tool in COMMANDS:
        places = {"IN": str(source), "OUT": str(target)}
        name, *rest = COMMANDS[tool]
        command = [str(Path(python).with_name(name)), *(places.get(word, word) for word in rest)]
    times = 3 if got["cpu"] < SHORT else 1
    wholes = [run(command, seconds).get("whole", got["whole"]) for _ in range(times)]
    loaded = [
        run([*work, "loaded"], seconds, OMP_NUM_THREADS="1").get("cpu", got["cpu"])
        for _ in range(times)
    ]
    return {**got, "cpu": min(loaded), "whole": min(wholes)}


def nodes(path: Path) -> int:
    """Nodes without Constant, bodies included."""
    import onnx

    def count(graph: onnx.GraphProto) -> int:
        inner = [a.g for n in graph.node for a in n.attribute if a.HasField("g")]
        own = sum(node.op_type != "Constant" for node in graph.node)
        return own + sum(count(body) for body in inner)

    return count(onnx.load(path, load_external_data=False).graph)


def session(path: Path, *, optimise: bool = False) -> Any:
    """The model in onnxruntime, as it stands by default, on one thread; None where it fails."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimise else levels.ORT_DISABLE_ALL
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception:  # onnxruntime's exceptions have no common base
        return None


def feeds(found: Any, seed: int) -> dict[str, Any]:
    """Inputs of one size for each name of a dimension, another for each seed."""
    import numpy as np

    rng = np.random.default_rng(seed)
    sizes: dict[str, int] = {}
    made = {}
    for value in found.get_inputs():
        names = [d if isinstance(d, int) else str(d) for d in value.shape]
        shape = [
            d if isinstance(d, int) else sizes.setdefault(d, 2 + seed + 5 * len(sizes))
            for d in names
        ]
        array = rng.normal(size=shape)
        kind = value.type[7:-1]
        names_of = {"float": "float32", "double": "float64"}
        made[value.name] = array.astype(names_of.get(kind, kind))
    return made


def equal(original: Any, path: Path) -> str:
    """Whether the result equals the original on three input sets, within float32's rounding."""
    import numpy as np

    if original is None:
        return "-"
    result = session(path)
    if result is None:
        return "does not load"
    compared = 0
    for seed in range(3):
        try:
            inputs = feeds(original, seed)
            expected = original.run(None, inputs)
        except Exception:  # a size that the original does not take
            continue
        try:
            found = result.run(None, inputs)
        except Exception:
            return "does not run"
        for a, b in zip(expected, found, strict=True):
            scale = float(np.abs(a.astype(np.float64)).max(initial=0)) or 1.0
            if a.shape != b.shape or a.dtype != b.dtype:
                return "other shape"
            if not np.allclose(a, b, rtol=1e-3, atol=1e-4 * scale, equal_nan=True):
                return "WRONG"
        compared += 1
    return "yes" if compared == 3 else f"yes, on {compared}" if compared else "-"


def latencies(paths: list[Path]) -> list[list[str]]:
    """Milliseconds of a run of each model, in turns, onnxruntime's optimisations off and on."""
    found: list[list[str]] = [[] for _ in paths]
    for optimise in (False, True):
        sessions = [session(path, optimise=optimise) for path in paths]
        best = [float("inf")] * len(paths)
        start = time.perf_counter()
        for _ in range(RUNS):
            for index, model in enumerate(sessions):
                try:
                    inputs = feeds(model, 1)
                    before = time.perf_counter()
                    model.run(None, inputs)
                    best[index] = min(best[index], time.perf_counter() - before)
                except Exception:  # one that does not load, or does not take this size
                    sessions[index] = None
            if time.perf_counter() - start > SECONDS_OF_RUNS * len(paths):
                break
        for cells, model, value in zip(found, sessions, best, strict=True):
            cells.append("-" if model is None else f"{value * 1e3:.3f}")
    return found


def outside(folder: Path, name: str, layers: int) -> Path:
    """A model whose weights, 64 MB to a layer, lie in one file beside it."""
    import numpy as np
    import onnx

    width = 4096
    block = np.random.default_rng(0).normal(size=(width, width)).astype(np.float32) / width
    path = folder / f"{name.replace(' ', '_')}.onnx"
    data = path.with_suffix(".data")
    text = ["h0 = Identity (x)"]
    text += [
        f"s{i} = Shape (h{i}) r{i} = Reshape (h{i}, s{i}) m{i} = MatMul (r{i}, w{i}) "
        f"h{i + 1} = Relu (m{i})"
        for i in range(layers)
    ]
    header = '<ir_version: 8, opset_import: ["": 17]>'
    model = onnx.parser.parse_model(
        f"{header} g (float[N,{width}] x) => (float[N,{width}] h{layers}) {{ {' '.join(text)} }}"
    )
    with data.open("wb") as file:
        for index in range(layers):
            tensor = model.graph.initializer.add(name=f"w{index}", data_type=1)
            tensor.dims.extend(block.shape)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            place = {"location": data.name, "offset": file.tell(), "length": block.nbytes}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=str(value))
            file.write(block.tobytes())
    onnx.save(model, path)
    return path


def models(folder: Path, arguments: argparse.Namespace) -> list[tuple[str, Path]]:
    """The samples, some of the corpus where it is, and what is made; or the files of `--models`."""
    import onnx

    largest, part = arguments.largest, arguments.only
    if arguments.models:
        return [(p.stem, p) for p in sorted(arguments.models.glob("*.onnx")) if part in p.stem]

    sys.path.insert(0, str(Path(__file__).parent))
    from graphs import blocks, transformer

    found = [(p.stem, p) for p in sorted((ROOT / "samples").glob("*/*.onnx"))]
    corpus = os.environ.get("SURGEON_CORPUS")
    if corpus:
        rows = [json.loads(line) for line in (Path(corpus) / "index.jsonl").open()]
        rows = [row for row in rows if row.get("file") and not row["nonstandard"]]
        rows.sort(key=lambda row: -sum(row.get("nodes", {}).values()))
        kinds: dict[str, dict[str, Any]] = {}
        for row in rows:  # the largest of each of the first few problems
            kinds.setdefault(row["problem"], row)
        found += [(row["name"], Path(corpus) / row["file"]) for row in list(kinds.values())[:5]]
    sizes = [n for n in (1000, 5000, 20000, 100000) if n <= largest]
    made = [("transformer of 2k", partial(transformer, 2000))]
    made += [(f"blocks of {size // 1000}k", partial(blocks, size)) for size in sizes]
    for name, model in made:
        path = folder / f"{name.replace(' ', '_')}.onnx"
        if part in name:
            onnx.save(model(), path)
        found.append((name, path))
    return [(name, path) for name, path in found if part in name]


def rows(arguments: argparse.Namespace, folder: Path) -> list[list[str]]:
    """The table, line by line; those of a model are printed when they are known."""
    table = []
    for name, path in models(folder, arguments):
        before = nodes(path)
        large = before >= LARGE  # onnxruntime takes many minutes to load it
        original = None if large else session(path)
        tools = IN_TIME if large else TOOLS
        targets = [folder / f"out_{index}.onnx" for index in range(len(tools))]
        lines = [[name, "as it came", str(before), "", *BLANK, "", "", ""]]
        for tool, target in zip(tools, targets, strict=True):
            target.unlink(missing_ok=True)
            python = sys.executable if tool.startswith("surgeon") else arguments.python
            got = measure(python, tool, path, target, arguments.seconds)
            if "failed" in got:
                target.unlink(missing_ok=True)
                lines.append([name, tool, "", got["failed"], *BLANK, "", "", ""])
            else:
                same = "-" if large else equal(original, target)
                lines.append([name, tool, str(nodes(target)), same, *BLANK, *costs(got)])
        if not large:
            ran = [(path, lines[0]), *zip(targets, lines[1:], strict=True)]
            ran = [(model, line) for model, line in ran if model.exists()]
            found = latencies([model for model, _ in ran])
            for (_, line), cells in zip(ran, found, strict=True):
                line[4:6] = cells
        for line in lines:
            print(" | ".join(line), flush=True)
        table += lines
    return table


def costs(got: dict[str, Any]) -> list[str]:
    """CPU seconds in and of the process, and its peak, as cells."""
    return [f"{got['cpu']:.2f}", f"{got['whole']:.2f}", f"{got['peak']:.0f}"]


def external_rows(arguments: argparse.Namespace, folder: Path) -> list[list[str]]:
    """What models with external data cost."""
    table = []
    for name, layers in EXTERNAL.items():
        if arguments.only not in name:
            continue
        path = outside(folder, name, layers)
        for tool in (COPY, "surgeon", "surgeon copying", *(PEERS if layers <= FOR_ALL else ())):
            python = arguments.python if tool in PEERS else sys.executable
            with tempfile.TemporaryDirectory(dir=folder) as place:
                target = (folder if tool == "surgeon" else Path(place)) / "out.onnx"
                got = measure(python, tool, path, target, 10 * arguments.seconds, once=True)
                row = [name, tool, "", got.get("failed", "-"), *BLANK, "", "", ""]
                if "failed" not in got:
                    left = str(nodes(target)) if target.exists() else ""
                    row = [name, tool, left, "-", *BLANK, *costs(got)]
            print(" | ".join(row), flush=True)
            table.append(row)
        path.unlink()
        path.with_suffix(".data").unlink()
    return table


def page(table: list[list[str]], arguments: argparse.Namespace) -> str:
    """docs/benchmarks.md."""
    ask = (
        "import importlib.metadata as m, sys; "
        "print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    )
    versions = subprocess.run(
        [arguments.python, "-c", ask, *PEERS], capture_output=True, text=True, check=True
    ).stdout.strip()
    own = importlib.metadata.version("onnxruntime")
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`; some models are of the folder that `SURGEON_CORPUS` names.",
        "`surgeon` is `surgeon apply clean --no-verify`, as no other tool compares its result;",
        "`surgeon checked` compares every rewrite and the whole result. `CPU in process`: seconds",
        "from load to saved where the tool has mended another file before; `CPU whole`: those of a",
        "process that does this alone, the tool's command where it has one, a line of Python where",
        f"it has none, the best of three where they are short. Above {LONG:.0f} s, and with data",
        "outside, a tool runs once, and both are of that process. `equal`: in",
        f"onnxruntime {own} without its optimisations, on three input sets of different sizes.",
        "",
        f"- Versions: {versions}; Python {platform.python_version()}.",
        f"- Machine: {platform.platform()}, {os.cpu_count()} cores; {arguments.note}",
        f"- `ms`: a run on one thread, the best of up to {RUNS}, all results of a model in turns,",
        "  with onnxruntime's own optimisations off (as is) and on.",
        f"- A tool gets {arguments.seconds:.0f} seconds a model, with data outside ten times that;",
        "  the largest graph goes to those that end in it, and is not loaded in onnxruntime.",
        "- Where shapes are proven, onnxruntime's optimisations make SkipLayerNormalization of",
        "  residuals and norms, whose kernel on CPUs is slower than the two operators, by up to a",
        "  third of the whole: see `transformer of 2k`, of OnnxSlim and onnxsim too.",
        "",
        "| " + " | ".join(HEADS) + " |",
        "|---|---|--:|---|" + "--:|" * (len(HEADS) - 4),
        *("| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in table),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--python", required=True, help="an interpreter that has the peers")
    parser.add_argument("--largest", type=int, default=100_000, help="nodes of the largest graph")
    parser.add_argument("--seconds", type=float, default=120, help="for one tool and model")
    parser.add_argument("--external", action="store_true", help="up to 8 GB of data as well")
    parser.add_argument("--only", default="", help="part of the names of the models to measure")
    parser.add_argument(
        "--models", type=Path, help="a folder of models, in place of the usual ones"
    )
    parser.add_argument("--note", default="ratios say more than seconds.", help="on the machine")
    parser.add_argument("--write", type=Path, help="the page to write")
    arguments = parser.parse_args()
    compileall.compile_dir(ROOT / "surgeon", quiet=1)  # as pip did with the others
    with tempfile.TemporaryDirectory() as folder:
        table = rows(arguments, Path(folder))
        if arguments.external:
            table += external_rows(arguments, Path(folder))
    if arguments.write:
        arguments.write.write_text(page(table, arguments), encoding="utf-8")


if __name__ == "__main__":
    main()
