"""AMD's quantisers (`com.amd.quark`; before, `com.vai.quantize`), which Quark and Vitis AI write.

What they compute is told by the kernels that Quark brings along
(`quark/onnx/operators/custom_ops`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.pairs import along, scale_of, zero_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT, _HALF, _DOUBLE = int(TYPE.FLOAT), int(TYPE.FLOAT16), int(TYPE.DOUBLE)
_BYTES = frozenset({int(TYPE.INT8), int(TYPE.UINT8)})
_WORDS = frozenset({int(TYPE.INT16), int(TYPE.UINT16)})
_LONG = frozenset({int(TYPE.INT32), int(TYPE.UINT32)})
_HALVES = frozenset({_HALF, int(TYPE.BFLOAT16)})
_WORDS_SINCE = 21  # the opset from which QuantizeLinear has 16 bits
_LOWEST = 2.0**-127  # what the exponent 0 of a float stands for
_SIGN_AND_EXPONENT = 9  # bits of a block float that are no mantissa
_AWAY, _UP, _EVEN = range(3)  # how halves are rounded, by `rounding_mode`


def quark_quantize(draft: Draft, match: Match) -> gs.Tensor:
    """`ExtendedQuantizeLinear (x, scale, zero)`: saturate (round (x / scale) + zero)."""
    node, c = match.root, Bench(draft)
    x, scale, zero = node.inputs[0], scale_of(c, node, 1), zero_of(c, node, 2)
    low, axis = c.dtype(node.inputs[2]), int(node.attrs.get("axis", 1))
    if low in _HALVES:
        _plain(c, node)
        if low == _HALF:
            ends = (c.number(end, _FLOAT) for end in (-65504.0, 65504.0))
            x = c.op("Clip", x, *ends)
        return c.cast(x, low)
    if low in _BYTES or (low in _WORDS and c.opset >= _WORDS_SINCE):
        return c.op("QuantizeLinear", x, scale, zero, **along(c, scale, axis))
    if low not in _WORDS | _LONG:
        raise Refused(f"nothing is known of values of {_name(low)}")
    wide = _FLOAT if low in _WORDS else _DOUBLE  # float32 has no room for 32 bits
    ratio = c.cast(c.op("Div", x, _beside(c, x, scale, axis)), wide)
    shift = _beside(c, x, c.cast(node.inputs[2] if zero is None else zero, wide), axis)
    limits = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(low))
    ends = (c.number(float(end), wide) for end in (limits.min, limits.max))
    return c.cast(c.op("Clip", c.op("Add", c.op("Round", ratio), shift), *ends), low)


def quark_dequantize(draft: Draft, match: Match) -> gs.Tensor:
    """`ExtendedDequantizeLinear (x, scale, zero)`: (x - zero) scale."""
    node, c = match.root, Bench(draft)
    x, scale, zero = node.inputs[0], scale_of(c, node, 1), zero_of(c, node, 2)
    low, axis = c.dtype(x), int(node.attrs.get("axis", 1))
    if low in _HALVES:
        _plain(c, node)
        return c.cast(x, _FLOAT)
    if low in _BYTES or (low in _WORDS and c.opset >= _WORDS_SINCE):
        return c.op("DequantizeLinear", x, scale, zero, **along(c, scale, axis))
    if low not in _WORDS | _LONG or zero is None:
        raise Refused(f"nothing is known of values of {_name(low)}")
    wide = _FLOAT if low in _WORDS else int(TYPE.INT64)
    gap = c.op("Sub", c.cast(x, wide), _beside(c, x, c.cast(zero, wide), axis))
    return c.op("Mul", c.cast(gap, _FLOAT), _beside(c, x, scale, axis))


def _plain(c: Bench, node: gs.Node) -> None:
    """Kernels leave the scale and the zero point of halves out, which are 1 and 0."""
    for at, wanted in ((1, 1), (2, 0)):
        array = c.facts.array(node.inputs[at])
        if array is None or (array != wanted).any():
            raise Refused("it scales or shifts values of 16 bits, and its kernel does not")


def _beside(c: Bench, x: gs.Tensor, vector: gs.Tensor, axis: int) -> gs.Tensor:
    """A number a channel, as it broadcasts over the value."""
    if c.rank(vector) == 0:
        return vector
    return c.column(vector, c.rank(x) - c.axis(axis, c.rank(x)))


def _name(dtype: int) -> str:
    return str(onnx.TensorProto.DataType.Name(dtype).lower())


def quark_block_floats(draft: Draft, match: Match) -> gs.Tensor:
    """`BFPQuantizeDequantize (x)`: mantissas of a block go by the exponent of its largest.

    A step is 2^(e - m + 2), e the largest exponent of the block and m the bits of a mantissa with
    its sign; what is infinite or no number stays.
    """
    node, c = match.root, Bench(draft)
    x, bits, size = node.inputs[0], *_scheme(node)
    rank, shape = c.rank(x), c.shape(x)
    if not rank or shape is None:
        raise Refused("it has no axis, or its shape is not known")
    if all(dim == 1 for dim in shape):
        return c.op("Identity", x)
    if not any(isinstance(dim, int) and dim > 1 for dim in shape):
        raise Refused("whether it has one element, which stays as it is, is not known")
    axis = 0 if rank == 1 else c.axis(int(node.attrs.get("axis", 1)), rank)
    length = shape[axis]
    if not isinstance(length, int) or not length:
        raise Refused("how long the axis is that its blocks lie along is not known")
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    lines = c.permute(c.cast(x, _FLOAT), order)
    missing = -length % size
    if missing:
        pads = c.ints([*[0] * (2 * rank - 1), missing], "pads")
        lines = c.op("Pad", lines, pads, c.number(0, _FLOAT))
    outer = c.sizes(lines)[:-1]
    blocks = c.reshape(lines, [*outer, (length + missing) // size, size])
    rounded = c.reshape(_rounded(c, node, blocks, bits), [*outer, length + missing])
    if missing:
        rounded = c.slice(rounded, rank - 1, 0, length)
    return c.cast(c.permute(rounded, order), c.dtype(x))


def _scheme(node: gs.Node) -> tuple[int, int]:
    """Bits of a mantissa without its sign, and how many values a block has."""
    said = node.attrs
    if str(said.get("bfp_method", "to_bfp")) != "to_bfp":
        raise Refused(f"blocks by `{said['bfp_method']}` are not written here")
    for key in ("use_compiler_version_cpu_kernel", "convert_to_bfloat_before_bfp"):
        if said.get(key):
            raise Refused(f"`{key}` is not written here")
    bits, size = int(said.get("bit_width", 16)) - _SIGN_AND_EXPONENT, int(said.get("block_size", 8))
    if not 1 <= bits <= 22 or size < 1 or said.get("rounding_mode", _AWAY) not in range(3):
        raise Refused("its bits, its blocks or its rounding have no form")
    return bits, size


def _rounded(c: Bench, node: gs.Node, blocks: gs.Tensor, bits: int) -> gs.Tensor:
    number = c.number
    size = c.op("Abs", blocks)
    finite = c.op("Less", size, number(math.inf, _FLOAT))
    largest = c.op(
        "ReduceMax",
        c.where(finite, size, number(0.0, _FLOAT)),
        c.ints([c.rank(blocks) - 1], "axes"),
        keepdims=1,
    )
    power = _power_below(c, c.op("Max", largest, number(_LOWEST, _FLOAT)))
    step = c.op("Mul", power, number(2.0 ** (1 - bits), _FLOAT))
    high = c.op("Mul", power, number(2 - 2.0 ** (1 - bits), _FLOAT))
    levels = _whole(c, c.op("Div", blocks, step), int(node.attrs.get("rounding_mode", _AWAY)))
    y = c.op("Max", c.op("Min", c.op("Mul", levels, step), high), c.op("Neg", high))
    return c.where(finite, y, blocks)


def _power_below(c: Bench, x: gs.Tensor) -> gs.Tensor:
    """The largest power of two that is no larger: by a logarithm, put right where it rounds."""
    one, two = c.number(1.0, _FLOAT), c.number(2.0, _FLOAT)
    exponent = c.op("Mul", c.op("Log", x), c.number(1 / math.log(2), _FLOAT))
    exponent = c.op("Floor", exponent)
    power = c.op("Pow", two, exponent)
    smaller = c.op("Pow", two, c.op("Sub", exponent, one))
    power = c.where(c.op("Greater", power, x), smaller, power)
    larger = c.op("Mul", power, two)
    return c.where(c.op("Greater", larger, x), power, larger)


def _whole(c: Bench, x: gs.Tensor, mode: int) -> gs.Tensor:
    if mode == _EVEN:
        rounded: gs.Tensor = c.op("Round", x)
        return rounded
    size = c.op("Abs", x) if mode == _AWAY else x
    below = c.op("Floor", size)
    stays = c.op("Less", c.op("Sub", size, below), c.number(0.5, _FLOAT))
    above = c.where(stays, below, c.op("Add", below, c.number(1.0, _FLOAT)))
    return c.op("Mul", above, c.op("Sign", x)) if mode == _AWAY else above


def quark_instance_norm(draft: Draft, match: Match) -> gs.Tensor:
    """`ExtendedInstanceNormalization`: ONNX's, without the rounding to bfloat16 at each step."""
    made: gs.Tensor = draft.op("InstanceNormalization", *match.root.inputs, **match.root.attrs)
    return made


def quark_refused(draft: Draft, match: Match) -> Any:
    """Nothing: says why the operator stays."""
    what = {
        "ExtendedLSTM": "quantizes its state at each step, as AMD's hardware does",
        "VitisLSTM": "quantizes its state at each step, as AMD's hardware does",
        "MXFixNeuron": "rounds blocks to floats of few bits, which is not written here",
        "MXQuantizeDequantize": "rounds blocks to floats of few bits, which is not written here",
    }
    raise Refused(f"`{match.root.op}` {what[match.root.op]}; take the model of floats")
