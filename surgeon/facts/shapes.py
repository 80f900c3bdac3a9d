"""Output shapes of the operators whose dimensions are arithmetic, from ONNX's specification.

onnx's own inference gives up where a dimension is computed (`Conv` on [b, 3, h, w] gives
[b, 8, ?, ?]); these functions do not. Each takes a `Question` and gives the outputs' shapes, or
None, and then onnx's inference is asked. Every node is in its newest form (see `opsets`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surgeon import dims
from surgeon.dims import Dim
from surgeon.facts.fact import Array, Fact
from surgeon.facts.values import slice_bounds

Shape = tuple[Dim, ...]
Function = Callable[["Question"], "Sequence[Shape | None] | None"]


@dataclass(frozen=True, slots=True)
class Question:
    """A node whose output shapes are asked for.

    Attributes:
        inputs: The operands' facts; None where one is omitted.
        attributes: As the node has them.
        outputs: How many outputs the node names.
        fresh: Gives a new dimension for an axis of output 0 that is not provable.
    """

    inputs: Sequence[Fact | None]
    attributes: Mapping[str, Any]
    outputs: int
    fresh: Callable[[int], Dim]

    def shape(self, index: int) -> Shape | None:
        """The shape of an operand, where it is there and known."""
        fact = self.inputs[index] if index < len(self.inputs) else None
        return None if fact is None else fact.shape

    def value(self, index: int) -> list[Any] | None:
        """The elements of an operand as a flat list, where they are known."""
        fact = self.inputs[index] if index < len(self.inputs) else None
        return None if fact is None or fact.value is None else fact.value.reshape(-1).tolist()

    def has(self, index: int) -> bool:
        """Whether the operand is there."""
        return index < len(self.inputs) and self.inputs[index] is not None


def broadcast(shapes: Sequence[Shape], fresh: Callable[[int], Dim]) -> Shape:
    """The shape of an elementwise operation on operands of these shapes."""
    rank = max(len(shape) for shape in shapes)
    out: list[Dim] = []
    for axis in range(rank):
        result: Dim | None = 1
        for shape in shapes:
            index = axis - rank + len(shape)
            if index < 0:
                continue
            dim = shape[index]
            if dim == 1 or result is None or dim == result:
                continue
            if result == 1:
                result = dim
            elif isinstance(dim, int):
                result = dim  # the other is 1 or equal to it, or the node has no value
            elif not isinstance(result, int):
                result = result if dims.equal(result, dim) else None
        out.append(fresh(axis) if result is None else result)
    return tuple(out)


def _elementwise(question: Question) -> Sequence[Shape | None] | None:
    shapes = [fact.shape for fact in question.inputs if fact is not None]
    if not shapes or any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    if all(shape == known[0] for shape in known):
        return [known[0]]
    return [broadcast(known, question.fresh)]


def _same(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    # Further outputs (a mask, statistics) have shapes and dtypes of their own: onnx knows them.
    return None if shape is None or question.outputs > 1 else [shape]


def window(
    size: Dim,
    kernel: Dim,
    stride: int,
    dilation: int,
    pads: tuple[int, int],
    *,
    ceil: bool = False,
) -> Dim:
    """How many windows fit: floor or ceil of (size + pads - (dilation*(kernel-1)+1)) / stride + 1.

    With `ceil`, a window that would begin in the padding behind the input is left out, as
    onnxruntime and PyTorch do.
    """
    room = size + (pads[0] + pads[1]) - dilation * (kernel - 1) - 1
    if not ceil:
        return room // stride + 1
    count = (room + stride - 1) // stride + 1
    begin_inside = dims.at_most((count - 1) * stride + 1, size + pads[0])
    return (
        count
        if begin_inside
        else room // stride + 1
        if begin_inside is False
        else dims.minimum(count, (size + pads[0] - 1) // stride + 1)
    )


def _pads(
    attributes: Mapping[str, Any],
    size: Dim,
    kernel: Dim,
    stride: int,
    dilation: int,
    axis: int,
    rank: int,
) -> tuple[int, int] | None:
    """The padding of one axis; None for SAME on a dynamic axis (see `_spatial`)."""
    auto = attributes.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        return None
    if auto == "VALID":
        return (0, 0)
    pads = attributes.get("pads") or [0] * (2 * rank)
    return int(pads[axis]), int(pads[axis + rank])


def _spatial(question: Question, shape: Shape, kernel: Sequence[Dim]) -> list[Dim]:
    attributes, rank = question.attributes, len(kernel)
    strides = attributes.get("strides") or [1] * rank
    dilations = attributes.get("dilations") or [1] * rank
    out: list[Dim] = []
    for axis in range(rank):
        size = shape[axis + 2]
        pads = _pads(attributes, size, kernel[axis], strides[axis], dilations[axis], axis, rank)
        if pads is None:
            out.append((size + strides[axis] - 1) // strides[axis])
        else:
            ceil = bool(attributes.get("ceil_mode", 0))
            out.append(window(size, kernel[axis], strides[axis], dilations[axis], pads, ceil=ceil))
    return out


def _conv(question: Question) -> Sequence[Shape | None] | None:
    shape, weight = question.shape(0), question.shape(1)
    if shape is None or weight is None or len(shape) != len(weight) or len(shape) < 3:
        return None
    kernel = question.attributes.get("kernel_shape") or weight[2:]
    return [(shape[0], weight[0], *_spatial(question, shape, kernel))]


def _conv_transpose(question: Question) -> Sequence[Shape | None] | None:
    shape, weight, attributes = question.shape(0), question.shape(1), question.attributes
    if shape is None or weight is None or len(shape) != len(weight) or len(shape) < 3:
        return None
    rank = len(shape) - 2
    channels = weight[1] * attributes.get("group", 1)
    if attributes.get("output_shape"):
        return [(shape[0], channels, *attributes["output_shape"][-rank:])]
    kernel = attributes.get("kernel_shape") or weight[2:]
    strides = attributes.get("strides") or [1] * rank
    dilations = attributes.get("dilations") or [1] * rank
    extra = attributes.get("output_padding") or [0] * rank
    out: list[Dim] = []
    for axis in range(rank):
        size = shape[axis + 2]
        auto = attributes.get("auto_pad", "NOTSET")
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            out.append(size * strides[axis])
            continue
        pads = attributes.get("pads") or [0] * (2 * rank)
        total = 0 if auto == "VALID" else pads[axis] + pads[axis + rank]
        grown = (size - 1) * strides[axis] + extra[axis]
        out.append(grown + (kernel[axis] - 1) * dilations[axis] + 1 - total)
    return [(shape[0], channels, *out)]


def _pool(question: Question) -> Sequence[Shape | None] | None:
    shape, kernel = question.shape(0), question.attributes.get("kernel_shape")
    if shape is None or kernel is None or len(shape) != len(kernel) + 2:
        return None
    result = (shape[0], shape[1], *_spatial(question, shape, kernel))
    return [result] * question.outputs


def _global_pool(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    return None if shape is None else [(*shape[:2], *[1] * (len(shape) - 2))]


def _matmul(question: Question) -> Sequence[Shape | None] | None:
    left, right = question.shape(0), question.shape(1)
    if not left or not right:
        return None
    rows: Shape = left[-2:-1]
    columns: Shape = right[-1:] if len(right) > 1 else ()
    batches = [left[:-2], right[:-2]]
    batch = broadcast(batches, question.fresh) if any(batches) else ()
    return [(*batch, *rows, *columns)]


def _gemm(question: Question) -> Sequence[Shape | None] | None:
    left, right = question.shape(0), question.shape(1)
    if left is None or right is None or len(left) != 2 or len(right) != 2:
        return None
    rows = left[1] if question.attributes.get("transA", 0) else left[0]
    columns = right[0] if question.attributes.get("transB", 0) else right[1]
    return [(rows, columns)]


def _transpose(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    if shape is None:
        return None
    perm = question.attributes.get("perm") or range(len(shape) - 1, -1, -1)
    return [tuple(shape[i] for i in perm)]


def _reshape(question: Question) -> Sequence[Shape | None] | None:
    """As the target says.

    A computed size is taken as it is. Should it be 0 at run time, the tensor is empty, and Reshape
    reads the 0 as "as it was": such sizes are left out of account.
    """
    shape, target = question.shape(0), question.value(1)
    if target is None:
        length = question.shape(1)
        if length and isinstance(length[0], int):
            return [tuple(question.fresh(axis) for axis in range(length[0]))]
        return None
    out: list[Dim | None] = []
    for axis, dim in enumerate(target):
        if dim == 0 and not question.attributes.get("allowzero", 0):
            out.append(
                shape[axis] if shape is not None and axis < len(shape) else question.fresh(axis)
            )
        elif dim == -1:
            out.append(None)
        elif isinstance(dim, int) or dims.not_negative(dim):
            out.append(dim)
        else:
            out.append(question.fresh(axis))  # it could be -1, or 0
    if None in out:
        axis = out.index(None)
        quotient = None
        if shape is not None:
            rest = dims.product(d for d in out if d is not None)
            quotient = dims.exact_quotient(dims.product(shape), rest)
        out[axis] = question.fresh(axis) if quotient is None else quotient
    return [tuple(d for d in out if d is not None)]


def _flatten(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    if shape is None:
        return None
    axis = question.attributes.get("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return [(dims.product(shape[:axis]), dims.product(shape[axis:]))]


def _squeeze(question: Question) -> Sequence[Shape | None] | None:
    shape, axes = question.shape(0), question.value(1)
    if shape is None or (question.has(1) and axes is None):
        return None
    if axes is None:
        if any(not isinstance(d, int) for d in shape):
            return None  # whether a dynamic dimension is 1 decides the rank
        return [tuple(d for d in shape if d != 1)]
    gone = {axis % len(shape) for axis in axes} if shape else set()
    return [tuple(d for i, d in enumerate(shape) if i not in gone)]


def _unsqueeze(question: Question) -> Sequence[Shape | None] | None:
    shape, axes = question.shape(0), question.value(1)
    if shape is None or axes is None:
        return None
    rank = len(shape) + len(axes)
    new, rest = {axis % rank for axis in axes}, iter(shape)
    return [tuple(1 if i in new else next(rest) for i in range(rank))]


def _concat(question: Question) -> Sequence[Shape | None] | None:
    shapes = [question.shape(i) for i in range(len(question.inputs))]
    known = [shape for shape in shapes if shape is not None]
    if len(known) != len(shapes) or not known:
        return None
    axis = question.attributes["axis"] % len(known[0])
    out: list[Dim] = []
    for index in range(len(known[0])):
        column = [shape[index] for shape in known]
        if index == axis:
            out.append(sum(column[1:], column[0]))
        else:
            out.append(next((d for d in column if isinstance(d, int)), column[0]))
    return [tuple(out)]


def _split(question: Question) -> Sequence[Shape | None] | None:
    shape, parts = question.shape(0), question.value(1)
    if shape is None:
        return None
    axis = question.attributes.get("axis", 0) % len(shape)
    if parts is None:
        if question.has(1):
            return None
        size, count = shape[axis], question.attributes.get("num_outputs", question.outputs)
        each = (size + count - 1) // count
        last = size - each * (count - 1)
        parts = [each] * (count - 1) + [last]
    return [(*shape[:axis], part, *shape[axis + 1 :]) for part in parts]


def _slice(question: Question) -> Sequence[Shape | None] | None:
    shape, starts, ends = question.shape(0), question.value(1), question.value(2)
    if shape is None:
        return None
    length = question.shape(1)
    axes = question.value(3) if question.has(3) else None
    if axes is None and not question.has(3) and length and isinstance(length[0], int):
        axes = list(range(length[0]))
    if axes is None:
        return [tuple(question.fresh(i) for i in range(len(shape)))]
    steps = question.value(4) if question.has(4) else [1] * len(axes)
    out = list(shape)
    for index, axis in enumerate(axes):
        axis %= len(shape)
        known = starts is not None and ends is not None and steps is not None
        size = (
            sliced(shape[axis], starts[index], ends[index], steps[index])  # type: ignore[index]
            if known
            else None
        )
        out[axis] = question.fresh(axis) if size is None else size
    return [tuple(out)]


def sliced(size: Dim, start: Dim, end: Dim, step: Dim) -> Dim | None:
    """How many elements a Slice keeps of an axis of `size`; None where it is not provable."""
    if not isinstance(step, int) or step == 0:
        return None
    if all(isinstance(v, int) for v in (size, start, end)):
        first, last = slice_bounds(start, end, step, size)  # type: ignore[arg-type]
        return max(0, -((first - last) // step))
    low = clamp(start, size)
    high = clamp(end, size)
    if low is None or high is None or step < 0:
        return None
    extent = high - low
    if not dims.not_negative(extent):
        extent = dims.maximum(extent, 0)
    return extent if step == 1 else (extent + step - 1) // step


def clamp(index: Dim, size: Dim) -> Dim | None:
    """An index into an axis, counted from its end if negative, clamped to [0, size]."""
    if isinstance(index, int):
        if index >= 2**31 - 1:
            return size
        if index < 0:
            return dims.maximum(size + index, 0)
    elif dims.not_negative(-1 - index):
        return dims.maximum(size + index, 0)
    elif not dims.not_negative(index):
        return None
    return dims.minimum(index, size)


def _gather(question: Question) -> Sequence[Shape | None] | None:
    data, indices = question.shape(0), question.shape(1)
    if not data or indices is None:
        return None
    axis = question.attributes.get("axis", 0) % len(data)
    return [(*data[:axis], *indices, *data[axis + 1 :])]


def _expand(question: Question) -> Sequence[Shape | None] | None:
    shape, target = question.shape(0), question.value(1)
    if shape is None or target is None:
        return None
    if any(not isinstance(d, int) and not dims.not_negative(d) for d in target):
        return None
    return [broadcast([shape, tuple(target)], question.fresh)]


def _tile(question: Question) -> Sequence[Shape | None] | None:
    shape, repeats = question.shape(0), question.value(1)
    if shape is None or repeats is None or len(repeats) != len(shape):
        return None
    return [tuple(d * n for d, n in zip(shape, repeats, strict=True))]


def _pad(question: Question) -> Sequence[Shape | None] | None:
    shape, pads = question.shape(0), question.value(1)
    if shape is None:
        return None
    axes = question.value(3) if question.has(3) else list(range(len(shape)))
    if axes is None or pads is None or len(pads) != 2 * len(axes):
        return [tuple(question.fresh(i) for i in range(len(shape)))]
    out = list(shape)
    for index, axis in enumerate(axes):
        out[axis % len(shape)] = shape[axis % len(shape)] + pads[index] + pads[index + len(axes)]
    return [tuple(out)]


def _resize(question: Question) -> Sequence[Shape | None] | None:
    if len(question.inputs) == 2:  # of opset 10
        return _upsample(question)
    shape, sizes, scales = question.shape(0), question.value(3), question.value(2)
    if shape is None or question.attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    axes = question.attributes.get("axes") or list(range(len(shape)))
    out = list(shape)
    if sizes:
        for axis, size in zip(axes, sizes, strict=True):
            out[axis % len(shape)] = size
        return [tuple(out)]
    return _scaled(question, shape, axes, scales)


def _upsample(question: Question) -> Sequence[Shape | None] | None:
    shape, scales = question.shape(0), question.value(1)
    return None if shape is None else _scaled(question, shape, list(range(len(shape))), scales)


def _scaled(
    question: Question, shape: Shape, axes: Sequence[int], scales: list[Any] | None
) -> Sequence[Shape | None] | None:
    if not scales or len(scales) != len(axes):
        return [tuple(question.fresh(i) for i in range(len(shape)))]
    out = list(shape)
    for axis, scale in zip(axes, scales, strict=True):
        size = shape[axis % len(shape)]
        if isinstance(size, int):
            # onnxruntime multiplies in float32 and cuts
            out[axis % len(shape)] = int(np.float32(size) * np.float32(scale))
        elif float(scale).is_integer():
            out[axis % len(shape)] = size * int(scale)
        elif (1 / float(scale)).is_integer():
            out[axis % len(shape)] = size // int(1 / float(scale))
        else:
            out[axis % len(shape)] = question.fresh(axis)
    return [tuple(out)]


def _constant_of_shape(question: Question) -> Sequence[Shape | None] | None:
    target = question.value(0)
    if target is None:
        return None
    return [tuple(d if dims.not_negative(d) else question.fresh(i) for i, d in enumerate(target))]


def _range(question: Question) -> Sequence[Shape | None] | None:
    ends = [question.value(i) for i in range(3)]
    if any(value is None or isinstance(value[0], float) for value in ends):
        return [(question.fresh(0),)]
    start, limit, delta = (value[0] for value in ends if value is not None)
    if not isinstance(delta, int) or delta == 0:
        return [(question.fresh(0),)]
    extent = limit - start if delta > 0 else start - limit
    count = (extent + abs(delta) - 1) // abs(delta)
    return [(count if dims.not_negative(count) else dims.maximum(count, 0),)]


def _reduce(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    if shape is None:
        return None
    axes: Sequence[int] | None = question.attributes.get("axes")
    if question.has(1):
        axes = question.value(1)
        if axes is None:
            return None
    if not axes:
        if question.attributes.get("noop_with_empty_axes", 0):
            return [shape]
        axes = range(len(shape))
    return _reduced(question, shape, {axis % len(shape) for axis in axes} if shape else set())


def _arg_reduce(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    if not shape:
        return None
    return _reduced(question, shape, {question.attributes.get("axis", 0) % len(shape)})


def _reduced(question: Question, shape: Shape, axes: set[int]) -> Sequence[Shape]:
    if question.attributes.get("keepdims", 1):
        return [tuple(1 if i in axes else d for i, d in enumerate(shape))]
    return [tuple(d for i, d in enumerate(shape) if i not in axes)]


def _space_to_depth(question: Question) -> Sequence[Shape | None] | None:
    shape, block = question.shape(0), question.attributes["blocksize"]
    if shape is None or len(shape) != 4:
        return None
    return [(shape[0], shape[1] * block * block, shape[2] // block, shape[3] // block)]


def _depth_to_space(question: Question) -> Sequence[Shape | None] | None:
    shape, block = question.shape(0), question.attributes["blocksize"]
    if shape is None or len(shape) != 4:
        return None
    return [(shape[0], shape[1] // (block * block), shape[2] * block, shape[3] * block)]


def _shape_of(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    if shape is None:
        return None
    return [(len(shape[question.attributes.get("start", 0) : question.attributes.get("end")]),)]


def _scalar(question: Question) -> Sequence[Shape | None] | None:
    return [()]


UNARY = (
    "Relu Sigmoid Tanh Exp Log Sqrt Neg Abs HardSwish HardSigmoid Erf Gelu Elu LeakyRelu Selu "
    "Softplus Softsign Mish Celu Floor Ceil Round Sign Reciprocal Softmax LogSoftmax Hardmax "
    "Identity Not Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Swish "
    "BatchNormalization InstanceNormalization GroupNormalization LRN LpNormalization "
    "LayerNormalization RMSNormalization MeanVarianceNormalization CumSum Trilu ThresholdedRelu "
    "Shrink BitwiseNot Cast CastLike IsNaN IsInf Clip Dropout ScatterElements ScatterND Scatter"
).split()
BINARY = (
    "Add Sub Mul Div Mod Pow And Or Xor Equal Less LessOrEqual Greater GreaterOrEqual Min Max Sum "
    "Mean Where PRelu BitShift BitwiseAnd BitwiseOr BitwiseXor"
).split()
COMPARES = frozenset(
    "And Or Xor Not Equal Less LessOrEqual Greater GreaterOrEqual IsNaN IsInf".split()
)

FUNCTIONS: Mapping[str, Function] = {
    **dict.fromkeys(UNARY, _same),
    **dict.fromkeys(BINARY, _elementwise),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), _global_pool),
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg_reduce),
    **dict.fromkeys(
        (
            "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum "
            "ReduceLogSumExp ReduceSumSquare"
        ).split(),
        _reduce,
    ),
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Gather": _gather,
    "Expand": _expand,
    "Tile": _tile,
    "Pad": _pad,
    "Resize": _resize,
    "Upsample": _upsample,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "SpaceToDepth": _space_to_depth,
    "DepthToSpace": _depth_to_space,
    "Shape": _shape_of,
    "Size": _scalar,
}


def shape_value(shape: Shape, attributes: Mapping[str, Any]) -> Array:
    """What `Shape` gives: the dims from `start` to `end`, as objects."""
    part = shape[attributes.get("start", 0) : attributes.get("end")]
    out = np.empty(len(part), object)
    out[:] = list(part)
    return out
