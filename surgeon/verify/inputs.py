"""Draws inputs by seed: of the declared dtypes, within the range that the inputs' readers allow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from surgeon.reference.arguments import constant_value, decode, is_foreign
from surgeon.reference.plan import subgraphs
from surgeon.verify.specs import Spec, fitting

DRAWN = ("normal", "plain", "uniform", "positive")  # by seed
STRATEGIES = (*DRAWN, "ones", "zeros")
WORDS = ("", "a", "surgeon", "onnx", "Ärzte", "0", "two words")
_WORDS = {"i": "small integers", "u": "small integers", "b": "true or false", "O": "words"}
_SAME_VALUES = frozenset(
    {"Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Transpose", "Flatten", "Expand"}
    | {"Slice", "Concat", "Tile", "Clip", "Split"}
)
# Operator and operand: the operand whose dim bounds it, and the default axis (None: the smallest).
_INDICES: Mapping[tuple[str, int], tuple[int, int | None]] = {
    ("Gather", 1): (0, 0),
    ("GatherElements", 1): (0, 0),
    ("GatherND", 1): (0, None),
    ("Scatter", 1): (0, 0),
    ("ScatterElements", 1): (0, 0),
    ("ScatterND", 1): (0, None),
    ("embedding", 1): (0, 0),
    ("embedding_bag", 1): (0, 0),
    ("gather", 2): (0, None),
    ("index_select", 2): (0, None),
    ("index", 1): (0, None),
    ("take", 1): (0, None),
}
_OFFSETS = frozenset({("embedding_bag", 2)})  # 0 is in order, whatever the bags hold
_LENGTHS = frozenset({("LSTM", 4), ("GRU", 4), ("RNN", 4), ("ReverseSequence", 1)})

Dim = int | str


@dataclass(frozen=True, slots=True)
class Input:
    """An input that has to be given.

    Attributes:
        name: The value's name.
        dtype: numpy's, strings as object.
        dims: Sizes, and names of dynamic dims; an unnamed one is called `input.axis`.
    """

    name: str
    dtype: np.dtype[Any]
    dims: tuple[Dim, ...]

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape at these sizes."""
        return tuple(sizes[dim] if isinstance(dim, str) else dim for dim in self.dims)


@dataclass(frozen=True, slots=True)
class Bound:
    """What an integer input may hold: from `low`, up to but without `high` (a size or a dim)."""

    low: int
    high: Dim


def required_inputs(
    model: onnx.ModelProto,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    tied: Mapping[str, str] | None = None,
) -> tuple[Input, ...]:
    """The inputs without an initializer, with the shapes as given or else as declared.

    Args:
        model: The model.
        shapes: By input name, in place of what is declared.
        tied: By dim name, another dim that has the same size.

    Raises:
        ValueError: An input cannot be drawn: it is no tensor, or its rank is not known.
    """
    initializers = {tensor.name for tensor in model.graph.initializer}
    return tuple(
        _input(value, (shapes or {}).get(value.name), tied or {})
        for value in model.graph.input
        if value.name not in initializers
    )


