"""The report of a batch in a real browser: it sorts, it filters, and nothing of a stranger runs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from surgeon.batch import Row
from surgeon.render.batch_page import batch_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
EVIL = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>.onnx"
ROWS = [
    Row("b.onnx", "repaired", nodes=(10, 9), size=2000, seconds=3.0),
    Row("c.onnx", "refused", EVIL, EVIL, size=300, seconds=20.0),
    Row("a.onnx", "repaired", nodes=(9, 2), size=10_000, seconds=0.5),
    Row(EVIL, "broken", EVIL, size=5, rules={EVIL: 1}, verdict=("runs", EVIL)),
    *(Row(f"z/{'n' * 240}{i}.onnx", "unchanged", "r" * 3000, size=100_000 + i) for i in range(97)),
]


@pytest.fixture(scope="module")
def browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser here: none of {', '.join(BROWSERS)}")
    return found


def look(browser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str) -> str:
    """The page as the browser has it after the page's own script and some more of it."""
    module = sys.modules["surgeon.render.batch_page"]
    monkeypatch.setattr(module, "_SCRIPT", f"{module._SCRIPT}{more}")  # type: ignore[attr-defined]
    path = tmp_path / "report.html"
    path.write_text(batch_page(ROWS, title=EVIL), encoding="utf-8")
    command = [
        *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *(f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,900"),
        *("--virtual-time-budget=2000", "--dump-dom", path.as_uri()),
    ]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    return done.stdout.decode()


def shown(page: str) -> list[str]:
    """The names of the rows that are seen, in order."""
    rows = re.findall(
        r"<tr data-outcome=\"\w+\"( hidden=\"\")?><td><div class=\"text\">(.*?)</", page
    )
    return [name for hidden, name in rows if not hidden]


@pytest.mark.slow
def test_nothing_of_a_stranger_runs(
    browser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = "document.body.dataset.wide = document.documentElement.scrollWidth;"
    more += "document.body.dataset.tall = Math.max(...[...body.rows].map(r => r.offsetHeight));"
    page = look(browser, tmp_path, monkeypatch, more)
    assert "<title>surgeon batch</title>" in page
    assert len(shown(page)) == 101
    wide, tall = (int(re.findall(rf'data-{key}="(\d+)"', page)[0]) for key in ("wide", "tall"))
    assert wide <= 1400, "the page scrolls sideways"
    assert tall < 200, "a long text makes its row taller than the others"


@pytest.mark.slow
def test_columns_sort_and_buttons_filter(
    browser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = look(browser, tmp_path, monkeypatch, "heads[6].click(); heads[6].click();")
    sizes = [int(each) for each in re.findall(r'data-value="(\d+)">[\d.,]+ (?:bytes|KiB)', page)]
    assert sizes == sorted((row.size for row in ROWS), reverse=True)
    page = look(browser, tmp_path, monkeypatch, "heads[2].click(); buttons[1].click();")
    assert shown(page)[:2] == ["a.onnx", "b.onnx"]
    assert len(shown(page)) == 2
