"""`verify --record`: the first run of the original, as `--reference` and `--data` read it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from command import run
from truth import parse

import surgeon

NET = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n, 3] x) => (float[n, 2] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6}> {
  h = MatMul (x, w)
  y = Relu (h)
}
"""


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def loaded(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def test_what_is_recorded_is_a_run_of_the_original(tmp_path: Path) -> None:
    net, file = parsed(NET), tmp_path / "run.npz"
    other = parsed(NET.replace("Relu", "Sin"))
    assert surgeon.verify(net, other, record=file).status == "differs"
    kept = loaded(file)
    assert set(kept) == {"in.x", "out.y"}
    session = ort.InferenceSession(net.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(kept["out.y"], session.run(None, {"x": kept["in.x"]})[0])
    assert surgeon.verify(net, net, reference=file).status == "equivalent"
    assert surgeon.verify(net, other, reference=file).status == "differs"
    again = tmp_path / "again.npz"
    surgeon.verify(net, net, data=file, record=again)
    assert again.read_bytes() == file.read_bytes()
    surgeon.verify(net, net, shape={"x": [5, 3]}, record=again)
    assert loaded(again)["in.x"].shape == (5, 3)


@pytest.mark.parametrize(
    ("kind", "dtype"), [("bfloat16", "V2"), ("float8e4m3fn", "V1"), ("string", "U")]
)
def test_what_numpy_has_no_dtype_for_is_read_again(kind: str, dtype: str, tmp_path: Path) -> None:
    net = parsed(
        f'<ir_version: 10, opset_import: ["": 21]> g ({kind}[n] x) => ({kind}[n] y)'
        "{ y = Identity (x) }"
    )
    file = tmp_path / "run.npz"
    assert surgeon.verify(net, net, record=file).status == "equivalent"
    assert loaded(file)["in.x"].dtype.str[1:].startswith(dtype)
    assert surgeon.verify(net, net, reference=file).status == "equivalent"
    assert surgeon.verify(net, net, data=file).status == "equivalent"


def test_where_nothing_runs_nothing_is_written(tmp_path: Path) -> None:
    file, net = tmp_path / "run.npz", parsed(NET)
    np.savez(file, **{"in.x": np.ones(3, np.float32)})
    was = file.read_bytes()
    unknown = parsed(NET.replace("Relu", "my.Foo").replace("17]", '17, "my": 1]'))
    for other in (unknown, parsed(NET.replace("[n, 2] y", "[n, 2] z").replace("y =", "z ="))):
        with pytest.raises(surgeon.VerifyError, match="nothing was recorded: "):
            surgeon.verify(net, other, record=file)
    with pytest.raises(surgeon.VerifyError, match=r"nobody knows my\.Foo"):
        surgeon.verify(unknown, unknown, record=file)
    for name in ("run.bin", "run"):
        with pytest.raises(surgeon.RecipeError, match=r"`run\.npz`"):
            surgeon.verify(net, net, record=tmp_path / name)
    surgeon.verify(net, net, record=tmp_path / "other.npz")
    with pytest.raises(surgeon.RecipeError, match="the original is not run"):
        surgeon.verify(net, net, record=file, reference=tmp_path / "other.npz")
    lists = parsed(
        '<ir_version: 8, opset_import: ["": 17]> g (seq(float[n]) x) => (float[m] y)'
        "{ y = ConcatFromSequence <axis = 0> (x) }"
    )
    with pytest.raises(surgeon.RecipeError, match="`x` is no tensor"):
        surgeon.verify(lists, lists, record=file)
    assert file.read_bytes() == was


def test_inputs_that_override_weights_are_kept(tmp_path: Path) -> None:
    given, file = tmp_path / "given.npz", tmp_path / "run.npz"
    net = parsed(NET)
    net.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, [3, 2]))
    x, w = np.ones((2, 3), np.float32), np.full((3, 2), 7, np.float32)
    np.savez(given, x=x, w=w)
    surgeon.verify(net, net, data=given, record=file)
    np.testing.assert_array_equal(loaded(file)["out.y"], np.full((2, 2), 21))
    np.testing.assert_array_equal(loaded(file)["in.w"], w)


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    model, file = tmp_path / "a.onnx", tmp_path / "run.npz"
    onnx.save(parsed(NET), model)
    done = run("verify", model, model, "--record", file)
    assert done.exit_code == 0
    assert "seed 0; `--reference` and `--data` read it" in done.output.replace("\n", " ")
    told = json.loads(run("verify", model, model, "--record", file, "--json").output)
    assert told["recorded"] == str(file)
    said = run("verify", model, model, "--data", file, "--record", tmp_path / "b.npz").output
    assert "what A gives on run.npz" in said.replace("\n", " ")
    done = run("verify", model, model, "--data", file, "--record", file)
    assert done.exit_code == 5
    assert "the record is the file that is read" in done.output
    assert run("verify", model, model, "--record", model).exit_code == 5
    assert f"`{tmp_path / 'a.npz'}`" in run("verify", model, model, "--record", tmp_path).output
    assert run("verify", model, model, "--record", tmp_path / "no" / "run.npz").exit_code == 5
    file.write_bytes(b"data of somebody")
    done = run("verify", model, model, "--record", file)
    assert done.exit_code == 5
    assert "a file already that is no recorded run" in done.output.replace("\n", " ")
    assert file.read_bytes() == b"data of somebody"


def test_a_model_whose_data_are_missing_is_named(tmp_path: Path) -> None:
    whole, outside = tmp_path / "a.onnx", tmp_path / "b.onnx"
    model = parsed(NET)
    array = np.ones((64, 64), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, "large"))
    onnx.save(model, whole)
    onnx.save(model, outside, save_as_external_data=True, location="w.bin", size_threshold=1)
    (tmp_path / "w.bin").unlink()
    for pair in ((outside, whole), (whole, outside)):
        done = run("verify", *pair)
        assert done.exit_code == 4, done.output
        assert "w.bin" in done.output
        with pytest.raises(surgeon.ModelError, match=r"w\.bin"):
            surgeon.verify(*pair)


def test_an_unchanged_file_is_compared_with_what_was_recorded(tmp_path: Path) -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Neg (x) }")
    for name, wanted, agrees in (("a", [-1, -2], True), ("b", [1, 2], False)):
        path = tmp_path / f"{name}.npz"
        np.savez(path, x=np.float32([1, 2]), y=np.float32(wanted))
        if agrees:
            assert surgeon.apply(model, "clean", reference=path).report.status == "equivalent"
        else:
            with pytest.raises(surgeon.VerifyError, match="differs from what was recorded"):
                surgeon.apply(model, "clean", reference=path)


def test_where_the_first_model_is_not_the_recorded_one_no_search_is_advised(tmp_path: Path) -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Neg (x) }")
    np.savez(tmp_path / "r.npz", x=np.float32([1, 2]), y=np.float32([1, 2]))
    verdict = surgeon.verify(model, model, reference=tmp_path / "r.npz")
    assert verdict.status == "differs"
    assert "at , " not in (verdict.detail or "")
    assert verdict.mend.startswith("A does not give what was recorded either")


def test_an_output_that_is_not_compared_is_not_said_to_agree() -> None:
    model = parse(
        """g (float[n] x) => (float[n] y, float[n] z) {
            b = Neg (x)  c = Neg (b)  y = Relu (c)  d = Sub (x, x)  z = Div (d, d) }"""
    )
    verdict = surgeon.apply(model, "clean").report.verdict
    assert verdict is not None
    assert "it is NaN throughout; 1 output agrees at " in (verdict.detail or "")
