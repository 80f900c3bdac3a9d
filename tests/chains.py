"""Graphs drawn at random: views, cuts, pools and shape arithmetic on a [b, c, t] input."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st

OPSET = 18


class Builder:
    """Collects nodes; knows the rank of every value and nothing else."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.ranks: dict[str, int] = {"x": 3}

    def constant(self, values: Any, dtype: Any = np.int64) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = np.array(values, dtype)
        return name

    def add(self, text: str, rank: int, outputs: int = 1) -> str:
        names = [f"v{len(self.ranks)}_{i}" for i in range(outputs)]
        self.lines.append(f"{', '.join(names)} = {text}")
        for name in names:
            self.ranks[name] = rank
        return names[-1]

    def model(self, outputs: list[str]) -> onnx.ModelProto:
        body = "\n  ".join(self.lines)
        proto = onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["": {OPSET}]>\n'
            f"g (float[b,c,t] x) => ({', '.join(outputs)}) {{\n  {body}\n}}"
        )
        for name, array in self.constants.items():
            proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return proto


def _axis(draw: st.DrawFn, rank: int) -> int:
    return draw(st.integers(-rank, rank - 1))


def unary(draw: st.DrawFn, g: Builder, x: str) -> str:
    op = draw(st.sampled_from(["Relu", "Sigmoid", "Neg", "Abs", "HardSwish", "Identity"]))
    return g.add(f"{op} ({x})", g.ranks[x])


def softmax(draw: st.DrawFn, g: Builder, x: str) -> str:
    return g.add(f"Softmax <axis = {_axis(draw, g.ranks[x])}> ({x})", g.ranks[x])


def transpose(draw: st.DrawFn, g: Builder, x: str) -> str:
    perm = draw(st.permutations(range(g.ranks[x])))
    return g.add(f"Transpose <perm = {perm}> ({x})", g.ranks[x])


def reshape(draw: st.DrawFn, g: Builder, x: str) -> str:
    kept = draw(st.integers(0, g.ranks[x] - 1))
    target = [0] * kept + [-1] + draw(st.sampled_from([[], [1], [2], [3, 1]]))
    return g.add(f"Reshape ({x}, {g.constant(target)})", len(target))


def reshape_by_shape(draw: st.DrawFn, g: Builder, x: str) -> str:
    """What exporters write for `x.view(x.size(i), -1)`."""
    axis = draw(st.integers(0, g.ranks[x] - 1))
    s = g.add(f"Shape ({x})", 1)
    d = g.add(f"Gather ({s}, {g.constant([axis])})", 1)
    one = g.constant([-1])
    first = draw(st.booleans())
    target = g.add(f"Concat <axis = 0> ({f'{d}, {one}' if first else f'{one}, {d}'})", 1)
    return g.add(f"Reshape ({x}, {target})", 2)


def reshape_by_arithmetic(draw: st.DrawFn, g: Builder, x: str) -> str:
    """Two axes made one by a product of their sizes, and taken apart by a division."""
    rank = g.ranks[x]
    if rank < 2:
        return x
    s = g.add(f"Shape ({x})", 1)
    front = g.add(f"Slice ({s}, {g.constant([0])}, {g.constant([rank - 2])})", 1)
    a = g.add(f"Gather ({s}, {g.constant([rank - 2])})", 1)
    d = g.add(f"Gather ({s}, {g.constant([rank - 1])})", 1)
    both = g.add(f"Mul ({a}, {d})", 1)
    if draw(st.booleans()):
        target = g.add(f"Concat <axis = 0> ({front}, {both})", 1)
        return g.add(f"Reshape ({x}, {target})", rank - 1)
    back = g.add(f"Div ({both}, {a})", 1)
    target = g.add(f"Concat <axis = 0> ({front}, {back}, {a})", 1)
    return g.add(f"Reshape ({x}, {target})", rank)


def flatten(draw: st.DrawFn, g: Builder, x: str) -> str:
    return g.add(f"Flatten <axis = {draw(st.integers(0, g.ranks[x]))}> ({x})", 2)


def unsqueeze(draw: st.DrawFn, g: Builder, x: str) -> str:
    if g.ranks[x] > 4:
        return x
    axis = _axis(draw, g.ranks[x] + 1)
    return g.add(f"Unsqueeze ({x}, {g.constant([axis])})", g.ranks[x] + 1)


