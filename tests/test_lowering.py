"""Models at an older opset: what is taken there, and what is named and stays."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from newest import needs_opset
from onnx.reference import ReferenceEvaluator

import surgeon
from surgeon import SurgeonError
from surgeon.authoring import recipe_for_opset
from surgeon.runtime import Session
from surgeon.standard import newest_opset
from surgeon.steps.lowering import lower_opset
from surgeon.steps.raising import raise_opset

NEWEST_OPSET = newest_opset()


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
    "rows of other samples": (
        16,
        13,
        "g (float[1,1,4,4] x, float[2,4] r, int64[2] i) => (float[2,1,2,2] y) "
        "{ y = RoiAlign <output_height = 2, output_width = 2> (x, r, i) }",
        "RoiAlign without `coordinate_transformation_mode` means something else before it had one",
    ),
    "rows shifted by half a pixel": (
        16,
        13,
        "g (float[1,1,4,4] x, float[2,4] r, int64[2] i) => (float[2,1,2,2] y) "
        '{ y = RoiAlign <coordinate_transformation_mode = "half_pixel"> (x, r, i) }',
        "RoiAlign of `half_pixel` is of a newer opset",
    ),
    "a layout": (
        17,
        13,
        "g (float[2,3,4] x, float[1,5,4] w, float[1,5,5] r) => (float[2,3,1,5] y) "
        "{ y = RNN <hidden_size = 5, layout = 1> (x, w, r) }",
        "`layout` of RNN is of a newer opset",
    ),
    "a norm that trains": (
        15,
        13,
        "g (float[2,3] x, float[3] s) => (float[2,3] y, float[3] m, float[3] v) "
        "{ y, m, v = BatchNormalization <training_mode = 1> (x, s, s, s, s) }",
        "BatchNormalization that trains means something else at opset 13",
    ),
    "a Softmax of rows": (
        13,
        11,
        "g (float[N,3,4] x) => (float[N,3,4] y) { y = Softmax <axis = 1> (x) }",
        "Softmax over an axis that is not the last",
    ),
    "a Softmax of unknown rank": (
        13,
        11,
        "g (float[N,3,4] x, int64[k] s) => (float y) "
        "{ r = Reshape (x, s) y = LogSoftmax <axis = 1> (r) }",
        "LogSoftmax over axis 1 of an unknown rank",
    ),
    "scales of rows": (
        13,
        11,
        "g (float[4,3] x, float[3] s) => (uint8[4,3] y) { y = QuantizeLinear <axis = 1> (x, s) }",
        "QuantizeLinear of several scales is of a newer opset",
    ),
    "a Dropout that may train": (
        13,
        11,
        "g (float[4] x, bool t) => (float[4] y) <float r = {0.5}> { y = Dropout (x, r, t) }",
        "Dropout that trains, or may, means something else before opset 12",
    ),
    "a Dropout whose mask is read": (
        13,
        11,
        "g (float[4] x) => (float[4] y, bool[4] m) { y, m = Dropout (x) }",
        "Dropout with a mask means something else before opset 12",
    ),
    "a Constant of texts": (
        13,
        11,
        'g (float[1] x) => (string y) { y = Constant <value_string = "a"> () }',
        "Constant of texts is of a newer opset",
    ),
    "an operator of opset 12": (
        13,
        11,
        "g (float[4] x) => (float[4] y) { y = Celu (x) }",
        "Celu is an operator from opset 12 on",
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


@pytest.mark.parametrize(
    ("opset", "operators"),
    [
        (11, "Greater Equal Or Elu Transpose Softmax Transpose Less Where Shape Slice"),
        (12, "GreaterOrEqual Celu Transpose Softmax Transpose Max Shape Slice"),
        (14, "GreaterOrEqual Celu Softmax Max Shape Slice"),
        (15, "GreaterOrEqual Celu Softmax Max Shape"),
    ],
)
def test_of_old_opsets_too_only_what_is_wanted_is_spelled_out(opset: int, operators: str) -> None:
    model = _model(
        "g (float[N,3,k] x, int64[N] i, int64[N] j) => (bool[N,3,k] a, float[N,3,k] b, "
        "float[N,3,k] c, int64[N] d, int64[2] e) { a = GreaterOrEqual (x, x) b = Celu (x) "
        "c = Softmax <axis = 1> (x) d = Max (i, j) e = Shape <start = 1> (x) }",
        16,
    )
    result = surgeon.apply(model, opset=opset)
    assert result.report.status == "equivalent"
    found = [node.op_type for node in result.model.to_proto().graph.node]
    assert sorted(found) == sorted(operators.split())


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


OLDER = {
    "LSTM": "g (float[3,2,4] x, float[1,20,4] w, float[1,20,5] r) => (float[3,1,2,5] y) "
    "{ y = LSTM <hidden_size = 5, layout = 0> (x, w, r) }",
    "GRU": "g (float[3,2,4] x, float[1,15,4] w, float[1,15,5] r) => (float[3,1,2,5] y) "
    "{ y = GRU <hidden_size = 5, linear_before_reset = 1> (x, w, r) }",
    "BatchNormalization": "g (float[2,3,4] x, float[3] s) => (float[2,3,4] y) "
    "{ v = Mul (s, s) y = BatchNormalization <training_mode = 0> (x, s, s, s, v) }",
    "RoiAlign": "g (float[2,1,4,4] x, float[2,4] r) => (float[2,1,2,2] y) <int64[2] i = {0, 1}> { "
    'y = RoiAlign <coordinate_transformation_mode = "output_half_pixel", output_height = 2, '
    "output_width = 2> (x, r, i) }",
    "Loop": "g (float[3] x) => (float[3] y) <int64 n = {3}, bool yes = {1}> "
    "{ y = Loop (n, yes, x) <body = b (int64 i, bool c, float[3] v) => (bool k, float[3] u) "
    "{ k = Identity (c) u = Mul (v, v) }> }",
}


@pytest.mark.parametrize("opset", [11, 12, 13])
@pytest.mark.parametrize("operator", OLDER)
def test_what_was_only_worded_anew_is_computed_as_before(operator: str, opset: int) -> None:
    model = _model(OLDER[operator], 17)
    lowered = lower_opset(model, opset)
    assert lowered.opset_import[0].version == opset
    assert surgeon.verify(model, lowered).status == "equivalent"


FORMS = {
    "numbers of a Constant": "g (float[2] x) => (float[2] y) { f = Constant <value_float = 2.5> () "
    "l = Constant <value_floats = [1.0, 3.0]> () i = Constant <value_ints = [2]> () "
    "e = Expand (f, i) m = Mul (x, e) y = Add (m, l) }",
    "a Dropout of no effect": "g (float[2] x) => (float[2] y) <float r = {0.25}, bool no = {0}> "
    "{ y = Dropout <seed = 3> (x, r, no) }",
    "a Resize of no region": "g (float[1,1,N,4] x) => (float[1,1,M,8] y) "
    '<float[4] s = {1, 1, 2, 2}> { y = Resize <mode = "linear"> (x, , s) }',
    "a Resize to sizes": "g (float[1,1,4,4] x) => (float[1,1,7,9] y) <int64[4] s = {1, 1, 7, 9}> "
    '{ y = Resize <coordinate_transformation_mode = "align_corners", mode = "linear"> '
    "(x, , , s) }",
    "a Softmax of the last axis": "g (float[N,3,4] x) => (float[N,3,4] y) { y = Softmax (x) }",
    "a Softmax with nothing behind it": "g (float[N,3,1,1] x) => (float[N,3,1,1] y) "
    "{ y = Softmax <axis = 1> (x) }",
    "one scale": "g (float[N,3] x) => (float[N,3] y) <float s = {0.1}, uint8 z = {128}> "
    "{ q = QuantizeLinear <axis = 1> (x, s, z) y = DequantizeLinear (q, s, z) }",
    "one scale in a body": "g (float[3] x, bool c) => (float[3] y) { "
    "y = If (c) <then_branch = t () => (float[3] p) <float s = {0.1}> "
    "{ q = QuantizeLinear (x, s) p = DequantizeLinear (q, s) }, "
    "else_branch = e () => (float[3] n) { n = Neg (x) }> }",
    "no axes": "g (float[2,3] x) => (float[2,3] y) <int64[0] a = {}> "
    "{ u = Unsqueeze (x, a) v = Squeeze (u, a) y = Neg (v) }",
    "in a body, of a list outside": "g (float[3,1] x, bool c) => (float[3] y) <int64[1] a = {1}> "
    "{ y = If (c) <then_branch = t () => (float[3] p) { p = Squeeze (x, a) }, "
    "else_branch = e () => (float[3] q) { k = Constant <value_float = 2.0> () "
    "s = ReduceSum <keepdims = 0> (x, a) q = Mul (s, k) }> }",
}


@pytest.mark.parametrize("form", FORMS)
def test_at_opset_11_it_is_said_in_other_forms(form: str) -> None:
    model = _model(FORMS[form], 13)
    lowered = lower_opset(model, 11)
    onnx.checker.check_model(lowered, full_check=True)
    assert lowered.opset_import[0].version == 11
    assert surgeon.verify(model, lowered).status == "equivalent"


def test_a_last_input_that_is_left_out_is_none_too_many() -> None:
    model = _model(
        "g (float[3] x) => (float[5] y) <int64[2] p = {1, 1}> { y = Pad (x, p, , ) }", 18
    )
    del model.graph.node[0].input[2:]
    model.graph.node[0].input.extend(["", ""])
    lowered = lower_opset(model, 13)
    onnx.checker.check_model(lowered, full_check=True)
    assert surgeon.verify(model, lowered).status == "equivalent"


def test_in_a_file_whose_initializers_are_inputs_an_empty_list_is_made_by_a_node() -> None:
    text = FORMS["a Resize of no region"].replace("1,1,N,4] x", "1,1,N,4] x, float[4] s")
    model = _model(text, 13, ir=3)
    lowered = lower_opset(model, 11)
    onnx.checker.check_model(lowered, full_check=True)
    assert [node.op_type for node in lowered.graph.node] == ["Constant", "Resize"]
    assert surgeon.verify(model, lowered).status == "equivalent"


def test_an_empty_list_of_a_lowering_before_is_not_added_twice() -> None:
    model = _model(FORMS["a Resize of no region"], 13)
    again = raise_opset(lower_opset(model, 11), 13)
    more = again.graph.node.add()
    more.CopyFrom(model.graph.node[0])
    more.output[:] = ["z"]
    lowered = lower_opset(again, 11)
    assert [tensor.name for tensor in lowered.graph.initializer] == ["s", "surgeon/no_region"]
    onnx.checker.check_model(lowered)


@pytest.mark.parametrize("opset", [11, 13, 17, 19])
def test_the_recipe_for_an_opset_spells_out_what_the_option_does(opset: int) -> None:
    asked = {rule.id for rule in recipe_for_opset(NEWEST_OPSET, opset).rules}
    assert {rule.id for rule in surgeon.Recipe.load(f"opset-{opset}").rules} == asked


_HALVES = """g (float16[N] x) => (uint8[N] y) <uint8 z = {3}> {
  s = Constant <value = float16 {11878}> ()
  y = QuantizeLinear ATTRIBUTES (x, s, z)
}"""


def test_halves_are_divided_as_they_were_at_another_opset() -> None:
    needs_opset(23)
    before = _model(_HALVES.replace("ATTRIBUTES", ""), 21, ir=10)
    raised = raise_opset(before, 23)
    assert [(a.name, a.i) for a in raised.graph.node[-1].attribute] == [("precision", 1)]
    lowered = lower_opset(raised, 21)
    assert not lowered.graph.node[-1].attribute
    x = np.random.default_rng(0).uniform(-5, 30, 500).astype(np.float16)
    wanted, *others = (Session(m).run({"x": x})["y"] for m in (before, raised, lowered))
    for found in others:
        np.testing.assert_array_equal(found, wanted)
    for attributes, reason in (
        ("", "QuantizeLinear divides in halves from opset 23 on"),
        ("<precision = 10>", "`precision` of QuantizeLinear is of a newer opset"),
    ):
        with pytest.raises(SurgeonError, match=reason):
            lower_opset(_model(_HALVES.replace("ATTRIBUTES", attributes), 23, ir=11), 21)


def test_a_mask_of_before_opset_12_is_not_raised_where_it_is_read() -> None:
    read = _model("g (float[N] x) => (float[N] y, bool[N] m) { y, m = Dropout (x) }", 10)
    with pytest.raises(SurgeonError, match="the mask of a Dropout is read"):
        raise_opset(read, 13)
    unread = _model("g (float[N] x) => (float[N] y) { y, m = Dropout (x) }", 10)
    assert raise_opset(unread, 13).opset_import[0].version == 13


@pytest.mark.parametrize("sizes", [[2, 3], [2, 3, 3], [2, 3, 4, 5]])
def test_slopes_of_channels_line_up_with_these_at_opset_7_and_on(sizes: list[int]) -> None:
    shape = ",".join(map(str, sizes))
    model = _model(
        f"g (float[{shape}] x, float[3] s) => (float[{shape}] y) {{ y = PRelu (x, s) }}", 6, ir=3
    )
    slopes = np.array([0.1, 0.2, 0.3], np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(slopes, "s"))
    raised = raise_opset(model, 13)
    x = np.random.default_rng(0).normal(size=sizes).astype(np.float32)
    along = slopes.reshape(3, *[1] * (len(sizes) - 2))
    [y] = Session(raised).run({"x": x}).values()
    np.testing.assert_allclose(y, np.where(x < 0, x * along, x))
    del model.graph.initializer[:]
    with pytest.raises(SurgeonError, match="a PRelu has slopes of channels, which are computed"):
        raise_opset(model, 13)


def test_an_output_may_be_without_a_type() -> None:
    model = _model("g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }", 18, 8)
    model.graph.output[0].ClearField("type")
    lowered = lower_opset(model, 13)
    assert lowered.opset_import[0].version == 13
    assert not lowered.graph.output[0].HasField("type")
