"""Operators of onnxruntime's own for which nothing is written: refused by name, with what helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

# What is wrong with some operators, and those operators.
_GROUPS: tuple[tuple[str, str], ...] = (
    (
        "is a whole search, a loop around the decoder; export the decoder alone",
        "BeamSearch GreedySearch Sampling WhisperBeamSearch",
    ),
    (
        "has weights packed to a few bits, for which nothing is written; quantize the model of "
        "floats with `quant_format=QuantFormat.QDQ`",
        "MatMulFpQ4",
    ),
    (
        "holds a network that was compiled for one device; take the file that it was compiled of",
        "EPContext Snpe",
    ),
    (
        "keeps a cache whose lengths only the caller knows, for which nothing is written; export "
        "the model with plain attention",
        "DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention PagedAttention SparseAttention",
    ),
    (
        "is without padding, in a layout that its kernel alone has; optimise the model anew, "
        "without packing",
        "PackedAttention PackedMultiHeadAttention RemovePadding RestorePadding",
    ),
)
REASONS: Mapping[str, str] = {name: why for why, names in _GROUPS for name in names.split()}


def refused(draft: Draft, match: Match) -> Any:
    """Nothing: says why the operator stays, and what would help."""
    node = match.root
    raise Refused(f"`{node.domain}.{node.op}` {REASONS[node.op]}")
