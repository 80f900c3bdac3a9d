"""`surgeon apply`: what it prints, its exit code, and what it does not write."""

import errno
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from command import run
from command_files import ONE_RULE, net, recipe, refused, shell

from surgeon.errors import OutputError
from surgeon.model import Model

__all__ = ["net"]  # a fixture of `command_files`
GRID = """
<ir_version: 9, opset_import: ["": 20]>
g (float[1,2,3] theta) => (float[1,4,5,2] y) <int64[4] size = {1, 2, 4, 5}> {
  y = AffineGrid (theta, size)
}
"""
TEXTS = """
<ir_version: 10, opset_import: ["": 20]>
g (string[N] x) => (string[N] y) { y = StringConcat (x, x) }
"""


def test_apply_repairs_the_sample(samples: Path, tmp_path: Path) -> None:
    folder = samples / "dymn_tiny"
    out, report, page, log = (tmp_path / name for name in ("o.onnx", "r.json", "r.html", "l.txt"))
    result = run(
        *("apply", "dymn", folder / "dymn_tiny.onnx", out),
        *("--reference", folder / "dymn_tiny.0.npz", "--report", report, "--log-file", log),
    )
    assert result.exit_code == 0, result.output
    assert "aten._convolution" in result.output
    assert "equivalent: " in result.output
    assert "against recorded dymn_tiny.0.npz" in result.output
    assert "extends: " in result.output
    assert f"Saved {out}" in result.output
    plain = json.loads(report.read_text())
    assert plain["verdict"]["status"] == "equivalent"
    assert not any(name.startswith("aten.") for name in plain["after"])
    assert {node.domain for node in onnx.load(out).graph.node} == {""}
    assert "sweep 1" in log.read_text()
    again = run("apply", "dymn", folder / "dymn_tiny.onnx", out, "--no-verify", "--report", page)
    assert again.exit_code == 0
    assert "the whole model was not compared" in again.output
    assert "<html>" in page.read_text()


def test_several_recipes_in_order(net: Path, double: Path, tmp_path: Path) -> None:
    other = recipe(tmp_path, "Sin (x)", "Cos (x)", exact="approximate")
    out = tmp_path / "o.onnx"
    result = run("apply", double, other, net, out, "--allow", "approximate", "--no-verify")
    assert result.exit_code == 0, result.output
    assert "double and one: 4 nodes -> 2" in result.output
    assert [node.op_type for node in onnx.load(out).graph.node] == ["Cos", "Add"]


@pytest.mark.slow
def test_json_is_all_that_is_printed_when_asked_for(
    net: Path, double: Path, tmp_path: Path
) -> None:
    done = shell("apply", double, net, tmp_path / "o.onnx", "--json")
    assert json.loads(done.stdout)["verdict"]["status"] == "equivalent"
    assert done.stderr == ""


def test_quiet_is_quiet(net: Path, double: Path, tmp_path: Path) -> None:
    result = run("apply", double, net, tmp_path / "o.onnx", "-q")
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "o.onnx").exists()


def test_verbose_tells_every_change(net: Path, double: Path, tmp_path: Path) -> None:
    result = run("apply", double, net, tmp_path / "o.onnx", "-v")
    assert "2 x Neg -> nothing" in result.output
    assert "double.yaml:4:5" in result.output


def test_a_dry_run_writes_nothing(net: Path, double: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    result = run("apply", double, net, tmp_path / "o.onnx", "--dry-run")
    assert result.exit_code == 0
    assert "Nothing was written" in result.output
    assert sorted(tmp_path.iterdir()) == before


def test_where_nothing_fires_the_bytes_are_the_inputs(net: Path, tmp_path: Path) -> None:
    rule = tmp_path / "r.yaml"
    rule.write_text(
        ONE_RULE.format(id="a-rule", exact="bit", match="Neg (x)", replace="Relu (x)")
        + "    where: [x.rank == 3]\n"
    )
    out = tmp_path / "o.onnx"
    result = run("apply", rule, net, out)
    assert result.exit_code == 0, result.output
    assert out.read_bytes() == net.read_bytes()
    assert "no rule fired" in result.output
    assert "r.yaml:9:13" in result.output
    assert "surgeon explain" in result.output


@pytest.mark.slow
def test_progress_and_colours_are_for_terminals(net: Path, double: Path, tmp_path: Path) -> None:
    done = shell("apply", double, net, tmp_path / "o.onnx")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_a_result_that_differs_is_not_saved_and_its_report_is(net: Path, tmp_path: Path) -> None:
    wrong = recipe(tmp_path, "Sin (x)", "Cos (x)", exact="approximate")
    out, report = tmp_path / "o.onnx", tmp_path / "r.json"
    result = run("apply", wrong, net, out, "--allow", "approximate", "--report", report)
    assert result.exit_code == 3
    assert "differs" in result.output
    assert "error: the result is not saved" in result.output
    assert not out.exists()
    assert json.loads(report.read_text())["verdict"]["status"] == "differs"


def test_a_file_that_was_there_survives_a_result_that_differs(net: Path, tmp_path: Path) -> None:
    wrong = recipe(tmp_path, "Sin (x)", "Cos (x)", exact="approximate")
    out = tmp_path / "o.onnx"
    out.write_bytes(b"precious")
    assert run("apply", wrong, net, out, "--allow", "approximate").exit_code == 3
    assert out.read_bytes() == b"precious"


@pytest.mark.slow
def test_two_recorded_files(net: Path, double: Path, tmp_path: Path) -> None:
    files = []
    for rows in (1, 3):
        x = np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32)
        files.append(tmp_path / f"{rows}.npz")
        np.savez(files[-1], **{"in.x": x, "out.y": x + np.sin(x)})
    references = [word for file in files for word in ("--reference", file)]
    result = run("apply", double, net, tmp_path / "o.onnx", *references)
    assert result.exit_code == 0, result.output
    assert "against recorded 1.npz" in result.output
    assert "against recorded 3.npz" in result.output


