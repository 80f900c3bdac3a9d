"""Convolutions with attributes that few accelerators take, as convolutions without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import own_constants, parts
from surgeon.builders.bench import LARGEST, Bench
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_LARGEST_KERNEL = 1 << 22  # elements of a weight with zeros between
_MOST_GROUPS = 32
_PLANES = 4  # the rank of planes


def conv_with_zeros(draft: Draft, match: Match) -> gs.Tensor:
    """A Conv with dilations as one whose kernel has zeros between."""
    node = match.root
    attributes = dict(node.attrs)
    dilations = [int(n) for n in attributes.pop("dilations", None) or [1]]
    if max(dilations) == 1:
        raise Refused("it has no dilations")
    wide = _widened(own_constants.own_weight(draft, node), dilations)
    x, _, *bias = node.inputs
    attributes["kernel_shape"] = list(wide.shape[2:])
    y: gs.Tensor = draft.op("Conv", x, draft.constant(wide, "kernel"), *bias, **attributes)
    return y


def _widened(weight: parts.Array, dilations: Sequence[int]) -> parts.Array:
    """A kernel with zeros between its elements."""
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, weight.shape[2:], strict=True)]
    wide = np.zeros((*weight.shape[:2], *reach), weight.dtype)
    if wide.size > _LARGEST_KERNEL:
        raise Refused("its kernel would be very large")
    wide[(slice(None), slice(None), *(slice(None, None, d) for d in dilations))] = weight
    return wide


def conv_of_groups(draft: Draft, match: Match) -> gs.Tensor:
    """A Conv of a few groups of several channels as one of each, side by side."""
    c, node = Bench(draft), match.root
    attributes = dict(node.attrs)
    groups = int(attributes.pop("group", None) or 1)
    if not 1 < groups <= _MOST_GROUPS:
        raise Refused(f"it is not of 2 to {_MOST_GROUPS} groups")
    weight = own_constants.own_weight(draft, node)
    if weight.shape[1] == 1:
        raise Refused("its groups are of one channel, which most runtimes take")
    x, _, *bias = node.inputs
    biases = [draft.facts.array(b) for b in bias]
    if any(b is None for b in biases):
        raise Refused("its bias is computed")
    width, kernels = weight.shape[1], np.split(weight, groups)
    found = []
    for place, kernel in enumerate(kernels):
        part = c.slice(x, 1, place * width, (place + 1) * width)
        own = [draft.constant(np.split(b, groups)[place], "bias") for b in biases if b is not None]
        found.append(c.op("Conv", part, draft.constant(kernel, "kernel"), *own, **attributes))
    return c.concat(found, 1)


def transposed_as_conv(draft: Draft, match: Match) -> gs.Tensor:
    """A ConvTranspose over planes as a Conv, and DepthToSpace where it has strides.

    Output `s * q + r` is what the taps `r`, `r + s`, ... of the kernel make of the inputs at and in
    front of `q`: a convolution for each `r`, whose channels are the elements of a block.
    """
    c, node = Bench(draft), match.root
    plan = _Plan(draft, node)
    kernel = plan.kernel(own_constants.own_weight(draft, node))
    bias = [draft.facts.array(b) for b in node.inputs[2:] if not b.is_empty()]
    if any(b is None for b in bias):
        raise Refused("its bias is computed")
    taps = [k - 1 for k in kernel.shape[2:]]
    pads = [*taps, *taps] if plan.step > 1 else plan.pads_of_conv(taps)
    of_block = [draft.constant(np.tile(b, plan.step**2), "bias") for b in bias if b is not None]
    y: gs.Tensor = c.op(
        "Conv",
        *(node.inputs[0], draft.constant(kernel, "kernel"), *of_block),
        kernel_shape=list(kernel.shape[2:]),
        pads=pads,
    )
    if plan.step == 1:
        return y
    y = c.op("DepthToSpace", y, blocksize=plan.step)
    starts, ends, axes = plan.cut(taps)
    if axes:
        y = c.op("Slice", y, c.ints(starts, "starts"), c.ints(ends, "ends"), c.ints(axes, "axes"))
    return y


class _Plan:
    """A ConvTranspose over planes, of one group.

    Attributes:
        step: The stride along both axes.
    """

    def __init__(self, draft: Draft, node: gs.Node) -> None:
        if draft.facts.of(node.inputs[0]).rank != _PLANES:
            raise Refused("it is not over planes")
        if attribute_of(node, "auto_pad") not in (None, "NOTSET") or node.attrs.get("output_shape"):
            raise Refused("its pads are worked out of its lengths")
        if (attribute_of(node, "group") or 1) != 1:
            raise Refused("it is of several groups")
        strides = [int(n) for n in node.attrs.get("strides") or [1, 1]]
        if len(set(strides)) > 1:
            raise Refused("its strides are not one")
        self.step = strides[0]
        self._dilations = [int(n) for n in node.attrs.get("dilations") or [1, 1]]
        self._pads = [int(n) for n in node.attrs.get("pads") or [0] * 4]
        self._more = [int(n) for n in node.attrs.get("output_padding") or [0, 0]]
        self._lengths: tuple[int, ...] = ()

    def kernel(self, weight: parts.Array) -> parts.Array:
        """The weight of the convolution: for each element of a block, then each channel."""
        wide = _widened(weight, self._dilations)
        self._lengths = wide.shape[2:]
        over = [(0, -length % self.step) for length in self._lengths]
        wide = np.pad(wide, [(0, 0), (0, 0), *over])
        into, out, height, width = wide.shape
        step = self.step
        apart = wide.reshape(into, out, height // step, step, width // step, step)
        apart = apart.transpose(3, 5, 1, 0, 2, 4)[..., ::-1, ::-1]
        made = apart.reshape(step * step * out, into, height // step, width // step)
        if made.size > _LARGEST_KERNEL:
            raise Refused("its kernel would be very large")
        return np.ascontiguousarray(made)

    def pads_of_conv(self, taps: Sequence[int]) -> list[int]:
        """Pads of the convolution where there are no strides."""
        front = [t - p for t, p in zip(taps, self._pads[:2], strict=True)]
        ends = zip(taps, self._pads[2:], self._more, strict=True)
        pads = [*front, *(t - p + m for t, p, m in ends)]
        if min(pads) < 0:
            raise Refused("its pads are wider than its kernel")
        return pads

    def cut(self, taps: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        """Starts, ends and axes of what is left of all blocks."""
        found: list[Any] = []
        for axis, tap in enumerate(taps):
            start = self._pads[axis]
            over = self.step * (tap + 1) - self._lengths[axis]
            over += self._pads[axis + 2] - self._more[axis]
            if over < 0:
                raise Refused("its output has more behind than its kernel reaches")
            if start or over:
                found.append((start, -over if over else LARGEST, axis + 2))
        starts, ends, axes = (list(n) for n in zip(*found, strict=True)) if found else ([], [], [])
        return starts, ends, axes
