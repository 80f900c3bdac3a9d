"""Short frames of a signal, windowed and transformed by one convolution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surgeon.arguments import Arguments
from surgeon.builders import padding, parts
from surgeon.builders.aten_nn.transforms import Complex, waves
from surgeon.builders.parts import Array
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
        if found.dtype.kind == "f" and found.dtype.itemsize > dtype.itemsize:
            raise Refused(
                f"its window of {found.dtype} makes its result so, of an input of {dtype}"
            )
        values = found.astype(np.float64)
    if width > size or values.shape != (width,):
        raise Refused(f"a window of {values.shape} in frames of {size}")
    whole = np.zeros(size)
    start = (size - width) // 2
    whole[start : start + width] = values
    return whole


def frames_of(draft: Draft, args: Arguments) -> Complex:
    """Frames times windowed cosines and sines: one convolution. [B, F, T] or [F, T]."""
    x = args.tensor("self")
    rank = parts.rank_of(draft, x)
    if rank not in (1, 2):
        raise Refused(f"its input has rank {rank}, not 1 or 2")
    dtype = parts.numpy_dtype(draft, x)
    if dtype.name not in ("float32", "float16"):
        raise Refused(f"onnxruntime has no convolution of {dtype.name}")
    size = int(args.value("n_fft"))
    hop = int(args.value("hop_length") or size // 4)
    onesided = args.value("onesided")
    rows = size if onesided is not None and not onesided else size // 2 + 1
    scale = 1.0 / math.sqrt(size) if args.value("normalized") else 1.0
    weighted = window_of(draft, args, size, dtype) * scale
    cosine, sine = waves(rows, size, size)
    kernel = np.concatenate([cosine * weighted, -sine * weighted])[:, None]
    x = parts.unsqueeze(draft, x, *([0, 1] if rank == 1 else [1]))
    if args.schema.takes("center") and args.value("center"):
        mode = args.value("pad_mode") or "reflect"
        mode = {"replicate": "edge"}.get(mode, mode)
        edge = size // 2
        if mode == "circular":
            ends = parts.constant_length(draft, edge)
            x = padding.wrapped(draft, x, 2, (ends, ends))
        else:
            pads = draft.constant([0, 0, edge, 0, 0, edge], "pads")
            x = draft.op("Pad", x, pads, mode=mode)
    elif args.schema.takes("align_to_window") and args.value("align_to_window"):
        gap = size - int(args.value("win_length") or size)  # the first window begins at 0
        pads = draft.constant([0, 0, gap // 2, 0, 0, gap - gap // 2], "pads")
        x = draft.op("Pad", x, pads) if gap else x
    filters = draft.constant(kernel.astype(dtype), "filters")
    y = draft.op("Conv", x, filters, kernel_shape=[size], strides=[hop])
    both = [
        draft.op(
            "Slice",
            y,
            draft.constant([first], "starts"),
            draft.constant([first + rows], "ends"),
            draft.constant([1], "axes"),
        )
        for first in (0, rows)
    ]
    return Complex(*(parts.squeeze(draft, part, 0) if rank == 1 else part for part in both))
