"""A command of the user's, run on a part, and whether it fails as it did on the whole."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from surgeon.errors import ForeignError, ModelError, RecipeError
from surgeon.leftovers import Folder
from surgeon.model import Model
from surgeon.standard import STANDARD

MODEL, DATA = "{model}", "{data}"
_WHERE = "--check"
_LONGEST = 200  # characters of a line in an error
_ALIKE = 0.5  # of the words of two lines that are the same
_TRACE = re.compile(r"^\s*stack backtrace:\s*$", re.IGNORECASE | re.MULTILINE)  # as Rust writes
_MOST = 1 << 20  # bytes of what a command says that are looked at, from the end
_LOADED = 1 << 29  # bytes of a file that is read for its versions
_SHELL = {"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1", "&>"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended.

    Attributes:
        status: Its exit status, below 0 the number of the signal that ended it; None where it did
            not end in time.
        text: What it said on both its streams.
    """

    status: int | None
    text: str

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.status is None:
            return "no end in time"
        if self.status < 0:
            with suppress(ValueError):
                return signal.Signals(-self.status).name
        return f"exit status {self.status}"

    @property
    def last_line(self) -> str:
        """The last line that says something; where calls are listed behind it, in front of them."""
        said = [line.strip() for line in _TRACE.split(self.text)[0].splitlines() if line.strip()]
        found = said or [line.strip() for line in self.text.splitlines() if line.strip()]
        return found[-1] if found else ""

    def says_the_same(self, other: Outcome) -> bool:
        """Whether both end in one line but for its numbers and a name or two.

        One that says a part of the other's words, and no others, does: of a list of operators at
        fault a part of the model has some.
        """
        lines = [re.sub(r"\d+", "0", each.last_line) for each in (self, other)]
        mine, others = (line.split() for line in lines)
        if not (mine and others):
            return mine == others
        if SequenceMatcher(None, mine, others, autojunk=False).ratio() >= _ALIKE:
            return True
        fewer, more = sorted((set(re.findall(r"\w+", line)) for line in lines), key=len)
        return bool(fewer) and fewer <= more


