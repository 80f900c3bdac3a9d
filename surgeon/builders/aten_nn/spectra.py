"""Fourier transforms whose complex values never leave the graph, as products of real matrices.

ONNX has no complex dtype: a complex value is carried as two real ones from where it is made to
where real values are read from it.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.builders.aten_nn.complex_arithmetic import both_of, paired, viewed
from surgeon.builders.aten_nn.complexes import axes_of, complex_of, norm_of, value_of
from surgeon.builders.aten_nn.frames import frames_of, window_of
from surgeon.builders.aten_nn.transforms import (
    Complex,
    half_inverse,
    real_inverse,
    transform,
    waves,
)
from surgeon.builders.parts import Array, Length
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
    return paired(draft, frames_of(draft, args))


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
    """`aten.istft`: windowed frames added up, divided by the windows' squares added up."""
    args = bind(match.root, draft.facts)
    value = complex_of(draft, args.tensor("self"))
    if args.value("return_complex"):
        raise Refused("its result is complex")
    rank = parts.rank_of(draft, value.real)
    dtype = parts.numpy_dtype(draft, value.real)
    if dtype.name not in ("float32", "float16") or rank not in (2, 3):
        raise Refused(f"a spectrum of {dtype.name} and rank {rank}")
    size = int(args.value("n_fft"))
    hop = int(args.value("hop_length") or size // 4)
    window = window_of(draft, args, size, dtype)
    frequencies = parts.lengths_of(draft, value.real, rank)[rank - 2].static
    if frequencies is None:
        raise Refused("the number of its frequencies is not known; fix it with `--shape`")
    scale = 1.0 / math.sqrt(size) if args.value("normalized") else 1.0 / size
    onesided = args.value("onesided")
    if onesided is None:
        onesided = frequencies != size
    if onesided:
        cosine, sine = half_inverse(frequencies, size, scale)
    else:
        cosine, sine = (wave * scale for wave in waves(frequencies, size, size))
    kernel = (np.concatenate([cosine, -sine]) * window)[:, None].astype(dtype)
    both = draft.op("Concat", *both_of(value), axis=rank - 2)
    if rank == 2:
        both = parts.unsqueeze(draft, both, 0)

    def added(frames: gs.Tensor, filters: Array) -> gs.Tensor:
        made = draft.op(
            "ConvTranspose",
            frames,
            draft.constant(filters.astype(dtype), "filters"),
            kernel_shape=[size],
            strides=[hop],
        )
        return _cut(draft, made, args, size)

    count = parts.lengths_of(draft, both, 3)[2]
    ones = parts.filled(draft, parts.shape_from(draft, [1, 1, count]), dtype.type(1))
    y = draft.op("Div", added(both, kernel), added(ones, (window * window)[None, None]))
    y = _filled_up(draft, y, args, dtype)
    return parts.squeeze(draft, y, *([0, 1] if rank == 2 else [1]))


def _cut(draft: Draft, made: gs.Tensor, args: Arguments, size: int) -> gs.Tensor:
    """What `center` and `length` keep, as far as the frames reach."""
    start = size // 2 if args.value("center") else 0
    length = _asked_length(draft, args)
    if length is None and not start:
        return made
    end = draft.constant([-start], "ends")
    if length is not None and length.static is not None:
        end = draft.constant([start + length.static], "ends")
        whole = draft.facts.of(made).shape
        if whole is None or not isinstance(whole[2], int) or whole[2] < start + length.static:
            raise Refused("its `length` may be longer than its frames reach")
    elif length is not None:
        end = draft.op("Add", length.make(), draft.constant([start], "start"))
    return draft.op(
        "Slice", made, draft.constant([start], "starts"), end, draft.constant([2], "axes")
    )


def _asked_length(draft: Draft, args: Arguments) -> Length | None:
    return parts.lengths_given(draft, args, "length", 1)[0] if args.has("length") else None


def _filled_up(draft: Draft, y: gs.Tensor, args: Arguments, dtype: np.dtype[Any]) -> gs.Tensor:
    """Zeros behind [B, 1, T], where `length` is computed and the frames do not reach that far."""
    length = _asked_length(draft, args)
    if length is None or length.static is not None:
        return y
    batch, one, reached = parts.lengths_of(draft, y, 3)
    lacking = cache(lambda: draft.op("Sub", length.make(), reached.make()))
    shape = parts.shape_from(draft, [batch, one, Length(None, lacking)])
    return draft.op("Concat", y, parts.filled(draft, shape, dtype.type(0)), axis=2)
