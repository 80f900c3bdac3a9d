"""Libraries of custom operators that onnxruntime loads: their operators are run, and compared."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from command import run
from onnx.parser import parse_model as parse

import surgeon
from surgeon import customops
from surgeon.customops import LibraryError
from surgeon.errors import ModelError, SurgeonError
from surgeon.isolation import unknown_operators
from surgeon.runtime import Session

TEXT = """<ir_version: 8, opset_import: ["": 17, "ai.onnx.contrib": 1]>
g (float[n,4] x) => (float[n,4] y, float[n,4] z) <int64[1] one = {1}> {
  a = Identity (x)
  p, q = ai.onnx.contrib.NegPos (a)
  y = Add (p, a)
  u = Unsqueeze (q, one)
  z = Squeeze (u, one)
}"""
OTHER = TEXT.replace("Add (p, a)", "Sub (p, a)")


@pytest.fixture(scope="module")
def library() -> str:
    """The path of a library with `ai.onnx.contrib.NegPos`, which parts a value by its sign."""
    if importlib.util.find_spec("onnxruntime_extensions") is None:
        pytest.skip("onnxruntime-extensions is not installed")
    # elsewhere: imported here, it has every process that is started take a slower protobuf
    asked = "import onnxruntime_extensions; print(onnxruntime_extensions.get_library_path())"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    onnx.save(parse(TEXT), path)
    return path


def test_an_operator_of_a_library_is_run_and_compared(file: Path, library: str) -> None:
    assert surgeon.apply(file, "clean").report.status == "runs"
    with surgeon.custom_ops(library):
        result = surgeon.apply(file, "clean")
    assert result.report.status == "equivalent"
    assert len(result.model.to_proto().graph.node) == 2
    verdict = result.report.verdict
    assert verdict is not None
    assert not verdict.custom_operators
    assert customops.libraries() == ()


def test_it_is_run_in_the_worker(file: Path, library: str) -> None:
    with surgeon.isolation():
        assert unknown_operators(parse(TEXT)) == ("ai.onnx.contrib.NegPos",)
        with surgeon.custom_ops(library):  # which was started without
            assert unknown_operators(parse(TEXT)) == ()
            assert surgeon.apply(file, "clean").report.status == "equivalent"
        assert surgeon.apply(file, "clean").report.status == "runs"


def test_what_differs_by_it_is_seen(library: str) -> None:
    with surgeon.custom_ops(library):
        assert surgeon.verify(parse(TEXT), parse(OTHER)).status == "differs"


def test_operators_that_no_library_holds_stay_unknown(library: str) -> None:
    model = parse(TEXT.replace("z = Squeeze (u, one)", "z = ai.onnx.contrib.Nobodys (u)"))
    with surgeon.custom_ops(library):
        assert unknown_operators(model) == ("ai.onnx.contrib.Nobodys",)


@pytest.mark.slow
def test_the_command_line_takes_it_by_option_and_environment(
    file: Path, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.onnx"
    told = ["apply", "clean", file, out, "--require", "equivalent", "--json"]
    assert run(*told).exit_code == 3
    assert not out.exists()
    made = run(*told, "--custom-ops", library)
    assert made.exit_code == 0
    assert json.loads(made.stdout)["status"] == "equivalent"
    assert run("verify", file, out).exit_code == 0
    found = json.loads(run("inspect", file, "--json", "--custom-ops", library).stdout)
    assert [each["runs"] for each in found["foreign"]] == [True]
    monkeypatch.setenv(customops.VARIABLE, library)
    assert json.loads(run("verify", file, out, "--json").stdout)["status"] == "equivalent"


@pytest.mark.slow
def test_batch_takes_it(file: Path, library: str, tmp_path: Path) -> None:
    rows = list(surgeon.batch(file, tmp_path / "out", "clean"))
    assert [row.verdict[0] for row in rows if row.verdict] == ["runs"]
    with surgeon.custom_ops(library):
        rows = list(surgeon.batch(file, tmp_path / "out", "clean"))
    assert [row.verdict[0] for row in rows if row.verdict] == ["equivalent"]


def test_evidence_runs_with_it(library: str, tmp_path: Path) -> None:
    from surgeon.evidence import keep

    feeds = {"x": np.ones((2, 4), np.float32)}
    with surgeon.custom_ops(library):
        folder = keep(tmp_path, "a rule", "wrong", parse(TEXT), parse(OTHER), feeds)
    assert folder is not None
    assert library in (folder / "run.py").read_text()
    assert "by onnxruntime" in (folder / "README.md").read_text()


def test_a_library_that_is_none_is_named(file: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "libops.so"
    wrong.write_text("no library")
    with surgeon.custom_ops(wrong), pytest.raises(LibraryError, match=r"libops\.so") as caught:
        Session(parse(TEXT))
    assert isinstance(caught.value, SurgeonError)
    with pytest.raises(ModelError, match="no such library"), surgeon.custom_ops(tmp_path / "none"):
        pass
    ended = run("apply", "clean", file, tmp_path / "out.onnx", "--custom-ops", wrong)
    assert ended.exit_code == 1
    assert "does not load this library" in ended.stderr
    assert not (tmp_path / "out.onnx").exists()


def test_a_library_is_seen_before_a_model_is_looked_at(tmp_path: Path) -> None:
    wrong = tmp_path / "libops.so"
    wrong.write_text("no library")
    with surgeon.custom_ops(wrong), pytest.raises(LibraryError), surgeon.isolation():
        pass


def test_libraries_hold_in_their_thread_and_block(library: str) -> None:
    seen: list[tuple[str, ...]] = []
    with surgeon.custom_ops(library), surgeon.custom_ops(library):
        assert customops.libraries() == (library,)
        other = threading.Thread(target=lambda: seen.append(customops.libraries()))
        other.start()
        other.join()
    assert seen == [()]
