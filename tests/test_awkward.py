"""Recipes for awkward standard operators, at drawn sizes, against definitions or onnxruntime."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import surgeon
from surgeon.runtime import Session

SEEDS = range(4)
DRAWS = 12
Array = np.ndarray[Any, np.dtype[Any]]
pytestmark = pytest.mark.slow


def model_of(
    node: onnx.NodeProto,
    opset: int,
    inputs: dict[str, tuple[int, Sequence[int | str]]],
    constants: dict[str, Array],
) -> onnx.ModelProto:
    """One node; the rank of its output is that of its first input."""
    rank = len(next(iter(inputs.values()))[1])
    out = helper.make_tensor_value_info("y", 1, [f"o{i}" for i in range(rank)])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, *what) for n, what in inputs.items()],
        [out],
        [onnx.numpy_helper.from_array(a, n) for n, a in constants.items()],
    )
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9 if opset > 18 else 8)


def repaired(model: onnx.ModelProto, recipe: str, operator: str) -> onnx.ModelProto | None:
    """The result without the operator; None where the recipe refuses."""
    result = surgeon.apply(model, recipe, verify=False)
    if not result.report.changes:
        assert result.report.misses, "a refusal has a reason"
        return None
    found = result.model.to_proto()
    assert all(node.op_type != operator for node in found.graph.node)
    return found


def agrees(model: onnx.ModelProto, feeds: dict[str, Array], expected: Array) -> None:
    actual = Session(model).run(feeds, ["y"])["y"]
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    spread = max(float(np.abs(expected).max(initial=0.0)), 1.0)
    assert np.abs(actual - expected).max(initial=0.0) <= 2e-5 * spread


def drawn(shape: Sequence[int], draw: random.Random) -> Array:
    return np.random.default_rng(draw.randrange(1 << 30)).normal(size=shape).astype(np.float32)


def test_convolutions_with_computed_weights() -> None:
    for seed in SEEDS:
        draw = random.Random(seed)
        for _ in range(DRAWS):
            rank, groups, count = draw.randint(1, 3), draw.randint(1, 3), draw.randint(1, 3)
            kernel = [draw.randint(1, 3) for _ in range(rank)]
            cin, cout = draw.randint(1, 3), draw.randint(1, 2)
            x = drawn([count, groups * cin, *(draw.randint(6, 9) for _ in kernel)], draw)
            w = drawn([groups * cout, cin, *kernel], draw)
            free = [draw.choice([n, f"s{i}"]) for i, n in enumerate(x.shape[2:])]
            node = helper.make_node(
                "Conv",
                ["x", "w"],
                ["y"],
                group=groups,
                strides=[draw.randint(1, 2) for _ in kernel],
                dilations=[draw.randint(1, 2) for _ in kernel],
                pads=[draw.randint(0, 2) for _ in range(2 * rank)],
            )
            shapes = {"x": (1, [draw.choice([count, "N"]), x.shape[1], *free]), "w": (1, w.shape)}
            model = model_of(node, draw.choice([9, 11, 13, 18]), shapes, {})
            result = repaired(model, "computed-conv", "")
            assert result is not None
            computed = {"x", "w"} | {o for n in result.graph.node for o in n.output}
            convolutions = [n for n in result.graph.node if n.op_type == "Conv"]
            assert not any(n.input[1] in computed for n in convolutions)
            feeds = {"x": x, "w": w}
            agrees(result, feeds, Session(model).run(feeds, ["y"])["y"])


def test_pads() -> None:
    fired = 0
    for seed in SEEDS:
        draw = random.Random(seed)
        for _ in range(3 * DRAWS):
            opset, rank = draw.choice([9, 11, 13, 18, 19]), draw.randint(1, 4)
            mode = draw.choice(["constant", "reflect", "edge", *(["wrap"] if opset > 18 else [])])
            lowest = -1 if mode == "constant" else 0
            pads = [draw.randint(lowest, 2) for _ in range(2 * rank)]
            x = drawn([draw.randint(3, 5) for _ in range(rank)], draw)
            shapes = {"x": (1, [draw.choice([n, f"s{i}"]) for i, n in enumerate(x.shape)])}
            if opset < 11:
                node = helper.make_node("Pad", ["x"], ["y"], mode=mode, pads=pads, value=1.5)
                model = model_of(node, opset, shapes, {})
            else:
                node = helper.make_node("Pad", ["x", "p", "v"], ["y"], mode=mode)
                constants = {"p": np.array(pads), "v": np.array(1.5, np.float32)}
                model = model_of(node, opset, shapes, constants)
            result = repaired(model, "pad-to-concat", "Pad")
            if result is None:
                assert mode == "wrap" or not any(pads)
                continue
            fired += 1
            cuts = tuple(
                slice(max(-a, 0), n - max(-b, 0))
                for n, a, b in zip(x.shape, pads[:rank], pads[rank:], strict=True)
            )
            widths = [(max(a, 0), max(b, 0)) for a, b in zip(pads[:rank], pads[rank:], strict=True)]
            more: dict[str, Any] = {"constant_values": 1.5} if mode == "constant" else {}
            agrees(result, {"x": x}, np.pad(x[cuts], widths, mode=mode, **more))  # type: ignore[call-overload]
    assert fired > DRAWS


def added_up(
    x: Array,
    image: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> Array:
    """Col2Im by its definition, element by element."""
    axes = range(len(kernel))
    reach = [dilations[i] * (kernel[i] - 1) + 1 for i in axes]
    padded = [image[i] + pads[i] + pads[i + len(kernel)] for i in axes]
    counts = [(padded[i] - reach[i]) // strides[i] + 1 for i in axes]
    columns = x.reshape(len(x), -1, *kernel, *counts)
    y = np.zeros((len(x), columns.shape[1], *image), x.dtype)
    every = (slice(None), slice(None))
    for tap in itertools.product(*map(range, kernel)):
        for step in itertools.product(*map(range, counts)):
            at = [step[i] * strides[i] - pads[i] + tap[i] * dilations[i] for i in axes]
            if all(0 <= p < n for p, n in zip(at, image, strict=True)):
                y[(*every, *at)] += columns[(*every, *tap, *step)]
    return y


def test_windows_added_up() -> None:
    """Held against the definition: onnxruntime 1.31 is wrong on dilated windows of three axes."""
    for seed in SEEDS:
        draw = random.Random(seed)
        for _ in range(DRAWS):
            kernel = [draw.randint(1, 3) for _ in range(draw.randint(1, 3))]
            dilations = [draw.randint(1, 2) for _ in kernel]
            image = [draw.randint(5, 8) for _ in kernel]
            strides = [draw.choice([1, 2, k]) for k in kernel]
            pads = [draw.randint(0, 1) for _ in range(2 * len(kernel))]
            count = 1
            for i, k in enumerate(kernel):
                room = image[i] + pads[i] + pads[i + len(kernel)] - dilations[i] * (k - 1) - 1
                count *= room // strides[i] + 1
            x = drawn([2, draw.randint(1, 3) * int(np.prod(kernel)), count], draw)
            attributes = {"strides": strides, "dilations": dilations, "pads": pads}
            node = helper.make_node("Col2Im", ["x", "i", "b"], ["y"], **attributes)
            shapes = {"x": (1, [draw.choice(["N", 2]), *x.shape[1:]])}
            constants = {"i": np.array(image), "b": np.array(kernel)}
            model = model_of(node, 18, shapes, constants)
            model.graph.output[0].type.tensor_type.ClearField("shape")
            result = repaired(model, "col2im-to-conv-transpose", "Col2Im")
            assert result is not None
            agrees(result, {"x": x}, added_up(x, image, kernel, strides, dilations, pads))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resizes(mode: str) -> None:
    fired = 0
    for seed in SEEDS:
        draw = random.Random(seed)
        for _ in range(2 * DRAWS):
            opset = draw.choice([11, 13, 18, 19])
            x = drawn([2, 3, draw.randint(2, 7), draw.randint(2, 7)], draw)
            places = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
            attributes: dict[str, Any] = {
                "mode": mode,
                "coordinate_transformation_mode": draw.choice(places),
            }
            if mode == "nearest":
                kinds = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]
                attributes["nearest_mode"] = draw.choice(kinds)
            constants: dict[str, Array] = {"empty": np.zeros(0, np.float32)}
            if draw.random() < 0.5:
                scales = [1, 1, *(draw.choice([1, 2, 3, 0.5, 1.7, 2.5]) for _ in range(2))]
                constants["scales"] = np.array(scales, np.float32)
                names = ["x", "empty", "scales"]
            else:
                sizes = [2, 3, draw.randint(1, 9), draw.randint(1, 9)]
                constants["sizes"] = np.array(sizes)
                names = ["x", "empty", "empty", "sizes"]
            shapes = {"x": (1, ["N", 3, *x.shape[2:]] if "scales" in constants else x.shape)}
            node = helper.make_node("Resize", names, ["y"], **attributes)
            model = model_of(node, opset, shapes, constants)
            result = repaired(model, "resize-decompose", "Resize")
            if result is None:
                continue
            fired += 1
            agrees(result, {"x": x}, Session(model).run({"x": x}, ["y"])["y"])
    assert fired > DRAWS
