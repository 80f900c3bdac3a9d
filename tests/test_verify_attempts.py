"""What is said of sizes at which the original was not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from surgeon.errors import ForeignError, SurgeonError
from surgeon.verify import attempts
from surgeon.verify.attempts import Attempts


class _Failing:
    """An original that never runs."""

    by = "nobody"

    def __init__(self, error: SurgeonError) -> None:
        self.error = error

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        raise self.error


def _failed(error: SurgeonError, times: int) -> Attempts:
    made = Attempts()
    for size in range(times):
        assert made.run(_Failing(error), {}, ["y"], {"n": size}) is None
    return made


def test_what_was_tried_has_its_reason_and_what_was_not_a_general_word() -> None:
    made = _failed(SurgeonError("it is too long", where="n", mend=""), 2)
    assert made.reason_at({"n": 1}) == "it is too long"
    assert made.reason_at({"n": 7}) == "the original does not run there"


def test_sizes_for_which_no_time_was_left_are_not_said_to_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "_PATIENCE", 0.0)
    made = _failed(SurgeonError("it is too long", where="n", mend=""), 1)
    made.wasted = 12.3
    assert made.reason_at({"n": 0}) == "it is too long"
    assert made.reason_at({"n": 7}) == "not tried any more: runs that failed took 12 seconds"


def test_nor_are_those_after_too_many_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_MOST_CRASHES", 2)
    made = _failed(ForeignError("it ended", where="n", mend=""), 2)
    assert made.reason_at({"n": 7}) == "not tried any more: its runs ended 2 processes"
