"""What builders share: lengths known or computed, and products along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments
from surgeon.builders.unknown import NotKnown
from surgeon.dims import Dim
from surgeon.rewrite import Draft, Refused

Array = npt.NDArray[Any]
FLOAT, DOUBLE, INT64 = (
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.DOUBLE,
    onnx.TensorProto.INT64,
)
_LARGEST_MATRIX = 1 << 22  # elements of a constant matrix


class Length(NamedTuple):
    """One dimension.

    Attributes:
        dim: What is proven of it; None for nothing.
        make: Adds the nodes that compute it, and gives int64[1].
    """

    dim: Dim | None
    make: Callable[[], gs.Tensor]

    @property
    def static(self) -> int | None:
        """Its value where it is one number."""
        return self.dim if isinstance(self.dim, int) else None


def numpy_dtype(draft: Draft, x: gs.Tensor) -> np.dtype[Any]:
    """The numpy dtype of a value.

    Raises:
        Refused: It is not known.
    """
    dtype = draft.facts.of(x).dtype
    if not dtype:
        raise NotKnown(x, "dtype", "its input")
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(dtype))


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is a floating-point one; bfloat16 is of numpy's kind V."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


def is_read(draft: Draft, x: gs.Tensor) -> bool:
    """Whether anything reads a value, or the model gives it out."""
    return bool(x.outputs) or draft.surgery.is_output(x)


def rank_of(draft: Draft, x: gs.Tensor) -> int:
    """The rank of a value.

    Raises:
        Refused: It is not known.
    """
    rank = draft.facts.of(x).rank
    if rank is None:
        raise NotKnown(x, "rank", "its input")
    return rank


def constant_length(draft: Draft, value: int) -> Length:
    """A length that is a number."""
    return Length(value, lambda: draft.constant([value], "length"))


def lengths_of(draft: Draft, x: gs.Tensor, rank: int) -> list[Length]:
    """The dimensions of a value of this rank."""
    shape = draft.facts.of(x).shape
    numbers = cache(lambda: draft.op("Shape", x))
    return [
        element(draft, numbers, axis, None if shape is None else shape[axis])
        for axis in range(rank)
    ]


def element(draft: Draft, numbers: Callable[[], gs.Tensor], index: int, dim: Dim | None) -> Length:
    """One of some computed numbers, which are made only when one is asked for."""
    if isinstance(dim, int):
        return constant_length(draft, dim)

    def gather() -> Any:
        return draft.op("Gather", numbers(), draft.constant([index], "axis"), axis=0)

    return Length(dim, gather)


def dims_in(draft: Draft, tensor: gs.Tensor) -> list[Dim] | None:
    """The sizes that a list of integers holds, symbolic ones too; None where one is unknown."""
    array = draft.facts.array(tensor)
    if array is None:
        array = draft.facts.of(tensor).value
    return None if array is None else array.reshape(-1).tolist()


def lengths_given(draft: Draft, args: Arguments, name: str, count: int) -> list[Length]:
    """A list of sizes that the node was given, computed ones included.

    Raises:
        Refused: There are not `count` of them, nor one for all.
    """
    found = args.given.get(name)
    if isinstance(found, list):
        parts = [_one(draft, t) for t in found]
        return _spread(parts, count, name)
    listed = _listed(args, name)
    if listed is not None:
        return _spread([constant_length(draft, int(v)) for v in listed], count, name)
    try:
        known: list[Any] | None = args.dims(name)
    except Refused:
        known = None
    if not isinstance(found, gs.Tensor):
        return _spread([constant_length(draft, int(v)) for v in known or ()], count, name)
    tensor = found
    if known is not None:
        known = [int(v) if isinstance(v, float) else v for v in known]
        if len(known) == 1:
            known *= count
    total = count if known is None else len(known)
    single = draft.facts.of(tensor).shape == (1,) and count > 1
    if draft.facts.of(tensor).rank == 0:
        return [_one(draft, tensor)] * count
    numbers = cache(lambda: as_int64(draft, tensor))
    parts = [
        element(draft, numbers, 0 if single else index, None if known is None else known[index])
        for index in range(total)
    ]
    return _spread(parts, count, name)


def _one(draft: Draft, tensor: gs.Tensor) -> Length:
    value = draft.facts.of(tensor).value
    dim = None if value is None else value.reshape(-1).tolist()[0]
    if isinstance(dim, int):
        return constant_length(draft, dim)
    return Length(
        dim if not isinstance(dim, float) else None,
        lambda: draft.op("Reshape", as_int64(draft, tensor), draft.constant([1], "one")),
    )


def _spread(parts: list[Length], count: int, name: str) -> list[Length]:
    parts = parts * count if len(parts) == 1 else parts
    if len(parts) != count:
        raise Refused(f"`{name}` has {len(parts)} numbers where {count} are needed")
    return parts


def as_int64(draft: Draft, tensor: gs.Tensor) -> gs.Tensor:
    """The value in int64; sizes are often traced as floats."""
    if draft.facts.of(tensor).dtype == INT64:
        return tensor
    return draft.op("Cast", tensor, to=INT64)


def cast(draft: Draft, tensor: gs.Tensor, dtype: int) -> gs.Tensor:
    """The value in another dtype."""
    return tensor if draft.facts.of(tensor).dtype == dtype else draft.op("Cast", tensor, to=dtype)


def shape_from(draft: Draft, parts: Sequence[Length | int]) -> gs.Tensor:
    """An int64 list of lengths and numbers: a constant where everything is known.

    Known neighbours become one constant; a number may be 0 or -1, as Reshape means it.
    """
    groups: list[list[int] | Length] = []
    for part in parts:
        number = part if isinstance(part, int) else part.static
        if number is None:
            assert isinstance(part, Length)
            groups.append(part)
        elif groups and isinstance(groups[-1], list):
            groups[-1].append(number)
        else:
            groups.append([number])
    tensors = [draft.constant(g, "sizes") if isinstance(g, list) else g.make() for g in groups]
    return tensors[0] if len(tensors) == 1 else draft.op("Concat", *tensors, axis=0)


def reshape(draft: Draft, x: gs.Tensor, parts: Sequence[Length | int]) -> gs.Tensor:
    """Reshape to lengths and numbers, 0 and -1 as ONNX means them."""
    unknown = [i for i, p in enumerate(parts) if isinstance(p, Length) and p.static is None]
    if len(unknown) == 1 and not any(p == -1 for p in parts):
        parts = [-1 if i in unknown else p for i, p in enumerate(parts)]
    return draft.op("Reshape", x, shape_from(draft, parts))


def counting(draft: Draft, length: Length) -> gs.Tensor:
    """0, 1, ... up to a length, in int64."""
    if length.static is not None:
        return draft.constant(np.arange(length.static, dtype=np.int64), "counting")
    size = length.make()
    if draft.facts.opset >= 11:
        end = draft.op("Squeeze", size, draft.constant([0], "axes"))
        start, step = draft.constant(np.array(0), "start"), draft.constant(np.array(1), "step")
        return draft.op("Range", start, end, step)
    ones = filled(draft, size, np.int64(1))
    return draft.op("Squeeze", draft.op("NonZero", ones), draft.constant([0], "axes"))


def filled(draft: Draft, shape: gs.Tensor, value: Any) -> gs.Tensor:
    """An array of one value; `value` is a numpy scalar of the dtype wanted."""
    return draft.op("ConstantOfShape", shape, value=np.asarray(value).reshape(1))


def unsqueeze(draft: Draft, x: gs.Tensor, *axes: int) -> gs.Tensor:
    """Unsqueeze."""
    return draft.op("Unsqueeze", x, draft.constant(list(axes), "axes"))


def squeeze(draft: Draft, x: gs.Tensor, *axes: int) -> gs.Tensor:
    """Squeeze."""
    return draft.op("Squeeze", x, draft.constant(list(axes), "axes"))


def linear(draft: Draft, x: gs.Tensor, weight: gs.Tensor, bias: gs.Tensor | None) -> gs.Tensor:
    """The product with a transposed weight [out, in], and a bias."""
    y = draft.op("MatMul", x, draft.op("Transpose", weight, perm=[1, 0]))
    return y if bias is None else draft.op("Add", y, bias)


def gelu(draft: Draft, x: gs.Tensor) -> gs.Tensor:
    """x (1 + erf (x / sqrt 2)) / 2."""
    dtype = numpy_dtype(draft, x)
    if dtype == np.float64:
        raise Refused("onnxruntime has no `Erf` in double precision")
    if draft.facts.opset >= 20:
        return draft.op("Gelu", x)
    root, one, half = (
        draft.constant(np.array(v, dtype), "number") for v in (math.sqrt(0.5), 1.0, 0.5)
    )
    risen = draft.op("Add", draft.op("Erf", draft.op("Mul", x, root)), one)
    return draft.op("Mul", draft.op("Mul", x, half), risen)


def tanh_gelu(draft: Draft, x: gs.Tensor) -> gs.Tensor:
    """x (1 + tanh (sqrt (2 / pi) (x + 0.044715 x^3))) / 2."""
    if draft.facts.opset >= 20:
        return draft.op("Gelu", x, approximate="tanh")
    return spelled_tanh_gelu(draft, x)


def spelled_tanh_gelu(draft: Draft, x: gs.Tensor) -> gs.Tensor:
    """The same where ONNX has no Gelu, or a runtime has none."""
    root, dtype = math.sqrt(2 / math.pi), numpy_dtype(draft, x)
    straight, cubic, one, half = (
        draft.constant(np.array(v, dtype), "number") for v in (root, 0.044715 * root, 1.0, 0.5)
    )
    inner = draft.op("Add", draft.op("Mul", draft.op("Mul", x, x), cubic), straight)
    risen = draft.op("Add", draft.op("Tanh", draft.op("Mul", x, inner)), one)
    return draft.op("Mul", draft.op("Mul", x, risen), half)


def remainder(draft: Draft, x: gs.Tensor, by: gs.Tensor) -> gs.Tensor:
    """x % by of integers that are not negative; Mod is there from opset 10 on."""
    if draft.facts.opset >= 10:
        return draft.op("Mod", x, by)
    return draft.op("Sub", x, draft.op("Mul", draft.op("Div", x, by), by))


def smaller_place(draft: Draft, a: gs.Tensor, b: gs.Tensor) -> gs.Tensor:
    """The smaller of two places in an axis, int64: onnxruntime's Min compares its lower halves."""
    if draft.facts.opset >= 12:
        return draft.op("Min", a, b)
    return draft.op("Where", draft.op("Less", a, b), a, b)


