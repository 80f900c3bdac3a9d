"""Small changes of a graph that rules fire in: what is left is mostly legal, and seldom foreseen.

Each changes a model in place and says what it did, or None where there was nothing to change. What
onnxruntime does not load, or does not run, is left to the caller to throw away.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from respellings import RESPELLINGS

Twist = Callable[[onnx.ModelProto, random.Random], str | None]
Array = np.ndarray[Any, Any]

_ALIKE = [
    "Add Sub Mul Div Max Min Pow PRelu Mod",
    "Relu Sigmoid Tanh Neg Abs Exp Sqrt Erf Identity Floor Ceil Round Reciprocal Not Sign Softplus",
    "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSumExp",
    "Equal Less Greater LessOrEqual GreaterOrEqual And Or Xor",
    "AveragePool MaxPool LpPool",
    "Squeeze Unsqueeze",
    "ArgMax ArgMin",
    "Softmax LogSoftmax Hardmax",
    "Gather GatherElements",
    "Reshape Expand Tile",
]
ALIKE = {name: group.split() for group in _ALIKE for name in group.split()}
WORDS = {
    "auto_pad": "NOTSET SAME_UPPER SAME_LOWER VALID",
    "mode": "constant reflect edge wrap nearest linear cubic DCR CRD bilinear bicubic",
    "coordinate_transformation_mode": "half_pixel asymmetric align_corners pytorch_half_pixel",
    "nearest_mode": "round_prefer_floor round_prefer_ceil floor ceil",
    "reduction": "none add mul max min",
    "padding_mode": "zeros border reflection",
    "direction": "forward reverse bidirectional LEFT RIGHT",
    "approximate": "none tanh",
}
TRUTHS = frozenset(
    "keepdims align_corners allowzero ceil_mode transA transB linear_before_reset largest sorted "
    "select_last_index saturate exclusive reverse upper antialias count_include_pad is_causal "
    "training_mode storage_order layout input_forget noop_with_empty_axes".split()
)
TYPES = ((1, 11), (1, 10), (1, 6), (1, 7), (7, 6), (6, 7), (7, 1), (9, 7), (11, 1), (10, 1))
MOST = 10_000  # elements of a constant
OPSETS = (9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 23)


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs(attribute.g)


def _nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for graph in graphs(model.graph) for node in graph.node]


def _opset(model: onnx.ModelProto) -> int:
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 17)


def _dims(value: onnx.ValueInfoProto) -> Any:
    return value.type.tensor_type.shape.dim


def size(model: onnx.ModelProto, r: random.Random) -> str | None:
    """Another length, or a name, of one axis of an input, or of all that are like it."""
    values = [v for v in model.graph.input if len(_dims(v))]
    if not values:
        return None
    one = r.choice(_dims(r.choice(values)))
    old = (one.dim_value, one.dim_param)
    named = [d.dim_param for v in values for d in _dims(v) if d.dim_param]
    new = r.choice([1, 1, 1, 0, 2, 3, 4, 5, 6, 8, "q1", "q2", *named])
    everywhere = r.random() < 0.25
    for dim in [d for v in values for d in _dims(v)] if everywhere else [one]:
        if (dim.dim_value, dim.dim_param) == old:
            dim.Clear()
            setattr(dim, "dim_param" if isinstance(new, str) else "dim_value", new)
    return f"a size is {new}"


def rank(model: onnx.ModelProto, r: random.Random) -> str | None:
    """An axis more in front of an input, or behind, or one less."""
    if not model.graph.input:
        return None
    value = r.choice(list(model.graph.input))
    sizes = [d.dim_param or d.dim_value for d in _dims(value)]
    if r.random() < 0.6:
        sizes.insert(r.choice([0, 0, len(sizes)]), r.choice([1, 1, 2, 3]))
    elif sizes:
        sizes.pop(r.choice([0, -1]))
    kind = value.type.tensor_type.elem_type
    value.CopyFrom(helper.make_tensor_value_info(value.name, kind, sizes))
    return f"`{value.name}` is {sizes}"


def _another(name: str, kind: str, now: Any, r: random.Random) -> Any:
    """Another value of an attribute; None where none is known."""
    if kind == "INT":
        given = [] if now is None else [now + 1, now - 1, -now]
        to = [0, 1] if name in TRUTHS else [0, 1, -1, 2, 3, -2, *given]
        return r.choice([1, 6, 7, 10, 11, 9, 3, 2] if name in ("to", "dtype") else to)
    if kind == "FLOAT":
        given = [] if now is None else [now * 2, -now]
        return r.choice([0.0, 1.0, -1.0, 0.5, 2.0, -0.25, 1e-5, *given])
    if kind == "STRING" and name in WORDS:
        losses = name == "reduction" and now in (b"mean", b"sum")  # others are of Scatter
        return r.choice(["none", "mean", "sum"] if losses else WORDS[name].split())
    if kind != "INTS":
        return None
    numbers = list(now) if now else [r.choice([0, 1, 2, -1]) for _ in range(r.choice([1, 2, 4]))]
    place = r.randrange(len(numbers))
    changed = [*numbers[:place], numbers[place] + r.choice([1, -1]), *numbers[place + 1 :]]
    shuffled = r.sample(numbers, len(numbers))
    return r.choice([changed, shuffled, numbers[::-1], numbers[:-1] or numbers, [*numbers, 1]])


def attribute(model: onnx.ModelProto, r: random.Random) -> str | None:
    """Another value of an attribute, or none."""
    node = r.choice(_nodes(model))
    if node.op_type == "Constant":  # of two values it says nothing legal
        return None
    try:
        known = onnx.defs.get_schema(node.op_type, _opset(model), node.domain).attributes
    except onnx.defs.SchemaError:
        return None
    if not known:
        return None
    name = r.choice(sorted(known))
    given = next((a for a in node.attribute if a.name == name), None)
    now = None if given is None else helper.get_attribute_value(given)
    new = _another(name, known[name].type.name, now, r)
    if given is not None and not known[name].required and r.random() < 0.25:
        new = None
    elif new is None:
        return None
    if given is not None:
        node.attribute.remove(given)
    if new is not None:
        node.attribute.append(helper.make_attribute(name, new))
    return f"`{name}` of {node.op_type} is {new}"


def _number(array: Array, place: int, r: random.Random) -> Any:
    old = array.reshape(-1)[place]
    if array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            return r.choice([0, -0.0, 1, -1, 2, 0.5, np.inf, 1e-30, 65504, old * 2, -old, old + 1])
    if array.dtype.kind in "iu":
        ends = np.iinfo(array.dtype)
        near = [0, 1, -1, 2, 3, -2, int(old) + 1, int(old) - 1, -int(old), ends.max, ends.min]
        return max(min(r.choice(near), ends.max), ends.min)
    return not old


def _turned(array: Array, r: random.Random) -> Array:
    """The array in another shape, or with more or less of an axis."""
    places = range(array.ndim)
    more = [(*[1] * count, *array.shape) for count in (1, 1, 2, 4)]
    shapes = [*more, (*array.shape, 1), tuple(r.sample(array.shape, array.ndim))]
    how = r.random()
    if how < 0.6 or not array.ndim or not array.size:
        return array.reshape(r.choice(shapes))
    axis = r.choice(places)
    length = array.shape[axis]
    kept = r.choice([[0], list(range(length - 1)), [*range(length), 0]])
    return array.take(kept, axis)


def constant(model: onnx.ModelProto, r: random.Random) -> str | None:
    """Another number in a constant, or another shape of it."""
    tensors = [t for graph in graphs(model.graph) for t in graph.initializer]
    tensors += [
        n.attribute[0].t
        for n in _nodes(model)
        if n.op_type == "Constant" and n.attribute[0].HasField("t")
    ]
    if not tensors:
        return None
    tensor = r.choice(tensors)
    array = np.array(numpy_helper.to_array(tensor))
    if array.dtype.kind not in "fiub":
        return None
    if array.size and r.random() < 0.6:
        place = r.randrange(array.size)
        with np.errstate(all="ignore"):
            array.reshape(-1)[place] = _number(array, place, r)
    else:
        array = _turned(array, r)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return f"the constant `{tensor.name}`"


def _retype(tensor: onnx.TensorProto, source: int, target: int) -> None:
    if tensor.data_type == source:
        with np.errstate(all="ignore"):
            array = numpy_helper.to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(target))
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def dtype(model: onnx.ModelProto, r: random.Random) -> str | None:
    """Another type for one, wherever it stands, or for some values of it."""
    source, target = r.choice(TYPES)
    whole = r.random() < 0.7
    for graph in graphs(model.graph):
        for value in (*graph.input, *graph.output):
            tensor = value.type.tensor_type
            if tensor.elem_type == source and (whole or r.random() < 0.5):
                tensor.elem_type = target
        for each in graph.initializer:
            if whole or r.random() < 0.5:
                _retype(each, source, target)
        for node in graph.node if whole else ():
            for each in node.attribute:
                if each.name == "to" and each.i == source:
                    each.i = target
                if each.HasField("t"):
                    _retype(each.t, source, target)
    return f"{target} for the type {source}"


def reader(model: onnx.ModelProto, r: random.Random) -> str | None:
    """A value between is given out, or read in a body as well."""
    outputs = {value.name for value in model.graph.output}
    inner = [n for node in model.graph.node for n in node.output if n and n not in outputs]
    if not inner:
        return None
    name = r.choice(inner)
    if r.random() < 0.5:
        model.graph.output.append(onnx.ValueInfoProto(name=name))
        return f"`{name}` is given out"
    made = [f"{name}_{way}" for way in ("yes", "no", "read")]
    bodies = [
        helper.make_graph(
            [helper.make_node("Identity", [name], [each])],
            each,
            [],
            [onnx.ValueInfoProto(name=each)],
        )
        for each in made[:2]
    ]
    model.graph.input.append(helper.make_tensor_value_info("go_", TensorProto.BOOL, []))
    model.graph.node.append(
        helper.make_node("If", ["go_"], made[2:], then_branch=bodies[0], else_branch=bodies[1])
    )
    model.graph.output.append(onnx.ValueInfoProto(name=made[2]))
    return f"`{name}` is read in a body"


def operands(model: onnx.ModelProto, r: random.Random) -> str | None:
    """Operands that change places, are left out, or are one."""
    node = r.choice(_nodes(model))
    names = list(node.input)
    if len(names) < 2:
        return None
    place = r.randrange(1, len(names))
    how = r.choice(["other places", "one left out", "one twice"])
    if how == "other places":
        names[0], names[1] = names[1], names[0]
    else:
        names[place] = "" if how == "one left out" else names[place - 1]
    while names and not names[-1]:
        names.pop()
    node.input[:] = names
    return f"operands of {node.op_type}: {how}"


def operator(model: onnx.ModelProto, r: random.Random) -> str | None:
    """An operator like the one that is there."""
    nodes = [node for node in _nodes(model) if node.op_type in ALIKE and not node.domain]
    if not nodes:
        return None
    node = r.choice(nodes)
    old, new = node.op_type, r.choice(ALIKE[node.op_type])
    try:
        known = onnx.defs.get_schema(new, _opset(model)).attributes
    except onnx.defs.SchemaError:
        return None
    node.op_type = new
    kept = [each for each in node.attribute if each.name in known]
    del node.attribute[:]
    node.attribute.extend(kept)
    return f"{new} for {old}"


def _read(model: onnx.ModelProto, r: random.Random) -> tuple[onnx.NodeProto, int, int] | None:
    """A node, which of its inputs is looked at, and the node's place in the graph."""
    nodes = enumerate(model.graph.node)
    places = [(n, i, at) for at, n in nodes for i, name in enumerate(n.input) if name]
    return r.choice(places) if places else None


