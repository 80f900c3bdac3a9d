"""Fourier transforms of onnxruntime's, on pairs of real numbers, by its `ContribOperators.md`.

Each is computed in double precision and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, narrow, wide

Said = Mapping[str, Any]


def rfft(said: Said, x: Array) -> Array:
    """Half of the frequencies of the last `signal_ndim` axes, as pairs."""
    return narrow(_pairs(np.fft.rfftn(wide(x), axes=_axes(said))), x)


def irfft(said: Said, x: Array) -> Array:
    """What `rfft` was of, whose last axis had an even number of elements."""
    return narrow(np.fft.irfftn(_values(x), axes=_axes(said)), x)


def complex_mul(said: Said, a: Array, b: Array) -> Array:
    """The product of complex values."""
    return narrow(_pairs(_values(a) * _values(b)), a)


def complex_mul_conj(said: Said, a: Array, b: Array) -> Array:
    """The product of complex values and the conjugates of others."""
    return narrow(_pairs(_values(a) * _values(b).conj()), a)


def _axes(said: Said) -> range:
    if said.get("normalized", 0) or not said.get("onesided", 1):
        raise Unsuited("it is normalised, or has all frequencies")
    return range(-said.get("signal_ndim", 1), 0)


def _values(x: Array) -> Array:
    if x.shape[-1:] != (2,):
        raise Unsuited("its last axis is not of pairs")
    return wide(x)[..., 0] + 1j * wide(x)[..., 1]


def _pairs(values: Array) -> Array:
    return np.stack([values.real, values.imag], axis=-1)


TABLE: Mapping[str, Callable[..., Any]] = {
    "ComplexMul": complex_mul,
    "ComplexMulConj": complex_mul_conj,
    "Irfft": irfft,
    "Rfft": rfft,
}
