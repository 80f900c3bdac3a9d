"""What goes along lines as what goes over planes of one row, and volumes as planes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_LINES = 3  # the rank of lines: batch, channels, length
_VOLUMES = 5
_ROW = 2  # where the new axis is put
_OF_ROW = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_padding": 0}
_MODES = ("nearest", "linear")


def lines_as_planes(draft: Draft, match: Match) -> gs.Tensor:
    """A convolution, pool or normalisation along lines, as one over planes of one row."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    if c.rank(x) != _LINES:
        raise Refused("it is not along lines")
    attributes = {key: _of_plane(key, value) for key, value in node.attrs.items()}
    rest = list(node.inputs[1:])
    if node.op in ("Conv", "ConvTranspose"):
        weight = draft.facts.array(rest[0])
        if weight is None:
            raise Refused("its weight is computed")
        rest[0] = draft.constant(np.expand_dims(weight, _ROW), "kernel")
    plane = c.unsqueeze(x, [_ROW])
    return c.squeeze(c.op(node.op, plane, *rest, **attributes), [_ROW])


def _of_plane(key: str, value: Any) -> Any:
    """An attribute of lines, as that of planes of one row.

    Raises:
        Refused: It says what is known of the output alone.
    """
    if key == "output_shape" and value:
        raise Refused("its pads are worked out of its lengths")
    return _along((None, 0), 1, key, value)


def resized_lines_as_planes(draft: Draft, match: Match) -> gs.Tensor:
    """A Resize of lines by constants, as one of planes of one row, which stays one."""
    c, node = Bench(draft), match.root
    x = node.inputs[0]
    if c.rank(x) != _LINES:
        raise Refused("it is not along lines")
    if attribute_of(node, "axes") or attribute_of(node, "antialias"):
        raise Refused("it names axes, or filters")
    if attribute_of(node, "keep_aspect_ratio_policy") not in (None, "stretch"):
        raise Refused("its lengths depend on one another")
    if attribute_of(node, "mode") not in (None, *_MODES):
        raise Refused("it is neither by nearest elements nor linear")
    if attribute_of(node, "coordinate_transformation_mode") == "tf_crop_and_resize":
        raise Refused("it crops")
    given = [(n, t) for n, t in enumerate(node.inputs) if n > 1 and not t.is_empty()]
    filled = [(n, t) for n, t in given if 0 not in (draft.facts.of(t).shape or ())]
    if len(filled) != 1:
        raise Refused("it does not have one list of scales or lengths")
    ((place, tensor),) = filled
    numbers = draft.facts.array(tensor)
    if numbers is None or numbers.shape != (_LINES,):
        raise Refused("its scales or lengths are computed at run time")
    if attribute_of(node, "mode") == "linear" and not _keeps_others(draft, x, numbers):
        raise Refused("it is linear along the batch or the channels too")
    of_plane = draft.constant(np.insert(numbers, _ROW, numbers.dtype.type(1)), "of_plane")
    # opset 11 wants what says nothing, the part that is cut to and the scales, as empty ones
    operands = [
        None if node.inputs[index].is_empty() else draft.constant(np.zeros(0, np.float32), "none")
        for index in range(1, place)
    ] + [of_plane]
    plane = c.unsqueeze(x, [_ROW])
    return c.squeeze(c.op("Resize", plane, *operands, **node.attrs), [_ROW])


def _keeps_others(draft: Draft, x: gs.Tensor, numbers: np.ndarray[Any, Any]) -> bool:
    """Whether batch and channels stay as many, as far as that is known."""
    if numbers.dtype.kind == "f":
        return bool((numbers[:_ROW] == 1).all())
    shape = draft.facts.of(x).shape or ()
    told = zip(shape[:_ROW], numbers[:_ROW].tolist(), strict=False)
    return all(not isinstance(size, int) or size == wanted for size, wanted in told)


def volume_pool_as_planes(draft: Draft, match: Match) -> gs.Tensor:
    """A MaxPool of volumes, as one of their planes and one along their depth."""
    c, node = Bench(draft), match.root
    x, attributes = node.inputs[0], dict(node.attrs)
    if c.rank(x) != _VOLUMES:
        raise Refused("it is not of volumes")
    if any(output.name for output in node.outputs[1:]):
        raise Refused("its places are read")
    if attribute_of(node, "auto_pad") not in (None, "NOTSET"):
        raise Refused("its pads are worked out of its lengths")
    batch, channels, depth, *plane = c.sizes(x)
    shape = draft.facts.of(node.outputs[0]).shape
    lengths = [n for n in (shape or ())[2:] if isinstance(n, int)]
    if len(lengths) != _VOLUMES - 2 or not all(isinstance(n, int) for n in (depth, *plane)):
        raise Refused("a length is known at run time only")
    planes = c.reshape(x, [batch, c.mul(channels, depth), *plane])
    for axes, wanted in (
        ((1, 2), [batch, channels, depth, c.mul(lengths[1], lengths[2])]),
        ((0, None), [batch, channels, *lengths]),
    ):
        kept = {key: _along(axes, 3, key, value) for key, value in attributes.items()}
        planes = c.reshape(c.op("MaxPool", planes, **kept), wanted)
    return planes


def _along(axes: tuple[int | None, int | None], of: int, key: str, value: Any) -> Any:
    """An attribute of what goes along so many axes, as that along two; None is a new one."""
    if key == "pads" and value:
        ends = np.reshape(value, (2, of)).tolist()
        return [0 if axis is None else end[axis] for end in ends for axis in axes]
    if key in _OF_ROW and value:
        return [_OF_ROW[key] if axis is None else value[axis] for axis in axes]
    return value