def test_a_script_reads_of_an_error_what_a_person_reads(net: Path, tmp_path: Path) -> None:
    unknown = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
        g (float[n,4] x) => (float[n,4] y) {
          y = org.pytorch.aten.ATen <operator = "frobnicate", overload_name = ""> (x)
        }
        """
    )
    onnx.save(unknown, tmp_path / "unknown.onnx")
    out, report = tmp_path / "o.onnx", tmp_path / "r.json"
    told = run("apply", "aten", tmp_path / "unknown.onnx", out, "--json", "--report", report)
    assert told.exit_code == 8
    plain = json.loads(told.stdout)
    assert plain["error"]["exit_code"] == 8
    assert "`aten.frobnicate` left" in plain["error"]["what"]
    assert plain["after"] == json.loads(report.read_text())["after"] == {"aten.frobnicate": 1}
    told = run("apply", "aten", tmp_path / "none.onnx", out, "--json")
    assert json.loads(told.stdout)["error"]["exit_code"] == told.exit_code == 4
    told = run("apply", "aten", net, tmp_path / "nowhere" / "o.onnx", "--json")
    assert json.loads(told.stdout)["error"]["exit_code"] == told.exit_code == 5
    assert run("apply", "clean", net, "-").exit_code == 5
    assert not out.exists()


@pytest.mark.slow
def test_the_report_says_what_was_saved(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, report = tmp_path / "o.onnx", tmp_path / "r.json"
    told = run("apply", "clean", net, out, "--json", "--report", report)
    assert json.loads(told.stdout)["saved"] == json.loads(report.read_text())["saved"] == str(out)
    told = run("apply", "clean", net, out, "--json", "--dry-run")
    assert json.loads(told.stdout)["saved"] is None

    def full(*_: object, **__: object) -> None:
        raise OutputError(
            "cannot be written: No space left on device", where=str(out), mend="Tidy."
        )

    monkeypatch.setattr(Model, "save", full)
    assert run("apply", "clean", net, out, "--report", report).exit_code == 5
    plain = json.loads(report.read_text())
    assert (plain["saved"], plain["error"]["exit_code"]) == (None, 5)


@pytest.mark.slow
def test_where_the_report_cannot_be_written_the_output_stays(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, report, make = tmp_path / "o.onnx", tmp_path / "r.html", tempfile.mkstemp
    out.write_bytes(b"as it was")

    def full(*, prefix: str, suffix: str, dir: Path) -> tuple[int, str]:
        if report.name in prefix:
            raise OSError(errno.ENOSPC, "No space left on device")
        return make(prefix=prefix, suffix=suffix, dir=dir)

    monkeypatch.setattr(tempfile, "mkstemp", full)
    refused(run("apply", "clean", net, out, "--report", report), 5, "No space left on device")
    assert out.read_bytes() == b"as it was"
    before = net.read_bytes()
    refused(run("apply", "clean", net, "--in-place", "--report", report), 5, "No space left")
    assert {path.name for path in tmp_path.iterdir()} == {net.name, out.name}
    assert net.read_bytes() == before


@pytest.mark.slow
def test_strict_refuses_what_was_left_out(net: Path, tmp_path: Path) -> None:
    wrong = recipe(tmp_path, "Sin (x)", "Cos (x)", exact="rounding")
    out = tmp_path / "o.onnx"
    assert run("apply", wrong, net, out).exit_code == 0  # the rewrite is refused, and said to be
    said = run("apply", wrong, net, out, "-q").stderr
    assert said.startswith("warning: 1 rewrite refused, with which the result would differ: `")
    out.unlink()
    refused = run("apply", wrong, net, out, "--strict")
    assert refused.exit_code == 3
    assert "not all was done that the recipes ask for" in " ".join(refused.output.split())
    assert not out.exists()
    texts = tmp_path / "texts.onnx"
    onnx.save(onnx.parser.parse_model(TEXTS), texts)
    assert run("apply", "opset-17", texts, out).exit_code == 0
    assert run("apply", "opset-17", texts, out, "--strict").exit_code == 3
    onnx.save(onnx.parser.parse_model(GRID), tmp_path / "grid.onnx")
    assert run("apply", "opset-17", tmp_path / "grid.onnx", out, "--strict").exit_code == 0


@pytest.mark.slow
def test_the_result_is_of_the_opset_that_is_asked_for(net: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.onnx"
    for opset in (13, 21, 17):
        result = run("apply", "clean", net, out, "--opset", opset)
        assert result.exit_code == 0, result.output
        assert {entry.domain: entry.version for entry in onnx.load(out).opset_import}[""] == opset
    assert run("apply", "clean", net, out, "--opset", 9).exit_code == 2
    newer = run("apply", "clean", net, out, "--opset", 99)
    assert newer.exit_code == 2
    assert "opset 99 is newer than all that are known" in " ".join(newer.output.split())
    onnx.save(onnx.parser.parse_model(TEXTS), tmp_path / "texts.onnx")
    out.unlink()
    refused = run("apply", "clean", tmp_path / "texts.onnx", out, "--opset", 17)
    assert refused.exit_code == 3
    assert "StringConcat is an operator from opset 20 on" in " ".join(refused.output.split())
    assert "No recipe of older opsets spells StringConcat otherwise" in " ".join(
        refused.output.split()
    )
    assert not out.exists()
    onnx.save(onnx.parser.parse_model(GRID), tmp_path / "grid.onnx")
    assert run("apply", "clean", tmp_path / "grid.onnx", out, "--opset", 17).exit_code == 0


@pytest.mark.slow
def test_what_an_older_opset_has_not_is_spelled_out(tmp_path: Path) -> None:
    sampled = """
        <ir_version: 9, opset_import: ["": 20]>
        g (float[1,2,4,5] x, float[1,3,3,2] grid) => (float[1,2,3,3] y) {
          y = GridSample <mode = "linear"> (x, grid)
        }
    """
    halves = """
        <ir_version: 9, opset_import: ["": 20]>
        g (float16[1,2,4,5] x, float16[1,3,3,2] grid) => (float16[1,2,3,3] y) {
          y = GridSample <mode = "linear"> (x, grid)
        }
    """
    waves = """
        <ir_version: 9, opset_import: ["": 17]>
        g (float[1,32,1] x) => (float[1,32,2] y) { y = DFT <axis = 1> (x) }
    """
    out = tmp_path / "o.onnx"
    for text, opset in ((sampled, 13), (sampled, 16), (waves, 13)):
        onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
        result = run("apply", "clean", tmp_path / "m.onnx", out, "--opset", opset)
        assert result.exit_code == 0, result.output
        made = onnx.load(out)
        assert {entry.domain: entry.version for entry in made.opset_import}[""] == opset
        assert any(node.op_type == "GridSample" for node in made.graph.node) == (opset == 16)
    onnx.save(onnx.parser.parse_model(halves), tmp_path / "m.onnx")
    refused = run("apply", "clean", tmp_path / "m.onnx", out, "--opset", 13)
    assert refused.exit_code == 3
    said = " ".join(refused.output.split())
    assert "GridSample is an operator from opset 16 on" in said
    assert "`surgeon explain grid-forms MODEL` says why GridSample stays" in said


@pytest.mark.parametrize(
    ("arguments", "what", "where"),
    [
        (("apply", "--bogus"), "--bogus", "surgeon apply"),
        (("apply", "clean", "a.onnx", "b.onnx", "--timeout", "-1"), "--timeout", "surgeon apply"),
        (("inspect",), "Missing argument 'MODEL'", "surgeon inspect"),
        (("bogus",), "No such command 'bogus'", "surgeon"),
        (("a.onnx", "b.onnx"), "To simplify a model: `surgeon apply clean IN OUT`", "surgeon"),
    ],
)
def test_a_command_line_that_is_wrong_is_told_to_a_script_too(
    arguments: tuple[str, ...], what: str, where: str
) -> None:
    result = run(*arguments, "--json")
    assert result.exit_code == 2
    error = json.loads(result.stdout)["error"]
    assert what in error["what"]
    assert (error["where"], error["exit_code"]) == (where, 2)
    assert "Usage: surgeon" in result.stderr
    assert not run(*arguments).stdout
