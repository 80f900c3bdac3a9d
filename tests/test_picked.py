"""Channels that are picked in front of products and behind them, drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import surgeon

CHANNELS, SIDE = 4, 5


class Drawn:
    """A graph that is written node by node, on planes [N, 4, 5, 5] or rows of pixels."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.value, self.axis, self.channels = "x", int(self.rng.choice([1, 3])), CHANNELS

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def add(self, op: str, *inputs: str, **attributes: Any) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        self.value = name

    def number(self) -> np.ndarray:
        numbers = self.rng.normal(size=self.channels).astype(np.float32) + np.float32(3)
        shape = [1, 1, 1, 1]
        shape[self.axis] = self.channels
        return numbers.reshape(shape[self.rng.integers(0, self.axis + 1) :])

    def step(self) -> None:
        kind = self.rng.choice(["arithmetic", "unary", "turn", "clip"])
        if kind == "arithmetic":
            operands = [self.value, self.constant(self.number())]
            self.rng.shuffle(operands)
            self.add(str(self.rng.choice(["Add", "Sub", "Mul", "Div"])), *operands)
        elif kind == "unary":
            self.add(str(self.rng.choice(["Sigmoid", "Abs", "Sin"])), self.value)
        elif kind == "clip":
            ends = (self.constant(np.array(n, np.float32)) for n in (-0.5, 0.5))
            self.add("Clip", self.value, *ends)
        else:
            self.turn(4 - self.axis)

    def turn(self, axis: int) -> None:
        if axis != self.axis:
            self.add("Transpose", self.value, perm=[0, 2, 3, 1] if axis == 3 else [0, 3, 1, 2])
            self.axis = axis

    def pick(self) -> None:
        kind = self.rng.choice(["Gather", "backwards", "Split", "Slice"])
        if kind == "Gather":
            order = self.rng.permutation(self.channels)[: self.rng.integers(2, self.channels + 1)]
            self.add("Gather", self.value, self.ints(*(order - self.channels)), axis=self.axis)
            self.channels = len(order)
        elif kind == "Slice":
            self.add(
                "Slice",
                self.value,
                self.ints(1),
                self.ints(1 << 40),
                self.ints(self.axis - 4),
                self.ints(1),
            )
            self.channels -= 1
        elif kind == "backwards":
            self.add(
                "Slice",
                self.value,
                self.ints(-1),
                self.ints(-99),
                self.ints(self.axis),
                self.ints(-1),
            )
        else:
            parts = [f"{self.value}_{i}" for i in range(2)]
            sizes = self.ints(1, self.channels - 1)
            self.nodes.append(helper.make_node("Split", [self.value, sizes], parts, axis=self.axis))
            self.add("Concat", *parts[::-1], axis=self.axis)

    def product(self) -> None:
        out = 4
        if self.rng.random() < 0.5:
            self.turn(3)
            weight = self.rng.normal(size=(self.channels, out)).astype(np.float32)
            self.add("MatMul", self.value, self.constant(weight))
        else:
            self.turn(1)
            weight = self.rng.normal(size=(out, self.channels, 3, 3)).astype(np.float32)
            bias = self.constant(self.rng.normal(size=out).astype(np.float32))
            self.add("Conv", self.value, self.constant(weight), bias, pads=[1, 1, 1, 1])
        self.channels = out

    def model(self, *, behind: bool) -> onnx.ModelProto:
        shape: list[str | int | None] = ["N", SIDE, SIDE, SIDE]
        shape[self.axis] = CHANNELS
        steps = [self.product, *[self.step] * 2, self.pick]
        for step in steps if behind else [*steps[::-1], self.step]:
            step()
        graph = helper.make_graph(
            self.nodes,
            "drawn",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(self.value, TensorProto.FLOAT, None)],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_what_picks_channels_goes_into_the_weights_and_nothing_else_changes() -> None:
    gone = 0
    for seed in range(60):
        drawn = Drawn(seed)
        axis = drawn.axis
        before = drawn.model(behind=bool(seed % 2))
        after = surgeon.apply(before, "linear-fuse", verify=False).model.to_proto()
        shape = [2, SIDE, SIDE, SIDE]
        shape[axis] = CHANNELS
        x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
        wanted, found = (
            onnxruntime.InferenceSession(m.SerializeToString()).run(None, {"x": x})[0]
            for m in (before, after)
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4, err_msg=f"seed {seed}")
        gone += not {"Gather", "Slice", "Split"} & {n.op_type for n in after.graph.node}
    assert gone > 30
