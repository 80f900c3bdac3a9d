"""Mixtures of experts whose weights are levels of few bits, a scale a row or a block.

The weights lie as onnxruntime's kernel for CPUs reads them (`moe_quantization_cpu.cc`): a row an
output, the elements of a byte from the lowest bits on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.builders.contrib import few_bits
from surgeon.builders.contrib.experts import (
    UNWRITTEN,
    USUAL,
    Experts,
    Layer,
    backwards,
    largest,
    mixed,
    spread,
)
from surgeon.builders.contrib.settings import settings
from surgeon.facts.kinds import HALVES
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT = int(TYPE.FLOAT)
_FIRST, _LAST, _BESIDE = (2, 11, 1), (5, 12, 2), (8, 13, 3)  # weights, zero points, and the number
_SHARES = 14  # the operand
_INT8_ACCURACY = 4
_USUAL = {
    **USUAL,
    "expert_weight_bits": 4,
    "fc1_expert_weight_bits": None,
    "fc2_expert_weight_bits": None,
    "fc3_expert_weight_bits": None,
    "block_size": 0,
    "accuracy_level": 0,
    "weights_prepacked": -1,
}
_UNWRITTEN = {**UNWRITTEN, "quant_type": "int"}


def quantized_mixture_exactly(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.QMoE` where its kernel does not quantize what is multiplied as well."""
    if _rounds(match.root):
        raise Refused("its kernel rounds what it multiplies to 8 bits a block")
    return quantized_mixture(draft, match)


def quantized_mixture(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.QMoE (x, router, w1, s1, b1, ...)`: a MoE of the weights in float32.

    Its shares are a softmax of the scores that were chosen, or those that stand in an operand.
    """
    node, c = match.root, Bench(draft)
    given = settings(node, 3, 15, _USUAL, unwritten=_UNWRITTEN)
    _refuse_packed(c, node, given["weights_prepacked"])
    first, last, beside = (_layer(c, node, given, each) for each in (_FIRST, _LAST, _BESIDE))
    if first is None or last is None:
        raise Refused("an expert's weights are missing")
    scores = c.cast(node.inputs[1], _FLOAT)
    values, places = largest(c, scores, int(given["k"]))
    shares, normal = operand(node, _SHARES), bool(given["normalize_routing_weights"])
    if shares is not None:
        values = c.op("GatherElements", backwards(c, c.cast(shares, _FLOAT)), places, axis=1)
        values = _of_sum_one_or_nothing(c, values) if normal else values
    elif normal:
        values = c.op("Softmax", values, axis=1)
    else:
        raise Refused(
            "its shares are not normalised, which onnxruntime's kernel for CPUs does all the same"
        )
    filled = spread(c, scores, values, places)
    return mixed(c, node, given, Experts(first, last, beside), filled)


def _refuse_packed(c: Bench, node: gs.Node, said: int) -> None:
    """See that the weights lie in rows.

    Without `weights_prepacked` a runtime reads them in the layout of its own: rows on CPUs, another
    one on CUDA, which has it for halves alone.

    Raises:
        Refused: They do not, or it is not known.
    """
    if said not in (-1, 0):
        raise Refused("its weights are packed for one machine; take the model before it was packed")
    if said == -1 and c.dtype(node.inputs[0]) in HALVES:
        raise Refused(
            "its weights may be packed for CUDA: in halves `weights_prepacked` has to be 0, which "
            "says that they lie in rows"
        )


def _of_sum_one_or_nothing(c: Bench, values: gs.Tensor) -> gs.Tensor:
    """Each row divided by its sum, and 0 where that is 0."""
    total = c.op("ReduceSum", values, c.ints([1], "axes"), keepdims=1)
    return c.where(c.is_nought(total), c.number(0, _FLOAT), c.op("Div", values, total))


def _rounds(node: gs.Node) -> bool:
    """Whether the kernel may round the other operand: of blocks, by its accuracy or of 8 bits."""
    if int(node.attrs.get("block_size", 0)) <= 0:
        return False
    usual = node.attrs.get("expert_weight_bits", 4)
    bits = {node.attrs.get(f"fc{n}_expert_weight_bits", usual) for n in (1, 2, 3)}
    return 8 in bits or int(node.attrs.get("accuracy_level", 0)) == _INT8_ACCURACY


def _layer(
    c: Bench, node: gs.Node, given: Mapping[str, Any], places: tuple[int, int, int]
) -> Layer | None:
    """A product of each expert; its weights are computed where the model runs."""
    at, zeros_at, number = places
    if operand(node, at) is None:
        return None
    bias = operand(node, at + 2)
    bits = int(given[f"fc{number}_expert_weight_bits"] or given["expert_weight_bits"])
    packed, scales = (few_bits.constant(c, node, place) for place in (at, at + 1))
    if bits not in (2, 4, 8) or packed.dtype != np.uint8 or packed.ndim != 3:
        raise Refused(
            f"its weights are {packed.dtype} of {bits} bits, for which nothing is written"
        )
    levels = few_bits.unpacked(packed, bits)
    count, rows, columns = levels.shape
    size = int(given["block_size"])
    size = size if size > 0 else columns
    if columns % size or scales.size * size != levels.size:
        raise Refused(f"it has {scales.size} scales for {levels.size} weights in blocks of {size}")
    blocks = columns // size
    zeros = None
    if operand(node, zeros_at) is not None:
        held = few_bits.unpacked(few_bits.constant(c, node, zeros_at), bits)
        zeros = held[..., :blocks] if held.ndim == 3 else held[..., :rows]
        if zeros.size != scales.size:
            raise Refused(f"it has {zeros.size} zero points for {scales.size} scales")
        zeros = zeros.reshape(-1, blocks)
    table = few_bits.centred(
        levels.reshape(-1, columns),
        scales.astype(np.float32).reshape(-1, blocks),
        zeros,
        size,
        bits,
    )
    wide = c.op("Reshape", few_bits.columns(c, table), c.ints([columns, count, rows], "experts"))
    weight = c.permute(wide, [1, 0, 2])
    return Layer(weight, None if bias is None else c.cast(bias, _FLOAT))
