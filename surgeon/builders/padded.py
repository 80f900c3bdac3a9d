"""What a Pad puts around the input of a window, put into the window's own pads.

Conv puts zeros around, ConvInteger zero points, MaxPool what is less than any number; AveragePool
zeros, where it counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.linear import array_of
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_MOST_READERS = 16  # of a Pad, each of which looks at all
_WINDOWS = frozenset({"AveragePool", "Conv", "ConvInteger", "MaxPool"})


def pad_into_window(draft: Draft, match: Match) -> gs.Tensor:
    """y = Conv, ConvInteger or a pool of what it would put around x itself: into its own pads.

    A Pad that several read goes into each of them, or stays.
    """
    node = match.root
    padded: gs.Tensor = node.inputs[0]
    if draft.surgery.is_output(padded):
        raise Refused("the Pad gives an output")
    if len(padded.outputs) > _MOST_READERS:
        raise Refused(f"more than {_MOST_READERS} read the Pad")
    for reader in padded.outputs:
        if reader.op not in _WINDOWS or (reader.domain or "") not in STANDARD:
            raise Refused(f"{reader.op} reads the Pad too")
        if reader.inputs[0] is not padded or any(t is padded for t in reader.inputs[1:]):
            raise Refused("another operand is the Pad too")
        if reader is not node:
            _padded(draft, reader)
    pad: gs.Node = padded.inputs[0]
    return draft.op(node.op, pad.inputs[0], *node.inputs[1:], **_padded(draft, node))


def _padded(draft: Draft, node: gs.Node) -> dict[str, Any]:
    """The attributes of an operator with the Pad in front of it taken in.

    An AveragePool counts the zeros of a Pad, so it must count its own: where it counts them
    already, or has none of its own.

    Raises:
        Refused: It cannot take the Pad.
    """
    pad: gs.Node = node.inputs[0].inputs[0]
    rank = draft.facts.of(pad.inputs[0]).rank
    if rank is None:
        raise Refused("its rank is not known")
    _check_value(draft, pad, node)
    sides = sides_of(draft, pad, rank)
    if any(sides[axis] or sides[axis + rank] for axis in (0, 1)):
        raise Refused("the Pad adds samples or channels")
    if min(sides) < 0:
        raise Refused("the Pad takes elements away")
    own = told_pads(node, rank - 2)
    if own is None:
        raise Refused("its own pads depend on the size of its input")
    added = [*sides[2:rank], *sides[rank + 2 :]]
    attributes = {k: v for k, v in node.attrs.items() if k != "auto_pad"}
    attributes["pads"] = [a + b for a, b in zip(own, added, strict=True)]
    if node.op in ("AveragePool", "MaxPool"):
        _check_pool(draft, node, attributes["pads"])
    if node.op == "AveragePool":
        if any(own) and not attribute_of(node, "count_include_pad"):
            raise Refused("it leaves its own pads out of the mean, and would have to count the Pad")
        attributes["count_include_pad"] = 1
    return attributes


def told_pads(node: gs.Node, count: int) -> list[int] | None:
    """The pads of a window along so many axes; None where they are worked out of its input.

    A window that says VALID has none, whatever else it says.
    """
    told = attribute_of(node, "auto_pad") or "NOTSET"
    if told not in ("NOTSET", "VALID", b"NOTSET", b"VALID"):
        return None
    pads = attribute_of(node, "pads") if told in ("NOTSET", b"NOTSET") else None
    return [int(n) for n in pads or [0] * (2 * count)]


def _check_pool(draft: Draft, node: gs.Node, pads: Sequence[int]) -> None:
    """That a pool may have these pads.

    Raises:
        Refused: Which windows it has would be others, or runtimes would not take it.
    """
    if attribute_of(node, "ceil_mode"):
        raise Refused("with `ceil_mode` its last window depends on where the input ends")
    if any(n != 1 for n in attribute_of(node, "dilations") or ()):
        raise Refused("with `dilations` runtimes do not agree on what is counted")
    reach = [int(n) for n in attribute_of(node, "kernel_shape")] * 2
    if any(n >= size for n, size in zip(pads, reach, strict=True)):
        raise Refused("runtimes want pads that are smaller than the window")
    if any(t.outputs or draft.surgery.is_output(t) for t in node.outputs[1:]):
        raise Refused("the places that it gives are those of what the Pad gives")


def _check_value(draft: Draft, pad: gs.Node, node: gs.Node) -> None:
    """That a Pad adds what the operator behind it puts around its input itself.

    Raises:
        Refused: It adds other values.
    """
    if (attribute_of(pad, "mode") or "constant") not in ("constant", b"constant"):
        raise Refused("the Pad adds no constant value")
    given = len(pad.inputs) > 2 and not pad.inputs[2].is_empty()
    value = array_of(draft, pad, 2) if given else np.zeros(1, _kind(draft, pad.inputs[0]))
    if value is None or value.size != 1 or value.dtype.kind not in "iuf":
        raise Refused("what the Pad adds is computed at run time, or no number")
    if node.op == "MaxPool":
        least = -np.inf if value.dtype.kind == "f" else np.iinfo(value.dtype).min
        covered = value.item() == 0 and draft.facts.of(pad.inputs[0]).not_negative
        if value.item() != least and not covered:
            raise Refused("the Pad may add what is not the least")
    elif node.op == "ConvInteger" and len(node.inputs) > 2 and not node.inputs[2].is_empty():
        zero = array_of(draft, node, 2)
        if zero is None or zero.size != 1 or zero.item() != value.item():
            raise Refused("the Pad may add another number than the zero point")
    elif value.item() != 0:
        raise Refused("the Pad adds no zeros")


def _kind(draft: Draft, tensor: gs.Tensor) -> np.dtype[Any]:
    dtype = draft.facts.of(tensor).dtype
    if not dtype:
        raise Refused("its dtype is not known")
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(dtype))


def sides_of(draft: Draft, pad: gs.Node, rank: int) -> list[int]:
    """The pads of a Pad, of all axes: starts, then ends.

    Raises:
        Refused: How many they are is known at run time only.
    """
    pads = array_of(draft, pad, 1)
    if pads is None:
        raise Refused("the pads are computed at run time")
    axes: list[int] = list(range(rank))
    if len(pad.inputs) > 3 and not pad.inputs[3].is_empty():
        given = array_of(draft, pad, 3)
        if given is None:
            raise Refused("the axes of the Pad are computed at run time")
        axes = [int(n) % rank for n in given.reshape(-1)]
    sides = [0] * (2 * rank)
    for index, axis in enumerate(axes):
        sides[axis] = int(pads.reshape(-1)[index])
        sides[axis + rank] = int(pads.reshape(-1)[index + len(axes)])
    return sides
