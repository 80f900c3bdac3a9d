"""The command line: what each command prints, its exit code, and what it does not write."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from command import run
from onnx import TensorProto
from typer.main import get_command

import surgeon
from surgeon.cli import EXIT_CODES, app
from surgeon.cli.commands import Command, Group
from surgeon.cli.options import read_shapes
from surgeon.errors import SurgeonError

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
ONE_RULE = """\
surgeon: 1
name: one
rules:
  - id: {id}
    why: Because a test says so.
    exact: {exact}
    match: y = {match}
    replace: y = {replace}
"""


def shell(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "surgeon", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def save(path: Path, body: str) -> Path:
    model = onnx.parser.parse_model(f"{HEAD}\n{body}")
    path.write_bytes(model.SerializeToString())
    return path


def recipe(
    folder: Path,
    match: str = "Neg (x)",
    replace: str = "Relu (x)",
    *,
    exact: str = "rounding",
    name: str = "one.yaml",
) -> Path:
    path = folder / name
    path.write_text(ONE_RULE.format(id="a-rule", exact=exact, match=match, replace=replace))
    return path


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """y = Neg(Neg(x)) + Sin(x), with a dynamic batch."""
    body = "net (float[n,4] x) => (float[n,4] y) {a = Neg(x) b = Neg(a) c = Sin(x) y = Add(b, c)}"
    return save(tmp_path / "net.onnx", body)


def refused(result: Any, code: int, *phrases: str) -> None:
    """An error is three lines, ends in its exit code, and shows no traceback."""
    assert result.exit_code == code, result.output
    assert result.output.startswith("error: ")
    assert "\n   at: " in result.output
    assert "\n mend: " in result.output
    assert "Traceback" not in result.output
    assert "\x1b" not in result.output
    for phrase in phrases:
        assert phrase in result.output


# ------------------------------------------------------------------------------------ itself


def test_help_names_the_commands_and_the_exit_codes() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in ("apply", "verify", "explain", "inspect", "test", "recipes", "doctor"):
        assert command in result.output
    for code, what in EXIT_CODES:
        assert f"{code} {what[:30]}" in result.output


def test_help_and_the_face_import_nothing_heavy() -> None:
    heavy = "{'onnx', 'numpy', 'onnx_graphsurgeon', 'onnxruntime', 'pydantic', 'yaml', 'lark'}"
    code = (
        "import sys, surgeon\n"
        "from surgeon.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        f"print('HEAVY', {heavy} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY set()"


def test_a_quiet_run_without_a_check_imports_what_it_needs(samples: Path, tmp_path: Path) -> None:
    """Every module more is paid by every run; what shows, compares or repairs many is not asked."""
    idle = (
        *("surgeon.cli.batch", "surgeon.cli.examine", "surgeon.cli.shelf"),
        *("surgeon.batch", "surgeon.cases", "surgeon.inspection", "surgeon.reference"),
        *("surgeon.refusing", "surgeon.render", "surgeon.trial", "surgeon.verify"),
        *("concurrent.futures", "fsspec", "multiprocessing", "onnxruntime", "onnxsim"),
        *("pydantic", "rich", "sqlite3", "torch"),
    )
    out = tmp_path / "out.onnx"
    source = samples / "flatten_pool" / "flatten_pool.onnx"
    arguments = ["apply", "clean", str(source), str(out), "--no-verify", "-q"]
    code = (
        "import sys\n"
        "from surgeon.cli import app\n"
        "before = set(sys.modules)  # an old typer brings rich itself\n"
        f"try: app({arguments})\n"
        "except SystemExit as end: assert not end.code\n"
        f"print('IDLE', [name for name in {idle} if name in {{*sys.modules}} - before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "IDLE []\n"
    assert out.is_file()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--timeout", "soon"], "--timeout"),
        (["--timeout", "0"], "0.1"),
        (["--require", "magic"], "equivalent"),
        (["--allow", "exact", "--allow", "magic"], "approximate"),
        (["--external-data"], "requires an argument"),
    ],
)
def test_a_value_that_does_not_fit_its_option_is_refused(
    given: list[str], said: str, samples: Path, tmp_path: Path
) -> None:
    """What needs no conversion skips typer's; what does is converted and checked as ever."""
    source = samples / "flatten_pool" / "flatten_pool.onnx"
    result = run("apply", "clean", str(source), str(tmp_path / "out.onnx"), *given)
    assert result.exit_code == 2
    assert said in result.output
    assert not (tmp_path / "out.onnx").exists()


