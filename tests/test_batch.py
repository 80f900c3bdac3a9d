"""Many files: what becomes of good, broken and hostile ones, from wherever they come."""

import errno
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from batches import heavy, log, net, outcomes, run, tree, zoo
from command import DOUBLE

import surgeon
from surgeon.batch import Row, find, grouped, publish, remarks
from surgeon.batch.reports import rows_as_text
from surgeon.errors import ModelError, OutputError, RecipeError
from surgeon.render.batch_page import batch_page

__all__ = ["log", "zoo"]  # fixtures of `batches`


# ------------------------------------------------------------------------- what becomes of files


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert rows["hang.onnx"].seconds >= 20
    assert "an HTML page" in rows["page.onnx"].reason
    assert sorted(tree(dest)) == ["deep/er/two.onnx", "one.onnx", "well.onnx"]


@pytest.mark.slow
def test_where_onnxruntime_ends_its_process_it_runs_in_one_of_its_own(
    zoo: Path, double: Path, log: Path
) -> None:
    (zoo / "sessions.onnx").write_bytes(net(12))
    rows = {row.name: row for row in surgeon.batch(zoo, zoo.parent / "out", double, jobs=1)}
    assert rows["sessions.onnx"].outcome == "repaired"
    assert rows["sessions.onnx"].verdict == ("equivalent", rows["one.onnx"].verdict[1])
    assert log.read_text().split().count("sessions.onnx") == 2


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux alone")
@pytest.mark.slow
@pytest.mark.parametrize("memory", [600 << 20, 800 << 20, 1 << 30])
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


@pytest.mark.slow
def test_a_wrong_rule_changes_nothing(zoo: Path) -> None:
    wrong = zoo.parent / "wrong.yaml"
    wrong.write_text(DOUBLE.replace("Identity (x)", "Abs (x)"))
    rows = {row.name: row for row in surgeon.batch(zoo, zoo.parent / "out", wrong)}
    assert rows["one.onnx"].outcome == "unchanged"
    assert tree(zoo.parent / "out")["one.onnx"] == (zoo / "one.onnx").read_bytes()


@pytest.mark.slow
def test_identical_files_are_repaired_once(zoo: Path, double: Path, log: Path) -> None:
    for name in ("same.onnx", "deep/same.onnx", "zz.onnx"):
        (zoo / name).write_bytes(net(2))
    rows = {row.name: row for row in surgeon.batch(zoo, zoo.parent / "out", double, jobs=2)}
    assert len(log.read_text().split()) == 3
    assert {row.same_as for row in rows.values()} == {None, "deep/same.onnx"}
    made = tree(zoo.parent / "out")
    assert made["zz.onnx"] == made["same.onnx"] == made["one.onnx"] != net(2)


# ------------------------------------------------------------------------------- external data


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    batch = surgeon.batch(zoo, dest, double)
    assert batch.aside == ("folder",)
    rows = {row.name: row for row in batch}
    assert rows["linked.onnx"].reason == "it is a link out of SOURCE, which is not followed"
    assert rows["pipe.onnx"].reason == "it is no regular file"
    assert rows["round.onnx"].outcome == "refused"
    assert rows["deep/er/two.onnx"].reason == "a link in DEST would be followed"
    assert "folder/theirs.onnx" not in rows
    assert [path.name for path in outside.iterdir()] == ["theirs.onnx"]


