"""Nodes that go: taken from the readers of what they read; and who let each go, in words."""

from __future__ import annotations

from typing import Any, NamedTuple

import onnx_graphsurgeon as gs

from surgeon.links import bodies
from surgeon.model import describe
from surgeon.objects import forget_reader


class Departure(NamedTuple):
    """A node that went.

    Attributes:
        node: The node.
        root: The node that was let go; `node` itself, or what alone read it.
        cause: Why `root` went: a rule as `recipe/rule`, a sentence's end, or the node that computes
            the same.
    """

    node: Any
    root: Any
    cause: Any


class Departures:
    """The nodes that went, in order.

    Attributes:
        cause: Why the next ones go. Who lets nodes go says so first.
    """

    def __init__(self) -> None:
        """None went yet."""
        self.cause: Any = ""
        self.all: list[Departure] = []

    def add(self, node: Any, root: Any) -> None:
        """Note that a node went, because `root` was let go."""
        self.all.append(Departure(node, root, self.cause))


def fate(departure: Departure) -> tuple[str, str] | None:
    """The name of a node of the file, or of its first output, and what became of it.

    None for a node that a rule made, and for one without a name.
    """
    node, root, cause = departure
    if not isinstance(cause, str):
        cause = f"was merged with {describe(cause)}, which computes the same"
    name = _name(node)
    if getattr(node, "drafted", False) or not name:
        return None
    if root is node:
        return name, f"went with the rule {cause}" if "/" in cause else cause or "was tidied away"
    reader = f"node {_name(root)!r} ({root.op})"
    if "/" in cause:
        return name, f"went with the rule {cause}, which replaced {reader}"
    return name, f"went with {reader}, which alone read it: that {cause or 'was tidied away'}"


def _name(node: Any) -> str:
    """As the file has it: the name, or the first output's."""
    origin = node.origin
    return origin.name or next(filter(None, origin.output), "") if origin is not None else ""


def unlink_bodies(node: gs.Node) -> None:
    """Take what hangs on a node from the readers of what it reads."""
    for body in [v for v in node.attrs.values() if isinstance(v, gs.Graph)]:
        for inner in (body, *bodies(body)):
            for member in inner.nodes:
                unlink(member, member.inputs)


def unlink(node: gs.Node, tensors: Any) -> list[gs.Tensor]:
    """Take `node` from the readers of its inputs, by identity; gives the inputs."""
    inputs = list(tensors)
    list.clear(tensors)
    for tensor in inputs:
        forget_reader(tensor, node)
    return inputs
