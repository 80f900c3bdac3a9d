"""What changed between two models, by structure and names; runs nothing.

A value's name is what a node is known by: the nodes that give it in both models are one node, the
same, changed, or replaced by another operator. Nodes whose values were given other names are found
by what they compute from values that are already paired; where nearly all that are left stand in
the same order of operators, Identity aside, by that.

All that a runtime reads or computes from counts, field by field of the protobuf. What does not
count, doc strings, names of nodes, attributes that say what holds without them, is named where it
differs.
"""

from __future__ import annotations

import filecmp
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import onnx

from surgeon.difference.graphs import Pairing, Step
from surgeon.difference.parts import parts_of
from surgeon.difference.values import Values
from surgeon.difference.weights import Weights
from surgeon.model import Model, ModelLike
from surgeon.soundness import check
from surgeon.soundness.scopes import Scope
from surgeon.spelling import operator_name

_TOLD = frozenset({"graph", "functions"})  # in their own words
_SPELLING = "how the files hold the same: order, storage, texts of values"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is there in one model, or otherwise in the other.

    Attributes:
        name: A value's, node's or property's; with the body or function it stands in.
        before: What it was; empty where it was not there.
        after: What it is; empty where it is not there.
    """

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed between two models.

    Attributes:
        before: The first model's path.
        after: The second's.
        header: Versions, producer, texts and metadata; bindings of training.
        interface: Inputs and outputs; overridable initializers count as inputs.
        operators: How many nodes of each operator, in both; those whose number changed.
        kept: How many nodes are the same.
        declared: Inputs, outputs, operator sets and attributes of bodies and functions, types of
            inner values that both models declare, quantization.
        replaced: Values that another operator gives now.
        changed: Nodes with other attributes or operands.
        renamed: Nodes that give the same under other names.
        gone: Nodes of the first model whose values nothing gives any more.
        new: Nodes of the second model whose values nothing gave.
        initializers: Weights that changed, went, came or were renamed.
        aside: In what the files differ that is no difference of the models: doc strings, say.
        by_order: How many nodes were paired by the order of operators alone.
    """

    before: str
    after: str
    header: tuple[Change, ...]
    interface: tuple[Change, ...]
    operators: Mapping[str, tuple[int, int]]
    kept: int
    declared: tuple[Change, ...]
    replaced: tuple[Change, ...]
    changed: tuple[Change, ...]
    renamed: tuple[Change, ...]
    gone: tuple[Change, ...]
    new: tuple[Change, ...]
    initializers: tuple[Change, ...]
    aside: tuple[str, ...]
    by_order: int = 0

    @property
    def same(self) -> bool:
        """Whether nothing changed that counts."""
        return not any(
            getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("before", "after", "kept", "aside", "by_order")
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "same": self.same}


def difference(before: ModelLike, after: ModelLike) -> Difference:
    """Compare two models by structure and names.

    Weights in external files are read only where both models have one of the same name and size.

    Args:
        before: A path, a `Model`, an `onnx.ModelProto` or a graphsurgeon `Graph`.
        after: Another, given as that is.

    Raises:
        ModelError: One is missing, empty, truncated, broken, or no ONNX model.
    """
    one, other = Model.of(before), Model.of(after)
    for model in (one, other):
        check(model.proto, model.folder, where=str(model.path or "model"))
    values = Values((one.folder, other.folder))
    pairing = Pairing(Weights(values), values)
    ends = pairing.ends
    names = pairing.compare(Scope(one.proto.graph), Scope(other.proto.graph))
    _functions(one.proto, other.proto, pairing)
    for infos in zip(one.proto.training_info, other.proto.training_info, strict=False):
        for kind in ("initialization", "algorithm"):
            graph, its = (Scope(getattr(info, kind)) for info in infos)
            pairing.compare(graph, its, f"training {kind}/", names)
    header = ends.differences(parts_of(one.proto, _TOLD), parts_of(other.proto, _TOLD, {**names}))
    found = {kind: _changes(pairing.found[kind]) for kind in Step}
    compared = Difference(
        before=str(one.path or "<model>"),
        after=str(other.path or "<model>"),
        header=_changes(header),
        interface=_changes(ends.interface),
        operators=_operators(one.proto, other.proto),
        kept=pairing.kept,
        declared=_changes(ends.declared),
        replaced=found[Step.REPLACED],
        changed=found[Step.CHANGED],
        renamed=found[Step.RENAMED],
        gone=found[Step.GONE],
        new=found[Step.NEW],
        initializers=_changes(pairing.weights.found),
        aside=tuple(pairing.aside),
        by_order=pairing.by_order,
    )
    if not compared.same or compared.aside or one.path is None or other.path is None:
        return compared
    spelled = not filecmp.cmp(one.path, other.path, shallow=False)
    return replace(compared, aside=(_SPELLING,)) if spelled else compared


def _changes(found: Iterable[tuple[str, str, str]]) -> tuple[Change, ...]:
    return tuple(Change(*each) for each in found)


def _functions(one: onnx.ModelProto, other: onnx.ModelProto, pairing: Pairing) -> None:
    """Compare the functions of both models, and note those that only one has."""
    functions, others = (
        {(f.domain, f.name, f.overload): Scope(f) for f in proto.functions}
        for proto in (one, other)
    )
    empty = Scope(onnx.GraphProto())
    for key in dict.fromkeys((*functions, *others)):
        was, now = functions.get(key), others.get(key)
        name = f"{key[0]}.{key[1]}{f':{key[2]}' if key[2] else ''}"
        if was is None or now is None:
            before, after = (_signature(scope) if scope else "" for scope in (was, now))
            pairing.ends.declared.append((f"function {name}", before, after))
        pairing.compare(was or empty, now or empty, f"{name}/")


def _signature(scope: Scope) -> str:
    return f"({', '.join(scope.proto.input)}) => ({', '.join(scope.proto.output)})"


def _operators(one: onnx.ModelProto, other: onnx.ModelProto) -> dict[str, tuple[int, int]]:
    counts = [
        Counter(
            operator_name(node.proto)
            for top in (proto.graph, *proto.functions)
            for scope in Scope(top).with_bodies()
            for node in scope.nodes
        )
        for proto in (one, other)
    ]
    names = sorted(counts[0] | counts[1], key=lambda n: (-abs(counts[1][n] - counts[0][n]), n))
    return {n: (counts[0][n], counts[1][n]) for n in names if counts[0][n] != counts[1][n]}
