"""What graphs, bodies and functions declare: inputs and outputs, types, and all other fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import onnx

from surgeon.difference.parts import PLAIN, parts_of
from surgeon.difference.texts import type_said
from surgeon.difference.values import Values
from surgeon.soundness.scopes import Scope

_OF_SCOPE = PLAIN | {
    *("node", "initializer", "sparse_initializer"),  # compared by themselves
    *("input", "output", "value_info", "name", "domain", "overload"),  # told in other words
}
_ONE_SIDED = "types of inner values that one model does not declare"


class Ends:
    """Compares what two graphs say besides their nodes and constants.

    Attributes:
        interface: (name, before, after) of the models' own inputs and outputs.
        declared: The same of what bodies and functions declare, and of other fields.

    Args:
        values: Compares parts.
        aside: Takes what differs and does not count.
    """

    def __init__(self, values: Values, aside: dict[str, None]) -> None:
        self.interface: list[tuple[str, str, str]] = []
        self.declared: list[tuple[str, str, str]] = []
        self._values = values
        self._aside = aside

    def before(self, one: Scope, other: Scope, where: str, names: MutableMapping[str, str]) -> None:
        """Compare inputs by place, and note in `names` what the first model calls the second's."""
        if not where or type(one.proto) is not type(other.proto):
            return
        was, now = (_names(scope.proto.input) for scope in (one, other))
        names.update(zip(now, now, strict=True))
        if len(was) == len(now):
            pairs = zip(was, now, strict=True)
            names.update((b, a) for a, b in pairs if b not in was and a not in now)
        self._listed(f"{where}inputs", was, now, now)

    def after(self, one: Scope, other: Scope, where: str, names: Mapping[str, str]) -> None:
        """Compare outputs, declared types and all other fields, with all values paired."""
        if type(one.proto) is not type(other.proto):
            return
        if where:
            was, now = (_names(scope.proto.output) for scope in (one, other))
            self._listed(f"{where}outputs", was, now, [names.get(n, n) for n in now])
            for kind in ("input", "output"):
                values, others = (getattr(scope.proto, kind) for scope in (one, other))
                self._types(f"{where}{kind}", values, others, names)
        else:
            self._model(one.proto, other.proto)
        self._types(f"{where}type of", one.proto.value_info, other.proto.value_info, names)
        told = (parts_of(one.proto, _OF_SCOPE), parts_of(other.proto, _OF_SCOPE, names))
        self.declared += self.differences(*told, where)
        if one.proto.name != other.proto.name:
            self._aside["names of graphs"] = None
        self.set_aside(one.proto, other.proto)

    def differences(
        self, one: Mapping[str, Any], other: Mapping[str, Any], where: str = ""
    ) -> Iterator[tuple[str, str, str]]:
        """Parts that are not the same: name, before, after."""
        for key in dict.fromkeys((*one, *other)):
            told = self._values.told(one.get(key), other.get(key))
            if told:
                yield f"{where}{key}", *told

    def set_aside(self, one: Any, other: Any) -> None:
        """Note texts that differ, from which nothing computes."""
        if one.doc_string != other.doc_string:
            self._aside["doc strings"] = None
        if list(one.metadata_props) != list(other.metadata_props):
            self._aside["metadata of nodes and graphs"] = None

    def _model(self, one: onnx.GraphProto, other: onnx.GraphProto) -> None:
        """Inputs and outputs of the whole, which callers know by name."""
        for kind in ("input", "output"):
            values, others = (
                {v.name: type_said(v.type) or "of unknown type" for v in getattr(graph, kind)}
                for graph in (one, other)
            )
            self.interface += self.differences(values, others, f"{kind} ")
            was, now = [n for n in values if n in others], [n for n in others if n in values]
            if was != now:
                self.interface.append((f"order of the {kind}s", ", ".join(was), ", ".join(now)))

    def _listed(
        self, name: str, was: Sequence[str], now: Sequence[str], known: Sequence[str]
    ) -> None:
        if list(was) == list(known):
            return
        head, _, kind = name.rpartition("/")
        if sorted(was) == sorted(known):
            name = f"{head}/order of the {kind}"
        said = (called(n, k, "") if n in was else n for n, k in zip(now, known, strict=True))
        self.declared.append((name, ", ".join(was), ", ".join(said)))

    def _types(self, label: str, one: Any, other: Any, names: Mapping[str, str]) -> None:
        """Types that both models declare otherwise. Inference finds what one leaves out."""
        types = {v.name: type_said(v.type) for v in one if not isinstance(v, str)}
        others = {
            names.get(v.name, v.name): type_said(v.type) for v in other if not isinstance(v, str)
        }
        for name in dict.fromkeys((*types, *others)):
            was, now = types.get(name, ""), others.get(name, "")
            if was and now and was != now:
                self.declared.append((f"{label} {name}", was, now))
            elif was != now:
                self._aside[_ONE_SIDED] = None


def called(name: str, known: str, was: str) -> str:
    """A value's name in the second model, with the first's where that would mislead."""
    return f"{name} (before: {known})" if name != known and (not was or name == was) else name


def _names(values: Any) -> list[str]:
    return [value if isinstance(value, str) else value.name for value in values]
