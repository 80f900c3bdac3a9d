"""What is no expression of the closed kind, and what to write instead."""

from __future__ import annotations

import pytest
from expressions_judged import HERE

from surgeon.errors import RecipeError
from surgeon.expressions import Expression

LISTED = "Use literals, names, arithmetic, comparisons and the listed functions, or a builder."


def error_of(text: str) -> str:
    with pytest.raises(RecipeError) as caught:
        Expression.parse(text, HERE)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x.shap == 1", "3:9: unknown property `.shap` of `x`\n  mend: Did you mean `.shape`?"),
        (
            "1 + x.__class__",
            "3:13: unknown property `.__class__` of `x`\n  mend: Known are `.shape`, `.rank`, "
            "`.dtype`, `.value`, `.consumers`, `.is_constant`, `.maker`, `.name`, `.node`, "
            "`.attributes`, `.views`.",
        ),
        ("1 + ln(x)", "3:13: unknown function `ln`\n  mend: Did you mean `len`?"),
        (
            "zeros(3)",
            "3:9: `zeros` cannot be called so: missing a required argument: 'dtype'\n"
            "  mend: Write `zeros(shape, dtype)`.",
        ),
        ("lambda: 1", f"3:9: a lambda cannot be used in an expression\n  mend: {LISTED}"),
        ("f'{x}'", f"3:9: an f-string cannot be used in an expression\n  mend: {LISTED}"),
        ("len(*x)", f"3:13: a `*` cannot be used in an expression\n  mend: {LISTED}"),
        ("len(**x)", f"3:15: `**` cannot be used in an expression\n  mend: {LISTED}"),
        ("{1: 2}", f"3:9: a dictionary cannot be used in an expression\n  mend: {LISTED}"),
        ("x @ y", f"3:9: `x @ y` cannot be used in an expression\n  mend: {LISTED}"),
        ("~x", f"3:9: `~x` cannot be used in an expression\n  mend: {LISTED}"),
        ("1j", f"3:9: `1j` cannot be used in an expression\n  mend: {LISTED}"),
        ("b'a'", f"3:9: `b'a'` cannot be used in an expression\n  mend: {LISTED}"),
        (
            "x.shape(1)",
            "3:9: a call of what is no function's name cannot be used in an expression\n"
            f"  mend: {LISTED}",
        ),
        ("x is None", "3:9: `is` cannot be used in an expression\n  mend: Write `==`."),
        (
            "[a for a in b for c in d]",
            "3:9: a comprehension within a comprehension\n"
            "  mend: Use one `for`; a builder can do more.",
        ),
        (
            "[[a for a in c] for c in b]",
            "3:10: a comprehension within a comprehension\n"
            "  mend: Use one `for`; a builder can do more.",
        ),
        (
            "[a for a, c in b]",
            "3:16: a comprehension needs one name\n  mend: Write `[... for item in items]`.",
        ),
        (
            "99999999999999999999",
            "3:9: the integer does not fit 64 bits\n  mend: Write a smaller one.",
        ),
        ("x = 1", "3:11: it is no expression: invalid syntax\n  mend: Compare with `==`."),
        ("x.rank ==", f"3:18: it is no expression: invalid syntax\n  mend: {LISTED}"),
        ("1) + (1", f"3:10: it is no expression: unmatched ')'\n  mend: {LISTED}"),
        ("'\\n'", f"3:10: a backslash cannot be used here\n  mend: {LISTED}"),
        ("", "3:9: the expression is empty\n  mend: Write one, or take the entry out."),
        ("é == ln(x)", "3:14: unknown function `ln`\n  mend: Did you mean `len`?"),
        (
            "1" + "+1" * 100,
            "3:9: the expression is nested too deeply\n  mend: Split it by `let`.",
        ),
        ("-" * 3000 + "1", "3:9: the expression is nested too deeply\n  mend: Split it by `let`."),
        (
            "1" * 5000,
            "3:9: the expression is longer than 4000 characters\n"
            "  mend: Split it by `let`, or write a builder.",
        ),
    ],
)
def test_what_is_no_expression_of_the_closed_kind(text: str, message: str) -> None:
    assert error_of(text) == f"r.yaml:{message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "x.rank == '4'",
            "3:19: `x.rank` is a number and `'4'` a text: they are never equal\n  mend: Write `4`.",
        ),
        (
            "1 < len(x.shape) < 'a'",
            "3:28: `len(x.shape)` is a number and `'a'` a text: they are in no order\n"
            "  mend: Compare what is of one kind.",
        ),
        (
            "not x.shape == 4",
            "3:24: `x.shape` is a list and `4` a number: they are never equal\n"
            "  mend: Write `x.rank`, or one size: `x.shape[0]`.",
        ),
        (
            "x.shape[0] != 'B'",
            "3:23: `x.shape[0]` is a number and `'B'` a text: they are never equal\n"
            "  mend: Compare a size with a number, or with that of another value.",
        ),
        (
            "x.rank in [3, '4']",
            "3:23: `x.rank` is a number and `'4'` a text: they are never equal\n  mend: Write `4`.",
        ),
        (
            "x.rank in 4",
            "3:19: nothing is in `4`, which is a number\n  mend: Write a list: `[4]`.",
        ),
        (
            "x.dtype == 'flaot32'",
            "3:20: `flaot32` is no element type\n  mend: Did you mean `float32`?",
        ),
        (
            "x.dtype not in ['float', 'double']",
            "3:25: `float` is no element type\n  mend: Write `float32`.",
        ),
        (
            "1 == x.dtype",
            "3:14: `1` is a number and `x.dtype` a text: they are never equal\n"
            "  mend: Compare what is of one kind.",
        ),
    ],
)
def test_what_is_never_true_whatever_the_model(text: str, message: str) -> None:
    assert error_of(text) == f"r.yaml:{message}"


@pytest.mark.parametrize(
    "text",
    [
        "x.shape[0] == 4 and x.shape[1:] == [2, 3] and x.shape == (1, n)",
        "x.dtype in [float32, 'float16'] and float32 == x.dtype",
        "x.rank == True or x.value == 'a' or a in 'abc' or x.name in 'abc'",
        "x.attributes[0] == 'perm' and 'perm' in x.attributes and len(x.views) == 1",
    ],
)
def test_what_may_be_true_is_left_to_the_model(text: str) -> None:
    assert Expression.parse(text, HERE).names