def _input(
    value: onnx.ValueInfoProto, given: Sequence[Dim] | None, tied: Mapping[str, str]
) -> Input:
    if not value.type.HasField("tensor_type"):
        raise ValueError(f"input `{value.name}` is no tensor")
    tensor = value.type.tensor_type
    if given is None and not tensor.HasField("shape"):
        raise ValueError(f"the rank of input `{value.name}` is not declared; give its shape")
    dims: list[Dim] = []
    if given is not None:
        dims = list(given)
    else:
        for axis, dim in enumerate(tensor.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value >= 0:
                dims.append(dim.dim_value)
            else:
                dims.append(dim.dim_param or f"{value.name}.{axis}")
    if tensor.elem_type == onnx.TensorProto.STRING:
        dtype: np.dtype[Any] = np.dtype(object)
    else:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    same = tuple(tied.get(dim, dim) if isinstance(dim, str) else dim for dim in dims)
    return Input(value.name, dtype, same)


def bounds(model: onnx.ModelProto, inputs: Sequence[Input]) -> dict[str, Bound]:
    """What the readers of each integer input allow it to hold."""
    readers: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
    shapes: dict[str, tuple[Dim, ...]] = {t.name: tuple(t.dims) for t in model.graph.initializer}
    shapes.update((each.name, each.dims) for each in inputs)
    for node in _all_nodes(model.graph):
        for place, name in enumerate(node.input):
            readers.setdefault(name, []).append((node, place))
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            value = constant_value(node)
            shapes[node.output[0]] = value.shape if isinstance(value, np.ndarray) else ()
        elif node.op_type == "Identity" and node.input and node.input[0] in shapes:
            shapes[node.output[0]] = shapes[node.input[0]]
    depths = _constants(model)
    found = {}
    for each in inputs:
        if each.dtype.kind in "iu":
            limits = list(_limits(each.name, readers, shapes, depths))
            if limits:
                known = [b for b in limits if isinstance(b.high, int)]
                found[each.name] = min(known or limits, key=lambda b: (b.low == 0, b.high))
    return found


def _constants(model: onnx.ModelProto) -> dict[str, int]:
    """Scalars among the initializers and constants: the depth of a OneHot say."""
    tensors = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value" and attribute.HasField("t"):
                    tensors[node.output[0]] = attribute.t
    return {
        name: int(onnx.numpy_helper.to_array(t).reshape(-1)[0])
        for name, t in tensors.items()
        if t.data_type in (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
        and math.prod(t.dims) == 1
        and t.data_location != onnx.TensorProto.EXTERNAL
    }


def _all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for body in subgraphs(node):
            yield from _all_nodes(body)


def _limits(
    name: str,
    readers: Mapping[str, list[tuple[onnx.NodeProto, int]]],
    shapes: Mapping[str, tuple[Dim, ...]],
    scalars: Mapping[str, int],
) -> Iterator[Bound]:
    pending, seen = [name], {name}
    while pending:
        for node, place in readers.get(pending.pop(), ()):
            operator = decode(node).operator if is_foreign(node) else node.op_type
            if (operator, place) in _INDICES:
                data, axis = _INDICES[operator, place]
                attributes = {a.name: a.i for a in node.attribute}
                if axis is not None:
                    axis = attributes.get("axis", axis)
                yield Bound(0, _size(shapes.get(node.input[data]), axis))
            elif (operator, place) == ("OneHot", 0):
                yield Bound(0, scalars.get(node.input[1], 2))
            elif (operator, place) in _LENGTHS:
                yield Bound(1, 2)
            elif (operator, place) in _OFFSETS:
                yield Bound(0, 1)
            elif operator in _SAME_VALUES and (place == 0 or operator == "Concat"):
                for output in node.output:
                    if output not in seen:
                        seen.add(output)
                        pending.append(output)


def _size(shape: tuple[Dim, ...] | None, axis: int | None) -> Dim:
    """The dim that bounds an index; 2 where nothing is known, so that more than one is tried."""
    if not shape:
        return 2
    if axis is None:
        return min((dim for dim in shape if isinstance(dim, int)), default=2)
    return shape[axis] if -len(shape) <= axis < len(shape) else 2


def draw(
    inputs: Sequence[Input],
    sizes: Mapping[str, int],
    seed: int,
    *,
    strategy: str = "normal",
    allowed: Mapping[str, Bound] | None = None,
    specs: Mapping[str, Spec] | None = None,
) -> dict[str, Any]:
    """One array an input; the same for the same seed.

    Args:
        inputs: What to draw.
        sizes: The dynamic dims' sizes.
        seed: Any non-negative number.
        strategy: One of STRATEGIES.
        allowed: Bounds of integer inputs.
        specs: How the user wants inputs drawn, by name: whatever the strategy.
    """
    feeds = {}
    shapes = {each.name: each.shape(sizes) for each in inputs}
    for place, each in enumerate(inputs):
        generator = np.random.default_rng([seed, place])
        bound = (allowed or {}).get(each.name)
        spec = (specs or {}).get(each.name)
        if spec is None and bound is None:
            spec = fitting(each.name, each.dtype, len(each.dims))
        if spec is not None:
            feeds[each.name] = spec.draw(generator, each.dtype, shapes[each.name], shapes)
            continue
        if bound is not None and isinstance(bound.high, str):
            bound = Bound(bound.low, sizes.get(bound.high, 2))
        feeds[each.name] = _array(generator, each.dtype, shapes[each.name], strategy, bound)
    return feeds


def _array(
    generator: np.random.Generator,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strategy: str,
    bound: Bound | None,
) -> Any:
    if dtype.kind in "iu":
        return _integers(generator, dtype, shape, strategy, bound)
    if dtype == np.bool_:
        if strategy in ("ones", "zeros"):
            return np.full(shape, strategy == "ones")
        return np.asarray(generator.random(shape) < 0.5)
    if dtype.kind == "O":
        return np.asarray(generator.choice(np.array(WORDS, object), shape), object)
    if dtype.kind == "c":
        imaginary = _floats(generator, shape, strategy)
        return (_floats(generator, shape, strategy) + 1j * imaginary).astype(dtype)
    return _floats(generator, shape, strategy).astype(dtype)


def _integers(
    generator: np.random.Generator,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strategy: str,
    bound: Bound | None,
) -> Any:
    if bound is not None:
        low, high = bound.low, max(bound.low + 1, int(bound.high))
    elif dtype.itemsize == 1 and strategy == "normal":
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max) + 1  # pixels, quantities
    else:
        low, high = 0, 3
    if strategy in ("ones", "zeros"):
        return np.full(shape, min(high - 1, max(low, int(strategy == "ones"))), dtype)
    return np.asarray(generator.integers(low, high, shape)).astype(dtype)


def _floats(generator: np.random.Generator, shape: tuple[int, ...], strategy: str) -> Any:
    if strategy in ("ones", "zeros"):
        return np.full(shape, float(strategy == "ones"))
    if strategy == "uniform":
        return np.asarray(generator.random(shape))
    if strategy == "positive":
        return np.asarray(generator.random(shape) + 0.5)
    array = np.asarray(generator.normal(size=shape))
    flat = array.reshape(-1)
    few = (
        0 if strategy == "plain" else flat.size // 64
    )  # large and small magnitudes, and zeros, among the normal ones
    if few:
        places = generator.choice(flat.size, 3 * few, replace=False)
        flat[places[:few]] *= 8.0
        flat[places[few : 2 * few]] *= 1e-3
        flat[places[2 * few :]] = 0.0
    return flat.reshape(shape)


@dataclass(frozen=True)
class Drawing:
    """A way of drawing inputs."""

    inputs: Sequence[Input]
    allowed: Mapping[str, Bound]
    strategy: str
    specs: Mapping[str, Spec] = field(default_factory=dict)

    def feeds(self, sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
        """One set of inputs."""
        return draw(
            self.inputs, sizes, seed, strategy=self.strategy, allowed=self.allowed, specs=self.specs
        )

    def describe(self) -> dict[str, str]:
        """How each input is drawn, in words."""
        found = {}
        for each in self.inputs:
            bound, spec = self.allowed.get(each.name), self.specs.get(each.name)
            if spec is None and bound is None:
                spec = fitting(each.name, each.dtype, len(each.dims))
            if spec is not None:
                found[each.name] = spec.text
            elif bound is not None:
                found[each.name] = f"from {bound.low} to below {bound.high}"
            else:
                found[each.name] = _WORDS.get(each.dtype.kind, self.strategy)
        return found
