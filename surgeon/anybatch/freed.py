"""A model of any batch, and where its items lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import onnx


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
