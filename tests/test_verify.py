"""Verdicts: what counts as the same, what does not, and what could not be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from surgeon.errors import ForeignError, SurgeonError, VerifyError
from surgeon.runtime import NotRunnable, RunFailed
from surgeon.verify import (
    OutputCheck,
    Verdict,
    compare_arrays,
    measure,
    open_pair,
    originals,
    verify,
)
from surgeon.verify.inputs import Drawing, draw, required_inputs
from surgeon.verify.limits import bounds
from surgeon.verify.noise import beside_poles
from surgeon.verify.sizes import candidates, dynamic_dims
from surgeon.verify.whole import differing_feeds

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
HEADER = '<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1, "my": 1]>\n'
F32 = np.float32


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEADER + text)


def sizes_of(verdict: Verdict) -> list[tuple[int, ...]]:
    return sorted({tuple(c.sizes.values()) for c in verdict.comparisons})


# ------------------------------------------------------------------------------ compare_arrays


def test_error_is_relative_to_the_spread() -> None:
    want = np.array([100, 101, 102], F32)
    check = compare_arrays("y", want, want + F32(1e-3))
    assert not check.agrees
    assert check.max_relative == pytest.approx(1e-3, rel=0.05)
    assert str(check) == "`y`: error 0.000999, which is 0.000999 of its spread (allowed 0.0001)"
    assert compare_arrays("y", want, want + F32(5e-5)).agrees
    assert compare_arrays("y", want, want + F32(1e-3), tolerance=1e-2).agrees


def test_rounding_of_a_nearly_constant_output_is_no_difference_but_weak() -> None:
    want = np.array([1000, 1000.0001], F32)
    check = compare_arrays("y", want, np.nextafter(want, F32(2000)))
    assert check.agrees
    assert check.weak == "it varies by little more than rounding"
    assert check.ulp == 1


@pytest.mark.parametrize(
    ("want", "have", "fault"),
    [
        (np.zeros(2, F32), np.zeros(3, F32), "its shape is [3], not [2]"),
        (np.zeros(2, F32), np.zeros(2), "its dtype is float64, not float32"),
        (np.zeros(2, F32), np.array([0, np.nan], F32), "NaN at 1 other places"),
        (np.array([np.inf, 1], F32), np.array([-np.inf, 1], F32), "inf at 1 other places"),
        (np.arange(3), np.array([0, 1, 3]), "1 of 3 values differ"),
        (np.array([True]), np.array([False]), "1 of 1 values differ"),
        (np.array(["a"], object), np.array(["b"], object), "1 of 1 values differ"),
        ([np.zeros(1)], [], "a list of 0, not of 1"),
        ([np.zeros(1)], np.zeros(1), "one is a list, the other is not"),
    ],
)
def test_other_differences_are_named(want: Any, have: Any, fault: str) -> None:
    check = compare_arrays("y", want, have)
    assert (check.agrees, check.fault) == (False, fault)


def test_nan_at_the_same_places_is_no_difference() -> None:
    want = np.array([np.nan, 1, 2, np.inf], F32)
    assert compare_arrays("y", want, want.copy()).agrees
    check = compare_arrays("y", want[:1], want[:1])
    assert (check.agrees, check.weak) == (True, "it holds no finite number")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_large_arrays_are_measured_in_blocks(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    want = (generator.normal(size=(7, 11)) + 3).astype(dtype)
    have = (want * (1 + 1e-3 * generator.normal(size=(7, 11)))).astype(dtype)
    want[3, 4:6] = have[3, 4:6] = np.inf, np.nan
    monkeypatch.setattr(measure, "_BLOCK", 5)
    check = compare_arrays("y", want, have)
    finite = np.isfinite(want)
    e, a = (array[finite].astype(complex) for array in (want, have))
    error, spread = np.abs(e - a).max(), np.abs(e - e.mean()).max()
    assert check.max_absolute == pytest.approx(error, rel=1e-12)
    assert check.max_relative == pytest.approx(error / spread, rel=1e-12)
    have[0, 0], have[6, 10] = np.nan, np.inf
    assert compare_arrays("y", want, have).fault == "NaN at 1 other places"


def test_bit_means_bit() -> None:
    want = np.array([0.0, 1.0, np.nan], F32)
    assert compare_arrays("y", want, want.copy(), exact="bit").agrees
    other = np.array([-0.0, 1.0, np.nan], F32)
    check = compare_arrays("y", want, other, exact="bit")
    assert (check.agrees, check.fault) == (False, "zeros of another sign")
    nearly = np.nextafter(np.array([1.0], F32), F32(2))
    assert not compare_arrays("y", np.ones(1, F32), nearly, exact="bit").agrees
    assert compare_arrays("y", np.ones(1, F32), nearly, exact="rounding").agrees


def test_narrow_floats_have_wider_tolerances() -> None:
    for dtype, error in ((np.float16, 1e-2), (ml_dtypes.bfloat16, 3e-2)):
        want = np.linspace(-1, 1, 9).astype(dtype)
        have = (want.astype(F32) + error).astype(dtype)
        assert compare_arrays("y", want, have).agrees
        have = (want.astype(F32) + 20 * error).astype(dtype)
        assert not compare_arrays("y", want, have).agrees


# --------------------------------------------------------------------------------- two small models


def told(found: list[Any]) -> list[tuple[OutputCheck, ...]]:
    assert not any(isinstance(each, SurgeonError) for each in found), found
    return found


def test_a_pair_of_tiny_models_is_compared_on_given_inputs() -> None:
    before = parse(
        """g (float[N,C,8,8] x) => (float[N,C,1,1] y) <int64[2] one = {1, 1}> {
        y = org.pytorch.aten.adaptive_avg_pool2d (x, one) }"""
    )
    after = parse("g (float[N,C,8,8] x) => (float[N,C,1,1] y) { y = GlobalAveragePool (x) }")
    wrong = parse("g (float[N,C,8,8] x) => (float[N,C,1,1] y) { y = GlobalMaxPool (x) }")
    generator = np.random.default_rng(0)
    feeds = [{"x": generator.normal(size=(n, 3, 8, 8)).astype(F32)} for n in (1, 2)]
    for after_, agrees in ((after, True), (wrong, False)):
        found = open_pair(before, after_).check(feeds, "rounding")
        assert [[check.agrees for check in checks] for checks in told(found)] == [[agrees]] * 2


def test_what_does_not_run_where_the_other_does_differs() -> None:
    before = parse("g (float[N,C] x) => (float[N,D] y) { y = Neg (x) }")
    breaks = parse("g (float[N,C] x) => (float[N,D] y) <int64[1] s = {7}> { y = Reshape (x, s) }")
    invalid = parse("g (float[N,C] x) => (int64[N,D] y) { y = Not (x) }")
    unknown = parse("g (float[N,C] x) => (float[N,D] y) { y = my.Own (x) }")
    feeds = [{"x": np.ones((2, 3), F32)}]
    for after in (breaks, invalid):
        (((check,),)) = told(open_pair(before, after).check(feeds, "rounding"))
        assert not check.agrees
        assert (check.fault or "").startswith("it does not run: ")
    (why,) = open_pair(before, unknown).check(feeds, "rounding")
    assert isinstance(why, NotRunnable)
    assert why.what == "onnxruntime has no `my.Own`"
    (why,) = open_pair(breaks, before).check(feeds, "rounding")
    assert isinstance(why, RunFailed)


def test_an_average_is_held_to_the_roundings_of_what_it_is_of() -> None:
    """Of 4,096 numbers that nearly cancel; an average beside it by a ten-thousandth is wrong."""
    text = "g (float[N,C,T] x) => (float[N,C,1] y) <float k = {{{}}}> {{ {} }}"
    aten = "s = Constant <value = int64[1] {1}> () y = org.pytorch.aten.adaptive_avg_pool1d (x, s)"
    before = parse(text.format(1, aten))
    mean = "m = GlobalAveragePool (x) y = Mul (m, k)"
    x = np.random.default_rng(0).standard_normal((1, 64, 4096)).astype(F32)
    for k, agrees in ((1, True), (1.0001, False), (0.999, False)):
        (((check,),)) = told(
            open_pair(before, parse(text.format(k, mean))).check([{"x": x}], "rounding")
        )
        assert check.agrees is agrees, check


# -------------------------------------------------------------------------------- the verdict


SCALE = "g (float[batch,3] x) => (float[batch,3] y) <float k = {2.0}> { y = Mul(x, k) }"


def test_equal_models_are_equivalent_at_several_sizes_and_seeds() -> None:
    told: list[str] = []
    other = parse("g (float[batch,3] x) => (float[batch,3] y) { y = Add(x, x) }")
    verdict = verify(parse(SCALE), other, progress=told.append)
    assert verdict.status == "equivalent"
    assert verdict.detail == "its output agrees at 6 inputs, to the last bit"
    assert sizes_of(verdict) == [(1,), (2,), (3,)]
    assert {c.seed for c in verdict.comparisons} == {0, 1}
    assert {c.by for c in verdict.comparisons} == {"onnxruntime"}
    assert told[0] == "compare at batch=2, seed 0"


def test_a_difference_names_output_size_and_seed() -> None:
    other = parse(SCALE.replace("{2.0}", "{2.1}"))
    verdict = verify(parse(SCALE), other)
    assert verdict.status == "differs"
    assert verdict.detail.startswith("`y`: error ")
    assert "of its spread (allowed 0.0001), at batch=" in verdict.detail
    assert "seed " in verdict.detail
    assert verify(parse(SCALE), other, allow_approximate=0.5).status == "equivalent"


def test_a_difference_at_one_size_only_is_found() -> None:
    text = """g (float[1,time] x) => (float[1,half] y) {{
        y = AveragePool <kernel_shape = [2], strides = [2], ceil_mode = {ceil}> (z)
        axis = Constant <value = int64[1] {{0}}> ()
        z = Unsqueeze(x, axis) }}"""
    before, after = (parse(text.format(ceil=c).replace("y =", "p =", 1)) for c in (0, 1))
    for model in (before, after):
        model.graph.node.append(helper.make_node("Squeeze", ["p", "axis"], ["y"]))
        nodes = sorted(
            model.graph.node,
            key=lambda n: ["Constant", "Unsqueeze", "AveragePool", "Squeeze"].index(n.op_type),
        )
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    verdict = verify(before, after)
    assert verdict.status == "differs"
    assert "its shape is [1, 19], not [1, 18], at time=37" in verdict.detail


def test_a_verdict_survives_json() -> None:
    verdict = verify(parse(SCALE), parse(SCALE.replace("{2.0}", "{2.1}")))
    assert Verdict.from_dict(json.loads(json.dumps(verdict.to_dict()))) == verdict
    shape = verify(
        parse(SCALE),
        parse(
            SCALE.replace("Mul(x, k)", "Expand(x, three)").replace(
                "float k = {2.0}", "int64[3] three = {1, 1, 1}"
            )
        ),
    )
    assert shape.status == "differs"
    assert Verdict.from_dict(json.loads(json.dumps(shape.to_dict(), allow_nan=False))) == shape


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (SCALE.replace("x)", "z)").replace("(x,", "(z,"), "the inputs changed: `x` left; `z` came"),
        (SCALE.replace("y)", "z)").replace("y =", "z ="), "the outputs changed: `y` left"),
        (SCALE.replace("float", "double"), "input `x` has dtype double, not float"),
        (SCALE.replace("[batch,3]", "[batch,a,b]"), "input `x` has rank 3, not 2"),
        (SCALE.replace("[batch,3]", "[batch,4]"), "input `x` has size 4 along axis 1, not 3"),
        (SCALE.replace("Mul(x, k)", "Mystery(x, k)"), "onnxruntime has no `ai.onnx.Mystery`"),
        (SCALE.replace("Mul(x, k)", "Or(x, k)"), "the result does not load: the model does not"),
        (SCALE.replace("batch", "2", 1), "the result does not run at batch=1"),
    ],
)
def test_a_broken_result_is_told_why(text: str, detail: str) -> None:
    verdict = verify(parse(SCALE), parse(text))
    assert verdict.status == "broken"
    assert detail in verdict.detail


def test_the_order_of_outputs_counts() -> None:
    two = "g (float[2] x) => (float[2] a, float[2] b) { a = Neg(x)  b = Abs(x) }"
    verdict = verify(
        parse(two), parse(two.replace("float[2] a, float[2] b", "float[2] b, float[2] a"))
    )
    assert verdict.status == "broken"
    assert "the order of the outputs changed" in verdict.detail


def test_an_overridable_initializer_may_leave_the_inputs() -> None:
    before = parse(SCALE)
    before.graph.input.append(helper.make_tensor_value_info("k", TensorProto.FLOAT, []))
    assert verify(before, parse(SCALE)).status == "equivalent"
    assert verify(before, before).status == "equivalent"
    assert verify(parse(SCALE), before).status == "broken"


POOL = """g (float[N,3,H,W] x) => (float[N,3,1,1] y) <int64[2] one = {1, 1}> {
    y = org.pytorch.aten.ATen <operator = "adaptive_avg_pool2d", overload_name = ""> (x, one) }"""


def test_an_original_with_aten_nodes_is_run_by_the_witness() -> None:
    after = parse("g (float[N,3,H,W] x) => (float[N,3,1,1] y) { y = GlobalAveragePool(x) }")
    verdict = verify(parse(POOL), after)
    assert verdict.status == "equivalent"
    assert {c.by for c in verdict.comparisons} == {"witness"}
    assert len({c.sizes["H"] for c in verdict.comparisons}) >= 3
    assert any(c.sizes["H"] % 2 for c in verdict.comparisons)
    wrong = parse("g (float[N,3,H,W] x) => (float[N,3,1,1] y) { y = GlobalMaxPool(x) }")
    assert verify(parse(POOL), wrong).status == "differs"


def test_aten_nodes_that_stay_are_custom_operators_and_still_compared() -> None:
    verdict = verify(parse(POOL), parse(POOL))
    assert verdict.status == "runs"
    assert verdict.custom_operators == ("org.pytorch.aten.ATen",)
    assert verdict.comparisons
    wrong = parse(POOL.replace("avg_pool2d", "max_pool2d"))
    assert verify(parse(POOL), wrong).status == "differs"


def test_custom_operators_are_those_of_the_input_and_those_declared() -> None:
    custom = parse("g (float[2] x) => (float[2] y) { y = my.Thing(x) }")
    verdict = verify(custom, custom)
    assert (verdict.status, verdict.custom_operators) == ("runs", ("my.Thing",))
    assert (
        verdict.not_compared[0].why
        == "`my.Thing` has no witness: " + (verdict.not_compared[0].why.partition(": ")[2])
    )
    plain = parse("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    assert verify(plain, custom).status == "broken"
    assert verify(plain, custom, custom={"my.Thing"}).status == "runs"
    assert verify(plain, custom, custom={"my.*"}).status == "runs"
    assert verify(plain, custom, custom={"my"}).status == "runs"
    assert verify(plain, custom, custom={"my.Think", "m", "my.Thing.x"}).status == "broken"
    assert verify(custom, plain).status == "runs"
    assert verify(custom, plain).detail.startswith("it loads, and was not compared: `my.Thing`")


def frozen() -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A convolution whose groups tracing froze at a batch of 2, and one that takes any batch."""
    before = parse(
        """g (float[batch,4,time] x, float[batch,2,4,3] w) => (float[batch,2,t] y)
        <int64[3] rows = {-1, 4, 3}, int64[3] back = {-1, 2, 0}, int64[1] one = {1},
         int64[1] none = {0}, int64 groups = {2}, bool no = {0}, int64[1] lead = {1},
         int64[1] minus = {-1}> {
            s = Shape(x)
            three = Constant <value = int64[1] {2}> ()
            end = Constant <value = int64[1] {3}> ()
            t = Slice(s, three, end)
            to = Concat <axis = 0> (lead, minus, t)
            flat = Reshape(x, to)
            k = Reshape(w, rows)
            c = org.pytorch.aten.ATen <operator = "_convolution", overload_name = "">
                (flat, k, , one, none, one, no, none, groups, no, no, no, no)
            cs = Shape(c)
            ct = Slice(cs, three, end)
            two = Constant <value = int64[1] {2}> ()
            out = Concat <axis = 0> (minus, two, ct)
            y = Reshape(c, out)
        }"""
    )
    # The same by Einsum over the three shifted views: any batch.
    after = parse(
        """g (float[batch,4,time] x, float[batch,2,4,3] w) => (float[batch,2,t] y) {
            i0 = Constant <value = int64[1] {0}> ()
            i1 = Constant <value = int64[1] {1}> ()
            i2 = Constant <value = int64[1] {2}> ()
            m2 = Constant <value = int64[1] {-2}> ()
            m1 = Constant <value = int64[1] {-1}> ()
            big = Constant <value = int64[1] {1000000}> ()
            x0 = Slice(x, i0, m2, i2)
            x1 = Slice(x, i1, m1, i2)
            x2 = Slice(x, i2, big, i2)
            w0, w1, w2 = Split <axis = 3> (w)
            v0 = Squeeze(w0, m1)
            v1 = Squeeze(w1, m1)
            v2 = Squeeze(w2, m1)
            p0 = MatMul(v0, x0)
            p1 = MatMul(v1, x1)
            p2 = MatMul(v2, x2)
            s = Add(p0, p1)
            y = Add(s, p2)
        }"""
    )
    return before, after


