"""The command line itself: its help, its options, its streams, and what ends it early."""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
from command import run
from command_files import net, refused, shell
from typer.main import get_command

import surgeon
from surgeon.cli import EXIT_CODES, app
from surgeon.cli.commands import Command, Group

__all__ = ["net"]  # a fixture of `command_files`

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


@pytest.mark.slow
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


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end differently there")
def test_a_reader_of_warnings_that_leaves_changes_no_exit_code(tmp_path: Path) -> None:
    """As in `surgeon ... 2>&1 | head -1`."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "surgeon", "inspect", str(tmp_path / "none.onnx")]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=write)
    os.close(write)
    assert (done.returncode, done.stdout) == (4, b"")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes end differently there")
def test_a_reader_of_progress_that_leaves_stops_no_batch(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    zoo = tmp_path / "zoo"
    zoo.mkdir()
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Abs (x) }'
    for name in ("one.onnx", "two.onnx"):
        onnx.save(onnx.parser.parse_model(text), zoo / name)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "surgeon", "batch", "clean", str(zoo), str(out)]
    done = subprocess.run(command, stdout=write, stderr=write)
    os.close(write)
    assert done.returncode == 0
    assert {path.name for path in out.iterdir()} >= {"one.onnx", "two.onnx", "report.html"}


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_for_what_is_said_is_no_bug() -> None:
    command = [sys.executable, "-m", "surgeon", "recipes", "schema"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 5
        assert "error: what is said cannot be written: No space left on device" in done.stderr
        for option in ("--version", "--help"):
            done = subprocess.run([*command[:3], option], stdout=full, stderr=subprocess.PIPE)
            assert done.returncode == 5
            assert b"Traceback" not in done.stderr
        wrong = subprocess.run([*command[:3], "inspect", "none.onnx"], stderr=full)
        assert wrong.returncode == 4


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="folders that are in use cannot be removed")
def test_what_the_system_refuses_is_no_bug(net: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    given = f"{sys.executable} -m surgeon"
    removed = f"cd {gone} && rmdir {gone} && {given} apply clean in.onnx out.onnx"
    few = f"ulimit -n 7 && {given} apply clean {net} {tmp_path / 'out.onnx'}"
    root = str(Path(__file__).parent.parent)
    for line, said in ((removed, b"the folder that the command runs in"), (few, b"ulimit -n")):
        done = subprocess.run(
            ["/bin/sh", "-c", line], capture_output=True, env=os.environ | {"PYTHONPATH": root}
        )
        assert done.returncode == 1
        assert said in done.stderr.replace(b"\n", b" ")
        assert b"bug" not in done.stderr


@pytest.mark.parametrize("option", ["--report", "--opset", "--target"])
def test_an_option_of_one_value_is_given_once(option: str, net: Path, tmp_path: Path) -> None:
    command = ["apply", "clean", net, tmp_path / "out.onnx", "-q", "-q"]
    done = run(*command, option, "13", option, "17")
    assert done.exit_code == 2
    assert f"`{option}` is given twice" in " ".join(done.output.split())
    assert not (tmp_path / "out.onnx").exists()
    several = run(*command, "--allow", "contract", "--allow", "approximate")
    assert several.exit_code == 0, several.output


def test_help_in_letters_that_a_terminal_lacks() -> None:
    command = [sys.executable, "-m", "surgeon", "--help"]
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert "130 interrupted" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="nobody asks a process to end there")
def test_who_is_asked_to_end_ends_what_it_runs(net: Path, tmp_path: Path) -> None:
    """As `timeout` and runners of CI ask: a runtime's tool would stay on the accelerator."""
    tool, pid = tmp_path / "tool.py", tmp_path / "pid"
    tool.write_text(
        "import os, sys, time\n"
        "with open(sys.argv[2] + '.new', 'w') as file: file.write(str(os.getpid()))\n"
        "os.replace(sys.argv[2] + '.new', sys.argv[2])\n"
        "time.sleep(120)"
    )
    check = f'"{sys.executable}" "{tool}" {{}} "{pid}"'
    command = ["reduce", str(net), str(tmp_path / "part.onnx"), "--check", check]
    with subprocess.Popen(
        [sys.executable, "-m", "surgeon", *command], stderr=subprocess.PIPE, text=True
    ) as process:
        end = time.monotonic() + 60
        while not pid.exists() and time.monotonic() < end:
            time.sleep(0.05)
        process.terminate()
        assert process.stderr is not None
        assert process.stderr.read().startswith("interrupted")
    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
