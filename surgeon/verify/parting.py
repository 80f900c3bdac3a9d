"""Finds the first value at which two models part, with few values in memory at a time.

The values that both hold under one name are compared in the order in which the first model computes
them: a handful in each run, then a handful between the last that agrees and the first that differs.
Values of other names are paired by the order of the operators that make them, where none or next to
none have names in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from surgeon.difference.among import changes_of
from surgeon.difference.order import blocks
from surgeon.errors import SurgeonError
from surgeon.reference import libraries, open_reference
from surgeon.reference.arguments import decode, is_foreign
from surgeon.reference.plan import reads, without_calls
from surgeon.verify.compare import compare_arrays
from surgeon.verify.precision import allowed, coarse_values
from surgeon.verify.retyped import Retyped, of_one_width, retyped_ends
from surgeon.verify.verdict import OutputCheck, Parting

AT_ONCE = 12  # values computed in one run of each model
ROUNDS = 200  # runs of each model at most
_FEW = 10  # shared names, as a part of the nodes, below which values are paired by place too
_MOST_NODES = 60  # between the last agreeing and the first differing value, in words
_SAME = Retyped()


def find_parting(
    original: onnx.ModelProto,
    result: onnx.ModelProto,
    feeds: Mapping[str, Any],
    *,
    folders: tuple[Path | None, Path | None] = (None, None),
    tolerance: float = 0.0,
    progress: Callable[[str], None] | None = None,
) -> Parting | None:
    """The first value that differs on these inputs; None where every value they share agrees.

    Args:
        original: The first model.
        result: The second, of the same inputs.
        feeds: On which outputs differ.
        folders: Where the external data of each lie.
        tolerance: Allowed error relative to a value's spread, where it is more than the dtype's.
        progress: Told what is being compared.
    """
    models = [
        _Side(original, folders[0]),
        _Side(result, folders[1], retyped_ends(original, result)),
    ]
    pairs = _pairs(*models)
    search = _Search(models, pairs, feeds, tolerance, progress or (lambda _: None))
    place = search.first()
    if place is None:
        return None
    before, stops = models[0].behind(pairs[place].first, search.known(first=True))
    after, _ = models[1].behind(pairs[place].second, search.known(first=False))
    return Parting(
        agrees=tuple(stops),
        differs=search.checks[place],
        other=pairs[place].second,
        before=tuple(map(_label, before[-_MOST_NODES:])),
        after=tuple(map(_label, after[-_MOST_NODES:])),
        tried=len(search.checks),
        by_place=pairs[place].by_place,
        unlike=tuple(changes_of(after, models[0].graph, models[1].graph, folders)),
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """A value of the first model, and what is compared with it."""

    first: str
    second: str
    by_place: bool = False


class _Side:
    """A model, its nodes in order, and what runs any of its values."""

    def __init__(self, model: onnx.ModelProto, folder: Path | None, ends: Retyped = _SAME) -> None:
        model = without_calls(model)
        self.nodes = list(model.graph.node)
        self.makers = {name: node for node in self.nodes for name in node.output if name}
        self.outputs = [value.name for value in model.graph.output]
        self.graph = model.graph
        self.coarse = coarse_values(model)
        self._model, self._folder, self._ends = model, folder, ends

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """The named values; a new runner each time, so that nothing is kept."""
        runner = open_reference(self._model, self._folder)
        known = {value.name for value in self._model.graph.input}
        return runner.run(self._ends.taken({k: v for k, v in feeds.items() if k in known}), names)

    def behind(self, name: str, known: Iterable[str]) -> tuple[list[onnx.NodeProto], list[str]]:
        """The nodes that make a value of known ones, in order, and the known ones they read."""
        stop, pending = set(known), [name]
        found: set[int] = set()
        stops: dict[str, None] = {}
        while pending:
            node = self.makers[pending.pop()]
            if id(node) in found:
                continue
            found.add(id(node))
            for operand in reads(node):
                if operand in stop:
                    stops[operand] = None
                elif operand in self.makers:
                    pending.append(operand)
        return [node for node in self.nodes if id(node) in found], list(stops)


def _pairs(first: _Side, second: _Side) -> list[_Pair]:
    """The values to compare, in the first model's order; the outputs are among them."""
    shared = [
        _Pair(name, name)
        for name, node in first.makers.items()
        if name in second.makers and node.op_type != "Constant"
    ]
    inner = [pair for pair in shared if pair.first not in first.outputs]
    if len(inner) * _FEW >= min(len(first.nodes), len(second.nodes)):
        return shared
    names = {pair.first for pair in shared}
    places = {name: place for place, name in enumerate(first.makers)}
    for one, two, length in blocks(_operators(first.nodes), _operators(second.nodes)):
        for node, other in zip(
            first.nodes[one : one + length], second.nodes[two : two + length], strict=True
        ):
            value, twin = node.output[0], other.output[0]
            free = value not in names and twin not in names and node.op_type != "Constant"
            if free and value and twin:
                shared.append(_Pair(value, twin, by_place=True))
    return sorted(shared, key=lambda pair: places[pair.first])


