"""Recurrent layers: the lowering in onnxruntime, the witness and PyTorch say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from aten_layer import Call, Held, holds, normal, refuses
from onnx import helper

import surgeon

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def weights(
    kind: str, into: int, hidden: int, layers: int, ways: int, *, biased: bool, projected: int = 0
) -> list[Any]:
    """The parameters in PyTorch's order."""
    found = []
    rows, seen = GATES[kind] * hidden, projected or hidden
    for layer in range(layers):
        for _ in range(ways):
            found += [normal(rows, into if layer == 0 else seen * ways), normal(rows, seen)]
            found += [normal(rows), normal(rows)] if biased else []
            found += [normal(projected, hidden)] if projected else []
    return [Held(w) for w in found]


def states(kind: str, count: int, batch: int, hidden: int, seen: int, *, zero: bool) -> Any:
    """The first states: inputs of the model, or zeros that it holds."""
    sizes = [seen, hidden] if kind == "lstm" else [hidden]
    made = [
        Held(np.zeros((count, batch, n), np.float32)) if zero else normal(count, batch, n)
        for n in sizes
    ]
    return made if kind == "lstm" else made[0]


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("ways", [1, 2])
def test_a_batch(kind: str, layers: int, ways: int) -> None:
    grid = [(9, False, True), (13, True, False), (17, True, True)]
    for index, (opset, first, zero) in enumerate(grid):
        for biased in (False, True):
            x = normal(*((3, 7, 4) if first else (7, 3, 4)))
            params = weights(kind, 4, 5, layers, ways, biased=biased)
            hx = states(kind, layers * ways, 3, 5, 5, zero=zero)
            rest = [biased, layers, 0.4, False, ways == 2, first]
            outputs = 3 if kind == "lstm" else 2
            for dynamic in (False, index > 0):
                dynamic = dynamic and not first
                call = Call(kind, [x, hx, params, *rest], opset=opset, dynamic=dynamic)
                call.outputs, call.overload = outputs, "input"
                holds(call)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("zero", [False, True])
def test_a_projection(layers: int, ways: int, zero: bool) -> None:
    for opset, dynamic in ((11, False), (17, True)):
        params = weights("lstm", 4, 6, layers, ways, biased=opset == 17, projected=3)
        hx = states("lstm", layers * ways, 2, 6, 3, zero=zero)
        rest = [opset == 17, layers, 0.0, False, ways == 2, False]
        call = Call("lstm", [normal(5, 2, 4), hx, params, *rest], opset=opset, dynamic=dynamic)
        call.outputs = 3
        holds(call)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("ways", [1, 2])
def test_a_packed_sequence_of_known_sizes(kind: str, ways: int) -> None:
    for zero in (False, True):
        params = weights(kind, 4, 5, 2, ways, biased=True)
        hx = states(kind, 2 * ways, 3, 5, 5, zero=zero)
        sizes = Held(np.array([3, 3, 2, 1, 1]))
        call = Call(kind, [normal(10, 4), sizes, hx, params, True, 2, 0.0, False, ways == 2])
        call.outputs, call.overload = 3 if kind == "lstm" else 2, "data"
        holds(call)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("ways", [1, 2])
def test_a_packed_sequence_of_computed_sizes(kind: str, ways: int) -> None:
    for opset in (9, 11, 17):
        params = weights(kind, 4, 5, 2, ways, biased=True)
        hx = states(kind, 2 * ways, 3, 5, 5, zero=False)
        sizes = np.array([3, 3, 2, 1, 1])
        rest = [True, 2, 0.0, False, ways == 2]
        call = Call(kind, [normal(10, 4), sizes, hx, params, *rest], opset=opset)
        call.outputs, call.overload = 3 if kind == "lstm" else 2, "data"
        holds(call)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("biased", [False, True])
