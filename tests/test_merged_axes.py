"""Stretches of five axes, drawn: with `four-axes` they compute the same on four, or stay."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import surgeon
from surgeon.runtime import Session

SIZES = (2, 3, 4, 5, 6)


def drawn(seed: int) -> onnx.ModelProto:
    """A view as five axes, functions, Transposes, slices and operands of all kinds, and a view."""
    rng = np.random.default_rng(seed)
    nodes, constants = [], []

    def constant(array: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(array, f"k{len(constants)}"))
        return constants[-1].name

    def add(op: str, *inputs: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, [f"v{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    shape = list(SIZES)
    x = add("Reshape", "x", constant(np.array(shape, np.int64)))
    kept = list(range(5))
    for _ in range(rng.integers(2, 7)):
        kind = rng.integers(6)
        if kind == 0:
            x = add("Sigmoid", x)
        elif kind == 1:
            pair = int(rng.integers(4))  # two that stay side by side, and the others anywhere
            groups = [[pair, pair + 1], *([i] for i in range(5) if i not in (pair, pair + 1))]
            order = [i for g in rng.permutation(4) for i in groups[g]]
            x, shape = add("Transpose", x, perm=order), [shape[i] for i in order]
            kept = [kept[i] for i in order]
        elif kind == 2:
            wide = [n if rng.random() < 0.5 else 1 for n in shape][rng.integers(5) :]
            x = add("Mul", x, constant(rng.standard_normal(wide).astype(np.float32)))
        elif kind == 3:
            axis = int(rng.integers(5))
            ends = [constant(np.array([n], np.int64)) for n in (0, shape[axis] - 1, axis)]
            if shape[axis] > 1:
                x = add("Slice", x, *ends)
                shape[axis] -= 1
        elif kind == 4:
            x = add("Add", x, add("Neg", x))
        else:
            axis = int(rng.integers(5))
            x = add("Softmax", x, axis=axis)
    end = np.array([shape[0], -1, shape[-1]], np.int64)
    nodes.append(helper.make_node("Reshape", [x, constant(end)], ["y"]))
    x_info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [6, 4, 30])
    y_info = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 3)
    graph = helper.make_graph(nodes, "g", [x_info], [y_info], constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def largest_rank(model: onnx.ModelProto) -> int:
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    return max(len(v.type.tensor_type.shape.dim) for v in inferred.graph.value_info)


def test_drawn_stretches_compute_the_same_on_four_axes() -> None:
    merged = 0
    for seed in range(60):
        model = drawn(seed)
        result = surgeon.apply(model, "four-axes", verify=False)
        out = result.model.to_proto()
        feeds = {"x": np.random.default_rng(seed).standard_normal((6, 4, 30)).astype(np.float32)}
        (wanted,), (found,) = Session(model).run(feeds).values(), Session(out).run(feeds).values()
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6, err_msg=f"seed {seed}")
        if result.model.changed:
            merged += 1
            assert largest_rank(out) <= 4
            assert not surgeon.apply(out, "four-axes", verify=False).model.changed
    assert merged >= 10


@pytest.mark.parametrize("perm", [(0, 1, 3, 2, 4), (0, 2, 1, 3, 4)])
def test_an_axis_that_meets_another_stays(perm: tuple[int, ...]) -> None:
    """A value and itself with two axes turned about: they are the same axis, and are two."""
    model = onnx.parser.parse_model(
        f"""
        <ir_version: 8, opset_import: ["": 17]>
        g (float[4,8,2] x) => (float[8,8] y)
          <int64[5] a = {{2, 2, 2, 2, 4}}, int64[2] b = {{8, 8}}> {{
            v = Reshape (x, a)
            t = Transpose <perm = [{", ".join(map(str, perm))}]> (v)
            s = Add (v, t)
            y = Reshape (s, b)
        }}
        """
    )
    result = surgeon.apply(model, "four-axes")
    feeds = {"x": np.arange(64, dtype=np.float32).reshape(4, 8, 2)}
    (wanted,) = Session(model).run(feeds).values()
    (found,) = Session(result.model.to_proto()).run(feeds).values()
    np.testing.assert_array_equal(found, wanted)


def test_any_order_of_six_axes_comes_about_on_four() -> None:
    steps = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        order = rng.permutation(6).tolist()
        sizes = [2, 3, 1, 4, 2, 5]
        nodes = [
            helper.make_node("Reshape", ["x", "apart"], ["a"]),
            helper.make_node("Transpose", ["a"], ["t"], perm=order),
            helper.make_node("Reshape", ["t", "together"], ["y"]),
        ]
        constants = [
            numpy_helper.from_array(np.array(sizes, np.int64), "apart"),
            numpy_helper.from_array(np.array([12, 20], np.int64), "together"),
        ]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [240])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [12, 20])
        graph = helper.make_graph(nodes, "g", [x], [y], constants)
        opsets = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, ir_version=8, opset_imports=opsets)
        result = surgeon.apply(model, "four-axes", verify=False)
        out = result.model.to_proto()
        feeds = {"x": np.arange(240, dtype=np.float32)}
        (wanted,), (found,) = Session(model).run(feeds).values(), Session(out).run(feeds).values()
        np.testing.assert_array_equal(found, wanted, err_msg=f"{order}")
        rules = {change.rule for change in result.report.changes}
        steps += "turned-in-steps" in rules
        if rules & {"turned-in-steps", "merged-axes"}:
            assert (
                max(len(n.attribute[0].ints) for n in out.graph.node if n.op_type == "Transpose")
                < 5
            )
    assert steps >= 5
