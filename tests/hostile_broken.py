"""Graphs that are none: how each is made, the exit codes it may have, and what is said of it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from hostile_models import FLOAT, calling, endless_loop, graph_of, network, with_tensor
from onnx import helper


def deep(levels: int) -> onnx.ModelProto:
    """An If in an If in an If; written by hand, for protobuf's writers recurse too."""
    model = graph_of(helper.make_node("Neg", ["x"], ["y"]), go=np.array(True))

    def field(number: int, data: bytes) -> bytes:
        length, size = b"", len(data)
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + data

    output = helper.make_tensor_value_info("t", FLOAT, None).SerializeToString()
    body = field(1, helper.make_node("Neg", ["x"], ["t"]).SerializeToString()) + field(12, output)
    for _ in range(levels):
        both = b""
        for name in (b"then_branch", b"else_branch")[:1]:
            both += field(5, field(1, name) + field(6, body) + b"\xa0\x01\x05")
        node = field(1, b"go") + field(2, b"t") + field(4, b"If") + both
        body = field(1, node) + field(12, output)
    data = model.SerializeToString() + field(7, body)
    holder = onnx.ModelProto()
    holder.doc_string = "unread"
    return _Bytes(data)  # type: ignore[return-value]


class _Bytes:
    """What `save` writes as it is."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        return self.data


def with_attribute(op: str, *inputs: str, **attributes: Any) -> onnx.ModelProto:
    """One operator, of attributes as they are given, behind two Negs that a rule takes away."""
    node = helper.make_node(op, ["b", *inputs], ["y"], **attributes)
    return graph_of(
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        node,
        k=np.array([1], np.int64),
        w=np.ones((1, 1, 1, 1), np.float32),
    )


def edited(edit: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    model = network()
    edit(model)
    return model


def attribute_without_type() -> onnx.ModelProto:
    model = with_attribute("Transpose", perm=[1, 0])
    model.graph.node[2].attribute[0].type = onnx.AttributeProto.UNDEFINED
    return model


def attribute_of_another_kind() -> onnx.ModelProto:
    model = with_attribute("Transpose", perm=[1, 0])
    model.graph.node[2].attribute[0].type = onnx.AttributeProto.GRAPH
    return model


def body_that_is_not_there() -> onnx.ModelProto:
    """Found by `make fuzz`: an attribute said to be a graph, which holds none."""
    model = network()
    model.graph.node[4].attribute[1].ClearField("g")
    return model


def identity_of_nothing() -> onnx.ModelProto:
    """Found by `make fuzz`."""
    model = network()
    model.graph.node.add(op_type="Identity", output=["unread"])
    return model


def body_of_another_name() -> onnx.ModelProto:
    """Found by `make fuzz`."""
    model = endless_loop()
    model.graph.node[0].attribute[0].name = "bodi"
    return model


def body_that_takes_too_few() -> onnx.ModelProto:
    model = endless_loop()
    model.graph.node[0].input.append("start")
    return model


def body_that_gives_too_few() -> onnx.ModelProto:
    model = endless_loop()
    del model.graph.node[0].attribute[0].g.output[1:]
    return model


def size_below_zero() -> onnx.ModelProto:
    """A kernel larger than what it is moved over, and a Slice of that: onnx's inference aborts."""
    return graph_of(
        helper.make_node("Conv", ["image", "kernel"], ["c"]),
        helper.make_node("Slice", ["c", "zero", "two", "two"], ["s"]),
        helper.make_node("ReduceSum", ["s"], ["t"]),
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Add", ["b", "t"], ["y"]),
        image=np.zeros((1, 2, 3, 3), np.float32),
        kernel=np.zeros((1, 2, 5, 5), np.float32),
        zero=np.array([0]),
        two=np.array([2]),
    )


def bound_beyond_its_type() -> onnx.ModelProto:
    """A Clip of whole numbers of four bits to 1e30."""
    model = graph_of(
        helper.make_node("Clip", ["four"], ["c"], max=1e30),
        helper.make_node("Cast", ["c"], ["f"], to=FLOAT),
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Add", ["b", "f"], ["y"]),
    )
    model.opset_import[0].version = 10
    four = helper.make_tensor("four", onnx.TensorProto.INT4, [4], [1, 2, 3, 4])
    model.graph.initializer.append(four)
    return model


def segment() -> onnx.ModelProto:
    model = with_tensor()
    model.graph.initializer[0].segment.end = 2
    return model


def twice_named() -> onnx.ModelProto:
    """Two nodes that give `a`."""
    return graph_of(
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Sin", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["y"]),
    )


def circle(*ops: str) -> onnx.ModelProto:
    return graph_of(
        helper.make_node("Add", ["x", "c"], ["a"]),
        helper.make_node(ops[0], ["a"], ["b"]),
        helper.make_node(ops[1], ["b"], ["c"]),
        helper.make_node("Neg", ["c"], ["y"]),
    )


