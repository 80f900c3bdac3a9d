"""torchaudio's operators on signals (torchaudio.functional.filtering), sample by sample."""

# ruff: noqa: D103 - each function means what torchaudio documents for its schema, in TABLE

from __future__ import annotations

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def lfilter(waveform: Array, a_coeffs: Array, b_coeffs: Array) -> Array:
    if waveform.ndim != 3 or a_coeffs.ndim != 2 or a_coeffs.shape != b_coeffs.shape:
        raise Unsuited("torchaudio wants a signal of rank 3 and as many coefficients of each kind")
    if a_coeffs.shape[0] != waveform.shape[1] or not a_coeffs.shape[1]:
        raise Unsuited(f"{a_coeffs.shape[0]} filters for {waveform.shape[1]} channels")
    x, a, b = wide(waveform), wide(a_coeffs, name="a_coeffs"), wide(b_coeffs, name="b_coeffs")
    y = np.zeros_like(x)
    for at in range(x.shape[2]):
        reach = min(at + 1, a.shape[1])
        past = slice(at, at - reach if at >= reach else None, -1)  # this sample and those before
        now = (x[:, :, past] * b[:, :reach]).sum(-1)
        before = (y[:, :, past] * a[:, :reach])[:, :, 1:].sum(-1)
        y[:, :, at] = (now - before) / a[:, 0]
    return narrow(y, waveform)


TABLE: tuple[Row, ...] = (
    ("_lfilter(Tensor waveform, Tensor a_coeffs, Tensor b_coeffs) -> Tensor", lfilter),
)
