"""What goes wrong and how to mend it: the errors meant for users, and their exit codes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

_LONG = re.compile(r"`([^`]{200})[^`]{200,}`")  # names that would fill a page


class Location(NamedTuple):
    """A place in a text file.

    Attributes:
        file: The file's name as the user gave it, or `<text>` for text without a file.
        line: Line number, from 1.
        column: Column number, from 1.
    """

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def shifted(self, line: int, column: int) -> Location:
        """The place `line`, `column` (both from 1) of a text that begins here."""
        if line <= 1:
            return Location(self.file, self.line, self.column + column - 1)
        return Location(self.file, self.line + line - 1, column)


class SurgeonError(Exception):
    """The root of all errors meant for the user's eyes.

    The parts speak of options as the command line has them; the text of the error, which a
    traceback shows, of the arguments of a call.

    Args:
        what: One sentence, no period, naming the offending thing in backticks.
        where: A `Location`, a file's path, or the `node 'name' (domain.op)` it concerns.
        mend: One imperative sentence. Never empty: an error nobody can act on is a bug.

    Attributes:
        report: The `Report` of the run that ended here, where one was under way.
    """

    exit_code: ClassVar[int] = 1
    report: object | None = None

    def __init__(self, what: str, *, where: Location | str, mend: str) -> None:
        what = _LONG.sub(r"`\1...`", what)
        self.what, self.where, self.mend = what, where, mend
        super().__init__(f"{where}: {what}\n  mend: {mend}")

    def __str__(self) -> str:
        """All of it, in the words of Python."""
        from surgeon.wording import in_python, place_in_python

        where = place_in_python(str(self.where))
        return f"{where}: {in_python(self.what)}\n  mend: {in_python(self.mend)}"

    def to_dict(self) -> dict[str, str | int]:
        """Plain data for JSON."""
        parts = {"what": self.what, "where": str(self.where), "mend": self.mend}
        return {**parts, "exit_code": self.exit_code}

    def __reduce__(self) -> tuple[object, ...]:
        """As it is, whatever the arguments of its kind: errors come back from workers."""
        return _rebuilt, (type(self), self.args), dict(vars(self))


def _rebuilt(kind: type[SurgeonError], args: tuple[object, ...]) -> SurgeonError:
    error = kind.__new__(kind)
    error.args = args
    return error


class RecipeError(SurgeonError):
    """A recipe, or an option that speaks of the model (`--shape`), is wrong."""

    exit_code = 2


class UnsealedError(SurgeonError):
    """A file keeps nothing that tells whether it is the one that was written."""


class VerifyError(SurgeonError):
    """The result does not run, or does not compute the same; nothing was saved."""

    exit_code = 3


class UnfitError(SurgeonError):
    """No recipes were found behind which a model passes what it has to.

    Attributes:
        rounds: What failed, and what was tried, as `surgeon.adapting.Round`s.
    """

    exit_code = 3
    rounds: Sequence[Any] = ()


class ModelError(SurgeonError):
    """The model cannot be read, or holds what surgeon cannot carry."""

    exit_code = 4


class OutputError(SurgeonError):
    """The result cannot be written where it was asked for."""

    exit_code = 5


class SettleError(SurgeonError):
    """A rule keeps firing: the sweep does not reach a fixed point.

    Attributes:
        rule: Its id.
    """

    exit_code = 6
    rule: str = ""


class OpsetError(SurgeonError):
    """A model cannot be taken to an opset.

    Attributes:
        operator: What stands in the way, where it is one.
    """

    operator: str = ""


class ForeignError(SurgeonError):
    """Native code of another project (onnxruntime, onnxsim) crashed, hung or ran out of memory."""

    exit_code = 7


class TimeUp(ForeignError):
    """The worker did not end within the time it was given, and was killed."""


class MemoryUp(ForeignError):
    """The worker needed more memory than it was given."""


class LeftoverError(SurgeonError):
    """Operators of PyTorch's own are left, which no runtime knows; nothing was saved."""

    exit_code = 8


def few(names: Sequence[str], most: int = 3) -> str:
    """Names for a message: the first ones, and how many more there are."""
    named = ", ".join(f"`{name[:80]}`" for name in names[:most])
    return f"{named} and {len(names) - most} more" if len(names) > most else named
