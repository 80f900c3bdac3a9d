from __future__ import annotations

import textwrap
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgeon.errors import Location, RecipeError
from surgeon.notation import Pattern
from surgeon.recipe import (
    BuilderCall,
    FoldStep,
    RaiseOpsetStep,
    Recipe,
    RulesStep,
    SimplifyStep,
    bundled,
    schema,
)
from surgeon.recipe.models import RuleModel

HEAD = "surgeon: 1\nname: test\n"
FIRST = HEAD + "rules:\n  - {id: a, why: w, exact: bit, match: y = Relu (x), "


def rule(**parts: str) -> str:
    """A recipe of one rule, its parts from line 7 on, a key each; texts in block form."""
    given_parts = {"match": "y = Relu (x)", "replace": "y = Abs (x)", **parts}
    lines = [f"{HEAD}rules:", "  - id: a", "    why: w", "    exact: bit"]
    for key, text in given_parts.items():
        block = "\n" in text and not text.startswith("\n")
        lines.append(f"    {key}:{' |' if block else ''}")
        lines[-1] += "\n" + textwrap.indent(text, " " * 6) if block else f" {text}"
    return "\n".join(lines) + "\n"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def a_recipe(name: str, *rules: tuple[str, str, str]) -> str:
    """A recipe of rules given as id, match and replacement."""
    items = [
        f"  - {{id: {i}, why: w, exact: bit, match: {m}, replace: {r}}}\n" for i, m, r in rules
    ]
    return f"surgeon: 1\nname: {name}\nrules:\n{''.join(items)}"


def error_of(text: str) -> str:
    with pytest.raises(RecipeError) as caught:
        Recipe.parse(text, file="r.yaml")
    return str(caught.value)


FULL = """\
surgeon: 1
name: pools
about: Pools.
allow: [contract]
custom: [my.domain.Op]
rules:
  - id: pool-even
    why: Equal windows.
    exact: rounding
    relative_to: the input's spread
    contract: extends the batch
    since_opset: 11
    match: |
      h = aten.adaptive_avg_pool2d (x, size)
      y = LeakyRelu <alpha = @slope, *others> (h)
    where:
      - x.rank == 4       # a comment
      - stride[0] > 0 and
        size.value != None
      - true
    let:
      stride: "[x.shape[2] // size.value[0], 1]"
      one: 1
    replace: |
      p = AveragePool <kernel_shape = @stride, strides = @stride> (x)
      q = my.domain.Op (p, @one)
      y = LeakyRelu <alpha = @slope, *others> (q)
"""


def test_a_recipe_in_full() -> None:
    recipe = Recipe.parse(FULL, file="r.yaml")
    assert (recipe.name, recipe.about, recipe.source) == ("pools", "Pools.", "r.yaml")
    assert (recipe.allow, recipe.custom) == ({"contract"}, {"my.domain.Op"})
    (step,) = recipe.steps
    assert isinstance(step, RulesStep)
    (found,) = step.rules
    assert recipe.rules == (found,)
    assert (found.id, found.why, found.exact) == ("pool-even", "Equal windows.", "rounding")
    assert (found.contract, found.relative_to) == ("extends the batch", "the input's spread")
    assert (found.since_opset, found.recipe) == (11, "pools")
    assert found.location == Location("r.yaml", 7, 5)
    assert found.match.root.location == Location("r.yaml", 15, 7)
    assert [where.text for where in found.where] == [
        "x.rank == 4",
        "stride[0] > 0 and size.value != None",
        "True",
    ]
    assert found.where[1].place("size") == Location("r.yaml", 19, 9)
    assert [(name, value.text) for name, value in found.let] == [
        ("stride", "[x.shape[2] // size.value[0], 1]"),
        ("one", "1"),
    ]
    assert isinstance(found.replace, Pattern)
    assert found.replace.root.rest == "others"


