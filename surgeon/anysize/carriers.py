"""What becomes of dynamic sizes in each operator; Frozen where a number may depend on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.anysize import moving, scaling, shared
from surgeon.anysize.freed import Clash
from surgeon.anysize.sizes import Sizes, factors, told
from surgeon.dims import Dim
from surgeon.facts.elementwise import BINARY, REDUCTIONS, UNARY
from surgeon.frozen import Frozen

Carrier = Callable[[Sizes, gs.Node], None]

_PLACES = ("ArgMax", "ArgMin")
_PARTS = 8  # into so many parts, or fewer, an adaptive pool makes planes


def natural(sizes: Sizes, node: gs.Node) -> None:
    """Each element by itself, or along axes, whatever their lengths."""
    _only_first(sizes, node)


def clipped(sizes: Sizes, node: gs.Node) -> None:
    """Clip, whose bounds may be the edge of an image."""
    _only_first(sizes, node)
    shared.bounds(sizes, node)


def broadcast(sizes: Sizes, node: gs.Node) -> None:
    """Each element by itself, of operands that are brought to one shape from the right."""
    shared.broadcast(sizes, node)


def _only_first(sizes: Sizes, node: gs.Node) -> None:
    for tensor in node.inputs[1:]:
        if tensor.name and sizes.free_axes(tensor):
            raise Frozen(f"{sizes.title(tensor)} depends on the sizes")


def _planes(sizes: Sizes, node: gs.Node) -> list[Dim]:
    """The lengths of the planes of the first operand, whose channels are a number."""
    _only_first(sizes, node)
    shape = sizes.shape(node.inputs[0])
    if len(shape) > 1 and sizes.is_free(shape[1]):
        raise Frozen("its channels depend on the sizes")
    return list(shape[2:])


def on_planes(sizes: Sizes, node: gs.Node) -> None:
    """Planes as a whole, channel by channel."""
    _planes(sizes, node)
    if node.attrs.get("training_mode"):
        raise Frozen("it is in training")


def averaged(sizes: Sizes, node: gs.Node) -> None:
    """A mean of planes, which may become their sum."""
    planes = _planes(sizes, node)
    if any(map(sizes.is_free, planes)):
        sizes.counts[node.outputs[0].name] = frozenset({sizes.number(dims.product(planes))})


def convolved(sizes: Sizes, node: gs.Node) -> None:
    """A convolution: in whole strides, as a pad may have hung on the rest."""
    for dim, stride in zip(_planes(sizes, node), _strides(sizes, node), strict=False):
        if sizes.is_free(dim):
            sizes.in_steps(dim, stride)


def transposed_convolution(sizes: Sizes, node: gs.Node) -> None:
    """ConvTranspose, which may name the sizes that it gives."""
    planes = _planes(sizes, node)
    if node.attrs.get("output_shape") and any(map(sizes.is_free, planes)):
        raise Frozen("it names the sizes that it gives (output_shape)")


def _strides(sizes: Sizes, node: gs.Node) -> Sequence[int]:
    rank = len(sizes.shape(node.inputs[0])) - 2
    return node.attrs.get("strides") or [1] * rank


def pooled(sizes: Sizes, node: gs.Node) -> None:
    """A pool, which an average over parts of a plane, or all of it, may have become."""
    planes = _planes(sizes, node)
    if len(node.outputs) > 1 and node.outputs[1].name:
        raise Frozen("its places count through the planes")
    kernel, strides = node.attrs["kernel_shape"], _strides(sizes, node)
    padded = any(node.attrs.get("pads") or ()) or str(node.attrs.get("auto_pad", "")).startswith(
        "SAME"
    )
    free = [axis for axis, dim in enumerate(planes) if sizes.is_free(dim)]
    if not padded and free and all(kernel[a] == sizes.number(planes[a]) for a in free):
        _whole(sizes, node, free, kernel)
        return
    for axis in free:
        sizes.in_steps(planes[axis], strides[axis])
        if not padded:
            _parts(sizes, node, sizes.number(planes[axis]), kernel[axis], strides[axis])


def _whole(sizes: Sizes, node: gs.Node, free: Sequence[int], kernel: Sequence[int]) -> None:
    """A window that is the whole plane: one of that size, or of any."""
    title = node.outputs[0].name
    sizes.whole.append(title)
    if title in sizes.plain:
        for axis in free:
            sizes.in_steps(sizes.shape(node.inputs[0])[axis + 2], _strides(sizes, node)[axis])
        return
    kind = {"AveragePool": "GlobalAveragePool", "MaxPool": "GlobalMaxPool"}.get(node.op)
    if kind is None or len(free) < len(kernel):
        raise Frozen("its window is the whole plane")
    if node.op == "AveragePool":
        averaged(sizes, node)
    draft = sizes.draft(node)
    sizes.replace(node, draft, draft.op(kind, node.inputs[0]))


def _parts(sizes: Sizes, node: gs.Node, length: int, kernel: int, stride: int) -> None:
    """See that windows beside one another are no share of the plane."""
    count = (length - kernel) // stride + 1
    if count < 1:
        raise Frozen(
            f"its windows of {kernel} are longer than the {length} elements that they read"
        )
    shares = length - (count - 1) * stride == kernel and stride == length // count
    most = 3 if node.op == "MaxPool" else 2  # as windows of pools are
    like = sizes.pools.setdefault((node.op, stride), count)  # those of the first in such steps
    if shares and stride > 1 and (kernel > most or like <= _PARTS):
        raise Frozen(
            f"its windows of {kernel} share {length} among {count}: a pool of such windows, or one "
            f"that makes {count} of any size"
        )


def along_planes(sizes: Sizes, node: gs.Node) -> None:
    """SpaceToDepth: whole blocks."""
    for dim in _planes(sizes, node):
        if sizes.is_free(dim):
            sizes.in_steps(dim, node.attrs["blocksize"])


def reduced(sizes: Sizes, node: gs.Node) -> None:
    """A reduction; what it adds up may be divided by how much that was."""
    _only_first(sizes, node)
    before, free = sizes.shape(node.inputs[0]), sizes.free_axes(node.inputs[0])
    axes = node.attrs.get("axes")
    if node.op in REDUCTIONS:
        axes = sizes.numbers(node, 1) or axes
        if not axes:
            axes = [] if node.attrs.get("noop_with_empty_axes") else list(range(len(before)))
    else:
        axes = [node.attrs.get("axis", 0)]
    gone = {axis % len(before) for axis in axes} & set(free)
    if gone:
        every = {axis % len(before) for axis in axes}
        whole = range(len(before))
        products = [
            sizes.number(dims.product(before[axis] for axis in of)) for of in (gone, every, whole)
        ]
        each = {sizes.number(before[axis]) for axis in gone}
        if node.op in _PLACES:  # of a plane in one axis: its rows and columns
            each |= {sizes.number(part) for axis in gone for part in factors(sizes, before[axis])}
        earlier = sizes.counts.get(node.inputs[0].name, frozenset())
        both = {number * products[0] for number in earlier}  # added up along one axis and another
        sizes.counts[node.outputs[0].name] = frozenset({*products, *each, *both})


def normalised(sizes: Sizes, node: gs.Node) -> None:
    """LayerNormalization: its weights are as large as what it goes over."""
    _only_first(sizes, node)
    shape = sizes.shape(node.inputs[0])
    axis = node.attrs.get("axis", -1) % len(shape)
    if any(map(sizes.is_free, shape[axis:])):
        raise Frozen("its weights are for one size")


def multiplied(sizes: Sizes, node: gs.Node) -> None:
    """MatMul: what it sums over is as long on both sides."""
    left, right = (sizes.shape(tensor) for tensor in node.inputs[:2])
    if not left or not right:
        raise Frozen("its operands have no axes")
    rows = right[-2] if len(right) > 1 else right[-1]
    _agree(sizes, node, left[-1], rows, 1)
    _count(sizes, node, rows)
    shared.agree(sizes, [left[:-2], right[:-2]])


def gemm(sizes: Sizes, node: gs.Node) -> None:
    """Gemm, the same."""
    left, right = (sizes.shape(tensor) for tensor in node.inputs[:2])
    if len(left) != 2 or len(right) != 2:
        raise Frozen("its operands are no matrices")
    inner = left[0] if node.attrs.get("transA") else left[1]
    rows = right[1] if node.attrs.get("transB") else right[0]
    _agree(sizes, node, inner, rows, 1)
    _count(sizes, node, rows)
    outer = left[1] if node.attrs.get("transA") else left[0]
    columns = right[0] if node.attrs.get("transB") else right[1]
    if len(node.inputs) > 2 and node.inputs[2].name:
        shared.agree(sizes, [(outer, columns), sizes.shape(node.inputs[2])])


def _count(sizes: Sizes, node: gs.Node, summed: Dim) -> None:
    """Remember how many elements a product adds up, and how many there are in all."""
    if sizes.is_free(summed):
        rows = [sizes.shape(tensor)[-2:] for tensor in node.inputs[:2]]
        counts = {sizes.number(each) for each in (summed, *map(dims.product, rows))}
        sizes.counts[node.outputs[0].name] = frozenset(counts)


def _agree(sizes: Sizes, node: gs.Node, first: Dim, second: Dim, place: int) -> None:
    if first != second and (sizes.is_free(first) or sizes.is_free(second)):
        place, free = (place, first) if sizes.is_free(first) else (1 - place, second)
        other = second if sizes.is_free(first) else first
        raise Clash(
            f"{sizes.title(node.inputs[place])} has {other} rows or columns, which depend on the "
            f"{told(sizes, free)}"
        )


def einsum(sizes: Sizes, node: gs.Node) -> None:
    """Einsum: a letter is one length."""
    equation = node.attrs["equation"].replace(" ", "")
    terms, arrow, result = equation.partition("->")
    if not arrow or "." in equation:
        raise Frozen("its equation leaves letters out")
    lengths: dict[str, Dim] = {}
    for letters, tensor in zip(terms.split(","), node.inputs, strict=True):
        for letter, dim in zip(letters, sizes.shape(tensor), strict=True):
            other = lengths.setdefault(letter, dim)
            if other != dim and (sizes.is_free(dim) or sizes.is_free(other)):
                raise Clash(f"`{letter}` of its equation is {other} and {dim}")
    gone = [dim for each, dim in lengths.items() if each not in result]
    summed = [dim for dim in gone if sizes.is_free(dim)]
    if summed:
        whole = map(sizes.shape, node.inputs)
        counts = {sizes.number(dims.product(of)) for of in (summed, gone, *whole)}
        sizes.counts[node.outputs[0].name] = frozenset(counts)


def recurrent(sizes: Sizes, node: gs.Node) -> None:
    """LSTM, GRU and RNN: of any length, or any batch where states are told of none."""
    shape = sizes.shape(node.inputs[0])
    if sizes.is_free(shape[-1]):
        raise Frozen("its features depend on the sizes")
    if any(sizes.free_axes(tensor) for tensor in node.inputs[1:4] if tensor.name):
        raise Frozen("its weights depend on the sizes")
    steps, batch = (0, 1) if not node.attrs.get("layout") else (1, 0)
    if sizes.is_free(shape[steps]) and len(node.inputs) > 4 and node.inputs[4].name:
        raise Frozen("it is told how long each sequence is")
    for tensor in node.inputs[5:7]:
        rows = sizes.shape(tensor)[batch] if tensor.name else shape[batch]
        if sizes.is_free(shape[batch]) and rows != shape[batch]:
            raise Clash(f"{sizes.title(tensor)} is for {sizes.number(shape[batch])} rows")


def quantised(sizes: Sizes, node: gs.Node) -> None:
    """QuantizeLinear and DequantizeLinear."""
    _only_first(sizes, node)
    shape = sizes.shape(node.inputs[0])
    axis = node.attrs.get("axis", 1)
    several = any(dim != 1 for dim in sizes.shape(node.inputs[1]))
    if several and sizes.is_free(shape[axis % len(shape)]):
        raise Frozen("its scales go along the sizes")


def samples(sizes: Sizes, node: gs.Node) -> None:
    """GridSample: a grid that is a constant may be of one size, and so what it gives."""
    grid = node.inputs[1]
    if sizes.free_axes(node.inputs[0]) and not sizes.free_axes(grid):
        raise Frozen(f"{sizes.title(grid)} may be for one size")


def regions(sizes: Sizes, node: gs.Node) -> None:
    """RoiAlign: regions that are constants may be the whole plane, or shares of it."""
    _planes(sizes, node)
    if sizes.free_axes(node.inputs[0]) and sizes.array(node.inputs[1]) is not None:
        raise Frozen(f"{sizes.title(node.inputs[1])} may be for one size")


def one_hot(sizes: Sizes, node: gs.Node) -> None:
    """OneHot: of as many as a number says."""
    moving.by_places(sizes, node.inputs[0])


def boxes(sizes: Sizes, node: gs.Node) -> None:
    """What goes by boxes that are computed, or found: as many as the data say."""


def _table(*groups: tuple[Carrier, str]) -> Mapping[str, Carrier]:
    return {name: carrier for carrier, names in groups for name in names.split()}


_TWO_OR_MORE = BINARY | {"PRelu"}

CARRIERS: Mapping[str, Carrier] = {
    **dict.fromkeys(UNARY, natural),
    **dict.fromkeys(_TWO_OR_MORE, broadcast),
    **dict.fromkeys((*REDUCTIONS, "ArgMax", "ArgMin"), reduced),
    **_table(
        (natural, "Dropout CastLike Softmax LogSoftmax Hardmax CumSum LpNormalization Shape Size"),
        (clipped, "Clip"),
        (
            on_planes,
            "GlobalMaxPool InstanceNormalization "
            "GroupNormalization BatchNormalization LRN DepthToSpace",
        ),
        (averaged, "GlobalAveragePool GlobalLpPool"),
        (convolved, "Conv ConvInteger"),
        (transposed_convolution, "ConvTranspose"),
        (pooled, "AveragePool MaxPool LpPool"),
        (along_planes, "SpaceToDepth"),
        (normalised, "LayerNormalization RMSNormalization"),
        (multiplied, "MatMul"),
        (gemm, "Gemm"),
        (einsum, "Einsum"),
        (recurrent, "LSTM GRU RNN"),
        (quantised, "QuantizeLinear DequantizeLinear"),
        (samples, "GridSample"),
        (regions, "RoiAlign"),
        (one_hot, "OneHot"),
        (boxes, "NonMaxSuppression NonZero"),
        (natural, "Transpose Unsqueeze"),
        (moving.squeezed, "Squeeze"),
        (moving.flattened, "Flatten"),
        (moving.reshaped, "Reshape"),
        (moving.joined, "Concat"),
        (moving.split, "Split"),
        (moving.sliced, "Slice"),
        (moving.gathered, "Gather"),
        (moving.padded, "Pad"),
        (scaling.expanded, "Expand"),
        (scaling.tiled, "Tile"),
        (scaling.resized, "Resize Upsample"),
    ),
}
# These name sizes, and may give what depends on them of what does not.
NAMING = frozenset("Resize Upsample Expand Tile ConstantOfShape".split())
