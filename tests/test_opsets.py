"""One form in memory, the model's own opset on paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from truth import model_of

from surgeon import opsets
from surgeon.facts import Facts
from surgeon.model import Model
from surgeon.opsets import Unavailable, emit, raise_form
from surgeon.rewrite import Draft, Surgery
from surgeon.standard import first_opset

F32 = np.float32


def draft_at(opset: int, inputs: str = "float[b,c,t] x") -> tuple[Draft, gs.Tensor]:
    """A draft in a model of that opset, and the model's input."""
    model = Model(model_of(inputs, "y = Relu (x)", "y", opset))
    facts = Facts(model)
    facts.enter(model.graph)
    surgery = Surgery(model, facts)
    return surgery.draft(model.graph, "y"), model.graph.inputs[0]


def written(
    opset: int, op: str, *constants: Any, **attributes: Any
) -> tuple[list[str], dict[str, Any]]:
    """A node as it is written at an opset: its inputs, and its attributes."""
    draft, x = draft_at(opset)
    operands = [
        None if c is None else draft.constant(np.asarray(c), f"k{i}")
        for i, c in enumerate(constants)
    ]
    draft.op(op, x, *operands, **attributes)
    origin = draft.nodes[0].origin
    assert onnx.defs.get_schema(op, opset, "") is not None
    values = {a.name: onnx.helper.get_attribute_value(a) for a in origin.attribute}
    return list(origin.input), values


@pytest.mark.parametrize(
    ("op", "constants", "attributes", "old", "new", "since"),
    [
        ("ReduceSum", [[1]], {"keepdims": 0}, {"axes": [1], "keepdims": 0}, {"keepdims": 0}, 13),
        ("ReduceMean", [[1]], {"keepdims": 0}, {"axes": [1], "keepdims": 0}, {"keepdims": 0}, 18),
        ("ReduceMax", [[1, 2]], {}, {"axes": [1, 2]}, {}, 18),
        ("Squeeze", [[1]], {}, {"axes": [1]}, {}, 13),
        ("Unsqueeze", [[0]], {}, {"axes": [0]}, {}, 13),
        ("Slice", [[1], [2], [0]], {}, {"starts": [1], "ends": [2], "axes": [0]}, {}, 10),
        (
            "Pad",
            [[0, 0, 1, 0, 0, 1]],
            {"mode": "edge"},
            {"pads": [0, 0, 1, 0, 0, 1], "mode": b"edge"},
            {"mode": b"edge"},
            11,
        ),
        ("TopK", [[3]], {"axis": 1}, {"k": 3, "axis": 1}, {"axis": 1}, 10),
    ],
)
def test_arguments_move_back_to_attributes(
    op: str, constants: list[Any], attributes: Any, old: Any, new: Any, since: int
) -> None:
    outputs = {"outputs": 2} if op == "TopK" else {}
    inputs, values = written(since, op, *map(np.array, constants), **attributes, **outputs)
    assert len(inputs) == 1 + len(constants)
    assert values == new
    inputs, values = written(since - 1, op, *map(np.array, constants), **attributes, **outputs)
    assert inputs == ["x"]
    assert values == old


def test_scalars_move_back_too() -> None:
    inputs, values = written(9, "Clip", F32(0), F32(6))
    assert (inputs, values) == (["x"], {"min": 0.0, "max": 6.0})
    inputs, values = written(9, "Clip", None, F32(6))
    assert (inputs, values) == (["x"], {"max": 6.0})
    inputs, values = written(11, "Clip", None, F32(6))
    assert inputs == ["x", "", "y/k1"]


def test_attributes_of_newer_opsets_go_where_they_say_the_default() -> None:
    draft, x = draft_at(13)
    draft.op("Reshape", x, draft.constant([0, -1]), allowzero=0)
    assert not draft.nodes[0].origin.attribute
    with pytest.raises(Unavailable) as caught:
        draft.op("Reshape", x, draft.constant([0, -1]), allowzero=1)
    assert str(caught.value) == "attribute `allowzero` of `Reshape` needs a newer opset than 13"


