"""Shapes that a file states: false ones are corrected, fixed ones reach the interface."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime as ort
import pytest

import surgeon

STALE = """
<ir_version: 8, opset_import: ["": 13]>
g (float[N,4] x) => (float[M,4] y) <float[2,4] r, float[N,4] a, int64[2] s = {0, 4}> {
  r = Reshape (x, s)
  a = Abs (r)
  y = Relu (a)
}
"""


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def shape_of(value: onnx.ValueInfoProto) -> list[int | str]:
    return [d.dim_value or d.dim_param for d in value.type.tensor_type.shape.dim]


def test_a_stale_shape_is_corrected_and_reported() -> None:
    stale = model(STALE)
    a = next(v for v in stale.graph.value_info if v.name == "a")
    a.type.tensor_type.shape.dim[0].dim_value = 2  # what the trace had; the batch is dynamic
    result = surgeon.apply(stale, "shape-chains")
    after = result.model.to_proto()
    assert {v.name: shape_of(v) for v in after.graph.value_info} == {"a": ["N", 4]}
    assert any("`a`" in remark for remark in result.report.remarks)
    assert shape_of(after.graph.output[0]) == ["M", 4], "an output keeps what it declares"


def test_a_true_shape_stays_as_it_is() -> None:
    result = surgeon.apply(model(STALE), "shape-chains")
    after = result.model.to_proto()
    assert [shape_of(v) for v in after.graph.value_info if v.name == "a"] == [["N", 4]]
    assert not result.report.remarks


@pytest.mark.parametrize(
    "options", [{"shape": {"x": [3, 4]}}, {"assume": ["N == 3"]}], ids=["shape", "assume"]
)
def test_a_fixed_dimension_reaches_inputs_and_outputs(options: dict[str, object]) -> None:
    original = model(STALE)
    kept = original.SerializeToString()
    after = surgeon.apply(original, "shape-chains", **options).model.to_proto()
    assert shape_of(after.graph.input[0]) == [3, 4]
    assert shape_of(after.graph.output[0]) == [3, 4]
    assert original.SerializeToString() == kept


def test_a_size_that_is_given_another_name_has_it_at_outputs_too() -> None:
    asked = model(STALE)
    after = surgeon.apply(asked, "clean", shape={"x": ["batch", 4]}).model.to_proto()
    assert shape_of(after.graph.input[0]) == ["batch", 4]
    assert shape_of(after.graph.output[0]) == ["batch", 4]
    after = surgeon.apply(asked, "clean", shape={"x": ["N", 4]}).model.to_proto()
    assert shape_of(after.graph.output[0]) == ["M", 4], "an output keeps what it declares"


def test_a_tensor_that_is_said_to_be_a_list_is_said_to_be_a_tensor() -> None:
    """PyTorch 1.11 says so of the sizes that a scripted module asks for."""
    said = model(STALE)
    list_ = onnx.helper.make_tensor_sequence_value_info("a", onnx.TensorProto.INT64, None)
    next(v for v in said.graph.value_info if v.name == "a").CopyFrom(list_)
    after = surgeon.apply(said, "shape-chains").model.to_proto()
    (a,) = (v for v in after.graph.value_info if v.name == "a")
    assert (a.type.tensor_type.elem_type, shape_of(a)) == (onnx.TensorProto.FLOAT, ["N", 4])


TRACED = """
<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
g (float[N,4] x) => (float[2,4] y, int64[3,2] p) {
  y = org.pytorch.aten.ATen <operator = "hypot", overload_name = ""> (x, x)
  p = org.pytorch.aten.nonzero (x)
}
"""


def test_a_traced_size_of_an_output_is_corrected_where_the_inputs_prove_it() -> None:
    result = surgeon.apply(model(TRACED), "aten")
    y, p = result.model.to_proto().graph.output
    assert shape_of(y) == ["N", 4]
    assert shape_of(p) == ["", 2], "how many there are, the run alone tells"
    assert "shapes that outputs declare were false: `y`, `p`" in result.report.remarks


def test_what_a_runtime_loads_keeps_the_sizes_that_its_outputs_declare() -> None:
    known = TRACED.replace("org.pytorch.aten.nonzero (x)", "Transpose (n) n = NonZero (x)")
    known = known.replace(
        'org.pytorch.aten.ATen <operator = "hypot", overload_name = ""> (x, x)',
        "Exp (z) z = Identity (x)",
    )
    result = surgeon.apply(model(known), "clean")
    assert result.model.changed
    assert shape_of(result.model.to_proto().graph.output[0]) == [2, 4]


def test_a_rank_that_an_output_falsely_declares_is_corrected_anywhere() -> None:
    """With it no runtime loads the file."""
    text = """<ir_version: 8, opset_import: ["": 13]>
    g (float[N,4] x) => (float[N] y, float[2,4] z) <int64[1] a = {1}> {
      y = Unsqueeze (x, a)
      z = Abs (x)
    }"""
    result = surgeon.apply(model(text), "clean")
    y, z = result.model.to_proto().graph.output
    assert (shape_of(y), shape_of(z)) == (["N", 1, 4], [2, 4])
    assert result.report.remarks == ("shapes that outputs declare were false: `y`",)


def test_a_size_that_hangs_on_values_varies_where_no_size_does() -> None:
    text = """<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
    g (float[9] x) => (int64[4,1] p, float[9] y) {
      p = org.pytorch.aten.nonzero (x)
      y = org.pytorch.aten.ATen <operator = "hypot", overload_name = ""> (x, x)
    }"""
    result = surgeon.apply(model(text), "aten")
    p, y = result.model.to_proto().graph.output
    assert (shape_of(p), shape_of(y)) == (["", 1], [9])


def test_what_a_loop_carries_has_the_shape_of_every_turn() -> None:
    """Exporters state that of the first, which onnxruntime's optimisations take for all."""
    text = """<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
    g (float[1] x, int64 n) => (int64[1] y) <bool yes = {1}> {
      a = org.pytorch.aten.ATen <operator = "hypot", overload_name = ""> (x, x)
      z, w = Loop (n, yes, a, a) <body = b (int64 i, bool c, float[1] s, float[1] e) =>
        (bool d, float[m] t, float[1] f) {
          d = Identity (c) t = Concat <axis = 0> (s, s) f = Neg (e) }>
      y = Shape (z)
    }"""
    result = surgeon.apply(model(text), "aten")
    assert result.report.verdict is not None
    assert (result.report.verdict.status, result.report.verdict.remarks) == ("equivalent", ())
    proto = result.model.to_proto()
    body = next(n for n in proto.graph.node if n.op_type == "Loop").attribute[0].g
    assert [shape_of(value) for value in body.input[2:]] == [[""], [1]]
    assert "shapes that bodies declare were false: `s`" in result.report.remarks


