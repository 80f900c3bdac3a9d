"""What a worker may take of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from surgeon import capacity


def test_a_worker_takes_no_more_than_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "meminfo"
    monkeypatch.setattr(capacity, "MEMINFO", told)
    monkeypatch.setattr(capacity, "memory", lambda: 64 << 30)
    assert capacity.share() == (64 << 30) * 4 // 5  # where the system does not say
    told.write_text("MemTotal: 67108864 kB\nMemAvailable:   10485760 kB\n")
    assert capacity.share() == (10 << 30) * 4 // 5
    told.write_text("MemAvailable: 1024 kB\n")
    assert capacity.share() == capacity.FLOOR
