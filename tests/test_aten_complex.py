"""Complex values between real ones: lowered, witnessed, and PyTorch's own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from aten_layer import Call, holds, normal
from complex_graphs import agree, aten, mended, model_of
from onnx import helper

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

VIEWED: list[tuple[str, list[Any]]] = [("view_as_complex", [])]
X, Z, W = normal(3, 8, 5), normal(3, 8, 5, 2), normal(3, 8, 5, 2)
DOUBLE = X.astype(np.float64)
NORMS = (None, "ortho", "forward", "backward")


def test_hermitian_transforms() -> None:
    for n, norm, dim in itertools.product((None, 6, 9), NORMS, (-1, 1)):
        holds(Call("fft_hfft", [Z, n, dim, norm], before=VIEWED), tolerance=5e-5)
        holds(Call("fft_ihfft", [X, n, dim, norm], after="view_as_real"))
    for norm, (sizes, axes) in itertools.product(
        NORMS, ((None, [-2, -1]), ([4, 6], [0, 2]), (None, [1]))
    ):
        for kind in ("2", "n"):
            operands = [Z, sizes, axes, norm]
            holds(Call(f"fft_hfft{kind}", operands, before=VIEWED), tolerance=1e-4)
            operands = [X, sizes, axes, norm]
            holds(Call(f"fft_ihfft{kind}", operands, after="view_as_real"))


def test_transforms_by_their_names_after_decomposition() -> None:
    for mode, dim in itertools.product((0, 1, 2), ([2], [1, 2], [0, 1])):
        for one in (True, False):
            holds(Call("_fft_r2c", [X, dim, mode, one], after="view_as_real"))
            holds(Call("_fft_r2c", [DOUBLE, dim, mode, one], after="imag", opset=9))
            operands = [Z, dim, mode, one]
            holds(Call("_fft_c2c", operands, before=VIEWED, after="view_as_real"), tolerance=5e-5)
        for size in (8, 9):
            operands = [normal(5, 5, 5, 2), dim, mode, size]
            holds(Call("_fft_c2r", operands, before=VIEWED), tolerance=1e-4)


def test_a_real_spectrum_goes_back_too() -> None:
    holds(Call("fft_irfft", [X, None, 1, None]))
    holds(Call("fft_hfft", [X, 7, 1, "ortho"]))
    whole = np.round(X * 4)
    for dtype in (np.int64, np.uint8, np.bool_):
        holds(Call("fft_irfft", [np.abs(whole).astype(dtype), None, 1, None]))
        holds(Call("fft_hfft", [np.abs(whole).astype(dtype), 7, 1, "ortho"], opset=9))
        holds(Call("fft_irfftn", [np.abs(whole).astype(dtype), None, [0, 2], None]))


def test_data_movement_of_complex_values() -> None:
    moves: list[tuple[str, list[Any]]] = [
        ("reshape", [[3, 4, -1]]),
        ("view", [[24, 5]]),
        ("permute", [[2, 0, 1]]),
        ("transpose", [0, -1]),
        ("unsqueeze", [1]),
        ("expand", [[2, 3, 8, 5]]),
        ("select", [1, -2]),
        ("slice", [1, 1, 7, 1]),
        ("narrow", [2, 1, 3]),
        ("flip", [[0, 2]]),
        ("roll", [[1], [2]]),
        ("flatten", [1, 2]),
        ("swapdims", [0, 2]),
        ("moveaxis", [0, -1]),
        ("mT", []),
        ("numpy_T", []),
        ("repeat", [[2, 1, 1]]),
        ("index_select", [1, np.array([2, 0, 2])]),
    ]
    overloads = {"transpose": "int", "select": "int", "slice": "Tensor", "moveaxis": "int"}
    for (operator, rest), opset in itertools.product(moves, (9, 17)):
        call = Call(operator, [Z, *rest], before=VIEWED, after="view_as_real", opset=opset)
        call.overload = overloads.get(operator, "")
        holds(call)


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("reader", ["view_as_real", "real", "imag", "abs"])
def test_arithmetic_of_two_complex_values(opset: int, reader: str) -> None:
    begin = [aten("view_as_complex", ["z"], "a"), aten("view_as_complex", ["w"], "b")]
    feeds = {"z": Z, "w": W}
    for operator in ("mul", "add", "sub", "div"):
        nodes = [*begin, aten(operator, ["a", "b"], "c"), aten(reader, ["c"], "y")]
        agree(nodes, feeds, opset)
    nodes = [*begin, aten("exp", ["a"], "c"), aten("mul", ["c", "b"], "d")]
    agree([*nodes, aten(reader, ["d"], "y")], feeds, opset)
    nodes = [begin[0], aten("div", ["w", "a"], "c"), aten(reader, ["c"], "y")]
    agree(nodes, {"z": Z, "w": X}, opset)


@pytest.mark.parametrize("opset", [9, 17])
def test_values_made_of_two_parts(opset: int) -> None:
    for operator in ("complex", "polar"):
        for first, second in ((X, X * 2), (X[:, :1], X[0]), (DOUBLE, DOUBLE[0])):
            nodes = [aten(operator, ["p", "q"], "c"), aten("view_as_real", ["c"], "y")]
            if operator == "polar" and first.shape != second.shape:
                first = np.ones_like(second)
            agree(nodes, {"p": np.abs(first), "q": second}, opset)


@pytest.mark.parametrize(("number", "kind"), [(9, np.float32), (10, np.float64)])
def test_real_values_are_taken_into_complex_ones(number: int, kind: Any) -> None:
    feeds = {
        "r": np.linspace(-1, 1, 5, dtype=kind),
        "i": np.linspace(0, 2, 5, dtype=kind),
        "x": np.linspace(-3, 3, 15, dtype=np.float32).reshape(3, 5),
    }
    constants = {"size": [3, 5], "number": number, "no": False, "one": 1}
    nodes = [
        helper.make_node(
            "Constant", [], [name], value=onnx.numpy_helper.from_array(np.array(value))
        )
        for name, value in constants.items()
    ]
    nodes += [
        aten("complex", ["r", "i"], "c"),
        aten("zeros", ["size", "number"], "state"),
        aten("add", ["state", "c", "one"], "sum"),
        aten("to", ["x", "number", "no", "no"], "wide", "dtype"),
        aten("add", ["sum", "wide", "one"], "all"),
        aten("view_as_real", ["all"], "y"),
    ]
    agree(nodes, feeds)
    feeds["x"][0, 0] = np.inf  # of which a product with 0 would be no zero
    wide = [*nodes[:4], nodes[-3], aten("view_as_real", ["wide"], "y")]
    agree(wide, {"x": feeds["x"]})


def test_the_size_of_a_spectrum_is_that_of_its_parts() -> None:
    feeds = {"x": np.ones((3, 8), np.float32)}
    for kind, wanted in (("size", [3, 5]), ("numel", 15)):
        nodes = [aten("fft_rfft", ["x"], "c"), aten(kind, ["c"], "y")]
        assert mended(model_of(nodes, feeds), feeds).tolist() == wanted


def test_matrices_of_complex_values() -> None:
    begin = [aten("view_as_complex", ["z"], "a"), aten("view_as_complex", ["w"], "b")]
    feeds = {"z": Z, "w": np.ascontiguousarray(W.swapaxes(1, 2))}
    nodes = [*begin, aten("matmul", ["a", "b"], "c"), aten("view_as_real", ["c"], "y")]
    agree(nodes, feeds)
    nodes = [begin[0], aten("matmul", ["a", "w"], "c"), aten("view_as_real", ["c"], "y")]
    feeds = {"z": Z, "w": normal(5, 4)}  # of which PyTorch wants one dtype
    made = (Z[..., 0] + 1j * Z[..., 1]) @ feeds["w"]
    found = mended(model_of(nodes, feeds), feeds)
    np.testing.assert_allclose(found, np.stack([made.real, made.imag], -1), rtol=5e-5, atol=5e-5)


@pytest.mark.parametrize("opset", [11, 17])
def test_positions_turned_as_exporters_write_it(opset: int) -> None:
    """Rotary positions: standard operators between the complex ones, and a complex constant."""
    x = normal(2, 6, 3, 8)
    turns = np.exp(1j * normal(6, 4)).astype(np.complex64)

    def constant(name: str, value: Any) -> Any:
        array = np.asarray(value) if np.iscomplexobj(value) else np.asarray(value, np.int64)
        return helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(array))

    nodes = [
        constant("pairs", [0, 0, 0, -1, 2]),
        helper.make_node("Reshape", ["x", "pairs"], ["r"]),
        aten("view_as_complex", ["r"], "c"),
        constant("turns", turns),
        constant("wide", [1, 6, 1, 4]),
        helper.make_node("Reshape", ["turns", "wide"], ["t"]),
        helper.make_node("Mul", ["c", "t"], ["p"]),
        helper.make_node("Transpose", ["p"], ["q"], perm=[0, 2, 1, 3]),
        aten("view_as_real", ["q"], "y"),
    ]
    value = (x[..., ::2] + 1j * x[..., 1::2]) * turns.reshape(1, 6, 1, 4)
    value = value.transpose(0, 2, 1, 3)
    found = mended(model_of(nodes, {"x": x}, opset), {"x": x})
    wanted = np.stack([value.real, value.imag], -1)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_a_layer_of_spectra() -> None:
    """Modes kept, weighed by an Einsum of complex values, and put back (Fourier operators)."""
    x, w = normal(2, 3, 16), normal(3, 4, 5, 2)
    nodes = [
        aten("fft_rfft", ["x"], "c"),
        helper.make_node("Slice", ["c", "zero", "five", "axis"], ["k"]),
        aten("view_as_complex", ["w"], "f"),
        helper.make_node("Einsum", ["k", "f"], ["e"], equation="bim,iom->bom"),
        aten("fft_irfft", ["e", "size"], "y"),
    ]
    nodes = [
        *(
            helper.make_node(
                "Constant", [], [name], value=onnx.numpy_helper.from_array(np.asarray(value))
            )
            for name, value in (("zero", [0]), ("five", [5]), ("axis", [2]), ("size", 16))
        ),
        *nodes,
    ]
    modes = np.fft.rfft(x)[..., :5]
    weighed = np.einsum("bim,iom->bom", modes, w[..., 0] + 1j * w[..., 1])
    feeds = {"x": x, "w": w}
    found = mended(model_of(nodes, feeds), feeds)
    np.testing.assert_allclose(found, np.fft.irfft(weighed, 16), rtol=2e-5, atol=2e-5)


def test_a_value_that_is_read_many_times_is_written_once() -> None:
    """z -> 0.3 z^2 + c, which reads each z twice: 2^150 readings by way of each."""
    steps, x = 150, (normal(2, 3, 2) / 4).astype(np.float32)
    nodes = [
        helper.make_node("Constant", [], ["f"], value_float=0.3),
        aten("view_as_complex", ["x"], "z0"),
    ]
    for n in range(steps):
        nodes += [
            helper.make_node("Mul", [f"z{n}", f"z{n}"], [f"s{n}"]),
            helper.make_node("Mul", [f"s{n}", "f"], [f"w{n}"]),
            helper.make_node("Add", [f"w{n}", "z0"], [f"z{n + 1}"]),
        ]
    nodes.append(aten("view_as_real", [f"z{steps}"], "y"))
    start = z = x[..., 0] + 1j * x[..., 1].astype(np.complex128)
    for _ in range(steps):
        z = 0.3 * z * z + start
    found = mended(model_of(nodes, {"x": x}), {"x": x})
    np.testing.assert_allclose(found, np.stack([z.real, z.imag], -1), rtol=2e-5, atol=2e-5)
