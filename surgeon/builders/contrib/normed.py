"""Normalisations that onnxruntime's optimizer put together with the sums in front of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import Bench, Size, operand
from surgeon.builders.norms import layer_norm_as_means
from surgeon.builders.standardising import layer_normalised, rms_normalised
from surgeon.facts.kinds import HALVES
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def skip_layer_norm(draft: Draft, match: Match) -> Any:
    """`com.microsoft.SkipLayerNormalization (x, skip, gamma, beta, bias)`: of the sum."""
    node = match.root
    total = _summed(draft, node, bias=4)
    gamma, eps = node.inputs[2], float(node.attrs.get("epsilon", 1e-12))
    y = _normalised(draft, total, gamma, operand(node, 3), eps)
    return _with_sum(draft, node, y, total)


def skip_rms_norm(draft: Draft, match: Match) -> Any:
    """`com.microsoft.SkipSimplifiedLayerNormalization (x, skip, gamma, bias)`: of the sum."""
    node = match.root
    total = _summed(draft, node, bias=3)
    eps = float(node.attrs.get("epsilon", 1e-12))
    y = rms_normalised(draft, total, 1, node.inputs[2], eps)
    return _with_sum(draft, node, y, total)


def _normalised(
    draft: Draft, x: gs.Tensor, gamma: gs.Tensor, beta: gs.Tensor | None, eps: float
) -> gs.Tensor:
    """Over the last axis; half is widened for it, as in onnxruntime's kernels."""
    dtype = draft.facts.of(x).dtype
    if dtype not in HALVES or draft.facts.opset >= 17:
        return layer_normalised(draft, x, 1, gamma, beta, eps)
    wide, scale = (parts.cast(draft, t, parts.FLOAT) for t in (x, gamma))
    shift = None if beta is None else parts.cast(draft, beta, parts.FLOAT)
    return parts.cast(draft, layer_normalised(draft, wide, 1, scale, shift, eps), dtype)


def _summed(draft: Draft, node: gs.Node, *, bias: int) -> gs.Tensor:
    total = draft.op("Add", *node.inputs[:2])
    vector = operand(node, bias)
    return total if vector is None else draft.op("Add", total, vector)


def _with_sum(draft: Draft, node: gs.Node, y: gs.Tensor, total: gs.Tensor) -> tuple[gs.Tensor, ...]:
    if any(parts.is_read(draft, t) for t in node.outputs[1:3] if not t.is_empty()):
        raise Refused("its mean or deviation is read, which onnxruntime does not give on CPUs")
    return y, y, y, total  # the second and third are read by nobody


def rms_norm_of_runtime(draft: Draft, match: Match) -> Any:
    """`SimplifiedLayerNormalization (x, scale)`, which onnxruntime has in ONNX's own domain."""
    node = match.root
    if len(node.outputs) > 1 and parts.is_read(draft, node.outputs[1]):
        raise Refused("its deviation is read as well")
    if len(node.inputs) != 2 or any(tensor.is_empty() for tensor in node.inputs):
        raise Refused("it has not the two operands that are known")
    x, scale = node.inputs
    axis, rank = int(node.attrs.get("axis", -1)), parts.rank_of(draft, x)
    count = -axis if axis < 0 else rank - axis
    y = rms_normalised(draft, x, count, scale, float(node.attrs.get("epsilon", 1e-5)))
    return y, y  # the second is read by nobody


def old_layer_norm(draft: Draft, match: Match) -> gs.Tensor:
    """LayerNormalization below opset 17, where ONNX has none."""
    if draft.facts.opset >= 17:
        raise Refused("ONNX has it at this opset")
    return layer_norm_as_means(draft, match)


def embed_layer_norm(draft: Draft, match: Match) -> Any:
    """`com.microsoft.EmbedLayerNormalization`: the sum of rows of up to three tables, normalised.

    Its second output counts the ones of each row of the mask, and is 0 where there is none; its
    third is the sum.
    """
    node, c = match.root, Bench(draft)
    ids, segments, words, places, kinds, gamma, beta = (operand(node, i) for i in range(7))
    mask, positions = operand(node, 7), operand(node, 8)
    if ids is None or words is None or places is None or gamma is None or beta is None:
        raise Refused("a table, its places, a scale or a shift is missing")
    length = words_of(c, ids)
    if positions is not None:
        placed = draft.op("Gather", places, positions, axis=0)
    else:
        placed = draft.op("Slice", places, c.ints([0]), c.vector([length]), c.ints([0]))
    named = None
    if segments is not None and kinds is not None:
        named = draft.op("Gather", kinds, segments, axis=0)
    total = summed_rows(c, draft.op("Gather", words, ids, axis=0), placed, named)
    eps = float(node.attrs.get("epsilon", 1e-12))
    y = _normalised(draft, total, gamma, beta, eps)
    return y, mask_index(c, node, ids, mask, instead=y), total


def words_of(c: Bench, ids: gs.Tensor) -> Size | int:
    """How many words each sequence of what is looked up has, [batch, words].

    Raises:
        Refused: It is none of sequences.
    """
    if c.rank(ids) != 2:
        raise Refused(f"what it looks up has rank {c.rank(ids)}")
    return c.size(ids, 1)


def summed_rows(
    c: Bench, words: gs.Tensor, places: gs.Tensor, kinds: gs.Tensor | None
) -> gs.Tensor:
    """What stands for each word: its own row, that of its place, and that of its segment."""
    total: gs.Tensor = c.op("Add", words, places)
    return total if kinds is None else c.op("Add", total, kinds)


def mask_index(
    c: Bench, node: gs.Node, ids: gs.Tensor, mask: gs.Tensor | None, *, instead: gs.Tensor
) -> gs.Tensor:
    """How many ones each row of the mask has, 0 without one; `instead` where nobody reads it."""
    if len(node.outputs) < 2 or not parts.is_read(c.draft, node.outputs[1]):
        return instead
    whole = int(onnx.TensorProto.INT32)
    if mask is None:
        return c.filled([c.size(ids, 0)], 0, whole)
    ones = c.cast(c.op("Equal", mask, c.number(1, c.dtype(mask))), whole)
    count: gs.Tensor = c.op("ReduceSum", ones, c.draft.constant(np.array([1]), "axes"), keepdims=0)
    return count
