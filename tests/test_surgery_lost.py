"""What an old exporter may have lost, which `apply` asks about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from command import run

import surgeon
from surgeon.errors import VerifyError


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("y = org.pytorch.aten.clone (x)", "y"),
        ("z = org.pytorch.aten.zeros_like (x) v = Reshape (z, s) y = Add (x, v)", "z"),
        ("i = Shape (x) z = ConstantOfShape (i) y = Identity (z)", None),
        ("i = Shape (x) y = ConstantOfShape (i)", "y"),
        ("z = org.pytorch.aten.zeros_like (x) y = Add (x, z)", None),
        ("c = org.pytorch.aten.clone (x) y = org.pytorch.aten.relu (c)", None),
    ],
)
@pytest.mark.parametrize("inside", [False, True], ids=["in the graph", "in a branch"])
def test_zeros_that_nothing_was_written_to_are_asked_about(
    body: str, value: str | None, inside: bool
) -> None:
    head = '<ir_version: 4, opset_import: ["": 11, "org.pytorch.aten": 0],'
    maker = 'producer_name: "pytorch", producer_version: "1.3">'
    if inside:
        other = "else_branch = e () => (float[5,4] o) { o = Neg (x) }"
        body = f"r = If (p) <then_branch = t () => (float[5,4] y) {{ {body} }}, {other}>"
    model = onnx.parser.parse_model(
        f"{head} {maker} g (float[5,4] x, bool p) => (float[5,4] {'r' if inside else 'y'})"
        f"<int64[2] s = {{5, 4}}> {{ {body} }}"
    )
    if not inside:
        del model.graph.input[1]
    if value is None:
        surgeon.apply(model, "aten")
        return
    with pytest.raises(VerifyError, match=f"nothing is written to `{value}`, which was made to be"):
        surgeon.apply(model, "aten", "clean")
    surgeon.apply(model, "aten", allow=["unread"])
    model.producer_version = "1.12.1"
    surgeon.apply(model, "aten")


def test_a_recipe_that_promises_nothing_asks_too_when_it_replaces_fallback_nodes() -> None:
    """No runtime has ever shown anybody what such a file computes."""
    model = onnx.parser.parse_model(
        """<ir_version: 4, opset_import: ["": 11, "org.pytorch.aten": 0],
            producer_name: "pytorch", producer_version: "1.3">
        g (float[5,4] x) => (float[5,4] y)
        <int64[2] s = {5, 4}>
        { z = org.pytorch.aten.zeros_like (x) v = Reshape (z, s) y = Add (x, v) }"""
    )
    recipe = "surgeon: 1\nname: ours\nsteps:\n  - use: aten\n"
    own = surgeon.Recipe.parse(recipe)
    with pytest.raises(VerifyError, match="nothing is written to `z`, which was made to be"):
        surgeon.apply(model, own)
    assert surgeon.apply(model, own, allow=["unread"]).report.fired


def test_what_was_not_compared_because_of_it_is_not_said_to_be_unasked(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 4, opset_import: ["": 11, "org.pytorch.aten": 0],
            producer_name: "pytorch", producer_version: "1.3">
        g (float[5,4] x) => (float[5,4] y) { y = org.pytorch.aten.clone (x) }"""
    )
    onnx.save(model, tmp_path / "in.onnx")
    told = run("apply", "aten", tmp_path / "in.onnx", tmp_path / "out.onnx")
    assert told.exit_code == 3
    assert "the whole model was not compared: an error ended it before" in told.output
    assert not surgeon.apply(model, "clean", verify=False).report.fired


