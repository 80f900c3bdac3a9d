"""What is computed element by element, or along axes, between Transposes: done before they turn.

A normalisation over the channels of an image is written as a Transpose, the norm over the last
axis, and a Transpose back. Where the norm is spelled out, its operators work along any axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.cleaning import order_of
from surgeon.builders.turned_axes import NAMING, along_others, may_name_others
from surgeon.facts.elementwise import ELEMENTWISE, REDUCTIONS
from surgeon.links import maker_of
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_EACH = ELEMENTWISE | {"Clip", "PRelu"}
_ALONG = frozenset({"Concat", "LogSoftmax", "Softmax"})
_OF_FIRST = REDUCTIONS | NAMING  # whose other operands have no axes of the first
_MOST = 64  # nodes that one rewrite turns
_LARGEST = 1 << 20  # bytes of a constant that is turned


@dataclass
class _Region:
    """Nodes that work on values which a Transpose turned.

    Attributes:
        order: How the values have to be turned back.
        members: The nodes, by identity.
        entries: Transposes that they read, which `order` undoes.
        exits: Transposes by `order` of what they make.
        before: What they read besides, which must be turned.
        after: Members of which something else reads the result.
    """

    order: list[int]
    members: dict[int, gs.Node] = field(default_factory=dict)
    entries: dict[int, gs.Node] = field(default_factory=dict)
    exits: dict[int, gs.Node] = field(default_factory=dict)
    before: dict[int, gs.Tensor] = field(default_factory=dict)
    after: dict[int, gs.Node] = field(default_factory=dict)


def turned_region(draft: Draft, match: Match) -> gs.Tensor:
    """All that is computed between Transposes there and back, without them.

    Raises:
        Refused: There would not be fewer Transposes; or some would be left beside a mean or a norm
            over the last axis, which runtimes know as it stands.
    """
    root = match.root
    rank = draft.facts.of(root.inputs[0]).rank
    if rank is None:
        raise Refused("its rank is not known")
    maker = maker_of(root.inputs[0])
    if maker is None or not _may_turn(draft, maker, rank):
        raise Refused("what it turns is not computed element by element, or along axes")
    order = order_of(root, rank)
    found = None
    for forward in (True, False):
        region = _grown(draft, root, order, forward=forward)
        saved = 0 if region is None else _saved(draft, region)
        if region is not None and saved > (0 if found is None else found[0]):
            found = saved, region
    if found is None:
        raise Refused("no Transpose would be saved by turning back what stands in front of it")
    return _turned(draft, root, found[1])


def _grown(draft: Draft, root: gs.Node, order: list[int], *, forward: bool) -> _Region | None:
    """All that hangs together in front of the root; None where that is too much.

    Args:
        draft: Where facts are asked.
        root: The Transpose.
        order: Its order of axes.
        forward: Whether what else reads these values may belong to it, too.
    """
    region, back = _Region(order), [order.index(axis) for axis in range(len(order))]
    waiting = [root.inputs[0].inputs[0]]
    while waiting:
        node = waiting.pop()
        if id(node) in region.members:
            continue
        region.members[id(node)] = node
        if len(region.members) > _MOST:
            return None
        for tensor in _computed(draft, node):
            maker = maker_of(tensor)
            if maker is not None and _is_transpose(draft, maker, back):
                region.entries[id(maker)] = maker
            elif maker is not None and _may_turn(draft, maker, len(order)):
                waiting.append(maker)
            else:
                region.before[id(tensor)] = tensor
        if forward:
            readers = node.outputs[0].outputs
            waiting.extend(n for n in readers if _may_turn(draft, n, len(order)))
    for node in region.members.values():
        given = draft.surgery.is_output(node.outputs[0])
        for reader in node.outputs[0].outputs:
            if _is_transpose(draft, reader, order) and not (
                reader is not root and draft.surgery.is_output(reader.outputs[0])
            ):
                region.exits[id(reader)] = reader
            elif id(reader) not in region.members:
                given = True
        if given:
            region.after[id(node)] = node
    return region


def _saved(draft: Draft, region: _Region) -> int:
    """How many Transposes there will be fewer."""
    gone = sum(
        not draft.surgery.is_output(node.outputs[0])
        and all(id(reader) in region.members for reader in node.outputs[0].outputs)
        for node in region.entries.values()
    )
    added = len(region.before) + len(region.after)
    if added and any(node.op in REDUCTIONS for node in region.members.values()):
        return 0
    return gone + len(region.exits) - added


def _computed(draft: Draft, node: gs.Node) -> Iterator[gs.Tensor]:
    """The operands that have axes to be turned, constants left out."""
    for tensor in node.inputs[:1] if node.op in _OF_FIRST else node.inputs:
        has_axes = not tensor.is_empty() and not isinstance(tensor, gs.Constant)
        if has_axes and not _known_levels(draft, tensor) and draft.facts.of(tensor).rank != 0:
            yield tensor


def _is_transpose(draft: Draft, node: gs.Node, order: list[int]) -> bool:
    if node.op != "Transpose" or node.domain or not draft.holds(node):
        return False
    return order_of(node, len(order)) == order


def _may_turn(draft: Draft, node: gs.Node, rank: int) -> bool:
    """Whether a node can be computed of values that are turned, maybe along other axes."""
    if (node.domain or "") not in STANDARD or len(node.outputs) != 1:
        return False
    facts = draft.facts
    if node.op in REDUCTIONS:
        axes = facts.array(node.inputs[1]) if len(node.inputs) > 1 else None
        if axes is None or not axes.size or not attribute_of(node, "keepdims"):
            return False
    elif node.op in NAMING:
        if not may_name_others(draft, node, rank):
            return False
    elif node.op not in _EACH and node.op not in _ALONG:
        return False
    if facts.of(node.outputs[0]).rank != rank or not draft.holds(node):
        return False
    for tensor in node.inputs:
        if isinstance(tensor, gs.Constant):
            array = facts.array(tensor)
            if array is None or array.nbytes > _LARGEST:
                return False
    return all(facts.of(tensor).rank == rank for tensor in _computed(draft, node))


def _known_levels(draft: Draft, tensor: gs.Tensor) -> gs.Node | None:
    """The DequantizeLinear of constant levels that makes a value, which is turned with them."""
    node = maker_of(tensor)
    if node is None or node.op != "DequantizeLinear" or (node.domain or "") not in STANDARD:
        return None
    array = draft.facts.array(node.inputs[0])
    for_all = all(draft.facts.of(number).rank == 0 for number in node.inputs[1:])
    return node if for_all and array is not None and array.nbytes <= _LARGEST else None


def _turned(draft: Draft, root: gs.Node, region: _Region) -> gs.Tensor:
    """The members anew, of values that were never turned; gives what takes the root's place."""
    order = region.order
    back = [order.index(axis) for axis in range(len(order))]
    made: dict[int, gs.Tensor] = {id(n.outputs[0]): n.inputs[0] for n in region.entries.values()}
    for tensor in region.before.values():
        made[id(tensor)] = draft.op("Transpose", tensor, perm=order)
    waiting = list(region.members.values())
    while waiting:
        node = waiting[-1]
        if id(node.outputs[0]) in made:
            waiting.pop()
            continue
        missing = [t for t in _computed(draft, node) if id(t) not in made]
        if missing:
            waiting.extend(t.inputs[0] for t in missing)
            continue
        made[id(node.outputs[0])] = _again(draft, node, order, made)
    for node in region.after.values():
        turned = draft.op("Transpose", made[id(node.outputs[0])], perm=back)
        draft.also.append((node, [(node.outputs[0], turned)]))
    for node in region.exits.values():
        if node is not root:
            draft.also.append((node, [(node.outputs[0], made[id(node.inputs[0])])]))
    return made[id(root.inputs[0])]


