"""TorchScript's changes to lists, which the exporter makes give the list that they changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.bodies.listed import elements
from surgeon.builders.aten_scripts.dictionaries import entries, with_entry, without
from surgeon.builders.aten_scripts.operands import (
    NO_LIST,
    READERS,
    as_sequence,
    is_list,
    is_numbers,
    is_sequence,
    operator_of,
    place,
    required,
    scalar,
    sequence,
    within,
)
from surgeon.builders.bench import TYPE, Bench
from surgeon.facts.fact import INTEGERS
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_MOST_KNOWN = 256  # elements: each change of a longer list would name them all again
_FIRST_LISTS = (1, 8)  # the release from which on a change is known to give the changed list


def changed_list(draft: Draft, match: Match) -> Any:
    """The list after a change: elements put in, taken out, replaced, in another order."""
    c, node = Bench(draft), match.root
    kind = "add" if node.op in ("add", "extend") else node.op
    if kind != "add" and draft.facts.model.is_before(*_FIRST_LISTS):
        raise Refused("PyTorch before 1.8 does not say what reads its list after the change")
    listed = required(node, 0)
    if (known := entries(listed)) is not None:
        if kind == "_set_item":
            return with_entry(c, known, required(node, 1), required(node, 2))
        if kind in ("pop", "Delete") and len(node.inputs) == 2:
            return without(c, known, node)
        raise Refused("it is a dictionary")
    if kind == "add":
        return _together(c, node, listed)
    return _CHANGES[kind](c, node, listed)


def known_list(draft: Draft, match: Match) -> gs.Tensor:
    """The list after an operator puts an element in, or takes one out, where all are known."""
    c, node = Bench(draft), match.root
    known = elements(required(node, 0))
    if known is None or len(known) >= _MOST_KNOWN:
        raise Refused("what its list is made of is not known, or is much")
    puts = node.op == "SequenceInsert"
    at = place(c, node, 2, len(known)) if puts else place(c, node, 1, -1)
    if at is None:
        raise Refused("its place is known at run time only")
    if puts:
        known.insert(at if at == len(known) else within(at, known), required(node, 1))
    else:
        del known[within(at, known)]
    if not known:
        raise Refused("nothing is left that says of what it is")
    return sequence(c, known)


def _append(c: Bench, node: gs.Node, listed: gs.Tensor) -> gs.Tensor:
    return _with(c, listed, required(node, 1))


def _with(c: Bench, listed: gs.Tensor, item: gs.Tensor) -> gs.Tensor:
    """A list with one more at its end."""
    known = elements(listed)
    if known is not None:
        return sequence(c, [*known, item])
    made: gs.Tensor
    if is_sequence(c, listed):
        made = c.op("SequenceInsert", listed, item)
        return made
    if is_numbers(c, listed) and c.facts.of(item).rank == 0:
        return c.concat([listed, c.unsqueeze(c.cast(item, c.dtype(listed)), [0])], 0)
    raise Refused(NO_LIST)


def _insert(c: Bench, node: gs.Node, listed: gs.Tensor) -> gs.Tensor:
    at, item, known = place(c, node, 1), required(node, 2), elements(listed)
    if known is not None and at is not None:
        known.insert(at, item)
        return sequence(c, known)
    listed = as_sequence(c, listed)
    made: gs.Tensor
    if at == 0:
        made = c.op("SequenceInsert", listed, item, c.number(0, TYPE.INT64))
        return made
    # Python puts what lies beyond an end at that end
    count = c.op("SequenceLength", listed)
    index = c.op("Min", scalar(c, required(node, 1), TYPE.INT64), count)
    index = c.op("Max", index, c.op("Neg", count))
    made = c.op("SequenceInsert", listed, item, index)
    return made


def _pop(c: Bench, node: gs.Node, listed: gs.Tensor) -> gs.Tensor:
    """Without one of them, which the exporter takes by a node of its own."""
    at, known = place(c, node, 1, -1), elements(listed)
    if any(operator_of(reader) not in READERS for reader in node.outputs[0].outputs):
        raise Refused("whether it gives the list or what it takes out of it is not known")
    if known is not None and at is not None:
        del known[within(at, known)]
        return sequence(c, known)
    listed = as_sequence(c, listed)
    index = c.number(at, TYPE.INT64) if at is not None else scalar(c, node.inputs[1], TYPE.INT64)
    made: gs.Tensor = c.op("SequenceErase", listed, index)
    return made


def _set(c: Bench, node: gs.Node, listed: gs.Tensor) -> gs.Tensor:
    at, item, known = place(c, node, 1), required(node, 2), elements(listed)
    if known is not None and at is not None:
        known[within(at, known)] = item
        return sequence(c, known)
    if is_numbers(c, listed):
        return _numbers_with(c, listed, required(node, 1), item)
    listed = as_sequence(c, listed)
    made: gs.Tensor
    if at is not None:
        rest = c.op("SequenceErase", listed, c.number(at, TYPE.INT64))
        # counted from the end, the place is one nearer to it where one is gone
        after = [] if at == -1 else [c.number(at if at >= 0 else at + 1, TYPE.INT64)]
        made = c.op("SequenceInsert", rest, item, *after)
        return made
    index = scalar(c, required(node, 1), TYPE.INT64)
    below = c.op("Less", index, c.number(0, TYPE.INT64))
    index = c.op("Where", below, c.op("Add", index, c.op("SequenceLength", listed)), index)
    made = c.op("SequenceInsert", c.op("SequenceErase", listed, index), item, index)
    return made


def _numbers_with(c: Bench, listed: gs.Tensor, at: gs.Tensor, item: gs.Tensor) -> gs.Tensor:
    """A list of numbers, one of which is another; places count from either end."""
    if c.dtype(listed) not in INTEGERS or c.dtype(item) not in INTEGERS:
        raise Refused("its list is not known to be one of integers")
    count = c.size(listed, 0)
    index = scalar(c, at, TYPE.INT64)
    below = c.op("Less", index, c.number(0, TYPE.INT64))
    length = c.op("Reshape", c.vector([count]), c.ints([], "scalar"))
    index = c.op("Where", below, c.op("Add", index, length), index)
    here = c.op("Equal", c.count(count), index)
    return c.where(here, scalar(c, item, c.dtype(listed)), listed)


def numbers_with_one_set(draft: Draft, match: Match) -> gs.Tensor:
    """A number that the exporter takes out of a list of sizes, and another put in its place."""
    c, out, put = Bench(draft), match.nodes[1], match.root
    listed, old, at = out.inputs[0], required(out, 1), required(put, 2)
    if is_list(c, listed) or entries(listed) is not None:
        raise Refused("it is a list of tensors")
    places = [c.facts.array(t) for t in (old, at)]
    if old is not at and (
        None in [p if p is None else 0 for p in places] or places[0] != places[1]
    ):
        raise Refused("it takes another number out than it puts in")
    return _numbers_with(c, listed, old, required(put, 1))


def _reversed(c: Bench, node: gs.Node, listed: gs.Tensor) -> gs.Tensor:
    known = elements(listed)
    if known is None:
        raise Refused("ONNX has no list from behind, of a length that is known at run time")
    return sequence(c, known[::-1])


def _together(c: Bench, node: gs.Node, listed: gs.Tensor) -> gs.Tensor:
    """One list behind the other; one of both must have known elements."""
    other = required(node, 1)
    of_lists = node.op == "extend" or node.attrs.get("overload") == "t"
    if node.op == "add" and not node.attrs.get("overload") and "alpha" not in node.attrs:
        # exporters give every argument, and that of tensors is a third
        numbers = [c.facts.of(t) for t in (listed, other)]
        of_lists = all(f.rank == 1 and f.dtype == TYPE.INT64 for f in numbers)
    if len(node.inputs) != 2 or not (of_lists or (is_list(c, listed) and is_list(c, other))):
        raise Refused("it adds no lists")
    if is_numbers(c, listed) and is_numbers(c, other):
        return c.concat([listed, c.cast(other, c.dtype(listed))], 0)
    front, behind = elements(listed), elements(other)
    if front is not None and behind is not None:
        return sequence(c, front + behind)
    if behind is not None:
        made = as_sequence(c, listed)
        for item in behind:
            made = c.op("SequenceInsert", made, item)
        return made
    if front is None:
        raise Refused("ONNX joins no two lists whose lengths are known at run time")
    made = as_sequence(c, other)
    for index, item in enumerate(front):
        made = c.op("SequenceInsert", made, item, c.number(index, TYPE.INT64))
    return made


_CHANGES: Mapping[str, Callable[[Bench, gs.Node, gs.Tensor], gs.Tensor]] = {
    "append": _append,
    "insert": _insert,
    **dict.fromkeys(("pop", "Delete"), _pop),
    "_set_item": _set,
    "reverse": _reversed,
}
