"""`recipes new --of`: the nodes between two values of a model as a rule that finds them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
from command import run
from onnx import numpy_helper
from shares import some

import surgeon
from surgeon import cases
from surgeon.errors import RecipeError, SurgeonError
from surgeon.extraction.parts import Parts
from surgeon.model import Model
from surgeon.recipe import Recipe
from surgeon.sketching import Sketch, sketch

SAMPLES = Path(__file__).parent.parent / "samples"

# two blocks, alike but for their weights, whose middle is GELU; the second's is read elsewhere too
BLOCKS = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n, 4] x) => (float[n, 4] y, float[n, 4] z)
<float[4, 4] v = {1, 0, 2, 0, 0, 1, 0, 3, 1, 1, 1, 1, 2, 0, 0, 1},
 float[4, 4] w = {2, 0, 2, 0, 0, 1, 0, 3, 1, 5, 1, 1, 2, 0, 0, 1},
 float root = {1.4142135}, float one = {1}, float half = {0.5}, int64[2] last = {0, 4}> {
  a = MatMul (x, v)
  b = Div (a, root)
  c = Erf (b)
  d = Add (c, one)
  e = Mul (a, d)
  f = Mul (e, half)
  g = Transpose (f)
  h = Transpose (g)
  a2 = MatMul (h, w)
  b2 = Div (a2, root)
  c2 = Erf (b2)
  d2 = Add (c2, one)
  e2 = Mul (a2, d2)
  f2 = Mul (e2, half)
  y = Reshape (f2, last)
  z = Neg (y)
}
"""


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def written(found: Sketch, folder: Path, name: str = "fused") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(found.recipe, encoding="utf-8")
    path.with_name(f"{name}.cases.yaml").write_text(found.cases, encoding="utf-8")
    return path


def problems(path: Path) -> list[str]:
    return [problem for outcome in cases.run([path]) for problem in outcome.problems]


def operators(found: Any) -> Counter[str]:
    return Counter(node.op_type for node in found.model.to_proto().graph.node)


def test_every_place_becomes_one_operator(tmp_path: Path) -> None:
    net = model(BLOCKS)
    found = sketch(net, "gelu-block", inputs="x", outputs="f", operator="acme.Block")
    assert found.fires == 2
    path = written(found, tmp_path, "gelu-block")
    assert problems(path) == []
    result = surgeon.apply(net, path)
    assert operators(result) == {"Block": 2, "Transpose": 2, "Reshape": 1, "Neg": 1}
    blocks = [node for node in result.model.to_proto().graph.node if node.op_type == "Block"]
    assert [(b.domain, list(b.input)) for b in blocks] == [
        ("acme", ["x", "v"]),
        ("acme", ["h", "w"]),
    ]
    verdict = result.report.verdict
    assert verdict is not None
    assert verdict.comparisons
    assert all(each.agrees for each in verdict.comparisons)


def test_numbers_belong_to_the_part_and_weights_are_given() -> None:
    found = sketch(model(BLOCKS), "fused", inputs="x", outputs="f")
    assert "custom: [plugins.Fused]" in found.recipe
    assert "replace: y = plugins.Fused (x, w1)" in found.recipe
    assert "c1.value == 1.4142135381698608 and c1.dtype == float32" in found.recipe
    assert "c3.value == 0.5" in found.recipe
    assert "w1.is_constant" in found.recipe
    other = model(BLOCKS.replace("half = {0.5}", "half = {0.25}"))
    rule = surgeon.Recipe.parse(found.recipe)
    assert "Fused" not in operators(surgeon.apply(other, rule, verify=False))


def test_an_attribute_that_the_file_leaves_out_must_be_left_out(tmp_path: Path) -> None:
    """A Transpose without an order turns all axes round, and has no default that says so."""
    net = model(BLOCKS)
    found = sketch(net, "turned", inputs="f", outputs="g")
    assert found.fires == 2
    assert "'perm' not in y.attributes" in found.recipe
    net.graph.node[6].attribute.append(onnx.helper.make_attribute("perm", [0, 1]))
    path = written(found, tmp_path, "turned")
    assert operators(surgeon.apply(net, path, verify=False))["Turned"] == 1


