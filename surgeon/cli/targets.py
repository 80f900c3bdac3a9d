"""The files that are written: looked at before the work begins, so that no work is in vain."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from surgeon.cli.console import UsageError
from surgeon.errors import OutputError
from surgeon.files import is_stream, streamed
from surgeon.reading import is_file

REPORTS = (".json", ".html", ".txt")
RECIPES = (".yaml", ".yml")


def check_order(
    recipes: Sequence[str], files: Mapping[str, str], *, where: str, usage: str
) -> None:
    """See that no recipe stands where a file is wanted, and no model where a recipe is.

    Args:
        recipes: What is given as recipes.
        files: What is given as files, by what each is.
        where: The command.
        usage: How it is written.

    Raises:
        UsageError: One does.
    """
    for role, name in files.items():
        if name.lower().endswith(RECIPES):
            raise UsageError(f"the {role} `{name}` looks like a recipe", where=where, mend=usage)
    model = next((name for name in recipes if name.lower().endswith(".onnx")), None)
    if model is not None:
        raise UsageError(f"`{model}` stands where a recipe is wanted", where=where, mend=usage)


def also_read(*groups: Iterable[str | Path] | None) -> list[Path]:
    """The files among what options name: data, recorded outputs, values."""
    return [Path(each) for group in groups for each in group or () if is_file(Path(each))]


def joined(recipes: Sequence[str]) -> list[Path]:
    """The models that recipes put in front of another, or behind it.

    Raises:
        RecipeError: There is no such recipe, or it is wrong.
    """
    from surgeon.recipe import Recipe

    extensions = (each for name in recipes for each in Recipe.load(name).extensions)
    return [each.path for each in extensions if each.file]


def check_target(
    target: Path,
    *,
    inputs: Sequence[Path],
    what: str = "output",
    ending: str = "",
    in_place: bool = False,
) -> None:
    """See that a file can be written here, and that it is none of the files that are read.

    Args:
        target: The file.
        inputs: Those that are read.
        what: What is written.
        ending: That its name has to have.
        in_place: Whether the command has `--in-place`.

    Raises:
        OutputError: It cannot, or it is; the error says what to do.
    """
    where = str(target)
    if where == "-":
        raise streamed(where, what)
    if target.is_dir():
        name = Path(inputs[0].name if inputs else "out")
        example = target / (name.with_suffix(ending) if ending else name)
        raise OutputError(
            f"the {what} is a folder", where=where, mend=f"Name a file inside it: `{example}`."
        )
    for source in inputs:
        if _same(source, target):
            raise OutputError(
                f"the {what} is the file that is read",
                where=where,
                mend=f"Choose another {what}, or replace the model with `surgeon apply RECIPE "
                "MODEL --in-place`."
                if in_place
                else f"Choose another {what}.",
            )
    if target.exists() and not target.is_file():
        raise OutputError(
            f"the {what} is no regular file",
            where=where,
            mend="Name a file; `--dry-run` does everything and writes none.",
        )
    if is_stream(target):
        raise streamed(where, what)
    folder = target.parent
    if not folder.is_dir():
        what_is_there = "is no folder" if folder.exists() else "does not exist"
        raise OutputError(
            f"the folder `{folder}` {what_is_there}", where=where, mend="Make the folder first."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(
            f"the folder `{folder}` may not be written to",
            where=where,
            mend="Change its permissions, or choose another folder.",
        )


def check_log(log: Path | None, **others: Path | None) -> None:
    """See that the log is none of the other files that are written.

    Args:
        log: Where it goes, if one was asked for.
        others: By what each is.

    Raises:
        UsageError: It is one.
    """
    for what, other in others.items():
        if log is not None and other is not None and _same(log, other):
            if is_file(log) and not is_stream(log) and not log.is_symlink():
                with contextlib.suppress(OSError):  # Windows removes nothing that is open
                    log.unlink()  # it was begun already, and is no output
            raise UsageError(
                f"the log is the {what} too", where=str(log), mend="Name two different files."
            )


def check_report(report: Path, *, inputs: Sequence[Path], output: Path) -> None:
    """See that a report can be written here, in a form that surgeon knows.

    Raises:
        UsageError: Its ending names no form, or it is the output.
        OutputError: It cannot be written here.
    """
    if report.suffix.lower() not in REPORTS:
        raise UsageError(
            f"`{report}` names no form of report",
            where="--report",
            mend=f"Let it end in {', '.join(REPORTS[:-1])} or {REPORTS[-1]}.",
        )
    if _same(report, output):
        raise UsageError(
            "the report is the output too", where=str(report), mend="Name two different files."
        )
    check_target(report, inputs=inputs, what="report", ending=report.suffix)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return os.path.abspath(one) == os.path.abspath(other)
