"""An output is there whole, or what was there before is: on a full disk, killed, interrupted.

`make kills` kills 200 runs at random moments; `SURGEON_KILLS` says how many, a few by default.
"""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import DOUBLE, run

POSIX = os.name != "nt"
KILLS = int(os.environ.get("SURGEON_KILLS", "4"))
SAVER = """\
import sys
from pathlib import Path
from surgeon.model import Model
source, target = Path(sys.argv[1]), Path(sys.argv[2])
models = [Model.load(source / name) for name in ("a.onnx", "b.onnx")]
print("ready", flush=True)
while True:
    for model in models:
        model.save(target / "out.onnx")
"""
LIMITED = """\
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
from surgeon.cli import app
app(sys.argv[2:])
"""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "surgeon", *map(str, arguments)]


def network(width: int = 4) -> onnx.ModelProto:
    """y = Neg(Neg(x)) + w."""
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[n,{width}] x) => (float[n,{width}] y)'
        "{ a = Neg(x) b = Neg(a) y = Add(b, w) }"
    )
    weights = np.random.default_rng(width).normal(size=width).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return model


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(network().SerializeToString())
    return path


def external(folder: Path, width: int = 1 << 20) -> Path:
    """The same with its weights, 4 MB, in net.data."""
    folder.mkdir(exist_ok=True)
    path = folder / "net.onnx"
    onnx.save(
        network(width), path, save_as_external_data=True, location="net.data", size_threshold=0
    )
    return path


