"""A running Dask cluster as an executor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from surgeon.cli.console import UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor

SECONDS = 30  # to reach the scheduler


@contextlib.contextmanager
def connected(address: str) -> Iterator[tuple[Executor, int]]:
    """The cluster's executor, and how many files it does at once.

    Raises:
        UsageError: Dask is not installed, or no cluster answers.
    """
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(
            "a Dask cluster is wanted, and `distributed` is not installed",
            where="--cluster",
            mend="Run `pip install 'onnx-recipe-surgeon[cluster]'`.",
        ) from None
    try:
        client = Client(address, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:  # a timeout is an OSError
        text = " ".join(str(error).split())[:300]
        raise UsageError(
            f"no Dask cluster answers at `{address}`: {text}",
            where="--cluster",
            mend="Name the scheduler's address, as `tcp://10.0.0.1:8786`.",
        ) from None
    with client:
        executor = cast("Executor", client.get_executor(pure=False))
        places = sum(client.nthreads().values())
        try:
            yield executor, max(1, places)
        finally:
            executor.shutdown(wait=False)
