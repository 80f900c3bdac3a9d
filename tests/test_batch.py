"""Many files: what becomes of good, broken and hostile ones, and of a run that is killed."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from command import DOUBLE
from typer.testing import CliRunner

import surgeon
from surgeon.batch import Row, attempt, find, grouped
from surgeon.batch.identity import version
from surgeon.batch.reports import rows_as_text
from surgeon.cli import app
from surgeon.errors import ModelError, OutputError, RecipeError
from surgeon.render.batch_page import batch_page

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
TASK = """\
import ctypes, os, time
from pathlib import Path
from surgeon.batch.task import data_files, repair as plain

def repair(path, target, recipes, digests, options):
    name = Path(path).name
    with open({log!r}, "a") as log:
        log.write(name + "\\n")
    if name.startswith("abort"):
        os.abort()
    if name.startswith("segfault"):
        ctypes.string_at(0)
    if name.startswith("hang"):
        time.sleep(600)
    if name.startswith("greedy"):
        bytearray(1 << 50)
    if name.startswith("slow"):
        time.sleep(0.3)
    return plain(path, target, recipes, digests, options)
"""


def digest(recipe: Path) -> str:
    """As a batch gives it to its workers."""
    return surgeon.Recipe.load(recipe).digest


def net(scale: int = 1, *, needy: bool = True) -> bytes:
    """y = Neg(Neg(x)) * scale; without need of repair, y = x * scale."""
    twice = "a = Neg(x) b = Neg(a)" if needy else "b = Abs(x)"
    text = f"net (float[n,4] x) => (float[n,4] y) <float s = {{{scale}}}> {{{twice} y = Mul(b, s)}}"
    model = onnx.parser.parse_model(f"{HEAD}\n{text}")
    return model.SerializeToString()


def heavy(folder: Path, name: str = "heavy.onnx", data: str = "heavy.bin") -> Path:
    """A model that adds weights which lie in another file."""
    model = onnx.load_from_string(net())
    weight = model.graph.initializer.add(name="w", data_type=onnx.TensorProto.FLOAT, dims=[4])
    weight.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": data, "offset": "0", "length": "16"}.items():
        weight.external_data.add(key=key, value=value)
    model.graph.node[-1].input[1] = "w"
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["batch", *map(str, arguments)])


def outcomes(rows: Any) -> dict[str, str]:
    return {row.name: row.outcome for row in rows}


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, the reports left out: they tell times."""
    files = (p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("report."))
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


