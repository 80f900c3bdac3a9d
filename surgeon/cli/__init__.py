"""The command line: parses, calls, prints. It decides nothing about models."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from surgeon.cli.commands import Command, Group, Made
from surgeon.cli.console import (
    INTERRUPTED,
    UsageError,
    print_error,
    reader_may_leave,
    tolerant_streams,
)
from surgeon.errors import OutputError
from surgeon.provenance import version

EXIT_CODES = (
    (0, "done"),
    (1, "another failure, a batch below its threshold, or a bug of surgeon"),
    (2, "the command line, a recipe, or the data given is wrong"),
    (
        3,
        "the result differs, does not run, or could not be compared where that was required; "
        "something was left out under `--strict`; `diff --exit-code` found a difference; "
        "`inspect --exit-code` found more than the target takes; "
        "`log --check` found another file than the one written; `adapt` found no recipes that help",
    ),
    (4, "the model cannot be read, or lacks what the command has to know, a value's type say"),
    (5, "the output cannot be written"),
    (6, "a rule does not settle"),
    (
        7,
        "native code of another project (onnxruntime, onnxsim) failed, or needed more than "
        "`--timeout` or `--memory` allow, and without it there is no result (a comparison they "
        "cut short is none: 0 with a warning, 3 under `--require equivalent`)",
    ),
    (8, "ATen nodes are left although a recipe promises none; nothing was saved"),
    (130, "interrupted"),
)

COMMANDS = {  # the panel of the help it stands in, and where it is
    "apply": ("Models", "repair", "apply"),
    "batch": ("Models", "batch", "batch"),
    "extract": ("Models", "extract", "extract"),
    "reduce": ("Models", "reduce", "reduce"),
    "adapt": ("Models", "adapt", "adapt"),
    "verify": ("Models", "examine", "verify"),
    "diff": ("Models", "examine", "diff"),
    "explain": ("Models", "explain", "explain"),
    "inspect": ("Models", "examine", "inspect"),
    "log": ("Models", "examine", "show_log"),
    "recipes": ("Recipes", "shelf", "recipes"),
    "test": ("Recipes", "shelf", "run_cases"),
    "doctor": ("surgeon itself", "examine", "doctor"),
}


def _command(name: str) -> Any:
    """The command of that name; its module is imported now."""
    panel, module, attribute = COMMANDS[name]
    part = getattr(import_module(f"surgeon.cli.{module}"), attribute)
    if isinstance(part, typer.Typer):
        part.info.rich_help_panel = panel
        return get_command(part)
    alone = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    alone.command(name, cls=Command, rich_help_panel=panel)(part)
    return get_command(alone)


class Surgeon(Group):
    """All commands, of which `--help` makes each and a run the one it names."""

    def __init__(self, **settings: Any) -> None:
        """As typer calls it."""
        super().__init__(**settings)
        self.commands = Made({name: partial(_command, name) for name in COMMANDS})
        self._as_json = False

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **more: Any) -> Any:
        """As typer calls it, with what the command line says."""
        self._as_json = "--json" in args
        with self._told():
            return super().make_context(info_name, args, *rest, **more)

    def invoke(self, ctx: Any) -> Any:
        """As typer calls it: the command that is named, whose options are read in here."""
        with self._told():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As typer calls it; who names a model first knows tools that have one command."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as error:
            if args[0].endswith(".onnx") and hasattr(error, "format_message"):
                error.message += " To simplify a model: `surgeon apply clean IN OUT`."  # type: ignore[attr-defined]
            raise

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Tell a script of a command line that is wrong, as of any error; typer tells the user."""
        try:
            yield
        except Exception as error:
            message = getattr(error, "format_message", None)  # of typer's own, and of no other
            if self._as_json and message is not None:
                path = getattr(getattr(error, "ctx", None), "command_path", "surgeon")
                wrong = UsageError(message(), where=path, mend=f"See `{path} --help`.")
                print_error(wrong)
            raise


app = typer.Typer(
    name="surgeon",
    cls=Surgeon,
    help="Repair ONNX files after export, and check that nothing was broken.",
    epilog="\n\n".join(["Exit codes:", "", *(f"- {code} {what}" for code, what in EXIT_CODES)]),
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"surgeon {version()}")
        raise typer.Exit


@app.callback(no_args_is_help=True)
def surgeon(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Repair ONNX files after export, and check that nothing was broken."""


def main() -> None:
    """Run the command line; what `surgeon` and `python -m surgeon` call."""
    gc.disable()  # until a command begins: what typer makes of the parameters stays
    for name in ("stdout", "stderr"):  # None where the caller closed them: nobody reads
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    tolerant_streams()  # for help and usage errors too
    # Else pydantic looks through every installed distribution for plugins, and imports them.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Else the threads of numpy's OpenBLAS wait for work in a busy loop: a tenth of a second of
    # every command. They still work when there is something to do. (2^n turns; 26 by itself.)
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "10")
    # As Ctrl-C does: what runs for us ends too, and no half-written file is left.
    for name in ("SIGTERM", "SIGHUP"):  # the latter where a terminal closes; Windows has none
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores it
            signal.signal(number, signal.default_int_handler)
    try:
        with reader_may_leave():  # help and the version too
            app(prog_name="surgeon")
    except KeyboardInterrupt:  # before or after a command's own care
        sys.exit(INTERRUPTED)
    except OutputError as error:
        sys.stderr.write(f"error: {error.what}\n")
        sys.exit(error.exit_code)
    finally:
        # The process ends: what it holds goes with it, and need not be searched for cycles first
        # (0.2 s for a graph of 5,000 nodes).
        gc.freeze()
