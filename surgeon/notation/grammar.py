"""The grammar of patterns and replacements, and its parser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark

TABLES = Path(__file__).with_name("tables.json")

GRAMMAR = r"""
start: (node | ";")*
node: label? outputs "=" operator attributes? inputs attributes?
label: "[" (NAME | STRING) "]"
outputs: name ("," [name])*
operator: qualified ("|" qualified)* [":" name]
qualified: NAME ("." NAME)*
inputs: "(" [argument] ("," [argument])* ")"
?argument: operand | rest | computed
operand: name (OPTIONAL | THROUGH)*
rest: "*" NAME
computed: "@" NAME
attributes: "<" [_attribute ("," _attribute)*] ">"
_attribute: attribute | rest
attribute: name [":" NAME] "=" (computed | tensor | list | _scalar)
tensor: NAME [dims] [NAME] "{" [_scalar ("," _scalar)*] "}"
dims: "[" [INT ("," INT)*] "]"
list: "[" [_scalar ("," _scalar)*] "]"
_scalar: INT | FLOAT | STRING | NAME
?name: NAME | STRING
OPTIONAL: "?"
THROUGH: "~"
NAME: /[A-Za-z_][A-Za-z0-9_]*/
STRING: /"([^"\\\n]|\\[^\n])*"/
FLOAT.2: /[-+]?[0-9]+\.[0-9]*([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]inf\b/
INT.1: /[-+]?[0-9]+/
%ignore /[ \t\r\n\f]+/
%ignore /#[^\n]*/
"""


@cache
def parser() -> Lark:
    """The parser, from the tables of `tables.json`.

    Lark takes as long to compute them as it takes to read the 58 rules of `clean`. They are of one
    lark and one grammar, and computed where either is another (`python -m surgeon.notation.make`
    writes them anew).
    """
    import lark

    kept = json.loads(TABLES.read_text(encoding="utf-8"), object_pairs_hook=_with_numbers)
    if kept["lark"] == lark.__version__ and kept["grammar"] == GRAMMAR:
        return lark.Lark.load(kept["tables"])
    return computed()


def computed() -> Lark:
    """The parser, with tables that lark computes."""
    from lark import Lark

    return Lark(GRAMMAR, parser="lalr", lexer="basic", maybe_placeholders=True)


def _with_numbers(pairs: Sequence[tuple[str, Any]]) -> dict[str | int, Any]:
    """The keys of the tables are numbers, and those of JSON are text."""
    return {int(key) if key.isdigit() else key: value for key, value in pairs}
