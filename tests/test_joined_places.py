"""A Gather through axes that were joined, by places added up in any way: the same numbers."""

from __future__ import annotations

import math
import random

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import surgeon


def gathered(draw: random.Random) -> onnx.ModelProto:
    """A model that takes elements of `x`, flat: each once, in order, or otherwise."""
    shape = [draw.choice([1, 2, 3]) for _ in range(draw.choice([2, 3, 4]))]
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    order = list(range(len(shape)))
    if draw.random() < 0.3:
        draw.shuffle(order)
    if draw.random() < 0.2:
        steps[draw.randrange(len(steps))] = draw.choice([0, 1, 2])
    lengths = [shape[axis] for axis in order]
    nodes, terms, constants = [], [], {"flat": np.array([-1])}
    fixed = np.zeros(lengths, np.int64)
    for place, axis in enumerate(order):
        column = [-1 if at == place else 1 for at in range(len(shape))]
        if draw.random() < 0.5:
            fixed = fixed + (np.arange(shape[axis]) * steps[axis]).reshape(column)
            continue
        n = f"d{axis}"  # a length that the file does not tell
        constants |= {f"a{n}": np.array([axis]), f"s{n}": np.array(steps[axis])}
        constants |= {"zero": np.array(0), "one": np.array(1), f"c{n}": np.array(column)}
        nodes += [
            helper.make_node("Gather", ["sizes", f"a{n}"], [f"l{n}"]),
            helper.make_node("Squeeze", [f"l{n}"], [f"n{n}"]),
            helper.make_node("Range", ["zero", f"n{n}", "one"], [f"r{n}"]),
        ]
        views = [("Mul", f"s{n}"), ("Reshape", f"c{n}")]
        draw.shuffle(views)
        value = f"r{n}"
        for op, operand in views:
            nodes.append(helper.make_node(op, [value, operand], [f"{value}{op}"]))
            value = f"{value}{op}"
        terms.append(value)
    varying = [at for at in range(len(shape)) if f"sd{order[at]}" not in constants]
    constants["fixed"] = fixed[
        tuple(slice(None) if at in varying else slice(1) for at in range(len(shape)))
    ]
    value = "fixed"
    for count, term in enumerate(terms):
        nodes.append(helper.make_node("Add", [value, term], [f"sum{count}"]))
        value = f"sum{count}"
    dims = [f"d{a}" if f"sd{a}" in constants else shape[a] for a in range(len(shape))]
    graph = helper.make_graph(
        [
            helper.make_node("Shape", ["x"], ["sizes"]),
            helper.make_node("Reshape", ["x", "flat"], ["f"]),
            *nodes,
            helper.make_node("Gather", ["f", value], ["g"]),
            helper.make_node("Exp", ["g"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(v.astype(np.int64), k) for k, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_taken_is_what_was_taken(seed: int) -> None:
    draw = random.Random(seed)
    model = gathered(draw)
    result = surgeon.apply(model, "clean", verify=False)
    if seed in range(1, 5):  # so that it is known that some are mended
        assert "Range" not in [node.op_type for node in result.model.to_proto().graph.node]
    for _ in range(2):
        dims = model.graph.input[0].type.tensor_type.shape.dim
        sizes = [dim.dim_value or draw.choice([1, 2, 4]) for dim in dims]
        x = np.random.default_rng(seed).normal(size=sizes).astype(np.float32)
        try:
            (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
        except onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument:
            continue  # a place beyond the elements
        made = result.model.to_proto().SerializeToString()
        (found,) = onnxruntime.InferenceSession(made).run(None, {"x": x})
        assert found.shape == wanted.shape
        assert (found == wanted).all()
