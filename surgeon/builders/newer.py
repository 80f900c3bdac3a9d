"""Operators of newer opsets in older ones: what transformers are made of beside Attention."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.ordered import running_product
from surgeon.builders.aten_math.work import Work
from surgeon.builders.bench import LARGEST, TYPE, Bench, operand
from surgeon.builders.fills import holds
from surgeon.builders.standardising import rms_normalised
from surgeon.facts.kinds import FLOATS, HALVES
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


def rms_norm_as_means(draft: Draft, match: Match) -> gs.Tensor:
    """RMSNormalization as a mean of squares and a root; half precision is widened meanwhile."""
    node, c = match.root, Bench(draft)
    x, scale = node.inputs
    axis, stash = int(attribute_of(node, "axis")), int(attribute_of(node, "stash_type"))
    if stash in HALVES and c.dtype(x) != stash:
        raise Refused("it computes in less precision than its input has")
    count = -axis if axis < 0 else c.rank(x) - axis
    y = rms_normalised(draft, x, count, None, float(attribute_of(node, "epsilon")))
    y = c.cast(y, c.dtype(scale))
    return y if holds(draft, scale, 1) else c.op("Mul", y, scale)


def swish_as_sigmoid(draft: Draft, match: Match) -> gs.Tensor:
    """x * sigmoid(alpha * x), and for SwiGLU times the second input."""
    node, c = match.root, Bench(draft)
    x, alpha = node.inputs[0], float(attribute_of(node, "alpha"))
    inner = x if alpha == 1 else c.op("Mul", x, c.number(alpha, c.dtype(x)))
    y: gs.Tensor = c.op("Mul", x, c.op("Sigmoid", inner))
    return y if len(node.inputs) == 1 else c.op("Mul", y, node.inputs[1])


def tensor_scatter_as_elements(draft: Draft, match: Match) -> gs.Tensor:
    """TensorScatter: the update in its place of the cache, in each sample of the batch.

    Without places it goes to the front, and the rest of the cache stays behind it.
    """
    node, c = match.root, Bench(draft)
    cache, update = node.inputs[:2]
    rank, first = c.rank(cache), operand(node, 2)
    axis = c.axis(int(attribute_of(node, "axis")), rank)
    length = c.size(update, axis)
    if first is None:
        return c.concat([update, c.slice(cache, axis, length, LARGEST)], axis)
    places = c.op("Add", c.unsqueeze(first, [1]), c.count(length))
    if attribute_of(node, "mode") == "circular":
        places = c.op("Mod", places, c.vector([c.size(cache, axis)]))
    beside = [n for n in range(1, rank) if n != axis]
    places = c.op("Expand", c.unsqueeze(places, beside), c.vector(c.sizes(update)))
    made: gs.Tensor = c.op("ScatterElements", cache, places, update, axis=axis)
    return made


def cumprod_as_products(draft: Draft, match: Match) -> gs.Tensor:
    """CumProd in as many steps as its axis has powers of two."""
    node, c = match.root, Bench(draft)
    x, places = node.inputs[0], draft.facts.array(node.inputs[1])
    if places is None:
        raise Refused("its axis is computed at run time")
    work, axis = Work(draft, node), c.axis(int(places.reshape(-1)[0]), c.rank(x))
    dtype, backwards = c.dtype(x), bool(attribute_of(node, "reverse"))
    wide = c.cast(x, TYPE.FLOAT) if dtype in HALVES else x
    if backwards:
        wide = c.slice(wide, axis, -1, -LARGEST, -1)
    if attribute_of(node, "exclusive"):
        # a 1 in front of all but the last
        sizes = [1 if n == axis else size for n, size in enumerate(c.sizes(x))]
        one = c.filled(sizes, 1, c.dtype(wide))
        wide = c.slice(c.concat([one, wide], axis), axis, 0, -1)
    y = running_product(work, wide, axis, is_wider=False)
    if backwards:
        y = c.slice(y, axis, -1, -LARGEST, -1)
    return c.cast(y, dtype)


def floored_remainder(draft: Draft, match: Match) -> gs.Tensor:
    """Mod of floats with the sign of the divisor, which it has from opset 28 on.

    C's remainder, and once the divisor more where the signs differ.
    """
    node, c = match.root, Bench(draft)
    a, b = node.inputs
    dtype = c.dtype(a)
    if dtype not in FLOATS:
        raise Refused("its inputs are integers, of which older opsets say the same")
    rest, nought = c.op("Mod", a, b, fmod=1), c.number(0, dtype)
    turned = c.op("Less", c.op("Mul", c.op("Sign", rest), c.op("Sign", b)), nought)
    return c.where(turned, c.op("Add", rest, b), rest)


def softmax_turned(draft: Draft, match: Match) -> gs.Tensor:
    """Softmax, LogSoftmax or Hardmax over an axis, turned to be the last, as all opsets have it."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    rank = c.rank(x)
    axis = c.axis(int(attribute_of(node, "axis")), rank)
    if all(dim == 1 for dim in (c.shape(x) or ())[axis + 1 :]):
        raise Refused("nothing stands behind the axis")
    order = [i for i in range(rank) if i != axis] + [axis]
    turned = c.op(node.op, c.op("Transpose", x, perm=order), axis=-1)
    y: gs.Tensor = c.op("Transpose", turned, perm=[order.index(i) for i in range(rank)])
    return y
