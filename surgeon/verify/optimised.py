"""What onnxruntime's own optimisations make of a result: they have faults that a rewrite may wake.

The check runs both models without them. Most users run a file with them, as that is the default.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from surgeon.errors import SurgeonError
from surgeon.isolation import open_session
from surgeon.verify.compare import compare_arrays
from surgeon.verify.noise import FORGIVEN, doubted, perturbed
from surgeon.verify.originals import Side
from surgeon.verify.verdict import describe
from surgeon.weights import weights_of

_MOST_RUNS = 3  # at sizes of their own
_MOST_NODES = 5000  # their time takes the square of it
_MOST_BYTES = 1 << 30  # of a model: they copy its weights
_COARSER = 10.0  # times a whole model's tolerance: kernels are put together, sums in other orders


@dataclass(frozen=True, slots=True)
class Run:
    """What a model made of an input without optimisations.

    Attributes:
        sizes: The dynamic dims'.
        feeds: By input name.
        expected: What the original gave.
        actual: What the result gave.
    """

    sizes: Mapping[str, int]
    feeds: Mapping[str, Any]
    expected: Mapping[str, Any]
    actual: Mapping[str, Any]


def keep_run(runs: list[Run], run: Run, random: Collection[str]) -> None:
    """Put a run to the few that are looked at again, if it is at sizes of its own.

    Args:
        runs: Those so far.
        run: One on which both agree.
        random: Outputs that are drawn at random, and so no matter.
    """
    alike = [name for name in run.actual if name not in random]
    if alike and len(runs) < _MOST_RUNS and all(other.sizes != run.sizes for other in runs):
        sides = ({name: side[name] for name in alike} for side in (run.expected, run.actual))
        runs.append(Run(run.sizes, run.feeds, *sides))


def optimised_fault(
    result: onnx.ModelProto,
    folder: Path | None,
    side: Side,
    original: Side | None,
    runs: Sequence[Run],
) -> str | None:
    """What onnxruntime makes of the result with its optimisations, where that is not the same.

    Nothing is said where the original does not stay the same either, and of models so large that
    it takes long.

    Args:
        result: The model that is to be saved.
        folder: Where its external data lie.
        side: The same, without optimisations.
        original: The model as it came; None where its outputs were recorded.
        runs: What both gave.
    """
    if len(result.graph.node) > _MOST_NODES or weights_of(result.graph).size > _MOST_BYTES:
        return None
    found = _first_fault(result, folder, side, [(r.sizes, r.feeds, r.actual) for r in runs])
    if found is None:
        return None
    at, fault = found
    if original is not None and original.model is not None:
        before = [(r.sizes, r.feeds, r.expected) for r in runs if r.sizes == at]
        if _first_fault(original.model, original.folder, original, before):
            return None
    place = f" at {describe(at)}" if at else ""
    return (
        f"onnxruntime's own optimisations make something else of the result: {fault}{place}; run "
        "it with `SessionOptions.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL`"
    )


def _first_fault(
    model: onnx.ModelProto,
    folder: Path | None,
    side: Side,
    runs: Sequence[tuple[Mapping[str, int], Mapping[str, Any], Mapping[str, Any]]],
) -> tuple[Mapping[str, int], str] | None:
    """The sizes at which a model differs from itself with optimisations, and how."""
    try:
        session = open_session(model, folder=folder, optimise=True)
    except SurgeonError as error:
        return {}, error.what
    for sizes, feeds, outputs in runs:
        names = list(outputs)
        try:
            found = session.run(feeds, names)
        except SurgeonError as error:
            return sizes, error.what
        checks = [compare_arrays(name, outputs[name], found[name]) for name in names]
        apart = [c for c in checks if c.fault or c.max_relative > _COARSER * c.tolerance]
        if apart := [check for check in apart if not check.agrees]:
            moved = [_moved(side, feeds, names, seed) for seed in range(3)]
            for check in apart:
                name = check.name
                others = [each[name] for each in moved if each is not None]
                values = outputs[name], found[name], others
                if not doubted(check, *values, tolerance=None, most=FORGIVEN).agrees:
                    return sizes, str(check)
    return None


def _moved(
    side: Side, feeds: Mapping[str, Any], names: Sequence[str], seed: int
) -> dict[str, Any] | None:
    """What a model gives where its inputs move by rounding; None where it fails."""
    try:
        return side.run(perturbed(feeds, seed, steps=4.0**seed), names)
    except SurgeonError:
        return None
