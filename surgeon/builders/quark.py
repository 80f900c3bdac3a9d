"""AMD's quantisers (`com.amd.quark`; before, `com.vai.quantize`), which Quark and Vitis AI write.

What they compute is told by the kernels that Quark brings along
(`quark/onnx/operators/custom_ops`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
_PRIME = ("to_bfp_prime", "to_bfp_prime_shared")  # the second is what it was called
_AWAY, _UP, _EVEN = range(3)  # how halves are rounded, by `rounding_mode`
# Elements of microscaling formats: their lowest exponent, bits of a mantissa without the leading
# one, the highest exponent, and the largest.
_ELEMENTS = {
    "fp8_e5m2": (-14, 2, 15, 57344.0),
    "fp8_e4m3": (-6, 3, 8, 448.0),
    "fp6_e3m2": (-2, 2, 4, 28.0),
    "fp6_e2m3": (0, 3, 2, 7.5),
    "fp4_e2m1": (0, 1, 2, 6.0),
    "int8": (0, 6, 0, 127 / 64),
}


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

    A step is 2^(e - m + 1), e the largest exponent of the block and m the bits of a mantissa
    without its sign; what is infinite or no number stays. By `to_bfp_prime` parts of a block may
    have an exponent that is a little less, and what is no number takes its block with it.
    """
    node, c = match.root, Bench(draft)
    said = node.attrs
    method = str(said.get("bfp_method", "to_bfp"))
    if method not in ("to_bfp", *_PRIME):
        raise Refused(f"nothing is known of blocks by `{method}`")
    for key in ("use_compiler_version_cpu_kernel", "convert_to_bfloat_before_bfp"):
        if said.get(key):
            raise Refused(f"`{key}` is not written here")
    bits = int(said.get("bit_width", 16)) - _SIGN_AND_EXPONENT
    if not 1 <= bits <= 22:
        raise Refused(f"mantissas of {bits} bits have no form")
    mode = _rounding(node)

    def rounded(blocks: gs.Tensor, power: gs.Tensor) -> gs.Tensor:
        step, high = (
            c.op("Mul", power, c.number(factor, _FLOAT))
            for factor in (2.0 ** (1 - bits), 2 - 2.0 ** (1 - bits))
        )
        y = c.op("Mul", _whole(c, c.op("Div", blocks, step), mode), step)
        return c.op("Max", c.op("Min", y, high), c.op("Neg", high))

    def by_parts(blocks: gs.Tensor, power: gs.Tensor) -> gs.Tensor:
        size, least = int(said.get("sub_block_size", 2)), int(said.get("block_size", 8))
        if size < 1 or least % size:
            raise Refused(f"parts of {size} do not go into blocks of {least}")
        less = 2.0 ** -((1 << int(said.get("sub_block_shift_bits", 1))) - 1)
        outer = c.sizes(blocks)[:-1]
        tiny = c.op("Less", c.op("Abs", blocks), c.number(2 * _LOWEST, _FLOAT))
        kept = c.where(tiny, c.number(0.0, _FLOAT), blocks)
        parts = c.reshape(kept, [*outer, least // size, size])
        whole = c.op("Mul", c.unsqueeze(power, [c.rank(power)]), c.number(less, _FLOAT))
        own = c.op("Max", _largest_power(c, parts)[1], whole)
        return c.reshape(rounded(parts, own), c.sizes(blocks))

    return _by_blocks(c, node, 8, by_parts if method in _PRIME else rounded, method in _PRIME)


def quark_few_bits(draft: Draft, match: Match) -> gs.Tensor:
    """`MXQuantizeDequantize (x)`: floats of few bits, or bytes, times a power of two a block.

    That power is the one below the largest of the block, less what the elements' own exponents
    reach (OCP Microscaling Formats 1.0).
    """
    node, c = match.root, Bench(draft)
    kind = str(node.attrs.get("element_dtype", "int8"))
    if kind not in _ELEMENTS:
        raise Refused(f"nothing is known of elements of {kind!r}")
    lowest, bits, reach, most = _ELEMENTS[kind]
    mode = _EVEN if kind != "int8" else _rounding(node)

    def rounded(blocks: gs.Tensor, power: gs.Tensor) -> gs.Tensor:
        scale = c.op("Mul", power, c.number(2.0**-reach, _FLOAT))
        x = c.op("Div", blocks, scale)
        if kind == "int8":
            step: gs.Tensor = c.number(2.0**-bits, _FLOAT)
        else:
            own = _power_below(c, c.op("Max", c.op("Abs", x), c.number(2.0**lowest, _FLOAT)))
            step = c.op("Mul", own, c.number(2.0**-bits, _FLOAT))
        y = c.op("Mul", _whole(c, c.op("Div", x, step), mode), step)
        low = -2.0 if kind == "int8" else -most  # bytes reach one further down
        y = c.op("Max", c.op("Min", y, c.number(most, _FLOAT)), c.number(low, _FLOAT))
        return c.op("Mul", y, scale)

    return _by_blocks(c, node, 32, rounded)


def _rounding(node: gs.Node) -> int:
    mode = node.attrs.get("rounding_mode", _AWAY)
    if mode not in (_AWAY, _UP, _EVEN):
        raise Refused(f"nothing is known of its `rounding_mode` {mode}")
    return int(mode)


def _by_blocks(
    c: Bench,
    node: gs.Node,
    usual: int,
    rounded: Callable[[gs.Tensor, gs.Tensor], gs.Tensor],
    spreads: bool = False,
) -> gs.Tensor:
    """What is rounded block by block along an axis, whose last block zeros fill up.

    Args:
        c: Where it is written.
        node: The quantiser.
        usual: How many values a block has where the node does not say.
        rounded: Makes blocks, `[..., blocks, size]`, of themselves and the power of two below the
            largest of each, `[..., blocks, 1]`.
        spreads: Whether what is infinite or no number makes its whole block no number.
    """
    x, size = node.inputs[0], int(node.attrs.get("block_size", usual))
    rank, shape = c.rank(x), c.shape(x)
    if not rank or shape is None or size < 1:
        raise Refused("it has no axis, its shape is not known, or its blocks have no size")
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
    finite, power = _largest_power(c, blocks)
    y = rounded(blocks, power)
    if spreads:
        axes = c.ints([rank], "axes")
        all_finite = c.op("ReduceMin", c.cast(finite, _FLOAT), axes, keepdims=1)
        y = c.where(c.cast(all_finite, int(TYPE.BOOL)), y, c.number(math.nan, _FLOAT))
    else:
        y = c.where(finite, y, blocks)
    y = c.reshape(y, [*outer, length + missing])
    if missing:
        y = c.slice(y, rank - 1, 0, length)
    return c.cast(c.permute(y, order), c.dtype(x))


def _largest_power(c: Bench, blocks: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor]:
    """What of blocks is finite, and the power of two below the largest of each that is."""
    size = c.op("Abs", blocks)
    finite = c.op("Less", size, c.number(math.inf, _FLOAT))
    counted = c.where(finite, size, c.number(0.0, _FLOAT))
    axes = c.ints([c.rank(blocks) - 1], "axes")
    largest = c.op("ReduceMax", counted, axes, keepdims=1)
    return finite, _power_below(c, c.op("Max", largest, c.number(_LOWEST, _FLOAT)))


def _power_below(c: Bench, x: gs.Tensor) -> gs.Tensor:
    """The largest power of two that is no larger: by a logarithm, put right where it rounds.

    Rounded up to 128 it has an infinite power, of which half is none: the one below is its own.
    """
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
    raise Refused(
        f"`{match.root.op}` quantizes its state at each step, as AMD's hardware does; take the "
        "model of floats"
    )