def test_operators_of_the_same_shape_are_declared() -> None:
    head = "surgeon: 1\nname: r\ncustom: [my.Op]\nsame_shape: [my.Op, my.Other]\n"
    steps = "steps:\n  - fold: {}\n"
    assert error_of(head + steps) == (
        "r.yaml:4:21: `my.Other` is not declared\n  mend: Declare it: `custom: [my.Other]`."
    )
    recipe = Recipe.parse(head.replace(", my.Other", "") + steps, file="r.yaml")
    assert recipe.same_shape == {"my.Op"}


def test_a_bound_is_for_approximate_rules() -> None:
    text = rule(bound="0.25")
    assert error_of(text) == (
        "r.yaml:9:5: `bound` is for approximate rules, and this one is `bit`\n"
        "  mend: Leave `bound` out, or say `exact: approximate`."
    )
    rough = Recipe.parse(text.replace("exact: bit", "exact: approximate"), file="r.yaml")
    assert rough.rules[0].bound == 0.25


def test_a_replacement_may_be_a_builder() -> None:
    text = rule(replace="{build: grow, by: x.rank + k, how: \"'far'\"}", let="{k: 2}")
    recipe = Recipe.parse(text, file="r.yaml", builders=["grow"])
    call = recipe.rules[0].replace
    assert isinstance(call, BuilderCall)
    assert call.name == "grow"
    assert {name: value.text for name, value in call.arguments.items()} == {
        "by": "x.rank + k",
        "how": "'far'",
    }
    assert error_of(text).startswith("r.yaml:8:22: unknown builder `grow`\n  mend: ")


def test_builders_of_the_table_have_known_arguments() -> None:
    good = rule(replace="{build: adaptive_pool, spatial: 2, kind: \"'avg'\"}")
    assert isinstance(Recipe.parse(good).rules[0].replace, BuilderCall)
    assert error_of(good.replace("spatial", "spatail")) == (
        "r.yaml:8:37: the builder `adaptive_pool` has no argument `spatail`\n"
        "  mend: Did you mean `spatial`?"
    )
    assert error_of(good.replace("\"'avg'\"", "avg")) == (
        "r.yaml:8:55: unknown name `avg`\n"
        "  mend: Write \"'avg'\" for the text, or one of the rule's names."
    )


def test_functions_from_python() -> None:
    text = rule(where="[twice(x.rank) == 8]")
    assert Recipe.parse(text, functions=["twice"]).rules[0].where[0].names == {"x"}
    assert error_of(text).startswith("r.yaml:9:13: unknown function `twice`")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "1:1: the document is a list, not a mapping\n  mend: Change its form."),
        ("surgeon: 1\nrules: []\n", "1:1: the key `name` is missing\n  mend: Add `name: ...`."),
        (
            "surgeon: 2\nname: a\nrules: []\n",
            "1:10: `2` is no version of this format\n  mend: Write `surgeon: 1`.",
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
            "9:12: `where` is `x.rank == 4`, not a list\n  mend: Change its form.",
        ),
        (
            rule(where="[[1]]"),
            "9:13: `where[0]` is a list, not text\n  mend: Put quotes around it.",
        ),
        (rule(let="{k: [1, 2]}"), "9:14: `k` is a list, not text\n  mend: Put quotes around it."),
        (rule(let="{k: }"), "9:13: `k` is empty, not text\n  mend: Put quotes around it."),
        (
            rule(replace="[y]"),
            "8:14: `replace` is a list, not text or a mapping\n  mend: Put quotes around it.",
        ),
        (
            rule(replace="{buidl: grow}"),
            "8:14: the key `build` is missing\n  mend: Add `build: ...`.",
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
            HEAD + "steps:\n  - simplify: onnxsimm\n",
            "4:15: `simplify` is `onnxsimm`\n  mend: Did you mean `onnxsim`?",
        ),
        (
            HEAD + "steps:\n  - raise-opset: 3\n",
            "4:18: `raise-opset`: Input should be greater than or equal to 9\n"
            "  mend: Change the value.",
        ),
    ],
)
def test_a_document_of_another_shape(text: str, message: str) -> None:
    assert error_of(text) == f"r.yaml:{message}"


