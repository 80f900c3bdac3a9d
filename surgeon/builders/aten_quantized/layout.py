"""Where scales stand beside what is quantised: one for all, along an axis, or for blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.arguments import Arguments
from surgeon.builders.bench import TYPE, Bench
from surgeon.rewrite import Refused

Back = Callable[[gs.Tensor], gs.Tensor]
_ROWS = 2  # the rank of weights in groups


class Block(NamedTuple):
    """The axis along which several places have one scale, and how many."""

    axis: int
    size: int


@dataclass(frozen=True)
class Layout:
    """What is quantised, and its scales.

    Attributes:
        x: The value, or its levels.
        scale: The scales.
        zero: The zero points; None for 0.
        axis: The axis along which they stand; None for one scale, or for what follows.
        block: Where each has a block of places; every other axis has a scale for each place.
        broadcast: Whether the scales have the axes of the value, and go with it.
    """

    x: gs.Tensor
    scale: gs.Tensor
    zero: gs.Tensor | None
    axis: int | None = None
    block: Block | None = None
    broadcast: bool = False

    def is_symmetric(self, c: Bench) -> bool:
        """Whether the level of 0 is known to be 0."""
        if self.zero is None:
            return True
        shift = c.facts.array(self.zero)
        return shift is not None and not shift.any()

    def operands(self, c: Bench, kind: int) -> tuple[gs.Tensor, gs.Tensor | None, dict[str, int]]:
        """Scale, zero point and attributes as ONNX's operators want them."""
        shape = self._shape(c)
        scale = _shaped(c, c.cast(self.scale, TYPE.FLOAT), shape)
        where: dict[str, int] = {} if self.axis is None else {"axis": self.axis}
        if self.block is not None:
            where = {"axis": self.block.axis, "block_size": self.block.size}
        if self.zero is None:  # QuantizeLinear tells its dtype by it
            known = c.shape(scale)
            if known is None or not all(isinstance(size, int) for size in known):
                raise Refused("how many scales there are is not known")
            zeros = np.zeros([int(str(size)) for size in known])
            return scale, _constant(c, zeros, kind), where
        shift = c.facts.array(self.zero)
        if shift is None:
            if not self.holds_zero(c, kind):
                raise Refused("that the dtype of its levels holds its zero point is not known")
            return scale, _shaped(c, self.zero, shape), where
        if not self.holds_zero(c, kind):
            raise Refused("its dtype does not hold its zero point")
        return scale, _constant(c, shift.reshape(shape), kind), where

    def holds_zero(self, c: Bench, kind: int) -> bool:
        """Whether the zero point is known to be one of this dtype's numbers."""
        if self.zero is None:
            return True
        shift = c.facts.array(self.zero)
        if shift is None:
            return c.dtype(self.zero) == kind
        most = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(kind))
        whole = (shift == np.rint(shift)) & (shift >= most.min) & (shift <= most.max)
        return bool(whole.all())

    def _shape(self, c: Bench) -> list[int]:
        if self.block is None:
            return [] if self.axis is None else [-1]
        return [size // self._size(axis) for axis, size in enumerate(_known(c, self.x, 0))]

    def _size(self, axis: int) -> int:
        assert self.block is not None
        return self.block.size if axis == self.block.axis else 1

    def shape_beside(self, c: Bench) -> list[int] | None:
        """The shape in which scales along an axis go with the value; None for a single one."""
        if self.axis is None:
            return None
        return [-1, *[1] * (c.rank(self.x) - self.axis - 1)]

    def apart(self, c: Bench, x: gs.Tensor) -> tuple[gs.Tensor, Back]:
        """The value with a block in each row, [rows, block, what is behind]; and how to go back."""
        if self.block is None:
            return x, lambda y: y
        behind = math.prod(_known(c, x, self.block.axis + 1))
        sizes = c.sizes(x)
        target = [-1, self.block.size, *([behind] if behind > 1 else [])]
        return c.op("Reshape", x, c.ints(target)), lambda y: c.reshape(y, sizes)

    def as_rows(self, c: Bench, rows: gs.Tensor) -> Layout | None:
        """Blocks along the last axis, of which each is a row with a scale."""
        if self.block is None or c.rank(rows) != _ROWS:
            return None
        return Layout(rows, self.scale, self.zero, axis=0)

    def numbers(self, c: Bench) -> tuple[gs.Tensor, gs.Tensor | None]:
        """Scale and zero point in a shape that goes with the value, or with its blocks apart."""
        if self.broadcast:
            return self.scale, self.zero
        shape = self.shape_beside(c) or []
        if self.block is not None:
            behind = math.prod(_known(c, self.x, self.block.axis + 1))
            shape = [-1, 1, *([behind] if behind > 1 else [])]
        zero = None if self.zero is None else _shaped(c, self.zero, shape)
        return _shaped(c, self.scale, shape), zero


def layout_of(c: Bench, args: Arguments) -> Layout:
    """Where the scales of an operator stand.

    Raises:
        Refused: That is not known.
    """
    many = args.schema.takes("scales")
    x = args.tensor("self")
    scale = args.tensor("scales" if many else "scale")
    zero = args.optional("zero_points" if many else "zero_point")
    if zero is not None and c.shape(zero) == (0,):
        zero = None
    if args.schema.takes("axis"):
        return Layout(x, scale, zero, axis=c.axis(int(args.value("axis")), c.rank(x)))
    if args.schema.takes("group_size"):
        return _grouped(c, Layout(x, scale, zero), int(args.value("group_size")))
    if args.schema.takes("block_size"):
        return _blocks(c, Layout(x, scale, zero), [int(n) for n in args.dims("block_size")])
    if many:
        if c.rank(scale) != c.rank(x) or (zero is not None and c.rank(zero) != c.rank(x)):
            raise Refused("its scales lack the axes of what is quantised")
        return Layout(x, scale, zero, broadcast=True)
    return Layout(x, scale, zero)


def _grouped(c: Bench, whole: Layout, size: int) -> Layout:
    if c.rank(whole.x) != _ROWS:
        raise Refused("its groups are of rows, and it has other than two axes")
    (length,) = _known(c, whole.x, 1)
    if size >= length:
        shape = c.shape(whole.scale)
        if size > length and (shape is None or shape[-1] != 1):
            raise Refused("its groups are longer than its rows")
        return Layout(whole.x, whole.scale, whole.zero, axis=0)
    if size < 1 or length % size:
        raise Refused("its groups do not go into its rows")
    return Layout(whole.x, whole.scale, whole.zero, block=Block(1, size))


def _blocks(c: Bench, whole: Layout, sizes: list[int]) -> Layout:
    """torchao's block sizes: of 1 for a scale of each place, of the whole axis, or between."""
    shape = c.shape(whole.x)
    if shape is None or len(shape) != len(sizes):
        raise Refused("there is not one block size for each axis that is known")
    single = [axis for axis, size in enumerate(sizes) if size == 1 and shape[axis] != 1]
    all_of = [
        axis
        for axis, size in enumerate(sizes)
        if size == -1 or dims.equal(size, shape[axis]) is True
    ]
    others = [axis for axis in range(len(sizes)) if axis not in {*single, *all_of}]
    if not others and not single:
        return whole
    if not others and len(single) == 1:
        return Layout(whole.x, whole.scale, whole.zero, axis=single[0])
    blocked = others or [axis for axis in all_of if shape[axis] != 1]
    rest = [axis for axis in all_of if shape[axis] != 1 and axis not in blocked]
    if len(blocked) != 1 or rest:
        raise Refused("it has blocks along several axes")
    (axis,) = blocked
    length = shape[axis]
    size = length if sizes[axis] == -1 else sizes[axis]
    if not isinstance(length, int) or not isinstance(size, int) or length % size:
        raise Refused("that its blocks go into the axis is not known")
    return Layout(whole.x, whole.scale, whole.zero, block=Block(axis, size))


def _known(c: Bench, x: gs.Tensor, first: int) -> list[int]:
    """The lengths of its axes from this one on, which must be numbers."""
    shape = c.shape(x)
    if shape is None:
        raise Refused(f"the shape of `{x.name}` is not known")
    found = [size for size in shape[first:] if isinstance(size, int)]
    if len(found) != len(shape) - first:
        raise Refused(f"the shape of `{x.name}` is not known")
    return found


def _shaped(c: Bench, value: gs.Tensor, shape: list[int]) -> gs.Tensor:
    array = c.facts.array(value)
    if array is not None:
        return c.draft.constant(np.asarray(array).reshape(shape), "number")
    if c.shape(value) == tuple(shape) or (shape == [-1] and c.facts.of(value).rank == 1):
        return value
    made: gs.Tensor = c.op("Reshape", value, c.ints(shape))
    return made


def _constant(c: Bench, array: Any, kind: int) -> gs.Tensor:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    return c.draft.constant(np.asarray(array).astype(dtype), "zero_point")
