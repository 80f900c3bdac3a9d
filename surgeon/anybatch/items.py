"""Whether a model computes of several items what another computes of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from surgeon.anybatch.freed import Freed, refusal
from surgeon.aside import room_aside
from surgeon.errors import SurgeonError
from surgeon.isolation import open_session
from surgeon.runtime import Runner
from surgeon.verify.compare import compare_arrays
from surgeon.verify.inputs import draw, required_inputs
from surgeon.verify.limits import bounds
from surgeon.verify.sizes import dynamic_dims

_MEND = "Report it with the model."
COUNTS = (1, 2, 3)  # groups of as many items as the file is for
_SIZES = (16, 32, 64, 224, 8)  # of other dims that are dynamic, until the original runs


@room_aside()
def check_items(before: onnx.ModelProto, freed: Freed, folder: Path | None) -> None:
    """Run the original on groups of items and the result on all of them at once.

    Args:
        before: For a batch of one size.
        freed: For any.
        folder: Where external data lie.

    Raises:
        SurgeonError: The two differ, or one of them does not run.
    """
    one, many = open_session(before, folder=folder), open_session(freed.model, folder=folder)
    for seed, count in enumerate(COUNTS):
        feeds, wanted = _run_apart(one, before, freed, count, seed)
        try:
            found = many.run(feeds, list(wanted))
        except SurgeonError as error:
            said = f"the result does not run on {count * freed.size} items: {error.what}"
            raise refusal(said, _MEND) from None
        for name, expected in wanted.items():
            if not (check := compare_arrays(name, expected, found[name])).agrees:
                said = check.fault or f"by {check.max_relative:.2g} of its spread"
                said = f"`{name}` of {count * freed.size} items at once differs: {said}"
                raise refusal(said, _MEND)


def _run_apart(
    runner: Runner, before: onnx.ModelProto, freed: Freed, count: int, seed: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs of all items, and what the original makes of each group."""
    fault: SurgeonError | None = None
    for feeds in _drawn(before, freed, count, seed):
        try:
            groups = [runner.run(_group(feeds, freed, index)) for index in range(count)]
        except SurgeonError as error:
            fault = fault or error
            continue
        return feeds, {name: _together(name, groups, freed.outputs) for name in groups[0]}
    assert fault is not None
    raise refusal(f"the original does not run: {fault.what}", _MEND)


def _drawn(
    before: onnx.ModelProto, freed: Freed, count: int, seed: int
) -> Iterator[dict[str, Any]]:
    inputs = required_inputs(freed.model)
    allowed = bounds(before, inputs)
    others = dynamic_dims(inputs).keys() - {freed.name}
    for size in _SIZES if others else _SIZES[:1]:
        sizes = dict.fromkeys(others, size) | {freed.name: count * freed.size}
        yield draw(inputs, sizes, seed, allowed=allowed)


def _group(feeds: Mapping[str, Any], freed: Freed, index: int) -> dict[str, Any]:
    items = slice(index * freed.size, (index + 1) * freed.size)
    return {name: array[items] if name in freed.inputs else array for name, array in feeds.items()}


def _together(name: str, groups: list[dict[str, Any]], places: Mapping[str, int]) -> Any:
    """What the groups gave, behind one another; of what all share, the first."""
    arrays = [group[name] for group in groups]
    return np.concatenate(arrays, places[name]) if name in places else arrays[0]
