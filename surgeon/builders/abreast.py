"""Convs of one value that are joined behind it: one Conv."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.alike import spelled
from surgeon.builders.linear import bias_of
from surgeon.builders.own_constants import own_weight
from surgeon.facts.elementwise import UNARY
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_Part = tuple[gs.Node, gs.Node | None]  # a Conv, and what is computed of it element by element


def convs_joined(draft: Draft, match: Match) -> gs.Tensor:
    """Convs of one value, alike but for their weights, joined along their channels, as one."""
    root = match.root
    rank = draft.facts.of(root.outputs[0]).rank
    if rank is None or int(attribute_of(root, "axis")) % rank != 1:
        raise Refused("it does not join channels")
    parts = [(tensor, _part(draft, tensor)) for tensor in root.inputs]
    operands: list[gs.Tensor] = []
    for key, run in groupby(parts, lambda found: found[1] and _key(*found[1])):
        found = list(run)
        convs = [part for _, part in found if part is not None]
        if key is None or len(convs) < 2:
            operands.extend(tensor for tensor, _ in found)
        else:
            operands.append(_as_one(draft, convs))
    if len(operands) == len(root.inputs):
        raise Refused("no two operands that are neighbours are Convs of one value")
    if len(operands) == 1:
        return operands[0]
    y: gs.Tensor = draft.op("Concat", *operands, **root.attrs)
    return y


def _part(draft: Draft, tensor: gs.Tensor) -> _Part | None:
    """The Conv behind an operand that nothing else reads, and what bends its result."""
    bent: gs.Node | None = None
    while len(tensor.outputs) == 1 and not draft.surgery.is_output(tensor) and tensor.inputs:
        node = tensor.inputs[0]
        if (node.domain or "") not in STANDARD or not draft.holds(node):
            return None
        if node.op == "Conv":
            constant = all(isinstance(operand, gs.Constant) for operand in node.inputs[1:])
            single = int(attribute_of(node, "group") or 1) == 1
            return (node, bent) if constant and single else None
        if bent is not None or node.op not in UNARY:
            return None
        bent, tensor = node, node.inputs[0]
    return None


def _key(conv: gs.Node, bent: gs.Node | None) -> tuple[Any, ...]:
    """What two of them have in common that may be one."""
    weight = conv.inputs[1]
    kernel = tuple(conv.attrs.get("kernel_shape") or weight.shape[2:])
    attributes = {k: v for k, v in conv.attrs.items() if k != "kernel_shape"}
    own = (bent.op, spelled(bent.attrs)) if bent is not None else None
    return id(conv.inputs[0]), kernel, spelled(attributes), own


def _as_one(draft: Draft, parts: Sequence[_Part]) -> gs.Tensor:
    weights = [own_weight(draft, conv) for conv, _ in parts]
    biases = [bias_of(draft, conv) for conv, _ in parts]
    operands = [draft.constant(np.concatenate(weights), "weight")]
    if any(bias is not None for bias in biases):
        made = [
            np.zeros(len(w), w.dtype) if b is None else b
            for w, b in zip(weights, biases, strict=True)
        ]
        operands.append(draft.constant(np.concatenate(made), "bias"))
    conv, bent = parts[0]
    y: gs.Tensor = draft.op("Conv", conv.inputs[0], *operands, **conv.attrs)
    return y if bent is None else draft.op(bent.op, y, **bent.attrs)
