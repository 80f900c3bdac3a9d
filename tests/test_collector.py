"""Holding the garbage collector off must not keep what is let go of."""

import gc
import weakref

import pytest

from surgeon import collector
from surgeon.collector import collector_paused


class Circle:
    def __init__(self) -> None:
        self.itself = self


@pytest.mark.slow
@pytest.mark.parametrize("many", [50, 1_000_000], ids=["large graphs", "small ones"])
def test_what_many_runs_leave_is_found(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_MANY", many)
    monkeypatch.setattr(collector, "_MOST", 2000)
    monkeypatch.setattr(collector._Aged, "objects", 0)
    left = [weakref.ref(_run()) for _ in range(80)]
    assert sum(each() is not None for each in left) < 40  # a run leaves a hundred


def _run() -> Circle:
    with collector_paused():
        made = [Circle() for _ in range(100)]
        return made[0]


def test_it_is_on_again_afterwards_and_off_where_it_was() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_is_on_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="within"), collector_paused():
        raise ValueError("within")
    assert gc.isenabled()