def test_a_batch_that_tracing_froze_is_compared_sample_by_sample() -> None:
    before, after = frozen()
    verdict = verify(before, after)
    assert verdict.status == "equivalent", verdict.detail
    ways = {c.sizes["batch"]: c.by for c in verdict.comparisons}
    assert ways == {
        2: "witness",
        4: "witness, sample by sample",
        5: "witness, sample by sample",
        1: "witness, sample by sample",
    }
    assert len({c.sizes["time"] for c in verdict.comparisons}) >= 3


def test_lengths_of_different_names_are_no_samples() -> None:
    text = """g (float[rows,3] x, float[edges] line) => (int64[rows,3] y)
        <bool no = {0}, int64[1] last = {2}, int64[1] first = {0}> { BODY }"""
    before = parse(text.replace("BODY", "y = org.pytorch.aten.bucketize (x, line, no, no)"))
    opset = before.opset_import.add()
    opset.domain, opset.version = "org.pytorch.aten", 1
    after = parse(
        text.replace(
            "BODY",
            """column = Unsqueeze (x, last)
            below = Less (line, column)
            counted = Cast <to = 7> (below)
            y = ReduceSum <keepdims = 0> (counted, last)""",
        )
    )
    verdict = verify(before, after)  # the witness runs where the edges are in order, of one at most
    assert verdict.status != "differs", verdict.detail


