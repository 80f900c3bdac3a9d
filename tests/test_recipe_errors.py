"""What is wrong with a recipe, and where: word by word."""

from __future__ import annotations

import pytest
from recipe_texts import FUSE, HEAD, SPLIT, a_recipe, error_of, rule

from surgeon.recipe import Recipe


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[1]",
            "1:1: the document is a list, not a mapping\n"
            "  mend: Write keys (`key: value`), without `- ` in front.",
        ),
        (
            "surgeon: 1\nnaem: x\nrules: []\n",
            "2:1: unknown key `naem`\n  mend: Did you mean `name`?",
        ),
        ("surgeon: 1\nrules: []\n", "1:1: the key `name` is missing\n  mend: Add `name: ...`."),
        (
            "surgeon: 2\nname: a\nrules: []\n",
            "1:10: `2` is no version of this format that this surgeon knows\n"
            "  mend: Take a newer surgeon, which the recipe is for.",
        ),
        (
            HEAD + "ruels: []\n",
            "3:1: unknown key `ruels`\n  mend: Did you mean `rules`?",
        ),
        (
            rule(wehre="[x.rank == 4]"),
            "9:5: unknown key `wehre`\n  mend: Did you mean `where`?",
        ),
        (
            rule().replace("exact: bit", "exact: bits"),
            "6:12: `exact` is `bits`\n  mend: Did you mean `bit`?",
        ),
        (
            rule().replace("id: a", "id: A b"),
            "4:9: `id` is `A b`\n  mend: Use small letters, digits and single hyphens.",
        ),
        (
            rule().replace("    why: w\n", ""),
            "4:5: the key `why` is missing\n  mend: Add `why: ...`.",
        ),
        (
            rule(where="x.rank == 4"),
            "9:12: `where` is `x.rank == 4`, not a list\n  mend: Write `where: [x.rank == 4]`.",
        ),
        (
            rule(where='"x.shape == [1, n]"'),
            "9:13: `where` is `x.shape == [1, n]`, not a list\n"
            '  mend: Write `where: ["x.shape == [1, n]"]`.',
        ),
        (
            rule(where="[[1]]"),
            "9:13: `where[0]` is a list, not text\n  mend: Put quotes around it.",
        ),
        (
            rule(since_opset="'13'"),
            "9:19: `since_opset` is `13`, not an integer\n"
            "  mend: Write `since_opset: 13`, without quotes.",
        ),
        (rule(let="{k: [1, 2]}"), "9:14: `k` is a list, not text\n  mend: Put quotes around it."),
        (rule(let="{k: }"), "9:13: `k` is empty, not text\n  mend: Put quotes around it."),
        (
            rule(replace="[y]"),
            "8:14: `replace` is a list, not text or a mapping\n  mend: Put quotes around it.",
        ),
        (
            rule(replace="{buidl: grow}"),
            "8:15: unknown key `buidl`\n  mend: Did you mean `build`?",
        ),
        (
            HEAD + "rules: []\nallow: [contracts]\n",
            "4:9: `allow[0]` is `contracts`\n  mend: Did you mean `contract`?",
        ),
        (HEAD, "1:1: it has no rules\n  mend: Add `rules: ...`."),
        (
            HEAD + "rules: []\nsteps: []\n",
            "4:1: it has both `rules` and `steps`\n"
            "  mend: Make the rules a step: `- rules: [...]`.",
        ),
        (
            HEAD + "steps:\n  - {fold: {}, use: a}\n",
            "4:5: a step has one key, not 2\n"
            "  mend: Make each a step of its own, with its own `-`.",
        ),
        (HEAD + "steps:\n  - usee: a\n", "4:5: unknown key `usee`\n  mend: Did you mean `use`?"),
        (
            HEAD + "steps:\n  - fold: {max_byte: 1}\n",
            "4:12: unknown key `max_byte`\n  mend: Did you mean `max_bytes`?",
        ),
        (
            HEAD + "steps:\n  - use: 3\n",
            "4:10: `use` is `3`, not text or a list\n  mend: Put quotes around it.",
        ),
        (
            HEAD + "steps:\n  - use:\n",
            "4:9: `use` is empty\n  mend: Give it a value, or take the step out.",
        ),
        (HEAD + "steps:\n  - use: []\n", "4:10: `use` is empty\n  mend: Name a recipe."),
        (
            HEAD + "steps:\n  - without: [a]\n",
            "4:5: `without` chooses among the rules of nothing\n  mend: Write it beside `use`.",
        ),
        (
            HEAD + "steps:\n  - only: [a]\n",
            "4:5: `only` chooses among the rules of nothing\n  mend: Write it beside `use`.",
        ),
        (
            HEAD + "steps:\n  - use: no-ops\n    only: [reshape-chains]\n",
            "5:12: `no-ops` has no rule `reshape-chains`\n  mend: Did you mean `reshape-chain`?",
        ),
        (
            HEAD + "steps:\n  - keep: [a]\n",
            "4:5: `keep` keeps nodes from no rule\n"
            "  mend: Write it beside `use`, `rules`, `fold` or `unroll`.",
        ),
        (
            HEAD + "steps:\n  - simplify: onnxsim\n    keep: [a]\n",
            "5:5: `keep` keeps nodes from no rule\n"
            "  mend: Write it beside `use`, `rules`, `fold` or `unroll`.",
        ),
        (
            HEAD + "steps:\n  - use: no-ops\n    without: [reshape-chain, frobnicate]\n",
            "5:30: `no-ops` has no rule `frobnicate`\n"
            "  mend: `surgeon recipes show no-ops` names them.",
        ),
        (
            HEAD + "steps:\n  - use: no-ops\n    only: [reshape-chain]\n"
            "    without: [no-ops/reshape-chain]\n",
            "4:10: of `only` no rule is left\n  mend: Take `without` out.",
        ),
        (
            HEAD + "steps:\n  - simplify: onnxsimm\n",
            "4:15: `simplify` is `onnxsimm`\n  mend: Did you mean `onnxsim`?",
        ),
        (
            HEAD + "steps:\n  - raise-opset: 3\n",
            "4:18: `raise-opset` is 3, and not 9 or more\n"
            "  mend: Write a number that is 9 or more.",
        ),
    ],
)
def test_a_document_of_another_shape(text: str, message: str) -> None:
    assert error_of(text) == f"r.yaml:{message}"


