"""The notation of recipes: node patterns as text and as data, and the operators they may name."""

from surgeon.notation.operators import check_named, check_operators
from surgeon.notation.pattern import (
    Argument,
    AttributeValue,
    NodePattern,
    Pattern,
    frozen,
    print_pattern,
)
from surgeon.notation.syntax import labels_of, parse_pattern, parse_replacement

__all__ = [
    "Argument",
    "AttributeValue",
    "NodePattern",
    "Pattern",
    "check_named",
    "check_operators",
    "frozen",
    "labels_of",
    "parse_pattern",
    "parse_replacement",
    "print_pattern",
]
