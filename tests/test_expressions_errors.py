"""What is no expression of the closed kind, and what to write instead."""

from __future__ import annotations

import pytest
from expressions_judged import HERE

from surgeon.errors import RecipeError
from surgeon.expressions import Expression

LISTED = "Use literals, names, arithmetic, comparisons and the listed functions, or a builder."


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
    with pytest.raises(RecipeError) as caught:
        Expression.parse(text, HERE)
    assert str(caught.value) == f"r.yaml:{message}"
