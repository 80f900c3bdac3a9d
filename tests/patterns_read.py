"""Patterns that are read, and what is said of those that are not."""

from __future__ import annotations

import pytest

from surgeon.errors import Location, RecipeError
from surgeon.notation import NodePattern, parse_pattern, parse_replacement

HERE = Location("r.yaml", 10, 5)


def only_node(text: str) -> NodePattern:
    (node,) = parse_pattern(text, HERE).nodes
    return node


def error_of(text: str, *, replacement: bool = False) -> str:
    with pytest.raises(RecipeError) as caught:
        (parse_replacement if replacement else parse_pattern)(text, HERE)
    return str(caught.value)
