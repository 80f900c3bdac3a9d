"""What was found of a pattern, or why not; and how a value and an attribute are looked at."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import onnx_graphsurgeon as gs

from surgeon import standard
from surgeon.links import maker_of
from surgeon.standard import STANDARD

VIEWS = frozenset({"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Cast"})


@dataclass(slots=True)  # not frozen, which makes one three times as slow; nobody changes one
class Match:
    """A pattern found in the graph.

    Attributes:
        root: The node that stands for the pattern's last.
        nodes: All matched nodes, the root first.
        values: The tensor that each name is bound to; None for an optional input left out.
        attributes: What `@name` captured, and under `*name` the rest of a node's attributes.
        rests: The operands that `*name` took.
        views: The nodes that `name~` looked through, nearest to the consumer first.
    """

    root: gs.Node
    nodes: tuple[gs.Node, ...]
    values: Mapping[str, gs.Tensor | None]
    attributes: Mapping[str, Any]
    rests: Mapping[str, tuple[gs.Tensor, ...]]
    views: Mapping[str, tuple[gs.Node, ...]]


class Miss(NamedTuple):
    """Why a rule did not fire at a node.

    Attributes:
        root: Where matching began.
        matched: How many of the pattern's nodes were found.
        total: How many it has.
        reason: In the recipe writer's words; a function, because few are ever read.
    """

    root: gs.Node
    matched: int
    total: int
    reason: Callable[[], str]


def look_through(tensor: gs.Tensor, stop: Sequence[str] = ()) -> tuple[gs.Tensor, list[gs.Node]]:
    """The value behind a chain of views, and the chain, nearest to the consumer first.

    Args:
        tensor: Where to begin.
        stop: Operators that end the walk although they are views.
    """
    chain: list[gs.Node] = []
    while tensor.inputs:
        node = tensor.inputs[0]
        if node.op in stop or node.op not in VIEWS or (node.domain or "") not in STANDARD:
            break
        chain.append(node)
        tensor = node.inputs[0]
    return tensor, chain


def producer_of(tensor: gs.Tensor) -> gs.Node | None:
    """The node of ONNX's own that makes a tensor; None of an input, a constant, or any other node.

    Another domain may have an operator of the same name, and so may an older opset (see
    `opsets.LEGACY`): whoever asks for the name alone takes one for the other.
    """
    node = maker_of(tensor)
    return node if node is not None and (node.domain or "") in STANDARD else None


def is_one_of(node: gs.Node | None, operators: Container[str]) -> bool:
    """Whether a node is one of these operators of ONNX's own, whoever reads or makes what."""
    return node is not None and node.op in operators and (node.domain or "") in STANDARD


def attribute_of(node: gs.Node, key: str) -> Any:
    """An attribute's value, or the default that the schema gives; None without either."""
    if key in node.attrs:
        return node.attrs[key]
    if (node.domain or "") in STANDARD:
        return standard.defaults(node.op, standard.newest_opset()).get(key)
    return None
