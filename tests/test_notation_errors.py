"""What is wrong with a pattern or a replacement, and where."""

from __future__ import annotations

import pytest
from patterns_read import HERE, error_of

from surgeon.errors import RecipeError
from surgeon.notation import check_operators, parse_pattern, parse_replacement


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "y = A (x)\n  z = B (y",
            "r.yaml:11:11: expected `)`, `,`, `?` or `~`, found the end\n"
            "  mend: Write nodes as `y = Operator <attribute = 1> (x)`.",
        ),
        (
            "y = A x)",
            "r.yaml:10:11: expected `(`, `.`, `:`, `<` or `|`, found `x`\n"
            "  mend: Write nodes as `y = Operator <attribute = 1> (x)`.",
        ),
        (
            "y = A ($)",
            "r.yaml:10:12: unexpected character `$`\n"
            "  mend: Write nodes as `y = Operator <attribute = 1> (x)`.",
        ),
        ('y = A ("a)', 'r.yaml:10:12: a quoted name does not end\n  mend: Close it with `"`.'),
        (
            " \n# nothing\n",
            "r.yaml:10:5: there is no node here\n"
            "  mend: Write nodes as `y = Operator <attribute = 1> (x)`.",
        ),
        (
            "y = A (x)\ny = B (y)",
            "r.yaml:11:1: `y` is produced twice, first in line 10\n"
            "  mend: Give one of them another name.",
        ),
        (
            "y = B (x, h)\nh = A (x)",
            "r.yaml:10:15: `h` is used before it is produced\n"
            "  mend: Write the node that produces it first.",
        ),
        (
            "y = A (y)",
            "r.yaml:10:12: `y` is used before it is produced\n"
            "  mend: Write the node that produces it first.",
        ),
        (
            "a = A (x)\nb = B (x)\nc = C (a)",
            "r.yaml:11:1: `b` does not lead to the last node\n"
            "  mend: Use it in a later node, or take it out.",
        ),
        (
            "y = A (@k)",
            "r.yaml:10:13: `@k` is not an input of a pattern\n"
            "  mend: Write `k`, and compare its value in `where`.",
        ),
        ("y = A (*xs, x)", "r.yaml:10:13: `*xs` is not the last input\n  mend: Put it last."),
        (
            "h = A (*xs)\ny = B (xs, h)",
            "r.yaml:11:8: `*xs` is also used in line 10\n  mend: Use another name.",
        ),
        (
            "y = A <k = @x> (x)",
            "r.yaml:10:17: `x` is both a value and an attribute\n"
            "  mend: Give the attribute another name behind the `@`.",
        ),
        (
            "y = A <k = 1, k = @k> (x)",
            "r.yaml:10:19: the attribute `k` is here twice\n  mend: Keep one of them.",
        ),
        (
            "y = A <*a, *b> (x)",
            "r.yaml:10:17: a second rest of the attributes\n  mend: Keep one of them.",
        ),
        (
            "y = A <k = 1> (x) <j = 1>",
            "r.yaml:10:24: attributes are here twice\n  mend: Join them in one `<>`.",
        ),
        (
            "y = my.A | other.B (x)",
            "r.yaml:10:16: `B` is not of the domain of `A`\n  mend: Write two rules, one a domain.",
        ),
        (
            "y = A <k = word> (x)",
            'r.yaml:10:16: `word` is no value\n  mend: Write `"word"` for a text, `@word` for a '
            "capture.",
        ),
        (
            'y = A <k = [1, "a"]> (x)',
            "r.yaml:10:20: numbers and texts are in one list\n  mend: Use one kind.",
        ),
        (
            "y = A <k: int = 1.5> (x)",
            "r.yaml:10:15: the value is no `int`\n  mend: Write `float`.",
        ),
        (
            "y = A <k: graph = 1> (x)",
            "r.yaml:10:15: an attribute of type `graph` cannot be written here\n"
            "  mend: Name a builder instead.",
        ),
        (
            f"y = A <k = {'9' * 5000}> (x)",
            "r.yaml:10:16: the integer does not fit 64 bits\n  mend: Write less.",
        ),
        (
            "y = A <k = float[3] {1, 2}> (x)",
            "r.yaml:10:16: 2 elements are given for 3\n"
            "  mend: Give as many elements as the dims say.",
        ),
        (
            "y = A <k = flaot[1] {1}> (x)",
            "r.yaml:10:16: unknown element type `flaot`\n  mend: Did you mean `float`?",
        ),
        (
            "y = A <k = uint8[1] {300}> (x)",
            "r.yaml:10:16: an element does not fit `uint8`\n  mend: Use a wider type.",
        ),
        (
            "y = A <k = int64[1] {1.5}> (x)",
            "r.yaml:10:16: the elements are no `int64`\n  mend: Change the type or the elements.",
        ),
    ],
)
def test_what_is_wrong_with_a_pattern_and_where(text: str, message: str) -> None:
    assert error_of(text) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y = A (_)", "r.yaml:10:12: `_` is not for replacements\n  mend: Name the value."),
        ("y = A (x~)", "r.yaml:10:12: `~` is not for replacements\n  mend: Write `x`."),
        (
            "y, _ = A (x)",
            "r.yaml:10:8: `_` is not for replacements\n"
            "  mend: Leave the place empty: `y, , z = ...`.",
        ),
        (
            "h = A (x)\ny = B (*h)",
            "r.yaml:11:9: `h` is one value, not a rest\n  mend: Write `h`.",
        ),
    ],
)
def test_what_a_replacement_may_not_say(text: str, message: str) -> None:
    assert error_of(text, replacement=True) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y = Rellu (x)", "unknown operator `Rellu`\n  mend: Did you mean `Relu`?"),
        ("y = Add | Mull (a, b)", "unknown operator `Mull`\n  mend: Did you mean `Mul`?"),
        ("y = Zzzz (x)", "unknown operator `Zzzz`\n  mend: Declare it: `custom: [Zzzz]`."),
        ("y = a.b.C (x)", "unknown domain `a.b`\n  mend: Declare it: `custom: [a.b.C]`."),
        (
            "y = my.domain.Opp (x)",
            "unknown operator `my.domain.Opp`\n  mend: Did you mean `my.domain.Op`?",
        ),
        (
            "y = LeakyRelu <alfa = 1.0> (x)",
            "`LeakyRelu` has no attribute `alfa`\n  mend: Did you mean `alpha`?",
        ),
        (  # `consumed_inputs` of opset 1 is no help
            "y = Sigmoid <alpha = 1.0> (x)",
            "`Sigmoid` has no attribute `alpha`\n  mend: Remove `alpha`.",
        ),
        (
            "y = Concat <axes = @axis> (a)",
            "`Concat` has no attribute `axes`\n  mend: Did you mean `axis`?",
        ),
        (
            "y = LeakyRelu <alpha = 1> (x)",
            "the attribute `alpha` of `LeakyRelu` is of type float, not int\n"
            "  mend: Write `alpha: float = ...` with a value of that type.",
        ),
        (
            "y = Relu (x, z)",
            "`Relu` has 1 input, not 2\n  mend: Write as many inputs as the operator has; "
            "leave the place of an omitted one empty.",
        ),
        (
            "y = TopK (x, k)",
            "`TopK` has 2 outputs, not 1\n  mend: Write as many outputs as the operator has; "
            "leave the place of an omitted one empty.",
        ),
    ],
)
def test_operators_that_no_version_has(text: str, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        check_operators(parse_pattern(text, HERE), custom=frozenset({"my.domain.Op"}))
    column = 5 + max(0, text.find("<") + 1 if "ttribute" in message else 0)  # of the attribute
    assert str(caught.value) == f"r.yaml:10:{column}: {message}"


@pytest.mark.parametrize("custom", [frozenset(), frozenset({"MyPlugin"})])
def test_what_is_written_has_a_domain_where_onnx_has_it_not(custom: frozenset[str]) -> None:
    """Of a model it may be read: exporters write such nodes, and `custom` says so."""
    check_operators(parse_pattern("y = MyPlugin (x)", HERE), custom=custom | {"MyPlugin"})
    with pytest.raises(RecipeError) as caught:
        check_operators(parse_replacement("y = MyPlugin (x)", HERE), custom=custom, complete=True)
    assert caught.value.what == "`MyPlugin` is in no domain, and ONNX's own has no such operator"
    assert caught.value.mend.startswith("Write `plugins.MyPlugin`, and `custom: [plugins.MyPlugi")


def test_what_is_written_needs_its_required_attributes() -> None:
    bare = parse_replacement("y = Concat (a, b)", HERE)
    check_operators(bare)
    with pytest.raises(RecipeError, match=r"`Concat` needs the attribute `axis`"):
        check_operators(bare, complete=True)
    check_operators(parse_replacement("y = Concat <*same> (a, b)", HERE), complete=True)
    check_operators(parse_replacement("y = Concat <axis = @k> (a, b)", HERE), complete=True)
