"""What is only done to inputs and outputs, left to the caller: `channels-first`, `input-types`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from typer.testing import CliRunner

import surgeon
from surgeon.cli import app
from surgeon.errors import SurgeonError
from surgeon.inspection import inspect
from surgeon.steps.asread import Handed, as_read

Array = np.ndarray[Any, Any]
IMAGE = """
<ir_version: 8, opset_import: ["": 13]>
g (uint8[N,6,5,3] x) => (float[N,6,5,2] y, float[N,2] z)
  <float[3] mean = {1, 2, 3}, float[1,1,1,1] scale = {0.5}, float[2,3,1,1] w = {1, 2, 3, 4, 5, 6}> {
  f = Cast <to = 1> (x)
  c = Sub (f, mean)
  s = Mul (scale, c)
  t = Transpose <perm = [0, 3, 1, 2]> (s)
  v = Conv (t, w)
  r = Relu (v)
  u = Transpose <perm = [0, 2, 3, 1]> (r)
  y = Softmax <axis = 3> (u)
  z = ReduceMean <axes = [2, 3], keepdims = 0> (v)
}
"""


def ran(proto: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    found: list[Array] = session.run(None, feeds)
    return found


def elements(value: onnx.ValueInfoProto) -> tuple[int, list[int | str]]:
    kind = value.type.tensor_type
    return kind.elem_type, [d.dim_param or d.dim_value for d in kind.shape.dim]


def test_an_image_is_taken_as_the_network_reads_it() -> None:
    model = parser.parse_model(IMAGE)
    result = surgeon.apply(model, "input-types", "channels-first", require="equivalent")
    after = result.model.to_proto()
    assert elements(after.graph.input[0]) == (onnx.TensorProto.FLOAT, ["N", 3, 6, 5])
    assert elements(after.graph.output[0]) == (onnx.TensorProto.FLOAT, ["N", 2, 6, 5])
    assert not {"Cast", "Transpose"} & {node.op_type for node in after.graph.node}
    x = np.random.default_rng(0).integers(0, 256, (2, 6, 5, 3)).astype(np.uint8)
    y, z = ran(model, {"x": x})
    turned, same = ran(after, {"x": x.astype(np.float32).transpose(0, 3, 1, 2)})
    np.testing.assert_allclose(turned.transpose(0, 2, 3, 1), y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(same, z, rtol=1e-5)
    told = [change.contract or "" for change in result.report.changes]
    assert "input `x` is without its Cast to float" in told[0]
    assert "output `y` is without its Transpose by [0, 2, 3, 1]" in told[1]


def test_a_wrong_rewrite_beside_it_is_found() -> None:
    broken = surgeon.Recipe.parse(
        "surgeon: 1\nname: broken\nrules:\n  - id: wrong\n    why: It is not.\n"
        "    exact: rounding\n    match: y = Relu (x)\n    replace: y = Neg (x)\n"
    )
    with pytest.raises(surgeon.SurgeonError):
        surgeon.apply(parser.parse_model(IMAGE), "channels-first", broken, check=False, strict=True)


KEPT = {
    "another reads it": "(float[1,2,3] x) => (float[1,3,2] y, float[1,2,3] z) "
    "{ t = Transpose <perm = [0, 2, 1]> (x) y = Relu (t) z = Abs (x) }",
    "its sizes are read": "(float[N,2,3] x) => (float[N,3,2] y, int64[3] z) "
    "{ t = Transpose <perm = [0, 2, 1]> (x) y = Relu (t) z = Shape (x) }",
    "it is read twice, in two orders": "(float[1,2,3] x) => (float[1,3,2] y) "
    "{ a = Softmax <axis = 1> (x) t = Transpose <perm = [0, 2, 1]> (a) y = MatMul (t, a) }",
    "what it is turned to is an output": "(float[1,2,3] x) => (float[1,3,2] y) "
    "{ y = Transpose <perm = [0, 2, 1]> (x) }",
    "it is added to what another gives": "(float[1,2,3] x, float[1,2,3] z) => (float[1,3,2] y) "
    "{ a = Add (x, z) t = Transpose <perm = [0, 2, 1]> (a) b = Neg (t) y = MatMul (b, a) }",
    "a body reads it": "(float[1,2,3] x, bool c) => (float[1,3,2] y, float[1,2,3] z) "
    "{ t = Transpose <perm = [0, 2, 1]> (x) y = Abs (t) z = If (c) <then_branch = a () => "
    "(float[1,2,3] p) { p = Neg (x) }, else_branch = b () => (float[1,2,3] q) { q = Abs (x) }> }",
}


@pytest.mark.parametrize("title", KEPT)
def test_what_is_read_as_it_came_stays(title: str) -> None:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> g {KEPT[title]}')
    with pytest.raises(SurgeonError, match="no input is turned"):
        as_read(model, "order", Handed())


MOVED = {
    "cut out of a batch": ("uint8", "float", "s = Slice (x, b, e) y = Cast <to = 1> (s)"),
    "whole numbers of a mask": ("int64", "float", "s = Squeeze (x) y = Cast <to = 1> (s)"),
    "doubles": ("double", "float", "s = Flatten (x) y = Cast <to = 1> (s)"),
    "truths": ("bool", "float", "s = Identity (x) y = Cast <to = 1> (s)"),
    "whole numbers": ("int64", "int32", "y = Cast <to = 6> (x)"),
}


@pytest.mark.parametrize("title", MOVED)
def test_types_are_those_that_are_read(title: str) -> None:
    given, taken, body = MOVED[title]
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 13]> g ({given}[4,3] x) => (float[p,q] z)'
        f" <int64[1] b = {{1}}, int64[1] e = {{3}}> {{ {body} f = Cast <to = 1> (y) z = Exp (f) }}"
    )
    result = surgeon.apply(model, "input-types", require="equivalent").model.to_proto()
    kind = onnx.TensorProto.DataType.Name(result.graph.input[0].type.tensor_type.elem_type)
    assert kind.lower() == taken


def test_levels_may_stand_in_front_of_the_transpose() -> None:
    """tf2onnx writes quantised networks of TensorFlow Lite so."""
    model = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[N,4,5,2] x) => (float[N,2,4,5] y) <float s = {0.1}, int8 z = {1}> {
          q = QuantizeLinear (x, s, z)
          t = Transpose <perm = [0, 3, 1, 2]> (q)
          y = DequantizeLinear (t, s, z)
        }
        """
    )
    result = surgeon.apply(model, "channels-first", require="equivalent").model.to_proto()
    assert [node.op_type for node in result.graph.node] == ["QuantizeLinear", "DequantizeLinear"]
    by_axis = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[N,4,5,2] x) => (float[N,2,4,5] y) <float[2] s = {0.1, 0.2}, int8[2] z = {1, 2}> {
          q = QuantizeLinear <axis = 3> (x, s, z)
          t = Transpose <perm = [0, 3, 1, 2]> (q)
          y = DequantizeLinear <axis = 1> (t, s, z)
        }
        """
    )
    assert not surgeon.apply(by_axis, "channels-first").report.changes


def test_places_stay_whole_numbers() -> None:
    """A caller of a decoder gives them as such, though the file makes angles of them."""
    model = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (int64[N,T] places, int64[N,T] mask) => (float[N,T,2] y)
          <float[1,2] w = {1, 0.1}, int64[1] last = {-1}> {
          p = Unsqueeze (places, last)
          f = Cast <to = 1> (p)
          a = MatMul (f, w)
          s = Sin (a)
          q = Unsqueeze (mask, last)
          m = Cast <to = 1> (q)
          y = Mul (s, m)
        }
        """
    )
    result = surgeon.apply(model, "input-types", require="equivalent").model.to_proto()
    kinds = [value.type.tensor_type.elem_type for value in result.graph.input]
    assert kinds == [onnx.TensorProto.INT64, onnx.TensorProto.FLOAT]


