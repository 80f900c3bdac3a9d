"""The names of operators that exporters and onnxruntime write: for what a recipe may ask for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from surgeon.schemas import operators, overloads
from surgeon.schemas.aliases import ALIASES

# What a fallback writes into PyTorch's domain that is no operator of its namespace.
_FALLBACKS = frozenset({"Constant", "DictConstruct", "If", "Placeholder"})
_FOLDER = Path(__file__).parent


def known_names(domain: str) -> frozenset[str]:
    """The operators of `aten` or `prim` that a release of PyTorch has."""
    if domain == "prim":
        return frozenset(_names()["prim"])
    return frozenset({*operators(), *_names()["aten"], *ALIASES, *_FALLBACKS})


def known_overloads(operator: str) -> frozenset[str]:
    """The overloads of an ATen operator by name, but for the one without."""
    names = {operator, operator.removesuffix("_"), ALIASES.get(operator, operator)}
    found = {each.overload for name in names for each in overloads(name)}
    return frozenset(found.union(*(_names()["aten"].get(name, ()) for name in names)) - {""})


def is_operator(domain: str, operator: str) -> bool:
    """Whether a release of PyTorch has it; what writes into its operand is `relu_`, say."""
    names = known_names(domain)
    return operator in names or operator.removesuffix("_") in names


@cache
def of_onnxruntime(domain: str) -> Mapping[str, Mapping[str, str]]:
    """The operators of a domain of onnxruntime's own, each with its attributes and their kinds.

    A kind is `int`, `floats`, `string`, ...; of another domain there are none.
    """
    text = (_FOLDER / "contrib.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Mapping[str, str]]] = json.loads(text)
    return found.get(domain, {})


@cache
def _names() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """By namespace the overloads that each operator has in any release, by name."""
    table: dict[str, dict[str, set[str]]] = {"aten": {}, "prim": {}}
    text = (_FOLDER / "names.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        space, _, name = line.partition("::")
        operator, _, overload = name.partition(".")
        table[space].setdefault(operator, set()).update({overload} - {""})
    return {
        space: {name: frozenset(each) for name, each in names.items()}
        for space, names in table.items()
    }
