"""What the facts promise goes into the piece that a rewrite is tried on."""

from __future__ import annotations

from typing import Any

import numpy as np
from trials import F32, attempt
from truth import model_of

import surgeon
from surgeon.authoring import rule
from surgeon.edges import FEW, FLAT, NEGATIVE, WITHIN, Source, draw
from surgeon.facts import Fact
from surgeon.match import Match
from surgeon.rewrite import Draft


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


def test_few_places_from_the_end_are_all_there() -> None:
    """Drawn each by itself, four pads may all be none: then nothing is ever cropped."""
    for seed in range(5):
        assert sorted(draw(Source(seed), Fact(7, (4,)), (4,), NEGATIVE)) == [-2, -1, 0, 1]
        assert set(draw(Source(seed), Fact(2, (4,)), (4,), NEGATIVE)) == {0, 1}  # of no sign


def test_inputs_of_one_set_have_nothing_in_common() -> None:
    """Else operands that are swapped, or one that is read twice, might agree."""
    for count in (50, 3_000_000):  # the second input of this size lies beyond what is kept
        source = Source(0)
        first, second = (draw(source, Fact(1, (count,)), (count,)) for _ in range(2))
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.3
        assert not np.isin(first[:50], second[:50]).any()
        np.testing.assert_array_equal(first, draw(Source(0), Fact(1, (count,)), (count,)))


def test_known_values_are_given_to_the_piece() -> None:
    """The bound of the Slice is half of the axis, not any number."""
    rewritten = attempt(
        "halves",
        "y = Slice (x, s, e, a)",
        lambda d, v: d.op("Slice", v["x"], v["s"], v["e"], d.constant([-1])),
    )
    assert rewritten.report.fired.total() == 1
    assert rewritten.report.pieces["compared"] == 1


def test_bytes_are_drawn_of_all_their_type() -> None:
    """A quotient by a product with a rounded number is right for small ones and for the last."""

    @rule("y = BitShift (x, k)", exact="bit")
    def multiplied(draft: Draft, match: Match) -> Any:
        number = draft.op("Cast", match.values["x"], to=1)
        number = draft.op("Floor", draft.op("Mul", number, draft.constant(np.array(0.124, F32))))
        return draft.op("Cast", number, to=2)

    body = 'c = Cast <to = 2> (x) y = BitShift <direction = "RIGHT"> (c, k)'
    model = model_of("int64[b,t] x", body, "y", constants={"k": np.uint8(3)})
    report = surgeon.apply(model, multiplied).report
    assert report.changes == ()
    assert "with integers within their range" in report.refusals[0].reason


def test_places_are_drawn_within_what_they_name() -> None:
    source, fact = Source(0), Fact(7, (50,))
    assert set(draw(source, fact, (50,), range_=(0, 2))) == {0, 1}
    assert set(draw(source, fact, (50,), WITHIN, range_=(0, 5))) == {0, 1, 2, 3, 4}
    assert set(draw(Source(1), fact, (50,), FLAT, range_=(0, 1))) == {0}


def test_few_are_true_or_positive() -> None:
    assert draw(Source(0), Fact(9, (50,)), (50,), FEW).sum() == 1
    assert draw(Source(0), Fact(9, (0,)), (0,), FEW).size == 0
    assert 0 < (draw(Source(0), Fact(1, (500,)), (500,), FEW) > 0).sum() < 50
