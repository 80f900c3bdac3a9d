"""Singular vectors and eigenvectors: what holds of them whatever their signs are."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from aten_call import model_of
from aten_matrices import matrices
from onnx import helper

import surgeon
from surgeon.errors import LeftoverError, VerifyError
from surgeon.reference import Reference
from surgeon.reference.errors import Undefined
from surgeon.runtime import Session

SHAPES = [(1, 1), (3, 3), (2, 5, 3), (2, 3, 5), (2, 2, 4, 4), (40, 35)]


def measured(operator: str, *arguments: Any, opset: int = 13, free: bool = False) -> list[Any]:
    """What the lowering gives, each by a product with 1, as vectors may not be given out."""
    count = 2 if "eigh" in operator or operator == "symeig" else 3
    model, feeds = model_of(operator, arguments, outputs=count, opset=opset)
    named = [value.name for value in model.graph.output]
    kind = model.graph.input[0].type.tensor_type.elem_type
    model.graph.initializer.append(helper.make_tensor("one", kind, [], [1]))
    for value in model.graph.output:
        model.graph.node.append(helper.make_node("Mul", [value.name, "one"], [f"{value.name}_1"]))
        value.name = f"{value.name}_1"
    if free:
        shape = model.graph.input[0].type.tensor_type.shape
        for axis in range(len(shape.dim) - 2):
            shape.dim[axis].dim_param = f"b{axis}"
    result = surgeon.apply(model, "aten-linalg", verify=False, allow=["contract"])
    saved = result.model.to_proto()
    assert not [n for n in saved.graph.node if n.domain], [m.reason for m in result.report.misses]
    assert "direction" in "".join(result.report.contracts)
    found = Session(saved).run(feeds)
    return [found[f"{name}_1"] for name in named]


def are_orthonormal(x: Any, tolerance: float) -> None:
    """Columns of length 1, none of which lies towards another."""
    eye = np.broadcast_to(np.eye(x.shape[-1]), (*x.shape[:-2], x.shape[-1], x.shape[-1]))
    np.testing.assert_allclose(x.swapaxes(-1, -2) @ x, eye, atol=tolerance)


def are_of(a: Any, u: Any, s: Any, vh: Any) -> None:
    """A = U S V^H, with the values that LAPACK gives."""
    limit = {4: 2e-5, 8: 1e-12}[a.dtype.itemsize]
    count = s.shape[-1]
    are_orthonormal(u, limit * 5)
    are_orthonormal(vh.swapaxes(-1, -2), limit * 5)
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), limit, limit * 10)
    again = (u[..., :count] * s[..., None, :]) @ vh[..., :count, :]
    np.testing.assert_allclose(again, a, limit, limit * max(1, np.abs(a).max(initial=1)) * 5)
    assert u.dtype == s.dtype == vh.dtype == a.dtype


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_singular_vectors(shape: tuple[int, ...], full: bool) -> None:
    for dtype, opset in ((np.float32, 11), (np.float64, 18)):
        a = matrices(*shape, dtype=dtype)
        high, wide = shape[-2:]
        least = min(high, wide)
        for free in (False, True):
            u, s, vh = measured("linalg_svd", a, full, opset=opset, free=free)
            assert u.shape[-2:] == (high, high if full else least)
            assert vh.shape[-2:] == (wide if full else least, wide)
            are_of(a, u, s, vh)
    u, s, v = measured("svd", a, not full, True)
    are_of(a, u, s, v.swapaxes(-1, -2))


@pytest.mark.parametrize("full", [False, True])
def test_vectors_of_matrices_without_full_rank(full: bool) -> None:
    line = matrices(2, 4, 1) @ matrices(2, 1, 3)
    plane = matrices(2, 4, 2) @ matrices(2, 2, 3)
    for a in (line, plane, np.zeros_like(line), np.ones_like(line), 1e-20 * line, 1e20 * plane):
        scale = np.abs(a).max() or 1
        for x in (a, a.swapaxes(-1, -2).copy()):
            u, s, vh = measured("linalg_svd", x, full)
            are_of(x / scale, u, s / scale, vh)


@pytest.mark.slow
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("size", [1, 2, 5, 34])
def test_eigenvectors(size: int, upper: bool) -> None:
    for dtype, opset in ((np.float32, 11), (np.float64, 18)):
        a = matrices(2, size, size, dtype=dtype)  # of which one triangle alone is read
        whole = np.triu(a) if upper else np.tril(a)
        whole = whole + (whole - whole * np.eye(size, dtype=dtype)).swapaxes(-1, -2)
        found = [measured("linalg_eigh", a, "U" if upper else "L", opset=opset)]
        found.append(measured("symeig", a, True, upper, opset=opset))
        limit = {4: 1e-4, 8: 1e-11}[a.dtype.itemsize] * size
        for values, vectors in found:
            are_orthonormal(vectors, limit)
            np.testing.assert_allclose(values, np.linalg.eigvalsh(whole), limit, limit)
            np.testing.assert_allclose(whole @ vectors, vectors * values[..., None, :], atol=limit)


def product(expression: str) -> onnx.ModelProto:
    """A model of 3 x 3 matrices that gives something of its U, S and V^H."""
    return onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
        g (float[b,3,3] x) => (y)
        {{
            full = Constant <value_int = 0> ()
            u, s, vh = org.pytorch.aten.ATen <operator = "linalg_svd"> (x, full)
            {expression}
        }}""")


def test_what_does_not_hang_on_signs_is_equivalent() -> None:
    model = product("y = MatMul (u, vh)")
    result = surgeon.apply(model, "aten", verify=True)
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    x = matrices(4, 3, 3)
    u, _, vh = np.linalg.svd(x)
    got = Session(result.model.to_proto()).run({"x": x})["y"]
    np.testing.assert_allclose(got, u @ vh, atol=1e-5)


@pytest.mark.parametrize(
    "expression",
    [
        "y = Exp (u)",
        "axes = Constant <value_ints = [1]> () y = ReduceSum (vh, axes)",
        "up = Transpose <perm = [0, 2, 1]> (u) r = Relu (up) y = MatMul (r, x)",
    ],
)
def test_what_hangs_on_signs_is_not_saved(expression: str) -> None:
    with pytest.raises(VerifyError, match="which of two opposite vectors stands for a direction"):
        surgeon.apply(product(expression), "aten", verify=True)


@pytest.mark.parametrize(
    "expression",
    ["y = Identity (u)", "y = Transpose <perm = [0, 2, 1]> (vh)"],
)
def test_vectors_that_are_given_out_are_refused(expression: str) -> None:
    with pytest.raises(LeftoverError, match="their signs are the implementation's"):
        surgeon.apply(product(expression), "aten", verify=False)


def test_vectors_need_sizes_that_are_known() -> None:
    model = product("y = MatMul (u, vh)")
    for axis in (1, 2):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"n{axis}"
    with pytest.raises(LeftoverError, match="how many rows or columns there are is not known"):
        surgeon.apply(model, "aten", verify=False)


def test_the_witness_gives_vectors_where_they_are_told() -> None:
    model, feeds = model_of("linalg_svd", [matrices(2, 4, 3), True], outputs=3)
    u, s, vh = Reference(model).run(feeds).values()
    are_of(feeds["x0"], u, s, vh)
    feeds["x0"] = np.stack([np.eye(4, 3)] * 2).astype(np.float32)
    names = [value.name for value in model.graph.output]
    np.testing.assert_array_equal(Reference(model).run(feeds, names[1:2])[names[1]], 1)
    with pytest.raises(Undefined, match="any of a plane"):
        Reference(model).run(feeds)