@pytest.mark.parametrize(
    ("state", "given", "asked"), [("h", "y", False), ("", "y", True), ("h", "c", True)]
)
def test_zeros_that_recurrent_layers_begin_with_are_cut_by_the_exporter(
    state: str, given: str, asked: bool
) -> None:
    """`nn.GRU` of several layers, to which no state is given."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 4, opset_import: ["": 11, "org.pytorch.aten": 0],
            producer_name: "pytorch", producer_version: "1.4">
        g (float[5,1,4] x) => (float {given})
        <float[1,6,4] w = {{{", ".join(["0.1"] * 24)}}},
         float[1,6,2] r = {{{", ".join(["0.2"] * 12)}}},
         int64[3] s = {{2, 1, 2}}, int64[1] i = {{0}}, int64[1] j = {{1}}> {{
            z = ConstantOfShape (s) h = Slice (z, i, j, i)
            t, n = GRU <hidden_size = 2> (x, w, r, , , {state})
            c = Add (h, n) y = org.pytorch.aten.relu ({"t" if state else "c"})
        }}"""
    )
    if state and given == "y":
        del model.graph.node[3]
    if not asked:
        surgeon.apply(model, "aten")
        return
    with pytest.raises(VerifyError, match="nothing is written to `z`, which was made to be"):
        surgeon.apply(model, "aten")


@pytest.mark.parametrize(
    ("axes", "channels", "asked"),
    [("0, 1, 2", 2, True), ("1, 2", 2, False), ("0, 1, 2", 1, False)],
)
def test_a_weight_norm_over_all_axes_is_asked_about(axes: str, channels: int, asked: bool) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 4, opset_import: ["": 11, "org.pytorch.aten": 0],'
        'producer_name: "pytorch", producer_version: "1.3">'
        f"g (float[1,3,8] x) => (float[1,2,7] y) {{"
        f"  n = ReduceL2 <axes = [{axes}], keepdims = 1> (v)"
        "  d = Div (v, n) w = Mul (c, d) z = Conv (x, w) y = org.pytorch.aten.relu (z) }"
    )
    draw = np.random.default_rng(0)
    for name, shape in {"v": (2, 3, 2), "c": (channels, 1, 1)}.items():
        values = draw.normal(size=shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    if not asked:
        surgeon.apply(model, "aten")
        return
    with pytest.raises(VerifyError, match="`v`: divided by one norm, and scaled channel by"):
        surgeon.apply(model, "aten")
    surgeon.apply(model, "aten", allow=["unread"])


@pytest.mark.parametrize(
    ("version", "read", "asked"), [("1.4", "x", True), ("1.7", "h", False), ("1.8", "x", False)]
)
def test_a_loop_that_nothing_reads_is_asked_about(version: str, read: str, asked: bool) -> None:
    """It was written for a list that its turns fill, which the file does not hold."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 4, opset_import: ["": 11, "org.pytorch.aten": 0],
            producer_name: "pytorch", producer_version: "{version}">
        g (float[3] x, int64 n) => (float[3] y) <bool go = {{1}}> {{
            h = Loop (n, go, x) <body = turn (int64 i, bool c, float[3] a) => (c2, b) {{
                c2 = Identity (c) b = Exp (a)
            }}>
            y = org.pytorch.aten.relu ({read})
        }}"""
    )
    if not asked:
        surgeon.apply(model, "aten")
        return
    with pytest.raises(VerifyError, match="`h`: a Loop or an If that nothing reads"):
        surgeon.apply(model, "aten")
    surgeon.apply(model, "aten", allow=["unread"])


