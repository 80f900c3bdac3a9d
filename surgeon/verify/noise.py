"""How much the original itself moves when its inputs move by rounding.

A network whose values grow by powers of ten turns rounding into differences: such inputs tell
nothing of a rewrite. They are avoided where others are to be had, and known where not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from surgeon.nested import every_node
from surgeon.verify.compare import TOLERANCES, compare_arrays
from surgeon.verify.measure import finfo
from surgeon.verify.verdict import OutputCheck
from surgeon.weights import weights_of

_MOVED = "rounding alone moves the original's by"
CALM = 0.2  # of an output's tolerance: more movement than this, and other inputs are tried
FORGIVEN = 10.0  # times the original's own movement
OF_WEIGHTS = 2.0  # the same where its weights were moved, on all ways to its outputs at once
_ROUNDING = frozenset({"DynamicQuantizeLinear", "QuantizeLinear"})
_LARGEST = 1 << 30  # bytes of a model that is copied to move its weights


def perturbed(feeds: Mapping[str, Any], seed: int, *, steps: float = 1.0) -> dict[str, Any]:
    """The inputs with every float moved by about so many roundings of the largest.

    Args:
        feeds: Inputs by name; what is no float stays.
        seed: What the movements are drawn from.
        steps: In units of the dtype's machine epsilon.
    """
    moved = {}
    for place, (name, array) in enumerate(feeds.items()):
        moved[name] = array
        if isinstance(array, np.ndarray) and array.dtype.name in TOLERANCES and array.size:
            if array.dtype.kind == "c":
                continue
            wide = array.astype(np.float64)
            largest = float(np.abs(wide).max()) or 1.0
            generator = np.random.default_rng([seed, place])
            step = steps * float(finfo(array.dtype).eps) * largest
            with np.errstate(over="ignore"):  # the largest of a half may become infinite
                moved[name] = (wide + step * generator.normal(size=wide.shape)).astype(array.dtype)
    return moved


def has_float(feeds: Mapping[str, Any]) -> bool:
    """Whether there is a float among values, that rounding could move."""
    arrays = [np.asarray(value) for value in feeds.values() if not isinstance(value, list)]
    return any(array.dtype.kind in "fc" or array.dtype.name in TOLERANCES for array in arrays)


def moved_weights(model: onnx.ModelProto, seed: int) -> onnx.ModelProto | None:
    """The model with every matrix of weights in the file moved by roundings, 4 ** seed of them.

    Where its matrices are integers, scales and vectors are moved: what is rounded to levels behind
    them may be of the next one. What is so large that its rounding exceeds 1 is a mask, and stays.
    None where nothing moves.
    """
    if weights_of(model.graph).size > _LARGEST:
        return None
    moved = onnx.ModelProto()
    moved.CopyFrom(model)
    levels = rounds_to_levels(model)
    arrays = {
        tensor.name: onnx.numpy_helper.to_array(tensor)
        for tensor in moved.graph.initializer
        if (len(tensor.dims) > 1 or levels) and tensor.data_location != onnx.TensorProto.EXTERNAL
    }
    weights = {
        name: array
        for name, array in arrays.items()
        if array.dtype.name in TOLERANCES and array.dtype.kind == "f" and _is_weight(array)
    }
    shaken = perturbed(weights, seed, steps=4.0**seed)
    for tensor in moved.graph.initializer:
        if tensor.name in shaken:
            tensor.CopyFrom(onnx.numpy_helper.from_array(shaken[tensor.name], tensor.name))
    return moved if shaken else None


def rounds_to_levels(model: onnx.ModelProto) -> bool:
    """Whether values are rounded to levels on the way, which may be one further by a rounding."""
    return any(node.op_type in _ROUNDING for node in every_node(model.graph.node))


def _is_weight(array: Any) -> bool:
    largest = float(np.abs(array).max(initial=0))
    return largest * float(finfo(array.dtype).eps) < 1


def movement(name: str, before: Any, after: Any, *, tolerance: float | None = None) -> float:
    """How far an output moved, in units of its tolerance: what has to be equal counts places."""
    check = compare_arrays(name, before, after, tolerance=tolerance)
    if check.tolerance:
        return check.max_relative / check.tolerance
    if check.agrees:
        return 0.0
    return float("inf") if np.shape(before) != np.shape(after) else share(before, after)


def doubted(
    check: OutputCheck,
    before: Any,
    after: Any,
    others: Sequence[Any],
    *,
    tolerance: float | None,
    most: float,
) -> OutputCheck:
    """A difference the original itself shows when values move by rounding is none.

    Args:
        check: That says so.
        before: What the original computes.
        after: What the result does.
        others: What the original computes where values are moved by rounding.
        tolerance: Relative to the spread.
        most: How many times the original's own movement the difference may be.
    """
    if check.fault and check.tolerance:  # NaN or infinities at other places
        return beside_poles(check, before, after, others, tolerance)
    if check.tolerance and not np.isfinite(check.max_relative):
        return _without_spread(check, before, others, most)
    if check.tolerance:
        error = check.max_relative / check.tolerance
    elif _form(before) == _form(after):
        error = share(before, after)
    else:
        return check
    moved = (movement(check.name, before, other, tolerance=tolerance) for other in others)
    largest = max(moved, default=0.0)
    if error > most * largest or not np.isfinite(largest):
        return check
    amount = largest * (check.tolerance or 1.0)
    return replace(check, agrees=True, weak=f"{_MOVED} {amount:.2g} of its spread", doubted=True)


def _without_spread(
    check: OutputCheck, before: Any, others: Sequence[Any], most: float
) -> OutputCheck:
    """The same of an output that is one number everywhere, to which no error is relative."""
    moved = (compare_arrays(check.name, before, other).max_absolute for other in others)
    largest = max(moved, default=0.0)
    if check.max_absolute > most * largest or not np.isfinite(largest):
        return check
    return replace(
        check, agrees=True, weak=f"{_MOVED} {largest:.2g}, and it has no spread", doubted=True
    )


def all_doubted(
    checks: Sequence[OutputCheck],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    runs: Callable[[], Iterable[Mapping[str, Any]]],
    limits: Mapping[str, float | None],
    passed: Collection[str],
    *,
    most: float,
) -> list[OutputCheck]:
    """The checks, where no output differs by what rounding may move the original by.

    Args:
        checks: One for each output.
        before: What the original computes, by name.
        after: What the result does.
        runs: Gives what the original computes where values are moved by rounding, run by run.
        limits: The tolerance of each, relative to the spread.
        passed: Outputs that are not looked at.
        most: How many times the original's own movement a difference may be.
    """
    found, others = list(checks), []
    apart = [n for n, c in enumerate(checks) if not c.agrees and c.name not in passed]
    for run in runs() if apart else ():
        others.append(run)
        for place in apart:
            name = checks[place].name
            values = before[name], after[name], [each[name] for each in others]
            found[place] = doubted(checks[place], *values, tolerance=limits[name], most=most)
        if all(found[place].agrees for place in apart):
            break  # each run takes as long as a comparison
    return found


def beside_poles(
    check: OutputCheck, before: Any, after: Any, others: Sequence[Any], tolerance: float | None
) -> OutputCheck:
    """Numbers and none at other places than the original's: compared where it is sure itself.

    Its arguments are those of `doubted`.
    """
    moved = [_kind(each) != _kind(before) for each in others if np.shape(each) == np.shape(before)]
    poles = np.any(moved, axis=0) if moved else np.zeros(np.shape(before), bool)
    one, other = (np.where(poles, 0, each).astype(each.dtype) for each in (before, after))
    calm = compare_arrays(check.name, one, other, tolerance=tolerance)
    if not calm.agrees:
        return check
    return replace(
        calm, weak=f"{_MOVED} infinity at {int(poles.sum())} of its places", doubted=True
    )


def _kind(values: Any) -> Any:
    """0 for a number, else which infinity it is, or 2 for NaN."""
    return np.where(np.isfinite(values), 0, np.where(np.isnan(values), 2, np.sign(values)))


def _form(values: Any) -> tuple[Any, ...]:
    array = np.asarray(values)
    return array.dtype, array.shape


def share(before: Any, after: Any) -> float:
    """The share of values that differ."""
    return float(np.mean(np.asarray(before) != np.asarray(after)))
