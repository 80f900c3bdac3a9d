"""A model of any batch, and where its items lie; what the step says where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import onnx

from surgeon import frozen

STEP = "free-batch"


class Freed(NamedTuple):
    """What came of it.

    Attributes:
        model: For any batch.
        name: Of the first dimension.
        size: The batch that the original is for.
        inputs: Those that hold the batch, along their first axis.
        outputs: The axis of the batch of those outputs that hold it.
    """

    model: onnx.ModelProto
    name: str
    size: int
    inputs: tuple[str, ...]
    outputs: Mapping[str, int]


refusal = partial(frozen.refusal, STEP)
