"""Factors beside products with constant weights, put into the weights.

A product is linear in each operand: c * (x W + b) = x (c W) + c b, and (c * x) W = x (c W). So a
constant factor costs nothing where a constant weight takes it. A single number also passes views,
and products of two computed values, on its way to one.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.cleaning import order_of
from surgeon.builders.known_norms import see_no_norm
from surgeon.builders.linear import FLOATS, bias_of, channels_of, narrow, scaled_outputs
from surgeon.builders.own_constants import one_a_channel, operand_behind, own_weight
from surgeon.facts.fact import Array
from surgeon.match import VIEWS, Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused

MOVES = VIEWS - {"Cast"}
BENT = frozenset({"Relu", "LeakyRelu", "PRelu"})  # at 0 alone: what is positive passes
_SUMS = frozenset({"Add", "Sub"})
_LARGEST = 2.0**20  # a factor by which a summand is divided, and the reciprocal of the smallest
_LARGEST_SPREAD = 1 << 16  # elements of a factor in front of a view


def factor_behind(draft: Draft, match: Match) -> gs.Tensor:
    """y = c * p, or p / c, with c in the weights that p is computed with."""
    return _times(draft, *product_of(draft, match.root))


def negative_behind(draft: Draft, match: Match) -> gs.Tensor:
    """y = -p, with -1 in the weights that p is computed with."""
    x: gs.Tensor = match.root.inputs[0]
    if draft.facts.of(x).dtype not in FLOATS:
        raise Refused("it is no float")
    return _times(draft, x, np.array(-1.0))


def product_of(draft: Draft, node: gs.Node) -> tuple[gs.Tensor, Array]:
    """The computed operand of a Mul or Div with a constant, and the factor.

    The factor is in float64: () where it is one number, else with as many axes as the operand.

    Raises:
        Refused: It is another operator or no float, or the constant makes its result larger.
    """
    if node.op not in ("Mul", "Div"):
        raise Refused("no factor stands in front of it")
    data = int(node.op == "Mul" and draft.facts.array(node.inputs[0]) is not None)
    x, constant = node.inputs[data], node.inputs[1 - data]
    if draft.facts.of(x).dtype not in FLOATS:
        raise Refused("it is no float")
    wide = operand_behind(draft, x, constant, node.outputs[0], "its constant").astype(np.float64)
    if node.op == "Div":
        with np.errstate(all="ignore"):
            wide = 1.0 / wide
    return x, wide.reshape(()) if wide.size == 1 else wide


def _times(draft: Draft, tensor: gs.Tensor, factor: Array) -> gs.Tensor:
    """The value times the factor, without a node for it.

    Args:
        draft: Where the nodes go.
        tensor: What is multiplied; nothing else may read it.
        factor: A number, or an array with as many axes as the value has.

    Raises:
        Refused: No constant weight takes the factor.
    """
    node = lone_producer(draft, tensor)
    if node.op in ("Conv", "ConvTranspose", "Gemm"):
        return times_linear(draft, node, factor)
    if node.op == "MatMul":
        return _times_product(draft, node, factor)
    if node.op in ("Add", "Sub"):
        return _times_sum(draft, node, factor)
    if node.op == "Split":
        return _times_part(draft, node, tensor, factor)
    if node.op in MOVES:
        moved = _times(draft, node.inputs[0], _in_front(draft, node, factor))
        return draft.op(node.op, moved, *node.inputs[1:], **node.attrs)
    if node.op in BENT - {"PRelu"} and is_positive(factor):
        return draft.op(node.op, _times(draft, node.inputs[0], factor), **node.attrs)
    raise Refused(f"{node.op} has no weight that takes it")


def lone_producer(draft: Draft, tensor: gs.Tensor) -> gs.Node:
    """What computes a value that has one reader.

    Raises:
        Refused: Nothing here does, or something else reads it too.
    """
    node = maker_here(draft, tensor)
    if len(tensor.outputs) != 1 or draft.surgery.is_output(tensor):
        raise Refused(f"{tensor.name!r} is read elsewhere too")
    return node


def maker_here(draft: Draft, tensor: gs.Tensor) -> gs.Node:
    """What computes a value in this graph: an operator of ONNX's own.

    Raises:
        Refused: Nothing does, or an operator of another domain, whatever its name is.
    """
    node = producer_of(tensor)
    if node is None or not draft.holds(node):
        raise Refused(f"nothing that is known computes {tensor.name!r} here")
    return node


def times_linear(draft: Draft, node: gs.Node, factor: Array) -> gs.Tensor:
    """A factor of each channel (axis 1) behind Conv, ConvTranspose or Gemm."""
    weight = own_weight(draft, node)
    bias = bias_of(draft, node, whole=not factor.ndim)
    number = one_a_channel(factor, "its constant") if factor.ndim else factor
    scaled = scaled_outputs(node, weight, np.broadcast_to(number, channels_of(node, weight)))
    operands = [draft.constant(narrow(scaled, weight), "weight")]
    if bias is not None:
        operands.append(draft.constant(narrow(bias.astype(np.float64) * number, weight), "bias"))
    return draft.op(node.op, node.inputs[0], *operands, **node.attrs)


def _times_product(draft: Draft, node: gs.Node, factor: Array) -> gs.Tensor:
    """A factor behind MatMul: of each column of a constant right operand, or row of a left one."""
    left, right = node.inputs
    for index, axis in ((1, -1), (0, -2)):
        if not isinstance(node.inputs[index], gs.Constant):
            continue
        weight = own_weight(draft, node, index)
        if factor.ndim and weight.ndim == 1:
            raise Refused("its weight is a vector, and takes one number alone")
        scaled = weight.astype(np.float64) * _of_axis(factor, axis)
        made = draft.constant(narrow(scaled, weight), "weight")
        return draft.op("MatMul", *((left, made) if index else (made, right)))
    if factor.ndim:
        raise Refused("both operands of its MatMul are computed, which takes one number alone")
    reasons = []
    for index, operand in enumerate((left, right)):
        try:
            made = _times(draft, operand, factor)
        except Refused as refused:
            reasons.append(str(refused))
        else:
            return draft.op("MatMul", *((left, made) if index else (made, right)))
    raise Refused(f"neither operand of its MatMul takes it: {'; '.join(reasons)}")


def _of_axis(factor: Array, axis: int) -> Array:
    """The factor as it is multiplied with a weight along this axis, counted from the back.

    Raises:
        Refused: It stands along another axis of the product too.
    """
    if not factor.ndim:
        return factor
    along = factor.ndim + axis
    if any(n != 1 for place, n in enumerate(factor.shape) if place != along):
        raise Refused(f"its constant stands along another axis than {axis}")
    return factor.reshape([-1, *[1] * (-axis - 1)])


def _times_part(draft: Draft, split: gs.Node, part: gs.Tensor, factor: Array) -> gs.Tensor:
    """A factor behind one part of a Split: of the whole, it is 1 for the other parts."""
    shapes = [draft.facts.of(piece).shape for piece in split.outputs]
    rank = len(shapes[0] or ())
    axis = int(attribute_of(split, "axis")) % max(rank, 1)
    found = [shape[axis] for shape in shapes if shape is not None]
    sizes = [size for size in found if isinstance(size, int)]
    if len(sizes) != len(shapes):
        raise Refused("the sizes of its Split are known at run time only")
    spread = factor.reshape([1] * rank) if not factor.ndim else factor
    others = [n for place, n in enumerate(spread.shape) if place != axis]
    columns = [
        np.broadcast_to(spread if piece is part else 1.0, [*others[:axis], size, *others[axis:]])
        for piece, size in zip(split.outputs, sizes, strict=True)
    ]
    made = _times(draft, split.inputs[0], np.concatenate(columns, axis))
    pieces = draft.op("Split", made, *split.inputs[1:], outputs=len(sizes), **split.attrs)
    pieces = pieces if len(sizes) > 1 else (pieces,)
    pairs = list(zip(split.outputs, pieces, strict=True))
    draft.also.append((split, [pair for pair in pairs if pair[0] is not part]))
    return next(new for old, new in pairs if old is part)


def _in_front(draft: Draft, node: gs.Node, factor: Array) -> Array:
    """The factor of what a view or Transpose makes, as one of what it reads.

    Raises:
        Refused: It is more than one number, and the view moves dimensions that are not known.
    """
    if not factor.ndim:
        return factor
    before, after = (draft.facts.of(t).shape for t in (node.inputs[0], node.outputs[0]))
    if before is None or after is None:
        raise Refused("a shape is not known")
    if node.op == "Transpose":
        order = order_of(node, len(before))
        return factor.transpose(np.argsort(order))
    lead = 0
    while lead < min(len(before), len(after)) and before[lead] == after[lead]:
        lead += 1
    sizes = [[n for n in shape[lead:] if isinstance(n, int)] for shape in (before, after)]
    known = len(sizes[0]) == len(before) - lead and len(sizes[1]) == len(after) - lead
    if not known or factor.shape[:lead] != (1,) * lead or math.prod(sizes[1]) > _LARGEST_SPREAD:
        raise Refused(f"more than one number does not pass {node.op}")
    if math.prod(sizes[0]) != math.prod(sizes[1]):
        raise Refused(f"what {node.op} reads and what it makes are not as large")
    spread = np.broadcast_to(factor, [*[1] * lead, *sizes[1]])
    return spread.reshape([*[1] * lead, *sizes[0]])


def _times_sum(draft: Draft, node: gs.Node, factor: Array) -> gs.Tensor:
    """A factor behind the sum of a computed value and a constant: both take it."""
    data = _computed(draft, node)
    x, constant = node.inputs[data], node.inputs[1 - data]
    wide = operand_behind(draft, x, constant, node.outputs[0], "its summand")
    own = draft.facts.array(constant)
    summand = wide if factor.ndim or own is None else own  # a number leaves its rank as it is
    with np.errstate(all="ignore"):
        scaled = narrow(summand.astype(np.float64) * factor, summand)
    lead = scaled.ndim - (scaled.ndim if own is None else own.ndim)
    while lead and scaled.shape[0] == 1:  # runtimes take a bias of one axis for what it is
        scaled, lead = scaled[0], lead - 1
    made = _times(draft, x, factor)
    moved = draft.constant(scaled, "summand")
    return draft.op(node.op, *((moved, made) if data else (made, moved)))


# ---------------------------------------------------------------------------------------- in front


def factor_before(draft: Draft, match: Match) -> gs.Tensor:
    """y = Conv, ConvTranspose, Gemm or MatMul of c * x, or x / c, with c in the weight."""
    root = match.root
    passed: list[gs.Node] = []
    node = lone_producer(draft, root.inputs[0])
    while node.op in MOVES | BENT | _SUMS:
        passed.append(node)
        node = lone_producer(draft, node.inputs[_computed(draft, node)])
    x, factor = factor_in_front(draft, node)
    if not is_positive(factor) and not BENT.isdisjoint(other.op for other in passed):
        raise Refused("what is not positive does not pass a Relu")
    for other in reversed(passed):
        if other.op in _SUMS:
            x = _sum_without(draft, other, x, factor)
            continue
        if factor.ndim and other.op == "Transpose":
            factor = factor.transpose(other.attrs.get("perm", range(factor.ndim)[::-1]))
        elif factor.ndim and other.op in MOVES:
            raise Refused(f"more than one number does not pass {other.op}")
        x = draft.op(other.op, x, *other.inputs[1:], **other.attrs)
    return with_factor(draft, root, x, factor)


def _sum_without(draft: Draft, node: gs.Node, x: gs.Tensor, factor: Array) -> gs.Tensor:
    """A sum of a value and a constant without their factor: c x + b is c (x + b / c)."""
    data = _computed(draft, node)
    constant = node.inputs[1 - data]
    wide = operand_behind(draft, node.inputs[data], constant, node.outputs[0], "its summand")
    own, sizes = draft.facts.array(constant), np.abs(factor)
    if not ((sizes > 1 / _LARGEST) & (sizes < _LARGEST)).all():
        raise Refused("its factor is too large or too small for a summand to be divided by")
    if not factor.ndim and own is not None:  # a number leaves its rank as it is
        wide = own
    moved = draft.constant(narrow(wide.astype(np.float64) / factor, wide), "summand")
    made: gs.Tensor = draft.op(node.op, *((moved, x) if data else (x, moved)))
    return made


def _computed(draft: Draft, node: gs.Node) -> int:
    """The place of an operand that is no constant: of a sum with one it is either."""
    return int(node.op in _SUMS and draft.facts.array(node.inputs[0]) is not None)


def factor_in_front(draft: Draft, node: gs.Node) -> tuple[gs.Tensor, Array]:
    """What `product_of` gives, of a product that may stand without its factor."""
    x, factor = product_of(draft, node)
    if not factor.ndim and factor == 0.5 and _is_gelu(x):
        raise Refused("it ends a GELU, which runtimes know by it and compute as one")
    see_no_norm(draft, node)
    return x, factor


def with_factor(draft: Draft, node: gs.Node, x: gs.Tensor, factor: Array) -> gs.Tensor:
    """A product with a constant weight anew, of x: the weight takes the factor of its operand."""
    weight = own_weight(draft, node)
    scaled = draft.constant(narrow(scaled_inputs(node, weight, factor), weight), "weight")
    return draft.op(node.op, x, scaled, *node.inputs[2:], **node.attrs)


def is_positive(factor: Array) -> bool:
    """Whether what is of one sign at each place stays so behind the factor."""
    return bool((np.isfinite(factor) & (factor > 0)).all())


def _is_gelu(tensor: gs.Tensor) -> bool:
    """Whether a value is x * (1 + erf(...)): twice a GELU."""
    found = [tensor]
    for wanted in ("Mul", "Add", "Erf"):
        makers = [t.inputs[0] for t in found if t.inputs]
        found = [t for node in makers if node.op == wanted for t in node.inputs]
    return bool(found)


def factor_of_both(draft: Draft, match: Match) -> gs.Tensor:
    """y = (c * a) (d * b) as (c d * a) b, the factor at the operand that is not the larger."""
    root, facts = match.root, draft.facts
    (a, first), (b, second) = (product_of(draft, lone_producer(draft, t)) for t in root.inputs)
    if first.ndim or second.ndim:
        raise Refused("more than one number does not pass to the other operand")
    shapes = facts.of(a).shape, facts.of(b).shape
    left, right = (None if s is None else dims.product(s) for s in shapes)
    behind = left is not None and right is not None and dims.at_most(right + 1, left) is True
    kind = onnx.helper.tensor_dtype_to_np_dtype(facts.of(root.outputs[0]).dtype)
    both = draft.constant(narrow(first * second, np.empty(0, kind)), "factor")
    scaled = draft.op("Mul", b if behind else a, both)
    y: gs.Tensor = draft.op("MatMul", *((a, scaled) if behind else (scaled, b)))
    return y


def scaled_inputs(node: gs.Node, weight: Array, factor: Array) -> Array:
    """The weight with the factor of each input channel taken in, in float64.

    Raises:
        Refused: The factor stands along another axis than what is summed over.
    """
    wide: Array = np.array(weight, np.float64, order="C")
    if not factor.ndim:
        wide *= factor
    elif node.op == "ConvTranspose":  # [Cin, Cout / group, ...]
        wide *= one_a_channel(factor, "its constant").reshape(-1, *[1] * (weight.ndim - 1))
    elif node.op == "Conv":  # [Cout, Cin / group, ...]
        number = one_a_channel(factor, "its constant")
        groups = wide.reshape(int(attribute_of(node, "group") or 1), -1, *weight.shape[1:])
        groups *= number.reshape(groups.shape[0], 1, -1, *[1] * (weight.ndim - 2))
    elif node.op == "Gemm" and attribute_of(node, "transA"):
        raise Refused("its input is transposed, which takes one number alone")
    else:
        number = _of_axis(factor, -1)
        rows = weight.ndim > 1 and not (node.op == "Gemm" and attribute_of(node, "transB"))
        wide *= number[:, None] if rows else number
    return wide
