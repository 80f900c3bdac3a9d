"""Where a model can be cut in two, so that a runtime takes one part, and the host the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from surgeon.extraction.cut import FROM, TO
from surgeon.extraction.fewest import Graph
from surgeon.extraction.parts import Nodes, Parts
from surgeon.model import Model
from surgeon.nested import every_node
from surgeon.spelling import operator_name

MOST = 6  # values between the parts
_HEAVY = frozenset(  # what a network is made of, and accelerators are for
    "Attention Conv ConvInteger ConvTranspose Einsum GRU Gemm LSTM MatMul MatMulInteger "
    "QLinearConv QLinearMatMul RNN".split()
)


@dataclass(frozen=True, slots=True)
class Division:
    """A model in two parts.

    Attributes:
        refused: Operators that the other part holds.
        taken: `first` or `second`: the part without what is refused.
        nodes: How many nodes of the main graph it has, without constants.
        of: How many the model has.
        values: Where they meet.
        first: Options of `surgeon extract` for the part in front.
        second: Options for the part behind.
    """

    refused: tuple[str, ...]
    taken: str
    nodes: int
    of: int
    values: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def divide(model: Model, refused: Collection[str]) -> Division | None:
    """A part of a model that has its products and convolutions, and none of some operators.

    Either all that no such node comes before, as in front of the picking and sorting of a
    detector's boxes, or all that none comes behind, as behind a spectrum. It is cut at the fewest
    values, at tensors and not at sizes, and so that the part is as large as may be.

    Args:
        model: Not changed.
        refused: Operators as recipes write them; bodies and functions that hold one are refused
            too.

    Returns:
        The larger one; None where there is no such part, or more values would lie between.
    """
    parts = Parts(model)
    guilty = _holding(parts, refused)
    made = {at: [n for n in parts.wiring.nodes[at].output if n] for at in parts.nodes}
    read = {at: [n for n in parts.reads[at] if parts.made_by([n])] for at in parts.nodes}
    graph = Graph(read, made, parts.can_be_given)
    readers = {
        at: [r for n in names for r in graph.readers.get(n, ())] for at, names in made.items()
    }
    heavy = {at for at in parts.nodes if parts.wiring.nodes[at].op_type in _HEAVY}
    behind = _reached(guilty, lambda at: readers[at])
    before = _reached(guilty, lambda at: (graph.makers[name] for name in read[at]))
    found = []
    for taken, sources, sinks in (
        ("first", heavy - behind, behind),
        ("second", before, heavy - before),
    ):
        values = None
        if sources and sinks:
            values = graph.cut(sources, sinks, most=MOST, late=taken == "first")
        if values and (division := _division(parts, refused, guilty, taken, values)):
            found.append(division)
    return max(found, key=lambda each: each.nodes, default=None)


def _division(
    parts: Parts, refused: Collection[str], guilty: Nodes, taken: str, values: Collection[str]
) -> Division | None:
    """The parts on both sides of values; None where the wanted one holds what is refused."""
    every = [value.name for value in parts.model.proto.graph.output]
    outputs = [name for name in every if parts.made_by([name])]  # others need no part
    made = parts.needed(values, ())
    second = {name: parts.needed([name], values) for name in outputs}
    if taken == "first":  # what comes of the refused ones, and no more
        later = [name for name in outputs if not parts.needed([name], ()).isdisjoint(guilty)]
    else:
        later = [n for n in outputs if second[n] - made and second[n].isdisjoint(guilty)]
    nodes = frozenset[int]().union(*(second[name] for name in later))
    ends = list(dict.fromkeys([*values, *(name for name in outputs if name not in later)]))
    first = parts.needed(ends, ())
    chosen = first if taken == "first" else nodes
    if not later or not chosen or not chosen.isdisjoint(guilty):
        return None
    inputs, _ = parts.ends(nodes)
    given = [*(name for name in inputs if name in values), *(n for n in inputs if n not in values)]
    return Division(
        tuple(refused),
        taken,
        len(chosen),
        len(parts.nodes),
        tuple(values),
        tuple(word for name in ends for word in (TO, name)),
        (
            *(word for name in given for word in (FROM, name)),
            *(word for name in later for word in (TO, name) if len(later) < len(every)),
        ),
    )


def _holding(parts: Parts, refused: Collection[str]) -> Nodes:
    """The nodes that are of such an operator, or hold or call one."""
    names = set(refused)
    functions = list(parts.model.proto.functions)
    while True:  # functions call functions
        calling = {
            f"{function.domain}.{function.name}"
            for function in functions
            if any(operator_name(node) in names for node in every_node(function.node))
        }
        if calling <= names:
            break
        names |= calling
    return frozenset(
        at
        for at in parts.nodes
        if any(operator_name(node) in names for node in every_node([parts.wiring.nodes[at]]))
    )


def _reached(nodes: Iterable[int], further: Callable[[int], Iterable[int]]) -> Nodes:
    """These nodes, and those to which steps lead from them."""
    found = set(nodes)
    pending = list(found)
    while pending:
        for at in further(pending.pop()):
            if at not in found:
                found.add(at)
                pending.append(at)
    return frozenset(found)