def test_whoever_asks_for_sizes_does_not_mind_the_type() -> None:
    model = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (int64[N,T] ids) => (float[N,T,2] y) <float[4,2] table = {1, 2, 3, 4, 5, 6, 7, 8}> {
          short = Cast <to = 6> (ids)
          rows = Gather (table, short)
          sizes = Shape (ids)
          flat = Cast <to = 1> (sizes)
          total = ReduceProd <keepdims = 0> (flat)
          y = Mul (rows, total)
        }"""
    )
    result = surgeon.apply(model, "input-types", require="equivalent")
    assert elements(result.model.to_proto().graph.input[0])[0] == onnx.TensorProto.INT32


@pytest.mark.parametrize("kind", ["float16", "uint8", "double"])
def test_what_is_floats_before_anything_else_is_given_so(kind: str) -> None:
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 13]> g ({kind}[4] x) => (float[4] y)'
        " { f = Cast <to = 1> (x) y = Exp (f) }"
    )
    result = surgeon.apply(model, "input-types", require="equivalent")
    assert elements(result.model.to_proto().graph.input[0])[0] == onnx.TensorProto.FLOAT


@pytest.mark.parametrize(
    ("kind", "nodes"),
    [
        ("string", "f = Cast <to = 1> (x) y = Exp (f)"),
        ("float16", "y = Cast <to = 1> (x)"),
        ("float16", "f = Cast <to = 6> (x) g = Cast <to = 1> (f) y = Exp (g)"),
    ],
)
def test_texts_and_what_is_cut_off_stay(kind: str, nodes: str) -> None:
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 13]> g ({kind}[4] x) => (float[4] y) {{ {nodes} }}'
    )
    assert not surgeon.apply(model, "input-types").model.changed


@pytest.mark.parametrize("nodes", ["m = Reshape (c, x)", "m = Slice (c, zero, x)"])
def test_what_tells_a_shape_or_a_place_is_no_end(nodes: str) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (int64[1] x) => (float[n] y) '
        f"<int64[4] c = {{1, 2, 3, 4}}, int64[1] zero = {{0}}> {{ {nodes} f = Cast <to = 1> (m) "
        "y = Neg (f) }"
    )
    assert not surgeon.apply(model, "input-types", verify=False).model.changed


def test_what_may_be_given_is_not_turned() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[2,3] x, float[3] w) => (float[3,2] y) '
        "<float[3] w = {1, 2, 3}> { s = Add (x, w) t = Transpose <perm = [1, 0]> (s) y = Sin (t) }"
    )
    assert not surgeon.apply(model, "channels-first", verify=False).model.changed


def test_a_shape_that_is_told_is_that_of_the_file() -> None:
    result = surgeon.apply(parser.parse_model(IMAGE), "channels-first", shape={"x": [1, 6, 5, 3]})
    after = result.model.to_proto()
    assert elements(after.graph.input[0])[1] == [1, 6, 5, 3]


def test_it_is_done_once_and_only_where_it_is_allowed() -> None:
    once = surgeon.apply(parser.parse_model(IMAGE), "channels-first", "channels-first")
    assert len(once.report.changes) == 1
    recipe = surgeon.Recipe.parse("surgeon: 1\nname: own\nsteps:\n  - as-read: order\n")
    result = surgeon.apply(parser.parse_model(IMAGE), recipe)
    assert not result.model.changed
    assert "--allow contract" in result.report.failures[0]


NAMED = """
<ir_version: 8, opset_import: ["": 13]>
g (float["N.0",3] "x:0", bool c) => (float["N.0",3] "c:0", float["N.0",3] "Identity/y")
  <float[3] "dense/kernel:0" = {1, 2, 3}> {
  ["/model/mul"] "/m.0" = Mul ("x:0", "dense/kernel:0")
  c_0 = Neg ("/m.0")
  "c:0" = Abs (c_0)
  "Identity/y" = If (c) <then_branch = a () => (float[N,3] "p:0") { "p:0" = Neg ("/m.0") },
    else_branch = b () => (float[N,3] "q:0") { "q:0" = Abs ("x:0") }>
}
"""


def test_names_become_identifiers() -> None:
    model = parser.parse_model(NAMED)
    result = surgeon.apply(model, "plain-names", require="equivalent")
    after = result.model.to_proto()
    text = after.graph.SerializeToString()  # the log of the model tells the former names
    assert [v.name for v in after.graph.input] == ["x_0", "c"]
    assert [v.name for v in after.graph.output] == ["c_0_2", "Identity_y"]
    assert elements(after.graph.input[0])[1] == ["N_0", 3]
    for strange in (b"x:0", b"/m.0", b"/model/mul", b"p:0", b"dense/kernel:0"):
        assert strange not in text
    x, truth = np.ones((2, 3), np.float32), np.array(True)
    for wanted, found in zip(
        ran(model, {"x:0": x, "c": truth}), ran(after, {"x_0": x, "c": truth}), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
    again = surgeon.apply(after, "plain-names")
    assert not again.model.changed


def test_names_and_an_order_are_both_put_back() -> None:
    turned = IMAGE.replace(" x)", ' "x:0")').replace("(x)", '("x:0")')
    both = ["input-types", "plain-names", "channels-first"]
    for recipes in (both, [both[1], both[0], both[2]], [both[0], both[2], both[1]]):
        result = surgeon.apply(parser.parse_model(turned), *recipes, require="equivalent")
        (x,) = result.model.to_proto().graph.input
        assert (x.name, elements(x)) == ("x_0", (onnx.TensorProto.FLOAT, ["N", 3, 6, 5]))


def test_a_name_that_was_told_stays() -> None:
    result = surgeon.apply(parser.parse_model(NAMED), "plain-names", shape={"x:0": [2, 3]})
    assert "was told by that name" in result.report.failures[0]


AT_THE_END = {
    "halves, behind a move": ("float16", "h = Relu (a) c = Cast <to = 1> (h) y = Flatten (c)"),
    "float32 that is given as halves": ("float", "f = Cast <to = 1> (a) y = Cast <to = 10> (f)"),
    "bytes": ("uint8", "b = Cast <to = 2> (a) y = Cast <to = 1> (b)"),
    "int32, which another node reads": (
        "int32",
        "i = Cast <to = 6> (a) n = Neg (i) unread = Abs (n) y = Cast <to = 7> (i)",
    ),
}


@pytest.mark.parametrize("title", AT_THE_END)
def test_outputs_are_given_as_they_are_computed(title: str) -> None:
    given, body = AT_THE_END[title]
    to = onnx.TensorProto.DataType.Name(int(body.rsplit("to = ", 1)[1].split(">")[0])).lower()
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 13]> g (float16[n,3] x) => ({to}[p,q] y) '
        f"{{ a = Abs (x) {body} }}"
    )
    result = surgeon.apply(model, "output-types", require="equivalent")
    (output,) = result.model.to_proto().graph.output
    kind = onnx.TensorProto.DataType.Name(output.type.tensor_type.elem_type)
    assert (output.name, kind.lower()) == ("y", given)
    contract = result.report.changes[-1].contract or ""
    assert f"output `y` is without its Cast to {to}" in contract


STAY_AT_THE_END = {
    "truths": "float[n,3] y) { b = Cast <to = 9> (x) y = Cast <to = 1> (b)",
    "what loses something": "int32[n,3] y) { f = Abs (x) y = Cast <to = 6> (f)",
    "doubles": "float[n,3] y) { d = Cast <to = 11> (x) y = Cast <to = 1> (d)",
    "what is given itself": "float[n,3] h, double[n,3] y) { h = Abs (x) y = Cast <to = 11> (h)",
    "what another reads as it is": "double[n,3] y, double[n,3] z) "
    "{ h = Abs (x) y = Cast <to = 11> (h) z = Neg (y)",
    "an input": "double[n,3] y) { y = Cast <to = 11> (x)",
    "texts": "string[n,3] y) { h = Abs (x) y = Cast <to = 8> (h)",
}


@pytest.mark.parametrize("title", STAY_AT_THE_END)
def test_outputs_stay(title: str) -> None:
    text = f"(float[n,3] x) => ({STAY_AT_THE_END[title]} }}"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> g {text}')
    result = surgeon.apply(model, "output-types")
    assert "no output is cast from what" in result.report.failures[0]
    assert "a Cast in a recipe's `behind` gives another type" in result.report.failures[0]
    assert not result.report.changes


def test_halves_are_given_and_taken_as_float32() -> None:
    # the parser takes bits: 1, 2 and 4, by which nothing is rounded
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 13]>
        g (float16[n,3] x, int64[n] i) => (float16[n,3] y, float16[n,3] z, float[n,3] w)
          <float16[3] "x/half" = {15360, 16384, 17408}> {
            y = Mul (x, "x/half")
            z = Neg (y)
            w = Cast <to = 1> (z)
        }
    """)
    result = surgeon.apply(model, "float32-ends", require="equivalent")
    after = result.model.to_proto()
    ends = [*after.graph.input, *after.graph.output]
    kinds = [value.type.tensor_type.elem_type for value in ends]
    assert [value.name for value in ends] == ["x", "i", "y", "z", "w"]
    assert kinds == [1, 7, 1, 1, 1]
    x = np.array([[0.125, -2.0, 7.0]], np.float32)
    for before, now in zip(
        ran(model, {"x": x.astype(np.float16), "i": np.array([0])}),
        ran(after, {"x": x, "i": np.array([0])}),
        strict=True,
    ):
        np.testing.assert_array_equal(before.astype(np.float32), now)
    assert surgeon.apply(after, "float32-ends").report.changes == ()


