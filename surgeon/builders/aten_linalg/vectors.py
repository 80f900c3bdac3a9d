"""Singular vectors and eigenvectors: the directions that the rotations of columns end in.

A V = B with orthogonal columns of lengths S: V are the right vectors, B / S the left ones. Which of
two opposite vectors stands for a direction is the implementation's, as PyTorch says itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.aten_linalg import matrices as m
from surgeon.builders.aten_linalg import rotations as r
from surgeon.builders.aten_linalg.factors import orthogonal_factor
from surgeon.builders.aten_shape.call import Call
from surgeon.builders.aten_shape.order import topk
from surgeon.builders.scalar_types import finfo
from surgeon.rewrite import Refused
from surgeon.schemas.aliases import plain_name

_OF_SIGNS = (
    "the vectors are given out, and their signs are the implementation's; compute them outside "
    "the model, or give out what does not depend on them"
)
# Operators whose output holds elements of their first input, or parts of these, and nothing else.
_MOVES = frozenset(
    "Cast Gather Identity Reshape Slice Squeeze Transpose Unsqueeze _conj adjoint angle clone conj "
    "conj_physical contiguous flatten imag mH mT matrix_H narrow numpy_T permute real reshape "
    "resolve_conj select slice squeeze t to transpose unsqueeze view view_as_real".split()
)


def singular_vectors(c: Call) -> tuple[gs.Tensor, ...]:
    """`svd` gives U, S, V, the others U, S, V^H."""
    require_inner(c, 0, 2)
    a = c.args.first()
    schema = c.args.schema
    if schema.takes("compute_uv") and not c.value("compute_uv"):
        raise Refused("its vectors are read, and not computed")
    full = bool(c.value("full_matrices")) if schema.takes("full_matrices") else False
    if schema.takes("some"):
        full = not c.value("some")
    high, wide = (_known_side(c, a, axis) for axis in (-2, -1))
    flat = high < wide
    left, values, right = _decomposed(c, m.turned(c, a) if flat else a, full=full)
    left, right = (right, left) if flat else (left, right)
    return left, values, right if c.node.op == "svd" else m.turned(c, right)


def eigenvectors(c: Call) -> tuple[gs.Tensor, ...]:
    """The eigenvalues of symmetric matrices, the smallest first, and their vectors as columns."""
    require_inner(c, 1)
    a = c.args.first()
    for name in ("compute_v", "eigenvectors"):
        if c.args.schema.takes(name) and not c.value(name):
            raise Refused("its vectors are read, and not computed")
    size = _known_side(c, a, -1)
    shifted, shift = r.shifted(c, r.symmetric(c, a, upper=r.reads_upper(c)))
    _, values, vectors = _decomposed(c, shifted, full=False)
    last, order = c.rank(values) - 1, m.backwards(c, size)
    return (
        c.op("Gather", c.op("Sub", values, shift), order, axis=last),
        c.op("Gather", vectors, order, axis=last + 1),
    )


def _known_side(c: Call, a: gs.Tensor, axis: int) -> int:
    size = m.side(c, a, axis, r.LARGEST_TURNED)
    if not isinstance(size, int):
        raise Refused("its vectors are read, and how many rows or columns there are is not known")
    return size


def _decomposed(c: Call, a: gs.Tensor, *, full: bool) -> tuple[gs.Tensor, gs.Tensor, gs.Tensor]:
    """U, S and V of matrices that are not wider than high, the largest values first.

    A column of length 0 says no direction: what it stands for is any that is orthogonal to the
    others, as the factor Q of those that do is.
    """
    high, wide = _known_side(c, a, -2), _known_side(c, a, -1)
    found = r.orthogonal_columns(c, a, basis=True)
    values, told, left, basis = directions(c, found, high, wide)
    rest = orthogonal_factor(c, left, high, wide, complete=full)
    inner = m.columns(c, rest, 0, wide) if full and high > wide else rest
    left = c.op("Where", told, left, inner)
    if full and high > wide:
        left = c.concat([left, m.columns(c, rest, wide)], c.rank(a) - 1)
    return left, values, basis


class Directions(NamedTuple):
    """Orthogonal columns by their lengths, the longest first.

    Attributes:
        values: [..., wide], the lengths.
        told: [..., 1, wide], whether a column is long enough to say a direction.
        units: [..., rows, wide], the columns at length 1; 0 where they say none.
        basis: [..., rows, wide], what they were turned by, in the same order.
    """

    values: gs.Tensor
    told: gs.Tensor
    units: gs.Tensor
    basis: gs.Tensor


def directions(c: Call, found: r.Orthogonal, high: int, wide: int) -> Directions:
    """The columns of matrices [..., high, wide] that rotations made orthogonal."""
    assert found.basis is not None
    # behind the last turn of a sweep every column stands where it stood, and the zeros at the end
    product, basis = (m.columns(c, x, 0, wide) for x in (found.product, found.basis))
    rank, dtype = c.rank(product), c.dtype(product)
    values, order = topk(c, r.lengths(c, product), rank - 2, wide, largest=True)
    places = c.op("Equal", m.places(c, wide), c.unsqueeze(order, [rank - 2]))
    sorting = c.cast(places, dtype)  # [..., wide, wide]: in each column one 1
    product, basis = (c.op("MatMul", x, sorting) for x in (product, basis))
    lengths = c.unsqueeze(values, [rank - 2])
    largest = c.op("ReduceMax", lengths, c.ints([rank - 1], "axes"), keepdims=1)
    eps = float(finfo(onnx.helper.tensor_dtype_to_np_dtype(dtype)).eps)
    told = c.op("Less", c.op("Mul", largest, c.number(high * eps, dtype)), lengths)
    zero, one = c.number(0, dtype), c.number(1, dtype)
    units = c.op("Div", c.op("Where", told, product, zero), c.op("Where", told, lengths, one))
    values = c.op("Mul", values, c.squeeze(found.scale, [rank - 1]))
    return Directions(values, told, units, basis)


def require_inner(c: Call, *outputs: int) -> None:
    """No vector may reach an output of the model as it is.

    Raises:
        Refused: One does.
    """
    waiting = [c.node.outputs[place] for place in outputs if m.is_read(c, place)]
    seen = set(map(id, waiting))
    while waiting:
        tensor = waiting.pop()
        if c.draft.surgery.is_output(tensor):
            raise Refused(_OF_SIGNS)
        for reader in tensor.outputs:
            # one behind this node may still be as the file has it
            operator = str(reader.attrs.get("operator", reader.op))
            if plain_name(operator) in _MOVES and reader.inputs[0] is tensor:
                fresh = [t for t in reader.outputs if id(t) not in seen]
                seen.update(map(id, fresh))
                waiting += fresh


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("svd", "linalg_svd", "_linalg_svd"), singular_vectors),
    **dict.fromkeys(("linalg_eigh", "_linalg_eigh", "symeig"), eigenvectors),
}
