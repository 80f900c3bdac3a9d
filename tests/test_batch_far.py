"""Batches that read and write where fsspec does, and on the executors of others."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from batches import heavy, log, net, outcomes, run, tree, zoo

import surgeon
from surgeon.batch import attempt, far, find
from surgeon.cli import cluster
from surgeon.errors import ModelError, OutputError

__all__ = ["log", "zoo"]  # fixtures of `batches`
pytestmark = pytest.mark.slow  # a process for each file; `test_batch.py` is of `make check`
fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed (surgeon[remote])")


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """fsspec's file system in this process's memory, empty; state files go to a folder."""
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    monkeypatch.chdir(tmp_path)
    far._opened.cache_clear()
    yield fs
    fs.store.clear()


def upload(fs: Any, folder: Path, to: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            fs.pipe_file(f"{to}/{path.relative_to(folder).as_posix()}", path.read_bytes())


def contents(fs: Any, root: str) -> dict[str, bytes]:
    return {
        path[len(root) + 1 :]: fs.cat_file(path)
        for path in fs.find(root)
        if not path.rpartition("/")[2].startswith("report.")
    }


@pytest.fixture
def near(zoo: Path, double: Path) -> dict[str, bytes]:
    """What a run from folder to folder leaves, external data and all."""
    (zoo / "deep" / "heavy.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    heavy(zoo / "deep")
    list(surgeon.batch(zoo, zoo.parent / "near", double))
    return tree(zoo.parent / "near")


@pytest.mark.parametrize("ends", ["both", "source", "dest"])
def test_far_is_as_near(
    ends: str, zoo: Path, double: Path, near: dict[str, bytes], memory: Any, tmp_path: Path
) -> None:
    upload(memory, zoo, "/zoo")
    source: Any = "memory://zoo" if ends != "dest" else zoo
    dest: Any = "memory://out" if ends != "source" else tmp_path / "out"
    rows = list(surgeon.batch(source, dest, double))
    assert outcomes(rows) == {
        "deep/er/two.onnx": "repaired",
        "deep/heavy.onnx": "repaired",
        "one.onnx": "repaired",
        "well.onnx": "unchanged",
    }
    assert all(len(row.sha256) == 64 and row.size > 50 for row in rows)
    left = contents(memory, "/out") if ends != "source" else tree(tmp_path / "out")
    assert left == near
    if ends != "source":
        lines = memory.cat_file("/out/report.jsonl").splitlines()
        assert [json.loads(line)["name"] for line in lines] == sorted(outcomes(rows))
    again = list(surgeon.batch(source, dest, double))
    assert [row.fresh for row in again] == [False] * 4


def test_what_changed_afar_is_done_again(
    zoo: Path, double: Path, near: dict[str, bytes], memory: Any
) -> None:
    upload(memory, zoo, "/zoo")

    def done() -> set[str]:
        rows = list(surgeon.batch("memory://zoo", "memory://out", double))
        assert contents(memory, "/out").keys() == {*outcomes(rows), "deep/heavy.bin"}
        return {row.name for row in rows if row.fresh}

    assert len(done()) == 4
    memory.pipe_file("/zoo/one.onnx", net(7))
    memory.pipe_file("/zoo/deep/heavy.bin", np.arange(4, 8, dtype=np.float32).tobytes())
    memory.rm_file("/out/well.onnx")
    assert done() == {"one.onnx", "deep/heavy.onnx", "well.onnx"}
    assert memory.cat_file("/out/deep/heavy.bin") == memory.cat_file("/zoo/deep/heavy.bin")
    assert done() == set()


def test_identical_far_files_are_repaired_once(
    zoo: Path, double: Path, log: Path, memory: Any
) -> None:
    for name in ("same.onnx", "deep/same.onnx", "zz.onnx"):
        (zoo / name).write_bytes(net(2))
    (zoo / "zz.well.onnx").write_bytes((zoo / "well.onnx").read_bytes())
    upload(memory, zoo, "/zoo")
    rows = {r.name: r for r in surgeon.batch("memory://zoo", "memory://out", double, jobs=2)}
    assert len(log.read_text().split()) == 3
    firsts = {row.same_as for row in rows.values()} - {None}
    assert len(firsts) == 2
    assert all(rows[name].same_as is None for name in firsts if name)
    assert outcomes(rows.values()) == {
        name: "unchanged" if "well" in name else "repaired" for name in rows
    }
    near = list(surgeon.batch(zoo, zoo.parent / "near", double))
    assert contents(memory, "/out") == tree(zoo.parent / "near")
    assert len(near) == len(rows)
    log.write_text("")
    memory.pipe_file("/zoo/later.onnx", net(2))
    again = {r.name: r for r in surgeon.batch("memory://zoo", "memory://out", double)}
    assert not log.read_text()
    assert [name for name, row in again.items() if row.fresh] == []
    assert again["later.onnx"].same_as in rows
    assert memory.cat_file("/out/later.onnx") == memory.cat_file("/out/zz.onnx")


def test_of_identical_far_files_that_come_late_each_is_tried(
    zoo: Path, double: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one.onnx", "deep/one.onnx"):
        (zoo / name).write_bytes(net(2))
    upload(memory, zoo, "/zoo")
    reads: list[str] = []
    real = type(memory)._open

    def broken(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        reads.append(path)
        if path == "/zoo/deep/one.onnx" and reads.count(path) == 2:  # looked at, then repaired
            raise ConnectionResetError("the line is dead")
        return real(self, path, *args, **kwargs)

    monkeypatch.setattr(type(memory), "_open", broken)
    rows = {r.name: r for r in surgeon.batch("memory://zoo", "memory://out", double, jobs=1)}
    assert rows["deep/one.onnx"].reason == "cannot be fetched: the line is dead"
    assert rows["one.onnx"].outcome == "repaired"


def test_what_cannot_be_fetched_now_is_asked_for_again(
    zoo: Path, double: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(memory, zoo, "/zoo")
    with monkeypatch.context() as patch:
        real = type(memory)._open

        def broken(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
            if path.endswith("one.onnx"):
                raise ConnectionResetError("the line is dead")
            return real(self, path, *args, **kwargs)

        patch.setattr(type(memory), "_open", broken)
        rows = {r.name: r for r in surgeon.batch("memory://zoo", "memory://out", double)}
    assert rows["one.onnx"].reason == "cannot be fetched: the line is dead"
    assert rows["well.onnx"].outcome == "unchanged"
    rows = {r.name: r for r in surgeon.batch("memory://zoo", "memory://out", double)}
    assert rows["one.onnx"].outcome == "repaired"
    assert not rows["well.onnx"].fresh


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("../secret.bin", "lies outside the model's folder"),
        ("/etc/passwd", "lies outside the model's folder"),
        ("gone.bin", "is missing"),
        ("other.onnx", "has the name of a model or of a report"),
        ("report.html", "has the name of a model or of a report"),
    ],
)
def test_far_data_out_of_place(
    location: str, said: str, tmp_path: Path, double: Path, memory: Any
) -> None:
    memory.pipe_file("/secret.bin", bytes(16))
    memory.pipe_file("/zoo/other.onnx", net(3))
    memory.pipe_file("/zoo/heavy.onnx", heavy(tmp_path, data=location).read_bytes())
    rows = {r.name: r for r in surgeon.batch("memory://zoo", "memory://out", double)}
    assert rows["heavy.onnx"].outcome == "broken"
    assert said in rows["heavy.onnx"].reason
    assert sorted(contents(memory, "/out")) == ["other.onnx"]


def test_an_archive_with_names_that_lead_out(zoo: Path, double: Path, tmp_path: Path) -> None:
    path = tmp_path / "zoo.zip"
    names = ("../evil.onnx", "/evil.onnx", "deep/../../evil.onnx", "deep\\..\\..\\evil.onnx")
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("one.onnx", "deep/er/two.onnx"):
            archive.write(zoo / name, f"all/{name}")
        for name in names:
            archive.writestr(name, net(9))
    dest = tmp_path / "in" / "out"
    rows = {row.name: row for row in surgeon.batch(f"zip://::{path}", dest, double)}
    assert sorted(tree(tmp_path / "in")) == [
        *("out.surgeon.sqlite", "out/all/deep/er/two.onnx", "out/all/one.onnx")
    ]
    for name in names:
        assert rows[name].reason == "its name leads out of SOURCE"
    assert [each.name for each in find(f"zip://all::{path}")] == ["deep/er/two.onnx", "one.onnx"]
    rows = {row.name: row for row in surgeon.batch(f"zip://::{path}", dest, double)}
    assert not rows["all/one.onnx"].fresh
    with pytest.raises(OutputError, match="cannot be written"):
        list(surgeon.batch(zoo, f"zip://::{path}", double))


def test_patterns_lists_and_single_models_afar(zoo: Path, memory: Any) -> None:
    upload(memory, zoo, "/zoo")
    memory.pipe_file("/zoo/list.txt", b"# two\none.onnx\n\ndeep/er/two.onnx\n")

    def names(source: str) -> list[str]:
        return [each.name for each in find(source)]

    assert names("memory://zoo/**/*.onnx") == ["deep/er/two.onnx", "one.onnx", "well.onnx"]
    assert names("memory://zoo/*/*/t*.onnx") == ["deep/er/two.onnx"]
    assert names("memory://zoo/one.onnx") == ["one.onnx"]
    assert names("memory://zoo/list.txt") == ["deep/er/two.onnx", "one.onnx"]
    assert names(f"file://{zoo}") == ["deep/er/two.onnx", "one.onnx", "well.onnx"]
    for nothing in ("memory://zoo/gone", "memory://zoo/gone.onnx", "memory://zoo/*.pt"):
        with pytest.raises(ModelError):
            find(nothing)


def test_a_destination_inside_the_source_afar(zoo: Path, double: Path, memory: Any) -> None:
    upload(memory, zoo, "/zoo")
    for _ in range(2):
        assert len(list(surgeon.batch("memory://zoo", "memory://zoo/out", double))) == 3
    for dest in ("memory://zoo", "memory://"):
        with pytest.raises(OutputError, match="DEST is SOURCE or holds it"):
            surgeon.batch("memory://zoo", dest, double)


def test_the_command_says_what_to_install(zoo: Path, double: Path, tmp_path: Path) -> None:
    for url, package in (("s3://bucket/zoo", "s3fs"), ("gs://bucket/zoo", "gcsfs")):
        if far._package(url) == "fsspec":
            continue  # it is installed here
        result = run(double, url, tmp_path / "out")
        assert result.exit_code == 4
        assert f"mend: Run `pip install {package}`." in result.output
        result = run(double, zoo, url)
        assert result.exit_code == 5
        assert f"mend: Run `pip install {package}`." in result.output
    result = run(double, "nothing://zoo", tmp_path / "out")
    assert "error: cannot be opened: Protocol not known: nothing" in result.output


def test_local_files_need_no_fsspec(
    zoo: Path, double: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert len(list(surgeon.batch(zoo, zoo.parent / "out", double))) == 3
    far._opened.cache_clear()
    with pytest.raises(ModelError, match="which is not installed") as caught:
        surgeon.batch("memory://zoo", zoo.parent / "out", double)
    assert caught.value.mend == "Run `pip install 'onnx-recipe-surgeon[remote]'`."


# ----------------------------------------------------------------------- executors of others


def test_processes_as_an_executor(zoo: Path, double: Path) -> None:
    seen = []
    with ProcessPoolExecutor(2) as executor:
        dest = zoo.parent / "out"
        rows = list(
            surgeon.batch(zoo, dest, double, executor=executor, jobs=2, on_result=seen.append)
        )
    assert seen == rows
    assert set(outcomes(rows).values()) == {"repaired", "unchanged"}
    assert sorted(tree(dest)) == ["deep/er/two.onnx", "one.onnx", "well.onnx"]


def die(*_: object) -> None:
    os._exit(1)


def test_a_broken_executor_ends_the_run_well(zoo: Path, double: Path) -> None:
    with ProcessPoolExecutor(1) as executor:
        with pytest.raises(Exception, match="terminated abruptly"):
            executor.submit(die).result()
        rows = list(surgeon.batch(zoo, zoo.parent / "out", double, executor=executor))
    assert set(outcomes(rows).values()) == {"failed"}
    assert rows[0].reason.startswith("the executor lost it 3 times: BrokenProcessPool")
    assert len(list(surgeon.batch(zoo, zoo.parent / "out", double))) == 3


def test_another_surgeon_on_the_worker_is_refused(
    zoo: Path, double: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["surgeon.batch.run"], "version", lambda: "another")
    rows = list(surgeon.batch(zoo, zoo.parent / "out", double))
    assert {row.reason for row in rows} == {"the worker has another surgeon, or other packages"}


TASK = """\
import time
from surgeon.batch.task import data_files, repair as plain

