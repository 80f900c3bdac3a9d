"""The checker is itself checked: wrong rewrites of many kinds, each of which has to be caught.

Each is a rule whose match is the whole model and whose replacement is wrong, mostly for few inputs
alone. It is caught where the rule does not fire and the reason says that the replacement differs,
or where the whole model's check refuses the result.
"""

import json
import os
import re
from pathlib import Path

import pytest
from planted_axes import AXES
from planted_rare import RARE
from planted_types import TYPES
from planted_values import VALUES
from planted_windows import WINDOWS
from truth import model_of

import surgeon
from surgeon.errors import SurgeonError, VerifyError
from surgeon.report import Refusal, Report

SHARES = 8  # tests that the real exports are dealt to

PLANTED = {**VALUES, **AXES, **WINDOWS, **TYPES, **RARE}
# Those that promise the same bits.
BITS = {
    "only for denormals: flushed",
    "only for zeros: their sign",
    "only at NaN: kept out",
    "only at infinity: no difference",
}
RULE = """\
surgeon: 1
name: planted
rules:
  - id: planted
    why: It is wrong.
    exact: {exact}
    match: |
      {match}
    replace: |
      {replace}
"""
caught: dict[str, str] = {}


def indented(text: str) -> str:
    return text.strip().replace("\n", "\n      ")


@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_rewrite_is_caught(name: str, tmp_path: Path) -> None:
    inputs, match, replace, *outputs = PLANTED[name]
    made = set(re.findall(r"\w+(?=[\w, ]* = [A-Z])", replace)) - set(
        " ".join(outputs or "y").split()
    )
    for value in made:  # names of its own
        replace = re.sub(rf"\b{value}\b(?! = [\[\d\"-])", f"{value}_", replace)
    nodes = [line for line in match.splitlines() if " = Constant " not in line]  # they are folded
    path = tmp_path / "planted.yaml"
    text = RULE.format(
        exact="bit" if name in BITS else "rounding",
        match=indented("\n".join(nodes)),
        replace=indented(replace),
    )
    path.write_text(text)
    model = model_of(inputs, match, *(outputs or ["y"]))
    try:
        result = surgeon.apply(model, path)
    except VerifyError:
        caught[name] = "by the whole model"
        return
    reasons = [miss.reason for miss in result.report.misses if miss.rule == "planted"]
    assert result.report.changes == (), "it went through"
    assert any(r.startswith("the replacement differs from what it") for r in reasons), reasons
    caught[name] = "by itself"


def is_alarm(refusal: Refusal, report: Report) -> bool:
    """Whether numbers, sizes or kinds differed; a result that does not run is refused for that."""
    return refusal.drawn != "whole" or report.verdict.status == "differs"


@pytest.mark.skipif(
    "SURGEON_CORPUS" not in os.environ, reason="minutes: asked for with SURGEON_CORPUS alone"
)
@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_no_right_rewrite_is_refused(
    corpus: Path, share: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The recipe `aten` on every real export: what it makes of them PyTorch's outputs bear out."""
    text = (corpus / "index.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    files = [row["file"] for row in rows if row.get("file") and row.get("nonstandard")]
    alarms: dict[str, str] = {}
    compared = 0
    for file in files[share::SHARES]:
        try:
            report = surgeon.apply(corpus / file, "aten", allow=["contract", "leftover"]).report
        except VerifyError as error:
            report = error.report
        except SurgeonError:  # a file of no use is no alarm
            continue
        alarms.update(
            {f"{file}: {r.rule}": r.reason for r in report.refusals if is_alarm(r, report)}
        )
        compared += report.pieces.get("compared", 0)
    with capsys.disabled():
        print(f"\n{len(alarms)} false alarms at {compared} rewrites of {len(files[share::SHARES])}")
    assert alarms == {}
    assert compared > 100


def test_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the figure; last, and of the whole suite alone."""
    assert len(PLANTED) >= 120
    if len(caught) < 2:
        pytest.skip("the others did not run in this process")
    alone = sum(how == "by itself" for how in caught.values())
    with capsys.disabled():
        print(f"\n{len(caught)} of {len(PLANTED)} wrong rewrites caught, {alone} by themselves")
