"""Where complex values are read as real ones again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import bind
from surgeon.builders import parts
from surgeon.builders.aten_linalg import rotations, unitary
from surgeon.builders.aten_linalg.unitary import Parts
from surgeon.builders.aten_linalg.vectors import require_inner
from surgeon.builders.aten_math.agreement import everywhere
from surgeon.builders.aten_math.work import Work
from surgeon.builders.aten_nn import complex_moves as moves
from surgeon.builders.aten_nn.complex_arithmetic import (
    as_complex,
    both_of,
    in_one_precision,
    number_like,
    paired,
    plus,
    size,
)
from surgeon.builders.aten_nn.complex_functions import angle
from surgeon.builders.aten_nn.complex_matrices import (
    OF_HERMITIAN,
    OF_SVD,
    condition,
    norm,
    rank_of_matrices,
    values,
)
from surgeon.builders.aten_nn.complex_moments import together
from surgeon.builders.aten_nn.complexes import CASTS, complex_of, is_complex, is_real, real_dtype
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.builders.aten_shape.call import TYPE, Call
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_JOINED = {"isnan": "Or", "isinf": "Or", "isfinite": "And"}
_ASKED = ("any", "all", "nonzero", "argwhere", "count_nonzero", "logical_not", "nonzero_static")
_COMPARED = ("eq", "ne")
_AGREEING = ("isclose", "allclose", "equal")
_SPREADS = ("var", "std")
_OF_MATRICES = ("linalg_eigvalsh", "linalg_svdvals", *OF_HERMITIAN, *OF_SVD)
_COMBINED = ("logical_and", "logical_or", "logical_xor")


def real_of_complex(draft: Draft, match: Match) -> Any:
    """An operator that reads a complex value that the graph makes."""
    node = match.root
    first = node.inputs[0]
    if node.op in (*_COMPARED, *_AGREEING):
        return _compared(draft, node)
    if node.op in _COMBINED:
        return _combined(draft, node)
    if node.op in ("dist", "l1_loss", "pairwise_distance"):
        return _distance(draft, node)
    if not is_complex(draft, first) and is_real(draft, first):
        if node.op == "real":
            return first
        raise Refused("its input is real")
    return _READERS[node.op](draft, node, complex_of(draft, first))


def _norm(draft: Draft, node: gs.Node, value: Complex) -> gs.Tensor:
    """A norm that depends on the magnitudes alone, or on the singular values."""
    args = bind(node, draft.facts)
    named = next((name for name in ("p", "ord") if args.schema.takes(name)), None)
    order = "nuc" if node.op == "nuclear_norm" else None if named is None else args.value(named)
    rank = parts.rank_of(draft, value.real)
    dims = args.value("dim") if args.schema.takes("dim") else None
    over = (
        list(range(rank)) if dims is None or not rank else [int(d) % rank for d in np.ravel(dims)]
    )
    if node.op in ("linalg_matrix_norm", "nuclear_norm") and dims is None:
        over = over[-2:]
    of_matrices = node.op in ("linalg_matrix_norm", "linalg_norm") and len(over) == 2
    if order == "nuc" or (of_matrices and order in (2, -2)):
        return norm(draft, node, value, order, over)
    return moves.by_lowering(draft, node, self=size(draft, value))


def _distance(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`dist` and kin, of which one side may be real: of the magnitudes of the difference."""
    args = bind(node, draft.facts)
    first, second = (p.name for p in args.schema.parameters[:2])
    sides = [args.tensor(name) for name in (first, second)]
    values = [complex_of(draft, t) if is_complex(draft, t) else t for t in sides]
    if not any(isinstance(value, Complex) for value in values):
        raise Refused("its inputs are not known to be complex")
    apart = plus(draft, *in_one_precision(draft, *values), "Sub")
    rest: dict[str, gs.Tensor] = {}
    if args.schema.takes("eps"):  # it is no length, and is added before there is one
        apart = plus(draft, apart, number_like(draft, apart, float(args.value("eps"))))
        rest = {"eps": draft.constant(np.array(0.0), "eps")}
    far = size(draft, apart)
    nothing = number_like(draft, apart, 0)
    return moves.by_lowering(draft, node, **{first: far, second: nothing, **rest})


def _spread(draft: Draft, node: gs.Node, value: Complex) -> gs.Tensor:
    """`var` and `std`: the variances of both parts added up."""
    both = [moves.by_lowering(draft, node, self=part) for part in both_of(value)]
    return together(draft, node.op, both)


def _either(draft: Draft, node: gs.Node, value: Complex) -> gs.Tensor:
    """What is asked of both parts."""
    both = [moves.by_lowering(draft, node, self=part) for part in both_of(value)]
    return draft.op(_JOINED[node.op], *both)


def _asked(draft: Draft, node: gs.Node, value: Complex) -> gs.Tensor:
    """What is asked of where a value is not 0."""
    return moves.by_lowering(draft, node, self=_there(draft, value))


def _there(draft: Draft, value: Complex) -> gs.Tensor:
    """Where it is not 0."""
    zero = number_like(draft, value, 0)
    both = [draft.op("Equal", part, zero) for part in both_of(value)]
    made: gs.Tensor = draft.op("Not", draft.op("And", *both))
    return made


