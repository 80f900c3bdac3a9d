"""What operators gave in older releases of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_reductions import argmax, argmin
from surgeon.reference.operators.math_types import result_type
from surgeon.reference.operators.precision import Array, Computed
from surgeon.reference.operators.shapes import axis_of

_CLAMPS = frozenset({"clamp", "clip", "clamp_min", "clamp_max"})
_OF_TWO = frozenset("add sub rsub mul div remainder fmod pow eq ne lt le gt ge".split())


def taken(operator: str, values: Sequence[Any], release: tuple[int, int]) -> Sequence[Any]:
    """What an operator of that release took what it is given for."""
    # what has no dimensions became as what has some before 1.3, also a fraction beside integers
    # (release notes of 1.3.0, "Type Promotion")
    if operator in _OF_TWO and release < (1, 3) and len(values) > 1:
        values = [*_alike(*values[:2]), *values[2:]]
    # limits of integers became integers before 1.12 (torch.clamp, up to 1.11 and from 1.12 on)
    if operator in _CLAMPS and release < (1, 12) and values[0].dtype.kind in "iu":
        return [values[0], *(_as_numbers_of(v, values[0]) for v in values[1:])]
    # so did a number by which integers are divided, for the rest, before 1.8 (their own outputs)
    if operator in ("remainder", "fmod") and release < (1, 8) and is_of_a_fraction(values):
        return [values[0], _as_numbers_of(values[1], values[0]), *values[2:]]
    # what whole numbers filled was in single precision up to 1.5 (1.6 wants a dtype for it)
    if operator == "full" and release < (1, 6):
        return [values[0], float(values[1]), *values[2:]]
    # before 1.5 `x.fill_(v)` was a full_like whose third argument said how memory is laid out
    if operator == "full_like" and release < (1, 5) and len(values) == 3:
        return values[:2]
    return values


def is_of_a_fraction(values: Sequence[Any]) -> bool:
    """Whether integers stand beside a number of Python's that is a float."""
    if len(values) < 2 or not all(isinstance(v, np.ndarray) for v in values[:2]):
        return False
    first, number = values[:2]
    bare = not number.ndim and not isinstance(number, Computed)
    return bool(bare and number.dtype == np.float64 and first.dtype.kind in "iu")


def is_number(value: Any) -> bool:
    """Whether it is in double precision, without dimensions, as numbers of scripts are."""
    return isinstance(value, np.ndarray) and not value.ndim and value.dtype == np.float64


def _alike(first: Any, second: Any) -> tuple[Any, Any]:
    """Both in the dtype of the one that has dimensions."""
    if np.ndim(first) and not np.ndim(second):
        return first, _as_numbers_of(second, first)
    if np.ndim(second) and not np.ndim(first):
        return _as_numbers_of(first, second), second
    return first, second


def _as_numbers_of(limit: Any, like: Any) -> Any:
    """A number in the dtype of an array; what is no number stays."""
    return limit if limit is None or np.ndim(limit) else np.asarray(limit).astype(like.dtype)


def cut_power(base: Array, exponent: Array) -> Array:
    """A power of integers by a fraction, cut to an integer as PyTorch did before 1.6.

    Raises:
        Unsuited: It is none, or more than the dtype holds.
    """
    found = np.trunc(base.astype(np.float64) ** float(exponent))
    ends = np.iinfo(base.dtype)
    if not ((found >= ends.min) & (found <= ends.max)).all():
        raise Unsuited("a power of integers by a fraction is no integer")
    return np.asarray(found.astype(base.dtype))


def cut_quotient(first: Any, second: Any) -> Array:
    """The quotient of integers, rounded to zero.

    Raises:
        Unsuited: One is divided by zero.
    """
    if not second.all():
        raise Unsuited("integers are divided by zero")
    dtype = result_type(first, second)
    wide = (v.astype(np.int64) for v in (first, second))  # the least number has no magnitude
    first, second = np.broadcast_arrays(*wide)
    quotient = np.abs(first) // np.abs(second)
    quotient = np.where((first < 0) == (second < 0), quotient, -quotient)
    return np.asarray(quotient, dtype)


def cosine(x1: Any, x2: Any, dim: int, eps: float, *, apart: bool) -> Any:
    """The product of both norms is at least eps (documentation of 1.11).

    Args:
        x1: One.
        x2: The other.
        dim: Along which axis.
        eps: The least norm.
        apart: Whether each norm is of what was given, not of what is stretched to both's shape, as
            it was up to 1.9 (its own outputs).
    """
    given = [np.atleast_1d(np.asarray(x, np.float64)) for x in (x1, x2)]
    first, second = np.broadcast_arrays(*given)
    of = given if apart else (first, second)
    norms = np.multiply(*(np.linalg.norm(x, axis=dim) for x in of))
    return np.asarray((first * second).sum(dim) / np.maximum(norms, eps))


def without_keys(result: Any, mask: Any) -> Any:
    """Attention as before 2.5: NaN for a query of which every key is masked."""
    if mask is None:
        return result
    kept = mask if mask.dtype == np.bool_ else mask > -np.inf
    empty = ~kept.any(-1)
    found = np.array(result)
    found[np.broadcast_to(empty, found.shape[:-1])] = np.nan
    return found


def last_place(operator: str, self: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """`argmax` or `argmin` as older releases: the last of equals, but of NaN the first."""
    find = argmax if operator in ("argmax", "max") else argmin
    if self.ndim == 0 or self.size == 0:
        return find(self, dim, keepdim)
    line, along = (self.reshape(-1), 0) if dim is None else (self, axis_of(dim, self.ndim))
    strange = np.isnan(line) if line.dtype.kind == "f" else np.zeros(line.shape, np.bool_)
    last = line.shape[along] - 1 - find(np.flip(line, along), along, True)
    found = np.where(strange.any(along, keepdims=True), strange.argmax(along, keepdims=True), last)
    shape = [1] * self.ndim if dim is None and keepdim else found.shape
    return np.asarray(found.reshape(shape) if keepdim else found.squeeze(along))


def without_end(result: Array, given: Mapping[str, Any], release: tuple[int, int]) -> Array:
    """`istft` that is neither centred nor of a given length, as releases left its end out.

    Half a window up to 1.9, an element in 1.10 to 1.12 (their own outputs), nothing in 2.4.
    """
    if given["center"] or given["length"] is not None or release >= (2, 4):
        return result
    if release >= (1, 13):
        raise Unsuited("releases before PyTorch 2.4 left an element out of its end, or did not")
    return result[..., : -(given["n_fft"] // 2 if release < (1, 10) else 1)]


def zero_of_none(
    result: Any, self: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int
) -> Any:
    """A likelihood, whose mean over targets of no weight in all is 0; of no targets it is none."""
    kept = target != ignore_index
    weights = np.ones(self.shape[1 if self.ndim > 1 else 0]) if weight is None else weight
    if reduction != 1 or not target.size or (weights[np.where(kept, target, 0)] * kept).sum():
        return result
    first, *rest = result if isinstance(result, tuple) else (result,)
    return (np.zeros_like(first), *rest) if rest else np.zeros_like(first)
