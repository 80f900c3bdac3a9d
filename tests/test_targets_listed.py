"""What a model has beside what a runtime's own list of operators takes."""

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest
from command import run

import surgeon
from surgeon.errors import RecipeError
from surgeon.recipe import bundled
from surgeon.targets import MEASURED, Fit, target, targets

TEXT = """
    <ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
    g (float[2,3] x, int64 axis) => (float[2,3] y) {
        a = CumSum (x, axis) b = CumSum (a, axis) c = Relu (b) d = Det (e)
        y = com.microsoft.Gelu (c)
        e = Constant <value_floats = [1.0]> () f = Resize (x, , k) }
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    onnx.save(onnx.parser.parse_model(TEXT), path)
    return path


def fit_of(path: Path, name: str) -> Fit:
    fit = surgeon.inspect(path, target=name).fit
    assert fit is not None
    return fit


def test_what_a_list_lacks_is_named_with_what_spells_it_otherwise(model: Path) -> None:
    fit = fit_of(model, "webgl")
    found = {one.operator: (one.count, one.recipes) for one in fit.refused}
    assert found["CumSum"] == (2, ("cumsum-to-matmul",))
    assert found["Det"] == (1, ("rare-forms",))
    assert "contrib" in found["com.microsoft.Gelu"][1]
    assert next(iter(found)) == "CumSum"  # the most nodes first
    assert "Relu" not in found
    assert fit.opset is None


def test_recipes_for_operators_of_other_tools_stand_in_front(tmp_path: Path) -> None:
    """Else `inspect` would have them cut off, for which there is a recipe."""
    text = """
        <ir_version: 8, opset_import: ["": 17, "com.microsoft": 1, "com.amd.quark": 1]>
        g (float[2,3] x) => (float[2,3] y) {
            a = com.microsoft.Gelu (x) b = com.microsoft.Gelu (a)
            y = com.amd.quark.BFPQuantizeDequantize (b) }
    """
    path = tmp_path / "in.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    fit = fit_of(path, "burn")
    assert fit.command[:5] == ("surgeon", "apply", "contrib", "quark", "clean")
    assert fit.lasting == ()
    assert "contrib" not in fit_of(path, "migraphx").command  # which takes that Gelu


def test_a_shape_goes_with_what_is_computed_of_it(tmp_path: Path) -> None:
    text = """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[n,3] x) => (int64[2] y) { s = Shape (x) y = Neg (s) }
    """
    path = tmp_path / "in.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    found = {one.operator: one.recipes for one in fit_of(path, "onnx2ncnn").refused}
    assert found["Shape"] == ("shape-chains",)


def test_an_older_version_has_less(model: Path) -> None:
    new, old = fit_of(model, "tensorrt-10.15"), fit_of(model, "tensorrt-7.0")
    refused = {one.operator for one in new.refused}
    assert refused == {"Det", "com.microsoft.Gelu"}
    assert refused < {one.operator for one in old.refused}
    assert new.opset is None
    assert (old.opset, old.opsets) == (17, (1, 11))
    assert "Resize" in old.partly


def test_without_a_version_it_is_the_newest(model: Path) -> None:
    assert fit_of(model, "tensorrt") == fit_of(model, "tensorrt-10.15")
    assert target("rknn").name == "rknn-2.3.2"


def test_functions_of_the_model_s_own_count_as_what_they_hold(tmp_path: Path) -> None:
    text = """
        <ir_version: 8, opset_import: ["": 17, "my": 1]>
        g (float[3,3] x) => (float y) { y = my.volume (x) }
        <domain: "my", opset_import: ["": 17]> volume (a) => (b) { b = Det (a) }
    """
    path = tmp_path / "in.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    assert [one.operator for one in fit_of(path, "webgl").refused] == ["Det"]


@pytest.mark.parametrize("name", targets())
def test_every_list_takes_a_plain_network(name: str) -> None:
    entry = target(name)
    plain = {"Conv", "Relu", "MaxPool", "Gemm", "Add", "Reshape", "Concat"}
    assert plain <= entry.taken | entry.partly
    assert not entry.taken & entry.partly
    known = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    known.add("SimplifiedLayerNormalization")  # onnxruntime's, which it keeps in ONNX's domain
    assert {each for each in entry.taken | entry.partly if "." not in each} <= known


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("tensorrt-8.3", "There is `tensorrt-6.0`"),
        ("tensort", "Did you mean `tensorrt`?"),
        ("nothing", "There are"),
        ("openvino-2025.4", "There is `openvino`."),
        ("ncnn-20260526", "the recipe `for-ncnn`"),
        ("opencv-4.12", "the recipe `for-opencv-4`"),
        ("opencv-5.0", "the recipe `for-opencv-5`"),
    ],
)
def test_a_name_that_there_is_not(name: str, mend: str, model: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        surgeon.inspect(model, target=name)
    assert mend in caught.value.mend
    assert run("inspect", model, "--target", name).exit_code == 2


def test_what_was_measured_is_bundled() -> None:
    assert set(MEASURED.values()) <= bundled().keys()
    assert MEASURED.keys() & targets() == {"openvino", "tpu-mlir"}


def test_what_was_measured_to_help_is_named_beside_a_list_too(tmp_path: Path) -> None:
    """OpenVINO has this operator, and `clean` was measured to help there all the same."""
    text = """
        <ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }
    """
    path = tmp_path / "in.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    fit = fit_of(path, "openvino")
    assert fit.refused == ()
    assert fit.command == ("surgeon", "apply", "clean", str(path), "OUT.onnx")
    assert fit_of(path, "tpu-mlir").command == (
        "surgeon",
        "apply",
        "for-tpu-mlir",
        str(path),
        "OUT.onnx",
    )
    assert fit_of(path, "tinygrad").command == ()
    own = tmp_path / "openvino.yaml"
    own.write_text("operators: [Relu]\n")
    assert fit_of(path, str(own)).command == ()


@pytest.mark.slow
def test_the_command_says_so(model: Path) -> None:
    older = run("inspect", model, "--target", "tensorrt-6.0").output
    assert "it reads opsets 1 to 10, and the model is at 17, which is taken to 11 at most" in older
    said = run("inspect", model, "--target", "tensorrt-7.0").output
    assert "2  CumSum  rules in cumsum-to-matmul" in said
    assert "surgeon apply contrib for-tensorrt" in said
    assert "onnx/onnx-tensorrt" in said
    told = json.loads(run("inspect", model, "--target", "tensorrt-7.0", "--json").output)
    assert told["fit"]["target"] == "tensorrt-7.0"
    assert told["fit"]["refused"][0]["operator"] == "CumSum"
    assert json.loads(run("inspect", model, "--json").output)["fit"] is None


def test_what_onnx2torch_takes_in_some_versions_is_partly_taken(tmp_path: Path) -> None:
    entry = target("onnx2torch")
    assert entry.name == "onnx2torch-1.5"
    assert entry.opsets == (13, 17)
    assert {"GreaterOrEqual", "DepthToSpace", "ScatterND"} <= entry.partly
    assert {"Elu", "HardSwish", "LayerNormalization"} <= entry.taken
    taken = entry.taken | entry.partly
    assert taken.isdisjoint({"CumSum", "NonZero", "OneHot", "GlobalMaxPool", "If", "LSTM"})
