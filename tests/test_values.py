"""Inputs that always have one value: `--value sr=16000`."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import surgeon
from surgeon.cli import app
from surgeon.errors import RecipeError, VerifyError
from surgeon.inspection import inspect
from surgeon.model import Model
from surgeon.values import with_values

RATE = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17]>
    voice (float[b,t] x, int64 sr) => (float[b,t] y)
    <int64 sixteen = {16000}> {
        is = Equal (sr, sixteen)
        y = If (is) <
            then_branch = wide () => (float[b,t] p) { p = Tanh (x) },
            else_branch = narrow () => (float[b,t] q) {
                r = Sigmoid (x)
                q = Neg (r)
            }
        >
    }
""")
SCALED = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17]>
    scaled (float[1,3,h,w] x, float[1] ratio) => (float[1,3,i,j] y)
    <float[2] ones = {1.0, 1.0}> {
        scales = Concat <axis = 0> (ones, ratio, ratio)
        y = Resize <mode = "linear"> (x, , scales)
    }
""")
MASKED = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["": 17]>
    masked (float[1,4] x, float[1,4] mask, bool[1] has, float16 weight) => (float[1,4] y)
    <float zero = {0.0}> {
        wide = Cast <to = 1> (weight)
        scaled = Mul (mask, wide)
        kept = Where (has, scaled, zero)
        y = Add (x, kept)
    }
""")
HERE = Path(surgeon.__file__).parent


def operators(result: surgeon.Result) -> list[str]:
    return sorted(node.op for node in result.model.graph.nodes)


def names(result: surgeon.Result) -> list[str]:
    return [value.name for value in result.model.to_proto().graph.input]


@pytest.mark.parametrize(("rate", "left"), [(16000, ["Tanh"]), (8000, ["Neg", "Sigmoid"])])
def test_a_branch_is_settled(rate: int, left: list[str]) -> None:
    result = surgeon.apply(RATE, "clean", values={"sr": rate})
    assert operators(result) == left
    assert names(result) == ["x"]
    assert result.report.status == "equivalent"
    assert f"sr is {rate}, and no input of the result" in result.report.assumptions


def test_scales_are_settled() -> None:
    result = surgeon.apply(SCALED, "clean", values={"ratio": 0.5})
    assert operators(result) == ["Resize"]
    assert names(result) == ["x"]
    assert result.report.status == "equivalent"


def test_several_values_of_other_types_and_shapes() -> None:
    values = {"mask": 0, "has": "true", "weight": "0.1"}
    result = surgeon.apply(MASKED, "clean", values=values)
    assert names(result) == ["x"]
    assert result.report.status == "equivalent"
    off = surgeon.apply(MASKED, "clean", values={"has": False})
    assert names(off) == ["x", "mask", "weight"]  # an interface stays, read or not


def test_an_input_leaves_also_where_no_rule_fires() -> None:
    result = surgeon.apply(SCALED, "layer-norm-fuse", values={"ratio": 2.0})
    assert names(result) == ["x"]
    assert result.report.status == "equivalent"


def test_a_default_gives_way() -> None:
    proto = onnx.ModelProto()
    proto.CopyFrom(RATE)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array(16000), "sr"))
    result = surgeon.apply(proto, "clean", values={"sr": 8000})
    assert operators(result) == ["Neg", "Sigmoid"]
    assert result.report.status == "equivalent"


