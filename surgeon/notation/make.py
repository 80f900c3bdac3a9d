"""Writes `tables.json`: what lark computes of the grammar, as `lark.tools.serialize` writes it.

Run: python -m surgeon.notation.make
"""

from __future__ import annotations

import json
import sys

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from surgeon.notation.grammar import GRAMMAR, TABLES, computed

if __name__ == "__main__":
    data, memo = computed().memo_serialize([TerminalDef, Rule])
    kept = {
        "lark": lark.__version__,
        "grammar": GRAMMAR,
        "tables": {"data": data, "memo": memo},
    }
    TABLES.write_text(json.dumps(kept, separators=(",", ":")) + "\n", encoding="utf-8")
    sys.stdout.write(f"{TABLES}: {TABLES.stat().st_size} bytes\n")
