"""Short frames of a signal, windowed and transformed by one convolution."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments
from surgeon.builders import padding, parts
from surgeon.builders.aten_nn.transforms import Complex, waves
from surgeon.builders.parts import Array, Length
from surgeon.rewrite import Draft, Refused


def window_of(draft: Draft, args: Arguments, size: int, dtype: np.dtype[Any]) -> Array:
    """The window in the middle of a frame of some dtype; all ones where none is given."""
    width = int(args.value("win_length") or size)
    if not args.has("window"):
        values = np.ones(width)
    else:
        found = draft.facts.array(args.tensor("window"))
        if found is None:
            raise Refused("its window is computed at run time")
        if found.dtype.kind in "fc" and found.real.dtype.itemsize > dtype.itemsize:
            raise Refused(
                f"its window of {found.dtype} makes its result so, of an input of {dtype}"
            )
        values = found.astype(np.complex128 if found.dtype.kind == "c" else np.float64)
    if width > size or values.shape != (width,):
        raise Refused(f"a window of {values.shape} in frames of {size}")
    whole = np.zeros(size, values.dtype)
    start = (size - width) // 2
    whole[start : start + width] = values
    return whole


def frames_of(draft: Draft, args: Arguments, value: Complex) -> Complex:
    """Frames times windowed cosines and sines: one convolution. [B, F, T] or [F, T]."""
    rank = parts.rank_of(draft, value.real)
    if rank not in (1, 2):
        raise Refused(f"its input has rank {rank}, not 1 or 2")
    dtype = parts.numpy_dtype(draft, value.real)
    if dtype.name not in ("float64", "float32", "float16"):
        raise Refused(f"onnxruntime has no convolution of {dtype.name}")
    size = int(args.value("n_fft"))
    window = window_of(draft, args, size, dtype)
    of_complex = value.imaginary is not None or window.dtype.kind == "c"
    onesided = args.value("onesided")
    if of_complex and onesided:
        raise Refused("half of its frequencies is asked for, and it is of complex values")
    rows = size if of_complex or (onesided is not None and not onesided) else size // 2 + 1
    scale = 1.0 / math.sqrt(size) if args.value("normalized") else 1.0
    cosine, sine = waves(rows, size, size)
    kernel = (cosine - 1j * sine) * window * scale

    def transformed(part: gs.Tensor) -> Complex:
        x = _with_ends(draft, args, part, size)
        return _convolved(draft, x, kernel, int(args.value("hop_length") or size // 4))

    found = transformed(value.real)
    if value.imaginary is not None:
        turned = transformed(value.imaginary)  # and times i
        found = Complex(
            draft.op("Sub", found.real, turned.imaginary),
            draft.op("Add", found.imaginary, turned.real),
        )
    both = (part for part in found if part is not None)
    return Complex(*(parts.squeeze(draft, part, 0) if rank == 1 else part for part in both))


def _with_ends(draft: Draft, args: Arguments, x: gs.Tensor, size: int) -> gs.Tensor:
    """A signal as [B, 1, T], with what stands before its first frame and behind its last."""
    rank = parts.rank_of(draft, x)
    x = parts.unsqueeze(draft, x, *([0, 1] if rank == 1 else [1]))
    if args.schema.takes("center") and args.value("center"):
        mode = args.value("pad_mode") or "reflect"
        mode = {"replicate": "edge"}.get(mode, mode)
        edge = size // 2
        if mode == "circular":
            ends = parts.constant_length(draft, edge)
            return padding.wrapped(draft, x, 2, (ends, ends))
        pads = draft.constant([0, 0, edge, 0, 0, edge], "pads")
        x = draft.op("Pad", x, pads, mode=mode)
    elif args.schema.takes("align_to_window") and args.value("align_to_window"):
        gap = size - int(args.value("win_length") or size)  # the first window begins at 0
        pads = draft.constant([0, 0, gap // 2, 0, 0, gap - gap // 2], "pads")
        x = draft.op("Pad", x, pads) if gap else x
    return x


def _convolved(draft: Draft, x: gs.Tensor, kernel: Array, hop: int) -> Complex:
    """[B, 1, T] with complex filters [F, size], each part [B, F, frames]."""
    rows, size = kernel.shape
    dtype = parts.numpy_dtype(draft, x)
    if dtype == np.float64:  # of which onnxruntime has no convolution
        frames = _apart(draft, x, size, hop)
        products = (
            draft.op("MatMul", frames, draft.constant(np.ascontiguousarray(part.T), "filters"))
            for part in (kernel.real, kernel.imag)
        )
        return Complex(*(draft.op("Transpose", one, perm=[0, 2, 1]) for one in products))
    both = np.concatenate([kernel.real, kernel.imag])[:, None].astype(dtype)
    y = draft.op("Conv", x, draft.constant(both, "filters"), kernel_shape=[size], strides=[hop])
    cuts = (
        draft.op(
            "Slice",
            y,
            draft.constant([first], "starts"),
            draft.constant([first + rows], "ends"),
            draft.constant([1], "axes"),
        )
        for first in (0, rows)
    )
    return Complex(*cuts)


def _apart(draft: Draft, x: gs.Tensor, size: int, hop: int) -> gs.Tensor:
    """The frames of [B, 1, T], as [B, frames, size]."""
    whole = parts.lengths_of(draft, x, 3)[2]
    step, one = (draft.constant([n], "number") for n in (hop, 1))
    if whole.static is None:
        last = cache(lambda: draft.op("Sub", whole.make(), draft.constant([size], "size")))
        count = Length(None, lambda: draft.op("Add", draft.op("Div", last(), step), one))
    else:
        count = parts.constant_length(draft, (whole.static - size) // hop + 1)
    first = parts.unsqueeze(draft, draft.op("Mul", parts.counting(draft, count), step), 1)
    places = draft.op("Add", first, draft.constant(np.arange(size), "within"))
    made: gs.Tensor = draft.op("Gather", parts.squeeze(draft, x, 1), places, axis=1)
    return made