def test_what_is_right_at_the_frozen_batch_only_is_found_wrong_elsewhere() -> None:
    before, after = frozen()
    after.graph.node[-1].output[0] = "sum"
    after.graph.node.append(helper.make_node("Shape", ["x"], ["s4"], end=1))
    after.graph.node.append(helper.make_node("Cast", ["s4"], ["f4"], to=TensorProto.FLOAT))
    half = onnx.numpy_helper.from_array(np.array([0.5], F32), "half")
    after.graph.initializer.append(half)
    after.graph.node.append(helper.make_node("Mul", ["f4", "half"], ["one4"]))
    after.graph.node.append(helper.make_node("Mul", ["sum", "one4"], ["y"]))
    verdict = verify(before, after)
    assert verdict.status == "differs"
    assert "sample by sample" in verdict.detail


def test_a_squeeze_that_drops_a_batch_of_one_is_reported_and_no_difference() -> None:
    before, after = frozen()
    for model in (before, after):
        model.graph.node[-1].output[0] = "all"
        axes = onnx.numpy_helper.from_array(np.array([1, 2]), "plane")
        model.graph.initializer.append(axes)
        nodes = [
            helper.make_node("ReduceMean", ["all"], ["m"], axes=[2], keepdims=1),
            helper.make_node("Squeeze", ["m"], ["y"]),
        ]
        model.graph.node.extend(nodes)
        del model.graph.output[0].type.tensor_type.shape.dim[2]
    verdict = verify(before, after)
    assert verdict.status == "equivalent", verdict.detail
    (skipped,) = verdict.not_compared
    assert skipped.what == "batch=1"
    assert "has shape [2], and samples of the original put together [1, 2]" in skipped.why


