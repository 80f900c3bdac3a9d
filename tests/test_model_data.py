"""External data of a model that is saved: they go along, or stay where they are."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from command import run
from rich_models import F32, neg_by_sub
from truth import model_of

import surgeon
from surgeon.errors import ModelError
from surgeon.model import Model
from surgeon.runtime import Session


def external(folder: Path, location: str = "data.bin") -> Path:
    proto = model_of(
        "float[4] x", "a = Add (x, w) y = Neg (a)", "y", constants={"w": np.arange(4, dtype=F32)}
    )
    folder.mkdir(exist_ok=True)
    tensor = proto.graph.initializer[0]
    onnx.external_data_helper.set_external_data(tensor, location, offset=0, length=16)
    data = tensor.raw_data
    tensor.ClearField("raw_data")
    target = folder / location
    if ".." not in location and not location.startswith("/"):
        target.parent.mkdir(exist_ok=True, parents=True)
        target.write_bytes(data)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def run_file(path: Path) -> list[float]:
    found = Session(path).run({"x": np.ones(4, F32)})
    values: list[float] = found["y"].tolist()
    return values


def test_external_data_in_the_same_folder_is_not_written_again(tmp_path: Path) -> None:
    source = external(tmp_path)
    before = (tmp_path / "data.bin").stat().st_mtime_ns
    surgeon.apply(source, neg_by_sub).model.save(tmp_path / "out.onnx")
    assert (tmp_path / "data.bin").stat().st_mtime_ns == before
    assert run_file(tmp_path / "out.onnx") == [-1, -2, -3, -4]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.bin", "model.onnx", "out.onnx"]


@pytest.mark.parametrize("location", ["data.bin", "sub/data.bin"])
def test_external_data_goes_with_the_model_to_another_folder(tmp_path: Path, location: str) -> None:
    source = external(tmp_path / "a", location)
    target = tmp_path / "b"
    target.mkdir()
    surgeon.apply(source, neg_by_sub).model.save(target / "out.onnx")
    shutil.rmtree(tmp_path / "a")
    assert run_file(target / "out.onnx") == [-1, -2, -3, -4]


def test_an_unchanged_model_takes_its_data_along_too(tmp_path: Path) -> None:
    source = external(tmp_path / "a")
    (tmp_path / "b").mkdir()
    Model.load(source).save(tmp_path / "b" / "out.onnx")
    assert (tmp_path / "b" / "out.onnx").read_bytes() == source.read_bytes()
    assert run_file(tmp_path / "b" / "out.onnx") == [-1, -2, -3, -4]


def test_external_data_is_not_read_unless_a_rule_needs_it(tmp_path: Path) -> None:
    source = external(tmp_path)
    (tmp_path / "data.bin").unlink()
    result = surgeon.apply(source, neg_by_sub, verify=False)
    assert result.report.fired.total() == 1


@pytest.mark.parametrize(
    ("location", "what"),
    [
        ("../data.bin", "external data `../data.bin` lies outside the model's folder"),
        ("/etc/passwd", "external data `/etc/passwd` lies outside the model's folder"),
        ("a/../../data.bin", "external data `a/../../data.bin` lies outside the model's folder"),
        ("C:\\data.bin", "external data `C:\\data.bin` lies outside the model's folder"),
        ("..\\data.bin", "external data `..\\data.bin` lies outside the model's folder"),
        ("gone.bin", "external data file `gone.bin` is missing"),
    ],
)
def test_external_data_that_cannot_go_along(tmp_path: Path, location: str, what: str) -> None:
    source = external(tmp_path / "a", "data.bin")
    proto = onnx.load(source, load_external_data=False)
    proto.graph.initializer[0].external_data[0].value = location
    source.write_bytes(proto.SerializeToString())
    (tmp_path / "b").mkdir()
    with pytest.raises(ModelError) as caught:
        Model.load(source).save(tmp_path / "b" / "out.onnx")
    assert caught.value.what == what
    assert ("there: it holds weights" in caught.value.mend) == what.endswith("is missing")
    assert list((tmp_path / "b").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_external_data_behind_a_link_out_of_the_folder(tmp_path: Path) -> None:
    source = external(tmp_path / "a")
    secret = tmp_path / "secret.bin"
    secret.write_bytes((tmp_path / "a" / "data.bin").read_bytes())
    (tmp_path / "a" / "data.bin").unlink()
    (tmp_path / "a" / "data.bin").symlink_to(secret)
    with pytest.raises(ModelError) as caught:
        Model.load(source).save(tmp_path / "out.onnx")
    assert caught.value.what == "external data `data.bin` is a link out of the model's folder"


@pytest.mark.slow
def test_the_data_beside_a_saved_model_are_named(tmp_path: Path) -> None:
    source = external(tmp_path / "a")
    result = run("apply", "no-ops", source, tmp_path / "b.onnx")
    assert "It needs data.bin (16 bytes) beside it" in result.output
    result = run("apply", "no-ops", source, tmp_path / "c.onnx", "--external-data", "inline")
    assert "beside it" not in result.output


def test_values_are_named_when_their_data_is_missing(tmp_path: Path) -> None:
    source = external(tmp_path)
    (tmp_path / "data.bin").unlink()
    model = Model.load(source)
    constant = next(t for n in model.graph.nodes for t in n.inputs if isinstance(t, gs.Constant))
    with pytest.raises(ModelError, match="the values of initializer `w` cannot be read"):
        model.array(constant)


def test_a_table_that_stands_twice_in_the_result_is_told(tmp_path: Path) -> None:
    """Of a language model whose head is its embedding, turned."""
    text = (
        "<ir_version: 8, opset_import: ['': 17]> g (int64[n] ids) => (float[n,4096] y)"
        "{ e = Gather (w, ids) t = Transpose <perm = [1, 0]> (w) y = MatMul (e, t) }"
    )
    model = onnx.parser.parse_model(text.replace("'", '"'))
    table = np.random.default_rng(0).normal(size=(4096, 128)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "w"))
    onnx.save(model, tmp_path / "in.onnx")
    result = run("apply", "clean", tmp_path / "in.onnx", tmp_path / "out.onnx")
    assert "It takes 2 MiB more than the model" in " ".join(result.output.split())
    recipes = ("clean", "share-weights")
    result = run("apply", *recipes, tmp_path / "in.onnx", tmp_path / "out.onnx")
    assert "more than the model" not in " ".join(result.output.split())
