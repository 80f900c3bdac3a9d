"""`surgeon reduce --without-weights`: what fails, with a number in the place of each weight."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import run
from command_files import refused
from onnx import numpy_helper
from truth import parse

import surgeon
from surgeon.model import Model
from surgeon.provenance import WEIGHTLESS
from surgeon.reducing.weightless import without_weights
from surgeon.runtime import Session

NET = """g (float[n,32] x, bool yes) => (float[n,32] y) <int64[2] flat = {-1, 32}> {
  a = MatMul (x, w)
  b = Reshape (a, flat)
  c = Erf (b)
  s = If (yes) <
    then_branch = t () => (float[n,32] p) { p = MatMul (c, v) },
    else_branch = e () => (float[n,32] r) { r = MatMul (c, w) }>
  y = Add (s, k)
}"""


def net(dtype: str = "float32") -> onnx.ModelProto:
    """Two matrices, one of them in a body, and a line that is small."""
    model = parse(NET, opset=20)
    rng = np.random.default_rng(0)
    branch = model.graph.node[3].attribute[0].g
    for graph, name, shape in (
        (model.graph, "w", (32, 32)),
        (branch, "v", (32, 32)),
        (model.graph, "k", (32,)),
    ):
        array = rng.normal(size=shape).astype(dtype)
        graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def refuses(*operators: str) -> Callable[[Path], bool]:
    """A runtime that loads a file and refuses one in which all of these are."""

    def fails(path: Path) -> bool:
        proto = onnx.load(path)
        onnx.checker.check_model(proto, full_check=True)
        Session(proto)
        return set(operators) <= {node.op_type for node in proto.graph.node}

    return fails


@pytest.mark.slow
def test_a_number_stands_for_each_weight_in_bodies_too() -> None:
    model = net()
    before = model.SerializeToString()
    found = surgeon.reduce(model, refuses("MatMul", "If"), without_weights=True)
    assert model.SerializeToString() == before
    assert found.weights_left_out == 2 * 32 * 32 * 4
    proto = found.model.to_proto()
    assert len(proto.SerializeToString()) < 3000 < len(before)
    left = [node.op_type for node in proto.graph.node]
    assert left == ["ConstantOfShape", "MatMul", "If"]
    plain, size, kept = without_weights(Model.of(model))
    assert size == found.weights_left_out
    assert not kept
    session = Session(plain.to_proto())
    given = {"x": np.ones((2, 32), np.float32), "yes": np.array(True)}
    assert np.isfinite(session.run(given)["y"]).all()
    (said,) = [e.value for e in plain.to_proto().metadata_props if e.key == WEIGHTLESS]
    assert said == "8192 bytes were left out, and numbers stand in their place: `w`, `v`. It " + (
        "computes something else."
    )


@pytest.mark.slow
def test_what_does_not_fail_without_its_weights_keeps_them() -> None:
    """A runtime that refuses a large initializer."""

    def fails(path: Path) -> bool:
        return any(t.name == "w" for t in onnx.load(path).graph.initializer)

    found = surgeon.reduce(net(), fails, without_weights=True)
    assert found.weights_left_out == 0
    assert [t.name for t in found.model.to_proto().graph.initializer if t.name == "w"]
    assert found.weights_kept == ("w",)
    none = surgeon.reduce(net(), refuses("Erf"), without_weights=True)
    assert (none.weights_left_out, none.weights_kept) == (0, ())  # Erf has none
    assert surgeon.reduce(net(), fails).weights_kept == ()  # nobody asked
    assert [node.op_type for node in none.model.to_proto().graph.node] == ["Erf"]


@pytest.mark.parametrize(
    ("kind", "values", "number"),
    [
        (np.float32, np.full(512, -3), 3),
        (np.float16, np.full(512, 0.5), 0.5),
        (np.float32, np.array([np.nan, np.inf, 2] * 200), 2),
        (np.float32, np.full(300, np.nan), 0),
        (np.int8, np.full(1024, -128), 127),
        (np.uint8, np.full(1024, 7), 7),
        (np.int64, np.full(512, 7), None),  # places and sizes
        (np.float32, np.full(255, 7), None),  # too small
    ],
)
def test_the_number_is_of_the_size_of_the_weight(
    kind: type, values: np.ndarray, number: float | None
) -> None:
    model = parse("g (float[n,4] x) => (float[n,4] y) { y = Relu (x) q = Identity (w) }", opset=20)
    model.graph.initializer.append(numpy_helper.from_array(values.astype(kind), "w"))
    proto = without_weights(Model.of(model))[0].to_proto()
    made = [node for node in proto.graph.node if node.op_type == "ConstantOfShape"]
    if number is None:
        assert not made
        return
    value = numpy_helper.to_array(made[0].attribute[0].t)
    assert (value.dtype, value.tolist()) == (np.dtype(kind), [number])
    Session(proto)


def test_names_and_types_that_are_taken_or_lacking() -> None:
    model = net()
    model.graph.node[1].output[0] = model.graph.node[2].input[0] = "w/shape"
    proto = without_weights(Model.of(model))[0].to_proto()
    onnx.checker.check_model(proto, full_check=True)
    Session(proto)
    old = parse("g (bfloat16[n] x) => (bfloat16[n] y) { y = Identity (x) }", opset=17)
    half = onnx.helper.make_tensor("w", onnx.TensorProto.BFLOAT16, [600], np.ones(600))
    old.graph.initializer.append(half)
    assert without_weights(Model.of(old))[1] == 0  # ConstantOfShape of opset 17 has none
    given = net()
    given.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, [32, 32]))
    assert without_weights(Model.of(given))[1] == 32 * 32 * 4  # who calls it may give the other


def test_constants_are_weights_wherever_they_stand() -> None:
    """In the main graph, in a body, and in a function, which has no initializers."""
    model = parse(
        """g (float[n,32] x, bool yes) => (float[n,32] y) {
          a = MatMul (x, w)
          b = own.twice (a)
          y = If (yes) <
            then_branch = t () => (float[n,32] p) { p = MatMul (b, w) },
            else_branch = e () => (float[n,32] r) { r = Neg (b) }>
        }
        <domain: "own", opset_import: ["": 20]>
        twice (x) => (y) { y = MatMul (x, w) }""",
        opset=20,
        domains=', "own": 1',
    )
    branch = model.graph.node[2].attribute[0].g
    values = np.random.default_rng(0).normal(size=(32, 32)).astype(np.float32)
    for top, name in ((model.graph, "w"), (branch, "v"), (model.functions[0], "w")):
        node = onnx.helper.make_node("Constant", [], [name], value=numpy_helper.from_array(values))
        top.node.insert(0, node)
    branch.node[1].input[1] = "v"
    plain, size, kept = without_weights(Model.of(model))
    assert (size, kept) == (3 * values.nbytes, ())
    proto = plain.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    assert values.tobytes()[:64] not in proto.SerializeToString()
    given = {"x": np.ones((2, 32), np.float32), "yes": np.array(True)}
    assert np.isfinite(Session(proto).run(given)["y"]).all()


def test_what_stays_is_told() -> None:
    """What an input may replace, whole numbers, a sparse weight and a node's own attribute."""
    model = net()
    model.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, [32, 32]))
    ids = numpy_helper.from_array(np.arange(512), "ids")
    ends = onnx.helper.make_tensor_value_info("e", onnx.TensorProto.INT64, [512])
    model.graph.initializer.append(ids)
    listed = onnx.helper.make_node("Constant", [], ["l"], value_floats=[0.5] * 256)
    model.graph.node.extend([onnx.helper.make_node("Neg", ["ids"], ["e"]), listed])
    model.graph.output.append(ends)
    places = numpy_helper.from_array(np.arange(300), "places")
    some = numpy_helper.from_array(np.ones(300, np.float32), "few")
    model.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(some, places, [1000]))
    _, size, kept = without_weights(Model.of(model))
    assert (size, kept) == (32 * 32 * 4, ("w", "ids", "few", "l"))


