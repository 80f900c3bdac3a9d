"""Operators of `ai.onnx.ml` for which nothing is written: refused by name, with what helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_KERNELS = "has kernels and votes for which nothing is written"
REASONS: Mapping[str, str] = {
    "CastMap": "reads a map, which is no tensor; export the model without it",
    "CategoryMapper": "has categories that are strings, which stay outside of a network",
    "DictVectorizer": "reads a map, which is no tensor; export the model without it",
    "SVMClassifier": _KERNELS,
    "SVMRegressor": _KERNELS,
    "TreeEnsemble": "is of version 5 of `ai.onnx.ml`; export with version 3",
}


def refused(draft: Draft, match: Match) -> Any:
    """Nothing: says why the operator stays, and what would help."""
    raise Refused(f"`{match.root.op}` {REASONS[match.root.op]}")
