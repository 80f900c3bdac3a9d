"""What operators meant in other releases of PyTorch, and in other spellings."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from aten_call import assert_same, check, lowered, model_of
from aten_operands import X, integers
from onnx import TensorProto, helper
from truth import parse

import surgeon
from surgeon.errors import LeftoverError
from surgeon.reference import Undefined
from surgeon.reference.executor import Reference

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead


def test_a_sum_of_integers_is_int64_in_every_spelling() -> None:
    check("sum", integers("i4", 2, 3), [1], False, None, spellings=("A", "A+", "N"))


def test_arguments_as_attributes() -> None:
    node = helper.make_node("ATen", ["x"], ["y"], operator="cumsum", dim=1)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 4])],
    )
    for opset in (9, 13):
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6
        )
        assert_same(lowered(model, {"x": X})[0], np.cumsum(X, 1), f"cumsum at opset {opset}")


@pytest.mark.parametrize("version", ["1.3", "1.5"])
def test_div_of_integers_up_to_torch_1_5_is_an_integer(version: str) -> None:
    a, b = np.array([-7, 7, 8]), np.array([2, 2, -3])
    model, feeds = model_of("div", [a, b])
    model.producer_name, model.producer_version = "pytorch", version
    assert_same(lowered(model, feeds)[0], np.array([-3, 3, -2]), f"div of torch {version}")
    wide, feeds_of_both = model_of("div", [a.astype(np.int32)[:, None], b])
    wide.producer_name, wide.producer_version = "pytorch", version
    (made,) = Reference(wide).run(feeds_of_both).values()
    assert_same(made, lowered(wide, feeds_of_both)[0], f"div of int32 by int64, of torch {version}")
    flags, feeds_of_flags = model_of("div", [np.array([True, False]), np.array(1)])
    flags.producer_name, flags.producer_version = "pytorch", version
    assert_same(lowered(flags, feeds_of_flags)[0], np.array([1, 0]), "div of booleans")
    model.producer_version = "1.12.1"
    assert_same(lowered(model, feeds)[0], (a / b).astype(np.float32), "div of torch 1.12")


def test_true_quotients_and_fills_of_torch_1_5_are_floats() -> None:
    a, b = np.array([-7, 7, 8]), np.array([2, 2, -3])
    model, feeds = model_of("true_divide", [a, b])
    model.producer_name, model.producer_version = "pytorch", "1.5"
    assert_same(lowered(model, feeds)[0], (a / b).astype(np.float32), "true_divide")
    model, feeds = model_of("full", [[2, 3], 7, None, None, None, None])
    output = model.graph.output[0].type.tensor_type
    for version, dtype in (("1.5", np.float32), ("1.7", np.int64)):
        model.producer_name, model.producer_version = "pytorch", version
        output.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        result = surgeon.apply(model, "aten").report.verdict
        assert result is not None
        assert result.status == "equivalent"
        assert_same(Reference(model).run(feeds)["y0"], np.full((2, 3), 7, dtype), version)


@pytest.mark.parametrize("kind", ["i8", "f4"])
def test_floordiv_of_tensors_before_torch_1_5_rounds_to_zero(kind: str) -> None:
    a, b = np.array([-7, 7, 8]).astype(kind), np.array([2, 2, -3]).astype(kind)
    for divisor, wanted in ((b, [-3, 3, -2]), (np.array(3, kind), [-2, 2, 2])):
        model, feeds = model_of("floordiv", [a, divisor])
        model.producer_name, model.producer_version = "pytorch", "1.3"
        assert_same(lowered(model, feeds)[0], np.array(wanted, kind), "// of torch 1.4")
        assert_same(Reference(model).run(feeds)["y0"], np.array(wanted, kind), "its witness")
    number, feeds = model_of("floordiv", [np.array(-7), np.array(2)])  # Python's own
    number.producer_name, number.producer_version = "pytorch", "1.3"
    assert_same(lowered(number, feeds)[0], np.array(-4), "// of numbers of torch 1.4")


def test_angles_of_reals_before_torch_1_8_are_0() -> None:
    for x in (np.array([-2, 0.5, np.nan], np.float32), np.array([-2, 3])):
        model, feeds = model_of("angle", [x])
        model.producer_name, model.producer_version = "pytorch", "1.8"
        wanted = np.angle(x).astype(np.float32)
        assert_same(lowered(model, feeds)[0], wanted, "angle of torch 1.8")
        model.producer_version = "1.7"
        output = model.graph.output[0].type.tensor_type
        output.elem_type = helper.np_dtype_to_tensor_dtype(x.dtype)
        assert_same(Reference(model).run(feeds)["y0"], np.zeros_like(x), "its witness")
        assert_same(lowered(model, feeds)[0], np.zeros_like(x), "angle of torch 1.7")


def test_truth_before_torch_1_2_is_bytes() -> None:
    model, feeds = model_of("isclose", [X, X + 1e-7])
    model.graph.output[0].type.CopyFrom(
        helper.make_tensor_type_proto(TensorProto.UINT8, list(X.shape))
    )
    model.producer_name, model.producer_version = "pytorch", "1.1"
    assert Reference(model).run(feeds)["y0"].dtype == np.uint8
    verdict = surgeon.apply(model, "aten-math").report.verdict
    assert verdict is not None
    assert verdict.status == "equivalent"
    model.producer_version = "1.2"
    assert Reference(model).run(feeds)["y0"].dtype == np.bool_


def test_truths_between_nodes_before_torch_1_2_are_bytes_too() -> None:
    """~x of such bytes turns their bits round."""
    text = """<ir_version: 4, opset_import: ["": 9, "org.pytorch.aten": 0]>
      g (int64[2,7] x) => (int64[2,7] y, uint8[2,7] z)
        <int64 one = {1}, int64 kind = {4}, int64 no = {0}> {
        m = org.pytorch.aten.ATen <operator = "ne"> (x, one)
        y = org.pytorch.aten.ATen <operator = "to"> (m, kind, no, no)
        z = org.pytorch.aten.ATen <operator = "bitwise_not"> (m)
      }"""
    model = onnx.parser.parse_model(text)
    model.producer_name, model.producer_version = "pytorch", "1.1"
    verdict = surgeon.apply(model, "aten").report.verdict
    assert verdict is not None
    assert verdict.status == "equivalent"


@pytest.mark.parametrize(("version", "axis"), [("1.3", 1), ("1.9", 1), ("1.10", 2), ("2.1", 2)])
def test_distances_were_along_axis_1_before_torch_1_10(version: str, axis: int) -> None:
    model, feeds = model_of("pairwise_distance", [X, X[::-1] * 2, 2.0, 1e-6, False])
    model.producer_name, model.producer_version = "pytorch", version
    wanted = np.sqrt(((X - X[::-1] * 2 + np.float32(1e-6)) ** 2).sum(axis))
    assert_same(lowered(model, feeds)[0], wanted, f"distance of torch {version}")
    assert_same(Reference(model).run(feeds)["y0"], wanted, "its witness")
    kept, feeds = model_of("pairwise_distance", [X, X[::-1] * 2, 2.0, 1e-6, True])
    kept.producer_name, kept.producer_version = "pytorch", version
    wanted = np.expand_dims(wanted, axis)
    assert_same(lowered(kept, feeds)[0], wanted, f"distance of torch {version}")
    assert_same(Reference(kept).run(feeds)["y0"], wanted, "its witness")
    margin = [X, X[::-1] * 2, X + 1, 1.0, 2.0, 1e-6, False, 0]
    triple, feeds = model_of("triplet_margin_loss", margin)
    triple.producer_name, triple.producer_version = "pytorch", version
    told = Reference(triple).run(feeds)["y0"]
    assert told.shape == wanted.squeeze(axis).shape
    assert_same(lowered(triple, feeds)[0], told, f"loss of torch {version}")


@pytest.mark.parametrize("version", ["1.3", "1.11"])
def test_limits_of_integers_were_cut_before_torch_1_12(version: str) -> None:
    x = np.array([0, 3, -2, 1])
    for operator, limits, wanted in (
        ("clamp", [0.7, 1.5], [0, 1, 0, 1]),
        ("clamp_min", [1e-9], [0, 3, 0, 1]),
        ("clamp_max", [1.9], [0, 1, -2, 1]),
    ):
        model, feeds = model_of(operator, [x, *limits])
        model.producer_name, model.producer_version = "pytorch", version
        assert_same(lowered(model, feeds)[0], np.array(wanted), f"{operator} of torch {version}")
        assert_same(Reference(model).run(feeds)["y0"], np.array(wanted), "its witness")
        model.producer_version = "1.12.1"
        assert lowered(model, feeds)[0].dtype == np.float32


def test_the_least_integer_is_divided_and_none_is_by_zero() -> None:
    model, feeds = model_of("floor_divide", [np.array([-128, 127, -7], np.int8), 3])
    model.producer_name, model.producer_version = "pytorch", "1.9"
    assert_same(Reference(model).run(feeds)["y0"], np.array([-42, 42, -2], np.int8), "witness")
    model, feeds = model_of("div", [np.array([3, 4]), np.array([2, 0])])
    model.producer_name, model.producer_version = "pytorch", "1.3"
    with pytest.raises(Undefined, match="divided by zero"):
        Reference(model).run(feeds)


def test_a_list_of_one_dim_is_no_dtype() -> None:
    """Where an exporter leaves the arguments behind the dims out."""
    model, feeds = model_of("sum", [X, [2]])
    assert_same(lowered(model, feeds)[0], X.sum(2), "sum along one axis")
    assert_same(Reference(model).run(feeds)["y0"], X.sum(2), "its witness")


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_a_length_of_1_was_the_first_element_before_torch_1_10(mode: str) -> None:
    x = X.reshape(1, 1, 4, 6)
    for size, corners in (([1, 3], False), ([2, 1], False), ([1, 3], True)):
        model, _ = model_of(f"upsample_{mode}2d", [x, size, corners, None, None])
        model.producer_name, model.producer_version = "pytorch", "1.9"
        if not corners:
            said = r"before PyTorch 1\.10 a length of 1 was the first"
            with pytest.raises(LeftoverError, match=said):
                surgeon.apply(model, "aten")
            model.producer_version = "1.10"
        verdict = surgeon.apply(model, "aten").report.verdict
        assert verdict is not None
        assert verdict.status == "equivalent"


@pytest.mark.parametrize("opset", [9, 11, 13])
@pytest.mark.parametrize(
    ("operator", "args", "first_in"),
    [("argmax", [1, False], "1.7"), ("argmin", [None, True], "1.7"), ("max", [-1, True], "1.6")],
)
def test_the_place_of_an_extreme_was_the_last_of_equals(
    operator: str, args: list[object], first_in: str, opset: int
) -> None:
    """But of what is no number the first, as now."""
    nan = np.nan
    rows = np.array([[3, 1, 3, 0], [0, 0, 3, 3], [1, 1, 1, 1]])
    floats = np.array([[3, nan, 3, nan], [3, 0, 3, 0], [1, 2, 0, 0]], np.float32)
    lines = 1 if operator != "argmin" else None
    for x in (rows, rows.astype(np.float32), floats):
        outputs = 2 if operator == "max" else 1
        model, feeds = model_of(operator, [x, *args], opset=opset, outputs=outputs)
        model.producer_name, model.producer_version = "pytorch", first_in
        find = np.argmin if operator == "argmin" else np.argmax
        first = find(x, lines)
        assert_same(np.ravel(lowered(model, feeds)[-1]), np.ravel(first), f"{operator}, the first")
        model.producer_version = "1.5"
        flat = x.reshape(-1, x.size) if lines is None else x
        last = flat.shape[1] - 1 - find(flat[:, ::-1], 1)
        strange = np.isnan(flat)
        last = np.where(strange.any(1), strange.argmax(1), last)
        assert_same(np.ravel(lowered(model, feeds)[-1]), last, f"{operator}, the last")
        (made, *_) = list(Reference(model).run(feeds).values())[::-1]
        assert_same(np.ravel(made), last, f"{operator} of the witness")


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_a_fill_in_place_before_torch_1_5_names_no_dtype(kind: type[np.generic]) -> None:
    """Its third argument, 1, keeps the order of memory."""
    model, feeds = model_of("full_like", [np.zeros((2, 3), kind), 3, 1])
    model.producer_name, model.producer_version = "pytorch", "1.3"
    fixed = surgeon.apply(model, "aten").model.to_proto()
    (found,) = Reference(fixed).run(feeds).values()
    assert_same(found, np.full((2, 3), 3, kind), "fill_ of torch 1.4")
    (made,) = Reference(model).run(feeds).values()
    assert_same(made, np.full((2, 3), 3, kind), "fill_ of torch 1.4 by the witness")


def test_a_mean_over_ignored_targets_was_0_before_torch_1_11() -> None:
    """Of no targets at all it was no number before too."""
    x = -np.abs(X.reshape(-1, 4)[:5])
    for targets, old in ((np.full(5, 2), 0), (np.array([0, 2, 1, 2, 3]), None), ([], np.nan)):
        y = np.asarray(targets, np.int64)
        model, feeds = model_of("nll_loss", [x[: len(y)], y, None, 1, 2])
        kept = -x[: len(y)][np.arange(len(y)), y][y != 2]
        now = kept.mean() if len(kept) else np.nan
        for version, want in (("1.10", now if old is None else old), ("1.11", now)):
            model.producer_name, model.producer_version = "pytorch", version
            (made,) = Reference(model).run(feeds).values()
            for got in (made, lowered(model, feeds)[0]):
                assert_same(got, np.float32(want), f"nll_loss of torch {version}", 1e-6)


def _of(version: str, operator: str, *args: object) -> list[np.ndarray]:
    """What a file of this release comes to, and its witness."""
    model, feeds = model_of(operator, list(args))
    model.producer_name, model.producer_version = "pytorch", version
    return [lowered(model, feeds)[0], Reference(model).run(feeds)["y0"]]


@pytest.mark.parametrize(
    ("operator", "number", "wanted", "first_in"),
    [
        ("remainder", 2.5, [1, 1, 0, 1], "1.8"),
        ("fmod", 2.5, [-1, 1, 0, 1], "1.8"),
        ("remainder", -2.5, [-1, -1, 0, -1], "1.8"),
        ("pow", 1.5, [0, 2, 0, 11], "1.6"),
    ],
)
def test_numbers_beside_integers_made_integers(
    operator: str, number: float, wanted: list[int], first_in: str
) -> None:
    """As PyTorch 1.7.1, and 1.5.1 for powers, compute them."""
    x = np.array([-7, 3, 2, 5])
    x, wanted = (x[[1, 3]], [5, 11]) if operator == "pow" else (x, wanted)
    for version in ("1.3", "1.5"):
        for found in _of(version, operator, x, number):
            assert_same(found, np.array(wanted), f"{operator} of torch {version}")
    for found in _of(first_in, operator, x, number):
        assert found.dtype == np.float32


def test_fmod_gave_the_first_dtype_before_torch_1_8() -> None:
    x, y = np.array([5, 7, 9], np.int32), np.array([2, 3, 4])
    for version, kind in (("1.7", np.int32), ("1.8", np.int64)):
        for found in _of(version, "fmod", x, y):
            assert_same(found, np.array([1, 1, 1], kind), f"fmod of torch {version}")


@pytest.mark.parametrize(
    ("operator", "number", "wanted"),
    [("add", 1.5, [6, 8]), ("mul", 0.5, [0, 0]), ("div", 2.5, [2, 3]), ("eq", 5.5, [True, False])],
)
def test_integers_made_numbers_integers_before_torch_1_3(
    operator: str, number: float, wanted: list[int]
) -> None:
    """As PyTorch 1.2.0 computes them."""
    for found in _of("1.2", operator, np.array([5, 7]), number):
        assert_same(found, np.array(wanted), f"{operator} of torch 1.2")
    now = {"add": [6.5, 8.5], "mul": [2.5, 3.5], "div": [2, 2.8], "eq": [False, False]}[operator]
    for found in _of("1.6", operator, np.array([5, 7]), number):
        assert_same(found, np.array(now, None if operator == "eq" else np.float32), operator)


def test_a_number_of_a_script_before_torch_1_3_may_be_a_tensor() -> None:
    model, _ = model_of("mul", [np.array(5), 0.5])
    model.producer_name, model.producer_version = "pytorch", "1.2"
    with pytest.raises(LeftoverError, match="were promoted apart"):
        surgeon.apply(model, "aten")


@pytest.mark.parametrize("version", ["1.3", "1.6", "1.7"])
def test_halves_of_numbers_went_away_from_zero_before_torch_1_7(version: str) -> None:
    """As scripts of PyTorch 1.6 compute them; of tensors they never did."""
    for number, away in ((2.5, 3), (-2.5, -3), (0.5, 1), (-1.5, -2), (1.25, 1), (-0.75, -1)):
        wanted = np.float64(np.rint(number) if version == "1.7" else away)
        for found in _of(version, "round", np.array(number)):
            assert_same(found, wanted, f"round({number}) of torch {version}")
    for found in _of(version, "round", np.array([2.5])):
        assert_same(found, np.array([2.0]), f"round of a tensor, torch {version}")


def test_norms_were_of_what_is_not_stretched_before_torch_1_10() -> None:
    a, b = X.reshape(1, 4, 6)[:, :, :3], np.sin(X.reshape(4, 6)[:3, :3] + 1).reshape(3, 1, 3)
    product = (a * b).sum(1)
    for version, times in (("1.9", 1), ("1.10", 4)):
        wanted = product / (np.linalg.norm(a, axis=1) * np.sqrt(times * (b * b).sum(1)))
        for found in _of(version, "cosine_similarity", a, b, -2, 1e-8):
            assert_same(found, wanted, f"cosine of torch {version}", 1e-5)


def test_a_place_among_all_was_a_number_before_torch_1_10() -> None:
    for version, shape in (("1.3", ()), ("1.9", ()), ("1.10", (1, 1))):
        for found in _of(version, "argmax", X.reshape(4, 6), None, True):
            assert_same(found, np.full(shape, X.argmax()), f"argmax of torch {version}")


def test_the_floor_of_a_quotient_of_integers_is_what_floor_divide_is() -> None:
    """The functions of the exporters of 2.1 to 2.5 are such; nobody else writes one for it."""
    model = parse("g (int64[n] x) => (int64[n] y) <int64 d = {3}> { q = Div (x, d) y = Floor (q) }")
    for version, least in (("2.3.1", -3), ("1.12.1", -2), ("2.6.0", -2)):
        model.producer_name, model.producer_version = "pytorch", version
        result = surgeon.apply(model, "operand-types").model.to_proto()
        assert Reference(result).run({"x": np.int64([-7, -6, 0, 7])})["y"].tolist() == [
            least,
            -2,
            0,
            2,
        ]
