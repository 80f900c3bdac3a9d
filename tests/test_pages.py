"""What the pages point at is there: links, headings, files, targets of make, counts."""

import re
from pathlib import Path

import pytest

import surgeon

ROOT = Path(__file__).parent.parent
MADE = ("recipes.md", "operators.md", "reference.md")  # of the code, and long
PAGES = sorted(
    page
    for page in (
        *ROOT.glob("*.md"),
        ROOT / "samples" / "README.md",
        *(ROOT / "docs").rglob("*.md"),
    )
    if page.name not in MADE
)
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def headings(page: Path) -> set[str]:
    """As links name them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pages
def test_a_link_leads_somewhere(page: Path) -> None:
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        name, _, heading = link.partition("#")
        if "://" in link:
            continue
        there = page.parent / name if name else page
        if not there.exists() or (heading and heading not in headings(there)):
            dead.append(link)
    assert dead == []


@pages
def test_a_path_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"(?<![\w/.<-])((?:tests|surgeon|recipes|samples)/[\w./*-]*\w\*?)", text)
    lost = [
        name
        for name in named
        if "NAME" not in name and not list(ROOT.glob(name)) and not list(ROOT.glob(f"{name}*"))
    ]
    assert lost == []


@pages
def test_a_target_of_make_is_one(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8")))
    assert {one for one in named if not re.search(rf"^{one}:", makefile, re.MULTILINE)} == set()


@pages
def test_a_name_of_the_package_is_one(page: Path) -> None:
    named = re.findall(r"\bsurgeon\.([a-z_]+)", page.read_text(encoding="utf-8"))
    known = {path.stem for path in (ROOT / "surgeon").iterdir()} | set(surgeon.__all__)
    assert set(named) - known == set()


def test_the_readme_counts_the_operators_of_aten() -> None:
    pattern = r"(\d+) operators of PyTorch"
    (number,) = re.findall(pattern, (ROOT / "docs" / "operators.md").read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"[{number} operators](docs/operators.md)" in readme
