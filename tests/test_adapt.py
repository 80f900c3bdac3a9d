"""`surgeon adapt`: the recipes behind which a check passes."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from typer.testing import CliRunner

import surgeon
from surgeon.cli import app
from surgeon.errors import UnfitError

RUN = CliRunner()
CHAIN = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,4] x) => (float[N,4] y) {
  a = Relu (x)
  b = HardSwish (a)
  c = Neg (b)
  d = Erf (c)
  e = Elu (d)
  y = Softplus (e)
}"""
ATEN = """<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
g (float[2,8,6,6] x) => (float[2,8,1,1] y) {
  size = Constant <value = int64[2] {1, 1}> ()
  a = Relu (x)
  y = org.pytorch.aten.adaptive_avg_pool2d (a, size)
}"""


def model_of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def operators(path: Path) -> set[str]:
    return {node.op_type for node in onnx.load(path).graph.node}


def lacks(*refused: str) -> Callable[[Path], bool]:
    """A runtime that takes all but these."""
    return lambda path: operators(path).isdisjoint(refused)


@pytest.mark.slow
def test_one_recipe_for_each_place_and_none_in_vain(tmp_path: Path) -> None:
    passes = lacks("HardSwish", "Softplus")
    found = surgeon.adapt(model_of(CHAIN), passes)
    taken = [each.recipe for each in found.rounds]
    assert [each.nodes[0].operator for each in found.rounds] == ["HardSwish", "Softplus"]
    assert taken == ["opset-14-forms", "activations-decompose"]
    assert found.recipes == ("activations-decompose",), "which mends the first place too"
    assert found.result.report.status == "equivalent"
    found.result.model.save(tmp_path / "out.onnx")
    assert passes(tmp_path / "out.onnx")


def test_what_passes_is_left_as_it_came() -> None:
    found = surgeon.adapt(model_of(CHAIN), lacks("Conv"))
    assert (found.recipes, found.rounds) == ((), ())
    assert not found.result.model.changed
    assert found.result.model.to_proto() == model_of(CHAIN)


def test_a_plain_graph_is_tried_first() -> None:
    text = CHAIN.replace("e = Elu (d)", "i = Identity (d)\n  e = Elu (i)")
    found = surgeon.adapt(model_of(text), lacks("Identity"))
    assert (found.recipes, found.rounds) == (("clean",), ())
    assert found.runs == 3, "as it came, plain, and the result"


@pytest.mark.slow
def test_no_model_is_asked_twice_but_the_result() -> None:
    """Nor a part, but the one that is taken; nor what a recipe leaves as it was."""
    seen: Counter[bytes] = Counter()

    def passes(path: Path) -> bool:
        graph = onnx.load(path).graph
        if len(graph.node) == 6:
            seen[graph.SerializeToString(deterministic=True)] += 1
        return lacks("HardSwish", "Softplus")(path)

    with pytest.raises(UnfitError):
        surgeon.adapt(model_of(CHAIN), lambda path: passes(path) and lacks("Relu")(path))
    assert sum(seen.values()) == len(seen) == 1
    found = surgeon.adapt(model_of(CHAIN), passes)
    assert found.recipes
    assert len(seen) > 1
    assert max(seen.values()) == 2, "as it came, in both searches"


def test_nodes_of_pytorchs_own_are_replaced_first() -> None:
    found = surgeon.adapt(model_of(ATEN), lacks("adaptive_avg_pool2d"))
    assert found.recipes == ("aten",)


@pytest.mark.slow
def test_what_has_to_be_allowed_is_said_and_taken_when_it_is() -> None:
    with pytest.raises(UnfitError, match="Erf") as caught:
        surgeon.adapt(model_of(CHAIN), lacks("Erf"))
    last = caught.value.rounds[-1]
    assert {mend.allow for mend in last.waiting} == {("approximate",)}
    assert f"`--allow approximate`: behind `{last.waiting[0].recipe}`" in caught.value.mend
    found = surgeon.adapt(model_of(CHAIN), lacks("Erf"), allow=["approximate"])
    assert found.recipes == (last.waiting[0].recipe,)


@pytest.mark.slow
def test_where_nothing_helps_the_place_is_named() -> None:
    with pytest.raises(UnfitError, match=r"`a \(Relu\)`") as caught:
        surgeon.adapt(model_of(CHAIN), lacks("HardSwish", "Relu"))
    assert [each.recipe for each in caught.value.rounds] == [""]
    assert caught.value.mend.startswith("`--allow approximate` lets more recipes be tried. Save")


