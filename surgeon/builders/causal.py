"""Causal convolutions of each channel by itself, and what they have to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import LARGEST, TYPE, Bench, Size, operand
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_SWISH = ("silu", "swish")


def causal_conv_as_conv(draft: Draft, match: Match) -> Any:
    """CausalConvWithState: what was before in front, a Conv of each channel, an activation."""
    node, c = match.root, Bench(draft)
    bias, before = operand(node, 2), operand(node, 3)
    activation = attribute_of(node, "activation") or "none"
    y, whole, kept = causal_conv(c, node.inputs[0], node.inputs[1], bias, before, activation)
    if len(node.outputs) < 2 or not parts.is_read(draft, node.outputs[1]):
        return y, y
    return y, last_places(c, whole, kept)


def causal_conv(
    c: Bench,
    x: gs.Tensor,
    weight: gs.Tensor,
    bias: gs.Tensor | None,
    before: gs.Tensor | None,
    activation: str,
    dilation: int = 1,
) -> tuple[gs.Tensor, gs.Tensor, int]:
    """The convolution; what it is of, [batch, channels, kept + length]; and how many it keeps.

    Args:
        c: Where the nodes go.
        x: [batch, channels, length].
        weight: [channels, 1, width], of known sizes.
        bias: [channels].
        before: [batch, channels, (width - 1) * dilation]; None for zeros.
        activation: none, silu or swish.
        dilation: How far apart the elements of the kernel are.

    Raises:
        Refused: The weight's shape is not known, or the activation.
    """
    shape = c.shape(weight)
    if shape is None or len(shape) != 3 or not all(isinstance(n, int) for n in shape):
        raise Refused("the shape of its weight is not known")
    if activation != "none" and activation not in _SWISH:
        raise Refused(f"no function is known for its activation {activation!r}")
    channels, _, width = (int(str(n)) for n in shape)
    kept = (width - 1) * dilation
    if before is None:
        before = _zeros(c, [c.size(x, 0), channels, kept], c.dtype(x))
    whole = x if kept == 0 else c.concat([c.cast(before, c.dtype(x)), x], 2)
    apart = {"dilations": [dilation]} if dilation != 1 else {}
    dtype, operands = c.dtype(x), [whole, weight, bias]
    if dtype == TYPE.BFLOAT16:  # which Conv takes from opset 22 on, and onnxruntime nowhere on CPUs
        operands = [None if t is None else c.cast(t, TYPE.FLOAT) for t in operands]
    y = c.op("Conv", *operands, group=channels, kernel_shape=[width], **apart)
    if activation in _SWISH:
        y = c.op("Mul", y, c.op("Sigmoid", y))
    return c.cast(y, dtype), whole, kept


def last_places(c: Bench, whole: gs.Tensor, kept: int) -> gs.Tensor:
    """The last `kept` of the last of three axes."""
    if kept:
        return c.slice(whole, 2, -kept, LARGEST)
    return _zeros(c, [*c.sizes(whole)[:2], 0], c.dtype(whole))


def _zeros(c: Bench, sizes: Sequence[Size | int], dtype: int) -> gs.Tensor:
    """Zeros; of bfloat16 too, of which ConstantOfShape makes none below opset 20."""
    return c.cast(c.filled(sizes, 0, TYPE.FLOAT if dtype == TYPE.BFLOAT16 else dtype), dtype)
