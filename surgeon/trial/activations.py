"""What the original model itself computes on real inputs, for the check of each rewrite."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surgeon import dims
from surgeon.errors import SurgeonError
from surgeon.facts.fact import Array
from surgeon.model import Model
from surgeon.reference import open_reference
from surgeon.trial.piece import Piece

SETS = 2  # of real inputs that a rewrite is held to
RUNS = 64  # runs of the model's beginning
SECONDS = 60.0  # for all of them
_KEPT = 1 << 28  # bytes of values


@dataclass
class Activations:
    """The values of a model on real inputs, each computed when it is first asked for.

    Attributes:
        model: The original.
        sets: Real inputs.
    """

    model: Model
    sets: Sequence[Mapping[str, Any]]
    _values: dict[tuple[int, str], Any] = field(default_factory=dict)
    _runs: int = 0
    _spent: float = 0.0
    _held: int = 0

    def of(self, piece: Piece) -> Iterator[tuple[dict[str, int], dict[str, Array]]]:
        """Sizes and inputs of a piece, for each set; none where the original lacks its inputs."""
        wanted = {tensor.name: fact for tensor, fact in piece.inputs if fact.value is None}
        for place, feeds in enumerate(self.sets[:SETS]):
            found = self._run(place, feeds, list(wanted))
            if found is None:
                continue
            point: dict[str, int] = {}
            for name, fact in wanted.items():
                _solve(fact.shape or (), found[name].shape, point)
            try:
                fits = all(
                    tuple(dims.evaluate(d, point) for d in fact.shape or ()) == found[name].shape
                    and found[name].dtype == _dtype(fact.dtype)
                    for name, fact in wanted.items()
                )
            except (KeyError, ValueError):  # a size that none of these values shows, or is none
                continue
            if fits and set(piece.symbols) <= set(point):
                yield point, found

    def _run(
        self, place: int, feeds: Mapping[str, Any], names: Sequence[str]
    ) -> dict[str, Array] | None:
        known = {name: feeds[name] for name in names if name in feeds}
        missing = [n for n in names if n not in known and (place, n) not in self._values]
        if missing and self._runs < RUNS and self._spent < SECONDS and self._held < _KEPT:
            began = time.monotonic()
            self._runs += 1
            try:
                made = open_reference(self.model.proto, self.model.folder).run(feeds, missing)
            except SurgeonError:  # a value that a rewrite made, or that nothing here computes
                made = dict.fromkeys(missing)
            self._spent += time.monotonic() - began
            for name, value in made.items():
                self._values[place, name] = value
                self._held += getattr(value, "nbytes", 0)
        values: dict[str, Any] = {
            name: known[name] if name in known else self._values.get((place, name))
            for name in names
        }
        arrays = all(isinstance(value, np.ndarray) for value in values.values())
        return values if arrays else None


def _solve(shape: Sequence[dims.Dim], sizes: Sequence[int], point: dict[str, int]) -> None:
    """Note the sizes of the symbols that stand alone in a shape."""
    for dim, size in zip(shape, sizes, strict=False):
        if (name := dims.named(dim)) is not None:
            point.setdefault(name, size)


def _dtype(kind: int) -> np.dtype[Any]:
    import onnx

    return onnx.helper.tensor_dtype_to_np_dtype(kind)
