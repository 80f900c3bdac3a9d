"""Expressions: what is true, false or not provable of a scope, and why."""

from __future__ import annotations

import time

import numpy as np
import pytest
from expressions_judged import HERE, SCOPE, Fake, judged, value_of

from surgeon.errors import RecipeError
from surgeon.expressions import Expression, Unknown
from surgeon.expressions.operators import combine


@pytest.mark.parametrize(
    "text",
    [
        "x.rank == 4",
        "x.dtype == float32",
        "x.dtype in [float16, float32]",
        "mode == 'reflect' and 'fl' in mode",
        "axis == -1",
        "bias == None and x != None",
        "size.value[0] == x.shape[2]",
        "x.shape[2] % size.value[1] in [0, 1]",
        "size.value[0] <= x.shape[2] and size.value[1] <= x.shape[3]",
        "0 <= x.shape[2] < x.shape[2] + 1",
        "x.shape[3] >= 1 and not x.shape[3] < 1",
        "x.shape[1:3] == [3, x.shape[2]]",
        "k.value == [1, 2, 3] and k.value[-1] == 3 and k.value[:2] == [1, 2]",
        "tenth.value == 0.1 and tenth.value <= 0.1 and tenth.value != 0.2",
        "[d * 2 for d in k.value if d != 2] == [2, 6]",
        "all(v.rank > 0 for v in xs) and any([v.rank == 2 for v in xs])",
        "(1 if x.rank == 4 else 2) == 1",
        "product(x.shape) == 3 * x.shape[2] * x.shape[3]",
        "max(k.value) == 3 and min(1, x.shape[3]) == 1 and sum([1, x.shape[2]]) == x.shape[2] + 1",
        "is_divisible(4 * x.shape[2], 2)",
        "not is_divisible(2 * x.shape[2] + 1, 2)",
        "reversed(sorted([2, 1, 3])) == [3, 2, 1] and list(range(1, 3)) == [1, 2]",
        "x.shape + [1] == [1, 3, x.shape[2], x.shape[3], 1]",
        "2 ** 10 == 1024 and 7 // 2 == 3 and -7 // 2 == -4 and -7 % 3 == 2 and 1 / 2 == 0.5",
        "2 * k.value + 1 == [3, 5, 7] and -k.value == [-1, -2, -3]",
        "abs(-x.shape[2]) == x.shape[2] and round(1.6) == 2 and int(2.9) == 2",
        "scalar(tenth.value) == 0.1 and floor(sqrt(17)) == 4 and ceil([1.5, 2]) == [2, 2]",
        "len(x.shape) == x.rank",
        "size.value == [x.shape[2], 1]",
        "'a' + 'b' == 'ab'",
        "1 == 1 or 1 / 0 == 1",
    ],
)
def test_what_is_true(text: str) -> None:
    assert judged(Expression.parse(text, HERE), SCOPE) == (True, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x.rank == 3", "x.rank is 4"),
        ("x.rank in [2, 3]", "x.rank is 4"),
        ("x.dtype in [float16, bfloat16]", "x.dtype is float32"),
        ("size.value == [1, 2]", "size.value is [h, 1]"),
        ("size.value == [1]", "size.value is [h, 1]"),
        ("x.rank == 4 and axis == 1", "axis is -1"),
        ("x.rank == 3 or axis == 1", "x.rank is 4 and axis is -1"),
        ("not axis == -1", "axis is -1"),
        ("x.is_constant", ""),
        ("x.rank == 4 and x.is_constant", "x.is_constant is false"),
        ("mode == 'edge'", "mode is 'reflect'"),
        ("max(k.value) == 4", "max(k.value) is 3"),
        ("is_divisible(x.rank, 3)", "x.rank is 4"),
        ("x.shape[2] < 0", "x.shape[2] is h"),
        ("x.rank == bias", "x.rank is 4 and bias is missing"),
        ("size.value[1] == 0.5", "size.value[1] is 1"),
        ("x.shape[2] == 0.5", "x.shape[2] is h"),
    ],
)
def test_what_is_false_and_why(text: str, reason: str) -> None:
    assert judged(Expression.parse(text, HERE), SCOPE) == (
        False,
        f"`{text}` is false{reason and ': ' + reason}",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("size.value == [1, 1]", "size.value is [h, 1]"),
        ("[1, 1] != size.value", "size.value is [h, 1]"),
        ("x.shape[2] == 5", "x.shape[2] is h"),
        ("x.shape[2] > 5", "x.shape[2] is h"),
        ("x.shape[2] in [4, x.rank + 1]", "x.shape[2] is h and [4, x.rank + 1] is [4, 5]"),
        ("x.value == 1", "x: its value is not known"),
        ("bias.rank == 1", "`bias` is missing"),
        ("bias[0] == 1", "`bias` is missing"),
        ("axis.rank == 1", "axis is -1, which has no `.rank`"),
        ("x.shape[4] == 1", "x.shape: there is no item 4, the size is 4"),
        ("k.value[0, 1] == 1", "k.value: there is no item 0, 1, the size is [3]"),
        ("k.value[x.shape[2]] == 1", "k.value: the index h is not a number"),
        ("axis[0] == 1", "axis: -1 has no items"),
        ("1 // 0 == 1", "1 // 0: a division by zero"),
        ("x.rank", "it is 4, neither true nor false"),
        ("x.rank and axis == -1", "x.rank is 4, neither true nor false"),
        ("1 if x.rank else 2", "x.rank is 4, neither true nor false"),
        ("x == size", "a value of the graph is compared; compare its `.value` or `.name`"),
        ("mode < 3", "mode is 'reflect'"),
        ("all(d > 0 for d in x.shape)", "d is h"),
        ("nothing == 1", "`nothing` is not bound"),
        ("k.value < 3", "k.value is [1, 2, 3]"),
        ("sqrt(x.shape[2]) == 1", "h is not a number"),
        ("x.shape[2] / 2 == 1", "x.shape[2] / 2: h / 2 is no integer arithmetic"),
        ("sorted(x.shape) == 1", "the order of [1, 3, h, w] is not known"),
    ],
)
def test_what_is_not_provable_and_why(text: str, reason: str) -> None:
    verdict, why = judged(Expression.parse(text, HERE), SCOPE)
    assert verdict is None
    assert why.startswith(f"`{text}` is not provable: {reason}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("9**9**9", "9**9**9: the result is above 2**63"),
        ("2**63 + 1", "2**63 + 1: the result is above 2**63"),
        ("2.0**5000", "2.0**5000: "),
        ("(-1)**0.5", "(-1)**0.5: the result is no real number"),
        ("[0]*10**12", "[0]*10**12: lists are joined by `+` and take no other part"),
        ("'a' * 10**12", "'a' * 10**12: 'a' is not a number"),
        ("'%s' % 1", "'%s' % 1: '%s' is not a number"),
        ("range(10**12)", "the result has more than 10000 items"),
        ("list(range(9000)) + list(range(9000))", "list(range(9000)) + list(range(9000)): the"),
        ("zeros([10**9, 10**9], float32)", "the result is larger than 64 MiB"),
        ("arange(10**12)", "the result is larger than 64 MiB"),
        ("eye(10**6)", "the result is larger than 64 MiB"),
        ("pooling_matrix(10**9, 2, float32)", "no pooling matrix is made from"),
        ("reshape(arange(4096), [4096, 1]) + arange(4096)", "reshape(arange(4096), [4096, 1]) + "),
        ("[range(10000) for i in range(10000)]", "the comprehension is too large"),
        ("arange(3) * 2**62", "arange(3) * 2**62: the result is above 2**62"),
        ("arange(3) // arange(3)", "arange(3) // arange(3): a division by zero"),
        ("cast(300, uint8)", "a number does not fit uint8"),
        ("cast([1.0], nonsense)", "`nonsense` is not bound"),
        ("const([x.shape[2]])", "h is not a number"),
        ("const(1, float32, like=x)", "`const` takes a dtype or `like`, not both"),
        ("reshape([1, 2], [3])", "`reshape`: cannot reshape"),
        ("[1 / 0, 2]", "1 / 0: a division by zero"),
        ("range(0, 5, 0)", "`range`: "),
        ("k.value[::0]", "a slice of step 0"),
        ("min([])", "there is no item in it"),
    ],
)
def test_what_is_too_large_or_makes_no_sense_is_unknown_at_once(text: str, reason: str) -> None:
    expression = Expression.parse(text, HERE)
    begin = time.process_time()
    value = expression.evaluate(SCOPE)
    assert time.process_time() - begin < 2.0
    assert isinstance(value, Unknown)
    assert value.reason.startswith(reason)


