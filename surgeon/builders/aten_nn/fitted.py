"""Pools whose windows or paddings depend on the input's size, which ONNX's pools want as numbers.

A window as long as its axis, `max_pool1d(x, x.size(2))`, is a reduction; one of a share of it, or
one that moves by a share, is gathered and then reduced, axis by axis. A padding, `size % 2`, is put
around the input in front of the pool.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.arguments import Arguments
from surgeon.builders import parts
from surgeon.builders.parts import Length
from surgeon.builders.windows import Window, gathered_places
from surgeon.rewrite import Draft, Refused


class Fitted(NamedTuple):
    """An input to pool, and how.

    Attributes:
        x: It, pooled along the axes whose windows are known at run time only.
        windows: Of each axis, those of 1 along what was pooled.
        pads: What is to be put around it, where that is no number: as Pad takes it.
        pooled: Whether there was such an axis.
    """

    x: gs.Tensor
    windows: list[Window]
    pads: gs.Tensor | None
    pooled: bool

    @property
    def computed(self) -> bool:
        """Whether something is known at run time only."""
        return self.pooled or self.pads is not None

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to pool."""
        return self.pooled and self.pads is None and all(w.is_one for w in self.windows)

    def padded(self, draft: Draft, value: gs.Tensor, fill: gs.Tensor | None = None) -> gs.Tensor:
        """A value with that around it."""
        if self.pads is None:
            return value
        given = (self.pads,) if fill is None else (self.pads, fill)
        found: gs.Tensor = draft.op("Pad", value, *given)
        return found


_COMPUTED = "its window or stride is known at run time only"


def fitted(
    draft: Draft,
    args: Arguments,
    x: gs.Tensor,
    spatial: int,
    reduction: str,
    *,
    fill: gs.Tensor | None = None,
) -> Fitted:
    """What a pool's arguments make of an input with a batch.

    Args:
        draft: Takes the nodes.
        args: Of the pool.
        x: [N, C, *plane].
        spatial: How many axes it pools.
        reduction: The operator that pools a whole axis.
        fill: What counts where padding is read; None for what counts nowhere.

    Raises:
        Refused: A window or a stride is known at run time only, and so is whether the last one is
            full, or what is read beside the input; or so is a padding, and a last window may not
            be full.
    """
    kernel = parts.lengths_given(draft, args, "kernel_size", spatial)
    edges = parts.lengths_given(draft, args, "padding", spatial)
    dilation = [1] * spatial
    if args.schema.takes("dilation"):
        dilation = parts.per_axis(args.value("dilation"), spatial, "dilation")
    ceil = bool(args.value("ceil_mode"))
    strides = _strides(draft, args, kernel)
    computed = [n for n in range(spatial) if None in (kernel[n].static, strides[n].static)]
    lengths = parts.lengths_of(draft, x, spatial + 2)[2:] if computed else []
    plain = [n for n in computed if edges[n].static == 0 and dilation[n] == 1]
    whole = [n for n in plain if is_same(lengths[n], kernel[n])]
    shares = [n for n in computed if n not in whole]
    if shares and ceil:
        raise Refused(f"{_COMPUTED}, and its last window may be cut; fix it with `--shape`")
    around = [n for n in shares if edges[n].static != 0]
    if around and fill is None:
        raise Refused(f"{_COMPUTED}, and padding does not count; fix it with `--shape`")
    if around:
        wide = [edges[n] if n in around else 0 for n in range(spatial)]
        x = draft.op("Pad", x, parts.shape_from(draft, [0, 0, *wide, 0, 0, *wide]), fill)
        lengths = parts.lengths_of(draft, x, spatial + 2)[2:]
        none = parts.constant_length(draft, 0)
        edges = [none if n in around else edge for n, edge in enumerate(edges)]
    if whole:
        x = draft.op(reduction, x, draft.constant([n + 2 for n in whole], "axes"), keepdims=1)
    for n in shares:
        places = gathered_places(draft, lengths[n], kernel[n], strides[n], dilation[n])
        x = draft.op("Gather", x, places, axis=n + 2)
        x = draft.op(reduction, x, draft.constant([n + 3], "axes"), keepdims=0)
    windows = []
    for n in range(spatial):
        size, stride = (1, 1) if n in computed else (kernel[n].static, strides[n].static)
        assert size is not None
        assert stride is not None
        windows.append(Window(size, stride, edges[n].static or 0, dilation[n], ceil))
    return Fitted(x, windows, _pads(draft, edges, ceil=ceil), bool(computed))


def _pads(draft: Draft, edges: list[Length], *, ceil: bool) -> gs.Tensor | None:
    """What Pad takes of edges that are known at run time only; None where there are none."""
    if all(edge.static is not None for edge in edges):
        return None
    if ceil:
        raise Refused("its padding is known at run time only, and its last window may be cut")
    unknown = [edge if edge.static is None else 0 for edge in edges]
    return parts.shape_from(draft, [0, 0, *unknown, 0, 0, *unknown])


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