def test_options_given_several_times_and_converted_ones_arrive(
    samples: Path, tmp_path: Path
) -> None:
    source = samples / "flatten_pool" / "flatten_pool.onnx"
    out, log = tmp_path / "out.onnx", tmp_path / "log"
    given = ["--allow", "contract", "--allow", "approximate", "--timeout", "60", "--no-verify"]
    result = run("apply", "clean", str(source), str(out), *given, "--log-file", str(log))
    assert result.exit_code == 0, result.output
    assert out.is_file()
    assert log.is_file()


@pytest.mark.skipif(os.name == "nt", reason="closes streams as a shell of Unix does")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_change_nothing(closed: str, samples: Path, tmp_path: Path) -> None:
    """Some services start programs without them."""
    source, out = samples / "flatten_pool" / "flatten_pool.onnx", tmp_path / "out.onnx"
    command = [sys.executable, "-m", "surgeon", "apply", "clean", str(source), str(out)]
    done = subprocess.run(f"{shlex.join([*command, '--no-verify'])} {closed}", shell=True)
    assert done.returncode == 0
    assert out.is_file()


def test_every_command_hands_on_what_needs_no_conversion() -> None:
    """docs/decisions/0012."""
    waiting: list[Any] = [get_command(app)]
    while waiting:
        command = waiting.pop()
        assert isinstance(command, Command | Group), command.name
        waiting += getattr(command, "commands", {}).values()


def test_the_version_is_that_of_the_distribution() -> None:
    assert run("--version").output == f"surgeon {surgeon.__version__}\n"


def test_nothing_given_shows_the_help() -> None:
    assert "Usage: surgeon" in run().output


def test_python_m_surgeon_is_the_command() -> None:
    assert shell("--version").stdout == f"surgeon {surgeon.__version__}\n"


# ------------------------------------------------------------------------------------ apply


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


# ------------------------------------------------------------------------------ bad input


BAD_RECIPES = {
    "operator": ("match: y = Neg (x)", "match: y = Ngg (x)", ":7:12", "Did you mean `Neg`?"),
    "attribute": (
        "replace: y = Relu (x)",
        "replace: y = Softmax <axs = 1> (x)",
        ":8:",
        "Did you mean `axis`?",
    ),
    "key": (
        "    exact:",
        "    wher: [x.rank == 2]\n    exact:",
        ":6:5",
        "Did you mean `where`?",
    ),
    "name": ("replace: y = Relu (x)", "replace: y = Relu (z)", ":8:", "unknown name `z`"),
    "not YAML": ("rules:", "rules: [", "", "it is not YAML"),
}


@pytest.mark.parametrize("kind", BAD_RECIPES)
def test_a_wrong_recipe(kind: str, net: Path, tmp_path: Path) -> None:
    good, bad, place, mend = BAD_RECIPES[kind]
    path = recipe(tmp_path)
    path.write_text(path.read_text().replace(good, bad))
    refused(run("apply", path, net, tmp_path / "o.onnx"), 2, f"{path}{place}", mend)
    assert not (tmp_path / "o.onnx").exists()


def test_a_mistyped_bundled_recipe(net: Path, tmp_path: Path) -> None:
    refused(run("apply", "dynm", net, tmp_path / "o.onnx"), 2, "Did you mean `dymn`?")


BAD_MODELS = {
    "missing": (None, "no such file"),
    "empty": (b"", "the file is empty"),
    "zip": (b"PK\x03\x04" + b"\0" * 99, "a zip archive"),
    "html": (b"<!DOCTYPE html><html>Not found</html>", "an HTML page"),
    "noise": (bytes(range(256)), "no ONNX model"),
}


