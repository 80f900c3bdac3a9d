"""BatchNormalization folded into what stands before it.

y = (x - mean) / sqrt(var + epsilon) * scale + bias (ONNX BatchNormalization, inference), for each
channel y = x * factor + shift.
"""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.dynamic import mixture
from surgeon.builders.views import as_shape
from surgeon.dims import constant_target
from surgeon.facts.fact import Array
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


def factor_and_shift(draft: Draft, node: gs.Node) -> tuple[Array, Array]:
    """The two vectors of a BatchNormalization in inference, in float64.

    Raises:
        Refused: It trains, or its statistics are computed.
    """
    if attribute_of(node, "training_mode"):
        raise Refused("it is in training mode")
    arrays = [draft.facts.array(t) for t in node.inputs[1:5]]
    if any(a is None for a in arrays):
        raise Refused("its statistics are not constant")
    scale, bias, mean, var = (np.asarray(a, np.float64) for a in arrays)
    factor = scale / np.sqrt(var + attribute_of(node, "epsilon"))
    shift = bias - mean * factor
    if not (np.isfinite(factor).all() and np.isfinite(shift).all()):
        raise Refused("its statistics are not finite")
    return factor, shift


def batch_norm_into_conv(draft: Draft, match: Match) -> gs.Tensor:
    """y = BatchNormalization (Conv (x, w, b)) with constants, as one Conv (or ConvTranspose)."""
    conv = match.nodes[1]
    factor, shift = factor_and_shift(draft, match.root)
    weight = _constant(draft, conv.inputs[1])
    bias = conv.inputs[2] if len(conv.inputs) > 2 and not conv.inputs[2].is_empty() else None
    old = np.zeros(factor.shape) if bias is None else _constant(draft, bias).astype(np.float64)
    group = int(attribute_of(conv, "group") or 1)
    wide = weight.astype(np.float64)
    if conv.op == "Conv":
        wide = wide * factor.reshape(-1, *[1] * (weight.ndim - 1))
    else:  # ConvTranspose: [Cin, Cout/group, ...], output channels by group
        split = wide.reshape(group, -1, *weight.shape[1:])
        per = factor.reshape(group, 1, weight.shape[1], *[1] * (weight.ndim - 2))
        wide = (split * per).reshape(weight.shape)
    return draft.op(
        conv.op,
        conv.inputs[0],
        draft.constant(wide.astype(weight.dtype), "weight"),
        draft.constant((old * factor + shift).astype(weight.dtype), "bias"),
        **conv.attrs,
    )


def batch_norm_into_stacked(draft: Draft, match: Match) -> gs.Tensor:
    """BatchNormalization behind a weighted sum of stacked kernels: factor into kernels and bias.

    The shift may go into every kernel's bias because the attentions sum to 1; that must be proven.
    """
    facts = draft.facts
    factor, shift = factor_and_shift(draft, match.root)
    conv = next(n for n in match.nodes if n.op == "Conv" and n.outputs[0] is match.values["c"])
    attention = match.values["a"]
    assert attention is not None
    weight = _constant(draft, conv.inputs[1])
    channels = factor.size
    count, rest = divmod(weight.shape[0], channels)
    if rest:
        raise Refused(f"{weight.shape[0]} stacked kernels do not split among {channels} channels")
    _check_parts(draft, match, channels, count)
    per = np.repeat(factor, count)
    wide = weight.astype(np.float64) * per.reshape(-1, *[1] * (weight.ndim - 1))
    has_bias = len(conv.inputs) > 2 and not conv.inputs[2].is_empty()
    bias = _constant(draft, conv.inputs[2]).astype(np.float64) if has_bias else np.zeros(per.size)
    bias = bias * per
    fact = facts.of(attention)
    sums_to_one = (
        fact.unit_axis is not None
        and fact.shape is not None
        and (fact.unit_axis == len(fact.shape) - 1 and fact.shape[-1] == count)
    )
    if sums_to_one:
        bias = bias + np.repeat(shift, count)
    renewed: dict[int, gs.Tensor] = {}
    operands = [
        conv.inputs[0],
        draft.constant(wide.astype(weight.dtype), "kernels"),
    ]
    if has_bias or sums_to_one:
        operands.append(draft.constant(bias.astype(weight.dtype), "biases"))
    renewed[id(conv.outputs[0])] = draft.op("Conv", *operands, **conv.attrs)
    path = [n for n in reversed(match.nodes) if n is not match.root and n is not conv]
    out = renewed[id(conv.outputs[0])]
    for node in _between(conv, match.root, path):
        inputs = [renewed.get(id(t), t) for t in node.inputs]
        out = draft.op(node.op, *inputs, **node.attrs)
        renewed[id(node.outputs[0])] = out
    if not sums_to_one:
        rank = facts.of(out).rank
        if rank is None:
            raise Refused("its rank is not known")
        wide_shift = shift.astype(weight.dtype).reshape(1, -1, *[1] * (rank - 2))
        out = draft.op("Add", out, draft.constant(wide_shift, "shift"))
    return out


