"""Einsum of the standard as what it is made of."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.bench import NARROW, TYPE, Bench
from surgeon.builders.contraction import DOTS, contract, parse
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

# Sums wrap in a wider integer as they do in their own, cut to its width at the end.
_THROUGH: dict[int, int] = {
    **dict.fromkeys(NARROW - {TYPE.BOOL}, TYPE.INT32),
    TYPE.UINT32: TYPE.INT64,
    TYPE.UINT64: TYPE.INT64,
}


def einsum_as_matmul(draft: Draft, match: Match) -> gs.Tensor:
    """Einsum of any number of operands, in Transpose, Reshape, ReduceSum, Mul and MatMul."""
    c, node = Bench(draft), match.root
    equation = attribute_of(node, "equation")
    text = equation.decode(errors="replace") if isinstance(equation, bytes) else str(equation)
    labels, wanted = parse(text, [c.rank(t) for t in node.inputs])
    lost = {one for term in labels for one in term if one.startswith(DOTS)} - set(wanted)
    if lost:
        raise Refused(
            f"`{text}` has an ellipsis that its output lacks: runtimes do not agree on whether "
            "it is summed"
        )
    dtype = c.dtype(node.inputs[0])
    if any(c.dtype(t) != dtype for t in node.inputs):
        raise Refused("its operands have several dtypes, which no runtime takes")
    through = int(_THROUGH.get(dtype, dtype))
    y = contract(c, [c.cast(t, through) for t in node.inputs], labels, wanted)
    return c.cast(y, dtype)