def test_what_a_loop_gives_back_has_no_shape_of_the_first_turn() -> None:
    """With that onnxruntime's optimisations take the condition for a constant, and never end."""
    text = """<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
    g (float[6] x) => (float[n] y) <bool yes = {1}> {
      a = org.pytorch.aten.ATen <operator = "hypot", overload_name = ""> (x, x)
      y = Loop (, yes, a) <body = b (int64 i, bool c, float[k] s) => (bool d, float[5] t)
        <int64[1] zero = {0}, int64[1] one = {1}, int64[1] last = {-1}, int64[1] three = {3}> {
          t = Slice (s, zero, last) m = Shape (t) more = Greater (m, three) d = Squeeze (more) }>
    }"""
    result = surgeon.apply(model(text), "aten", verify=False)
    body = next(n for n in result.model.to_proto().graph.node if n.op_type == "Loop").attribute[0].g
    assert shape_of(body.output[1]) == [""]
    assert result.report.remarks == ("shapes that bodies declare were false: `t`",)
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    assert session.run(None, {"x": np.ones(6, np.float32)})[0].shape == (3,)


GUESSED = """
<ir_version: 4, opset_import: ["": 11, "org.pytorch.aten": 1]>
g (float[N,4] x) => (int64[N,4] y) <int64 one = {1}> {
  a = org.pytorch.aten.ATen <operator = "hypot", overload_name = ""> (x, x)
  y = Add (a, one)
}
"""


def test_an_element_type_that_an_exporter_guessed_is_corrected() -> None:
    result = surgeon.apply(model(GUESSED), "aten")
    (after,) = result.model.to_proto().graph.output
    assert after.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert shape_of(after) == ["N", 4]
    assert "element types that outputs declare were false: `y`" in result.report.remarks


HALVED = """
<ir_version: 8, opset_import: ["": 17]>
g (float16[N,4] x) => (float16[N,4] y) {
  s = Cast <to = 1> (x)
  p = Mul (x, s)
  y = Cast <to = 10> (p)
}
"""