def test_arrays() -> None:
    def check(text: str, expected: object, dtype: str) -> None:
        value = value_of(text)
        assert isinstance(value, np.ndarray)
        assert (value.tolist(), str(value.dtype)) == (expected, dtype)

    check("const([1, 2])", [1, 2], "int64")
    check("const(0.5)", 0.5, "float32")
    check("const([[1], [2]], like=x)", [[1.0], [2.0]], "float32")
    check("const(1, like=tenth.value)", 1.0, "float32")
    check("const(True)", True, "bool")
    check("const(1, bfloat16)", 1.0, "bfloat16")
    check("zeros([1, 2], int32)", [[0, 0]], "int32")
    check("ones(2, float16)", [1.0, 1.0], "float16")
    check("arange(1, 7, 3)", [1, 4], "int64")
    check("eye(2)", [[1.0, 0.0], [0.0, 1.0]], "float32")
    check("transpose([[1, 2]])", [[1], [2]], "int64")
    check("transpose(zeros([1, 2, 3], bool), [0, 2, 1])", [[[False] * 2] * 3], "bool")
    check("reshape(k.value, [3, -1])", [[1], [2], [3]], "int64")
    check("concat([k.value, [4]])", [1, 2, 3, 4], "int64")
    check("stack([k.value, k.value], 1)", [[1, 1], [2, 2], [3, 3]], "int64")
    check("squeeze([[[1, 2]]], 0)", [[1, 2]], "int64")
    check("expand_dims(k.value, 0)", [[1, 2, 3]], "int64")
    check("cast(k.value, float64)", [1.0, 2.0, 3.0], "float64")
    check("sqrt(cast([4, 9], float32))", [2.0, 3.0], "float32")
    assert value_of("const(['a'])").dtype == object  # type: ignore[attr-defined]


