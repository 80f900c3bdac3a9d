"""The README: what it shows is what happens."""

from pathlib import Path
from typing import Any

import onnx
import onnx.parser
from command import run

import surgeon
from surgeon.cli import EXIT_CODES

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


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
