"""Three-valued expressions of `where` and `let`: Python's syntax, a closed kind, no eval.

An expression is read into closures once. Evaluated, it gives a plain value, or `Unknown` with the
reason; it never raises. `and`, `or`, `not`, `all` and `any` follow Kleene: what is decided whatever
the unknown part may be, is decided.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from surgeon.errors import Location
from surgeon.expressions.compiler import Compiled, compile_expression
from surgeon.functions import DTYPES, Captured, Unknown
from surgeon.functions.values import describe, scalar_of

__all__ = ["DTYPES", "Captured", "Expression", "Unknown", "truth", "why_not"]


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression, ready to be evaluated.

    Attributes:
        text: The expression, white space made plain.
        location: Where it begins.
        names: The names it reads from the scope; not those of functions and dtypes.
        source: It as it was written, of which the closures are made when they are first asked for.
        functions: Names of functions that the scope will bring.
    """

    text: str
    location: Location
    names: frozenset[str]
    source: str = field(repr=False, compare=False)
    functions: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    _made: Compiled | None = field(default=None, repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, location: Location, *, functions: Collection[str] = ()) -> Expression:
        """Read an expression.

        Args:
            text: The expression, which may run over several lines.
            location: Where the text begins in its file.
            functions: Names of functions that the scope will bring, beyond the table's own.

        Raises:
            RecipeError: It is no expression of the closed kind; names the place in the file.
        """
        known = frozenset(functions)
        made = compile_expression(text, location, known)
        return cls(made.text, location, frozenset(made.places), text, known, made)

    @property
    def _compiled(self) -> Compiled:
        if self._made is None:
            made = compile_expression(self.source, self.location, self.functions)
            object.__setattr__(self, "_made", made)
            return made
        return self._made

    def place(self, name: str) -> Location:
        """Where a name of `names` stands first."""
        return self._compiled.places.get(name, self.location)

    @property
    def makers(self) -> tuple[tuple[str, Location], ...]:
        """The operators that it compares a `.maker` with, and where each stands."""
        return self._compiled.makers

    def evaluate(self, scope: Mapping[str, object]) -> object:
        """The value, or `Unknown`. A scope maps names to plain values, `Captured` and functions."""
        return _settled(self._compiled.run(scope))


def truth(expression: Expression, scope: Mapping[str, object]) -> bool | None:
    """The verdict on a condition; None where it cannot be told."""
    value = expression._compiled.run(scope)
    if not isinstance(value, bool):
        value = scalar_of(_settled(value))
    return value if isinstance(value, bool) else None


def why_not(expression: Expression, scope: Mapping[str, object]) -> str:
    """Why a condition is not true, in words."""
    value = scalar_of(expression.evaluate(scope))
    if value is False:
        because = expression._compiled.because(scope)
        return f"`{expression.text}` is false{because and ': ' + because}"
    reason = (
        value.reason
        if isinstance(value, Unknown)
        else f"it is {describe(value)}, neither true nor false"
    )
    return f"`{expression.text}` is not provable: {reason}"


def _settled(value: object) -> object:
    """The value, or the first unknown thing in it."""
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, Unknown):
                return item
            if isinstance(item, list | tuple) and isinstance(inner := _settled(item), Unknown):
                return inner
    return value
