"""Short frames and back, of real and complex signals in either precision; and PyTorch's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from aten_layer import normal
from complex_graphs import agree, aten, mended, model_of
from onnx import helper

from surgeon.errors import LeftoverError
from surgeon.reference import Reference

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

HANNING = np.hanning(14)[1:-1] + 0.1
TURNING = HANNING * np.exp(1j * np.arange(12))
OF_DOUBLE = {np.float32: np.complex64, np.float64: np.complex128}
READ = aten("view_as_real", ["p"], "y")


def constants(window: Any, **numbers: Any) -> list[Any]:
    values = {"n": 16, "five": 5, "four": 4, "w": 12, "yes": True, "no": False, "thirty": 30}
    return [
        helper.make_node("Constant", [], [k], value=onnx.numpy_helper.from_array(np.asarray(v)))
        for k, v in {**values, "win": window, **numbers}.items()
    ]


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("turning", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_frames(dtype: Any, turning: bool, opset: int) -> None:
    window = TURNING.astype(OF_DOUBLE[dtype]) if turning else HANNING.astype(dtype)
    asked = ["", "no"] if turning else ["", "yes", "no"]
    for one in asked:
        operands = ["n", "five", "w", "win", "yes", one, "yes"]
        nodes = [*constants(window), aten("stft", ["x", *operands], "p"), READ]
        for signal in (normal(2, 64), normal(64)):
            agree(nodes, {"x": signal.astype(dtype)}, opset)
        if one == "yes":
            continue
        begin = aten("view_as_complex", ["z"], "a")
        nodes = [*constants(window), begin, aten("stft", ["a", *operands], "p"), READ]
        for signal in (normal(2, 64, 2), normal(64, 2)):
            agree(nodes, {"z": signal.astype(dtype)}, opset)


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("rows", [9, 16])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_signals_of_frames(dtype: Any, rows: int, opset: int) -> None:
    """Of all frequencies too: a real signal is of the first half of them, whatever the others."""
    begin = [*constants(HANNING.astype(dtype)), aten("view_as_complex", ["z"], "a")]
    for hop, length in (("four", ""), ("five", "thirty"), ("n", "thirty")):
        window = "win" if hop != "n" else ""
        width = "w" if hop != "n" else "n"
        operands = ["a", "n", hop, width, window, "yes", "no", "", length]
        for spectrum in (normal(2, rows, 9, 2), normal(rows, 9, 2)):
            feeds = {"z": spectrum.astype(dtype)}
            agree([*begin, aten("istft", [*operands, "no"], "y")], feeds, opset)
            if rows == 16:
                agree([*begin, aten("istft", [*operands, "yes"], "p"), READ], feeds, opset)


def test_frames_of_as_many_samples_as_there_are() -> None:
    nodes = [
        *constants(HANNING)[:-1],
        aten("stft", ["x", "n", "five", "n", "", "no", "", "yes"], "p"),
        aten("istft", ["p", "n", "five", "n", "", "no", "no", "", "", "no"], "y"),
    ]
    for opset in (9, 17):
        model = model_of(nodes, {"x": np.zeros((2, 64))}, opset)
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "T"
        for length in (61, 64, 16):
            feeds = {"x": normal(2, length).astype(np.float64)}
            (wanted,) = Reference(model).run(feeds).values()
            np.testing.assert_allclose(mended(model, feeds), wanted, rtol=1e-9, atol=1e-9)


def test_half_the_frequencies_of_complex_values_are_refused() -> None:
    operands = ["a", "n", "five", "w", "win", "yes", "yes", "yes"]
    nodes = [*constants(HANNING.astype(np.float32)), aten("view_as_complex", ["z"], "a")]
    nodes += [aten("stft", operands, "p"), READ]
    with pytest.raises(LeftoverError, match="half of its frequencies is asked for"):
        mended(model_of(nodes, {"z": normal(2, 64, 2)}), {"z": normal(2, 64, 2)})


@pytest.mark.parametrize(
    ("version", "length"), [("1.6", 53), ("1.9", 53), ("1.12", 60), ("2.0", None), ("2.4", 61)]
)
def test_the_end_of_what_is_not_centred_was_left_out(version: str, length: int | None) -> None:
    """As PyTorch 1.6 to 1.12, and 2.4, give it."""
    nodes = [
        *constants(HANNING)[:-1],
        aten("stft", ["x", "n", "five", "n", "", "no", "", "yes"], "p"),
        aten("istft", ["p", "n", "five", "n", "", "no", "no", "", "", "no"], "y"),
    ]
    feeds = {"x": normal(2, 64).astype(np.float64)}
    model = model_of(nodes, feeds, 17)
    model.producer_name, model.producer_version = "pytorch", version
    if length is None:
        with pytest.raises(LeftoverError, match="left its last element out"):
            mended(model, feeds)
        return
    (wanted,) = Reference(model).run(feeds).values()
    np.testing.assert_allclose(wanted, feeds["x"][:, :length])
    np.testing.assert_allclose(mended(model, feeds), wanted, rtol=1e-9, atol=1e-9)