def test_a_batch_defined_nowhere_else_is_reported() -> None:
    before, _ = frozen()
    verdict = verify(before, before)
    assert verdict.status == "runs"
    (skipped,) = verdict.not_compared
    assert skipped.what == "batch other than 2"
    assert "nor is the result" in skipped.why


def test_a_size_the_original_wants_is_searched_for() -> None:
    text = """g (float[n,3,t] x) => (float[n,3,8,u] y) <int64[4] to = {0, 0, 8, -1}> {
        y = Reshape(x, to) }"""
    verdict = verify(parse(text), parse(text))
    assert verdict.status == "equivalent"
    times = {c.sizes["t"] for c in verdict.comparisons}
    assert len(times) >= 3
    assert all(t % 8 == 0 for t in times)
    fixed = parse(
        "g (float[n,t] x) => (float[n,24,2] y) <int64[3] to = {0, 24, 2}> { y = Reshape(x, to) }"
    )
    verdict = verify(fixed, fixed)
    assert (verdict.status, sizes_of(verdict)) == ("equivalent", [(1, 48), (2, 48), (3, 48)])
    assert [n.what for n in verdict.not_compared] == ["t other than 48"]


def test_a_sigmoid_that_is_nearly_nothing_is_rounded_as_1_is() -> None:
    """The maps of text detectors are 0.0 or 3e-8 where there is no text."""
    text = """g (float[batch,3] x) => (float[3,batch] y) <float far = {20.0}, float one = {1.0},
        float off = {0.0}> { a = Sub (x, far) %s t = Transpose (s) y = Add (t, off) }"""
    original = parse(text.replace("y = Add (t, off)", "y = Identity (t)") % "s = Sigmoid (a)")
    slow = parse(text % "n = Neg (a) e = Exp (n) p = Add (e, one) s = Reciprocal (p)")
    verdict = verify(original, slow)
    assert verdict.status == "equivalent"
    assert all(o.weak for c in verdict.comparisons for o in c.outputs)
    slow.graph.initializer[2].float_data[0] = 1e-6
    assert verify(original, slow).status == "differs"


def test_what_is_computed_in_halves_is_no_finer_than_they_are() -> None:
    head = "g (float[n,4] x) => (float[n,4] y) <float16 k = {15872}, float d = {%s}>"
    cast = "h = Cast <to = 10> (x) "
    halves = head + " { p = Mul(h, k) q = Cast <to = 1> (p) y = Add(q, d) " + cast + "}"
    floats = head + " { w = Cast <to = 1> (k) p = Mul(x, w) y = Add(p, d) }"
    for text, status in ((halves, "equivalent"), (floats, "differs")):
        # the first stands in an order of its own; weights kept as halves are no halves in floats
        verdict = verify(parse(text % "0"), parse(text % "0.01"))
        assert verdict.status == status, verdict.detail
    assert verify(parse(halves % "0"), parse(halves % "0.5")).status == "differs"


def test_lengths_of_sounds_are_tried_with_one_batch() -> None:
    """Feature extractors run from some hundred samples on, and some take one sound at a time."""
    text = """g (float[batch,n] x) => (float[1,2] y) <int64[1] start = {1199},
        int64[1] end = {1201}, int64[1] axes = {1}, int64[2] shape = {1, 2}> {
        cut = Slice (x, start, end, axes) y = Reshape (cut, shape) }"""
    verdict = verify(parse(text), parse(text))
    assert verdict.status == "equivalent"
    assert {1600, 16_000} <= {c.sizes["n"] for c in verdict.comparisons}


def test_a_dim_on_two_axes_stays_smaller_than_others() -> None:
    model = parse("g (float[n,3,s,s] x, float[n,t] z) => (float[n,3,s,s] y) { y = Relu (x) }")
    inputs = required_inputs(model)
    lists = candidates(dynamic_dims(inputs), inputs, {})
    assert max(lists["s"][:3]) == 64
    assert max(lists["t"][:3]) == 100


