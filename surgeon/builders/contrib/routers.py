"""`com.microsoft.MoEGroupRouter`: experts are chosen of a few groups of them, as in DeepSeek-V3.

The formulas are those of onnxruntime's `ContribOperators.md`; of equal ones the first is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.builders.contrib.settings import settings, width_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT = int(TYPE.FLOAT)
_USUAL: Mapping[str, Any] = {
    "top_k": 0,
    "n_group": 1,
    "topk_group": 1,
    "group_topk": 2,
    "router_sentinel": -10000.0,
}
_LEAST_SHARE = 1e-20


def group_router(draft: Draft, match: Match) -> Any:
    """Logarithms of sigmoids where an expert is chosen; or all sigmoids, and with a bias."""
    node, c = match.root, Bench(draft)
    given = settings(node, 2, 3, _USUAL)
    logits, bias, weight = node.inputs[0], node.inputs[1], operand(node, 2)
    count = width_of(draft, bias, *([logits] if weight is None else []), what="its bias is")
    scores = c.cast(logits, _FLOAT)
    if weight is not None:
        scores = c.op("MatMul", scores, c.permute(c.cast(weight, _FLOAT), [1, 0]))
    elif c.rank(logits) != 2:
        scores = c.op("Reshape", scores, c.ints([-1, count], "tokens"))
    shares = c.op("Sigmoid", scores)
    ranked = c.op("Add", shares, bias)
    named = [not t.is_empty() for t in node.outputs]
    if any(named[1:]):
        if named[0] and parts.is_read(draft, node.outputs[0]):
            raise Refused("it gives all scores, and those of the chosen")
        return ranked, ranked, shares
    y = c.cast(_chosen(c, given, shares, ranked, count), c.dtype(logits))
    return y, y, y  # the others are read by nobody


def _chosen(
    c: Bench, given: Mapping[str, Any], shares: gs.Tensor, ranked: gs.Tensor, count: int
) -> gs.Tensor:
    """The logarithm of the shares of the highest ranks, and the sentinel elsewhere."""
    groups, kept = int(given["n_group"]), int(given["topk_group"])
    number = int(given["top_k"])
    if groups < 1 or count % groups or not 1 <= kept <= groups or not 1 <= number <= count:
        raise Refused(f"{number} of {count} experts, and {kept} of {groups} groups, are none")
    if kept < groups:
        ranked = _of_groups(c, ranked, groups, kept, count // groups, int(given["group_topk"]))
    number = min(number, kept * (count // groups))
    _, places = c.op("TopK", ranked, c.ints([number], "k"), outputs=2, axis=1)
    own = c.op("GatherElements", shares, places, axis=1)
    own = c.op("Log", c.op("Max", own, c.number(_LEAST_SHARE, _FLOAT)))
    nothing = c.filled(c.sizes(shares), float(given["router_sentinel"]), _FLOAT)
    made: gs.Tensor = c.op("ScatterElements", nothing, places, own, axis=1)
    return made


def _of_groups(
    c: Bench, ranked: gs.Tensor, groups: int, kept: int, each: int, best: int
) -> gs.Tensor:
    """The ranks within the groups whose best ones have the largest sums, and -inf in others."""
    apart = c.op("Reshape", ranked, c.ints([-1, groups, each], "groups"))
    found, _ = c.op("TopK", apart, c.ints([min(max(best, 1), each)], "k"), outputs=2, axis=2)
    sums = c.op("ReduceSum", found, c.ints([2], "axes"), keepdims=0)
    largest, places = c.op("TopK", sums, c.ints([kept], "k"), outputs=2, axis=1)
    nothing = c.filled(c.sizes(sums), 0, _FLOAT)
    ones = c.filled(c.sizes(largest), 1, _FLOAT)
    marked = c.op("ScatterElements", nothing, places, ones, axis=1)
    chosen = c.unsqueeze(c.op("Greater", marked, c.number(0, _FLOAT)), [2])
    inside = c.where(chosen, apart, c.number(-np.inf, _FLOAT))
    made: gs.Tensor = c.op("Reshape", inside, c.ints([-1, groups * each], "experts"))
    return made
