"""What the nodes that read an integer input allow it to hold, and which numbers they ask for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from surgeon import suited
from surgeon.assumed import formula_value
from surgeon.nested import every_node
from surgeon.reference.arguments import constant_value, decode, is_foreign
from surgeon.standard import STANDARD
from surgeon.verify.specs import Spec, fitting

_SAME_VALUES = frozenset(
    {"Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Transpose", "Flatten", "Expand"}
    | {"Slice", "Concat", "Tile", "Clip", "Split", "to"}
)
# Operator and operand: the operand whose dim bounds it, and the default axis (None: the smallest).
_INDICES: Mapping[tuple[str, int], tuple[int, int | None]] = {
    ("CropAndResize", 2): (0, 0),
    ("EmbedLayerNormalization", 0): (2, 0),
    ("EmbedLayerNormalization", 1): (4, 0),
    ("EmbedLayerNormalization", 8): (3, 0),
    ("Gather", 1): (0, 0),
    ("GatherBlockQuantized", 1): (0, 0),  # which takes rows of zeros beyond
    ("GatherElements", 1): (0, 0),
    ("GatherND", 1): (0, None),
    ("NGramRepeatBlock", 0): (1, 1),
    ("QEmbedLayerNormalization", 0): (2, 0),
    ("QEmbedLayerNormalization", 1): (4, 0),
    ("Scatter", 1): (0, 0),
    ("ScatterElements", 1): (0, 0),
    ("ScatterND", 1): (0, None),
    ("embedding", 1): (0, 0),
    ("embedding_bag", 1): (0, 0),
    ("gather", 2): (0, None),
    ("index_select", 2): (0, None),
    ("index", 1): (0, None),
    ("take", 1): (0, None),
    ("RoiAlign", 2): (0, 0),
    ("ROIAlign_TRT", 2): (0, 0),
    ("TorchEmbedding", 1): (0, 0),
    ("GatherTopk", 1): (0, None),
}
_OFFSETS = frozenset({("embedding_bag", 2)})  # 0 is in order, whatever the bags hold
_MOST_MARKS = 8  # of one input
FREE = (0, 3)  # where nothing bounds an integer
_SCALED = frozenset({"Identity", "Cast", "DequantizeLinear", "LogSoftmax", "log_softmax"})
_MOST_AXES = 8  # of a view of a table
_OF_TABLES = _SCALED | {"Mul", "Div", "Add", "Sub"}  # what weights in few bits go through
_LENGTHS = frozenset({("LSTM", 4), ("GRU", 4), ("RNN", 4), ("ReverseSequence", 1)})
_ALIGNING = frozenset({"ctc_loss", "_ctc_loss"})
_WHOLE = (onnx.TensorProto.INT32, onnx.TensorProto.INT64, onnx.TensorProto.BOOL)

Dim = int | str


@dataclass(frozen=True, slots=True)
class Input:
    """An input that has to be given.

    Attributes:
        name: The value's name.
        dtype: numpy's, strings as object.
        dims: Sizes, and names of dynamic dims; an unnamed one is called `input.axis`.
        is_list: Whether it is a sequence: of as many tensors as its first dim says, which is called
            `input.length`, each of the other dims.
    """

    name: str
    dtype: np.dtype[Any]
    dims: tuple[Dim, ...]
    is_list: bool = False

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape at these sizes."""
        return tuple(_size_of(dim, sizes) if isinstance(dim, str) else dim for dim in self.dims)


def _size_of(dim: str, sizes: Mapping[str, int]) -> int:
    """The size of a dim; of one that is called by a formula of others (`p + s`), what that gives.

    Raises:
        KeyError: Nothing says it.
    """
    size = sizes[dim] if dim in sizes else formula_value(dim, sizes)
    if size is None:
        raise KeyError(dim)
    return size


@dataclass(frozen=True, slots=True)
class Bound:
    """What an integer input may hold: from `low`, up to but without `high` (a size or a dim).

    `marks` are the numbers that the model asks whether it is: padding among tokens, or a sampling
    rate that has a branch of its own, which would never run without. Lengths of samples that are
    packed have to fall.
    """

    low: int
    high: Dim
    marks: tuple[int, ...] = ()
    falls: bool = False


