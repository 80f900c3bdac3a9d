"""Replacements whose structure is computed: `replace: {build: NAME}` in a recipe.

A builder gets the draft to add nodes to, the match, and the arguments the recipe wrote; it gives
the tensors that take the places of the root's outputs, or raises `Refused` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from surgeon.builders.rooms import FAMILIES, ROOMS


class _Builders(Mapping[str, Callable[..., Any]]):
    """Builders by name."""

    def __init__(self) -> None:
        families = {name: family for family, names in FAMILIES.items() for name in names}
        self._rooms = {**ROOMS, **families}
        self._found: dict[str, Callable[..., Any]] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self._found:
            self._found[name] = self._import(name)
        return self._found[name]

    def _import(self, name: str) -> Callable[..., Any]:
        room = self._rooms[name]
        module = import_module(f"surgeon.builders.{room}")
        found: Callable[..., Any] = (
            module.TABLE[name] if room in FAMILIES else getattr(module, name)
        )
        if not room.startswith("aten_"):
            return found
        # it stands on rooms of ATen's, which are asked for one by one
        of_real_values = import_module("surgeon.builders.real_values").of_real_values
        told: Callable[..., Any] = of_real_values(found)
        return told

    def __iter__(self) -> Iterator[str]:
        return iter(self._rooms)

    def __len__(self) -> int:
        return len(self._rooms)


BUILDERS: Mapping[str, Callable[..., Any]] = _Builders()