def test_a_mask_as_long_as_what_is_kept_and_new_is_found() -> None:
    model = parse(
        """g (float[n,p] kept, float[n,t] x, float[n,m] mask) => (float[n,k] y)
        <int64 zero = {0}, int64 one = {1}> {
            c = Concat <axis = 1> (kept, x)  s = Shape (c)  k = Gather (s, one)
            r = Range (zero, k, one)  g = Gather <axis = 1> (mask, r)  y = Mul (c, g) }"""
    )
    verdict = verify(model, model)
    assert verdict.status == "equivalent", verdict.detail
    found = verdict.comparisons[0].sizes
    assert found["m"] >= found["p"] + found["t"]


def test_the_batch_of_a_recurrent_state_is_that_of_the_input() -> None:
    text = """g (float[a,b] x, float[1,c,2] h) => (float[a,2] y, float[1,a,2] k) {
        z, k = GRU <hidden_size = 2> (s, w, r, , , h) y = Squeeze (k, zero) s = Unsqueeze (x, zero)
        }"""
    proto = parse(text)
    for name, array in (
        ("w", np.ones((1, 6, 96), F32)),
        ("r", np.ones((1, 6, 2), F32)),
        ("zero", np.array([0])),
    ):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    proto.graph.node.insert(0, proto.graph.node.pop())
    verdict = verify(proto, proto)
    assert verdict.status == "equivalent"
    assert all(c.sizes["a"] == c.sizes["c"] and c.sizes["b"] == 96 for c in verdict.comparisons)


def test_an_original_that_crashes_is_not_tried_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def crash(*_: object) -> None:
        tries.append(1)
        raise ForeignError("onnxruntime crashed (SIGFPE)", where="run", mend="")

    monkeypatch.setattr(originals.Side, "run", crash)
    verdict = verify(parse(SCALE), parse(SCALE))
    assert verdict.status == "runs"
    assert 20 < len(tries) < 50
    assert "no input was found on which the original runs: onnxruntime crashed" in verdict.detail


def test_sizes_and_shapes_that_are_given_are_the_only_ones() -> None:
    text = "g (float[n,a] x, float[n,b] z) => (float[n,c] y) { y = Concat <axis = 1> (x, z) }"
    verdict = verify(parse(text), parse(text), sizes={"a": [5], "n": [1, 4], "b": "a"})
    assert {tuple(sorted(c.sizes.items())) for c in verdict.comparisons} == {
        (("a", 5), ("n", 1)),
        (("a", 5), ("n", 4)),
    }
    assert not verdict.not_compared
    verdict = verify(parse(text), parse(text), shapes={"x": [2, 7], "z": [2, "b"]})
    assert {tuple(c.sizes) for c in verdict.comparisons} == {("b",)}


def test_tied_dims_of_two_names_are_found_and_free_ones_differ() -> None:
    tied = parse("g (float[a,2] x, float[b,2] z) => (float[c,2] y) { y = Add(x, z) }")
    verdict = verify(tied, tied)
    assert verdict.status == "equivalent"
    assert len({c.sizes["a"] for c in verdict.comparisons}) >= 3
    free = parse(
        "g (float[1,a] x, float[1,b] z) => (float[1,c] y) { y = Concat <axis = 1> (x, z) }"
    )
    assert any(c.sizes["a"] != c.sizes["b"] for c in verify(free, free).comparisons)


def test_indices_stay_within_what_their_reader_allows() -> None:
    text = """g (int64[n,t] ids, int32[n,t] kinds, float[n,t] x, int64[n,1] at, uint8[n] pixels)
        => (float[n,t,3] y, float[n,1] picked, float[n] p)
        <float[5,3] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14},
         float[2,3] other = {0, 1, 2, 3, 4, 5}> {
        k = Cast <to = 7> (kinds)
        a = Gather(table, ids)
        b = Gather(other, k)
        y = Add(a, b)
        picked = GatherElements <axis = 1> (x, at)
        p = Cast <to = 1> (pixels)
    }"""
    model = parse(text)
    inputs = required_inputs(model)
    allowed = bounds(model, inputs)
    assert {name: bound.high for name, bound in allowed.items()} == {
        "ids": 5,
        "kinds": 2,
        "at": "t",
    }
    feeds = draw(inputs, {"n": 50, "t": 7}, 0, allowed=allowed)
    assert set(feeds["ids"].reshape(-1)) == {0, 1, 2, 3, 4}
    assert set(feeds["kinds"].reshape(-1)) == {0, 1}
    assert feeds["at"].max() == 6
    assert feeds["pixels"].max() > 100
    again = draw(inputs, {"n": 50, "t": 7}, 0, allowed=allowed)
    assert all(np.array_equal(feeds[name], again[name]) for name in feeds)
    assert verify(model, model).status == "equivalent"


BRANCHES = """g (float[n,t] x, int64 rate) => (float[n,t] y)
    <int64 wide = {{16000}}, float two = {{2}}> {{
    is = Equal(rate, wide)
    y = If <then_branch = a () => (float[n,t] p) {{ p = {then}(x, two) }},
            else_branch = b () => (float[n,t] q) {{ q = Neg(x) }}> (is)
}}"""


def test_a_number_that_the_model_asks_for_is_given_to_it() -> None:
    model, wrong = (parse(BRANCHES.format(then=operator)) for operator in ("Mul", "Add"))
    assert bounds(model, required_inputs(model))["rate"].marks == (16000,)
    verdict = verify(model, model)
    assert verdict.status == "equivalent"
    assert {c.by for c in verdict.comparisons} == {"onnxruntime", "onnxruntime where rate=16000"}
    verdict = verify(model, wrong)
    assert verdict.status == "differs"
    (bad, *_) = [c for c in verdict.comparisons if not c.agrees]
    assert bad.fixed == {"rate": 16000}
    assert Verdict.from_dict(verdict.to_dict()) == verdict
    feeds = differing_feeds(model, verdict)
    assert feeds is not None
    assert feeds["rate"] == 16000


