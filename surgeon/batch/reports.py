"""`report.jsonl` in DEST: one row a line, by name."""

from __future__ import annotations

import json
from collections.abc import Iterable

from surgeon.batch.row import Row

ROWS = "report.jsonl"
PAGE = "report.html"
RESERVED = (ROWS, PAGE)  # no model and no data of one may have these names in DEST


def rows_as_text(rows: Iterable[Row]) -> bytes:
    """A line of JSON for each row, by name. Names that are not Unicode are escaped."""
    lines = [json.dumps(row.to_dict()) for row in sorted(rows, key=lambda row: row.name)]
    return "".join(f"{line}\n" for line in lines).encode()