def between(model: onnx.ModelProto, r: random.Random) -> str | None:
    """A node more on the way."""
    read = _read(model, r)
    if read is None:
        return None
    node, place, at = read
    name, op = node.input[place], r.choice("Relu Neg Identity Transpose Abs Sigmoid Cast".split())
    given = {"to": r.choice([1, 6, 7, 10, 11, 9])} if op == "Cast" else {}
    node.input[place] = f"{name}_between"
    model.graph.node.insert(at, helper.make_node(op, [name], [f"{name}_between"], **given))
    return f"{op} behind `{name}`"


def fed(model: onnx.ModelProto, r: random.Random) -> str | None:
    """A constant becomes an input."""
    if not model.graph.initializer:
        return None
    tensor = r.choice(list(model.graph.initializer))
    model.graph.initializer.remove(tensor)
    sizes = [f"z{axis}" if r.random() < 0.5 else size for axis, size in enumerate(tensor.dims)]
    given = helper.make_tensor_value_info(tensor.name, tensor.data_type, sizes)
    model.graph.input.append(given)
    return f"`{tensor.name}` is an input"


def still(model: onnx.ModelProto, r: random.Random) -> str | None:
    """An input becomes a constant."""
    kinds = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32)
    values = [v for v in model.graph.input if v.type.tensor_type.elem_type in kinds]
    if not values:
        return None
    value = r.choice(values)
    sizes = [d.dim_value if d.HasField("dim_value") else r.choice([1, 2, 3]) for d in _dims(value)]
    if np.prod(sizes) > MOST:
        return None
    kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    numbers = np.array([r.choice([0, 1, -1, 2, 3]) for _ in range(int(np.prod(sizes)))])
    model.graph.input.remove(value)
    array = numbers.reshape(sizes).astype(kind)
    model.graph.initializer.append(numpy_helper.from_array(array, value.name))
    return f"`{value.name}` is a constant"


