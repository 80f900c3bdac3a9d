"""torchaudio's filter with feedback: a linear recurrence, as is an `RNN` without activation."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import bind
from surgeon.builders.bench import TYPE, Bench
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_LARGEST = 1 << 20  # elements of the constant matrix that says what follows what


def recursive_filter(draft: Draft, match: Match) -> Any:
    """`torchaudio::_lfilter (waveform, a_coeffs, b_coeffs)`, one filter for each channel.

    a0 y[t] = sum_k b_k x[t - k] - sum_k>0 a_k y[t - k], with zeros before the beginning. The state
    of a channel is its last results, the newest first.
    """
    b, args = Bench(draft), bind(match.root, draft.facts)
    x, a, forward = (args.tensor(name) for name in ("waveform", "a_coeffs", "b_coeffs"))
    shape, sizes = b.shape(a), b.shape(forward)
    if b.rank(x) != 3:
        raise Refused(f"its input has rank {b.rank(x)}, not 3")
    if b.dtype(x) != TYPE.FLOAT:
        raise Refused("onnxruntime has no `RNN` of this dtype")
    if shape is None or shape != sizes or len(shape) != 2:
        raise Refused("its coefficients are not proven to be as many as each other")
    if any(b.facts.array(one) is None for one in (a, forward)):
        raise Refused("its coefficients are computed, and may let it grow without bounds")
    channels, taps = shape
    if not isinstance(channels, int) or not isinstance(taps, int):
        raise Refused("how many coefficients it has is known at run time only")
    if (channels * taps) ** 2 > _LARGEST:
        raise Refused(f"its {channels} filters of {taps} coefficients would need a large matrix")
    first = b.slice(a, 1, 0, 1)
    back = b.op("Gather", b.op("Div", forward, first), b.ints([*range(taps)][::-1], "back"), axis=1)
    kernel = b.unsqueeze(back, [1])
    y = b.op("Conv", x, kernel, group=channels, kernel_shape=[taps], pads=[taps - 1, 0])
    if taps == 1:
        return y
    fed = b.op("Neg", b.op("Div", b.slice(a, 1, 1, taps), first))
    return _fed_back(b, y, fed, channels, taps - 1)


def _fed_back(b: Bench, x: gs.Tensor, fed: gs.Tensor, channels: int, memory: int) -> gs.Tensor:
    """y[t] = x[t] + sum_k fed_k y[t - k], for [batch, channels, time]; `fed` [channels, memory]."""
    width = channels * memory
    into = np.zeros((1, width, channels), np.float32)
    into[0, np.arange(channels) * memory, np.arange(channels)] = 1
    newest = np.zeros((channels, memory, channels, memory), np.float32)
    newest[np.arange(channels), 0, np.arange(channels)] = 1
    moves = np.kron(np.eye(channels), np.eye(memory, k=-1)).astype(np.float32)[None]
    rows = b.op("Reshape", fed, b.ints([channels, 1, 1, memory], "rows"))
    mine = b.op("Mul", b.draft.constant(newest, "newest"), rows)
    again = b.op("Reshape", mine, b.ints([1, width, width], "square"))
    again = b.op("Add", again, b.draft.constant(moves, "older"))
    steps = b.permute(x, [2, 0, 1])
    y = b.op(
        "RNN",
        steps,
        b.draft.constant(into, "into"),
        again,
        hidden_size=width,
        activations=["Affine"],
        activation_alpha=[1.0],
        activation_beta=[0.0],
    )
    y = b.squeeze(y, [1])
    y = b.op("Gather", y, b.ints([c * memory for c in range(channels)], "newest"), axis=2)
    return b.permute(y, [1, 2, 0])
