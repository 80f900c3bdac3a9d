"""surgeon's `clean` beside other simplifiers, in one run, as a table for docs/benchmarks.md.

Run: make bench, or
    python tests/benchmarks/peers.py --python .venv-bench/bin/python --write docs/benchmarks.md

Each tool gets each model in processes of its own: nodes without Constant, CPU seconds from load to
saved where the tool is loaded, those of a whole process that does nothing else, the peak of its
memory, whether the result equals the original in onnxruntime on three input sets of other sizes,
and how long it runs there on one thread, with onnxruntime's own optimisations off and on: the best
of many runs, all results of a model in turns, as the machine is not equally fast all the time. The
whole process is the tool's command where it has one. The samples hold ATen nodes, which onnxruntime
does not load: there is nothing to compare with. With `--external`, a model with 0.5 GB of weights
in it too, and some with 0.5, 2.5 and 8 GB of external data, of which only the cost is measured.
There `surgeon` writes into the folder where the data are, `surgeon copying` gives the result data
of its own, as the others do, and `plain copy` is what copying them costs alone.
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
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from graphs import blocks, transformer
from running import RUNS, equal, latencies, nodes, session

ROOT = Path(__file__).parents[2]
PEERS = ("onnxsim", "onnxslim", "onnxscript", "onnxoptimizer", "onnx-graphsurgeon", "onnxruntime")
CHECKED = "surgeon checked"
TOOLS = ("surgeon", CHECKED, *PEERS)
LARGE = 50_000  # nodes from which on only those are measured that end in time
IN_TIME = ("surgeon", "onnxsim", "onnx-graphsurgeon")
HEADS = (
    *("model", "tool", "nodes", "equal", "ms as is", "ms optimised"),
    *("CPU in process", "CPU whole", "peak MB"),
)
INSIDE = "0.5 GB inside"
HEAVY = {INSIDE: 8, "0.5 GB outside": 8, "2.5 GB outside": 40, "8 GB outside": 125}  # of 64 MB
COPY = "plain copy"
SIMPLIFYING = Path(__file__).with_name("simplifying.py")
FOR_ALL = 40  # layers up to which other tools are tried: they hold the weights several times
BLANK = ["", ""]  # for what was not run
LONG = 20.0  # CPU seconds above which a tool is run once, as what it loads is nothing beside them
SHORT = 2.0  # below which three runs cost little, and noise much
COMMANDS = {  # as users call them
    "surgeon": ["surgeon", "apply", "clean", "IN", "OUT", "--no-verify"],
    CHECKED: ["surgeon", "apply", "clean", "IN", "OUT"],
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


def interpreter(python: str, tool: str) -> str:
    """The interpreter that has a tool: that of the peers, or this one."""
    return python if tool in PEERS else sys.executable


def working(python: str, tool: str, source: Path, target: Path) -> list[str]:
    """The command that lets a tool work on a model, whatever its own command would be."""
    return [interpreter(python, tool), str(SIMPLIFYING), tool, str(source), str(target)]


def measure(
    python: str, source: Path, targets: Mapping[str, Path], seconds: float
) -> dict[str, dict[str, Any]]:
    """What each tool costs: run once, and then as its command and where it is loaded, in turns."""

    def work(tool: str) -> list[str]:
        return working(python, tool, source, targets[tool])

    def command(tool: str) -> list[str]:
        if tool not in COMMANDS:
            return work(tool)
        places = {"IN": str(source), "OUT": str(targets[tool])}
        name, *rest = COMMANDS[tool]
        script = Path(interpreter(python, tool)).with_name(name)
        return [str(script), *(places.get(word, word) for word in rest)]

    first = {tool: run(work(tool), seconds, OMP_NUM_THREADS="1") for tool in targets}
    found = {tool: dict(got) for tool, got in first.items()}
    for turn in range(3):
        for tool, got in first.items():
            if "failed" in got or got["cpu"] > (SHORT if turn else LONG):
                continue
            loaded = run([*work(tool), "loaded"], seconds, OMP_NUM_THREADS="1")
            whole = run(command(tool), seconds)
            for key, value in (("cpu", loaded.get("cpu")), ("whole", whole.get("whole"))):
                if value is not None:
                    found[tool][key] = min(value, found[tool][key] if turn else value)
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


def inside(folder: Path, name: str, layers: int) -> Path:
    """The same with its weights in the model."""
    import onnx

    path = outside(folder, name, layers)
    onnx.save(onnx.load(path), path)
    path.with_suffix(".data").unlink()
    return path


def models(folder: Path, arguments: argparse.Namespace) -> list[tuple[str, Path]]:
    """The samples, some of the corpus where it is, and what is made; or the files of `--models`."""
    import onnx

    largest, part = arguments.largest, arguments.only
    if arguments.models:
        return [(p.stem, p) for p in sorted(arguments.models.glob("*.onnx")) if part in p.stem]

    found = [(p.stem, p) for p in sorted((ROOT / "samples").glob("*/*.onnx"))]
    index = arguments.corpus / "index.jsonl"
    if not index.is_file():
        print(f"no corpus in {arguments.corpus}: its models are left out", file=sys.stderr)
    else:
        rows = [json.loads(line) for line in index.open()]
        rows = [row for row in rows if row.get("file") and not row["nonstandard"]]
        rows.sort(key=lambda row: -sum(row.get("nodes", {}).values()))
        kinds: dict[str, dict[str, Any]] = {}
        for row in rows:  # the largest of each of the first few problems
            kinds.setdefault(row["problem"], row)
        found += [(row["name"], arguments.corpus / row["file"]) for row in list(kinds.values())[:5]]
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
        targets = {tool: folder / f"{tool}.onnx" for tool in tools}
        for target in targets.values():
            target.unlink(missing_ok=True)
        lines = [[name, "as it came", str(before), "", *BLANK, "", "", ""]]
        for tool, got in measure(arguments.python, path, targets, arguments.seconds).items():
            if "failed" in got:
                targets[tool].unlink(missing_ok=True)
                lines.append([name, tool, "", got["failed"], *BLANK, "", "", ""])
            else:
                same = "-" if large else equal(original, targets[tool])
                lines.append([name, tool, str(nodes(targets[tool])), same, *BLANK, *costs(got)])
        if not large:
            ran = [(path, lines[0]), *zip(targets.values(), lines[1:], strict=True)]
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


def heavy_rows(arguments: argparse.Namespace, folder: Path) -> list[list[str]]:
    """What models with hundreds of megabytes of weights cost."""
    table = []
    for name, layers in HEAVY.items():
        if arguments.only not in name:
            continue
        path = (inside if name == INSIDE else outside)(folder, name, layers)
        ours = (CHECKED,) if name == INSIDE else ("surgeon copying",)
        first = () if name == INSIDE else (COPY,)
        for tool in (*first, "surgeon", *ours, *(PEERS if layers <= FOR_ALL else ())):
            with tempfile.TemporaryDirectory(dir=folder) as place:
                target = (folder if tool == "surgeon" else Path(place)) / "out.onnx"
                work = working(arguments.python, tool, path, target)
                got = run(work, 10 * arguments.seconds, OMP_NUM_THREADS="1")
                row = [name, tool, "", got.get("failed", "-"), *BLANK, "", "", ""]
                if "failed" not in got:
                    left = str(nodes(target)) if target.exists() else ""
                    row = [name, tool, left, "-", *BLANK, *costs(got)]
            print(" | ".join(row), flush=True)
            table.append(row)
        path.unlink()
        path.with_suffix(".data").unlink(missing_ok=True)
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
        "Written by `make bench`; some models are of a corpus (`CORPUS=FOLDER`), if there is one.",
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
        "  residuals and norms, whose kernel on CPUs is slower than the two operators: so",
        "  `transformer of 2k` is slower with them where its shapes are proven, and without them",
        "  faster than what came.",
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
    usual = Path(os.environ.get("SURGEON_CORPUS") or ROOT.parent / "shared" / "corpus")
    parser.add_argument("--corpus", type=Path, default=usual, help="a folder of real exports")
    parser.add_argument("--note", default="ratios say more than seconds.", help="on the machine")
    parser.add_argument("--write", type=Path, help="the page to write")
    arguments = parser.parse_args()
    compileall.compile_dir(ROOT / "surgeon", quiet=1)  # as pip did with the others
    with tempfile.TemporaryDirectory() as folder:
        table = rows(arguments, Path(folder))
        if arguments.external:
            table += heavy_rows(arguments, Path(folder))
    if arguments.write:
        arguments.write.write_text(page(table, arguments), encoding="utf-8")


if __name__ == "__main__":
    main()
