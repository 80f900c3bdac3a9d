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


# ------------------------------------------------------------------ resizes

PLACES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
ROUNDINGS = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]


def resize_of(
    pick: random.Random, mode: str, opset: int
) -> tuple[onnx.ModelProto, dict[str, tuple[str | int, ...]]]:
    """A Resize by scales, or to the size of another tensor, with names for the lengths."""
    attributes: dict[str, Any] = {"coordinate_transformation_mode": pick.choice(PLACES)}
    attributes |= {"nearest_mode": pick.choice(ROUNDINGS)} if mode == "nearest" else {}
    attributes |= {"exclude_outside": pick.randint(0, 1)} if mode == "cubic" else {}
    declared: dict[str, tuple[str | int, ...]] = {"x": ("n", 3, "h", pick.choice(["w", 4]))}
    constants = {"empty": np.zeros(0, np.float32)}
    if pick.random() < 0.5:
        factors = [1, 1, *(pick.choice([2, 3, 0.5, 1.6, 2.5]) for _ in "hw")]
        constants["scales"] = np.array(factors, np.float32)
        nodes = [
            helper.make_node("Resize", ["x", "empty", "scales"], ["y"], mode=mode, **attributes)
        ]
    else:
        declared["other"] = ("n", 3, "p", pick.choice(["q", 5]))
        names = ["x", "empty", "empty", "sizes"]
        nodes = [
            helper.make_node("Shape", ["other"], ["sizes"]),
            helper.make_node("Resize", names, ["y"], mode=mode, **attributes),
        ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, 1, shape) for n, shape in declared.items()],
        [helper.make_tensor_value_info("y", 1, ["n", 3, "a", "b"])],
        [onnx.numpy_helper.from_array(a, n) for n, a in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return model, declared


@pytest.mark.slow
@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_lengths_known_at_run_time_are_resized_as_onnxruntime_does(mode: str, opset: int) -> None:
    pick, draw = random.Random(opset), np.random.default_rng(opset)
    for _ in range(12):
        model, declared = resize_of(pick, mode, opset)
        result = surgeon.apply(model, "resize-decompose", verify=False)
        assert result.report.changes, result.report.misses
        mended, original = Session(result.model.to_proto()), Session(model)
        for _ in range(6):
            sizes = {name: pick.randint(2, 9) for name in "nhwpq"}
            feeds = {
                name: draw.normal(size=[sizes.get(str(d), d) for d in shape]).astype(np.float32)
                for name, shape in declared.items()
            }
            y, expected = (s.run(feeds, ["y"])["y"] for s in (mended, original))
            assert y.shape == expected.shape
            wrong = np.abs(y - expected).max(initial=0.0)
            assert wrong <= 2e-5, (sizes, onnx.printer.to_text(model))


def test_stretching_keeps_what_is_not_finite_beside_itself() -> None:
    """A product with the whole matrix would spread it over the axis."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13]>
        g (float[1,1,t] x) => (float[1,1,u] y) <float[3] scales = {1.0, 1.0, 2.0}> {
          y = Resize <mode = "linear"> (x, , scales)
        }"""
    )
    result = without(model, "resize-decompose", "Resize")
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 6)
    x[0, 0, 2] = np.nan
    y = Session(result).run({"x": x}, ["y"])["y"]
    assert np.flatnonzero(np.isnan(y)).tolist() == [3, 4, 5, 6]
