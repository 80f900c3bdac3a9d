"""Bundled recipes as they were read once: JSON beside this file, so that no parser is imported.

Reading `clean` from its YAML, with what reads it, is a third of what a small model costs. What is
kept says of which text it was read, and stands for that text alone. `make.py` writes it; a test
fails where it is stale.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from surgeon.errors import Location
from surgeon.expressions import Expression
from surgeon.extension import Extension
from surgeon.notation.pattern import Argument, NodePattern, Pattern
from surgeon.recipe.rules import (
    AsReadStep,
    BuilderCall,
    FoldStep,
    FreeBatchStep,
    FreeSizesStep,
    HeaderStep,
    IrVersionStep,
    LowerOpsetStep,
    NamesStep,
    PlainAttributesStep,
    PlainMetadataStep,
    RaiseOpsetStep,
    Rule,
    RulesStep,
    ShareWeightsStep,
    SimplifyStep,
    StateShapesStep,
    UnrollStep,
)
from surgeon.recipe.written import Use, Written

KEPT = Path(__file__).with_name("kept")
_KINDS: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(Argument, BuilderCall, FoldStep, FreeBatchStep, LowerOpsetStep, NodePattern, Pattern),
        *(RaiseOpsetStep, Rule, RulesStep, SimplifyStep, Use, Written),
        *(AsReadStep, Extension, IrVersionStep, PlainAttributesStep, NamesStep),
        ShareWeightsStep,
        UnrollStep,
        FreeSizesStep,
        StateShapesStep,
        PlainMetadataStep,
        HeaderStep,
    )
}


def shelved(stem: str, text: str, file: str) -> Written | None:
    """A bundled recipe as it was read from this very text; None where that is not kept.

    Args:
        stem: Its name.
        text: What its file holds now.
        file: How places in it call the file.
    """
    try:
        kept = json.loads((KEPT / f"{stem}.json").read_bytes())
        if kept["digest"] != digest_of(text):
            return None
        written = thawed(kept["written"], file)
    except (OSError, ValueError, KeyError, TypeError):  # not there, or not whole
        return None
    return written if isinstance(written, Written) else None


def digest_of(text: str) -> str:
    """Of a text its sha256."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def frozen(value: Any) -> Any:
    """What a recipe holds as JSON: a list is a word for what it stands for, and its parts."""
    if isinstance(value, Location):
        return ["@", value.line, value.column]
    if isinstance(value, Expression):
        names = sorted(value.names)
        return ["=", value.text, frozen(value.location), names, value.source]
    if isinstance(value, NodePattern):  # what its text is is right, and no error asks for places
        return ["NodePattern", *map(frozen, value[:-1])]
    if isinstance(value, tuple):
        word = type(value).__name__ if type(value) in _KINDS.values() else "()"
        return [word, *map(frozen, value)]
    if isinstance(value, frozenset):
        return ["{}", *map(frozen, sorted(value))]
    if isinstance(value, Mapping):
        return ["{:}", *([key, frozen(each)] for key, each in value.items())]
    if isinstance(value, np.ndarray):
        return ["[]", value.dtype.str, list(value.shape), value.reshape(-1).tolist()]
    assert value is None or isinstance(value, str | int | float), "a recipe holds nothing else"
    return value


def thawed(value: Any, file: str) -> Any:
    """What `frozen` was given, in a file of this name."""
    if not isinstance(value, list):
        return value
    word, *parts = value
    kind = _KINDS.get(word)
    if kind is not None:
        return kind(*[thawed(part, file) for part in parts])
    return _OTHERS[word](parts, file)


def _expression(parts: list[Any], file: str) -> Expression:
    text, place, names, source = parts
    return Expression(text, thawed(place, file), frozenset(names), source)


def _array(parts: list[Any], _file: str) -> Any:
    dtype, shape, values = parts
    return np.array(values, dtype).reshape(shape)


_OTHERS: Mapping[str, Callable[[list[Any], str], Any]] = {
    "@": lambda parts, file: Location(file, *parts),
    "=": _expression,
    "()": lambda parts, file: tuple([thawed(part, file) for part in parts]),
    "{}": lambda parts, file: frozenset(thawed(part, file) for part in parts),
    "{:}": lambda parts, file: MappingProxyType({k: thawed(each, file) for k, each in parts}),
    "[]": _array,
}
