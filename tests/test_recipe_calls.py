"""Rules call operators of one's own as the functions of the recipe declare them."""

import pytest
from recipe_texts import error_of

from surgeon.recipe import Recipe

TEXT = """\
surgeon: 1
name: chip
functions:
  - |
    <domain: "chip", opset_import: ["": 17]>
    Act <k: int = 3, m: string, a> (x, w) => (y) { y = LeakyRelu <alpha: float = @a>(x) }
rules:
  - id: act
    why: w
    exact: rounding
    match: y = Relu (x)
    replace: y = chip.Act <k = 1, m = "s", a = 0.5> (x)
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "k = 1",
            "kk = 1",
            "12:28: the function of `chip.Act` declares no attribute `kk`\n"
            "  mend: Did you mean `k`?",
        ),
        (
            "k = 1",
            "k = 2.5",
            "12:28: the attribute `k` of `chip.Act` is of type int, not float\n"
            "  mend: Write `k: int = ...` with a value of that type.",
        ),
        (
            '"s"',
            "4",
            "12:35: the attribute `m` of `chip.Act` is of type string, not int\n"
            "  mend: Write `m: string = ...` with a value of that type.",
        ),
        (
            "0.5",
            "[1]",
            "12:44: the attribute `a` of `chip.Act` is of type float, not ints\n"
            "  mend: Write `a: float = ...` with a value of that type.",
        ),
        (
            "a = 0.5> (x)",
            "a = 0.5> (x, x, x)",
            "12:14: the function of `chip.Act` has 2 inputs, not 3\n"
            "  mend: Declare as many inputs as the operator has, or leave some out here.",
        ),
        (
            "match: y = Relu (x)",
            "match: y = chip.Act <q = @q> (x)",
            "11:26: the function of `chip.Act` declares no attribute `q`\n"
            "  mend: Declare it: `Act <a, k, m, q>`.",
        ),
    ],
)
def test_a_call_that_no_function_declares(old: str, new: str, message: str) -> None:
    Recipe.parse(TEXT)
    assert error_of(TEXT.replace(old, new)) == f"r.yaml:{message}"


def test_of_several_functions_one_that_takes_it_is_enough() -> None:
    second = TEXT.partition("  - |\n")[2].partition("rules:")[0]
    second = second.replace("(x, w)", "(x, w, v)").replace("17", "13")
    text = TEXT.replace("rules:", f"  - |\n{second}rules:").replace("0.5> (x)", "0.5> (x, x, x)")
    assert Recipe.parse(text).rules