TWO = "h = Relu (x)\ny, z = Split <axis = @k, *more> (h)"
BOTH = "y, z = Split <axis = @k, *more> (x)"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
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
            "10:14: unknown name `@l` for the attribute `axis`\n  mend: Known are `k`.",
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
    ],
)
def test_a_rule_that_cannot_be_right(parts: dict[str, str], message: str) -> None:
    assert error_of(rule(**parts)) == f"r.yaml:{message}"


def test_a_rule_may_use_everything_that_it_binds() -> None:
    match = "h, _ = Dropout (x)\ny = Concat <axis = @k, *more> (h, *xs)"
    replace = "c = Cast <to = @k> (x)\ny = Concat <axis = @n, *more> (c, h, *xs, @n)"
    text = rule(match=match, replace=replace, let="{m: len(xs), n: m + k + h.rank}")
    found = Recipe.parse(text).rules[0]
    assert found.let[1][1].names == {"m", "k", "h"}


def test_ids_are_unique() -> None:
    text = a_recipe("r", ("a", "y = Relu (x)", "y = Abs (x)"), ("a", "y = Sin (x)", "y = Cos (x)"))
    assert error_of(text) == (
        "r.yaml:5:5: the rule `a` is here twice, first at r.yaml:4:5\n"
        "  mend: Give one of them another id."
    )


FUSE = ("fuse", "'h = Relu (a); b = Abs (h)'", "b = Elu <alpha = 2.0> (a)")
SPLIT = ("split", "y = Elu <alpha = 2.0> (x)", "'r = Relu (x); y = Abs (r)'")


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


def test_steps_come_in_order_and_uses_are_spliced(tmp_path: Path) -> None:
    write(tmp_path, "fuse", a_recipe("fusing", FUSE) + "allow: [contract]\ncustom: [my.Op]\n")
    write(tmp_path, "split", a_recipe("splitting", SPLIT))
    steps = "steps: [fold: {max_bytes: 9}, use: ./fuse.yaml, raise-opset: 13]\n"
    write(tmp_path, "inner", "surgeon: 1\nname: inner\n" + steps)
    steps = "steps: [use: ./inner.yaml, use: ./split.yaml, simplify: onnxsim, fold: , fold: {}]\n"
    recipe = Recipe.load(write(tmp_path, "outer", "surgeon: 1\nname: outer\n" + steps))
    fuse, split = recipe.steps[1], recipe.steps[3]
    assert recipe.steps == (
        *(FoldStep(9), fuse, RaiseOpsetStep(13)),
        *(split, SimplifyStep("onnxsim"), FoldStep(), FoldStep()),
    )
    assert [(rule.recipe, rule.id) for rule in recipe.rules] == [
        ("fusing", "fuse"),
        ("splitting", "split"),
    ]
    assert recipe.rules[0].location == Location(str(tmp_path / "fuse.yaml"), 4, 5)
    assert recipe.allow == frozenset()  # the recipe itself decides what is allowed
    assert recipe.custom == {"my.Op"}


def test_a_recipe_is_read_again_where_a_file_of_it_has_changed(tmp_path: Path) -> None:
    one = a_recipe("inner", ("one", "y = Relu (x)", "y = Abs (x)"))
    inner = write(tmp_path, "inner", one)
    outer = write(tmp_path, "outer", HEAD + "steps: [use: ./inner.yaml]\n")
    first = Recipe.load(outer)
    assert Recipe.load(outer) is first
    write(tmp_path, "inner", one.replace("Abs", "Neg"))  # of the same length, perhaps in one tick
    second = Recipe.load(outer)
    assert second.digest != first.digest
    assert isinstance(second.rules[0].replace, Pattern)
    assert second.rules[0].replace.root.operators == ("Neg",)
    write(tmp_path, "inner", one)
    assert Recipe.load(outer) == first
    inner.unlink()
    with pytest.raises(RecipeError, match="there is no file"):
        Recipe.load(outer)
    write(tmp_path, "inner", "surgeon: 2\n")
    with pytest.raises(RecipeError, match="the key `name` is missing"):
        Recipe.load(outer)