@pytest.mark.parametrize(("version", "said"), [("1.4", True), ("1.5", False), ("2.13", False)])
def test_what_an_old_exporter_may_have_lost_is_said(version: str, said: bool) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 4, opset_import: ["": 9, "org.pytorch.aten": 0],
            producer_name: "pytorch", producer_version: "{version}">
        g (float[5,4] x) => (float[5,4] y) {{ y = org.pytorch.aten.relu (x) }}"""
    )
    remarks = surgeon.apply(model, "aten").report.remarks
    assert any("assignments to a slice" in remark for remark in remarks) == said


def test_an_assignment_that_an_old_exporter_lost_is_asked_about(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 4, opset_import: ["": 9, "org.pytorch.aten": 0],
            producer_name: "pytorch", producer_version: "1.3">
        g (float[5,4] x, float[5,2] v) => (float[5,4] y) { y = org.pytorch.aten.clone (x) }"""
    )
    with pytest.raises(VerifyError) as caught:
        surgeon.apply(model, "aten")
    assert caught.value.what.startswith(
        "nothing reads `v` among the inputs: PyTorch before 1.5 loses"
    )
    allowed = surgeon.apply(model, "aten", allow=["unread"]).report.verdict
    assert allowed is not None
    assert allowed.status == "equivalent"
    x, v = np.ones((5, 4), np.float32), np.zeros((5, 2), np.float32)
    np.savez(tmp_path / "wrong.npz", **{"in.x": x, "in.v": v, "out.y": np.zeros_like(x)})
    with pytest.raises(VerifyError, match="is not saved"):
        surgeon.apply(model, "aten", reference=tmp_path / "wrong.npz")
    np.savez(tmp_path / "right.npz", **{"in.x": x, "in.v": v, "out.y": x})
    surgeon.apply(model, "aten", reference=tmp_path / "right.npz")
    model.producer_version = "1.12.1"
    surgeon.apply(model, "aten")


def test_bodies_call_other_values_by_one_name() -> None:
    """What is constant in one body is not in its sibling."""
    body = "<body = b (int64 i, bool c, float[3] s) => (bool a, float[3] t)"
    model = onnx.parser.parse_model(
        '<ir_version: 7, opset_import: ["": 12, "org.pytorch.aten": 1]> g (float[3] x) '
        "=> (float[3] y) <int64 many = {9223372036854775807}, int64 two = {2}> {"
        f"v = Loop (two, , x) {body} <bool a = {{1}}, float o = {{1}}> {{ t = Add (s, o) }}>"
        f"z = Loop (many, , v) {body} <float o = {{1}}, float e = {{9}}> {{"
        "t = Add (s, o) m = ReduceMax <keepdims = 0> (t) a = Less (m, e) }>"
        'y = org.pytorch.aten.ATen <operator = "sinc", overload_name = ""> (z) }'
    )
    assert surgeon.apply(model, "aten").report.status == "equivalent"


@pytest.mark.parametrize(
    ("count", "begins", "again", "ends"),
    [
        ("many", "yes", "a = Identity (on)", False),
        ("", "yes", "a = Cast <to = 9> (on)", False),
        ("many", "", "a = Identity (on)", False),
        ("two", "yes", "a = Identity (on)", True),
        ("many", "no", "a = Identity (on)", True),
        ("many", "yes", "m = ReduceMax <keepdims = 0> (t) a = Less (m, ten)", True),
    ],
)
def test_a_loop_that_never_ends_is_not_run(count: str, begins: str, again: str, ends: bool) -> None:
    """Exporters write the condition of a `while` that asks for a size they know as it was."""
    model = onnx.parser.parse_model(
        '<ir_version: 7, opset_import: ["": 12, "org.pytorch.aten": 1]> g (float[3] x) '
        "=> (float[3] y)"
        "<int64 many = {9223372036854775807}, int64 two = {2}, bool yes = {1}, bool no = {0}> {"
        f"z = Loop ({count}, {begins}, x) <body = b (int64 i, bool c, float[3] s)"
        " => (bool a, float[3] t) <bool on = {1}, float one = {1}, float ten = {10}> {"
        f"t = Add (s, one) {again} }}>"
        'y = org.pytorch.aten.ATen <operator = "sinc", overload_name = ""> (z) }'
    )
    if ends:
        assert surgeon.apply(model, "aten").report.status == "equivalent"
        return
    surgeon.apply(model, "aten", verify=False)
    with pytest.raises(VerifyError) as raised:
        surgeon.apply(model, "aten")
    assert raised.value.what == (
        "the Loop that gives `z` never ends: its condition is a constant, as PyTorch's exporters "
        "write it of a `while` that asks for a size they know"
    )
