"""The grammar of patterns: its kept tables, and whatever is printed or typed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import lark
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from patterns_read import HERE

from surgeon.document import read
from surgeon.errors import RecipeError
from surgeon.notation import (
    Argument,
    NodePattern,
    Pattern,
    grammar,
    parse_pattern,
    parse_replacement,
    print_pattern,
)
from surgeon.notation.syntax import _WORDS
from surgeon.recipe import bundled


def bundled_texts() -> Iterator[str]:
    """What the bundled recipes look for and write."""
    for path in bundled().values():
        content = read(path).plain()
        steps = [content, *content.get("steps", ())]
        for rule in (rule for step in steps for rule in step.get("rules", ())):
            yield from (rule[key] for key in ("match", "replace") if isinstance(rule[key], str))


def parsed(with_tables: lark.Lark, text: str) -> Any:
    """The tree with the places of its tokens, or what is wrong, and where."""
    try:
        tree = with_tables.parse(text)
    except UnexpectedCharacters as error:
        return error.line, error.column, error.char
    except UnexpectedToken as error:
        return error.token, error.line, error.column, error.accepts or error.expected
    tokens = tree.scan_values(lambda value: isinstance(value, lark.Token))
    return tree, [(token.line, token.column, token.end_column) for token in tokens]


def test_the_tables_are_of_this_grammar_and_read_as_computed_ones() -> None:
    kept = json.loads(grammar.TABLES.read_text(encoding="utf-8"))
    assert kept["grammar"] == grammar.GRAMMAR, "run python -m surgeon.notation.make"
    if kept["lark"] != lark.__version__:
        pytest.skip(f"the tables are of lark {kept['lark']}, and {lark.__version__} is installed")
    ours, other = grammar.parser(), grammar.computed()
    assert ours.source_path != other.source_path  # one of them is from the tables
    draw = random.Random(0)
    texts = list(bundled_texts())
    assert len(texts) > 200
    for text in texts:
        at, put = draw.randrange(len(text)), draw.choice('()<>=,:;@*?~|"[]{} 1a_.!')
        for each in (text, text[:at] + put + text[at:], text[:at], text[:at] + put):
            assert parsed(ours, each) == parsed(other, each)


def test_another_lark_computes_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lark, "__version__", "another")
    monkeypatch.setattr(lark.Lark, "load", None)
    grammar.parser.cache_clear()
    try:
        assert parse_pattern("y = Relu (x)", HERE).root.operators == ("Relu",)
    finally:
        grammar.parser.cache_clear()


def test_every_token_has_words() -> None:
    names = {terminal.name for terminal in grammar.computed().terminals}
    assert {name for name in names if not name.startswith("__IGNORE")} | {"$END"} == set(_WORDS)


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,3}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=5)
INTEGERS, FLOATS = st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=True)
TENSORS = st.lists(st.floats(width=32, allow_nan=False) | st.just(np.nan), max_size=3).map(
    lambda x: np.array(x, np.float32)
) | st.lists(st.booleans(), min_size=2, max_size=2).map(lambda x: np.array(x).reshape(1, 2, 1))
VALUES = st.one_of(
    INTEGERS,
    FLOATS,
    TEXTS,
    TENSORS,
    *(st.lists(x, max_size=3).map(tuple) for x in (INTEGERS, FLOATS)),
)


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """A chain in which every node also reads values of its own."""
    nodes: list[NodePattern] = []
    for index in range(draw(st.integers(1, 3))):
        outputs = draw(st.permutations([f"out{index}", *draw(st.sampled_from([[], [""], ["_"]]))]))
        flags = st.booleans()
        values = st.tuples(TEXTS.map("v ".__add__), flags, flags).map(
            lambda drawn: Argument(drawn[0], optional=drawn[1], through=drawn[2])
        )
        odd = st.sampled_from([Argument(""), Argument("_"), Argument("_", optional=True)])
        inputs = draw(st.lists(values | odd, max_size=3))
        inputs += [Argument(f"out{index - 1}")] if index else []
        inputs += draw(st.sampled_from([[], [Argument(f"rest{index}", rest=True)]]))
        while inputs and not inputs[-1].name:
            inputs.pop()
        attributes = draw(st.dictionaries(NAMES, VALUES, max_size=2))
        captures = draw(
            st.dictionaries(NAMES.map("c_".__add__), NAMES.map("k_".__add__), max_size=2)
        )
        nodes.append(
            NodePattern(
                domain=draw(st.sampled_from(["", "aten", "my.domain"])),
                operators=draw(st.lists(NAMES, min_size=1, max_size=2).map(tuple)),
                overload=draw(st.just("") | NAMES),
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                attributes=MappingProxyType(attributes),
                captures=MappingProxyType(captures),
                rest=draw(st.none() | NAMES.map("r_".__add__)),
                location=HERE,
            )
        )
    return Pattern(tuple(nodes))


@pytest.mark.slow
@given(patterns())
def test_what_is_printed_is_read_again(pattern: Pattern) -> None:
    assert parse_pattern(print_pattern(pattern), HERE) == pattern


PIECES = ["y", "=", "A", ".", "(", "x", ")", ",", "<", ">", "*", "@", "?", "~", "_", "|", ":", "1"]
PIECES += ["\n", " ", ";", "#", '"', "[", "]", "{", "}", "1.5", "-inf", "float", "é", "\\", "\0"]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text())
def test_any_text_is_a_pattern_or_a_recipe_error(text: str) -> None:
    for parse in (parse_pattern, parse_replacement):
        with suppress(RecipeError):
            assert parse(text, HERE).nodes
