"""Real exports: every fact that is inferred of them is what onnxruntime computes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from shares import every
from truth import hold

from surgeon.model import Model
from surgeon.runtime import NotRunnable, Session

pytestmark = pytest.mark.corpus
SHARES = 8  # tests that the files are dealt to, so that workers share them
EVERY = every(4)  # share is run


def rows(corpus: Path) -> list[dict[str, Any]]:
    text = (corpus / "index.jsonl").read_text()
    found = [json.loads(line) for line in text.splitlines()]
    return [row for row in found if row.get("file") and row.get("ort_loads") and row.get("npz")]


def recorded(corpus: Path, row: dict[str, Any], proto: onnx.ModelProto) -> list[dict[str, Any]]:
    """The recorded inputs that this model takes."""
    names = [port.name for port in Session(proto).inputs]
    sets = []
    for name in row["npz"]:
        with np.load(corpus / name) as data:
            if all(f"in.{n}" in data.files for n in names):
                sets.append({n: data[f"in.{n}"] for n in names})
    return sets


# A pool whose window is larger than its input: no value in ONNX, and none in PyTorch. Its traced
# kernel is what the recorded sizes do not fit.
UNDEFINED = {"ops/adaptive_max_pool1d_out1_dynall__t1.4.0__fallback.onnx"}


def check(corpus: Path, chosen: list[dict[str, Any]]) -> None:
    wrong: dict[str, list[str]] = {}
    values = 0
    for row in chosen:
        proto = Model.load(corpus / row["file"]).proto
        try:
            held = hold(proto, recorded(corpus, row, proto))
        except NotRunnable:  # with every value exposed: a type that no output may have
            continue
        values += held.values
        if held.wrong and row["file"] not in UNDEFINED:
            wrong[row["file"]] = held.wrong[:5]
    assert wrong == {}
    assert values > 500


@pytest.mark.slow
@pytest.mark.parametrize("share", range(0, SHARES, EVERY))
def test_facts_of_all_real_exports(corpus: Path, share: int) -> None:
    check(corpus, rows(corpus)[share::SHARES])