def choose(draft: Draft, condition: gs.Tensor, yes: gs.Tensor, no: gs.Tensor) -> gs.Tensor:
    """`Where`; of half precision by way of single, as onnxruntime has it."""
    dtype = draft.facts.of(no).dtype
    if dtype in (FLOAT, DOUBLE):
        return draft.op("Where", condition, yes, no)
    wide = [cast(draft, t, FLOAT) for t in (yes, no)]
    return draft.op("Cast", draft.op("Where", condition, *wide), to=dtype)


def multiply_axis(
    draft: Draft, x: gs.Tensor, axis: int, rank: int, matrix: Callable[[bool], gs.Tensor]
) -> gs.Tensor:
    """A product along one axis.

    Args:
        draft: Where the nodes go.
        x: The operand.
        axis: The axis, from 0.
        rank: The operand's rank.
        matrix: Gives [out, in], or [in, out] when asked with True.
    """
    if axis == rank - 1:
        return draft.op("MatMul", x, matrix(True))
    if axis == rank - 2:
        return draft.op("MatMul", matrix(False), x)
    perm = [i for i in range(rank) if i != axis] + [axis]
    moved = draft.op("MatMul", draft.op("Transpose", x, perm=perm), matrix(True))
    return draft.op("Transpose", moved, perm=[perm.index(i) for i in range(rank)])