def bounds(model: onnx.ModelProto, inputs: Sequence[Input]) -> dict[str, Bound]:
    """What the readers of each integer input allow it to hold."""
    readers: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
    for node in every_node(model.graph.node):
        for place, name in enumerate(node.input):
            readers.setdefault(name, []).append((node, place))
    shapes = _shapes(model, inputs)
    scalars = _constants(model)
    found = {}
    for each in inputs:
        if each.dtype.kind in "iu":
            limits: list[Bound] = []
            marks: dict[int, None] = {}
            for node, place in _reached(each.name, readers):
                limits += _limits(node, place, shapes, scalars)
                marks |= dict.fromkeys(_marks(node, place, scalars))
            known = [b for b in limits if isinstance(b.high, int)]
            bound = min(known or limits, key=lambda b: (b.low == 0, b.high), default=None)
            low, high = (bound.low, bound.high) if bound else FREE
            falls = any(limit.falls for limit in limits)
            fit = [n for n in marks if _holds(each.dtype, n) and (not bound or _within(n, bound))]
            if bound or (fit and not _known_otherwise(each)):
                found[each.name] = Bound(low, high, tuple(fit[:_MOST_MARKS]), falls)
    return found


def _shapes(model: onnx.ModelProto, inputs: Sequence[Input]) -> dict[str, tuple[Dim, ...]]:
    """The shapes of inputs and constants, and of what is made of these alone by plain operators."""
    shapes: dict[str, tuple[Dim, ...]] = {t.name: tuple(t.dims) for t in model.graph.initializer}
    shapes.update((each.name, each.dims) for each in inputs)
    sizes = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer if _is_shape(t)}
    for node in every_node(model.graph.node):
        if node.op_type == "Constant" and node.domain in STANDARD:
            value = constant_value(node)
            shapes[node.output[0]] = value.shape if isinstance(value, np.ndarray) else ()
            if isinstance(value, np.ndarray) and value.ndim == 1 and value.size <= _MOST_AXES:
                sizes[node.output[0]] = value
        elif node.op_type == "Reshape" and node.input[0] in shapes and node.input[1] in sizes:
            rows = sizes[node.input[1]].tolist()
            if all(isinstance(size, int) and size > 0 for size in rows):  # of the first is asked
                shapes[node.output[0]] = tuple(rows)
        elif node.op_type == "Transpose" and node.input[0] in shapes:
            dims = shapes[node.input[0]]
            perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), [])
            if sorted(perm) == list(range(len(dims))):
                shapes[node.output[0]] = tuple(dims[axis] for axis in perm)
        elif _operator(node) in _OF_TABLES and all(name in shapes for name in node.input if name):
            operands = [shapes[name] for name in node.input if name]
            if _operator(node) in _SCALED:
                operands = operands[:1]
            shapes[node.output[0]] = _joined(operands)
    return shapes


def _is_shape(tensor: onnx.TensorProto) -> bool:
    """Whether a constant may say what a table is viewed as."""
    inside = tensor.data_location != onnx.TensorProto.EXTERNAL
    whole = tensor.data_type == onnx.TensorProto.INT64
    return inside and whole and len(tensor.dims) == 1 and tensor.dims[0] <= _MOST_AXES


def among_levels(model: onnx.ModelProto, spread: float = 1.0) -> dict[str, Spec]:
    """How inputs are drawn that are rounded to constant levels at once: mostly between their ends.

    Normal numbers may be all of one level, or all beyond the ends.

    Args:
        model: The model.
        spread: The part of that deviation that is taken: with a half next to none is beyond.
    """
    read = [node for node in model.graph.node if node.op_type == "QuantizeLinear"]
    names = {name for node in read for name in node.input[1:3]}
    held = {
        tensor.name: onnx.numpy_helper.to_array(tensor)
        for tensor in model.graph.initializer
        if tensor.name in names and tensor.data_location != onnx.TensorProto.EXTERNAL
    }
    given = {value.name for value in model.graph.input} - {t.name for t in model.graph.initializer}
    found = suited.levels([(node.op_type, node.input) for node in read], held)
    return {
        name: Spec(f"normal({middle:.3g},{width:.3g})", "normal", (middle, width))
        for name, (middle, width) in ((n, (m, d * spread)) for n, (m, d) in found.items())
        if name in given
    }


def _joined(shapes: Sequence[tuple[Dim, ...]]) -> tuple[Dim, ...]:
    """The shape that operands are broadcast to, where that is plain."""
    rank = max(map(len, shapes))
    wide = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(next((d for d in dims if d != 1), 1) for dims in zip(*wide, strict=True))


def _known_otherwise(each: Input) -> bool:
    """Whether an input that nothing bounds is drawn by its name, or over all that its dtype has."""
    return each.dtype.itemsize == 1 or fitting(each.name, each.dtype, len(each.dims)) is not None


def _holds(dtype: np.dtype[Any], number: int) -> bool:
    return bool(np.iinfo(dtype).min <= number <= np.iinfo(dtype).max)


