"""Fourier transforms along an axis, as products with cosines and sines."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments
from surgeon.builders import parts
from surgeon.builders.parts import Array, Length
from surgeon.rewrite import Draft, Refused


class Complex(NamedTuple):
    """A value in two parts; the imaginary one is None for a real value."""

    real: gs.Tensor
    imaginary: gs.Tensor | None


def scale_of(norm: Any, size: int, *, inverse: bool) -> float:
    """What the sum is multiplied by; `backward` when it is not said."""
    if norm == "ortho":
        return 1.0 / math.sqrt(size)
    divides = inverse if norm in (None, "backward") else not inverse
    return 1.0 / size if divides else 1.0


# What a transform is multiplied by (c10 fft_norm_mode: nothing, by the root of n, by n), as
# PyTorch's word for it in each direction.
_FORWARD = (None, "ortho", "forward")
_BACKWARD = ("forward", "ortho", None)


def norm_of(args: Arguments, *, inverse: bool) -> str | None:
    """The word for a number that says how a transform is normalised."""
    return (_BACKWARD if inverse else _FORWARD)[int(args.value("normalization"))]


def axes_of(draft: Draft, args: Arguments, value: Complex) -> list[tuple[int, Length | None]]:
    """The axes from 0, each with the number of elements that is asked for."""
    rank = parts.rank_of(draft, value.real)
    if args.schema.takes("n"):
        size = parts.lengths_given(draft, args, "n", 1)[0] if args.has("n") else None
        return [(int(args.value("dim")) % rank, size)]
    asked, sizes = args.value("dim"), None
    if args.has("s"):
        sizes = parts.lengths_given(draft, args, "s", len(args.dims("s")))
    if asked is None:
        axes = list(range(rank - (rank if sizes is None else len(sizes)), rank))
    else:
        axes = [int(axis) % rank for axis in np.ravel(asked)]
    if sizes is None:
        return [(axis, None) for axis in axes]
    if len(sizes) != len(axes):
        raise Refused(f"`s` has {len(sizes)} numbers for {len(axes)} axes")
    return [
        (axis, None if size.static == -1 else size) for axis, size in zip(axes, sizes, strict=True)
    ]


def waves(rows: int, columns: int, size: int) -> tuple[Array, Array]:
    """Cosine and sine of 2 pi k t / n [rows, columns], the product reduced first.

    Where the angle is a multiple of a right one they are 0, 1 and -1: what is real stays so, whose
    angle would otherwise be decided by rounding.
    """
    turns = np.outer(np.arange(rows), np.arange(columns)) % size
    angles = turns * (2 * math.pi / size)
    cosine, sine = np.cos(angles), np.sin(angles)
    right = 4 * turns % size == 0
    return np.where(right, np.rint(cosine), cosine), np.where(right, np.rint(sine), sine)


def transform(
    draft: Draft,
    value: Complex,
    axis: int,
    size: Length | None,
    norm: Any,
    *,
    inverse: bool = False,
    half: bool = False,
) -> Complex:
    """The transform along an axis.

    Args:
        draft: Where the nodes go.
        value: What is transformed, real or complex.
        axis: The axis, from 0.
        size: How many elements count, zeros behind the last; None for as many as there are.
        norm: PyTorch's word for what the sum is divided by.
        inverse: Whether it goes back.
        half: Whether the half that is the other's conjugate is left out.
    """
    rank = parts.rank_of(draft, value.real)
    dtype = parts.numpy_dtype(draft, value.real)
    if not parts.is_float(dtype):
        raise Refused(f"no standard form transforms {dtype.name}")
    length = parts.lengths_of(draft, value.real, rank)[axis]
    whole = length if size is None else size
    if length.static is None or whole.static is None:
        matrices = _computed_matrices(draft, length, whole, dtype, norm, inverse=inverse, half=half)
    else:
        matrices = matrices_of(
            draft, length.static, whole.static, dtype, norm, inverse=inverse, half=half
        )
    cosine, sine = matrices

    def along(part: gs.Tensor, matrix: Any) -> gs.Tensor:
        return parts.multiply_axis(draft, part, axis, rank, matrix)

    # (a + ib)(c + is) summed over the axis, s with its sign
    if value.imaginary is None:
        return Complex(along(value.real, cosine), along(value.real, sine))
    real = draft.op("Sub", along(value.real, cosine), along(value.imaginary, sine))
    imaginary = draft.op("Add", along(value.real, sine), along(value.imaginary, cosine))
    return Complex(real, imaginary)


def real_inverse(
    draft: Draft,
    value: Complex,
    axis: int,
    size: Length | None,
    norm: Any,
    *,
    inverse: bool = True,
) -> gs.Tensor:
    """Back from half a spectrum: a product with cosines less one with sines.

    `inverse` says which way `norm` is to be read.
    """
    rank = parts.rank_of(draft, value.real)
    dtype = parts.numpy_dtype(draft, value.real)
    length = parts.lengths_of(draft, value.real, rank)[axis]
    size = _twice_less_two(draft, length) if size is None else size
    if length.static is None or size.static is None:
        run = Computed(draft, size, dtype)
        weight = run.twice_but_the_ends(length)
        cosine, sine = (
            run.matrix(f, size, length, scale=run.scale(norm, inverse=inverse), columns=weight)
            for f in ("Cos", "Sin")
        )
    else:
        scale = scale_of(norm, size.static, inverse=inverse)
        cosine, sine = (
            parts.constant_matrix(draft, matrix.T, dtype)
            for matrix in half_inverse(length.static, size.static, scale)
        )
    y = parts.multiply_axis(draft, value.real, axis, rank, cosine)
    if value.imaginary is None:
        return y
    minus = parts.multiply_axis(draft, value.imaginary, axis, rank, sine)
    return draft.op("Sub", y, minus)


def _twice_less_two(draft: Draft, length: Length) -> Length:
    """How many elements come back from half a spectrum, where it is not said."""
    if length.static is not None:
        return parts.constant_length(draft, 2 * (length.static - 1))
    two = draft.constant([2], "two")
    doubled = cache(lambda: draft.op("Sub", draft.op("Mul", length.make(), two), two))
    return Length(None if length.dim is None else 2 * length.dim - 2, doubled)


def matrices_of(
    draft: Draft,
    length: int,
    size: int,
    dtype: np.dtype[Any],
    norm: Any,
    *,
    inverse: bool,
    half: bool,
) -> tuple[Any, Any]:
    """The cosines and signed sines [frequencies, length] of a transform over `size` elements."""
    rows = size // 2 + 1 if half else size
    cosine, sine = waves(rows, length, size)
    kept = (np.arange(length) < size) * scale_of(norm, size, inverse=inverse)
    cosine, sine = cosine * kept, sine * kept * (1 if inverse else -1)
    return parts.constant_matrix(draft, cosine, dtype), parts.constant_matrix(draft, sine, dtype)


def _computed_matrices(
    draft: Draft,
    length: Length,
    size: Length,
    dtype: np.dtype[Any],
    norm: Any,
    *,
    inverse: bool,
    half: bool,
) -> tuple[Any, Any]:
    """The same where a length is known at run time."""
    run = Computed(draft, size, dtype)
    rows = run.half() if half else size
    kept = None if length is size else run.below_the_size(length)
    scale = run.scale(norm, inverse=inverse)
    cosine = run.matrix("Cos", rows, length, scale=scale, columns=kept)
    return cosine, run.matrix("Sin", rows, length, scale=scale, columns=kept, minus=not inverse)


class Computed:
    """Matrices of a transform over a number of elements that is known at run time."""

    def __init__(self, draft: Draft, size: Length, dtype: np.dtype[Any]) -> None:
        self.draft, self.dtype = draft, dtype
        self.number = int(onnx.helper.np_dtype_to_tensor_dtype(dtype))
        self.size = cache(size.make)
        self.wide = cache(lambda: draft.op("Cast", self.size(), to=self.number))

    def half(self) -> Length:
        """How many frequencies are not another's conjugate."""
        two, one = (self.draft.constant([v], "number") for v in (2, 1))
        halved = cache(lambda: self.draft.op("Div", self.size(), two))
        return Length(None, lambda: self.draft.op("Add", halved(), one))

    def scale(self, norm: Any, *, inverse: bool) -> gs.Tensor | None:
        """What the sum is divided by; None for 1."""
        if norm == "ortho":
            made: gs.Tensor = self.draft.op("Sqrt", self.wide())
            return made
        divides = inverse if norm in (None, "backward") else not inverse
        return self.wide() if divides else None

    def below_the_size(self, length: Length) -> gs.Tensor:
        """[length]: one for each element that counts."""
        within = self.draft.op("Less", parts.counting(self.draft, length), self.size())
        made: gs.Tensor = self.draft.op("Cast", within, to=self.number)
        return made

    def twice_but_the_ends(self, length: Length) -> gs.Tensor:
        """[length]: how often a frequency of half a spectrum counts, its conjugate with it."""
        draft = self.draft
        place = parts.counting(draft, length)
        behind = draft.op("Sub", self.size(), place)  # where its conjugate stands
        first, before, beyond = (
            draft.op("Cast", condition, to=self.number)
            for condition in (
                draft.op("Less", place, draft.constant([1], "one")),
                draft.op("Less", place, behind),
                draft.op("Greater", place, behind),
            )
        )
        one = draft.constant(np.array([1], self.dtype), "one")
        more, fewer = draft.op("Add", one, before), draft.op("Add", first, beyond)
        made: gs.Tensor = draft.op("Sub", more, fewer)
        return made

    def matrix(
        self,
        function: str,
        rows: Length,
        columns_of: Length,
        *,
        scale: gs.Tensor | None,
        columns: gs.Tensor | None,
        minus: bool = False,
    ) -> Any:
        """What `parts.multiply_axis` wants: [rows, columns], each column times a number."""
        draft = self.draft

        def make(turned: bool) -> gs.Tensor:
            k = parts.unsqueeze(draft, parts.counting(draft, rows), 0 if turned else 1)
            t = parts.unsqueeze(draft, parts.counting(draft, columns_of), 1 if turned else 0)
            product = draft.op("Mul", k, t)
            turns = draft.op("Mul", draft.op("Div", product, self.size()), self.size())
            rest = draft.op("Cast", draft.op("Sub", product, turns), to=self.number)
            circle = draft.constant(np.array([2 * math.pi], self.dtype), "turn")
            step = draft.op("Div", circle, self.wide())
            made = draft.op(function, draft.op("Mul", rest, step))
            if columns is not None:
                weight = parts.unsqueeze(draft, columns, 1) if turned else columns
                made = draft.op("Mul", made, weight)
            if scale is not None:
                made = draft.op("Div", made, scale)
            return draft.op("Neg", made) if minus else made

        return make


def half_inverse(length: int, size: int, scale: float) -> tuple[Array, Array]:
    """[length, size]: cosines and sines of the half spectrum, twice where there is a conjugate."""
    counts = np.full(length, 2.0)
    counts[0] = 1
    if size % 2 == 0 and size // 2 < length:
        counts[size // 2] = 1
    counts[size // 2 + 1 :] = 0
    cosine, sine = waves(length, size, size)
    weight = (counts * scale)[:, None]
    return cosine * weight, sine * weight
