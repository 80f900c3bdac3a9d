"""Fourier transforms that fell back, and arithmetic of complex values."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from aten_layer import Call, Held, holds, normal, refuses
from onnx import helper

import surgeon

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transforms(dtype: Any) -> None:
    x = normal(3, 8, 5, dtype=dtype)
    for operator, dim, n, norm in itertools.product(
        ("fft_fft", "fft_ifft", "fft_rfft"), (-1, 1), (None, 4, 9), (None, "ortho", "forward")
    ):
        for after in ("view_as_real", "abs", "imag"):
            holds(Call(operator, [x, n, dim, norm], after=after, opset=9), witness=after != "abs")
        if n is None and norm is None:
            holds(Call(operator, [x, n, dim, norm], after="view_as_real", dynamic=True, opset=11))


def test_inverse_of_a_half_spectrum() -> None:
    x = normal(2, 7, 5, 2)
    for n, norm in itertools.product((None, 8, 7, 11), (None, "ortho")):
        before: list[tuple[str, list[Any]]] = [("view_as_complex", [])]
        holds(Call("fft_irfft", [x, n, 1, norm], before=before), tolerance=5e-5)
    before = [("fft_rfft", [None, -1, None]), ("mul", [0.5])]
    call = Call("fft_irfft", [normal(2, 16), None, -1, None], before=before)
    holds(call)


def test_arithmetic_of_complex_values() -> None:
    x = normal(3, 8)
    spectrum: tuple[str, list[Any]] = ("fft_fft", [None, -1, None])
    for after in ("view_as_real", "real", "imag"):
        for operator, rest in (("add", [0.5, 1]), ("sub", [2, 1]), ("mul", [0.5]), ("div", [3.0])):
            holds(Call(operator, [x, *rest], before=[spectrum], after=after))
        for operator in ("neg", "_conj"):
            holds(Call(operator, [x], before=[spectrum], after=after))
        holds(Call("add", [x, normal(8), 1], before=[spectrum], after=after))
        holds(Call("sub", [x[:1], x, 1], before=[spectrum], after=after))
    refuses(Call("mul", [x, normal(8).astype("d")], before=[spectrum], after="imag"), "in double")
    holds(Call("add", [x, 0.5, 2], before=[spectrum], after="imag"))


def test_a_filter_of_spectra() -> None:
    def node(kind: str, names: list[str], made: str) -> Any:
        attributes = {"operator": kind, "overload_name": ""}
        return helper.make_node("ATen", names, [made], domain="org.pytorch.aten", **attributes)

    nodes = [
        node("fft_rfft2", ["x"], "c"),
        node("view_as_complex", ["w"], "f"),
        node("mul", ["c", "f"], "p"),
        node("sub", ["p", "c"], "d"),
        node("fft_irfft2", ["d"], "y"),
    ]
    inputs = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 8, 6]),
        helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [8, 4, 2]),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("org.pytorch.aten", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    result = surgeon.apply(model, "aten-nn")
    assert result.report.verdict.status == "equivalent"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transforms_of_several_axes(dtype: Any) -> None:
    x = normal(3, 8, 5, dtype=dtype)
    for kind, norm in itertools.product(("fft", "ifft", "rfft"), (None, "ortho", "forward")):
        for sizes, axes in ((None, [-2, -1]), ([4, 6], [0, 2]), (None, [1])):
            operands = [x, sizes, axes, norm]
            holds(Call(f"fft_{kind}2", operands, after="view_as_real"))
            holds(Call(f"fft_{kind}n", operands, after="imag", opset=9))
        holds(Call(f"fft_{kind}n", [x, None, None, norm], after="view_as_real"))
        holds(Call(f"fft_{kind}n", [x, [6, 4], None, norm], after="view_as_real"))
        holds(Call(f"fft_{kind}2", [x, [-1, 4], [0, 1], norm], after="real"))
    before: list[tuple[str, list[Any]]] = [("view_as_complex", [])]
    for norm, sizes in itertools.product((None, "ortho"), (None, [6, 9], [-1, 7], [4, -1])):
        for operator in ("fft_irfft2", "fft_irfftn"):
            operands = [normal(3, 8, 5, 2, dtype=dtype), sizes, [-2, -1], norm]
            holds(Call(operator, operands, before=before), tolerance=5e-5)


_PADDED = ((True, "reflect"), (True, "constant"), (True, "circular"), (False, "reflect"))


def test_short_time_transforms() -> None:
    window = Held(np.hanning(17)[:16].astype(np.float32))
    x = normal(2, 70)
    for hop, normalized, onesided in itertools.product((4, 8), (False, True), (True, False)):
        operands = [x, 16, hop, 16, None, normalized, onesided, True, None]
        for dynamic in (False, True):
            holds(Call("stft", operands, after="view_as_real", dynamic=dynamic), tolerance=5e-5)
        for center, mode in _PADDED:
            operands = [x, 16, hop, 16, window, center, mode, normalized, onesided, True, None]
            holds(Call("stft", operands, after="view_as_real"), tolerance=5e-5)
    spectrum = normal(2, 9, 6, 2)
    for normalized, length in itertools.product((False, True), (None, 36)):
        operands = [spectrum, 16, 8, 16, None, True, normalized, None, length, False]
        before: list[tuple[str, list[Any]]] = [("view_as_complex", [])]
        holds(Call("istft", operands, before=before), tolerance=5e-5)


@pytest.mark.parametrize(("size", "width"), [(16, 12), (16, 16), (14, 8)])
def test_windows_and_not_frames_side_by_side(size: int, width: int) -> None:
    """PyTorch 2.8 and newer, by `align_to_window`."""
    window = Held(np.hanning(width + 1)[:width].astype(np.float32))
    for x, hop in itertools.product((normal(2, 71), normal(70)), (4, 7)):
        for aligned in (True, False):
            operands = [x, size, hop, width, window, False, None, True, aligned]
            holds(Call("stft", operands, after="view_as_real"), tolerance=5e-5)
        operands = [x, size, hop, width, window, False, "reflect", False, None, True, True]
        holds(Call("stft", operands, after="view_as_real"), tolerance=5e-5)


def test_a_window_of_doubles_makes_doubles() -> None:
    rest = [16, 4, 16, Held(np.hanning(16)), False, None, True]
    refuses(Call("stft", [normal(2, 70), *rest], after="view_as_real"), "window of float64")


def test_the_old_rfft() -> None:
    for normalized, onesided in itertools.product((False, True), (False, True)):
        holds(Call("rfft", [normal(3, 10), 1, normalized, onesided], spelling="A", opset=9))


def test_complex_values_that_leave_are_refused() -> None:
    refuses(Call("fft_irfft", [normal(2, 9).astype(np.complex64), None, -1, None]), "complex")
