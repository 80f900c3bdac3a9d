"""Initializers that are inputs too: whoever runs the model may give them other values.

What a result has of the values in the file, and not of the input, shows with other ones alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import onnx

from surgeon.errors import SurgeonError
from surgeon.facts.fact import Array
from surgeon.verify.check import Check
from surgeon.verify.inputs import Drawing

_MOST_BYTES = 1 << 28  # of all of them, which are copied
_SMALLER = 0.75  # times what a float was: it stays finite, and what is divided by it too
_SAID = "with initializers that are inputs"


def _other_way_round(array: Array) -> Array:
    turned = array.reshape(-1)[::-1].reshape(array.shape)
    return (turned * _SMALLER).astype(array.dtype) if array.dtype.kind == "f" else turned


def _of_other_sign(array: Array) -> Array:
    turned = array.reshape(-1)[::-1].reshape(array.shape)
    return np.asarray(np.logical_not(turned) if array.dtype == np.bool_ else np.negative(turned))


# By what a comparison says of them.
_WAYS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        f"{_SAID} the other way round": _other_way_round,
        f"{_SAID} of the other sign": _of_other_sign,
    }
)


def compare_overridden(check: Check, before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    """Compare with other values of what can be given in both models, where the original runs so.

    Args:
        check: What agrees so far, whose first drawn inputs the rest is.
        before: The original.
        after: The result.
    """
    original = check.original
    if original is None or check.fault or not all(each.agrees for each in check.comparisons):
        return
    if {original.by, check.result.by} != {"onnxruntime"}:
        return
    values = _overridable(before, after)
    for run in check.runs if values else ():
        said = next(each for each in check.comparisons if each.sizes == run.sizes)
        if said.seed < 0:  # the user's own
            continue
        drawing = Drawing((), {}, said.drawn, fixed=said.fixed)
        for way in _WAYS:
            feeds = {**run.feeds, **_others(way, values)}
            try:
                expected = original.run(feeds, check.names)
            except SurgeonError:  # sizes, say, at which nothing runs
                continue
            by = f"{original.by}, {way}"
            check.compare(feeds, expected, run.sizes, said.seed, by, drawing, doubt=True)
        return


def others_of(
    by: str, before: onnx.ModelProto, after: onnx.ModelProto | None
) -> Mapping[str, Array]:
    """The other values that a comparison was made with, by name; empty where there were none.

    Args:
        by: What the comparison says stood for the original.
        before: The original.
        after: The result; None where nothing is known of it.
    """
    way = next((way for way in _WAYS if way in by), None)
    return (
        {}
        if way is None
        else _others(way, _overridable(before, before if after is None else after))
    )


def _others(way: str, values: Mapping[str, Array]) -> dict[str, Array]:
    return {name: _WAYS[way](array) for name, array in values.items()}


def _overridable(before: onnx.ModelProto, after: onnx.ModelProto) -> dict[str, Array]:
    """The numbers of what both models let be given, by name; none where they are many."""
    common = _given(before) & _given(after)
    tensors = [
        tensor
        for tensor in before.graph.initializer
        if tensor.name in common and tensor.data_location != onnx.TensorProto.EXTERNAL
    ]
    if sum(tensor.ByteSize() for tensor in tensors) > _MOST_BYTES:
        return {}
    arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in tensors}
    return {name: array for name, array in arrays.items() if array.dtype.kind in "iufb"}


def _given(model: onnx.ModelProto) -> set[str]:
    initializers = {tensor.name for tensor in model.graph.initializer}
    return initializers.intersection(value.name for value in model.graph.input)
