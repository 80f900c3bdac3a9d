"""Files that somebody writes to while they are worked on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from outside import saved_outside

import surgeon
from surgeon import pairwise, surgery
from surgeon.errors import ModelError
from surgeon.files import backed_up

TEXT = """
<ir_version: 8, opset_import: ["": 17]>
g (float[2,300] x) => (float[2,300] y) <float[300] w = {1.0}> {
  i = Identity (x)
  y = Add (i, w)
}
"""


def model(seed: int = 0) -> onnx.ModelProto:
    made = onnx.parser.parse_model(TEXT.replace("<float[300] w = {1.0}>", "<float[300] w>"))
    del made.graph.initializer[:]
    values = np.random.default_rng(seed).normal(size=300).astype(np.float32)
    made.graph.initializer.append(onnx.numpy_helper.from_array(values, "w"))
    return made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return saved_outside(tmp_path / "in", 4)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Has something done when what was repaired, or both models, were compared."""

    def have(done: Callable[[], object]) -> None:
        for module, name in ((surgery.Comparison, "verdict"), (pairwise, "compare")):
            real = getattr(module, name)

            def compared(
                *args: object, real: Callable[..., object] = real, **more: object
            ) -> object:
                found = real(*args, **more)
                done()
                return found

            monkeypatch.setattr(module, name, compared)

    return have


def changed(path: Path) -> None:
    """The file with other content, of the same size."""
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    later = path.stat().st_mtime_ns + 10_000_000
    os.utime(path, ns=(later, later))


@pytest.mark.parametrize("name", ["net.data", "net.onnx"])
def test_nothing_is_saved_of_files_that_were_changed(
    source: Path, meanwhile: Callable[..., None], name: str
) -> None:
    meanwhile(lambda: changed(source.with_name(name)))
    with pytest.raises(ModelError, match="was changed while it was worked on") as raised:
        surgeon.apply(source, "clean")
    assert Path(str(raised.value.where)).name == name
    with pytest.raises(ModelError, match="was changed"):
        surgeon.verify(source, source)


CHANGES = """
surgeon: 1
name: turned
about: Turns the sign of every product, for a test.
allow: [contract]
changes:
  - id: turned
    why: A test.
    match: y = MatMul(x, w)
    replace: |
      p = MatMul(x, w)
      y = Neg(p)
"""


@pytest.mark.parametrize("way", ["opset", "header", "changes", "renamed", "again"])
def test_however_a_model_is_worked_on_its_data_are_watched(
    source: Path, meanwhile: Callable[..., None], tmp_path: Path, way: str
) -> None:
    recipes: list[surgeon.Recipe | str] = ["clean"]
    given: Path | surgeon.Model = source
    more: dict[str, object] = {}
    if way == "opset":
        more["opset"] = surgeon.Model.load(source).opset + 1
    elif way == "header":
        more["metadata"] = {"author": "me"}
    elif way == "changes":
        recipes.append(surgeon.Recipe.parse(CHANGES))
    elif way == "renamed":
        more["rename"] = {surgeon.Model.load(source).proto.graph.output[0].name: "z"}
    else:
        given, more["metadata"] = surgeon.apply(source, "clean").model, {"author": "me"}
    meanwhile(lambda: changed(source.with_name("net.data")))
    with pytest.raises(ModelError, match="was changed"):
        surgeon.apply(given, *recipes, **more).model.save(tmp_path / "out.onnx")  # type: ignore[arg-type]


def test_data_that_went_are_changed_data(source: Path, meanwhile: Callable[..., None]) -> None:
    meanwhile(source.with_name("net.data").unlink)
    with pytest.raises(ModelError, match="was changed"):
        surgeon.apply(source, "clean")


def test_data_that_change_before_they_are_saved_are_not(source: Path, tmp_path: Path) -> None:
    result = surgeon.apply(source, "clean")
    changed(source.with_name("net.data"))
    with pytest.raises(ModelError, match="was changed"):
        result.model.save(tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()


def test_a_model_that_is_in_memory_needs_its_file_no_more(tmp_path: Path) -> None:
    path = tmp_path / "in.onnx"
    onnx.save(model(), path)
    loaded = surgeon.Model.load(path)
    as_read = path.read_bytes()
    onnx.save(model(1), path)
    result = surgeon.apply(loaded, "clean")
    result.model.save(path)
    result.model.save(tmp_path / "again.onnx")
    loaded.save(tmp_path / "as_read.onnx")
    same = onnx.load_from_string(as_read)
    assert onnx.load(tmp_path / "as_read.onnx") == same
    assert onnx.load(path).graph.initializer[0].raw_data == same.graph.initializer[0].raw_data


def test_a_backup_goes_where_the_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "in.onnx"
    path.write_bytes(b"as it was")

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)

    def failing() -> None:
        with backed_up(path) as backup:
            assert backup.read_bytes() == b"as it was"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert [each.name for each in tmp_path.iterdir()] == ["in.onnx"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_new_file_does_not_run_as_the_owner_of_the_old_one(tmp_path: Path) -> None:
    path, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(model(), path)
    out.write_bytes(b"")
    out.chmod(0o6755)
    surgeon.apply(path, "clean").model.save(out)
    assert out.stat().st_mode & 0o7777 == 0o755
