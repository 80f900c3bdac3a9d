"""Steps of quantisation-aware training: those of the range that was seen, as PyTorch takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from aten_call import HAS_TORCH
from aten_layer import normal
from aten_node import Written, expected, lowered, torch_witness
from complex_graphs import agree, mended, model_of
from onnx import helper

from surgeon.builders.aten_math.ranges import chosen
from surgeon.errors import LeftoverError
from surgeon.reference.arguments import Call

NAMES = "x off on least most step zero part low high axis rows even".split()


def nodes_of(least: Any, most: Any, low: int, high: int, **rest: Any) -> list[Any]:
    """A file whose step is none of this range: PyTorch chooses it anew."""
    values = {
        "off": np.array([0]),
        "on": np.array([1]),
        "least": np.float32(least),
        "most": np.float32(most),
        "step": np.full(np.shape(least), 0.3, np.float32),
        "zero": np.full(np.shape(least), 1, np.int32),
        **{"part": 0.01, "low": low, "high": high, "axis": 1, "rows": False, "even": False},
        **rest,
    }
    operator = {"operator": "fused_moving_avg_obs_fake_quant", "overload_name": ""}
    return [
        *(
            helper.make_node(
                "Constant", [], [name], value=onnx.numpy_helper.from_array(np.asarray(value))
            )
            for name, value in values.items()
        ),
        helper.make_node("ATen", NAMES, ["y"], domain="org.pytorch.aten", **operator),
    ]


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("even", [False, True])
def test_an_observer_that_is_off_has_the_steps_of_its_range(even: bool, opset: int) -> None:
    feeds = {"x": normal(3, 4, 5)}
    for low, high in ((-128, 127), (0, 255), (0, 127)):
        agree(nodes_of([-1.1], [2.3], low, high, even=even), feeds, opset)
        agree(nodes_of([0.2], [2.3], low, high, even=even), feeds, opset)
        least, most = [-1.1, -0.3, 0.0, -2.0], [2.3, 1.7, 2.0, 0.0]
        agree(nodes_of(least, most, low, high, even=even, rows=True), feeds, opset)


def test_an_observer_that_has_seen_nothing_is_refused() -> None:
    feeds = {"x": normal(3, 4, 5)}
    with pytest.raises(LeftoverError, match="its observer has seen no range"):
        mended(model_of(nodes_of([np.inf], [-np.inf], 0, 255), feeds), feeds)
    nodes = nodes_of([np.inf], [-np.inf], 0, 255, on=np.array([0]))
    np.testing.assert_array_equal(mended(model_of(nodes, feeds), feeds), feeds["x"])


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch's own choice")
def test_steps_are_pytorchs_to_the_bit() -> None:
    import torch

    random = np.random.default_rng(3)
    off, on = torch.tensor([0]), torch.tensor([1])
    for index in range(400):
        low, high = [(-128, 127), (0, 255), (0, 127), (-8, 7)][index % 4]
        a, b = np.float32(random.normal(size=2) * 10 ** random.uniform(-12, 3, 2))
        least, most = min(a, b), max(a, b, np.float32(index % 5 == 0))
        if index % 2:  # 0 near the middle between two levels
            level, step_of_it = random.integers(0, 255), 10 ** random.uniform(-3, 2)
            least = np.float32(-(level + 0.5) * step_of_it)
            most = np.float32((254.5 - level) * step_of_it)
        step, zero = torch.ones(1), torch.zeros(1, dtype=torch.int32)
        seen = torch.tensor([least]), torch.tensor([most])
        rest = [0.01, low, high, 0, False, index % 3 == 0]
        torch.ops.aten.fused_moving_avg_obs_fake_quant(
            torch.zeros(1, 3), off, on, *seen, step, zero, *rest
        )
        found = chosen(np.array([least]), np.array([most]), low, high, symmetric=bool(rest[-1]))
        assert [each.item() for each in found] == [step.item(), zero.item()], (least, most, rest)


@pytest.mark.parametrize("dtype", ["f2", "f8"])
@pytest.mark.parametrize("opset", [9, 13])
def test_steps_of_half_and_double_precision(dtype: str, opset: int) -> None:
    x = (normal(3, 2000) * 3).astype(dtype)
    step, zero = np.array([0.013], np.float32), np.array([3], np.int32)
    steps, zeros = np.array([0.1, 0.2, 0.3], np.float32), np.array([0, 1, 2], np.int32)
    between = np.array([0, 1.4, 2.5], np.float32)
    calls: list[tuple[str, list[Any]]] = [
        ("fake_quantize_per_tensor_affine", [x, 0.1, 3, -128, 127]),
        ("fake_quantize_per_tensor_affine.tensor_qparams", [x, step, zero, 0, 255]),
        ("fake_quantize_per_channel_affine", [x, steps, zeros, 0, 0, 255]),
        ("fake_quantize_per_channel_affine", [x, steps, between, 0, 0, 255]),
        ("_fake_quantize_learnable_per_channel_affine", [x, steps, between, 0, 0, 255, 1.0]),
    ]
    for operator, arguments in calls:
        (wanted,) = expected(operator, arguments)
        if (torch := torch_witness()) is not None:
            call = Call(operator.partition(".")[0], operator.partition(".")[2], {})
            theirs = torch(call, [np.asarray(each) for each in arguments], where="test")
            np.testing.assert_array_equal(wanted, theirs, strict=True)
        (made,) = lowered(
            Written(operator, arguments, "A+", opset, dynamic=False), [wanted], recipe="aten"
        )
        np.testing.assert_array_equal(made, wanted, strict=True)
