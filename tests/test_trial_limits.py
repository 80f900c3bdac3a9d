"""What of a rewrite is not compared, or not twice, and how the report counts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from trials import F32, attempt
from truth import model_of

import surgeon
from surgeon.arranged import multiplied
from surgeon.authoring import rule
from surgeon.match import Match
from surgeon.recipe import Rule
from surgeon.reference import Undefined
from surgeon.rewrite import Draft, Refused
from surgeon.verify import pair


def pieces(model: Any, *rules: Rule, **options: Any) -> Mapping[str, int]:
    return surgeon.apply(model, *rules, **options).report.pieces


@rule("y = Neg (x)", exact="rounding")
def neg_by_sub(draft: Draft, match: Match) -> Any:
    return draft.op("Sub", draft.constant(np.zeros((), F32)), match.values["x"])


def test_both_sides_are_opened_once_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sizes of the Slice are symbols in a value, and reach every point all the same."""
    opened: list[Any] = []
    drawn: list[int] = []
    made = pair.open_session
    monkeypatch.setattr(pair, "open_session", lambda *a, **k: opened.append(a) or made(*a, **k))
    check = pair.Pair.check
    monkeypatch.setattr(pair.Pair, "check", lambda *a: drawn.append(len(a[1])) or check(*a))
    rewritten = attempt(
        "halves",
        "y = Slice (x, s, e, a)",
        lambda d, v: d.op("Slice", v["x"], v["s"], v["e"], d.constant([-1])),
    )
    assert rewritten.report.fired.total() == 1
    assert len(opened) == 2
    assert drawn[:2] == [1, 1]
    assert sum(drawn) > 15


def test_one_check_for_equal_pieces() -> None:
    body = "a = Neg (x) c = Relu (a) d = Neg (c) e = Abs (d) y = Neg (e)"
    proto = model_of("float[b,t] x", body, "y")
    assert pieces(proto, neg_by_sub) == {"compared": 2, "compared before": 1}


def test_one_check_for_pieces_of_other_lengths_that_are_as_free() -> None:
    """As the experts of a mixture, each of which has the tokens that fall to it."""
    body = """
        i = NonZero (x) j = NonZero (z)
        a = Cast <to = 1> (i) b = Cast <to = 1> (j) c = Neg (a) d = Neg (b)
        first = Slice (d, zero, two, one)
        e = Neg (first) f = Concat <axis = 1> (c, d, e) y = ReduceSum <keepdims = 0> (f, one)
    """
    numbers = {"zero": np.array([0]), "two": np.array([2]), "one": np.array([1])}
    proto = model_of("float[b,t] x, float[c,u] z", body, "y", 17, numbers)
    # the last is no longer than 2, wherever
    assert pieces(proto, neg_by_sub) == {"compared": 2, "compared before": 1}


def test_without_verification_nothing_is_compared_and_wrong_rewrites_go_through() -> None:
    proto = model_of("float[b,t] x", "y = Neg (x)", "y")
    assert pieces(proto, neg_by_sub, verify=False) == {}


def test_pieces_that_cannot_be_compared_are_counted_with_a_reason() -> None:
    unknown = model_of("float[b] x", "y = Neg (x)", "y")
    unknown.graph.input[0].type.tensor_type.ClearField("shape")
    assert pieces(unknown, neg_by_sub) == {"not compared: an operand's shape is not known": 1}

    @rule("y = Neg (x)", exact="approximate")
    def roughly(draft: Draft, match: Match) -> Any:
        return draft.op("Sub", draft.constant(np.zeros((), F32)), match.values["x"])

    known = model_of("float[b] x", "y = Neg (x)", "y")
    found = pieces(known, roughly, allow=["approximate"])
    assert found == {"not compared: it is approximate": 1}


