"""`extract`: the part between values, compared with the model it was cut out of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from command import run
from onnx import TensorProto, helper, numpy_helper

import surgeon
from surgeon.extraction import model_of
from surgeon.extraction.cut import End, Wiring, cut
from surgeon.extraction.rejoined import compare
from surgeon.extraction.types import types_of
from surgeon.model import Model

NET = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n, 4, h, w] x, float[n, 4] z) => (float[n, 4] y, float[n, 4] q)
<float[4, 4, 1, 1] k = {1, 0, 0, 2, 0, 1, 0, 0, 3, 0, 1, 0, 0, 0, 0, 1}, float[1] unread = {7}> {
  a = Conv <kernel_shape = [1, 1], strides = [2, 2]> (x, k)
  b = Relu (a)
  [pool] c = GlobalAveragePool (b)
  d = Flatten (c)
  y = Add (d, z)
  q = Mul (d, d)
}
"""
BRANCHES = """
<ir_version: 8, opset_import: ["": 17]>
g (float[2] x, bool go) => (float[2] y) <float[2] w = {3, 5}> {
  h = Sin (x)
  i = Cos (h)
  y = If (go) <
    then_branch = t () => (float[2] p) { p = Mul (i, w) },
    else_branch = e () => (float[2] p) { h = Neg (x)  p = Add (h, i) }
  >
}
"""
CALLS = """
<ir_version: 8, opset_import: ["": 17, "my": 1]>
g (float[2] x) => (float[2] y) { h = Sin (x)  y = my.outer (h) }
<domain: "my", opset_import: ["": 17, "my": 1]>
outer (a) => (b) { c = my.inner (a)  b = Neg (c) }
<domain: "my", opset_import: ["": 17]>
inner (a) => (b) { b = Exp (a) }
<domain: "my", opset_import: ["": 17]>
unread (a) => (b) { b = Log (a) }
"""


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def ran(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def test_the_part_between_values_computes_what_the_model_does() -> None:
    net = parsed(NET)
    found = surgeon.extract(net, inputs=["b"], outputs=["q", "d"])
    assert (found.nodes, found.of) == (3, 6)
    assert [v.name for v in found.inputs] == ["b"]
    assert [v.name for v in found.outputs] == ["q", "d"]
    assert found.inputs[0].shape == ("n", 4, "(h + 1)//2", "(w + 1)//2")
    assert found.verdict is not None
    assert found.verdict.status == "equivalent"
    x = np.random.default_rng(0).standard_normal((2, 4, 6, 5), np.float32)
    part = found.model.to_proto()
    assert not part.graph.initializer
    b = np.maximum(ran(surgeon.extract(net, outputs=["a"]).model.to_proto(), {"x": x})[0], 0)
    q, d = ran(part, {"b": b})
    y, whole = ran(net, {"x": x, "z": np.zeros((2, 4), np.float32)})
    np.testing.assert_array_equal(q, whole)
    np.testing.assert_array_equal(d, y)
    assert net == parsed(NET)


def test_with_no_beginning_it_reads_the_inputs_that_it_needs() -> None:
    found = surgeon.extract(parsed(NET), outputs=["d"])
    assert [v.name for v in found.inputs] == ["x"]
    assert [t.name for t in found.model.to_proto().graph.initializer] == ["k"]


def test_with_no_end_it_gives_the_outputs_of_the_model() -> None:
    found = surgeon.extract(parsed(NET), inputs=["z", "d"])
    assert [v.name for v in found.inputs] == ["z", "d"]
    assert [v.name for v in found.outputs] == ["y", "q"]


def test_values_get_the_names_that_are_asked_for() -> None:
    found = surgeon.extract(parsed(BRANCHES), inputs=["phase=i", "x", "flag=go"], outputs=["o=y"])
    assert [v.name for v in found.inputs] == ["phase", "x", "flag"]
    assert [v.name for v in found.outputs] == ["o"]
    x, i = np.float32([1, 2]), np.float32([7, 8])
    for go, wanted in ((True, i * [3, 5]), (False, i - x)):
        feeds = {"phase": i, "x": x, "flag": np.asarray(go)}
        np.testing.assert_array_equal(ran(found.model.to_proto(), feeds)[0], wanted)


def test_a_name_that_a_body_has_of_its_own_stays_in_it() -> None:
    found = surgeon.extract(parsed(BRANCHES), inputs=["x", "go", "start=h"])
    feeds = {"x": np.float32([1, 2]), "go": np.asarray(False), "start": np.float32([0, 0])}
    np.testing.assert_array_equal(ran(found.model.to_proto(), feeds)[0], np.float32([0, -1]))


def test_what_bodies_read_goes_with_them() -> None:
    found = surgeon.extract(parsed(BRANCHES), inputs=["h", "x", "go"])
    assert [t.name for t in found.model.to_proto().graph.initializer] == ["w"]
    assert found.nodes == 2


@pytest.mark.parametrize("begin", ["a", "first=a"])
def test_what_a_node_makes_beside_what_it_is_needed_for_may_be_given(begin: str) -> None:
    """The Split stays for its second part; its first is an input of the part."""
    text = """<ir_version: 8, opset_import: ["": 18]>
    g (float[n,4] x) => (float[n,2] y)
      { a, b = Split <axis = 1, num_outputs = 2> (x) a_aside = Exp (a) y = Add (a_aside, b) }"""
    part = surgeon.extract(parsed(text), inputs=[begin, "x"], outputs=["y"])
    assert part.verdict is not None
    assert part.verdict.status == "equivalent"
    made = part.model.to_proto().graph
    assert [v.name for v in made.input] == [begin.partition("=")[0], "x"]
    onnx.checker.check_model(part.model.to_proto(), full_check=True)


def test_functions_go_with_the_calls() -> None:
    found = surgeon.extract(parsed(CALLS), inputs=["h"])
    assert [f.name for f in found.model.to_proto().functions] == ["outer", "inner"]
    assert found.verdict is not None
    assert found.verdict.status == "equivalent"
    alone = surgeon.extract(parsed(CALLS), outputs=["h"]).model.to_proto()
    assert not alone.functions
    assert [e.domain for e in alone.opset_import] == [""]


def test_initializers_that_are_inputs_stay_inputs() -> None:
    old = parsed(NET)
    old.ir_version = 3
    old.graph.input.extend(
        helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in old.graph.initializer
    )
    part = surgeon.extract(old, outputs=["d"]).model.to_proto()
    assert [v.name for v in part.graph.input] == ["x", "k"]
    onnx.checker.check_model(part)


def test_lists_and_what_an_if_gives_have_types() -> None:
    lists = parsed(
        """
        <ir_version: 8, opset_import: ["": 17]>
        g (float[n, 4] x, bool go) => (float[n, m] y) {
          s = SplitToSequence <axis = 1, keepdims = 1> (x)
          c = ConcatFromSequence <axis = 1> (s)
          i = If (go) <
            then_branch = t () => (float[a, b] p) { p = Sin (c) },
            else_branch = e () => (float[a, b] p) { p = Cos (c) }
          >
          y = Neg (i)
        }
        """
    )
    begun = surgeon.extract(lists, outputs=["s"], verify=False).model.to_proto()
    assert begun.graph.output[0].type.sequence_type.elem_type.tensor_type.elem_type == 1
    ended = surgeon.extract(lists, inputs=["i"])
    assert ended.verdict is not None
    assert ended.verdict.status == "equivalent"


def test_aten_nodes_go_with_it(tmp_path: Path) -> None:
    """The witness computes them; onnxruntime runs neither model."""
    aten = parsed(
        """
        <ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
        g (float[2, 3] x) => (float[2, 3] y) {
          h = Sin (x)
          i = org.pytorch.aten.ATen <operator = "rsqrt"> (h)
          y = Neg (i)
        }
        """
    )
    found = surgeon.extract(aten, inputs=["h"])
    assert found.verdict is not None
    assert found.verdict.status == "runs"
    assert [e.domain for e in found.model.to_proto().opset_import] == ["", "org.pytorch.aten"]
    with pytest.raises(surgeon.VerifyError):
        surgeon.extract(aten, inputs=["h"], require="equivalent")
    onnx.save(aten, tmp_path / "aten.onnx")
    result = run("extract", tmp_path / "aten.onnx", tmp_path / "o.onnx", "--from", "h", "-q")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: not shown to be equivalent: ")
    assert not result.stdout


def test_nodes_of_one_name_are_told_apart() -> None:
    net = parsed(NET)
    for node in net.graph.node:
        node.name = "n"
    found = surgeon.extract(net, inputs=["b"], outputs=["q"])
    assert len({node.name for node in found.model.to_proto().graph.node}) == 3


def test_a_wrong_part_is_found() -> None:
    whole = Model(parsed(NET))
    wiring = Wiring(whole.proto.graph)
    part = cut(wiring, [End("a", "a")], [End("q", "out")])
    types = types_of(whole, ["a", "q"])
    made = model_of(whole.proto, part, types)
    assert compare(whole, wiring, part, made, types, progress=None).status == "equivalent"
    made.graph.node[0].op_type = "Sigmoid"
    assert compare(whole, wiring, part, made, types, progress=None).status == "differs"


@pytest.mark.parametrize(
    ("inputs", "outputs", "what", "mend"),
    [
        ([], ["dd"], "no value `dd`", "Did you mean `d`?"),
        ([], ["pool"], "`pool` is a node", "`c`"),
        (["x"], ["y"], "the part reads `z` too, for `y` (Add)", "Add `--from z`"),
        (["d", "x"], ["q"], "no node of the part reads `x`", "Leave it out"),
        (["k", "x"], ["d"], "`k` is a constant", "Leave it out"),
        (["b", "b"], ["q"], "the value `b` is given twice", "Leave one"),
        (["b"], ["o=q", "o=d"], "the name `o` is given twice", "Leave one"),
        (["b"], ["c=q"], "`c` is the name of another value", "Call `q` otherwise"),
        (["d"], ["d=q"], "`d` is the name of another value", "Call `q` otherwise"),
        (["d"], ["d"], "`d` is where the part begins", "Name a value"),
        ([], ["x"], "`x` is computed by no node", "Name a value"),
    ],
)
def test_ends_that_are_none_are_refused(
    inputs: list[str], outputs: list[str], what: str, mend: str
) -> None:
    with pytest.raises(surgeon.RecipeError) as error:
        surgeon.extract(parsed(NET), inputs=inputs, outputs=outputs)
    assert what in error.value.what
    assert mend in error.value.mend


def test_a_value_of_a_body_is_no_end() -> None:
    with pytest.raises(surgeon.RecipeError, match=r"`p` is a value of a body of node `y` \(If\)"):
        surgeon.extract(parsed(BRANCHES), outputs=["p"])


def test_a_value_of_unknown_type_is_refused() -> None:
    strange = parsed(
        """
        <ir_version: 8, opset_import: ["": 17, "my": 1]>
        g (float[2] x) => (float[2] y) { h = my.op (x)  y = Neg (h) }
        """
    )
    with pytest.raises(surgeon.ModelError, match="the type of `h` is unknown"):
        surgeon.extract(strange, inputs=["h"])


def test_weights_outside_go_with_it(tmp_path: Path) -> None:
    net = parsed(NET)
    weights = np.arange(16, dtype=np.float32).reshape(4, 4, 1, 1)
    net.graph.initializer[0].CopyFrom(numpy_helper.from_array(weights, "k"))
    onnx.save(
        net,
        str(tmp_path / "in.onnx"),
        save_as_external_data=True,
        location="in.data",
        size_threshold=0,
    )
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "part.onnx"
    surgeon.extract(tmp_path / "in.onnx", outputs=["a"]).model.save(target)
    part = onnx.load(str(target))
    np.testing.assert_array_equal(numpy_helper.to_array(part.graph.initializer[0]), weights)
    assert part.graph.initializer[0].data_type == TensorProto.FLOAT


def test_a_part_with_weights_outside_is_repaired(tmp_path: Path) -> None:
    net = parsed(NET)
    path, target = tmp_path / "in.onnx", tmp_path / "there" / "part.onnx"
    target.parent.mkdir()
    weights = np.arange(16, dtype=np.float32).reshape(4, 4, 1, 1)
    net.graph.initializer[0].CopyFrom(numpy_helper.from_array(weights, "k"))
    onnx.save(net, path, save_as_external_data=True, location="in.data", size_threshold=0)
    part = surgeon.extract(path, outputs=["b"]).model
    rule = surgeon.rule(match="y = Relu (x)", why="No slope.", exact="rounding")

    @rule
    def relu_as_leaky(build: Any, match: Any) -> Any:
        return build.op("LeakyRelu", match.values["x"], alpha=0.0)

    surgeon.apply(part, relu_as_leaky).model.save(target)
    made = onnx.load(target)
    assert [node.op_type for node in made.graph.node] == ["Conv", "LeakyRelu"]
    np.testing.assert_array_equal(numpy_helper.to_array(made.graph.initializer[0]), weights)


def test_the_command(tmp_path: Path) -> None:
    source, target = tmp_path / "in.onnx", tmp_path / "part.onnx"
    onnx.save(parsed(NET), str(source))
    done = run("extract", str(source), str(target), "--from", "feature=b", "--to", "q", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert (told["nodes"], told["of"]) == (3, 6)
    assert told["verdict"]["status"] == "equivalent"
    assert [v.name for v in onnx.load(str(target)).graph.input] == ["feature"]
    said = run("log", str(target)).output
    assert "cut from" in said
    assert "feature=b" in said


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    source, target = tmp_path / "in.onnx", tmp_path / "part.onnx"
    onnx.save(parsed(NET), str(source))
    for options, code, what in (
        ((), 2, "where to cut is not said"),
        (("--to", "dd"), 2, "Did you mean `d`?"),
        (("--to", "d", "--no-verify", "--input", "x=ones"), 2, "--no-verify"),
    ):
        done = run("extract", str(source), str(target), *options)
        assert (done.exit_code, what in done.output) == (code, True), done.output
    with pytest.raises(surgeon.SurgeonError, match="Give `inputs="):
        surgeon.extract(source)
    assert not target.exists()
    assert run("extract", str(source), str(source), "--to", "d").exit_code == 5
    done = run("extract", str(source), str(target), "--to", "d", "--dry-run")
    assert (done.exit_code, target.exists()) == (0, False)
    assert "Nothing was written" in done.output


def test_outputs_that_may_be_forgotten_are_told(tmp_path: Path) -> None:
    model, part = str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")
    onnx.save(parsed(NET), model)
    assert "without the model's output q: `--to` keeps it" in run(
        "extract", model, part, "--to", "sum=y"
    ).output.replace("\n", " ")
    assert surgeon.extract(model, outputs=["d"]).without == (), "a part of the middle has neither"
    assert surgeon.extract(model, outputs=["y", "q"]).without == ()


NOISE = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n, 3] x) => (float[n, 3] y) {
  s = Exp (x)
  a = RandomNormalLike (s)
  b = Mul (a, s)
  y = Add (b, x)
}
"""


def test_noise_that_becomes_an_input_is_the_same_on_both_sides() -> None:
    part = surgeon.extract(parsed(NOISE), inputs=["x", "noise=a"], outputs=["y"])
    assert part.verdict is not None
    assert part.verdict.status == "equivalent"
    assert [value.name for value in part.inputs] == ["x", "noise"]
    whole = Model.of(parsed(NOISE))
    wiring = Wiring(whole.proto.graph)
    piece = cut(wiring, [End("x", "x"), End("a", "noise")], [End("y", "y")])
    types = types_of(whole, ["x", "a", "y"])
    wrong = model_of(whole.proto, piece, types)
    wrong.graph.node[-1].op_type = "Sub"
    assert compare(whole, wiring, piece, wrong, types, progress=None).status == "differs"


def test_what_is_drawn_and_not_cut_off_is_not_compared() -> None:
    part = surgeon.extract(parsed(NOISE), inputs=["s", "x"], outputs=["y"])
    assert part.verdict is not None
    assert part.verdict.status == "runs"


TOKENS = """
<ir_version: 8, opset_import: ["": 17, "my": 1]>
g (string[n] text) => (float[n,t,2] y) <float[4,2] table = {1, 2, 3, 4, 5, 6, 7, 8}> {
  ids = my.Tokens (text)
  rows = Gather (table, ids)
  y = Relu (rows)
}
"""


def test_the_type_of_what_nobody_knows_can_be_said(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(TOKENS)
    with pytest.raises(surgeon.SurgeonError, match="the type of `ids` is unknown") as caught:
        surgeon.extract(model, inputs="ids")
    assert "`--type 'ids=int64[n,t]'`" in caught.value.mend
    source = tmp_path / "in.onnx"
    onnx.save(model, source)
    result = run(
        "extract", source, tmp_path / "out.onnx", "--from", "ids", "--type", "ids=int64[n,t]"
    )
    assert result.exit_code == 0, result.output
    (given,) = onnx.load(tmp_path / "out.onnx").graph.input
    assert given.type.tensor_type.elem_type == TensorProto.INT64
    assert [dim.dim_param for dim in given.type.tensor_type.shape.dim] == ["n", "t"]


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("ids", "int65[n]", "the type of `ids`, `int65[n]`, is none"),
        ("rows", "int64[n]", "`rows` is not of the type `int64[n]`: the part has no such end"),
        ("y", "int64[n]", "`y` is not of the type `int64[n]`: its elements are float"),
    ],
)
def test_a_type_that_is_none_or_another_is_refused(name: str, text: str, what: str) -> None:
    with pytest.raises(surgeon.RecipeError) as caught:
        surgeon.extract(
            onnx.parser.parse_model(TOKENS),
            inputs="ids",
            types={"ids": "int64[n,t]"} | {name: text},
        )
    assert caught.value.what == what