def test_a_number_that_the_model_does_not_run_with_is_told() -> None:
    model = parse("""g (float[n,t] x, int64 rate) => (float[n,t] y)
        <int64 seven = {7}, int64[2] odd = {77, 13}> {
        is = Equal(rate, seven)
        y = If <then_branch = a () => (float[n,t] p) { p = Reshape(x, odd) },
                else_branch = b () => (float[n,t] q) { q = Neg(x) }> (is)
    }""")
    verdict = verify(model, model)
    assert verdict.status == "equivalent"
    assert [each.what for each in verdict.not_compared] == ["rate=7"]


def test_a_table_that_is_computed_bounds_its_indices() -> None:
    model = parse("""g (int64[n,t] ids, int8[90,3] table) => (float[n,t,3] y)
{
        wide = Cast <to = 1> (table)  two = Add(wide, wide)  y = Gather(two, ids)
    }""")
    assert bounds(model, required_inputs(model))["ids"].high == 90


def test_tokens_that_the_model_asks_for_are_among_them() -> None:
    model = parse("""g (int64[n,t] ids, int64[n,t] mask, float[90,3] table) =>
        (float[n,t,3] y, bool[n,t] p, bool[n,t] m)
        <int64 pad = {77}, int64 none = {0}, int64 out = {99}> {
        y = Gather(table, ids)  p = Equal(ids, pad)  m = Equal(mask, none)  o = Equal(ids, out)
    }""")
    inputs = required_inputs(model)
    allowed = bounds(model, inputs)
    assert {name: (b.high, b.marks) for name, b in allowed.items()} == {"ids": (90, (77,))}
    feeds = draw(inputs, {"n": 8, "t": 16}, 0, allowed=allowed)
    assert 16 < (feeds["ids"] == 77).sum() < 64
    said = Drawing(inputs, allowed, "normal").describe()
    assert said["ids"] == "from 0 to below 90, 77 among them"


@pytest.mark.parametrize(
    "text",
    [
        """g (float16[n] h, double[n] d, bool[n] b, string[n] s)
        => (float16[n] a, double[n] c, bool[n] e, string[n] t)
        { a = Neg(h)  c = Neg(d)  e = Not(b)  t = Identity(s) }""",
        """g (bfloat16[n] f, bool[n] b) => (bfloat16[n] g, bool[n] e)
        { g = Cast <to = 16> (f)  e = Not(b) }""",
    ],
)
def test_inputs_of_every_kind_are_drawn(text: str) -> None:
    model = parse(text)
    verdict = verify(model, model)
    assert verdict.status == "equivalent", verdict.detail
    assert "weak" not in verdict.detail


def test_infinities_that_rounding_moves_are_passed_over() -> None:
    before, after = (np.array(each, np.float32) for each in ([1, 2, np.inf], [1, 2, 5]))
    check = compare_arrays("y", before, after)
    assert not check.agrees
    found = beside_poles(check, before, after, [before, np.array([1, 2, 7], np.float32)], None)
    assert found.agrees
    assert found.weak == "rounding alone moves the original's by infinity at 1 of its places"
    assert beside_poles(check, before, after, [before], None) is check
    assert beside_poles(check, before, after, [], None) is check
    wrong = np.array([1, 9, 5], np.float32)
    assert not beside_poles(check, before, wrong, [after], None).agrees


def test_outputs_no_input_moves_are_weak() -> None:
    text = """g (float[n,2] x) => (float[n,2] y, float[2] c) <float[2] k = {1, 2}> {
        y = Neg(x)  c = Identity(k) }"""
    verdict = verify(parse(text), parse(text))
    weak = {o.name: o.weak for c in verdict.comparisons for o in c.outputs}
    assert weak == {"y": None, "c": "no input moves it"}
    assert "weak" not in verdict.detail
    zero = parse("g (float[n,2] x) => (float[n,2] y) <float k = {0.0}> { y = Mul(x, k) }")
    verdict = verify(zero, zero)
    assert verdict.status == "equivalent"
    constant = parse("g (float[n,2] x) => (float[m] y) { s = Shape(x)  y = Cast <to = 1> (s) }")
    verdict = verify(constant, constant)
    assert verdict.status == "equivalent"
    assert "the comparison is weak (`y`: only the inputs' sizes move it)" in verdict.detail


def test_inputs_on_which_there_are_numbers_are_preferred() -> None:
    model = parse(
        "g (float[n] x) => (float[n] y) { m = Neg(x)  z = Sub(x, m)  a = Abs(x) "
        "n = Neg(a) l = Log(n) w = Exp(x) q = Sqrt(n)  y = Mul(q, w) }"
    )
    verdict = verify(model, model)
    assert verdict.status == "equivalent"
    assert not any(
        o.weak == "it holds no finite number" for c in verdict.comparisons for o in c.outputs
    )


def test_inputs_on_which_rounding_matters_are_avoided() -> None:
    model = parse(
        """g (float[n,64] x) => (float[n,64] y) <float one = {1.0}, float k = {100000.0}> {
            over = Sub(x, one)  r = Relu(over)  b = Mul(r, k)  s = Sin(b)  y = Add(s, x) }"""
    )
    shaken = parse(
        """g (float[n,64] x) => (float[n,64] y) <float one = {1.0}, float k = {100000.0}> {
            m = Neg(one)  over = Add(x, m)  r = Relu(over)
            t = Mul(r, k)  b = Mul(t, almost)  s = Sin(b)  y = Add(s, x) }"""
    )
    almost = onnx.numpy_helper.from_array(np.array(1 + 1.2e-7, F32), "almost")
    shaken.graph.initializer.append(almost)
    verdict = verify(model, shaken)
    assert verdict.status == "equivalent", verdict.detail
    assert not any(o.weak for c in verdict.comparisons for o in c.outputs)


