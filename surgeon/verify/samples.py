"""Larger batches than the original takes, put together from the ones that it does."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from surgeon.errors import SurgeonError
from surgeon.verify.compare import compare_arrays
from surgeon.verify.inputs import Drawing
from surgeon.verify.originals import Side, by_samples
from surgeon.verify.summary import squeezed
from surgeon.verify.verdict import NotCompared


class Batch(NamedTuple):
    """Inputs of a batch that the original does not take, and what its runs on parts of it make."""

    feeds: Mapping[str, Any]
    expected: Mapping[str, Any]
    sizes: Mapping[str, int]


def larger_batches(
    original: Side,
    result: Side,
    names: Sequence[str],
    group: tuple[str, ...],
    base: Mapping[str, int],
    drawing: Drawing,
    seed: int,
) -> Iterator[Batch | NotCompared]:
    """What can be compared where the original runs at one batch only, and what cannot.

    Args:
        original: Runs at `base`.
        result: Is compared where it runs.
        names: The outputs.
        group: The dims that are the batch.
        base: All sizes.
        drawing: How the inputs are drawn.
        seed: From what.
    """
    block = base[group[0]]
    others = f"{' and '.join(group)} other than {block}"
    split = [each.name for each in drawing.inputs if each.dims and each.dims[0] in group]
    together = _computed_together(original, drawing, split, base, names, seed)
    for name in together:
        yield NotCompared(f"output `{name}` at {others}", "its samples hang on one another")
    names = [name for name in names if name not in together]
    if not names:
        return
    for size in (2 * block, 2 * block + 1, *([1] if block > 1 else [])):
        sizes = {**base, **dict.fromkeys(group, size)}
        feeds = drawing.feeds(sizes, seed)
        try:
            actual = result.run(feeds, names)
        except SurgeonError as error:
            why = f"the original is not defined there, nor is the result: {error.what}"
            yield NotCompared(others, why)
            return
        try:
            expected = by_samples(original, feeds, split, block, names)
        except SurgeonError as error:
            expected = error.what
        if isinstance(expected, str):
            yield NotCompared(others, expected)
            return
        if size == 1 and (dropped := squeezed(expected, actual)):
            yield NotCompared(f"{' and '.join(group)}=1", dropped)
            continue
        yield Batch(feeds, expected, sizes)


def _computed_together(
    original: Side,
    drawing: Drawing,
    split: Collection[str],
    base: Mapping[str, int],
    names: Sequence[str],
    seed: int,
) -> list[str]:
    """Outputs of which a sample changes where only another sample's inputs do: a batch's mean, say.

    Of a batch of one nothing is known.
    """
    first, other = drawing.feeds(base, seed), drawing.feeds(base, seed + 1)
    mixed = {
        name: np.concatenate([x[:1], other[name][1:]]) if name in split else x
        for name, x in first.items()
    }
    try:
        runs = [original.run(feeds, names) for feeds in (first, mixed)]
    except SurgeonError:
        return []
    found = []
    for name in names:
        one, two = (run[name] for run in runs)
        if all(isinstance(x, np.ndarray) and x.ndim for x in (one, two)):
            check = compare_arrays(name, one[:1], two[:1])
            found += [] if check.agrees else [name]
    return found
