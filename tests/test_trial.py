"""Every rewrite is compared with what it replaces: wrong ones are refused, right ones are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from truth import model_of

import surgeon
from surgeon.authoring import rule
from surgeon.edges import Source, draw
from surgeon.facts import Fact
from surgeon.match import Match
from surgeon.recipe import Rule
from surgeon.reference import Undefined
from surgeon.rewrite import Draft, Refused
from surgeon.surgery import Result
from surgeon.verify import pair

F32 = np.float32
Build = Callable[[Draft, Mapping[str, Any]], Any]
W = np.linspace(-1, 1, 2 * 3 * 3 * 3, dtype=F32).reshape(2, 3, 3, 3)
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sub": ("float[b,t] x, float[t] z", "y = Sub (x, z)", {}),
    "softmax": ("float[b,c,t] x", "y = Softmax <axis = 1> (x)", {}),
    "concat": ("float[b,t] x, float[b,t] z", "y = Concat <axis = 1> (x, z)", {}),
    "pool": (
        "float[b,c,h,w] x",
        "y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)",
        {},
    ),
    "conv": (
        "float[b,3,h,w] x",
        "y = Conv <pads = [1, 1, 1, 1]> (x, k, c)",
        {"k": W, "c": np.array([1, 2], F32)},
    ),
    "halves": (
        "float[b,t] x",
        "s = Shape (x) i = Gather (s, one) h = Div (i, two) y = Slice (x, zero, h, one)",
        {"one": np.array([1]), "two": np.array([2]), "zero": np.array([0])},
    ),
    "gemm": ("float[b,3] x", "y = Gemm (x, k, c)", {"k": W[0, 0], "c": np.ones(3, F32)}),
    "cast": ("float[b] x", "y = Cast <to = 6> (x)", {}),
    "mean": ("float[b,c,t] x", "y = ReduceMean <axes = [2]> (x)", {}),
    "bool": ("float[b] x, float[b] z", "y = Less (x, z)", {}),
    "transpose": ("float[b,t,t] x", "y = Transpose <perm = [0, 2, 1]> (x)", {}),
    "split": ("float[b,4] x", "y, q = Split <axis = 1> (x, s)", {"s": np.array([1, 3])}),
}


def attempt(model: str, match: str, build: Build, *, exact: str = "rounding") -> Result:
    """Apply a rule of that replacement to the model."""

    @rule(match, exact=exact)
    def planted(draft: Draft, found: Match) -> Any:
        if found.root.made:
            raise Refused("it was made here")
        return build(draft, found.values)

    inputs, body, constants = MODELS[model]
    outputs = "y q" if model == "split" else "y"
    return surgeon.apply(model_of(inputs, body, outputs, 17, constants), planted)


def op(name: str, *operands: str, **attributes: Any) -> Build:
    """A builder of one node of these operands."""
    return lambda d, v: d.op(name, *(v[o] for o in operands), **attributes)


def split_swapped(d: Draft, v: Mapping[str, Any]) -> Any:
    first, second = d.op("Split", v["x"], d.constant([3, 1]), outputs=2, axis=1)
    return second, first


def slice_to(bound: Callable[[Draft, Any], Any]) -> Build:
    def build(d: Draft, v: Mapping[str, Any]) -> Any:
        return d.op("Slice", v["x"], d.constant([0]), bound(d, v["x"]), d.constant([1]))

    return build


def half_rounded_up(d: Draft, x: gs.Tensor) -> Any:
    """Right at even sizes only."""
    size = d.op("Gather", d.op("Shape", x), d.constant([1]))
    return d.op("Div", d.op("Add", size, d.constant([1])), d.constant([2]))


def half(d: Draft, x: gs.Tensor) -> Any:
    size = d.op("Gather", d.op("Shape", x), d.constant([1]))
    return d.op("Sub", size, half_rounded_up(d, x))


def softmax_from_parts(d: Draft, v: Mapping[str, Any]) -> Any:
    power = d.op("Exp", d.op("Sub", v["x"], d.op("ReduceMax", v["x"], d.constant([1]))))
    return d.op("Div", power, d.op("ReduceSum", power, d.constant([1])))


POOL = "y = AveragePool <*rest> (x)"
CONV = "y = Conv <pads = [1, 1, 1, 1]> (x, k, c)"
PADS = [1, 1, 1, 1]
WRONG: dict[str, tuple[str, str, Build]] = {
    "swapped operands": ("sub", "y = Sub (x, z)", op("Sub", "z", "x")),
    "another operator": ("sub", "y = Sub (x, z)", op("Add", "x", "z")),
    "another axis": ("softmax", "y = Softmax (x)", op("Softmax", "x", axis=2)),
    "another order": ("concat", "y = Concat <axis = 1> (x, z)", op("Concat", "z", "x", axis=1)),
    "padding counted": (
        "pool",
        POOL,
        op("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=PADS, count_include_pad=1),
    ),
    "maximum for mean": (
        "pool",
        POOL,
        op("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=PADS),
    ),
    "window off by one": (
        "pool",
        POOL,
        op("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 2, 2]),
    ),
    "window without an end": (
        "pool",
        POOL,
        op("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 0]),
    ),
    "lost bias": ("conv", CONV, op("Conv", "x", "k", pads=PADS)),
    "other padding": ("conv", CONV, op("Conv", "x", "k", "c", pads=[0, 1, 2, 1])),
    "kernel turned over": (
        "conv",
        CONV,
        lambda d, v: d.op("Conv", v["x"], d.constant(W[..., ::-1].copy()), v["c"], pads=PADS),
    ),
    "kernel a little off": (
        "conv",
        CONV,
        lambda d, v: d.op("Conv", v["x"], d.constant(W * F32(1.002)), v["c"], pads=PADS),
    ),
    "one weight off": (
        "gemm",
        "y = Gemm (x, k, c)",
        lambda d, v: d.op(
            "Gemm", v["x"], d.constant(W[0, 0] + np.eye(3, dtype=F32) * F32(1e-2)), v["c"]
        ),
    ),
    "transposed weight": ("gemm", "y = Gemm (x, k, c)", op("Gemm", "x", "k", "c", transB=1)),
    "wrong at odd sizes only": ("halves", "y = Slice (x, s, e, a)", slice_to(half_rounded_up)),
    "another dtype": ("cast", "y = Cast <to = 6> (x)", op("Cast", "x", to=7)),
    "sum for mean": (
        "mean",
        "y = ReduceMean <axes = [2]> (x)",
        lambda d, v: d.op("ReduceSum", v["x"], d.constant([2])),
    ),
    "another shape": (
        "mean",
        "y = ReduceMean <axes = [2]> (x)",
        lambda d, v: d.op("ReduceMean", v["x"], d.constant([2]), keepdims=0),
    ),
    "a strict comparison": ("bool", "y = Less (x, z)", op("GreaterOrEqual", "x", "z")),
    "nothing": ("transpose", "y = Transpose (x)", op("Relu", "x")),
    "no transpose": ("transpose", "y = Transpose (x)", op("Identity", "x")),
    "outputs in another order": ("split", "y, q = Split <axis = 1> (x, s)", split_swapped),
}
RIGHT: dict[str, tuple[str, str, Build]] = {
    "difference as a sum": (
        "sub",
        "y = Sub (x, z)",
        lambda d, v: d.op("Add", v["x"], d.op("Neg", v["z"])),
    ),
    "softmax from its parts": (
        "softmax",
        "y = Softmax (x)",
        softmax_from_parts,
    ),
    "pool as a sum of squares": (
        "pool",
        POOL,
        op("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=PADS, ceil_mode=0),
    ),
    "bias added behind": (
        "conv",
        CONV,
        lambda d, v: d.op(
            "Add",
            d.op("Conv", v["x"], v["k"], pads=PADS),
            d.constant(np.array([1, 2], F32).reshape(2, 1, 1)),
        ),
    ),
    "half the other way": ("halves", "y = Slice (x, s, e, a)", slice_to(half)),
    "mean from a sum": (
        "mean",
        "y = ReduceMean <axes = [2]> (x)",
        lambda d, v: d.op("GlobalAveragePool", v["x"]),
    ),
    "not greater or equal": (
        "bool",
        "y = Less (x, z)",
        lambda d, v: d.op("Not", d.op("GreaterOrEqual", v["x"], v["z"])),
    ),
    "transposed twice more": (
        "transpose",
        "y = Transpose (x)",
        lambda d, v: d.op("Transpose", d.op("Transpose", v["x"], perm=[1, 0, 2]), perm=[1, 2, 0]),
    ),
    "slices for a split": (
        "split",
        "y, q = Split <axis = 1> (x, s)",
        lambda d, v: (
            d.op("Slice", v["x"], d.constant([0]), d.constant([1]), d.constant([1])),
            d.op("Slice", v["x"], d.constant([1]), d.constant([4]), d.constant([1])),
        ),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rewrites_are_refused_with_a_reason(name: str) -> None:
    result = attempt(*WRONG[name])
    assert result.report.changes == ()
    assert not result.model.changed
    (miss,) = [m for m in result.report.misses if m.rule == "planted"]
    assert miss.reason.startswith("the replacement differs from what it replaces: ")
    assert " at " in miss.reason


@pytest.mark.parametrize("name", RIGHT)
def test_right_rewrites_are_not_refused(name: str) -> None:
    result = attempt(*RIGHT[name])
    assert result.report.fired.total() == 1
    assert result.report.pieces["compared"] == 1
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


def test_a_rule_that_promises_bits_is_held_to_them() -> None:
    def rescaled(d: Draft, v: Mapping[str, Any]) -> Any:
        third = d.constant(np.array(1 / 3, F32))
        return d.op("Sub", d.op("Div", d.op("Mul", v["x"], third), third), v["z"])

    assert attempt("sub", "y = Sub (x, z)", rescaled).report.fired.total() == 1
    refused = attempt("sub", "y = Sub (x, z)", rescaled, exact="bit")
    assert refused.report.changes == ()


def test_the_reason_names_error_and_size() -> None:
    result = attempt(*WRONG["wrong at odd sizes only"])
    (reason,) = [m.reason for m in result.report.misses if m.rule == "planted"]
    assert reason == (
        "the replacement differs from what it replaces: its shape is [2, 2], not [2, 1] at b=2, t=3"
    )


# -------------------------------------------------------------------------- what the facts promise


def test_a_premise_behind_the_match_goes_into_the_piece() -> None:
    """`Relu` of what cannot be negative is nothing; the reason lies one node behind the match."""

    @rule("y = Relu (x)", exact="bit")
    def needless(draft: Draft, match: Match) -> Any:
        return draft.op("Identity", match.values["x"])

    behind = model_of("float[b,t] x", "a = Sigmoid (x) y = Relu (a)", "y")
    assert surgeon.apply(behind, needless).report.fired.total() == 1
    alone = model_of("float[b,t] x", "a = Tanh (x) y = Relu (a)", "y")
    assert surgeon.apply(alone, needless).report.changes == ()


def test_a_premise_that_the_replacement_reads_goes_into_the_piece_with_what_makes_it() -> None:
    """Places that are counted from 0 are no less; drawn, as what is read, they were below."""
    constants = {"o": np.int64(0), "i": np.int64(1), "at": np.array([3]), "low": F32(-5)}
    body = """s = Shape (m) t = Gather (s, at) z = Squeeze (t) r = Range (o, z, i)
        u = Unsqueeze (r, front) v = Unsqueeze (u, at) g = GreaterOrEqual (v, o)
        a = And (g, m) b = Where (a, none, low) y = Add (x, b)"""
    constants |= {"front": np.array([0, 1]), "none": F32(0)}
    model = model_of("bool[b,1,1,t] m, float[b,2,t,t] x", body, "y", constants=constants)
    result = surgeon.apply(model, "clean")
    assert result.report.refusals == ()
    assert dict(result.report.after) == {"Add": 1, "Where": 1}


def test_sizes_of_sounds_are_tried_where_short_ones_leave_nothing() -> None:
    body = """f = Conv <kernel_shape = [512], strides = [160]> (x, k) a = Mul (f, two)
        y = Add (a, two)"""
    constants = {"k": np.ones((2, 1, 512), F32) / 512, "two": F32(2)}
    model = model_of("float[b,1,t] x", body, "y", constants=constants)

    @rule("y = Add (a, c)")
    def turned(draft: Draft, match: Match) -> Any:
        return draft.op("Sub", match.values["a"], draft.op("Neg", match.values["c"]))

    report = surgeon.apply(model, turned).report
    assert report.fired.total() == 1
    assert report.pieces["compared"] == 1


def test_a_check_with_a_premise_is_not_taken_for_one_without() -> None:
    """The first Relu is needless, the second is not; the pieces differ in what is known of x."""

    @rule("y = Relu (x)", exact="bit")
    def needless(draft: Draft, match: Match) -> Any:
        return draft.op("Identity", match.values["x"])

    body = "a = Sigmoid (x) d = Relu (a) e = Tanh (x) f = Relu (e) y = Add (d, f)"
    result = surgeon.apply(model_of("float[b,t] x", body, "y"), needless)
    assert result.report.fired.total() == 1
    assert result.report.after["Relu"] == 1


def test_a_sum_of_one_is_given_to_the_piece() -> None:
    """A weighted mean plus a constant: the constant may go inside if the weights sum to 1."""

    @rule(
        """
        m = MatMul (a, x)
        y = Add (m, c)
        """
    )
    def bias_inside(draft: Draft, match: Match) -> Any:
        inner = draft.op("Add", match.values["x"], match.values["c"])
        return draft.op("MatMul", match.values["a"], inner)

    body = "a = Softmax <axis = -1> (s) m = MatMul (a, x) y = Add (m, c)"
    constants = {"c": F32(2)}
    right = model_of("float[b,n,k] s, float[k,t] x", body, "y", constants=constants)
    assert surgeon.apply(right, bias_inside).report.fired.total() == 1
    wrong = model_of(
        "float[b,n,k] s, float[k,t] x", body.replace("-1", "1"), "y", constants=constants
    )
    assert surgeon.apply(wrong, bias_inside).report.changes == ()


def test_inputs_are_drawn_as_the_facts_say() -> None:
    source = Source(0)
    weights = draw(source, Fact(1, (4, 5), None, 1), (4, 5))
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-5)
    assert (draw(source, Fact(1, (50,), None, None, True), (50,)) >= 0).all()
    assert (draw(source, Fact(1, (50,)), (50,)) < 0).any()
    assert draw(source, Fact(9, (50,)), (50,)).dtype == bool
    assert draw(source, Fact(7, (50,)), (50,)).dtype == np.int64


def test_inputs_of_one_set_have_nothing_in_common() -> None:
    """Else operands that are swapped, or one that is read twice, might agree."""
    for count in (50, 3_000_000):  # the second input of this size lies beyond what is kept
        source = Source(0)
        first, second = (draw(source, Fact(1, (count,)), (count,)) for _ in range(2))
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.3
        assert not np.isin(first[:50], second[:50]).any()
        np.testing.assert_array_equal(first, draw(Source(0), Fact(1, (count,)), (count,)))


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


def test_known_values_are_given_to_the_piece() -> None:
    """The bound of the Slice is half of the axis, not any number."""
    rewritten = attempt(
        "halves",
        "y = Slice (x, s, e, a)",
        lambda d, v: d.op("Slice", v["x"], v["s"], v["e"], d.constant([-1])),
    )
    assert rewritten.report.fired.total() == 1
    assert rewritten.report.pieces["compared"] == 1


# ----------------------------------------------------------------------------- what is not compared


def pieces(model: Any, *rules: Rule, **options: Any) -> Mapping[str, int]:
    return surgeon.apply(model, *rules, **options).report.pieces


@rule("y = Neg (x)", exact="rounding")
def neg_by_sub(draft: Draft, match: Match) -> Any:
    return draft.op("Sub", draft.constant(np.zeros((), F32)), match.values["x"])


def test_one_check_for_equal_pieces() -> None:
    body = "a = Neg (x) c = Relu (a) d = Neg (c) e = Abs (d) y = Neg (e)"
    proto = model_of("float[b,t] x", body, "y")
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
    monkeypatch.setattr("surgeon.trial._LARGE", 4000)
    monkeypatch.setattr("surgeon.trial._ALL", 10_000)
    few = "compared on fewer values: they are large"
    assert pieces(proto, neg_by_sub) == {"compared": 1, few: 1}
    assert {shape[0] for shape in shapes} <= {0, 1, 2, 3}
    assert 2 < len(shapes) < usual
    shapes.clear()
    monkeypatch.setattr("surgeon.trial._LARGE", 2000)
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
    wrong = "{ o = Concat <axis = 1> (x, z, y) }"
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
    odd, even = pair.Pair(before, after).check([feeds["odd"], feeds["even"]], "bit")
    assert isinstance(odd, Undefined)
    assert all(check.agrees for check in even)
    (even,) = pair.Pair(before, other).check([feeds["even"]], "bit")
    assert not any(check.agrees for check in even)


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