@pytest.mark.parametrize(("size", "bins"), [(7, 3), (3, 7), (6, 3), (13, 6), (1, 4), (5, 5)])
def test_pooling_matrix_averages_the_bins_of_adaptive_pooling(size: int, bins: int) -> None:
    matrix = value_of(f"pooling_matrix({size}, {bins}, float64)")
    signal = np.random.default_rng(size).normal(size=size)
    starts = [int(np.floor(i * size / bins)) for i in range(bins)]
    ends = [int(np.ceil((i + 1) * size / bins)) for i in range(bins)]
    expected = [signal[a:b].mean() for a, b in zip(starts, ends, strict=True)]
    np.testing.assert_allclose(matrix @ signal, expected, rtol=1e-12)  # type: ignore[operator]


def test_functions_of_the_scope() -> None:
    assert value_of("twice(3) + 1", twice=lambda x: 2 * x) == 7
    assert value_of("twice(x.value)", twice=lambda x: 2 * x) == Unknown("x: its value is not known")
    assert value_of("[twice(d) for d in k.value]", twice=lambda x: 2 * x) == [2, 4, 6]
    assert value_of("bad(1)", bad=lambda x: x.nothing) == Unknown(
        "`bad`: 'int' object has no attribute 'nothing'"
    )
    expression = Expression.parse("twice(1)", HERE, functions=["twice"])
    assert expression.evaluate({}) == Unknown("no function `twice` is given")


def test_a_value_may_have_a_functions_name() -> None:
    scope = {"min": Fake(value=3), "max": Fake(value=4)}
    expression = Expression.parse("max(min.value, max.value) == 4", HERE)
    assert expression.names == {"min", "max"}
    assert judged(expression, scope) == (True, "")


def test_names_are_those_read_from_the_scope() -> None:
    text = "x.dtype == float32 and all(d > low for d in x.shape) and len(y.shape) == 2"
    expression = Expression.parse(text, HERE)
    assert expression.names == {"x", "low", "y"}
    assert expression.place("low") == HERE.shifted(1, text.index("low") + 1)


class Lazy(dict[str, object]):
    """A scope that computes a name when it is first asked for it."""

    def __missing__(self, name: str) -> object:
        return {"late": 3}[name]


def test_a_scope_may_be_lazy() -> None:
    for text in ("late == 3", "[d + late for d in k.value] == [4, 5, 6]"):
        assert judged(Expression.parse(text, HERE), Lazy(SCOPE)) == (True, "")
    assert Expression.parse("later", HERE).evaluate(Lazy()) == Unknown("`later` is not bound")


def test_text_over_several_lines_keeps_its_places() -> None:
    text = "x.rank == 4  # not (3-D\n    and '#' != mode\n    and f(x)"
    with pytest.raises(RecipeError, match=r"^r\.yaml:5:9: unknown function `f`"):
        Expression.parse(text, HERE)
    fine = Expression.parse(text.replace("f(x)", "axis < 0"), HERE)
    assert fine.text == "x.rank == 4 and '#' != mode and axis < 0"
    assert judged(fine, SCOPE) == (True, "")


def test_what_is_computed_of_a_large_weight_may_be_as_large() -> None:
    weight = np.zeros(9 << 20, np.float32)  # as float64 more than 64 MiB
    doubled = combine("*", weight, 2)
    assert isinstance(doubled, np.ndarray)
    assert doubled.shape == weight.shape
    table = combine("*", np.zeros((4096, 1)), np.zeros((1, 4096)))
    assert table == Unknown("the result is larger than 64 MiB")
