"""What singular values and eigenvalues decide: norms, conditions, ranks and pseudo-inverses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg import matrices as m
from surgeon.builders.aten_linalg import rotations as r
from surgeon.builders.aten_linalg.solving import is_vector
from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.aten_shape.order import topk
from surgeon.builders.scalar_types import finfo
from surgeon.rewrite import Refused

_VECTORS = "the vectors are read, and the rule `linalg-vectors` has them"


def _given(c: Call, name: str) -> bool:
    return c.args.schema.takes(name) and c.has(name)


def _values(c: Call) -> gs.Tensor:
    return r.singular_values(c, c.args.first())


def _of_three(c: Call) -> tuple[gs.Tensor, ...]:
    """`svd`: U, S, V, of which S alone is said."""
    if m.is_read(c, 0) or m.is_read(c, 2):
        raise Refused(_VECTORS)
    values = _values(c)
    return values, values, values


def _eigenvalues(c: Call) -> tuple[gs.Tensor, ...]:
    if m.is_read(c, 1):
        raise Refused(_VECTORS)
    return (r.eigenvalues(c, r.symmetric(c, c.args.first(), upper=r.reads_upper(c))),)


def _nuclear_norm(c: Call) -> gs.Tensor:
    x = c.tensor()
    rank = c.rank(x)
    over = [-2, -1]
    if c.args.schema.takes("dim"):
        over = [int(d) for d in c.args.dims("dim")]
    return _norm(c, x, "nuc", [c.axis(d, rank) for d in over])


def _matrix_norm(c: Call) -> gs.Tensor:
    """The norms 2, -2 and `nuc`; the others are said without singular values."""
    x = c.tensor()
    rank = c.rank(x)
    default = c.value("ord") if _given(c, "ord") or c.node.op == "linalg_matrix_norm" else None
    over = [c.axis(int(d), rank) for d in c.args.dims("dim")] if _given(c, "dim") else [-2, -1]
    return _norm(c, c.cast(x, c.wanted_dtype(c.dtype(x))), default, [d % rank for d in over])


def _norm(c: Call, x: gs.Tensor, order: Any, over: list[int]) -> gs.Tensor:
    moved = c.permute(x, matrices_last(c.rank(x), order, over))
    return norm_of(c, r.singular_values(c, moved), order, over)


def matrices_last(rank: int, order: Any, over: list[int]) -> list[int]:
    """The axes, those of the matrices behind the others.

    Raises:
        Refused: The norm is none that singular values say.
    """
    if order not in ("nuc", 2, -2) or len(over) != 2 or over[0] == over[1]:
        raise Refused(f"the norm {order!r} is none that singular values say")
    return [*(axis for axis in range(rank) if axis not in over), *over]


def norm_of(c: Call, values: gs.Tensor, order: Any, over: list[int]) -> gs.Tensor:
    """A norm of matrices that had these axes, by their singular values."""
    last = c.ints([c.rank(values) - 1], "axes")
    how = "ReduceSum" if order == "nuc" else "ReduceMax" if order == 2 else "ReduceMin"
    norm: gs.Tensor = c.op(how, values, last, keepdims=0)
    return c.unsqueeze(norm, sorted(over)) if bool(c.value("keepdim")) else norm


def _condition(c: Call) -> gs.Tensor:
    return condition(c, _values(c))


def condition(c: Call, values: gs.Tensor) -> gs.Tensor:
    """The largest singular value by the smallest; with `p` of -2 the other way round."""
    p = c.value("p")
    if p not in (None, 2, -2):
        raise Refused(f"`p` is {p!r}; the norms of the matrix and of its inverse say it")
    last = c.rank(values) - 1
    ends = [c.op(f"Reduce{end}", values, c.ints([last], "axes"), keepdims=0) for end in _ENDS]
    made: gs.Tensor = c.op("Div", *(ends[::-1] if p == -2 else ends))
    return made


_ENDS = ("Max", "Min")


def cut(c: Call, a: gs.Tensor, largest: gs.Tensor) -> gs.Tensor:
    """The greatest singular value that counts as 0, for each matrix or for all.

    Args:
        c: The node.
        a: The matrices.
        largest: Their largest singular values, [..., 1].
    """
    dtype = c.dtype(a)
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)

    def tolerance(name: str) -> gs.Tensor | None:
        if not _given(c, name):
            return None
        given = c.args.given.get(name)
        if isinstance(given, gs.Tensor) and c.facts.array(given) is None:
            x = c.cast(given, dtype)
            return c.unsqueeze(x, [c.rank(x)]) if c.rank(x) else x
        value = c.value(name)
        if isinstance(value, list):
            return c.draft.constant(np.asarray(value, kind)[..., None], name)
        return c.number(value, dtype)

    absolute = tolerance("tol") if c.args.schema.takes("tol") else tolerance("atol")
    share = tolerance("rcond") if c.args.schema.takes("rcond") else tolerance("rtol")
    if share is None and _given(c, "tol"):
        assert absolute is not None
        return absolute
    if share is None:
        share = _rounding(c, a)
        if absolute is not None:
            zero = c.number(0, dtype)
            share = c.op("Where", c.op("Less", zero, absolute), zero, share)
    told = c.op("Mul", share, largest)
    return told if absolute is None else c.op("Max", absolute, told)


def _rounding(c: Call, a: gs.Tensor) -> gs.Tensor:
    """PyTorch's default share: the longer side times the dtype's rounding."""
    dtype, rank = c.dtype(a), c.rank(a)
    eps = float(finfo(onnx.helper.tensor_dtype_to_np_dtype(dtype)).eps)
    side = m.larger(c, c.size(a, rank - 2), c.size(a, rank - 1))
    if isinstance(side, int):
        return c.number(side * eps, dtype)
    made: gs.Tensor = c.op("Mul", c.cast(c.vector([side]), dtype), c.number(eps, dtype))
    return made


def is_symmetric(c: Call) -> bool:
    """Whether the node says that its matrices are: the lower triangle is read."""
    names = ("hermitian", "symmetric")
    return any(c.args.schema.takes(n) and bool(c.value(n)) for n in names)


def _rank(c: Call) -> gs.Tensor:
    a = c.args.first()
    a = r.symmetric(c, a, upper=False) if is_symmetric(c) else a
    values = r.singular_values(c, a)
    return counted(c, a, values)


def counted(c: Call, a: gs.Tensor, values: gs.Tensor) -> gs.Tensor:
    """How many singular values are above the cut, int64."""
    last = c.rank(values) - 1
    filled = c.concat([values, c.filled([*c.sizes(values)[:-1], 1], 0, c.dtype(a))], last)
    largest = c.slice(filled, last, 0, 1)  # of none it is 0
    above = c.cast(c.op("Less", cut(c, a, largest), values), TYPE.INT64)
    made: gs.Tensor = c.op("ReduceSum", above, c.ints([last], "axes"), keepdims=0)
    return made


def pseudo_inverse(c: Call, a: gs.Tensor) -> gs.Tensor:
    """V S^-1 U^T, without the singular values that count as 0."""
    high, wide = (m.side(c, a, axis, r.LARGEST_TURNED) for axis in (-2, -1))
    flat = isinstance(high, int) and isinstance(wide, int) and high < wide
    given, a = a, m.turned(c, a) if flat else a
    found = r.orthogonal_columns(c, a, basis=True)
    assert found.basis is not None
    dtype, rank = c.dtype(a), c.rank(a)
    values = r.lengths(c, found.product)  # of A / scale
    last = c.rank(values) - 1
    scale = c.squeeze(found.scale, [rank - 1])
    sizes = c.op("Mul", values, scale)
    largest = c.op("ReduceMax", sizes, c.ints([last], "axes"), keepdims=1)
    below = cut(c, given, largest)
    if c.rank(below) != c.rank(sizes):
        raise Refused("its tolerance has more dimensions than there are batches of matrices")
    kept = c.op("Less", below, sizes)
    if not (isinstance(high, int) and isinstance(wide, int)):
        # of more columns than rows the rest is rounding, and a cut may be below that
        count = m.larger(c, m.smaller(c, high, wide), 1)
        top, _ = topk(c, sizes, last, count, largest=True)
        least = c.op("ReduceMin", top, c.ints([last], "axes"), keepdims=1)
        kept = c.op("And", kept, c.op("Not", c.op("Less", sizes, least)))
    one, zero = c.number(1, dtype), c.number(0, dtype)
    inverted = c.op("Where", kept, c.op("Div", one, c.op("Where", kept, values, one)), zero)
    inverted = c.unsqueeze(inverted, [last])  # [..., 1, N]
    right = m.turned(c, c.op("Mul", found.product, inverted))
    right = right if isinstance(high, int) else m.columns(c, right, 0, high)
    made = c.op("MatMul", c.op("Mul", found.basis, inverted), right)
    made = c.op("Div", made, found.scale)
    return m.turned(c, made) if flat else made


def _pseudo_inverse(c: Call) -> gs.Tensor:
    a = c.args.first()
    return pseudo_inverse(c, r.symmetric(c, a, upper=False) if is_symmetric(c) else a)


def _least_squares(c: Call) -> tuple[gs.Tensor, ...]:
    """`linalg_lstsq`: the shortest of the solutions that are nearest, and what else has a shape."""
    a, b = c.tensor(), c.tensor("b")
    high, wide = (m.side(c, a, axis, r.LARGEST_TURNED) for axis in (-2, -1))
    driver = c.value("driver") or "gelsy"
    vector = is_vector(c, a, b)
    b = c.unsqueeze(b, [c.rank(b)]) if vector else b
    x = c.op("MatMul", pseudo_inverse(c, a), b)
    none = c.filled([0], 0, c.dtype(a))
    apart = none
    if m.is_read(c, 1) and driver != "gelsy":
        apart = _residuals(c, a, x, b, always=driver == "gels") if _is_high(high, wide) else none
    found = [c.squeeze(x, [c.rank(x) - 1]) if vector else x, apart]
    if not (m.is_read(c, 2) or m.is_read(c, 3)):
        return (*found, none, none)
    values = r.singular_values(c, a)
    ranks = c.filled([0], 0, TYPE.INT64) if driver == "gels" else counted(c, a, values)
    return (*found, ranks, values if driver in ("gelsd", "gelss") else none)


def _is_high(high: Size | int, wide: Size | int) -> bool:
    if isinstance(high, int) and isinstance(wide, int):
        return high > wide
    raise Refused("its residuals are read, and of its sides which is longer is not known")


def _residuals(c: Call, a: gs.Tensor, x: gs.Tensor, b: gs.Tensor, *, always: bool) -> gs.Tensor:
    """The squares of what is left, added up for each right side; none where a rank is not full."""
    left = c.op("Sub", c.op("MatMul", a, x), b)
    rank = c.rank(left)
    total = c.op("ReduceSum", c.op("Mul", left, left), c.ints([rank - 2], "axes"), keepdims=0)
    if always:
        return total
    if rank > 2:
        raise Refused("its residuals are read, and they have a shape only where its rank is full")
    full = c.op("Equal", counted(c, a, r.singular_values(c, a)), c.vector([c.size(a, 1)]))
    shown = c.op("Mul", c.cast(full, TYPE.INT64), c.vector([c.size(total, 0)]))
    return c.slice(total, 0, 0, Size(None, lambda: shown))


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    "linalg_svdvals": _values,
    **dict.fromkeys(("svd", "linalg_svd", "_linalg_svd"), _of_three),
    **dict.fromkeys(("linalg_eigvalsh", "linalg_eigh", "_linalg_eigh", "symeig"), _eigenvalues),
    "nuclear_norm": _nuclear_norm,
    **dict.fromkeys(("linalg_matrix_norm", "linalg_norm", "norm"), _matrix_norm),
    "linalg_cond": _condition,
    **dict.fromkeys(("matrix_rank", "linalg_matrix_rank"), _rank),
    **dict.fromkeys(("pinverse", "linalg_pinv"), _pseudo_inverse),
    "linalg_lstsq": _least_squares,
}
