"""The recipe `openvino`: numbers worked out by hand from OpenVINO's operation specifications.

Each is asked of the witness, which runs the file as it came, and of onnxruntime, which runs what
the recipe makes of it. OpenVINO itself is asked where it is installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import surgeon
from surgeon.reference import Reference
from surgeon.runtime import Session

Array = np.ndarray[Any, Any]
F = np.float32
X = onnx.TensorProto.FLOAT
DOMAIN = "org.openvinotoolkit"


def model_of(
    operator: str,
    rank: int,
    constants: dict[str, Any],
    opset: int = 13,
    domain: str = DOMAIN,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of this one node, of constants behind its first operand."""
    node = helper.make_node(operator, ["x", *constants], ["y"], domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", X, [f"D{i}" for i in range(rank)])],
        [helper.make_tensor_value_info("y", X, [None] * rank)],
        [onnx.numpy_helper.from_array(np.asarray(v, F), k) for k, v in constants.items()],
    )
    sets = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=5 if opset < 11 else 8)


def both(model: onnx.ModelProto, x: Array, allow: tuple[str, ...] = ()) -> list[Array]:
    """What the witness says of a model, and what onnxruntime says of the result."""
    result = surgeon.apply(model, "openvino", allow=allow)
    assert result.report.status == "equivalent"
    mended = result.model.to_proto()
    assert {node.domain for node in mended.graph.node} <= {"", "ai.onnx"}
    feeds = {"x": np.asarray(x, F)}
    return [Reference(model).run(feeds)["y"], Session(mended).run(feeds, ["y"])["y"]]


def ranges(low: Any, high: Any, to_low: Any = None, to_high: Any = None) -> dict[str, Any]:
    to_low, to_high = (a if b is None else b for a, b in ((low, to_low), (high, to_high)))
    return {"low": low, "high": high, "to_low": to_low, "to_high": to_high}


@pytest.mark.parametrize("domain", [DOMAIN, ""])
@pytest.mark.parametrize("opset", [10, 13])
def test_steps_are_counted_from_the_least(opset: int, domain: str) -> None:
    # four levels 1.5, 2.5, 3.5, 4.5: what lies midway goes to the even one of 0, 1, 2, 3
    constants = ranges([1.5], [4.5], [10], [16])
    model = model_of("FakeQuantize", 1, constants, opset, domain, levels=4)
    x = [-9, 1.5, 1.9, 2.0, 2.1, 3.0, 3.1, 4.0, 4.1, 4.5, 99]
    for found in both(model, np.asarray(x, F)):
        assert found.tolist() == [10, 10, 10, 10, 12, 14, 14, 14, 16, 16, 16]


@pytest.mark.parametrize("opset", [10, 13])
def test_every_channel_has_its_range(opset: int) -> None:
    low, high = [[0.0], [-2.0]], [[3.0], [4.0]]
    model = model_of("FakeQuantize", 2, ranges(low, high), opset, levels=4)
    x = [[0.4, 1.4, 2.6, 9], [-1.1, -0.9, 1.1, 3.5]]
    for found in both(model, np.asarray(x, F)):
        assert found.tolist() == [[0, 1, 3, 3], [-2, 0, 2, 4]]


def test_a_range_without_length_says_what_is_above_it() -> None:
    model = model_of("FakeQuantize", 1, ranges([0.5], [0.5], [-1], [1]), levels=2)
    for found in both(model, np.asarray([0.4, 0.5, 0.6], F)):
        assert found.tolist() == [-1, -1, 1]


@pytest.mark.parametrize(
    ("levels", "low", "high", "kind", "zero"),
    [(256, 0, 127.5, "uint8", 0), (256, -64, 63.5, "int8", 0), (255, -63.5, 63.5, "int8", 0),
     (256, -1, 126.5, "uint8", 2), (255, 0, 127, "uint8", 0)],
)  # fmt: skip
def test_pairs_have_the_levels_that_the_ranges_say(
    levels: int, low: float, high: float, kind: str, zero: int
) -> None:
    model = model_of("FakeQuantize", 1, ranges([low], [high]), levels=levels)
    x = np.asarray([-500, low, low + 0.2, 0.3, 0.8, 1.1, high - 0.2, high, 500], F)
    expected = [low, low, low, 0.5, 1, 1, high, high, high]
    for found in both(model, x, ("approximate",)):
        assert found.tolist() == expected
    mended = surgeon.apply(model, "openvino", allow=["approximate"]).model.to_proto()
    (point,) = (t for t in mended.graph.initializer if "zero_point" in t.name)
    array = onnx.numpy_helper.to_array(point)
    assert (array.dtype.name, int(array)) == (kind, zero)