@pytest.mark.parametrize("command", ["apply", "inspect", "verify", "explain"])
@pytest.mark.parametrize("kind", BAD_MODELS)
def test_a_file_that_is_no_model(kind: str, command: str, double: Path, tmp_path: Path) -> None:
    data, phrase = BAD_MODELS[kind]
    path = tmp_path / "in.onnx"
    if data is not None:
        path.write_bytes(data)
    arguments = {
        "apply": [double, path, tmp_path / "o.onnx"],
        "inspect": [path],
        "verify": [path, path],
        "explain": [double, path],
    }[command]
    refused(run(command, *arguments), 4, phrase, str(path))
    assert not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("keep", [0.05, 0.5, 0.9, 0.999])
def test_a_truncated_model(keep: float, samples: Path, tmp_path: Path) -> None:
    data = (samples / "flatten_pool" / "flatten_pool.onnx").read_bytes()
    path = tmp_path / "in.onnx"
    path.write_bytes(data[: int(len(data) * keep)])
    refused(run("apply", "shape-chains", path, tmp_path / "o.onnx"), 4, "truncated")
    assert not (tmp_path / "o.onnx").exists()


def test_missing_external_data(net: Path, double: Path, tmp_path: Path) -> None:
    model = onnx.load(net)
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="gone.bin")
    model.graph.initializer.append(tensor)
    model.graph.node[-1].input[1] = "w"
    net.write_bytes(model.SerializeToString())
    refused(run("apply", double, net, tmp_path / "o.onnx", "--no-verify"), 4, "gone.bin")
    refused(run("apply", "clean", net, tmp_path / "o.onnx"), 4, "`gone.bin` is missing")
    assert not (tmp_path / "o.onnx").exists()


def test_an_output_in_a_folder_that_is_not_there(net: Path, double: Path, tmp_path: Path) -> None:
    out = tmp_path / "no" / "o.onnx"
    refused(run("apply", double, net, out), 5, f"the folder `{out.parent}` does not exist")
    assert not out.parent.exists()


def test_an_output_in_a_read_only_folder(net: Path, double: Path, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):
        pytest.skip("permissions do not bind this user")
    refused(run("apply", double, net, folder / "o.onnx"), 5, "may not be written to")


