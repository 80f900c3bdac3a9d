"""Expressions drawn at random: what is decided holds, and nothing raises."""

from __future__ import annotations

import itertools
from contextlib import suppress

import pytest
from expressions_judged import HERE, SCOPE, H, W, judged, verdict_of
from hypothesis import given
from hypothesis import strategies as st

from surgeon import dims
from surgeon.errors import RecipeError
from surgeon.expressions import Expression
from surgeon.functions import FUNCTIONS

TRUTHS = {"t": "1 == 1", "f": "1 == 2", "u": "x.shape[2] == 5"}
ORDER = {False: 0, None: 1, True: 2}


@pytest.mark.parametrize(("a", "b"), list(itertools.product("tfu", repeat=2)))
def test_and_or_not_follow_kleene(a: str, b: str) -> None:
    left, right = TRUTHS[a], TRUTHS[b]
    p, q = verdict_of(left), verdict_of(right)
    both, either = verdict_of(f"{left} and {right}"), verdict_of(f"{left} or {right}")
    assert ORDER[both] == min(ORDER[p], ORDER[q])
    assert ORDER[either] == max(ORDER[p], ORDER[q])
    assert verdict_of(f"all([{left}, {right}])") == both
    assert verdict_of(f"any([{left}, {right}])") == either
    assert verdict_of(f"not ({left} and {right})") == verdict_of(f"not {left} or not {right}")
    assert verdict_of(f"not not {left}") == p


SMALL = st.integers(0, 3)
ELEMENTS = st.one_of(SMALL, SMALL.map(lambda n: H + n), st.just(W))


@given(st.lists(ELEMENTS, max_size=3), st.lists(ELEMENTS, max_size=3), SMALL, st.integers(1, 3))
def test_a_decided_comparison_holds_for_every_size(
    left: list[dims.Dim], right: list[dims.Dim], h: int, w: int
) -> None:
    def real(values: list[dims.Dim]) -> list[int]:
        return [dims.evaluate(v, {"h": h, "w": w}) for v in values]

    for text, truly in [
        ("a == b", real(left) == real(right)),
        ("a != b", real(left) != real(right)),
    ]:
        verdict, _ = judged(Expression.parse(text, HERE), {"a": left, "b": right})
        assert verdict in (None, truly)
    for one, other in zip(left, right, strict=False):
        a, b = dims.evaluate(one, {"h": h, "w": w}), dims.evaluate(other, {"h": h, "w": w})
        for text, truly in [
            ("a < b", a < b),
            ("a <= b", a <= b),
            ("a > b", a > b),
            ("a >= b", a >= b),
        ]:
            assert judged(Expression.parse(text, HERE), {"a": one, "b": other})[0] in (None, truly)


PIECES = ["x", ".shape", ".value", "k", "[", "]", "(", ")", "1", "0", "-1", "'a'", " == ", " and "]
PIECES += [" or ", "not ", " + ", " * ", " ** ", " // ", " % ", " / ", ", ", "len(", "max(", " in "]
PIECES += [
    " if ",
    " else ",
    " for d in ",
    "d",
    "None",
    "size",
    "bias",
    "float32",
    ":",
    "9**9",
    "=3",
]
PIECES += [f"{name}(" for name in FUNCTIONS]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text())
def test_any_text_is_an_expression_or_a_recipe_error_and_evaluates(text: str) -> None:
    with suppress(RecipeError):
        verdict, reason = judged(Expression.parse(text, HERE), SCOPE)
        assert bool(reason) == (verdict is not True)


ATOMS = st.sampled_from(
    ["x.shape", "k.value", "size.value", "tenth.value", "bias", "axis", "mode", "x"]
)
NUMBERS = st.sampled_from(
    ["0", "-2", "3", "0.5", "[1, 2]", "[]", "'a'", "float32", "True", "2**62"]
)


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operator = st.sampled_from(["+", "-", "*", "//", "%", "/", "**", "==", "<", "in", "and", "or"])
    binary = st.builds("({} {} {})".format, inner, operator, inner)
    unary = st.builds("({} {})".format, st.sampled_from(["-", "not"]), inner)
    index = st.builds("{}[{}]".format, inner, inner) | st.builds("{}[{}:]".format, inner, inner)
    called = st.builds("{}({})".format, st.sampled_from(sorted(FUNCTIONS)), inner)
    called2 = st.builds("{}({}, {})".format, st.sampled_from(sorted(FUNCTIONS)), inner, inner)
    listed = st.builds("[d for d in {} if {}]".format, inner, inner)
    return binary | unary | index | called | called2 | listed


@given(st.recursive(ATOMS | NUMBERS, _grown, max_leaves=6))
def test_evaluation_never_raises(text: str) -> None:
    with suppress(RecipeError):
        judged(Expression.parse(text, HERE), SCOPE)
