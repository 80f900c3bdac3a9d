"""Python's cyclic garbage collector, held off where all that is made stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 250_000  # objects whose walk is a tenth of the run that made them
_MOST = 4_000_000  # that may be let go of unseen; a graph of 100,000 nodes makes three million


class _Aged:
    """How many objects became old without the collector having seen them."""

    objects = 0


@contextmanager
def collector_paused() -> Iterator[None]:
    """The cyclic collector finds nothing here and costs a third of the time.

    What was made is looked through at the next occasion, as graphs are circles, and those that were
    let go of must be found. Of a large graph it is old at once, without that look; the collector
    does not count what became old that way, so that it is told to look where there is much of it.
    """
    was = gc.isenabled()
    if was and _Aged.objects > _MOST:
        gc.collect()
        _Aged.objects = 0
    gc.disable()
    try:
        yield
    finally:
        if was:
            if (made := gc.get_count()[0]) > _MANY and not gc.get_freeze_count():
                _Aged.objects += made
                gc.freeze()
                gc.unfreeze()
            gc.enable()
