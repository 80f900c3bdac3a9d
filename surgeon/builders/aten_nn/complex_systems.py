"""Systems of equations, inverses and functions of complex matrices, by real ones twice as large."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import bind
from surgeon.builders import parts
from surgeon.builders.aten_linalg import matrices
from surgeon.builders.aten_linalg.solving import (
    axes_of_unknown_last,
    is_vector,
    rows_and_columns,
    solve,
)
from surgeon.builders.aten_linalg.solving import inverse as real_inverse
from surgeon.builders.aten_linalg.unitary import Parts, pseudo_inverse
from surgeon.builders.aten_nn.complex_arithmetic import (
    Operands,
    alike,
    as_complex,
    both_complex,
    both_of,
    certain,
    four_products,
    only,
    turned,
)
from surgeon.builders.aten_nn.complex_moves import by_lowering, called, each
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.builders.aten_shape.call import Call
from surgeon.builders.bench import Bench
from surgeon.rewrite import Draft, Refused


def solved(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`linalg_solve` and `linalg_solve_ex`.

    As [[P, -Q], [Q, P]] [x; y] = [r; s] of A = P + iQ and B = r + is.
    """
    _refuse_others(draft, node)
    c, (a, b) = called(draft, node, {}), operands
    a, b = both_complex(draft, a, b)
    is_left = not c.args.schema.takes("left") or bool(c.value("left"))
    vector = is_vector(c, a.real, b.real)
    if vector:
        b = each(b, lambda x: c.unsqueeze(x, [c.rank(x)]))
        if not is_left:
            raise Refused("vectors on the left are given to it as matrices of one row")
    if not is_left:
        a, b = flipped(c, a), flipped(c, b)
    found = solution(c, a, b)
    if vector:
        return each(found, lambda x: c.squeeze(x, [c.rank(x) - 1]))
    return found if is_left else flipped(c, found)


def _refuse_others(draft: Draft, node: gs.Node) -> None:
    if any(parts.is_read(draft, x) for x in node.outputs[1:]):
        raise Refused(f"of complex matrices only what solves them is said of `{node.op}`")


