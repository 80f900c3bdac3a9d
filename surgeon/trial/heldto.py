"""Which values a rewrite is held to, by what its rule promises."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set

import onnx
import onnx_graphsurgeon as gs

from surgeon import edges
from surgeon.edges import EDGES, FEW, FLAT, HUGE, LARGE, SMALL, TINY, VAST, WITHIN
from surgeon.facts.fact import BOOL, INT64, INTEGERS
from surgeon.recipe import Rule
from surgeon.trial.piece import Piece

_BYTES = frozenset({onnx.TensorProto.INT8, onnx.TensorProto.UINT8})
_LEAST_HALF = 2.0**-24  # what is less is nearly all 0 in halves


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
        truths=BOOL in dtypes,
        quantized=bool(dtypes & _BYTES),
        exact=rule.exact == "bit",
    )
    # an epsilon is held in single precision, as what is of double precision is not; halves that are
    # as small may be zeros alone
    least = _LEAST_HALF if onnx.TensorProto.FLOAT16 in dtypes else 0
    if piece.least > least and (EDGES, 0) in found and onnx.TensorProto.DOUBLE not in dtypes:
        found += [(SMALL, 0), (SMALL, 1)]
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
        return (TINY, HUGE, FEW)  # where single precision ends
    before, after = ({_operator(node) for node in nodes} for nodes in (piece.nodes, piece.draft))
    if "QuantizeLinear" in before - after:
        return (EDGES, WITHIN, FLAT, TINY, SMALL, FEW)  # what is no larger than a level
    if "DynamicQuantizeLSTM" in before - after:
        return (EDGES, WITHIN, HUGE, FEW)  # the largest number decides how wide a level is
    return (FEW,)  # of which a function that ends in 0 leaves little to hold an error against


def _operator(node: gs.Node) -> str:
    return str(node.op if node.op == "ATen" or node.domain == "aten" else node.origin.op_type)
