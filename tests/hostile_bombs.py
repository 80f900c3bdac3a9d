"""Models that come to far more than their size: of memory, of nodes, of time."""

from collections.abc import Callable

import numpy as np
import onnx
from hostile_models import FLOAT, calling, graph_of
from onnx import helper


def bomb(op: str, *inputs: str, **tensors: np.ndarray) -> onnx.ModelProto:
    """y = x + the mean of what one node makes of constants."""
    return graph_of(
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node(op, list(inputs), ["big"]),
        helper.make_node("Cast", ["big"], ["wide"], to=FLOAT),
        helper.make_node("ReduceMean", ["wide"], ["mean"], keepdims=0),
        helper.make_node("Add", ["b", "mean"], ["y"]),
        **tensors,
    )


def doubling(times: int, *, of: str) -> onnx.ModelProto:
    """Each node gives twice what the one before gave."""
    nodes = [helper.make_node("Concat", [f"{of}", f"{of}"], ["d0"], axis=0)]
    for i in range(1, times):
        nodes.append(helper.make_node("Concat", [f"d{i - 1}", f"d{i - 1}"], [f"d{i}"], axis=0))
    nodes.append(helper.make_node("ReduceSum", [f"d{times - 1}"], ["s"], keepdims=0))
    nodes += [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["b"])]
    nodes.append(helper.make_node("Add", ["b", "s"], ["y"]))
    return graph_of(*nodes, k=np.ones(1, np.float32))


def sizes(times: int, *steps: str) -> onnx.ModelProto:
    """y = x + a size of x after so many steps, each of which says the size once more or twice."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["s0"]),
    ]
    for i in range(times):
        other = {"Mul": "three", "Div": "two"}.get(steps[i % len(steps)], f"s{i}")
        op = steps[i % len(steps)].removesuffix(" itself")
        nodes.append(helper.make_node(op, [f"s{i}", other], [f"s{i + 1}"]))
    nodes.append(helper.make_node("Cast", [f"s{times}"], ["s"], to=FLOAT))
    nodes += [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["b"])]
    nodes.append(helper.make_node("Add", ["b", "s"], ["y"]))
    return graph_of(*nodes, zero=np.array(0), two=np.array(2), three=np.array(3))


def function_bomb() -> onnx.ModelProto:
    model = calling(first="f0")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    for i in range(40):
        op, domain = (f"f{i + 1}", "own") if i < 39 else ("Neg", "")
        nodes = [
            helper.make_node(op, ["p"], ["r"], domain=domain),
            helper.make_node(op, ["r"], ["q"], domain=domain),
        ]
        model.functions.append(helper.make_function("own", f"f{i}", ["p"], ["q"], nodes, opsets))
    return model


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


ONE = np.ones((1, 1), np.float32)
BOMBS: dict[str, Callable[[], onnx.ModelProto]] = {
    "ConstantOfShape": lambda: bomb("ConstantOfShape", "s", s=i64(100_000, 100_000)),
    "ConstantOfShape of 2^62": lambda: bomb("ConstantOfShape", "s", s=i64(2**62, 4)),
    "ConstantOfShape of -1": lambda: bomb("ConstantOfShape", "s", s=i64(-1, 4)),
    "Expand": lambda: bomb("Expand", "k", "s", k=ONE, s=i64(10_000, 10_000_000)),
    "Tile": lambda: bomb("Tile", "k", "s", k=ONE, s=i64(100_000, 1_000_000)),
    "Tile of 2^62": lambda: bomb("Tile", "k", "s", k=ONE, s=i64(2**62, 2**62)),
    "Range": lambda: bomb("Range", "z", "n", "o", z=np.array(0), n=np.array(10**10), o=np.array(1)),
    "Range of floats": lambda: bomb(
        "Range", "z", "n", "o", z=np.float32(0), n=np.float32(1e30), o=np.float32(1e-30)
    ),
    "Range of step 0": lambda: bomb(
        "Range", "z", "n", "o", z=np.array(0), n=np.array(10), o=np.array(0)
    ),
    "OneHot": lambda: bomb(
        "OneHot", "k", "n", "v", k=i64(0), n=np.array(10**12), v=np.array([0, 1], np.float32)
    ),
    "Pad": lambda: bomb("Pad", "k", "s", k=ONE, s=i64(10**6, 10**6, 10**6, 10**6)),
    "Reshape": lambda: bomb("Reshape", "k", "s", k=ONE, s=i64(2**40, 2**40)),
    "NonZero": lambda: bomb("NonZero", "k", k=ONE),
    "41 Concats of a constant": lambda: doubling(41, of="k"),
    "41 Concats of the input": lambda: doubling(41, of="x"),
    "functions that call twice": function_bomb,
    "a size times three halves, 300 times": lambda: sizes(600, "Mul", "Div"),
    "a size squared 40 times": lambda: sizes(40, "Mul itself"),
    "a size squared and tripled 40 times": lambda: sizes(80, "Mul itself", "Mul", "Div"),
}