@pytest.fixture
def double(tmp_path: Path) -> Path:
    path = tmp_path / "double.yaml"
    path.write_text(DOUBLE)
    return path


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    """Two that need repair, one deep down, and one that does not."""
    folder = tmp_path / "zoo"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "one.onnx").write_bytes(net(2))
    (folder / "deep" / "er" / "two.onnx").write_bytes(net(3))
    (folder / "well.onnx").write_bytes(net(5, needy=False))
    (folder / "notes.txt").write_text("no model")
    return folder


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Workers that die by the name of their file; which files they were given goes to the log."""
    path = tmp_path / "tasks.log"
    path.touch()
    (tmp_path / "hostile_task.py").write_text(TASK.format(log=str(path)))
    known = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *([known] if known else [])]))
    monkeypatch.setattr(attempt, "TASK", "hostile_task:repair")
    return path


# ------------------------------------------------------------------------- what becomes of files


def test_the_tree_is_kept_and_what_needs_no_repair_is_copied(zoo: Path, double: Path) -> None:
    dest = zoo.parent / "out"
    rows = {row.name: row for row in surgeon.batch(zoo, dest, double)}
    assert outcomes(rows.values()) == {
        "deep/er/two.onnx": "repaired",
        "one.onnx": "repaired",
        "well.onnx": "unchanged",
    }
    assert rows["one.onnx"].nodes == (3, 1)
    assert rows["one.onnx"].rules == {"double/double-neg": 1}
    assert rows["one.onnx"].verdict is not None
    assert rows["one.onnx"].verdict[0] == "equivalent"
    assert (dest / "well.onnx").read_bytes() == (zoo / "well.onnx").read_bytes()
    mended = onnx.load(dest / "deep" / "er" / "two.onnx")
    assert [node.op_type for node in mended.graph.node] == ["Mul"]
    assert sorted(tree(dest)) == ["deep/er/two.onnx", "one.onnx", "well.onnx"]
    lines = (dest / "report.jsonl").read_text().splitlines()
    assert [json.loads(line)["name"] for line in lines] == sorted(rows)


def test_only_changed_copies_nothing(zoo: Path, double: Path) -> None:
    dest = zoo.parent / "out"
    list(surgeon.batch(zoo, dest, double))
    list(surgeon.batch(zoo, dest, double, only_changed=True))
    assert sorted(tree(dest)) == ["deep/er/two.onnx", "one.onnx"]


@pytest.mark.slow
def test_one_file_never_harms_another(zoo: Path, double: Path, log: Path) -> None:
    bad = {
        "abort.onnx": "crashed",
        "segfault.onnx": "crashed",
        "hang.onnx": "timeout",
        "greedy.onnx": "memory",
    }
    for index, name in enumerate(bad):
        (zoo / name).write_bytes(net(10 + index))
    (zoo / "cut.onnx").write_bytes(net(7)[:40])
    (zoo / "empty.onnx").write_bytes(b"")
    (zoo / "page.onnx").write_bytes(b"<!DOCTYPE html><p>404")
    dest = zoo.parent / "out"
    rows = {row.name: row for row in surgeon.batch(zoo, dest, double, jobs=2, timeout=20.0)}
    assert outcomes(rows.values()) == {
        **bad,
        "cut.onnx": "broken",
        "empty.onnx": "broken",
        "page.onnx": "broken",
        "deep/er/two.onnx": "repaired",
        "one.onnx": "repaired",
        "well.onnx": "unchanged",
    }
    assert "SIGABRT" in rows["abort.onnx"].reason
    assert "SIGSEGV" in rows["segfault.onnx"].reason
    assert rows["hang.onnx"].reason == "not done within 20 seconds"
    assert "an HTML page" in rows["page.onnx"].reason
    assert sorted(tree(dest)) == ["deep/er/two.onnx", "one.onnx", "well.onnx"]


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux alone")
@pytest.mark.parametrize(
    "memory",
    [
        pytest.param(600 << 20, marks=pytest.mark.slow),
        800 << 20,
        pytest.param(1 << 30, marks=pytest.mark.slow),
    ],
)
def test_a_model_that_does_not_fit_is_not_called_broken(
    tmp_path: Path, double: Path, memory: int
) -> None:
    model = onnx.load_from_string(net())
    weights = onnx.numpy_helper.from_array(np.ones((1 << 24, 4), np.float32), "s")
    model.graph.initializer[0].CopyFrom(weights)
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "m"
    (tmp_path / "large.onnx").write_bytes(model.SerializeToString())
    (row,) = surgeon.batch(tmp_path / "large.onnx", tmp_path / "out", double, memory=memory)
    assert row.outcome == "memory", row.reason
    assert not tree(tmp_path / "out")


def test_a_wrong_rule_changes_nothing(zoo: Path) -> None:
    wrong = zoo.parent / "wrong.yaml"
    wrong.write_text(DOUBLE.replace("Identity (x)", "Abs (x)"))
    rows = {row.name: row for row in surgeon.batch(zoo, zoo.parent / "out", wrong)}
    assert rows["one.onnx"].outcome == "unchanged"
    assert tree(zoo.parent / "out")["one.onnx"] == (zoo / "one.onnx").read_bytes()


def test_identical_files_are_repaired_once(zoo: Path, double: Path, log: Path) -> None:
    for name in ("same.onnx", "deep/same.onnx", "zz.onnx"):
        (zoo / name).write_bytes(net(2))
    rows = {row.name: row for row in surgeon.batch(zoo, zoo.parent / "out", double, jobs=2)}
    assert len(log.read_text().split()) == 3
    assert {row.same_as for row in rows.values()} == {None, "deep/same.onnx"}
    made = tree(zoo.parent / "out")
    assert made["zz.onnx"] == made["same.onnx"] == made["one.onnx"] != net(2)


# ------------------------------------------------------------------------------- external data


def test_external_data_go_with_their_model(tmp_path: Path, double: Path) -> None:
    zoo = tmp_path / "zoo"
    zoo.mkdir()
    (zoo / "heavy.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    heavy(zoo)
    dest = tmp_path / "out"
    (row,) = surgeon.batch(zoo, dest, double)
    assert row.outcome == "repaired"
    assert (dest / "heavy.bin").read_bytes() == (zoo / "heavy.bin").read_bytes()
    (zoo / "heavy.bin").unlink()
    (zoo / "heavy.bin").write_bytes(np.arange(4, 8, dtype=np.float32).tobytes())
    (row,) = surgeon.batch(zoo, dest, double)
    assert row.fresh
    assert (dest / "heavy.bin").read_bytes() == (zoo / "heavy.bin").read_bytes()


@pytest.mark.parametrize(
    ("location", "outcome", "said"),
    [
        ("../secret.bin", "broken", "lies outside the model's folder"),
        ("/etc/passwd", "broken", "lies outside the model's folder"),
        ("gone.bin", "broken", "is missing"),
        ("link.bin", "broken", "is a link out of the model's folder"),
        ("other.onnx", "refused", "is a model of this batch"),
        ("report.html", "refused", "the name of the batch's own report"),
    ],
)
def test_data_out_of_place(
    tmp_path: Path, double: Path, location: str, outcome: str, said: str
) -> None:
    zoo = tmp_path / "zoo"
    zoo.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    (zoo / "link.bin").symlink_to(tmp_path / "secret.bin")
    (zoo / "report.html").write_bytes(bytes(16))
    (zoo / "other.onnx").write_bytes(net(3))
    heavy(zoo, data=location)
    rows = {row.name: row for row in surgeon.batch(zoo, tmp_path / "out", double)}
    assert rows["heavy.onnx"].outcome == outcome
    assert said in rows["heavy.onnx"].reason
    assert rows["other.onnx"].outcome == "repaired"
    assert sorted(tree(tmp_path / "out")) == ["other.onnx"]


def test_no_link_is_followed(zoo: Path, double: Path) -> None:
    outside = zoo.parent / "outside"
    outside.mkdir()
    (outside / "theirs.onnx").write_bytes(net(9))
    (zoo / "linked.onnx").symlink_to(outside / "theirs.onnx")
    (zoo / "round.onnx").symlink_to(zoo / "round.onnx")
    (zoo / "folder").symlink_to(outside)
    os.mkfifo(zoo / "pipe.onnx")
    dest = zoo.parent / "out"
    dest.mkdir()
    (dest / "deep").symlink_to(outside)  # would lead out of DEST
    rows = {row.name: row for row in surgeon.batch(zoo, dest, double)}
    assert rows["linked.onnx"].reason == "it is a link out of SOURCE, which is not followed"
    assert rows["pipe.onnx"].reason == "it is no regular file"
    assert rows["round.onnx"].outcome == "refused"
    assert rows["deep/er/two.onnx"].reason == "a link in DEST would be followed"
    assert "folder/theirs.onnx" not in rows
    assert [path.name for path in outside.iterdir()] == ["theirs.onnx"]


# ------------------------------------------------------------------------------------- sources


def test_patterns_lists_and_single_models(zoo: Path) -> None:
    def names(source: object) -> list[str]:
        return [each.name for each in find(str(source))]

    assert names(zoo / "**" / "*.onnx") == ["deep/er/two.onnx", "one.onnx", "well.onnx"]
    assert names(zoo / "*" / "*" / "t*.onnx") == ["deep/er/two.onnx"]
    assert names(zoo / "one.onnx") == ["one.onnx"]
    listed = zoo / "list.txt"
    listed.write_text(f"# two of them\none.onnx\n\n{zoo}/deep/er/two.onnx\n")
    assert names(listed) == ["deep/er/two.onnx", "one.onnx"]
    (zoo / "deep" / "list.txt").write_text("../one.onnx\ner/two.onnx\n")
    assert names(zoo / "deep" / "list.txt") == ["deep/er/two.onnx", "one.onnx"]
    for nothing in (zoo / "gone.txt", zoo / "*.pt", zoo / "gone"):
        with pytest.raises(ModelError):
            find(nothing)


def test_a_destination_inside_the_source_is_not_searched(zoo: Path, double: Path) -> None:
    for _ in range(2):
        rows = list(surgeon.batch(zoo, zoo / "mended", double))
        assert len(rows) == 3
    with pytest.raises(OutputError, match="DEST is SOURCE or holds it"):
        surgeon.batch(zoo, zoo, double)
    with pytest.raises(OutputError, match="DEST is SOURCE or holds it"):
        surgeon.batch(zoo, zoo.parent, double)


def test_recipes_are_named(zoo: Path) -> None:
    with pytest.raises(RecipeError, match="there is no recipe"):
        surgeon.batch(zoo, zoo.parent / "out")
    with pytest.raises(RecipeError, match="`Recipe` is no name"):
        surgeon.batch(zoo, zoo.parent / "out", surgeon.Recipe.parse(DOUBLE))  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------- resume


def test_a_second_run_does_what_is_new_or_changed(
    zoo: Path, double: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dest = zoo.parent / "out"

    def done(**options: Any) -> list[str]:
        log.write_text("")
        list(surgeon.batch(zoo, dest, double, jobs=1, **options))
        return log.read_text().split()

    assert done() == ["two.onnx", "one.onnx", "well.onnx"]
    assert done() == []
    (zoo / "new.onnx").write_bytes(net(11))
    (zoo / "one.onnx").write_bytes(net(12))
    assert done() == ["new.onnx", "one.onnx"]
    (dest / "one.onnx").write_bytes(b"spoilt")
    (dest / "new.onnx").unlink()
    assert done() == ["new.onnx", "one.onnx"]
    double.write_text(DOUBLE.replace("where it was", "where it was before"))
    assert len(done()) == 4
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["surgeon.batch.run"], "version", lambda: f"{version()} next")
        patch.setattr(attempt, "version", lambda: f"{version()} next")
        assert len(done()) == 4
        assert done() == []
    assert done() == ["two.onnx", "new.onnx", "one.onnx"]  # the other is only copied again
    assert len(done(assume=["n >= 2"])) == 4
    assert done(assume=["n >= 2"]) == []
    assert len(done(assume=["n >= 2"], force=True)) == 4


def test_the_version_counts_the_sources_of_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from surgeon.batch import identity

    def version_in(folder: str, text: str) -> str:
        module = tmp_path / folder / "surgeon" / "batch" / "identity.py"
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(text)
        monkeypatch.setattr(identity, "__file__", str(module))
        identity.version.cache_clear()
        return identity.version()

    try:
        assert version_in("work", "a = 1") == version_in("work", "a = 1")
        assert version_in("work", "a = 1") != version_in("work", "a = 2")
        assert version_in("site-packages", "a = 1") == version_in("site-packages", "a = 2")
        assert "onnxruntime 1." in version_in("site-packages", "")
    finally:
        identity.version.cache_clear()


def test_what_a_file_took_is_given_back(tmp_path: Path, double: Path) -> None:
    """Sessions hang on circles: a later file must not meet an address space full of threads."""
    from surgeon.batch import task
    from surgeon.runtime import Session

    path = tmp_path / "one.onnx"
    path.write_bytes(net())
    gc.collect()
    gc.disable()
    try:
        done = task.repair(str(path), str(tmp_path / "o"), [str(double)], [digest(double)], {})
        left = [each for each in gc.get_objects() if isinstance(each, Session)]
    finally:
        gc.enable()
        gc.unfreeze()
    assert done["outcome"] == "repaired"
    assert left == []


@pytest.mark.slow
def test_failed_files_are_done_again_when_that_is_asked_for(
    zoo: Path, double: Path, log: Path
) -> None:
    (zoo / "abort.onnx").write_bytes(net(11))
    (zoo / "hang.onnx").write_bytes(net(12))
    dest = zoo.parent / "out"

    def done(**options: Any) -> set[str]:
        log.write_text("")
        list(surgeon.batch(zoo, dest, double, jobs=1, **options))
        return set(log.read_text().split())

    done(timeout=10.0)
    assert done(timeout=10.0) == set()
    assert done(timeout=10.0, retry="failed") == {"abort.onnx", "hang.onnx"}
    assert done(timeout=11.0) == {"hang.onnx"}


def test_what_was_repaired_once_and_is_broken_now_leaves_nothing_behind(
    zoo: Path, double: Path
) -> None:
    dest = zoo.parent / "out"
    list(surgeon.batch(zoo, dest, double))
    (zoo / "one.onnx").write_bytes(b"broken")
    list(surgeon.batch(zoo, dest, double))
    assert sorted(tree(dest)) == ["deep/er/two.onnx", "well.onnx"]


def test_what_a_killed_run_wrote_last_is_known_as_its_own(
    zoo: Path, double: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from surgeon.batch.state import State

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    dest = zoo.parent / "out"
    with monkeypatch.context() as patch:
        patch.setattr(State, "wrote", killed)
        with pytest.raises(KeyboardInterrupt):
            list(surgeon.batch(zoo, dest, double, jobs=1))
    assert list(tree(dest)) == ["deep/er/two.onnx"]
    (zoo / "deep" / "er" / "two.onnx").write_bytes(b"broken")
    (dest / "one.onnx").write_bytes(b"somebody else's")
    (zoo / "one.onnx").write_bytes(b"broken")
    list(surgeon.batch(zoo, dest, double))
    assert sorted(tree(dest)) == ["one.onnx", "well.onnx"]


def test_two_runs_do_not_share_a_state(zoo: Path, double: Path) -> None:
    first = surgeon.batch(zoo, zoo.parent / "out", double)
    next(first)
    with pytest.raises(OutputError, match="another run of `surgeon batch` uses this state"):
        next(surgeon.batch(zoo, zoo.parent / "out", double))
    first.close()
    assert len(list(surgeon.batch(zoo, zoo.parent / "out", double))) == 3


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(zoo: Path, double: Path, log: Path) -> None:
    for index in range(12):
        (zoo / f"slow{index:02}.onnx").write_bytes(net(20 + index))
    (zoo / "slow99.onnx").write_bytes(net(20))  # as slow00
    whole, dest = zoo.parent / "whole", zoo.parent / "out"
    list(surgeon.batch(zoo, whole, double, jobs=2))
    log.write_text("")
    code = (
        "import sys, surgeon; from surgeon.batch import attempt; "
        "attempt.TASK = 'hostile_task:repair'\n"
        "for row in surgeon.batch(*sys.argv[1:], jobs=2): print(row.name, flush=True)"
    )
    command = [sys.executable, "-c", code, str(zoo), str(dest), str(double)]
    for enough in (3, 4, 5):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(enough + 3 * (enough - 3)):
                assert process.stdout.readline()
            time.sleep(0.1)
            process.send_signal(signal.SIGKILL)
    rows = list(surgeon.batch(zoo, dest, double, jobs=2))
    assert tree(dest) == tree(whole)

    def told(folder: Path) -> list[dict[str, Any]]:
        lines = map(json.loads, (folder / "report.jsonl").read_text().splitlines())
        return [{k: v for k, v in row.items() if k not in ("seconds", "fresh")} for row in lines]

    assert told(dest) == told(whole)
    assert sum(not row.fresh for row in rows) >= 5
    again = log.read_text().split()
    assert len(again) <= 15 + 2 * 3  # what was in hand when a run was killed, and no more


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory and children are read in /proc")
def test_hostile_files_and_kills_at_random_moments(tmp_path: Path, double: Path) -> None:
    """The small form of `make batch`; it says which seed it took."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for index in range(30):
        (corpus / f"{index:02}.onnx").write_bytes(net(2 + index, needy=index % 3 > 0))
    script = Path(__file__).parent / "benchmarks" / "folder.py"
    options = (
        "--files",
        "30",
        "--hostile",
        "30",
        "--kills",
        "3",
        "--recipe",
        double,
        "--timeout",
        "20",
    )
    command = [sys.executable, script, corpus, *options, "--work", tmp_path / "work"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "30 models, 30 hostile files" in done.stdout
    assert "resumed: " in done.stdout


def test_ctrl_c_ends_the_run_and_its_workers_at_once(zoo: Path, double: Path, log: Path) -> None:
    (zoo / "hang.onnx").write_bytes(net(20))
    dest = zoo.parent / "out"
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from surgeon.batch import attempt; attempt.TASK = 'hostile_task:repair'\n"
        "from surgeon.cli import main; main()"
    )  # what a shell starts in the background ignores Ctrl-C
    command = [sys.executable, "-c", code, "batch", str(double), str(zoo), str(dest), "-j", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(300):
            if "hang.onnx" in log.read_text():
                break
            time.sleep(0.1)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert list(tree(dest)) == ["deep/er/two.onnx"]
    assert not list(dest.glob(".surgeon-*"))
    (zoo / "hang.onnx").unlink()
    rows = list(surgeon.batch(zoo, dest, double))
    assert [row.name for row in rows if not row.fresh] == ["deep/er/two.onnx"]


# -------------------------------------------------------------------------------------- Python


def test_any_executor_and_every_result(zoo: Path, double: Path) -> None:
    seen: list[Row] = []
    with ThreadPoolExecutor(2) as executor:
        run = surgeon.batch(
            zoo, zoo.parent / "out", double, executor=executor, on_result=seen.append
        )
        assert run.total == 3
        assert [row.name for row in run] == [row.name for row in seen]
    assert len(seen) == 3


def test_large_models_do_not_run_at_once(zoo: Path, double: Path, monkeypatch: Any) -> None:
    from surgeon import capacity

    monkeypatch.setattr(capacity, "memory", lambda: 1 << 30)
    monkeypatch.setattr(capacity, "need", lambda _: 1 << 29)
    run = surgeon.batch(zoo, zoo.parent / "out", double, jobs=4)
    for _ in run:
        assert len(run.in_hand) <= 1


# --------------------------------------------------------------------------------- the command


def test_the_command_and_its_exit_code(zoo: Path, double: Path) -> None:
    dest = zoo.parent / "out"
    result = run(double, zoo, dest)
    assert result.exit_code == 0, result.output
    assert "2  repaired" in result.output
    (zoo / "bad.onnx").write_bytes(b"bad")
    result = run(double, zoo, dest)
    assert result.exit_code == 1
    assert "broken: this is no ONNX model" in result.output
    assert run(double, zoo, dest, "--fail-under", "75%").exit_code == 0
    assert run(double, zoo, dest, "--fail-under", "76%").exit_code == 1
    assert run(double, zoo, dest, "--fail-under", "most").exit_code == 2
    assert run(double, zoo, dest, "--memory", "much").exit_code == 2
    assert run(zoo, dest).exit_code == 2
    assert run(double, zoo, zoo).exit_code == 5


def test_names_from_strangers_are_escaped_in_the_page() -> None:
    evil = "<script>alert(1)</script>\"' onmouseover=x \x1b[31m\n.onnx"
    row = Row(
        name=evil,
        outcome="refused",
        reason=evil,
        mend=evil,
        rules={evil: 1},
        verdict=("runs", evil),
        same_as=evil,
    )
    page = batch_page([row], title=evil)
    assert page.count("<script>") == 1  # the page's own
    assert "alert(1)</script>" not in page
    assert "\x1b" not in page
    assert 'onmouseover=x "' not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;" in page
    assert "http://" not in page
    assert "https://" not in page


def test_reasons_that_differ_in_names_and_numbers_are_one() -> None:
    rows = [
        Row("a.onnx", "refused", "node 'conv_1' has 3 groups"),
        Row("b.onnx", "refused", "node 'conv_2' has 17 groups"),
        Row("c.onnx", "refused", "`aten.unique` left"),
        Row("d.onnx", "repaired"),
    ]
    groups = [(reason, len(same)) for _, reason, same in grouped(rows)]
    assert groups == [("node '...' has N groups", 2), ("`aten.unique` left", 1)]
    lines = rows_as_text(rows).splitlines()
    assert [Row.from_dict(json.loads(line)) for line in lines] == rows