@pytest.mark.slow
def test_a_recipe_that_helps_the_part_alone_makes_room_for_another() -> None:
    def passes(path: Path) -> bool:
        found = operators(path)
        many = len(onnx.load(path).graph.node) > 3
        return "HardSwish" not in found and not (many and "HardSigmoid" in found)

    found = surgeon.adapt(model_of(CHAIN), passes)
    assert found.rounds[0].recipe == "opset-14-forms"
    assert "opset-14-forms" not in found.recipes
    assert found.recipes


@pytest.mark.slow
def test_the_users_recipes_come_first_and_stay() -> None:
    found = surgeon.adapt(model_of(CHAIN), lacks("HardSwish"), "opset-19")
    assert found.recipes[0] == "opset-19"
    assert len(found.recipes) > 1


def test_runs_are_counted() -> None:
    asked = []

    def passes(path: Path) -> bool:
        asked.append(path)
        return lacks("Relu")(path)

    with pytest.raises(UnfitError, match=r"(?s)asked 4 times.*`most=8`"):
        surgeon.adapt(model_of(CHAIN), passes, most=4)
    assert len(asked) == 4


def test_runs_that_are_spent_on_the_part_are_said_too() -> None:
    with pytest.raises(UnfitError, match="asked 4 times"):
        surgeon.adapt(model_of(CHAIN), lacks("Relu"), most=3)


def test_what_does_not_pass_again_is_an_error() -> None:
    asked = []

    def passes(path: Path) -> bool:
        asked.append(path)
        return len(asked) == 1

    with pytest.raises(UnfitError, match="does not pass again"):
        surgeon.adapt(model_of(CHAIN), passes)


def test_the_result_is_compared_with_the_original() -> None:
    """A recipe that a user begins with may be wrong; what passes is not saved for that."""

    @surgeon.rule(match="y = Neg (x)", why="It is wrong.", exact="bit")
    def wrong(build, match):  # type: ignore[no-untyped-def]
        return build.op("Abs", match.values["x"])

    found = surgeon.adapt(model_of(CHAIN), lacks("HardSwish"), wrong)
    assert found.result.report.refusals, "and the rewrite that is wrong is left out"
    assert "Neg" in found.result.report.after


SCRIPT = """
import sys, onnx
found = {node.op_type for node in onnx.load(sys.argv[1]).graph.node} & set(sys.argv[2:])
if found:
    print("no", *sorted(found))
    sys.exit(9)
"""
NUMBERS = """
import sys, numpy as np, onnx, onnxruntime
model = onnx.load(sys.argv[1])
for node in model.graph.node:
    if node.op_type == "HardSwish":
        node.op_type = "Relu"
data = np.load(sys.argv[2])
session = onnxruntime.InferenceSession(model.SerializeToString())
feeds = {key[3:]: data[key] for key in data.files if key.startswith("in.")}
names = [value.name for value in session.get_outputs()]
wanted = [data["out." + name] for name in names]
same = all(map(np.allclose, session.run(names, feeds), wanted))
sys.exit(0 if same else 4)
"""


LISTING = """
import sys, onnx
found = {node.op_type for node in onnx.load(sys.argv[1]).graph.node} & {"HardSwish", "ReduceL2"}
if found:
    print("unsupported", sorted(found))
    sys.exit(9)
"""

