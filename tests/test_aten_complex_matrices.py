"""Linear algebra of complex matrices that the graph makes."""

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

Z = normal(2, 4, 4, 2)
pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

BEGIN = [aten("view_as_complex", ["z"], "a")]


def constant(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return helper.make_node("Constant", [], [name], value_string=value)
    array = onnx.numpy_helper.from_array(np.asarray(value))
    return helper.make_node("Constant", [], [name], value=array)


def pairs(x: Any) -> Any:
    return np.stack([x.real, x.imag], -1)


def gram(*sizes: int, rank: int | None = None) -> Any:
    """Hermitian matrices, of less than full rank if asked."""
    x = normal(*sizes, 2)
    values = (x[..., 0] + 1j * x[..., 1])[..., : rank or sizes[-1]]
    return pairs(values @ np.conj(values.swapaxes(-1, -2))).astype(np.float32)


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("sizes", [(2, 3, 3), (4, 4), (1, 1), (2, 2, 2, 2)])
@pytest.mark.parametrize("triangle", ["L", "U"])
def test_eigenvalues(sizes: tuple[int, ...], triangle: str, opset: int) -> None:
    """Of one triangle: what stands in the other and beside the diagonal is not looked at."""
    nodes = [*BEGIN, constant("uplo", triangle), aten("linalg_eigvalsh", ["a", "uplo"], "y")]
    agree(nodes, {"z": normal(*sizes, 2)}, opset)
    pair = aten("linalg_eigh", ["a", "uplo"], "y")
    pair.output.append("vectors")
    agree([*BEGIN, constant("uplo", triangle), pair], {"z": normal(*sizes, 2)}, opset)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [(2, 3, 5), (5, 3), (4, 4), (1, 2)])
def test_singular_values(sizes: tuple[int, ...], dtype: Any) -> None:
    nodes = [*BEGIN, aten("linalg_svdvals", ["a", ""], "y")]
    for opset in (9, 17):
        agree(nodes, {"z": normal(*sizes, 2).astype(dtype)}, opset)
    pair = aten("linalg_svd", ["a", "no", ""], "u")
    pair.output.extend(["y", "v"])
    agree([*BEGIN, constant("no", False), pair], {"z": normal(*sizes, 2)})


def decomposed(nodes: list[Any]) -> list[Any]:
    pair = aten("linalg_eigh", ["a", "uplo"], "s")
    pair.output.append("v")
    return [*BEGIN, constant("uplo", "L"), pair, *nodes]


ADJOINT = [aten("conj", ["v"], "q"), aten("adjoint", ["v"], "h")]


def test_what_does_not_depend_on_the_phases_of_eigenvectors() -> None:
    agree(decomposed([aten("abs", ["v"], "y")]), {"z": gram(2, 3, 3)})
    scaled = [
        *ADJOINT,
        aten("sqrt", ["s"], "r"),
        constant("axis", -2),
        aten("unsqueeze", ["r", "axis"], "row"),
        aten("mul", ["v", "row"], "w"),
        aten("matmul", ["w", "h"], "m"),
        aten("view_as_real", ["m"], "y"),
    ]
    agree(decomposed(scaled), {"z": gram(2, 3, 3)})


@pytest.mark.parametrize("rank", [1, 3])
def test_eigenvectors_of_equal_eigenvalues_are_orthogonal(rank: int) -> None:
    """Of what is not of full rank 0 stands several times, and any vectors of its plane will do."""
    z = gram(5, 5, rank=rank)
    product = [*ADJOINT, aten("matmul", ["h", "v"], "m"), aten("view_as_real", ["m"], "y")]
    model = model_of(decomposed(product), {"z": z})
    np.testing.assert_allclose(mended(model, {"z": z}), pairs(np.eye(5)), atol=1e-5)
    product = [
        *ADJOINT,
        constant("axis", -2),
        aten("unsqueeze", ["s", "axis"], "row"),
        aten("mul", ["v", "row"], "w"),
        aten("matmul", ["w", "h"], "m"),
        aten("view_as_real", ["m"], "y"),
    ]
    model = model_of(decomposed(product), {"z": z})
    np.testing.assert_allclose(mended(model, {"z": z}), z, atol=1e-5 * np.abs(z).max())


@pytest.mark.parametrize("reader", ["view_as_real", "imag", "angle"])
def test_eigenvectors_that_are_given_out_are_refused(reader: str) -> None:
    model = model_of(decomposed([aten(reader, ["v"], "y")]), {"z": gram(3, 3)})
    with pytest.raises(LeftoverError, match="the vectors are given out"):
        surgeon.apply(model, "aten", verify=False)


