"""Operators that few runtimes have, or have with few of their attributes, in common ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders import own_constants, parts
from surgeon.builders.aten_linalg.solving import determinants
from surgeon.builders.aten_math.bits import bit_by_bit, opposite_bits
from surgeon.builders.aten_math.work import INT32, INT64, Work
from surgeon.builders.aten_nn.grids import affine_grid, gathered_samples
from surgeon.builders.aten_nn.pools import found_in_windows, largest_gathered
from surgeon.builders.bench import Bench, dim_of
from surgeon.builders.windows import Window
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_LOGIC = {"BitwiseAnd": "And", "BitwiseOr": "Or", "BitwiseXor": "Xor"}
_LARGEST_WINDOW = 1 << 10  # elements of a window whose greatest is looked up
_LARGEST_KERNEL = 1 << 22  # elements of a weight with zeros between


def det_as_pivots(draft: Draft, match: Match) -> gs.Tensor:
    """Det, by elimination."""
    return determinants(Bench(draft), match.root.inputs[0])


def bits_as_sums(draft: Draft, match: Match) -> gs.Tensor:
    """BitwiseAnd, BitwiseOr, BitwiseXor or BitwiseNot of int32 and int64."""
    work, node = Work(draft, match.root), match.root
    dtype = work.dtype(node.inputs[0])
    if dtype not in (INT32, INT64):
        raise Refused("runtimes that have its dtype have its operator too")
    if node.op == "BitwiseNot":
        return opposite_bits(work, node.inputs[0], dtype)
    a, b = node.inputs
    return bit_by_bit(work, _LOGIC[node.op], a, b, dtype)


def compress_as_gather(draft: Draft, match: Match) -> gs.Tensor:
    """Compress as a Gather of the places where its condition holds."""
    c, node = Bench(draft), match.root
    data, condition = node.inputs
    axis = attribute_of(node, "axis")
    if axis is None:
        data, axis = c.flat(data), 0
    told, length = dim_of(c.size(condition, 0)), c.size(data, int(axis))
    held = dim_of(length)
    if told is None or held is None or dims.at_most(told, held) is not True:
        condition = c.slice(condition, 0, 0, length)  # onnxruntime reads no further
    places = c.squeeze(c.op("NonZero", condition), [0])
    made: gs.Tensor = c.op("Gather", data, places, axis=int(axis))
    return made


def line_as_row(draft: Draft, match: Match) -> gs.Tensor:
    """ArgMax, ArgMin, Hardmax, LogSoftmax or Softmax of a tensor of one axis, as that of a row."""
    c, node = Bench(draft), match.root
    attributes = {**node.attrs, "axis": 1}
    place = node.op in ("ArgMax", "ArgMin")
    if place:
        attributes["keepdims"] = 0
    made: gs.Tensor = c.op(node.op, c.unsqueeze(node.inputs[0], [0]), **attributes)
    return made if place and node.attrs.get("keepdims", 1) else c.squeeze(made, [0])


def kernel_with_zeros(draft: Draft, match: Match) -> gs.Tensor:
    """A ConvTranspose with strides and dilations as one whose kernel has zeros between."""
    node = match.root
    attributes = dict(node.attrs)
    dilations = [int(n) for n in attributes.pop("dilations", None) or [1]]
    strides = [int(n) for n in attributes.get("strides") or [1]]
    if max(dilations) == 1 or max(strides) == 1:
        raise Refused("it does not have both strides and dilations")
    weight = own_constants.own_weight(draft, node)
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, weight.shape[2:], strict=True)]
    wide = np.zeros((*weight.shape[:2], *reach), weight.dtype)
    if wide.size > _LARGEST_KERNEL:
        raise Refused("its kernel would be very large")
    apart = [slice(None, None, d) for d in dilations]
    wide[(slice(None), slice(None), *apart)] = weight
    x, _, *bias = node.inputs
    attributes["kernel_shape"] = reach
    y: gs.Tensor = draft.op("ConvTranspose", x, draft.constant(wide, "kernel"), *bias, **attributes)
    return y


def max_pool_gathered(draft: Draft, match: Match) -> Any:
    """A MaxPool with dilations, or of which the places are read: its windows side by side."""
    node = match.root
    x = node.inputs[0]
    if draft.facts.of(x).dtype not in FLOATS:
        raise Refused("its input is not of floats")
    if attribute_of(node, "storage_order"):
        raise Refused("its places count along columns")
    windows, lengths = _windows(draft, node), parts.lengths_of(draft, x, parts.rank_of(draft, x))
    if not any(output.name for output in node.outputs[1:]):
        if all(window.dilation == 1 for window in windows):
            raise Refused("it has no dilations")
        return largest_gathered(draft, x, windows, lengths[2:])
    if np.prod([window.kernel for window in windows]) > _LARGEST_WINDOW:
        raise Refused("its windows are very large")
    known = [length.static for length in lengths if length.static is not None]
    if len(known) < len(lengths):
        raise Refused("its places count from the first element of all, and a size is not known")
    y, places = found_in_windows(draft, x, windows, lengths[2:], batched=True)
    planes = np.arange(known[0] * known[1], dtype=np.int64) * int(np.prod(known[2:]))
    start = draft.constant(planes.reshape(*known[:2], *[1] * len(windows)), "planes")
    return y, draft.op("Add", places, start)


def _windows(draft: Draft, node: gs.Node) -> list[Window]:
    """The windows of a MaxPool along each axis, which make the output that is known.

    Raises:
        Refused: Its pads are worked out of its lengths, or ONNX counts its windows otherwise.
    """
    if attribute_of(node, "auto_pad") not in (None, "NOTSET"):
        raise Refused("its pads are worked out of its lengths")
    kernel = [int(k) for k in attribute_of(node, "kernel_shape")]
    ones = [1] * len(kernel)
    strides, dilations = (
        [int(n) for n in attribute_of(node, key) or ones] for key in ("strides", "dilations")
    )
    pads = [int(n) for n in attribute_of(node, "pads") or [0, 0] * len(kernel)]
    ceil = bool(attribute_of(node, "ceil_mode"))
    windows = [
        Window(k, s, front, d, ceil, behind)
        for k, s, d, front, behind in zip(
            kernel, strides, dilations, pads[: len(kernel)], pads[len(kernel) :], strict=True
        )
    ]
    shapes = [draft.facts.of(t).shape for t in (node.inputs[0], node.outputs[0])]
    for window, *ends in zip(windows, *((shape or ())[2:] for shape in shapes), strict=False):
        if not all(isinstance(n, int) for n in ends):
            fits = window.stride == 1 or window.pads >= window.reach - 1
            if window.ceil or not (window.always_reads and fits):
                raise Refused("its lengths are known at run time only, and a window may not fit")
        elif window.count(ends[0]) != ends[1]:
            raise Refused("its last window begins in the padding")
    return windows


def celu_as_elu(draft: Draft, match: Match) -> gs.Tensor:
    """Celu: Elu of how many times `alpha` a number is, so many times."""
    c, node = Bench(draft), match.root
    x, alpha = node.inputs[0], attribute_of(node, "alpha")
    if alpha is not None and not alpha > 0:  # below 0 its two parts overlap, and Elu's do not
        raise Refused("nothing is measured in an `alpha` of 0 or less")
    if alpha is None or alpha == 1:
        y: gs.Tensor = c.op("Elu", x, alpha=1.0)
    else:
        factor = c.number(alpha, c.dtype(x))
        y = c.op("Mul", c.op("Elu", c.op("Div", x, factor), alpha=1.0), factor)
    return y


def affine_grid_as_products(draft: Draft, match: Match) -> gs.Tensor:
    """AffineGrid of planes and volumes, of a size that is known."""
    node = match.root
    size = draft.facts.array(node.inputs[1])
    if size is None:
        raise Refused("its size is known at run time only")
    corners = bool(attribute_of(node, "align_corners"))
    if corners and 1 in size[2:]:
        raise Refused("of one point there are no corners to align")
    lengths = [parts.constant_length(draft, int(n)) for n in size[2:]]
    return affine_grid(draft, node.inputs[0], lengths, corners=corners)


def grid_sample_as_gathers(draft: Draft, match: Match) -> gs.Tensor:
    """GridSample of planes and volumes, as the elements around each point and their shares."""
    node = match.root
    mode = attribute_of(node, "mode")
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    padding, corners = attribute_of(node, "padding_mode"), bool(attribute_of(node, "align_corners"))
    if mode == "nearest" and padding == "reflection" and not corners:
        raise Refused("it rounds to a sample before it reflects, and the samples lie apart")
    x, grid = node.inputs
    return gathered_samples(draft, x, grid, mode, padding, corners=corners)
