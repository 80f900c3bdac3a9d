"""A normalisation whose file names no statistics: those of its batch."""

from __future__ import annotations

import onnx
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.standardising import column_of, standardised
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


def norm_by_batch(draft: Draft, match: Match) -> gs.Tensor:
    """A BatchNormalization whose mean and variance are left out, by those of what it is given."""
    node = match.root
    x, scale, bias, *statistics = node.inputs
    if any(not tensor.is_empty() for tensor in statistics):
        raise Refused("it has statistics")
    rank, dtype = parts.rank_of(draft, x), parts.numpy_dtype(draft, x)
    if rank < 2:
        raise Refused(f"its input has rank {rank}")
    wide = x
    if dtype.itemsize == 2:  # PyTorch sums halves in single precision
        wide = parts.cast(draft, x, onnx.TensorProto.FLOAT)
    kind, dtypes = parts.numpy_dtype(draft, wide), [draft.facts.of(t).dtype for t in (wide, x)]
    eps = float(attribute_of(node, "epsilon"))
    y = standardised(draft, wide, [0, *range(2, rank)], eps, kind)[0]
    for operator, vector in (("Mul", scale), ("Add", bias)):
        y = draft.op(operator, y, parts.cast(draft, column_of(draft, vector, rank), dtypes[0]))
    return parts.cast(draft, y, dtypes[1])
