"""Transposes around an Einsum, which names its axes and so takes them in any order."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.cleaning import order_of
from surgeon.match import Match, producer_of
from surgeon.rewrite import Draft, Refused


def transposes_into_einsum(draft: Draft, match: Match) -> gs.Tensor:
    """y = Einsum of Transposes, of what those turn."""
    node = match.root
    terms, result = _terms(node)
    operands = list(node.inputs)
    for index, tensor in enumerate(node.inputs):
        turned = producer_of(tensor)
        alone = len(tensor.outputs) == 1 and not draft.surgery.is_output(tensor)
        if turned is None or turned.op != "Transpose" or not alone or not draft.holds(turned):
            continue
        order = order_of(turned, len(terms[index]))
        if len(order) == len(terms[index]):
            terms[index] = "".join(terms[index][order.index(i)] for i in range(len(order)))
            operands[index] = turned.inputs[0]
    if operands == list(node.inputs):
        raise Refused("no operand is a Transpose that nothing else reads")
    y: gs.Tensor = draft.op("Einsum", *operands, equation=f"{','.join(terms)}->{result}")
    return y


def transpose_behind_einsum(draft: Draft, match: Match) -> gs.Tensor:
    """y = Transpose of an Einsum, as an Einsum whose result has that order."""
    root, node = match.root, match.nodes[1]
    terms, result = _terms(node)
    order = order_of(root, len(result))
    turned = "".join(result[axis] for axis in order)
    y: gs.Tensor = draft.op("Einsum", *node.inputs, equation=f"{','.join(terms)}->{turned}")
    return y


def _terms(node: gs.Node) -> tuple[list[str], str]:
    """The letters of each operand, and of the result.

    Raises:
        Refused: Some axes have no letter.
    """
    equation = node.attrs["equation"]
    text = equation.decode() if isinstance(equation, bytes) else str(equation)
    text = text.replace(" ", "")
    left, arrow, result = text.partition("->")
    if "." in text:
        raise Refused("some of its axes have no letter")
    if not arrow:
        letters = sorted(set(left) - {","})
        result = "".join(letter for letter in letters if left.count(letter) == 1)
    return left.split(","), result
