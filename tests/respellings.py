"""The same said in other words: axes from behind or left out, bounds of all, sizes by 0 and -1.

As the twists of `twists.py`, which draw these too: each changes a model in place and says what it
did, or None where there was nothing to say otherwise. Most leave the meaning as it was; all are
forms that ONNX allows and few exporters write.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]
FAR = 2**63 - 1
AXIS = {  # the operators that have `axis`, and its default
    "Gather": 0,
    "Concat": None,
    "Softmax": -1,
    "LogSoftmax": -1,
    "Split": 0,
    "ArgMax": 0,
    "TopK": -1,
    "GatherElements": 0,
    "ScatterElements": 0,
    "LayerNormalization": -1,
    "Flatten": 1,
    "Hardmax": -1,
    "OneHot": -1,
}
REDUCTIONS = tuple(f"Reduce{name}" for name in "Sum Mean Max Min Prod L1 L2 LogSumExp".split())


def slice_bounds(model: onnx.ModelProto, r: random.Random) -> str | None:
    """A Slice counts its axes from behind, or names none and cuts those in front with them."""
    node, known = _one(model, r, "Slice"), _Known(model)
    if node is None or len(node.input) < 3 or (sizes := known.sizes(node.input[0])) is None:
        return None
    starts, ends = (known.array(name) for name in node.input[1:3])
    if starts is None or ends is None:
        return None
    given = known.array(node.input[3]) if len(node.input) > 3 and node.input[3] else None
    axes = [int(n) for n in (range(len(starts)) if given is None else given)]
    if any(not -len(sizes) <= axis < len(sizes) for axis in axes):
        return None
    if r.random() < 0.4:
        _give(model, node, 3, [_other_end(axis, len(sizes)) for axis in axes])
        return "axes of Slice from behind"
    count = max(axis % len(sizes) for axis in axes) + 1
    bounds = [[0, FAR, 1] for _ in range(count)]
    for axis, start, end in zip(axes, starts.reshape(-1), ends.reshape(-1), strict=False):
        bounds[axis % len(sizes)][:2] = int(start), int(end)
    if r.random() < 0.5:
        bounds[r.randrange(count)][2] = r.choice([1, 2, 3])
    for place, numbers in ((1, 0), (2, 1), (4, 2)):
        _give(model, node, place, [each[numbers] for each in bounds])
    node.input[3] = ""
    return f"Slice names no axes: {bounds}"


def axis(model: onnx.ModelProto, r: random.Random) -> str | None:
    """An axis is counted from the other end."""
    node = _one(model, r, *AXIS)
    sizes = None if node is None else _Known(model).sizes(node.input[0])
    if node is None or not sizes:
        return None
    given = [each for each in node.attribute if each.name == "axis"]
    default = AXIS[node.op_type]
    if not given and default is None:
        return None
    old = given[0].i if given else int(default or 0)
    for each in given:
        node.attribute.remove(each)
    node.attribute.append(helper.make_attribute("axis", _other_end(old, len(sizes))))
    return f"`axis` of {node.op_type} from the other end"


def indices(model: onnx.ModelProto, r: random.Random) -> str | None:
    """Constant places are counted from the other end, all or some of them."""
    node, known = _one(model, r, "Gather", "GatherElements", "ScatterElements"), _Known(model)
    if node is None:
        return None
    places, sizes = known.array(node.input[1]), known.sizes(node.input[0])
    along = next((each.i for each in node.attribute if each.name == "axis"), 0)
    if places is None or not sizes or not -len(sizes) <= along < len(sizes) or not sizes[along]:
        return None
    length = sizes[along] or 0
    turned = np.where(places < 0, places + length, places - length)
    some = np.asarray([r.random() < 0.6 for _ in range(places.size)]).reshape(places.shape)
    _give(model, node, 1, np.where(some, turned, places))
    return f"places of {node.op_type} from the other end"


def axes(model: onnx.ModelProto, r: random.Random) -> str | None:
    """The axes of a reduction or a view from the other end, in another order, or none at all."""
    node, known = _one(model, r, "Unsqueeze", "Squeeze", *REDUCTIONS), _Known(model)
    sizes = None if node is None else known.sizes(node.input[0])
    if node is None or sizes is None:
        return None
    given = [each for each in node.attribute if each.name == "axes"]
    operand = known.array(node.input[1]) if len(node.input) > 1 else None
    if not given and operand is None:
        return None
    numbers = [int(n) for n in (given[0].ints if given else np.asarray(operand).reshape(-1))]
    rank = len(sizes) + len(numbers) * (node.op_type == "Unsqueeze")
    numbers = [_other_end(n, rank) for n in numbers]
    r.shuffle(numbers)
    if node.op_type.startswith("Reduce") and r.random() < 0.2:
        numbers = []
    if given:
        node.attribute.remove(given[0])
        node.attribute.append(
            helper.make_attribute("axes", numbers, attr_type=onnx.AttributeProto.INTS)
        )
    else:
        _give(model, node, 1, numbers)
    return f"axes of {node.op_type}: {numbers}"


def target(model: onnx.ModelProto, r: random.Random) -> str | None:
    """The sizes of a Reshape by 0, by -1 or by numbers."""
    node, known = _one(model, r, "Reshape"), _Known(model)
    if node is None or len(node.input) < 2:
        return None
    wanted, sizes = known.array(node.input[1]), known.sizes(node.input[0])
    if wanted is None or sizes is None or not wanted.size:
        return None
    said = [int(n) for n in wanted.reshape(-1)]
    how = r.choice(["numbers", "zeros", "rest"])
    for place, size in enumerate(sizes[: len(said)]):
        if how == "numbers" and said[place] == 0 and size:
            said[place] = size
        elif how == "zeros" and said[place] == size:
            said[place] = 0
    if how == "rest" and -1 not in said:
        said[r.randrange(len(said))] = -1
    _give(model, node, 1, said)
    return f"Reshape to {said}"


def pad_axes(model: onnx.ModelProto, r: random.Random) -> str | None:
    """A Pad names its axes, in any order and from either end (opset 18)."""
    node, known = _one(model, r, "Pad"), _Known(model)
    amounts = None if node is None or len(node.input) < 2 else known.array(node.input[1])
    if node is None or amounts is None or (len(node.input) > 3 and node.input[3]):
        return None
    rank = amounts.size // 2
    numbers = [int(n) for n in amounts.reshape(-1)]
    kept = [n for n in range(rank) if numbers[n] or numbers[n + rank] or r.random() < 0.3] or [0]
    r.shuffle(kept)
    _give(model, node, 1, [numbers[n] for n in kept] + [numbers[n + rank] for n in kept])
    _give(model, node, 3, [n - rank if r.random() < 0.5 else n for n in kept])
    return f"Pad names its axes: {kept}"


def order(model: onnx.ModelProto, r: random.Random) -> str | None:
    """A Transpose names no order, or any."""
    node = _one(model, r, "Transpose")
    sizes = None if node is None else _Known(model).sizes(node.input[0])
    if node is None or sizes is None:
        return None
    del node.attribute[:]
    if r.random() < 0.4:
        return "Transpose names no order"
    perm = r.sample(range(len(sizes)), len(sizes))
    node.attribute.append(helper.make_attribute("perm", perm))
    return f"Transpose by {perm}"


def _other_end(axis: int, rank: int) -> int:
    return axis - rank if axis >= 0 else axis + rank


def _one(model: onnx.ModelProto, r: random.Random, *names: str) -> onnx.NodeProto | None:
    found = [node for node in model.graph.node if node.op_type in names and not node.domain]
    return r.choice(found) if found else None


def _give(model: onnx.ModelProto, node: onnx.NodeProto, place: int, numbers: Any) -> None:
    """Another constant as an input of a node."""
    name = f"said_{len(model.graph.initializer)}_{len(model.graph.node)}"
    array = np.asarray(numbers, np.int64)
    model.graph.initializer.append(numpy_helper.from_array(array, name))
    while len(node.input) <= place:
        node.input.append("")
    node.input[place] = name


class _Known:
    """What onnx infers of a model's values."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in model.graph.node:
            if node.op_type == "Constant" and node.attribute[0].HasField("t"):
                self.tensors[node.output[0]] = node.attribute[0].t
        try:
            seen = onnx.shape_inference.infer_shapes(model)
        except onnx.shape_inference.InferenceError:
            seen = model
        values = (*seen.graph.input, *seen.graph.output, *seen.graph.value_info)
        self.types = {value.name: value.type.tensor_type for value in values}

    def array(self, name: str) -> Array | None:
        return numpy_helper.to_array(self.tensors[name]) if name in self.tensors else None

    def sizes(self, name: str) -> list[int | None] | None:
        if name in self.tensors:
            return list(self.tensors[name].dims)
        if name not in self.types or not self.types[name].HasField("shape"):
            return None
        dims = self.types[name].shape.dim
        return [dim.dim_value if dim.HasField("dim_value") else None for dim in dims]


RESPELLINGS = (slice_bounds, axis, indices, axes, target, pad_axes, order)
