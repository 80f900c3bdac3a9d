"""The recipe `clean` on whole graphs: what it leaves, what it costs, inlined bodies."""

import cProfile
import pstats
import random
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import parser

import surgeon

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))

from graphs import blocks, transformer


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options)
    return session.run(None, feeds)


def calls(model: onnx.ModelProto) -> float:
    """How many functions Python calls for each node: a measure of time that no machine changes."""
    profile = cProfile.Profile()
    profile.enable()
    surgeon.apply(model, "clean", verify=False).model.to_proto()
    profile.disable()
    return pstats.Stats(profile).total_calls / len(model.graph.node)


def test_a_transformer_keeps_no_shape_chain_and_computes_the_same():
    before = transformer(300)
    result = surgeon.apply(before, "clean")
    assert result.report.verdict is not None
    after = result.model.to_proto()
    found = result.report.after
    assert not {"Shape", "Gather", "Unsqueeze", "Concat", "ReduceMean"} & set(found)
    assert found["LayerNormalization"] == result.report.before["Sqrt"]
    for shape in ((1, 1, 64), (3, 7, 64)):
        feeds = {"x": np.random.default_rng(0).normal(size=shape).astype(np.float32)}
        for a, b in zip(run(before, feeds), run(after, feeds), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    assert [d.dim_param for d in after.graph.output[0].type.tensor_type.shape.dim[:2]] == ["N", "T"]


def test_a_block_keeps_the_nodes_that_compute():
    result = surgeon.apply(blocks(100), "clean", verify=False)
    of_a_block = {"MatMul", "Add", "Reshape", "Softmax", "Relu"}
    assert set(result.report.after) == of_a_block


@pytest.mark.slow
@pytest.mark.parametrize("shuffled", [False, True])
def test_the_cost_of_a_node_does_not_grow_with_the_graph(shuffled):
    small, large = blocks(800), blocks(6400)
    for model in (small, large):
        nodes = list(model.graph.node)
        if shuffled:
            random.Random(0).shuffle(nodes)
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    surgeon.apply(small, "clean", verify=False)  # what is read and cached once
    assert calls(large) < 1.05 * calls(small)


NESTED = """<ir_version: 8, opset_import: ["": 13]>
g (float[N,3] x, bool c) => (float[N,3] y, float[N,3] w, float[N,3] q)
  <bool yes = {1}, bool no = {0}> {
  a = If (yes) <
    then_branch = t () => (float[N,3] out) {
      v = If (c) <
        then_branch = n () => (float[N,3] o) { u = Neg (x) o = Exp (u) },
        else_branch = m () => (float[N,3] o) <float k = {5.0}> { o = Mul (x, k) }
      >
      out = Relu (v)
    },
    else_branch = e () => (float[N,3] out) { out = Neg (x) }
  >
  b = If (no) <
    then_branch = t2 () => (float[N,3] out) { out = Neg (x) },
    else_branch = e2 () => (float[N,3] out) { v = Add (a, x) out = Identity (v) }
  >
  d = If (c) <
    then_branch = t3 () => (float[N,3] o) {
      i = If (yes) <
        then_branch = t4 () => (float[N,3] out) <float k = {7.0}> { v = Mul (b, k) out = Abs (v) },
        else_branch = e4 () => (float[N,3] out) { out = Neg (b) }
      >
      o = Tanh (i)
    },
    else_branch = e3 () => (float[N,3] o) { o = Sigmoid (b) }
  >
  y = Exp (d)
  w = If (yes) <
    then_branch = t5 () => (float[N,3] out) { out = Neg (a) },
    else_branch = e5 () => (float[N,3] out) { out = Neg (x) }
  >
  q = Sub (b, d)
}"""


def test_branches_that_share_names_are_inlined_one_beside_the_other():
    before = parser.parse_model(NESTED)
    result = surgeon.apply(before, "clean")
    after = result.model.to_proto()
    onnx.checker.check_model(after, full_check=True)
    # left: two whose condition is an input
    assert result.report.housekeeping["If nodes with a proven condition inlined"] == 4
    for c in (True, False):
        for batch in (1, 4):
            x = np.random.default_rng(0).normal(size=(batch, 3)).astype(np.float32)
            feeds = {"x": x, "c": np.array(c)}
            for a, b in zip(run(before, feeds), run(after, feeds), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6)


ENDS = """<ir_version: 8, opset_import: ["": 13]>
g (float[N,3] x, bool c)
  => (float[N,3] y, float[N,3] again, float[N,3] same, float[N,3] z, int64[2] k)
  <int64[2] a = {3, 4}, int64[2] b = {1, 1}> {
  r = Relu (x)
  s = Neg (r)
  y = Identity (r)
  again = Identity (r)
  same = Identity (x)
  z = If (c) <
    then_branch = t () => (float[N,3] o) { v = Exp (s) o = Identity (v) },
    else_branch = e () => (float[N,3] p) { p = Identity (s) }
  >
  k = Add (a, b)
}"""


def test_outputs_come_from_what_computes_them():
    before = parser.parse_model(ENDS)
    bytes_before = before.SerializeToString()
    after = surgeon.apply(before, "clean").model.to_proto()
    assert before.SerializeToString() == bytes_before
    onnx.checker.check_model(after, full_check=True)
    made = {node.output[0]: node for node in after.graph.node}
    # a value has one name: the second output that it is, and an input that is one, keep their nodes
    assert made["y"].op_type == "Relu"
    assert (made["again"].op_type, made["again"].input[0]) == ("Identity", "y")
    assert (made["same"].op_type, made["same"].input[0]) == ("Identity", "x")
    assert made["k"].op_type == "Constant"
    branches = {a.name: a.g for a in made["z"].attribute}
    assert [n.op_type for n in branches["then_branch"].node] == ["Exp"]
    assert [n.op_type for n in branches["else_branch"].node] == ["Identity"]
    assert [v.name for v in after.graph.output] == [v.name for v in before.graph.output]
    for c in (True, False):
        feeds = {"x": np.array([[1, -2, 3]], np.float32), "c": np.array(c)}
        for a, b in zip(run(before, feeds), run(after, feeds), strict=True):
            np.testing.assert_array_equal(a, b)


LOOPS = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,3] x, bool c, int64 m) => (float[N,3] y, float[k,N,3] z, float[3] t, float[N,3] last)
  <int64 three = {3}, bool yes = {1}, float[3] zero = {0.0, 0.0, 0.0}, int64[1] two = {2}> {
  o = Abs (x)
  y, s, z, i = Loop (three, yes, x, zero) <
    body = b (int64 i, bool k, float[N,3] v, float[3] w)
      => (bool go, float[N,3] u, float[3] q, float[N,3] r, float f) <float half = {0.5}> {
      go = Identity (k)
      f = Cast <to = 1> (i)
      a = Mul (v, half)
      d = If (c) <
        then_branch = p () => (float[N,3] n) <float h = {2.0}> { j = Sub (o, f) n = Mul (j, h) },
        else_branch = e () => (float[N,3] n) <float h = {3.0}> { n = Mul (a, h) }
      >
      u = Add (d, a)
      g = ReduceMean <axes = [0], keepdims = 0> (u)
      q = Add (w, g)
      r = Neg (a)
    }
  >
  tt = ReduceSum <keepdims = 0> (i)
  t = Add (s, tt)
  l = Loop (m, yes, x) <
    body = b2 (int64 i2, bool k2, float[N,3] v2) => (bool go2, float[N,3] u2) {
      go2 = Identity (k2)
      p2 = Loop (two, , v2) <
        body = b3 (int64[1] i3, bool k3, float[N,3] v3) => (bool go3, float[N,3] u3) {
          go3 = Constant <value = bool {1}> ()
          h3 = Shape (i3)
          f3 = Cast <to = 1> (i3)
          e3 = Cast <to = 1> (h3)
          s3 = Add (f3, e3)
          u3 = Mul (v3, s3)
        }
      >
      u2 = Sub (p2, o)
    }
  >
  last = Identity (l)
}"""


def test_a_loop_of_a_few_turns_becomes_its_turns():
    before = parser.parse_model(LOOPS)
    result = surgeon.apply(before, "clean")
    after = result.model.to_proto()
    onnx.checker.check_model(after, full_check=True)
    assert result.report.housekeeping["Loop nodes unrolled, turn by turn"] == 2
    assert result.report.after["Loop"] == 1  # whose turns an input counts
    assert result.report.after["If"] == 3
    assert list(after.graph.output) == list(before.graph.output)
    for c, m, batch in ((True, 0, 2), (False, 3, 1), (True, 2, 5)):
        x = np.random.default_rng(m).normal(size=(batch, 3)).astype(np.float32)
        feeds = {"x": x, "c": np.array(c), "m": np.array(m)}
        for a, b in zip(run(before, feeds), run(after, feeds), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert surgeon.apply(after, "clean").report.changes == ()


@pytest.mark.parametrize(
    ("trips", "go", "again", "body", "left"),
    [
        ("int64 n = {4}", "yes", "Identity (k)", "u = Exp (v)", 0),
        ("int64 n = {4}", "", "Not (no)", "u = Exp (v)", 0),
        ("int64 n = {0}", "yes", "Identity (k)", "u = Exp (v)", 0),
        ("int64 n = {-3}", "", "Identity (k)", "u = Exp (v)", 0),
        ("int64 n = {9}", "no", "Identity (k)", "u = Exp (v)", 0),
        ("int64 n = {16}", "yes", "Identity (k)", "u = Exp (v)", 0),
        ("int64 n = {17}", "yes", "Identity (k)", "u = Exp (v)", 1),
        ("int64 n = {4}", "c", "Identity (k)", "u = Exp (v)", 1),
        ("int64 n = {4}", "yes", "Identity (c)", "u = Exp (v)", 1),
        ("int64 n = {4}", "yes", "Identity (no)", "u = Exp (v)", 0),
        ("int64 n = {4}", "yes", "Not (k)", "u = Exp (v)", 0),
        ("int64 n = {4}", "yes", "Identity (k)", "u = RandomNormalLike <seed = 1.0> (v)", 1),
        ("int64 n = {4}", "yes", "Identity (k)", "u = Identity (v)", 0),
        ("int64 n = {4}", "yes", "Identity (k)", "u = Identity (x)", 0),
        ("int64 n = {4}", "yes", "Identity (k)", "u = Concat <axis = 0> (v, v)", 0),
    ],
)
def test_a_loop_whose_turns_are_not_proven_stays(trips, go, again, body, left):
    before = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[N] x, bool c) => (float[M] y) <{trips}, bool yes = {{1}}, bool no = {{0}}> {{
          y = Loop (n, {go}, x) <
            body = b (int64 i, bool k, float[P] v) => (bool o, float[Q] u) {{ o = {again} {body} }}
          >
        }}"""
    )
    result = surgeon.apply(before, "clean", verify=False)
    after = result.model.to_proto()
    assert result.report.after.get("Loop", 0) == left
    assert list(after.graph.output) == list(before.graph.output)
    feeds = {"x": np.array([-1, 0.5], np.float32), "c": np.array(True)}
    if "Random" in body:
        return
    for a, b in zip(run(before, feeds), run(after, feeds), strict=True):
        np.testing.assert_array_equal(a, b)


