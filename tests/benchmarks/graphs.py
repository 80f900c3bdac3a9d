"""Graphs for measurements: a transformer as PyTorch exports it, and blocks of any number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

WIDTH, HEADS = 64, 4


class Builder:
    """Nodes and initializers of one graph over x [N, T, 64]."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(0)
        self.first = self.constant("first", np.array(0))
        self.second = self.constant("second", np.array(1))
        self.axis = self.constant("axis", np.array([0]))

    def constant(self, name: str, array: Any) -> str:
        """An initializer."""
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, operator: str, inputs: Sequence[str], **attributes: Any) -> str:
        """A node with one output."""
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def weight(self, *shape: int) -> str:
        """Random numbers that neither vanish nor explode."""
        array = self.rng.standard_normal(shape) / np.sqrt(shape[0])
        return self.constant(f"w{len(self.constants)}", array.astype(np.float32))

    def number(self, value: float) -> str:
        """A float of rank 0."""
        return self.constant(f"c{len(self.constants)}", np.float32(value))

    def linear(self, x: str, inside: int, outside: int) -> str:
        """MatMul and Add, as a Linear of more than two dimensions is exported."""
        return self.op(
            "Add", [self.op("MatMul", [x, self.weight(inside, outside)]), self.bias(outside)]
        )

    def bias(self, size: int) -> str:
        """Random numbers."""
        return self.weight(size)

    def view(self, x: str, *rest: int) -> str:
        """x.view(x.size(0), x.size(1), *rest), with the chain of shapes that it is exported as."""
        sizes = []
        for place in (self.first, self.second):
            size = self.op("Gather", [self.op("Shape", [x]), place], axis=0)
            sizes.append(self.op("Unsqueeze", [size, self.axis]))
        ends = [
            self.constant(f"s{len(self.constants)}_{i}", np.array([n])) for i, n in enumerate(rest)
        ]
        return self.op("Reshape", [x, self.op("Concat", [*sizes, *ends], axis=0)])

    def norm(self, x: str) -> str:
        """Layer normalisation as its formula."""
        d = self.op("Sub", [x, self.op("ReduceMean", [x], axes=[-1], keepdims=1)])
        square = self.op("Pow", [d, self.number(2)])
        mean = self.op("ReduceMean", [square], axes=[-1], keepdims=1)
        root = self.op("Sqrt", [self.op("Add", [mean, self.number(1e-5)])])
        y = self.op("Mul", [self.op("Div", [d, root]), self.bias(WIDTH)])
        return self.op("Add", [y, self.bias(WIDTH)])

    def attention(self, x: str) -> str:
        """Self-attention of four heads."""
        q, k, v = (
            self.op("Transpose", [self.view(self.linear(x, WIDTH, WIDTH), HEADS, WIDTH // HEADS)],
                    perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])
            for name in "qkv"
        )  # fmt: skip
        scores = self.op("Div", [self.op("MatMul", [q, k]), self.number(4)])
        mixed = self.op("MatMul", [self.op("Softmax", [scores], axis=-1), v])
        joined = self.view_of(x, self.op("Transpose", [mixed], perm=[0, 2, 1, 3]))
        return self.linear(joined, WIDTH, WIDTH)

    def view_of(self, x: str, y: str) -> str:
        """y.view(x.shape)."""
        return self.op("Reshape", [y, self.op("Shape", [x])])

    def gelu(self, x: str) -> str:
        """The exact GELU as its formula."""
        e = self.op("Erf", [self.op("Div", [x, self.number(2**0.5)])])
        y = self.op("Mul", [x, self.op("Add", [e, self.number(1)])])
        return self.op("Mul", [y, self.number(0.5)])

    def layer(self, x: str) -> str:
        """One layer of a transformer."""
        x = self.norm(self.op("Add", [self.attention(x), x]))
        y = self.linear(self.gelu(self.linear(x, WIDTH, 2 * WIDTH)), 2 * WIDTH, WIDTH)
        return self.norm(self.op("Add", [y, x]))

    def block(self, x: str) -> str:
        """Eighteen nodes or so around a chain of shapes, a Cast of nothing and an Identity."""
        h = self.view(self.linear(x, WIDTH, WIDTH), HEADS, WIDTH // HEADS)
        h = self.op("Softmax", [self.op("Transpose", [h], perm=[0, 2, 1, 3])], axis=-1)
        h = self.view_of(x, self.op("Transpose", [h], perm=[0, 2, 1, 3]))
        h = self.op("Relu", [self.op("Cast", [h], to=onnx.TensorProto.FLOAT)])
        return self.op("Identity", [self.op("Add", [h, x])])

    def model(self, end: str) -> onnx.ModelProto:
        """The graph, with free batch and time."""
        self.nodes.append(helper.make_node("Relu", [end], ["y"], name="end"))
        ends = [
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", "T", WIDTH])
            for name in "xy"
        ]
        graph = helper.make_graph(self.nodes, "graph", ends[:1], ends[1:], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def transformer(nodes: int) -> onnx.ModelProto:
    """Layers of a small BERT, of about so many nodes."""
    builder, x = Builder(), "x"
    while len(builder.nodes) < nodes:
        x = builder.layer(x)
    return builder.model(x)


def blocks(nodes: int) -> onnx.ModelProto:
    """Blocks with a chain of shapes in each, of about so many nodes."""
    builder, x = Builder(), "x"
    while len(builder.nodes) < nodes:
        x = builder.block(x)
    return builder.model(x)
