"""Which values a rewrite is held to, by what its rule promises."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set

import onnx
import onnx_graphsurgeon as gs

from surgeon import edges
from surgeon.edges import EDGES, FLAT, HUGE, LARGE, TINY, VAST
from surgeon.facts.fact import BOOL, INT64, INTEGERS
from surgeon.recipe import Rule
from surgeon.trial.piece import Piece


def narrows(rule: Rule, nodes: Sequence[gs.Node]) -> bool:
    """Whether a rewrite computes in halves what was computed in float32."""
    if rule.whole is None:
        return False
    facts = (getattr(tensor, "fact", None) for node in nodes for tensor in node.outputs)
    return any(fact is not None and fact.dtype == onnx.TensorProto.FLOAT16 for fact in facts)


def styles(rule: Rule, piece: Piece) -> list[tuple[str, int]]:
    """The ways of drawing values that a rewrite can be held to, each with a seed."""
    nodes = (*piece.nodes, *piece.draft)
    dtypes = {fact.dtype for _, fact in piece.inputs if fact.value is None}
    found = edges.styles(
        {_operator(node) for node in nodes},
        integers=bool(dtypes & INTEGERS),
        floats=bool(dtypes - INTEGERS - {BOOL}),
        exact=rule.exact == "bit",
    )
    unsuited = _unsuited(rule, piece, dtypes)
    return [each for each in found if each[0] not in unsuited]


def _unsuited(rule: Rule, piece: Piece, dtypes: Set[int]) -> Collection[str]:
    """Styles of values of which the rule says nothing: what it changes shows there alone."""
    casts = {node.attrs.get("to") for node in piece.draft if node.op == "Cast"}
    if rule.contract and INT64 in dtypes and onnx.TensorProto.INT32 in casts:
        return (LARGE, VAST)
    if rule.exact != "approximate":
        return ()
    if onnx.TensorProto.DOUBLE in dtypes and onnx.TensorProto.FLOAT in casts:
        return (TINY, HUGE)  # where single precision ends
    before, after = ({_operator(node) for node in nodes} for nodes in (piece.nodes, piece.draft))
    if "QuantizeLinear" in before - after:
        return (EDGES, FLAT, TINY)  # what is no larger than a level
    if "DynamicQuantizeLSTM" in before - after:
        return (EDGES, HUGE)  # the largest number decides how wide a level is
    return ()


def _operator(node: gs.Node) -> str:
    return str(node.op if node.op == "ATen" or node.domain == "aten" else node.origin.op_type)
