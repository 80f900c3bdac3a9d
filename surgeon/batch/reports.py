"""`report.jsonl` in DEST: one row a line, by name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from surgeon.batch.row import Row
from surgeon.files import write_whole

ROWS = "report.jsonl"
PAGE = "report.html"
RESERVED = (ROWS, PAGE)  # no model and no data of one may have these names in DEST


def write_rows(rows: Iterable[Row], dest: Path) -> None:
    """Write every row, whole or not at all. Names that are not Unicode are escaped."""
    lines = [json.dumps(row.to_dict()) for row in sorted(rows, key=lambda row: row.name)]
    write_whole(dest / ROWS, "".join(f"{line}\n" for line in lines).encode())