def _combined(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`logical_and` and kin, of which one side may be real."""
    args = bind(node, draft.facts)
    names = [p.name for p in args.schema.parameters[:2]]
    sides = {name: args.tensor(name) for name in names}
    found = {
        name: _there(draft, complex_of(draft, t))
        for name, t in sides.items()
        if is_complex(draft, t)
    }
    if not found:
        raise Refused("its inputs are not known to be complex")
    return moves.by_lowering(draft, node, **found)


def _as_real(draft: Draft, node: gs.Node, value: Complex) -> gs.Tensor:
    """`Cast`, `to`, `_to_copy` and `type_as` in a real dtype: of the real part alone.

    As booleans it is what is not 0.
    """
    kind = real_dtype(draft, node)
    if kind == TYPE.BOOL:
        return _there(draft, value)
    return parts.cast(draft, value.real, kind)


def _is_real(draft: Draft, node: gs.Node, value: Complex) -> gs.Tensor:
    """`isreal`: where the imaginary part is 0."""
    made: gs.Tensor = draft.op("Equal", both_of(value)[1], number_like(draft, value, 0))
    return made


def _compared(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`eq`, `ne`, `isclose`, `allclose` and `equal`, of which one side may be real."""
    args = bind(node, draft.facts)
    sides = [args.tensor(p.name) for p in args.schema.parameters[:2]]
    first, second = (complex_of(draft, t) if is_complex(draft, t) else t for t in sides)
    values = in_one_precision(draft, first, second)
    like = next((v for v in values if isinstance(v, Complex)), None)
    if like is None:
        raise Refused("its inputs are not known to be complex")
    if node.op in _AGREEING:
        return _agreeing(draft, node, *(as_complex(draft, v, like) for v in values))
    same = _same(draft, *(as_complex(draft, v, like) for v in values))
    return same if node.op == "eq" else draft.op("Not", same)


def _same(draft: Draft, a: Complex, b: Complex) -> gs.Tensor:
    """Where both parts are."""
    pairs = zip(both_of(a), both_of(b), strict=True)
    made: gs.Tensor = draft.op("And", *(draft.op("Equal", p, q) for p, q in pairs))
    return made


def _agreeing(draft: Draft, node: gs.Node, a: Complex, b: Complex) -> gs.Tensor:
    """Where two are the same, or as near as `rtol` and `atol` say; or whether all are."""
    found, work = _same(draft, a, b), Work(draft, node)
    if node.op == "equal":
        shapes = [draft.facts.of(value.real).shape for value in (a, b)]
        if None in shapes or shapes[0] != shapes[1]:
            raise Refused("its inputs are not proven to be of one shape")
        return everywhere(work, found)
    args = bind(node, draft.facts)
    rtol, atol = (number_like(draft, a, float(args.value(name))) for name in ("rtol", "atol"))
    room = draft.op("Add", draft.op("Mul", size(draft, b), rtol), atol)
    apart = size(draft, plus(draft, a, b, "Sub"))
    finite = draft.op("Less", apart, number_like(draft, a, math.inf))
    near = draft.op("And", work.less(apart, room, or_equal=True), finite)
    near = draft.op("Or", found, near)
    if args.value("equal_nan"):
        broken = (draft.op("Or", *map(work.is_nan, both_of(value))) for value in (a, b))
        near = draft.op("Or", near, draft.op("And", *broken))
    return near if node.op == "isclose" else everywhere(work, near)


_READERS: Mapping[str, Callable[[Draft, gs.Node, Complex], Any]] = {
    "view_as_real": lambda draft, node, value: paired(draft, value),
    "real": lambda draft, node, value: value.real,
    "imag": lambda draft, node, value: value.imaginary,
    **dict.fromkeys(("abs", "absolute", "Abs"), lambda draft, node, value: size(draft, value)),
    "angle": angle,
    "isreal": _is_real,
    **dict.fromkeys(("linalg_vector_norm", "linalg_norm", "norm", "frobenius_norm"), _norm),
    **dict.fromkeys(("linalg_matrix_norm", "nuclear_norm"), _norm),
    **dict.fromkeys(_SPREADS, _spread),
    **dict.fromkeys(_JOINED, _either),
    **dict.fromkeys(_ASKED, _asked),
    **dict.fromkeys(_OF_MATRICES, values),
    "linalg_cond": condition,
    **dict.fromkeys(("linalg_matrix_rank", "matrix_rank"), rank_of_matrices),
    **dict.fromkeys(CASTS, _as_real),
}


def shape_of_complex(draft: Draft, match: Match) -> Any:
    """`Shape`, `Size`, `aten.size` or `numel` of a complex value that the graph makes."""
    node = match.root
    if is_real(draft, node.inputs[0]) or not is_complex(draft, node.inputs[0]):
        raise Refused("its input is not known to be complex")
    part = complex_of(draft, node.inputs[0]).real
    if node.domain != "aten":
        return draft.op(node.op, part, **node.attrs)
    return moves.by_lowering(draft, node, self=part)


def shaped_as_complex(draft: Draft, match: Match) -> Any:
    """`view_as` and kin: a real value in the shape of a complex one that the graph makes."""
    node = match.root
    x, other = node.inputs[:2]
    if is_real(draft, other) or not is_complex(draft, other) or is_complex(draft, x):
        raise Refused("its input is complex, or what it is brought into the shape of is not")
    return moves.by_lowering(draft, node, other=complex_of(draft, other).real)


def eigenvectors_of_complex(draft: Draft, match: Match) -> Any:
    """The eigenvalues of Hermitian matrices, and their vectors in two parts."""
    c, x = Call(draft, match.root), match.root.inputs[0]
    if not is_complex(draft, x):
        raise Refused("its matrices are not known to be complex")
    require_inner(c, 1)
    for name in ("compute_v", "eigenvectors"):
        if c.args.schema.takes(name) and not c.value(name):
            raise Refused("its vectors are read, and not computed")
    a, upper = Parts(*both_of(complex_of(draft, x))), rotations.reads_upper(c)
    found, vectors = unitary.eigen(c, a, upper=upper, with_vectors=True)
    assert vectors is not None
    return found, draft.op("complex", *vectors, domain="aten")
