"""`--dry-run` writes nothing, and says what writing would be refused for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from command import run
from command_files import refused
from outside import saved_outside

from surgeon import external, wire
from surgeon.errors import ModelError, OutputError
from surgeon.model import Model


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return saved_outside(tmp_path / "in", 64)


PACK = ["--external-data", "pack", "--external-name"]


def files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    yield from ((each, each.read_bytes()) for each in sorted(folder.rglob("*")) if each.is_file())


def both(tmp_path: Path, code: int, *arguments: object) -> None:
    """A dry run ends as the run does, and leaves every file as it is."""
    before = dict(files(tmp_path))
    dry = run(*arguments, "--dry-run")
    assert dict(files(tmp_path)) == before
    wet = run(*arguments)
    assert (dry.exit_code, wet.exit_code) == (code, code), dry.output + wet.output
    if code:
        assert dry.output == wet.output
        assert dict(files(tmp_path)) == before
        refused(dry, code)
    else:
        assert "Nothing was written: --dry-run" in dry.output


def test_a_data_file_of_a_chosen_name_that_holds_something_else(
    net: Path, double: Path, tmp_path: Path
) -> None:
    out, data = tmp_path / "out.onnx", tmp_path / "w.bin"
    data.write_bytes(b"another's")
    both(tmp_path, 5, "extract", net, out, "--to", "b", "--to", "y", *PACK, "w.bin", "--no-verify")
    data.unlink()
    data.symlink_to(tmp_path / "nowhere")
    both(tmp_path, 5, "extract", net, out, "--to", "y", *PACK, "w.bin", "--no-verify")
    data.unlink()
    for _ in range(2):  # the second time it is there, and holds the same
        both(tmp_path, 0, "apply", double, net, out, *PACK, "w.bin", "--no-verify")
    data.write_bytes(data.read_bytes() + b"more")
    failed = run("apply", double, net, out, *PACK, "w.bin", "--no-verify", "--dry-run", "-q")
    refused(failed, 5, "another file of that name is there")


def test_data_that_would_be_written_over(net: Path, double: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    (tmp_path / "net.data").write_bytes(b"another's")
    arguments = ["apply", double, net, out, "--no-verify", "-q"]
    both(tmp_path, 5, *arguments)
    (tmp_path / "net.data").unlink()
    both(tmp_path, 5, *arguments[:3], net.with_name("net.data"), "--no-verify", "-q")
    onnx.save(onnx.load(net), net.with_name("plain.onnx"))
    copied = net.with_name("out.net.data")
    copied.write_bytes(b"another's")
    beside = ["apply", double, net, net.with_name("out.onnx"), "--external-data", "copy"]
    both(tmp_path, 5, *beside, "--no-verify", "-q")


@pytest.mark.parametrize("way", ["inline", "keep"])
def test_what_protobuf_cannot_write(
    net: Path, double: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(external, "LARGEST", 1000)
    if way == "keep":
        onnx.save(onnx.load(net), net)
        monkeypatch.setattr(wire, "LARGEST", 1000)
        with pytest.raises(ModelError, match="larger"):
            Model.of(onnx.load(net)).save(tmp_path / "out.onnx", dry_run=True)
        return
    out = tmp_path / "out.onnx"
    both(tmp_path, 5, "apply", double, net, out, "--external-data", way, "--no-verify", "-q")


def test_where_no_file_can_be(net: Path, tmp_path: Path) -> None:
    model = Model.load(net)
    deep = tmp_path / "file"
    deep.write_bytes(b"")
    for path, said in (
        (tmp_path / "nowhere" / "out.onnx", "cannot be written: No such file"),
        (tmp_path / "in", "cannot be written: Is a directory"),
        (deep / "out.onnx", "cannot be written: Not a directory"),
        (Path("/dev/stdout"), "the output is a stream"),
    ):
        with pytest.raises(OutputError, match=said):
            model.save(path, external_data="inline", dry_run=True)
    assert model.save(tmp_path / "out.onnx", dry_run=True) is None
    assert not (tmp_path / "out.onnx").exists()
    assert not (tmp_path / "net.data").exists()


def test_a_report_is_no_data_file(net: Path, double: Path, tmp_path: Path) -> None:
    """It was put in the place of the weights."""
    out, report = tmp_path / "out.onnx", tmp_path / "w.json"
    arguments = ["apply", double, net, out, *PACK, "w.json", "--no-verify", "--report", report]
    for more in ([], ["--dry-run"]):
        refused(run(*arguments, "-q", *more), 5, "the report has the name of the data file")
        assert not out.exists()


@pytest.mark.parametrize("command", ["reduce", "adapt"])
def test_the_script_of_a_check_is_not_written_over(net: Path, tmp_path: Path, command: str) -> None:
    script = tmp_path / "check.sh"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    refused(run(command, net, script, "--check", f"'{script}' {{}}"), 5, "the file that is read")
    assert script.read_text().startswith("#!/bin/sh")


@pytest.mark.parametrize("option", ["--data", "--value"])
def test_adapt_does_not_write_over_what_it_reads(net: Path, tmp_path: Path, option: str) -> None:
    given = tmp_path / "given.npz"
    given.write_bytes(b"data")
    text = f"x={given}" if option == "--value" else given
    done = run("adapt", net, given, "--check", "no-such-program {}", option, text)
    refused(done, 5, "the output is the file that is read")
    assert given.read_bytes() == b"data"
