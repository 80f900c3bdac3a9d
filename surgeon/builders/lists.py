"""Lists of sizes, as shape arithmetic joins and orders them, and the numbers in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.origins import origins_of
from surgeon.builders.views import as_shape
from surgeon.facts import Facts
from surgeon.facts.elementwise import ELEMENTWISE
from surgeon.facts.fact import INT64
from surgeon.links import maker_of
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_LONGEST = 64  # entries of a list
_MOST_ENTRIES = 1 << 10  # of a target; one that is joined of itself has no end
_DEEPEST = 8  # nodes on the way from a number to the sizes that it is computed from
_OF_NUMBERS = frozenset(
    "Gather Squeeze Add Sub Mul Div Mod Cast Floor Ceil Neg Min Max Sqrt Reciprocal".split()
)


def where_of_lists(draft: Draft, match: Match) -> gs.Tensor:
    """y = Where (c, a, b) of lists of sizes for a c that is known: the entries that it takes."""
    facts, (chosen, *sides) = draft.facts, match.root.inputs
    taken = facts.array(chosen)
    if taken is None or taken.ndim > 1 or any(facts.of(t).dtype != INT64 for t in sides):
        raise Refused("which sizes it takes is known at run time only")
    first, second = (entries_of(facts, tensor) for tensor in sides)
    if first is None or second is None:
        raise Refused("an operand is not joined of single sizes")
    flags = [bool(flag) for flag in taken.reshape(-1).tolist()]
    lengths = {len(flags), len(first), len(second)}
    count = max(lengths)
    if lengths - {1, count} or 0 in lengths:
        raise Refused("its operands are no lists of one length")
    if any(facts.of(tensor).rank != 1 for tensor in sides):
        raise Refused("its operands are no lists")
    entries = [
        first[i % len(first)] if flags[i % len(flags)] else second[i % len(second)]
        for i in range(count)
    ]
    return joined_of(draft, entries)


def one_hot_of_sizes(draft: Draft, match: Match) -> gs.Tensor:
    """y = OneHot (i, d, values) of one known place, and of sizes: a list of them, as a view.

    So PyTorch's older exporter says how often `repeat_interleave` repeats each axis.
    """
    facts, (index, depth, values) = draft.facts, match.root.inputs
    place, count, two = facts.array(index), facts.array(depth), entries_of(facts, values)
    shape = facts.of(match.root.outputs[0]).shape
    if place is None or count is None or place.size != 1 or place.dtype.kind not in "iu":
        raise Refused("its place, or how many there are, is known at run time only")
    computed = facts.of(values).dtype == INT64 and facts.array(values) is None
    if not computed or two is None or len(two) != 2:
        raise Refused("it puts no computed size into a list")
    length, at = int(count.item()), int(place.item())
    if not 0 < length <= _LONGEST or not -length <= at < length or shape is None:
        raise Refused("it is no list of sizes with one of another kind in it")
    off, on = two
    entries = [on if each == at % length else off for each in range(length)]
    return as_shape(draft, joined_of(draft, entries), shape)


def list_in_order(draft: Draft, match: Match) -> gs.Tensor:
    """A list that is put into rows, turned round and laid out again: its sizes in that order.

    So PyTorch's exporters bring the amounts of a Pad into the order that ONNX has them in.
    """
    listed = match.root.outputs[0]
    for source, places in origins_of(draft, listed, 0, _LONGEST)[:0:-1]:
        entries = entries_of(draft.facts, source)
        if entries is not None and len(places) != 0 and max(places) < len(entries):
            return joined_of(draft, [entries[place] for place in places])
    raise Refused("it is not made of a list of single sizes")


def shapes_in_a_row(draft: Draft, match: Match) -> gs.Tensor:
    """A Concat of parts of a shape that follow one another: each run of them is one part."""
    parts, found = list(match.root.inputs), []
    fewer = False
    while parts:
        span = _span(draft.facts, parts[0])
        run = [parts.pop(0)]
        if span is not None:
            x, first, end = span
            while parts and (following := _span(draft.facts, parts[0])) is not None:
                if following[0] is not x or following[1] != end:
                    break
                end = following[2]
                run.append(parts.pop(0))
            alone = sum(len(part.outputs) == 1 for part in run)
            if alone > 1 + (len(run) < len(match.root.inputs) and _takes_two(draft, x, first, end)):
                run, fewer = [sizes_of(draft, x, first, end)], True
        found += run
    if not fewer:
        raise Refused("no two parts of one shape follow one another")
    return found[0] if len(found) == 1 else draft.op("Concat", *found, axis=0)


def _takes_two(draft: Draft, x: gs.Tensor, first: int, end: int) -> bool:
    """Whether part of a shape is a node more than a Shape: its Slice and one that nothing reads."""
    whole = first == 0 and end == draft.facts.of(x).rank
    return not whole and draft.facts.opset < 15 and all(n.op != "Shape" for n in x.outputs)


def sizes_of(draft: Draft, x: gs.Tensor, first: int, end: int) -> gs.Tensor:
    """The sizes of a value from one axis to another."""
    sizes: gs.Tensor
    if first == 0 and end == draft.facts.of(x).rank:
        sizes = draft.op("Shape", x)
    elif draft.facts.opset >= 15:
        sizes = draft.op("Shape", x, start=first, end=end)
    else:
        bounds = (draft.constant([n], name) for n, name in ((first, "start"), (end, "end")))
        sizes = draft.op("Slice", draft.op("Shape", x), *bounds, draft.constant([0], "axes"))
    return sizes


def _span(facts: Facts, part: gs.Tensor) -> tuple[gs.Tensor, int, int] | None:
    """Whose sizes a Shape gives, from which axis to which; None of what else makes a value."""
    node = maker_of(part)
    if node is None or node.op != "Shape" or (node.domain or "") not in STANDARD:
        return None
    rank = facts.of(node.inputs[0]).rank
    if rank is None:
        return None
    if rank == 1 and (counted := _counted(facts, node.inputs[0])) is not None:
        return counted
    end = attribute_of(node, "end")
    first, end, _ = slice(attribute_of(node, "start"), end).indices(rank)
    return (node.inputs[0], first, end) if first < end else None


def _counted(facts: Facts, line: gs.Tensor) -> tuple[gs.Tensor, int, int] | None:
    """Whose size a line counts to, and which: so meshes are as long as axes of something."""
    length = facts.of(line).shape
    node = maker_of(line)
    for _ in range(_DEEPEST):
        if node is None or (node.domain or "") not in STANDARD:
            return None
        if node.op == "Range":
            break
        if node.op not in ELEMENTWISE or facts.of(node.inputs[0]).shape != length:
            return None
        node = maker_of(node.inputs[0])
    if node is None or node.op != "Range":
        return None
    while node.op in ("Range", "Cast", "Squeeze", "Gather", "Identity"):
        tensor = node.inputs[node.op == "Range"]
        if not tensor.inputs:
            return None
        node = tensor.inputs[0]
    shape = facts.of(node.inputs[0]).shape if node.op == "Shape" else None
    if shape is None or length is None or (node.domain or "") not in STANDARD:
        return None
    places = [axis for axis, size in enumerate(shape) if dims.equal(size, length[0]) is True]
    return (node.inputs[0], places[0], places[0] + 1) if len(places) == 1 else None


def list_of_one(draft: Draft, match: Match) -> gs.Tensor:
    """y = Unsqueeze (e, 0) of a number computed from sizes: computed from lists of one size.

    What is computed on the way is read here alone, and so no node is there twice.
    """
    root = match.root
    array = draft.facts.array(root.inputs[1])
    if array is None or array.reshape(-1).tolist() not in ([0], [-1]):
        raise Refused("it is not known to put the first axis in")
    if draft.facts.of(root.inputs[0]).rank != 0:
        raise Refused("its operand is not known to be a number")
    return _as_list(draft, root.inputs[0], _DEEPEST)


def number_as_list(draft: Draft, match: Match) -> gs.Tensor:
    """What is computed of a value and of a size that was taken out of a list: of the list."""
    root = match.root
    value, number = (match.values[name] for name in "ae")
    assert value is not None
    assert number is not None
    if not draft.facts.of(value).rank or draft.facts.of(number).rank != 0:
        raise Refused("it is not computed of a number and of a value that has axes")
    made = _as_list(draft, number, _DEEPEST)
    if not any(node.op == "Squeeze" for node in _behind(number)):
        raise Refused("nothing is taken out of a list on the way")
    operands = [made if tensor is number else tensor for tensor in root.inputs]
    y: gs.Tensor = draft.op(root.op, *operands)
    return y


def _behind(number: gs.Tensor) -> Iterator[gs.Node]:
    """The nodes that a number is computed by, as far as `_as_list` goes."""
    for node in number.inputs:
        yield node
        if node.op in _OF_NUMBERS:
            for tensor in node.inputs:
                yield from _behind(tensor)


def _as_list(draft: Draft, number: gs.Tensor, deepest: int) -> gs.Tensor:
    """The same computed from lists of one size.

    Raises:
        Refused: It is not, or something else reads what is on the way.
    """
    node = maker_of(number)
    standard = node is not None and (node.domain or "") in STANDARD
    if node is None or not standard or node.op not in _OF_NUMBERS or not deepest:
        raise Refused(f"`{number.name}` is not computed from sizes alone")
    if len(number.outputs) != 1 or draft.surgery.is_output(number) or not draft.holds(node):
        raise Refused(f"`{number.name}` is read elsewhere as well")
    if node.op == "Squeeze":
        if draft.facts.of(node.inputs[0]).shape != (1,):
            raise Refused(f"`{number.name}` is not taken out of a list of one")
        return node.inputs[0]
    if node.op == "Gather":
        index = draft.facts.array(node.inputs[1])
        if index is None or index.ndim or draft.facts.of(node.inputs[0]).rank != 1:
            raise Refused(f"`{number.name}` is not taken from a list by a known index")
        return draft.op("Gather", node.inputs[0], draft.constant(index.reshape(1), "index"), axis=0)
    known = [draft.facts.array(tensor) is not None for tensor in node.inputs]
    if all(known):
        raise Refused(f"`{number.name}` is not computed from sizes")
    operands = [
        tensor if constant else _as_list(draft, tensor, deepest - 1)
        for tensor, constant in zip(node.inputs, known, strict=True)
    ]
    return draft.op(node.op, *operands, **node.attrs)


def entries_of(facts: Facts, target: gs.Tensor) -> list[int | gs.Tensor] | None:
    """What a target is joined of: numbers, and computed sizes; None where that is not known."""
    entries: list[int | gs.Tensor] = []
    waiting = [target]
    while waiting and len(entries) <= _MOST_ENTRIES:
        at = waiting.pop()
        array, node = facts.array(at), maker_of(at)
        if array is not None:
            entries += [int(n) for n in array.reshape(-1).tolist()]
        elif node is not None and node.op == "Concat" and (node.domain or "") in STANDARD:
            waiting += reversed(node.inputs)
        elif facts.of(at).shape == (1,):
            entries.append(at)
        else:
            return None
    return entries if len(entries) <= _MOST_ENTRIES else None


def joined_of(draft: Draft, entries: Sequence[int | gs.Tensor]) -> gs.Tensor:
    """A list of numbers and computed sizes; neighbouring numbers are one constant."""
    joined: list[gs.Tensor] = []
    numbers: list[int] = []
    for entry in [*entries, None]:
        if isinstance(entry, int):
            numbers.append(entry)
            continue
        if numbers:
            joined.append(draft.constant(numbers, "sizes"))
            numbers = []
        if entry is not None:
            joined.append(entry)
    return joined[0] if len(joined) == 1 else draft.op("Concat", *joined, axis=0)