def test_rounding_of_weights_is_looked_at_where_no_input_is_a_float() -> None:
    draw = np.random.default_rng(0)
    rows, weight = draw.normal(size=(2048, 64)).astype(F32), draw.normal(size=(64, 256))

    def scores(factor: float, divisor: float) -> onnx.ModelProto:
        """Scores that come to steps of 1 / 32 where something large is subtracted."""
        model = parse(
            """g (int64[2000] i) => (float[2000,256] y) <float far = {500000.0}> {
                e = Gather (rows, i)  s = MatMul (e, weight)  t = Div (s, divisor)
                m = Sub (t, far)  y = Add (m, far) }"""
        )
        held = {"rows": rows, "weight": (weight * factor).astype(F32), "divisor": F32(divisor)}
        for name, array in held.items():
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(array), name))
        return model

    same = verify(scores(1.0, 1.0), scores(0.3, 0.3))
    assert same.status == "runs", same.detail
    assert "rounding alone moves the original's" in same.detail
    wrong = verify(scores(1.0, 1.0), scores(0.3, 0.303))
    assert wrong.status == "differs", wrong.detail


def test_where_rounding_always_matters_nothing_is_claimed() -> None:
    text = """g (float[n,64] x) => (float[n,64] y) <float k = {100000.0}> {
        e = Exp(x)  b = Mul(e, k)  y = Sin(b) }"""
    steep, wrong = parse(text), parse(text.replace("Sin", "Atan"))
    moved = parse(text.replace("y = Sin(b)", "c = Mul(b, almost)  y = Sin(c)"))
    almost = onnx.numpy_helper.from_array(np.array(1 + 1.2e-7, F32), "almost")
    moved.graph.initializer.append(almost)
    for other in (moved, wrong):
        verdict = verify(steep, other)
        assert verdict.status == "runs", verdict.detail
        assert "output `y` was not compared: rounding alone" in verdict.detail
        assert [n.what for n in verdict.not_compared] == ["output `y`"]


def test_rounding_of_a_value_on_the_way_is_no_difference() -> None:
    text = """g (float[n,64] x) => (float[n,64] y) <float two = {2.0}> {
        m = Mul(x, two)  t = Tanh(m)  y = Asin(t) }"""
    fallen = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>\n'
        + text.replace("Tanh", "org.pytorch.aten.tanh").replace("Asin", "org.pytorch.aten.asin")
    )
    nudged = parse(text.replace("t = Tanh(m)", "h = Tanh(m)  t = Mul(h, almost)"))
    wrong = parse(text.replace("t = Tanh(m)", "h = Tanh(m)  t = Mul(h, almost)"))
    for model, factor in ((nudged, 1 - 6e-8), (wrong, 1 - 1e-4)):
        almost = onnx.numpy_helper.from_array(np.array(factor, F32), "almost")
        model.graph.initializer.append(almost)
    verdict = verify(fallen, nudged)
    assert verdict.status == "equivalent", verdict.detail
    assert max(o.max_relative for c in verdict.comparisons for o in c.outputs) > 1e-4
    assert verify(fallen, wrong).status == "differs"


def test_the_original_trembles_once_for_all_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"y{i}" for i in range(5)]
    outputs = ", ".join(f"float[n] {name}" for name in names)
    steep = "g (float[n] x) => (%s) <float k = {%s}> { s = Mul(x, k) %s }"
    lines = " ".join(f"{name} = Sin(s)" for name in names)
    runs = []
    run = originals.Side.run
    monkeypatch.setattr(originals.Side, "run", lambda *args: runs.append(args) or run(*args))
    before, after = (parse(steep % (outputs, k, lines)) for k in ("1e6", "1000000.1"))
    verdict = verify(before, after, seeds=(0,), sizes={"n": [64]})
    assert [c.agrees for c in verdict.comparisons] == [True], verdict.detail
    assert verdict.status == "runs"
    # one each, one perturbed for each way of drawing, three that tremble
    assert len(runs) <= 15


def test_doubles_computed_from_floats_are_judged_as_floats() -> None:
    text = "g (float[n,9] x) => (double[n,9] y) { b = Exp(x)  y = Cast <to = 11> (b) }"
    other = "g (float[n,9] x) => (double[n,9] y) { a = Cast <to = 11> (x)  y = Exp(a) }"
    verdict = verify(parse(text), parse(other))
    assert verdict.status == "equivalent", verdict.detail
    assert verdict.comparisons[0].outputs[0].tolerance == 1e-4
    double = text.replace("float", "double")
    assert verify(parse(double), parse(double)).comparisons[0].outputs[0].tolerance == 1e-9


def test_outputs_drawn_at_random_are_not_compared() -> None:
    model = parse(
        "g (float[n] x) => (float[n] y, float[n] z) { y = RandomNormalLike(x)  z = Neg(x) }"
    )
    verdict = verify(model, model)
    assert verdict.status == "runs"
    assert "`y` was not compared: the original draws it at random" in verdict.detail
    assert [n.what for n in verdict.not_compared] == ["output `y`"]
    assert {o.name for c in verdict.comparisons for o in c.outputs} == {"z"}


def test_an_input_of_unknown_rank_wants_a_shape() -> None:
    model = parse(SCALE)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    verdict = verify(model, model)
    assert verdict.status == "runs"
    assert "the rank of input `x` is not declared" in verdict.detail
    assert verify(model, model, shapes={"x": ["batch", 3]}).status == "equivalent"


def test_recorded_outputs_stand_for_the_original(tmp_path: Path) -> None:
    x = np.arange(6, dtype=F32).reshape(2, 3)
    np.savez(tmp_path / "run.0.npz", **{"in.x": x, "out.y": 2 * x})
    np.savez(tmp_path / "run.1.npz", x=-x, y=-2 * x)
    after = parse(SCALE)
    unknown = parse(SCALE.replace("Mul", "my.Mul"))
    for reference in (tmp_path, tmp_path / "run.0.npz", str(tmp_path / "run.*.npz")):
        verdict = verify(unknown, after, reference=reference)
        assert verdict.status == "equivalent"
    assert [c.by for c in verdict.comparisons] == ["recorded run.0.npz", "recorded run.1.npz"]
    assert dict(verdict.comparisons[0].sizes) == {"batch": 2}
    np.savez(tmp_path / "run.1.npz", x=x, y=3 * x)
    verdict = verify(unknown, after, reference=tmp_path)
    assert verdict.status == "differs"
    assert "recorded run.1.npz" in verdict.detail