def _operators(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    return [decode(node).operator if is_foreign(node) else node.op_type for node in nodes]


class _Search:
    """Which pairs were compared, and how they agree."""

    def __init__(
        self,
        models: Sequence[_Side],
        pairs: Sequence[_Pair],
        feeds: Mapping[str, Any],
        tolerance: float,
        progress: Callable[[str], None],
    ) -> None:
        self.models, self.pairs, self.feeds = models, pairs, feeds
        self.tolerance, self.progress = tolerance, progress
        self.checks: dict[int, OutputCheck] = {}
        self.passed: set[int] = set()  # pairs that cannot be compared
        self.rounds = 0

    def first(self) -> int | None:
        """The place of the first pair that differs, all it is made of agreeing."""
        outputs = [i for i, pair in enumerate(self.pairs) if pair.first in self.models[0].outputs]
        self._compare(outputs)
        while (found := self._narrowed()) is not None:
            # what the value is made of may differ too, where a difference came and went before it
            _, stops = self.models[0].behind(
                self.pairs[found].first, [p.first for p in self._usable(found)]
            )
            places = {pair.first: place for place, pair in enumerate(self.pairs)}
            untold = [places[name] for name in stops if places[name] not in self.checks]
            if not untold or self.rounds >= ROUNDS:
                return found
            for begin in range(0, len(untold), AT_ONCE):
                self._compare(untold[begin : begin + AT_ONCE])
        return None

    def _narrowed(self) -> int | None:
        """The first pair known to differ, with none left to compare since the last that agrees."""
        while True:
            bad = min((i for i, c in self.checks.items() if not c.agrees), default=None)
            if bad is None or self.rounds >= ROUNDS:
                return bad
            low = max((i for i, c in self.checks.items() if c.agrees and i < bad), default=-1)
            told = self.passed.union(self.checks)
            between = [place for place in range(low + 1, bad) if place not in told]
            if not between:
                return bad
            step = max(1, -(-len(between) // AT_ONCE))
            self._compare(between[step // 2 :: step])

    def _compare(self, places: Sequence[int]) -> None:
        """Both models' values at these places, each pair once."""
        self.rounds += 1
        self.progress(f"compare {len(places)} of {len(self.pairs)} values")
        pairs = [self.pairs[place] for place in places]
        try:
            wanted = self.models[0].run(self.feeds, [pair.first for pair in pairs])
            found = self.models[1].run(self.feeds, [pair.second for pair in pairs])
        except SurgeonError:  # a value of a type that onnxruntime gives nobody, say
            if len(places) == 1:
                self.passed.update(places)
            else:
                for place in places:
                    self._compare([place])
            return
        for place, pair in zip(places, pairs, strict=True):
            other, coarse = of_one_width(wanted[pair.first], found[pair.second])
            halves = self.models[1].coarse.get(pair.second, "")
            coarse = max(coarse, allowed(wanted[pair.first], halves, 0.0) or 0.0)
            arrays, least = (pair.first, wanted[pair.first], other), max(self.tolerance, coarse)
            check = compare_arrays(*arrays)
            if not check.agrees and check.tolerance < least:
                check = compare_arrays(*arrays, tolerance=least)
            if pair.by_place and check.fault is not None and not check.agrees:
                self.passed.add(place)  # other values stand there
            else:
                self.checks[place] = check

    def _usable(self, end: int) -> list[_Pair]:
        return [pair for i, pair in enumerate(self.pairs[:end]) if i not in self.passed]

    def known(self, *, first: bool) -> list[str]:
        """What agrees, or is made before what does, as the first or the second model calls it."""
        bad = min(i for i, check in self.checks.items() if not check.agrees)
        return [pair.first if first else pair.second for pair in self._usable(bad)]


def _label(node: onnx.NodeProto) -> str:
    aten = is_foreign(node) and not libraries.is_known(node)
    operator = f"aten.{decode(node).operator}" if aten else node.op_type
    made = ", ".join(name for name in node.output if name)
    return f"{made} = {operator} ({', '.join(node.input)})"
