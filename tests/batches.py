"""Folders of models for a batch, and workers that die when they are told to."""

import os
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
from typer.testing import CliRunner

import surgeon
from surgeon.batch import attempt
from surgeon.cli import app

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
TASK = """\
import ctypes, os, time
from pathlib import Path
from surgeon import runtime
from surgeon.batch.task import data_files, repair as plain

def repair(path, target, recipes, digests, options):
    name = Path(path).name
    with open({log!r}, "a") as log:
        log.write(name + "\\n")
    if name.startswith("abort"):
        os.abort()
    if name.startswith("sessions"):  # of this process alone
        runtime.Session.__init__ = lambda *_, **__: os.abort()
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
