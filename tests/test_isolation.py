"""Native code that hangs, crashes or takes all memory, on files that are somebody else's."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import run

import surgeon
from surgeon.errors import ForeignError
from surgeon.isolation import cell, isolation, open_session
from surgeon.runtime import NotRunnable
from surgeon.workers import Remote, Worker

LINUX = sys.platform == "linux"
HEAD = '<ir_version: 8, opset_import: ["": 17]>'
NEG = "a = Neg(x) b = Neg(a)"


MODULE = """\
import gc, os

def now(*_):
    os.abort()

def sessions():
    return sum(type(each).__name__ == "Session" for each in gc.get_objects())
"""


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """Neg(Neg(x)) + s, where a Loop of 10^12 turns makes s."""
    body = onnx.parser.parse_graph(
        "body (int64 i, bool go, float s) => (bool more, float t) "
        "{ more = Identity(go) t = Add(s, s) }"
    )
    model = onnx.parser.parse_model(
        f"{HEAD} g (float[4] x) => (float[4] y) {{ {NEG} y = Add(b, s) }}"
    )
    loop = onnx.helper.make_node("Loop", ["trips", "yes", "start"], ["s"], body=body)
    model.graph.node.insert(0, loop)
    for name, value in {"trips": 10**12, "yes": True, "start": np.float32(1)}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value), name))
    return save(tmp_path, model)


def save(folder: Path, model: onnx.ModelProto) -> Path:
    path = folder / "in.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    text = f"{HEAD} g (float[n,4] x) => (float[n,4] y) {{ {NEG} y = Sin(b) }}"
    return save(tmp_path, onnx.parser.parse_model(text))


@pytest.fixture
def ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a module `ends` that the worker can import: its `now` ends the process."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "ends.py").write_text(MODULE)
    known = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *([known] if known else [])]))
    return folder


@pytest.mark.slow
def test_an_endless_loop_is_not_compared(double: Path, endless: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    result = run("apply", double, endless, out, "--timeout", 6)
    assert result.exit_code == 0, result.output
    assert "it loads, and was not compared: onnxruntime did not end within 6 sec" in result.output
    assert "warning: not shown to be equivalent" in result.stderr
    assert [node.op_type for node in onnx.load(out).graph.node] == ["Loop", "Add"]


@pytest.mark.slow
def test_an_endless_loop_is_refused_where_equality_is_wanted(
    double: Path, endless: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.onnx"
    result = run("apply", double, endless, out, "--timeout", 6, "--require", "equivalent")
    assert result.exit_code == 3, result.output
    assert "did not end within 6 seconds, the limit of `--timeout`" in result.output
    assert not out.exists()


@pytest.mark.slow
def test_verify_has_limits_too(endless: Path) -> None:
    result = run("verify", endless, endless, "--timeout", 6)
    assert result.exit_code == 0
    assert "did not end within 6 seconds" in result.output


@pytest.mark.skipif(not LINUX, reason="address space is limited on Linux only")
def test_memory_has_a_limit(double: Path, tmp_path: Path) -> None:
    """16 GiB that the model makes of its input, under a limit of 3."""
    model = onnx.parser.parse_model(
        f"{HEAD} g (float[4] x) => (float[4] y) <int64[3] s = {{32768, 32768, 4}}>"
        f"{{ {NEG} c = Expand(b, s) m = ReduceMax<keepdims = 0>(c) y = Add(b, m) }}"
    )
    result = run("apply", double, save(tmp_path, model), tmp_path / "o.onnx", "--memory", "3G")
    assert result.exit_code == 0, result.output
    assert "warning: not shown to be equivalent: it loads, and was not compared" in result.stderr
    assert "allocate memory" in result.stderr


def test_a_model_that_memory_does_not_hold_is_no_broken_one(
    double: Path, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise NotRunnable(where="graph `g`", text="failed to allocate memory", operators=())

    monkeypatch.setattr(Remote, "ensure", refuse)
    result = run("apply", double, small, tmp_path / "o.onnx")
    assert result.exit_code == 7, result.output
    assert "too little memory to load the model" in result.stderr
    assert "Give it more with `--memory`" in result.stderr


@pytest.mark.skipif(not LINUX, reason="address space is limited on Linux only")
def test_a_limit_below_what_the_worker_itself_needs_is_told(double: Path, small: Path) -> None:
    rows = list(surgeon.batch(small, small.parent / "out", double, memory=100 << 20))
    assert [(row.outcome, row.mend) for row in rows] == [
        ("memory", "Give it more with `--memory`.")
    ]


def test_the_check_of_a_rewrite_that_crashes_is_a_finding(
    double: Path, small: Path, tmp_path: Path, ends: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """onnxruntime crashes on the tiny models; the whole model runs, and is compared."""
    monkeypatch.syspath_prepend(ends)
    pair = importlib.import_module("surgeon.verify.pair")
    monkeypatch.setattr(pair, "_TASK", "ends:now")
    out = tmp_path / "out.onnx"
    result = run("apply", double, small, out)
    assert result.exit_code == 0, result.output
    assert "warning: the check of `double/double-neg`: onnxruntime crashed (SIGABRT)" in (
        result.stderr
    )
    assert "equivalent" in result.stdout
    assert out.exists()


@pytest.mark.slow
def test_a_simplifier_that_crashes_is_left_out(
    double: Path, small: Path, tmp_path: Path, ends: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("surgeon.steps.simplify._TASK", "ends:now")
    recipe = tmp_path / "both.yaml"
    recipe.write_text(
        "surgeon: 1\nname: both\nsteps:\n  - use: ./double.yaml\n  - simplify: onnxsim\n"
    )
    result = run("apply", recipe, small, tmp_path / "out.onnx")
    assert result.exit_code == 0, result.output
    assert "warning: step `simplify: onnxsim` was skipped: `onnxsim` crashed" in result.stderr
    assert "double-neg" in result.stdout
    assert (tmp_path / "out.onnx").exists()


def test_one_worker_serves_all(double: Path, small: Path) -> None:
    with isolation():
        here = cell()
        assert here is not None
        for _ in range(2):
            assert surgeon.apply(small, double).report.verdict.status == "equivalent"
        with isolation(timeout=1):
            assert cell() is here
        assert here.worker.generation == 1
    assert cell() is None


@pytest.mark.usefixtures("ends")
def test_a_model_that_is_let_go_leaves_the_worker() -> None:
    model = onnx.parser.parse_model(f"{HEAD} g (float[4] x) => (float[4] y) {{ y = Neg(x) }}")
    with isolation():
        here = cell()
        assert here is not None
        for _ in range(3):
            open_session(model)
        kept = open_session(model)
        kept.run({"x": np.zeros(4, np.float32)})
        assert here.worker.call("ends:sessions") == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_what_a_worker_leaves_behind_goes_with_it() -> None:
    with Worker() as worker:
        where = Path(worker.call("tempfile:mkdtemp"))
        assert where.parent != Path(tempfile.gettempdir())
        with pytest.raises(ForeignError):
            worker.call("os:abort")
        assert not where.parent.exists()
        again = Path(worker.call("tempfile:mkdtemp"))
    assert not again.parent.exists()


def test_an_interrupt_ends_the_worker_and_leaves_the_output(
    double: Path, endless: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.onnx"
    out.write_bytes(b"old")
    command = [sys.executable, "-m", "surgeon", "apply", str(double), str(endless), str(out)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not (children := _children(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert children
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted; no half-written file is left" in said
    assert out.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "double.yaml",
        "in.onnx",
        "out.onnx",
    ]
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def _children(pid: int) -> list[int]:
    found = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    pairs = [tuple(map(int, line.split())) for line in found.splitlines()]
    return [child for child, parent in pairs if parent == pid]


@pytest.mark.skipif(not LINUX, reason="the system has no such limits, or counts otherwise")
def test_a_worker_that_crashes_leaves_no_core() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_CORE)
    if before[1] == 0:
        pytest.skip("none is allowed here")
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    try:
        with Worker() as worker:
            assert worker.call("resource:getrlimit", resource.RLIMIT_CORE)[0] == 0
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)


@pytest.mark.parametrize("flag", ["-E", "-I", "-s", "-P"])
def test_a_worker_hears_as_little_of_the_environment_as_its_parent(
    tmp_path: Path, flag: str
) -> None:
    (tmp_path / "planted.py").write_text("found = 1\n")
    root = str(Path(surgeon.__file__).parent.parent)
    program = f"""
import sys
sys.path.insert(0, {root!r})
from surgeon.runtime import NotRunnable
from surgeon.workers import Remote, Worker
with Worker() as worker:
    try:
        print(worker.call("planted:missing"))
    except ModuleNotFoundError as error:
        print(error)
    except AttributeError:
        print("it was imported")
"""
    made = subprocess.run(
        [sys.executable, flag, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    ignored = flag in ("-E", "-I")
    assert made.stdout.strip() == ("No module named 'planted'" if ignored else "it was imported")
