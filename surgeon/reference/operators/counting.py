"""Counting and distances (torch.bincount, histc, searchsorted, diff, pdist, cov)."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_types import cut, mixed, real
from surgeon.reference.operators.precision import Array, Row, is_float, narrow, wide


def bincount(self: Array, weights: Array | None, minlength: int) -> Array:
    if self.ndim != 1 or self.dtype.kind not in "iu" or (self < 0).any():
        raise Unsuited("its input is no row of integers from 0")
    if weights is None or not self.size:  # PyTorch counts nothing as integers
        return np.bincount(self, minlength=minlength).astype(np.int64)
    found = np.bincount(self, wide(weights) if is_float(weights) else weights, minlength)
    return found.astype(np.float32 if weights.dtype == np.float32 else np.float64)


def histc(self: Array, bins: int, min: float, max: float) -> Array:
    x = wide(self).reshape(-1)
    if min == max:
        if not x.size or not np.isfinite(x).all():
            raise Unsuited("it has no finite range")
        min, max = float(np.min(x)), float(np.max(x))
        if min == max:
            min, max = min - 1, max + 1
    low, high = self.dtype.type(min), self.dtype.type(max)  # borders are as the dtype has them
    inside = x[(x >= float(low)) & (x <= float(high))].astype(self.dtype)
    if x.size > {2: 1 << (11 if self.dtype == np.float16 else 8)}.get(self.itemsize, x.size):
        raise Unsuited("halves may be too coarse to count so many")
    along = (inside - low) * self.dtype.type(bins) / (high - low)
    places = np.minimum(along.astype(int), bins - 1)
    return narrow(np.bincount(places, minlength=bins), self)


def _borders(x: Array, bins: int, range: list[float] | None) -> Array:
    low, high = (x.min(), x.max()) if range is None else range
    if not np.isfinite([low, high]).all() or low > high or bins < 1:
        raise Unsuited(f"{bins} bins from {low} to {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    ends = np.asarray([low, high], x.dtype)
    step = (ends[1] - ends[0]) / x.dtype.type(bins)
    up = [ends[0] + step * x.dtype.type(i) for i in np.arange(bins + 1)]
    down = [ends[1] - step * x.dtype.type(i) for i in np.arange(bins + 1)]
    half = (bins + 1) // 2  # torch.linspace rounds alike from either end
    return np.asarray([*up[:half], *down[: bins + 1 - half][::-1]], x.dtype)


def histogram(
    self: Array, bins: int, range: list[float] | None, weight: Array | None, density: bool
) -> tuple[Array, Array]:
    if not self.size and range is None:
        raise Unsuited("it has no elements to take its range from")
    return histogram_between(self, _borders(self, bins, range), weight, density)


def histogram_between(
    self: Array, bins: Array, weight: Array | None, density: bool
) -> tuple[Array, Array]:
    if self.dtype.name not in ("float32", "float64") or bins.dtype != self.dtype:
        raise Unsuited(f"its input is {self.dtype.name}, its borders {bins.dtype.name}")
    if not (np.diff(bins) > 0).all():
        raise Unsuited("its borders do not rise")
    x = self.reshape(-1)
    weights = np.ones(x.size) if weight is None else wide(weight).reshape(-1)
    made = np.zeros(len(bins) - 1)
    for value, share in zip(x, weights, strict=True):
        if bins[0] <= value <= bins[-1]:
            place = int(np.searchsorted(bins, value, "right")) - 1
            made[min(place, len(made) - 1)] += share
    if density:
        made = made / (made.sum() * np.diff(bins.astype(np.float64)))
    return narrow(made, self), bins


def histogramdd(
    self: Array, bins: Any, range: list[float] | None, weight: Array | None, density: bool
) -> tuple[Array, list[Array]]:
    depth = self.shape[-1]
    samples = self.reshape(-1, depth)
    if isinstance(bins, list) and isinstance(bins[0], np.ndarray):
        edges = bins
    elif not len(samples) and range is None:
        raise Unsuited("it has no elements to take its range from")
    else:
        counts = [int(n) for n in np.ravel(bins)]
        counts = counts * depth if len(counts) == 1 else counts  # one for all
        limits = [
            None if range is None else list(range[2 * i : 2 * i + 2])
            for i in np.arange(depth).tolist()
        ]
        columns = zip(samples.T, counts, limits, strict=True)
        edges = [_borders(column, n, limit) for column, n, limit in columns]
    if not all(np.isfinite(line).all() and (np.diff(line) > 0).all() for line in edges):
        raise Unsuited("its borders do not rise, or are not finite")
    weights = None if weight is None else wide(weight).reshape(-1)
    found, _ = np.histogramdd(samples, edges, density=density, weights=weights)
    return narrow(found, self), edges


def histogramdd_counts(self: Array, bins: Any, **options: Any) -> Array:
    return histogramdd(self, bins, options.pop("range", None), **options)[0]


def histogramdd_edges(self: Array, bins: Any, **options: Any) -> list[Array]:
    return histogramdd(self, bins, options.pop("range", None), **options)[1]


def gradient(
    self: Array, spacing: Any = None, dim: int | list[int] | None = None, edge_order: int = 1
) -> list[Array]:
    if self.dtype.kind == "c":
        x, dtype = self.astype(np.complex128), self.dtype
    else:
        x, dtype = real(self)
    if self.dtype in (np.bool_, np.uint8):
        raise Unsuited(f"PyTorch takes no slopes of {self.dtype}")
    dims = list(np.arange(self.ndim) if dim is None else np.ravel(dim))
    steps = [1.0] if spacing is None else spacing if isinstance(spacing, list) else [spacing]
    steps = steps * len(dims) if len(steps) == 1 else steps
    if len(steps) != len(dims):
        raise Unsuited(f"{len(steps)} spacings for {len(dims)} axes")
    lines = [s for s in steps if isinstance(s, np.ndarray) and s.ndim]
    if any(not (line[n:] != line[:-n]).all() for line in lines for n in (1, 2)):
        raise Unsuited("places of a slope coincide")
    try:
        pairs = zip(dims, steps, strict=True)
        made = [
            np.gradient(x, s, axis=int(d), edge_order=edge_order)  # type: ignore[call-overload]
            for d, s in pairs
        ]
    except ValueError as error:
        raise Unsuited(str(error)) from None
    return [cut(y, _of_slopes(self, s, dtype)) for y, s in zip(made, steps, strict=True)]


def _of_slopes(values: Array, places: Any, dtype: Any) -> Any:
    """The dtype of slopes: weights are made of the places, of whole ones in single precision."""
    if not isinstance(places, np.ndarray) or not places.ndim:
        return dtype
    weights = places.dtype if is_float(places) else np.dtype(np.float32)
    whole = values.dtype.kind in "biu"
    return weights if whole else np.promote_types(weights, values.dtype)


def searchsorted(
    sorted_sequence: Array,
    self: Any,
    out_int32: bool,
    right: bool,
    side: str | None = None,
    sorter: Array | None = None,
) -> Array:
    values, line = np.asarray(self), sorted_sequence
    if sorter is not None:
        line = np.take_along_axis(line, sorter, -1)
    if not (line[..., 1:] >= line[..., :-1]).all() or (line != line).any():
        raise Unsuited("its sequence is not in order")
    if line.ndim > 1 and line.shape[:-1] != values.shape[:-1]:
        raise Unsuited(f"shapes {list(line.shape)} and {list(values.shape)}")
    where = "right" if right or side == "right" else "left"
    dtype = np.int32 if out_int32 else np.int64
    found = np.empty(values.shape, dtype)
    for place in np.ndindex(*values.shape):
        row = line if line.ndim == 1 else line[place[:-1]]
        found[place] = np.searchsorted(row, values[place], where)  # type: ignore[call-overload]
    return found


def bucketize(self: Any, boundaries: Array, out_int32: bool, right: bool) -> Array:
    if boundaries.ndim != 1:
        raise Unsuited(f"boundaries of rank {boundaries.ndim}")
    return searchsorted(boundaries, self, out_int32, right)


def diff(self: Array, n: int, dim: int, prepend: Array | None, append: Array | None) -> Array:
    if n == 0:  # PyTorch gives the input, without what was to be joined to it
        return self
    parts = [t for t in (prepend, self, append) if t is not None]
    return np.diff(np.concatenate(parts, dim, dtype=mixed(parts), casting="unsafe"), n, dim)


def _norm(x: Array, p: float) -> Any:
    if p == 0:
        return np.minimum(np.ceil(np.abs(x)), 1).sum(-1)  # NaN stays
    if p == np.inf:  # of nothing too, of which numpy before 2.2 has none
        return np.abs(x).max(-1, initial=0)
    return np.linalg.norm(x, p, -1)


def pdist(self: Array, p: float) -> Array:
    if self.ndim != 2:
        raise Unsuited(f"its input has rank {self.ndim}")
    rows = wide(self)
    found = [_norm(rows[i] - rows[j], p) for i, j in combinations(range(len(rows)), 2)]
    return narrow(np.asarray(found, np.float64).reshape(-1), self)


def euclidean_dist(x1: Array, x2: Array) -> Array:
    return narrow(_norm(wide(x1)[..., :, None, :] - wide(x2)[..., None, :, :], 2), x1)


def cov(
    self: Array, correction: int, fweights: Array | None = None, aweights: Array | None = None
) -> Array:
    if self.ndim not in (1, 2) or (aweights is not None and (aweights < 0).any()):
        raise Unsuited(f"its input has rank {self.ndim}, or a weight below 0")
    if fweights is not None and (fweights < 0).any():
        raise Unsuited("a weight is below 0")
    again = None if fweights is None else fweights.astype(np.int64)
    shares = None if aweights is None else wide(aweights)
    x, dtype = real(self)
    if self.dtype == np.bool_:
        raise Unsuited("of booleans")
    if aweights is not None:
        dtype = np.promote_types(self.dtype if is_float(self) else aweights.dtype, aweights.dtype)
    return cut(np.cov(x, ddof=correction, fweights=again, aweights=shares), dtype)


def corrcoef(self: Array) -> Array:
    x, dtype = real(self)
    if self.dtype == np.bool_:
        raise Unsuited("of booleans")
    return cut(np.clip(np.corrcoef(x), -1, 1), dtype)


_SEARCH = (
    "*, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor"
)
_OLDER = "*, bool out_int32=False, bool right=False) -> Tensor"
TABLE: tuple[Row, ...] = (
    ("bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", bincount),
    (
        "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, "
        "Tensor? weight=None, bool density=False) -> (Tensor, Tensor)",
        histogram,
    ),
    (
        "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, "
        "bool density=False) -> (Tensor, Tensor)",
        histogram_between,
    ),
    *(
        (
            f"histogramdd{name}(Tensor self, {kind} bins, float[]? range=None, "
            "Tensor? weight=None, bool density=False) -> (Tensor, Tensor[])",
            histogramdd,
        )
        for name, kind in (("", "int[]"), (".int_bins", "int"), (".TensorList_bins", "Tensor[]"))
    ),
    (
        "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, "
        "Tensor? weight=None, bool density=False) -> Tensor[]",
        histogramdd_edges,
    ),
    (
        "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, "
        "Tensor? weight=None, bool density=False) -> Tensor",
        histogramdd_counts,
    ),
    (
        "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, "
        "bool density=False) -> Tensor",
        histogramdd_counts,
    ),
    *(
        (f"gradient.{name}(Tensor self, *, {rest}int edge_order=1) -> Tensor[]", gradient)
        for name, rest in (
            ("scalarint", "Scalar? spacing=None, int? dim=None, "),
            ("scalararray", "Scalar spacing, int[] dim, "),
            ("array", "int[] dim, "),
            ("scalarrayint", "Scalar[] spacing, int? dim=None, "),
            ("scalarrayarray", "Scalar[] spacing, int[] dim, "),
            ("tensorarrayint", "Tensor[] spacing, int? dim=None, "),
            ("tensorarray", "Tensor[] spacing, int[] dim, "),
        )
    ),
    ("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", histc),
    (f"searchsorted.Tensor(Tensor sorted_sequence, Tensor self, {_SEARCH}", searchsorted),
    (f"searchsorted.Scalar(Tensor sorted_sequence, Scalar self, {_SEARCH}", searchsorted),
    (f"bucketize.Tensor(Tensor self, Tensor boundaries, {_OLDER}", bucketize),
    (f"bucketize.Scalar(Scalar self, Tensor boundaries, {_OLDER}", bucketize),
    (
        "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) "
        "-> Tensor",
        diff,
    ),
    ("pdist(Tensor self, float p=2) -> Tensor", pdist),
    ("_pdist_forward(Tensor self, float p=2) -> Tensor", pdist),
    ("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", euclidean_dist),
    (
        "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) "
        "-> Tensor",
        cov,
    ),
    ("corrcoef(Tensor self) -> Tensor", corrcoef),
)
