"""Inputs that always have one value: `--value sr=16000`. In the result they are constants."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from surgeon.declared import is_sequence, tensor_of
from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.model import Model
from surgeon.reading import open_file
from surgeon.wire import LARGEST

_TRUTHS = {"true": True, "false": False}
_SHOWN = 8  # numbers that a report repeats


def with_values(
    model: Model,
    values: Mapping[str, Any],
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> tuple[Model, tuple[str, ...]]:
    """The model in which inputs have a value of their own, that a caller may give otherwise.

    Args:
        model: Is not changed.
        values: By input name: a number, a truth, several, an array, or a text of them
            (`720,1280`, `true`, the path of an .npy file).
        shapes: By input name, in place of what is declared.

    Returns:
        The model, and what was said of each input, for the report.

    Raises:
        RecipeError: There is no such input, or its value is of another type or shape.
    """
    if not values:
        return model, ()
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    inputs = {value.name: value for value in proto.graph.input}
    said = []
    for name, given in values.items():
        if name not in inputs:
            raise RecipeError(
                f"the model has no input `{name}`",
                where="--value",
                mend=suggest(name, inputs) or f"Its inputs are {', '.join(inputs)}.",
            )
        array = _array(inputs[name], given, (shapes or {}).get(name))
        kept = [tensor for tensor in proto.graph.initializer if tensor.name != name]
        del proto.graph.initializer[:]
        proto.graph.initializer.extend(kept)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        said.append(f"{name} is {_told(array)}, and no input of the result")
    return model.with_proto(proto), tuple(said)


def see_values(
    values: Mapping[str, Any], model: Model, feeds: Mapping[str, Any], label: str
) -> None:
    """See that real inputs have the values that were told.

    Args:
        values: By input name.
        model: With these values.
        feeds: By input name.
        label: What the inputs are from.

    Raises:
        RecipeError: One has another value.
    """
    told = {tensor.name: tensor for tensor in model.proto.graph.initializer}
    for name in values:
        if name not in feeds or name not in told:
            continue
        one, other = np.asarray(feeds[name]), onnx.numpy_helper.to_array(told[name])
        if one.shape != other.shape or not np.array_equal(one, other):
            raise RecipeError(
                f"its input `{name}` is {_told(one)}, and {_told(other)} was told",
                where=f"--data {label}",
                mend="Give data of that value, or leave `--value` out.",
            )


def _array(
    value: onnx.ValueInfoProto, given: Any, shape: Sequence[int | str] | None
) -> np.ndarray[Any, Any]:
    """A value as the input declares it."""
    tensor = tensor_of(value.type)
    if tensor is None or is_sequence(value.type) or not tensor.elem_type:
        raise _refused(value.name, "it is no tensor of a known type", "Leave it an input.")
    if tensor.elem_type == onnx.TensorProto.STRING:
        raise _refused(value.name, "it holds texts", "Leave it an input.")
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    array = _converted(value.name, np.asarray(_read(value.name, given)), dtype)
    dims: list[int | str] | None = None
    if shape is not None:
        dims = list(shape)
    elif tensor.HasField("shape"):
        dims = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in tensor.shape.dim]
    if dims is None or _fits(array.shape, dims):
        return array
    if array.size == 1 and all(isinstance(dim, int) for dim in dims):
        return np.full([int(dim) for dim in dims], array.reshape(()), dtype)
    known = math.prod(dim for dim in dims if isinstance(dim, int))
    open_ = [dim for dim in dims if not isinstance(dim, int)]
    if not open_ and known == array.size:
        return array.reshape([int(dim) for dim in dims])
    wanted = ", ".join(str(dim) or "?" for dim in dims)
    raise _refused(
        value.name,
        f"{array.size} number{'s' * (array.size != 1)} for the shape [{wanted}]",
        f"Give its sizes too, as `--shape {value.name}={','.join(_sizes(dims))}`, or an .npy file "
        "of that shape."
        if open_
        else "Give one number for all, or as many as there are.",
    )


def _sizes(dims: Sequence[int | str]) -> list[str]:
    """Sizes for an example: those that are known, and small ones for the others."""
    return [str(dim) if isinstance(dim, int) else str(at + 1) for at, dim in enumerate(dims)]


def _fits(shape: Sequence[int], dims: Sequence[int | str]) -> bool:
    return len(shape) == len(dims) and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(dims, shape, strict=True)
    )


def _read(name: str, given: Any) -> Any:
    """What was given, where it is a text what that says."""
    if not isinstance(given, str):
        return given
    if given.endswith(".npy"):
        return _loaded(name, given)
    parts = [part.strip() for part in given.strip().strip("[]()").split(",")]
    numbers = [_number(name, part) for part in parts]
    return numbers[0] if len(numbers) == 1 and not given.strip().startswith("[") else numbers


def _loaded(name: str, path: str) -> Any:
    """What an .npy file holds."""
    try:
        with open_file(path, LARGEST) as file:
            return np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        why = getattr(error, "strerror", None) or str(error) or "there is no memory for it"
        raise _refused(name, f"it cannot be read: {why}", "Name an .npy file.") from None


def _number(name: str, text: str) -> bool | int | float:
    if text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise _refused(
        name, f"`{text}` is no number", "Write it as `16000`, `720,1280`, `true` or `value.npy`."
    )


def _converted(name: str, array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Of the type that the input declares, where that changes nothing but rounding."""
    if array.dtype.kind not in "biuf" and array.dtype != dtype:
        raise _refused(name, "these are no numbers", "Give numbers, or `true` and `false`.")
    with np.errstate(all="ignore"):
        made = array.astype(dtype)
        whole = dtype.kind in "biu"
        if whole and not np.array_equal(made.astype(array.dtype), array):
            raise _refused(name, f"{_told(array)} is no {dtype.name}", "Give one of that type.")
    return made


def _told(array: np.ndarray[Any, Any]) -> str:
    if array.size > _SHOWN:
        first = array.reshape(-1)[0]
        alike = bool((array == first).all())
        what = f"{first} throughout" if alike else f"{array.size:,} numbers"
        return f"{what} ({' x '.join(map(str, array.shape))})"
    return str(array.tolist()).lower() if array.dtype.kind == "b" else str(array.tolist())


def _refused(name: str, what: str, mend: str) -> RecipeError:
    return RecipeError(f"input `{name}`: {what}", where="--value", mend=mend)
