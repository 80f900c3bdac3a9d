"""Options that do not go together, and what stands where a file is wanted: refused, with a mend."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import run
from command_files import net, refused, save, shell

import surgeon

__all__ = ["net"]
NUMBERS = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "x.npz"
    np.savez(path, x=NUMBERS)
    return path


@pytest.mark.parametrize("asked", [["--save-partial"], ["--keep-evidence", "found"]])
def test_without_a_comparison_nothing_can_differ(net: Path, double: Path, asked: Any) -> None:
    result = run("apply", double, net, net.with_name("o.onnx"), "--no-verify", *asked)
    refused(result, 2, "`--no-verify` leaves out what another option asks for")


@pytest.mark.parametrize("place", ["source", "destination", "evidence"])
def test_a_folder_is_no_stream(net: Path, double: Path, place: str) -> None:
    here = os.getcwd()
    os.chdir(net.parent)  # where a folder of that name would be made
    try:
        if place == "evidence":
            result = run("apply", double, net, "o.onnx", "--keep-evidence", "-")
            refused(result, 5, "evidence cannot be kept there")
        else:
            ends = ("-", "out") if place == "source" else (net.parent, "-")
            refused(run("batch", double, *ends), 2, "`-` is a stream, and no folder")
        assert not Path("-").exists()
    finally:
        os.chdir(here)


@pytest.mark.parametrize(
    "fact", ["n == 2", "n % 2 == 0", "n % 4 == 1", "n >= 64", "n > 3", "n < 3"]
)
@pytest.mark.parametrize("command", ["apply", "verify"])
def test_data_of_other_sizes_than_assumed(
    net: Path, double: Path, data: Path, fact: str, command: str
) -> None:
    begin = ["apply", double, net, net.with_name("o.onnx")]
    begin = begin if command == "apply" else ["verify", net, net]
    result = run(*begin, "--assume", fact, "--data", data)
    refused(result, 2, f"its sizes are not as assumed: `{fact}`", "at: --data x.npz")


@pytest.mark.slow
@pytest.mark.parametrize("fact", ["n == 3", "n % 2 == 1", "n >= 0", "n >= 3", "n <= 3"])
def test_data_of_sizes_as_assumed(net: Path, double: Path, data: Path, fact: str) -> None:
    result = run("verify", net, net, "--assume", fact, "--data", data)
    assert result.exit_code == 0, result.output
    assert "data x.npz" in result.output


def test_data_whose_sizes_are_named_by_the_user(net: Path, double: Path, data: Path) -> None:
    told = ["--shape", "x=t,4", "--data", data]
    refused(run("verify", net, net, *told, "--assume", "t == 2"), 2, "not as assumed: `t == 2`")
    assert run("verify", net, net, *told, "--assume", "t == 3").exit_code == 0


@pytest.mark.slow
def test_what_is_assumed_is_so_of_the_shapes_given(net: Path, double: Path) -> None:
    output = net.with_name("o.onnx")
    for fact, code in (("n == 2", 2), ("n >= 2", 2), ("n == 1", 0), ("n <= 1", 0)):
        result = run("apply", double, net, output, "--shape", "x=1,4", "--assume", fact)
        assert result.exit_code == code, result.output
        if code:
            refused(result, 2, f"`{fact}` is assumed, and not so of the shapes that are given")


def test_a_value_goes_to_both_models_that_are_compared(tmp_path: Path) -> None:
    body = "net (float[n,4] x, float[1] k) => (float[n,4] y) {y = Mul (x, k)}"
    model = save(tmp_path / "k.onnx", body)
    result = run("verify", model, model, "--value", "k=3")
    assert result.exit_code == 0, result.output
    other = save(tmp_path / "three.onnx", body.replace("Mul (x, k)", "Add (x, k)"))
    assert run("verify", model, other, "--value", "k=3").exit_code == 3


def test_an_error_without_bound_is_none_that_can_be_allowed(net: Path) -> None:
    refused(run("verify", net, net, "--tolerance", "inf"), 2, "inf is no error that can be allowed")
    refused(run("verify", net, net, "--tolerance", "5"), 2, "is more than the whole", "`5%`")
    with pytest.raises(surgeon.RecipeError, match="-1 is no error that can be allowed"):
        surgeon.verify(net, net, allow_approximate=-1)


def test_a_node_beside_a_target(net: Path) -> None:
    result = run("inspect", net, "--node", "Sin", "--target", "webgl")
    refused(result, 2, "where a node stands has nothing to do with a target")
    result = run("inspect", net, "--nodes", "--target", "webgl")
    refused(result, 2, "which nodes there are has nothing to do with a target")


def test_more_memory_than_a_machine_can_have_is_no_limit(net: Path) -> None:
    result = run("verify", net, net, "--memory", "99999999999T")
    assert result.exit_code == 0, result.output


def test_the_log_is_no_other_file(net: Path, double: Path) -> None:
    folder = net.parent
    both = folder / "both.txt"
    result = run("apply", double, net, folder / "o.onnx", "--report", both, "--log-file", both)
    refused(result, 2, "the log is the report too")
    for begin, end in (
        (["apply", double, net], []),
        (["extract", net], ["--to", "b"]),
        (["reduce", net], ["--check", "false {}"]),
        (["adapt", net], ["--check", "true {}"]),
    ):
        new = folder / f"{begin[0]}.onnx"
        refused(run(*begin, new, *end, "--log-file", new), 2, "the log is the output too")
        assert os.name == "nt" or not new.exists()  # a script may look whether there is an OUT
    refused(run("apply", double, net, folder / "o.onnx", "--log-file", "-"), 5, "is a stream")
    assert not (folder / "o.onnx").exists()


def test_only_apply_replaces_its_input(net: Path, double: Path) -> None:
    refused(run("apply", double, net, net), 5, "`surgeon apply RECIPE MODEL --in-place`.")
    result = run("extract", net, net, "--to", "b")
    refused(result, 5, "mend: Choose another output.")
    assert "--in-place" not in result.output


def test_a_command_line_that_cannot_be_read_is_answered_on_stderr_and_as_json(net: Path) -> None:
    done = shell("inspect", net, "--json", "--nosuch")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["exit_code"] == 2
    assert "No such option" in done.stderr
    assert "--nosuch" in done.stderr


def test_the_log_has_the_error(net: Path, double: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    result = run("apply", double, tmp_path / "none.onnx", tmp_path / "o.onnx", "--log-file", log)
    refused(result, 4, "no such file")
    said = log.read_text()
    assert "error: no such file" in said
    assert "mend: Check the path." in said


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="names of streams are the system's")
def test_a_stream_is_no_place_for_a_model(net: Path, double: Path, tmp_path: Path) -> None:
    name = "/proc/self/fd/1"  # as /dev/stdout is a link to
    with (tmp_path / "out").open("w") as out:
        command = [sys.executable, "-m", "surgeon", "apply", str(double), str(net), name, "-q"]
        ended = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 5
    assert "the output is a stream" in ended.stderr
    with pytest.raises(surgeon.OutputError, match="the output is a stream"):
        surgeon.apply(net, double, verify=False).model.save("/dev/surgeon-test.onnx")


@pytest.mark.slow
def test_a_rule_is_left_out_of_one_file_and_of_many(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    body = "g (float[2,3] x) => (float[2,3] y) { t = Tanh (x) a = Abs (t) y = Abs (a) }"
    model = save(tmp_path / "in" / "twice.onnx", body)
    for name, kept in ((None, 1), ("no-ops/twice-the-same", 2)):
        told = ["--without", name] if name else []
        one, many = tmp_path / f"{kept}.onnx", tmp_path / str(kept)
        assert run("apply", "no-ops", model, one, *told).exit_code == 0
        assert run("batch", "no-ops", model.parent, many, *told).exit_code == 0
        for path in (one, many / "twice.onnx"):
            nodes = [node.op_type for node in onnx.load(path).graph.node]
            assert nodes.count("Abs") == kept, (path, nodes)
    wrong = run("batch", "no-ops", model.parent, tmp_path / "no", "--without", "twice-the-sam")
    refused(wrong, 2, "no recipe that is named has a rule `twice-the-sam`")
