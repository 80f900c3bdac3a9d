"""Folders that show a difference to anybody: two models, inputs, both outputs, and a script.

The script needs onnx, onnxruntime and numpy alone. Names of strangers are in the models and in the
README, never in the name of a file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from surgeon import customops
from surgeon.errors import OutputError, SurgeonError
from surgeon.files import write_whole
from surgeon.model import Model
from surgeon.verify.pair import is_plain, open_runner
from surgeon.verify.recording import packed

MOST = 200  # folders of one run

_SCRIPT = '''\
"""Runs before.onnx and after.onnx on inputs.npz, and prints how far they are apart.

Needs onnxruntime and numpy. Arrays are numbered: input.0 is the first input of before.onnx.
"""

import os
import sys

import numpy as np
import onnxruntime

os.chdir(os.path.dirname(os.path.abspath(sys.argv[0])))
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
for library in LIBRARIES:
    options.register_custom_ops_library(library)
given, recorded = np.load("inputs.npz"), np.load("outputs.npz")


def run(name):
    """The outputs, of onnxruntime where it takes the model and else as surgeon recorded them."""
    known = {key: recorded[key] for key in recorded.files if key.startswith(name)}
    count = len([key for key in recorded.files if key.startswith("before")]) or len(known)
    try:
        session = onnxruntime.InferenceSession(f"{name}.onnx", options)
        feeds = {port.name: given[f"input.{names[port.name]}"] for port in session.get_inputs()}
        return session.run(None, feeds)
    except Exception as error:
        print(f"{name}.onnx does not run here: {str(error)[:300]}")
        if not known:
            return None
        print(f"its outputs are those that were recorded in outputs.npz ({by[name]})")
        return [known[f"{name}.{place}"] for place in range(count)]


names, by = INPUTS, RECORDED
before, after = run("before"), run("after")
if before is not None and after is not None:
    for place, (one, other) in enumerate(zip(before, after)):
        print(f"output {place}: {one.dtype}{list(one.shape)} and {other.dtype}{list(other.shape)}")
        if one.shape == other.shape and one.size and one.dtype.kind in "fiub":
            one, other = one.astype(np.float64), other.astype(np.float64)
            with np.errstate(all="ignore"):
                error = np.abs(one - other)
            error[(one == other) | (np.isnan(one) & np.isnan(other))] = 0
            error[np.isnan(error)] = np.inf
            worst = np.unravel_index(np.argmax(error), error.shape)
            where = [int(index) for index in worst]
            print(f"  {np.count_nonzero(error)} of {error.size} values differ")
            print(f"  largest error {error[worst]:.6g} at {where}: {one[worst]} and {other[worst]}")
'''


def keep(
    folder: Path,
    label: str,
    reason: str,
    before: Model | onnx.ModelProto,
    after: Model | onnx.ModelProto,
    feeds: Mapping[str, Any],
    data: Path | None = None,
) -> Path | None:
    """Write a folder that shows the difference of two models; None where there are enough.

    Args:
        folder: What it goes into; made where it is missing.
        label: What was tried, and where.
        reason: How they differ.
        before: What was there.
        after: What was to take its place.
        feeds: Inputs on which they differ.
        data: Where the external data of a `ModelProto` lie.

    Raises:
        OutputError: The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = {entry.name for entry in folder.iterdir()}
        free = (f"{number:03}" for number in range(1, MOST + 1))
        name = next((name for name in free if name not in taken), None)
        if name is None:
            return None
        target = folder / name
        target.mkdir()
    except OSError as error:
        raise OutputError(
            f"evidence cannot be kept there: {error.strerror}",
            where=str(folder),
            mend="Name a folder that can be written.",
        ) from None
    outputs: dict[str, Any] = {}
    recorded: dict[str, str] = {}
    for side, model in (("before", before), ("after", after)):
        if isinstance(model, Model):
            model.save(target / f"{side}.onnx")
            model, data = model.to_proto(), model.folder
        else:
            write_whole(target / f"{side}.onnx", model.SerializeToString())
        recorded[side], found = _run(model, feeds, data)
        outputs.update({f"{side}.{place}": value for place, value in enumerate(found)})
    numbers = {name: place for place, name in enumerate(feeds)}
    inputs = {f"input.{numbers[name]}": array for name, array in feeds.items()}
    write_whole(target / "inputs.npz", packed(inputs))
    write_whole(target / "outputs.npz", packed(outputs))
    script = _SCRIPT.replace("INPUTS, RECORDED", f"{numbers!a}, {recorded!a}")
    script = script.replace("LIBRARIES", f"{customops.libraries()!a}")
    write_whole(target / "run.py", script.encode("ascii"))
    text = _readme(label, reason, numbers, recorded)
    write_whole(target / "README.md", text.encode("utf-8", "backslashreplace"))
    return target


def check_folder(folder: Path) -> None:
    """Whether evidence can be kept there, before anything is done.

    Raises:
        OutputError: It is no folder, or it cannot be written.
    """
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if str(folder) == "-" or not there.is_dir() or not os.access(there, os.W_OK):
        raise OutputError(
            "evidence cannot be kept there",
            where=str(folder),
            mend="Name a folder that can be written.",
        )


def _run(
    model: onnx.ModelProto, feeds: Mapping[str, Any], data: Path | None
) -> tuple[str, list[Any]]:
    """Who ran it, or why nobody did; and the outputs in order."""
    names = [value.name for value in model.graph.output]
    known = {value.name for value in model.graph.input}
    try:
        found = open_runner(model, data).run({k: v for k, v in feeds.items() if k in known}, names)
    except SurgeonError as error:
        return f"it does not run: {_line(error.what)}", []
    by = "by onnxruntime" if is_plain(model) else "by surgeon's witness: no runtime takes it"
    return by, [np.asarray(found[name]) for name in names]


def _readme(
    label: str, reason: str, numbers: Mapping[str, int], recorded: Mapping[str, str]
) -> str:
    inputs = "\n".join(f"- `input.{place}`: {_line(name)}" for name, place in numbers.items())
    return f"""# What surgeon found to differ

- tried: {_line(label)}
- found: {_line(reason)}
- outputs of `before.onnx`: {recorded["before"]}
- outputs of `after.onnx`: {recorded["after"]}

`python run.py` in this folder runs both; it needs onnxruntime and numpy. Inputs in `inputs.npz`:

{inputs or "- none"}
"""


def _line(text: str) -> str:
    """Text of strangers on one line, without what a terminal would obey."""
    return ascii(text[:2000])[1:-1]