def test_what_is_known_again_is_the_name_as_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = rule(where="[known(x)]")
    for name, output in (("a", "Abs"), ("b", "Neg")):
        (tmp_path / name).mkdir()
        write(tmp_path / name, "r", text.replace("y = Abs", f"y = {output}"))
    monkeypatch.chdir(tmp_path / "a")
    first = Recipe.load("r.yaml", functions=["known"])
    with pytest.raises(RecipeError, match="unknown function `known`"):
        Recipe.load("r.yaml")
    assert Recipe.load(str(tmp_path / "a" / "r.yaml"), functions=["known"]).source != first.source
    monkeypatch.chdir(tmp_path / "b")
    assert Recipe.load("r.yaml", functions=["known"]).digest != first.digest


def test_a_list_of_recipes_makes_one_step(tmp_path: Path) -> None:
    write(tmp_path, "a", a_recipe("a", ("one", "y = Relu (x)", "y = Abs (x)")))
    write(tmp_path, "b", a_recipe("b", ("two", "y = Sin (x)", "y = Cos (x)")))
    text = HEAD + "steps:\n  - use: [./b.yaml, ./a.yaml, ./b.yaml]\n"
    recipe = Recipe.load(write(tmp_path, "both", text))
    assert len(recipe.steps) == 1
    assert [rule.id for rule in recipe.rules] == ["two", "one"]
    write(tmp_path, "c", HEAD + "steps: [fold: {}]\n")
    path = write(tmp_path, "bad", HEAD + "steps:\n  - use: [./a.yaml, ./c.yaml]\n")
    with pytest.raises(RecipeError) as caught:
        Recipe.load(path)
    assert str(caught.value) == (
        f"{path}:4:21: `./c.yaml` has steps that are no rules, which cannot be put together\n"
        "  mend: Make it a step of its own: `- use: ./c.yaml`."
    )


def test_a_step_of_several_recipes_is_checked_as_one(tmp_path: Path) -> None:
    write(tmp_path, "a", a_recipe("a", FUSE))
    write(tmp_path, "b", a_recipe("b", SPLIT))
    apart = write(tmp_path, "apart", HEAD + "steps: [use: ./a.yaml, use: ./b.yaml]\n")
    assert len(Recipe.load(apart).steps) == 2
    together = write(tmp_path, "together", HEAD + "steps: [use: [./a.yaml, ./b.yaml]]\n")
    with pytest.raises(RecipeError, match="`split` is the inverse of `fuse`"):
        Recipe.load(together)
    write(tmp_path, "c", a_recipe("c", ("fuse", "y = Sin (x)", "y = Cos (x)")))
    twice = write(tmp_path, "twice", HEAD + "steps: [use: ./a.yaml, use: ./c.yaml]\n")
    with pytest.raises(RecipeError, match="the rule `fuse` is here twice"):
        Recipe.load(twice)