def constant_matrix(
    draft: Draft, values: Array, dtype: np.dtype[Any]
) -> Callable[[bool], gs.Tensor]:
    """What `multiply_axis` wants of constant values [out, in].

    Raises:
        Refused: It would be too large.
    """
    if values.size > _LARGEST_MATRIX:
        raise Refused(f"it would need a constant matrix of {values.shape[0]} x {values.shape[1]}")

    def make(turned: bool) -> gs.Tensor:
        return draft.constant(
            np.ascontiguousarray(values.T if turned else values).astype(dtype), "matrix"
        )

    return make


def numbers(args: Arguments, name: str) -> Any:
    """A list of numbers as `Arguments.value`, and torch 1.4's lists of constant tensors."""
    listed = _listed(args, name)
    return args.value(name) if listed is None else listed


def _listed(args: Arguments, name: str) -> list[Any] | None:
    """The numbers of a Constant that holds a list of tensors, which is outside the standard."""
    found = args.given.get(name)
    producer = found.inputs[0] if isinstance(found, gs.Tensor) and found.inputs else None
    if producer is None or producer.op != "Constant":
        return None
    for attribute in producer.origin.attribute:
        if attribute.type == onnx.AttributeProto.TENSORS:
            return [onnx.numpy_helper.to_array(t).reshape(()).item() for t in attribute.tensors]
    return None


def per_axis(values: Any, count: int, name: str) -> list[int]:
    """One integer an axis; a single one stands for all.

    Raises:
        Refused: There are neither `count` nor one.
    """
    numbers = [int(v) for v in np.asarray(values).reshape(-1)]
    numbers = numbers * count if len(numbers) == 1 else numbers
    if len(numbers) != count:
        raise Refused(f"`{name}` has {len(numbers)} numbers where {count} are needed")
    return numbers


def resized(draft: Draft, x: gs.Tensor, factors: Sequence[float], **attributes: Any) -> gs.Tensor:
    """A Resize by a factor for each axis; below opset 13 it has a region that says nothing."""
    region = None
    if draft.facts.opset < 13:
        region = draft.constant(np.zeros(0, np.float32), "roi")
    scales = draft.constant(np.asarray(factors, np.float32), "scales")
    made: gs.Tensor = draft.op("Resize", x, region, scales, **attributes)
    return made
