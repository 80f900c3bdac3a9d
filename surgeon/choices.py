"""The words that options of a repair take."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

from surgeon.document import suggest
from surgeon.errors import Location, RecipeError
from surgeon.provenance import OWN

Data: TypeAlias = str | Path | Sequence[str | Path]
Reference: TypeAlias = str | Path | Sequence[str | Path] | None

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
    if not isinstance(given, Integral | None) or isinstance(given, bool):
        raise RecipeError(
            f"`{option}` is a `{type(given).__name__}`, and no integer",
            where=option,
            mend="Give a number without quotes.",
        )


def several(given: str | Iterable[str]) -> Sequence[str]:
    """What takes several texts, of which one may stand by itself.

    Raises:
        RecipeError: One is no text.
    """
    if isinstance(given, str):
        return [given]
    texts = list(given) if isinstance(given, Iterable) else [given]  # those of a generator, once
    for each in texts:
        if not isinstance(each, str):
            what = f"`{each!r}` stands where a text is wanted"
            raise RecipeError(what, where="options", mend='Give texts, as in `["clean"]`.')
    return texts


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


def plain_shapes(shape: Mapping[str, Any] | None) -> dict[str, tuple[int | str, ...]]:
    """Shapes by input name as plain numbers and names; an array's numbers, numpy's, are taken too.

    Raises:
        RecipeError: They are not by input name, or one holds something else.
    """
    check_by_name(shape=shape)
    return {name: _plain_shape(name, dims) for name, dims in (shape or {}).items()}


def _plain_shape(name: str, dims: Any) -> tuple[int | str, ...]:
    if isinstance(dims, str):
        raise RecipeError(
            f"the shape of input `{name}` is a text",
            where="--shape",
            mend=f"Give a list: {[int(d) if d.isdecimal() else d for d in dims.split(',')]}.",
        )
    try:
        given = list(dims)
    except TypeError:  # a number, or an array of no dimension
        raise RecipeError(
            f"the shape of input `{name}` is a `{type(dims).__name__}`, and no list",
            where="--shape",
            mend="Give one number or name for each dimension.",
        ) from None
    return tuple(_plain_dim(name, each) for each in given)


def _plain_dim(name: str, given: object) -> int | str:
    if isinstance(given, str) and given:
        return str(given)
    if isinstance(given, Integral) and not isinstance(given, bool):
        return int(given)
    raise RecipeError(
        f"`{given!r}` is no length of a dimension of input `{name}`",
        where="--shape",
        mend="Give a whole number below 2^31, or a name for one that stays dynamic.",
    )


def check_data(data: object, option: str = "data") -> None:
    """See that real inputs are paths: a mapping of arrays would pass for the paths that it names.

    Raises:
        RecipeError: They are something else.
    """
    if data is None:
        return
    for each in data if isinstance(data, list | tuple) else [data]:
        if not isinstance(each, str | os.PathLike):
            raise RecipeError(
                f"`{option}` is a `{type(each).__name__}`, and no path",
                where=option,
                mend='Save arrays by input name, `numpy.savez("x.npz", **arrays)`, and give the '
                "path of that file, or a list of such.",
            )


def check_renamed(rename: Mapping[str, str] | None, **told: Mapping[str, Any] | None) -> None:
    """See that nothing is told of an input by the name that it is to lose.

    Raises:
        RecipeError: Something is.
    """
    for option, given in told.items():
        if both := sorted({*(rename or ())} & {*(given or ())}):
            raise RecipeError(
                f"`{both[0]}` gets another name, and is told of by this one",
                where=f"--{option}",
                mend="Rename in a run behind this one.",
            )


def check_reference(given: object) -> None:
    """See that what stands for the original is a word or paths.

    Raises:
        RecipeError: It is something else.
    """
    listed = given if isinstance(given, list | tuple) else [given]
    for each in listed if given is not None else ():
        if not isinstance(each, str | os.PathLike):
            raise RecipeError(
                f"`reference` is a `{type(each).__name__}`, and no word or path",
                where="reference",
                mend="Give `witness`, say, or the path of an .npz file of recorded runs.",
            )


def check_function(option: str, given: object) -> None:
    """See that what is to be asked with the path of a file can be.

    Raises:
        RecipeError: It is something else, the text of a command say.
    """
    if not callable(given):
        raise RecipeError(
            f"`{option}` is a `{type(given).__name__}`, and no function",
            where=option,
            mend="Give one that takes the path of a file and gives `True` or `False`; what runs a "
            "command, `subprocess.run` say, goes into it.",
        )


def check_metadata(metadata: Mapping[str, str | None], *, where: Location | str) -> None:
    """See that a file can have these entries.

    Args:
        metadata: Texts by their keys; None for an entry that leaves.
        where: What the error says.

    Raises:
        RecipeError: A key is none, or surgeon's own, or what is said is no text.
    """
    for key, text in metadata.items():
        if not isinstance(key, str) or not isinstance(text, str | None):
            what, mend = f"the metadata `{key}` is no text", "Give keys and texts."
        elif not key or key.startswith(OWN):
            what = f"`{key}` is a key of surgeon's own log" if key else "metadata has no key"
            mend = "Choose another key."
        elif (key + (text or "")).encode("utf-8", "replace").decode() != key + (text or ""):
            what, mend = f"the metadata `{key!a}` is no UTF-8", "Write it as UTF-8."
        else:
            continue
        raise RecipeError(what, where=where, mend=mend)
