"""The README, and the page on which recipe to take: what they show is what happens."""

import re
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import typer
from command import run

import surgeon
from surgeon.cli import EXIT_CODES, app
from surgeon.targets import targets

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
OTHERS = (ROOT / "docs" / "from-other-tools.md").read_text(encoding="utf-8")
WHICH = (ROOT / "docs" / "which.md").read_text(encoding="utf-8")
BUNDLED = {p.stem for p in (ROOT / "recipes").glob("*.yaml") if not p.stem.endswith(".cases")}


def test_the_readme_shows_what_the_demo_prints(samples: Path, tmp_path: Path) -> None:
    result = run(
        "apply", "dymn", samples / "dymn_tiny" / "dymn_tiny.onnx", tmp_path / "o", "--no-verify"
    )
    said = result.output.splitlines()[1]
    assert said.startswith("dymn: ")
    assert said in README, f"`make demo` says `{said}`: paste its output into README.md anew"


def test_the_readme_names_every_exit_code() -> None:
    for code, what in EXIT_CODES:
        assert f"| {code} | {what} |" in README


def test_the_readmes_recipe_is_one(tmp_path: Path) -> None:
    block = README.partition("```yaml\n")[2].partition("```")[0]
    (rule,) = surgeon.Recipe.parse(block).rules
    assert rule.id == "adaptive-avg-pool2d-to-one"


def test_the_readmes_rule_works() -> None:
    block = README.partition("```python\n@surgeon.rule")[2].partition("\nresult")[0]
    names: dict[str, Any] = {"surgeon": surgeon}
    exec(f"@surgeon.rule{block}", names)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "my.domain" : 1]>'
        "g (float[n] x) => (float[n] y) { h = my.domain.Foo (x)  y = Neg (h) }"
    )
    result = surgeon.apply(model, names["foo_as_relu"])
    assert dict(result.report.after) == {"Relu": 1, "Neg": 1}
    assert result.report.verdict is not None
    assert result.report.verdict.status == "runs"


def named(page: str) -> set[str]:
    """The words of what the page sets as code, in a line of text."""
    return {
        word
        for line in page.splitlines()
        for code in re.findall(r"`([^`]+)`", line)
        for word in code.split()
    }


def test_every_recipe_stands_beside_a_complaint_or_a_runtime() -> None:
    assert {name for name in BUNDLED if name.startswith("for-")} <= named(README)
    assert {name for name in BUNDLED if not name.startswith("for-")} <= named(WHICH)


def test_the_recipes_beside_complaints_are_there() -> None:
    beside = {word for row in WHICH.splitlines() for word in named(row.rpartition(" | ")[2])}
    recipes = {word for word in beside if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", word)}
    assert recipes
    assert recipes - BUNDLED <= {"in-front", "lower-opset", "raise-opset", "ir-version"}


def test_what_stands_beside_options_of_other_tools_is_there() -> None:
    beside = {word for row in OTHERS.splitlines() for word in named(row.rpartition(" | ")[2])}
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    inner = [each for each in group.commands.values() if isinstance(each, typer.core.TyperGroup)]
    commands = [*group.commands.values(), *(c for each in inner for c in each.commands.values())]
    options = {name for each in commands for option in each.params for name in option.opts}
    assert {word for word in beside if word.startswith("--")} <= options
    codes = re.findall(r"`surgeon (\w+)", OTHERS)
    assert {*codes} <= group.commands.keys()
    names = {word for word in beside if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", word)}
    rules = {rule.id for rule in surgeon.Recipe.load("clean").rules}
    assert names - BUNDLED - rules <= {"in-front", "coreml-mlprogram"}
    assert {"coreml-mlprogram", "nnapi"} <= {*targets()}
