"""`verify` of files that are broken: an answer, and no bug."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_broken import BROKEN

import surgeon


@pytest.mark.parametrize("kind", ["input of dtype 99", "text that is not UTF-8"])
def test_an_answer(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(BROKEN[kind][0]().SerializeToString())
    assert surgeon.verify(path, path).status in ("equivalent", "runs", "broken")