def test_a_cell(kind: str, biased: bool) -> None:
    for opset, dynamic in ((9, False), (17, True)):
        given = [normal(GATES[kind] * 5, n) for n in (4, 5)]
        given += [normal(GATES[kind] * 5) for _ in range(2)] if biased else [None, None]
        hx = [normal(3, 5), normal(3, 5)] if kind == "lstm" else normal(3, 5)
        held = [Held(w) if w is not None else None for w in given]
        call = Call(f"{kind}_cell", [normal(3, 4), hx, *held], opset=opset, dynamic=dynamic)
        call.outputs = 2 if kind == "lstm" else 1
        holds(call)


@pytest.mark.parametrize(("into", "hidden"), [(64, 16), (384, 48)])
def test_gates_of_large_values_are_compared_by_what_rounding_moves(into: int, hidden: int) -> None:
    """Sums of many large values may be near 0, where a gate is as open as rounding has it."""
    drawn = np.random.default_rng(0)
    shapes = [(4 * hidden, into), (4 * hidden, hidden), (4 * hidden,), (4 * hidden,)]
    held = {
        f"w{place}": (drawn.uniform(-1, 1, shape) * hidden**-0.5).astype(np.float32)
        for place, shape in enumerate(shapes)
    }
    held |= {"one": np.array(1), "none": np.array(0.0), "yes": np.array(True)}
    held |= {"no": np.array(False)}
    nodes = [
        helper.make_node("SequenceConstruct", ["h", "h"], ["states"]),
        helper.make_node("SequenceConstruct", ["w0", "w1", "w2", "w3"], ["weights"]),
        helper.make_node(
            "ATen",
            ["x", "states", "weights", "yes", "one", "none", "no", "no", "yes"],
            ["y", "first", "second"],
            domain="org.pytorch.aten",
            operator="lstm",
            overload_name="input",
        ),
    ]
    values = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", ["b", 8, into]), ("h", [1, "b", hidden]), ("y", ["b", 8, hidden]))
    ]
    constants = [onnx.numpy_helper.from_array(value, name) for name, value in held.items()]
    graph = helper.make_graph(nodes, "g", values[:2], values[2:], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("org.pytorch.aten", 1)]
    result = surgeon.apply(helper.make_model(graph, opset_imports=opsets, ir_version=8), "aten")
    assert result.report.verdict.status == "equivalent"


def test_half_precision_is_computed_in_single() -> None:
    params = [Held(w.array.astype(np.float16)) for w in weights("gru", 4, 5, 1, 1, biased=True)]
    x, state = normal(7, 3, 4, dtype=np.float16), normal(1, 3, 5, dtype=np.float16)
    call = Call("gru", [x, state, params, True, 1, 0.0, False, False, False], outputs=2)
    holds(call)


def test_what_is_refused() -> None:
    params = weights("gru", 4, 5, 1, 1, biased=True)
    x, state = normal(7, 3, 4), normal(1, 3, 5)
    dropped = Call("gru", [x, state, params, True, 1, 0.5, True, False, False], outputs=2)
    refuses(dropped, "training mode")
    wide = [Held(w.array.astype(np.float64)) for w in params]
    double = [x.astype(np.float64), state.astype(np.float64), wide]
    refuses(
        Call("gru", [*double, True, 1, 0.0, False, False, False], outputs=2),
        "onnxruntime has no `GRU` of float64",
    )


@pytest.mark.parametrize("kind", GATES)
def test_weights_of_unknown_size_are_refused(kind: str) -> None:
    params = [held.array for held in weights(kind, 4, 5, 1, 1, biased=True)]
    x, state = normal(7, 3, 4), states(kind, 1, 3, 5, 5, zero=False)
    outputs = 3 if kind == "lstm" else 2
    rest = [True, 1, 0.0, False, False, False]
    model = Call(kind, [x, state, params, *rest], outputs=outputs).model()
    for given in list(model.graph.input)[-len(params) :]:
        for index, dim in enumerate(given.type.tensor_type.shape.dim):
            dim.dim_param = f"{given.name}_{index}"
    with pytest.raises(surgeon.SurgeonError, match="the size of its hidden state is not known"):
        surgeon.apply(model, "aten", verify=False)