def test_a_reference_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(VerifyError, match="`nonsense` is no reference"):
        verify(parse(SCALE), parse(SCALE), reference="nonsense")
    np.savez(tmp_path / "bad.npz", z=np.zeros(1))
    with pytest.raises(VerifyError, match="it holds nothing for input `x`"):
        verify(parse(SCALE), parse(SCALE), reference=tmp_path / "bad.npz")
    with pytest.raises(VerifyError, match=r"nowhere\.npz"):
        verify(parse(SCALE), parse(SCALE), reference=tmp_path / "nowhere.npz")


def test_in_a_worker_the_verdict_is_the_same() -> None:
    assert verify(parse(POOL), parse(POOL), isolated=True) == verify(parse(POOL), parse(POOL))
    after = parse(SCALE.replace("{2.0}", "{2.1}"))
    assert verify(parse(SCALE), after, isolated=True) == verify(parse(SCALE), after)


def test_models_are_read_from_files(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parse(SCALE), path)
    assert verify(path, str(path)).status == "equivalent"


def test_the_given_models_are_not_touched() -> None:
    before, after = frozen()
    copies = before.SerializeToString(), after.SerializeToString()
    verify(before, after)
    assert (before.SerializeToString(), after.SerializeToString()) == copies


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the repository")
def test_a_real_export_against_itself() -> None:
    path = CORPUS / "models/dymn04_dynBT__t2.4.1__fallback.onnx"
    verdict = verify(path, path)
    assert verdict.status == "runs"
    assert len({c.sizes["input0_d3"] for c in verdict.comparisons}) == 3
    assert all(c.agrees for c in verdict.comparisons)
    recorded = sorted(path.parent.glob(path.stem + ".0.npz"))
    verdict = verify(path, path, reference=recorded)
    assert (verdict.status, verdict.comparisons[0].agrees) == ("runs", True)


@pytest.mark.parametrize(
    ("body", "channels"),
    [
        pytest.param("i = Cast <to = 1> (x) y = Conv <group = 2> (i, w)", 14, id="Conv"),
        pytest.param("a = Relu (x) y = BatchNormalization (x, s, s, s, s)", 11, id="norm"),
        pytest.param("r = my.f (x, w) y = Identity (r)", 7, id="in a function"),
        pytest.param(
            """o = Constant <value = int64 {1}> () f = Constant <value = bool {0}> ()
            y = org.pytorch.aten._convolution (x, w, , ones, none, ones, f, none, o, f, f, f)""",
            7,
            id="of PyTorch's exporter",
        ),
    ],
)
def test_channels_that_a_weight_demands_are_given(body: str, channels: int) -> None:
    """Whoever names every dim leaves a network that runs with one number of channels."""
    model = parse(f"""g (float[n,c,h,w_] x) => (float[n,d,i,j] y)
        <float[11] s = {{1,2,3,4,5,6,7,8,9,10,11}},
         int64[2] ones = {{1,1}}, int64[2] none = {{0,0}}> {{
        {body}
    }}
    <domain: "my", opset_import: ["": 17]>
    f (v, u) => (o) {{ o = Conv (v, u) }}""")
    weight = np.random.default_rng(0).normal(size=(4, 7, 3, 3)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    if "my.f" not in body:
        del model.functions[:]
    verdict = verify(model, model)
    assert not verdict.not_compared
    assert {each.sizes["c"] for each in verdict.comparisons} == {channels}
    assert len({each.sizes["h"] for each in verdict.comparisons}) > 1


@pytest.mark.parametrize("batch_first", [0, 1])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize(("operator", "gates"), [("lstm", 4), ("gru", 3), ("rnn_tanh", 1)])
def test_a_recurrent_layer_of_which_nothing_is_fixed_is_compared(
    operator: str, gates: int, listed: bool, batch_first: int
) -> None:
    """Width, number of layers and width of the states are what the weights want."""
    states = ["h", "c"] if operator == "lstm" else ["h"]
    weights = ["wi", "wh", "bi", "bh"]
    lists = f"hx = SequenceConstruct ({', '.join(states)})" if listed and len(states) > 1 else ""
    lists += f" ws = SequenceConstruct ({', '.join(weights)})" if listed else ""
    between = ["hx"] if listed and len(states) > 1 else states
    names = ", ".join(["x", *between, *(["ws"] if listed else weights)])
    inputs = ", ".join(f"float[{s}0, {s}1, {s}2] {s}" for s in states)
    model = parse(f"""g (float[x0, x1, x2] x, {inputs}) => (float[a, b, d] y)
        <bool yes = {{1}}, bool no = {{0}}, int64 one = {{1}}, double zero = {{0}},
         bool first = {{{batch_first}}}> {{
        {lists}
        y, {", ".join(f"l{s}" for s in states)} =
            org.pytorch.aten.{operator} ({names}, yes, one, zero, no, no, first)
    }}""")
    generator = np.random.default_rng(0)
    shapes = [(gates * 5, 4), (gates * 5, 5), (gates * 5,), (gates * 5,)]
    for name, shape in zip(weights, shapes, strict=True):
        weight = generator.normal(size=shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    verdict = verify(model, model)
    assert not verdict.not_compared
    wanted = {"x2": 4, **{f"{s}{axis}": size for s in states for axis, size in ((0, 1), (2, 5))}}
    assert all({d: c.sizes[d] for d in wanted} == wanted for c in verdict.comparisons)
    assert len({c.sizes["x0"] for c in verdict.comparisons}) > 1


def test_both_operands_of_a_bilinear_form_are_as_wide_as_its_weight() -> None:
    model = parse("""g (float[a, b, c] x, float[d, e, f] z) => (float[p, q, r] y) {
        y = org.pytorch.aten.bilinear (x, z, w, )
    }""")
    weight = np.random.default_rng(0).normal(size=(6, 4, 5)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    verdict = verify(model, model)
    assert not verdict.not_compared
    assert {(c.sizes["c"], c.sizes["f"]) for c in verdict.comparisons} == {(4, 5)}
