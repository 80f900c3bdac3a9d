"""Convs of one value that are joined behind it: one Conv."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.jointly import handed_out
from surgeon.builders.linear import bias_of
from surgeon.builders.parts import own_weight
from surgeon.match import Match, attribute_of
from surgeon.opsets import STANDARD
from surgeon.rewrite import Draft, Refused

_BENT = frozenset(
    {"Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Relu", "Selu", "Sigmoid"}
    | {"Softplus", "Softsign", "Tanh"}
)
_GATES = frozenset({"HardSigmoid", "Sigmoid"})
_MOST_READERS = 64  # of a value, each of which looks at all the others
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
        if bent is not None or node.op not in _BENT:
            return None
        bent, tensor = node, node.inputs[0]
    return None


def _key(conv: gs.Node, bent: gs.Node | None) -> tuple[Any, ...]:
    """What two of them have in common that may be one."""
    weight = conv.inputs[1]
    kernel = tuple(conv.attrs.get("kernel_shape") or weight.shape[2:])
    attributes = {k: v for k, v in conv.attrs.items() if k != "kernel_shape"}
    own = (bent.op, repr(sorted(bent.attrs.items()))) if bent is not None else None
    return id(conv.inputs[0]), kernel, repr(sorted(attributes.items())), own


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


def convs_apart(draft: Draft, match: Match) -> gs.Tensor:
    """Convs of one value, alike but for their weights and bent alike, as one and a Split.

    The root is what bends the first of them, or gates it with what is computed of it.
    """
    root = match.root
    first = next(node for node in match.nodes if node.op == "Conv")
    x, key = first.inputs[0], _key(first, None)
    found = [(first, root)]
    readers = x.outputs
    if len(readers) > _MOST_READERS:
        raise Refused("very many read what it reads")
    for conv in readers:
        if conv is first or conv.op != "Conv" or conv.inputs[0] is not x or not draft.holds(conv):
            continue
        end = _bent_like(draft, conv, root, first)
        if end is not None and _key(conv, None) == key:
            found.append((conv, end))
    if int(attribute_of(first, "group") or 1) != 1 or len(found) < 2:
        raise Refused("no other Conv of what it reads is like it, and bent like it")
    behind = [reader for _, end in found for reader in end.outputs[0].outputs]
    if behind and behind[0].op == "Concat" and all(reader is behind[0] for reader in behind):
        raise Refused("a Concat joins them again, which sees to it")
    weights = [own_weight(draft, conv) for conv, _ in found]
    whole = _as_one(draft, [(conv, None) for conv, _ in found])
    if root.op == "Mul":
        gate = _gate(root, first.outputs[0])
        if gate is None:
            raise Refused("it is not gated with what is computed of it alone")
        bent = draft.op("Mul", whole, draft.op(gate.op, whole, **gate.attrs))
    else:
        bent = draft.op(root.op, whole, **root.attrs)
    sizes = draft.constant([len(weight) for weight in weights], "sizes")
    pieces = draft.op("Split", bent, sizes, outputs=len(found), axis=1)
    return handed_out(draft, root, [end for _, end in found], pieces)


def _bent_like(draft: Draft, conv: gs.Node, root: gs.Node, first: gs.Node) -> gs.Node | None:
    """What bends a Conv, where that is as the root bends the first; None where it is not."""
    made, mine = conv.outputs[0], first.outputs[0]
    constant = all(isinstance(operand, gs.Constant) for operand in conv.inputs[1:])
    if not constant or len(made.outputs) != len(mine.outputs) or draft.surgery.is_output(made):
        return None
    ends = [node for node in made.outputs if _same(node, root)]
    if len(ends) != 1 or not draft.holds(ends[0]) or draft.surgery.is_output(ends[0].outputs[0]):
        return None
    gate, own = _gate(ends[0], made), _gate(root, mine)
    if own is not None and (gate is None or not _same(gate, own)):
        return None
    return ends[0]


def _gate(end: gs.Node, made: gs.Tensor) -> gs.Node | None:
    """What gates a Conv with itself; None where it is bent by one operator, or otherwise."""
    if end.op != "Mul":
        return None
    others = [t.inputs[0] for t in end.inputs if t is not made and t.inputs]
    if len(others) != 1 or others[0].op not in _GATES or others[0].inputs[0] is not made:
        return None
    return others[0] if len(others[0].outputs[0].outputs) == 1 else None


def _same(first: gs.Node, second: gs.Node) -> bool:
    return first.op == second.op and repr(sorted(first.attrs.items())) == repr(
        sorted(second.attrs.items())
    )