class Check:
    """Runs a command on files, in a folder that is the user's.

    Args:
        command: Words as a shell parts them, but no shell reads them: `{model}` stands for the
            file, or `{}`, and `{data}` for its inputs and outputs.
        saying: What a failure has to say, if anything.
        timeout: Seconds after which it is ended.
        doubt: Called with a sentence where it fails on any model as on the one it is to take.

    Attributes:
        wants_data: Whether it names the data.
        first: How it ended the first time, on the whole model.
        last: How the last failure like that one ended.
        said: How it ended on the last file that was to pass.

    Raises:
        RecipeError: It names no model, or is for a shell.
    """

    def __init__(
        self,
        command: str,
        *,
        saying: str = "",
        timeout: float = 600.0,
        doubt: Callable[[str], None] | None = None,
    ) -> None:
        self.saying, self.timeout, self._doubt = saying, timeout, doubt
        try:
            words = shlex.split(command, posix=os.name != "nt")
        except ValueError as error:
            raise RecipeError(
                f"the command cannot be read: {error}", where=_WHERE, mend="Close its quotes."
            ) from None
        if os.name == "nt":  # where the words keep their quotes, so that paths keep their slashes
            words = [word.strip("\"'") for word in words]
        self.words = [word.replace("{}", MODEL) for word in words]
        if not any(MODEL in word for word in self.words):
            raise RecipeError(
                "the command does not say where the model goes",
                where=_WHERE,
                mend="Write `{}` there, as in `--check 'trtexec --onnx={}'`.",
            )
        if shell := next((word for word in words if word in _SHELL), None):
            raise RecipeError(
                f"`{shell}` is for a shell, and no shell reads the command",
                where=_WHERE,
                mend="Put it into a script, or write `sh -c '...' {}`, where `$0` is the model.",
            )
        self.wants_data = any(DATA in word for word in self.words)
        self.first: Outcome | None = None
        self.last: Outcome | None = None
        self.said: Outcome | None = None
        self._alike = False  # whether a failure has to say what the first one said

    def fails(self, model: Path) -> bool:
        """Whether it fails, as it did the first time: with that status, and saying that.

        Raises:
            RecipeError: It does not the first time, or there is no such program.
            ForeignError: It cannot be run.
        """
        found = self.run(model)
        if self.first is None:
            self._see_it_fails(found)
            self._see_what_passes(model, found)
            self.first = found
        if found.status != self.first.status or self.saying not in found.text:
            return False
        if self._alike and not found.says_the_same(self.first):
            return False
        self.last = found
        return True

    def passes(self, model: Path) -> bool:
        """Whether it does not fail at all."""
        self.said = self.run(model)
        if self.said.status != 0:
            self._see_what_passes(model, self.said)
        return self.said.status == 0

    def failing(self) -> Callable[[Path], bool]:
        """What says whether a file fails as the last one did that was to pass, and says the same.

        Nobody looks at each of these failures, as somebody does at that of `reduce`.
        """
        again = copy(self)
        again.first, again._alike = self.said, True
        return again.fails

    def _see_it_fails(self, found: Outcome) -> None:
        if found.status == 0:
            raise RecipeError(
                "the command does not fail on the whole model",
                where=_WHERE,
                mend="Give one that ends with another status than 0 where something is wrong.",
            )
        if self.saying not in found.text:
            raise RecipeError(
                f"the command fails on the whole model, and does not say `{self.saying}`; "
                f"its last line is `{found.last_line[:_LONGEST]}`",
                where="--saying",
                mend="Give words that stand in what it says.",
            )

    def _see_what_passes(self, model: Path, found: Outcome) -> None:
        """Ask once of a model that nothing can be wrong with: else the command itself may be.

        Raises:
            RecipeError: It does not end, as it did not on the model.
        """
        doubt, self._doubt = self._doubt, None
        if doubt is None:
            return
        with Folder() as folder:
            path = Path(folder, "alone", "plain.onnx")
            path.parent.mkdir()
            write_plain(path, model)
            plain = self.run(path)
        if plain.status is None and found.status is None:
            raise RecipeError(
                f"the command does not end within {self.timeout:g} seconds, nor does it for a "
                "model of one Relu",
                where=_WHERE,
                mend="See that it is called as it should be, or give it more with `--timeout`.",
            )
        if plain.status == found.status and plain.says_the_same(found):
            doubt(
                "the command fails on a model of one Relu as it does on yours: see that it is "
                "called as it should be"
            )

    def run(self, model: Path) -> Outcome:
        """Run it on a file, whose data stand beside it."""
        paths = {MODEL: str(model), DATA: str(model.with_suffix(".npz"))}
        words = self.words
        for name, path in paths.items():
            words = [word.replace(name, path) for word in words]
        with tempfile.TemporaryFile() as said:
            try:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    start_new_session=os.name != "nt",
                )
            except (FileNotFoundError, PermissionError, ValueError) as error:
                raise RecipeError(
                    f"`{words[0]}` cannot be run: {error.args[-1]}",
                    where=_WHERE,
                    mend="Give a program's name or path. No shell reads the command; for pipes "
                    "and the like write a script.",
                ) from None
            except OSError as error:
                raise ForeignError(
                    f"`{words[0]}` cannot be run: {error.strerror}",
                    where=_WHERE,
                    mend="Give a program of this machine.",
                ) from None
            try:
                status: int | None = process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _end(process)
            size = said.seek(0, os.SEEK_END)
            said.seek(max(size - _MOST, 0))
            return Outcome(status, said.read().decode(errors="replace"))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let a command that still runs end, and what it has begun where the system can tell."""
    if process.poll() is None:
        if sys.platform != "win32":
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def write_plain(path: Path, like: Path) -> None:
    """Write a model of one Relu, with the versions of another one, and its data beside it."""
    ir_version, opsets = 8, [helper.make_opsetid("", 17)]
    with suppress(OSError, ModelError):  # the command may have removed it, or written over it
        if like.stat().st_size <= _LOADED:
            other = Model.load(like).proto
            ir_version = other.ir_version or ir_version
            found = [each for each in other.opset_import if each.domain in STANDARD]
            opsets = found or opsets
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 3, 8, 8]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], "relu")], "plain", [x], [y])
    model = helper.make_model(graph, ir_version=ir_version, opset_imports=opsets)
    path.write_bytes(model.SerializeToString())
    value = np.linspace(-1, 1, 192, dtype=np.float32).reshape(1, 3, 8, 8)
    np.savez(path.with_suffix(".npz"), **{"in.x": value, "out.y": np.maximum(value, 0)})  # type: ignore[arg-type]