MAP = """<ir_version: 8, opset_import: ["": 18]>
g (float[N,3] x, float[N,3] z, seq(float[N,3]) l) => (float[N,d] y, seq(float[N,3]) given)
    <int64 zero = {0}, int64 one = {1}, int64[2] shape = {-1, 1}, float k = {0.5}> {
  s = SequenceConstruct (LIST)
  m, n = SequenceMap <body = b (float[i,j] e, float[i,j] w) => (float[i,j] o, float[i,j] u) {
    size = Shape (e)  rank = Size (size)  flat = Equal (rank, one)
    r = If (flat) <then_branch = t () => (float[i,j] a) { a = Reshape (e, shape) },
                   else_branch = f () => (float[i,j] c) { c = Identity (e) }>
    o = Mul (r, k)  u = INNER (e, w)
  }> (s, SECOND)
  p = SequenceAt (m, zero)  q = SequenceAt (n, LAST)  y = Concat <axis = 1> (p, q)
  given = Identity (l)
}"""


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ({}, 0),
        ({"SECOND": "s"}, 0),
        ({"SECOND": "l"}, 1),  # of as many elements as come
        ({"INNER": "RandomUniformLike", ", w": ""}, 1),
    ],
)
def test_a_map_over_a_list_of_known_elements_is_its_body_for_each(words, left):
    text = MAP
    given = {"LIST": "x, z", "SECOND": "z", "INNER": "Sub", "LAST": "one"} | words
    for word, instead in given.items():
        text = text.replace(word, instead) if word.isupper() else text.replace("(e, w)", "(e)")
    before = parser.parse_model(text)
    result = surgeon.apply(before, "clean", verify=False)
    after = result.model.to_proto()
    assert result.report.after.get("SequenceMap", 0) == left
    assert ("SequenceConstruct" in result.report.after) == bool(left)
    x, z = np.random.default_rng(1).normal(size=(2, 4, 3)).astype(np.float32)
    feeds = {"x": x, "z": z, "l": [x, z]}
    if "Random" not in text:
        np.testing.assert_array_equal(run(before, feeds)[0], run(after, feeds)[0])


