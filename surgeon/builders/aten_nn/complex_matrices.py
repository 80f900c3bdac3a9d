"""Factors, eigenvalues and pseudo-inverses of complex matrices that the graph makes."""

from __future__ import annotations

from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg import matrices, rotations, singular, unitary
from surgeon.builders.aten_linalg.unitary import Parts
from surgeon.builders.aten_nn.complex_arithmetic import Operands, both_of, only
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.builders.aten_shape.call import Call
from surgeon.rewrite import Draft, Refused

OF_HERMITIAN = ("linalg_eigh", "_linalg_eigh", "symeig")
OF_SVD = ("linalg_svd", "_linalg_svd", "svd")


def factor(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`linalg_cholesky` and `cholesky`."""
    if len(node.outputs) > 1 and matrices.is_read(Call(draft, node), 1):
        raise Refused("its `info` is read, and the rule `several-of-complex` has it")
    return _factor(draft, node, only(operands))


def _factor(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    c = Call(draft, node)
    upper = bool(c.value("upper"))
    return Complex(*unitary.cholesky(c, Parts(*both_of(value)), upper=upper))


def factor_and_info(draft: Draft, node: gs.Node, value: Complex) -> tuple[Complex, gs.Tensor]:
    """`linalg_cholesky_ex`: the factor, and the order of the first minor that is not positive."""
    c, found = Call(draft, node), _factor(draft, node, value)
    roots = matrices.diagonal_of(c, found.real, matrices.square(c, found.real))
    positive = c.op("Less", c.number(0, c.dtype(roots)), roots)
    return found, matrices.first_of(c, c.op("Not", positive))


def pseudo_inverse(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`linalg_pinv` and `pinverse`."""
    value = Parts(*both_of(only(operands)))
    return Complex(*unitary.pseudo_inverse(Call(draft, node), value))


def values(draft: Draft, node: gs.Node, value: Complex) -> Any:
    """The real values that an operator gives of complex matrices.

    Raises:
        Refused: Its vectors are read.
    """
    c, a, several = Call(draft, node), Parts(*both_of(value)), node.op in (*OF_HERMITIAN, *OF_SVD)
    if node.op not in (*OF_HERMITIAN, "linalg_eigvalsh"):
        if several and (matrices.is_read(c, 0) or matrices.is_read(c, 2)):
            raise Refused("the vectors are read: `singular-vectors-of-complex` has them")
        found = unitary.singular_values(c, a)
    elif several and matrices.is_read(c, 1):
        raise Refused("the vectors are read, and the rule `vectors-of-complex` has them")
    else:
        found, _ = unitary.eigen(c, a, upper=rotations.reads_upper(c), with_vectors=False)
    return (found, found, found) if several else found


def condition(draft: Draft, node: gs.Node, value: Complex) -> gs.Tensor:
    """`linalg_cond`, by the singular values."""
    c = Call(draft, node)
    return singular.condition(c, unitary.singular_values(c, Parts(*both_of(value))))


def rank_of_matrices(draft: Draft, node: gs.Node, value: Complex) -> gs.Tensor:
    """`linalg_matrix_rank` and `matrix_rank`."""
    c, a = Call(draft, node), Parts(*both_of(value))
    if singular.is_symmetric(c):
        a = unitary.hermitian(c, a, upper=False)
    return singular.counted(c, a.real, unitary.singular_values(c, a))


def norm(draft: Draft, node: gs.Node, value: Complex, order: Any, over: list[int]) -> gs.Tensor:
    """A norm of the matrices on two axes that singular values say."""
    c, (real, imaginary) = Call(draft, node), both_of(value)
    order_of_axes = singular.matrices_last(c.rank(real), order, over)
    moved = Parts(*(c.permute(part, order_of_axes) for part in (real, imaginary)))
    return singular.norm_of(c, unitary.singular_values(c, moved), order, over)
