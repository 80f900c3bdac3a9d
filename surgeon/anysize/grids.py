"""Constants that are as long as a size, for any."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.anysize.sizes import Sizes, told
from surgeon.dims import Dim
from surgeon.frozen import Frozen
from surgeon.rewrite import Draft


def for_any(
    sizes: Sizes, draft: Draft, tensor: gs.Tensor, array: np.ndarray, axis: int, dim: Dim
) -> gs.Tensor:
    """A constant that is broadcast against a length, for any.

    Args:
        sizes: The graph.
        draft: Takes the nodes.
        tensor: The constant.
        array: Its value.
        axis: Counted from the back.
        dim: What it is as long as.

    Raises:
        Frozen: It is none that is known for other sizes.
    """
    first = array.take([0], axis)
    if sizes.number(dim) == array.shape[axis] and np.array_equal(
        array, np.broadcast_to(first, array.shape), equal_nan=array.dtype.kind == "f"
    ):
        return draft.constant(first, "one")
    raise Frozen(
        f"{sizes.title(tensor)} has {array.shape[axis]} elements along {told(sizes, dim)}"
    )