def _check_parts(draft: Draft, match: Match, channels: int, count: int) -> None:
    """That the sum is over the kernels of one channel: a row [..., 1, K] times [N, C, K, area].

    Raises:
        Refused: The kernels stand in another order, or a view mixes channels.
    """
    facts = draft.facts
    conv, parts, row = (
        facts.of(t).shape for name in "cpa" if (t := match.values[name]) is not None
    )
    out = facts.of(match.root.inputs[0]).shape
    if conv is None or parts is None or row is None or out is None:
        raise Refused("a shape between the convolution and the root is not known")
    by_channel = (
        len(parts) == 4
        and dims.equal(parts[0], conv[0]) is True
        and tuple(parts[1:3]) == (channels, count)
        and len(row) >= 2
        and tuple(row[-2:]) == (1, count)
    )
    kept = dims.equal(out[0], conv[0]) is True and out[1] == channels
    if not by_channel or not kept:
        raise Refused(f"the sum is not over {count} kernels of each of {channels} channels")


def _between(conv: gs.Node, root: gs.Node, members: list[gs.Node]) -> list[gs.Node]:
    """The matched nodes that carry the convolution's output to the root, in order."""
    order: list[gs.Node] = []
    tensor = root.inputs[0]
    while tensor.inputs and tensor.inputs[0] is not conv:
        node = tensor.inputs[0]
        order.append(node)
        tensor = next(
            t for t in node.inputs if t.inputs and any(t.inputs[0] is m for m in [*members, conv])
        )
    return order[::-1]


def batch_norm_into_matmul(draft: Draft, match: Match) -> gs.Tensor:
    """BatchNormalization behind `Reshape (MatMul (weights, x))` with weights = attention @ bank.

    The factor goes into the bank's columns, the shift becomes one Add.
    """
    facts = draft.facts
    factor, shift = factor_and_shift(draft, match.root)
    product, back = match.values["m"], match.root.inputs[0]
    assert product is not None
    node = product.inputs[0]
    weights, x = node.inputs
    shape, area = facts.of(weights).shape, facts.of(product).shape
    out = facts.of(back).shape
    if shape is None or len(shape) != 3 or area is None or out is None:
        raise Refused("the shape of the product is not known")
    kept = dims.equal(out[0], area[0]) is True and dims.equal(out[1], factor.size) is True
    if shape[1] != factor.size or not kept:
        raise Refused("its channels are not the rows of the weights")
    mix = mixture(weights, facts)
    row, lead, column = (a.reshape(-1, *a.shape[-1:]) for a in mix.elements)
    if row.shape[0] != factor.size:
        raise Refused("the rows of the weights are not its channels")
    bank = mix.bank.astype(np.float64)
    by_entry = np.zeros((bank.shape[0], bank.shape[2]))
    entries, wanted = (lead.reshape(-1), column.reshape(-1)), np.repeat(factor, row.shape[1])
    by_entry[entries] = wanted
    if (by_entry[entries] != wanted).any():
        raise Refused("several of its channels share entries of the bank")
    scaled = (bank * by_entry[:, None, :]).astype(mix.bank.dtype)
    old = facts.array(mix.product.inputs[1])
    assert old is not None
    fresh = draft.op(
        "MatMul", mix.product.inputs[0], draft.constant(scaled.reshape(old.shape), "bank")
    )
    for link in _links(weights, mix.product):
        fresh = draft.op(link.op, fresh, *link.inputs[1:], **link.attrs)
    y = draft.op("MatMul", fresh, x)
    wide = shift.astype(mix.bank.dtype).reshape(-1, 1)
    y = draft.op("Add", y, draft.constant(wide, "shift"))
    target = constant_target(area, out)
    if target is None:
        raise Refused("no constant Reshape gives its shape")
    return as_shape(draft, y, out)


def _links(tensor: gs.Tensor, product: gs.Node) -> list[gs.Node]:
    """The views between a product and a value, first to last."""
    chain: list[gs.Node] = []
    while tensor.inputs[0] is not product:
        chain.append(tensor.inputs[0])
        tensor = tensor.inputs[0].inputs[0]
    return chain[::-1]


def _constant(draft: Draft, tensor: gs.Tensor) -> Array:
    array = draft.facts.array(tensor)
    if array is None:
        raise Refused(f"{tensor.name!r} is not constant")
    return array
