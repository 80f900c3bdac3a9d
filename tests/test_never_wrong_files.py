"""What simplifiers get wrong in files: initializers, inputs, outputs and versions of all kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from never_wrong import F32, I64, Feeds, given, hold, ints, noise, ops
from onnx import helper, numpy_helper
from truth import parse

import surgeon
from surgeon.runtime import Session


@pytest.mark.parametrize("ir", [3, 4, 8])
def test_initializers_that_are_inputs_and_that_are_none(ir: int) -> None:
    body = "{ a = Identity (x) b = Mul (a, w) c = Mul (k, k) y = Add (b, c) }"
    proto = given(
        parse(f"g (float[N] x, float[1] w, float[1] k) => (float[N] y) {body}", 9, ir=ir),
        w=np.array([2], F32),
        k=np.array([3], F32),
    )
    runs: list[Feeds] = [{"x": noise(3)}]
    if ir > 3:  # onnxruntime takes the initializers of older files for constants
        runs.append({"x": noise(3), "w": np.array([-1], F32), "k": np.array([0], F32)})
    after = hold(proto, *runs)
    onnx.checker.check_model(after)
    assert {t.name for t in after.graph.initializer} == ({"w", "k"} if ir > 3 else {"w"})
    assert {"x", "w"} <= {value.name for value in after.graph.input}


def test_an_old_file_gets_no_initializer_beside_its_inputs() -> None:
    proto = parse(
        "g (float[2,3] x) => (float[3,2] y, float[2,3] z) "
        "{ a = Shape (x) b = Constant <value = int64[1] {0}> () c = Gather (a, b) "
        "d = Constant <value = int64[1] {-1}> () e = Concat <axis = 0> (d, c) y = Reshape (x, e) "
        "f = Constant <value = float[1] {2}> () h = Mul (f, f) z = Mul (x, h) }",
        9,
        ir=3,
    )
    after = hold(proto, {"x": noise(2, 3)})
    onnx.checker.check_model(after)
    assert not after.graph.initializer


def test_external_data_is_found_from_the_new_folder(tmp_path: Path) -> None:
    proto = given(
        parse("g (float[N,64] x) => (float[N,64] y) { a = Identity (x) y = MatMul (a, w) }"),
        w=noise(64, 64),
    )
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    moved = onnx.ModelProto.FromString(proto.SerializeToString())
    onnx.save(moved, old / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    surgeon.apply(old / "m.onnx", "clean").model.save(new / "m.onnx")
    (old / "w.bin").rename(old / "gone.bin")
    feeds = {"x": noise(3, 64)}
    found = Session(new / "m.onnx").run(feeds)["y"]
    np.testing.assert_array_equal(found, Session(proto).run(feeds)["y"])


def aged(opset: int | None, ir: int) -> onnx.ModelProto:
    """Operators with the attributes of old: where to broadcast, and to train."""
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Mul", ["a", "k"], ["b"], broadcast=1, axis=0),
        helper.make_node("Add", ["b", "zero"], ["c"], broadcast=1, axis=0),
        helper.make_node("Dropout", ["c"], ["d"], ratio=0.5, is_test=0),
        helper.make_node("Dropout", ["d"], ["e"], ratio=0.5),
        helper.make_node("Dropout", ["e"], ["f"], ratio=0.5, is_test=1),
        helper.make_node("Mul", ["f", "k"], ["h"], broadcast=1),
        helper.make_node("Tile", ["h", "two", "one"], ["i"]),
        helper.make_node("Neg", ["i"], ["y"]),
    ]
    constants = {"k": [2, 3], "zero": [0, 0], "two": 2, "one": 1}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, [2, 2])],
        [helper.make_tensor_value_info("y", 1, [2, 4])],
        [numpy_helper.from_array(np.array(v, F32), k) for k, v in constants.items()],
    )
    imports = [helper.make_opsetid("", opset or 1)]
    proto = helper.make_model(graph, opset_imports=imports, ir_version=ir)
    if opset is None:
        del proto.opset_import[:]
    return proto


@pytest.mark.parametrize(("opset", "ir"), [(1, 3), (4, 3), (5, 3), (None, 2)])
def test_nodes_of_old_mean_what_they_meant(opset: int | None, ir: int) -> None:
    """No runtime loads them, so what stays is read: all but what a test drops or nothing does."""
    proto = aged(opset, ir)
    after = surgeon.apply(proto, "clean", verify=False).model.to_proto()
    left = [node for node in after.graph.node if node.op_type != "Constant"]
    kept = [proto.graph.node[i] for i in (1, 2, 3, 4, 6, 7, 8)]
    assert [n.op_type for n in left] == [n.op_type for n in kept]
    assert [list(n.attribute) for n in left] == [list(n.attribute) for n in kept]
    assert left[0].input[0] == "x"
    assert left[4].input[0] == left[3].output[0]
    assert list(after.opset_import) == list(proto.opset_import)


@pytest.mark.parametrize("domains", [[], ["my"]])
def test_nodes_of_no_version_have_no_meaning(domains: list[str]) -> None:
    proto = aged(None, 8)
    proto.opset_import.extend(helper.make_opsetid(domain, 1) for domain in domains)
    with pytest.raises(surgeon.SurgeonError, match="imports no version of ONNX's own operator set"):
        surgeon.apply(proto, "clean")


@pytest.mark.parametrize("more", [("", 13), ("ai.onnx", 13), ("my", 2)])
@pytest.mark.parametrize("inside", [False, True])
def test_nodes_of_two_versions_have_no_one_meaning(more: tuple[str, int], inside: bool) -> None:
    proto = aged(None, 8)
    proto.opset_import.extend([helper.make_opsetid("", 11), helper.make_opsetid("my", 1)])
    if inside:
        node, opsets = helper.make_node("Softmax", ["a"], ["b"]), [*proto.opset_import]
        proto.functions.append(helper.make_function("my", "F", ["a"], ["b"], [node], opsets))
    (proto.functions[0] if inside else proto).opset_import.append(helper.make_opsetid(*more))
    with pytest.raises(surgeon.SurgeonError, match=f"imports two versions of .*, .* and {more[1]}"):
        surgeon.apply(proto, "clean")


def test_nodes_of_which_nothing_is_given_out_compute_nothing() -> None:
    proto = parse("g (float[2] x) => (float[2] y) { y = Relu (x) }")
    del proto.graph.output[:]
    with pytest.raises(surgeon.SurgeonError, match="it has no outputs"):
        surgeon.apply(proto, "clean")


def test_nodes_in_no_order_and_outputs_without_a_shape() -> None:
    proto = parse(
        "g (float[2,3] x) => (float[3,2] y, float[2,3] z, int64[k] s) { y = Reshape (b, c) "
        "z = Relu (b) b = Neg (a) a = Identity (x) c = Concat <axis = 0> (e, d) "
        "d = Slice (s, i, j) s = Shape (b) e = Slice (s, j, h) }"
    )
    given(proto, i=ints(0), j=ints(1), h=ints(2))
    for value in proto.graph.output[:2]:
        value.type.tensor_type.ClearField("shape")
    after = hold(proto, {"x": noise(2, 3)})
    assert not after.graph.output[0].type.tensor_type.HasField("shape")


def test_what_an_output_says_of_itself_stays() -> None:
    """Names, sizes that nothing proves, documentation, and a type without anything."""
    proto = parse(
        "g (float[N,3] x) => (float[batch,3] y, float[?] z, float[N,3] w) "
        "{ a = Neg (x) b = Neg (a) y = Relu (a) f = Constant <value_ints = [-1]> () "
        "z = Reshape (b, f) w = Identity (b) }"
    )
    proto.graph.output[0].doc_string = "The result."
    proto.graph.output[2].ClearField("type")
    proto.graph.output[2].type.tensor_type.elem_type = 1
    hold(proto, {"x": noise(2, 3)}, {"x": noise(5, 3)})


def test_inputs_that_nothing_reads_stay() -> None:
    proto = parse(
        "g (float[N] x, float[M] unread, float[N] half) => (float[N] y) "
        "{ a = Neg (half) b = Identity (a) y = Relu (x) }"
    )
    feeds = {"x": noise(3), "unread": noise(4), "half": noise(3)}
    after = hold(proto, feeds)
    assert ops(after.graph) == ["Relu"]


def test_an_output_that_is_an_input() -> None:
    proto = parse(
        "g (float[N] x, float[N] z) => (float[N] y, float[N] z, float[N] c) "
        "{ a = Identity (x) y = Add (a, z) c = Identity (x) }"
    )
    hold(proto, {"x": noise(3), "z": noise(3)})
    proto = parse("g (float[N] x) => (float[N] x, float[N] y) { y = Identity (x) }")
    hold(proto, {"x": noise(3)})


def test_an_output_that_is_an_initializer() -> None:
    proto = given(
        parse(
            "g (float[N] x) => (float[2] w, float[N] y) "
            "{ a = Mul (w, w) y = Add (x, s) s = ReduceSum <keepdims = 0> (a) }"
        ),
        w=np.array([1, 2], F32),
    )
    hold(proto, {"x": noise(3)})


def test_names_that_bodies_read_from_outside() -> None:
    """A merged twin, a dropped Identity, a folded constant, a fused node: each read in a body."""
    proto = given(
        parse(
            """g (bool p, float[N,3] x) => (float[N,3] y, float[N,3] z) {
              i = Identity (x)
              a = Neg (i)
              b = Neg (x)
              f = Mul (k, k)
              m = MatMul (x, w)
              s = Add (m, k)
              y = If (p) <
                then_branch = t () => (float[N,3] r) {
                  c = Add (b, f) d = Mul (c, s) h = Add (d, i) r = Sub (h, m) },
                else_branch = e () => (float[N,3] q) {
                  c = Abs (i) j = If (p) <
                    then_branch = t2 () => (float[N,3] r2) { d = Exp (b) r2 = Add (d, c) },
                    else_branch = e2 () => (float[N,3] q2) { q2 = Sub (b, f) }
                  > q = Add (j, a) }
              >
              z = Add (a, b)
            }"""
        ),
        k=np.array([1, 2, 3], F32),
        w=noise(3, 3),
    )
    x = noise(2, 3)
    hold(proto, *({"p": np.array(p), "x": x} for p in (True, False)), rounding=True)


def test_the_dims_of_inputs_keep_their_names_and_are_not_frozen() -> None:
    proto = parse(
        "g (float[batch,3,h,h] x, float[batch,other] w) => (float[batch,3,hh,h] y, int64[4] s) "
        "{ s = Shape (x) y = Reshape (x, s) }"
    )
    inputs = [{"x": noise(n, 3, m, m), "w": noise(n, k)} for n, m, k in ((1, 1, 1), (2, 5, 3))]
    hold(proto, *inputs)


@pytest.mark.parametrize("read", ["Add (a, s)", "Mul (s, s)"])
def test_sparse_initializers_are_not_lost(read: str) -> None:
    proto = parse(f"g (float[3] x) => (float[3] y) {{ a = Identity (x) b = {read} y = Neg (b) }}")
    values = numpy_helper.from_array(np.array([5], F32), "s")
    indices = numpy_helper.from_array(np.array([1], I64), "s_indices")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3]))
    hold(proto, {"x": noise(3)})


def test_an_initializer_that_stands_twice_and_says_the_same_is_one() -> None:
    """Converters to halves leave it; onnxruntime loads it, and none that says something else."""
    proto = parse(
        "g (float[n,3] x) => (float[n,3] y) { a = Add (x, k) b = Identity (a) y = Mul (b, k) }"
    )
    for _ in range(2):
        proto.graph.initializer.append(numpy_helper.from_array(np.float32([1, 2, 3]), "k"))
    result = surgeon.apply(proto, "clean", require="equivalent")
    assert [t.name for t in result.model.to_proto().graph.initializer] == ["k"]
    proto.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.float32([1, 2, 4]), "k"))
    with pytest.raises(surgeon.ModelError, match="two initializers are called `k`"):
        surgeon.apply(proto, "clean")


def twice(proto: onnx.ModelProto, nodes: Any, place: int, at: int | None = None) -> None:
    """Put a node of the list there once more: right behind it, or elsewhere."""
    node = onnx.NodeProto()
    node.CopyFrom(nodes[place])
    node.name, node.doc_string = "again", "what is noted of it may differ"
    nodes.insert(place + 1 if at is None else at, node)


@pytest.mark.parametrize("at", [None, 3])
@pytest.mark.parametrize("recipe", ["no-ops", "clean"])
def test_a_node_that_stands_twice_and_says_the_same_is_one(recipe: str, at: int | None) -> None:
    """Converters to halves leave Casts so, and onnxruntime refuses them."""
    proto = parse("g (float[n,3] x) => (float[n,3] y) { a = Relu (x) b = Neg (a) y = Exp (b) }")
    twice(proto, proto.graph.node, 0, at)
    before = proto.SerializeToString()
    result = surgeon.apply(proto, recipe, require="equivalent")
    assert proto.SerializeToString() == before
    assert [n.op_type for n in result.model.to_proto().graph.node] == ["Relu", "Neg", "Exp"]
    said = "nodes stood there twice, equal in all, and stand once now: `a`"
    assert said in result.report.remarks
    assert surgeon.apply(result.model, recipe).report.status == "unchanged"


def test_in_bodies_and_functions_a_node_that_stands_twice_is_one_too(tmp_path: Path) -> None:
    proto = parse(
        "g (float[n,3] x, bool c) => (float[n,3] y) { a = local.f (x) y = If (c) <"
        "then_branch = t () => (float[n,3] p) { q = Neg (a) p = Exp (q) },"
        "else_branch = e () => (float[n,3] r) { r = Identity (a) }> }"
        '<domain: "local", opset_import: ["": 17]> f (v) => (w) { u = Tanh (v) w = Neg (u) }',
        domains=', "local": 1',
    )
    twice(proto, proto.graph.node[1].attribute[0].g.node, 0)
    twice(proto, proto.functions[0].node, 1)
    twice(proto, proto.graph.node, 1)  # the If with its bodies
    onnx.save(proto, tmp_path / "m.onnx")
    result = surgeon.apply(tmp_path / "m.onnx", "clean", require="equivalent")
    (said,) = [each for each in result.report.remarks if "stand once now" in each]
    assert {"`y`", "`w`", "`q`"} <= set(said.replace(",", "").split())
    part = surgeon.extract(tmp_path / "m.onnx", outputs=["a"])
    assert part.verdict.status == "equivalent"
    assert surgeon.inspect(tmp_path / "m.onnx").source


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("a = Relu (x) b = Abs (a)", 0),
        ("a = RandomNormalLike (x) b = Abs (a)", 0),  # each draws for itself
        ("a = Dropout (x) b = Abs (a)", 0),
        ("a = com.acme.Op (x) b = Abs (a)", 0),  # of which nobody knows
        ("c = Constant <value_int = 1> () a = Relu (x) b = Abs (a)", 1),
        ("b = Relu (x)", 0),
    ],
)
def test_nodes_that_may_not_say_the_same_are_refused(body: str, place: int) -> None:
    proto = parse(
        f"g (float[n,3] x) => (float[n,3] y) {{ {body} y = Neg (b) }}", domains=', "com.acme": 1'
    )
    twice(proto, proto.graph.node, place)
    if proto.graph.node[place].op_type == "Relu":
        proto.graph.node[place + 1].op_type = "Abs"
    with pytest.raises(surgeon.ModelError, match="which is there already"):
        surgeon.apply(proto, "clean")
