"""Rounding is no difference, and no excuse for one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from verdicts import F32, parse

import surgeon
from surgeon.reference import open_reference
from surgeon.runtime import Session
from surgeon.verify import compare_arrays, originals, pair, verify
from surgeon.verify.noise import beside_poles, doubted
from surgeon.verify.precision import coarse_outputs
from surgeon.verify.widened import widened


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


def test_one_less_a_cosine_is_rounded_as_1_is() -> None:
    """Of vectors that are alike it is nothing, or a rounding of 1."""
    text = """g (float[n,1] x, float[n,1] w) => (float[n] y)
        <float z = {0.0}, int64 no = {0}, int64[1] last = {1}> {
        a = Exp (x)  b = Exp (w)  s = Sign (a)  e = Squeeze (s, last)
        y = org.pytorch.aten.ATen <operator = "cosine_embedding_loss"> (a, b, e, z, no) }"""
    verdict = surgeon.apply(parse(text), "aten").report.verdict
    assert verdict is not None
    assert verdict.status == "equivalent"
    assert all(o.weak for c in verdict.comparisons for o in c.outputs)


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


@pytest.mark.parametrize("step", ["floor (wide)", "mul (wide, one)"])
def test_a_size_that_is_held_as_a_float_does_not_end_the_check(step: str) -> None:
    """2.9999998 is cut to 2: a floor stays whole; where a product moves, the run is left out."""
    text = """g (float[n] x) => (float[n] y) <int64 axis = {0}, int64 six = {6},
          int64[1] once = {1}, float one = {1}, float most = {1e6}> {
        size = org.pytorch.aten.size (x, axis)  wide = org.pytorch.aten.to (size, six)
        near = org.pytorch.aten.%s  cut = Cast <to = 7> (near)  shape = Reshape (cut, once)
        same = Reshape (x, shape)  large = org.pytorch.aten.mul (same, most)  y = Sin (large) }"""
    opsets = '<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>\n'
    steep = (
        "g (float[n] x) => (float[n] y) <float most = {1000000.1}> { b = Mul(x, most) y = Sin(b) }"
    )
    verdict = verify(onnx.parser.parse_model(opsets + text % step), parse(steep), sizes={"n": [64]})
    assert verdict.status == "runs", verdict.detail
    assert "output `y` was not compared: rounding alone" in verdict.detail


@pytest.mark.parametrize(("step", "moves"), [("floor", False), ("to", False), ("exp", True)])
def test_what_an_operator_makes_exactly_does_not_tremble(step: str, moves: bool) -> None:
    second = ", six" if step == "to" else ""
    text = f"""<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
        g (float[n] x) => (float[n] y, float s) <int64 six = {{6}}, int64 axis = {{0}}> {{
          y = org.pytorch.aten.{step} (x{second})  size = org.pytorch.aten.size (x, axis)
          s = org.pytorch.aten.true_divide (size, size) }}"""
    model = open_reference(onnx.parser.parse_model(text))
    feeds = {"x": np.linspace(-3, 3, 999, dtype=F32)}
    calm, moved = model.run(feeds, ["y", "s"]), model.run_trembling(feeds, ["y", "s"], 0)
    assert np.any(calm["y"] != moved["y"]) == moves
    assert calm["s"] == moved["s"]  # of whole numbers


def test_doubles_computed_from_floats_are_judged_as_floats() -> None:
    text = "g (float[n,9] x) => (double[n,9] y) { b = Exp(x)  y = Cast <to = 11> (b) }"
    other = "g (float[n,9] x) => (double[n,9] y) { a = Cast <to = 11> (x)  y = Exp(a) }"
    verdict = verify(parse(text), parse(other))
    assert verdict.status == "equivalent", verdict.detail
    assert verdict.comparisons[0].outputs[0].tolerance == 1e-4
    double = text.replace("float", "double")
    assert verify(parse(double), parse(double)).comparisons[0].outputs[0].tolerance == 1e-9


@pytest.mark.parametrize("known", [True, False])
def test_places_between_pixels_are_as_exact_as_they_are_far_out(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 800 columns the last stands at 319.3, which float32 knows to 3e-5."""
    text = """<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
        g (float[1,2,320,320] x) => (float[1,2,800,800] y)
        <int64[2] size = {800, 800}, bool corners = {0}> {
          y = org.pytorch.aten.upsample_bilinear2d (x, size, corners) }"""
    if not known:
        monkeypatch.setattr(pair, "_PLACES", re.compile("none"))
    report = surgeon.apply(onnx.parser.parse_model(text), "aten", allow=["leftover"]).report
    assert [r.rule for r in report.refusals] == ([] if known else ["upsample"])


