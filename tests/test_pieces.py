"""Pieces of one tensor that a Concat puts together again, drawn at random, and their bounds."""

import math
import random

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import surgeon
from surgeon.fold import DEFAULT_LIMIT

FAR = 1 << 40
RULE = "pieces-as-gather"


class Drawn:
    """A model of pieces of `x`, cut and repeated at random, most of them along one axis."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.axis = rng.randrange(3)
        self.shape = [rng.choice([1, 2, 3]) for _ in range(3)]
        self.shape[self.axis] = rng.choice([2, 3, 4, 6])
        cut = rng.randint(1, self.shape[self.axis] - 1)
        sizes = [cut, self.shape[self.axis] - cut]
        halves = self.op("Split", "x", self.ints(sizes), outputs=2, axis=self.axis)
        whole = [("x", self.shape)]
        whole += [(h, self.with_length(n)) for h, n in zip(halves, sizes, strict=True)]
        parts = [self.piece(*rng.choice(whole)) for _ in range(rng.randint(2, 6))]
        (y,) = self.op("Concat", *parts, axis=self.axis - rng.choice([0, 3]))
        others = [p for p in dict.fromkeys(parts) if p != "x" and rng.random() < 0.1]
        graph = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_empty_tensor_value_info(name) for name in (y, *others)],
            self.constants,
        )
        opsets = [helper.make_opsetid("", rng.choice([13, 17]))]
        self.model = helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def with_length(self, length: int) -> list[int]:
        return [*self.shape[: self.axis], length, *self.shape[self.axis + 1 :]]

    def ints(self, values: object) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: object) -> list[str]:
        names = [f"{kind}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def piece(self, tensor: str, shape: list[int]) -> str:
        """A few steps, and a view of the whole's axes where its other axes are not as they were."""
        first, line = tensor, math.prod(self.with_length(1))
        for _ in range(self.rng.randint(0, 4)):
            tensor, shape = self.step(tensor, list(shape))
        count = math.prod(shape)
        if count % line or not 0 < count < 2000:
            return first
        if shape != self.with_length(count // line):
            (tensor,) = self.op("Reshape", tensor, self.ints(self.with_length(count // line)))
        return tensor

    def step(self, tensor: str, shape: list[int]) -> tuple[str, list[int]]:
        """One node; what it makes is computed beside it, for its shape."""
        rng, rank = self.rng, len(shape)
        axis = min(self.axis, rank - 1) if rng.random() < 0.7 else rng.randrange(rank)
        kind = rng.choice(["Slice", "Gather", "Unsqueeze", "Expand", "Tile", "Reshape"])
        like, times = np.zeros(shape, np.int8), [1] * rank
        if kind == "Slice":
            start, step = rng.choice([0, 1, -1, -2, 100]), rng.choice([1, 1, 2, -1, -2])
            end = rng.choice([FAR, 3, 2, -1]) if step > 0 else rng.choice([-FAR, 0])
            kept = like.swapaxes(0, axis)[start:end:step].swapaxes(0, axis)
            if not kept.size:
                return tensor, shape
            bounds = [self.ints([n]) for n in (start, end, axis - rng.choice([0, rank]), step)]
            return self.op(kind, tensor, *bounds)[0], list(kept.shape)
        if kind == "Gather":
            size = [rng.randint(1, 3) for _ in range(rng.choice([1, 1, 2]))]
            picks = [rng.randrange(-shape[axis], shape[axis]) for _ in range(math.prod(size))]
            indices = self.ints(np.reshape(picks, size))
            made = [*shape[:axis], *size, *shape[axis + 1 :]]
            return self.op(kind, tensor, indices, axis=axis)[0], made
        if kind == "Tile":
            times[axis] = rng.choice([2, 3])
            made = list(np.tile(like, times).shape)
            return self.op(kind, tensor, self.ints(times))[0], made
        if kind == "Expand":
            target = [rng.choice([1, 2, 3]) if n == 1 else n for n in shape]
            target = [2, *target] if rng.random() < 0.2 else target
            return self.op(kind, tensor, self.ints(target))[0], target
        if kind == "Reshape" and rank > 1:
            at = rng.randrange(rank - 1)
            made = [*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]]
            return self.op(kind, tensor, self.ints(made))[0], made
        at = axis + rng.choice([0, 1])
        return self.op("Unsqueeze", tensor, self.ints([at]))[0], [*shape[:at], 1, *shape[at:]]


def run(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})


@pytest.mark.slow
def test_pieces_that_are_drawn_stay_what_they_are_and_no_node_comes_of_them():
    fired, gathers = 0, 0
    for seed in range(150):
        drawn = Drawn(seed)
        x = np.random.default_rng(seed).normal(size=drawn.shape).astype(np.float32)
        result = surgeon.apply(drawn.model, "merge-siblings", verify=False)
        after = result.model.to_proto()
        changes = [change for change in result.report.changes if change.rule == RULE]
        fired += bool(changes)
        gathers += any("Gather" in change.after for change in changes)
        assert len(after.graph.node) <= len(drawn.model.graph.node), seed
        for was, now in zip(run(drawn.model, x), run(after, x), strict=True):
            np.testing.assert_array_equal(was, now, err_msg=str(seed))
    assert fired > 75
    assert gathers > 25


def repeated(count: int, length: int) -> onnx.ModelProto:
    """Of each of so many pairs of rows both again and again, the last first."""
    nodes, outputs, inputs = [], [], []
    for place in range(count):
        x, a, b, y = (f"{name}{place}" for name in "xaby")
        nodes.append(helper.make_node("Split", [x], [a, b], axis=0))
        for row in (a, b):
            nodes.append(helper.make_node("Expand", [row, "size"], [f"{row}_many"]))
            nodes.append(helper.make_node("Tile", [f"{row}_many", "twice"], [f"{row}_more"]))
        nodes.append(helper.make_node("Concat", [f"{b}_more", f"{a}_more"], [y], axis=0))
        inputs.append(helper.make_tensor_value_info(x, TensorProto.FLOAT, [2, 64]))
        outputs.append(helper.make_empty_tensor_value_info(y))
    sizes = {"size": [length, 64], "twice": [2, 1]}
    constants = [numpy_helper.from_array(np.array(v, np.int64), k) for k, v in sizes.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_the_indices_of_all_gathers_together_stay_within_the_limit_of_folding():
    few = surgeon.apply(repeated(3, 100), "merge-siblings", verify=False)
    assert few.report.after == {"Gather": 3}
    many = surgeon.apply(repeated(6, 1 << 13), "merge-siblings", verify=False)
    assert many.report.after["Gather"] == 4
    assert many.report.after["Concat"] == 2
    assert many.model.to_proto().ByteSize() < 1.1 * DEFAULT_LIMIT
    huge = surgeon.apply(repeated(1, 1 << 17), "merge-siblings", verify=False)
    assert "Gather" not in huge.report.after
