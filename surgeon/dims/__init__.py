"""Exact symbolic integers: polynomials over named atoms, in a normal form.

A dimension is an `int` or an `Expr`. Equal polynomials are equal objects by `==` and `hash`, so a
shape can be a dictionary key. What is no polynomial (a floor division, a maximum) becomes an atom
that carries its definition; equal definitions are equal atoms. Nothing here is ever guessed: a
comparison that cannot be proven from the bounds of the atoms is `None`.
"""

from surgeon.dims.atoms import Atom, TooLarge
from surgeon.dims.polynomials import (
    Dim,
    Expr,
    at_most,
    bounds,
    exact_quotient,
    floor_divide,
    maximum,
    minimum,
    not_negative,
    symbol,
)
from surgeon.dims.questions import (
    constant_target,
    counts,
    equal,
    evaluate,
    infers,
    is_cut_off,
    is_filled,
    limits,
    named,
    product,
    solve,
    substitute,
    symbols,
)

__all__ = [
    "Atom",
    "Dim",
    "Expr",
    "TooLarge",
    "at_most",
    "bounds",
    "constant_target",
    "counts",
    "equal",
    "evaluate",
    "exact_quotient",
    "floor_divide",
    "infers",
    "is_cut_off",
    "is_filled",
    "limits",
    "maximum",
    "minimum",
    "named",
    "not_negative",
    "product",
    "solve",
    "substitute",
    "symbol",
    "symbols",
]
