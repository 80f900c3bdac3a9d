"""DFT and STFT as products with constant waves."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_LARGEST = 1 << 22  # elements of the waves
_WITHOUT_PARTS = 2  # the rank of batch and time, as PyTorch writes real signals
_FIRST_WITH_AXIS = 20  # the opset from which a DFT reads its axis, and the last one is usual


def frames_as_conv(draft: Draft, match: Match) -> gs.Tensor:
    """STFT of a real signal: a convolution with a wave of each frequency, under the window."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    step = _number(c, node, 1)
    window = operand(node, 2)
    shape = c.shape(x)
    if shape is None or not (len(shape) == _WITHOUT_PARTS or tuple(shape[2:]) == (1,)):
        raise Refused("its signal is not known to be of real numbers")
    under = None if window is None else draft.facts.array(window)
    if window is not None and under is None:
        raise Refused("its window is computed")
    if under is not None and under.ndim != 1:
        raise Refused("its window is no line")
    length = _number(c, node, 3, None if under is None else under.size)
    if step is None or length is None or length < 1 or (under is not None and under.size != length):
        raise Refused("its step or its length is computed, or other than its window's")
    waves = _waves(length, length, onesided=attribute_of(node, "onesided") != 0)
    if under is not None:
        waves = waves * under.astype(np.float64)[:, None, None]
    bins = waves.shape[1]
    kernel = waves.transpose(1, 2, 0).reshape(2 * bins, 1, length)
    made = c.op(
        "Conv",
        c.unsqueeze(x, [1]) if len(shape) == _WITHOUT_PARTS else c.permute(x, [0, 2, 1]),
        _constant(draft, x, kernel),
        kernel_shape=[length],
        strides=[step],
    )
    target = c.ints([0, 0, bins, 2], "target")
    y: gs.Tensor = c.op("Reshape", c.permute(made, [0, 2, 1]), target)
    return y


def transform_as_product(draft: Draft, match: Match) -> gs.Tensor:
    """DFT along a known length: the product with a wave of each frequency."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    rank, shape = c.rank(x), c.shape(x)
    given = operand(node, 2)
    named = attribute_of(node, "axis") if given is None else _number(c, node, 2)
    if given is not None and named is None:
        raise Refused("its axis is computed")
    usual = -2 if c.opset >= _FIRST_WITH_AXIS else 1
    axis = c.axis(usual if named is None else int(named), rank)
    if shape is None or axis == rank - 1 or shape[-1] not in (1, 2):
        raise Refused("its shape is not known")
    length, last = shape[axis], shape[-1]
    if not isinstance(length, int) or not isinstance(last, int) or length < 1:
        raise Refused("its length is known at run time only")
    count = _number(c, node, 1, length)
    inverse, onesided = bool(attribute_of(node, "inverse")), bool(attribute_of(node, "onesided"))
    if count is None or count < 1 or (inverse and onesided):
        raise Refused("its length is computed, or half of a spectrum is turned back")
    waves = _waves(length, count, onesided=onesided)
    if inverse:
        waves = waves * np.array([1, -1]) / count
    if last == 2:
        turned = np.stack([-waves[..., 1], waves[..., 0]], axis=-1)
        waves = np.stack([waves, turned], axis=1).reshape(2 * length, -1, 2)
    bins = waves.shape[1]
    order = [n for n in range(rank - 1) if n != axis] + [axis, rank - 1]
    front = [0] * (rank - 2)
    flat = c.op("Reshape", c.permute(x, order), c.ints([*front, last * length], "flat"))
    product = c.op("MatMul", flat, _constant(draft, x, waves.reshape(last * length, 2 * bins)))
    made = c.op("Reshape", product, c.ints([*front, bins, 2], "target"))
    return c.permute(made, [order.index(n) for n in range(rank)])


def _waves(length: int, count: int, *, onesided: bool) -> parts.Array:
    """[length, bins, 2]: what each element gives to the real and imaginary part of each bin."""
    bins = count // 2 + 1 if onesided else count
    if length * bins > _LARGEST:
        raise Refused("its waves would be very large")
    turns = np.outer(np.arange(length), np.arange(bins)) % count * (2 * np.pi / count)
    waves = np.stack([np.cos(turns), -np.sin(turns)], axis=-1)
    waves[count:] = 0  # what is longer than the transform is cut off
    return waves


def _constant(draft: Draft, x: gs.Tensor, array: parts.Array) -> gs.Tensor:
    dtype = draft.facts.of(x).dtype
    if dtype not in (TYPE.FLOAT, TYPE.DOUBLE):
        raise Refused("it is not of float32 or float64")
    return draft.constant(array.astype(parts.numpy_dtype(draft, x)), "waves")


def _number(c: Bench, node: gs.Node, index: int, usual: int | None = None) -> int | None:
    """An operand of one number; None where it is computed, `usual` where it is left out."""
    given = operand(node, index)
    if given is None:
        return usual
    array = c.facts.array(given)
    return None if array is None else int(array.reshape(-1)[0])