@pytest.mark.slow
def test_folders_that_are_links_are_told(zoo: Path, double: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    (outer / "linked").symlink_to(zoo)
    with pytest.raises(ModelError, match="no model") as raised:
        surgeon.batch(outer, tmp_path / "out", double)
    assert "`linked`" in raised.value.mend
    (outer / "one.onnx").write_bytes(net(1))
    said = run(double, outer, tmp_path / "out", "-q").stderr
    assert said.startswith("warning: 1 folder not entered, being a link: `linked`")


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


@pytest.mark.slow
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


@pytest.mark.parametrize("way", ["link", "zoo/../zoo"])
def test_results_inside_the_sources_are_no_sources(zoo: Path, tmp_path: Path, way: str) -> None:
    """Each run took what the one before it had written for models of a folder `out`."""
    (tmp_path / "link").symlink_to(zoo)
    source, dest = tmp_path / way, (zoo / "out").resolve()
    names = [each.name for each in find(source, leave_out=dest)]
    (dest / "out").mkdir(parents=True)
    for folder in (dest, dest / "out"):
        (folder / "one.onnx").write_bytes(b"a result")
    assert [each.name for each in find(source, leave_out=dest)] == names
    pattern = str(source / "**" / "*.onnx")
    assert [each.name for each in find(pattern, leave_out=dest)] == names


@pytest.mark.slow
def test_names_that_differ_in_case_alone_where_these_are_one(
    zoo: Path, double: Path, monkeypatch: Any
) -> None:
    """The second would be written over the first."""
    (zoo / "ONE.onnx").write_bytes(net(7))
    if len([each for each in zoo.iterdir() if each.name.lower() == "one.onnx"]) == 1:
        pytest.skip("they are one here too")
    assert not publish.folds_names(zoo)
    monkeypatch.setattr(sys.modules["surgeon.batch.run"], "folds_names", lambda _: True)
    rows = {row.name: row for row in surgeon.batch(zoo, zoo.parent / "out", double)}
    assert {name for name, row in rows.items() if not row.good} == {"ONE.onnx", "one.onnx"}
    assert "differs in case alone" in rows["one.onnx"].reason
    assert not (zoo.parent / "out" / "one.onnx").exists()


@pytest.mark.slow
def test_a_folder_that_cannot_be_read_has_a_row(zoo: Path, monkeypatch: Any) -> None:
    """Its models were left out without a word."""
    shut = zoo / "shut"
    shut.mkdir()
    (shut / "one.onnx").write_bytes(net())
    look = os.scandir

    def scandir(path: Any = ".") -> Any:
        if path in map(str, (shut, zoo.parent / "none")):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(os, "scandir", scandir)
    (found,) = [each for each in find(zoo) if each.fault]
    assert (found.name, found.fault) == (
        "shut/",
        "the folder cannot be read: Permission denied",
    )
    (row,) = [row for row in surgeon.batch(zoo, zoo.parent / "out", "clean") if not row.good]
    assert (row.name, row.outcome) == ("shut/", "refused")
    (zoo.parent / "none").mkdir()
    with pytest.raises(ModelError, match="the folder cannot be read"):
        find(zoo.parent / "none")


# -------------------------------------------------------------------------------------- Python


@pytest.mark.slow
def test_any_executor_and_every_result(zoo: Path, double: Path) -> None:
    seen: list[Row] = []
    with ThreadPoolExecutor(2) as executor:
        run = surgeon.batch(
            zoo, zoo.parent / "out", double, executor=executor, on_result=seen.append
        )
        assert run.total == 3
        assert [row.name for row in run] == [row.name for row in seen]
    assert len(seen) == 3


@pytest.mark.slow
def test_large_models_do_not_run_at_once(zoo: Path, double: Path, monkeypatch: Any) -> None:
    from surgeon import capacity

    monkeypatch.setattr(capacity, "memory", lambda: 1 << 30)
    monkeypatch.setattr(capacity, "need", lambda _: 1 << 29)
    run = surgeon.batch(zoo, zoo.parent / "out", double, jobs=4)
    for _ in run:
        assert len(run.in_hand) <= 1


# --------------------------------------------------------------------------------- the command


@pytest.mark.slow
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
    assert run(double, zoo, dest, "--fail-under", "75").exit_code == 0
    assert run(double, zoo, dest, "--fail-under", "most").exit_code == 2
    assert run(double, zoo, dest, "--memory", "much").exit_code == 2
    assert run(zoo, dest).exit_code == 2
    expanded = run(double, zoo / "one.onnx", zoo / "well.onnx", dest)
    assert expanded.exit_code == 2
    assert "put a pattern in quotes" in " ".join(expanded.output.split())
    assert run(double, zoo, zoo).exit_code == 5
    quiet = run(double, zoo, dest, "-q")
    assert quiet.stdout == ""
    assert "broken: this is no ONNX model" in quiet.stderr


@pytest.mark.slow
def test_what_was_not_compared_is_told_apart(zoo: Path, double: Path) -> None:
    result = run(double, zoo, zoo.parent / "out", "--no-verify")
    assert "2  repaired   changed; nothing was checked" in result.output


def test_remarks_are_told_of_all_files_together() -> None:
    rows = [
        Row("a.onnx", "repaired", remarks=("shapes were false: `x`, `y` and 2 more", "of old")),
        Row("b.onnx", "repaired", remarks=("shapes were false: `z`",)),
        Row("c.onnx", "refused", "no", remarks=("of old",)),
    ]
    told = [(said, [row.name for row in same]) for said, same in remarks(rows[:2])]
    assert told == [
        ("shapes were false: `x`, `y`, `z` and others", ["a.onnx", "b.onnx"]),
        ("of old", ["a.onnx"]),
    ]
    assert [Row.from_dict(json.loads(json.dumps(row.to_dict()))) for row in rows] == rows
    differing = [Row(f"{n}.onnx", "repaired", remarks=(f"{n} go (`--keep-it`)",)) for n in (2, 3)]
    assert [said for said, _ in remarks(differing)] == ["N go (`--keep-it`)"]
    both = [Row("", "repaired", remarks=(f"not on `L`: {said}",)) for said in ("`a`, `b`", "`b`")]
    assert [said for said, _ in remarks(both)] == ["not on `L`: `a`, `b`"]
    twice = Row("c", "unchanged", remarks=("`aten` has no rule", "`clean` has no rule"))
    assert [[row.name for row in same] for _, same in remarks([twice])] == [["c"]]
    old = rows[0].to_dict()
    del old["remarks"]  # as an earlier release kept it
    assert Row.from_dict(old).remarks == ()


@pytest.mark.slow
def test_the_rows_are_printed_for_a_script(zoo: Path, double: Path) -> None:
    result = run(double, zoo, zoo.parent / "out", "--json")
    assert result.stdout == (zoo.parent / "out" / "report.jsonl").read_text()
    assert {json.loads(line)["name"] for line in result.stdout.splitlines()} == {
        "deep/er/two.onnx", "one.onnx", "well.onnx",
    }  # fmt: skip
    (zoo.parent / "file").write_text("")
    told = run(double, zoo, zoo.parent / "file", "--json")
    assert json.loads(told.stdout)["error"]["exit_code"] == told.exit_code == 5


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