def test_a_default_counts_as_if_it_were_written() -> None:
    text = """
    <ir_version: 8, opset_import: ["": 17]>
    g (float[2, 3, 4] x) => (float[2, 3, 4] y, float[2, 3, 4] z) {
      y = Softmax (x)
      z = Softmax <axis = %d> (y)
    }
    """
    for axis, places in ((-1, 2), (1, 1)):
        found = sketch(model(text % axis), "shares", inputs="x", outputs="y")
        assert "y = Softmax <axis = -1> (x)" in found.recipe
        assert found.fires == places


def test_what_is_read_elsewhere_stays_and_is_not_asked_about() -> None:
    net = model(BLOCKS)
    net.graph.node.add(op_type="Sin", input=["c2"], output=["s"])
    net.graph.output.add(name="s")
    of_first = sketch(net, "fused", inputs="x", outputs="f")
    assert of_first.fires == 1  # of the second block another one reads the middle
    of_second = sketch(net, "fused", inputs="h", outputs="f2")
    assert of_second.fires == 2  # which asks nothing of the middle
    result = surgeon.apply(net, surgeon.Recipe.parse(of_second.recipe))
    assert operators(result) == Counter(Fused=2, Div=1, Erf=1, MatMul=1) + Counter(
        Sin=1, Transpose=2, Reshape=1, Neg=1
    )


@pytest.mark.parametrize("opset", [9, 11, 13])
def test_older_opsets_are_written_as_rules_see_them(opset: int, tmp_path: Path) -> None:
    """Axes were attributes below opset 13, and bounds below 11: rules see operands."""
    axes = ("<axes = [0]> (c)", "(c, axis)")[opset >= 13]
    bounds = ("<max = 6.0, min = 0.0> (x)", "(x, low, high)")[opset >= 11]
    text = f"""
    <ir_version: 8, opset_import: ["": {opset}]>
    g (float[n, 3] x) => (float[1, n, 3] y)
    <float low = {{0}}, float high = {{6}}, int64[1] axis = {{0}}> {{
      c = Clip {bounds}
      y = Unsqueeze {axes}
    }}
    """
    net = model(text)
    found = sketch(net, "fused", inputs="x", outputs="y")
    assert "h = Clip (x, c1, c2)" in found.recipe
    assert found.fires == 1
    path = written(found, tmp_path)
    assert problems(path) == []
    assert operators(surgeon.apply(net, path)) == {"Fused": 1}


def test_several_ends_and_outputs(tmp_path: Path) -> None:
    net = model("""
    <ir_version: 8, opset_import: ["": 17]>
    g (float[n, 4] x, float[n, 4] z) => (float[n, 2] p, float[n, 2] q) <int64[2] two = {2, 2}> {
      s = Add (x, z)
      p, q = Split <axis = 1> (s, two)
    }
    """)
    with pytest.raises(RecipeError, match=r"gives `q` too, which is read: add"):
        sketch(net, "fused", inputs=["x", "z"], outputs="p")
    found = sketch(net, "fused", inputs=["x", "z"], outputs=["p", "q"])
    assert "replace: y1, y2 = plugins.Fused (x1, x2)" in found.recipe
    path = written(found, tmp_path)
    assert problems(path) == []
    assert operators(surgeon.apply(net, path)) == {"Fused": 1}


def test_operators_of_pytorch_have_no_function() -> None:
    net = model("""
    <ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
    g (float[n, 4] x) => (float[n, 4] y) {
      h = Relu (x)
      y = org.pytorch.aten.ATen <operator = "celu", overload_name = ""> (h)
    }
    """)
    found = sketch(net, "fused", inputs="x", outputs="y")
    assert "y = aten.celu (h)" in found.recipe
    assert "# functions:" in found.recipe
    assert "aten.celu" in found.recipe.split("# functions:")[1]
    assert found.fires == 1


