"""Weights of large models that are put into files while models are compared."""

import importlib
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import surgeon
from surgeon import aside
from surgeon.aside import put_aside, room_aside
from surgeon.external import external_tensors
from surgeon.isolation import isolation, lightened, open_session


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "_WORTH", 1 << 10)
    monkeypatch.setattr(aside, "_LEAST", 1 << 8)


def model(seed: int = 0) -> onnx.ModelProto:
    """y = Neg(Neg(x @ w)) + b, with a large and a small weight, and metadata."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n,16] x) => (float[n,32] y) {
        a = MatMul (x, w) b = Neg (a) c = Neg (b) y = Add (c, v)
    }"""
    made = onnx.parser.parse_model(text)
    drawn = np.random.default_rng(seed)
    w, v = drawn.normal(size=(16, 32)), np.ones(32)
    for name, array in ({"w": w, "v": v}).items():
        tensor = onnx.numpy_helper.from_array(array.astype(np.float32), name)
        made.graph.initializer.append(tensor)
    made.metadata_props.add(key="author", value="me")
    made.graph.doc_string = "said"
    return made


def test_what_is_put_aside_computes_the_same() -> None:
    given = model()
    feeds = {"x": np.random.default_rng(1).normal(size=(3, 16)).astype(np.float32)}
    expected = open_session(given).run(feeds)["y"]
    with room_aside():
        light, folder = put_aside(given, None)
        assert folder is not None
        assert [tensor.name for tensor in external_tensors(light)] == ["w"]
        assert len(light.SerializeToString()) < 1 << 10
        assert np.array_equal(open_session(given).run(feeds)["y"], expected)
        assert len([*folder.glob("[!.]*")]) == 1
        inline = onnx.ModelProto()
        inline.CopyFrom(light)
        onnx.external_data_helper.load_external_data_for_model(inline, str(folder))
    assert not folder.exists()
    for tensor in inline.graph.initializer:  # what onnx leaves of having read it
        tensor.ClearField("data_location")
    assert inline == given


def test_what_two_models_share_is_there_once() -> None:
    first, second, third = model(), model(), model(2)
    second.graph.name = "another"
    with room_aside():
        with room_aside():  # the outermost counts
            _, folder = put_aside(first, None)
        assert put_aside(second, None)[1] == folder
        assert folder is not None
        assert len([*folder.glob("[!.]*")]) == 1
        put_aside(third, None)
        assert len([*folder.glob("[!.]*")]) == 2


def test_what_is_remembered_goes_with_who_remembers_it() -> None:
    """Models of hundreds of megabytes, each of which stays as long as it is remembered."""
    given = model()
    with room_aside(remember=False):
        first, _ = put_aside(given, None)
        assert put_aside(given, None)[0] is not first
        with room_aside():
            known, _ = put_aside(given, None)
            assert put_aside(given, None)[0] is known
        assert put_aside(given, None)[0] is not known


def test_weights_that_come_beside_a_model_are_put_aside_with_it() -> None:
    given, whole = model(), model()
    weights = list(given.graph.initializer)
    del given.graph.initializer[:]
    with room_aside():
        light, folder = put_aside(given, None, weights)
        assert light == put_aside(whole, None)[0]
        assert len([*folder.glob("[!.]*")] if folder else []) == 1
    assert not given.graph.initializer
    assert put_aside(given, None, weights) == (whole, None)  # nowhere to put them


def test_what_little_lies_outside_comes_along(tmp_path: Path) -> None:
    given = model()
    more = onnx.numpy_helper.from_array(np.ones(32, np.float32), "v")
    (tmp_path / "v.bin").write_bytes(more.raw_data)
    tensor = given.graph.initializer[1]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="v.bin")
    feeds = {"x": np.ones((3, 16), np.float32)}
    expected = open_session(given, folder=tmp_path).run(feeds)["y"]
    with room_aside():
        light, folder = put_aside(given, tmp_path)
        assert folder not in (None, tmp_path)
        assert len([*external_tensors(light)]) == 2
        assert np.array_equal(open_session(given, folder=tmp_path).run(feeds)["y"], expected)
    (tmp_path / "v.bin").unlink()
    with room_aside():
        assert put_aside(given, tmp_path) == (given, tmp_path)


def test_weights_of_older_tools_are_put_aside_too() -> None:
    given = model()
    feeds = {"x": np.ones((3, 16), np.float32)}
    expected = open_session(given).run(feeds)["y"]
    tensor = given.graph.initializer[0]
    values = onnx.numpy_helper.to_array(tensor)
    tensor.ClearField("raw_data")
    tensor.float_data.extend(values.ravel())
    with room_aside():
        assert [each.name for each in external_tensors(put_aside(given, None)[0])] == ["w"]
        assert np.array_equal(open_session(given).run(feeds)["y"], expected)
    del tensor.float_data[5:]
    with room_aside():
        assert put_aside(given, None) == (given, None)


def test_what_is_small_or_outside_already_stays_as_it_is(tmp_path: Path) -> None:
    given = model()
    assert put_aside(given, None) == (given, None)  # nowhere to put it
    outside = onnx.ModelProto()
    outside.CopyFrom(given)
    onnx.save(outside, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=100)
    there = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    assert next(external_tensors(there), None) is not None
    light = model()
    light.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.ones((2, 2)), "w"))
    with room_aside():
        assert put_aside(there, tmp_path)[0] is there
        assert put_aside(light, None)[0] is light


def test_where_there_is_no_room_a_model_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    given = model()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with room_aside(), monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        assert put_aside(given, None) == (given, None)
    with room_aside(), monkeypatch.context() as patched:
        patched.setattr(aside, "_SPARE", 1 << 60)
        assert put_aside(given, None) == (given, None)
        patched.undo()
        assert put_aside(given, None) == (given, None)  # not asked once more


def test_windows_removes_nothing_that_this_process_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("surgeon.isolation"), "_WINDOWS", True)
    given = model()
    with room_aside():
        assert lightened(given, None) == (given, None)
        with isolation():
            assert lightened(given, None)[1] is not None


@pytest.mark.parametrize("apart", [True, False])
def test_a_comparison_uses_it(apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given, names = model(), []
    kept = aside._Room.put
    monkeypatch.setattr(
        aside._Room, "put", lambda self, data: names.append(kept(self, data)) or names[-1]
    )
    other = model()
    del other.graph.node[1:3]
    other.graph.node[1].input[0] = "a"
    with isolation() if apart else nullcontext():
        assert surgeon.verify(given, other).status == "equivalent"
        assert len(names) >= 2
        assert len({*names}) == 1
        other.graph.initializer[0].CopyFrom(model(3).graph.initializer[0])
        assert surgeon.verify(given, other).status == "differs"
