"""What a recipe makes of the files that `exporting.py` or `networks.py` wrote.

    python tests/benchmarks/exports.py FOLDER
    python tests/benchmarks/exports.py FOLDER --recipe clean --verify

prints every file whose result is not PyTorch's, every crash, every node that is left with its
reason, and how many are. A file that is dynamic is compared at other sizes too; where the file
itself, run by the witness, differs from PyTorch there, the trace froze something, and its result
is compared with the file instead.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

import surgeon
from surgeon.errors import LeftoverError
from surgeon.reference import open_reference

CLOSE = {np.dtype(np.float16): 2e-2}  # others: 1e-3, absolute and relative


def difference(found: list[Any], wanted: list[Any]) -> str:
    """How the outputs differ; empty where they are the same."""
    if len(found) != len(wanted):
        return f"{len(found)} outputs, not {len(wanted)}"
    for mine, its in zip(found, wanted, strict=True):
        if mine.shape != its.shape or mine.dtype != its.dtype:
            return f"{mine.dtype}{list(mine.shape)}, not {its.dtype}{list(its.shape)}"
        limit = CLOSE.get(its.dtype, 1e-3)
        if not np.allclose(mine, its, rtol=limit, atol=limit, equal_nan=True):
            apart = np.argwhere(~np.isclose(mine, its, rtol=limit, atol=limit, equal_nan=True))[0]
            place = tuple(int(i) for i in apart)
            return f"{mine[place]}, not {its[place]} at {list(place)}"
    return ""


def executed(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any] | str:
    """What the file itself says, by the witness; or why it says nothing."""
    taken = {value.name for value in model.graph.input}
    given = {name: value for name, value in feeds.items() if name in taken}
    try:
        return list(open_reference(model).run(given).values())
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n")[0]


def judged(
    model: onnx.ModelProto,
    sets: list[tuple[dict[str, Any], list[Any]]],
    recipe: str = "aten",
    *,
    verify: bool = False,
) -> tuple[str, str]:
    """What became of a file, and why.

    `sets` are inputs and PyTorch's outputs, the traced ones first. `frozen` is a result that is the
    file's own where the file is not PyTorch's: the trace froze a size, or what is drawn at random.
    """
    try:
        result = surgeon.apply(model, recipe, verify=verify)
    except LeftoverError as error:
        return "left", error.what
    except surgeon.SurgeonError as error:
        return "refused", error.what
    except Exception as error:
        return "crash", f"{type(error).__name__}: {error}"
    saved = result.model.to_proto()
    try:
        session = ort.InferenceSession(saved.SerializeToString())
    except Exception as error:
        return "does not run", str(error)
    taken, frozen = {value.name for value in session.get_inputs()}, ""
    for number, (feeds, wanted) in enumerate(sets):
        try:
            found = session.run(None, {k: v for k, v in feeds.items() if k in taken})
            differs = difference(found, wanted)
        except Exception as error:
            found, differs = [], f"does not run: {error}"
        if not differs:
            continue
        itself = executed(model, feeds)
        if isinstance(itself, str) or not difference(itself, wanted):
            if isinstance(itself, str) and number:
                frozen = frozen or f"{differs}; the file: {itself}"
                continue
            return "wrong elsewhere" if number else "wrong", f"{differs} ({str(itself)[:150]})"
        if found and not difference(found, itself):
            frozen = frozen or differs
            continue
        return "wrong elsewhere" if number else "wrong", f"{differs}; the file differs too"
    return ("frozen" if frozen else "ok"), frozen


def sets_of(path: Path) -> list[tuple[dict[str, Any], list[Any]]]:
    """Inputs and PyTorch's outputs, the traced ones first."""
    with np.load(path.with_suffix(".npz")) as held:
        arrays = dict(held.items())
    found: dict[str, tuple[dict[str, Any], list[Any]]] = {}
    for key, value in arrays.items():
        number, _, name = key.partition("_")
        feeds, outputs = found.setdefault(number, ({}, []))
        if name.startswith("x"):
            feeds[name] = value
        else:
            outputs.append(value)
    return list(found.values())


def main() -> None:
    """Go through the folder."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*", help="files whose name this pattern fits")
    parser.add_argument("--rows", type=Path, help="a file for one line of JSON each")
    parser.add_argument("--recipe", default="aten")
    parser.add_argument("--verify", action="store_true")
    args = parser.parse_args()
    ort.set_default_logger_severity(4)
    counts: Counter[str] = Counter()
    rows = args.rows.open("w") if args.rows else None
    for path in sorted(args.folder.glob(f"{args.only}.onnx")):
        outcome, why = judged(onnx.load(path), sets_of(path), args.recipe, verify=args.verify)
        counts[outcome] += 1
        if outcome != "ok":
            print(f"{outcome}: {path.stem}: {why[:300]}", flush=True)
        if rows:
            rows.write(json.dumps({"name": path.stem, "outcome": outcome, "why": why}) + "\n")
            rows.flush()
    print(dict(counts))


if __name__ == "__main__":
    main()
