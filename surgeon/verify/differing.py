"""Where two models part: the inputs on which they were found to differ, and the first value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import onnx

from surgeon.choices import Data, Reference
from surgeon.isolation import isolation
from surgeon.model import ModelLike
from surgeon.reference.plan import without_calls
from surgeon.verify.given import read_given
from surgeon.verify.inputs import Drawing, required_inputs
from surgeon.verify.limits import bounds
from surgeon.verify.narrower import narrower
from surgeon.verify.originals import read_recorded, recorded_files
from surgeon.verify.overridden import others_of
from surgeon.verify.parting import find_parting
from surgeon.verify.standins import with_stand_ins
from surgeon.verify.verdict import Parting, Verdict
from surgeon.verify.whole import load


def bisect(
    original: ModelLike,
    result: ModelLike,
    verdict: Verdict,
    *,
    reference: Reference = None,
    sizes: Mapping[str, Sequence[int] | str] | None = None,
    shape: Mapping[str, Sequence[int | str]] | None = None,
    folder_original: Path | None = None,
    folder_result: Path | None = None,
    allow_approximate: float | None = None,
    isolated: bool = False,
    inputs: Mapping[str, str] | None = None,
    data: Data = (),
    progress: Callable[[str], None] | None = None,
) -> Parting | None:
    """The first value at which two models part, on an input where `verdict` says that they do.

    Args:
        original: The first model.
        result: The other model.
        verdict: What `verify` found with the same arguments.
        reference: As for `verify`: recorded inputs are read from there.
        sizes: As for `verify`.
        shape: As for `verify`.
        folder_original: Where the first model's external data lie.
        folder_result: Where the other's lie.
        allow_approximate: As for `verify`: values may differ so much.
        isolated: Run onnxruntime in a worker.
        inputs: As for `verify`.
        data: As for `verify`.
        progress: Told what is being compared.

    Returns:
        Where they part; None where `verdict` knows no input on which both ran and differ.
    """
    before, folder_original = load(original, folder_original)
    after, folder_result = load(result, folder_result)
    feeds = differing_feeds(
        before,
        verdict,
        reference=reference,
        sizes=sizes,
        shape=shape,
        inputs=inputs,
        data=data,
        result=after,
    )
    if feeds is None:
        return None
    if not recorded_files(reference):
        stood = with_stand_ins(before, after)
        before, after = stood if isinstance(stood, tuple) else (before, after)
    with isolation() if isolated else nullcontext():
        folders = folder_original, folder_result
        tolerance = allow_approximate or 0.0
        return find_parting(
            before, after, feeds, folders=folders, tolerance=tolerance, progress=progress
        )


def differing_feeds(
    original: onnx.ModelProto,
    verdict: Verdict,
    *,
    reference: Reference = None,
    sizes: Mapping[str, Sequence[int] | str] | None = None,
    shape: Mapping[str, Sequence[int | str]] | None = None,
    inputs: Mapping[str, str] | None = None,
    data: Data = (),
    result: onnx.ModelProto | None = None,
) -> Mapping[str, Any] | None:
    """Inputs on which both models ran and differ; None where the verdict knows of none.

    The `result` tells the sizes that it takes, where it was compared at these.
    """
    bad = next((c for c in verdict.comparisons if not c.agrees and "sample by" not in c.by), None)
    if bad is None:
        return None
    tied = {dim: other for dim, other in (sizes or {}).items() if isinstance(other, str)}
    taken = shape if result is None else narrower(original, result, shape, tied).shapes
    wanted = required_inputs(original, taken, tied)
    given = read_given(original, inputs, data, shape=shape, reference=reference, other=result)
    if bad.seed >= 0:
        limits = bounds(without_calls(original), wanted)
        drawing = Drawing(wanted, limits, bad.drawn, given.specs, bad.fixed)
        others = others_of(bad.by, original, result)
        return {**drawing.feeds(bad.sizes, bad.seed), **others}
    if bad.drawn:
        return next(each.feeds for each in given.sets if each.label == bad.drawn)
    file = next(f for f in recorded_files(reference) if bad.by == f"recorded {f.name}")
    return read_recorded(file, original, wanted).feeds
