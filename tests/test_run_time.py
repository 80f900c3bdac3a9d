"""Counts, writes and resizes of which everything is known at run time only, at drawn sizes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import surgeon
from surgeon.runtime import Session

Array = np.ndarray[Any, np.dtype[Any]]


def without(model: onnx.ModelProto, recipe: str, *operators: str) -> onnx.ModelProto:
    """The result of a recipe, which holds none of these operators."""
    result = surgeon.apply(model, recipe, allow=["contract"])
    assert result.report.changes, result.report.misses
    found = result.model.to_proto()
    assert not {node.op_type for node in found.graph.node} & set(operators)
    return found


# ------------------------------------------------------------------ counts


def count_of(dtype: int, step: float, opset: int) -> onnx.ModelProto:
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    graph = helper.make_graph(
        [helper.make_node("Range", ["a", "b", "d"], ["y"])],
        "g",
        [helper.make_tensor_value_info(name, dtype, []) for name in "ab"],
        [helper.make_tensor_value_info("y", dtype, ["k"])],
        [onnx.numpy_helper.from_array(np.asarray(step, kind), "d")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize("step", [1, 2, -1, -3])
@pytest.mark.parametrize("dtype", [onnx.TensorProto.INT64, onnx.TensorProto.INT32])
def test_whole_numbers_are_counted_to_the_last_one(dtype: int, step: int) -> None:
    model = count_of(dtype, step, 11 if step == 2 else 13)
    session = Session(without(model, "range-forms", "Range"))
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    for a in range(-3, 4):
        for b in range(-5, 6):
            y = session.run({"a": np.asarray(a, kind), "b": np.asarray(b, kind)}, ["y"])["y"]
            assert y.dtype == kind
            assert y.tolist() == list(range(a, b, step)), (a, b)


@pytest.mark.parametrize(
    ("dtype", "step"),
    [
        (onnx.TensorProto.FLOAT, 1),
        (onnx.TensorProto.FLOAT, -0.25),
        (onnx.TensorProto.DOUBLE, 0.1),
    ],
)
def test_fractions_are_as_many_as_onnxruntime_has(dtype: int, step: float) -> None:
    model, draw = count_of(dtype, step, 13), random.Random(1)
    session, original = Session(without(model, "range-forms", "Range")), Session(model)
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    for _ in range(40):
        ends = (draw.choice([draw.uniform(-3, 3), draw.randint(-3, 3)]) for _ in "ab")
        feeds = {name: np.asarray(end, kind) for name, end in zip("ab", ends, strict=True)}
        y, expected = (s.run(feeds, ["y"])["y"] for s in (session, original))
        assert y.dtype == expected.dtype
        assert y.shape == expected.shape, feeds
        assert np.abs(y - expected).max(initial=0.0) <= 1e-5
