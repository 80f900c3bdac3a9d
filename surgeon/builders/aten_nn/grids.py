"""PyTorch's grid sampling and affine grids, by ATen/native/GridSampler.h.

GridSample stands in from opset 16 for planes and from opset 20 for volumes; else the corners are
gathered and weighed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.builders.parts import Array, Length
from surgeon.builders.scalar_types import finfo
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_MODES = {0: "bilinear", 1: "nearest", 2: "bicubic"}
_NEWER_MODES = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}  # from opset 20
_CUBIC = -0.75  # the coefficient of PyTorch's kernel
# Keys' kernel of a distance up to 1 and beyond it, from its cube down.
WITHIN = (_CUBIC + 2, -(_CUBIC + 3), 0.0, 1.0)
BEYOND = (_CUBIC, -5 * _CUBIC, 8 * _CUBIC, -4 * _CUBIC)
_FIRST_WHERE = 9
_FAR = 2.0**30  # whole numbers in 64 bits hold it times any length
_PADDINGS = {0: "zeros", 1: "border", 2: "reflection"}


def grid_sampler(draft: Draft, match: Match) -> Any:
    """`aten.grid_sampler (x, grid, interpolation_mode, padding_mode, align_corners)`."""
    args = bind(match.root, draft.facts)
    of_cudnn = match.root.op == "cudnn_grid_sampler"
    x, grid = args.tensor("self" if of_cudnn else "input"), args.tensor("grid")
    rank = parts.rank_of(draft, x)
    if rank not in (4, 5):
        raise Refused(f"its input has rank {rank}, not 4 or 5")
    mode, padding, corners = "bilinear", "zeros", True  # all that cuDNN has
    if not of_cudnn:
        mode = _MODES[int(args.value("interpolation_mode"))]
        padding = _PADDINGS[int(args.value("padding_mode"))]
        corners = bool(args.value("align_corners"))
    return sampled(draft, x, grid, mode, padding, corners=corners)


def sampled(
    draft: Draft, x: gs.Tensor, grid: gs.Tensor, mode: str, padding: str, *, corners: bool
) -> Any:
    """What a grid reads of images or volumes, as `torch.nn.functional.grid_sample` says.

    Args:
        draft: Where the nodes go.
        x: Images [N, C, H, W], or volumes [N, C, D, H, W].
        grid: Places [N, ..., 2] or [N, ..., 3], the innermost axis first, of x's dtype.
        mode: `bilinear`, `nearest` or `bicubic`.
        padding: `zeros`, `border` or `reflection`.
        corners: Whether -1 and 1 are the middles of the outer elements, or their outer borders.
    """
    opset, rank = draft.facts.opset, parts.rank_of(draft, grid)
    # ONNX rounds to the nearest sample and reflects it; PyTorch reflects and rounds, which parts
    # between two samples unless the corners are the samples' own.
    apart = mode == "nearest" and padding == "reflection" and not corners
    double = draft.facts.of(x).dtype == onnx.TensorProto.DOUBLE  # onnxruntime has it from 20 on
    if opset >= (16 if rank == 4 and not double else 20) and not apart:
        name = _NEWER_MODES[mode] if opset >= 20 else mode
        return draft.op(
            "GridSample", x, grid, mode=name, padding_mode=padding, align_corners=int(corners)
        )
    return gathered_samples(draft, x, grid, mode, padding, corners=corners)


def gathered_samples(
    draft: Draft, x: gs.Tensor, grid: gs.Tensor, mode: str, padding: str, *, corners: bool
) -> gs.Tensor:
    """The same without GridSample, of arguments as `sampled` takes them."""
    rank = parts.rank_of(draft, grid)
    if mode == "bicubic" and rank == 5:
        raise Refused("volumes are not sampled bicubically")
    return _Sampling(draft, x, grid, rank, mode, padding, corners=corners).result()


class _Sampling:
    """Corners gathered from the flattened input, all at once."""

    def __init__(
        self,
        draft: Draft,
        x: gs.Tensor,
        grid: gs.Tensor,
        rank: int,
        mode: str,
        padding: str,
        *,
        corners: bool,
    ) -> None:
        self.draft, self.x, self.grid, self.rank = draft, x, grid, rank
        self.mode, self.padding, self.corners = mode, padding, corners
        self.dtype = parts.numpy_dtype(draft, x)
        self.number = int(onnx.helper.np_dtype_to_tensor_dtype(self.dtype))
        self.taps = {"nearest": range(1), "bilinear": range(2), "bicubic": range(-1, 3)}[mode]
        self.lengths = parts.lengths_of(draft, x, rank)
        self.targets = parts.lengths_of(draft, grid, rank)
        known = [length.static for length in self.targets[1:-1]]
        # spelled out where it is known: of a batch of 0 runtimes infer no rest
        self.count = -1 if None in known else math.prod(n for n in known if n is not None)
        if not parts.is_float(self.dtype):
            raise Refused(f"no standard form samples {self.dtype.name}")

    def constant(self, value: float) -> gs.Tensor:
        return self.draft.constant(np.array([value], self.dtype), "number")

    def as_float(self, length: Length) -> gs.Tensor:
        if length.static is not None:
            return self.constant(length.static)
        return self.draft.op("Cast", length.make(), to=self.number)

    def result(self) -> gs.Tensor:
        draft, spatial = self.draft, self.rank - 2
        # the grid's last axis counts from the innermost axis of the input
        places, grid = [], self._numbers()
        # an axis for the taps along each spatial one; none of a single tap
        ones = [1] * (spatial if len(self.taps) > 1 else 0)
        for axis in range(spatial):
            index = draft.constant([spatial - 1 - axis], "coordinate")
            along = draft.op("Gather", grid, index, axis=self.rank - 1)
            points = draft.constant([0, *ones, self.count], "points")
            size = self.as_float(self.lengths[axis + 2])
            places.append((self._place(draft.op("Reshape", along, points), size), size))
        drawn = [
            (*self._drawn(place, size, spatial - axis), size)
            for axis, (place, size) in enumerate(places)
        ]
        moved = draft.op("Transpose", self._total(drawn), perm=[0, 2, 1])  # [N, C, points]
        return parts.reshape(draft, moved, [0, 0, *self.targets[1:-1]])

    def _numbers(self) -> gs.Tensor:
        """The grid, with -1 for what is no number or beyond all: Gather would end the run."""
        draft = self.draft
        if draft.facts.opset < _FIRST_WHERE:
            return self.grid
        far = self.constant(min(_FAR, float(finfo(self.dtype).max)))
        near = draft.op("Less", draft.op("Abs", self.grid), far)
        return draft.op("Where", near, self.grid, self.constant(-1))

    def _drawn(
        self, place: gs.Tensor, size: gs.Tensor, behind: int
    ) -> tuple[gs.Tensor, gs.Tensor | None]:
        """The elements of an axis, and the share that each has; all of it for None.

        Args:
            place: Where to draw from, [N, 1, ..., points].
            size: Of the axis.
            behind: Axes behind that of the taps.
        """
        draft = self.draft
        if self.mode == "nearest":
            return draft.op("Round", place), None
        taps = np.array(self.taps, self.dtype).reshape([-1, *[1] * behind])
        low = draft.op("Floor", place)
        part = draft.op("Sub", place, low)
        at = draft.op("Add", low, draft.constant(taps, "taps"))
        linear = self.mode == "bilinear"  # each element has what the place is off the other
        beside = draft.constant(1 - taps if linear else taps, "beside")
        apart = draft.op("Abs", draft.op("Sub", part, beside))
        if linear:
            return at, apart
        if self.padding == "reflection":
            at = self._reflected(at, size)
        return at, self._polynomial(apart, taps)

    def _place(self, coordinate: gs.Tensor, size: gs.Tensor) -> gs.Tensor:
        """Where a coordinate of [-1, 1] lies on an axis, in elements."""
        draft, one, half = self.draft, self.constant(1), self.constant(0.5)
        raised = draft.op("Add", coordinate, one)
        last = draft.op("Sub", size, one)
        if self.corners:
            place = draft.op("Mul", draft.op("Mul", raised, half), last)
        else:
            place = draft.op("Mul", draft.op("Sub", draft.op("Mul", raised, size), one), half)
        if self.mode == "bicubic":
            return place  # its taps are brought inside one by one
        if self.padding == "reflection":
            place = self._reflected(place, size)
        if self.padding != "zeros":
            place = self._clipped(place, last)
        return place

    def _clipped(self, place: gs.Tensor, last: gs.Tensor) -> gs.Tensor:
        return self.draft.op("Min", self.draft.op("Max", place, self.constant(0)), last)

    def _reflected(self, place: gs.Tensor, size: gs.Tensor) -> gs.Tensor:
        return reflected(self.draft, place, size, corners=self.corners)[0]

    def _polynomial(self, apart: gs.Tensor, taps: Array) -> gs.Tensor:
        """Keys' kernel, by Horner's rule: one polynomial of the distance up to 1, one beyond."""
        near = (taps == 0) | (taps == 1)
        value: gs.Tensor | None = None
        for within, beyond in zip(WITHIN, BEYOND, strict=True):
            coefficients = np.where(near, within, beyond).astype(self.dtype)
            term = self.draft.constant(coefficients, "coefficients")
            if value is not None:
                term = self.draft.op("Add", self.draft.op("Mul", value, apart), term)
            value = term
        assert value is not None
        return value

    def _table(self) -> gs.Tensor:
        """The input as rows of channels [N * elements, C]."""
        draft = self.draft
        perm = [0, *range(2, self.rank), 1]
        moved = draft.op("Transpose", self.x, perm=perm)
        return parts.reshape(draft, moved, [-1, self.lengths[1]])

    def _total(self, drawn: list[tuple[gs.Tensor, gs.Tensor | None, gs.Tensor]]) -> gs.Tensor:
        """The sums over corners [N, points, C], weighed, of nothing where they lie outside."""
        draft, one = self.draft, self.constant(1)
        flat: gs.Tensor | None = None
        weight: gs.Tensor | None = None
        for axis, (at, share, size) in enumerate(drawn):
            inside = self._clipped(at, draft.op("Sub", size, one))
            if self.padding == "zeros":
                there = draft.op(
                    "Cast", draft.op("Equal", *self._whole(at, inside)), to=self.number
                )
                share = there if share is None else draft.op("Mul", share, there)
            place = draft.op("Cast", inside, to=parts.INT64)
            if flat is None:
                flat = place
            else:
                flat = draft.op("Add", draft.op("Mul", flat, self.lengths[axis + 2].make()), place)
            if share is not None:
                weight = share if weight is None else draft.op("Mul", weight, share)
        assert flat is not None
        if self.mode == "nearest":
            values = draft.op("Gather", self._table(), self._in_batch(flat, 1), axis=0)
            return (
                values
                if weight is None
                else draft.op("Mul", values, parts.unsqueeze(draft, weight, 2))
            )
        corners = [0, len(self.taps) ** len(drawn), self.count]
        flat = draft.op("Reshape", flat, draft.constant(corners, "corners"))
        # all corners at once: Rockchip's converter takes two Gathers of one table for one
        values = draft.op("Gather", self._table(), self._in_batch(flat, 2), axis=0)
        weight = draft.op("Reshape", weight, draft.constant([*corners, 1], "weights"))
        weighed = draft.op("Mul", values, weight)
        return draft.op("ReduceSum", weighed, draft.constant([1], "axes"), keepdims=0)

    def _in_batch(self, flat: gs.Tensor, behind: int) -> gs.Tensor:
        """Places in an image, [N, ...], as places in the table of all."""
        draft, batch = self.draft, self.lengths[0]
        if batch.static == 1:
            return flat
        elements = self.lengths[2].make()
        for length in self.lengths[3:]:
            elements = draft.op("Mul", elements, length.make())
        first = draft.op("Mul", parts.counting(draft, batch), elements)
        return draft.op("Add", flat, parts.unsqueeze(draft, first, *range(1, 1 + behind)))

    def _whole(self, *values: gs.Tensor) -> list[gs.Tensor]:
        """Whole numbers as integers: Equal takes no floats below opset 11."""
        return [self.draft.op("Cast", value, to=parts.INT64) for value in values]


def reflected(
    draft: Draft, place: gs.Tensor, size: gs.Tensor, *, corners: bool
) -> tuple[gs.Tensor, gs.Tensor]:
    """A place brought within the elements, and whether it comes back from the end: 1, or else 0.

    Args:
        draft: Where the nodes go.
        place: In elements.
        size: How many there are, in the place's dtype.
        corners: Whether the middles of the outer elements reflect, or their outer borders.
    """
    dtype = parts.numpy_dtype(draft, place)
    one, half, two = (draft.constant(np.array(n, dtype), "number") for n in (1, 0.5, 2))
    low = draft.constant(np.array(first_place(corners=corners), dtype), "low")
    # a single element with aligned corners spans nothing: everything is that element
    span = draft.op("Max", draft.op("Sub", size, one), one) if corners else size
    distance = draft.op("Abs", draft.op("Sub", place, low))
    flips = draft.op("Floor", draft.op("Div", distance, span))
    extra = draft.op("Sub", distance, draft.op("Mul", flips, span))
    halves = draft.op("Floor", draft.op("Mul", flips, half))
    odd = draft.op("Sub", flips, draft.op("Mul", halves, two))
    back = draft.op("Mul", odd, draft.op("Sub", draft.op("Sub", span, extra), extra))
    return draft.op("Add", draft.op("Add", extra, back), low), odd


def first_place(*, corners: bool) -> float:
    """Where an axis reflects at its begin, in elements."""
    return 0.0 if corners else -0.5


def affine_grid_generator(draft: Draft, match: Match) -> Any:
    """`aten.affine_grid_generator (theta, size, align_corners)`, of planes and volumes."""
    args = bind(match.root, draft.facts)
    theta = args.tensor("theta")
    lengths, corners = _points(draft, args, _rank_of_grid(draft, args, theta))
    return affine_grid(draft, theta, lengths, corners=corners)


def _points(draft: Draft, args: Arguments, rank: int) -> tuple[Sequence[Length], bool]:
    """The lengths of a grid, and whether its outermost points lie on the edge."""
    if args.schema.takes("size"):
        lengths = parts.lengths_given(draft, args, "size", rank)[2:]
        return lengths, bool(args.value("align_corners"))
    if rank != 4:
        raise Refused("cuDNN has affine grids of planes alone")
    return [parts.constant_length(draft, int(args.value(name))) for name in ("H", "W")], True


def affine_grid_backward(draft: Draft, match: Match) -> Any:
    """`aten.affine_grid_generator_backward (grad, size, align_corners)`: of `theta`.

    Each column of theta gets what the points got, by the coordinate that it was multiplied with.
    """
    args = bind(match.root, draft.facts)
    gradient = args.first()
    rank = parts.rank_of(draft, gradient)
    lengths, corners = _points(draft, args, rank)
    dtype, spatial = parts.numpy_dtype(draft, gradient), rank - 2
    over = draft.constant(list(range(1, rank - 1)), "axes")
    columns = []
    for axis in reversed(range(spatial)):  # the first column is of the innermost axis
        steps = _steps(draft, lengths[axis], dtype, corners=corners)
        steps = parts.unsqueeze(draft, steps, *range(1, spatial - axis + 1))
        columns.append(draft.op("Mul", gradient, steps))
    columns.append(gradient)
    sums = [draft.op("ReduceSum", column, over, keepdims=0) for column in columns]
    return draft.op("Concat", *(parts.unsqueeze(draft, x, 2) for x in sums), axis=2)


def affine_grid(
    draft: Draft, theta: gs.Tensor, lengths: Sequence[Length], *, corners: bool
) -> gs.Tensor:
    """Where the points of a grid of these lengths come to lie, [N, *lengths, axes].

    Args:
        draft: Where the nodes go.
        theta: [N, axes, axes + 1].
        lengths: Of the grid.
        corners: Whether its outermost points lie on the edge, instead of half a step inside.
    """
    spatial = len(lengths)
    dtype = parts.numpy_dtype(draft, theta)
    total: gs.Tensor | None = None
    for axis, length in enumerate(lengths):
        steps = _steps(draft, length, dtype, corners=corners)
        behind = spatial - 1 - axis
        steps = parts.unsqueeze(draft, steps, *range(1, behind + 2))
        term = draft.op("Mul", _column_of(draft, theta, behind, spatial), steps)
        total = term if total is None else draft.op("Add", total, term)
    made: gs.Tensor = draft.op("Add", total, _column_of(draft, theta, spatial, spatial))
    return made


def _rank_of_grid(draft: Draft, args: Arguments, theta: gs.Tensor) -> int:
    """4 for planes and 5 for volumes: as many as there are sizes, and one more row than theta."""
    shape = draft.facts.of(theta).shape
    if shape is not None and len(shape) == 3 and shape[1] in (2, 3):
        return 4 if shape[1] == 2 else 5
    if not args.schema.takes("size"):
        return 4
    given = args.given["size"]
    if isinstance(given, list):
        return len(given)
    sizes = None if given is None else draft.facts.of(given).shape
    if sizes is None or sizes[0] not in (4, 5):
        raise Refused("the shape of `theta` is not known")
    return 4 if sizes[0] == 4 else 5


def _column_of(draft: Draft, theta: gs.Tensor, column: int, spatial: int) -> gs.Tensor:
    """A column of theta [N, 1, ..., k], as it broadcasts over a grid."""
    taken = draft.op("Gather", theta, draft.constant(np.array(column), "column"), axis=2)
    return draft.op("Reshape", taken, draft.constant([0, *[1] * spatial, spatial], "sizes"))


def _steps(draft: Draft, length: Length, dtype: np.dtype[Any], *, corners: bool) -> gs.Tensor:
    """The coordinates of an axis: -1 to 1, or the middles of as many pieces of it."""
    if length.static is not None:
        n = length.static
        at = np.arange(n, dtype=np.float64)
        values = (2 * at - (n - 1)) / (max(n - 1, 1) if corners else n)
        return draft.constant(values.astype(dtype), "steps")
    number = int(onnx.helper.np_dtype_to_tensor_dtype(dtype))
    one, two = (draft.constant(np.array([v], dtype), "number") for v in (1, 2))
    at = draft.op("Cast", parts.counting(draft, length), to=number)
    size = draft.op("Cast", length.make(), to=number)
    gaps = draft.op("Sub", size, one)
    above = draft.op("Sub", draft.op("Mul", at, two), gaps)
    return draft.op("Div", above, draft.op("Max", gaps, one) if corners else size)
