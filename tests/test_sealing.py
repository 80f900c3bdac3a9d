"""`surgeon log` for an audit: what a file was made of and how, and whether it still is that."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from typer.testing import CliRunner

import surgeon
from surgeon import provenance, sealing
from surgeon.cli import app

TEXT = """<ir_version: 8, opset_import: ["": 17]> g (float[n,4] x) => (float[n,4] y)
    <float[4] k = {1.0, 2.0, 3.0, 4.0}, float zero = {0.0}>
    { a = Add (x, zero) b = Mul (a, k) y = Abs (b) }"""
HALVES = "float32-in-float16"


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    onnx.save(onnx.parser.parse_model(TEXT), path)
    return path


@pytest.fixture
def out(net: Path, tmp_path: Path) -> Path:
    path = tmp_path / "out.onnx"
    assert run("apply", "clean", net, path).exit_code == 0
    return path


def last(path: Path) -> dict[str, Any]:
    runs: list[dict[str, Any]] = json.loads(run("log", path, "--json").output)
    return runs[-1]


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def changed(path: Path, how: Any) -> Path:
    model = onnx.load(path)
    how(model)
    onnx.save(model, path)
    return path


def test_the_log_names_its_file_the_verdict_and_the_digest(net: Path, out: Path) -> None:
    made = last(out)
    assert made["source"] == {"sha256": sha(net)}
    assert made["verdict"] == "equivalent: its output agrees at 6 inputs, to the last bit"
    assert made["file"] == {"sha256": sealing.digest_of(onnx.load(out))}
    assert {"allowed", "options", "left out", "data", "reference"}.isdisjoint(made)
    said = run("log", out).output
    assert "verdict  equivalent: its output agrees" in said
    assert sha(net) in said


def test_options_are_options_and_no_recipes(net: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    np.savez(tmp_path / "real.npz", x=np.ones((2, 4), "f4"))
    asked = [
        "--opset",
        13,
        "--target",
        "tensorrt-8.0",
        "--allow",
        "contract",
        "--data",
        tmp_path / "real.npz",
    ]
    assert run("apply", "clean", net, out, *asked).exit_code == 0
    made = last(out)
    assert [each["name"] for each in made["recipes"]] == ["clean"]
    assert made["options"] == {"target": "tensorrt-8.0", "opset": 13}
    assert made["allowed"] == ["contract"]
    assert made["data"] == ["real.npz"]
    said = run("log", out).output
    assert "opset 13" in said
    assert "real.npz" in said


def test_what_was_not_compared_says_so(net: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    assert run("apply", "clean", net, out, "--no-verify").exit_code == 0
    assert last(out)["verdict"] == "not compared: it was asked not to be"


@pytest.mark.slow
def test_equal_runs_give_equal_bytes_and_no_error_of_the_day(net: Path, tmp_path: Path) -> None:
    outs = [tmp_path / f"{name}.onnx" for name in "ab"]
    for out in outs:
        assert run("apply", "clean", net, out, "--reproducible").exit_code == 0
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert last(outs[0])["verdict"] == "equivalent: compared at 6 inputs"


def test_rewrites_that_were_left_out_are_in_it(tmp_path: Path, net: Path) -> None:
    recipe = tmp_path / "bad.yaml"
    recipe.write_text(
        "surgeon: 1\nname: bad\nrules:\n"
        "  - {id: wrong, why: A test., exact: bit, match: 'y = Abs (x)', replace: 'y = Neg (x)'}\n"
    )
    out = tmp_path / "out.onnx"
    assert run("apply", recipe, "clean", net, out).exit_code == 0
    assert last(out)["left out"]["rewrites"] == {"bad/wrong": 1}
    assert "bad/wrong  1x" in run("log", out).output


def test_a_file_that_is_still_the_one_holds(net: Path, out: Path, tmp_path: Path) -> None:
    assert run("log", out, "--check").exit_code == 0
    told = run("log", out, "--check", "--source", net)
    assert told.exit_code == 0
    assert "run 1 of 1 was of" in told.output
    again = tmp_path / "again.onnx"
    onnx.save(onnx.load(out), again)  # by another writer, which changed nothing
    assert run("log", again, "--check").exit_code == 0


def test_a_chain_of_runs_names_the_run_that_a_file_began(
    net: Path, out: Path, tmp_path: Path
) -> None:
    third = tmp_path / "third.onnx"
    assert run("apply", "no-ops", out, third, "--opset", 18).exit_code == 0
    assert "run 2 of 2" in run("log", third, "--check", "--source", out).output
    assert "run 1 of 2" in run("log", third, "--check", "--source", net).output


def _weight(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones(4, "f4"), "k"))


def _attribute(model: onnx.ModelProto) -> None:
    model.graph.node[0].op_type = "Add"


def _metadata(model: onnx.ModelProto) -> None:
    model.metadata_props.add(key="approved", value="yes")


def _order(model: onnx.ModelProto) -> None:
    model.graph.input[0].name = "other"


@pytest.mark.parametrize("how", [_weight, _attribute, _metadata, _order])
def test_any_change_is_seen(out: Path, how: Any) -> None:
    told = run("log", changed(out, how), "--check")
    assert told.exit_code == 3
    assert "the model is not the one that was written" in told.output


def test_another_source_is_seen(out: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    onnx.save(onnx.parser.parse_model(TEXT.replace("4.0}", "5.0}")), other)
    told = run("log", out, "--check", "--source", other, "--json")
    assert told.exit_code == 3
    plain = json.loads(told.output)
    assert not plain["holds"]
    assert plain["faults"] == [f"the log names no file as `{other}` is: it was not made of it"]


def test_what_no_log_can_tell_is_an_error(net: Path, out: Path) -> None:
    told = run("log", net, "--check")
    assert told.exit_code == 1
    assert "nothing can be checked: it has no log" in told.output

    def older(model: onnx.ModelProto) -> None:
        runs = provenance.history(model.metadata_props)
        assert runs
        del runs[-1]["file"]
        model.metadata_props[0].value = json.dumps(runs)

    told = run("log", changed(out, older), "--check")
    assert told.exit_code == 1
    assert "its log is of a version that kept no digest" in told.output
    assert run("log", out).exit_code == 0
    assert run("log", out, "--source", net).exit_code == 2
    missing = run("log", net, "--check", "--source", net.with_name("none"))
    assert missing.exit_code == 1


@pytest.mark.parametrize("small", [True, False])
def test_weights_in_files_are_covered_as_far_as_is_said(
    tmp_path: Path, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not small:
        monkeypatch.setattr(sealing, "SMALL", 10)
    source, out = tmp_path / "net.onnx", tmp_path / "out.onnx"
    kept = {"save_as_external_data": True, "location": "w", "size_threshold": 10}
    model = onnx.parser.parse_model(TEXT)
    k = np.array([1, 2, 3, 4], "f4")
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(k, "k"))
    onnx.save(model, source, **kept)
    assert run("apply", "clean", source, out).exit_code == 0
    told = last(out)["file"]["data"]
    assert told["w"]["bytes"] == (tmp_path / "w").stat().st_size
    assert ("sha256" in told["w"]) == small
    held = run("log", out, "--check")
    assert held.exit_code == 0
    assert ("of data files the size alone is known: `w`" in held.output) != small
    data = bytearray((tmp_path / "w").read_bytes())
    data[3] ^= 1
    (tmp_path / "w").write_bytes(data)
    assert run("log", out, "--check").exit_code == (3 if small else 0)
    (tmp_path / "w").write_bytes(data + b"0")
    assert "its data file `w` is another" in run("log", out, "--check").output
    (tmp_path / "w").unlink()
    assert "its data file `w` is missing" in run("log", out, "--check").output


@pytest.mark.slow
def test_parts_and_batches_are_sealed_too(net: Path, tmp_path: Path) -> None:
    part = tmp_path / "part.onnx"
    assert run("extract", net, part, "--to", "b").exit_code == 0
    assert run("log", part, "--check", "--source", net).exit_code == 0
    assert last(part)["verdict"].startswith("equivalent: ")
    folder = tmp_path / "all"
    folder.mkdir()
    net.rename(folder / "net.onnx")
    (row,) = surgeon.batch(folder, tmp_path / "done", "clean")
    assert row.outcome == "repaired"
    held = run("log", tmp_path / "done" / "net.onnx", "--check", "--source", folder / "net.onnx")
    assert held.exit_code == 0, held.output


@pytest.mark.parametrize("log", ['[{"file": 3}]', '[{"file": {"sha256": 4}}]', '[{"file": {"sha256": "a", "data": [1]}}]', '[{"file": {"sha256": "a", "data": {"../x": 1}}, "options": 3, "left out": 4, "source": 5}]'])  # fmt: skip # noqa: E501
def test_a_log_of_strangers_breaks_nothing(net: Path, log: str) -> None:
    changed(net, lambda model: model.metadata_props.add(key=provenance.KEY, value=log))
    assert run("log", net, "--check", "--source", net).exit_code in (1, 3)
    assert run("log", net).exit_code == 0