def quantized(model: onnx.ModelProto, r: random.Random) -> str | None:
    """A value is rounded to levels on its way, as quantised networks have it."""
    read = _read(model, r)
    if read is None:
        return None
    node, place, at = read
    name = node.input[place]
    scale, zero, levels, back = (f"{name}_{each}" for each in ("scale", "zero", "levels", "back"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(0.25, np.float32), scale))
    model.graph.initializer.append(numpy_helper.from_array(np.array(0, np.int8), zero))
    node.input[place] = back
    for op, given, made in (("DequantizeLinear", levels, back), ("QuantizeLinear", name, levels)):
        model.graph.node.insert(at, helper.make_node(op, [given, scale, zero], [made]))
    return f"`{name}` goes through levels"


def opset(model: onnx.ModelProto, r: random.Random) -> str | None:
    """The same text at another opset."""
    version = r.choice(OPSETS)
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = version
    model.ir_version = 10
    return f"opset {version}"


TWISTS: dict[Twist, float] = {
    **dict.fromkeys((size, attribute, constant), 4.0),
    **dict.fromkeys((dtype, reader, operands, operator), 2.0),
    **dict.fromkeys((rank, between, fed, still, opset), 1.0),
    **dict.fromkeys(RESPELLINGS, 1.0),
    quantized: 0.5,
}


def twisted(model: onnx.ModelProto, r: random.Random) -> tuple[onnx.ModelProto, list[str]]:
    """A copy with one to three changes, which says nothing of its outputs, and what was changed."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.value_info[:]
    for value in copy.graph.output:
        value.ClearField("type")  # for the runtime to infer
    chosen = r.choices(list(TWISTS), list(TWISTS.values()), k=r.choice([1, 1, 2, 2, 3]))
    return copy, [said for said in (twist(copy, r) for twist in chosen) if said]
