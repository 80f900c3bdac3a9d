"""Constants of two models, paired by name and, where a name went, by their values.

Whether a constant is an initializer or the value of a Constant node makes no difference.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import onnx

from surgeon.difference.texts import Tensor, tensor_said
from surgeon.difference.values import Values, content
from surgeon.soundness.scopes import Node, Scope
from surgeon.standard import STANDARD

_KINDS = onnx.AttributeProto.AttributeType
_HELD = (  # the attributes that hold a tensor: their kind, which files before IR 2 leave out
    ("value", _KINDS.TENSOR, "t"),
    ("sparse_value", _KINDS.SPARSE_TENSOR, "sparse_tensor"),
)
_PLAIN: dict[
    str, tuple[int, int]
] = {  # the attributes of a Constant that hold no tensor: their kind, the dtype they mean
    "value_float": (_KINDS.FLOAT, onnx.TensorProto.FLOAT),
    "value_floats": (_KINDS.FLOATS, onnx.TensorProto.FLOAT),
    "value_int": (_KINDS.INT, onnx.TensorProto.INT64),
    "value_ints": (_KINDS.INTS, onnx.TensorProto.INT64),
    "value_string": (_KINDS.STRING, onnx.TensorProto.STRING),
    "value_strings": (_KINDS.STRINGS, onnx.TensorProto.STRING),
}


class Weights:
    """Pairs initializers and notes what became of them.

    Attributes:
        changed: (name, before, after) of each of which the values differ.
        moved: The same of each that went, came or was renamed.
        lone: How many went or came.

    Args:
        values: Compares them.
    """

    def __init__(self, values: Values) -> None:
        self.changed: list[tuple[str, str, str]] = []
        self.moved: list[tuple[str, str, str]] = []
        self.lone = 0
        self._values = values
        self._now = _Scope({}, {}, {}, {})

    @property
    def found(self) -> list[tuple[str, str, str]]:
        """All of them: what changed is first, for it may be one among many that were renamed."""
        return [*self.changed, *self.moved]

    def pair(self, one: Scope, other: Scope, where: str) -> dict[str, str]:
        """Compare the constants of two graphs, bodies or functions; `settle` ends it.

        Returns:
            For names of the second that hold what the first has under another name, that name.
        """
        before, after = constants_of(one), constants_of(other)
        # a value that is computed in one of the models is told of where its node is
        for names, nodes in ((before, other.nodes), (after, one.nodes)):
            for name in {name for node in nodes if not constant(node) for name in node.outputs}:
                names.pop(name, None)
        for name in before:
            if name in after:
                told = self._values.told(before[name], after[name])
                self.changed += [(f"{where}{name}", *told)] if told else []
        lost, came = (
            {name: tensor for name, tensor in mine.items() if name not in its}
            for mine, its in ((before, after), (after, before))
        )
        kinds: dict[bytes, int] = {}
        kind = {
            (side, name): kinds.setdefault(sha256(content(tensor)).digest(), len(kinds))
            for side, tensors in enumerate((lost, came))
            for name, tensor in tensors.items()
        }
        self._now = _Scope(lost, came, kind, {})
        went: dict[int, list[str]] = {}
        for name in reversed(lost):
            went.setdefault(kind[0, name], []).append(name)
        for name, tensor in came.items():
            twins = went.get(kind[1, name])
            # one place in files of two folders may hold two things
            if twins and not self._values.told(lost[twins[-1]], tensor):
                self._now.twins[name] = twins.pop()
                self._now.same.add(kind[1, name])
        self._now.holders.update({was: name for name, was in self._now.twins.items()})
        return dict(self._now.twins)

    def place(
        self, places: Sequence[tuple[str, str]], names: MutableMapping[str, str], where: str
    ) -> None:
        """Pair constants by where they are read: of many that hold the same, and of none others.

        Args:
            places: What nodes of both models read in one place, by name.
            names: What `pair` returned among others; those of which the values differ are added.
            where: As for `pair`, whose scope this is about.
        """
        now = self._now
        for was, name in places:
            now.swap(was, name)
        taken = set(now.twins.values())
        for was, name in places:
            one, other = now.lost.get(was), now.came.get(name)
            if one is None or other is None or name in now.twins or was in taken:
                continue
            if (said := tensor_said(one)) == tensor_said(other):
                now.twins[name] = was
                taken.add(was)
                told = self._values.told(one, other)
                if told:
                    now.apart.add(name)
                    self.changed.append((f"{where}{name}", f"{was}, {said}", told[1]))
        for name in now.came:
            names.pop(name, None)
        names.update(now.twins)

    def settle(self, where: str) -> None:
        """Note what has another name, and what only one of the graphs has."""
        now = self._now
        for name, tensor in now.came.items():
            if name not in now.apart:
                said, was = tensor_said(tensor), now.twins.get(name)
                self.moved.append((f"{where}{name}", f"{was}, {said}" if was else "", said))
        kept = set(now.twins.values())
        lone = [name for name in now.lost if name not in kept]
        self.moved += [(f"{where}{name}", tensor_said(now.lost[name]), "") for name in lone]
        self.lone += len(lone) + len(now.came) - len(now.twins)


@dataclass(frozen=True, slots=True)
class _Scope:
    """Constants of a graph that have no twin of their own name.

    Attributes:
        lost: Of the first model, by name.
        came: Of the second.
        kind: A number for what each holds, by 0 or 1 for the model, and its name.
        twins: By names of the second: what the first calls it.
        apart: Those of the second of which the values differ from their twins'.
        placed: Those that were paired by where they are read.
        same: The numbers of which it is known that both models hold the same there.
        holders: `twins`, the other way.
    """

    lost: dict[str, Tensor]
    came: dict[str, Tensor]
    kind: dict[tuple[int, str], int]
    twins: dict[str, str]
    apart: set[str] = field(default_factory=set)
    placed: set[str] = field(default_factory=set)
    same: set[int] = field(default_factory=set)
    holders: dict[str, str] = field(default_factory=dict)

    def swap(self, was: str, name: str) -> None:
        """Make two twins that hold the same; who had one of them gets the other's, or none."""
        kind = self.kind.get((1, name))
        if name in self.placed or kind not in self.same or kind != self.kind.get((0, was)):
            return
        self.placed.add(name)
        mine, holder = self.twins.pop(name, None), self.holders.pop(was, None)
        if mine != was:
            if mine is not None:
                del self.holders[mine]
            if holder is not None:
                del self.twins[holder]
            if mine is not None and holder is not None:
                self._join(mine, holder)
        self._join(was, name)

    def _join(self, was: str, name: str) -> None:
        self.twins[name], self.holders[was] = was, name


