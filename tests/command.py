"""The command in this process, and a recipe that is right; `conftest.py` has it as a file."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner

from surgeon.cli import app

DOUBLE = """\
surgeon: 1
name: double
rules:
  - id: double-neg
    why: Twice turned round is where it was.
    exact: bit
    match: |
      h = Neg (x)
      y = Neg (h)
    replace: y = Identity (x)
"""


def run(*arguments: object) -> Any:
    """`surgeon` with these arguments."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])
