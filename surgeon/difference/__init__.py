"""What changed between two models, by structure and names; runs nothing.

A value's name is what a node is known by: the nodes that give it in both models are one node, the
same, changed, or replaced by another operator. Nodes whose values were given other names are found
by what they compute from values that are already paired.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import onnx

from surgeon.difference.graphs import Pairing, Step
from surgeon.difference.weights import Weights
from surgeon.inspection import Value, value_of
from surgeon.model import Model
from surgeon.soundness import check
from surgeon.soundness.scopes import Scope
from surgeon.spelling import operator_name

_TOLD = ("graph", "functions", "opset_import", "metadata_props")  # told in their own words


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
        header: Versions, producer, texts and metadata.
        interface: Inputs and outputs; overridable initializers count as inputs.
        operators: How many nodes of each operator, in both; those whose number changed.
        kept: How many nodes are the same.
        replaced: Values that another operator gives now.
        changed: Nodes with other attributes or operands.
        renamed: Nodes that give the same under other names.
        gone: Nodes of the first model whose values nothing gives any more.
        new: Nodes of the second model whose values nothing gave.
        initializers: Weights that changed, went, came or were renamed.
    """

    before: str
    after: str
    header: tuple[Change, ...]
    interface: tuple[Change, ...]
    operators: Mapping[str, tuple[int, int]]
    kept: int
    replaced: tuple[Change, ...]
    changed: tuple[Change, ...]
    renamed: tuple[Change, ...]
    gone: tuple[Change, ...]
    new: tuple[Change, ...]
    initializers: tuple[Change, ...]

    @property
    def same(self) -> bool:
        """Whether nothing changed at all."""
        return not any(
            getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("before", "after", "kept")
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "same": self.same}


def difference(before: str | os.PathLike[str], after: str | os.PathLike[str]) -> Difference:
    """Compare two model files by structure and names.

    Weights in external files are read only where both files have one of the same name and size.

    Raises:
        ModelError: One is missing, empty, truncated, broken, or no ONNX model.
    """
    one, other = (Model.load(Path(path)) for path in (before, after))
    for model in (one, other):
        check(model.proto, model.folder, where=str(model.path))
    weights = Weights(one, other)
    pairing = Pairing(weights)
    pairing.compare(Scope(one.proto.graph), Scope(other.proto.graph))
    functions, others = (
        {(f.domain, f.name): Scope(f) for f in proto.functions}
        for proto in (one.proto, other.proto)
    )
    empty = Scope(onnx.GraphProto())
    for key in dict.fromkeys((*functions, *others)):
        where = f"{key[0]}.{key[1]}/"
        pairing.compare(functions.get(key, empty), others.get(key, empty), where)
    found = {kind: tuple(Change(*each) for each in pairing.found[kind]) for kind in Step}
    return Difference(
        before=str(before),
        after=str(after),
        header=tuple(_header(one.proto, other.proto)),
        interface=tuple(_interface(one.proto, other.proto)),
        operators=_operators(one.proto, other.proto),
        kept=pairing.kept,
        replaced=found[Step.REPLACED],
        changed=found[Step.CHANGED],
        renamed=found[Step.RENAMED],
        gone=found[Step.GONE],
        new=found[Step.NEW],
        initializers=tuple(Change(*each) for each in pairing.weights.found),
    )


def _header(one: onnx.ModelProto, other: onnx.ModelProto) -> Iterator[Change]:
    for field in onnx.ModelProto.DESCRIPTOR.fields:
        if field.name in _TOLD or field.message_type is not None:
            continue
        texts = [str(getattr(proto, field.name)) for proto in (one, other)]
        if texts[0] != texts[1]:
            yield Change(field.name, *texts)
    opsets = [
        {entry.domain or "ai.onnx": str(entry.version) for entry in proto.opset_import}
        for proto in (one, other)
    ]
    yield from _mappings("opset of ", *opsets)
    properties = [{p.key: p.value for p in proto.metadata_props} for proto in (one, other)]
    yield from _mappings("metadata ", *properties)


def _mappings(what: str, one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[Change]:
    for key in dict.fromkeys((*one, *other)):
        if one.get(key) != other.get(key):
            yield Change(f"{what}{key}", one.get(key, ""), other.get(key, ""))


def _interface(one: onnx.ModelProto, other: onnx.ModelProto) -> Iterator[Change]:
    for kind in ("input", "output"):
        values, others = ([value_of(v) for v in getattr(p.graph, kind)] for p in (one, other))
        yield from _mappings(
            f"{kind} ", {v.name: _said(v) for v in values}, {v.name: _said(v) for v in others}
        )
        names, theirs = ([v.name for v in each] for each in (values, others))
        if names != theirs and set(names) == set(theirs):
            yield Change(f"order of the {kind}s", ", ".join(names), ", ".join(theirs))


def _said(value: Value) -> str:
    if value.shape is None:
        return f"{value.kind} of unknown rank"
    return f"{value.kind} [{', '.join('?' if d is None else str(d) for d in value.shape)}]"


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