def test_a_norm_of_values_that_are_nearly_equal_is_not_refused_for_its_rounding() -> None:
    """Of two values a group norm divides by their distance, which may be next to nothing."""
    text = """g (float[n,256,2] x) => (float[n,256,2] y)
        <float small = {0.04}, float one = {1.0}, float eps = {0.0000000001}> {
        f = Mul(x, small)  z = Add(f, one)  %s }"""
    before = parse(text % "y = InstanceNormalization <epsilon = 0.0000000001> (z, w, b)")
    after, wrong = (
        parse(
            text
            % f"""m = ReduceMean <axes = [2]> (z)  d = Sub(z, m)  q = Mul(d, d)
                v = ReduceMean <axes = [2]> (q)  e = Add(v, {more})  s = Sqrt(e)  y = Div(d, s)"""
        )
        for more in ("eps", "small")
    )
    for name, value in (("w", 1), ("b", 0)):
        array = onnx.numpy_helper.from_array(np.full(256, value, F32), name)
        before.graph.initializer.append(array)
    draw = np.random.default_rng(0)
    feeds = {"x": draw.standard_normal((3, 256, 2)).astype(F32)}
    ((check,),) = pair.Pair(before, after).check([feeds], "rounding")
    assert check.agrees
    assert check.weak
    ((check,),) = pair.Pair(before, wrong).check([feeds], "rounding")
    assert not check.agrees


@pytest.mark.parametrize(("after", "agrees"), [("ReduceSum", True), ("ReduceMax", False)])
def test_a_sum_is_rounded_as_its_terms_are(after: str, agrees: bool) -> None:
    text = "g (float[n] x) => (float y) { y = %s }"
    before = parse(text % 'org.pytorch.aten.ATen <operator = "sum"> (x, )')
    both = pair.Pair(before, parse(text % f"{after} <keepdims = 0> (x)"))
    terms = np.random.default_rng(0).normal(size=720) * 3e4
    terms[-1] -= terms.sum() - 1
    (checks,) = both.check([{"x": terms.astype(F32)}], "rounding")
    assert isinstance(checks, tuple)
    assert [check.agrees for check in checks] == [agrees]


def test_a_difference_from_one_number_everywhere_is_held_against_its_own_movement() -> None:
    """What is beside the first of a constant's Fourier transform is 0 but for rounding."""
    before, after = np.zeros(4, np.float32), np.array([0, 1e-7, 0, 0], np.float32)
    check = compare_arrays("y", before, after)
    assert not check.agrees
    moved = [np.array([3e-8, 0, 0, 0], np.float32)]
    assert doubted(check, before, after, moved, tolerance=None, most=10).agrees
    assert not doubted(check, before, after, moved, tolerance=None, most=2).agrees
    assert not doubted(check, before, after, [before], tolerance=None, most=10).agrees


def test_a_variance_of_many_elements_is_rounded_as_their_number_says() -> None:
    """Drawn at random those of long lines are nearly equal, and their spread tells little."""
    x = np.random.default_rng(0).choice(np.array([20, -20, 0.3, -6], np.float32), 60_000)
    head = '<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]> g (float[n] x)'
    before = onnx.parser.parse_model(head + "=> (float y) { y = org.pytorch.aten.var (x) }")
    late = """ => (float y) <float off = {%s}> {
        m = ReduceMean (x)  d = Sub (x, m)  e = Mul (d, d)
        v = ReduceMean <keepdims = 0> (e)  y = Add (v, off) }"""
    for off, agrees in ((0.005, True), (0.5, False)):
        after = onnx.parser.parse_model(head + late % off)
        found = pair.Pair(before, after).check([{"x": x}], "rounding")
        assert [check.agrees for check in found[0]] == [agrees], off


def test_a_long_sum_is_rounded_as_what_was_added_up_on_its_way_is() -> None:
    x = np.random.default_rng(0).choice(np.array([20, -20, 0.3, -6], np.float32), 60_000)
    sums = parse("g (float[n] x) => (float y) { y = ReduceSum <keepdims = 0> (x) }")
    late = """g (float[n] x) => (float y) <float off = {%s}> {
        s = ReduceSum <keepdims = 0> (x)  y = Add (s, off) }"""
    for off, agrees in ((0.005, True), (0.5, False)):
        found = pair.Pair(sums, parse(late % off)).check([{"x": x - x.mean()}], "rounding")
        assert [check.agrees for check in found[0]] == [agrees], off


def doubles(body: str) -> onnx.ModelProto:
    head = '<ir_version: 8, opset_import: ["": 17]> g (double[n] a) => (double[n] y)'
    return onnx.parser.parse_model(f"{head} <double since = {{1600000000}}> {{ {body} }}")