def constant(node: Node) -> bool:
    """Whether a node is the Constant of a tensor, however it is written."""
    return _value(node) is not None


def constants_of(scope: Scope) -> dict[str, Tensor]:
    """By the names that nodes read."""
    found: dict[str, Tensor] = {}
    if isinstance(scope.proto, onnx.GraphProto):
        found.update((tensor.name, tensor) for tensor in scope.proto.initializer)
        found.update((s.values.name, s) for s in scope.proto.sparse_initializer)
    for node in scope.nodes:
        value = _value(node)
        if value is not None:
            found[node.outputs[0]] = value
    return found


def _value(node: Node) -> Tensor | None:
    if (
        node.proto.op_type != "Constant"
        or node.proto.domain not in STANDARD
        or len(node.attributes) != 1
        or len(node.outputs) != 1
    ):
        return None
    attribute = node.attributes[0]
    if attribute.ref_attr_name:  # a function's caller says it
        return None
    for name, own, held in _HELD:
        if attribute.name == name and attribute.type in (0, own) and attribute.HasField(held):
            return getattr(attribute, held)  # type: ignore[no-any-return]
    kind, dtype = _PLAIN.get(attribute.name, (0, 0))
    return _plain(attribute, dtype) if kind and attribute.type == kind else None


def _plain(attribute: onnx.AttributeProto, dtype: int) -> onnx.TensorProto:
    held: Any = onnx.helper.get_attribute_value(attribute)
    many = attribute.name.endswith("s")
    dims = [len(held)] if many else []
    return onnx.helper.make_tensor("", dtype, dims, held if many else [held])
