"""The recipe `out-of-opset`: operators that ONNX dropped, or has at later opsets than the file's.

Each is asked of the witness, of onnxruntime on what the recipe makes of it, and of onnxruntime on
the file as it came where it still registers the operator.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import surgeon
from surgeon.reference import NoWitness, Reference
from surgeon.reference.early import SINCE, holds_early, with_domain
from surgeon.runtime import NotRunnable, Session

Array = np.ndarray[Any, Any]
F = np.float32
X = (np.arange(24, dtype=F).reshape(1, 2, 3, 4) - 10) / 4


def all_say(text: str, x: Array) -> list[Array]:
    """What the witness, onnxruntime and the result say of a model's `y`."""
    model = parser.parse_model(text)
    result = surgeon.apply(model, "out-of-opset")
    assert result.report.status == "equivalent"
    mended = result.model.to_proto()
    onnx.checker.check_model(mended, full_check=True)
    found = [Reference(model).run({"x": x})["y"], Session(mended).run({"x": x})["y"]]
    with contextlib.suppress(NotRunnable):
        found.append(Session(model).run({"x": x})["y"])
    return found


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        ("Affine <alpha = 2.0, beta = 0.5> (x)", X * 2 + 0.5),
        ("Affine <beta = 0.5> (x)", X + 0.5),
        ("Affine (x)", X),
        ("Scale <scale = 3.0> (x)", X * 3),
        ("ScaledTanh <alpha = 2.0, beta = 0.5> (x)", np.tanh(X / 2) * 2),
        ("ParametricSoftplus <alpha = 2.0, beta = 0.5> (x)", np.log(np.exp(X / 2) + 1) * 2),
        ("ImageScaler <scale = 2.0, bias = [1.0, -1.0]> (x)",
         X * 2 + np.asarray([1, -1], F).reshape(1, 2, 1, 1)),
        ("Crop <border = [1, 2, 1, 0]> (x)", X[:, :, 2:, 1:3]),
        ("Crop <border = [1, 1, 0, 0], scale = [2, 3]> (x)", X[:, :, 1:, 1:]),
        ("Crop <border = [0, 0, 0, 0]> (x)", X),
    ],
)  # fmt: skip
def test_what_was_dropped_is_computed_as_it_was(node: str, wanted: Array, opset: int) -> None:
    text = f"""
        <ir_version: 4, opset_import: ["": {opset}]>
        g (float[1,2,3,4] x) => (float[1,2,H,W] y) {{ y = {node} }}
    """
    said = all_say(text, X)
    assert len(said) == (3 if opset == 9 else 2)
    for found in said:
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("node", "shape"),
    [
        ("ConstantFill <shape = [2, 3], value = 1.5> ()", (2, 3)),
        ("ConstantFill <shape = [2], extra_shape = [3], value = 1.5> ()", (2, 3)),
        ("ConstantFill <value = 1.5> (x)", (5, 3)),
        ("ConstantFill <input_as_shape = 1, extra_shape = [3], value = 1.5> (n)", (5, 3)),
        ("ConstantFill <input_as_shape = 1, value = 1.5> (s)", (5, 3)),
    ],
)
def test_a_constant_fills_the_shape_that_is_said(node: str, shape: tuple[int, ...]) -> None:
    text = f"""
        <ir_version: 4, opset_import: ["": 9]>
        g (float[N,3] x) => (float[P,Q] y) <int64[1] first = {{0}}, float zero = {{0}}>
        {{
          s = Shape (x)
          n = Gather (s, first)
          z = {node}
          m = Mul (x, zero)
          a = ReduceMax <keepdims = 0> (m)
          y = Add (z, a)
        }}
    """
    for found in all_say(text, np.ones((5, 3), F)):
        assert found.shape == shape
        assert (found == 1.5).all()


