"""What is said of the language of recipes is so: tables, examples, the pages, the skeleton."""

import json
import os
import re
from pathlib import Path
from textwrap import indent

import numpy as np
import pytest
from command import run
from command_files import refused
from expressions_judged import Fake

from surgeon import dims, language
from surgeon.builders import BUILDERS
from surgeon.cases import reading
from surgeon.cases.models import CaseModel, FileModel, FillingModel, RefusalModel
from surgeon.cases.reading import read_cases
from surgeon.cases.running import problems_of
from surgeon.document import read
from surgeon.errors import Location, RecipeError
from surgeon.expressions import Expression, Unknown
from surgeon.expressions.properties import PROPERTIES
from surgeon.functions import FUNCTIONS
from surgeon.functions.examples import EXAMPLES
from surgeon.functions.values import describe
from surgeon.recipe import Recipe, bundled

ROOT = Path(__file__).parent.parent
HERE = Location("r.yaml", 1, 1)
SCOPE = {"x": Fake(shape=[2, dims.symbol("t", 1)], rank=2, dtype="float16")}


def shown(value: object) -> str:
    return describe(value.tolist() if isinstance(value, np.ndarray) else value)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_an_example_of_a_function_gives_what_is_said(name: str) -> None:
    text, gives = EXAMPLES[name]
    assert text.startswith(f"{name}(")
    assert shown(Expression.parse(text, HERE).evaluate(SCOPE)) == gives


def test_every_function_and_builder_has_a_sentence() -> None:
    assert EXAMPLES.keys() == FUNCTIONS.keys()
    words = [*language.functions(), *language.builders(), *language.properties()]
    assert len(words) == len(FUNCTIONS) + len(BUILDERS) + len(PROPERTIES)
    assert [word.name for word in words if not word.about.endswith((".", ":"))] == []
    known = {name for name, _, _ in ((w.name.partition("(")) for w in language.builders())}
    assert known == set(BUILDERS)


def test_every_key_has_a_sentence() -> None:
    for title, words in language.keys().items():
        for word in words:
            assert word.about.endswith("."), f"{title}: {word.name}"
            assert not word.about.startswith("None"), f"{title}: {word.name}"


def test_examples_of_properties_are_expressions() -> None:
    for _, example in PROPERTIES.values():
        Expression.parse(example, HERE)


def test_what_a_property_of_nothing_is() -> None:
    assert isinstance(Expression.parse("x.value", HERE).evaluate(SCOPE), Unknown)


def test_the_schema_of_cases_has_the_keys_that_are_read() -> None:
    assert tuple(FileModel.model_fields) == reading.FILE_KEYS
    assert set(CaseModel.model_fields) == set(reading.CASE_KEYS)
    assert tuple(RefusalModel.model_fields) == reading.REFUSAL_KEYS
    assert tuple(FillingModel.model_fields) == reading.FILLING_KEYS
    schema = json.loads(run("recipes", "schema", "--cases").output)
    assert schema["properties"]["cases"]["items"] == {"$ref": "#/$defs/CaseModel"}
    assert "rules" in json.loads(run("recipes", "schema").output)["properties"]


@pytest.mark.parametrize("name", sorted(bundled()))
def test_the_schema_of_cases_takes_the_cases_of_bundled_recipes(name: str) -> None:
    path = bundled()[name]
    FileModel.model_validate(read(path.with_name(f"{path.stem}.cases.yaml")).plain())


def test_functions_and_builders_are_listed() -> None:
    text = run("recipes", "functions").output
    assert ".consumers\n  How many inputs of nodes read it" in text
    assert "is_divisible(dividend, divisor)\n" in text
    assert "  as in is_divisible(4 * x.shape[1], 2) gives True\n" in text
    plain = json.loads(run("recipes", "functions", "--json").output)
    assert plain["functions"][0]["name"] == "abs(value)"
    assert plain["properties"][0]["name"] == ".shape"
    assert "adaptive_pool(spatial, kind)\n" in run("recipes", "builders").output
    assert len(json.loads(run("recipes", "builders", "--json").output)) == len(BUILDERS)


def test_a_recipe_to_begin_with_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("recipes", "new", "my-rule")
    assert result.exit_code == 0, result.output
    assert result.output.split() == ["my-rule.yaml", "my-rule.cases.yaml"]
    outcome = run("test", "my-rule.yaml")
    assert outcome.exit_code == 0, outcome.output
    assert "2 cases hold" in outcome.output
    assert run("recipes", "show", "my-rule.yaml").exit_code == 0