@pytest.mark.parametrize("levels", [2, 16, 255, 256])
@pytest.mark.parametrize(("to_low", "to_high"), [([[-1.0], [-4.0]], [[1.0], [4.0]]), (0.0, 3.0)])
def test_constants_are_what_the_specification_says(levels: int, to_low: Any, to_high: Any) -> None:
    generator = np.random.default_rng(3)
    weights = generator.normal(size=(2, 50)).astype(F)
    node = helper.make_node(
        "FakeQuantize", ["w", "low", "high", "to_low", "to_high"], ["q"],
        domain=DOMAIN, levels=levels,
    )  # fmt: skip
    constants = {"w": weights, **ranges([[-1.5], [-1.0]], [[1.5], [2.0]], to_low, to_high)}
    graph = helper.make_graph(
        [node, helper.make_node("Add", ["x", "q"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", X, [2, 50])],
        [helper.make_tensor_value_info("y", X, [2, 50])],
        [onnx.numpy_helper.from_array(np.asarray(v, F), k) for k, v in constants.items()],
    )
    sets = [helper.make_opsetid("", 13), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    witnessed, found = both(model, np.zeros((2, 50), F))
    np.testing.assert_allclose(found, witnessed, rtol=1e-6, atol=1e-6)
    assert not np.array_equal(found[0], found[1])


def test_swish_has_a_beta() -> None:
    for constants, beta in (({}, 1.0), ({"beta": [2.0]}, 2.0)):
        for found in both(model_of("Swish", 1, constants), np.asarray([-1, 0, 3], F)):
            wanted = [-1 / (1 + np.exp(beta)), 0, 3 / (1 + np.exp(-3 * beta))]
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_groups_are_normalised_and_channels_scaled() -> None:
    x = np.asarray([[[1, 3], [1, 3], [0, 0], [8, 8]]], F)
    constants = {"scale": [1, 2, 3, 4], "bias": [0, 1, 0, 1]}
    model = model_of("GroupNorm", 3, constants, num_groups=2, eps=0.0)
    for found in both(model, x):
        wanted = [[[-1, 1], [-1, 3], [-3, -3], [5, 5]]]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_lengths_are_of_channels_or_of_images() -> None:
    x = np.asarray([[[3, 0], [4, 5]]], F)
    own = {"weights": [1, 2]}
    for found in both(model_of("Normalize", 3, own, eps=0.0), x):
        np.testing.assert_allclose(found, [[[0.6, 0], [1.6, 2]]], rtol=1e-6)
    one = model_of("Normalize", 3, {"weights": [2]}, across_spatial=1, channel_shared=1, eps=50.0)
    for found in both(one, x):
        np.testing.assert_allclose(found, [[[0.6, 0], [0.8, 1]]], rtol=1e-6)


@pytest.mark.targets
@pytest.mark.parametrize(
    ("operator", "constants", "attributes"),
    [
        ("FakeQuantize", ranges([-4], [3.96875]), {"levels": 256}),
        ("FakeQuantize", ranges([[[-1], [-5]]], [[[1.5], [5]]], [0], [7]), {"levels": 16}),
        ("Swish", {"beta": [1.5]}, {}),
        ("GroupNorm", {"scale": [2, 3], "bias": [0.5, -1]}, {"num_groups": 2, "eps": 0.1}),
        ("Normalize", {"weights": [2, 3]}, {"eps": 0.5}),
        ("Normalize", {"weights": [2]}, {"eps": 0.5, "across_spatial": 1, "channel_shared": 1}),
    ],
)
def test_openvino_itself_says_the_same(
    operator: str, constants: dict[str, Any], attributes: dict[str, Any], tmp_path: Path
) -> None:
    openvino = pytest.importorskip("openvino")
    model = model_of(operator, 3, constants, **attributes)
    for dim, size in zip(model.graph.input[0].type.tensor_type.shape.dim, (2, 2, 40), strict=True):
        dim.dim_value = size
    onnx.save(model, tmp_path / "model.onnx")
    x = np.random.default_rng(0).normal(size=(2, 2, 40)).astype(F) * 3
    core = openvino.Core()
    read = core.read_model(tmp_path / "model.onnx")
    hint = {"INFERENCE_PRECISION_HINT": "f32"}
    (own,) = core.compile_model(read, "CPU", hint)([x]).values()
    for found in both(model, x):
        np.testing.assert_allclose(found, own, rtol=1e-5, atol=1e-5)
