"""Pools whose windows or paddings depend on the input's size, which ONNX's pools want as numbers.

A window as long as its axis, `max_pool1d(x, x.size(2))`, is a reduction; a padding, `size % 2`, is
put around the input in front of the pool.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.arguments import Arguments
from surgeon.builders import parts
from surgeon.builders.parts import Length
from surgeon.builders.windows import Window
from surgeon.rewrite import Draft, Refused


class Fitted(NamedTuple):
    """An input to pool, and how.

    Attributes:
        x: It, reduced along the axes that are one window.
        windows: Of each axis, those of 1 along what was reduced.
        pads: What is to be put around it, where that is no number: as Pad takes it.
        whole: Whether an axis is one window, whose length is known at run time only.
    """

    x: gs.Tensor
    windows: list[Window]
    pads: gs.Tensor | None
    whole: bool

    @property
    def computed(self) -> bool:
        """Whether something is known at run time only."""
        return self.whole or self.pads is not None

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to pool."""
        return self.whole and self.pads is None and all(w.is_one for w in self.windows)

    def padded(self, draft: Draft, value: gs.Tensor, fill: gs.Tensor | None = None) -> gs.Tensor:
        """A value with that around it."""
        if self.pads is None:
            return value
        given = (self.pads,) if fill is None else (self.pads, fill)
        found: gs.Tensor = draft.op("Pad", value, *given)
        return found


def fitted(draft: Draft, args: Arguments, x: gs.Tensor, spatial: int, reduction: str) -> Fitted:
    """What a pool's arguments make of an input with a batch.

    Args:
        draft: Takes the nodes.
        args: Of the pool.
        x: [N, C, *plane].
        spatial: How many axes it pools.
        reduction: The operator that pools a whole axis.

    Raises:
        Refused: A window is known at run time only and is not the whole axis, or is padded or
            dilated there; or so is a padding, and a last window may not be full.
    """
    kernel = parts.lengths_given(draft, args, "kernel_size", spatial)
    edges = parts.lengths_given(draft, args, "padding", spatial)
    dilation = [1] * spatial
    if args.schema.takes("dilation"):
        dilation = parts.per_axis(args.value("dilation"), spatial, "dilation")
    ceil = bool(args.value("ceil_mode"))
    whole = [axis for axis, length in enumerate(kernel) if length.static is None]
    lengths = parts.lengths_of(draft, x, spatial + 2)[2:] if whole else []
    if not all(is_same(lengths[axis], kernel[axis]) for axis in whole):
        raise Refused("its window is known at run time only; fix it with `--shape`")
    if any(edges[axis].static != 0 or dilation[axis] != 1 for axis in whole):
        raise Refused("its window is known at run time only, and it is padded or dilated")
    if whole:
        axes = draft.constant([axis + 2 for axis in whole], "axes")
        x = draft.op(reduction, x, axes, keepdims=1)
    strides = _strides(draft, args, kernel)
    windows = []
    for axis in range(spatial):
        size, stride = (1, 1) if axis in whole else (kernel[axis].static, strides[axis].static)
        if size is None or stride is None:
            raise Refused("its stride is known at run time only; fix it with `--shape`")
        windows.append(Window(size, stride, edges[axis].static or 0, dilation[axis], ceil))
    pads = None
    if any(edge.static is None for edge in edges):
        if ceil:
            raise Refused("its padding is known at run time only, and its last window may be cut")
        computed = [edge if edge.static is None else 0 for edge in edges]
        pads = parts.shape_from(draft, [0, 0, *computed, 0, 0, *computed])
    return Fitted(x, windows, pads, bool(whole))


def least(draft: Draft, dtype: np.dtype[Any]) -> gs.Tensor:
    """What no element is less than, to be put around an input of which maxima are taken."""
    number = -np.inf if parts.is_float(dtype) else np.iinfo(dtype).min
    return draft.constant(np.array(number, dtype), "least")


def _strides(draft: Draft, args: Arguments, kernel: list[Length]) -> list[Length]:
    """As given, by default as long as the windows."""
    try:
        known = parts.numbers(args, "stride")
    except Refused:  # known at run time only
        return parts.lengths_given(draft, args, "stride", len(kernel))
    if known in (None, []):
        return kernel
    return [parts.constant_length(draft, n) for n in parts.per_axis(known, len(kernel), "stride")]


def is_same(length: Length, out: Length) -> bool:
    """Whether two lengths are provably equal."""
    known = length.dim is not None and out.dim is not None
    return known and dims.equal(length.dim, out.dim) is True  # type: ignore[arg-type]
