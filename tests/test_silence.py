"""Nothing is told to anybody: onnxruntime's own telemetry stays off, in workers too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parent.parent / "samples" / "flatten_pool" / "flatten_pool.onnx"
ASKED = f"""
import surgeon
surgeon.verify({str(SAMPLE)!r}, {str(SAMPLE)!r})
with surgeon.isolation():
    surgeon.verify({str(SAMPLE)!r}, {str(SAMPLE)!r})
"""


@pytest.mark.slow
def test_onnxruntime_notes_nothing_in_the_cache(tmp_path: Path) -> None:
    given = {k: v for k, v in os.environ.items() if k not in ("ORT_DISABLE_TELEMETRY",)}
    given |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", ASKED], env=given, check=True, timeout=120)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
