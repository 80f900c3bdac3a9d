"""Targets of Reshape and Expand that are computed, entry by entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.lists import entries_of, joined_of
from surgeon.builders.views import KEEP_ORDER
from surgeon.facts import Facts
from surgeon.facts.fact import Array
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

Shape = tuple[dims.Dim, ...]

_WRAPS = 1 << 31  # times a size, it may be 0 where the product wraps around


def inferred_entry(draft: Draft, match: Match) -> gs.Tensor:
    """y = Reshape (x, t) for a t of numbers and one computed size, which the others tell: -1.

    Should the size be 0, it copies a dimension, and the elements are as many as before only where
    that is what the others tell.
    """
    root = match.root
    entries = entries_of(draft.facts, root.inputs[1])
    if entries is None:
        raise Refused("its target is not joined of single sizes")
    numbers = [entry if isinstance(entry, int) else -1 for entry in entries]
    computed = [entry for entry in entries if not isinstance(entry, int)]
    if 0 in numbers or numbers.count(-1) != 1 or len(computed) != 1:
        raise Refused("the others do not tell the computed size")
    target = draft.constant(numbers, "shape")
    return draft.op("Reshape", root.inputs[0], target, allowzero=0)


def copied_entries(draft: Draft, match: Match) -> gs.Tensor:
    """y = Reshape (x, t) for a computed t: 0 where a size stays, and -1 for the costliest other.

    Where a 0 in t is a length of 0 it stays one, and so nothing is copied. A size is inferred where
    the others tell it, should one of them be 0.
    """
    root, facts = match.root, draft.facts
    as_is = bool(attribute_of(root, "allowzero"))
    x, target = root.inputs
    own, out = facts.of(x).shape, facts.of(root.outputs[0]).shape
    blocks = _blocks(facts, target)
    if own is None or out is None or blocks is None:
        raise Refused("a shape is not known, or its target is not joined of lists of known length")
    if 0 in out or sum(length for _, length in blocks) != len(out):
        raise Refused("a tensor without elements tells no size")
    found: list[int | gs.Tensor] = []
    places: list[int] = []  # the axis of each
    axis = 0
    for entry, length in blocks:
        axes = range(axis, axis + length)
        known = [size for at in axes if (size := _copied(own, out, at, as_is=as_is)) is not None]
        if len(known) == length:
            found += known
            places += axes
        else:
            found.append(entry)
            places.append(axis)
        axis += length
    if not any(isinstance(entry, int) and entry == -1 for entry in found):
        # one that is read once in the target: another copy of it would keep what computes it
        often = Counter(id(entry) for entry in found)
        single = {id(entry) for entry, length in blocks if length == 1}
        # which may be -1 when the model runs, and then no other may
        open_ = {
            id(e) for e in found if isinstance(e, gs.Tensor) and not _is_sizes(facts.of(e).value)
        }
        left = [
            (dims.named(out[places[place]]) is None, _is_arithmetic(entry), place)
            for place, entry in enumerate(found)
            if isinstance(entry, gs.Tensor) and id(entry) in single and often[id(entry)] == 1
            if dims.infers(own, out, places[place]) and not open_ - {id(entry)}
        ]
        if left:
            found[max(left)[2]] = -1
    if len(_computed(found)) >= len(_computed([entry for entry, _ in blocks])):
        raise Refused("every size that is computed has to be")
    return draft.op("Reshape", x, joined_of(draft, found), allowzero=int(as_is))


def _copied(own: Shape, out: Shape, axis: int, *, as_is: bool) -> int | None:
    """What a target says of an axis that has a known size, or keeps the one that it has."""
    size = out[axis]
    if isinstance(size, int):
        return size
    copies = not as_is and axis < len(own) and dims.equal(own[axis], size) is True
    return 0 if copies else None


def _is_sizes(value: Array | None) -> bool:
    """Whether a list provably holds no -1."""
    return value is not None and all(map(dims.not_negative, value.reshape(-1).tolist()))


def _computed(entries: Sequence[int | gs.Tensor]) -> set[int]:
    """The values that a target reads, by identity."""
    return {id(entry) for entry in entries if isinstance(entry, gs.Tensor)}


def _blocks(facts: Facts, target: gs.Tensor) -> list[tuple[int | gs.Tensor, int]] | None:
    """What a target is joined of: numbers, and lists of computed sizes, each with its length."""
    node = producer_of(target)
    parts = node.inputs if node is not None and node.op == "Concat" else [target]
    found: list[tuple[int | gs.Tensor, int]] = []
    for part in parts:
        array, shape = facts.array(part), facts.of(part).shape
        if array is not None:
            found += [(int(number), 1) for number in array.reshape(-1).tolist()]
        elif shape is not None and len(shape) == 1 and isinstance(shape[0], int):
            found.append((part, shape[0]))
        else:
            return None
    return found


def _is_arithmetic(entry: gs.Tensor) -> bool:
    """Whether a size is more than a part of a shape."""
    while entry.inputs:
        node = entry.inputs[0]
        if node.op not in KEEP_ORDER:
            return node.op not in ("Gather", "Slice", "Shape", "Split")
        entry = node.inputs[0]
    return False


def constant_expand(draft: Draft, match: Match) -> gs.Tensor:
    """y = Expand (x, s) for a computed s, with 1 where x has the size and numbers elsewhere."""
    root, facts = match.root, draft.facts
    x: gs.Tensor = root.inputs[0]
    own, out = facts.of(x).shape, facts.of(root.outputs[0]).shape
    if own is None or out is None:
        raise Refused("a shape is not known")
    target: list[int] = []
    for axis, size in enumerate(out, len(own) - len(out)):
        if axis >= 0 and own[axis] == size:
            target.append(1)
        elif isinstance(size, int):
            target.append(size)
        else:
            raise Refused(f"an axis has its {size} from the target alone")
    return draft.op("Expand", x, draft.constant(target, "shape"))


def reshape_of_reshape(draft: Draft, match: Match) -> gs.Tensor:
    """y = Reshape (x, t) of a Reshape of x by s, where t is computed.

    A 0 in a target copies a dimension of what is reshaped. Where t has one, s must have one too:
    then the dimension in between is x's own.
    """
    (root, inner), facts = match.nodes[:2], draft.facts
    target, x = root.inputs[1], inner.inputs[0]
    if facts.array(target) is not None:
        raise Refused("its target is constant")
    as_is = attribute_of(root, "allowzero")
    if not as_is:
        if attribute_of(inner, "allowzero"):
            raise Refused("the Reshape in between may make dimensions of 0")
        before, after = (entries_of(facts, node.inputs[1]) for node in (inner, root))
        if after is None:
            raise Refused("its target is not joined of single sizes")
        for axis, entry in enumerate(after):
            own = before[axis] if before is not None and axis < len(before) else None
            if not _zero_with(facts, entry, own):
                raise Refused(f"should axis {axis} be 0, it copies one of the value in between")
    return draft.op("Reshape", x, target, allowzero=as_is or 0)


def _zero_with(facts: Facts, entry: int | gs.Tensor, own: int | gs.Tensor | None) -> bool:
    """Whether an entry is never 0, or only where the entry of the target before copies as well."""
    if isinstance(entry, int):
        return entry != 0
    if own is None or isinstance(own, int):
        return own == 0
    return _factor(facts, entry) is _factor(facts, own)


def _factor(facts: Facts, size: gs.Tensor) -> gs.Tensor:
    """The value that a size is a multiple of, by constants other than 0 and views.

    By small ones, as a product that wraps around may be 0.
    """
    while size.inputs:
        node = size.inputs[0]
        if (node.domain or "") not in STANDARD:
            return size
        if node.op in KEEP_ORDER:
            size = node.inputs[0]
            continue
        factors = list(node.inputs) if node.op == "Mul" else []
        arrays = [facts.array(factor) for factor in factors]
        plain = [
            array is not None and bool(((abs(array) > 0) & (abs(array) < _WRAPS)).all())
            for array in arrays
        ]
        if True not in plain:
            return size
        size = factors[1 - plain.index(True)]
    return size
