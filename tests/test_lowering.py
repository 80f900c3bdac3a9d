"""Models at an older opset: what is taken there, and what is named and stays."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from newest import needs_opset
from onnx.reference import ReferenceEvaluator

import surgeon
from surgeon import SurgeonError
from surgeon.lowering import lower_opset


def _model(text: str, opset: int, ir: int = 8) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["": {opset}]>\n{text}')


STAYS = {
    "an operator": (
        20,
        19,
        "g (float[2,2,3] t) => (float[2,4,5,2] y) <int64[4] size = {2, 1, 4, 5}> "
        "{ y = AffineGrid (t, size) }",
        "AffineGrid is an operator from opset 20 on",
    ),
    "a reduction": (
        18,
        17,
        "g (float[4] x, float[2] v) => (float[4] y) <int64[2] i = {1, 1}> "
        '{ y = ScatterElements <reduction = "max"> (x, i, v) }',
        "`reduction` of ScatterElements is `max`, which is of a newer opset",
    ),
    "a mode": (
        19,
        17,
        "g (float[4] x) => (float[6] y) <int64[2] pads = {1, 1}> "
        '{ y = Pad <mode = "wrap"> (x, pads) }',
        "`mode` of Pad is `wrap`, which is of a newer opset",
    ),
    "an attribute": (
        18,
        17,
        "g (float[1,1,4,4] x) => (float[1,1,2,2] y) <float[4] s = {1.0, 1.0, 0.5, 0.5}> "
        '{ y = Resize <mode = "linear", antialias = 1> (x, , s) }',
        "`antialias` of Resize is of a newer opset",
    ),
    "axes that are computed": (
        18,
        17,
        "g (float[4,3] x, int64[1] a) => (float[m,n] y) { y = ReduceMax (x, a) }",
        "`axes` of ReduceMax is computed, and was an attribute",
    ),
    "axes that may be fed": (
        18,
        17,
        "g (float[4,3] x, int64[1] a) => (float[m,n] y) <int64[1] a = {1}> "
        "{ y = ReduceMax (x, a) }",
        "`axes` of ReduceMax is computed, and was an attribute",
    ),
    "axes of a Pad": (
        18,
        17,
        "g (float[2,4] x) => (float[2,6] y) <int64[2] pads = {1, 1}, int64[1] a = {1}> "
        "{ y = Pad (x, pads, , a) }",
        "Pad has fewer inputs at opset 17",
    ),
    "a meaning": (
        13,
        13,
        "g (float[2,4] x) => (float[2,4] y) { y = Relu (x) }",
        "the model is at opset 13",
    ),
    "parts by their number": (
        18,
        17,
        "g (float[5] x) => (float[3] a, float[2] b) { a, b = Split <num_outputs = 2> (x) }",
        "`num_outputs` of Split is of a newer opset",
    ),
    "last windows that are not whole": (
        19,
        17,
        "g (float[1,1,5,5] x) => (float[1,1,3,3] y) "
        "{ y = AveragePool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x) }",
        "AveragePool with `ceil_mode` means something else before opset 19",
    ),
    "statistics of groups": (
        21,
        19,
        "g (float[1,4,3] x, float[4] s) => (float[1,4,3] y) "
        "{ y = GroupNormalization <num_groups = 2> (x, s, s) }",
        "GroupNormalization means something else at opset 19",
    ),
}


STAYS |= {
    "a BatchNormalization that trains": (
        18,
        13,
        "g (float[2,4] x, float[4] s) => (float[2,4] y, float[4] m, float[4] v) "
        "{ y, m, v = BatchNormalization <training_mode = 1> (x, s, s, s, s) }",
        "BatchNormalization of more than one output",
    ),
    "the batch in front of an LSTM": (
        18,
        13,
        "g (float[2,3,4] x, float[1,8,4] w, float[1,8,2] r) => (float[2,3,1,2] y) "
        "{ y = LSTM <hidden_size = 2, layout = 1> (x, w, r) }",
        "`layout` of LSTM is of a newer opset",
    ),
    "a remainder with the sign of the divisor": (
        28,
        17,
        "g (float[4] x, float[4] z) => (float[4] y) { y = Mod (x, z) }",
        "Mod of floats has the sign of the divisor from opset 28 on",
    ),
    "an Attention of a cache that is kept outside": (
        24,
        23,
        "g (float[1,1,2,4] q, float[1,1,4,4] k, int64[1] n) => (float[1,1,2,4] y) "
        "{ y = Attention (q, k, k, , , , n) }",
        "Attention has fewer inputs at opset 23",
    ),
}


@pytest.mark.parametrize("what", STAYS)
def test_what_the_older_opset_cannot_say_is_named(what: str) -> None:
    opset, wanted, text, why = STAYS[what]
    with pytest.raises(SurgeonError) as caught:
        lower_opset(_model(text, opset, 10), wanted)
    assert caught.value.what == why


def test_a_type_of_a_newer_opset_is_found() -> None:
    model = _model("g (bool[4,3] x) => (bool[4,1] y) { y = ReduceMax (x) }", 20)
    with pytest.raises(SurgeonError) as caught:
        lower_opset(model, 19)
    assert "bool" in caught.value.what


def test_a_step_that_cannot_leaves_the_model_and_says_so() -> None:
    opset, _, text, why = STAYS["a reduction"]
    result = surgeon.apply(_model(text, opset), "opset-17")
    assert result.report.failures == (f"step `lower-opset` was skipped: {why}",)
    assert result.model.to_proto().opset_import[0].version == opset


def test_bodies_are_lowered_too() -> None:
    model = _model(
        "g (float[3,4] x, bool c) => (float[n] y) <int64[1] a = {0}> { y = If (c) < "
        "then_branch = t () => (float[n] u) <int64[1] one = {1}> "
        "{ u = ReduceSumSquare <keepdims = 0> (x, one) }, "
        "else_branch = e () => (float[n] v) { v = ReduceMin <keepdims = 0> (x, a) } > }",
        18,
    )
    model.graph.node[0].attribute[1].g.initializer.extend(model.graph.initializer)
    lowered = lower_opset(model, 13)
    assert lowered.opset_import[0].version == 13
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for chosen in (True, False):
        feeds = {"x": x, "c": np.array(chosen)}
        before, after = (ReferenceEvaluator(m).run(None, feeds)[0] for m in (model, lowered))
        np.testing.assert_array_equal(before, after)


ALIKE = {
    "BatchNormalization": "g (float[2,4,3] x, float[4] s) => (float[2,4,3] y) "
    "<float[4] v = {1, 2, 3, 4}> { y = BatchNormalization (x, s, v, s, v) }",
    "LSTM": "g (float[3,2,4] x, float[1,8,4] w, float[1,8,2] r) => (float[3,1,2,2] y) "
    "{ y = LSTM <hidden_size = 2, layout = 0> (x, w, r) }",
    "Loop": "g (float[3] x, int64 n) => (float[3] y) { y = Loop (n, , x) < body = "
    "b (int64 i, bool c, float[3] p) => (bool d, float[3] q) { d = Identity (c) "
    "q = Add (p, x) } > }",
}


@pytest.mark.parametrize("operator", ALIKE)
def test_what_was_worded_anew_means_the_same_at_opset_13(operator: str) -> None:
    model = _model(ALIKE[operator], 18)
    lowered = lower_opset(model, 13)
    assert [node.op_type for node in lowered.graph.node] == [operator]
    rng = np.random.default_rng(0)
    feeds = {
        value.name: rng.random([d.dim_value for d in value.type.tensor_type.shape.dim], np.float32)
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        else np.array(2)
        for value in model.graph.input
    }
    sessions = (onnxruntime.InferenceSession(m.SerializeToString()) for m in (model, lowered))
    before, after = (session.run(None, feeds)[0] for session in sessions)
    np.testing.assert_array_equal(before, after)


def test_dilations_of_one_are_none() -> None:
    model = _model(
        "g (float[1,1,5,5] x) => (float[1,1,4,4] y) "
        "{ y = AveragePool <kernel_shape = [2, 2], dilations = [1, 1], ceil_mode = 0> (x) }",
        19,
    )
    (node,) = lower_opset(model, 17).graph.node
    assert {a.name for a in node.attribute} == {"kernel_shape", "ceil_mode"}


def test_what_the_file_says_of_shapes_stays_and_is_not_asked() -> None:
    model = _model("g (float[2,3] x) => (float[3,2] y) { t = Relu (x) y = Transpose (t) }", 21)
    stale = onnx.helper.make_tensor_value_info("t", onnx.TensorProto.FLOAT, [7])
    model.graph.value_info.append(stale)
    lowered = lower_opset(model, 20)
    assert list(lowered.graph.value_info) == [stale]


NEWEST = {
    24: "g (float[N,2,S,4] x, float[4] s, float[N,1,S,S] m) => (float[N,2,S,4] y) { "
    "r = RMSNormalization (x, s) a = Attention <is_causal = 1> (r, r, r, m) y = Swish (a) }",
    20: "g (float[2,5,1] x) => (float[2,3,2] y) <int64 axis = {1}> "
    "{ y = DFT <onesided = 1> (x, , axis) }",
    18: "g (float[N,5] x, int64[N] i) => (float[N,3] y, float[N,2] z, int64[N] b) "
    "{ m = Mish (x) y, z = Split <axis = 1, num_outputs = 2> (m) b = BitwiseNot (i) }",
    28: "g (int64[N,3] x) => (int64[N,3] y) <int64[1] z = {3}> { y = Mod (x, z) }",
}


@pytest.mark.parametrize("opset", NEWEST)
@pytest.mark.parametrize("recipes", [(), ("clean",)], ids=["", "behind clean"])
def test_the_newest_operators_are_spelled_out_and_a_second_run_changes_nothing(opset, recipes):
    needs_opset(opset)
    ir = 14 if opset == 28 else 11
    result = surgeon.apply(_model(NEWEST[opset], opset, ir), *recipes, opset=17)
    made = result.model.to_proto()
    assert made.opset_import[0].version == 17
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    again = surgeon.apply(made, *recipes, opset=17)
    assert again.model.to_proto() == made


def test_only_what_the_wanted_opset_has_not_is_spelled_out() -> None:
    result = surgeon.apply(_model(NEWEST[24], 24, 11), opset=23)
    operators = {node.op_type for node in result.model.to_proto().graph.node}
    assert operators == {"RMSNormalization", "Attention", "Sigmoid", "Mul"}


def test_no_axes_are_all_axes() -> None:
    model = _model(
        "g (float[4,3] x) => (float[1,1] y) <int64[0] a = {}> { y = ReduceMax (x, a) }", 18
    )
    (node,) = lower_opset(model, 17).graph.node
    assert not [attribute for attribute in node.attribute if attribute.name == "axes"]


def test_outputs_without_a_shape_do_not_stand_in_the_way() -> None:
    model = _model("g (float[N,4] x) => (float[M,4] y) { y = Relu (x) }", 20)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    lowered = lower_opset(model, 17)
    assert lowered.opset_import[0].version == 17
    assert lowered.graph.output == model.graph.output


@pytest.mark.parametrize("opset", [12, 17])
def test_a_model_that_is_old_enough_needs_no_step(opset: int) -> None:
    model = _model("g (float[4] x) => (float[4] y) { y = Relu (x) }", opset)
    report = surgeon.apply(model, "opset-17").report
    assert report.failures == ()
    assert report.opset == opset
