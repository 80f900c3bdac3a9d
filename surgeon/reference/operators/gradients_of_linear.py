"""PyTorch operators: gradients of averages, of pads that copy, and of resampling.

These are linear: a gradient goes to all that an element was made of, by the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators import borders, resampling
from surgeon.reference.operators.gradients_in_place import numbered, summed
from surgeon.reference.operators.precision import Array, Row, narrow, wide
from surgeon.reference.operators.windows import averaged


def _average(spatial: int) -> Callable[..., Array]:
    """Each window's share goes to all that it averaged."""

    def run(
        grad_output: Array,
        self: Array,
        kernel_size: list[int],
        stride: list[int],
        padding: list[int],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Array:
        kernel, step, padding = (
            each * (spatial // len(each)) for each in (kernel_size, stride or kernel_size, padding)
        )
        plane, found = self.shape[-spatial:], np.zeros(self.shape)
        for at in np.ndindex(*grad_output.shape[-spatial:]):
            box, count = averaged(at, plane, kernel, step, padding, pads=count_include_pad)
            share = wide(grad_output)[(..., *at)] / (divisor_override or count)
            found[box] += share.reshape(*share.shape, *[1] * spatial)
        return narrow(found, self)

    return run


def _adaptive(spatial: int) -> Callable[..., Array]:
    def run(grad_output: Array, self: Array) -> Array:
        lengths, counts = self.shape[-spatial:], grad_output.shape[-spatial:]
        found = np.zeros(self.shape)
        for place in np.ndindex(*counts):
            window = [
                slice(at * n // count, math.ceil((at + 1) * n / count))
                for at, n, count in zip(place, lengths, counts, strict=True)
            ]
            where: Any = (..., *window)
            share = wide(grad_output)[(..., *place)] / math.prod(w.stop - w.start for w in window)
            found[where] += share.reshape(*share.shape, *[1] * spatial)
        return narrow(found, self)

    return run


def _padding(forward: Callable[[Array, list[int]], Array]) -> Callable[..., Array]:
    """What was copied gets what its copies got."""

    def run(grad_output: Array, self: Array, padding: list[int]) -> Array:
        return summed(grad_output, self.shape, forward(numbered(self.shape), padding))

    return run


def _resampling(name: str, spatial: int) -> Callable[..., Array]:
    """What the operator makes of one element after the other says where each gradient goes."""
    forward = next(f for schema, f in resampling.TABLE if schema.startswith(f"{name}("))

    def run(
        grad_output: Array, output_size: list[int] | None, input_size: list[int], **rest: Any
    ) -> Array:
        found = wide(grad_output)
        output_size = list(grad_output.shape[2:]) if output_size is None else list(output_size)
        if list(grad_output.shape[2:]) != output_size:
            raise Unsuited(f"{list(grad_output.shape)} for an output of {output_size}")
        if "scale_factors" in rest:
            given: Any = resampling.unrounded(rest.pop("scale_factors")) or [None] * spatial
            names = _SCALES[-spatial:] if spatial > 1 else ("scales",)
            rest |= dict(zip(names, given, strict=True))
        for axis, (length, size) in enumerate(zip(input_size[2:], output_size, strict=True)):
            one = [1] * spatial
            unit = np.eye(length).reshape(
                [length, 1, *(length if i == axis else 1 for i in range(spatial))]
            )
            out = forward(unit, [size if i == axis else n for i, n in enumerate(one)], **rest)
            weights = out.reshape(length, size)
            moved = np.moveaxis(found, axis + 2, -1) @ weights.T
            found = np.moveaxis(moved, -1, axis + 2)
        return narrow(found, grad_output)

    return run


_G = "Tensor grad_output, "
_AVG = (
    "Tensor self, int[{0}] kernel_size, int[{0}] stride, int[{0}] padding, bool ceil_mode, "
    "bool count_include_pad, int? divisor_override) -> Tensor"
)
_SIZED = (
    ("upsample_linear1d", 1),
    ("upsample_bilinear2d", 2),
    ("upsample_trilinear3d", 3),
    ("upsample_bicubic2d", 2),
    ("_upsample_bilinear2d_aa", 2),
    ("_upsample_bicubic2d_aa", 2),
    ("_upsample_lanczos2d_aa", 2),
)
_NEAREST = tuple(
    (f"{stem}{n}d", n)
    for stem in ("upsample_nearest", "_upsample_nearest_exact")
    for n in (1, 2, 3)
)


_SCALES = ("scales_d", "scales_h", "scales_w")


def _scales(spatial: int) -> str:
    names = ("scales",) if spatial == 1 else _SCALES[-spatial:]
    return "".join(f", float? {name}=None" for name in names)


TABLE: tuple[Row, ...] = (
    (f"avg_pool2d_backward({_G}{_AVG.format(2)}", _average(2)),
    (f"avg_pool3d_backward({_G}{_AVG.format(3)}", _average(3)),
    (f"_adaptive_avg_pool2d_backward({_G}Tensor self) -> Tensor", _adaptive(2)),
    (f"_adaptive_avg_pool3d_backward({_G}Tensor self) -> Tensor", _adaptive(3)),
    *(
        (f"{kind}_pad{n}d_backward({_G}Tensor self, SymInt[{2 * n}] padding) -> Tensor", run)
        for kind, run in (
            ("reflection", _padding(borders.reflection_pad)),
            ("replication", _padding(borders.replication_pad)),
        )
        for n in (1, 2, 3)
    ),
    *(
        (
            f"{name}_backward.vec({_G}SymInt[]? output_size, SymInt[] input_size"
            f"{', bool align_corners' if (name, n) in _SIZED else ''}, float[]? scale_factors) "
            "-> Tensor",
            _resampling(name, n),
        )
        for name, n in (*_SIZED, *_NEAREST)
    ),
    *(
        (
            f"{name}_backward({_G}SymInt[{n}] output_size, SymInt[{n + 2}] input_size, "
            f"bool align_corners{_scales(n)}) -> Tensor",
            _resampling(name, n),
        )
        for name, n in _SIZED
    ),
    *(
        (
            f"{name}_backward({_G}SymInt[{n}] output_size, SymInt[{n + 2}] input_size"
            f"{_scales(n)}) -> Tensor",
            _resampling(name, n),
        )
        for name, n in _NEAREST
    ),
)