def _again(draft: Draft, node: gs.Node, order: list[int], made: dict[int, gs.Tensor]) -> gs.Tensor:
    """One member of values that were never turned."""
    attributes, rank = dict(node.attrs), len(order)
    if node.op in NAMING:
        return along_others(draft, node, made[id(node.inputs[0])], order)
    if node.op in REDUCTIONS:
        axes = draft.facts.array(node.inputs[1])
        assert axes is not None
        own = sorted(order.index(int(axis) % rank) for axis in axes.reshape(-1))
        x = made[id(node.inputs[0])]
        reduced: gs.Tensor = draft.op(node.op, x, draft.constant(own, "axes"), **attributes)
        return reduced
    if node.op in _ALONG:
        attributes["axis"] = order.index(int(attribute_of(node, "axis")) % rank)
    operands = [made.get(id(tensor), tensor) for tensor in node.inputs]
    for index, tensor in enumerate(node.inputs):
        if isinstance(tensor, gs.Constant):
            operands[index] = _constant(draft, tensor, order)
        elif id(tensor) not in made and (levels := _known_levels(draft, tensor)):
            known = _constant(draft, levels.inputs[0], order)
            operands[index] = draft.op(levels.op, known, *levels.inputs[1:], **levels.attrs)
    result: gs.Tensor = draft.op(node.op, *operands, **attributes)
    return result


def _constant(draft: Draft, tensor: gs.Tensor, order: list[int]) -> gs.Tensor:
    """A constant operand of values that were never turned."""
    array, rank = draft.facts.array(tensor), len(order)
    if array is None or array.size == 1:
        return tensor
    wide = array.reshape([1] * (rank - array.ndim) + list(array.shape))
    return draft.constant(np.ascontiguousarray(wide.transpose(order)), "turned")
