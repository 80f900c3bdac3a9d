"""Bags of embeddings and unpooling (torch.nn.functional), one bag or plane at a time."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def embedding_bag(
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    if indices.ndim != 1 or offsets.ndim != 1 or not len(offsets) or offsets[0] != 0:
        raise Unsuited("its offsets do not begin at 0")
    if per_sample_weights is not None and mode != 0:
        raise Unsuited("only sums have weights of their own")
    bounds = [*offsets.tolist(), *([] if include_last_offset else [len(indices)])]
    if sorted(bounds) != bounds or bounds[-1] != len(indices):
        # a last offset before the end is cut off in sums and not in means, in 2.13
        raise Unsuited("its offsets are not in order, or do not end where the indices do")
    if ((indices < 0) | (indices >= len(weight))).any():
        raise Unsuited("an index is outside its table")
    rows = wide(weight)[indices]
    if per_sample_weights is not None:
        rows = rows * wide(per_sample_weights)[:, None]
    counts = np.ones(len(indices), bool)
    if padding_idx is not None:
        counts = indices != padding_idx % len(weight)
    bags = []
    for start, end in pairwise(bounds):
        bag = rows[start:end][counts[start:end]]
        if not len(bag):
            bags.append(np.zeros(weight.shape[1]))
        else:
            bags.append([bag.sum(0), bag.mean(0), bag.max(0)][mode])
    return narrow(np.stack(bags), weight), None, None, None


def raw_embedding_bag(
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Array | None,
    include_last_offset: bool,
    padding_idx: int,
) -> Any:
    rest = (scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset)
    pad = None if padding_idx < 0 else padding_idx
    return embedding_bag(weight, indices, offsets, *rest, pad)


def _unpool(self: Array, indices: Array, output_size: list[int]) -> Array:
    spatial = len(output_size)
    if self.shape != indices.shape or self.ndim - spatial not in (1, 2):
        raise Unsuited(f"shapes {list(self.shape)} and {list(indices.shape)}")
    lead = self.shape[:-spatial]
    y = np.zeros((*lead, int(np.prod(output_size))), self.dtype)
    if ((indices < 0) | (indices >= y.shape[-1])).any():
        raise Unsuited("an index is outside its plane")
    # PyTorch leaves open which of two in one place wins; here it is the later, as in a scatter
    for plane in np.ndindex(*lead):
        for place, value in zip(indices[plane].flat, self[plane].flat, strict=True):
            y[plane][place] = value
    return y.reshape(*lead, *output_size)


def max_unpool2d(self: Array, indices: Array, output_size: list[int]) -> Array:
    return _unpool(self, indices, output_size)


def max_unpool3d(
    self: Array, indices: Array, output_size: list[int], stride: list[int], padding: list[int]
) -> Array:
    return _unpool(self, indices, output_size)


_FLAGS = "bool scale_grad_by_freq=False, int mode=0, bool sparse=False"
_BAGS = "Tensor weight, Tensor indices, Tensor offsets"
_MADE = "-> (Tensor, Tensor, Tensor, Tensor)"
TABLE: tuple[Row, ...] = (
    (f"embedding_bag({_BAGS}, {_FLAGS}, Tensor? per_sample_weights=None) {_MADE}", embedding_bag),
    (
        f"embedding_bag({_BAGS}, {_FLAGS}, Tensor? per_sample_weights=None, "
        f"bool include_last_offset=False) {_MADE}",
        embedding_bag,
    ),
    (
        f"embedding_bag.padding_idx({_BAGS}, bool scale_grad_by_freq, int mode, bool sparse, "
        f"Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) {_MADE}",
        embedding_bag,
    ),
    *(
        (
            f"{name}({_BAGS}, {_FLAGS}, Tensor? per_sample_weights=None, "
            f"bool include_last_offset=False, int padding_idx=-1) {_MADE}",
            raw_embedding_bag,
        )
        for name in ("_embedding_bag", "_embedding_bag_forward_only")
    ),
    ("max_unpool2d(Tensor self, Tensor indices, int[2] output_size) -> Tensor", max_unpool2d),
    (
        "max_unpool3d(Tensor self, Tensor indices, int[3] output_size, int[3] stride, "
        "int[3] padding) -> Tensor",
        max_unpool3d,
    ),
)
