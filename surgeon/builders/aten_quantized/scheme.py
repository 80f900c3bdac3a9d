"""How a tensor is quantised: its scale, its zero point, and rounding to its levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.levels import levels
from surgeon.builders.pairs import along
from surgeon.rewrite import Refused

# PyTorch's numbers of the dtypes of quantised tensors that are eight bits wide: qint8 and quint8.
KINDS: Mapping[int, int] = {12: TYPE.INT8, 13: TYPE.UINT8}
_PAIRS, _PER_AXIS = 10, 13  # the opsets from which operators quantise, and along an axis


class Scheme(NamedTuple):
    """What a quantised tensor holds beside its whole numbers.

    Attributes:
        scale: The size of a step: float32, a number or one for each place of the axis.
        zero: The level of 0, in the dtype of the whole numbers.
        told: The scale as it was given, which may be in double precision.
        kind: That dtype, as ONNX numbers it: 8 bits, or 32 for a bias.
        axis: The axis that has a scale for each place; None where all elements have one.
    """

    scale: gs.Tensor
    zero: gs.Tensor
    told: gs.Tensor
    kind: int
    axis: int | None


def scheme_of(
    c: Bench, scale: gs.Tensor, zero: gs.Tensor, kind: int, axis: int | None = None
) -> Scheme:
    """The scheme by its parts, in any dtype of theirs."""
    shape = c.ints([] if axis is None else [-1])
    step = c.op("Reshape", c.cast(scale, TYPE.FLOAT), shape)
    level = c.op("Reshape", c.cast(zero, kind), shape)
    return Scheme(step, level, c.op("Reshape", scale, shape), kind, axis)


def from_whole(c: Bench, whole: gs.Tensor, scheme: Scheme) -> gs.Tensor:
    """The floats that whole numbers stand for."""
    if _has_pairs(c, scheme):
        where = along(c, scheme.scale, scheme.axis or 0)
        made: gs.Tensor = c.op("DequantizeLinear", whole, scheme.scale, scheme.zero, **where)
        return made
    scale, zero = _spread(c, scheme, whole)
    return c.op("Mul", c.op("Sub", c.op("Cast", whole, to=TYPE.FLOAT), zero), scale)


def rounded(c: Bench, x: gs.Tensor, scheme: Scheme) -> gs.Tensor:
    """The floats at the levels next to a value's."""
    return from_whole(c, to_whole(c, x, scheme), scheme)


def to_whole(c: Bench, x: gs.Tensor, scheme: Scheme) -> gs.Tensor:
    """The levels next to a value."""
    if scheme.kind not in KINDS.values():
        raise Refused("it is quantised to other than 8 bits")
    if _has_pairs(c, scheme):
        where = along(c, scheme.scale, scheme.axis or 0)
        made: gs.Tensor = c.op("QuantizeLinear", x, scheme.scale, scheme.zero, **where)
        return made
    ends = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(scheme.kind))
    level = levels(c.draft, x, *_spread(c, scheme, x), ends.min, ends.max)
    return c.op("Cast", level, to=scheme.kind)


def _has_pairs(c: Bench, scheme: Scheme) -> bool:
    return c.opset >= (_PAIRS if scheme.axis is None else _PER_AXIS)


def _spread(c: Bench, scheme: Scheme, x: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor]:
    """Scale and zero point as floats that go with the value along its axis."""
    zero = c.cast(scheme.zero, TYPE.FLOAT)
    if scheme.axis is None:
        return scheme.scale, zero
    rank = c.rank(x)
    behind = list(range(1, rank - scheme.axis % rank))
    both = (scheme.scale, zero)
    scale, zero = (c.unsqueeze(v, behind) if behind else v for v in both)
    return scale, zero