def repair(*arguments):
    time.sleep(0.3)
    return plain(*arguments)
"""


def test_a_cluster_whose_worker_dies(
    tmp_path: Path, double: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip(
        "distributed", reason="Dask is not installed (surgeon[cluster])"
    )
    zoo = tmp_path / "zoo"
    zoo.mkdir()
    for index in range(30):
        (zoo / f"{index:02}.onnx").write_bytes(net(2 + index))
    list(surgeon.batch(zoo, tmp_path / "near", double))
    (tmp_path / "slow_task.py").write_text(TASK)
    known = os.environ.get("PYTHONPATH")
    paths = [str(tmp_path), str(Path(surgeon.__file__).parents[1]), *([known] if known else [])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setattr(attempt, "TASK", "slow_task:repair")
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = client.run(os.getpid)
        executor = client.get_executor(pure=False)
        rows = []
        for row in surgeon.batch(zoo, tmp_path / "out", double, executor=executor, jobs=6):
            rows.append(row)
            if len(rows) == 5:
                os.kill(next(iter(pids.values())), 9)

    assert sorted(row.name for row in rows) == sorted(path.name for path in zoo.iterdir())
    assert {(row.outcome, row.reason) for row in rows} == {("repaired", "")}
    assert tree(tmp_path / "out") == tree(tmp_path / "near")


def test_the_command_on_a_cluster(tmp_path: Path, zoo: Path, double: Path) -> None:
    distributed = pytest.importorskip(
        "distributed", reason="Dask is not installed (surgeon[cluster])"
    )
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        result = run(double, zoo, tmp_path / "out", "--cluster", address)
    assert result.exit_code == 0, result.output
    assert "2  repaired" in result.output


def test_a_cluster_that_is_not_there(
    zoo: Path, double: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "SECONDS", 1)
    try:
        import distributed  # noqa: F401
    except ImportError:
        wanted = "mend: Run `pip install 'onnx-recipe-surgeon[cluster]'`."
    else:
        wanted = "no Dask cluster answers at `tcp://127.0.0.1:9`"
    result = run(double, zoo, zoo.parent / "out", "--cluster", "tcp://127.0.0.1:9")
    assert result.exit_code == 2
    assert wanted in result.output
