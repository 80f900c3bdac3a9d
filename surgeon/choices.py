"""The words that options of a repair take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral

from surgeon.document import suggest
from surgeon.errors import RecipeError

REQUIRED = ("runs", "equivalent")  # how good the verdict must be
# Two kinds of rules, ATen nodes that are left, and inputs that nothing reads.
ALLOWED = ("approximate", "contract", "leftover", "unread")


def check_options(require: str, allow: Sequence[str]) -> None:
    """See that options have values that there are.

    Raises:
        RecipeError: One does not.
    """
    check_choice("require", require, REQUIRED)
    for kind in allow:
        check_choice("allow", kind, ALLOWED)


def check_choice(option: str, given: str, known: Sequence[str]) -> None:
    """See that an option has one of its values.

    Raises:
        RecipeError: It has another.
    """
    if given not in known:
        raise RecipeError(
            f"`{given}` is not a value of `{option}`", where=option, mend=suggest(str(given), known)
        )


def check_unasked(*asked: object) -> None:
    """See that nothing asks for the comparison that is left out.

    Raises:
        RecipeError: Something does.
    """
    if any(asked):
        raise RecipeError(
            "`--no-verify` leaves out what another option asks for",
            where="--no-verify",
            mend="Leave out `--no-verify`, or what asks for a comparison.",
        )


def check_integer(option: str, given: object) -> None:
    """See that an option is an integer or left out.

    Raises:
        RecipeError: It is something else, a text say.
    """
    if not isinstance(given, Integral | None):
        raise RecipeError(
            f"`{option}` is a `{type(given).__name__}`, and no integer",
            where=option,
            mend="Give a number without quotes.",
        )


def several(given: str | Sequence[str]) -> Sequence[str]:
    """What takes several texts, of which one may stand by itself."""
    return [given] if isinstance(given, str) else given


def check_by_name(**given: object) -> None:
    """See that options by input name are so.

    Raises:
        RecipeError: One is something else, the text of the command line say.
    """
    for option, value in given.items():
        if not isinstance(value, Mapping | None):
            raise RecipeError(
                f"`{option}` is a `{type(value).__name__}`, and no mapping",
                where=option,
                mend=f'Give it by input name: `{option}={{"x": ...}}`.',
            )
