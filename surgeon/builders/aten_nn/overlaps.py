"""A signal from short frames that overlap: what `istft` adds up."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments
from surgeon.builders import parts
from surgeon.builders.aten_nn.frames import window_of
from surgeon.builders.aten_nn.transforms import Complex, half_inverse, waves
from surgeon.builders.parts import Array, Length
from surgeon.rewrite import Draft, Refused

_MOST_LAID_OVER = 64  # frames at one place, each of which is a product of its own


def signal_of(draft: Draft, args: Arguments, value: Complex) -> Complex:
    """`istft`: windowed frames added up, divided by the windows' squares added up.

    It has an imaginary part where a complex signal is asked for.
    """
    rank = parts.rank_of(draft, value.real)
    dtype = parts.numpy_dtype(draft, value.real)
    if dtype.name not in ("float64", "float32", "float16") or rank not in (2, 3):
        raise Refused(f"a spectrum of {dtype.name} and rank {rank}")
    if value.imaginary is None:
        raise Refused("its spectrum is real")
    size = int(args.value("n_fft"))
    window = window_of(draft, args, size, dtype)
    if window.dtype.kind == "c":
        raise Refused("its window is complex")
    frequencies = parts.lengths_of(draft, value.real, rank)[rank - 2].static
    if frequencies is None:
        raise Refused("the number of its frequencies is not known; fix it with `--shape`")
    added = _adding(draft, args, size, dtype)
    both = draft.op("Concat", value.real, value.imaginary, axis=rank - 2)
    if rank == 2:
        both = parts.unsqueeze(draft, both, 0)
    count = parts.lengths_of(draft, both, 3)[2]
    ones = parts.filled(draft, parts.shape_from(draft, [1, 1, count]), dtype.type(1))
    envelope = added(ones, (window * window)[None])

    def signal(filters: Array) -> gs.Tensor:
        y = draft.op("Div", added(both, filters * window), envelope)
        y = _filled_up(draft, y, args, dtype)
        return parts.squeeze(draft, y, *([0, 1] if rank == 2 else [1]))

    real, *imaginary = map(signal, _filters(args, frequencies, size))
    return Complex(real, imaginary[0] if imaginary else None)


def _filters(args: Arguments, frequencies: int, size: int) -> list[Array]:
    """What both parts of the spectrum, one above the other, are multiplied by: [2 F, size].

    One for a real signal, which reads the first half of the frequencies and no more; two for the
    parts of a complex one.
    """
    scale = 1.0 / math.sqrt(size) if args.value("normalized") else 1.0 / size
    onesided = args.value("onesided")
    if onesided is None:
        onesided = frequencies != size
    if frequencies != (size // 2 + 1 if onesided else size):
        raise Refused(f"{frequencies} frequencies of frames of {size}")
    if args.value("return_complex"):
        if onesided:
            raise Refused("half of its frequencies is there, and its result is complex")
        cosine, sine = (wave * scale for wave in waves(size, size, size))
        return [np.concatenate([cosine, -sine]), np.concatenate([sine, cosine])]
    read = size // 2 + 1
    cosine, sine = half_inverse(read, size, scale)
    unread = np.zeros((frequencies - read, size))
    return [np.concatenate([cosine, unread, -sine, unread])]


def _adding(
    draft: Draft, args: Arguments, size: int, dtype: np.dtype[Any]
) -> Callable[[gs.Tensor, Array], gs.Tensor]:
    """What multiplies frames [B, F, T] by filters [F, size] and adds them up where they overlap."""
    hop = int(args.value("hop_length") or size // 4)

    def added(frames: gs.Tensor, filters: Array) -> gs.Tensor:
        filters = filters.astype(dtype)
        if dtype == np.float64:
            made = _laid_over(draft, frames, filters, hop)
        else:
            weights = draft.constant(filters[:, None], "filters")
            made = draft.op("ConvTranspose", frames, weights, kernel_shape=[size], strides=[hop])
        return _cut(draft, made, args, size)

    return added


def _laid_over(draft: Draft, frames: gs.Tensor, filters: Array, hop: int) -> gs.Tensor:
    """A transposed convolution by products, where onnxruntime has none: [B, 1, T'].

    The first so many elements of every frame side by side, plus the next ones of the frame before.
    """
    size = filters.shape[1]
    over = -(-size // hop)
    if over > _MOST_LAID_OVER:
        raise Refused(f"{over} frames lie over each other in double precision")
    wide = np.pad(filters, ((0, 0), (0, over * hop - size)))
    rows = draft.op("Transpose", frames, perm=[0, 2, 1])
    line = draft.constant([0, 1, -1], "line")
    found: gs.Tensor | None = None
    for index in range(over):
        block = np.ascontiguousarray(wide[:, index * hop : (index + 1) * hop])
        piece = draft.op("MatMul", rows, draft.constant(block, "filters"))
        piece = draft.op("Reshape", piece, line)
        ends = draft.constant([0, 0, index * hop, 0, 0, (over - 1 - index) * hop], "pads")
        piece = draft.op("Pad", piece, ends) if over > 1 else piece
        found = piece if found is None else draft.op("Add", found, piece)
    assert found is not None
    if over * hop == size:
        return found
    bounds = ([0], [size - over * hop], [2])
    return draft.op("Slice", found, *(draft.constant(list(b), "bound") for b in bounds))


def _cut(draft: Draft, made: gs.Tensor, args: Arguments, size: int) -> gs.Tensor:
    """What `center` and `length` keep, as far as the frames reach."""
    start = size // 2 if args.value("center") else 0
    length = _asked_length(draft, args)
    left_out = start if length is not None or start else _left_out(draft, size)
    if length is None and not left_out:
        return made
    end = draft.constant([-left_out], "ends")
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


def _left_out(draft: Draft, size: int) -> int:
    """How much PyTorch left out of the end of what is neither centred nor of a given length."""
    is_before = draft.facts.model.is_before
    if is_before(1, 10):
        return size // 2
    if is_before(1, 13):
        return 1
    if is_before(2, 4):
        raise Refused("some releases before PyTorch 2.4 left its last element out; say `length`")
    return 0


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