REFUSED = [
    ({"inputs": "x", "outputs": ["f", "c"]}, "`c` is given out too, and a rule ends at one node"),
    ({"inputs": "nothing", "outputs": "f"}, "the model has no value `nothing`"),
    ({"inputs": "x", "outputs": "f", "operator": "a b"}, "`a b` is no operator"),
    ({}, "where to cut is not said"),
]


@pytest.mark.parametrize(("asked", "said"), REFUSED)
def test_what_is_no_part_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(SurgeonError) as error:
        sketch(model(BLOCKS), "fused", **asked)
    assert said in error.value.what


def test_bodies_functions_texts_and_what_is_computed_are_refused() -> None:
    branch = model("""
    <ir_version: 8, opset_import: ["": 17]>
    g (float[2] x, bool go) => (float[2] y) {
      y = If (go) <
        then_branch = t () => (float[2] p) { p = Sin (x) },
        else_branch = e () => (float[2] q) { q = Cos (x) }
      >
    }
    """)
    with pytest.raises(RecipeError, match=r"a If has a body|an If has a body"):
        sketch(branch, "fused", outputs="y")
    calls = model("""
    <ir_version: 8, opset_import: ["": 17, "own": 1]>
    g (float[n] x) => (float[n] y) { a = own.Wave (x)  y = Neg (a) }
    <domain: "own", opset_import: ["": 17]> Wave (x) => (y) { a = Sin (x)  y = Cos (a) }
    """)
    with pytest.raises(RecipeError, match="calls a function of the model"):
        sketch(calls, "fused", outputs="y")
    cleaned = surgeon.apply(calls, "clean", verify=False).model
    assert sketch(cleaned, "fused", outputs="y").fires == 1
    sizes = model("""
    <ir_version: 8, opset_import: ["": 17]>
    g (float[2, 3] x) => (float[2] y) <float[2] k = {1, 2}> {
      s = Shape (x)
      c = Cast <to = 1> (s)
      y = Mul (c, k)
    }
    """)
    with pytest.raises(RecipeError, match="constants are computed before rules look"):
        sketch(sizes, "fused", inputs="s", outputs="y")


def test_what_no_text_says_and_old_opsets_are_refused() -> None:
    net = model("""
    <ir_version: 8, opset_import: ["": 11]>
    g (float[1, 2, 4, 4] x) => (float[1, 2, 2, 2] y) {
      y = AveragePool <kernel_shape = [3, 3], strides: ints = []> (x)
    }
    """)
    with pytest.raises(RecipeError, match="`strides` of AveragePool is an empty list"):
        sketch(net, "fused", outputs="y")
    del net.graph.node[0].attribute[1]
    assert sketch(net, "fused", outputs="y").fires == 1
    net.opset_import[0].version = 8
    with pytest.raises(RecipeError, match="cases want opset 9, and it is of 8"):
        sketch(net, "fused", outputs="y")


@pytest.mark.slow
def test_the_command_writes_both_files_and_none_over_another(tmp_path: Path) -> None:
    source = tmp_path / "net.onnx"
    onnx.save(model(BLOCKS), source)
    target = tmp_path / "gelu-block.yaml"
    ends = ["--from", "x", "--to", "f", "--as", "acme.Block"]
    done = run("recipes", "new", target, "--of", source, *ends)
    assert done.exit_code == 0
    assert str(target) in done.stdout
    assert "fires at 2 places" in done.output
    assert run("test", target).exit_code == 0
    kept = target.read_bytes()
    assert run("recipes", "new", target, "--of", source, *ends).exit_code != 0
    assert target.read_bytes() == kept
    alone = run("recipes", "new", tmp_path / "other", "--to", "f")
    assert alone.exit_code == 2
    assert "Add `--of MODEL`" in alone.output
    wrong = run("recipes", "new", tmp_path / "other", "--of", source, "--to", "nothing")
    assert wrong.exit_code == 2
    assert not (tmp_path / "other.yaml").exists()


