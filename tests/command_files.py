"""Files for the command: a model, a recipe of one rule; and what an error of it looks like."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
ONE_RULE = """\
surgeon: 1
name: one
rules:
  - id: {id}
    why: Because a test says so.
    exact: {exact}
    match: y = {match}
    replace: y = {replace}
"""


def shell(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "surgeon", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def save(path: Path, body: str) -> Path:
    model = onnx.parser.parse_model(f"{HEAD}\n{body}")
    path.write_bytes(model.SerializeToString())
    return path


def recipe(
    folder: Path,
    match: str = "Neg (x)",
    replace: str = "Relu (x)",
    *,
    exact: str = "rounding",
    name: str = "one.yaml",
) -> Path:
    path = folder / name
    path.write_text(ONE_RULE.format(id="a-rule", exact=exact, match=match, replace=replace))
    return path


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """y = Neg(Neg(x)) + Sin(x), with a dynamic batch."""
    body = "net (float[n,4] x) => (float[n,4] y) {a = Neg(x) b = Neg(a) c = Sin(x) y = Add(b, c)}"
    return save(tmp_path / "net.onnx", body)


def refused(result: Any, code: int, *phrases: str) -> None:
    """An error is three lines, ends in its exit code, and shows no traceback."""
    assert result.exit_code == code, result.output
    assert result.output.startswith("error: ")
    assert "\n   at: " in result.output
    assert "\n mend: " in result.output
    assert "Traceback" not in result.output
    assert "\x1b" not in result.output
    for phrase in phrases:
        assert phrase in result.output
