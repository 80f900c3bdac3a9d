"""Group and layer normalisation: the operators spelled out, and spelled-out ones as operators."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims, opsets
from surgeon.builders import parts
from surgeon.builders.fills import fill_of, holds
from surgeon.builders.linear import narrow
from surgeon.builders.own_constants import one_a_channel, operand_behind
from surgeon.builders.parts import Array
from surgeon.builders.standardising import (
    column_of,
    in_groups,
    layer_normalised,
    shaped_like,
    standardised,
    vector_of,
)
from surgeon.facts.fact import same_dims
from surgeon.facts.kinds import HALVES
from surgeon.links import maker_of
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_INSTANCES = frozenset({"float32", "float16"})  # what InstanceNormalization is had for everywhere


# ---------------------------------------------------------------------------------------- groups


def group_norm_as_instances(draft: Draft, match: Match) -> gs.Tensor:
    """GroupNormalization as InstanceNormalization of [N, groups, rest].

    Up to opset 20 scale and bias are one number a group, and go with the instances; from 21 on they
    are one a channel, and follow, and the normalisation itself is in float32 by default.
    """
    node = match.root
    x, scale, bias = node.inputs
    groups, eps = node.attrs.get("num_groups"), node.attrs.get("epsilon", 1e-5)
    if not isinstance(groups, int) or not isinstance(eps, float):
        raise Refused("its attributes are decided where the function is called")
    rank, dtype = parts.rank_of(draft, x), parts.numpy_dtype(draft, x)
    by_group = (node.domain or "") == opsets.LEGACY
    number = draft.facts.of(x).dtype
    grouped = in_groups(draft, x, groups)
    if not by_group and attribute_of(node, "stash_type") == onnx.TensorProto.FLOAT:
        if dtype == np.float64:
            raise Refused(
                "it normalises double precision in float32, which has no exact other form"
            )
        grouped, dtype = parts.cast(draft, grouped, onnx.TensorProto.FLOAT), np.dtype(np.float32)
    if dtype.name in _INSTANCES:
        ones, zeros = (vector_of(draft, v, groups, dtype) for v in (1, 0))
        factors = (scale, bias) if by_group else (ones, zeros)
        y = draft.op("InstanceNormalization", grouped, *factors, epsilon=eps)
    else:
        y = standardised(draft, grouped, [2], eps, dtype)[0]
        if by_group:
            y = _scaled(draft, y, scale, bias, 3)
    y = parts.cast(draft, shaped_like(draft, y, x), number)
    return y if by_group else _scaled(draft, y, scale, bias, rank)


def _scaled(draft: Draft, y: gs.Tensor, scale: gs.Tensor, bias: gs.Tensor, rank: int) -> gs.Tensor:
    if not holds(draft, scale, 1):
        y = draft.op("Mul", y, column_of(draft, scale, rank))
    return y if holds(draft, bias, 0) else draft.op("Add", y, column_of(draft, bias, rank))


def groups_as_group_norm(draft: Draft, match: Match) -> gs.Tensor:
    """Reshape, InstanceNormalization, Reshape back: one GroupNormalization."""
    facts = draft.facts
    instances = match.root.inputs[0].inputs[0]
    grouped = instances.inputs[0]
    x = grouped.inputs[0].inputs[0]
    shape, inside, out = (facts.of(t).shape for t in (x, grouped, match.root.outputs[0]))
    if shape is None or inside is None or out is None or len(shape) < 3 or len(inside) < 3:
        raise Refused("a shape is not known")
    channels, groups = shape[1], inside[1]
    if not isinstance(channels, int) or not isinstance(groups, int) or channels % groups:
        raise Refused(f"{groups} groups of {channels} channels")
    if dims.equal(shape[0], inside[0]) is not True or not same_dims(shape, out):
        raise Refused("it does not keep the batch, or does not give the shape back")
    if facts.of(x).dtype == onnx.TensorProto.DOUBLE:
        raise Refused("the operator normalises double precision in float32")
    if groups == 1:
        raise Refused(
            "one group is left as it is: TensorRT 10 computes GroupNormalization of it wrongly"
        )
    factors = [facts.array(t) for t in instances.inputs[1:3]]
    eps = attribute_of(instances, "epsilon")
    if facts.opset < opsets.CHANGED_MEANING["GroupNormalization"]:
        raise Refused("`GroupNormalization` needs opset 21; the older one is deprecated")
    made = []
    for array, name in zip(factors, ("scale", "bias"), strict=True):
        if array is None:
            raise Refused("its scale or bias is computed at run time")
        made.append(draft.constant(np.repeat(array, channels // groups), name))
    return draft.op("GroupNormalization", x, *made, epsilon=eps, num_groups=groups)


# ---------------------------------------------------------------------------------------- layers


def layer_norm_as_means(draft: Draft, match: Match) -> gs.Tensor:
    """LayerNormalization as means, a difference and a root; half precision is widened meanwhile."""
    node = match.root
    if len([t for t in node.outputs if not t.is_empty()]) > 1:
        raise Refused("its mean or deviation is read as well")
    x, scale = node.inputs[:2]
    bias = node.inputs[2] if len(node.inputs) > 2 and not node.inputs[2].is_empty() else None
    axis, eps = attribute_of(node, "axis"), attribute_of(node, "epsilon")
    axes = list(range(axis - parts.rank_of(draft, x) if axis >= 0 else axis, 0))
    dtype, number = parts.numpy_dtype(draft, x), draft.facts.of(x).dtype
    widened = number in HALVES and attribute_of(node, "stash_type") == onnx.TensorProto.FLOAT
    if widened:
        x, dtype = parts.cast(draft, x, onnx.TensorProto.FLOAT), np.dtype(np.float32)
    y = standardised(draft, x, axes, eps, dtype)[0]
    y = draft.op("Mul", parts.cast(draft, y, number), scale)
    return y if bias is None else draft.op("Add", y, bias)


def means_as_layer_norm(draft: Draft, match: Match) -> gs.Tensor:
    """(x - mean) / sqrt(mean of squares + epsilon) over the last axes, as LayerNormalization.

    Without axes the means are those of a global pool. A constant that the quotient has in place of
    1 follows as a factor.
    """
    values = match.values
    x = values["x"]
    assert x is not None
    if "a1" in values:
        axes = [_axes(draft, values[name]) for name in ("a1", "a2")]
    else:
        axes = [list(range(2, parts.rank_of(draft, x)))] * 2
    eps, count = _number(draft, values["eps"]), _last(draft, x, axes[0])
    if _last(draft, x, axes[1]) != count:
        raise Refused("its mean and its variance are over different axes")
    squares, difference = values["q"], values["d"]
    assert squares is not None
    assert difference is not None
    mean, product = (values.get(name) for name in ("m", "square"))
    if product is None:
        if not _is_square(draft, squares, difference):
            raise Refused("its differences are not squared")
    elif mean is None or not (_is_square(draft, squares, x) and _is_square(draft, product, mean)):
        raise Refused("it takes away no square of the mean from the mean of squares")
    if "least" in values and _number(draft, values["least"]) != 0:
        raise Refused("its variance is at least another number than 0")
    norm = _norm(draft, match, "LayerNormalization", count, eps)
    factor = values.get("g")
    if factor is None:
        return norm
    made: gs.Tensor = draft.op("Mul", norm, factor)
    return made


def summed_squares_as_layer_norm(draft: Draft, match: Match) -> gs.Tensor:
    """The same, where the variance is the sum of squares divided by how many they are."""
    values, x = match.values, match.values["x"]
    assert x is not None
    eps, count = _number(draft, values["eps"]), _last(draft, x, _axes(draft, values["a1"]))
    if _last(draft, x, _axes(draft, values["a2"])) != count:
        raise Refused("its mean and its variance are over different axes")
    sizes = [d for d in (draft.facts.of(x).shape or ())[-count:] if isinstance(d, int)]
    if _number(draft, values["n"]) != math.prod(sizes):
        raise Refused("what it divides the sum of squares by is not their number")
    return _norm(draft, match, "LayerNormalization", count, eps)


def mean_subtracted_once(draft: Draft, match: Match) -> gs.Tensor:
    """x * i + (b - m * i), where x - m is there: (x - m) * i + b."""
    x, mean, inverse = (match.values[name] for name in ("x", "m", "i"))
    assert x is not None
    assert mean is not None
    if not any(
        node.op == "Sub" and (node.domain or "") in STANDARD and node.inputs[0] is x
        for node in mean.outputs
    ):
        raise Refused("nobody takes the mean away from the value itself")
    y: gs.Tensor = draft.op("Mul", draft.op("Sub", x, mean), inverse)
    shift = match.values.get("b")
    if shift is not None:
        y = draft.op("Add", y, shift)
    return y


def rows_as_layer_norm(draft: Draft, match: Match) -> gs.Tensor:
    """BatchNormalization of [1, rows, size, 1] by each row's own mean and variance: of each row.

    So Keras spells LayerNormalization. It goes in front of the view that makes the rows.
    """
    values, facts = match.values, draft.facts
    x, view, rows = values["x"], values["t"], values["r"]
    assert x is not None
    assert view is not None
    assert rows is not None
    shape, inside = facts.of(x).shape, facts.of(rows).shape
    if shape is None or inside is None or len(shape) < 2 or len(inside) != 4:
        raise Refused("a shape is not known")
    if attribute_of(match.root, "training_mode") or len(match.root.outputs) > 1:
        raise Refused("it computes mean and variance itself")
    size = shape[-1]
    if not isinstance(size, int) or not size or (inside[0], *inside[2:]) != (1, size, 1):
        raise Refused("its rows are not those of the last axis")
    if _number(draft, values["n"]) != size:
        raise Refused("what it divides the sum of squares by is not their number")
    for name in ("a1", "a2", "a3"):
        if sorted(axis % 4 for axis in _axes(draft, values[name])) != [0, 2, 3]:
            raise Refused("its mean and its variance are not those of each row")
    factors = [_everywhere(draft, values[name]) for name in ("scale", "bias")]
    y = layer_normalised(draft, x, 1, None, None, attribute_of(match.root, "epsilon"))
    for op, number, neutral in zip(("Mul", "Add"), factors, (1, 0), strict=True):
        if number != neutral:
            y = draft.op(op, y, draft.constant(np.array(number, parts.numpy_dtype(draft, x)), op))
    made: gs.Tensor = draft.op("Reshape", y, view, **rows.inputs[0].attrs)
    return made


def _everywhere(draft: Draft, tensor: gs.Tensor | None) -> float:
    """The number that a value holds everywhere, as a constant spread to a computed size does."""
    facts = draft.facts
    array = None if tensor is None else facts.array(tensor)
    if array is None and tensor is not None:
        node = producer_of(tensor)
        spread = node is not None and node.op == "Expand"
        array = facts.array(node.inputs[0]) if node and spread else fill_of(facts, tensor)
    if array is None or not array.size or (array != array.reshape(-1)[0]).any():
        raise Refused("its scale or its bias is not one number everywhere")
    if tensor is not None and not isinstance(tensor, gs.Constant):
        draft.premises.append(tensor)
    return float(array.reshape(-1)[0])


def squares_as_rms_norm(draft: Draft, match: Match) -> gs.Tensor:
    """x / sqrt(mean of squares + epsilon) over the last axes, as RMSNormalization."""
    values = match.values
    x, squares = values["x"], values["q"]
    assert x is not None
    assert squares is not None
    eps, count = _number(draft, values["eps"]), _last(draft, x, _axes(draft, values["axes"]))
    if "count" in values:
        sizes = [d for d in (draft.facts.of(x).shape or ())[-count:] if isinstance(d, int)]
        if _number(draft, values["count"]) != math.prod(sizes):
            raise Refused("what it divides the sum of squares by is not their number")
    elif not _is_square(draft, squares, x):
        raise Refused("what it takes the mean of is not the square of what it divides")
    return _norm(draft, match, "RMSNormalization", count, eps)


def casts_into_rms_norm(draft: Draft, match: Match) -> gs.Tensor:
    """An RMSNormalization in float32 of what was halves and is to be halves again."""
    x, wide = match.values["x"], match.values["n"]
    assert x is not None
    assert wide is not None
    norm = wide.inputs[0]
    scale = _parameter(draft, norm, 1)
    if scale is None or (scale != 1).any():
        raise Refused("it scales before it gives halves, and not behind")
    if attribute_of(norm, "stash_type") != onnx.TensorProto.FLOAT:
        raise Refused("it does not compute in float32")
    made = draft.constant(np.ones(scale.shape, np.float16), "scale")
    result: gs.Tensor = draft.op("RMSNormalization", x, made, **norm.attrs)
    return result


def _norm(draft: Draft, match: Match, operator: str, count: int, eps: float) -> gs.Tensor:
    """The operator over the last axes, with a scale that changes nothing."""
    facts, x = draft.facts, match.values["x"]
    assert x is not None
    shape = facts.of(x).shape
    if shape is None or not same_dims(shape, facts.of(match.root.outputs[0]).shape):
        raise Refused("a number of it has a shape that makes the result larger")
    if facts.of(x).dtype == onnx.TensorProto.DOUBLE:
        raise Refused("the operator normalises double precision in float32")
    sizes = [d for d in shape[-count:] if isinstance(d, int)]
    scale = draft.constant(np.ones(sizes, parts.numpy_dtype(draft, x)), "scale")
    result: gs.Tensor = draft.op(operator, x, scale, axis=-count, epsilon=eps)
    return result


def _is_square(draft: Draft, square: gs.Tensor, x: gs.Tensor) -> bool:
    node = maker_of(square)
    if node is None or (node.domain or "") not in STANDARD or node.op not in ("Mul", "Pow"):
        return False
    if node.inputs[0] is not x:
        return False
    if node.op == "Mul":
        return node.inputs[1] is x
    return _number(draft, node.inputs[1]) == 2


def _last(draft: Draft, x: gs.Tensor, axes: Sequence[int]) -> int:
    """How many axes there are, which must be the last ones and of known sizes."""
    shape = draft.facts.of(x).shape
    if shape is None:
        raise Refused("the shape of its input is not known")
    if not shape:
        raise Refused("it is a single number")
    places, count = sorted(axis % len(shape) for axis in axes), len(axes)
    if places != list(range(len(shape) - count, len(shape))) or not places:
        raise Refused(f"its axes {list(axes)} are not the last ones")
    if not all(isinstance(d, int) for d in shape[-count:]):
        raise Refused("a size that it normalises over is known at run time only")
    return count


def _number(draft: Draft, tensor: gs.Tensor | None) -> float:
    array = None if tensor is None else draft.facts.array(tensor)
    if array is None or array.size != 1:
        raise Refused("a number of it is computed at run time")
    return float(array.reshape(-1)[0])


def _axes(draft: Draft, tensor: gs.Tensor | None) -> list[int]:
    array = None if tensor is None else draft.facts.array(tensor)
    if array is None:
        raise Refused("its axes are computed at run time")
    return [int(n) for n in array.reshape(-1)]


# -------------------------------------------------------------------------- scale and bias behind


def scale_into_norm(draft: Draft, match: Match) -> gs.Tensor:
    """A factor behind a normalisation goes into its scale and bias."""
    norm, factor = _behind(draft, match)
    scale, bias = (_parameter(draft, norm, i) for i in (1, 2))
    assert scale is not None
    wide = factor.astype(np.float64)
    return _again(draft, norm, [scale * wide] if bias is None else [scale * wide, bias * wide])


def shift_into_norm(draft: Draft, match: Match) -> gs.Tensor:
    """A summand behind a normalisation goes into its bias."""
    norm, summand = _behind(draft, match)
    scale, bias = (_parameter(draft, norm, i) for i in (1, 2))
    assert scale is not None
    wide = summand.astype(np.float64)
    return _again(draft, norm, [scale, wide if bias is None else bias + wide])


def _again(draft: Draft, norm: gs.Node, parameters: Sequence[Array]) -> gs.Tensor:
    """The normalisation with these parameters, which its own type has to hold."""
    scale, names = _parameter(draft, norm, 1), ("scale", "bias")
    assert scale is not None
    made = [draft.constant(narrow(p, scale), n) for p, n in zip(parameters, names, strict=False)]
    return draft.op(norm.op, norm.inputs[0], *made, **norm.attrs)


def _parameter(draft: Draft, norm: gs.Node, index: int) -> Array | None:
    if len(norm.inputs) <= index or norm.inputs[index].is_empty():
        return None
    array = draft.facts.array(norm.inputs[index])
    if array is None:
        raise Refused("its scale or bias is computed at run time")
    return array


def _behind(draft: Draft, match: Match) -> tuple[gs.Node, Array]:
    """The normalisation, and the constant behind it in the form of its scale."""
    normed, other = match.values["n"], match.values["c"]
    assert normed is not None
    assert other is not None
    wide = operand_behind(draft, normed, other, match.root.outputs[0], "what is behind it")
    norm = normed.inputs[0]
    if norm.op in ("LayerNormalization", "RMSNormalization"):
        scale = _parameter(draft, norm, 1)
        assert scale is not None
        lead = wide.ndim - scale.ndim
        if any(n != 1 for n in wide.shape[:lead]):
            raise Refused("what is behind it differs along axes that it does not normalise over")
        inner: Array = wide.reshape(wide.shape[lead:])
        if any(n not in (1, m) for n, m in zip(inner.shape, scale.shape, strict=True)):
            raise Refused("what is behind it differs along axes along which its scale does not")
        return norm, np.broadcast_to(inner, scale.shape)
    shape = draft.facts.of(normed).shape
    channels = None if shape is None else shape[1]
    if not isinstance(channels, int):
        raise Refused("how many channels it has is not known")
    return norm, np.broadcast_to(one_a_channel(wide, "what is behind it"), channels)