def drawn(parts: Parts, rng: random.Random) -> tuple[list[str], list[str]]:
    """The ends of a part that a walk back from a random node makes."""
    root = rng.choice(parts.nodes)
    nodes = {root}
    for _ in range(rng.choice([0, 1, 3, 7])):
        before = [m for at in nodes for m in parts.made_by(parts.reads[at]) if m not in nodes]
        if before:
            nodes.add(rng.choice(before))
    inputs, _ = parts.ends(parts.whole(nodes))
    given = [name for name in parts.wiring.nodes[root].output if name]
    return inputs, given[:1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(some(6, of=30)))
@pytest.mark.parametrize("name", ["dymn_tiny", "flatten_pool"])
def test_parts_of_samples_drawn_at_random(name: str, seed: int, tmp_path: Path) -> None:
    """What is written finds what it was taken from, and its cases hold; or it is refused."""
    rng = random.Random(seed)
    found = Model.of(sorted((SAMPLES / name).glob("*.onnx"))[0])
    net = Model(surgeon.apply(found, "aten", "clean", verify=False).model.to_proto())
    parts = Parts(net)
    for _ in range(4):
        inputs, outputs = drawn(parts, rng)
        try:
            made = sketch(net, "drawn", inputs=inputs, outputs=outputs)
        except SurgeonError:
            continue
        path = written(made, tmp_path, "drawn")
        assert [each for each in problems(path) if not each.startswith(("Weak", "Unchecked"))] == []
        result = surgeon.apply(net, path)
        assert result.report.fired["drawn/drawn-as-one"] == made.fires
        assert not result.report.refusals


@pytest.mark.slow
def test_inspect_names_the_command_for_a_node(tmp_path: Path) -> None:
    source = tmp_path / "net.onnx"
    onnx.save(model(BLOCKS), source)
    shown = " ".join(run("inspect", source, "--node", "a2").output.split())
    asked = f"surgeon recipes new NAME --of {source} --from h --to a2"
    assert asked.replace(" ", "") in shown.replace(" ", "")
    words = asked.replace("NAME", str(tmp_path / "product")).split()[1:]
    assert run(*words).exit_code == 0
    assert run("test", tmp_path / "product.yaml").exit_code == 0


def test_weights_in_a_file_beside_the_model(tmp_path: Path) -> None:
    source = tmp_path / "net.onnx"
    net = model(BLOCKS)
    for weight in net.graph.initializer:  # what stands as raw bytes alone goes outside
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight), weight.name))
    onnx.save(net, source, save_as_external_data=True, location="net.data", size_threshold=0)
    found = sketch(source, "fused", inputs="x", outputs="f")
    assert found.fires == 2
    assert problems(written(found, tmp_path)) == []
    (tmp_path / "net.data").unlink()
    with pytest.raises(SurgeonError, match=r"net\.data"):
        sketch(source, "fused", inputs="x", outputs="f")


def test_operators_that_pytorch_does_not_have_are_declared(tmp_path: Path) -> None:
    source = tmp_path / "net.onnx"
    text = """<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
g (float[n, 3] x) => (float[n, 3] y) {
  a = org.pytorch.aten.relu (x)
  y = org.pytorch.aten.not_in_any_release (a)
}"""
    onnx.save(onnx.parser.parse_model(text), source)
    done = run("recipes", "new", tmp_path / "own", "--of", source, "--from", "x", "--to", "y")
    assert done.exit_code == 0, done.output
    custom = Recipe.load(tmp_path / "own.yaml").custom
    assert "aten.not_in_any_release" in custom
    assert "aten.relu" not in custom
