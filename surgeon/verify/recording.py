"""Runs in .npz files, `in.NAME` and `out.NAME`, as `--data` and `--reference` read them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from surgeon.errors import OutputError, RecipeError, VerifyError
from surgeon.files import write_whole
from surgeon.reading import open_file

RECORD = "--record"


@dataclass(frozen=True, slots=True)
class First:
    """The first run of the original that was compared.

    Attributes:
        feeds: By input name.
        outputs: By output name.
    """

    feeds: Mapping[str, Any]
    outputs: Mapping[str, Any]


def check_record(path: Path, model: onnx.ModelProto, *, recorded: bool) -> None:
    """See that a run of a model can be written there.

    Args:
        path: Where to.
        model: The original.
        recorded: Whether its outputs come from a file.

    Raises:
        RecipeError: It is no .npz file, it has what such a file cannot hold, or nothing is run.
        OutputError: Something else is there.
    """
    if path.suffix != ".npz":
        what, mend = "a run is recorded in an .npz file", f"Name it `{path.stem or 'run'}.npz`."
        raise RecipeError(what, where=f"{RECORD} {path}", mend=mend)
    if path.exists() and not _is_record(path):
        raise OutputError(
            "there is a file already that is no recorded run",
            where=f"{RECORD} {path}",
            mend="Name another, or take it away.",
        )
    if recorded:
        raise RecipeError(
            "with recorded outputs the original is not run",
            where=RECORD,
            mend="Leave it out, or leave out `--reference`.",
        )
    for value in (*model.graph.input, *model.graph.output):
        if not value.type.HasField("tensor_type"):
            raise RecipeError(
                f"`{value.name}` is no tensor, and an .npz file holds nothing else",
                where=RECORD,
                mend="Cut it off, `surgeon extract --to`, and record the rest.",
            )


def _is_record(path: Path) -> bool:
    """Whether a file holds a run, which another may take the place of."""
    try:
        with open_file(path) as file, np.load(file, allow_pickle=False) as arrays:
            return all(name.startswith(("in.", "out.")) for name in arrays.files)
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile):
        return False


def write_record(path: Path | None, first: First | None, why: str) -> None:
    """Write a run, whole or not at all; nothing where no path is given.

    Args:
        path: Where to.
        first: The run.
        why: Why there is none.

    Raises:
        VerifyError: There is none.
        OutputError: The file cannot be written.
    """
    if path is None:
        return
    if first is None:
        raise VerifyError(
            f"nothing was recorded: {why}",
            where=f"{RECORD} {path}",
            mend="Give inputs on which the original runs, `--data FILE`, and the original twice "
            "where the other model is at fault.",
        )
    sides = (("in", first.feeds), ("out", first.outputs))
    write_whole(path, packed({f"{side}.{n}": a for side, made in sides for n, a in made.items()}))


def packed(arrays: Mapping[str, Any]) -> bytes:
    """Arrays by name as an .npz file; strings as such, since objects are read by nobody."""
    plain = {
        name: array.astype(str)
        if isinstance(array, np.ndarray) and array.dtype == object
        else array
        for name, array in arrays.items()
    }
    file = io.BytesIO()
    np.savez(file, **plain)  # type: ignore[arg-type]
    return file.getvalue()


def dtypes_of(*values: onnx.ValueInfoProto) -> dict[str, np.dtype[Any]]:
    """The dtypes of tensors as they are declared, by name."""
    found = {}
    for value in values:
        try:
            kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        except KeyError:  # no tensor, or of a type that no onnx knows
            continue
        found[value.name] = kind
    return found


def as_declared(array: Any, dtype: np.dtype[Any] | None) -> Any:
    """What a file says: of a dtype that numpy lacks, bfloat16 say, it keeps the bytes alone."""
    if dtype is not None and array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype)
    return array
