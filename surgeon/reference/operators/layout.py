"""PyTorch operators: views of memory, masks, tables of indices, windows, and places in an order."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_reductions import median_of_nothing
from surgeon.reference.operators.math_types import between, common, cut
from surgeon.reference.operators.precision import Array, Row, is_float, wide
from surgeon.reference.operators.shapes import axis_of


def _strided(x: Array, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Array:
    flat = np.ascontiguousarray(x).reshape(-1)[offset or 0 :]
    reach = sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if 0 not in size and reach >= flat.size:
        raise Unsuited("its view reaches beyond its memory")
    steps = [s * flat.itemsize for s in stride]
    return np.lib.stride_tricks.as_strided(flat, tuple(size), steps)


def as_strided(self: Array, size: Any, stride: Any, storage_offset: int | None) -> Array:
    return _strided(self, size, stride, storage_offset).copy()


def as_strided_scatter(
    self: Array, src: Array, size: Any, stride: Any, storage_offset: int | None
) -> Array:
    y = np.array(self, order="C")
    _strided(y.reshape(-1), size, stride, storage_offset)[...] = src
    return y


def linalg_diagonal(A: Array, offset: int, dim1: int, dim2: int) -> Array:  # noqa: N803
    return np.diagonal(A, offset, dim1, dim2).copy()


def diagonal_scatter(self: Array, src: Array, offset: int, dim1: int, dim2: int) -> Array:
    y = self.copy()
    line = np.diagonal(y, offset, dim1, dim2)
    if line.shape != src.shape:
        raise Unsuited(f"a diagonal of shape {list(line.shape)}")
    line.flags.writeable = True
    line[...] = src
    return y


def masked_scatter(self: Array, mask: Array, source: Array) -> Array:
    wide = np.broadcast_shapes(self.shape, mask.shape)
    y, holds = np.broadcast_to(self, wide).copy(), np.broadcast_to(mask.astype(bool), wide)
    count = int(holds.sum())
    if count > source.size:
        raise Unsuited(f"{count} places for {source.size} elements")
    y[holds] = source.reshape(-1)[:count]
    return y


def fill(self: Array, value: Any) -> Array:
    return np.full(self.shape, value).astype(self.dtype)


def copy(self: Array, src: Array, non_blocking: bool = False) -> Array:
    return np.broadcast_to(src, self.shape).astype(self.dtype)


def fill_diagonal(self: Array, fill_value: Any, wrap: bool) -> Array:
    if self.ndim < 2 or (self.ndim > 2 and len(set(self.shape)) > 1):
        raise Unsuited(f"a diagonal of shape {list(self.shape)}")
    y = np.array(self, order="C")
    if self.ndim == 2 and wrap:
        y.reshape(-1)[:: self.shape[1] + 1] = fill_value
    else:
        line = np.arange(min(self.shape))
        y[(line,) * self.ndim] = fill_value
    return y


def same(self: Array, **rest: Any) -> Array:
    return self


def adjoint(self: Array) -> Array:
    turned = self if self.ndim == 0 else np.swapaxes(self, -1, -2)
    return np.conj(turned) if turned.dtype.kind == "c" else turned  # numpy makes int8 of truths


def _shift(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda self, dim: function(self, None if dim is None else tuple(dim))


def _indices(function: Callable[..., Any]) -> Callable[..., Array]:
    def run(row: int, col: int, offset: int, dtype: Any = None, **rest: Any) -> Array:
        return np.stack(function(row, offset, col)).astype(dtype or np.int64)

    return run


def combinations(self: Array, r: int, with_replacement: bool) -> Array:
    way: Any = (
        itertools.combinations_with_replacement if with_replacement else itertools.combinations
    )
    if r == 0:
        return self[:0]
    return np.asarray(list(way(self, r)), self.dtype).reshape(-1, r)


def _cosines(*factors: float) -> Callable[..., Any]:
    return lambda n: sum(
        a * np.cos(2 * np.pi * k * np.arange(n) / (n - 1)) for k, a in enumerate(factors)
    )


def _window(line: Callable[..., Any]) -> Callable[..., Array]:
    def run(window_length: int, dtype: Any, **named: Any) -> Array:
        shape = {k: v for k, v in named.items() if k in ("alpha", "beta")}
        n = window_length + named.get("periodic", True)
        made = line(n, **shape)[:window_length] if window_length > 1 else np.ones(window_length)
        return np.asarray(made).astype(dtype or np.float32)

    return run


def _hamming(n: int, alpha: float = 0.54, beta: float = 0.46) -> Any:
    return _cosines(alpha, -beta)(n)


def _kaiser(n: int, beta: float = 12.0) -> Any:
    ratio = np.linspace(-1, 1, n)
    return np.i0(beta * np.sqrt(np.maximum(1 - ratio**2, 0))) / np.i0(beta)


def fftfreq(n: int, d: float, dtype: Any = None, **rest: Any) -> Array:
    return np.fft.fftfreq(n, d).astype(dtype or np.float32)


def rfftfreq(n: int, d: float, dtype: Any = None, **rest: Any) -> Array:
    return np.fft.rfftfreq(n, d).astype(dtype or np.float32)


def logspace(
    start: Any, end: Any, steps: int, base: float, dtype: Any = None, **rest: Any
) -> Array:
    low, high = (float(np.asarray(v).reshape(())) for v in (start, end))
    return np.logspace(low, high, steps, base=base).astype(dtype or np.float32)


def _quantile(*, of_numbers: bool) -> Callable[..., Array]:
    """Between the two values beside rank q * (n - 1), which has the dtype of the input.

    Where NaN counts, it is what a line is that holds any.
    """

    def run(self: Array, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Array:
        shares = np.asarray(q, np.float64).astype(self.dtype)
        if shares.ndim > 1 or not is_float(self):
            raise Unsuited("its shares have more than one axis, or its input is no float")
        axis = None if dim is None else axis_of(dim, self.ndim)
        x = np.atleast_1d(self)
        lines = np.sort(x.reshape(-1) if axis is None else np.moveaxis(x, axis, -1), axis=-1)
        length = lines.shape[-1]
        if not length:
            raise Unsuited("it has no elements")
        count = (~np.isnan(lines)).sum(-1, keepdims=True)
        last = (count - 1 if of_numbers else np.full_like(count, length - 1)).astype(self.dtype)
        rank = np.maximum(last * shares.reshape(-1), self.dtype.type(0))
        rank = rank if of_numbers else np.where(count < length, length - 1, rank)
        rank = _RANKS[interpolation](rank) if interpolation in _RANKS else rank
        low, high = (
            wide(np.take_along_axis(lines, place(rank).astype(np.int64), -1))
            for place in (np.floor, np.ceil)
        )
        part = 0.5 if interpolation == "midpoint" else wide(rank) - np.floor(wide(rank))
        found = low if interpolation in _RANKS else between(low, high, part)
        shape = list(self.shape) if keepdim else [n for i, n in enumerate(self.shape) if i != axis]
        if axis is None:
            shape = [1] * self.ndim if keepdim else []
        elif keepdim and shape:
            shape[axis] = 1
        return cut(np.moveaxis(found, -1, 0).reshape([*shares.shape, *shape]), self.dtype)

    return run


_RANKS: dict[str, Callable[[Array], Array]] = {
    "lower": np.floor,
    "higher": np.ceil,
    "nearest": np.round,
}


def nanmedian(self: Array) -> Array:
    if not self.size:
        return median_of_nothing(self.dtype)
    return cut(_nanmedian_of(self.reshape(-1))[0], self.dtype)


def _nanmedian_of(row: Array) -> tuple[Any, int]:
    kept = [(v, i) for i, v in enumerate(row.tolist()) if v == v]
    return sorted(kept)[(len(kept) - 1) // 2] if kept else (np.nan, 0)


def _mode_of(row: Array) -> tuple[Any, int]:
    values, counts = np.unique(row, return_counts=True)
    found = values[np.argmax(counts)]
    return found, int(np.flatnonzero(row == found)[-1])


def _by_rows(function: Callable[[Array], tuple[Any, int]]) -> Callable[..., tuple[Array, Array]]:
    def run(self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
        if self.ndim == 0:
            return self, np.asarray(0, np.int64)
        axis = axis_of(dim, self.ndim)
        rows = np.moveaxis(self, axis, -1)
        pairs = [function(row) for row in rows.reshape(-1, rows.shape[-1])]
        shape = rows.shape[:-1]
        values = np.asarray([p[0] for p in pairs]).reshape(shape).astype(self.dtype)
        places = np.asarray([p[1] for p in pairs], np.int64).reshape(shape)
        if keepdim:
            return np.expand_dims(values, axis), np.expand_dims(places, axis)
        return values, places

    return run


def isin(elements: Any, test_elements: Any, assume_unique: bool, invert: bool) -> Array:
    a, b, _ = common(elements, test_elements)
    return np.isin(a, b, invert=invert)


def isin_scalar(elements: Array, test_element: Any, assume_unique: bool, invert: bool) -> Array:
    return isin(elements, np.asarray(test_element), assume_unique, invert)


def isin_of_scalar(element: Any, test_elements: Array, assume_unique: bool, invert: bool) -> Array:
    return isin(np.asarray(element), test_elements, assume_unique, invert)


def conv_tbc(self: Array, weight: Array, bias: Array, pad: int) -> Array:
    def exact(x: Array) -> Array:
        return x.astype(np.int64) if x.dtype.kind in "iu" else wide(x)

    x = np.pad(exact(self), ((pad, pad), (0, 0), (0, 0)))
    kernel = weight.shape[0]
    length = x.shape[0] - kernel + 1
    if length < 1:  # PyTorch gives nothing for 0, where runtimes refuse any convolution
        raise Unsuited(f"a kernel of {kernel} on a length of {x.shape[0]}")
    y = sum(x[k : k + length] @ exact(weight)[k] for k in range(kernel))
    return cut(y + exact(bias), self.dtype)


def empty(size: Any, dtype: Any = None, **rest: Any) -> Array:
    return np.zeros(tuple(size), dtype or np.float32)


def new_empty(self: Array, size: Any, dtype: Any = None, **rest: Any) -> Array:
    return np.zeros(tuple(size), dtype or self.dtype)


def empty_like(self: Array, dtype: Any = None, **rest: Any) -> Array:
    return np.zeros(self.shape, dtype or self.dtype)


_TAIL = (
    "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None)"
)
_RANKED = "int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor"
_ISIN = "*, bool assume_unique=False, bool invert=False) -> Tensor"
_WINDOWS: dict[str, Callable[..., Any]] = {
    "hann": _cosines(0.5, -0.5),
    "hamming": _hamming,
    "blackman": _cosines(0.42, -0.5, 0.08),
    "bartlett": np.bartlett,
    "kaiser": _kaiser,
}
TABLE: tuple[Row, ...] = (
    (
        "as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
        as_strided,
    ),
    (
        "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, "
        "int? storage_offset=None) -> Tensor",
        as_strided_scatter,
    ),
    (
        "linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
        linalg_diagonal,
    ),
    (
        "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
        diagonal_scatter,
    ),
    ("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", masked_scatter),
    ("fill.Scalar(Tensor self, Scalar value) -> Tensor", fill),
    ("fill.Tensor(Tensor self, Tensor value) -> Tensor", fill),
    ("copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", copy),
    ("fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor", fill_diagonal),
    *(
        (f"{name}(Tensor self) -> Tensor", same)
        for name in ("lift", "cpu", "cuda", "data", "resolve_conj", "resolve_neg")
    ),
    ("pin_memory(Tensor self, Device? device=None) -> Tensor", same),
    *((f"{name}(Tensor self) -> Tensor", adjoint) for name in ("mH", "matrix_H", "adjoint")),
    ("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", _shift(np.fft.fftshift)),
    ("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", _shift(np.fft.ifftshift)),
    (f"tril_indices(int row, int col, int offset=0, {_TAIL} -> Tensor", _indices(np.tril_indices)),
    (f"triu_indices(int row, int col, int offset=0, {_TAIL} -> Tensor", _indices(np.triu_indices)),
    ("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", combinations),
    *(
        (f"{name}_window{overload}(int window_length{more}, {_TAIL} -> Tensor", _window(line))
        for name, line in _WINDOWS.items()
        for overload, more in (("", ""), (".periodic", ", bool periodic"))
    ),
    (
        f"hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, {_TAIL} "
        "-> Tensor",
        _window(_hamming),
    ),
    (
        "hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, "
        f"float beta, {_TAIL} -> Tensor",
        _window(_hamming),
    ),
    (
        f"kaiser_window.beta(int window_length, bool periodic, float beta, {_TAIL} -> Tensor",
        _window(_kaiser),
    ),
    (f"fft_fftfreq(int n, float d=1.0, {_TAIL} -> Tensor", fftfreq),
    (f"fft_rfftfreq(int n, float d=1.0, {_TAIL} -> Tensor", rfftfreq),
    *(
        (
            f"logspace{overload}({first} start, {last} end, int steps, float base=10.0, {_TAIL} "
            "-> Tensor",
            logspace,
        )
        for overload, first, last in (
            ("", "Scalar", "Scalar"),
            (".Tensor_Tensor", "Tensor", "Tensor"),
            (".Tensor_Scalar", "Tensor", "Scalar"),
            (".Scalar_Tensor", "Scalar", "Tensor"),
        )
    ),
    *(
        (f"{name}{overload} q, {_RANKED}", _quantile(of_numbers=of_numbers))
        for name, of_numbers in (("quantile", False), ("nanquantile", True))
        for overload in ("(Tensor self, Tensor", ".scalar(Tensor self, float")
    ),
    ("nanmedian(Tensor self) -> Tensor", nanmedian),
    (
        "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
        _by_rows(_nanmedian_of),
    ),
    ("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor, Tensor)", _by_rows(_mode_of)),
    (f"isin.Tensor_Tensor(Tensor elements, Tensor test_elements, {_ISIN}", isin),
    (f"isin.Tensor_Scalar(Tensor elements, Scalar test_element, {_ISIN}", isin_scalar),
    (f"isin.Scalar_Tensor(Scalar element, Tensor test_elements, {_ISIN}", isin_of_scalar),
    ("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", conv_tbc),
    (f"empty(int[] size, {_TAIL[:-1]}, MemoryFormat? memory_format=None) -> Tensor", empty),
    (f"new_empty(Tensor self, int[] size, {_TAIL} -> Tensor", new_empty),
    (
        f"empty_like(Tensor self, {_TAIL[:-1]}, MemoryFormat? memory_format=None) -> Tensor",
        empty_like,
    ),
    (f"empty_strided(int[] size, int[] stride, {_TAIL} -> Tensor", empty),
    (f"empty_permuted(int[] size, int[] physical_layout, {_TAIL} -> Tensor", empty),
    (f"new_empty_strided(Tensor self, int[] size, int[] stride, {_TAIL} -> Tensor", new_empty),
)
