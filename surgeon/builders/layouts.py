"""Where channels stand: second, as ONNX's operators have them, or last."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench


def channels_first(c: Bench, x: gs.Tensor) -> gs.Tensor:
    """[N, ..., C] as [N, C, ...]."""
    rank = c.rank(x)
    return c.permute(x, [0, rank - 1, *range(1, rank - 1)])


def channels_last(c: Bench, x: gs.Tensor) -> gs.Tensor:
    """[N, C, ...] as [N, ..., C]."""
    return c.permute(x, [0, *range(2, c.rank(x)), 1])