def _listen() -> None:
    """Ctrl-C is heard also where whoever started the tests has it ignored: in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ----------------------------------------------------------------------------------- in place


def test_in_place_keeps_a_backup_and_says_so(double: Path, net: Path, tmp_path: Path) -> None:
    before = net.read_bytes()
    result = run("apply", double, net, "--in-place")
    assert result.exit_code == 0, result.output
    assert f"The input as it was: {net}.bak" in result.output.replace("\n", "").replace(
        "was:/", "was: /"
    )
    assert (tmp_path / "net.onnx.bak").read_bytes() == before
    assert [node.op_type for node in onnx.load(net).graph.node] == ["Add"]


def test_a_backup_is_not_written_over(double: Path, net: Path, tmp_path: Path) -> None:
    before, backup = net.read_bytes(), tmp_path / "net.onnx.bak"
    backup.write_bytes(b"older")
    result = run("apply", double, net, "--in-place")
    assert result.exit_code == 5
    assert "there is a backup already, and it is not written over" in result.output
    assert backup.read_bytes() == b"older"
    assert net.read_bytes() == before
    assert run("apply", double, net, "--in-place", "--no-backup").exit_code == 0
    assert backup.read_bytes() == b"older"
    assert net.read_bytes() != before


@pytest.mark.slow
def test_in_place_without_a_change_writes_nothing(double: Path, net: Path, tmp_path: Path) -> None:
    run("apply", double, net, "--in-place", "--no-backup")
    before, when = net.read_bytes(), net.stat().st_mtime_ns
    result = run("apply", double, net, "--in-place")
    assert result.exit_code == 0
    assert "Nothing was written: nothing was changed" in result.output
    assert (net.read_bytes(), net.stat().st_mtime_ns) == (before, when)
    assert names(tmp_path) == ["double.yaml", "net.onnx"]


def test_in_place_that_fails_leaves_the_input(net: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(DOUBLE.replace("Identity (x)", "Sin (x)"))
    before = net.read_bytes()
    run("apply", wrong, net, "--in-place")
    assert net.read_bytes() == before
    assert names(tmp_path) == ["net.onnx", "wrong.yaml"]


@pytest.mark.skipif(not POSIX, reason="links need a privilege elsewhere")
def test_in_place_follows_a_link(double: Path, net: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.onnx"
    link.symlink_to(net)
    assert run("apply", double, link, "--in-place").exit_code == 0
    assert link.is_symlink()
    assert len(onnx.load(net).graph.node) == 1
    assert (tmp_path / "net.onnx.bak").exists()


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["net", "--in-place"], "a recipe is missing"),
        (["rule", "net", "out.onnx", "--no-backup"], "there is no backup without `--in-place`"),
    ],
)
def test_in_place_asked_for_wrongly(
    arguments: list[str], phrase: str, double: Path, net: Path, tmp_path: Path
) -> None:
    known = {"rule": double, "net": net, "out.onnx": tmp_path / "out.onnx"}
    result = run("apply", *(known.get(each, each) for each in arguments))
    assert result.exit_code == 2
    assert phrase in result.output


@pytest.mark.slow
@pytest.mark.skipif(not POSIX, reason="permissions of POSIX")
def test_permissions_are_kept(double: Path, net: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    mask = os.umask(0)
    os.umask(mask)
    assert run("apply", double, net, out).exit_code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o666 & ~mask
    for path, options in ((out, (net, out)), (net, (net, "--in-place"))):
        path.chmod(0o640)
        assert run("apply", double, *options).exit_code == 0
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


# --------------------------------------------------------------------- a disk that has no room


@pytest.mark.slow
@pytest.mark.skipif(not POSIX, reason="limits of POSIX")
@pytest.mark.parametrize("room", [100, 1 << 20], ids=["for nothing", "for the model alone"])
def test_a_disk_without_room(room: int, double: Path, tmp_path: Path) -> None:
    """The model is small, its data are 4 MB; an output of before stays, and nothing beside it."""
    source = external(tmp_path / "in")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "out.onnx").write_bytes(b"old")
    arguments = ["apply", str(double), str(source), str(folder / "out.onnx"), "--no-verify"]
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, str(room), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 5, ran.stderr
    assert "cannot be written: File too large" in ran.stderr
    assert names(folder) == ["out.onnx"]
    assert (folder / "out.onnx").read_bytes() == b"old"


@pytest.mark.slow
@pytest.mark.skipif(not POSIX, reason="limits of POSIX")
def test_in_place_on_a_full_disk_leaves_no_backup(double: Path, tmp_path: Path) -> None:
    source = tmp_path / "net.onnx"
    onnx.save(network(20_000), source)
    before = source.read_bytes()
    arguments = ["apply", str(double), str(source), "--in-place", "--no-verify"]
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, "1000", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 5, ran.stderr
    assert names(tmp_path) == ["double.yaml", "net.onnx"]
    assert source.read_bytes() == before


# ------------------------------------------------------------------------------------- killed


@pytest.mark.slow
@pytest.mark.skipif(not POSIX, reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT", "SIGTERM"])
def test_a_saver_that_ends_at_any_moment(name: str, tmp_path: Path) -> None:
    """A process that does nothing but save two models over one another, in turn."""
    number = getattr(signal, name)
    sources = tmp_path / "in"
    external(sources)
    model = onnx.load(sources / "net.onnx", load_external_data=False)
    for name, node in (("a.onnx", "first"), ("b.onnx", "second" * 50_000)):
        model.graph.node[0].doc_string = node
        (sources / name).write_bytes(model.SerializeToString())
    whole = {(sources / name).read_bytes() for name in ("a.onnx", "b.onnx")}
    data = (sources / "net.data").read_bytes()
    chance = random.Random(number)
    for turn in range(KILLS):
        folder = tmp_path / f"out{turn}"
        folder.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(sources), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=_listen,
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.random() * 0.05)
        process.send_signal(number)
        process.wait(timeout=60)
        process.stdout.close()
        out = folder / "out.onnx"
        if out.exists():
            assert out.read_bytes() in whole
            assert (folder / "net.data").exists()
        if (folder / "net.data").exists():
            assert (folder / "net.data").read_bytes() == data


@pytest.mark.skipif(not POSIX, reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("ignored", [False, True])
def test_a_terminal_that_closes_ends_a_run_as_ctrl_c_does(name: str, ignored: bool) -> None:
    number = getattr(signal, name)
    text = (
        "import os, signal, surgeon.cli as cli\n"
        f"if {ignored}: signal.signal({int(number)}, signal.SIG_IGN)\n"
        f"cli.app = lambda **_: os.kill(os.getpid(), {int(number)})\n"
        "cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", text], timeout=60, check=False)
    assert done.returncode == (0 if ignored else 130)


@pytest.mark.slow
@pytest.mark.skipif(not POSIX, reason="signals of POSIX")
@pytest.mark.parametrize("place", ["beside", "in place"])
def test_a_run_that_is_killed_at_any_moment(place: str, double: Path, tmp_path: Path) -> None:
    """Every file is the old one or the new one, the input's backup included."""
    net = tmp_path / "net.onnx"
    old = network(1 << 16).SerializeToString()
    net.write_bytes(old)
    target = tmp_path / "out.onnx" if place == "beside" else net
    arguments = [double, net, *([target] if place == "beside" else ["--in-place"])]
    options = ["--no-verify", "--reproducible"]
    began = time.monotonic()
    assert subprocess.run(command("apply", *arguments, *options), check=False).returncode == 0
    took = time.monotonic() - began
    new = target.read_bytes()
    backup = tmp_path / "net.onnx.bak"
    chance = random.Random(place)
    ends = set()
    for _ in range(KILLS):
        backup.unlink(missing_ok=True)
        target.write_bytes(old)
        process = subprocess.Popen(
            command("apply", *arguments, *options),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(took * (0.4 + 0.7 * chance.random()))
        process.kill()
        process.wait(timeout=60)
        assert target.read_bytes() in (old, new)
        ends.add(target.read_bytes() == new)
        if place == "in place" and target.read_bytes() == new:
            assert backup.read_bytes() == old
        if backup.exists():
            assert backup.read_bytes() == old
    if KILLS >= 100:
        assert ends == {True, False}, "every kill came too early, or too late"
