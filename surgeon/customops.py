"""Libraries of custom operators, which onnxruntime loads beside its own: which of them hold now."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from surgeon.errors import ModelError, SurgeonError

VARIABLE = "SURGEON_CUSTOM_OPS"
"""Their paths in the environment, where nobody names any: a worker finds its own there."""

_named: ContextVar[tuple[str, ...] | None] = ContextVar("surgeon.custom_ops", default=None)


class LibraryError(SurgeonError):
    """A library of custom operators that onnxruntime does not load."""


def libraries() -> tuple[str, ...]:
    """The paths of those that every session loads, in order."""
    named = _named.get()
    if named is not None:
        return named
    return tuple(filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)))


@contextmanager
def custom_ops(*paths: str | Path) -> Iterator[None]:
    """Let onnxruntime run the operators of these libraries while this holds, in this thread.

    What they hold is compared as ONNX's own operators are; without them something stands in for it
    (`surgeon.verify`). The code in them is run: name those alone that you trust. Inside of
    `with surgeon.isolation():` it runs in the worker.

    Args:
        paths: Shared libraries with onnxruntime's entry point `RegisterCustomOps`, beside those
            that hold already: the path of one, or what
            `onnxruntime_extensions.get_library_path()` gives.

    Raises:
        ModelError: There is no such file.
    """
    found = [*libraries()]
    for path in paths:
        whole = os.path.abspath(path)
        if not os.path.isfile(whole):
            raise ModelError(
                "there is no such library of custom operators",
                where=str(path),
                mend="Name a shared library, as in `--custom-ops libops.so`.",
            )
        found += [whole] if whole not in found else []
    token = _named.set(tuple(found))
    try:
        yield
    finally:
        _named.reset(token)


def register(options: Any, library: str) -> None:
    """Have a session of these options load a library.

    Args:
        options: An `onnxruntime.SessionOptions`.
        library: The path.

    Raises:
        LibraryError: onnxruntime does not take it.
    """
    try:
        options.register_custom_ops_library(library)
    except Exception as error:  # onnxruntime's exception classes share no base of their own
        said = str(error).rpartition(" : ")[2]
        raise LibraryError(
            f"onnxruntime does not load this library of custom operators: {said}",
            where=library,
            mend="Name one that was built for this system, with the entry point "
            "`RegisterCustomOps` and of an API that the installed onnxruntime has; what it is "
            "linked to must be found as well.",
        ) from None
