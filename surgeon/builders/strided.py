"""Every so-many-th row and column, joined as channels and summed over: one window with strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import operand
from surgeon.builders.own_constants import own_weight
from surgeon.builders.padded import told_pads
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused

_FAR = (1 << 31) - 1  # an end that is as good as none, as PyTorch and others write it
_MOST = 16  # pieces that are looked at


def strided_into_window(draft: Draft, match: Match) -> gs.Tensor:
    """y = Conv of the first rows, the second ones and so on, as a Conv of all with strides.

    The pieces have one size only where there are as many of each, so where rows and columns are a
    multiple of the strides, and the windows are as many.
    """
    node, joined = match.root, match.nodes[1]
    found = [_piece(draft, tensor) for tensor in joined.inputs[: _MOST + 1]]
    x, firsts, steps = found[0][0], [first for _, first, _ in found], found[0][2]
    if any(other is not x or step != steps for other, _, step in found):
        raise Refused("its operands are no pieces of one value by the same steps")
    weight, shape = own_weight(draft, node), draft.facts.of(x).shape
    if shape is None or len(shape) != weight.ndim or steps[:2] != [1, 1]:
        raise Refused("its pieces are not cut of rows and columns")
    steps, channels = steps[2:], shape[1]
    if not isinstance(channels, int) or int(attribute_of(node, "group")) != 1:
        raise Refused("it has groups, or how many channels there are is not known")
    if sorted(tuple(first[2:]) for first in firsts) != list(product(*map(range, steps))):
        raise Refused("its operands are not all the pieces, each once")
    if any(isinstance(n, int) and n % step for n, step in zip(shape[2:], steps, strict=True)):
        raise Refused("its pieces have several sizes")
    if any(n != 1 for n in attribute_of(node, "dilations") or ()):
        raise Refused("with `dilations` its window has holes of several sizes")
    pads = told_pads(node, len(steps))
    if pads is None:
        raise Refused("its own pads depend on the size of its input")
    if weight.shape[1] != channels * len(firsts):
        raise Refused("its weight has other channels")
    made = np.zeros((weight.shape[0], channels, *_times(weight.shape[2:], steps)), weight.dtype)
    for index, first in enumerate(firsts):
        places = tuple(
            slice(start, None, step) for start, step in zip(first[2:], steps, strict=True)
        )
        made[:, :, *places] = weight[:, index * channels : (index + 1) * channels]
    attributes = {k: v for k, v in node.attrs.items() if k not in ("auto_pad", "dilations")}
    attributes["kernel_shape"] = list(made.shape[2:])
    attributes["pads"] = _times(pads, [*steps, *steps])
    attributes["strides"] = _times(attribute_of(node, "strides") or [1] * len(steps), steps)
    operands = [x, draft.constant(made, "weight"), *node.inputs[2:]]
    y: gs.Tensor = draft.op("Conv", *operands, **attributes)
    return y


def _times(numbers: Sequence[int], steps: Sequence[int]) -> list[int]:
    return [int(n) * step for n, step in zip(numbers, steps, strict=True)]


def _piece(draft: Draft, tensor: gs.Tensor) -> tuple[gs.Tensor, list[int], list[int]]:
    """What a piece is cut of, where it begins along each axis, and by which steps.

    Raises:
        Refused: It is no such piece.
    """
    rank = draft.facts.of(tensor).rank
    node = producer_of(tensor)
    if rank is None or node is None or node.op != "Slice":
        raise Refused("not all its operands are pieces by steps")
    first, steps = [0] * rank, [1] * rank
    while node is not None and node.op == "Slice" and draft.holds(node):
        given = [operand(node, index) for index in range(1, 5)]
        arrays = [None if t is None else draft.facts.array(t) for t in given]
        if any(array is None for array in arrays):
            raise Refused("a piece has no steps, or is cut at run time")
        whole = draft.facts.of(node.inputs[0]).shape or ()
        rows = zip(
            *(array.reshape(-1).tolist() for array in arrays if array is not None), strict=True
        )
        for start, end, axis, step in rows:
            if steps[axis % rank] != 1 or not 0 <= start < step:
                raise Refused("a piece does not take every so-many-th place")
            length = whole[axis % rank] if whole else None
            if end < (length if isinstance(length, int) else _FAR):
                raise Refused("a piece ends before the value does")
            first[axis % rank], steps[axis % rank] = start, step
        tensor = node.inputs[0]
        if math.prod(steps) > _MOST:
            raise Refused("its steps are long")
        node = producer_of(tensor)
    return tensor, first, steps
