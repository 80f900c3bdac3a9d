"""The algebra: equal to Python's integers at every point, and a proof holds at every point."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surgeon import dims
from surgeon.dims import (
    Dim,
    TooLarge,
    at_most,
    equal,
    evaluate,
    maximum,
    minimum,
    questions,
    symbol,
)

NAMES = ("a", "b", "t")


def expressions() -> st.SearchStrategy[Dim]:
    leaves = st.sampled_from([symbol(name) for name in NAMES]) | st.integers(-6, 9)

    def grow(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
        return st.one_of(
            st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
            st.tuples(inner, inner).map(lambda pair: pair[0] - pair[1]),
            st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
            st.tuples(inner, st.integers(1, 7)).map(lambda pair: pair[0] // pair[1]),
            st.tuples(inner, st.integers(1, 7)).map(lambda pair: pair[0] % pair[1]),
            st.tuples(inner, inner).map(lambda pair: maximum(*pair)),
            st.tuples(inner, inner).map(lambda pair: minimum(*pair)),
        )

    return st.recursive(leaves, grow, max_leaves=8)


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, Dim, Dim]:
    """A text that Python can compute, and what the algebra makes of it: two of them."""
    text = draw(
        st.sampled_from(
            [
                "(a+{n})//{m}",
                "((a-1)//{m}+1)*b",
                "max(a-{n},b)//{m}",
                "(b+a//{n})//{m}",
                "(t*{n}+a)%{m}",
                "min(a,b+{n})-(t//{m})",
            ]
        )
    )
    text = text.format(n=draw(st.integers(1, 5)), m=draw(st.integers(1, 5)))
    scope = {name: symbol(name) for name in NAMES} | {"max": maximum, "min": minimum}
    return text, eval(text, scope), 0


POINTS = st.fixed_dictionaries({name: st.integers(0, 40) for name in NAMES})


@given(programs(), POINTS)
def test_equals_python_at_every_point(program: tuple[str, Dim, Dim], point: dict[str, int]) -> None:
    text, expression, _ = program
    assert evaluate(expression, point) == eval(text, dict(point))


@settings(max_examples=300)
@given(expressions(), expressions(), POINTS)
def test_a_proof_holds_at_every_point(left: Dim, right: Dim, point: dict[str, int]) -> None:
    a, b = evaluate(left, point), evaluate(right, point)
    if (proof := equal(left, right)) is not None:
        assert (a == b) == proof
    if (proof := at_most(left, right)) is not None:
        assert (a <= b) == proof
    low, high = dims.bounds(left)
    assert low is None or low <= a
    assert high is None or a <= high


@given(expressions(), expressions())
def test_normal_form_is_one_form(left: Dim, right: Dim) -> None:
    assert left + right == right + left
    assert left * right == right * left
    assert (left + right) - right == left
    assert hash(left * 2 - left) == hash(left)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda b, t: (t - 1) // 2 + 1, "(t + 1)//2"),
        (lambda b, t: ((t - 1) // 2) // 2 + 1, "(t + 3)//4"),
        (lambda b, t: ((t + 1) // 2 + 1) // 2, "(t + 3)//4"),
        (lambda b, t: (8 * b * t) // (b * t), "8"),
        (lambda b, t: (6 * t + 4) // 3, "2*t + 1"),
        (lambda b, t: (4 * t + 3) // 8, "t//2"),
        (lambda b, t: (b * t - b) // (t - 1), "b"),
        (lambda b, t: -1 % t, "t - 1"),
        (lambda b, t: (b * t - 1) % (b * t), "b*t - 1"),
        (lambda b, t: -1 // (t - 3), "(-1)//(t - 3)"),  # of less than nothing it is another
        (lambda b, t: maximum(b, b + t), "b + t"),
        (lambda b, t: minimum(b, 2 * b + 3), "b"),
        (lambda b, t: 3 * (t // 2) - b, "-b + 3*(t//2)"),
    ],
)
def test_prints_its_normal_form(build, text: str) -> None:
    assert str(build(symbol("b"), symbol("t"))) == text


def test_proofs_open_floor_divisions() -> None:
    t = symbol("t", low=1)
    assert at_most((t - 1) // 2 + 1, t) is True
    assert at_most(t, (t - 1) // 2) is False
    assert equal(2 * t, 2 * symbol("u") + 1) is False
    assert equal(t, symbol("u")) is None
    assert at_most(t // 2 * 2, t) is True


def test_an_unbound_symbol_is_named() -> None:
    with pytest.raises(KeyError, match="t"):
        evaluate(symbol("b") * symbol("t"), {"b": 2})


def test_a_missing_symbol_is_told_before_anything_is_worked_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is left would be brought to normal form, with bounds, at every size that is tried."""
    length = maximum(symbol("t") // 2 + symbol("u"), 3) // 5
    monkeypatch.setattr(questions, "substitute", pytest.fail)
    with pytest.raises(KeyError, match="u"):
        evaluate(length, {"t": 9})


@pytest.mark.parametrize(
    ("dim", "found"),
    [
        (8 * symbol("b") - 16, ("b", 2)),
        (12 - 4 * symbol("b"), ("b", 3)),
        (8 * symbol("b") - 15, None),  # no integer
        (symbol("b") * symbol("b") - 4, None),
        (symbol("b") - symbol("t"), None),
        (symbol("b") // 2 - 3, None),  # two sizes
    ],
)
def test_solves_for_the_one_size_that_fits(dim: Dim, found: tuple[str, int] | None) -> None:
    assert dims.solve(dim) == found


@pytest.mark.parametrize(
    ("source", "wanted", "target"),
    [
        ((symbol("b"), 4, 6), (symbol("b"), 24), [0, 24]),
        ((symbol("b"), 4, symbol("t")), (symbol("b"), symbol("t") * 4), [0, -1]),
        ((symbol("b") * 2, 3), (symbol("b"), 6), [-1, 6]),
        ((symbol("b"), symbol("t")), (symbol("t"), symbol("b")), None),
        ((symbol("b"), 0), (0, symbol("b")), None),  # a 0 would copy, not be 0
        ((0, symbol("b"), 3), (0, symbol("b") * 3), None),  # nothing tells the open one
        ((symbol("b") // 2, 4, symbol("t")), (symbol("b") // 2, symbol("t") * 4), None),
        ((symbol("b"), 4), (symbol("b") // 2, 2, 4), [-1, 2, 4]),
        ((symbol("b"), 4), (2, symbol("b") // 2, 4), [2, -1, 4]),
        ((symbol("b"), 4, 6), (symbol("b"), 2, symbol("b") // 2 * 6), [0, 2, -1]),
        (
            ((symbol("b") + 1) // 2, 4, symbol("t")),
            ((symbol("b") + 1) // 2, symbol("t") * 4),
            [0, -1],
        ),
    ],
)
def test_a_constant_target_copies_numbers_and_leaves_one_open(
    source: tuple[Dim, ...], wanted: tuple[Dim, ...], target: list[int] | None
) -> None:
    assert dims.constant_target(source, wanted) == target


def test_what_is_cut_to_a_length_is_told_from_what_is_not() -> None:
    n, m = symbol("n"), symbol("m")
    assert dims.is_cut_off(dims.minimum(n, 64), n)
    assert dims.is_cut_off(dims.minimum(n + m, 1), n + m)
    assert not dims.is_cut_off(dims.minimum(n, 0), n)  # 1 and 0 broadcast to 0
    assert not dims.is_cut_off(dims.minimum(n, m), n)  # m may be 0
    assert not dims.is_cut_off(dims.minimum(n, 64), m)
    assert not dims.is_cut_off(dims.maximum(n, 64), n)
    assert not dims.is_cut_off(2 * dims.minimum(n, 64), n)
    assert not dims.is_cut_off(n, n)


def test_only_a_symbol_alone_has_a_name() -> None:
    b, c = dims.symbol("b"), dims.symbol("c", 1, 8)
    assert [dims.named(dim) for dim in (b, c)] == ["b", "c"]
    computed = (3, 0, b + 1, 2 * b, -b, b * b, b * c, b // 2, b - b, dims.maximum(b, 2))
    assert [dims.named(dim) for dim in computed] == [None] * len(computed)


@pytest.mark.parametrize(
    "step",
    [
        lambda size: size * 3 // 2 + 1,  # says itself twice: 2**40 characters in the end
        lambda size: size * size,
        lambda size: size * (size + symbol("w")),
    ],
)
def test_what_is_computed_in_endless_steps_is_not_followed(step: Callable[[Dim], Dim]) -> None:
    with pytest.raises(TooLarge):
        reduce(lambda size, _: step(size), range(40), symbol("h"))


def test_a_question_of_what_is_too_large_is_open() -> None:
    wide = sum((symbol(f"a{i}") for i in range(40)), start=symbol("b"))
    far = sum((symbol(f"c{i}") for i in range(40)), start=symbol("b"))
    assert dims.equal(wide, far) is None
    assert dims.at_most(wide, far) is None
    assert dims.exact_quotient(wide, far) is None
    assert dims.is_filled(wide) is True
