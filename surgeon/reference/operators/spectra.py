"""Fourier transforms: torch.fft, torch.stft and torch.istft, complex values as numpy has them."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row

_COMPLEX = {"float32": np.complex64, "float64": np.complex128}


def _like(values: Array, source: Array) -> Array:
    """In the precision of the source, real or complex as the values are."""
    double = source.dtype in (np.float64, np.complex128)
    if np.iscomplexobj(values):
        return values.astype(np.complex128 if double else np.complex64)
    return values.astype(np.float64 if double else np.float32)


def view_as_real(self: Array) -> Array:
    if not np.iscomplexobj(self):
        raise Unsuited(f"its input is {self.dtype.name}")
    return np.stack([self.real, self.imag], axis=-1)


def view_as_complex(self: Array) -> Array:
    if self.dtype.name not in _COMPLEX or self.shape[-1:] != (2,):
        raise Unsuited(f"its input is {self.dtype.name} of shape {list(self.shape)}")
    found: Array = np.ascontiguousarray(self).view(_COMPLEX[self.dtype.name])[..., 0]
    return found  # a sum with 1j times the other part would lose the sign of a zero


def _turned(values: Array, source: Array, axes: Sequence[int] | None) -> Array:
    """The transform of real values, which is its own conjugate turned around, to the last bit.

    PyTorch computes the half of it: what is real there has no rounding for an imaginary part, whose
    sign would decide an angle of pi.
    """
    if np.iscomplexobj(source):
        return values
    axes = range(values.ndim) if axes is None else axes
    around = np.conj(values)
    for axis in axes:
        around = np.roll(np.flip(around, axis), 1, axis)
    return np.asarray((values + around) / 2)


def fft_fft(self: Array, n: int | None, dim: int, norm: str | None) -> Array:
    y = np.fft.fft(self, n, dim, norm)  # type: ignore[arg-type]
    return _like(_turned(y, self, [dim]), self)


def fft_ifft(self: Array, n: int | None, dim: int, norm: str | None) -> Array:
    y = np.fft.ifft(self, n, dim, norm)  # type: ignore[arg-type]
    # of real values PyTorch gives the conjugate of what goes forward
    return _like(np.conj(_turned(np.conj(y), self, [dim])), self)


def fft_rfft(self: Array, n: int | None, dim: int, norm: str | None) -> Array:
    if np.iscomplexobj(self):
        raise Unsuited("its input is complex")
    return _like(np.fft.rfft(self, n, dim, norm), self)  # type: ignore[arg-type]


def fft_hfft(self: Array, n: int | None, dim: int, norm: str | None) -> Array:
    return _like(np.fft.hfft(self, n, dim, norm), self)  # type: ignore[arg-type]


def fft_ihfft(self: Array, n: int | None, dim: int, norm: str | None) -> Array:
    if np.iscomplexobj(self):
        raise Unsuited("its input is complex")
    return _like(np.fft.ihfft(self, n, dim, norm), self)  # type: ignore[arg-type]


def _sizes(
    x: Array, s: list[int] | None, dim: list[int] | None
) -> tuple[list[int | None], list[int]]:
    """How many elements are asked for along which axes; -1 leaves an axis as it is."""
    axes = list(range(-len(s), 0)) if dim is None and s is not None else dim
    axes = list(range(-x.ndim, 0)) if axes is None else axes
    return [None if n == -1 else n for n in s or [-1] * len(axes)], axes


def fft_hfftn(self: Array, s: list[int] | None, dim: list[int] | None, norm: str | None) -> Array:
    """Forward along all axes, of what is Hermitian along the last."""
    sizes, axes = _sizes(self, s, dim)
    y = self
    for n, axis in zip(sizes[:-1], axes[:-1], strict=True):
        y = np.fft.fft(y, n, axis, norm)  # type: ignore[arg-type]
    return _like(np.fft.hfft(y, sizes[-1], axes[-1], norm), self)  # type: ignore[arg-type]


def fft_ihfftn(self: Array, s: list[int] | None, dim: list[int] | None, norm: str | None) -> Array:
    if np.iscomplexobj(self):
        raise Unsuited("its input is complex")
    sizes, axes = _sizes(self, s, dim)
    y = np.fft.ihfft(self, sizes[-1], axes[-1], norm)  # type: ignore[arg-type]
    for n, axis in zip(sizes[:-1], axes[:-1], strict=True):
        y = np.fft.ifft(y, n, axis, norm)  # type: ignore[arg-type]
    return _like(y, self)


def _over(x: Array, dim: list[int]) -> int:
    """How many elements a transform goes over."""
    return int(np.prod([x.shape[axis] for axis in dim]))


def _scale(normalization: int, count: int) -> float:
    if not 0 <= normalization <= 2:
        raise Unsuited(f"normalization {normalization}")
    return float((1.0, count**-0.5, 1.0 / count)[normalization])


def fft_r2c(self: Array, dim: list[int], normalization: int, onesided: bool) -> Array:
    if np.iscomplexobj(self):
        raise Unsuited("its input is complex")
    whole = None if onesided else _turned(np.fft.fftn(self, axes=dim), self, dim)
    y = np.fft.rfftn(self, axes=dim) if whole is None else whole
    return _like(y * _scale(normalization, _over(self, dim)), self)


def fft_c2c(self: Array, dim: list[int], normalization: int, forward: bool) -> Array:
    y = np.fft.fftn(self, axes=dim) if forward else np.fft.ifftn(self, axes=dim, norm="forward")
    return _like(y * _scale(normalization, _over(self, dim)), self)


def fft_c2r(self: Array, dim: list[int], normalization: int, last_dim_size: int) -> Array:
    sizes = [self.shape[axis] for axis in dim[:-1]] + [last_dim_size]
    y = np.fft.irfftn(self, sizes, dim, norm="forward")
    return _like(y * _scale(normalization, int(np.prod(sizes))), self)


def complex_of(real: Array, imag: Array) -> Array:
    if real.dtype != imag.dtype or real.dtype.name not in _COMPLEX:
        raise Unsuited(f"parts of {real.dtype.name} and {imag.dtype.name}")
    found: Array = (real + 1j * imag.astype(_COMPLEX[imag.dtype.name])).astype(
        _COMPLEX[real.dtype.name]
    )
    return found


def polar(abs: Array, angle: Array) -> Array:
    if abs.dtype != angle.dtype:
        raise Unsuited(f"parts of {abs.dtype.name} and {angle.dtype.name}")
    wide = abs.astype(np.float64) * np.exp(1j * angle.astype(np.float64))
    return _like(wide, abs)


def fft_irfft(self: Array, n: int | None, dim: int, norm: str | None) -> Array:
    return _like(np.fft.irfft(self, n, dim, norm), self)  # type: ignore[arg-type]


_WHOLE = ("fftn", "ifftn")  # what keeps both halves


def _several(name: str, *, is_real: bool = False) -> Callable[..., Array]:
    function = getattr(np.fft, name)

    def run(self: Array, s: list[int] | None, dim: list[int] | None, norm: str | None) -> Array:
        if is_real and np.iscomplexobj(self):
            raise Unsuited("its input is complex")
        sizes, axes = _sizes(self, s, dim)
        kept = zip(sizes[:-1], axes[:-1], strict=True)
        given = [self.shape[axis] if n is None else n for n, axis in kept]
        last = sizes[-1]
        if last is None:
            last = self.shape[axes[-1]]
            last = 2 * (last - 1) if name == "irfftn" else last
        y = function(self, [*given, last], axes, norm)
        return _like(_turned(y, self, axes) if name in _WHOLE else y, self)

    return run


def real(self: Array) -> Array:
    return self.real


def imag(self: Array) -> Array:
    if not np.iscomplexobj(self):
        raise Unsuited(f"its input is {self.dtype.name}")
    return self.imag


def conjugate(self: Array) -> Array:
    return np.conjugate(self) if self.dtype.kind == "c" else self  # numpy makes int8 of truths


def _old(name: str) -> Callable[..., Array]:
    """A transform of the last axes by numpy's function of the name; complex values as pairs."""

    def run(
        self: Array,
        signal_ndim: int,
        normalized: bool,
        onesided: bool = True,
        signal_sizes: Sequence[int] = (),
    ) -> Array:
        x = self if name == "rfft" else self[..., 0] + 1j * self[..., 1]
        axes = tuple(range(x.ndim - signal_ndim, x.ndim))
        norm: Any = "ortho" if normalized else None
        if name == "irfft":
            sizes = tuple(signal_sizes) or None
            half = np.fft.irfftn(x, sizes, axes, norm) if onesided else None
            return _like(np.fft.ifftn(x, None, axes, norm).real if half is None else half, self)
        functions = {"fft": np.fft.fftn, "ifft": np.fft.ifftn, "rfft": np.fft.rfftn}
        function: Callable[..., Any] = functions[name] if onesided else np.fft.fftn
        made = function(x, None, axes, norm)
        return _like(np.stack([made.real, made.imag], axis=-1), self)

    return run