def test_a_body_that_reads_the_input() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        g (float[n] x, float gain, bool on) => (float[n] y) {
            y = If (on) <
                then_branch = a () => (float[n] p) { p = Mul (x, gain) },
                else_branch = b () => (float[n] q) { q = Identity (x) }
            >
        }
    """)
    result = surgeon.apply(model, "no-ops", values={"gain": 3})
    assert names(result) == ["x", "on"]
    assert result.report.status == "equivalent"


def test_data_and_recorded_outputs_of_that_value(tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    good, bad = tmp_path / "good.npz", tmp_path / "bad.npz"
    np.savez(good, x=x, sr=np.array(16000), y=np.tanh(x))
    np.savez(bad, x=x, sr=np.array(8000), y=-1 / (1 + np.exp(-x)))
    settled: dict[str, Any] = {"values": {"sr": 16000}}
    assert surgeon.apply(RATE, "clean", data=good, **settled).report.status == "equivalent"
    with pytest.raises(RecipeError, match="`sr` is 8000, and 16000 was told"):
        surgeon.apply(RATE, "clean", data=bad, **settled)
    assert surgeon.apply(RATE, "clean", reference=good, **settled).report.status == "equivalent"
    with pytest.raises(VerifyError):
        surgeon.apply(RATE, "clean", reference=bad, **settled)


@pytest.mark.parametrize(
    ("values", "shape", "because"),
    [
        ({"rate": 1}, None, "no input `rate`"),
        ({"sr": 1.5}, None, "1.5 is no int64"),
        ({"sr": "fast"}, None, "`fast` is no number"),
        ({"sr": [1, 2]}, None, r"2 numbers for the shape \[\]"),
        ({"x": 0}, None, r"1 number for the shape \[b, t\]"),
        ({"sr": "nowhere.npy"}, None, "cannot be read"),
        ({"sr": np.array("a")}, None, "no numbers"),
    ],
)
def test_what_makes_no_sense(values: Any, shape: Any, because: str) -> None:
    with pytest.raises(RecipeError, match=because):
        surgeon.apply(RATE, "clean", values=values, shape=shape)


def test_an_example_of_a_shape_has_as_many_dimensions() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> '
        "g (float[b,3,h,w] x) => (float[b,3,h,w] y) { y = Neg (x) }"
    )
    with pytest.raises(RecipeError) as raised:
        surgeon.apply(proto, "clean", values={"x": 3})
    assert '`shape={"x": [1, 3, 3, 4]}`' in str(raised.value)


def test_a_shape_that_is_told_beside(tmp_path: Path) -> None:
    result = surgeon.apply(RATE, "clean", values={"x": 0.5}, shape={"x": (2, 3)})
    assert names(result) == ["sr"]
    saved = tmp_path / "x.npy"
    np.save(saved, np.ones((1, 2), np.float32))
    one, said = with_values(Model(RATE), {"x": str(saved)})
    assert one.proto.graph.initializer[-1].dims == [1, 2]
    assert said == ("x is [[1.0, 1.0]], and no input of the result",)


@pytest.mark.slow
def test_the_command_line(tmp_path: Path) -> None:
    given, made = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(RATE, given)
    run = CliRunner().invoke
    told = ["--value", "sr=16000"]
    done = run(app, ["apply", "clean", str(given), str(made), *told])
    assert done.exit_code == 0
    assert "sr is 16000" in done.output
    assert [node.op_type for node in onnx.load(made).graph.node] == ["Tanh"]
    assert run(app, ["verify", str(given), str(made), *told]).exit_code == 0
    assert run(app, ["verify", str(given), str(made), "--value", "sr=8000"]).exit_code == 3
    assert run(app, ["explain", "clean", str(given), *told]).exit_code == 0
    assert run(app, ["apply", "clean", str(given), str(made), "--value", "sr"]).exit_code == 2
    assert run(app, ["apply", "clean", str(given), str(made), *told, *told]).exit_code == 2
    folder = tmp_path / "mended"
    done = run(app, ["batch", "clean", str(given), str(folder), "--jobs", "1", *told])
    assert done.exit_code == 0
    assert [node.op_type for node in onnx.load(folder / "in.onnx").graph.node] == ["Tanh"]


def test_inspect_names_inputs_that_decide(tmp_path: Path) -> None:
    for model, wanted in ((RATE, ("sr",)), (SCALED, ("ratio",)), (MASKED, ())):
        onnx.save(model, path := tmp_path / "m.onnx")
        assert inspect(path).deciding == wanted
    onnx.save(RATE, path)
    assert "--value sr=" in CliRunner().invoke(app, ["inspect", str(path)]).output


def test_explain_says_what_settles_an_if(tmp_path: Path) -> None:
    onnx.save(RATE, path := tmp_path / "m.onnx")
    said = CliRunner().invoke(app, ["explain", "clean", str(path), "--node", "y"]).output
    assert "`--value`" in said