NUMBERS = np.asarray([-4, -1, 0, 2, 5], F)


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        ("HardSwish (x)", [0, -1 / 3, 0, 5 / 3, 5]),
        ("Mish (x)", [-0.07259175, -0.30340144, 0, 1.9439590, 4.9995522]),
        ("Swish (x)", [-0.07194484, -0.26894143, 0, 1.7615942, 4.9665356]),
        ("Swish <alpha = 0.5> (x)", [-0.47681168, -0.37754067, 0, 1.4621172, 4.6207094]),
        ("Gelu (x)", [-0.00012669, -0.15865526, 0, 1.9544997, 4.9999986]),
        ('Gelu <approximate = "tanh"> (x)', [-0.00007030, -0.15880801, 0, 1.9545977, 4.9999998]),
    ],
)
def test_what_comes_later_means_what_it_came_to_mean(
    node: str, wanted: list[float], opset: int
) -> None:
    text = f"""
        <ir_version: 4, opset_import: ["": {opset}]>
        g (float[N] x) => (float[N] y) {{ y = {node} }}
    """
    for found in all_say(text, NUMBERS):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("opset", [11, 13])
def test_a_grid_is_read_between_four_pixels(opset: int) -> None:
    text = f"""
        <ir_version: 4, opset_import: ["": {opset}]>
        g (float[1,2,3,4] x) => (float[1,2,1,3] y)
        <float[1,1,3,2] r = {{-1, -1, 0, 0, 1, 0.5}}>
        {{ y = GridSample <align_corners = 1, mode = 0, padding_mode = 0> (x, r) }}
    """
    wanted = [[[X[0, c, 0, 0], X[0, c, 1, 1:3].mean(), X[0, c, 1:, 3].mean()]] for c in range(2)]
    for found in all_say(text, X):
        np.testing.assert_allclose(found[0], wanted, rtol=1e-5, atol=1e-6)


def test_deep_in_a_body_too() -> None:
    model = parser.parse_model(
        """
        <ir_version: 6, opset_import: ["": 11]>
        g (float[N] x, bool c) => (float[N] y)
        {
          a = Mish (x)
          y = If (c) <
            then_branch = yes () => (float[N] t) { t = HardSwish (a) },
            else_branch = no () => (float[N] e) { e = Neg (a) }
          >
        }
        """
    )
    assert holds_early(model)
    marked = with_domain(model)
    assert [node.domain for node in marked.graph.node] == ["early", ""]
    assert not any(node.domain for node in model.graph.node)
    result = surgeon.apply(model, "out-of-opset")
    assert result.report.status == "equivalent"
    assert not holds_early(result.model.to_proto())
    feeds = {"x": NUMBERS, "c": np.asarray(True)}
    found = [Reference(model).run(feeds)["y"], Session(result.model.to_proto()).run(feeds)["y"]]
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("operator", SINCE)
def test_the_opset_that_has_an_operator_is_onnxs(operator: str) -> None:
    assert onnx.defs.get_schema(operator).since_version >= SINCE[operator]
    with pytest.raises(onnx.defs.SchemaError):
        onnx.defs.get_schema(operator, SINCE[operator] - 1, "")
    assert onnx.defs.get_schema(operator, SINCE[operator], "").since_version == SINCE[operator]


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample_above_opset_9_is_what_it_was(mode: str) -> None:
    text = f"""
        <ir_version: 4, opset_import: ["": OPSET]>
        g (float[1,2,3,4] x) => (float[1,2,H,W] y) <float[4] s = {{1.0, 1.0, 2.5, 2.0}}> {{
            y = Upsample <mode = "{mode}"> (x, s)
        }}
    """
    late = parser.parse_model(text.replace("OPSET", "11"))
    result = surgeon.apply(late, "operand-types")
    assert result.report.status == "equivalent"
    wanted = Session(parser.parse_model(text.replace("OPSET", "9"))).run({"x": X})["y"]
    for model in (Reference(late), Session(result.model.to_proto())):
        np.testing.assert_allclose(model.run({"x": X})["y"], wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "sizes",
    [
        "s = Constant <value = int64[4] {-1, -1, 5, -1}> ()",
        """u = Constant <value = int64[3] {-1, -1, 5}> ()
           b = Constant <value = int64 {-1}> ()
           l = Unsqueeze <axes = [0]> (b)
           s = Concat <axis = 0> (u, l)""",
    ],
)
def test_a_size_of_minus_one_that_expands_nothing_is_compared(sizes: str) -> None:
    """So PyTorch 1.4 writes `x.expand(-1, -1, 5, -1)`, on which onnxruntime stops."""
    model = parser.parse_model(f"""
        <ir_version: 4, opset_import: ["": 9]>
        g (float[N,2,1,4] x) => (float[N,2,5,4] y) {{ {sizes} y = Expand (x, s) }}
    """)
    assert holds_early(model)
    x = X[:, :, :1]
    found = Reference(model).run({"x": x})["y"]
    np.testing.assert_array_equal(found, np.broadcast_to(x, (1, 2, 5, 4)))
    assert surgeon.apply(model, "refused-forms").report.status == "equivalent"