def test_an_output_that_is_a_folder(net: Path, double: Path, tmp_path: Path) -> None:
    refused(run("apply", double, net, tmp_path), 5, "is a folder", str(tmp_path / "net.onnx"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files here")
def test_an_output_that_is_no_regular_file(net: Path, double: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused(run("apply", double, net, tmp_path / "pipe"), 5, "no regular file")


def test_an_output_that_is_the_input(net: Path, double: Path, tmp_path: Path) -> None:
    before = net.read_bytes()
    (tmp_path / "link.onnx").symlink_to(net)
    for out in (net, tmp_path / "." / "net.onnx", tmp_path / "link.onnx"):
        refused(run("apply", double, net, out), 5, "the output is the file that is read")
    assert net.read_bytes() == before


def test_files_that_would_be_written_over(net: Path, double: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.onnx"
    recorded = tmp_path / "r.json"
    np.savez(tmp_path / "r.npz", x=1)
    (tmp_path / "r.npz").rename(recorded)
    refused(
        run("apply", double, net, out, "--reference", recorded, "--report", recorded),
        5,
        "the report is the file that is read",
    )
    both = tmp_path / "both.json"
    refused(run("apply", double, net, both, "--report", both), 2, "the report is the output too")
    refused(run("apply", double, net, out, "--log-file", net), 5, "no log of surgeon")
    refused(run("apply", double, net, tmp_path / "none" / "r"), 5)
    refused(run("apply", double, net, out, "--report", tmp_path / "no" / "r.json"), 5)
    assert not out.exists()


USAGE = {
    "an input that is not there": (["--shape", "xx=1,4"], "the model has no input `xx`"),
    "another rank": (["--shape", "x=1,4,4"], "has 2 dimensions, not 3"),
    "no shape": (["--shape", "x"], "`x` is no shape of an input"),
    "no size": (["--shape", "x=-1,4"], "`-1` is no size"),
    "two shapes": (["--shape", "x=1,4", "--shape", "x=2,4"], "input `x` has two shapes"),
    "an unknown dim": (["--assume", "t % 32 == 0"], "no input has a dimension named `t`"),
    "an unknown fact": (["--assume", "n is nice"], "cannot use the assumption"),
    "no way": (["--reference", "trch"], "there is no reference `trch`"),
    "two ways": (["--reference", "torch", "--reference", "witness"], "beside another"),
    "check and no check": (["--no-verify", "--reference", "witness"], "another option asks for"),
    "no form": (["--report", "report.pdf"], "no form of report"),
}


@pytest.mark.parametrize("kind", USAGE)
def test_a_wrong_option(kind: str, net: Path, double: Path, tmp_path: Path) -> None:
    options, phrase = USAGE[kind]
    refused(run("apply", double, net, tmp_path / "o.onnx", *options), 2, phrase)
    assert not (tmp_path / "o.onnx").exists()


def test_arguments_that_are_missing_or_in_another_order(net: Path, double: Path) -> None:
    form = "surgeon apply RECIPE... IN OUT"
    refused(run("apply", double), 2, "input and output are missing", form)
    refused(run("apply", double, net), 2, "the output is missing", form)
    refused(run("apply", net, "out.onnx"), 2, "a recipe is missing", form)
    refused(run("apply", net, "out.onnx", double), 2, "looks like a recipe", form)
    refused(run("apply", net, net, "out.onnx"), 2, "stands where a recipe is wanted", form)
    assert not Path("out.onnx").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x=1,1,128,t", {"x": [1, 1, 128, "t"]}),
        ("x=[1, t]", {"x": [1, "t"]}),
        ("a=b=2", {"a=b": [2]}),
        ("x=", {"x": []}),
    ],
)
def test_shapes_are_read(text: str, expected: dict[str, list[int | str]]) -> None:
    assert read_shapes([text]) == expected


@pytest.mark.parametrize("command", ["test", "batch", "apply"])
def test_a_name_that_no_file_can_have(
    command: str, net: Path, double: Path, tmp_path: Path
) -> None:
    name = "n" * 5000
    arguments = {
        "test": ("test", name),
        "batch": ("batch", double, name, tmp_path / "dest"),
        "apply": ("apply", double, net, name),
    }
    refused(run(*arguments[command]), 2, "no file can have a name as long as this")


def test_names_of_strangers_reach_no_terminal(double: Path, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        f"{HEAD} net (float[n] x) => (float[n] y) {{a = Neg(x) b = Neg(a) y = Sin(b)}}"
    )
    model.graph.node[1].name = "evil\x1b]0;title\x07\n[red]" + "long" * 500
    model.graph.output[0].name = model.graph.node[2].output[0] = "out\x1b[2J"
    path = tmp_path / "evil.onnx"
    path.write_bytes(model.SerializeToString())
    for command in (
        ["apply", double, path, tmp_path / "o.onnx", "-v"],
        ["inspect", path],
        ["explain", "shape-chains", path],
        ["verify", path, path],
    ):
        result = run(*command)
        assert result.exit_code == 0, result.output
        assert "\x1b" not in result.output
        assert "\x07" not in result.output


# ------------------------------------------------------------------------- bugs and signals


def breaking(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("surgeon.surgery.apply", fail)


def test_a_bug_is_one_error_and_its_traceback_is_in_the_log(
    net: Path, double: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, ValueError("boom"))
    arguments = ("apply", double, net, tmp_path / "o.onnx")
    refused(run(*arguments), 1, "surgeon has a bug: ValueError: boom", "--log-file")
    log = tmp_path / "log.txt"
    refused(run(*arguments, "--log-file", log), 1, str(log))
    assert "Traceback" in log.read_text()
    assert "Traceback" in run(*arguments, "-v").output


@pytest.mark.parametrize(
    ("error", "code", "phrase"),
    [
        (MemoryError(), 1, "not enough memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (RecursionError("deep"), 1, "surgeon has a bug"),
    ],
)
def test_memory_and_interrupts(
    error: BaseException,
    code: int,
    phrase: str,
    net: Path,
    double: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    breaking(monkeypatch, error)
    result = run("apply", double, net, tmp_path / "o.onnx")
    assert result.exit_code == code
    assert phrase in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "o.onnx").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end differently there")
def test_a_reader_that_leaves_is_no_error() -> None:
    command = [sys.executable, "-m", "surgeon", "recipes", "schema"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


# ------------------------------------------------------------------------- other commands


def test_verify_tells_equal_from_different(net: Path, tmp_path: Path) -> None:
    body = "net (float[n,4] x) => (float[n,4] y) {c = Sin(x) y = Add(x, c)}"
    same = save(tmp_path / "same.onnx", body)
    other = save(tmp_path / "other.onnx", body.replace("Add", "Sub"))
    result = run("verify", net, same)
    assert result.exit_code == 0, result.output
    assert "equivalent: " in result.output
    worse = run("verify", net, other)
    assert worse.exit_code == 3, worse.output
    assert "differs: " in worse.output
    plain = run("verify", net, other, "--json")
    assert plain.exit_code == 3
    assert json.loads(plain.output)["status"] == "differs"


def test_verify_takes_a_shape(net: Path) -> None:
    result = run("verify", net, net, "--shape", "x=7,4", "--json")
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.output)["comparisons"]) > 0
    refused(run("verify", net, net, "--shape", "z=7,4"), 2, "the model has no input `z`")


def test_explain_gives_the_reason_and_the_place(net: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    text = ONE_RULE.format(id="a-rule", exact="bit", match="Neg (x)", replace="Relu (x)")
    path.write_text(text + "    where:\n      - x.shape[0] == 3\n")
    result = run("explain", path, net)
    assert result.exit_code == 0, result.output
    assert f"{path}:10:9" in result.output
    assert "2 x  one/a-rule" in result.output
    plain = json.loads(run("explain", path, net, "--json").output)
    assert {miss["location"] for miss in plain["misses"]} == {f"{path}:10:9"}


def test_explain_of_one_node(net: Path, double: Path) -> None:
    result = run("explain", double, net, "--node", "a")
    assert result.exit_code == 0, result.output
    assert "node 'a' (ai.onnx.Neg)" in result.output
    refused(run("explain", double, net, "--node", "nobody"), 2, "no node `nobody`")


def test_inspect_in_words_and_for_scripts(samples: Path) -> None:
    path = samples / "dymn_tiny" / "dymn_tiny.onnx"
    assert "aten.adaptive_avg_pool2d" in run("inspect", path).output
    plain = json.loads(run("inspect", path, "--json").output)
    assert plain["operators"]["aten._convolution"] == 8
    assert plain["dynamic"] == ["batch", "time"]


def test_recipes_are_listed_shown_and_described() -> None:
    assert "dymn" in run("recipes").output
    assert run("recipes").output == run("recipes", "list").output
    names = [each["name"] for each in json.loads(run("recipes", "list", "--json").output)]
    assert "adaptive-pool" in names
    assert "adaptive-avg-pool2d-to-one" in run("recipes", "show", "adaptive-pool").output
    assert run("recipes", "show", "dymn", "--source").output.startswith("surgeon: 1")
    refused(run("recipes", "show", "adaptive-pol"), 2, "Did you mean `adaptive-pool`?")
    schema = json.loads(run("recipes", "schema").output)
    assert "rules" in schema["properties"]
    assert json.loads(run("recipes", "--schema").output) == schema


def test_doctor_says_what_is_here() -> None:
    result = run("doctor")
    assert "onnxruntime" in result.output
    plain = json.loads(run("doctor", "--json").output)
    assert result.exit_code == (0 if plain["sound"] else 1)


CASES = """\
cases:
  - case: turns twice
    fires: {{double-neg: {times}}}
    before: |
      <ir_version: 8, opset_import: ["": 17]>
      g (float[n,4] x) => (float[n,4] y) {{ a = Neg (x)  b = Neg (a)  y = Sin (b) }}
    after: |
      <ir_version: 8, opset_import: ["": 17]>
      g (float[n,4] x) => (float[n,4] y) {{ y = Sin (x) }}
  - case: turns once
    refuses: {{rule: double-neg, because: "is not computed"}}
    before: |
      <ir_version: 8, opset_import: ["": 17]>
      g (float[n,4] x) => (float[n,4] y) {{ a = Neg (x)  y = Sin (a) }}
"""


def test_test_runs_the_cases_beside_a_recipe(double: Path, tmp_path: Path) -> None:
    cases = tmp_path / "double.cases.yaml"
    cases.write_text(CASES.format(times=1))
    result = run("test", double)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1] == "2 cases hold"
    cases.write_text(CASES.format(times=2))
    worse = run("test", double)
    assert worse.exit_code == 1
    assert "fails  double: turns twice" in worse.output
    assert f"{cases}:2:" in worse.output
    assert "Missing: `double-neg` fires 1 times, not 2" in worse.output
    assert worse.output.splitlines()[-1] == "1 case holds, 1 fails"
    plain = json.loads(run("test", double, "--json").output)
    assert any("Missing" in problem for each in plain for problem in each["problems"])


def test_test_of_what_is_not_there(tmp_path: Path) -> None:
    refused(run("test", tmp_path / "none.yaml"), 2)


# -------------------------------------------------------------------------------- the face


def test_a_submodule_does_not_hide_the_function_of_its_name() -> None:
    code = (
        "import surgeon, surgeon.surgery, surgeon.verify, surgeon.export\n"
        "from surgeon.verify import Verdict\n"
        "assert callable(surgeon.verify) and callable(surgeon.export) and callable(surgeon.apply)\n"
        "assert surgeon.Verdict is Verdict and surgeon.verify is surgeon.verify\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_face_holds_what_it_names() -> None:
    for name in surgeon.__all__:
        assert getattr(surgeon, name) is not None
        assert name in dir(surgeon)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = surgeon.nothing


def test_a_rule_in_python_is_a_recipe_too(net: Path, tmp_path: Path) -> None:
    @surgeon.rule("h = Neg (x)\ny = Neg (h)", why="Twice turned round.", exact="bit")
    def double_neg(build: Any, match: Any) -> Any:
        return build.op("Identity", match.values["x"])

    result = surgeon.apply(net, double_neg)
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    assert sum(result.report.after.values()) == 2
    with pytest.raises(SurgeonError):
        surgeon.apply(net, "no-such-recipe")


# ------------------------------------------------------------------------------ the README

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_readme_shows_what_the_demo_prints(samples: Path, tmp_path: Path) -> None:
    result = run(
        "apply", "dymn", samples / "dymn_tiny" / "dymn_tiny.onnx", tmp_path / "o", "--no-verify"
    )
    said = result.output.splitlines()[1]
    assert said.startswith("dymn: ")
    assert said in README, f"`make demo` says `{said}`: paste its output into README.md anew"


def test_the_readme_names_every_exit_code() -> None:
    for code, what in EXIT_CODES:
        assert f"| {code} | {what} |" in README


def test_the_readmes_recipe_is_one(tmp_path: Path) -> None:
    block = README.partition("```yaml\n")[2].partition("```")[0]
    (rule,) = surgeon.Recipe.parse(block).rules
    assert rule.id == "adaptive-avg-pool2d-to-one"


def test_the_readmes_rule_works() -> None:
    block = README.partition("```python\n@surgeon.rule")[2].partition("\nresult")[0]
    names: dict[str, Any] = {"surgeon": surgeon}
    exec(f"@surgeon.rule{block}", names)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "my.domain" : 1]>'
        "g (float[n] x) => (float[n] y) { h = my.domain.Foo (x)  y = Neg (h) }"
    )
    result = surgeon.apply(model, names["foo_as_relu"])
    assert dict(result.report.after) == {"Relu": 1, "Neg": 1}
    assert result.report.verdict is not None
    assert result.report.verdict.status == "runs"
