"""CumSum as a product with a triangle of ones, and updates cast to what they are scattered into."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_LONGEST = 2048  # beyond, the triangle costs more than it is worth
_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)


def cumsum_as_matmul(draft: Draft, match: Match) -> gs.Tensor:
    """CumSum over an axis of static length: x @ triangle for the last axis, triangle @ x before."""
    node, facts = match.root, draft.facts
    x = node.inputs[0]
    fact, axis_value = facts.of(x), facts.array(node.inputs[1])
    if fact.shape is None or axis_value is None:
        raise Refused("its axis or the rank of its input is not known")
    if fact.dtype not in _FLOATS:
        raise Refused("a sum of integers is exact, and a product of floats is not past 2**24")
    rank = len(fact.shape)
    axis = int(axis_value.reshape(-1)[0]) % rank
    length = fact.shape[axis]
    if not isinstance(length, int):
        raise Refused(f"axis {axis} is {length}: the triangle needs its length; see `--shape`")
    if length > _LONGEST:
        raise Refused(f"axis {axis} has {length} elements, more than {_LONGEST}")
    dtype = onnx.helper.tensor_dtype_to_np_dtype(fact.dtype)
    # [from, to]: element `from` counts in the sum at `to` where from <= to
    triangle = np.triu(
        np.ones((length, length), dtype), 1 if attribute_of(node, "exclusive") else 0
    )
    if attribute_of(node, "reverse"):
        triangle = triangle.T
    if rank == 1:
        return draft.op("MatMul", x, draft.constant(np.ascontiguousarray(triangle), "triangle"))
    if axis == rank - 1:
        return draft.op("MatMul", x, draft.constant(np.ascontiguousarray(triangle), "triangle"))
    if axis == rank - 2:
        return draft.op("MatMul", draft.constant(np.ascontiguousarray(triangle.T), "triangle"), x)
    perm = [i for i in range(rank) if i != axis] + [axis]
    moved = draft.op("Transpose", x, perm=perm)
    summed = draft.op("MatMul", moved, draft.constant(np.ascontiguousarray(triangle), "triangle"))
    return draft.op("Transpose", summed, perm=[perm.index(i) for i in range(rank)])


def cast_updates(draft: Draft, match: Match) -> gs.Tensor:
    """Scatter whose updates have another dtype than its data: PyTorch casts them to the data's."""
    node, facts = match.root, draft.facts
    data, updates = facts.of(node.inputs[0]).dtype, facts.of(node.inputs[2]).dtype
    if not data or not updates:
        raise Refused("the dtype of its data or updates is not known")
    if data == updates:
        raise Refused("its data and updates have one dtype")
    cast = draft.op("Cast", node.inputs[2], to=data)
    indices, ranks = node.inputs[1], [facts.of(t).rank for t in node.inputs[1:3]]
    if node.op != "ScatterND" and ranks[0] != ranks[1]:
        shape = facts.of(node.inputs[2]).shape
        if None in ranks or any(d != 1 for d in shape or ()):
            raise Refused("its updates and indices have different ranks")
        cast = draft.op("Expand", cast, draft.op("Shape", indices))  # one value for every index
    return draft.op(node.op, node.inputs[0], indices, cast, **node.attrs)
