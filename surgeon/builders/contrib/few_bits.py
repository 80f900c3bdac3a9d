"""Weights of 2, 4 or 8 bits with a scale a block, as onnxruntime's quantizer packs them.

weight = (q - zero) * scale; the elements of a byte begin with the lowest bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, operand, whole_number
from surgeon.builders.contrib.settings import settings
from surgeon.facts.fact import Array
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_BLOCKS = 21  # the opset from which DequantizeLinear has a scale a block, and 4 bits
_PER_AXIS = 13  # the opset from which it has one a row
_INT8_ACCURACY = 4
# The numbers that 4 bits name, by `quant_type`: floats of 4 bits, and quantiles of the normal
# distribution, as bitsandbytes has them.
_FP4 = (0.0, 0.005208333333, 2 / 3, 1.0, 1 / 3, 0.5, 1 / 6, 0.25)
_NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
_NAMED = {0: (*_FP4, *(-number for number in _FP4)), 1: _NF4}


@dataclass(frozen=True, slots=True)
class Blocks:
    """A matrix in blocks of a row.

    Attributes:
        levels: Its elements as whole numbers, `[rows, columns]`, with 0 in the middle where no zero
            point is given.
        scales: The size of a step, `[rows, blocks]`.
        zeros: The level of 0, `[rows, blocks]`; `None` where it is 0 everywhere.
        size: How many columns a block has; the last one may have fewer.
        bits: How many an element needs.
    """

    levels: Array
    scales: Array
    zeros: Array | None
    size: int
    bits: int

    @property
    def is_whole(self) -> bool:
        """Whether zero points are levels themselves."""
        return self.zeros is None or self.zeros.dtype.kind != "f"


def matmul_n_bits(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.MatMulNBits (a, b, scales, zeros, groups, bias)`: a MatMul of the weights."""
    node, c = match.root, Bench(draft)
    if int(node.attrs.get("weight_prepacked", 0)):
        raise Refused("its weights are packed for one machine; take the model before it was packed")
    if (groups := operand(node, 4)) is not None and not _is_in_order(draft, node, groups):
        raise Refused("its columns stand in an order of their own (`g_idx`)")
    y: gs.Tensor = c.op("MatMul", node.inputs[0], columns(c, _of_product(c, node)))
    bias = operand(node, 5)
    return y if bias is None else c.op("Add", y, bias)


def _is_in_order(draft: Draft, node: gs.Node, groups: gs.Tensor) -> bool:
    """Whether each column is of the block in which it stands, as without that operand."""
    known = draft.facts.array(groups)
    if known is None:
        return False
    in_order = np.arange(int(node.attrs["K"])) // int(node.attrs["block_size"])
    return np.array_equal(known.reshape(-1), in_order)


