"""Lists of sizes that a script changes: tensors of one axis, which the exporter takes for lists."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.aten_scripts.operands import is_list, place, required
from surgeon.builders.bench import LARGEST, TYPE, Bench, operand
from surgeon.facts.fact import INTEGERS
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


def numbers_with_one_more(draft: Draft, match: Match) -> gs.Tensor:
    """`append` and `insert` of a number."""
    c, node = Bench(draft), match.root
    sizes, number = _numbers(c, node), required(node, 1)
    if c.facts.of(number).rank != 0:
        raise Refused("what it puts in is not known to be a number")
    one = c.unsqueeze(c.cast(number, c.dtype(sizes)), [0])
    if operand(node, 2) is None:
        return c.concat([sizes, one], 0)
    at = _known(c, node, 2)
    if at == 0:
        return c.concat([one, sizes], 0)
    return c.concat([c.slice(sizes, 0, 0, at), one, c.slice(sizes, 0, at, LARGEST)], 0)


def numbers_with_one_less(draft: Draft, match: Match) -> gs.Tensor:
    """`pop` and `del` of a number, where none is put in its place."""
    c, node = Bench(draft), match.root
    sizes = _numbers(c, node)
    at = -1 if operand(node, 1) is None else _known(c, node, 1)
    if any(_puts_back(c, reader, at) for reader in node.outputs[0].outputs):
        raise Refused("another number is put in its place")
    if at == -1:
        return c.slice(sizes, 0, 0, -1)
    if at == 0:
        return c.slice(sizes, 0, 1, LARGEST)
    return c.concat([c.slice(sizes, 0, 0, at), c.slice(sizes, 0, at + 1, LARGEST)], 0)


def numbers_together(draft: Draft, match: Match) -> gs.Tensor:
    """The numbers of a list side by side, as they are."""
    c, node = Bench(draft), match.root
    if attribute_of(node, "axis") != 0 or not attribute_of(node, "new_axis"):
        raise Refused("it joins what has axes")
    made: gs.Tensor = c.op("Identity", _numbers(c, node))
    return made


def _numbers(c: Bench, node: gs.Node) -> gs.Tensor:
    sizes = required(node, 0)
    if is_list(c, sizes) or c.facts.of(sizes).dtype not in INTEGERS:
        raise Refused("it is not known to be a list of integers")
    return sizes


def _known(c: Bench, node: gs.Node, index: int) -> int:
    at = place(c, node, index)
    if at is None:
        raise Refused("its place is known at run time only")
    return at


def _puts_back(c: Bench, reader: gs.Node, at: int) -> bool:
    """Whether a node puts something where a number was taken out, as the exporter sets one."""
    if reader.op != "SequenceInsert" or operand(reader, 2) is None:
        return False
    there = place(c, reader, 2)
    return there is None or there == at


def numbers_of_list(draft: Draft, match: Match) -> gs.Tensor:
    """An operator whose sizes are a list that a loop filled, where it wants them as one tensor."""
    c, node = Bench(draft), match.root
    *before, sizes = node.inputs[:2]
    items = c.facts.of(sizes).items
    if items is None or items.dtype != TYPE.INT64:
        raise Refused("its sizes are no list of numbers")
    if items.shape != ():
        raise Refused("what its list holds is not known to be numbers")
    together = c.op("ConcatFromSequence", sizes, axis=0, new_axis=1)
    made: gs.Tensor = c.op(node.op, *before, together, **node.attrs)
    return made