def test_where_it_stays_the_result_is_compared_too() -> None:
    model = parser.parse_model("""
        <ir_version: 4, opset_import: ["": 9]>
        g (float[N,2,1,4] x) => (float[N,2,5,4] y) <int64[4] s = {-1, -1, 5, -1}> {
            a = Transpose <perm = [0, 2, 1, 3]> (x)
            b = Transpose <perm = [0, 2, 1, 3]> (a)
            y = Expand (b, s)
        }
    """)
    result = surgeon.apply(model, "clean")
    assert [node.op_type for node in result.model.to_proto().graph.node] == ["Expand"]
    assert result.report.status == "equivalent"
    assert [
        each for each in result.report.verdict.remarks if "put `refused-forms` in front" in each
    ]
    mended = surgeon.apply(model, "refused-forms", "clean").report.verdict
    assert not [each for each in mended.remarks if "refused-forms" in each]


def test_an_expand_as_onnx_has_it_is_left_to_onnxruntime() -> None:
    model = parser.parse_model("""
        <ir_version: 4, opset_import: ["": 9]>
        g (float[2,1] x) => (float[2,3] y) <int64[2] s = {2, 3}, int64 w = {-1}> {
            y = Expand (x, s)
        }
    """)
    assert not holds_early(model)


@pytest.mark.parametrize(
    ("kind", "bounds", "wanted"),
    [
        ("float", "min = -0.5", lambda x: np.maximum(x, -0.5)),
        ("float", "min = -1.0, max = 0.25", lambda x: np.clip(x, -1, 0.25)),
        ("int64", "max = 1.0", lambda x: np.minimum(x, 1)),
    ],
)
def test_bounds_that_are_attributes_in_a_later_opset_are_compared(
    kind: str, bounds: str, wanted: Callable[[Array], Array]
) -> None:
    """So PyTorch 1.4 and 1.5 write `x.clamp(min=0)` once they have exported at an older opset."""
    model = parser.parse_model(f"""
        <ir_version: 6, opset_import: ["": 11, "org.pytorch.aten": 1]>
        g ({kind}[1,2,3,4] x) => ({kind}[1,2,3,4] y) {{
            a = org.pytorch.aten.neg (x)
            y = Clip <{bounds}> (a)
        }}
    """)
    x = X.astype(np.int64) if kind == "int64" else X
    np.testing.assert_array_equal(Reference(model).run({"x": x})["y"], wanted(-x))
    assert surgeon.apply(model, "aten").report.status == "equivalent"


