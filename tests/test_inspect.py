"""What `inspect` sees: every spelling of a fallback, dims, weights, data files, bodies."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import surgeon
from surgeon import render
from surgeon.errors import ModelError
from surgeon.inspection import Inspection, inspect, with_load


def look(model: onnx.ModelProto, folder: Path) -> Inspection:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return inspect(path)


def parsed(body: str, imports: str = '"" : 17', head: str = "") -> onnx.ModelProto:
    return onnx.parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]{head}>\n{body}")


def test_the_sample(samples: Path) -> None:
    found = inspect(samples / "dymn_tiny" / "dymn_tiny.onnx")
    assert found.opsets == {"ai.onnx": 17, "org.pytorch.aten": 1}
    assert found.producer.startswith("pytorch ")
    assert found.dynamic == ("batch", "time")
    assert [(f.operator, f.count) for f in found.foreign] == [
        ("aten._convolution", 8),
        ("aten.adaptive_avg_pool2d", 6),
    ]
    assert all(not f.runs and "dymn" in f.recipes for f in found.foreign)
    assert found.foreign[0].spelled == ("org.pytorch.aten.ATen",)
    assert sum(found.operators.values()) == 500
    assert "Constant" not in found.operators


def test_a_computed_kernel_is_counted(samples: Path) -> None:
    found = inspect(samples / "dymn_tiny" / "dymn_tiny_static.onnx")
    assert found.foreign == ()
    assert found.computed_weights > 0


def test_every_spelling_of_a_fallback_is_one_operator(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ATen", ["x"], ["a"], domain="org.pytorch.aten", operator="glu"),
        helper.make_node("ATen", ["a"], ["b"], operator="glu"),
        helper.make_node("glu", ["b"], ["c"], domain="org.pytorch.aten"),
        helper.make_node("ATen", ["c"], ["d"], domain="com.microsoft", operator="__and_"),
        helper.make_node("ListUnpack", ["d"], ["e"], domain="org.pytorch.prim"),
        helper.make_node("Plugin", ["e"], ["f"], domain="my.domain"),
        helper.make_node("FusedMatMul", ["f", "f"], ["g"], domain="com.microsoft"),
        helper.make_node("NoSuchOp", ["g"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 2]) for n in "xy")
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]))
    found = {f.operator: f for f in look(model, tmp_path).foreign}
    assert found["aten.glu"].count == 3
    assert found["aten.glu"].spelled == (
        "org.pytorch.aten.ATen",
        "ai.onnx.ATen",
        "org.pytorch.aten.glu",
    )
    assert found["aten.__and__"].count == 1
    assert found["prim.ListUnpack"].count == 1
    assert not found["my.domain.Plugin"].runs
    assert found["com.microsoft.FusedMatMul"].runs
    assert not found["NoSuchOp"].runs


def test_an_operator_newer_than_the_opset_is_foreign(tmp_path: Path) -> None:
    model = parsed("g (float[2] x) => (float[2] y) { y = Gelu (x) }")
    assert [f.operator for f in look(model, tmp_path).foreign] == ["Gelu"]


def test_functions_of_the_model_are_not_foreign(tmp_path: Path) -> None:
    model = parsed(
        """g (float[n] x) => (float[n] y) { y = local.Twice (x) }
        <domain: "local", opset_import: ["" : 17]> Twice (a) => (b) { b = Add (a, a) }""",
        '"" : 17, "local" : 1',
    )
    found = look(model, tmp_path)
    assert found.foreign == ()
    assert found.functions == ("local.Twice",)
    assert found.operators == {"Add": 1, "local.Twice": 1}


def test_bodies_are_looked_into(tmp_path: Path) -> None:
    model = parsed(
        """g (bool c, float[n] x) => (float[n] y) {
            y = If (c) <then_branch = t () => (float[n] a) { a = org.pytorch.aten.foo (x) },
                        else_branch = e () => (float[n] b) { b = Neg (x) }>
        }""",
        '"" : 17, "org.pytorch.aten" : 1',
    )
    found = look(model, tmp_path)
    assert found.subgraphs == 2
    assert [f.operator for f in found.foreign] == ["aten.foo"]
    assert found.foreign[0].recipes == ()


def test_the_interface_is_what_the_file_declares(tmp_path: Path) -> None:
    model = parsed("g (float[b,3,?] x, float16 s) => (float[] y) { y = ReduceSum (x) }")
    found = look(model, tmp_path)
    assert [(v.name, v.kind, v.shape) for v in found.inputs] == [
        ("x", "float32", ("b", 3, None)),
        ("s", "float16", ()),
    ]
    assert found.dynamic == ("b", "x.2")


def test_overridable_initializers_are_no_inputs(tmp_path: Path) -> None:
    model = parsed("g (float[2] x, float[2] w) => (float[2] y) { y = Add (x, w) }")
    model.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    found = look(model, tmp_path)
    assert [v.name for v in found.inputs] == ["x"]
    assert found.overridable == 1
    assert found.weight_bytes == 8
    assert not found.defaults, "every weight is listed"
    model.graph.node[0].input[0] = "k"
    model.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "k"))
    found = look(model, tmp_path)
    assert [v.name for v in found.defaults] == ["w"]
    assert "default  w  float32" in render.text(render.inspection(found))


def external(folder: Path, location: str) -> onnx.ModelProto:
    model = parsed("g (float[2] x) => (float[2] y) { y = Add (x, w) }")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("length", "8")):
        tensor.external_data.add(key=key, value=value)
    model.graph.initializer.append(tensor)
    return model


def test_external_data_is_counted_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"\0" * 8)
    found = look(external(tmp_path, "w.bin"), tmp_path)
    assert [(f.name, f.tensors, f.size) for f in found.external] == [("w.bin", 1, 8)]
    assert found.weight_bytes == 8


@pytest.mark.parametrize("location", ["missing.bin", "../outside.bin", "/etc/passwd"])
def test_external_data_that_is_not_there_is_said(tmp_path: Path, location: str) -> None:
    found = look(external(tmp_path, location), tmp_path)
    assert found.external[0].size is None
    assert "external data is missing" in render.text(render.inspection(found))


def test_a_dequantised_kernel_is_no_computed_one(tmp_path: Path) -> None:
    model = parsed(
        """g (float[1,1,4,4] x, float[1,1,1,1] k) => (float[1,1,4,4] y)
        <int8[1,1,1,1] q = {3}, float s = {0.5}> {
            w = DequantizeLinear (q, s)
            h = Conv (x, w)
            y = Conv (h, k)
        }"""
    )
    assert look(model, tmp_path).computed_weights == 1


def test_what_is_in_a_model_reads_well(samples: Path) -> None:
    found = inspect(samples / "dymn_tiny" / "dymn_tiny.onnx")
    text = render.text(render.inspection(found))
    assert "8  aten._convolution  spelled org.pytorch.aten.ATen" in text
    assert "Try: surgeon apply aten" in text
    json.loads(json.dumps(found.to_dict()))


def test_a_sound_model_is_said_to_be_sound(tmp_path: Path) -> None:
    found = look(parsed("g (float[2] x) => (float[2] y) { y = Relu (x) }"), tmp_path)
    assert "Only standard operators" in render.text(render.inspection(found))


def test_a_model_that_onnxruntime_does_not_load_is_said_to_be(tmp_path: Path) -> None:
    sound = parsed("g (float[2] x) => (float[2] y) { y = Relu (x) }")
    assert with_load(look(sound, tmp_path)).loads is True
    wrong = parsed("g (float[1,3] x, float[1,4] z) => (float[1,4] y) { y = Add (x, z) }")
    found = with_load(look(wrong, tmp_path))
    assert found.loads is False
    text = render.text(render.inspection(found))
    assert "onnxruntime does not load it: " in text
    assert "Only standard operators" not in text


def test_an_operator_that_is_only_refused_has_no_recipe(tmp_path: Path) -> None:
    eig = parsed("g (float[2,2] x) => (float[2] y) { y = aten.resize (x) }")
    (foreign,) = look(eig, tmp_path).foreign
    assert foreign.recipes == ()


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        inspect(tmp_path / "nothing.onnx")


def test_the_largest_weights_are_named_with_their_types(tmp_path: Path) -> None:
    tensors = [
        onnx.numpy_helper.from_array(np.zeros(shape, dtype), name)
        for name, shape, dtype in (
            ("small", (3,), np.int64), ("wide", (300, 1000), np.float32), ("half", (9, 9), np.half),
        )
    ]  # fmt: skip
    node = onnx.helper.make_node("Identity", ["wide"], ["y"])
    value = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [300, 1000])
    graph = onnx.helper.make_graph([node], "g", [], [value], initializer=tensors)
    path = tmp_path / "in.onnx"
    onnx.save(onnx.helper.make_model(graph), path)
    found = inspect(path)
    assert dict(found.weight_dtypes) == {"float32": 1_200_000, "float16": 162, "int64": 24}
    assert [(each.name, each.dtype, each.shape) for each in found.largest] == [
        ("wide", "float32", (300, 1000)), ("half", "float16", (9, 9)), ("small", "int64", (3,)),
    ]  # fmt: skip
    assert "float32 [300, 1000]  wide" in render.text(render.inspection(found))


def test_what_surgeon_made_is_said_to_be_done(tmp_path: Path) -> None:
    before = parsed(
        "g (float[2, 3] x) => (float[2, 3] y) { n = Neg (x)  m = Neg (n)  y = Relu (m) }"
    )
    onnx.save(before, tmp_path / "in.onnx")
    text = render.text(render.inspection(inspect(tmp_path / "in.onnx", target="tensorrt")))
    assert "surgeon apply for-tensorrt" in text
    surgeon.apply(before, "for-tensorrt").model.save(tmp_path / "out.onnx")
    found = inspect(tmp_path / "out.onnx", target="tensorrt")
    assert found.made == ("for-tensorrt",)
    text = render.text(render.inspection(found))
    assert "Made by surgeon with for-tensorrt: nothing to do" in text
    assert "surgeon apply" not in text


def shown(model: onnx.ModelProto, folder: Path) -> str:
    return " ".join(surgeon.shown(with_load(look(model, folder))).split())


def stated(model: onnx.ModelProto, name: str, kind: int, *dims: int | str) -> onnx.ModelProto:
    model.graph.value_info.append(helper.make_tensor_value_info(name, kind, dims))
    return model


def test_false_statements_are_named_with_what_sets_them_right(tmp_path: Path) -> None:
    text = "g (float[2,n] x) => (float[2,n] y) { a = Exp (x)  b = Neg (a)  y = Abs (b) }"
    assert look(stated(parsed(text), "a", TensorProto.FLOAT, 2, "m"), tmp_path).misstated == ()
    assert look(stated(parsed(text), "a", TensorProto.FLOAT, 3, "n"), tmp_path).misstated == ("a",)
    assert look(stated(parsed(text), "b", TensorProto.FLOAT, 2), tmp_path).misstated == ("b",)
    model = parsed("g (float[n] x) => (float[4,n] y) { y = Exp (x) }")
    assert look(model, tmp_path).misstated == ("y",)
    assert "`state-shapes` sets right" in shown(model, tmp_path)


def test_a_false_type_is_why_it_does_not_load(tmp_path: Path) -> None:
    text = "g (float[n] x) => (float[n] y) { a = Cast <to = 10> (x)  y = Cast <to = 1> (a) }"
    model = stated(parsed(text), "a", TensorProto.FLOAT, "n")
    assert "Try: surgeon apply state-shapes " in shown(model, tmp_path)
    assert surgeon.apply(model, "state-shapes").report.status == "equivalent"


@pytest.mark.parametrize(
    "text",
    [
        "g (float16[n] x) => (float16[n] y) <float e = {0.5}> { y = Add (x, e) }",
        "g (int64[n] x) => (int64[n] y) <int64 two = {2}> { q = Div (x, two)  y = Floor (q) }",
    ],
)
def test_types_that_do_not_go_together_are_why_it_does_not_load(tmp_path: Path, text: str) -> None:
    assert "Try: surgeon apply operand-types " in shown(parsed(text), tmp_path)


def test_nodes_that_are_not_sorted_are_seen_in_bodies_too(tmp_path: Path) -> None:
    text = "g (float[n] x) => (float[n] y) { a = Exp (x)  y = Neg (a) }"
    assert not look(parsed(text), tmp_path).unsorted
    model = parsed(text)
    model.graph.node.reverse()
    assert look(model, tmp_path).unsorted
    assert "(not topologically sorted)" in shown(model, tmp_path)
    body = """g (float[n] x, bool c) => (float[n] y) {
        y = If (c) <then_branch = t () => (float[n] p) { a = Exp (x)  p = Neg (a) },
                    else_branch = e () => (float[n] q) { q = Abs (x) }> }"""
    branching = parsed(body)
    assert not look(branching, tmp_path).unsorted
    branching.graph.node[0].attribute[0].g.node.reverse()
    assert look(branching, tmp_path).unsorted


def test_training_mode_is_counted(tmp_path: Path) -> None:
    model = parsed("""g (float[n,2] x, float[2] s) => (float[n,2] y)
        <float r = {0.5}, bool yes = {1}, bool no = {0}> {
        a = Dropout (x, r, no)
        b = Dropout (a, r, yes)
        t = Constant <value = bool {1}> ()
        c = Dropout (b, r, t)
        d = Dropout (c, r)
        e = BatchNormalization (d, s, s, s, s)
        y, m, v = BatchNormalization <training_mode = 1> (e, s, s, s, s) }""")
    assert look(model, tmp_path).training == 3
    assert "3 nodes (Dropout, BatchNormalization) in training mode" in shown(model, tmp_path)


def test_a_norm_of_old_trains_by_its_outputs(tmp_path: Path) -> None:
    model = parsed("""g (float[n,2] x, float[2] s) => (float[n,2] y) {
        e = BatchNormalization (x, s, s, s, s)
        y, m, v, o, p = BatchNormalization (e, s, s, s, s) }""")
    assert look(model, tmp_path).training == 0
    model.opset_import[0].version = 13
    assert look(model, tmp_path).training == 1


def test_kernels_that_are_not_said_are_counted(tmp_path: Path) -> None:
    model = parsed("""g (float[n,1,5] x, float[1,1,3] w) => (float[n,1,1] y) {
        a = Conv <kernel_shape = [3]> (x, w)  y = Conv (a, w) }""")
    assert look(model, tmp_path).bare_kernels == 1
    assert "`stated-attributes` writes it" in shown(model, tmp_path)


@pytest.mark.parametrize(("ir", "opset"), [(99, 17), (10, 99)])
def test_a_format_that_is_too_new_is_why_it_does_not_load(
    tmp_path: Path, ir: int, opset: int
) -> None:
    model = parsed("g (float[n] x) => (float[n] y) { y = Exp (x) }")
    model.ir_version, model.opset_import[0].version = ir, opset
    assert "Try: surgeon apply clean --opset 17 " in shown(model, tmp_path)


def test_a_norm_of_onnxruntime_in_an_older_opset_leads_to_contrib(tmp_path: Path) -> None:
    text = "g (float[n,4] x, float[4] s) => (float[n,4] y) { y = LayerNormalization (x, s) }"
    assert "Try: surgeon apply contrib " in shown(parsed(text, '"" : 12'), tmp_path)


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("[one] a = Relu (x) [one] y = Exp (a)", "Try: surgeon apply clean "),
        ("a = Relu (x) a = Relu (x) y = Exp (a)", "Try: surgeon apply clean "),
        ("a = MatMul (x, x) y = Add (a, a)", "Try: surgeon apply clean ..., or"),
    ],
)
def test_what_helps_goes_by_what_onnxruntime_complains_of(
    tmp_path: Path, body: str, hint: str
) -> None:
    wrong = parsed(f"g (float[2,3] x) => (float[2,3] y) {{ {body} }}")
    text = " ".join(render.text(render.inspection(with_load(look(wrong, tmp_path)))).split())
    assert "onnxruntime does not load it" in text
    assert hint in text


@pytest.mark.parametrize(
    ("text", "mends"),
    [
        (
            "g (float16[n,3] x) => (float16[n,3] y) <float[3] s = {1, 2, 3}> {"
            " y = LayerNormalization (x, s) }",
            True,
        ),
        ("g (float[n,3] x) => (float[n,2] y) <int32[1] k = {2}> { y, i = TopK (x, k) }", True),
        (
            "g (int64 c, float[2] x) => (float[2] y) { y = If (c) <then_branch = a () =>"
            " (float[2] p) { p = Neg (x) }, else_branch = b () => (float[2] q) { q = Exp (x) }> }",
            False,
        ),
    ],
)
def test_a_recipe_is_named_that_has_a_rule_for_the_operator_at_fault(
    tmp_path: Path, text: str, mends: bool
) -> None:
    assert ("surgeon apply operand-types" in shown(parsed(text), tmp_path)) is mends


def test_pads_below_zero_that_onnxruntime_refuses_lead_to_plain_conv(tmp_path: Path) -> None:
    text = """g (float[1,1,4,4] x) => (float[1,1,a,b] y) <float[1,1,1,1] w = {2}> {
        y = ConvTranspose <pads = [-1, -1, -1, -1]> (x, w) }"""
    model = parsed(text)
    assert "Try: surgeon apply plain-conv " in shown(model, tmp_path)
    with pytest.raises(surgeon.VerifyError, match="plain-conv") as refused:
        surgeon.apply(model, "for-tract")
    assert "in front, which mends that" in refused.value.mend
    assert surgeon.apply(model, "plain-conv", "for-tract").report.status == "runs"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("a = Relu (x) a = Abs (x) y = Exp (a)", "gives `a`, which is there already"),
        ("a = Add (x, b) b = Neg (a) y = Exp (b)", "the graph has a cycle"),
        ("y = Add (x, nosuch)", "which nothing gives"),
    ],
)
def test_what_no_command_takes_is_said(body: str, why: str, tmp_path: Path) -> None:
    found = look(parsed(f"g (float[2,3] x) => (float[2,3] y) {{ {body} }}"), tmp_path)
    assert why in found.broken
    text = " ".join(render.text(render.inspection(with_load(found))).split())
    assert "no command takes it: " in text
    assert "Try: " not in text
    assert " more: --verbose" not in text
