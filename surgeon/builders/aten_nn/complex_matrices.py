"""Factors, eigenvalues and pseudo-inverses of complex matrices that the graph makes."""

from __future__ import annotations

from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg import matrices, rotations, unitary
from surgeon.builders.aten_linalg.unitary import Parts
from surgeon.builders.aten_nn.complex_arithmetic import Operands, both_of, only
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.builders.aten_shape.call import Call
from surgeon.rewrite import Draft, Refused

OF_HERMITIAN = ("linalg_eigh", "_linalg_eigh", "symeig")
OF_SVD = ("linalg_svd", "_linalg_svd", "svd")


def factor(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`linalg_cholesky` and `cholesky`."""
    c = Call(draft, node)
    if len(node.outputs) > 1 and matrices.is_read(c, 1):
        raise Refused("which minor of its complex matrices is not positive has no form here")
    value = Parts(*both_of(only(operands)))
    return Complex(*unitary.cholesky(c, value, upper=bool(c.value("upper"))))


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
            raise Refused(f"the vectors of `{node.op}` of complex values have no form here")
        found = unitary.singular_values(c, a)
    elif several and matrices.is_read(c, 1):
        raise Refused("the vectors are read, and the rule `vectors-of-complex` has them")
    else:
        found, _ = unitary.eigen(c, a, upper=rotations.reads_upper(c), with_vectors=False)
    return (found, found, found) if several else found
