"""Real inputs from files: .npz by input name, or folders of them or of ONNX's own test data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from surgeon.document import nearest
from surgeon.errors import RecipeError, few
from surgeon.numerals import natural
from surgeon.reading import open_file
from surgeon.verify.limits import Input
from surgeon.verify.recording import as_declared

MOST = 64  # sets that are read
_ORDER = re.compile(r"input_(\d+)\.pb$")


@dataclass(frozen=True, slots=True)
class DataSet:
    """One set of inputs, and the file or folder it is from."""

    label: str
    feeds: Mapping[str, Any]


def read_data(
    paths: Sequence[str | Path], inputs: Sequence[Input], order: Sequence[str]
) -> tuple[DataSet, ...]:
    """The sets in files: .npz, and folders of .npz or of `test_data_set_*/input_*.pb`.

    Args:
        paths: Files and folders.
        inputs: What has to be given.
        order: The names of all inputs, as `input_0.pb` is the first.

    Raises:
        RecipeError: There is nothing, it cannot be read, or it lacks an input.
    """
    found: list[DataSet] = []
    dtypes = {each.name: each.dtype for each in inputs}
    for path in map(Path, paths):
        there = list(_files(path))
        if not there:
            what = "there are no inputs" if path.exists() else "there is no such file"
            if path.is_file():
                what = (
                    f"inputs are not read from a file of this kind ({path.suffix or 'no suffix'})"
                )
            raise RecipeError(
                what,
                where=f"--data {path}",
                mend="Name an .npz file keyed by input names, or a folder of them or of "
                "`test_data_set_*` folders with `input_0.pb`.",
            )
        found.extend(_read(each, order, dtypes) for each in there[: MOST - len(found)])
    for each in found:
        missing = [i.name for i in inputs if i.name not in each.feeds]
        if missing:
            strange = [name for name in each.feeds if name not in order]
            raise RecipeError(
                f"it holds nothing for input `{missing[0]}`",
                where=f"--data {each.label}",
                mend=_renamed(missing[0], strange, few([i.name for i in inputs], 12)),
            )
        for value in inputs:
            _see_it_fits(each, value)
    return tuple(
        DataSet(each.label, {k: v for k, v in each.feeds.items() if k in order}) for each in found
    )


def _renamed(missing: str, strange: Sequence[str], known: str) -> str:
    """What to do about a key that is not there: the nearest that is there may be meant for it."""
    if near := nearest(missing, strange):
        return f"Save it as `{missing}`: `{near}`, which it holds, is no input's name."
    return f"Save it by name; inputs are {known}."


def unfit(data: DataSet, why: str) -> RecipeError:
    """What to raise where a model that loads does not run on given inputs."""
    return RecipeError(
        f"the original does not run on it: {why}",
        where=f"--data {data.label}",
        mend="Give inputs that go together, with values that the model takes.",
    )


def _see_it_fits(data: DataSet, value: Input) -> None:
    """See that an input is of the dtype and shape that the model declares.

    Raises:
        RecipeError: It is not.
    """
    given = data.feeds[value.name]
    if value.is_list or not isinstance(given, np.ndarray):
        return
    where = f"--data {data.label}"
    # an .npz keeps no dtype that numpy lacks, bfloat16 say, and strings are objects
    if given.dtype != value.dtype and "V" not in (given.dtype.kind, value.dtype.kind):
        if value.dtype.kind == "O" and given.dtype.kind in "US":
            return
        raise RecipeError(
            f"its input `{value.name}` is {given.dtype}, and the model's is {value.dtype}",
            where=where,
            mend=f"Save it as {value.dtype}: `array.astype(numpy.{value.dtype})`.",
        )
    dims = value.dims
    if len(given.shape) != len(dims) or any(
        isinstance(dim, int) and dim != size for dim, size in zip(dims, given.shape, strict=True)
    ):
        wanted = ", ".join(map(str, value.dims))
        raise RecipeError(
            f"its input `{value.name}` has the shape {list(given.shape)}, and the model's is "
            f"[{wanted}]",
            where=where,
            mend="Give data of this model, or other sizes of it with `--shape`.",
        )


def _files(path: Path) -> Iterator[Path]:
    if path.is_file() and path.suffix == ".npz":
        yield path
    elif path.is_dir():
        yield from sorted(path.glob("*.npz"))
        folders = [path, *path.glob("test_data_set_*")]
        for folder in sorted(folders, key=_numbered):
            if any(_ORDER.match(file.name) for file in folder.iterdir()):
                yield folder


def _numbered(folder: Path) -> tuple[int, str]:
    ending = folder.name.rpartition("_")[2]
    number = natural(ending)
    return (-1 if number is None else number, ending)


def _own_values(tensor: onnx.TensorProto) -> np.ndarray[Any, Any]:
    if tensor.data_location == tensor.EXTERNAL:  # onnx looks for them where the process stands
        raise ValueError("its values lie in another file")
    return onnx.numpy_helper.to_array(tensor)


def _read(path: Path, order: Sequence[str], dtypes: Mapping[str, np.dtype[Any]]) -> DataSet:
    try:
        if path.is_file():
            with open_file(path) as file, np.load(file, allow_pickle=False) as arrays:
                kept = {key.removeprefix("in."): arrays[key] for key in arrays.files}
            return DataSet(path.name, {k: as_declared(a, dtypes.get(k)) for k, a in kept.items()})
        feeds = {}
        for each in path.iterdir():
            if (match := _ORDER.match(each.name)) and int(match[1]) < len(order):
                with open_file(each) as held:
                    tensor = onnx.TensorProto.FromString(held.read())
                feeds[tensor.name or order[int(match[1])]] = _own_values(tensor)
        return DataSet(path.name, feeds)
    except Exception as error:  # numpy, zipfile and protobuf each raise their own
        raise RecipeError(
            f"it cannot be read: {str(error)[:200]}",
            where=f"--data {path}",
            mend="Name files of plain arrays.",
        ) from None
