"""BatchNormalization folded into what stands before it.

y = (x - mean) / sqrt(var + epsilon) * scale + bias (ONNX BatchNormalization, inference), for each
channel y = x * factor + shift.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.affine import rounds
from surgeon.builders.dynamic import mixture
from surgeon.builders.factors import lone_producer, scaled_inputs
from surgeon.builders.known_norms import see_no_norm
from surgeon.builders.linear import FLOATS, bias_of, narrow, scaled_outputs
from surgeon.builders.own_constants import one_a_channel, operand_behind, own_weight
from surgeon.facts.fact import Array
from surgeon.match import Match, attribute_of
from surgeon.opsets import trains_by_outputs
from surgeon.rewrite import Draft, Refused

_ROW_VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})  # elements keep their order
_UNPADDED = (None, "NOTSET", "VALID", b"NOTSET", b"VALID")
_NOT_TRAINING = 7  # the first opset without a word for training


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
    with np.errstate(all="ignore"):
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
    wide = scaled_outputs(conv, weight, factor)
    return draft.op(
        conv.op,
        conv.inputs[0],
        draft.constant(narrow(wide, weight), "weight"),
        draft.constant(narrow(old * factor + shift, weight), "bias"),
        **conv.attrs,
    )


def batch_norm_into_rows(draft: Draft, match: Match) -> gs.Tensor:
    """BatchNormalization of rows that Gemm, or MatMul and Add, computed, maybe with more axes."""
    root = match.root
    factor, shift = factor_and_shift(draft, root)
    views: list[gs.Node] = []
    node = lone_producer(draft, root.inputs[0])
    while node.op in _ROW_VIEWS:
        for tensor in (node.inputs[0], node.outputs[0]):
            shape = draft.facts.of(tensor).shape
            if not shape or shape[-1] != factor.size:
                raise Refused(f"a {node.op} in front does not keep its channels")
        views.append(node)
        node = lone_producer(draft, node.inputs[0])
    if node.op == "Gemm":
        y = _gemm_times(draft, node, factor, shift)
    else:
        y = _rows_times(draft, node, factor, shift)
    for view in reversed(views):
        y = draft.op(view.op, y, *view.inputs[1:], **view.attrs)
    return y


def batch_norm_before_linear(draft: Draft, match: Match) -> gs.Tensor:
    """y = Conv or Gemm of BatchNormalization (x), as one of x.

    W (f x + s) + b = (W f) x + (W s + b), where no pads put zeros beside what is shifted.
    """
    norm: gs.Node = match.root.inputs[0].inputs[0]
    return _taken_in(draft, match.root, norm.inputs[0], *factor_and_shift(draft, norm))


def shift_before_linear(draft: Draft, match: Match) -> gs.Tensor:
    """y = Conv or Gemm of x + c or x - c, with what the weight makes of c in the bias."""
    root = match.root
    summed: gs.Node = root.inputs[0].inputs[0]
    see_no_norm(draft, summed)
    data = 1 if draft.facts.array(summed.inputs[0]) is not None else 0
    x, constant = summed.inputs[data], summed.inputs[1 - data]
    if draft.facts.of(x).dtype not in FLOATS or (summed.op == "Sub" and data):
        raise Refused("it is no float, or it is taken off a constant")
    wide = operand_behind(draft, x, constant, summed.outputs[0], "its summand")
    shift = one_a_channel(wide, "its summand").astype(np.float64)
    if not np.isfinite(shift).all():
        raise Refused("its summand is not finite")
    if rounds(wide):
        raise Refused("its summand is so large that what it is added to is rounded")
    weight = own_weight(draft, root)
    if root.op == "Conv":
        channels = weight.shape[1] * int(attribute_of(root, "group") or 1)
    elif attribute_of(root, "transA"):
        raise Refused("its input is transposed")
    else:
        channels = weight.shape[1 if attribute_of(root, "transB") else 0]
    shift = np.broadcast_to(-shift if summed.op == "Sub" else shift, channels)
    return _taken_in(draft, root, x, np.ones(channels), shift)


def _taken_in(draft: Draft, root: gs.Node, x: gs.Tensor, factor: Array, shift: Array) -> gs.Tensor:
    """A Conv or Gemm of factor * x + shift, a number a channel each, as one of x."""
    weight, bias = own_weight(draft, root), bias_of(draft, root)
    attributes = dict(root.attrs)
    scale, axes = 1.0, tuple(range(1, weight.ndim))
    if root.op == "Gemm":
        if bias is not None:
            bias = bias.astype(np.float64) * attribute_of(root, "beta")
        scale, axes = float(attribute_of(root, "alpha")), (int(attribute_of(root, "transB")),)
        attributes["beta"] = 1.0
    elif any(attribute_of(root, "pads") or ()) or attribute_of(root, "auto_pad") not in _UNPADDED:
        raise Refused("its pads put zeros beside what the shift moves")
    aside = [1] * (weight.ndim - 2)
    scaled, moved = (
        scaled_inputs(root, weight, number.reshape(1, -1, *aside)) for number in (factor, shift)
    )
    total = scale * moved.sum(axis=axes) + (0.0 if bias is None else bias.astype(np.float64))
    operands = (narrow(scaled, weight), narrow(total, weight))
    constants = [draft.constant(a, n) for a, n in zip(operands, ("weight", "bias"), strict=True)]
    y: gs.Tensor = draft.op(root.op, x, *constants, **attributes)
    return y


def _gemm_times(draft: Draft, node: gs.Node, factor: Array, shift: Array) -> gs.Tensor:
    """Gemm with each column times its factor, plus its shift."""
    weight, bias = own_weight(draft, node), bias_of(draft, node)
    old = 0.0 if bias is None else bias.astype(np.float64) * attribute_of(node, "beta")
    wide = scaled_outputs(node, weight, factor)
    operands = (narrow(wide, weight), narrow(old * factor + shift, weight))
    constants = [draft.constant(a, n) for a, n in zip(operands, ("weight", "bias"), strict=True)]
    y: gs.Tensor = draft.op("Gemm", node.inputs[0], *constants, **{**node.attrs, "beta": 1.0})
    return y


def _rows_times(draft: Draft, node: gs.Node, factor: Array, shift: Array) -> gs.Tensor:
    """MatMul, and an Add behind it, with each column times its factor, plus its shift."""
    if node.op == "Add":
        data = int(draft.facts.array(node.inputs[0]) is not None)
        summand = _constant(draft, node.inputs[1 - data]).astype(np.float64)
        if any(n != 1 for n in summand.shape[:-1]) or summand.shape[-1:] not in (
            (),
            (1,),
            factor.shape,
        ):
            raise Refused("its summand is more than one number a channel")
        shift = shift + summand.reshape(-1) * factor
        node = lone_producer(draft, node.inputs[data])
    if node.op != "MatMul":
        raise Refused(f"{node.op} has no weight that takes its factor")
    weight = own_weight(draft, node)
    if weight.ndim != 2 or weight.shape[1] != factor.size:
        raise Refused("its channels are not the columns of a weight")
    scaled = draft.constant(narrow(weight * factor, weight), "weight")
    product = draft.op("MatMul", node.inputs[0], scaled)
    y: gs.Tensor = draft.op("Add", product, draft.constant(narrow(shift, weight), "shift"))
    return y


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
        draft.constant(narrow(wide, weight), "kernels"),
    ]
    if has_bias or sums_to_one:
        operands.append(draft.constant(narrow(bias, weight), "biases"))
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
    """BatchNormalization behind a product of x and weights = attention @ bank, and a view of it.

    The factor goes into the bank's columns. The product is `MatMul (weights, x)` behind a Reshape,
    channels as rows, or `MatMul (x, weights)` behind a Transpose, channels as columns; a bias of
    attention @ bank may be added to it. The shift becomes one Add, or goes into the bias' bank
    where the attentions are proven to sum to 1.
    """
    facts, back = draft.facts, match.root.inputs[0].inputs[0]
    factor, shift = factor_and_shift(draft, match.root)
    product, bias = match.values["m"], match.values.get("v")
    assert product is not None
    node = product.inputs[0]
    rows = back.op == "Reshape"
    weights, x = node.inputs if rows else reversed(node.inputs)
    axis = -2 if rows else -1
    made, out = facts.of(product).shape, facts.of(back.outputs[0]).shape
    if made is None or out is None:
        raise Refused("the shape of the product is not known")
    if rows:
        kept = len(made) == 3 and dims.equal(out[0], made[0]) is True
    else:
        perm = attribute_of(back, "perm") or []
        kept = len(made) > 2 and list(perm[:2]) == [0, len(made) - 1]
    if not kept or out[1] != factor.size or made[axis] != factor.size:
        raise Refused("its channels are not those of the weights")
    scaled = _scaled(draft, weights, factor, axis)
    y: gs.Tensor = draft.op("MatMul", *((scaled, x) if rows else (x, scaled)))
    whole = None if bias is None else _shifted(draft, bias, factor, shift, axis)
    if whole is not None:
        y = draft.op("Add", y, whole)
    else:
        if bias is not None:
            y = draft.op("Add", y, _scaled(draft, bias, factor, axis))
        array = shift.astype(onnx.helper.tensor_dtype_to_np_dtype(facts.of(product).dtype))
        y = draft.op("Add", y, draft.constant(array.reshape(-1, 1) if rows else array, "shift"))
    return draft.op(back.op, y, *back.inputs[1:], **back.attrs)


def _shifted(
    draft: Draft, bias: gs.Tensor, factor: Array, shift: Array, axis: int
) -> gs.Tensor | None:
    """attention @ (bank * factor + shift), where the attentions sum to 1; else None."""
    attention = mixture(bias, draft.facts).attention
    fact = draft.facts.of(attention)
    if fact.shape is None or fact.unit_axis != len(fact.shape) - 1:
        return None
    return _scaled(draft, bias, factor, axis, shift)


def _scaled(
    draft: Draft, tensor: gs.Tensor, factor: Array, axis: int, shift: Array | None = None
) -> gs.Tensor:
    """A mixture (attention @ bank behind views) with each channel times its factor, plus shift.

    Args:
        draft: Where the nodes go.
        tensor: The mixture.
        factor: One number a channel.
        axis: Where the channels are, counted from the end.
        shift: One number a channel, added to every column of the bank.

    Raises:
        Refused: It is no mixture, or its channels share entries of the bank.
    """
    mix = mixture(tensor, draft.facts)
    _, lead, column = mix.elements
    if lead.shape[axis] != factor.size:
        raise Refused("its channels are not those of the weights")
    shape = [1] * lead.ndim
    shape[axis] = factor.size
    bank = mix.bank.astype(np.float64)
    for values, apply in ((factor, np.multiply), (shift, np.add)):
        if values is None:
            continue
        wanted = np.broadcast_to(values.reshape(shape), lead.shape)
        by_entry = np.zeros((bank.shape[0], bank.shape[2]))
        by_entry[lead, column] = wanted
        if (by_entry[lead, column] != wanted).any():
            raise Refused("several of its channels share entries of the bank")
        bank = apply(bank, by_entry[:, None, :])
    old = draft.facts.array(mix.product.inputs[1])
    assert old is not None
    fresh: gs.Tensor = draft.op(
        "MatMul",
        mix.product.inputs[0],
        draft.constant(bank.astype(old.dtype).reshape(old.shape), "bank"),
    )
    for link in _links(tensor, mix.product):
        fresh = draft.op(link.op, fresh, *link.inputs[1:], **link.attrs)
    return fresh


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


def statistics_of_channels(draft: Draft, match: Match) -> gs.Tensor:
    """A BatchNormalization of `spatial = 0`, whose statistics are of channels all the same."""
    node, facts = match.root, draft.facts
    named = [value.name for value in node.outputs]
    trains = facts.opset < _NOT_TRAINING or trains_by_outputs(node.op, facts.opset, named)
    if node.attrs.get("spatial", 1) != 0 or trains:
        raise Refused("it says of its statistics that they are of channels, or may train")
    if any(facts.of(tensor).rank != 1 for tensor in node.inputs[1:5]):
        raise Refused("its statistics are of more than channels")
    kept = {name: value for name, value in node.attrs.items() if name != "spatial"}
    y: gs.Tensor = draft.op("BatchNormalization", *node.inputs, **kept)
    return y
