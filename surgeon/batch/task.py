"""What is done to one file inside the worker. Arguments and results are plain data."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

from surgeon.customops import custom_ops
from surgeon.errors import LeftoverError, ModelError, OutputError, RecipeError, SurgeonError
from surgeon.external import external_tensors
from surgeon.files import write_whole
from surgeon.isolation import is_of_memory, isolation
from surgeon.model import Model
from surgeon.opening import not_there
from surgeon.recipe import Recipe
from surgeon.report import Report
from surgeon.surgery import apply

_OURS = ("custom_ops", "apart")  # options that are no arguments of `surgeon.apply`
_PARSED = 3  # times its size: the bytes, the protobuf, and one copy


def data_files(path: str) -> list[str]:
    """The locations of a model's external data, as the file states them."""
    locations = {
        entry.value
        for tensor in external_tensors(Model.load(path).proto)
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return sorted(locations)


def repair(
    path: str,
    target: str,
    recipes: Sequence[str],
    digests: Sequence[str],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Repair one file as `surgeon apply` does; a changed model goes to `target`.

    Args:
        path: The model.
        target: Where a changed model is saved; its external data stay where they are.
        recipes: Names or paths.
        digests: What the recipes' digests are: one that was edited meanwhile is refused.
        options: Keyword arguments of `surgeon.apply`; `custom_ops`, paths of libraries; and
            `apart`, bytes of memory of a worker of their own that models run in; None for none.

    Returns:
        Fields of a `Row`, without those that say which file it is.
    """
    began = time.perf_counter()
    try:
        _see_room(Path(path).stat().st_size)
        plans = _recipes(tuple(recipes), tuple(digests))
        model = Model.of(path)
        absent = not_there(model, options.get("keep", ()))
        there = [name for name in options.get("keep", ()) if name not in absent]
        asked = {key: value for key, value in options.items() if key not in _OURS}
        with _apart(options), custom_ops(*options.get("custom_ops", ())):
            result = apply(model, *plans, **{**asked, "keep": there})
        if result.model.changed:
            write_whole(Path(target), *result.model.to_bytes(where=path))
        found = _told(result.report)
        found["absent"] = tuple(absent)
        _see_compared(found)
        found["outcome"] = "repaired" if result.model.changed else "unchanged"
    except SurgeonError as error:
        found = _told(error.report) if isinstance(error.report, Report) else {}
        found |= {"outcome": _outcome(error), "reason": error.what, "mend": error.mend}
    except MemoryError:  # the worker answers this one, and is started anew
        raise
    except Exception as error:  # one file's bad luck is not the batch's
        if type(error).__name__ == "EncodeError":  # all that protobuf says of either
            raise MemoryError from None
        found = {
            "outcome": "failed",
            "reason": f"surgeon has a bug: {type(error).__name__}: {error}",
            "mend": "Run `surgeon apply -v` on this file, and open an issue with what it prints.",
        }
    found["seconds"] = time.perf_counter() - began
    _let_go()
    return found


def _apart(options: Mapping[str, Any]) -> AbstractContextManager[None]:
    """`isolation` where it was asked for; the task's own time is what limits it."""
    memory = options.get("apart")
    return nullcontext() if memory is None else isolation(timeout=None, memory=memory)


def _let_go() -> None:
    """Give back what this file took: sessions and their threads hang on graphs, which are circles.

    Without it they stay until Python looks for circles, hundreds of files later, and a file meets a
    full address space because of those before it.
    """
    gc.collect()
    gc.freeze()  # what is left are modules, grammars and recipes: the next look passes them by


def _see_room(size: int) -> None:
    """Say beforehand that a file does not fit: protobuf calls it damaged when memory runs out.

    Raises:
        MemoryError: The address space that is left is less than a parsed model takes.
    """
    if sys.platform == "win32":
        return
    import resource

    try:
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):  # not on Linux
        return
    if limit != resource.RLIM_INFINITY and limit - used < _PARSED * size:
        raise MemoryError


def _see_compared(found: Mapping[str, Any]) -> None:
    """See that it was not for want of memory that nothing was compared.

    Raises:
        MemoryError: It was.
    """
    if is_of_memory(" ".join(found["verdict"] or ())):
        raise MemoryError


@lru_cache(maxsize=1)
def _recipes(names: tuple[str, ...], digests: tuple[str, ...]) -> tuple[Recipe, ...]:
    plans = tuple(Recipe.load(name) for name in names)
    if tuple(plan.digest for plan in plans) != digests:
        raise RecipeError(
            "a recipe was edited while the batch ran",
            where=", ".join(names),
            mend="Run the batch again.",
        )
    return plans


def _outcome(error: SurgeonError) -> str:
    if is_of_memory(error.what):
        return "memory"
    if isinstance(error, LeftoverError):
        return "refused"
    if isinstance(error, ModelError):
        return "broken"
    return "failed" if isinstance(error, OutputError) else "refused"


def _told(report: Report) -> dict[str, Any]:
    verdict = report.verdict
    return {
        "nodes": (sum(report.before.values()), sum(report.after.values())),
        "rules": dict(report.fired.most_common()),
        "verdict": (verdict.status, verdict.detail) if verdict is not None else None,
        "remarks": (
            *report.failures,
            *(f"contract: {contract}" for contract in report.contracts),
            *report.remarks,
        ),
        "left_out": report.failures,
    }