def test_inspect_names_outputs_whose_casts_could_be_left(tmp_path: Path) -> None:
    path = tmp_path / "halves.onnx"
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 13]>
        g (float16[n,3] x) => (float[n,3] y) { h = Abs (x) y = Cast <to = 1> (h) }
    """)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    assert inspect(path).cast_behind == ("y",)


def test_inspect_names_what_could_be_left(tmp_path: Path) -> None:
    path = tmp_path / "image.onnx"
    onnx.save(parser.parse_model(IMAGE), path)
    found = inspect(path)
    assert (found.cast, found.turned) == (("x",), ("x",))
    onnx.save(parser.parse_model(NAMED), path)
    assert (inspect(path).cast, inspect(path).turned) == ((), ())


def test_inputs_that_nothing_reads_leave() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 13]>
        g (float[n,2] past, float[n,2] x, bool use_cache, float[n,2] mask) => (float[n,2] y) {
            y = If (use_cache) <
                then_branch = t () => (float[n,2] p) { p = Add (x, past) },
                else_branch = e () => (float[n,2] q) { q = Mul (x, mask) }
            >
        }
    """)
    told: dict[str, Any] = {"values": {"use_cache": False}, "require": "equivalent"}
    result = surgeon.apply(model, "clean", "unread-inputs", strict=True, **told)
    assert [value.name for value in result.model.to_proto().graph.input] == ["x", "mask"]
    assert any("`past`, which nothing reads" in (c.contract or "") for c in result.report.changes)
    shapes = {"past": (1, 2), "x": (1, 2), "mask": (1, 2)}
    result = surgeon.apply(model, "clean", "unread-inputs", "plain-names", shape=shapes, **told)
    assert [value.name for value in result.model.to_proto().graph.input] == ["x", "mask"]
    with_all = surgeon.apply(model, "unread-inputs")
    assert "something reads every input" in with_all.report.failures[0]


@pytest.mark.slow
def test_constants_among_the_inputs_leave() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 13]>
        g (float[n,2] x, float[2,2] w, float[2] b) => (float[n,2] y)
          <float[2,2] w = {1, 2, 3, 4}, float[2] b = {1, 2}> { m = MatMul (x, w) y = Add (m, b) }
    """)
    result = surgeon.apply(model, "listed-constants", "clean", require="equivalent", strict=True)
    after = result.model.to_proto()
    assert [value.name for value in after.graph.input] == ["x"]
    assert [node.op_type for node in after.graph.node] == ["Gemm"]
    again = surgeon.apply(after, "listed-constants")
    assert "no input has a value in the file" in again.report.failures[0]
    assert inspect_says("`listed-constants` makes them", model)
    assert not inspect_says("`listed-constants` makes them", after)


def inspect_says(text: str, model: onnx.ModelProto) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, path := Path(folder) / "model.onnx")
        return text in CliRunner().invoke(app, ["inspect", str(path)]).output
