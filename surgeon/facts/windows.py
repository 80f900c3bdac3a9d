"""Output shapes of convolutions, pools and resizing, from ONNX's specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surgeon import dims
from surgeon.dims import Dim
from surgeon.facts.question import Function, Question, Shape


def window(
    size: Dim,
    kernel: Dim,
    stride: int,
    dilation: int,
    pads: tuple[int, int],
    *,
    ceil: bool = False,
    every: bool = False,
) -> Dim:
    """How many windows fit: floor or ceil of (size + pads - (dilation*(kernel-1)+1)) / stride + 1.

    With `ceil`, a window that would begin in the padding behind the input is left out, as
    onnxruntime and PyTorch do; with `every` it counts.
    """
    room = size + (pads[0] + pads[1]) - dilation * (kernel - 1) - 1
    if not ceil and not every:
        return room // stride + 1
    count = (room + stride - 1) // stride + 1
    if every:
        return count
    begin_inside = dims.at_most((count - 1) * stride + 1, size + pads[0])
    return (
        count
        if begin_inside
        else room // stride + 1
        if begin_inside is False
        else dims.minimum(count, (size + pads[0] - 1) // stride + 1)
    )


def _pads(attributes: Mapping[str, Any], axis: int, rank: int) -> tuple[int, int] | None:
    """The padding of one axis; None for SAME, which gives the sizes themselves."""
    auto = attributes.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        return None
    if auto == "VALID":
        return (0, 0)
    pads = attributes.get("pads") or [0] * (2 * rank)
    return int(pads[axis]), int(pads[axis + rank])


def _spatial(question: Question, shape: Shape, kernel: Sequence[Dim]) -> list[Dim]:
    attributes, rank = question.attributes, len(kernel)
    strides = attributes.get("strides") or [1] * rank
    dilations = attributes.get("dilations") or [1] * rank
    out: list[Dim] = []
    for axis in range(rank):
        size = shape[axis + 2]
        pads = _pads(attributes, axis, rank)
        if pads is None:
            out.append((size + strides[axis] - 1) // strides[axis])
        else:
            ceil = bool(attributes.get("ceil_mode", 0))
            told = size, kernel[axis], strides[axis], dilations[axis], pads
            count = window(*told, ceil=ceil)
            # onnx's inference counts a window that would begin in the padding, and a runtime that
            # asks it loads nothing that rests on the right number.
            disputed = ceil and isinstance(size, int) and count != window(*told, every=True)
            # onnxruntime rounds a window that hangs over the whole input to 0 strides, and has one
            over = isinstance(count, int) and count < 1
            out.append(question.fresh(axis + 2) if disputed or over else count)
    return out


def _conv(question: Question) -> Sequence[Shape | None] | None:
    shape, weight = question.shape(0), question.shape(1)
    if shape is None or weight is None or len(shape) != len(weight) or len(shape) < 3:
        return None
    kernel = question.attributes.get("kernel_shape") or weight[2:]
    return [(shape[0], weight[0], *_spatial(question, shape, kernel))]


def _conv_transpose(question: Question) -> Sequence[Shape | None] | None:
    shape, weight, attributes = question.shape(0), question.shape(1), question.attributes
    if shape is None or weight is None or len(shape) != len(weight) or len(shape) < 3:
        return None
    rank = len(shape) - 2
    channels = weight[1] * attributes.get("group", 1)
    if attributes.get("output_shape"):
        return [(shape[0], channels, *attributes["output_shape"][-rank:])]
    kernel = attributes.get("kernel_shape") or weight[2:]
    strides = attributes.get("strides") or [1] * rank
    dilations = attributes.get("dilations") or [1] * rank
    extra = attributes.get("output_padding") or [0] * rank
    out: list[Dim] = []
    for axis in range(rank):
        size = shape[axis + 2]
        auto = attributes.get("auto_pad", "NOTSET")
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            out.append(size * strides[axis])
            continue
        pads = attributes.get("pads") or [0] * (2 * rank)
        total = 0 if auto == "VALID" else pads[axis] + pads[axis + rank]
        grown = (size - 1) * strides[axis] + extra[axis]
        out.append(grown + (kernel[axis] - 1) * dilations[axis] + 1 - total)
    return [(shape[0], channels, *out)]


def _pool(question: Question) -> Sequence[Shape | None] | None:
    shape, kernel = question.shape(0), question.attributes.get("kernel_shape")
    if shape is None or kernel is None or len(shape) != len(kernel) + 2:
        return None
    result = (shape[0], shape[1], *_spatial(question, shape, kernel))
    return [result] * question.outputs


def _global_pool(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    return None if shape is None else [(*shape[:2], *[1] * (len(shape) - 2))]


def _resize(question: Question) -> Sequence[Shape | None] | None:
    if len(question.inputs) == 2:  # of opset 10
        return _upsample(question)
    shape, sizes, scales = question.shape(0), question.value(3), question.value(2)
    if shape is None or question.attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    axes = question.attributes.get("axes") or list(range(len(shape)))
    out = list(shape)
    if sizes:
        for axis, size in zip(axes, sizes, strict=True):
            out[axis % len(shape)] = size
        return [tuple(out)]
    return _scaled(question, shape, axes, scales)


def _upsample(question: Question) -> Sequence[Shape | None] | None:
    shape, scales = question.shape(0), question.value(1)
    return None if shape is None else _scaled(question, shape, list(range(len(shape))), scales)


def _scaled(
    question: Question, shape: Shape, axes: Sequence[int], scales: list[Any] | None
) -> Sequence[Shape | None] | None:
    if not scales or len(scales) != len(axes):
        return [tuple(question.fresh(i) for i in range(len(shape)))]
    out = list(shape)
    for axis, scale in zip(axes, scales, strict=True):
        size = shape[axis % len(shape)]
        if isinstance(size, int):
            # onnxruntime multiplies in float32 and cuts
            out[axis % len(shape)] = int(np.float32(size) * np.float32(scale))
        elif float(scale).is_integer():
            out[axis % len(shape)] = size * int(scale)
        elif (1 / float(scale)).is_integer():
            out[axis % len(shape)] = size // int(1 / float(scale))
        else:
            out[axis % len(shape)] = question.fresh(axis)
    return [tuple(out)]


def _space_to_depth(question: Question) -> Sequence[Shape | None] | None:
    shape, block = question.shape(0), question.attributes["blocksize"]
    if shape is None or len(shape) != 4:
        return None
    return [(shape[0], shape[1] * block * block, shape[2] // block, shape[3] // block)]


def _depth_to_space(question: Question) -> Sequence[Shape | None] | None:
    shape, block = question.shape(0), question.attributes["blocksize"]
    if shape is None or len(shape) != 4:
        return None
    return [(shape[0], shape[1] // (block * block), shape[2] * block, shape[3] * block)]


FUNCTIONS: Mapping[str, Function] = {
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), _global_pool),
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Resize": _resize,
    "Upsample": _upsample,
    "SpaceToDepth": _space_to_depth,
    "DepthToSpace": _depth_to_space,
}
