"""Singular vectors of complex matrices that the graph makes: what their rotations end in."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg import matrices as m
from surgeon.builders.aten_linalg import rotations as r
from surgeon.builders.aten_linalg.vectors import directions, require_inner
from surgeon.builders.aten_nn.complex_arithmetic import both_of
from surgeon.builders.aten_nn.complex_elimination import few_sides, orthogonal_factor
from surgeon.builders.aten_nn.complex_systems import adjoint
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.builders.aten_shape.call import Call
from surgeon.rewrite import Draft, Refused


def singular_vectors(
    draft: Draft, node: gs.Node, value: Complex
) -> tuple[Complex, gs.Tensor, Complex]:
    """`svd` gives U, S, V, the others U, S, V^H."""
    c = Call(draft, node)
    require_inner(c, 0, 2)
    schema = c.args.schema
    if schema.takes("compute_uv") and not c.value("compute_uv"):
        raise Refused("its vectors are read, and not computed")
    full = not c.value("some") if schema.takes("some") else bool(c.value("full_matrices"))
    high, wide = few_sides(c, value)
    flat = high < wide
    left, values, right = _decomposed(c, adjoint(c, value) if flat else value, full=full)
    left, right = (right, left) if flat else (left, right)
    return left, values, right if node.op == "svd" else adjoint(c, right)


def _decomposed(c: Call, a: Complex, *, full: bool) -> tuple[Complex, gs.Tensor, Complex]:
    """U, S and V of matrices that are not wider than high, the largest values first.

    A column of length 0 says no direction: what it stands for is any that is orthogonal to the
    others, as the factor Q of those that do is.
    """
    high, wide = few_sides(c, a)
    found = r.orthogonal_columns(c, m.stacked(c, list(both_of(a))), basis=True, is_complex=True)
    values, told, left, basis = directions(c, found, high, wide)
    unit = Complex(m.rows(c, left, 0, high), m.rows(c, left, high, 2 * high))
    rest = orthogonal_factor(c, unit, high if full else wide)
    pairs = zip(both_of(unit), both_of(rest), strict=True)
    made = Complex(*(c.op("Where", told, p, m.columns(c, q, 0, wide)) for p, q in pairs))
    if full and high > wide:
        pairs = zip(both_of(made), both_of(rest), strict=True)
        made = Complex(*(c.concat([p, m.columns(c, q, wide)], c.rank(p) - 1) for p, q in pairs))
    return made, values, Complex(m.rows(c, basis, 0, wide), m.rows(c, basis, wide, 2 * wide))