def test_few_doubles_near_one_another_are_held_against_the_spread_of_more() -> None:
    result = surgeon.apply(doubles("y = Cos (a)"), "float64-in-float32", allow=["approximate"])
    assert result.report.status == "equivalent"
    assert not result.report.refusals


@pytest.mark.parametrize("body", ["y = Add (a, since)", "b = Add (a, since) y = Sub (b, since)"])
def test_few_doubles_of_which_single_precision_keeps_nothing_are_refused(body: str) -> None:
    result = surgeon.apply(doubles(body), "float64-in-float32", allow=["approximate"])
    assert result.report.changes == ()
    assert result.report.refusals


CANCELLING = """g (float[n,3] x) => (float[n,3] y)
    <float one = {1}, float small = {%s}, float more = {%s}> {
    a = Abs (x)  %s  s = Sqrt (p)  d = Sub (s, one)  y = Div (d, small) }"""


def cancelling(small: float, *, apart: bool) -> onnx.ModelProto:
    """The root of a little more than 1, less 1: sums in two orders."""
    plain = "b = Add (a, one)  m = Mul (b, small)  p = Add (m, one)"
    merged = "m = Mul (a, small)  p = Add (m, more)"
    return parse(CANCELLING % (small, 1 + small, plain if apart else merged))


def test_what_cancels_is_held_against_double_precision() -> None:
    """As where value functions are squashed: another order is no farther off than the original."""
    verdict = verify(cancelling(1e-3, apart=True), cancelling(1e-3, apart=False))
    assert verdict.status in ("equivalent", "runs"), verdict.detail
    found = [output for each in verdict.comparisons for output in each.outputs]
    assert max(output.max_relative for output in found) > 1e-4
    assert any("of its spread off" in (output.weak or "") for output in found)
    wrong = cancelling(1e-3, apart=False)
    wrong.graph.initializer[2].float_data[0] += 1e-6
    assert verify(cancelling(1e-3, apart=True), wrong).status == "differs"


def test_what_is_made_of_no_type_that_is_said_is_widened_too() -> None:
    model = parse(
        """g (float[n] x, bool c) => (float[n] y) <int64[1] two = {2}> {
            z = ConstantOfShape (two)  k = Constant <value_float = 0.5> ()
            l = Constant <value_floats = [1.0, 2.0]> ()
            f = Cast <to = 1> (two)  e = Add (z, l)  g = Mul (e, k)  h = Add (g, f)
            y = If (c) <then_branch = a () => (float[n] u) { u = Add (x, h) },
                        else_branch = b () => (float[n] v) { v = Sub (x, h) }>
        }"""
    )
    wide = widened(model)
    assert wide is not None
    x = np.array([1 / 3, 2 / 3])
    found = Session(wide).run({"x": x, "c": np.array(True)}, ["y"])["y"]
    np.testing.assert_array_equal(found, x + np.array([2.5, 3.0]))
    assert found.dtype == np.float64


def test_what_is_something_else_each_time_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a cache of onnxruntime's GroupQueryAttention, which shows what stood in memory."""
    runs: list[int] = []
    run = Session.run

    def shown(self: Session, *given: Any) -> dict[str, Any]:
        runs.append(0)
        made = run(self, *given)
        return made | ({"z": made["z"] + len(runs)} if "z" in made else {})

    monkeypatch.setattr(Session, "run", shown)
    model = parse("g (float[n,8] x) => (float[n,8] y, float[n,8] z) { y = Relu (x) z = Neg (x) }")
    found = verify(model, model)
    assert found.status == "runs"
    assert "`z` was not compared: the original gives something else each time" in found.detail
    assert {o.name for c in found.comparisons for o in c.outputs if not o.weak} == {"y"}
    other = parse("g (float[n,8] x) => (float[n,8] y, float[n,8] z) { y = Abs (x) z = Neg (x) }")
    assert verify(model, other).status == "differs"


@pytest.mark.parametrize("kept", [False, True])
def test_what_a_table_of_halves_holds_is_halves(kept: bool) -> None:
    """And weights that are only kept as halves say nothing of what is computed of them."""
    look = "h = Cast <to = 1> (w) e = Gather (h, ids)" if kept else "e = Gather (w, ids)"
    model = parse(
        f"g (int64[n] ids) => (float[n,4] y) <float16[2,4] w = {{1, 2, 3, 4, 5, 6, 7, 8}}> "
        f"{{ {look} x = Exp (e) y = Cast <to = 1> (x) }}"
    )
    assert coarse_outputs(model) == ({} if kept else {"y": "float16"})