def _window(window: Array | None, width: int | None, size: int) -> Array:
    values = np.ones(width or size) if window is None else window
    values = values.astype(np.complex128 if np.iscomplexobj(values) else np.float64)
    if values.shape != (width or size,):
        raise Unsuited(f"a window of shape {list(values.shape)}")
    before = (size - len(values)) // 2
    return np.pad(values, (before, size - len(values) - before))


def stft(
    self: Array,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Array | None,
    normalized: bool,
    onesided: bool | None,
    return_complex: bool | None,
    align_to_window: bool | None = None,
) -> Array:
    if self.ndim not in (1, 2):
        raise Unsuited(f"its input has rank {self.ndim}")
    if align_to_window:
        # windows, not frames, stand side by side from the first sample on: around them are zeros
        around = n_fft - (win_length or n_fft)
        edges = [(0, 0)] * (self.ndim - 1) + [(around // 2, (around + 1) // 2)]
        self = np.pad(self, edges)
    hop = hop_length or n_fft // 4
    weights = _window(window, win_length, n_fft)
    starts = range(0, self.shape[-1] - n_fft + 1, hop)
    frames = np.stack([self[..., at : at + n_fft] * weights for at in starts], axis=-1)
    is_complex = np.iscomplexobj(frames)
    if is_complex and onesided:
        raise Unsuited("half of the frequencies of complex values")
    whole = is_complex or (onesided is not None and not onesided)
    function = np.fft.fft if whole else np.fft.rfft
    found = _like(function(frames, axis=-2, norm="ortho" if normalized else None), self)
    return found if return_complex else view_as_real(found)


def stft_center(
    self: Array,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Array | None,
    center: bool,
    pad_mode: str,
    normalized: bool,
    onesided: bool | None,
    return_complex: bool | None,
    align_to_window: bool | None = None,
) -> Array:
    if center:
        mode = {"replicate": "edge", "circular": "wrap"}.get(pad_mode, pad_mode)
        edges = [(0, 0)] * (self.ndim - 1) + [(n_fft // 2, n_fft // 2)]
        self = np.pad(self, edges, mode=mode)  # type: ignore[call-overload]
    aligned = align_to_window and not center
    rest = normalized, onesided, return_complex, aligned
    return stft(self, n_fft, hop_length, win_length, window, *rest)


def istft(
    self: Array,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Array | None,
    center: bool,
    normalized: bool,
    onesided: bool | None,
    length: int | None,
    return_complex: bool,
) -> Array:
    if not np.iscomplexobj(self) or (window is not None and np.iscomplexobj(window)):
        raise Unsuited(f"its input is {self.dtype.name}, or its window complex")
    hop = hop_length or n_fft // 4
    weights = _window(window, win_length, n_fft)
    half = self.shape[-2] != n_fft if onesided is None else onesided
    norm = "ortho" if normalized else None
    if self.shape[-2] != (n_fft // 2 + 1 if half else n_fft) or (half and return_complex):
        raise Unsuited(f"{self.shape[-2]} frequencies of frames of {n_fft}")
    function: Callable[..., Array] = np.fft.ifft
    if not return_complex:  # which reads the first half of them, whatever there is
        self, function = self[..., : n_fft // 2 + 1, :], np.fft.irfft
    frames = function(self, n_fft, axis=-2, norm=norm)
    count = self.shape[-1]
    total = n_fft + hop * (count - 1)
    y, envelope = np.zeros((*self.shape[:-2], total), frames.dtype), np.zeros(total)
    for index in range(count):
        at = slice(index * hop, index * hop + n_fft)
        y[..., at] += frames[..., index] * weights
        envelope[at] += weights**2
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    y, envelope = y[..., start:end], envelope[start:end]
    if (envelope < 1e-11).any() or (length is not None and y.shape[-1] < length):
        raise Unsuited("the windows leave a gap")
    return _like(y / envelope, self)


_N = "int? n=None, int dim=-1, str? norm=None"
_FRAME = "int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None"
_FORM = "bool normalized=False, bool? onesided=None, bool? return_complex=None"

TABLE: tuple[Row, ...] = (
    ("view_as_real(Tensor self) -> Tensor", view_as_real),
    ("view_as_complex(Tensor self) -> Tensor", view_as_complex),
    ("real(Tensor self) -> Tensor", real),
    ("imag(Tensor self) -> Tensor", imag),
    *(
        (f"{name}(Tensor self) -> Tensor", conjugate)
        for name in ("conj", "_conj", "conj_physical", "_conj_physical")
    ),
    (f"fft_fft(Tensor self, {_N}) -> Tensor", fft_fft),
    (f"fft_ifft(Tensor self, {_N}) -> Tensor", fft_ifft),
    (f"fft_rfft(Tensor self, {_N}) -> Tensor", fft_rfft),
    (f"fft_irfft(Tensor self, {_N}) -> Tensor", fft_irfft),
    (f"fft_hfft(Tensor self, {_N}) -> Tensor", fft_hfft),
    (f"fft_ihfft(Tensor self, {_N}) -> Tensor", fft_ihfft),
    *(
        (f"fft_{name}(Tensor self, int[]? s=None, {dim}, str? norm=None) -> Tensor", function)
        for kind, function in (("hfft", fft_hfftn), ("ihfft", fft_ihfftn))
        for name, dim in ((f"{kind}2", "int[] dim=[-2,-1]"), (f"{kind}n", "int[]? dim=None"))
    ),
    (
        "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
        fft_r2c,
    ),
    ("_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor", fft_c2c),
    (
        "_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor",
        fft_c2r,
    ),
    ("complex(Tensor real, Tensor imag) -> Tensor", complex_of),
    ("polar(Tensor abs, Tensor angle) -> Tensor", polar),
    *(
        (
            f"fft_{name}(Tensor self, int[]? s=None, int[]{default}, str? norm=None) -> Tensor",
            _several(f"{name[:-1]}n", is_real=name.startswith("r")),
        )
        for kind in ("fft", "ifft", "rfft", "irfft")
        for name, default in ((f"{kind}2", " dim=[-2,-1]"), (f"{kind}n", "? dim=None"))
    ),
    (
        "rfft(Tensor self, int signal_ndim, bool normalized=False, bool onesided=True) -> Tensor",
        _old("rfft"),
    ),
    (
        "irfft(Tensor self, int signal_ndim, bool normalized=False, bool onesided=True, "
        "int[] signal_sizes=[]) -> Tensor",
        _old("irfft"),
    ),
    *(
        (f"{name}(Tensor self, int signal_ndim, bool normalized=False) -> Tensor", _old(name))
        for name in ("fft", "ifft")
    ),
    (f"stft(Tensor self, {_FRAME}, {_FORM}, bool? align_to_window=None) -> Tensor", stft),
    (
        f"stft.center(Tensor self, {_FRAME}, bool center=True, str pad_mode='reflect', {_FORM}, "
        "bool? align_to_window=None) -> Tensor",
        stft_center,
    ),
    (
        f"istft(Tensor self, {_FRAME}, bool center=True, bool normalized=False, "
        "bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
        istft,
    ),
)
