"""Recipes that use others: steps in their order, files read again, and paths that lead nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_texts import FUSE, HEAD, SPLIT, a_recipe, rule, write

from surgeon.errors import Location, RecipeError
from surgeon.notation import Pattern
from surgeon.recipe import FoldStep, RaiseOpsetStep, Recipe, SimplifyStep


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


def test_rules_of_what_is_used_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "fuse", a_recipe("fusing", FUSE))
    write(tmp_path, "split", a_recipe("splitting", SPLIT))
    write(tmp_path, "both", HEAD + "steps: [use: ./fuse.yaml, fold: {}, use: ./split.yaml]\n")
    one = Recipe.load(
        write(tmp_path, "one", HEAD + "steps:\n  - use: ./both.yaml\n    without: [fuse]\n")
    )
    assert [rule.id for rule in one.rules] == ["split"]
    assert one.steps[1] == FoldStep()
    listed = "steps:\n  - use: [./fuse.yaml, ./split.yaml]\n    without: [split]\n"
    assert [r.id for r in Recipe.load(write(tmp_path, "two", HEAD + listed)).rules] == ["fuse"]


def test_what_steps_are_to_keep_comes_to_all_that_are_used(tmp_path: Path) -> None:
    write(tmp_path, "fuse", a_recipe("fusing", FUSE))
    write(tmp_path, "split", a_recipe("splitting", SPLIT))
    inner = "steps:\n  - use: ./fuse.yaml\n    keep: [a]\n  - fold: {}\n  - raise-opset: 13\n"
    write(tmp_path, "inner", HEAD + inner)
    steps = "steps:\n  - use: ./inner.yaml\n    keep: [b, a]\n  - use: ./split.yaml\n"
    outer = Recipe.load(write(tmp_path, "outer", HEAD + steps))
    kept = [getattr(step, "keep", None) for step in outer.steps]
    assert kept == [("a", "b"), ("b", "a"), None, ()]
    write(tmp_path, "kept", HEAD + "steps:\n  - use: ./fuse.yaml\n    keep: [a]\n")
    write(tmp_path, "other", a_recipe("other", ("o", "y = Neg (x)", "y = Abs (x)")))
    listed = "steps:\n  - use: [./kept.yaml, ./other.yaml]\n    keep: [c]\n"
    (both,) = Recipe.load(write(tmp_path, "two", HEAD + listed)).steps
    assert getattr(both, "keep", None) == ("a", "c")


def test_rules_of_what_is_used_are_taken_alone(tmp_path: Path) -> None:
    write(tmp_path, "fuse", a_recipe("fusing", FUSE))
    write(tmp_path, "split", a_recipe("splitting", SPLIT))
    write(tmp_path, "both", HEAD + "steps: [use: ./fuse.yaml, fold: {}, use: ./split.yaml]\n")
    one = Recipe.load(
        write(tmp_path, "one", HEAD + "steps:\n  - use: ./both.yaml\n    only: [split]\n")
    )
    assert [rule.id for rule in one.rules] == ["split"]
    assert len(one.steps) == 1  # steps that are no rules are none of those
    named = HEAD + "steps:\n  - use: ./both.yaml\n    only: [splitting/split]\n"
    assert Recipe.load(write(tmp_path, "one", named)).rules == one.rules
    listed = "steps:\n  - use: [./fuse.yaml, ./split.yaml]\n    only: [fuse]\n"
    assert [r.id for r in Recipe.load(write(tmp_path, "two", HEAD + listed)).rules] == ["fuse"]


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
