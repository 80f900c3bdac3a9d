"""Integer and boolean arithmetic on known values, symbolic elements included.

Each function takes the operands as numpy arrays (object arrays hold `Dim`s) and the attributes, and
gives the outputs, or None where the result is not provable. The same functions move data of any
dtype where all is concrete: those marked in `MOVES` only copy elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from surgeon import dims
from surgeon.dims import Dim

Array = npt.NDArray[Any]
Operands = Sequence[Array | None]
Attributes = Mapping[str, Any]
Function = Callable[[Operands, Attributes], "Sequence[Array] | None"]


# How large a number may be that is added to lengths, and one that multiplies them.
_MOST, _MOST_OF_INT32 = (1 << 62, 1 << 31), (1 << 30, 1 << 16)


class _NotProvable(Exception):
    """A comparison or division that the symbols do not decide."""


def evaluate(op: str, operands: Operands, attributes: Attributes) -> Sequence[Array] | None:
    """The outputs of a node whose operands are known; None where they are not provable."""
    function = FUNCTIONS.get(op)
    if function is None:
        return None
    try:
        return function(operands, attributes)
    except (_NotProvable, ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError):
        return None  # the node is wrong, or not decided; either way nothing is proven


def may_wrap(array: Array, dtype: int) -> bool:
    """Whether a symbolic element leaves its type at sizes that tensors have.

    A length is below 2^31, and a product of lengths counts elements: numbers beside them are what
    makes a value leave int64, or int32.
    """
    if array.dtype != object:
        return False
    most = _MOST_OF_INT32 if dtype == onnx.TensorProto.INT32 else _MOST
    return any(
        abs(factor) >= most[bool(monomial)]
        for element in array.reshape(-1).tolist()
        if isinstance(element, dims.Expr)
        for monomial, factor in element.terms
    )


def as_objects(array: Array) -> Array:
    """The same elements as Python integers or `Dim`s."""
    return array if array.dtype == object else array.astype(object)


def _need(array: Array | None) -> Array:
    if array is None:
        raise _NotProvable
    return array


def _ints(array: Array | None) -> list[int]:
    found = _need(array)
    if found.dtype == object:
        raise _NotProvable
    return [int(v) for v in found.reshape(-1)]


def _elementwise(function: Callable[[Any, Any], Any]) -> Function:
    def apply(operands: Operands, attributes: Attributes) -> Sequence[Array]:
        arrays = np.broadcast_arrays(*(as_objects(_need(a)) for a in operands))
        result = arrays[0]
        for other in arrays[1:]:
            out = np.empty(result.shape, object)
            out.reshape(-1)[:] = (
                [
                    function(a, b)
                    for a, b in zip(
                        result.reshape(-1).tolist(), other.reshape(-1).tolist(), strict=True
                    )
                ]
                if result.shape
                else [function(result.item(), other.item())]
            )
            result = out
        return [result]

    return apply


def _unary(function: Callable[[Any], Any]) -> Function:
    def apply(operands: Operands, attributes: Attributes) -> Sequence[Array]:
        array = as_objects(_need(operands[0]))
        out = np.empty(array.shape, object)
        out.reshape(-1)[:] = [function(a) for a in array.reshape(-1).tolist()]
        return [out]

    return apply


def _divide(a: Dim, b: Dim) -> Dim:
    """Division of integers as ONNX has it: truncated; equal to floor where nothing is negative."""
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            raise _NotProvable
        quotient = abs(a) // abs(b)
        return quotient if (a >= 0) == (b >= 0) else -quotient
    exact = dims.exact_quotient(a, b)
    if exact is not None:
        return exact
    if dims.not_negative(a) and dims.not_negative(b - 1):
        return a // b
    if isinstance(b, int) and b > 0 and dims.not_negative(a + (b - 1)):
        return dims.maximum(a, 0) // b  # what lies between -b and 0 is truncated to 0
    raise _NotProvable


def _modulo(operands: Operands, attributes: Attributes) -> Sequence[Array] | None:
    if attributes.get("fmod", 0):
        return None

    def remainder(a: Dim, b: Dim) -> Dim:
        if b == 0:
            raise _NotProvable
        return a % b

    return _elementwise(remainder)(operands, attributes)


def _decide(verdict: bool | None) -> bool:
    if verdict is None:
        raise _NotProvable
    return verdict


def _magnitude(a: Dim) -> Dim:
    if dims.not_negative(a):
        return a
    if dims.not_negative(-a):
        return -a
    raise _NotProvable


def _compare(function: Callable[[Any, Any], bool | None]) -> Function:
    pairwise = _elementwise(lambda a, b: _decide(function(_plain(a), _plain(b))))

    def apply(operands: Operands, attributes: Attributes) -> Sequence[Array]:
        return [np.asarray(pairwise(operands, attributes)[0], bool)]  # type: ignore[index]

    return apply


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _logical(function: Callable[..., Array]) -> Function:
    def apply(operands: Operands, attributes: Attributes) -> Sequence[Array]:
        return [np.asarray(function(*(np.asarray(_need(a), bool) for a in operands)))]

    return apply


def _where(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    condition = np.asarray(_need(operands[0]), bool)
    first, second = _need(operands[1]), _need(operands[2])
    if first.dtype == object or second.dtype == object:
        first, second = as_objects(first), as_objects(second)
    return [np.where(condition, first, second)]


def _reduce(function: Callable[[list[Any]], Any]) -> Function:
    def apply(operands: Operands, attributes: Attributes) -> Sequence[Array] | None:
        array = as_objects(_need(operands[0]))
        axes = None
        if len(operands) > 1 and operands[1] is not None:
            axes = _ints(operands[1])
        elif "axes" in attributes:
            axes = list(attributes["axes"])
        if not axes:
            if attributes.get("noop_with_empty_axes", 0):
                return [array]
            axes = list(range(array.ndim))
        axes = sorted(a % array.ndim for a in axes)
        kept = [i for i in range(array.ndim) if i not in axes]
        moved = array.transpose(kept + axes).reshape([array.shape[i] for i in kept] + [-1])
        flat = moved.reshape(-1, moved.shape[-1])
        out = np.empty(flat.shape[0], object)
        out[:] = [function(row) for row in flat.tolist()]
        shape = [1 if i in axes else n for i, n in enumerate(array.shape)]
        if not attributes.get("keepdims", 1):
            shape = [array.shape[i] for i in kept]
        return [out.reshape(shape)]

    return apply


def _extreme(pick: Callable[[Dim, Dim], Dim]) -> Callable[[list[Dim]], Dim]:
    def apply(row: list[Dim]) -> Dim:
        result = row[0]
        for item in row[1:]:
            result = pick(result, item)
        return result

    return apply


# --- functions that only move elements -----------------------------------------------------------


def _gather(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    data, indices = _need(operands[0]), _need(operands[1])
    if indices.dtype == object:
        raise _NotProvable
    taken = np.take(data, indices.astype(np.int64), axis=attributes.get("axis", 0))
    return [np.asarray(taken, data.dtype)]  # of one `Dim` numpy takes what it holds


def _slice(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    data = _need(operands[0])
    starts, ends = _ints(operands[1]), _ints(operands[2])
    axes = list(range(len(starts)))
    if len(operands) > 3 and operands[3] is not None:
        axes = _ints(operands[3])
    steps = [1] * len(starts)
    if len(operands) > 4 and operands[4] is not None:
        steps = _ints(operands[4])
    index: list[slice] = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if is_to_the_end(end, step):
            raise _NotProvable
        length = data.shape[axis]
        index[axis] = slice(*slice_bounds(start, end, step, length), step)
        if step < 0 and index[axis].stop == -1:
            index[axis] = slice(index[axis].start, None, step)
    return [data[tuple(index)]]


def is_to_the_end(end: Any, step: int) -> bool:
    """Whether onnxruntime counts back to the first element where the standard keeps none.

    The largest number of 32 and of 64 bits is its "to the end" in every direction.
    """
    return step < 0 and isinstance(end, int) and end in (2**31 - 1, 2**63 - 1)


def slice_bounds(start: int, end: int, step: int, length: int) -> tuple[int, int]:
    """Start and end clamped as ONNX has it; an end of -1 with a negative step means "before 0"."""
    start = start + length if start < 0 else start
    end = end + length if end < 0 else end
    if step > 0:
        return min(max(start, 0), length), min(max(end, 0), length)
    return min(max(start, 0), length - 1), min(max(end, -1), length - 1)


def _concat(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    arrays = [_need(a) for a in operands]
    if any(a.dtype == object for a in arrays):
        arrays = [as_objects(a) for a in arrays]
    return [np.concatenate(arrays, axis=attributes["axis"])]


def _reshape(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    data, target = _need(operands[0]), _ints(operands[1])
    if not attributes.get("allowzero", 0):
        target = [data.shape[i] if n == 0 else n for i, n in enumerate(target)]
    return [data.reshape(target)]


def _squeeze(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    data = _need(operands[0])
    if len(operands) < 2 or operands[1] is None:
        return [data.squeeze()]
    axes = tuple(_ints(operands[1]))
    if not axes and 1 in data.shape:
        raise _NotProvable  # none go by ONNX, and all of them by onnxruntime
    return [data.squeeze(axes)]


def _unsqueeze(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    data, axes = _need(operands[0]), _ints(operands[1])
    return [np.expand_dims(data, tuple(axes))]


def _transpose(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    return [_need(operands[0]).transpose(attributes.get("perm"))]


def _flatten(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    data, axis = _need(operands[0]), attributes.get("axis", 1)
    axis = axis + data.ndim if axis < 0 else axis
    return [data.reshape(math.prod(data.shape[:axis]), -1)]


def _expand(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    data, shape = _need(operands[0]), _ints(operands[1])
    return [np.broadcast_to(data, np.broadcast_shapes(data.shape, tuple(shape)))]


def _tile(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    return [np.tile(_need(operands[0]), _ints(operands[1]))]


def _split(operands: Operands, attributes: Attributes) -> Sequence[Array] | None:
    data, axis = _need(operands[0]), attributes.get("axis", 0)
    if len(operands) < 2 or operands[1] is None:
        return None
    cuts = np.cumsum(_ints(operands[1]))[:-1]
    return np.split(data, cuts.tolist(), axis)


def _identity(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    return [_need(operands[0])]


def _constant_of_shape(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    value = attributes.get("value")
    fill = np.zeros(1, np.float32) if value is None else np.asarray(value).reshape(-1)
    return [np.full(_ints(operands[0]), fill[0])]


def _range(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    start, limit, delta = (_need(a) for a in operands)
    if object in (start.dtype, limit.dtype, delta.dtype):
        raise _NotProvable
    if not np.issubdtype(start.dtype, np.integer):
        raise _NotProvable
    return [np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)]


def _one_hot(operands: Operands, attributes: Attributes) -> Sequence[Array]:
    indices, (depth,), values = _need(operands[0]), _ints(operands[1]), _need(operands[2])
    if indices.dtype.kind not in "iu":
        raise _NotProvable
    axis = attributes.get("axis", -1) % (indices.ndim + 1)
    classes = np.arange(depth).reshape([-1] + [1] * (indices.ndim - axis))
    counted = np.where(indices < 0, indices + depth, indices)  # others are of no class
    return [values[(np.expand_dims(counted, axis) == classes).astype(np.int64)]]


FUNCTIONS: Mapping[str, Function] = {
    "Add": _elementwise(lambda a, b: a + b),
    "Sub": _elementwise(lambda a, b: a - b),
    "Mul": _elementwise(lambda a, b: a * b),
    "Div": _elementwise(_divide),
    "Mod": _modulo,
    "Neg": _unary(lambda a: -a),
    "Abs": _unary(_magnitude),
    "Min": _elementwise(dims.minimum),
    "Max": _elementwise(dims.maximum),
    "Equal": _compare(dims.equal),
    "Less": _compare(lambda a, b: dims.at_most(a + 1, b)),
    "LessOrEqual": _compare(dims.at_most),
    "Greater": _compare(lambda a, b: dims.at_most(b + 1, a)),
    "GreaterOrEqual": _compare(lambda a, b: dims.at_most(b, a)),
    "And": _logical(np.logical_and),
    "Or": _logical(np.logical_or),
    "Xor": _logical(np.logical_xor),
    "Not": _logical(np.logical_not),
    "Where": _where,
    "ReduceSum": _reduce(sum),
    "ReduceProd": _reduce(dims.product),
    "ReduceMax": _reduce(_extreme(dims.maximum)),
    "ReduceMin": _reduce(_extreme(dims.minimum)),
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Flatten": _flatten,
    "Expand": _expand,
    "Tile": _tile,
    "Split": _split,
    "Identity": _identity,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "OneHot": _one_hot,
}

# These copy elements and know nothing of numbers: right for every dtype.
MOVES = frozenset(
    "Gather Slice Concat Reshape Squeeze Unsqueeze Transpose Flatten Expand Tile Split Identity "
    "ConstantOfShape Where".split()
)