def squeeze_back(draw: st.DrawFn, g: Builder, x: str) -> str:
    up = unsqueeze(draw, g, x)
    axis = draw(st.integers(0, g.ranks[up] - 1))
    mean = g.add(f"ReduceMean ({up}, {g.constant([axis])})", g.ranks[up])
    return (
        g.add(f"Squeeze ({mean}, {g.constant([axis])})", g.ranks[up] - 1) if g.ranks[up] > 1 else x
    )


def slice_(draw: st.DrawFn, g: Builder, x: str) -> str:
    bound = st.sampled_from([0, 1, 2, -1, -2, -4, 2**63 - 1])
    start, end = draw(bound), draw(bound)
    step = draw(st.sampled_from([1, 1, 1, 2, 3]))
    parts = ([start], [end], [_axis(draw, g.ranks[x])], [step])
    return g.add(f"Slice ({x}, {', '.join(map(g.constant, parts))})", g.ranks[x])


def slice_by_shape(draw: st.DrawFn, g: Builder, x: str) -> str:
    axis = draw(st.integers(0, g.ranks[x] - 1))
    s = g.add(f"Shape ({x})", 1)
    d = g.add(f"Gather ({s}, {g.constant([axis])})", 1)
    half = g.add(f"Div ({d}, {g.constant([2])})", 1)
    pair = (g.constant([0]), half) if draw(st.booleans()) else (half, d)
    return g.add(f"Slice ({x}, {pair[0]}, {pair[1]}, {g.constant([axis])})", g.ranks[x])


def concat(draw: st.DrawFn, g: Builder, x: str) -> str:
    other = unary(draw, g, x)
    return g.add(f"Concat <axis = {_axis(draw, g.ranks[x])}> ({x}, {other})", g.ranks[x])


def binary(draw: st.DrawFn, g: Builder, x: str) -> str:
    others = [
        n for n, r in g.ranks.items() if (r <= g.ranks[x] and not n.startswith("v")) or n == "x"
    ]
    op = draw(st.sampled_from(["Add", "Mul", "Sub", "Max"]))
    other = draw(st.sampled_from([x, *others, g.constant(1.5, np.float32)]))
    return g.add(f"{op} ({x}, {other})", max(g.ranks[x], g.ranks.get(other, 0)))


def affine(draw: st.DrawFn, g: Builder, x: str) -> str:
    for op in draw(st.lists(st.sampled_from(["Mul", "Add", "Sub", "Div"]), min_size=2, max_size=3)):
        number = draw(st.sampled_from([0.5, 2.0, -1.5]))
        x = g.add(f"{op} ({x}, {g.constant(number, np.float32)})", g.ranks[x])
    return x


def pool(draw: st.DrawFn, g: Builder, x: str) -> str:
    if g.ranks[x] != 3:
        return x
    op = draw(st.sampled_from(["MaxPool", "AveragePool"]))
    ceil = draw(st.integers(0, 1))
    stride = draw(st.integers(1, 3))
    attributes = f"kernel_shape = [2], strides = [{stride}], pads = [1, 1], ceil_mode = {ceil}"
    return g.add(f"{op} <{attributes}> ({x})", 3)


def conv(draw: st.DrawFn, g: Builder, x: str) -> str:
    """On a value that is made to have two channels first."""
    if g.ranks[x] < 2:
        return x
    shaped = g.add(f"Reshape ({x}, {g.constant([0, 1, -1])})", 3)
    weight = g.constant(np.linspace(-1, 1, 6).reshape(2, 1, 3), np.float32)
    stride = draw(st.integers(1, 2))
    return g.add(f"Conv <pads = [1, 1], strides = [{stride}]> ({shaped}, {weight})", 3)


def matmul(draw: st.DrawFn, g: Builder, x: str) -> str:
    if g.ranks[x] < 2:
        return x
    shaped = g.add(f"Unsqueeze ({x}, {g.constant([-1])})", g.ranks[x] + 1)
    weight = g.constant([[0.5, -1.0, 2.0]], np.float32)
    return g.add(f"MatMul ({shaped}, {weight})", g.ranks[x] + 1)


