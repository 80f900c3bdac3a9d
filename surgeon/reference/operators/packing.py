"""PyTorch operators: batches of unequal lengths (torch.nn.utils.rnn, torch.nested)."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from itertools import pairwise

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row


def pack_padded_sequence(input: Array, lengths: Array, batch_first: bool) -> tuple[Array, Array]:
    x = input if batch_first else input.swapaxes(0, 1)
    if lengths.shape != (len(x),) or not len(x):
        raise Unsuited(f"{lengths.shape} lengths of {len(x)} samples")
    if (np.diff(lengths) > 0).any() or lengths[-1] < 1 or lengths[0] > x.shape[1]:
        raise Unsuited("its lengths do not fall, or are none of its input's")
    rows = [
        sample[step]
        for step in np.arange(lengths[0])
        for sample, length in zip(x, lengths, strict=True)
        if step < length
    ]
    sizes = [int((lengths > step).sum()) for step in np.arange(lengths[0])]
    return np.stack(rows), np.asarray(sizes, np.int64)


def pad_packed_sequence(
    data: Array, batch_sizes: Array, batch_first: bool, padding_value: float, total_length: int
) -> tuple[Array, Array]:
    if not batch_sizes.size or (np.diff(batch_sizes) > 0).any() or batch_sizes[-1] < 1:
        raise Unsuited("its batch sizes do not fall, or there are none")
    if batch_sizes.sum() != len(data) or 0 < total_length < len(batch_sizes):
        raise Unsuited(f"{batch_sizes.sum()} steps in {len(data)} rows")
    time, batch = max(len(batch_sizes), total_length), int(batch_sizes[0])
    made = np.full((time, batch, *data.shape[1:]), padding_value).astype(data.dtype)
    at = 0
    for step, count in enumerate(batch_sizes):
        made[step, :count] = data[at : at + count]
        at += count
    lengths = [int((batch_sizes > sample).sum()) for sample in np.arange(batch)]
    return made.swapaxes(0, 1) if batch_first else made, np.asarray(lengths, np.int64)


def _bounds(offsets: list[Array], rows: int) -> list[tuple[int, int]]:
    if len(offsets) != 1 or offsets[0].ndim != 1:
        raise Unsuited(f"it is jagged along {len(offsets)} axes")
    line = [int(n) for n in offsets[0]]
    if not line or line[0] != 0 or line[-1] != rows or sorted(line) != line:
        raise Unsuited("its offsets do not rise from 0 to the number of rows")
    return list(pairwise(line))


def jagged_to_padded(
    values: Array, offsets: list[Array], max_lengths: list[int], padding_value: float
) -> Array:
    bounds, room = _bounds(offsets, len(values)), max_lengths[0]
    made = np.full((len(bounds), room, *values.shape[1:]), padding_value).astype(values.dtype)
    for row, (begin, end) in zip(made, bounds, strict=True):
        count = min(end - begin, room)
        row[:count] = values[begin : begin + count]
    return made


def padded_to_jagged(dense: Array, offsets: list[Array], total_L: int | None) -> Array:  # noqa: N803
    rows = int(offsets[0][-1]) if total_L is None and offsets[0].size else total_L or 0
    bounds = _bounds(offsets, rows)
    if len(bounds) != len(dense) or any(e - b > dense.shape[1] for b, e in bounds):
        raise Unsuited("its offsets are not of its samples")
    parts = [sample[: e - b] for sample, (b, e) in zip(dense, bounds, strict=True)]
    return np.concatenate([dense[:0].reshape(0, *dense.shape[2:]), *parts])


TABLE: tuple[Row, ...] = (
    (
        "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
        pack_padded_sequence,
    ),
    (
        "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, "
        "Scalar padding_value, int total_length) -> (Tensor, Tensor)",
        pad_packed_sequence,
    ),
    (
        "_jagged_to_padded_dense_forward(Tensor values, Tensor[] offsets, SymInt[] max_lengths, "
        "float padding_value=0.0) -> Tensor",
        jagged_to_padded,
    ),
    (
        "_padded_dense_to_jagged_forward(Tensor dense, Tensor[] offsets, SymInt? total_L=None) "
        "-> Tensor",
        padded_to_jagged,
    ),
)