def test_an_element_type_that_a_converter_of_halves_states_is_corrected() -> None:
    halved = model(HALVED)
    for name in ("s", "p"):  # of which the Cast makes float32
        halved.graph.value_info.append(
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT16, ["N", 4])
        )
    result = surgeon.apply(halved, "operand-types")
    after = result.model.to_proto()
    ort.InferenceSession(after.SerializeToString())
    said = "types and shapes that the file states were false"
    assert any(remark.startswith(said) for remark in result.report.remarks)


def test_an_element_type_that_is_true_stays() -> None:
    true = model(GUESSED.replace("int64[N,4] y", "float[N,4] y"))
    result = surgeon.apply(true, "aten")
    assert not [remark for remark in result.report.remarks if "element types" in remark]


UNDECLARED = """
<ir_version: 8, opset_import: ["": 11, "org.pytorch.aten": 1]>
g (float[N,4] x, int64[1] n) => (float[N,4] y) <int64 zero = {0}, bool true = {1}> {
  turns = Gather <axis = 0> (n, zero)
  a = org.pytorch.aten.ATen <operator = "hypot", overload_name = ""> (x, x)
  y = Loop (turns, true, a)
      <body = b (int64 i, bool c, float[N,4] before) => (bool d, float[N,4] z) {
    d = Identity (c)
    f = Cast <to = 1> (i)
    z = Add (before, f)
  }>
}
"""


@pytest.mark.parametrize("typed", [False, True])
def test_the_number_of_a_turn_is_declared_where_the_exporter_said_little(typed: bool) -> None:
    silent = model(UNDECLARED)
    body = silent.graph.node[2].attribute[0].g
    for value in body.input[:2]:
        value.type.tensor_type.ClearField("shape") if typed else value.ClearField("type")
    result = surgeon.apply(silent, "aten", verify=False)
    loop = next(n for n in result.model.to_proto().graph.node if n.op_type == "Loop")
    number, condition = loop.attribute[0].g.input[:2]
    for value, kind in ((number, onnx.TensorProto.INT64), (condition, onnx.TensorProto.BOOL)):
        assert value.type.tensor_type.elem_type == kind
        assert value.type.tensor_type.HasField("shape")
        assert shape_of(value) == []


OTHERS = """
<ir_version: 8, opset_import: ["": 17]>
g (float[] x, float[N,3] z, seq(float[N]) q) => (float[] y) <int64 first = {0}> {
  s = SequenceAt (q, first)
  t = Add (x, s)
  y = Add (t, z)
}
"""


@pytest.mark.parametrize(
    ("options", "size"),
    [({"shape": {"z": [2, 3]}}, 2), ({"assume": ["N == 2"]}, 2), ({"shape": {"q": [2]}}, 2)],
    ids=["shape of another", "size", "shape of each"],
)
def test_what_is_fixed_reaches_sequences_and_leaves_unknown_ranks_what_they_are(
    options: dict[str, object], size: int
) -> None:
    original = model(OTHERS)
    original.graph.input[0].type.tensor_type.ClearField("shape")
    x, _, q = surgeon.apply(original, "clean", verify=False, **options).model.to_proto().graph.input
    assert not x.type.tensor_type.HasField("shape")
    [dim] = q.type.sequence_type.elem_type.tensor_type.shape.dim
    assert (dim.dim_value or dim.dim_param) == size


def test_a_cut_is_said_to_be_short_where_onnx_infers_that_it_keeps_its_length() -> None:
    """At opset 10 onnx copies the lengths, and onnxruntime gives their memory to other values."""
    cut = model(
        """<ir_version: 6, opset_import: ["": 10]>
        g (float[b,t,h] x) => (float[b,1,h] y, float[b,t,h] z)
        <int64[1] s = {-2}, int64[1] e = {-1}, int64[1] a = {1}> {
          d = Identity (x)  n = Neg (d)  k = Slice (n, s, e, a)  m = Exp (k)
          y = ReduceMax <axes = [1]> (m)  c = Abs (n)  o = Mul (c, n)  z = Neg (o) }"""
    )
    after = surgeon.apply(cut, "clean").model.to_proto()
    assert {v.name: shape_of(v) for v in after.graph.value_info} == {"k": ["", "k.1", ""]}
    x = np.ones((2, 7, 3), np.float32)
    session = ort.InferenceSession(after.SerializeToString(), providers=["CPUExecutionProvider"])
    assert [t.shape for t in session.run(None, {"x": x})] == [(2, 1, 3), (2, 7, 3)]
    again = surgeon.apply(after, "clean").model.to_proto()
    assert again.SerializeToString() == after.SerializeToString()