def test_a_loop_of_no_turn_that_gathers_rows_stays():
    before = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[K,N] y) <int64 n = {0}> {
          a = Identity (x)
          y = Loop (n, ) <
            body = b (int64 i, bool k) => (bool o, float[N] s) { o = Identity (k) s = Neg (a) }
          >
        }"""
    )
    assert surgeon.apply(before, "clean", verify=False).report.after["Loop"] == 1


def test_weights_that_nobody_reads_go() -> None:
    """Those that an exporter left behind, or another tool's rewriting; not a noted scale."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[n,3] x, bool c) => (float[n,3] y)
        <float[3] w = {1, 2, 3}, float[3] spare = {4, 5, 6}, float s = {0.5}> {
            a = Add (x, w)
            y = If (c) <
                then_branch = t () => (float[n,3] p) <float[3] over = {1, 1, 1}> { p = Relu (a) },
                else_branch = e () => (float[n,3] q) { q = Neg (a) }
            >
        }""")
    note = model.graph.quantization_annotation.add(tensor_name="a")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    result = surgeon.apply(model, "clean")
    left = result.model.to_proto().graph
    assert sorted(tensor.name for tensor in left.initializer) == ["s", "w"]
    bodies = [each.g for node in left.node for each in node.attribute if each.HasField("g")]
    assert [len(body.initializer) for body in bodies] == [0, 0]
    assert result.report.housekeeping["initializers dropped that nobody reads"] == 2
    assert not surgeon.apply(result.model.to_proto(), "clean").model.changed
    kept = surgeon.apply(model, "gelu-fuse").model.to_proto().graph
    assert len(kept.initializer) == 3, "who did not ask for a plain graph keeps them"


def test_equal_weights_stand_in_the_file_once() -> None:
    """Not one that a body reads, that is an input or an output too, or that is small."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[n,16] x, bool c, float[16,16] free) => (float[n,16] y, float[16,16] out) {
            a = MatMul (x, w)
            b = MatMul (a, same)
            d = MatMul (b, other)
            e = MatMul (d, zero)
            f = MatMul (e, inner)
            h = MatMul (f, free)
            i = MatMul (h, out)
            k = Add (i, few)
            m = Tanh (k)
            l = Mul (m, same_few)
            y = If (c) <
                then_branch = t () => (float[n,16] p) { p = MatMul (l, inner) },
                else_branch = e () => (float[n,16] q) { q = Neg (l) }
            >
        }""")
    values = np.random.default_rng(0).normal(size=(16, 16)).astype(np.float32)
    values[0, 0] = 0.0
    negative, last = values.copy(), values.copy()
    negative[0, 0] = -0.0
    last[-1, -1] += 1
    arrays = dict.fromkeys(("w", "same", "inner", "free", "out"), values)
    arrays |= {"other": last, "zero": negative, "few": values[0], "same_few": values[0]}
    for name, array in arrays.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    result = surgeon.apply(model, "clean", require="equivalent")
    left = {tensor.name for tensor in result.model.to_proto().graph.initializer}
    assert arrays.keys() - left == {"same"}
    assert result.report.housekeeping["equal initializers merged"] == 1
    assert not surgeon.apply(result.model.to_proto(), "clean").model.changed


def test_imports_that_no_node_needs_go_with_a_change() -> None:
    """What onnxruntime's sessions import; of ONNX's own an older runtime refuses the version."""
    inner = "then_branch = t () => (float[2] p) { p = com.microsoft.Gelu (a) }, "
    inner += "else_branch = e () => (float[2] q) { q = my.twice (a) }"
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 5,
        "com.microsoft": 1, "my": 1, "inside": 3, "ai.onnx.preview.training": 1, "spare": 2]>
        g (float[2] x, bool c) => (float[2] y) {{
            b = Identity (x)
            a = Relu (b)
            y = If (c) <{inner}>
        }}
        <domain: "my", opset_import: ["": 17, "inside": 3]>
        twice (x) => (y) {{ y = inside.Op (x) }}""")
    result = surgeon.apply(model, "gelu-fuse", verify=False)
    assert not result.model.changed
    assert len(result.model.to_proto().opset_import) == 7
    after = surgeon.apply(model, "clean", verify=False).model.to_proto()
    kept = {entry.domain for entry in after.opset_import}
    assert {"", "com.microsoft", "inside"} <= kept
    assert not kept & {"ai.onnx.ml", "ai.onnx.preview.training", "spare"}
    model.training_info.add().algorithm.node.add(op_type="Adam", domain="ai.onnx.preview.training")
    after = surgeon.apply(model, "clean", verify=False).model.to_proto()
    assert "ai.onnx.preview.training" in {entry.domain for entry in after.opset_import}
