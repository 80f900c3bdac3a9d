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

_NO_BATCH = "it is as long at a larger batch, so its samples are no samples of the batch"


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
    apart = _not_samples(original, drawing, split, base, names, seed)
    for size in (2 * block, 2 * block + 1, *([1] if block > 1 else [])):
        sizes = {**base, **dict.fromkeys(group, size)}
        feeds = drawing.feeds(sizes, seed)
        names = [name for name in names if name not in apart]
        if not names:
            break
        try:
            actual = result.run(feeds, names)
        except SurgeonError as error:
            why = f"the original is not defined there, nor is the result{_freed(group, block)}: "
            yield NotCompared(others, why + error.what)
            return
        apart |= {name: _NO_BATCH for name in names if size > block == _length(actual[name])}
        names = [name for name in names if name not in apart]
        if not names:
            break
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
    for name, why in apart.items():
        yield NotCompared(f"output `{name}` at {others}", why)


def _freed(group: Sequence[str], block: int) -> str:
    """What may make a batch that the trace froze inside any."""
    if not all(name.isidentifier() for name in group):
        return ""
    told = " ".join(f"--assume '{name} == {block}'" for name in group)
    return f" (`any-batch {told}` may free it)"


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, np.ndarray) and value.ndim else None


def _not_samples(
    original: Side,
    drawing: Drawing,
    split: Collection[str],
    base: Mapping[str, int],
    names: Sequence[str],
    seed: int,
) -> dict[str, str]:
    """Outputs that cannot be put together, and why.

    A sample of some changes where only another sample's inputs do: a batch's mean, say. Others move
    otherwise than their samples are moved: a sum that runs along the batch, a write to the last of
    it. And others say the sizes alone, which are other ones for each part. Of a batch of one only
    the latter is seen.
    """
    first, other = drawing.feeds(base, seed), drawing.feeds(base, seed + 1)
    mixed = {
        name: np.concatenate([x[:1], other[name][1:]]) if name in split else x
        for name, x in first.items()
    }
    turned = {name: np.roll(x, 1, 0) if name in split else x for name, x in first.items()}
    try:
        runs = [original.run(feeds, names) for feeds in (first, mixed, turned, other)]
    except SurgeonError:
        return {}
    block = next((len(first[name]) for name in split), 1)
    found = {}
    for name in names:
        one, two, around, three = (run[name] for run in runs)
        if not all(isinstance(x, np.ndarray) and x.ndim for x in (one, two, around, three)):
            continue
        if not compare_arrays(name, one[:1], two[:1]).agrees:
            found[name] = "its samples depend on one another"
        elif not compare_arrays(name, np.roll(one, len(one) // block, 0), around).agrees:
            found[name] = "its samples depend on where they stand"
        elif one.shape == three.shape and np.array_equal(one, three):
            found[name] = "no input moves it"
    return found
