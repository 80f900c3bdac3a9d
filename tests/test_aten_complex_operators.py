"""What is computed of complex values: lowered, witnessed, and PyTorch's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from aten_layer import normal
from complex_graphs import agree, aten, mended, model_of
from onnx import helper

import surgeon
from surgeon.errors import LeftoverError
from surgeon.reference import Reference

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

Z, W, V = normal(2, 4, 4, 2), normal(2, 4, 4, 2), normal(2, 4, 4, 2)
CUTS = np.array([[-2, 0.0], [-2, -0.0], [0, 0], [0, -3], [1e-25, 1e-25], [3e30, -4e30]], np.float32)
BEGIN = [
    aten("view_as_complex", [real], made) for real, made in (("z", "a"), ("w", "b"), ("v", "c"))
]


def constant(name: str, value: Any) -> Any:
    array = np.asarray(value)
    return helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(array))


def of_values(nodes: list[Any], read: int, last: str = "view_as_real", **feeds: Any) -> None:
    """The nodes on so many complex values, the last of which makes `d`, at two opsets."""
    given = {"z": Z, "w": W, "v": V, **feeds}
    kept = {name: given[name] for name in (*"zwv"[:read], *feeds)}
    for opset in (9, 17):
        agree([*BEGIN[:read], *nodes, aten(last, ["d"], "y")], kept, opset)


@pytest.mark.parametrize("last", ["view_as_real", "abs"])
@pytest.mark.parametrize(
    "operator",
    "sqrt log log2 log10 reciprocal square sgn sin cos sinh cosh tanh sigmoid exp".split(),
)
def test_functions_of_one_value(operator: str, last: str) -> None:
    of_values([aten(operator, ["a"], "d")], 1, last)


@pytest.mark.parametrize("operator", "sin cos sinh cosh tanh".split())
def test_functions_in_double_precision(operator: str) -> None:
    """Of which onnxruntime has no Sinh, Cosh and Tan."""
    of_values([aten(operator, ["a"], "d")], 1, z=Z.astype(np.float64))


@pytest.mark.parametrize("operator", ["add", "sub", "rsub", "mul", "div"])
@pytest.mark.parametrize("number", [np.complex128(1 + 2j), np.complex64(0.5 - 1j)])
def test_a_complex_number_beside_tensors(operator: str, number: Any) -> None:
    """It has no precision of its own: of float32 it makes complex64."""
    nodes = [constant("n", number), aten(operator, ["x", "n"], "d")]
    of_values(nodes, 0, x=W[..., 0])
    of_values(nodes, 0, x=W[..., 0].astype(np.float64))
    of_values([nodes[0], aten(operator, ["a", "n"], "d")], 1)


def test_a_complex_number_beside_integers_is_in_single_precision() -> None:
    """As PyTorch's default has it, where the number is one of Python's."""
    feeds = {"x": np.round(W[..., 0] * 4).astype(np.int32)}
    nodes = [constant("n", 1 + 2j), aten("mul", ["x", "n"], "d")]
    model = model_of([*nodes, aten("view_as_real", ["d"], "y")], feeds)
    (wanted,) = Reference(model).run(feeds).values()
    found = mended(model, feeds)
    assert found.dtype == wanted.dtype == np.float32
    assert np.array_equal(found, np.stack([feeds["x"], 2 * feeds["x"]], -1))
    assert np.array_equal(found, wanted)


def test_a_complex_number_is_compared_and_chosen_in_single_precision() -> None:
    nodes = [*BEGIN[:1], constant("n", 1j), aten("eq", ["a", "n"], "y")]
    agree(nodes, {"z": np.array([[0, 1], [1, 0]], np.float32)})
    truths = Z[..., 0] > 0
    for names in (["t", "n", "a"], ["t", "a", "n"]):
        of_values([constant("n", 1j), aten("where", names, "d", "self")], 1, t=truths)


@pytest.mark.parametrize("operator", ["add", "sub", "rsub"])
def test_so_many_times_integers_that_meet_complex_values(operator: str) -> None:
    whole = np.round(W[..., 0] * 4).astype(np.int32)
    sides = ["i", "a"] if operator == "rsub" else ["a", "i"]
    nodes = [constant("times", 1.5), aten(operator, [*sides, "times"], "d")]
    of_values(nodes, 1, i=whole)


def test_a_complex_multiple_is_refused() -> None:
    nodes = [constant("n", 2.5), constant("i", 1j), aten("add", ["a", "n", "i"], "d")]
    model = model_of([*BEGIN[:1], *nodes, aten("view_as_real", ["d"], "y")], {"z": Z})
    with pytest.raises(LeftoverError, match="it takes 1j times an operand"):
        surgeon.apply(model, "aten", verify=False)


def test_what_copies_keep_and_what_they_make_double() -> None:
    constants = [constant("double", 10)]
    nodes = [*constants, aten("resolve_neg", ["a"], "b"), aten("_to_copy", ["b", "double"], "d")]
    of_values(nodes, 1)


@pytest.mark.parametrize("operator", ["sqrt", "log", "sgn", "reciprocal"])
def test_functions_at_their_cuts_and_of_values_whose_squares_no_float_holds(operator: str) -> None:
    given = CUTS if operator in ("sqrt", "sgn") else np.delete(CUTS, 2, 0)
    if operator == "sqrt":
        given = given[:4]
    of_values([aten(operator, ["a"], "d")], 1, z=given)


@pytest.mark.parametrize("exponent", [2, 3, -1, -2, 0.5, -0.3])
def test_powers(exponent: float) -> None:
    of_values([constant("e", exponent), aten("pow", ["a", "e"], "d")], 1)


ONE, TWO = constant("one", 1), constant("two", 2)
MOVES: dict[str, list[Any]] = {
    "sum": [constant("n", [1, 2]), aten("sum", ["a", "n"], "d")],
    "sum of all": [aten("sum", ["a"], "d")],
    "mean": [constant("n", [-1]), constant("keep", True), aten("mean", ["a", "n", "keep"], "d")],
    "prod": [ONE, constant("keep", False), aten("prod", ["a", "one", "keep"], "d")],
    "prod, kept": [ONE, constant("keep", True), aten("prod", ["a", "one", "keep"], "d")],
    "prod of all": [constant("n", [1, 2]), aten("sum", ["a", "n"], "e"), aten("prod", ["e"], "d")],
    "cumsum": [ONE, aten("cumsum", ["a", "one"], "d")],
    "tril": [ONE, aten("tril", ["a", "one"], "d")],
    "triu": [ONE, aten("triu", ["a", "one"], "d")],
    "diagonal": [
        *(constant(name, n) for name, n in (("n", 0), ("p", -2), ("q", -1))),
        aten("diagonal", ["a", "n", "p", "q"], "d"),
    ],
    "rot90": [ONE, constant("n", [1, 2]), aten("rot90", ["a", "one", "n"], "d")],
    "fftshift": [constant("n", [1]), aten("fft_fftshift", ["a", "n"], "d")],
    "gather": [
        ONE,
        constant("n", np.zeros((2, 1, 4), np.int64)),
        aten("gather", ["a", "one", "n"], "d"),
    ],
    "adjoint": [aten("mH", ["a"], "d")],
    "zeros": [aten("zeros_like", ["a"], "e"), aten("add", ["a", "e"], "d")],
    "ones": [aten("ones_like", ["a"], "e"), aten("mul", ["a", "e"], "d")],
    "full": [TWO, aten("full_like", ["a", "two"], "e"), aten("mul", ["a", "e"], "d")],
    "new zeros": [
        constant("n", [4]),
        *(aten("new_zeros", ["a", "n"], "e"), aten("add", ["a", "e"], "d")),
    ],
    "new full": [
        *(constant("n", [4]), TWO),
        *(aten("new_full", ["a", "n", "two"], "e"), aten("add", ["a", "e"], "d")),
    ],
    "ones of a dtype": [
        *(constant("n", [4]), constant("complex64", 9)),
        *(aten("ones", ["n", "complex64"], "e"), aten("add", ["a", "e"], "d")),
    ],
}


@pytest.mark.parametrize("name", MOVES)
def test_what_moves_or_adds_up_elements_of_one_value(name: str) -> None:
    of_values(MOVES[name], 1)


HALF = constant("half", np.float32(0.5))
OF_SEVERAL: dict[str, tuple[int, list[Any]]] = {
    "add a multiple": (2, [TWO, aten("add", ["a", "b", "two"], "d")]),
    "rsub": (1, [TWO, aten("rsub", ["a", "two"], "d", "Scalar")]),
    "rsub of values": (2, [TWO, aten("rsub", ["a", "b", "two"], "d", "Tensor")]),
    "stack": (2, [ONE, aten("stack", ["a", "b", "one"], "d")]),
    "cat": (3, [ONE, aten("cat", ["a", "b", "c", "one"], "d")]),
    "where": (2, [aten("where", ["m", "a", "b"], "d", "self")]),
    "masked_fill": (1, [HALF, aten("masked_fill", ["a", "m", "half"], "d", "Scalar")]),
    "lerp": (2, [HALF, aten("lerp", ["a", "b", "half"], "d", "Scalar")]),
    "lerp by complex values": (3, [aten("lerp", ["a", "b", "c"], "d", "Tensor")]),
    "addcmul": (3, [HALF, aten("addcmul", ["a", "b", "c", "half"], "d")]),
    "addcdiv": (3, [HALF, aten("addcdiv", ["a", "b", "c", "half"], "d")]),
    "bmm": (2, [aten("bmm", ["a", "b"], "d")]),
    "baddbmm": (3, [HALF, TWO, aten("baddbmm", ["a", "b", "c", "half", "two"], "d")]),
    "einsum": (
        2,
        [
            helper.make_node("Constant", [], ["equation"], value_string="bij,bkj->bik"),
            helper.make_node("ListConstruct", ["a", "b"], ["l"], domain="prim"),
            aten("einsum", ["equation", "l"], "d"),
        ],
    ),
    "tensordot": (
        2,
        [constant("n", [0, 1]), aten("tensordot", ["a", "b", "n", "n"], "d")],
    ),
    "kron": (2, [aten("kron", ["a", "b"], "d")]),
    "solve": (2, [constant("l", True), aten("linalg_solve", ["a", "b", "l"], "d")]),
    "inverse": (1, [aten("linalg_inv", ["a"], "d")]),
}


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_what_joins_several_values(name: str) -> None:
    read, nodes = OF_SEVERAL[name]
    feeds: dict[str, Any] = {"m": W[..., 0] > 0} if name in ("where", "masked_fill") else {}
    if name in ("solve", "inverse"):  # far from a singular matrix
        feeds = {"z": Z + 4 * np.stack([np.eye(4), 0 * np.eye(4)], -1).astype(np.float32)}
    of_values(nodes, read, **feeds)


@pytest.mark.parametrize("operator", ["dot", "vdot", "outer", "inner"])
def test_products_of_vectors(operator: str) -> None:
    of_values([aten(operator, ["a", "b"], "d")], 2, z=Z[0, 0], w=W[0, 1])


@pytest.mark.parametrize("bias", [False, True])
def test_a_linear_layer_of_complex_weights(bias: bool) -> None:
    feeds = {"w": W[0, :3], **({"v": V[0, 0, :3]} if bias else {})}
    names = ["a", "b", "c"][: 1 + len(feeds)]
    of_values([aten("linear", names, "d")], len(names), **feeds)


def several(kind: str, names: list[str], made: list[str]) -> Any:
    return helper.make_node("ATen", names, made, domain="org.pytorch.aten", operator=kind)


SPLITS: dict[str, list[Any]] = {
    "split": [constant("n", 2), ONE, several("split", ["a", "n", "one"], ["e", "f"])],
    "chunk": [constant("n", 2), ONE, several("chunk", ["a", "n", "one"], ["e", "f"])],
    "unbind": [several("unbind", ["a"], ["e", "f"])],
    "Split": [helper.make_node("Split", ["a"], ["e", "f"], axis=2)],
}


@pytest.mark.parametrize("name", SPLITS)
def test_parts_of_a_value(name: str) -> None:
    of_values([*SPLITS[name], helper.make_node("Mul", ["e", "f"], ["d"])], 1)


@pytest.mark.parametrize("operator", ["eq", "ne"])
def test_what_is_the_same(operator: str) -> None:
    z, w, x = np.round(Z), np.round(W), np.round(normal(2, 4, 4))
    z[..., 1] = np.round(z[..., 1] / 4)
    begin = [*BEGIN[:2], aten("_conj", ["a"], "c")]
    for other, feeds in (("b", {"w": w}), ("c", {}), ("x", {"x": x})):
        nodes = [n for n in begin if n.output[0] in ("a", other)]
        agree([*nodes, aten(operator, ["a", other], "y")], {"z": z, **feeds})


@pytest.mark.parametrize("order", [1.0, 2.0, np.inf])
def test_norms(order: float) -> None:
    nodes = [BEGIN[0], constant("o", order), constant("n", [1])]
    agree([*nodes, aten("linalg_vector_norm", ["a", "o", "n"], "y")], {"z": Z})
    agree(
        [BEGIN[0], aten("frobenius_norm", ["a", "n"], "y"), constant("n", [1, 2])][::-1], {"z": Z}
    )


@pytest.mark.parametrize("operator", ["isnan", "isinf", "isfinite"])
def test_what_is_no_number(operator: str) -> None:
    z = Z.copy()
    z[0, 0, 0, 1], z[0, 1, 1, 0], z[1, 2, 3] = np.nan, np.inf, (-np.inf, np.nan)
    found = mended(model_of([BEGIN[0], aten(operator, ["a"], "y")], {"z": z}), {"z": z})
    np.testing.assert_array_equal(found, getattr(np, operator)(z.view(np.complex64)[..., 0]))


def test_what_is_real_in_a_spectrum_has_an_angle_that_rounding_does_not_decide() -> None:
    """The first and the middle frequency of real values: their angles are 0 and pi, never -pi."""
    x = normal(40, 16)
    model = model_of([aten("fft_rfft", ["x"], "d"), aten("angle", ["d"], "y")], {"x": x})
    np.testing.assert_allclose(
        mended(model, {"x": x})[:, [0, 8]], np.angle(np.fft.rfft(x)[:, [0, 8]]), atol=1e-6
    )


def test_standard_operators_between_complex_values_are_compared() -> None:
    """No runtime has them: the witness computes these nodes in Python, and the others as ever."""
    nodes = [
        *BEGIN[:2],
        constant("shape", np.array([2, 16], np.int64)),
        helper.make_node("Reshape", ["a", "shape"], ["r"]),
        helper.make_node("Reshape", ["b", "shape"], ["s"]),
        helper.make_node("Concat", ["r", "s"], ["k"], axis=0),
        helper.make_node("Einsum", ["k", "k"], ["d"], equation="ij,kj->ik"),
        helper.make_node("Abs", ["d"], ["n"]),
        helper.make_node("Mul", ["d", "n"], ["e"]),
        aten("view_as_real", ["e"], "f"),
        helper.make_node("Relu", ["z"], ["g"]),
        helper.make_node("ReduceSum", ["g"], ["h"], keepdims=0),
        helper.make_node("Mul", ["f", "h"], ["y"]),
    ]
    model, feeds = model_of(nodes, {"z": Z, "w": W}), {"z": Z, "w": W}
    result = surgeon.apply(model, "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent", result.report.verdict.detail
    k = np.concatenate([(t[..., 0] + 1j * t[..., 1]).reshape(2, 16) for t in (Z, W)])
    e = np.einsum("ij,kj->ik", k, k)
    e = e * np.abs(e)
    wanted = np.stack([e.real, e.imag], -1) * np.maximum(Z, 0).sum()
    (told,) = Reference(model).run(feeds).values()
    np.testing.assert_allclose(told, wanted, rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(mended(model, feeds), wanted, rtol=1e-4, atol=1e-2)
