"""How large weights are, and of which types, without looking at their values."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import onnx

from surgeon.stored import bytes_of

_MOST = 5


class Weight(NamedTuple):
    """One initializer.

    Attributes:
        name: Its name.
        dtype: As numpy calls it.
        shape: Its dimensions.
        size: In bytes.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int


class Weights(NamedTuple):
    """The initializers of a model's main graph.

    Attributes:
        size: Of all, in bytes.
        dtypes: Bytes by element type, the most first.
        largest: The few largest, the largest first.
    """

    size: int
    dtypes: Mapping[str, int]
    largest: tuple[Weight, ...]


def weights_of(graph: onnx.GraphProto) -> Weights:
    """What a graph's initializers take, external ones included."""
    sizes: Counter[str] = Counter()
    found = []
    for tensor in graph.initializer:
        size, dtype = bytes_of(tensor), dtype_of(tensor)
        sizes[dtype] += size
        found.append((size, tensor))
    most = heapq.nlargest(_MOST, found, key=lambda each: each[0])
    largest = tuple(Weight(t.name, dtype_of(t), tuple(t.dims), size) for size, t in most)
    return Weights(sum(sizes.values()), dict(sizes.most_common()), largest)


def dtype_of(tensor: onnx.TensorProto) -> str:
    """The element type, as numpy calls it."""
    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    except KeyError:
        return f"type {tensor.data_type}"
