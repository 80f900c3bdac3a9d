"""The pages in docs/ are what the recipes say today."""

from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from surgeon import handbook
from surgeon.cli import app

DOCS = Path(__file__).parent.parent / "docs"
made = cache(handbook.pages)


@pytest.mark.parametrize("name", ["recipes.md", "operators.md", "reference.md", "json.md"])
def test_the_page_is_not_stale(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == made()[name], (
        "say: surgeon recipes pages docs/"
    )


@pytest.mark.slow
def test_pages_are_written_into_a_folder(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["recipes", "pages", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "| `relu` |" in (tmp_path / "operators.md").read_text(encoding="utf-8")
    assert "## shape-chains" in (tmp_path / "recipes.md").read_text(encoding="utf-8")
