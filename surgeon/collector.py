"""Python's cyclic garbage collector, held off where all that is made stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_FEWEST = 250_000  # objects that are worth a look at all there are


class _Aged:
    """What runs made, which counts as old without the collector having seen it."""

    objects = 0
    enough = _FEWEST


@contextmanager
def collector_paused() -> Iterator[None]:
    """The cyclic collector finds nothing here and costs a third of the time.

    What was made is old at once, as the next look at young objects would go through all of it,
    which is a tenth of a run. The collector does not count what became old that way, and graphs
    are circles: where a quarter of all objects came so, they are looked through before more come.
    """
    was = gc.isenabled()
    if was and _Aged.objects > _Aged.enough:
        gc.collect()
        _Aged.objects = 0
        _Aged.enough = max(_FEWEST, len(gc.get_objects()) // 4)
    gc.disable()
    try:
        yield
    finally:
        if was:
            if not gc.get_freeze_count():
                _Aged.objects += gc.get_count()[0]
                gc.freeze()
                gc.unfreeze()
            gc.enable()
