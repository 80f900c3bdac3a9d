"""Counts, writes and resizes of which everything is known at run time only, at drawn sizes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import surgeon
from surgeon.runtime import RunFailed, Session

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
    places = [*PLACES, *(["half_pixel_symmetric"] if opset > 18 else [])]
    attributes: dict[str, Any] = {"coordinate_transformation_mode": pick.choice(places)}
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
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return model, declared


@pytest.mark.slow
@pytest.mark.parametrize("opset", [11, 13, 18, 19])
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


def test_a_size_that_is_an_input_beside_known_ones() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13]>
        g (float[n,2,h,4] x, int64[1] size) => (float[n,2,u,4] y)
          <int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}> {
          s = Shape (x)
          front = Slice (s, zero, two, zero)
          pair = Concat <axis = 0> (size, four)
          sizes = Concat <axis = 0> (front, pair)
          y = Resize <mode = "cubic"> (x, , , sizes)
        }"""
    )
    result = without(model, "resize-decompose", "Resize")
    assert [n.attribute[0].i for n in result.graph.node if n.op_type == "Gather"][-4:] == [2] * 4
    feeds: dict[str, Array] = {"x": np.random.default_rng(7).normal(size=(2, 2, 5, 4))}
    feeds["x"] = feeds["x"].astype(np.float32)
    for size in (2, 5, 11):
        feeds["size"] = np.array([size])
        y, expected = (Session(m).run(feeds, ["y"])["y"] for m in (result, model))
        assert y.shape == (2, 2, size, 4)
        assert np.abs(y - expected).max() <= 2e-5


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


# ------------------------------------------------------------------ writes

COMBINE = {"none": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def scatter_of(
    operator: str, dtype: int, shapes: dict[str, Any], **attributes: Any
) -> onnx.ModelProto:
    kinds = {"x": dtype, "i": onnx.TensorProto.INT64, "u": dtype}
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "i", "u"], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info(n, kinds[n], shape) for n, shape in shapes.items()],
        [helper.make_tensor_value_info("y", dtype, shapes["x"])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def named(pick: random.Random, sizes: list[int], stem: str) -> list[str | int]:
    return [f"{stem}{i}" if pick.random() < 0.4 else n for i, n in enumerate(sizes)]


def some_of(draw: np.random.Generator, sizes: list[int], dtype: int) -> Array:
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    return (4 * draw.normal(size=sizes)).astype(kind)


@pytest.mark.slow
@pytest.mark.parametrize("reduction", list(COMBINE))
@pytest.mark.parametrize("dtype", [onnx.TensorProto.FLOAT, onnx.TensorProto.INT64])
def test_lines_are_written_at_computed_places(dtype: int, reduction: str) -> None:
    pick, draw = random.Random(3), np.random.default_rng(3)
    for _ in range(12):
        sizes = [pick.randint(1, 4) for _ in range(pick.randint(1, 4))]
        depth, count = pick.randint(1, len(sizes)), pick.choice([0, 1, 3, 5])
        rows = named(pick, [count], "k")
        declared = named(pick, sizes, "d")
        shapes = {"x": declared, "i": [*rows, depth], "u": [*rows, *declared[depth:]]}
        model = scatter_of("ScatterND", dtype, shapes, reduction=reduction)
        result = surgeon.apply(model, "scatter-forms", verify=False)
        assert result.report.changes, result.report.misses
        places = np.stack([draw.integers(-n, n, count) for n in sizes[:depth]], 1)
        x, u = some_of(draw, sizes, dtype), some_of(draw, [count, *sizes[depth:]], dtype)
        expected, combine = x.copy(), COMBINE[reduction]
        for place, line in zip(places, u, strict=True):
            at = tuple(int(n) for n in place)
            expected[at] = line if combine is None else combine(expected[at], line)
        y = Session(result.model.to_proto()).run({"x": x, "i": places, "u": u})["y"]
        assert y.dtype == x.dtype
        assert np.allclose(y, expected, rtol=1e-5, atol=1e-5), (declared, places.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("reduction", list(COMBINE))
@pytest.mark.parametrize("dtype", [onnx.TensorProto.FLOAT, onnx.TensorProto.INT64])
def test_elements_are_written_at_computed_places(dtype: int, reduction: str) -> None:
    pick, draw = random.Random(4), np.random.default_rng(4)
    for _ in range(12):
        sizes = [pick.randint(1, 4) for _ in range(pick.randint(1, 4))]
        axis, count = pick.randrange(len(sizes)), pick.choice([0, 1, 3, 5])
        free = pick.random() < 0.5
        covered = sizes if free else [pick.randint(1, n) for n in sizes]
        declared = named(pick, sizes, "d") if free else list(sizes)
        over = [*(declared if free else covered)]
        over[axis], covered = pick.choice(["k", count]), [*covered]
        covered[axis] = count
        shapes = {"x": declared, "i": over, "u": over}
        model = scatter_of("ScatterElements", dtype, shapes, axis=axis, reduction=reduction)
        result = surgeon.apply(model, "scatter-forms", verify=False)
        assert result.report.changes, result.report.misses
        places = draw.integers(-sizes[axis], sizes[axis], covered)
        x, u = some_of(draw, sizes, dtype), some_of(draw, covered, dtype)
        expected, combine = x.copy(), COMBINE[reduction]
        for at in np.ndindex(*covered):
            to = (*at[:axis], places[at], *at[axis + 1 :])
            expected[to] = u[at] if combine is None else combine(expected[to], u[at])
        y = Session(result.model.to_proto()).run({"x": x, "i": places, "u": u})["y"]
        assert y.dtype == x.dtype
        assert np.allclose(y, expected, rtol=1e-5, atol=1e-5), (declared, over, places.tolist())


@pytest.mark.parametrize("place", [-5, -4, 3, 4])
@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements"])
def test_a_place_that_is_not_there_ends_the_run(op: str, place: int) -> None:
    shapes = {"x": [4], "i": ["k", 1] if op == "ScatterND" else ["k"], "u": ["k"]}
    model = scatter_of(op, onnx.TensorProto.FLOAT, shapes)
    places = np.full([1, 1] if op == "ScatterND" else [1], place)
    feeds = {"x": np.arange(4, dtype=np.float32), "i": places, "u": np.ones(1, np.float32)}
    for each in (model, without(model, "scatter-forms", op)):
        session = Session(each)
        if -4 <= place < 4:
            assert session.run(feeds)["y"][place] == 1
        else:
            with pytest.raises(RunFailed, match=r"out|invalid"):
                session.run(feeds)


@pytest.mark.parametrize("reduction", list(COMBINE))
def test_what_is_not_finite_stays_where_it_is_written(reduction: str) -> None:
    shapes = {"x": [4], "i": ["k", 1], "u": ["k"]}
    model = scatter_of("ScatterND", onnx.TensorProto.FLOAT, shapes, reduction=reduction)
    result = without(model, "scatter-forms", "ScatterND")
    x, u = np.array([1, 2, np.nan, 4], np.float32), np.array([np.nan, np.inf, 3], np.float32)
    y = Session(result).run({"x": x, "i": np.array([[1], [3], [0]]), "u": u})["y"]
    assert np.flatnonzero(np.isnan(y)).tolist() == [1, 2]
    assert np.flatnonzero(np.isinf(y)).tolist() == ([] if reduction == "min" else [3])
