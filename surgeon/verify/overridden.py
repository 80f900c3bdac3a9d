"""Initializers that are inputs too: whoever runs the model may give them other values.

What a result has of the values in the file, and not of the input, shows with other ones alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx

from surgeon.errors import SurgeonError
from surgeon.facts.fact import Array
from surgeon.verify.check import Check

_MOST_BYTES = 1 << 28  # of all of them, which are copied
_SMALLER = 0.75  # times what a float was: it stays finite, and what is divided by it too


def compare_overridden(check: Check, before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    """Compare with other values of what can be given in both models, where the original runs so.

    Args:
        check: What agrees so far, whose first inputs the rest is.
        before: The original.
        after: The result.
    """
    original = check.original
    if original is None or check.fault or not check.runs or not check.comparisons[-1].agrees:
        return
    if {original.by, check.result.by} != {"onnxruntime"}:
        return
    run = check.runs[0]
    for others in _others(_overridable(before, after)):
        feeds = {**run.feeds, **others}
        try:
            expected = original.run(feeds, check.names)
        except SurgeonError:  # sizes, say, at which nothing runs
            continue
        by = f"{original.by}, with other values of initializers that are inputs"
        check.compare(feeds, expected, run.sizes, check.seeds[0], by, doubt=True)
        if check.fault:
            return


def _overridable(before: onnx.ModelProto, after: onnx.ModelProto) -> dict[str, Array]:
    """The values of what both models let be given, by name; none where they are many."""
    common = _given(before) & _given(after)
    tensors = [
        tensor
        for tensor in before.graph.initializer
        if tensor.name in common and tensor.data_location != onnx.TensorProto.EXTERNAL
    ]
    if sum(tensor.ByteSize() for tensor in tensors) > _MOST_BYTES:
        return {}
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in tensors}


def _given(model: onnx.ModelProto) -> set[str]:
    initializers = {tensor.name for tensor in model.graph.initializer}
    return initializers.intersection(value.name for value in model.graph.input)


def _others(arrays: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Other values of the same kind, and then of the other sign."""
    numbers = {name: array for name, array in arrays.items() if array.dtype.kind in "iufb"}
    if not numbers:
        return
    turned = {name: array.reshape(-1)[::-1].reshape(array.shape) for name, array in numbers.items()}
    yield {
        name: (array * _SMALLER).astype(array.dtype) if array.dtype.kind == "f" else array
        for name, array in turned.items()
    }
    yield {
        name: np.logical_not(array) if array.dtype == np.bool_ else np.negative(array)
        for name, array in turned.items()
    }
