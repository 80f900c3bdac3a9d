"""What a runtime's list lacks is spelled out in what it has: `apply --target`."""

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest
from command import run

import surgeon
from surgeon import fitting
from surgeon.errors import RecipeError
from surgeon.fitting.make import written
from surgeon.targets import Fit, target, targets

TEXT = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[N,4,12] x) => (float[N,1,12] y) {
        a = LogSoftmax <axis = 1> (x) b = Selu (a) c = Sign (b) d = ReduceL1 <axes = [1]> (c)
        y = Softplus (d) }
"""
ALONE = {  # a model of one operator, for each kind of operator that lists lack
    "HardSwish": "y = HardSwish (x)",
    "Softsign": "y = Softsign (x)",
    "Shrink": "y = Shrink (x)",
    "ReduceL2": "y = ReduceL2 (x)",
    "ReduceLogSumExp": "y = ReduceLogSumExp (x)",
    "LpNormalization": "y = LpNormalization <axis = 1> (x)",
    "Round": "y = Round (x)",
    "Reciprocal": "y = Reciprocal (x)",
    "Sum": "y = Sum (x, x, x)",
    "SpaceToDepth": "y = SpaceToDepth <blocksize = 2> (x)",
    "Hardmax": "y = Hardmax <axis = 1> (x)",
    "IsNaN": "n = IsNaN (x) y = Cast <to = 1> (n)",
    "IsInf": "n = IsInf (x) y = Cast <to = 1> (n)",
    "Acosh": "y = Acosh (x)",
    "GatherElements": "i = ArgMax <axis = 1> (x) y = GatherElements <axis = 1> (x, i)",
    "Unique": "u = Unique (x) y = Unsqueeze (u, axes)",
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path, TEXT)


def saved(folder: Path, text: str) -> Path:
    path = folder / "in.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def fit_of(path: Path, name: str) -> Fit:
    fit = surgeon.inspect(path, target=name).fit
    assert fit is not None
    return fit


def lacked(path: Path, name: str) -> set[str]:
    return {one.operator for one in fit_of(path, name).refused}


def test_the_table_is_what_the_cases_show() -> None:
    assert fitting.TABLE.read_text(encoding="utf-8") == written(), "run `make docs`"


def test_what_is_lacking_is_spelled_out(model: Path, tmp_path: Path) -> None:
    assert lacked(model, "rknn") == {"Selu", "Sign", "ReduceL1"}
    result = surgeon.apply(model, "clean", target="rknn")
    result.model.save(tmp_path / "out.onnx")
    assert not lacked(tmp_path / "out.onnx", "rknn")
    held = {node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node}
    assert {"Elu", "Where", "Max"} <= held  # |x| is spelled out in turn: RKNN has no Abs
    assert {"LogSoftmax", "Softplus"} <= held  # these it has
    assert result.report.status == "equivalent"
    assert surgeon.apply(tmp_path / "out.onnx", "clean", target="rknn").report.status == "unchanged"


def test_nothing_is_spelled_out_in_vain(model: Path, tmp_path: Path) -> None:
    """NNAPI has no ReduceMax, and that of the LogSoftmax is not over planes: it stays."""
    result = surgeon.apply(model, "clean", target="nnapi")
    result.model.save(tmp_path / "out.onnx")
    assert lacked(tmp_path / "out.onnx", "nnapi") == {"LogSoftmax"}
    assert "not on the list of nnapi: `LogSoftmax`" in result.report.failures
    with pytest.raises(surgeon.SurgeonError, match="not on the list of nnapi"):
        surgeon.apply(model, "clean", target="nnapi", strict=True)


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        pytest.param(operator, name, marks=[pytest.mark.slow] if (i + j) % 5 else [])
        for i, operator in enumerate(ALONE)
        for j, name in enumerate(targets())
    ],
)
def test_nothing_is_lacking_that_was_not_before(operator: str, name: str, tmp_path: Path) -> None:
    head = '<ir_version: 8, opset_import: ["": 17]> g (float[2,4,6,6] x) => (float[p,q,r,s] y)'
    axes = "<int64[3] axes = {0, 1, 2}>"
    path = saved(tmp_path, f"{head} {axes} {{ {ALONE[operator]} }}")
    before = fit_of(path, name)
    if not before.refused:
        assert surgeon.apply(path, target=name, verify=False).report.status == "unchanged"
        return
    result = surgeon.apply(path, target=name, verify=False)
    result.model.save(tmp_path / "out.onnx")
    after = lacked(tmp_path / "out.onnx", name)
    assert after <= {one.operator for one in before.refused}


def test_what_is_written_may_be_spelled_out_in_turn(tmp_path: Path) -> None:
    """RKNN has no IsInf, which is a comparison with Abs, which it does not have either."""
    head = '<ir_version: 8, opset_import: ["": 17]> g (float[2,4] x) => (float[2,4] y)'
    path = saved(tmp_path, f"{head} {{ n = IsInf (x) y = Cast <to = 1> (n) }}")
    result = surgeon.apply(path, target="rknn")
    result.model.save(tmp_path / "out.onnx")
    assert not lacked(tmp_path / "out.onnx", "rknn")


def test_an_approximation_wants_leave(tmp_path: Path) -> None:
    head = '<ir_version: 8, opset_import: ["": 17]> g (float[2,4] x) => (float[2,4] y)'
    path = saved(tmp_path, f"{head} {{ y = Erf (x) }}")
    assert surgeon.apply(path, target="webgl").report.status == "unchanged"
    result = surgeon.apply(path, target="webgl", allow=["approximate"])
    assert dict(result.report.fired) == {"erf-decompose/erf-as-tanh-of-polynomial": 1}


def test_rules_that_go_round_in_circles_are_left_out(tmp_path: Path) -> None:
    """A Range may be a CumSum, and a CumSum a product with what a Range gives: RKNN has neither."""
    text = """
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,t] x) => (float[N,t] y) <int64 axis = {1}> { y = CumSum (x, axis) }
    """
    path = saved(tmp_path, text)
    result = surgeon.apply(path, "clean", target="rknn")
    result.model.save(tmp_path / "out.onnx")
    assert lacked(tmp_path / "out.onnx", "rknn") == {"CumSum"}


def test_what_is_spelled_out_is_made_plain_again(tmp_path: Path) -> None:
    """A scale of 1 and a bias of 0, which are operands now, and go in the same run."""
    text = """
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,t] x) => (float[N,2,t] y) <float[2] s = {1, 1}, float[2] b = {0, 0}> {
            y = InstanceNormalization (x, s, b) }
    """
    own = tmp_path / "npu.yaml"
    own.write_text("operators: [Add, Sub, Mul, Div, Sqrt, ReduceMean, Reshape]\n")
    result = surgeon.apply(saved(tmp_path, text), "clean", target=str(own))
    assert result.report.status == "equivalent"
    assert result.report.after.keys().isdisjoint({"InstanceNormalization", "Reshape"})
    assert surgeon.apply(result.model, "clean", target=str(own)).report.changes == ()


def test_nothing_is_put_together_that_a_list_lacks(tmp_path: Path) -> None:
    """By a recipe that is named, of what was spelled out: then it is not asked once more."""
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(
        """