def test_real_eigenvectors_that_are_given_out_in_parts_are_refused() -> None:
    nodes = decomposed([constant("one", 1), aten("select", ["v", "one", "one"], "y")])[1:]
    feeds = {"a": gram(3, 3)[..., 0]}
    with pytest.raises(LeftoverError, match="the vectors are given out"):
        surgeon.apply(model_of(nodes, feeds), "aten", verify=False)


@pytest.mark.parametrize("sizes", [(2, 3, 5), (5, 3), (4, 4)])
def test_pseudo_inverses(sizes: tuple[int, ...]) -> None:
    last = aten("view_as_real", ["p"], "y")
    nodes = [*BEGIN, constant("no", False), aten("linalg_pinv", ["a", "", "", "no"], "p"), last]
    for opset in (9, 17):
        agree(nodes, {"z": normal(*sizes, 2)}, opset)
    agree([*BEGIN, constant("share", 0.3), aten("pinverse", ["a", "share"], "p"), last], {"z": Z})


def test_pseudo_inverses_of_less_than_full_rank_and_of_a_triangle() -> None:
    last = aten("view_as_real", ["p"], "y")
    for said, z in ((False, gram(4, 4, rank=2)), (True, gram(4, 4)), (True, Z)):
        rest = [constant("said", said), aten("linalg_pinv", ["a", "", "", "said"], "p"), last]
        agree([*BEGIN, *rest], {"z": z})


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("size", [1, 4, 7])
def test_triangular_factors(size: int, upper: bool) -> None:
    nodes = [constant("upper", upper), aten("linalg_cholesky", ["a", "upper"], "l")]
    z = gram(2, size, size) + pairs(np.eye(size)).astype(np.float32)
    for opset in (9, 17):
        agree([*BEGIN, *nodes, aten("view_as_real", ["l"], "y")], {"z": z}, opset)


def test_many_columns() -> None:
    nodes = [*BEGIN, constant("uplo", "L"), aten("linalg_eigvalsh", ["a", "uplo"], "y")]
    z = pairs(np.linalg.qr(normal(60, 60))[0]).astype(np.float32)
    agree(nodes, {"z": z + pairs(3 * np.eye(60)).astype(np.float32)})


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("sizes", [(2, 3, 5), (5, 3), (4, 4), (1, 3)])
def test_singular_vectors(sizes: tuple[int, ...], full: bool, opset: int) -> None:
    """Their magnitudes, and what they and the values are made of again."""
    z = normal(*sizes, 2)
    high, wide = sizes[-2:]
    least = min(high, wide)
    triple = aten("linalg_svd", ["a", "full"], "u")
    triple.output.extend(["s", "v"])
    nodes = [*BEGIN, constant("full", full), triple]
    if not full or high <= wide:
        agree([*nodes, aten("abs", ["u"], "y")], {"z": z}, opset)
    cut = [
        *(constant(name, v) for name, v in (("end", least), ("no", 0), ("by", 1), ("last", -1))),
        aten("slice", ["u", "last", "no", "end", "by"], "l", "Tensor"),
        constant("rows", -2),
        aten("slice", ["v", "rows", "no", "end", "by"], "r", "Tensor"),
        aten("unsqueeze", ["s", "rows"], "row"),
        aten("mul", ["l", "row"], "m"),
        aten("matmul", ["m", "r"], "p"),
        aten("view_as_real", ["p"], "y"),
    ]
    model = model_of([*nodes, *cut], {"z": z}, opset)
    np.testing.assert_allclose(mended(model, {"z": z}), z, atol=2e-5)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_singular_vectors_of_matrices_of_less_rank_are_orthogonal(rank: int) -> None:
    x = normal(5, 4, 2)
    values = (x[..., 0] + 1j * x[..., 1])[:, :rank] @ (x[..., 1] + 1j * x[..., 0])[:rank]
    z = pairs(values).astype(np.float32)
    triple = aten("linalg_svd", ["a", "full"], "u")
    triple.output.extend(["s", "v"])
    for full, side in ((True, 5), (False, 4)):
        product = [
            aten("adjoint", ["u"], "h"),
            aten("matmul", ["h", "u"], "p"),
            aten("view_as_real", ["p"], "y"),
        ]
        nodes = [*BEGIN, constant("full", full), triple, *product]
        found = mended(model_of(nodes, {"z": z}), {"z": z})
        np.testing.assert_allclose(found, pairs(np.eye(side)), atol=1e-5)


@pytest.mark.parametrize("kind", ["geqrf", "linalg_lu_factor"])
def test_what_has_no_complex_form_is_refused_as_such(kind: str) -> None:
    nodes = [aten(kind, ["a"], "q"), aten("abs", ["q"], "y")]
    nodes[0].output.append("r")
    model = model_of([*BEGIN, *nodes], {"z": Z})
    with pytest.raises(LeftoverError, match=f"for which `{kind}` has no form here"):
        surgeon.apply(model, "aten")
