"""What stands beside Conv, ConvTranspose, Gemm and MatMul, put into them.

Each of them is y = W x + b for each output channel (axis 1): a summand of the channel goes into b.
Factors: see `factors`; zeros around x: `padded`.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.affine import rounds
from surgeon.builders.cleaning import order_of
from surgeon.builders.own_constants import one_a_channel, operand_behind, own_weight
from surgeon.dims import Dim
from surgeon.facts.fact import Array, same_dims
from surgeon.facts.question import Shape
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

FLOATS = frozenset({onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE})


def shift_into_linear(draft: Draft, match: Match) -> gs.Tensor:
    """y = Conv (x, w, b) + c, or Conv (x, w, b) - c, with one number a channel."""
    node, number = _parts(draft, match)
    weight, bias = array_of(draft, node, 1), bias_of(draft, node)
    if weight is None:
        raise Refused("its weight is computed at run time")
    if match.root.op == "Sub":
        number = -number
    old = 0.0 if bias is None else bias.astype(np.float64)
    attributes = dict(node.attrs)
    if node.op == "Gemm":
        old = old * float(attribute_of(node, "beta"))
        attributes["beta"] = 1.0
    total = np.broadcast_to(old + number, channels_of(node, weight))
    made = draft.constant(narrow(total, weight), "bias")
    return draft.op(node.op, node.inputs[0], node.inputs[1], made, **attributes)


def _parts(draft: Draft, match: Match) -> tuple[gs.Node, Array]:
    """The linear node, and the constant as [1] or [channels] in float64.

    Raises:
        Refused: The constant is more than one number a channel, or makes the result larger.
    """
    facts, root = draft.facts, match.root
    made, other = match.values["p"], match.values["c"]
    assert made is not None
    assert other is not None
    wide = operand_behind(draft, made, other, root.outputs[0], "its constant")
    if facts.of(made).dtype not in FLOATS:
        raise Refused("it is no float")
    if rounds(wide):
        raise Refused("its constant is so large that what it is added to is rounded")
    return made.inputs[0], one_a_channel(wide, "its constant").astype(np.float64)


def channels_of(node: gs.Node, weight: Array) -> int:
    """How many output channels a Conv, ConvTranspose or Gemm has."""
    if node.op == "Gemm":
        return int(weight.shape[0 if attribute_of(node, "transB") else 1])
    if node.op == "Conv":
        return int(weight.shape[0])
    return int(weight.shape[1]) * int(attribute_of(node, "group") or 1)


def scaled_outputs(node: gs.Node, weight: Array, factor: Array) -> Array:
    """The weight of a Conv, ConvTranspose or Gemm, each output channel times its factor: float64.

    Args:
        node: The operator.
        weight: Its weight, as it stands.
        factor: One number for each output channel.
    """
    wide: Array = weight.astype(np.float64)
    rest = [1] * (weight.ndim - 1)
    if node.op == "Gemm":
        made: Array = wide * (factor[:, None] if attribute_of(node, "transB") else factor)
    elif node.op == "Conv":
        made = wide * factor.reshape(-1, *rest)
    else:  # ConvTranspose: [Cin, Cout / group, ...], output channels by group
        group = int(attribute_of(node, "group") or 1)
        split = wide.reshape(group, -1, *weight.shape[1:])
        made = (split * factor.reshape(group, 1, -1, *rest[1:])).reshape(weight.shape)
    return made


def array_of(draft: Draft, node: gs.Node, index: int) -> Array | None:
    """A constant operand; None where it is computed or left out."""
    if len(node.inputs) <= index or node.inputs[index].is_empty():
        return None
    return draft.facts.array(node.inputs[index])


def bias_of(draft: Draft, node: gs.Node, *, whole: bool = False) -> Array | None:
    """The bias as [1] or [channels], or `whole` as it stands; None where there is none.

    Raises:
        Refused: It is computed at run time, or is more than one number a channel.
    """
    if len(node.inputs) <= 2 or node.inputs[2].is_empty():
        return None
    bias = array_of(draft, node, 2)
    if bias is None:
        raise Refused("its bias is computed at run time")
    if whole:
        return bias
    if any(n != 1 for n in bias.shape[:-1]):
        raise Refused("its bias is more than one number a channel")
    return bias.reshape(-1)


def narrow(array: Any, weight: Array) -> Array:
    """The numbers in the weight's dtype.

    What is as good as nothing beside the others may lose digits.

    Raises:
        Refused: They are not finite in it, or too small for it; or it is no float.
    """
    try:
        info = ml_dtypes.finfo(weight.dtype)  # type: ignore[no-untyped-call]
    except (TypeError, ValueError):
        raise Refused(f"its constants are {weight.dtype.name}, which is no float") from None
    with np.errstate(all="ignore"):
        narrow = np.asarray(array).astype(weight.dtype)
    if not np.isfinite(narrow).all():
        raise Refused(f"its constants are not finite in {weight.dtype.name}")
    wide = np.abs(array)
    small = (wide < info.tiny) & (wide != 0)
    if small.any() and wide.max() < info.tiny / info.eps:
        raise Refused(f"its constants are too small for {weight.dtype.name}")
    return narrow


# ------------------------------------------------------------------------------------ MatMul, Add


def matmul_as_gemm(draft: Draft, match: Match) -> gs.Tensor:
    """y = x @ w + b of two matrices, with a b that does not make the result larger."""
    facts, root = draft.facts, match.root
    product, b = match.values["m"], match.values["b"]
    assert product is not None
    assert b is not None
    node: gs.Node = product.inputs[0]
    left, right = node.inputs[:2]
    if facts.of(left).rank != 2 or facts.of(right).rank != 2:
        raise Refused("its operands are not provably matrices")
    if facts.of(product).dtype not in FLOATS:
        raise Refused("it is no float")
    if not same_dims(facts.of(product).shape, facts.of(root.outputs[0]).shape):
        raise Refused("what is added may make the result larger")
    if facts.of(b).rank not in (0, 1, 2):
        raise Refused("what is added is no number, vector or matrix")
    constant = facts.array(b)  # a mask is large, too, but not everywhere
    if constant is not None and constant.size and rounds(np.abs(constant).min()):
        raise Refused("its summand is so large that what it is added to is rounded")
    attributes = {**node.attrs, "beta": 1.0} if node.op == "Gemm" else {}
    return draft.op("Gemm", left, right, b, **attributes)


def transposed_into_gemm(draft: Draft, match: Match) -> gs.Tensor:
    """y = Gemm that takes an operand turned, or no longer does, in place of a Transpose of it."""
    node, turned = match.root, match.values["t"]
    assert turned is not None
    transpose: gs.Node = turned.inputs[0]
    if order_of(transpose, 2) != [1, 0]:
        raise Refused("its Transpose leaves the axes as they are")
    key = "transA" if node.inputs[0] is turned else "transB"
    attributes = {name: value for name, value in node.attrs.items() if name != key}
    if not attribute_of(node, key):
        attributes[key] = 1
    operands = [transpose.inputs[0] if t is turned else t for t in node.inputs]
    return draft.op("Gemm", *operands, **attributes)


def gemm_onto_gemm(draft: Draft, match: Match) -> gs.Tensor:
    """The sum of two Gemms as one that begins with the other, which takes the biases of both."""
    (_, first, second), facts = match.nodes[:3], draft.facts
    shapes = [facts.of(t).shape for t in (match.root.outputs[0], first.outputs[0])]
    if not same_dims(*shapes) or not same_dims(shapes[0], facts.of(second.outputs[0]).shape):
        raise Refused("one of them makes the result of the other larger")
    total: Array | None = None
    for node in (first, second):
        bias = bias_of(draft, node)
        if bias is not None:
            wide = bias.astype(np.float64) * float(attribute_of(node, "beta"))
            total = wide if total is None else total + wide
    operands = []
    if total is not None:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(facts.of(first.outputs[0]).dtype)
        operands = [draft.constant(narrow(total, np.empty(0, dtype)), "bias")]
    inner = draft.op("Gemm", *second.inputs[:2], *operands, **(second.attrs | {"beta": 1.0}))
    y: gs.Tensor = draft.op("Gemm", *first.inputs[:2], inner, **(first.attrs | {"beta": 1.0}))
    return y


def gemm_of_rows(draft: Draft, match: Match) -> gs.Tensor:
    """y = a Gemm of the rows of x, between views that make a matrix and undo it, as MatMul, Add.

    Where the second view is to a shape that is computed, one of the views may do more, and stays:
    its other axes are copied then.
    """
    facts, x, weight = draft.facts, match.values["x"], match.values["w"]
    gemm: gs.Node = match.root.inputs[0].inputs[0]
    target = match.values["t"]
    assert x is not None
    assert weight is not None
    assert target is not None
    start, rows, made, out = (
        facts.of(t).shape for t in (x, gemm.inputs[0], gemm.outputs[0], match.root.outputs[0])
    )
    if start is None or rows is None or made is None or out is None:
        raise Refused("a shape is not known")
    computed = facts.array(target) is None
    before = after = None
    if start[:-1] != out[:-1] or start[-1:] != rows[1:] or out[-1:] != made[1:]:
        if computed and out[-1:] == made[1:]:
            before = _last_axes(start, out[:-1], rows[-1])
        elif computed and start[-1:] == rows[1:]:
            after = _last_axes(out, start[:-1], made[-1])
        if not before and not after:
            raise Refused("its views do more than make rows and part them again")
    if attribute_of(gemm, "transA") or attribute_of(gemm, "alpha") != 1:
        raise Refused("its Gemm has a factor, or takes columns")
    if attribute_of(gemm, "transB"):
        weight = draft.constant(np.ascontiguousarray(own_weight(draft, gemm).T), "weight")
    if before:
        merged = [*[0] * (len(out) - 1), math.prod(before)]
        x = draft.op("Reshape", x, draft.constant(merged, "shape"))
    y: gs.Tensor = draft.op("MatMul", x, weight)
    bias = match.values.get("b")
    if bias is not None:
        if facts.of(bias).rank not in (0, 1) or attribute_of(gemm, "beta") != 1:
            raise Refused("its summand is no vector, or has a factor")
        y = draft.op("Add", y, bias)
    if after:
        parted = [*[0] * (len(start) - 1), *after]
        y = draft.op("Reshape", y, draft.constant(parted, "shape"))
    return y


def _last_axes(shape: Shape, first: Shape, size: Dim) -> list[int] | None:
    """The sizes behind these first ones, where they are known and their product is `size`."""
    last = [d for d in shape[len(first) :] if isinstance(d, int)]
    whole = len(first) + len(last) == len(shape) and shape[: len(first)] == first
    return last if whole and last and math.prod(last) == size != 0 else None