def test_large_values_are_compared_on_fewer_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The replacement of one run may take seconds and gigabytes: the sizes are chosen small."""
    shapes: list[tuple[int, ...]] = []
    check = pair.Pair.check

    def watched(self: pair.Pair, inputs: Any, *args: Any) -> Any:
        shapes.extend(shape for given in inputs for _, shape in given.drawn.values())
        return check(self, inputs, *args)

    monkeypatch.setattr(pair.Pair, "check", watched)
    proto = model_of("float[b,1000] x", "y = Neg (x)", "y")
    assert pieces(proto, neg_by_sub) == {"compared": 1}
    usual = len(shapes)
    shapes.clear()
    # x, y and what takes its place are 3,000 elements for each of a batch
    monkeypatch.setattr("surgeon.trial.points._LARGE", 4000)
    monkeypatch.setattr("surgeon.trial._ALL", 10_000)
    few = "compared on fewer values: they are large"
    assert pieces(proto, neg_by_sub) == {"compared": 1, few: 1}
    assert {shape[0] for shape in shapes} <= {0, 1, 2, 3}
    assert 2 < len(shapes) < usual
    shapes.clear()
    monkeypatch.setattr("surgeon.trial.points._LARGE", 2000)
    assert pieces(proto, neg_by_sub) == {"compared": 1, few: 1}
    assert shapes[0] == (1, 1000)  # one run there is all the same, of the smallest


def test_what_the_mean_of_no_element_is_decides_nothing() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
        g (float[b,t] x) => (float[t] y) <int64[1] axes = {0}, bool no = {0}> {
            y = org.pytorch.aten.ATen <operator = "mean", overload_name = ""> (x, axes, no, )
        }"""
    )
    result = surgeon.apply(proto, "aten")
    assert not result.report.refusals
    assert result.report.after == {"ReduceMean": 1}


def test_what_cannot_be_joined_shows_nothing_of_how_it_is_joined() -> None:
    """onnxruntime looks past operands without elements, whatever their other sizes are."""
    inputs = "float[n,2,a] x, float[n,1,b] y, float[n,1,c] z"
    two = "{ w = Concat <axis = 1> (y, z) o = Concat <axis = 1> (x, w) }"
    one = "{ o = Concat <axis = 1> (x, y, z) }"
    wrong = "{ o = Concat <axis = 1> (z, y, x) }"
    before, after, other = (
        onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => (float[n,m,d] o) {body}'
        )
        for body in (two, one, wrong)
    )
    draw = np.random.default_rng(0)
    sizes = {"odd": (3, 0, 3), "even": (3, 3, 3)}
    feeds = {
        key: {
            name: draw.normal(size=(2, rows, size)).astype(np.float32)
            for name, rows, size in zip("xyz", (2, 1, 1), each, strict=True)
        }
        for key, each in sizes.items()
    }
    (even,) = pair.Pair(before, after).check([feeds["even"]], "bit")
    assert all(check.agrees for check in even)
    odd, even = pair.Pair(before, other).check([feeds["odd"], feeds["even"]], "bit")
    assert isinstance(odd, Undefined)
    assert not any(check.agrees for check in even)