def matmul_bnb4(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.MatMulBnb4 (a, b, absmax)`: a MatMul of weights that 4 bits name.

    Each names one of 16 numbers (QLoRA, https://arxiv.org/abs/2305.14314; the higher bits of a byte
    come first), times the largest of its block; blocks go on from one row to the next.
    """
    node, c = match.root, Bench(draft)
    usual = dict.fromkeys(("N", "K", "block_size", "quant_type", "training_mode"))
    settings(node, 3, 3, usual, unwritten={"transB": 1})
    rows, columns, size = (whole_number(node, key) for key in ("N", "K", "block_size"))
    kind = whole_number(node, "quant_type")
    packed, largest = (constant(c, node, at).reshape(-1) for at in (1, 2))
    count = rows * columns
    if kind not in _NAMED:
        raise Refused(f"nothing is known of its `quant_type` {kind}")
    if packed.size != -(-count // 2) or largest.size != -(-count // size):
        raise Refused(f"it has {packed.size} bytes and {largest.size} blocks for {count} weights")
    padded = largest.size * size
    named = np.zeros(padded, np.uint8)
    named[:count] = np.stack([packed >> 4, packed & 15], -1).reshape(-1)[:count]
    held = named.astype(ml_dtypes.uint4) if c.opset >= _BLOCKS else named
    places = c.cast(draft.constant(held.reshape(-1, size), "places"), int(TYPE.INT32))
    numbers = draft.constant(np.array(_NAMED[kind], largest.dtype), "numbers")
    wide = c.op("Mul", c.op("Gather", numbers, places, axis=0), c.column(draft.constant(largest)))
    if padded > count:
        wide = c.slice(c.flat(wide), 0, 0, count)
    matrix = c.op("Reshape", wide, c.ints([rows, columns], "matrix"))
    return c.op("MatMul", node.inputs[0], c.permute(matrix, [1, 0]))


def matmul_n_bits_exactly(draft: Draft, match: Match) -> gs.Tensor:
    """The same where its kernel does not quantize the other operand as well."""
    if int(match.root.attrs.get("accuracy_level", 0)) == _INT8_ACCURACY:
        raise Refused("its kernel may round its input to 8 bits (`accuracy_level` is 4)")
    return matmul_n_bits(draft, match)


def gather_block_quantized(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.GatherBlockQuantized (data, indices, scales, zeros)`: rows of a table."""
    node, c = match.root, Bench(draft)
    blocks = _of_table(c, node)
    rows, columns = blocks.levels.shape
    if columns % blocks.size:
        raise Refused(f"its {columns} columns are no whole number of blocks of {blocks.size}")
    count = columns // blocks.size

    def taken(table: Array, *shape: int) -> gs.Tensor:
        held = draft.constant(table.reshape(rows, *shape), "table")
        made: gs.Tensor = c.op("Gather", held, node.inputs[1], axis=0)
        return made

    scales = taken(blocks.scales, count, 1)
    dtype = c.dtype(scales)
    levels = c.cast(taken(blocks.levels, count, blocks.size), dtype)
    if blocks.zeros is not None:
        levels = c.op("Sub", levels, c.cast(taken(blocks.zeros, count, 1), dtype))
    wide = c.op("Mul", levels, scales)
    outer = c.rank(node.inputs[1])
    return c.op("Reshape", wide, c.ints([*[0] * outer, columns], "rows"))


def columns(c: Bench, blocks: Blocks) -> gs.Tensor:
    """The transposed matrix in floats, `[columns, rows]`, computed where the model runs."""
    if c.opset < _BLOCKS or not blocks.is_whole:
        return _from_rows(c, blocks)
    low = _few(blocks)
    operands = [
        c.draft.constant(np.ascontiguousarray(table.T), name)
        for name, table in (
            ("levels", blocks.levels.astype(low)),
            ("scales", blocks.scales),
            *([] if blocks.zeros is None else [("zeros", blocks.zeros.astype(low))]),
        )
    ]
    made: gs.Tensor = c.op("DequantizeLinear", *operands, axis=0, block_size=blocks.size)
    return made


def _from_rows(c: Bench, blocks: Blocks) -> gs.Tensor:
    """The same where no operator knows blocks: each is a row with a scale of its own."""
    if c.opset < _PER_AXIS:
        raise Refused(f"a scale a block needs opset {_PER_AXIS}, and the model has {c.opset}")
    rows, columns = blocks.levels.shape
    padded = blocks.scales.shape[1] * blocks.size
    held = np.zeros((rows, padded), blocks.levels.dtype)
    held[:, :columns] = blocks.levels
    lines = c.draft.constant(held.reshape(-1, blocks.size), "levels")
    scales = blocks.scales.astype(np.float32).reshape(-1)
    if blocks.is_whole:
        operands = [lines, c.draft.constant(scales, "scales")]
        if blocks.zeros is not None:
            operands.append(c.draft.constant(blocks.zeros.reshape(-1), "zeros"))
        wide = c.op("DequantizeLinear", *operands, axis=0)
    else:
        levels = c.op("DequantizeLinear", lines, c.number(1, int(TYPE.FLOAT)))
        zeros = np.asarray(blocks.zeros, np.float32).reshape(-1, 1)
        shifted = c.op("Sub", levels, c.draft.constant(zeros, "zeros"))
        wide = c.op("Mul", shifted, c.draft.constant(scales.reshape(-1, 1), "scales"))
    wide = c.op("Reshape", wide, c.ints([rows, -1], "matrix"))
    if columns < padded:
        wide = c.slice(wide, 1, 0, columns)
    dtype = onnx.helper.np_dtype_to_tensor_dtype(blocks.scales.dtype)
    return c.permute(c.cast(wide, dtype), [1, 0])


def _few(blocks: Blocks) -> Any:
    """The smallest dtype that holds the levels: 4 or 8 bits."""
    signed = blocks.zeros is None
    if blocks.bits > 4:
        return np.int8 if signed else np.uint8
    return ml_dtypes.int4 if signed else ml_dtypes.uint4


def _of_product(c: Bench, node: gs.Node) -> Blocks:
    rows, columns = whole_number(node, "N"), whole_number(node, "K")
    size, bits = whole_number(node, "block_size"), int(node.attrs.get("bits", 4))
    count = -(-columns // size)
    packed, scales = (constant(c, node, at) for at in (1, 2))
    if bits not in (2, 4, 8) or packed.size * 8 != rows * count * size * bits:
        raise Refused(f"its {packed.size} bytes are no {rows} x {columns} weights of {bits} bits")
    if scales.size != rows * count:
        raise Refused(f"it has {scales.size} scales for {rows * count} blocks")
    levels = unpacked(packed.reshape(rows, -1), bits)[:, :columns]
    zeros = None if operand(node, 3) is None else constant(c, node, 3)
    if zeros is not None:
        packs = zeros.dtype == np.uint8
        zeros = unpacked(zeros.reshape(rows, -1), bits)[:, :count] if packs else zeros
        zeros = zeros.reshape(rows, count)
    return centred(levels, scales.reshape(rows, count), zeros, size, bits)


def _of_table(c: Bench, node: gs.Node) -> Blocks:
    data, scales = constant(c, node, 0), constant(c, node, 2)
    zeros = None if operand(node, 3) is None else constant(c, node, 3)
    bits = int(node.attrs.get("bits", 4))
    if data.ndim != 2 or int(node.attrs.get("gather_axis", 0)) % 2:
        raise Refused("it takes of another axis than the first of a matrix")
    if int(node.attrs.get("quantize_axis", 1)) % 2 != 1:
        raise Refused("its blocks stand along another axis than the last of a matrix")
    size = int(node.attrs.get("block_size", 128))
    if data.dtype == np.uint8:
        levels = unpacked(data, bits)
        if zeros is not None:
            zeros = unpacked(zeros, bits)[:, : scales.shape[1]]
        return centred(levels, scales, zeros, size, bits)
    if data.dtype not in (ml_dtypes.int4, ml_dtypes.uint4):
        raise Refused(f"rows of {data.dtype} have no form here")
    low = np.int8 if data.dtype == ml_dtypes.int4 else np.uint8
    held = None if zeros is None else zeros.astype(low)
    return Blocks(data.astype(low), scales, held, size, 4)


def centred(levels: Array, scales: Array, zeros: Array | None, size: int, bits: int) -> Blocks:
    """Levels around 0 where the zero point is the middle everywhere, as it is if none is given."""
    middle = 1 << (bits - 1)
    if zeros is None or (zeros == middle).all():
        return Blocks((levels.astype(np.int16) - middle).astype(np.int8), scales, None, size, bits)
    if zeros.dtype.kind == "f" and (zeros == np.round(zeros)).all():
        zeros = zeros.astype(np.uint8) if zeros.min() >= 0 and zeros.max() < 2 * middle else zeros
    return Blocks(levels, scales, zeros, size, bits)


def unpacked(packed: Array, bits: int) -> Array:
    """Every element of each row; the lowest bits of a byte come first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    apart = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return apart.reshape(*packed.shape[:-1], -1)


def constant(c: Bench, node: gs.Node, at: int) -> Array:
    """The values of an operand.

    Raises:
        Refused: It has none before the model runs.
    """
    tensor = operand(node, at)
    array = None if tensor is None else c.facts.array(tensor)
    if array is None:
        raise Refused("its weights, scales or zero points are computed where it runs")
    return array