@pytest.mark.slow
def test_data_outside_are_left_out_too(tmp_path: Path) -> None:
    onnx.save(
        net(), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    found = surgeon.reduce(tmp_path / "m.onnx", refuses("MatMul", "If"), without_weights=True)
    found.model.save(tmp_path / "part.onnx", external_data="inline")
    assert (tmp_path / "part.onnx").stat().st_size < 4000
    Session(tmp_path / "part.onnx")


@pytest.mark.slow
def test_the_option_and_what_it_tells(tmp_path: Path) -> None:
    source, target, script = tmp_path / "m.onnx", tmp_path / "p.onnx", tmp_path / "runtime.py"
    onnx.save(net(), source)
    script.write_text(
        "import onnx, sys\n"
        "proto = onnx.load(sys.argv[1])\n"
        "sys.exit('no MatMul' if {'MatMul', 'Reshape'} <= {n.op_type for n in proto.graph.node}"
        " else 0)\n"
    )
    check = ["--check", f'"{sys.executable}" "{script}" {{}}']
    done = run("reduce", source, target, *check, "--without-weights")
    assert done.exit_code == 0, done.output
    assert "Its weights (4 KiB) are left out" in " ".join(done.output.split())
    assert target.stat().st_size < 2500
    assert WEIGHTLESS in {entry.key for entry in onnx.load(target).metadata_props}
    told = run("reduce", source, target, *check, "--without-weights", "--json")
    assert json.loads(told.stdout)["weights_left_out"] == 4096
    assert json.loads(told.stdout)["weights_kept"] == []
    told = run("reduce", source, target, *check, "--json")
    assert json.loads(told.stdout)["weights_left_out"] == 0
    with_data = ["--check", f'"{sys.executable}" "{script}" {{}} {{data}}', "--without-weights"]
    wrong = run("reduce", source, target, *with_data)
    refused(wrong, 2, "what the part gives depends on its weights")