@pytest.mark.parametrize(
    ("declared", "body", "wanted"),
    [
        ("uint8[3] x", "y = Sub (x, a)", [246, 255, 1]),
        ("uint8[3] x", "y = Div (x, a)", [0, 0, 2]),
        ("float[3] x", "y = Pow (x, d)", [0.0, 1.0, 16.0]),
        ("float[1,3] x", "y = Scatter <axis = 1> (x, i, d)", [[0.0, 4.0, 2.0]]),
        ("uint8[3] x", "y, p = TopK <k = 2> (x)", [2, 1]),
        ("uint8[3] x", "q, y = TopK <k = 2> (x)", [2, 1]),
        ("float[3] x", "y = Pad <pads = [1, -1]> (x)", [0.0, 0.0, 1.0]),
        ("float[3] x", 'y = Pad <pads = [2, 1], mode = "reflect"> (x)', [2.0, 1.0, 0, 1, 2, 1]),
    ],
)
def test_what_onnxruntime_has_not_of_these_types_is_computed(
    declared: str, body: str, wanted: list[float]
) -> None:
    """Of few bits, of a float of another type, and by attributes that an opset has no longer."""
    kind, dims = declared.removesuffix("] x").split("[")
    opset, made = 11 if "Pad" in body else 9, "int64" if ", y" in body else kind
    model = parser.parse_model(f"""<ir_version: 4, opset_import: ["": {opset}]>
        g ({declared}) => ({made}[{dims.replace("3", "N")}] y) {{ {body} }}""")
    constants = {"a": np.array([10, 2, 1], np.uint8), "d": np.array(4.0), "i": np.array([[1]])}
    for name in {*body.replace(")", " ").replace(",", " ").split()} & constants.keys():
        model.graph.initializer.append(onnx.numpy_helper.from_array(constants[name], name))
    x = np.arange(3).astype("u1" if kind == "uint8" else "f4").reshape((*np.shape(wanted)[:-1], 3))
    found = Reference(model).run({"x": x})["y"]
    assert found.dtype == (x.dtype if made == kind else np.int64)
    np.testing.assert_array_equal(found, np.array(wanted))


def test_how_many_of_the_greatest_has_to_be_said() -> None:
    """PyTorch 1.2 writes an empty list there."""
    model = parser.parse_model("""<ir_version: 5, opset_import: ["": 10]>
        g (int64[3] x) => (int64[k] y) <int64[0] k = {}> { y, places = TopK (x, k) }""")
    with pytest.raises(NoWitness):
        Reference(model).run({"x": np.arange(3)})


@pytest.mark.parametrize("shift", ["", "b"])
def test_a_layer_normalisation_without_a_scale_is_one_of_ones(shift: str) -> None:
    """So PyTorch 2.1 writes `LayerNorm(6, elementwise_affine=False)`, which nothing loads."""
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[N,5,6] x) => (float[N,5,6] y) <float[6] b = {{1, 2, 3, 4, 5, 6}}> {{
            y = LayerNormalization <axis = -1, epsilon = 0.01> (x, "", "{shift}")
        }}""")
    result = surgeon.apply(model, "refused-forms")
    assert result.report.status == "equivalent"
    x = np.random.default_rng(0).normal(size=(2, 5, 6)).astype("f4")
    gap = x - x.mean(-1, keepdims=True)
    wanted = gap / np.sqrt((gap**2).mean(-1, keepdims=True) + 0.01)
    wanted = wanted + np.arange(1, 7) if shift else wanted
    for side in (Reference(model), Session(result.model.to_proto())):
        np.testing.assert_allclose(side.run({"x": x}, ["y"])["y"], wanted, atol=1e-5)


def test_where_the_converter_refuses_a_form_the_recipe_for_it_is_named() -> None:
    """MXNet's BatchNormalization of each pixel, of which onnx's converter wants `spatial = 1`."""
    model = parser.parse_model(
        """
        <ir_version: 3, opset_import: ["": 8]>
        g (float[N,2,3] x, float[2,3] s, float[2,3] b, float[2,3] m, float[2,3] v)
          => (float[N,2,3] y) {
          y = BatchNormalization <spatial = 0> (x, s, b, m, v)
        }
        """
    )
    with pytest.raises(surgeon.SurgeonError) as caught:
        surgeon.apply(model, "clean", opset=13, strict=True)
    assert caught.value.mend.startswith("`refused-forms` in front")