def _within(number: int, bound: Bound) -> bool:
    return isinstance(bound.high, int) and bound.low <= number < bound.high


def _constants(model: onnx.ModelProto) -> dict[str, int]:
    """Scalars among the initializers and constants: the depth of a OneHot say."""
    tensors = {t.name: t for t in model.graph.initializer}
    for node in every_node(model.graph.node):
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value" and attribute.HasField("t"):
                    tensors[node.output[0]] = attribute.t
    return {
        name: int(onnx.numpy_helper.to_array(t).reshape(-1)[0])
        for name, t in tensors.items()
        if t.data_type in _WHOLE
        and math.prod(t.dims) == 1
        and t.data_location != onnx.TensorProto.EXTERNAL
    }


def _reached(
    name: str, readers: Mapping[str, list[tuple[onnx.NodeProto, int]]]
) -> Iterator[tuple[onnx.NodeProto, int]]:
    """Who reads the very values of an input, and as which operand."""
    pending, seen = [name], {name}
    while pending:
        for node, place in readers.get(pending.pop(), ()):
            yield node, place
            if _operator(node) in _SAME_VALUES and (place == 0 or node.op_type == "Concat"):
                pending += [output for output in node.output if output not in seen]
                seen.update(node.output)


def _operator(node: onnx.NodeProto) -> str:
    return decode(node).operator if is_foreign(node) else node.op_type


def _limits(
    node: onnx.NodeProto,
    place: int,
    shapes: Mapping[str, tuple[Dim, ...]],
    scalars: Mapping[str, int],
) -> Iterator[Bound]:
    operator = _operator(node)
    if (operator, place) in _INDICES:
        data, axis = _INDICES[operator, place]
        attributes = {a.name: a.i for a in node.attribute}
        if axis is not None:
            axis = attributes.get("axis", axis)
        yield Bound(0, _size(shapes.get(node.input[data]), axis))
    elif (operator, place) == ("OneHot", 0):
        yield Bound(0, scalars.get(node.input[1], 2))
    elif (operator, place) in _LENGTHS:
        yield Bound(1, 2)
    elif (operator, place) == ("_pack_padded_sequence", 1):
        shape = shapes.get(node.input[0], ())
        yield Bound(1, shape[_steps(node, scalars)] if len(shape) > 1 else 2, falls=True)
    elif (operator, place) in _OFFSETS:
        yield Bound(0, 1)
    elif operator in _ALIGNING and 0 < place < 4:
        yield _aligned(node, place, shapes, scalars)


def _aligned(
    node: onnx.NodeProto,
    place: int,
    shapes: Mapping[str, tuple[Dim, ...]],
    scalars: Mapping[str, int],
) -> Bound:
    """Labels that are no blanks, and lengths of which most leave room for a text."""
    logs, labels = (shapes.get(name, ()) for name in node.input[:2])
    if place == 1:
        blank = scalars.get(node.input[4], 0) if len(node.input) > 4 else 0
        classes = _size(logs, -1)
        if isinstance(classes, int) and 0 < blank == classes - 1:
            return Bound(0, blank)
        return Bound(int(blank == 0 and classes != 1), classes)
    if place == 2:
        steps = _size(logs, 0)
        return Bound((steps + 1) // 2, steps + 1) if isinstance(steps, int) else Bound(1, steps)
    longest = _size(labels, -1)
    if len(labels) == 1 and len(logs) == 3:  # of all texts, one behind the other
        texts, each = logs[1], 1
        if isinstance(texts, int) and isinstance(longest, int):
            each = longest // max(texts, 1)
        longest = each
    return Bound(0, longest + 1 if isinstance(longest, int) else longest)


def _steps(node: onnx.NodeProto, scalars: Mapping[str, int]) -> int:
    """The axis of the steps of what is packed."""
    return 1 if scalars.get(node.input[2]) else 0


def _marks(node: onnx.NodeProto, place: int, scalars: Mapping[str, int]) -> Iterator[int]:
    """The constant that an integer is held against."""
    if node.op_type == "Equal" and not node.domain:
        number = scalars.get(node.input[1 - place])
        if number is not None:
            yield number


def _size(shape: tuple[Dim, ...] | None, axis: int | None) -> Dim:
    """The dim that bounds an index; 2 where nothing is known, so that more than one is tried."""
    if not shape:
        return 2
    if axis is None:
        return min((dim for dim in shape if isinstance(dim, int)), default=2)
    return shape[axis] if -len(shape) <= axis < len(shape) else 2