def test_no_depth_ends_the_process() -> None:
    """onnxruntime's ConvTranspose over three axes ends it where one of them has no length."""
    text = (
        '<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]> '
        "g (float[b,4,t,h,5] x) => (float[b,2,u,v,5] y) <int64[3] one = {1, 1, 1}, "
        "int64[3] none = {0, 0, 0}, int64 groups = {1}, float k = {0.5}, "
        "int64[5] shape = {4, 2, 3, 2, 1}> { w = Expand (k, shape) "
        "y = org.pytorch.aten.conv_transpose3d (x, w, , one, none, none, groups, one) }"
    )
    result = surgeon.apply(onnx.parser.parse_model(text), "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


def test_no_size_ends_the_process() -> None:
    """onnxruntime's Einsum divides by the length of an axis, which ends it, in a check too."""
    text = (
        '<ir_version: 8, opset_import: ["": 18]> '
        "g (float[b,4,8,8] x, float[b,6,8] z, bool[b,4,6] c) => (float[b,4,6] y) "
        "<int64 zero = {0}, float far = {-100}> { s = Gather <axis = 2> (x, zero) "
        'u = Einsum <equation = "bie,bje->bij"> (s, z) m = Where (c, far, u) '
        "n = CastLike (zero, m) y = Add (m, n) }"
    )
    result = surgeon.apply(onnx.parser.parse_model(text), "clean")
    assert result.report.verdict is not None


@rule("y = Reshape (x, sizes)", exact="bit")
def inferred_length(draft: Draft, match: Match) -> Any:
    """Two halves of each row, whose length the Reshape finds from the rest."""
    if draft.facts.array(match.values["sizes"]) is not None:
        raise Refused("its sizes are numbers already")
    return draft.op("Reshape", match.values["x"], draft.constant(np.array([0, -1, 2])))


@pytest.mark.parametrize("counted", [True, False])
def test_a_count_may_be_0_where_an_input_has_elements(counted: bool) -> None:
    rows = (
        "h = Greater (x, low) z = NonZero (h) r = Transpose (z)"
        if counted
        else "r = Cast <to = 7> (x)"
    )
    proto = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[n,f] x) => (int64[k,a,2] y)
        <float low = {{0}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}> {{
            {rows}
            o = Concat <axis = 1> (r, r) s = Shape (o)
            m = Gather (s, zero) w = Gather (s, one) e = Div (w, two)
            sizes = Concat <axis = 0> (m, e, two) y = Reshape (o, sizes)
        }}"""
    )
    refusals = surgeon.apply(proto, inferred_length).report.refusals
    assert bool(refusals) == counted


@rule("y = Relu (x)", exact="rounding")
def relu_up_to_3000(draft: Draft, match: Match) -> Any:
    bounds = (draft.constant(np.array(n, np.float16)) for n in (0, 3000))
    return draft.op("Clip", match.values["x"], *bounds)


def test_halves_are_compared_beyond_the_numbers_that_a_rewrite_holds() -> None:
    proto = model_of("float16[b,t] x", "y = Relu (x)", "y")
    report = surgeon.apply(proto, relu_up_to_3000).report
    assert not report.changes
    assert len(report.refusals) == 1


@rule("s = Add (a, b)\ny = Mul (s, half)", exact="rounding")
def mean_of_two(draft: Draft, match: Match) -> Any:
    """Half of the sum of two is their mean."""
    return draft.op("Mean", match.values["a"], match.values["b"])


def test_what_runs_is_not_made_what_the_runtime_has_no_kernel_of() -> None:
    """The whole result would not load; and the next rewrite would not be compared."""
    text = "s = Add (x, z) y = Mul (s, half) q = Neg (y)"
    inputs = "double[n] x, double[n] z"
    proto = model_of(inputs, text, "q", constants={"half": 0.5})
    result = surgeon.apply(proto, mean_of_two, neg_by_sub_of_doubles)
    assert [change.rule for change in result.report.changes] == ["neg-by-sub-of-doubles"]
    (refusal,) = result.report.refusals
    assert "onnxruntime has no `ai.onnx.Mean`" in refusal.reason
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


@rule("y = Neg (x)", exact="rounding")
def neg_by_sub_of_doubles(draft: Draft, match: Match) -> Any:
    """0 less a number is its opposite."""
    return draft.op("Sub", draft.constant(np.zeros((), np.float64)), match.values["x"])


RUNNING_PRODUCT = """<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
g (float[20,n] x) => (float[20,n] y) <int64 axis = {-1}> {
    y = org.pytorch.aten.ATen <operator = "cumprod", overload_name = ""> (x, axis, )
}"""


def test_running_products_over_a_long_axis_are_compared_where_no_product_is_infinite() -> None:
    """Of infinite products of blocks, and zeros in front of them, one side alone is NaN."""
    result = surgeon.apply(onnx.parser.parse_model(RUNNING_PRODUCT), "aten")
    assert not result.report.refusals
    assert not result.report.after.keys() & {"aten.cumprod"}
    values = np.array([[3e4, -300, 0.0, 0.5] * 25], F32)
    end = multiplied(values).max()
    assert 2 < end < 3
    assert (np.abs(multiplied(values)[0, :4]) == np.array([end, end, 0.0, 0.5], F32)).all()
    assert np.isfinite(np.cumprod(np.abs(multiplied(values[values != 0])))).all()
    assert (multiplied(values[:, :4]) == values[:, :4]).all()


@pytest.mark.parametrize("wrong", [False, True])
def test_a_running_product_that_is_wrong_at_zeros_alone_is_still_refused(wrong: bool) -> None:
    @rule("y = aten.cumprod (x, *rest)", exact="rounding")
    def of_two(draft: Draft, match: Match) -> Any:
        x = match.values["x"]
        a, b = (draft.op("Slice", x, *map(draft.constant, ([n], [n + 1], [1]))) for n in (0, 1))
        product = draft.op("Mul", a, b)
        if wrong:
            product = draft.op("Div", draft.op("Mul", product, b), b)
        return draft.op("Concat", a, product, axis=1)

    model = onnx.parser.parse_model(RUNNING_PRODUCT.replace("[20,n]", "[n,2]"))
    report = surgeon.apply(model, of_two, allow=["leftover"]).report
    assert (bool(report.refusals), report.fired.total()) == (wrong, 0 if wrong else 1)