def sibling_gemms(draw: st.DrawFn, g: Builder, x: str) -> str:
    """Two products with constants on one value, and what they give side by side."""
    shaped = g.add(f"Reshape ({x}, {g.constant([-1, 1])})", 2)
    bias = g.constant([0.5, 1.5], np.float32)
    first = g.add(f"Gemm ({shaped}, {g.constant([[1.0, -2.0]], np.float32)}, {bias})", 2)
    alpha, weight = draw(st.sampled_from([0.5, 1.0])), g.constant([[3.0], [0.5]], np.float32)
    second = g.add(f"Gemm <transB = 1, alpha = {alpha}> ({shaped}, {weight})", 2)
    return g.add(f"Concat <axis = 1> ({second}, {first})", 2)


def sibling_slices(draw: st.DrawFn, g: Builder, x: str) -> str:
    """Slices that tile an axis of three, or almost."""
    shaped = g.add(f"Unsqueeze ({x}, {g.constant([-1])})", g.ranks[x] + 1)
    wide = g.add(f"Expand ({shaped}, {g.constant([3])})", g.ranks[x] + 1)
    cut, axis = draw(st.integers(1, 2)), g.constant([-1])
    end = draw(st.sampled_from([3, 2**63 - 1, -1]))
    one = g.add(f"Slice ({wide}, {g.constant([0])}, {g.constant([cut])}, {axis})", g.ranks[wide])
    two = g.add(f"Slice ({wide}, {g.constant([cut])}, {g.constant([end])}, {axis})", g.ranks[wide])
    return g.add(f"Concat <axis = -1> ({two}, {one})", g.ranks[wide])


def pad(draw: st.DrawFn, g: Builder, x: str) -> str:
    rank = g.ranks[x]
    pads = draw(st.lists(st.integers(0, 2), min_size=2 * rank, max_size=2 * rank))
    return g.add(f"Pad ({x}, {g.constant(pads)})", rank)


def split(draw: st.DrawFn, g: Builder, x: str) -> str:
    axis = _axis(draw, g.ranks[x])
    return g.add(f"Split <axis = {axis}, num_outputs = 2> ({x})", g.ranks[x], outputs=2)


def gather(draw: st.DrawFn, g: Builder, x: str) -> str:
    index = draw(st.sampled_from([0, [0], [-1, 0]]))
    rank = g.ranks[x] - (index == 0)
    if rank == 0:
        return x
    return g.add(f"Gather <axis = {_axis(draw, g.ranks[x])}> ({x}, {g.constant(index)})", rank)


def reduce(draw: st.DrawFn, g: Builder, x: str) -> str:
    op = draw(st.sampled_from(["ReduceMean", "ReduceMax", "ReduceSum"]))
    keep = draw(st.integers(0, 1)) if g.ranks[x] > 1 else 1
    axis = g.constant([_axis(draw, g.ranks[x])])
    return g.add(f"{op} <keepdims = {keep}> ({x}, {axis})", g.ranks[x] - 1 + keep)


def expand(draw: st.DrawFn, g: Builder, x: str) -> str:
    s = g.add("Shape (x)", 1)
    d = g.add(f"Gather ({s}, {g.constant([draw(st.integers(0, 2))])})", 1)
    ones = g.constant([1] * g.ranks[x])
    target = g.add(f"Concat <axis = 0> ({d}, {ones})", 1)
    return g.add(f"Expand ({x}, {target})", g.ranks[x] + 1) if g.ranks[x] < 5 else x


def resize(draw: st.DrawFn, g: Builder, x: str) -> str:
    if g.ranks[x] != 3:
        return x
    scale = draw(st.sampled_from([2.0, 0.5, 1.5]))
    return g.add(f"Resize ({x}, , {g.constant([1, 1, scale], np.float32)})", 3)


STEPS = (
    *(unary, softmax, transpose, reshape, reshape_by_shape, reshape_by_arithmetic, flatten),
    *(unsqueeze, squeeze_back, slice_, slice_by_shape, concat, binary, affine, pool, conv),
    *(sibling_gemms, sibling_slices, matmul, pad, split, gather, reduce, expand, resize),
)


@st.composite
def chains(draw: st.DrawFn, most: int = 8) -> onnx.ModelProto:
    """A model of up to `most` steps; any float value may be an output."""
    g = Builder()
    ends = ["x"]
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=most)):
        source = ends[-1] if draw(st.integers(0, 3)) else draw(st.sampled_from(ends))
        made = step(draw, g, source)
        if made != source:
            ends.append(made)
    if len(ends) == 1:
        ends.append(g.add("Relu (x)", 3))
    more = draw(st.lists(st.sampled_from(ends[1:]), max_size=2))
    return g.model(list(dict.fromkeys([ends[-1], *more])))
