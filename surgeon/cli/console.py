"""Where words go: two consoles, the log file, and the one place where errors become exit codes."""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from surgeon import customops
from surgeon.errors import OutputError, SurgeonError
from surgeon.provenance import version

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

ISSUES = "open an issue with the log"
INTERRUPTED = 130
UNWRAPPED = 4096  # columns: more than any line has


class UsageError(SurgeonError):
    """The command line asks for something that makes no sense; nothing was read."""

    exit_code = 2


@dataclass
class Desk:
    """Where a command speaks: results to stdout, progress and errors to stderr, all to the log.

    Attributes:
        quiet: Only errors and warnings.
        verbose: Tracebacks too.
        as_json: A script reads stdout, and reads an error there too.
        log: The open log file, or None.
    """

    quiet: bool = False
    verbose: bool = False
    as_json: bool = False
    log: TextIO | None = None
    began: float = field(default_factory=time.perf_counter)
    _spinner: Any = None
    _told: bool = False

    @property
    def is_heard(self) -> bool:
        """Whether anybody reads what `show` is given; else nobody need write it."""
        return not self.quiet or self.log is not None

    def show(self, content: RenderableType, *, wrap: bool = True) -> None:
        """Print a result, unless the user wants quiet; it goes to the log in any case.

        Args:
            content: The result.
            wrap: Whether lines are wrapped where no terminal sets their length.
        """
        if self.log is not None:
            from surgeon.render import text

            self._keep(text(content))
        if not self.quiet:
            self._stop()
            with reader_may_leave():
                _print(content, wrap=wrap)

    def warn(self, content: RenderableType) -> None:
        """Print to stderr, quiet or not."""
        self._stop()
        with reader_may_leave(sys.stderr):
            _console(stderr=True).print(content, highlight=False, soft_wrap=True)
        if self.log is not None:
            from surgeon.render import text

            self._keep(text(content, width=1_000_000))

    def line(self, said: str) -> None:
        """Print a line of progress to stderr that stays, unless the user wants quiet."""
        if not self.quiet:
            with reader_may_leave(sys.stderr):
                sys.stderr.write(f"{said}\n")

    def doubt(self, said: str) -> None:
        """Print a warning to stderr, quiet or not."""
        from rich.text import Text

        from surgeon.render import clean

        self.warn(Text(f"warning: {clean(said)}", style="yellow"))

    def data(self, text: str) -> None:
        """Print what a script reads: as it is, and quiet or not."""
        self._stop()
        self._told = True
        with reader_may_leave():
            sys.stdout.write(text if text.endswith("\n") else f"{text}\n")

    def fail(self, error: SurgeonError) -> None:
        """Print an error to stderr, and for a script, which was told nothing yet, as JSON."""
        from surgeon import render

        if self.as_json and not self._told:
            self._told = True
            self._stop()
            print_error(error)
        self.warn(render.error(error))

    def note(self, line: str) -> None:
        """A line for the log alone, with the time since the start."""
        if self.log is not None:
            from surgeon.render import clean

            self._keep(f"{time.perf_counter() - self.began:8.3f}  {clean(line)}\n")

    def _keep(self, text: str) -> None:
        """Write to the log; the work goes on without one that cannot be written any more."""
        try:
            if self.log is not None:
                self.log.write(text)
        except OSError as error:
            self.log = None
            self.doubt(f"the log ends here, and cannot be written: {error.strerror or error}")

    def progress(self, line: str) -> None:
        """What is being done: to the log, and to a terminal as long as it lasts."""
        self.note(line)
        if self._spinner is not None:
            from surgeon.render.words import plain

            self._spinner.update(plain(line))

    @contextlib.contextmanager
    def working(self, line: str) -> Iterator[Callable[[str], None]]:
        """A spinner while long work runs, on a terminal only; gives what to report progress to."""
        there = not self.quiet and sys.stderr.isatty()  # rich believes FORCE_COLOR too
        if there and (console := _console(stderr=True)).is_terminal:
            self._spinner = console.status(line)
            self._spinner.start()
        try:
            yield self.progress
        finally:
            self._stop()

    def _stop(self) -> None:
        spinner, self._spinner = self._spinner, None
        if spinner is not None:
            spinner.stop()


