"""Defaults that ONNX states in words: what windows and transpositions leave out."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.facts import Facts
from surgeon.match import attribute_of
from surgeon.standard import STANDARD

WEIGHTS = {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "DeformConv": 1, "QLinearConv": 3}
"""Which operand is the weight of a convolution."""
_POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})


def default_in_words(node: gs.Node, key: str, facts: Facts) -> list[int] | None:
    """What an attribute is where the file leaves it out, by the text of its operator.

    Args:
        node: Of ONNX's own domain, or none of these operators.
        key: `perm`, `strides`, `dilations`, `pads` or `kernel_shape`.
        facts: Asked for ranks, and for the shapes of weights.

    Returns:
        The numbers; None where there are none, or a rank or a size is not known.
    """
    if (node.domain or "") not in STANDARD or not node.inputs:
        return None
    rank = facts.of(node.inputs[0]).rank
    if node.op == "Transpose":
        return None if key != "perm" or rank is None else [*range(rank)][::-1]
    place = WEIGHTS.get(node.op)
    if place is None and node.op not in _POOLS:
        return None
    weight = None if place is None else facts.of(node.inputs[place]).shape
    if (rank := rank if weight is None else len(weight)) is None:
        return None
    if key in ("strides", "dilations"):
        return [1] * (rank - 2)
    if key == "pads" and "output_shape" not in node.attrs:
        worked_out = attribute_of(node, "auto_pad") not in (None, "NOTSET", "VALID")
        return None if worked_out else [0] * 2 * (rank - 2)
    if key == "kernel_shape" and weight is not None:
        sizes = [size for size in weight[2:] if isinstance(size, int)]
        return sizes if len(sizes) == rank - 2 else None
    return None