surgeon: 1
name: mine
rules:
  - id: product-as-tangent
    why: It is wrong, and not compared here.
    exact: rounding
    match: y = Mul (x, x)
    replace: y = Tan (x)
"""
    )
    head = '<ir_version: 8, opset_import: ["": 17]> g (float[2,4] x) => (float[2,1] y)'
    path = saved(tmp_path, f"{head} {{ y = ReduceSumSquare <axes = [1]> (x) }}")
    own = tmp_path / "npu.yaml"
    own.write_text("operators: [Mul, ReduceSum]\n")
    result = surgeon.apply(path, recipe, target=str(own), verify=False)
    assert result.report.after == {"Mul": 1, "ReduceSum": 1}


def test_no_rule_begins_at_what_a_list_has() -> None:
    for name in targets():
        wanted = target(name)
        recipe = fitting.recipe_for_target(target(name), ["approximate", "contract"])
        begun = {operator for rule in recipe.rules for operator in rule.match.root.operators}
        assert begun.isdisjoint(wanted.taken | wanted.partly)


@pytest.mark.slow
def test_the_command_that_inspect_says_does_it(model: Path, tmp_path: Path) -> None:
    shown = run("inspect", model, "--target", "webgpu").output
    assert "OUT.onnx --target webgpu" in " ".join(shown.split())
    fit = json.loads(run("inspect", model, "--target", "webgpu", "--json").output)["fit"]
    assert fit["spelled"] == ["LogSoftmax", "Selu", "Sign", "Softplus"]
    out = tmp_path / "out.onnx"
    done = run(*(out if word == "OUT.onnx" else word for word in fit["command"][1:]))
    assert done.exit_code == 0
    assert not lacked(out, "webgpu")


def test_a_target_takes_the_model_to_its_opset(tmp_path: Path) -> None:
    head = '<ir_version: 9, opset_import: ["": 20]> g (float[2,4] x) => (float[2,4] y)'
    path = saved(tmp_path, f"{head} {{ y = Gelu (x) }}")
    fit = fit_of(path, "tensorrt-8.6")
    options = ("--target", "tensorrt-8.6")
    assert fit.command == ("surgeon", "apply", "for-tensorrt", str(path), "OUT.onnx", *options)
    assert fit.nearest == 17
    assert fit_of(path, "webgpu").command == ()
    assert surgeon.apply(path, "for-tensorrt", target="tensorrt-8.6", strict=True).model.opset == 17
    assert surgeon.apply(path, "for-tensorrt", target="tensorrt-8.6", opset=20).model.opset == 20


def test_an_opset_that_a_target_does_not_read_is_told(tmp_path: Path) -> None:
    head = '<ir_version: 9, opset_import: ["": 18]> g (float[2,4] x) => (float[2,4] y)'
    path = saved(tmp_path, f"{head} {{ y = Relu (x) }}")
    reached = surgeon.apply(path, "clean", target="tensorrt-7.0", strict=True)
    assert (reached.model.opset, reached.report.failures) == (11, ())
    result = surgeon.apply(path, "clean", target="tensorrt-6.0")
    said = "tensorrt-6.0 reads opsets 1 to 10, and the result is of 11"
    assert (result.model.opset, result.report.failures) == (11, (said,))
    with pytest.raises(surgeon.VerifyError, match="not all was done"):
        surgeon.apply(path, "clean", target="tensorrt-6.0", strict=True)


def test_a_target_that_there_is_not(model: Path) -> None:
    with pytest.raises(RecipeError, match="there is no list of what `webgpl` takes"):
        surgeon.apply(model, "clean", target="webgpl")
    with pytest.raises(RecipeError, match=r"`tensorrt-6\.0`.*`rknn-2\.3\.2`.*`onnx2tf`"):
        surgeon.apply(model, "clean", target="chrome")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("trt", "`tensorrt` is what its list is called here"),
        ("CoreML", "`coreml-mlprogram` is what its list is called here"),
        ("sophgo", "`tpu-mlir` is what its list is called here"),
        ("snpe", "the recipe `for-qnn`"),
        ("npu", "Name its tool: `rknn`"),
    ],
)
def test_a_target_by_another_name(said: str, meant: str) -> None:
    with pytest.raises(RecipeError) as caught:
        target(said)
    assert meant in caught.value.mend


@pytest.mark.slow
def test_a_folder_of_models(model: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    model.rename(models / "in.onnx")
    (row,) = surgeon.batch(models, tmp_path / "mended", "clean", target="rknn")
    assert row.outcome == "repaired"
    assert not lacked(tmp_path / "mended" / "in.onnx", "rknn")
    with pytest.raises(RecipeError, match="there is no list of what `rk` takes"):
        surgeon.batch(models, tmp_path / "mended", "clean", target="rk")


def test_only_recipes_after_which_an_operator_is_gone_are_named() -> None:
    recipes = fitting.spelling_recipes(target("rknn-2.3.2"))
    assert "aten-scripts" not in recipes.get("Identity", ())
    for name in targets():
        found = fitting.spelling_recipes(target(name))
        assert found.keys() >= fitting.spelled_out(target(name))
        assert set(found.get("LSTM", ())) <= {"recurrent-decompose"}