@pytest.mark.parametrize(
    ("opset", "op", "constants", "attributes", "what"),
    [
        (17, "Gelu", [], {}, "`Gelu` needs opset 20"),
        (9, "HardSwish", [], {}, "`HardSwish` needs opset 14"),
        (
            11,
            "Softmax",
            [],
            {"axis": 1},
            "`Softmax` over an axis that is not the last needs opset 13",
        ),
        (13, "Relu6", [], {}, "`Relu6` is no standard operator"),
        (
            13,
            "my.Foo",
            [],
            {},
            "`my.Foo` is no standard operator: `op('Foo', ..., domain='my')`",
        ),
        (17, "Softmax", [], {"axi": 1}, "`Softmax` of opset 17 has no attribute `axi`"),
        (9, "Slice", [[9], [0], [0], [-2]], {}, "`Slice` with 5 inputs needs a newer opset than 9"),
    ],
)
def test_what_an_opset_has_not(
    opset: int, op: str, constants: list[Any], attributes: Any, what: str
) -> None:
    draft, x = draft_at(opset)
    with pytest.raises(Unavailable) as caught:
        draft.op(op, x, *(draft.constant(c) for c in constants), **attributes)
    assert str(caught.value) == what


def test_computed_arguments_cannot_become_attributes() -> None:
    draft, x = draft_at(11, "float[b,c] x, int64[1] k")
    k = draft.surgery.model.graph.inputs[1]
    with pytest.raises(Unavailable) as caught:
        draft.op("Squeeze", x, k)
    assert str(caught.value) == "`Squeeze` with computed `axes` needs opset 13"


def test_dtypes_that_an_opset_does_not_take() -> None:
    draft, x = draft_at(11, "int64[b] x")
    with pytest.raises(Unavailable) as caught:
        draft.op("Relu", x)
    assert str(caught.value) == "`Relu` of opset 11 does not take tensor(int64) as input 0"
    draft, x = draft_at(14, "int64[b] x")
    draft.op("Relu", x)


def test_the_last_axis_of_an_old_softmax() -> None:
    inputs, values = written(11, "Softmax", axis=-1)
    assert (inputs, values) == (["x"], {"axis": 2})


def raised(op: str, opset: int, rank: int | None = 3, **attributes: Any) -> gs.Node:
    node = gs.Node(op, "n", attributes, [gs.Variable("x")], [gs.Variable("y")])
    node.origin_inputs = None
    raise_form(node, opset, np.dtype(F32), rank)
    return node


def test_old_nodes_get_their_newest_form() -> None:
    node = raised("ReduceMean", 13, axes=[1], keepdims=0)
    assert node.attrs == {"keepdims": 0}
    assert node.inputs[1].values.tolist() == [1]
    assert node.inputs[1].values.dtype == np.int64
    assert [t.name for t in node.origin_inputs] == ["x"]
    node = raised("Clip", 9, max=6.0)
    assert node.inputs[1].is_empty()
    assert node.inputs[2].values == F32(6)
    assert node.inputs[2].values.dtype == F32
    assert raised("ReduceMean", 18).origin_inputs is None


def test_operators_that_changed_their_meaning() -> None:
    assert raised("Softmax", 11, axis=2).attrs["axis"] == -1
    assert raised("Softmax", 11, axis=2).domain != opsets.LEGACY
    assert raised("Softmax", 11, axis=1).domain == opsets.LEGACY
    assert raised("Softmax", 11).domain == opsets.LEGACY, "its default axis was 1"
    assert raised("Softmax", 11, rank=2).attrs["axis"] == -1
    assert raised("Softmax", 11, rank=None, axis=2).domain == opsets.LEGACY
    assert raised("Softmax", 13).domain != opsets.LEGACY


def test_slopes_of_channels_are_of_old() -> None:
    for opset, several in ((6, True), (7, False)):
        for sizes, old in (([3], several), ([1], False), (None, several)):
            inputs = [gs.Variable("x"), gs.Variable("slope", F32, sizes)]
            node = gs.Node("PRelu", "n", {}, inputs, [gs.Variable("y")])
            raise_form(node, opset, np.dtype(F32), 3)
            assert (node.domain == opsets.LEGACY) is old, (opset, sizes)


def test_first_opsets() -> None:
    assert first_opset("Relu") == 1
    assert first_opset("HardSwish") == 14
    assert first_opset("Nothing") is None


def test_foreign_operators_are_written_as_they_are() -> None:
    proto, _ = emit(
        "Op", "my", {"k": 1, "a": np.ones(2, F32)}, [gs.Variable("x")], ["y"], name="n", opset=17,
        value_of=lambda t: None, rank_of=lambda t: None, dtype_of=lambda t: 0,
    )  # fmt: skip
    assert (proto.domain, proto.op_type, list(proto.input)) == ("my", "Op", ["x"])
    assert [a.name for a in proto.attribute] == ["k", "a"]
