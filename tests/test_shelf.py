"""Bundled recipes that were read once say what their files say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from newest import RECIPES, needs_opset, needs_recipe

from surgeon.builders import BUILDERS
from surgeon.document import read_text
from surgeon.errors import Location
from surgeon.expressions import truth
from surgeon.recipe import Recipe, bundled
from surgeon.recipe.file import read_file
from surgeon.recipe.make import kept
from surgeon.recipe.reading import Known
from surgeon.recipe.shelf import KEPT, frozen, shelved, thawed

BUNDLED = sorted(bundled())


def test_what_is_kept_is_not_stale() -> None:
    needs_opset(max(RECIPES.values()))
    there = {path.name: path.read_text(encoding="utf-8") for path in KEPT.glob("*.json")}
    assert there == kept(), "say `make docs`"


@pytest.mark.parametrize("stem", BUNDLED)
def test_what_is_kept_is_what_the_file_says(stem: str) -> None:
    needs_recipe(stem)
    path = bundled()[stem]
    text = read_text(path)
    found = shelved(stem, text, str(path))
    read = read_file(text, str(path), Known(builders=BUILDERS))
    assert found == read
    for one, other in zip(found.steps, read.steps, strict=True):
        for rule, same in zip(getattr(one, "rules", ()), getattr(other, "rules", ()), strict=True):
            assert [n.location for n in rule.match.nodes] == [n.location for n in same.match.nodes]
            for expression, again in zip(rule.where, same.where, strict=True):
                places = [expression.place(name) for name in sorted(expression.names)]
                assert places == [again.place(name) for name in sorted(again.names)]


def test_a_text_that_was_edited_is_read() -> None:
    path = bundled()["clean"]
    text = read_text(path)
    assert shelved("clean", text, str(path)) is not None
    assert shelved("clean", text + "\n# more\n", str(path)) is None
    assert shelved("no-such-recipe", text, str(path)) is None


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"digest": 1}', '{"digest": "", "written": 1}'])
def test_what_is_damaged_is_read(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "clean.json").write_text(damage, encoding="utf-8")
    monkeypatch.setattr("surgeon.recipe.shelf.KEPT", tmp_path)
    path = bundled()["clean"]
    assert shelved("clean", read_text(path), str(path)) is None
    assert Recipe.load(path).rules


def test_what_a_recipe_can_hold_comes_back() -> None:
    array = np.array([[1.5, -np.inf]], np.float32)
    value = ("a", 1, 2.5, None, True, frozenset({"x"}), Location("f", 3, 4), {"k": ("v",)})
    text = json.dumps([frozen(value), frozen(array)])
    back, same = json.loads(text)
    assert thawed(back, "f") == value
    assert thawed(same, "f").dtype == array.dtype
    assert np.array_equal(thawed(same, "f"), array)


def test_a_condition_is_compiled_when_it_is_asked() -> None:
    path = bundled()["adaptive-pool"]
    found = shelved("adaptive-pool", read_text(path), str(path))
    assert found is not None
    rules = found.steps[0].rules  # type: ignore[union-attr]
    condition = next(rule.where[0] for rule in rules if rule.where)
    assert condition._made is None
    assert truth(condition, {}) is None
    assert condition._made is not None


def test_a_bundled_recipe_brings_no_parser() -> None:
    code = (
        "import sys; from surgeon.recipe import Recipe; Recipe.load('clean'); Recipe.load('aten'); "
        "print(sorted({'lark', 'yaml', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