def print_error(error: SurgeonError) -> None:
    """Print an error for a script."""
    with reader_may_leave():
        sys.stdout.write(f"{json.dumps({'error': error.to_dict()}, indent=2)}\n")


@contextlib.contextmanager
def desk(
    *,
    quiet: bool = False,
    verbose: bool = False,
    as_json: bool = False,
    log_file: Path | None = None,
    custom_ops: Sequence[Path] | None = None,
) -> Iterator[Desk]:
    """Everything a command does happens in here: an error leaves as text and an exit code.

    Args:
        quiet: Print only errors and warnings.
        verbose: Show the traceback of a bug.
        as_json: Print JSON to stdout, of an error too.
        log_file: Written anew; takes what the terminal is shown, and more.
        custom_ops: Libraries of custom operators, for models that run in here.
    """
    gc.enable()  # which `main` held off
    place = Desk(quiet=quiet, verbose=verbose, as_json=as_json)
    try:
        tolerant_streams()
        with contextlib.ExitStack() as stack:
            if log_file is not None:
                place.log = stack.enter_context(_open_log(log_file))
            stack.enter_context(_explained(place, log_file))  # the log takes an error too
            stack.enter_context(customops.custom_ops(*(custom_ops or ())))
            yield place
    except typer.Exit:
        raise
    except BaseException as error:  # of the log itself
        place.log = None
        raise typer.Exit(_explain(error, place, log_file)) from None


@contextlib.contextmanager
def _explained(place: Desk, log_file: Path | None) -> Iterator[None]:
    try:
        yield
    except typer.Exit:
        raise
    except BaseException as error:
        raise typer.Exit(_explain(error, place, log_file)) from None


def _explain(error: BaseException, place: Desk, log_file: Path | None) -> int:
    """Print an error and give its exit code; what is no error of a command goes on its way."""
    if isinstance(error, KeyboardInterrupt):
        place.warn("interrupted; no half-written file is left")
        return INTERRUPTED
    if not isinstance(error, Exception):
        raise error
    if not isinstance(error, SurgeonError):
        error = _as_error(error, place, log_file)
    place.fail(error)
    return error.exit_code


# What the system says of any file, at whatever moment, is no bug; and what helps.
_PERMITTED = "Check its permissions, those of the folders above, and that no program holds it."
_ROOM = "Free some space, or name another folder: of temporary files that is TMPDIR."
_OPEN = "Close other programs, or allow more open files: `ulimit -n`."
_THERE = "See that the file, and the folder that the command runs in, are still there."
_DEVICE = "Check the disk, or the connection to it."
_SYSTEM = {
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _PERMITTED),
    **dict.fromkeys((errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)), _ROOM),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), _OPEN),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, getattr(errno, "ESTALE", errno.ENOENT)), _THERE),
    **dict.fromkeys((errno.EIO,), _DEVICE),
    **dict.fromkeys((errno.EAGAIN,), "End other processes, or allow more of them: `ulimit -u`."),
}


