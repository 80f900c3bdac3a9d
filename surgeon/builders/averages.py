"""Sums and means as products with ones: AveragePool by a convolution, ReduceSum by a MatMul."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.spelled import axes_of
from surgeon.dims import Dim
from surgeon.facts.fact import Array
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_LARGEST_KERNEL = 1 << 20  # elements of the weight
_WIDE = (TYPE.FLOAT, TYPE.DOUBLE)
_MATRIX = 2  # axes


def average_pool_as_conv(draft: Draft, match: Match) -> gs.Tensor:
    """AveragePool: the sums of its windows, by a kernel of ones, times one by how many they add."""
    c, node = Bench(draft), match.root
    x, kernel = node.inputs[0], [int(n) for n in attribute_of(node, "kernel_shape")]
    ones = [1] * len(kernel)
    strides, steps = (
        [int(n) for n in attribute_of(node, key) or ones] for key in ("strides", "dilations")
    )
    pads = [int(n) for n in attribute_of(node, "pads") or [0, 0] * len(kernel)]
    shape, channels = c.shape(x), c.size(x, 1)
    if c.dtype(x) != TYPE.FLOAT or shape is None or len(shape) != len(kernel) + 2:
        raise Refused("its input is not in single precision, or has no batch")
    if not isinstance(channels, int) or channels < 1:
        raise Refused("how many channels it has is known at run time only")
    if channels * int(np.prod(kernel)) > _LARGEST_KERNEL:
        raise Refused("its kernel would be very large")
    if attribute_of(node, "auto_pad") not in (None, "NOTSET"):
        raise Refused("its pads are worked out of its lengths; `stated-attributes` says them")
    reach = [d * (k - 1) + 1 for d, k in zip(steps, kernel, strict=True)]
    around = list(zip(pads[: len(kernel)], pads[len(kernel) :], strict=True))
    for length, far, beside in zip(shape[2:], reach, around, strict=True):
        least = length if isinstance(length, int) else dims.bounds(length)[0] or 0
        if least + sum(beside) < far:  # where a pool gives nothing, and a Conv fails
            raise Refused(f"a window may be longer than {length} elements; see `--assume`")
    if attribute_of(node, "ceil_mode"):
        made = draft.facts.of(node.outputs[0]).shape
        _hangs_over(shape[2:], None if made is None else made[2:], reach, strides, around)
    share: Array = np.full((), 1 / np.prod(kernel))
    if any(pads) and not attribute_of(node, "count_include_pad"):
        share = np.ones(())
        for axis, length in enumerate(shape[2:]):
            if not isinstance(length, int):
                raise Refused("how much of a window is padding is known at run time only")
            places = np.arange(-around[axis][0], length + sum(around[axis]) - around[axis][0])
            first = places[: len(places) - reach[axis] + 1 : strides[axis]].reshape(-1, 1)
            taps = first + np.arange(kernel[axis]) * steps[axis]
            count = ((taps >= 0) & (taps < length)).sum(1)
            if not count.all():
                raise Refused("a window lies in the padding alone")
            share = share[..., None] / count
        share = share[None]
    weight = draft.constant(np.ones((channels, 1, *kernel), np.float32), "ones")
    total = c.op(
        "Conv",
        x,
        weight,
        group=channels,
        kernel_shape=kernel,
        strides=strides,
        pads=pads,
        dilations=steps,
    )
    made_of: gs.Tensor = c.op("Mul", total, draft.constant(share.astype(np.float32), "share"))
    return made_of


def _hangs_over(
    lengths: Sequence[Dim],
    made: Sequence[Dim] | None,
    reach: list[int],
    strides: list[int],
    pads: list[tuple[int, int]],
) -> None:
    """Check that no window ends behind the padding.

    Raises:
        Refused: One does, or may.
    """
    for axis, length in enumerate(lengths):
        found = None if made is None else made[axis]
        if not isinstance(length, int) or found != (
            (length + sum(pads[axis]) - reach[axis]) // strides[axis] + 1
        ):
            raise Refused("its last window ends behind the padding, or may")


def sum_as_product(draft: Draft, match: Match) -> gs.Tensor:
    """ReduceSum or ReduceMean along axes of known lengths: products with ones, axis by axis."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    rank, dtype = c.rank(x), c.dtype(x)
    if dtype not in _WIDE or rank < _MATRIX:
        raise Refused("it is not of floats, or no matrix")
    axes = axes_of(c, node)
    lengths = [c.size(x, axis) for axis in axes]
    known = [length for length in lengths if isinstance(length, int)]
    if len(known) < len(lengths) or not 0 < int(np.prod(known)) <= _LARGEST_KERNEL:
        raise Refused("how many it adds up is known at run time only")
    for axis, length in zip(axes[::-1], known[::-1], strict=True):
        x = _added_up(c, x, axis, length)
    if node.op == "ReduceMean":
        x = c.op("Mul", x, c.number(1 / np.prod(known), dtype))
    return x if attribute_of(node, "keepdims") != 0 else c.squeeze(x, axes)


def _added_up(c: Bench, x: gs.Tensor, axis: int, length: int) -> gs.Tensor:
    """The sum along an axis, which is 1 long then."""
    rank, dtype = c.rank(x), c.dtype(x)
    if length == 1:
        return x
    if axis == rank - 2:
        row: gs.Tensor = c.op("MatMul", _ones(c, (1, length), dtype), x)
        return row
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    total = c.op("MatMul", c.permute(x, perm), _ones(c, (length, 1), dtype))
    return c.permute(total, perm)


def _ones(c: Bench, shape: tuple[int, int], dtype: int) -> gs.Tensor:
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    return c.draft.constant(np.ones(shape, kind), "ones")