def set_dims(model: onnx.ModelProto, *dims: int) -> None:
    shape = model.graph.input[0].type.tensor_type.shape
    shape.ClearField("dim")
    for dim in dims:
        shape.dim.add(dim_value=dim)


def shadowed() -> onnx.ModelProto:
    """A body that gives a name of the graph around it."""
    model = network()
    body = model.graph.node[4].attribute[0].g
    body.node[0].output[0] = body.output[0].name = "c"
    return model


BROKEN: dict[str, tuple[Callable[[], onnx.ModelProto], tuple[int, ...], str]] = {
    "deep: 12 bodies": (lambda: deep(12), (0, 3, 4), ""),
    "deep: 10,000 bodies": (lambda: deep(10_000), (4,), "protobuf cannot read it"),
    "cycle": (lambda: circle("Neg", "Sin"), (4,), "cycle"),
    "cycle that a rule would match": (lambda: circle("Neg", "Neg"), (4,), "cycle"),
    "node that reads itself": (
        lambda: graph_of(helper.make_node("Add", ["x", "y"], ["y"])),
        (4,),
        "cycle",
    ),
    "function that calls itself": (lambda: calling(("f", "f")), (4,), "calls itself"),
    "functions that call each other": (
        lambda: calling(("f", "g"), ("g", "h"), ("h", "f")),
        (4,),
        "calls itself",
    ),
    "two functions of a name": (lambda: calling(("f", "Neg"), ("f", "Sin")), (4,), "twice"),
    "function that is not there": (lambda: calling(("f", "g")), (0, 3, 4), ""),
    "dangling input": (
        lambda: edited(lambda m: m.graph.node[2].input.__setitem__(1, "nowhere")),
        (4,),
        "`nowhere`",
    ),
    "dangling input of a body": (
        lambda: edited(lambda m: m.graph.node[4].attribute[0].g.node[0].input.__setitem__(0, "no")),
        (4,),
        "`no`",
    ),
    "dangling input of a function": (
        lambda: edited(lambda m: m.functions[0].node[0].input.__setitem__(0, "no")),
        (4,),
        "`no`",
    ),
    "dangling output": (
        lambda: edited(lambda m: setattr(m.graph.output[0], "name", "nowhere")),
        (4,),
        "`nowhere`",
    ),
    "two values of a name": (twice_named, (4,), "`a`"),
    "value with the name of an input": (
        lambda: edited(lambda m: m.graph.node[0].output.__setitem__(0, "x")),
        (4,),
        "`x`",
    ),
    "value with the name of an initializer": (
        lambda: edited(lambda m: m.graph.node[0].output.__setitem__(0, "w")),
        (4,),
        "`w`",
    ),
    "two inputs of a name": (
        lambda: edited(lambda m: setattr(m.graph.input[1], "name", "x")),
        (4,),
        "`x`",
    ),
    "two initializers of a name": (
        lambda: edited(lambda m: setattr(m.graph.initializer[1], "name", "w")),
        (4,),
        "`w`",
    ),
    "value of a body with a name from outside": (shadowed, (0, 3, 4), ""),
    "body that is not there": (body_that_is_not_there, (4,), "holds no graph"),
    "If without a condition": (
        lambda: edited(lambda m: m.graph.node[4].ClearField("input")),
        (4,),
        "node `d` (If) has no condition",
    ),
    "body that takes too few": (
        body_that_takes_too_few,
        (4,),
        "the body of node `s` (Loop) takes fewer values than the node has for it",
    ),
    "body that gives too few": (
        body_that_gives_too_few,
        (4,),
        "the body of node `s` (Loop) gives fewer values than the node",
    ),
    "opset without end": (
        lambda: edited(lambda m: setattr(m.opset_import[0], "version", 2**40)),
        (0, 3, 4),
        "",
    ),
    "bound beyond its type": (bound_beyond_its_type, (0, 3, 4), ""),
    "body of another name": (body_of_another_name, (4,), "node `s` (Loop) has no `body`"),
    "Identity of nothing": (identity_of_nothing, (0, 3, 4), ""),
    "branch without outputs": (
        lambda: edited(lambda m: m.graph.node[4].attribute[0].g.ClearField("output")),
        (4,),
        "a branch of node `d` (If) gives fewer values than the node",
    ),
    "text that is not UTF-8": (
        lambda: _Bytes(network().SerializeToString().replace(b"twice", b"tw\xffce")),  # type: ignore[return-value]
        (4,),
        "is not UTF-8",
    ),
    "nodes without inputs": (
        lambda: edited(lambda m: m.graph.node[3].ClearField("input")),
        (0, 3, 4),
        "",
    ),
    "nodes without outputs": (
        lambda: edited(lambda m: m.graph.node[0].ClearField("output")),
        (4,),
        "",
    ),
    "Constant that gives nothing": (
        lambda: edited(lambda m: m.graph.node.add(op_type="Constant", name="k")),
        (4,),
        "node `k` (Constant) gives nothing",
    ),
    "node without an operator": (
        lambda: edited(lambda m: m.graph.node[2].ClearField("op_type")),
        (0, 3, 4),
        "",
    ),
    "unknown dtype": (lambda: with_tensor(data_type=99), (4,), "`w`"),
    "dtype of none": (lambda: with_tensor(data_type=0), (4,), "`w`"),
    "negative dims": (lambda: with_tensor(dims=[-4]), (4,), "`w`"),
    "huge dims": (lambda: with_tensor(dims=[2**62, 4]), (4,), "`w`"),
    "dims whose product wraps round": (lambda: with_tensor(dims=[2**32, 2**32]), (4,), "`w`"),
    "more dims than numpy has": (lambda: with_tensor(dims=[1] * 100), (0, 3, 4), ""),
    "initializer shorter than its shape": (lambda: with_tensor(dims=[400]), (4,), "`w`"),
    "initializer longer than its shape": (lambda: with_tensor(dims=[2]), (4,), "`w`"),
    "initializer without values": (lambda: with_tensor(raw_data=b""), (4,), "`w`"),
    "initializer of half a number": (lambda: with_tensor(raw_data=b"\0" * 15), (4,), "`w`"),
    "initializer with two kinds of values": (lambda: with_tensor(float_data=[1.0]), (0, 3, 4), ""),
    "segment": (segment, (4,), "`w`"),
    "negative dim of an input": (lambda: edited(lambda m: set_dims(m, -3, 4)), (0, 3, 4), ""),
    "huge input": (lambda: edited(lambda m: set_dims(m, 2**40, 4)), (0, 3, 4), ""),
    "input of 2^62": (lambda: edited(lambda m: set_dims(m, 2**62, 2**62)), (0, 3, 4), ""),
    "large input": (lambda: edited(lambda m: set_dims(m, 30_000_000, 4)), (0, 3, 4), ""),
    "input without a type": (
        lambda: edited(lambda m: m.graph.input[0].ClearField("type")),
        (0, 3, 4),
        "",
    ),
    "input of dtype 99": (
        lambda: edited(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 99)),
        (0, 3, 4),
        "",
    ),
    "no operator set": (lambda: edited(lambda m: m.ClearField("opset_import")), (0, 3, 4), ""),
    "operator set 9999": (
        lambda: edited(lambda m: setattr(m.opset_import[0], "version", 9999)),
        (0, 3, 4),
        "",
    ),
    "operator set -1": (
        lambda: edited(lambda m: setattr(m.opset_import[0], "version", -1)),
        (0, 3, 4),
        "",
    ),
    "IR version 2^60": (lambda: edited(lambda m: setattr(m, "ir_version", 2**60)), (0, 3, 4), ""),
    "attribute without a type": (attribute_without_type, (0, 3, 4), ""),
    "attribute of another kind": (attribute_of_another_kind, (0, 3, 4), ""),
}
for _op, _inputs, _attributes in [
    ("Transpose", (), {"perm": "ab"}),
    ("Transpose", (), {"perm": [0, 0]}),
    ("Transpose", (), {"perm": [7, -9]}),
    ("Transpose", (), {"perm": 1.5}),
    ("Concat", ("b",), {}),
    ("Concat", ("b",), {"axis": 2**62}),
    ("Concat", ("b",), {"axis": [1]}),
    ("Softmax", (), {"axis": "one"}),
    ("Conv", ("w",), {"strides": [0, 0], "pads": [-9, 2**40]}),
    ("Conv", ("w",), {"kernel_shape": [2**40, 2**40]}),
    ("Cast", (), {"to": 99}),
    ("Cast", (), {"to": [1]}),
    ("Constant", (), {}),
    ("Gather", ("k",), {"axis": -99}),
    ("Split", ("k",), {"axis": 99}),
    ("Squeeze", ("k",), {"axes": [2**40]}),
    ("Reshape", ("k", "k", "k"), {"allowzero": "x"}),
    ("Slice", ("w", "w"), {}),
    ("Pad", ("k",), {"mode": b"\xff\xfe"}),
    ("If", (), {"then_branch": 1, "else_branch": 2.0}),
    ("Loop", ("k",), {"body": [1, 2]}),
    ("Einsum", ("b",), {"equation": "ij,ij," * 1000 + "->" * 50}),
    ("ConstantOfShape", (), {"value": "s"}),
    ("Resize", ("k",), {"mode": "linear", "axes": [99]}),
    ("LSTM", ("w", "w"), {"hidden_size": -(2**60)}),
]:
    BROKEN[f"{_op} {_attributes}"[:60]] = (
        lambda a=_op, b=_inputs, c=_attributes: with_attribute(a, *b, **c),
        (0, 3, 4),
        "",
    )
