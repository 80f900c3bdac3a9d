"""Determinants, systems, functions and factors of complex matrices that the graph makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_layer import normal
from complex_graphs import agree, aten, call, mended, model_of
from onnx import helper

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead
BEGIN = [aten("view_as_complex", ["z"], "a"), aten("view_as_complex", ["w"], "b")]
PAIRS = aten("view_as_real", ["c"], "y")


def held(nodes: list[Any], feeds: dict[str, Any], opsets: tuple[int, ...] = (9, 17)) -> None:
    begin = [node for node in BEGIN if node.input[0] in feeds]
    for opset in opsets:
        agree([*begin, *nodes], feeds, opset)


def of_pairs(nodes: list[Any], **feeds: Any) -> None:
    held([*nodes, PAIRS], feeds)


def positive(*sizes: int) -> Any:
    z = normal(*sizes, 2)
    values = z[..., 0] + 1j * z[..., 1]
    made = values @ np.conj(values.swapaxes(-1, -2)) + np.eye(sizes[-1])
    return np.stack([made.real, made.imag], -1).astype(np.float32)


@pytest.mark.parametrize("sizes", [(3, 3), (2, 5, 5), (1, 1), (2, 2, 2, 2)])
def test_determinants(sizes: tuple[int, ...]) -> None:
    z = normal(*sizes, 2)
    of_pairs(call("linalg_det", "a"), z=z)
    of_pairs(call("logdet", "a"), z=z)
    for last in (
        [aten("abs", ["c"], "y")],
        [aten("mul", ["c", "v"], "m"), aten("angle", ["m"], "y")],
    ):
        held([*call("linalg_slogdet", "a", made=("c", "v")), *last], {"z": z})
    held(call("linalg_slogdet", "a", made=("c", "y")), {"z": z})


def test_determinants_in_double_precision() -> None:
    z = normal(2, 3, 3, 2).astype(np.float64)
    held([*call("linalg_det", "a"), PAIRS], {"z": z}, (11, 17))


@pytest.mark.parametrize("opset", [9, 17])
def test_determinants_of_singular_matrices(opset: int) -> None:
    z = normal(2, 3, 3, 2)
    z[0, :, 0] = 0
    z[1, 1:, :1] = 0
    z[1, 1] = 0
    agree([BEGIN[0], *call("linalg_det", "a"), PAIRS], {"z": z}, opset)
    found = mended(
        model_of([BEGIN[0], *call("linalg_slogdet", "a", made=("c", "y"))], {"z": z}), {"z": z}
    )
    assert (found == -np.inf).all()


@pytest.mark.parametrize("n", [-2, 0, 1, 5])
def test_powers(n: int) -> None:
    of_pairs(call("linalg_matrix_power", "a", n), z=positive(2, 3, 3) / 4)


@pytest.mark.parametrize("size", [0.3, 3.0])
def test_exponentials(size: float) -> None:
    of_pairs(call("linalg_matrix_exp", "a"), z=size * normal(2, 4, 4, 2))


@pytest.mark.parametrize("sizes", [(3, 3, 3), (2, 3, 3), (3, 3)])
@pytest.mark.parametrize("left", [True, False])
def test_systems(sizes: tuple[int, ...], left: bool) -> None:
    wide = (*sizes[:-1], 2) if left else (*sizes[:-2], 2, 3)
    z, w = normal(*sizes, 2), normal(*wide, 2)
    of_pairs(call("linalg_solve", "a", "b", left), z=z, w=w)
    for upper in (True, False):
        for unit in (True, False):
            nodes = call("linalg_solve_triangular", "a", "b", upper, left, unit)
            of_pairs(nodes, z=positive(*sizes), w=w)


@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (3, 3)])
def test_nearest_solutions(sizes: tuple[int, ...]) -> None:
    made = ("c", "r", "n", "v")
    for right in ((sizes[0], 2, 2), (sizes[0], 2)):
        nodes = call("linalg_lstsq", "a", "b", None, None, made=made)
        of_pairs(nodes, z=normal(*sizes, 2), w=normal(*right))
    nodes = call("linalg_solve_ex", "a", "b", True, False, made=("c", "i"))
    of_pairs(nodes, z=normal(3, 3, 2), w=normal(3, 2, 2))


def test_systems_of_vectors() -> None:
    of_pairs(call("linalg_solve", "a", "b", True), z=normal(2, 3, 3, 2), w=normal(2, 3, 2))
    of_pairs(call("linalg_solve", "a", "b", True), z=normal(3, 3, 2), w=normal(3, 2))


@pytest.mark.parametrize("upper", [True, False])
def test_systems_by_factors(upper: bool) -> None:
    z = positive(2, 3, 3)
    of_pairs(call("cholesky_solve", "b", "a", upper), z=z, w=normal(2, 3, 2, 2))
    of_pairs(call("cholesky_inverse", "a", upper), z=z)


def test_chains() -> None:
    z, w = normal(2, 3, 2), normal(3, 4, 2)
    pack = [aten("t", ["b"], "d")]
    many = aten("linalg_multi_dot", ["list"], "c")
    listed = helper.make_node("ListConstruct", ["a", "b", "d"], ["list"], domain="prim")
    of_pairs([*pack, listed, many], z=z, w=w)


@pytest.mark.parametrize("opset", [9, 17])
def test_what_goes_wrong_is_told(opset: int) -> None:
    """As LAPACK counts, from 1; numpy has no word for it, so the witness has none."""
    z = positive(3, 3, 3)
    z[1, 1, 1], z[2, 0, 0] = -1, 0
    nodes = [BEGIN[0], *call("linalg_cholesky_ex", "a", False, False, made=("c", "y"))]
    found = mended(model_of(nodes, {"z": z}, opset), {"z": z})
    np.testing.assert_array_equal(found, np.asarray([0, 2, 1], np.int32))
    z = normal(3, 3, 3, 2)
    z[0, :, 1], z[1, :, 0] = 0, 0
    nodes = [BEGIN[0], *call("linalg_inv_ex", "a", False, made=("c", "y"))]
    found = mended(model_of(nodes, {"z": z}, opset), {"z": z})
    np.testing.assert_array_equal(found, np.asarray([2, 1, 0], np.int32))
    assert found.dtype == np.int32


def test_an_inverse_of_which_nobody_asks_whether_it_is_one() -> None:
    of_pairs(call("linalg_inv_ex", "a", False, made=("c", "i")), z=positive(2, 3, 3))
    of_pairs(call("linalg_cholesky_ex", "a", False, False, made=("c", "i")), z=positive(2, 3, 3))


@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("sizes", [(4, 3), (3, 4), (2, 3, 3), (1, 3), (3, 1)])
def test_factors(sizes: tuple[int, ...], mode: str) -> None:
    """Of which the diagonal is real, also that of the last row."""
    z = normal(*sizes, 2)
    text = helper.make_node("Constant", [], ["mode"], value_string=mode)
    for reader in ("c", "r"):
        nodes = [text, *call("linalg_qr", "a", "mode", made=("c", "r"))]
        held([*nodes, aten("view_as_real", [reader], "y")], {"z": z})


def test_factors_of_columns_that_are_real_multiples_already() -> None:
    z = normal(3, 3, 2)
    z[1:, 0] = 0
    z[0, 0, 1] = 0
    of_pairs(call("qr", "a", True, made=("c", "r")), z=z)


@pytest.mark.parametrize("order", [1.0, -1.0, np.inf, 2.0, -2.0])
def test_norms_of_matrices(order: float) -> None:
    nodes = call("linalg_matrix_norm", "a", order, [-2, -1], True, None)
    nodes[-1].output[0] = "y"
    held(nodes, {"z": normal(2, 3, 4, 2)})


def test_conditions_and_ranks() -> None:
    z = normal(2, 4, 4, 2)
    nodes = call("linalg_cond", "a", None, made=("y",))
    held(nodes, {"z": z})
    z[1, 3] = z[1, 2]
    held(call("linalg_matrix_rank", "a", None, None, False, made=("y",)), {"z": z})
    held(call("nuclear_norm", "a", [1, 2], False, made=("y",)), {"z": z})


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangles_of_the_older_name(upper: bool, transposed: bool, unit: bool) -> None:
    nodes = call("triangular_solve", "b", "a", upper, transposed, unit, made=("c", "copy"))
    of_pairs(nodes, z=positive(2, 3, 3), w=normal(2, 3, 2, 2))
    of_pairs(nodes, z=positive(3, 3), w=normal(2, 3, 1, 2))


def test_systems_of_several_axes() -> None:
    of_pairs(call("linalg_tensorinv", "a", 1), z=normal(6, 2, 3, 2))
    of_pairs(call("linalg_tensorinv", "a", 2), z=normal(2, 3, 6, 2))
    of_pairs(call("linalg_tensorsolve", "a", "b", None), z=normal(2, 3, 6, 2), w=normal(2, 3, 2))
    of_pairs(call("linalg_tensorsolve", "a", "b", [0, 2]), z=normal(2, 6, 3, 2), w=normal(6, 2))


@pytest.mark.parametrize("sizes", [(4, 3), (2, 3, 3), (1, 1), (2, 5, 2)])
def test_products_of_reflections(sizes: tuple[int, ...]) -> None:
    z = normal(*sizes, 2)
    for count in {1, sizes[-1]}:
        w = normal(*sizes[:-2], count, 2) / 2
        for name in ("linalg_householder_product", "orgqr"):
            of_pairs(call(name, "a", "b"), z=z, w=w)


def test_windows_of_planes() -> None:
    z = normal(2, 3, 5, 6, 2)
    of_pairs(call("im2col", "a", [2, 3], [1, 1], [1, 0], [2, 1]), z=z)
    of_pairs(call("col2im", "a", [4, 5], [2, 2], [1, 1], [0, 0], [1, 1]), z=normal(2, 8, 12, 2))
