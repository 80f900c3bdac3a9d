"""CumSum as a product with a triangle of ones, and updates cast to what they are scattered into."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.parts import Length
from surgeon.facts.fact import INTEGERS
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_LONGEST = 2048  # beyond, a constant triangle costs more than it is worth
_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)

_WHOLE = (
    onnx.TensorProto.INT32,
    onnx.TensorProto.INT64,
    onnx.TensorProto.UINT32,
    onnx.TensorProto.UINT64,
)


def cumsum_as_matmul(draft: Draft, match: Match) -> gs.Tensor:
    """CumSum: x @ triangle for the last axis, triangle @ x before.

    A triangle of run-time length is computed. Integers are multiplied as such, which is exact;
    conditions that are counted go through float, which runtimes rather have: a triangle of more
    than 2**24 rows, from where on counts are no longer exact, has room nowhere.
    """
    node, facts = match.root, draft.facts
    x: gs.Tensor = node.inputs[0]
    fact, axis_value = facts.of(x), facts.array(node.inputs[1])
    if fact.shape is None or axis_value is None or not fact.dtype:
        raise Refused("its axis, or the rank or dtype of its input, is not known")
    rank, kind = len(fact.shape), fact.dtype
    if kind not in (*_FLOATS, *_WHOLE):
        raise Refused("its input is no number that CumSum takes; `operand-types` mends that")
    axis = int(axis_value.reshape(-1)[0]) % rank
    if kind not in _FLOATS and (condition := _condition(draft, x)) is not None:
        kind = onnx.TensorProto.FLOAT
        x = draft.op("Cast", condition, to=kind)
    ahead = axis == rank - 2
    triangle = _triangle(draft, node, parts.lengths_of(draft, x, rank)[axis], kind, ahead=ahead)
    if ahead:
        summed = draft.op("MatMul", triangle, x)
    elif axis == rank - 1:
        summed = draft.op("MatMul", x, triangle)
    else:
        perm = [i for i in range(rank) if i != axis] + [axis]
        moved = draft.op("MatMul", draft.op("Transpose", x, perm=perm), triangle)
        summed = draft.op("Transpose", moved, perm=[perm.index(i) for i in range(rank)])
    return parts.cast(draft, summed, fact.dtype)


def _condition(draft: Draft, x: gs.Tensor) -> gs.Tensor | None:
    """The condition whose truth a value counts, 0 or 1 each; None where it is another value."""
    while x.inputs and x.inputs[0].op == "Cast":
        x = x.inputs[0].inputs[0]
        dtype = draft.facts.of(x).dtype
        if dtype == onnx.TensorProto.BOOL:
            return x
        if dtype not in INTEGERS:
            return None
    return None


def _triangle(draft: Draft, node: gs.Node, length: Length, dtype: int, *, ahead: bool) -> gs.Tensor:
    """Ones where an element counts: [from, to], from <= to; [to, from] where it stands ahead."""
    exclusive, reverse = (bool(attribute_of(node, name)) for name in ("exclusive", "reverse"))
    flipped = ahead != reverse
    if length.static is not None:
        if length.static > _LONGEST:
            raise Refused(f"its axis has {length.static} elements, more than {_LONGEST}")
        ones = np.ones((length.static, length.static), onnx.helper.tensor_dtype_to_np_dtype(dtype))
        upper = np.triu(ones, 1 if exclusive else 0)
        return draft.constant(np.ascontiguousarray(upper.T if flipped else upper), "triangle")
    places = parts.counting(draft, length)
    rows, columns = parts.unsqueeze(draft, places, 1), parts.unsqueeze(draft, places, 0)
    if flipped:
        rows, columns = columns, rows
    if exclusive:
        counts = draft.op("Less", rows, columns)
    else:
        counts = draft.op("Not", draft.op("Greater", rows, columns))
    return draft.op("Cast", counts, to=dtype)


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