def test_recipes_that_are_not_there(tmp_path: Path) -> None:
    def error(text: str) -> str:
        path = write(tmp_path, "r", HEAD + text)
        with pytest.raises(RecipeError) as caught:
            Recipe.load(path)
        return str(caught.value).replace(str(tmp_path), "DIR")

    assert error("steps:\n  - use: ./no.yaml\n") == (
        "DIR/r.yaml:4:10: there is no file `DIR/no.yaml`\n  mend: Check the path."
    )
    write(tmp_path, "beside", HEAD + "rules: []\n")
    assert error("steps:\n  - use: beside\n") == (
        "DIR/r.yaml:4:10: there is no recipe `beside`\n"
        "  mend: Write `./beside.yaml` for the file beside it."
    )
    assert "there is no file" in error('steps:\n  - use: "./\\0.yaml"\n')
    assert "there is no file" in error(f"steps:\n  - use: ./{'a' * 5000}.yaml\n")
    assert error("steps:\n  - use: ./r.yaml\n") == (
        "DIR/r.yaml:4:10: `./r.yaml` uses itself, by way of this\n  mend: Take this step out."
    )
    write(tmp_path, "a", HEAD + "steps: [use: ./b.yaml]\n")
    write(tmp_path, "b", HEAD + "steps: [use: ./r.yaml]\n")
    assert error("steps:\n  - use: ./a.yaml\n") == (
        "DIR/b.yaml:3:14: `./r.yaml` uses itself, by way of this\n  mend: Take this step out."
    )


def test_steps_that_double_come_to_an_end(tmp_path: Path) -> None:
    write(tmp_path, "r0", HEAD + "steps: [fold: {}, fold: {}]\n")
    for depth in range(1, 30):
        used = f"use: ./r{depth - 1}.yaml"
        write(tmp_path, f"r{depth}", HEAD + f"steps: [{used}, {used}]\n")
    with pytest.raises(RecipeError, match="more than 1000 steps"):
        Recipe.load(tmp_path / "r29.yaml")


def test_the_digest_is_of_all_texts_read(tmp_path: Path) -> None:
    inner = write(tmp_path, "inner", a_recipe("inner", FUSE))
    outer = write(tmp_path, "outer", HEAD + "steps: [use: ./inner.yaml]\n")
    first = Recipe.load(outer).digest
    assert first == Recipe.load(outer).digest
    assert len(first) == 64
    inner.write_text(a_recipe("inner", FUSE) + "# changed\n")
    assert Recipe.load(outer).digest != first


def test_bundled_recipes_are_found_by_name() -> None:
    names = bundled()
    assert names
    assert not any(name.endswith(".cases") for name in names)
    for name, path in names.items():
        assert Recipe.load(name).source == str(path)
    with pytest.raises(RecipeError) as caught:
        Recipe.load("adaptive-pol")
    assert str(caught.value) == (
        "adaptive-pol: there is no recipe `adaptive-pol`\n  mend: Did you mean `adaptive-pool`?"
    )


def test_the_schema_speaks_of_every_key() -> None:
    found = schema()
    assert set(found["properties"]) == {
        *(
            "surgeon",
            "name",
            "about",
            "rules",
            "steps",
            "allow",
            "custom",
            "ensure",
            "tidy",
            "same_shape",
        )
    }
    assert set(found["$defs"]["RuleModel"]["properties"]) == set(RuleModel.model_fields)
    assert "raise-opset" in found["$defs"]["StepModel"]["properties"]
    assert found["additionalProperties"] is False


LINES = [
    *FULL.splitlines(),
    "steps:",
    "  - use: x",
    "  - fold: {}",
    "    replace: {build: a}",
    "  - ",
]


@given(st.data())
def test_a_damaged_recipe_is_read_or_refused(data: st.DataObject) -> None:
    lines = FULL.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(lines) - 1))
        choice = data.draw(st.sampled_from(["drop", "other", "cut", "insert"]))
        if choice == "drop" and len(lines) > 1:
            lines.pop(index)
        elif choice == "other":
            lines[index] = data.draw(st.sampled_from(LINES))
        elif choice == "cut":
            at = data.draw(st.integers(0, len(lines[index])))
            lines[index] = lines[index][:at] + data.draw(st.text("x:{[\"'|@(é \t", max_size=2))
        else:
            lines.insert(index, data.draw(st.sampled_from(LINES)))
    with suppress(RecipeError):
        assert isinstance(Recipe.parse("\n".join(lines)), Recipe)