UNKNOWN = "8:14: unknown name `@k`\n"
TWO = "h = Relu (x)\ny, z = Split <axis = @k, *more> (h)"
BOTH = "y, z = Split <axis = @k, *more> (x)"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"match": "y = my::Rellu (x)"},
            "7:19: expected a name or a quoted text, found `:`\n"
            "  mend: Domains are joined by a dot: `my.Rellu`.",
        ),
        ({"replace": "y = Add (x, @k)"}, f"{UNKNOWN}  mend: Declare it: `let: {{k: ...}}`."),
        (
            {"replace": "{build: zzz}"},
            "8:22: unknown builder `zzz`\n  mend: `surgeon recipes builders` lists them; "
            "a function of your own makes a rule in Python (`surgeon.rule`).",
        ),
        (
            {"where": "[zzzz(x)]"},
            "9:13: unknown function `zzzz`\n  mend: `surgeon recipes functions` lists them.",
        ),
        (
            {"match": "y = Rellu (x)"},
            "7:12: unknown operator `Rellu`\n  mend: Did you mean `Relu`?",
        ),
        (
            {"match": "h = Relu (x)\ny = Abs (h"},
            "9:17: expected `)`, `,`, `?` or `~`, found the end\n"
            "  mend: Write nodes as `y = Operator <attribute = 1> (x)`.",
        ),
        (
            {"replace": "y = Concat (x)"},
            "8:14: `Concat` needs the attribute `axis`\n  mend: Write `<axis = ...>`.",
        ),
        (
            {"match": TWO, "replace": BOTH, "where": "[xx.rank == 1]"},
            "11:13: unknown name `xx`\n  mend: Did you mean `x`?",
        ),
        (
            {"where": "[x.dtype == flaot32]"},
            "9:24: unknown name `flaot32`\n  mend: Did you mean `float32`?",
        ),
        (
            {"where": "[x.dtype == float31]"},
            "9:24: unknown name `float31`\n  mend: Did you mean `float32`?",
        ),
        (
            {"where": "['x.rank ==']"},
            "9:23: it is no expression: invalid syntax\n  mend: Use literals, names, arithmetic, "
            "comparisons and the listed functions, or a builder.",
        ),
        (
            {"let": "{a: b + 1, b: 2}"},
            "9:14: `b` is used before it is computed\n  mend: Write `b` above.",
        ),
        (
            {"let": "{a: 1 + a}"},
            "9:18: `a` is used before it is computed\n  mend: A name cannot use itself.",
        ),
        ({"let": "{a: 1 + c}"}, "9:18: unknown name `c`\n  mend: Known are `x`, `y`."),
        ({"let": "{x: 1}"}, "9:11: `x` is already a name of the match\n  mend: Use another name."),
        ({"let": "{len: 1}"}, "9:11: `len` is a function\n  mend: Use another name."),
        ({"let": "{int8: 1}"}, "9:11: `int8` is a dtype\n  mend: Use another name."),
        ({"let": "{a b: 1}"}, "9:11: `a b` is no name\n  mend: Use letters, digits and `_`."),
        (
            {"match": TWO, "replace": "y = Relu (x)"},
            "10:14: `z` is not produced here\n"
            "  mend: Write `z = ...`: it takes the place of the match's output.",
        ),
        (
            {"match": "_ = Relu (x)"},
            "7:12: no output of the last node has a name\n"
            "  mend: Name it, so that `replace` can produce it.",
        ),
        ({"replace": "y = Abs (w)"}, "8:14: unknown name `w`\n  mend: Known are `x`."),
        (
            {"replace": "y = Add (x, k)", "let": "{k: 1}"},
            "8:14: `k` is computed, not a value\n  mend: Write `@k`.",
        ),
        (
            {"replace": "y = Add (x, @x)"},
            "8:14: `x` is a value, not computed\n  mend: Write `x`.",
        ),
        (
            {"replace": "y = Add (x, @kk)", "let": "{k: 1}"},
            "8:14: unknown name `@kk`\n  mend: Did you mean `k`?",
        ),
        (
            {"match": TWO, "replace": "y, z = Split <axis = @l> (x)"},
            "10:28: unknown name `@l` for the attribute `axis`\n"
            "  mend: Declare it: `let: {l: ...}`.",
        ),
        (
            {"match": TWO, "replace": "y, z = Split <*mor> (x)"},
            "10:14: `*mor` is no rest of the match's attributes\n  mend: Did you mean `more`?",
        ),
        (
            {"match": "y = Sum (*xs)", "replace": "y = Max (xs)"},
            "8:14: `xs` is the rest of the inputs\n  mend: Write `*xs`.",
        ),
        (
            {"replace": "y = Sin | Cos (x)"},
            "8:14: `Sin | Cos` are the operators of no node of the match\n"
            "  mend: Write what one node of `match` may be, to carry over what it is; else two "
            "rules.",
        ),
        (
            {"match": "t = Sin | Cos (x)\ny = Cos | Sin (t)", "replace": "y = Sin | Cos (x)"},
            "10:14: `Sin | Cos` are the operators of more than one node of the match\n"
            "  mend: Write what one node of `match` may be, to carry over what it is; else two "
            "rules.",
        ),
        (
            {"replace": "y = Max (*x)"},
            "8:14: `*x` is no rest of the match's inputs\n  mend: Write `x`.",
        ),
        (
            {"replace": "w = Abs (x)\ny = Relu (x)"},
            "9:7: `w` is produced and used by nothing\n"
            "  mend: Use it in a later node, or take it out.",
        ),
        (
            {"match": TWO, "replace": f"h = Abs (x)\n{BOTH.replace('(x)', '(h)')}"},
            "11:7: `h` already has a meaning in this rule\n"
            "  mend: Give the new value another name.",
        ),
        (
            {"replace": "y = Relu (x)"},
            "4:5: `a` writes what it looks for\n  mend: Change the replacement.",
        ),
        (
            {"replace": "y = Mul (x, @k)", "let": "{k: -2.5}"},
            "9:14: `k` is a number of no element type, and an operand here\n"
            "  mend: Write `const(-2.5, like=x)`, or name a `dtype`.",
        ),
        (
            {"replace": "y = Mul (@k, x)", "let": "{k: '[1, 0.5]'}"},
            "9:15: `k` is a number of no element type, and an operand here\n"
            "  mend: Write `const([1, 0.5], like=x)`, or name a `dtype`.",
        ),
        (
            {"replace": "a = Abs (x)\n[mine] y = Exp (a)"},
            "10:8: `[mine]` in a replacement names no node\n"
            "  mend: Leave it out: nodes are called after the values they give.",
        ),
    ],
)
def test_a_rule_that_cannot_be_right(parts: dict[str, str], message: str) -> None:
    assert error_of(rule(**parts)) == f"r.yaml:{message}"


def test_ids_are_unique() -> None:
    text = a_recipe("r", ("a", "y = Relu (x)", "y = Abs (x)"), ("a", "y = Sin (x)", "y = Cos (x)"))
    assert error_of(text) == (
        "r.yaml:5:5: the rule `a` is here twice, first at r.yaml:4:5\n"
        "  mend: Give one of them another id."
    )


def test_a_rule_and_its_inverse_do_not_share_a_step() -> None:
    assert error_of(a_recipe("r", FUSE, SPLIT)) == (
        "r.yaml:5:5: `split` is the inverse of `fuse` (r.yaml:4:5)\n"
        "  mend: Put them into different steps."
    )
    other = (SPLIT[0], SPLIT[1].replace("2.0", "3.0"), SPLIT[2])
    assert len(Recipe.parse(a_recipe("r", FUSE, other)).rules) == 2


def test_a_computed_attribute_is_no_inverse() -> None:
    text = rule(
        match="y = Cast <to = @old> (x)", replace="y = Cast <to = @new> (x)", let="{new: old + 1}"
    )
    assert len(Recipe.parse(text).rules) == 1