def test_a_recipe_to_begin_with_is_written_over_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.yaml").write_text("mine")
    Path("two.cases.yaml").write_text("mine too")
    refused(run("recipes", "new", "one"), 5, "there is such a file already")
    refused(run("recipes", "new", "two.yaml"), 5, "there is such a file already")
    refused(run("recipes", "new", "sub/three"), 5, "Make the folder first.")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.yaml", "two.cases.yaml"]
    assert Path("one.yaml").read_text() == "mine"
    refused(run("recipes", "new", "My Rule"), 2, "`My Rule` is no name of a recipe")
    refused(run("recipes", "new", "clean"), 2, "a recipe `clean` comes with surgeon")
    refused(run("recipes", "new", "nowhere/three"), 5, "cannot be written")


PAGE, SURGERIES = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("language", "surgeries")
)
HEAD = "surgeon: 1\nname: example\nrules:\n"


def blocks(page: str) -> list[tuple[int, str, str]]:
    """Of each block of cases in a page: its line, the recipe in front of it, and the cases."""
    found, rules = [], ""
    for match in re.finditer(r"```yaml\n(.*?)```", page, re.DOTALL):
        text = match[1]
        if text.startswith("- case:"):
            line = page.count("\n", 0, match.start()) + 2
            found.append((line, rules, "cases:\n" + indent(text, "  ")))
        else:
            rules = text if text.startswith("surgeon:") else HEAD + indent(text, "  ")
    return found


@pytest.mark.parametrize(("line", "rules", "text"), blocks(PAGE) + blocks(SURGERIES))
def test_the_examples_of_the_pages_hold(line: int, rules: str, text: str, tmp_path: Path) -> None:
    recipe = Recipe.parse(rules)
    path = tmp_path / "example.cases.yaml"
    path.write_text(text, encoding="utf-8")
    found = read_cases(path, [rule.id for rule in (*recipe.rules, *recipe.changes)])
    wrong = {case.title: list(problems_of(case, recipe)) for case in found}
    assert {title: each for title, each in wrong.items() if each} == {}, f"line {line}"


def test_every_block_of_the_page_is_run_and_every_rule_has_a_case() -> None:
    for page in (PAGE, SURGERIES):
        assert page.count("```yaml") == 2 * len(blocks(page))
        for _, rules, text in blocks(page):
            recipe = Recipe.parse(rules)
            for rule in (*recipe.rules, *recipe.changes):
                assert rule.id in text or rule.recipe in bundled()


def test_the_recipe_that_joins_a_file_is_one(tmp_path: Path) -> None:
    text = SURGERIES[SURGERIES.index("## Two files") :]
    lines = [line[4:] for line in text.splitlines()[2:9]]
    (tmp_path / "nms.onnx").touch()
    recipe = Recipe.parse("\n".join(lines), file=str(tmp_path / "r.yaml"))
    assert recipe.extensions[0].meets == (("detection", "output0"),)
    assert recipe.extensions[0].brings == ("config",)


def test_links_of_the_page_lead_to_its_headings() -> None:
    heads = {line[3:].lower() for line in SURGERIES.splitlines() if line.startswith("## ")}
    known = {re.sub(r"[^a-z0-9 -]", "", head).replace(" ", "-") for head in heads}
    assert set(re.findall(r"\]\(#([a-z-]+)\)", SURGERIES)) <= known


def test_the_page_names_every_key_and_step() -> None:
    for words in language.keys().values():
        for word in words:
            assert f"`{word.name}" in PAGE or f"{word.name}:" in PAGE, word.name


@pytest.mark.parametrize("name", ["token", "../token.yaml", "link.yaml"])
def test_what_is_used_and_is_no_recipe_is_not_quoted(tmp_path: Path, name: str) -> None:
    """A recipe may be a stranger's, and name any file of whoever reads it."""
    folder = tmp_path / "recipes"
    folder.mkdir()
    for token in (folder / "token", tmp_path / "token.yaml"):
        token.write_text("key: secret\n")
    if name == "link.yaml":
        if os.name == "nt":
            pytest.skip("links want rights there")
        (folder / name).symlink_to("token")
    outer = folder / "outer.yaml"
    outer.write_text(f"surgeon: 1\nname: outer\nsteps:\n  - use: ./{name}\n")
    with pytest.raises(RecipeError) as raised:
        Recipe.load(str(outer))
    assert raised.value.what.endswith("` is no recipe")
    assert "key" not in str(raised.value).replace("token", "")
    assert "secret" not in str(raised.value)
