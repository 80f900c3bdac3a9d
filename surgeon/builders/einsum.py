"""Einsum of the standard as what it is made of."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.bench import NARROW, TYPE, Bench
from surgeon.builders.contraction import contract, parse
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
    text = _equation(node)
    labels, wanted = parse(text, [c.rank(t) for t in node.inputs])
    dtype = c.dtype(node.inputs[0])
    if any(c.dtype(t) != dtype for t in node.inputs):
        raise Refused("its operands have several dtypes, which no runtime takes")
    through = int(_THROUGH.get(dtype, dtype))
    y = contract(c, [c.cast(t, through) for t in node.inputs], labels, wanted)
    return c.cast(y, dtype)


def einsum_in_bounds(draft: Draft, match: Match) -> gs.Tensor:
    """Einsum whose ellipsis is summed, or stands for several numbers of axes, as products.

    PyTorch sums over the axes of an ellipsis that the output lacks, as the formula of the standard
    does, and brings ellipses of several lengths together from behind.
    """
    c, text = Bench(draft), _equation(match.root)
    terms, arrow, right = text.partition("->")
    ranks = [c.rank(t) for t in match.root.inputs]
    dots = {
        rank - len(term.replace("...", "").strip())
        for term, rank in zip(terms.replace(" ", "").split(","), ranks, strict=False)
        if "..." in term
    }
    if len(dots) < 2 and (not dots or not arrow or "..." in right):
        raise Refused("every runtime takes it as it is")
    return einsum_as_matmul(draft, match)


def _equation(node: gs.Node) -> str:
    equation = attribute_of(node, "equation")
    return equation.decode(errors="replace") if isinstance(equation, bytes) else str(equation)