FINICKY = """
import sys, onnx
nodes = onnx.load(sys.argv[1]).graph.node
if "HardSwish" in {node.op_type for node in nodes}:
    print("Error: unsupported operator HardSwish")
    sys.exit(9)
if len(nodes) < 4 and "Neg" in {node.op_type for node in nodes}:
    print("I want more than that, really")
    sys.exit(9)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    onnx.save(model_of(CHAIN.replace("[N,4]", "[3,4]")), path)
    return path


def command(tmp_path: Path, text: str, *more: str) -> str:
    script = tmp_path / "check.py"
    script.write_text(text)
    return " ".join([f'"{sys.executable}" "{script}" {{}}', *more])


@pytest.mark.slow
def test_the_command_line(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "out.onnx"
    check = command(tmp_path, SCRIPT, "HardSwish", "Softplus")
    done = RUN.invoke(app, ["adapt", str(source), str(target), "--check", check])
    assert done.exit_code == 0, done.output
    assert "passes behind opset-14-forms" in done.output
    assert "It passes behind activations-decompose" in done.output
    assert f"Saved {target}" in done.output.replace("\n", "")
    assert operators(target).isdisjoint({"HardSwish", "Softplus"})
    done = RUN.invoke(app, ["adapt", str(target), str(tmp_path / "2.onnx"), "--check", check])
    assert "It passes as it came" in done.output


@pytest.mark.slow
def test_json(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "out.onnx"
    check = command(tmp_path, SCRIPT, "Softplus")
    done = RUN.invoke(app, ["adapt", str(source), str(target), "--check", check, "--json"])
    told = json.loads(done.stdout)
    assert told["found"] == ["activations-decompose"]
    assert told["rounds"][0]["nodes"][0]["operator"] == "Softplus"
    assert told["saved"] == str(target)
    assert told["verdict"]["status"] == "equivalent"


@pytest.mark.slow
def test_a_part_that_fails_for_another_reason_is_not_followed(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "out.onnx"
    check = command(tmp_path, FINICKY)
    done = RUN.invoke(app, ["adapt", str(source), str(target), "--check", check, "--json"])
    assert done.exit_code == 0, done.output
    (one,) = json.loads(done.stdout)["rounds"]
    assert [node["operator"] for node in one["nodes"]] == ["HardSwish"]


@pytest.mark.slow
def test_a_command_that_lists_all_it_lacks_in_one_line(tmp_path: Path) -> None:
    target, source = tmp_path / "out.onnx", tmp_path / "in.onnx"
    text = "g (float[N,4] x) => (float[N,1] y) { a = HardSwish (x)  y = ReduceL2 <axes = [1]> (a) }"
    onnx.save(model_of(f'<ir_version: 8, opset_import: ["": 17]>\n{text}'), source)
    check = command(tmp_path, LISTING)
    done = RUN.invoke(app, ["adapt", str(source), str(target), "--check", check, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["found"] == ["opset-14-forms", "reductions-decompose"]


@pytest.mark.slow
def test_where_nothing_helps_nothing_is_written(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "out.onnx"
    check = command(tmp_path, SCRIPT, "Relu")
    done = RUN.invoke(app, ["adapt", str(source), str(target), "--check", check])
    assert done.exit_code == 3
    assert "passes behind no bundled recipe" in done.output
    assert "exit status 9; its last line:\n  no Relu" in done.output
    assert not target.exists()


@pytest.mark.slow
def test_a_runtime_that_computes_something_else(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "out.onnx"
    check = command(tmp_path, NUMBERS, "{data}")
    done = RUN.invoke(app, ["adapt", str(source), str(target), "--check", check, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rounds"][0]["nodes"][0]["operator"] == "HardSwish"
    assert "HardSwish" not in operators(target)


@pytest.mark.slow
def test_real_inputs(tmp_path: Path) -> None:
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(model_of(CHAIN), source)
    check = command(tmp_path, NUMBERS, "{data}")
    asked = ["adapt", str(source), str(target), "--check", check]
    done = RUN.invoke(app, asked)
    assert done.exit_code == 0, "drawn at sizes at which it runs"
    np.savez(tmp_path / "x.npz", x=np.linspace(-4, 4, 8, dtype=np.float32).reshape(2, 4))
    done = RUN.invoke(app, [*asked, "--data", str(tmp_path / "x.npz")])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["in.onnx", "--check", "true {}"], "the output is missing"),
        (["clean.yaml", "out.onnx", "--check", "true {}"], "looks like a recipe"),
        (["in.onnx", "out.onnx", "--check", "true"], "where the model goes"),
        (["in.onnx", "out.onnx", "--check", "no-such-program-here {}"], "cannot be run"),
        (["in.onnx", "in.onnx", "--check", "true {}"], "the file that is read"),
    ],
)
def test_a_command_line_that_is_wrong(
    source: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], phrase: str
) -> None:
    monkeypatch.chdir(source.parent)
    before = source.read_bytes()
    done = RUN.invoke(app, ["adapt", *arguments])
    assert done.exit_code in (2, 5)
    assert phrase in done.output
    assert source.read_bytes() == before


def test_what_has_no_nodes_can_fail_too() -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] x) { }'
    with pytest.raises(UnfitError):
        surgeon.adapt(onnx.parser.parse_model(text), lambda path: False)


def test_a_runtime_that_reads_no_newer_opset() -> None:
    text = CHAIN.replace("ir_version: 8", "ir_version: 9").replace('"": 17', '"": 19')
    found = surgeon.adapt(model_of(text), lambda path: onnx.load(path).opset_import[0].version < 18)
    assert found.recipes == ("opset-17",)
    assert found.result.model.opset == 17


def test_a_runtime_that_infers_no_shapes() -> None:
    def passes(path: Path) -> bool:
        graph = onnx.load(path).graph
        told = {value.name for value in (*graph.value_info, *graph.output)}
        return all(told.issuperset(node.output) for node in graph.node)

    assert surgeon.adapt(model_of(CHAIN), passes).recipes == ("state-shapes",)
