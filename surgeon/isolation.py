"""Where models run: in this process, or in a worker, whose end is a finding and not ours.

onnxruntime is native code, and on a file that is not ours it may crash, hang, or take all memory.
Inside `isolation` whatever opens a model here opens it in one worker process, which is started at
the first need and used for all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import onnx

from surgeon import capacity, customops
from surgeon.aside import put_aside
from surgeon.choices import check_integer
from surgeon.errors import ForeignError, MemoryUp, TimeUp
from surgeon.runtime import Feeds, NotRunnable, Runner, Session, not_held, without_schema
from surgeon.workers import Remote, Worker

T = TypeVar("T")

_WINDOWS = sys.platform == "win32"
TIMEOUT = 600.0  # seconds for one run of a model, where nobody says
MOST_LOADED = 1 << 30  # bytes of weights of a model that is loaded to see whether it loads
_ALLOCATION = ("bad_alloc", "failed to allocate memory", "cannot allocate memory")
_MENDS = {
    TimeUp: "Give it more with `--timeout`.",
    MemoryUp: "Give it more with `--memory`.",
    ForeignError: "Report it to the project whose code crashed.",
}


class Cell(NamedTuple):
    """A worker, and what a run in it may take.

    Attributes:
        worker: The process.
        timeout: Seconds of one run; None for no limit.
        memory: Bytes of address space, where the system has such limits.
    """

    worker: Worker
    timeout: float | None
    memory: int


_cell: ContextVar[Cell | None] = ContextVar("surgeon.isolation", default=None)


@contextmanager
def isolation(*, timeout: float | None = TIMEOUT, memory: int | None = None) -> Iterator[None]:
    """Run models in a worker for as long as this holds, in this thread; the outermost counts.

    Args:
        timeout: Seconds of one run; None for no limit.
        memory: Bytes of address space of the worker; a share of the machine's by default.

    Raises:
        RecipeError: The memory is no number, but a text as `8G`, say.
        LibraryError: A library of custom operators that holds does not load.
        ForeignError: It ends the worker.
    """
    check_integer("memory", memory)
    if _cell.get() is not None:
        yield
        return
    with Worker() as worker:
        here = Cell(worker, timeout, memory or capacity.share())
        for library in customops.libraries():
            called = f"the library of custom operators {library}"
            with _mended():
                worker.call("surgeon.runtime:see_library", library, timeout=timeout, called=called)
        token = _cell.set(here)
        try:
            yield
        finally:
            _cell.reset(token)


def cell() -> Cell | None:
    """The worker that holds now, if one does."""
    return _cell.get()


def open_session(
    model: onnx.ModelProto | Path, *, folder: Path | None = None, optimise: bool = False
) -> Runner:
    """A `Session`, in the worker where one is to be used.

    Weights of a large model are put aside, where there is room for them.

    Raises:
        NotRunnable: The model does not load.
        ForeignError: onnxruntime ended the worker.
    """
    if isinstance(model, onnx.ModelProto):
        model, folder = lightened(model, folder)
    if (here := _cell.get()) is None:
        return Session(model, folder=folder, optimise=optimise)
    made = "surgeon.isolation:_session"
    return Isolated(here, made, model, folder, optimise, called="onnxruntime")


def lightened(
    model: onnx.ModelProto, folder: Path | None, initializers: Sequence[onnx.TensorProto] = ()
) -> tuple[onnx.ModelProto, Path | None]:
    """As `put_aside`; on Windows, where what is mapped cannot be removed, for a worker alone."""
    if _cell.get() is None and _WINDOWS:
        model.graph.initializer.extend(initializers)
        return model, folder
    return put_aside(model, folder, initializers)


def asked(function: Callable[..., T], *args: Any, called: str) -> T:
    """What a function returns that calls native code, from the worker where one is to be used.

    Args:
        function: Of a module, by whose name the worker finds it.
        args: What it is given; must be picklable.
        called: How errors call it.

    Raises:
        ForeignError: The worker crashed, hung or ran out of memory.
    """
    if (here := _cell.get()) is None:
        return function(*args)
    task = f"{function.__module__}:{function.__qualname__}"
    with _mended():
        found: T = here.worker.call(
            task, *args, timeout=here.timeout, memory=here.memory, called=called
        )
    return found


def is_of_memory(text: str) -> bool:
    """Whether onnxruntime says, in its own words, that there was no memory."""
    return any(word in text.lower() for word in _ALLOCATION)


def unknown_operators(model: onnx.ModelProto) -> tuple[str, ...]:
    """The operators of a model that onnxruntime does not know, as `domain.Op`.

    Those of libraries of custom operators it knows, which the worker is asked where there is one.

    Raises:
        LibraryError: Such a library does not load.
        ForeignError: It ended the worker.
    """
    found = without_schema(model)
    if not found or not customops.libraries():
        return found
    return asked(not_held, found, called="onnxruntime")


def fault_of(model: onnx.ModelProto | Path, *, folder: Path | None = None) -> str | None:
    """Why onnxruntime does not load a model: "" where it does, None where it was not done in time.

    What is above `MOST_LOADED` is not for this, nor functions, of which it may be a great many
    nodes that onnxruntime inlines.
    """
    try:
        open_session(model, folder=folder)
    except (TimeUp, MemoryUp):
        return None
    except (NotRunnable, ForeignError) as error:
        return error.what
    return ""


def _session(model: onnx.ModelProto | Path, folder: Path | None, optimise: bool) -> Session:
    return Session(model, folder=folder, optimise=optimise)


class Isolated:
    """A runner in the worker: its crash, its hanging and its thirst are `ForeignError`s here.

    Args:
        here: The worker.
        task: What makes the runner there, as `module:function`.
        args: What it is given; must be picklable.
        called: What runs, for errors.
    """

    def __init__(self, here: Cell, task: str, *args: Any, called: str) -> None:
        self._remote: Remote = here.worker.make(
            task, *args, timeout=here.timeout, memory=here.memory, called=called
        )
        with _mended():
            try:
                self._remote.ensure()
            except NotRunnable as error:
                if not is_of_memory(error.text):
                    raise
                said = f"{called} has too little memory to load the model"
                raise MemoryUp(said, where=error.where, mend="") from None

    def run(self, feeds: Feeds, outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """As `Session.run`."""
        return self._called("run", feeds, outputs)

    def run_trembling(self, feeds: Feeds, outputs: Sequence[str], seed: int) -> dict[str, Any]:
        """As `Reference.run_trembling`."""
        return self._called("run_trembling", feeds, outputs, seed)

    def call(self, method: str, *args: Any) -> Any:
        """The result of the runner's `method(*args)`."""
        with _mended():
            return self._remote.call(method, *args)

    def _called(
        self, method: str, feeds: Feeds, outputs: Sequence[str] | None, *more: int
    ) -> dict[str, Any]:
        names = None if outputs is None else list(outputs)
        found: dict[str, Any] = self.call(method, dict(feeds), names, *more)
        return found


@contextmanager
def _mended() -> Iterator[None]:
    """Errors of the worker with what a user of the command line can do about them."""
    try:
        yield
    except ForeignError as error:
        # a verdict has what alone
        what = (
            f"{error.what}, the limit of `--timeout`" if isinstance(error, TimeUp) else error.what
        )
        raise type(error)(what, where=error.where, mend=_MENDS[type(error)]) from None