def _as_error(error: Exception, place: Desk, log_file: Path | None) -> SurgeonError:
    """What nobody foresaw: memory, or a bug of surgeon."""
    if isinstance(error, MemoryError):
        return SurgeonError(
            "there is not enough memory",
            where="this machine",
            mend="Try `--no-verify`, which keeps fewer models in memory, or a larger machine.",
        )
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return UsageError(
            "no file can have a name as long as this",
            where=str(error.filename)[:200],
            mend="Check what was given.",
        )
    trace = "".join(traceback.format_exception(error))
    if place.log is not None:
        with contextlib.suppress(OSError):
            place.log.write(trace)
    if place.verbose:
        sys.stderr.write(trace)
    if isinstance(error, OSError) and error.errno in _SYSTEM:
        return SurgeonError(
            f"the system refuses: {error.strerror}",
            where=str(error.filename or os.curdir)[:200],
            mend=_SYSTEM[error.errno],
        )
    hint = f"The traceback is in {log_file}: {ISSUES}." if log_file is not None else (
        "Run it again with `--log-file log.txt` (or `-v` to see the traceback), and " + ISSUES + "."
    )  # fmt: skip
    kind = type(error).__name__
    return SurgeonError(f"surgeon has a bug: {kind}: {error}", where=_last_line(error), mend=hint)


def _last_line(error: Exception) -> str:
    """The innermost line of surgeon's own code, by module and line."""
    package = Path(__file__).parent.parent
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(package)]
    if not own:
        return "surgeon"
    return f"surgeon/{Path(own[-1].filename).relative_to(package).as_posix()}:{own[-1].lineno}"


@contextlib.contextmanager
def _open_log(path: Path) -> Iterator[TextIO]:
    if str(path) == "-":
        raise OutputError(
            "the log is a stream",
            where="-",
            mend="Name a file, or `/dev/stderr` to see it at once.",
        )
    with contextlib.ExitStack() as stack:
        try:
            if path.is_file() and path.stat().st_size and not _is_log(path):
                raise OutputError(
                    "there is a file that is no log of surgeon",
                    where=str(path),
                    mend="Choose another file for the log.",
                )
            log = open(path, "w", 1, "utf-8", "backslashreplace", opener=_opened)  # noqa: SIM115
            stack.callback(_close, log)
            log.write(f"surgeon {version()}, Python {platform.python_version()}, {sys.platform}\n")
            log.write(f"arguments: {sys.argv[1:]!r}\n")
        except OSError as error:
            raise OutputError(
                f"the log cannot be written: {error.strerror or error}",
                where=str(path),
                mend="Name a file in a folder that exists and may be written to.",
            ) from None
        yield log


def _close(log: TextIO) -> None:
    """Close a log; that the last of it cannot be written was told when it was."""
    with contextlib.suppress(OSError):
        log.close()


def _opened(path: str, flags: int) -> int:
    """Open a log: of a pipe that nobody reads at once an error, and no waiting for a reader."""
    if sys.platform == "win32":
        return os.open(path, flags, 0o666)
    handle = os.open(path, flags | os.O_NONBLOCK, 0o666)
    os.set_blocking(handle, True)
    return handle


def _is_log(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(8) == b"surgeon "


def tolerant_streams() -> None:
    """Print what the terminal's encoding has no letter for as an escape, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _print(content: RenderableType, *, wrap: bool) -> None:
    """To a terminal in its width and colours; to anything else as plain lines."""
    console = _console()
    if console.is_terminal:
        console.print(content, highlight=False, crop=False)  # commands are longer than lines
        return
    from surgeon.render import text

    sys.stdout.write(text(content) if wrap else text(content, width=UNWRAPPED))


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            """Leave it to `reader_may_leave`: else the process ends here, with 1."""
            raise

    return Plain(stderr=stderr, markup=False, emoji=False)


@contextlib.contextmanager
def reader_may_leave(stream: TextIO | None = None) -> Iterator[None]:
    """A reader that has seen enough (`| head`) changes neither the work nor its exit code.

    Nor do warnings and errors that cannot be told.

    Raises:
        OutputError: A result cannot be told: the disk is full.
    """
    stream = stream or sys.stdout
    try:
        yield
        stream.flush()
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        if not isinstance(error, BrokenPipeError) and stream is not sys.stderr:
            raise OutputError(
                f"what is said cannot be written: {error.strerror or error}",
                where=stream.name,
                mend="Free some space, or send it elsewhere; `surgeon log OUT` tells whether a "
                "model was saved before.",
            ) from None