def nearest(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`linalg_lstsq`: the shortest of the solutions that are nearest."""
    _refuse_others(draft, node)
    c, (a, b) = called(draft, node, {}), operands
    a, b = both_complex(draft, a, b)
    vector = is_vector(c, a.real, b.real)
    if vector:
        b = each(b, lambda x: c.unsqueeze(x, [c.rank(x)]))
    inverse_of_a = Complex(*pseudo_inverse(c, Parts(*both_of(a))))
    found = four_products(draft, inverse_of_a, b, lambda p, q: draft.op("MatMul", p, q))
    return each(found, lambda x: c.squeeze(x, [c.rank(x) - 1])) if vector else found


def solution(c: Call, a: Complex, b: Complex) -> Complex:
    """X of A X = B."""
    right = c.draft.op("Concat", *both_of(b), axis=c.rank(b.real) - 2)
    whole = solve(c, *matrices.together(c, _block(c.draft, a), right))
    return _halves(c, whole, _side(c.draft, a))


def flipped(c: Call, a: Complex) -> Complex:
    """The matrices turned, and not conjugated."""
    return each(a, lambda x: matrices.turned(c, x))


def adjoint(c: Call, a: Complex) -> Complex:
    """The matrices turned and conjugated."""
    return turned(c.draft, flipped(c, a))


def by_triangle(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`linalg_solve_triangular`, whose other triangle is not looked at."""
    c, (a, b) = called(draft, node, {}), operands
    a, b = both_complex(draft, a, b)
    upper, unit = bool(c.value("upper")), bool(c.value("unitriangular"))
    a = triangle(c, a, upper=upper, unit=unit)
    if c.value("left"):
        return solution(c, a, b)
    return flipped(c, solution(c, flipped(c, a), flipped(c, b)))


def by_old_triangle(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`triangular_solve` (B, A), whose matrices may be turned first, and are not conjugated."""
    c, (b, a) = called(draft, node, {}), operands
    a, b = both_complex(draft, a, b)
    upper, unit = bool(c.value("upper")), bool(c.value("unitriangular"))
    a = triangle(c, a, upper=upper, unit=unit)
    return solution(c, flipped(c, a) if c.value("transpose") else a, b)


def by_tensor(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`linalg_tensorsolve`: a system, of which the unknown has the axes behind the right side's."""
    c, (a, b) = called(draft, node, {}), operands
    a, b = both_complex(draft, a, b)
    order = axes_of_unknown_last(c, c.rank(a.real))
    a = each(a, lambda x: c.permute(x, order))
    unknown = c.sizes(a.real)[c.rank(b.real) :]
    side = c.product(unknown)
    a = each(a, lambda x: c.reshape(x, [side, side]))
    found = solution(c, a, each(b, lambda x: c.op("Reshape", x, c.ints([-1, 1], "column"))))
    return each(found, lambda x: c.reshape(x, unknown))


def inverse_tensor(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`linalg_tensorinv`: the inverse of the matrix that axes before `ind` and behind it make."""
    c, a = called(draft, node, {}), only(operands)
    rows, columns = rows_and_columns(c, a.real)
    a = each(a, lambda x: c.reshape(x, [c.product(rows), c.product(columns)]))
    side, whole = _side(draft, a), real_inverse(c, _block(draft, a))
    found = _halves(c, c.slice(whole, 1, 0, side), side)
    return each(found, lambda x: c.reshape(x, [*columns, *rows]))


def by_factor(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`cholesky_solve` and `cholesky_inverse`: X of L L^H X = B, or of U^H U X = B."""
    c, (*right, factor) = called(draft, node, {}), operands
    factor = certain(factor)
    upper = bool(c.value("upper"))
    first = triangle(c, factor, upper=upper)
    second = adjoint(c, first)
    first, second = (second, first) if upper else (first, second)
    if right:
        b = as_complex(draft, right[0], factor)
    else:
        side = _side(draft, factor)
        eye = draft.constant(np.eye(side, dtype=parts.numpy_dtype(draft, factor.real)), "eye")
        b = Complex(eye, draft.op("Sub", eye, eye))
    return solution(c, second, solution(c, first, alike(draft, b)))


def triangle(c: Call, a: Complex, *, upper: bool, unit: bool = False) -> Complex:
    """The matrices with zeros in the other triangle; on the diagonal 1, where it counts as that."""
    side = _side(c.draft, a)
    ones = np.ones((side, side), np.bool_)
    kept = np.triu(ones, int(unit)) if upper else np.tril(ones, -int(unit))
    dtype = parts.numpy_dtype(c.draft, a.real)
    rest = np.eye(side, dtype=dtype) * int(unit)
    mask = c.draft.constant(kept, "triangle")
    fills = (c.draft.constant(fill, "fill") for fill in (rest, np.zeros((), dtype)))
    pairs = zip(both_of(a), fills, strict=True)
    return Complex(*(c.op("Where", mask, part, fill) for part, fill in pairs))


def inverted(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """What `inverse` gives, where nobody reads whether there is one."""
    if len(node.outputs) > 1 and parts.is_read(draft, node.outputs[1]):
        raise Refused("its `info` is read, and the rule `several-of-complex` has it")
    return inverse(draft, node, only(operands))


def inverse(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """What is of P + iQ as of [[P, -Q], [Q, P]], of which the first columns say it all.

    So are inverses, powers and exponentials.
    """
    c, side = Bench(draft), _side(draft, value)
    name = bind(node, draft.facts).schema.parameters[0].name
    whole = by_lowering(draft, node, **{name: _block(draft, value)})
    return _halves(c, c.slice(whole, c.rank(value.real) - 1, 0, side), side)


def _block(draft: Draft, value: Complex) -> gs.Tensor:
    """[[P, -Q], [Q, P]] of P + iQ."""
    real, imaginary = both_of(value)
    rank = parts.rank_of(draft, real)
    above = draft.op("Concat", real, draft.op("Neg", imaginary), axis=rank - 1)
    below = draft.op("Concat", imaginary, real, axis=rank - 1)
    return draft.op("Concat", above, below, axis=rank - 2)


def _side(draft: Draft, value: Complex) -> int:
    shape = draft.facts.of(value.real).shape
    if not shape or not isinstance(shape[-1], int):
        raise Refused("the size of its complex matrices is known at run time only")
    return shape[-1]


def _halves(c: Bench, rows: gs.Tensor, side: int) -> Complex:
    """The rows of the real part, and behind them those of the imaginary one."""
    axis = c.rank(rows) - 2
    return Complex(c.slice(rows, axis, 0, side), c.slice(rows, axis, side, 2 * side))
