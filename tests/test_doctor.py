"""The doctor: each finding on an environment made up for it, in its own words."""

import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from surgeon.doctor import Examination, Finding, Installed, Severity, examine

ROOT = Path(__file__).parent.parent

SOUND = Installed(
    python="3.12.1",
    pythons=">=3.11,<3.14",
    versions={
        "onnx-recipe-surgeon": "0.1.0",
        "numpy": "2.3.0",
        "onnx": "1.21.0",
        "onnx-graphsurgeon": "0.6.1",
        "onnxruntime": "1.25.0",
        "protobuf": "6.32.0",
        "torch": "2.13.0",
        "openvino": "2026.4.1",
        "tensorrt-rtx": "1.7.1",
    },
    requires={
        "onnx-recipe-surgeon": [
            "numpy>=1.26",
            "onnx>=1.18",
            "onnx-graphsurgeon>=0.5.8",
            "onnxruntime>=1.20",
            "torch>=1.12; extra == 'torch'",
            "windows-only>=1; sys_platform == 'plan9'",
        ],
        "onnx": ["protobuf>=6.31.1", "pillow; extra == 'reference'"],
        "openvino": ["numpy<2.5"],
    },
)


def other(**versions: str | None) -> Installed:
    """The sound environment, with other versions; None takes a distribution away."""
    changed = SOUND.versions | {k.replace("_", "-"): v for k, v in versions.items()}
    return replace(SOUND, versions={k: v for k, v in changed.items() if v is not None})


def only(examination: Examination) -> Finding:
    (finding,) = examination.findings
    return finding


def test_a_sound_environment_has_no_findings() -> None:
    examination = examine(SOUND)
    assert examination.findings == ()
    assert examination.sound


def test_tells_what_surgeon_stands_on() -> None:
    parts = {part.name: part for part in examine(SOUND).parts}
    assert parts["python"].version == "3.12.1"
    assert parts["onnx"].version == "1.21.0"
    assert parts["onnx"].needed == ">=1.18"
    assert parts["protobuf"].version == "6.32.0"
    assert parts["torch"].needed == ">=1.12"
    assert parts["torch"].feature == "`surgeon.export` and `--reference torch`"
    assert "windows-only" not in parts


def test_finds_a_python_that_surgeon_does_not_know() -> None:
    examination = examine(replace(SOUND, python="3.14.0"))
    assert not examination.sound
    finding = only(examination)
    assert finding.what == "this is Python 3.14.0, and surgeon needs >=3.11,<3.14"


def test_finds_what_is_too_old() -> None:
    finding = only(examine(other(onnx_graphsurgeon="0.5.2", onnx="1.19.0")))
    assert finding == Finding(
        Severity.BROKEN,
        "surgeon needs `onnx-graphsurgeon>=0.5.8`, and 0.5.2 is installed",
        'Run `pip install "onnx-graphsurgeon>=0.5.8"`, '
        "in an environment of its own if another package forbids it.",
    )


def test_finds_what_is_missing() -> None:
    finding = only(examine(other(onnxruntime=None)))
    assert finding.what == "surgeon needs `onnxruntime>=1.20`, which is not installed"


def test_finds_what_a_dependency_needs() -> None:
    finding = only(examine(other(protobuf="4.25.3")))
    assert finding.severity is Severity.BROKEN
    assert finding.what == "`onnx` 1.21.0 needs `protobuf>=6.31.1`, and 4.25.3 is installed"


def test_a_feature_that_lacks_something_does_not_make_surgeon_unsound() -> None:
    examination = examine(other(numpy="2.6.0"))
    assert only(examination).what == "`openvino` 2026.4.1 needs `numpy<2.5`, and 2.6.0 is installed"
    assert examination.sound


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ({"onnx_graphsurgeon": "0.5.8"}, "`onnx-graphsurgeon` 0.5.8 does not work with `onnx`"),
        ({"onnxruntime": "1.18.1"}, "`onnxruntime` 1.18.1 does not work with `numpy` 2.3.0"),
        ({"typer": "0.15.2", "click": "8.5.1"}, "`typer` 0.15.2 does not work with `click` 8.5.1"),
    ],
)
def test_finds_pairs_that_fail_together(versions: dict[str, str], words: str) -> None:
    examination = examine(other(**versions))
    assert any(words in finding.what for finding in examination.findings)
    assert not examination.sound


def test_another_onnxruntime_stands_for_it() -> None:
    assert examine(other(onnxruntime=None, onnxruntime_gpu="1.25.0")).findings == ()


def test_finds_two_onnxruntimes_over_one_another() -> None:
    finding = only(examine(other(onnxruntime_gpu="1.24.0")))
    assert finding.severity is Severity.BROKEN
    assert finding.what == (
        "`onnxruntime` 1.25.0, `onnxruntime-gpu` 1.24.0 lie over one another: "
        "what is imported is a mixture of their files"
    )
    assert "pip uninstall onnxruntime onnxruntime-gpu" in finding.mend


def test_finds_an_onnxruntime_that_is_behind_onnx() -> None:
    examination = examine(other(onnxruntime="1.23.2"))
    assert only(examination).what == (
        "onnx 1.21.0 knows IR 13 and opset 26, onnxruntime 1.23.2 loads up to IR 11 and opset 23: "
        "a model above that is mended but not checked"
    )
    assert examination.sound


def test_says_nothing_of_versions_it_has_not_measured() -> None:
    assert examine(other(onnx="3.0.0", onnxruntime="9.9.0")).findings == ()


def test_tells_what_is_missing_for_which_feature() -> None:
    examination = examine(other(torch=None))
    assert only(examination) == Finding(
        Severity.ABSENT,
        "`torch` is not installed: `surgeon.export` and `--reference torch` cannot be used",
        'Run `pip install "onnx-recipe-surgeon[torch]"`.',
    )
    assert examination.sound


def test_says_that_surgeon_itself_is_not_installed() -> None:
    finding = only(examine(other(onnx_recipe_surgeon=None)))
    assert finding.severity is Severity.BROKEN
    assert finding.mend == "Run `pip install -e .` in its folder."


def test_the_worst_comes_first() -> None:
    findings = examine(other(torch=None, onnxruntime="1.23.2", protobuf="4.25.3")).findings
    assert [finding.severity for finding in findings] == list(Severity)


def test_examines_this_environment_without_importing_what_is_heavy() -> None:
    code = (
        "import sys; from surgeon.doctor import examine; examination = examine();"
        "assert examination.sound, examination.findings;"
        "assert not {'onnx', 'onnxruntime', 'numpy', 'torch', 'onnxsim'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_oldest_versions_tested_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["remote"], *extras["cluster"]]
    bounds = {re.split(">=", text)[0]: re.split("[>=,]+", text)[1] for text in wanted}
    bounds["dask"] = bounds["distributed"]  # of which each release wants its own
    lines = (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert set(pins) == set(bounds)
    for name, pin in pins.items():
        assert pin == bounds[name] or pin.startswith(bounds[name] + "."), name
