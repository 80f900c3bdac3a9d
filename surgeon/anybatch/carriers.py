"""What becomes of the batch in each operator; Frozen where another batch would change an item."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx

from surgeon.anybatch import aligning, coordinates, moving
from surgeon.anybatch.flow import Flow, attribute, batched, counted
from surgeon.frozen import Frozen

Carrier = Callable[[Flow, onnx.NodeProto], None]


def alike(flow: Flow, node: onnx.NodeProto) -> None:
    """Each element by itself, of the first operand."""
    axis, name = batched(flow, node), node.input[0]
    flow.places.update(dict.fromkeys(filter(None, node.output), axis))
    if name in flow.grown:
        flow.grow(node.output[0], flow.shape(name), axis)


def like(flow: Flow, node: onnx.NodeProto) -> None:
    """CastLike, of the first operand: the second says no more than its type."""
    if node.input[0] in flow.places:
        flow.places[node.output[0]] = flow.places[node.input[0]]
        flow.alike([node.input[0], node.output[0]])


def broadcast(flow: Flow, node: onnx.NodeProto) -> None:
    """Each element by itself, of operands that are brought to one shape from the right."""
    aligning.aligned(flow, node)
    shapes = {name: flow.shape(name) for name in node.input}
    held = [name for name in node.input if name in flow.places]
    back = len(shapes[held[0]]) - flow.places[held[0]]
    flow.alike(held)
    if node.op_type in _OF_TWO:
        flow.sums[node.output[0]] = node.op_type, [*node.input]
    for place, name in enumerate(node.input):
        shape = shapes[name]
        if name not in held and len(shape) >= back and shape[-back] != 1:
            own = len(shape) - back
            like = held[0], flow.places[held[0]]
            node.input[place] = flow.spread(name, own, *like, broadcast=True)
    rank, made = max(map(len, shapes.values())), node.output[0]
    flow.places[made] = rank - back
    if rank > len(flow.shape(made)):
        flow.grow(made, (flow.size, *flow.shape(made)), 0)


_OF_TWO = ("Add", "Sub", "Mul", "Div")  # without attributes


def quantised(flow: Flow, node: onnx.NodeProto) -> None:
    """QuantizeLinear and DequantizeLinear, with one scale or one along another axis."""
    rank = len(flow.shape(node.input[0]))
    along = counted(attribute(node, "axis", 1), rank)
    scales = len(flow.shape(node.input[1]))
    if scales > 1 or (scales and along == flow.places.get(node.input[0])):  # several axes: blocks
        raise Frozen("its scales go along the batch")
    alike(flow, node)


def first_axis(flow: Flow, node: onnx.NodeProto) -> None:
    """Images one by one: the batch is the first axis, and the weights are shared."""
    if batched(flow, node) != 0:
        raise Frozen("the batch is not its first axis")
    if node.op_type == "MaxPool" and len(node.output) > 1 and node.output[1]:
        raise Frozen("its places count through all items")
    if attribute(node, "training_mode", 0):
        raise Frozen("it goes over the batch")
    flow.places.update(dict.fromkeys(filter(None, node.output), 0))


def grid_sample(flow: Flow, node: onnx.NodeProto) -> None:
    """Images and grids, one of each for an item."""
    held = [place for place in (0, 1) if node.input[place] in flow.places]
    if any(flow.places[node.input[place]] for place in held):
        raise Frozen("the batch is not its first axis")
    for place in {0, 1}.difference(held):
        node.input[place] = flow.spread(node.input[place], 0, node.input[held[0]], 0)
    flow.places[node.output[0]] = 0


def along_axis(flow: Flow, node: onnx.NodeProto) -> None:
    """Something along one axis, which must not be that of the batch."""
    axis = batched(flow, node)
    rank = len(flow.shape(node.input[0]))
    default = 1 if node.op_type in _FLATTENING and flow.opset < 13 else -1
    default = 0 if node.op_type == "Split" else default
    along = counted(attribute(node, "axis", default), rank)
    if node.op_type in _FLATTENING and flow.opset < 13:
        if axis >= along:
            raise Frozen(f"it takes axes {along} to the last as one, and the batch is {axis}")
    elif axis == along:
        raise Frozen("it goes along the batch")
    flow.places.update(dict.fromkeys(filter(None, node.output), axis))


_FLATTENING = ("Softmax", "LogSoftmax", "Hardmax")  # before opset 13


def cumulated(flow: Flow, node: onnx.NodeProto) -> None:
    """CumSum, whose axis is an operand."""
    axis = batched(flow, node)
    along = int(flow.constant(node.input[1]).ravel()[0])
    if counted(along, len(flow.shape(node.input[0]))) == axis:
        raise Frozen("it goes along the batch")
    flow.places[node.output[0]] = axis


def normalised(flow: Flow, node: onnx.NodeProto) -> None:
    """LayerNormalization: over an axis and all behind it."""
    axis = batched(flow, node)
    if axis >= counted(attribute(node, "axis", -1), len(flow.shape(node.input[0]))):
        raise Frozen("it goes over the batch")
    flow.places.update(dict.fromkeys(filter(None, node.output), axis))


def reduced(flow: Flow, node: onnx.NodeProto) -> None:
    """Reduce... and ArgMax: the axes that go are others."""
    axis = batched(flow, node)
    rank = len(flow.shape(node.input[0]))
    if node.op_type in ("ArgMax", "ArgMin"):
        axes = [attribute(node, "axis", 0)]
    else:
        axes = flow.numbers(node, "axes", 1) or []
        if not axes and not attribute(node, "noop_with_empty_axes", 0):
            raise Frozen("it goes over all axes")
    gone = {counted(each, rank) for each in axes}
    if axis in gone:
        raise Frozen("it goes over the batch")
    keeps = attribute(node, "keepdims", 1)
    flow.places[node.output[0]] = axis if keeps else axis - sum(each < axis for each in gone)


def gathered(flow: Flow, node: onnx.NodeProto) -> None:
    """Gather: of a shared table by indices of items, or of each item by shared ones or its own."""
    data, indices = node.input
    along = counted(attribute(node, "axis", 0), len(flow.shape(data)))
    if data not in flow.places:
        flow.places[node.output[0]] = along + flow.places[indices]
        return
    if indices in flow.places:
        coordinates.gathered_own(flow, node, along)
        return
    axis = flow.places[data]
    if axis == along:
        coordinates.gathered_rows(flow, node)
        return
    grown = len(flow.shape(indices)) - 1
    flow.places[node.output[0]] = axis + (grown if along < axis else 0)


def multiplied(flow: Flow, node: onnx.NodeProto) -> None:
    """MatMul: the batch is among the matrices, or the rows of one times a shared one."""
    if all(name in flow.places for name in node.input):
        aligning.stacked(flow, node)
    left, right = node.input[:2]
    ranks = [len(flow.shape(left)), len(flow.shape(right))]
    if min(ranks) < 2:
        flow.places[node.output[0]] = _by_vector(flow, node, ranks)
        return
    rank, back = max(ranks), []
    for name, own, summed in ((left, ranks[0], 1), (right, ranks[1], 2)):
        if (axis := flow.places.get(name)) is not None:
            if own - axis == summed:
                raise Frozen("it sums over the batch")
            back.append(own - axis)
    if len(back) == 2 and (back[0] != back[1] or back[0] < 3):
        raise Frozen("its operands hold the batch along different axes")
    held = [name for name in (left, right) if name in flow.places]
    for place, (name, own) in enumerate(((left, ranks[0]), (right, ranks[1]))):
        beside = name not in flow.places and back[0] >= 3 and own >= back[0]
        if beside and flow.shape(name)[-back[0]] != 1:
            like = held[0], flow.places[held[0]]
            node.input[place] = flow.spread(name, own - back[0], *like, broadcast=True)
    flow.alike(held)
    flow.places[node.output[0]] = rank - back[0]


def _by_vector(flow: Flow, node: onnx.NodeProto, ranks: Sequence[int]) -> int:
    """Where the batch is behind a product of matrices and a vector that all items share."""
    which = ranks.index(max(ranks))
    axis, summed = batched(flow, node, which), ranks[which] - (1 if which == 0 else 2)
    if min(ranks) == max(ranks) or axis == summed:
        raise Frozen("it sums over the batch")
    return axis - (axis > summed)


def gemm(flow: Flow, node: onnx.NodeProto) -> None:
    """Gemm: rows of the first operand, and of what is added to them."""
    flow.shared(node.input[1:2])
    added = node.input[2] if len(node.input) > 2 else ""
    axis = flow.places.get(node.input[0])
    if axis is None or axis != attribute(node, "transA", 0):
        raise Frozen("it sums over the batch")
    if added in flow.places:
        if flow.places[added] or len(flow.shape(added)) == 1:
            raise Frozen("its operands hold the batch along different axes")
        flow.alike([node.input[0], added])
    elif added:
        shape = flow.shape(added)
        if len(shape) > 1 and shape[0] != 1:
            like = node.input[0], axis
            node.input[2] = flow.spread(node.input[2], 0, *like, broadcast=True)
    flow.places[node.output[0]] = 0


def recurrent(flow: Flow, node: onnx.NodeProto) -> None:
    """LSTM, GRU and RNN: the batch is the second axis; states that are given, once for each."""
    first = node.input[0]
    flow.shared([name for name in node.input[1:4] if name])
    if flow.places.get(first) != 1 or attribute(node, "layout", 0):
        raise Frozen("the batch is not its second axis")
    for place, axis in ((4, 0), (5, 1), (6, 1)):  # lengths and states
        if len(node.input) > place and (name := node.input[place]):
            if name not in flow.places:
                node.input[place] = flow.spread(name, axis, first, 1)
            elif flow.places[name] != axis:
                raise Frozen(f"the batch is not axis {axis} of `{name}`")
    flow.shared([name for name in node.input[7:] if name])
    for output, axis in zip(node.output, (2, 1, 1), strict=False):
        if output:
            flow.places[output] = axis


def triangle(flow: Flow, node: onnx.NodeProto) -> None:
    """Trilu, of the last two axes."""
    axis = batched(flow, node)
    if axis >= len(flow.shape(node.input[0])) - 2:
        raise Frozen("it goes along the batch")
    flow.places[node.output[0]] = axis


def einsum(flow: Flow, node: onnx.NodeProto) -> None:
    """Einsum: the batch has a letter, which no shared operand has and the result has."""
    equation = next(each.s.decode() for each in node.attribute if each.name == "equation")
    terms, arrow, result = equation.replace(" ", "").partition("->")
    if not arrow or "." in equation:
        raise Frozen("its equation leaves letters out")
    written = dict(zip(node.input, terms.split(","), strict=True))
    held = [name for name in written if name in flow.places]
    letters = {written[name][flow.places[name]] for name in held}
    if len(letters) > 1 or len(written) < len(node.input):
        raise Frozen("its operands hold the batch along different axes")
    (letter,) = letters
    if any(written[name].count(letter) != (name in held) for name in written):
        raise Frozen("it puts the batch beside what all items share")
    if result.count(letter) != 1:
        raise Frozen("it sums over the batch")
    flow.alike(held)
    flow.places[node.output[0]] = result.index(letter)


def _table(*groups: tuple[Carrier, str]) -> Mapping[str, Carrier]:
    return {name: carrier for carrier, names in groups for name in names.split()}


_ALONE = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Cast Ceil Celu Clip Cos Cosh Dropout Elu "
    "Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not "
    "Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan "
    "Tanh ThresholdedRelu BitwiseNot"
)
_TOGETHER = (
    "Add Sub Mul Div Pow Mod Max Min Mean Sum And Or Xor Equal Greater GreaterOrEqual Less "
    "LessOrEqual Where PRelu BitShift BitwiseAnd BitwiseOr BitwiseXor"
)
# These treat each row apart, whichever item it is of.
ROW_BY_ROW = frozenset(
    f"{_ALONE} {_TOGETHER} CastLike Softmax LogSoftmax LayerNormalization "
    "RMSNormalization MatMul Gemm Reshape Unsqueeze Squeeze ReduceMean ReduceSum ReduceMax "
    "ReduceMin".split()
)

OF_ANY_RANK = (alike, broadcast, moving.reshaped)
CARRIERS: Mapping[str, Carrier] = _table(
    (
        alike,
        _ALONE,
    ),
    (
        broadcast,
        _TOGETHER,
    ),
    (like, "CastLike"),
    (
        first_axis,
        "Conv ConvTranspose AveragePool MaxPool LpPool GlobalAveragePool GlobalMaxPool "
        "GlobalLpPool InstanceNormalization GroupNormalization BatchNormalization LRN "
        "DepthToSpace SpaceToDepth Col2Im ConvInteger",
    ),
    (along_axis, "Softmax LogSoftmax Hardmax TopK Split LpNormalization"),
    (
        reduced,
        "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum "
        "ReduceLogSumExp ReduceSumSquare ArgMax ArgMin",
    ),
    (normalised, "LayerNormalization RMSNormalization"),
    (coordinates.by_element, "GatherElements ScatterElements"),
    (coordinates.scattered, "ScatterND"),
    (coordinates.gathered_nd, "GatherND"),
    (coordinates.attended, "Attention"),
    (moving.resized, "Resize Upsample"),
    (recurrent, "LSTM GRU RNN"),
    (quantised, "QuantizeLinear DequantizeLinear"),
    (cumulated, "CumSum"),
    (triangle, "Trilu"),
    (einsum, "Einsum"),
    (moving.transposed, "Transpose"),
    (moving.reshaped, "Reshape"),
    (moving.flattened, "Flatten"),
    (moving.squeezed, "Squeeze"),
    (moving.unsqueezed, "Unsqueeze"),
    (moving.joined, "Concat"),
    (moving.sliced, "Slice"),
    (gathered, "Gather"),
    (moving.padded, "Pad"),
    (moving.expanded, "Expand"),
    (moving.tiled, "Tile"),
    (multiplied, "MatMul"),
    (gemm, "Gemm"),
    (grid_sample, "GridSample"),
)
