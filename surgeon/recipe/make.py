"""Writes `kept/`: what bundled recipes say, for `shelf` to give without reading them again.

Run: python -m surgeon.recipe.make
"""

from __future__ import annotations

import json
from typing import Any

from surgeon.builders import BUILDERS
from surgeon.document import read_text
from surgeon.recipe import bundled
from surgeon.recipe.file import read_file
from surgeon.recipe.reading import Known
from surgeon.recipe.shelf import KEPT, digest_of, frozen


def kept() -> dict[str, str]:
    """The text of each file of `kept/`, by its name."""
    found = {}
    for stem, path in bundled().items():
        text = read_text(path)
        written = read_file(text, str(path), Known(builders=BUILDERS))
        content: dict[str, Any] = {"digest": digest_of(text), "written": frozen(written)}
        found[f"{stem}.json"] = json.dumps(content, separators=(",", ":")) + "\n"
    return found


if __name__ == "__main__":
    KEPT.mkdir(exist_ok=True)
    texts = kept()
    for path in KEPT.glob("*.json"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (KEPT / name).write_text(text, encoding="utf-8", newline="\n")
