"""Fourier transforms whose complex values never leave the graph, as products of real matrices.

ONNX has no complex dtype: a complex value is carried as two real ones from where it is made to
where real values are read from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.builders.aten_nn.complex_arithmetic import paired, viewed
from surgeon.builders.aten_nn.complexes import complex_of, value_of
from surgeon.builders.aten_nn.frames import frames_of
from surgeon.builders.aten_nn.overlaps import signal_of
from surgeon.builders.aten_nn.transforms import (
    Complex,
    axes_of,
    norm_of,
    real_inverse,
    transform,
)
from surgeon.builders.parts import Length
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def fft_irfft(draft: Draft, match: Match) -> Any:
    """`aten.fft_irfft`, `fft_hfft` and those of several axes.

    What is left out is the other's conjugate. `hfft` goes forward: it is of the conjugate, and
    is not divided.
    """
    args = bind(match.root, draft.facts)
    value = value_of(draft, args.tensor("self"))
    inverse = not match.root.op.startswith("fft_h")
    norm = args.value("norm")
    *others, (last, size) = axes_of(draft, args, value)
    for axis, count in others:
        value = transform(draft, value, axis, count, norm, inverse=inverse)
    if not inverse and value.imaginary is not None:
        value = Complex(value.real, draft.op("Neg", value.imaginary))
    return real_inverse(draft, value, last, size, norm, inverse=inverse)


def fft_c2r(draft: Draft, match: Match) -> Any:
    """`aten._fft_c2r` (self, dim, normalization, last_dim_size), which goes back."""
    args = bind(match.root, draft.facts)
    value = value_of(draft, args.tensor("self"))
    rank, norm = parts.rank_of(draft, value.real), norm_of(args, inverse=True)
    *others, last = (int(d) % rank for d in np.ravel(args.value("dim")))
    for axis in others:
        value = transform(draft, value, axis, None, norm, inverse=True)
    (size,) = parts.lengths_given(draft, args, "last_dim_size", 1)
    return real_inverse(draft, value, last, size, norm)


# --------------------------------------------------------------------------------- short frames


def stft_as_real(draft: Draft, match: Match) -> Any:
    """`aten.stft` that gives pairs of real numbers, as before there were complex tensors."""
    args = bind(match.root, draft.facts)
    if args.schema.takes("return_complex") and args.value("return_complex"):
        raise Refused("its complex result is read as it is")
    return paired(draft, frames_of(draft, args, value_of(draft, args.tensor("self"))))


def old_fft(draft: Draft, match: Match) -> Any:
    """`aten.fft`, `ifft`, `rfft` and `irfft` of torch 1.7 and before, on pairs of real numbers.

    (x, signal_ndim, normalized, and for the real ones onesided); `irfft` takes signal_sizes too.
    """
    args, operator = bind(match.root, draft.facts), match.root.op
    real, inverse = operator in ("rfft", "irfft"), operator in ("ifft", "irfft")
    plain = operator == "rfft"
    value = Complex(args.tensor("self"), None) if plain else viewed(draft, match.root)
    rank = parts.rank_of(draft, value.real)
    count = int(args.value("signal_ndim"))
    if not 1 <= count <= min(3, rank):
        raise Refused(f"it transforms {count} axes of {rank}")
    *others, last = range(rank - count, rank)
    norm = "ortho" if args.value("normalized") else None
    half = real and bool(args.value("onesided"))
    if operator == "irfft":
        for axis in others:
            value = transform(draft, value, axis, None, norm, inverse=True)
        if not half:
            return transform(draft, value, last, None, norm, inverse=True).real
        return real_inverse(draft, value, last, _last_size(draft, args, count), norm)
    value = transform(draft, value, last, None, norm, inverse=inverse, half=half)
    for axis in reversed(others):
        value = transform(draft, value, axis, None, norm, inverse=inverse)
    return paired(draft, value)


def _last_size(draft: Draft, args: Arguments, count: int) -> Length | None:
    """How many elements `irfft` gives along its last axis, where it says so."""
    given = args.given.get("signal_sizes")
    if given is None or (not isinstance(given, list) and draft.facts.of(given).shape == (0,)):
        return None
    return parts.lengths_given(draft, args, "signal_sizes", count)[-1]


def istft(draft: Draft, match: Match) -> Any:
    """`aten.istft` that gives a real signal."""
    args = bind(match.root, draft.facts)
    value = complex_of(draft, args.tensor("self"))
    if args.value("return_complex"):
        raise Refused("its result is complex")
    return signal_of(draft, args, value).real
