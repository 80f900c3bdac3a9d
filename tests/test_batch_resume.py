"""A batch that is run again, or was killed: it goes on where it was, and leaves nothing behind."""

import contextlib
import gc
import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from batches import digest, heavy, log, net, tree, zoo
from command import DOUBLE
from shares import some

import surgeon
from surgeon.batch import attempt
from surgeon.batch.identity import version
from surgeon.errors import OutputError

__all__ = ["log", "zoo"]  # fixtures of `batches`
pytestmark = pytest.mark.slow  # a process for each file; `test_batch.py` is of `make check`


def test_what_others_put_into_dest_is_not_written_over(zoo: Path, double: Path) -> None:
    dest = zoo.parent / "out"
    dest.mkdir()
    (dest / "one.onnx").write_bytes(b"mine")
    for _ in range(2):
        rows = {row.name: row for row in surgeon.batch(zoo, dest, double, jobs=1)}
        assert rows["one.onnx"].outcome == "failed"
        assert "this batch did not write" in rows["one.onnx"].reason
        assert any(row.outcome == "repaired" for row in rows.values())
        assert (dest / "one.onnx").read_bytes() == b"mine"
    rows = {row.name: row for row in surgeon.batch(zoo, dest, double, jobs=1, force=True)}
    assert rows["one.onnx"].outcome == "repaired"
    assert (dest / "one.onnx").read_bytes() != b"mine"


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
        left = [each for each in gc.get_objects() if type(each) is Session]
    finally:
        gc.enable()
        gc.unfreeze()
    assert done["outcome"] == "repaired"
    assert left == []


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


def test_a_run_that_fails_takes_no_result_of_the_same_bytes_away(zoo: Path, double: Path) -> None:
    """A name that is misspelt in `--shape`, say, or a limit that is too low."""
    dest = zoo.parent / "out"
    list(surgeon.batch(zoo, dest, double))
    there = tree(dest)
    rows = list(surgeon.batch(zoo, dest, double, shape={"typo": [1, 2]}))
    assert {row.outcome for row in rows} == {"refused"}
    assert all(row.earlier for row in rows)
    assert tree(dest) == there
    (zoo / "one.onnx").write_bytes(net(13))  # now its result is another's
    rows = list(surgeon.batch(zoo, dest, double, shape={"typo": [1, 2]}))
    assert [row.name for row in rows if not row.earlier] == ["one.onnx"]
    assert "one.onnx" not in tree(dest)


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
    with surgeon.batch(zoo, zoo.parent / "out", double) as first:
        for _ in first:
            with pytest.raises(OutputError, match="another run of `surgeon batch` uses this state"):
                next(surgeon.batch(zoo, zoo.parent / "out", double))
            break
    assert len(list(surgeon.batch(zoo, zoo.parent / "out", double))) == 3


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


@pytest.mark.skipif(sys.platform != "linux", reason="memory and children are read in /proc")
def test_hostile_files_and_kills_at_random_moments(tmp_path: Path, double: Path) -> None:
    """The small form of `make batch`; it says which seed it took."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    files, hostile, kills = some((6, 5, 2), of=(16, 20, 3))
    for index in range(files):
        (corpus / f"{index:02}.onnx").write_bytes(net(2 + index, needy=index % 3 > 0))
    script = Path(__file__).parent / "benchmarks" / "folder.py"
    amounts = "--files", files, "--hostile", hostile, "--kills", kills
    options = *amounts, "--recipe", double, "--timeout", 20
    command = [sys.executable, script, corpus, *options, "--work", tmp_path / "work"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{files} models, {hostile} hostile files" in done.stdout
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


def test_data_that_are_changed_while_a_file_is_repaired(
    tmp_path: Path, double: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was compared would be others than those that go to DEST."""
    source = tmp_path / "in"
    source.mkdir()
    data = heavy(source).with_name("heavy.bin")
    data.write_bytes(np.arange(4, dtype=np.float32).tobytes())
    repair = attempt._repair

    def slow(*arguments: Any) -> Any:
        found = repair(*arguments)
        data.write_bytes(bytes(data.stat().st_size))
        return found

    monkeypatch.setattr(attempt, "_repair", slow)
    (row,) = surgeon.batch(source, tmp_path / "out", double, jobs=1)
    assert (row.outcome, row.reason) == ("failed", "the file was changed while it was repaired")
    assert tree(tmp_path / "out") == {}


def test_a_state_that_is_damaged(zoo: Path, double: Path) -> None:
    dest, state = zoo.parent / "out", zoo.parent / "state.sqlite"
    first = list(surgeon.batch(zoo, dest, double, state=state))
    with contextlib.closing(sqlite3.connect(state)) as db, db:
        db.execute("UPDATE results SET row='no JSON'")
    again = list(surgeon.batch(zoo, dest, double, state=state))
    outcomes = [{row.name: row.outcome for row in rows} for rows in (first, again)]
    assert outcomes[0] == outcomes[1]
    assert all(row.fresh for row in again)
    size = state.stat().st_size
    state.write_bytes(state.read_bytes()[:4096] + bytes([255]) * (size - 4096))
    with pytest.raises(OutputError, match="the state cannot be kept here"):
        list(surgeon.batch(zoo, dest, double, state=state))
