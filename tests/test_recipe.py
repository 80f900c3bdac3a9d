"""A recipe as it is read: its rules, its promises, builders, and the schema that says so."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipe_texts import HEAD, error_of, rule

from surgeon.errors import Location, RecipeError
from surgeon.notation import Pattern
from surgeon.recipe import BuilderCall, Recipe, RulesStep, bundled, schema
from surgeon.recipe.models import RuleModel

FIRST = HEAD + "rules:\n  - {id: a, why: w, exact: bit, match: y = Relu (x), "


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


def test_a_rule_may_use_everything_that_it_binds() -> None:
    match = "h, _ = Dropout (x)\ny = Concat <axis = @k, *more> (h, *xs)"
    replace = "c = Cast <to = @k> (x)\ny = Concat <axis = @n, *more> (c, h, *xs, @n)"
    text = rule(match=match, replace=replace, let="{m: len(xs), n: m + k + h.rank}")
    found = Recipe.parse(text).rules[0]
    assert found.let[1][1].names == {"m", "k", "h"}


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
    with pytest.raises(RecipeError, match="`surgeon recipes which fp16` looks for them by words"):
        Recipe.load("fp16")


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
            "away-from",
            "tidy",
            "same_shape",
            "functions",
            "changes",
            "in-front",
            "behind",
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
