"""Constants beside what is computed, that may be written anew: weights, and operands of sums."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import onnx_graphsurgeon as gs

from surgeon.facts.fact import same_dims
from surgeon.rewrite import Draft, Refused

Array = npt.NDArray[Any]
_LARGEST_TWICE = 1 << 18  # bytes of a weight that may stand in a file once more to save a node
_LARGEST_OUTSIDE = 1 << 22  # bytes of external data that are written anew to save a node


def operand_behind(
    draft: Draft, made: gs.Tensor, other: gs.Tensor, result: gs.Tensor, what: str
) -> Array:
    """The constant that is added to `made`, or multiplied with it, with as many axes as it has.

    Args:
        draft: Where what is known of the values is asked.
        made: The other operand.
        other: The constant.
        result: What both make.
        what: What a refusal calls the constant.

    Raises:
        Refused: It is no constant, or makes the result larger than `made` is.
    """
    array, shape = draft.facts.array(other), draft.facts.of(made).shape
    if array is None or shape is None:
        raise Refused(f"{what} is computed at run time, or its shape is not known")
    if not same_dims(shape, draft.facts.of(result).shape):
        raise Refused(f"{what} makes the result larger")
    return array.reshape([1] * (len(shape) - array.ndim) + list(array.shape))


def one_a_channel(wide: Array, what: str) -> Array:
    """What stands along axis 1 alone, as [1] or [channels].

    Raises:
        Refused: It is more than one number a channel.
    """
    if any(n != 1 for axis, n in enumerate(wide.shape) if axis != 1):
        raise Refused(f"{what} is more than one number a channel")
    return wide.reshape(-1)


def own_weight(draft: Draft, node: gs.Node, index: int = 1) -> Array:
    """A constant weight that may be written anew.

    Raises:
        Refused: It is computed; or is large and has another reader, so that it would be there
            twice; or is much external data.
    """
    outside = draft.facts.model.bytes_outside(node.inputs[index])
    if outside > _LARGEST_OUTSIDE:
        raise Refused(f"its weight is {outside >> 20} MiB of external data, which stay")
    weight = draft.facts.array(node.inputs[index])
    if weight is None:
        raise Refused("its weight is computed at run time")
    if len(node.inputs[index].outputs) != 1 and weight.nbytes > _LARGEST_TWICE:
        raise Refused("its weight is read elsewhere too, and would be there twice")
    return weight
