"""What a node of onnxruntime's says of itself, where only what is known here may be said.

onnxruntime adds attributes and operands to operators of its own without a new version of them, so
that one which is not known here may change what a node computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.rewrite import Draft, Refused


def settings(
    node: gs.Node,
    needed: int,
    operands: int,
    usual: Mapping[str, Any] | None = None,
    *,
    unwritten: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The attributes, with their defaults.

    Args:
        node: The node.
        needed: How many operands must be there.
        operands: How many are known; further ones must be left out.
        usual: The attributes that count, and their defaults.
        unwritten: Those for which nothing is written, and the value at which they say nothing.

    Raises:
        Refused: It has others, an operand that is not known, or not all that it needs.
    """
    usual, unwritten = usual or {}, unwritten or {}
    for name, value in node.attrs.items():
        if name in usual or (name in unwritten and value == unwritten[name]):
            continue
        raise Refused(f"nothing is written for its `{name}`, which is {value!r}")
    if len(node.inputs) < needed or any(tensor.is_empty() for tensor in node.inputs[:needed]):
        raise Refused(f"it lacks one of its first {needed} operands")
    if any(not tensor.is_empty() for tensor in node.inputs[operands:]):
        raise Refused(f"it has more operands than the {operands} that are known")
    return {**usual, **node.attrs}


def refuse_read(draft: Draft, node: gs.Node, first: int, what: str) -> None:
    """See that nobody reads the outputs from this one on.

    Raises:
        Refused: Somebody does; `what` says what they are.
    """
    if any(parts.is_read(draft, t) for t in node.outputs[first:] if not t.is_empty()):
        raise Refused(f"{what}, which is not written here, is read")


def width_of(draft: Draft, *tensors: gs.Tensor | None, what: str) -> int:
    """The last dimension, which all of these share and one must tell.

    Raises:
        Refused: None tells it; `what` says what it is of.
    """
    for tensor in tensors:
        shape = None if tensor is None else draft.facts.of(tensor).shape
        if shape and isinstance(shape[-1], int):
            return shape[-1]
    raise Refused(f"how wide {what} is not known")
