"""What operators of older releases of PyTorch meant, around a witness of what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surgeon.reference.arguments import Call, fit
from surgeon.reference.operators.older import (
    cosine,
    cut_power,
    cut_quotient,
    is_number,
    is_of_a_fraction,
    last_place,
    taken,
    without_end,
    without_keys,
    zero_of_none,
)
from surgeon.reference.witness import Witness

_DISTANCES = frozenset({"pairwise_distance", "triplet_margin_loss"})
_DISTANCES_ALONG_THE_LAST = (1, 10)
_NORMS_OF_THE_STRETCHED = (1, 10)
_FIRST_OF_EQUALS = {"max": (1, 6), "min": (1, 6), "argmax": (1, 7), "argmin": (1, 7)}
_EXTREME = "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"
_LIKELIHOODS = frozenset({"nll_loss", "nll_loss2d", "nll_loss_forward", "nll_loss2d_forward"})
_LIKELIHOOD = (
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, "
    "int ignore_index=-100) -> Tensor"
)
_INVERSE = (
    "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None,"
    " bool center=True, bool normalized=False, bool? onesided=None, int? length=None, "
    "bool return_complex=False) -> Tensor"
)
_COSINE = "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor"


class OldMeanings:
    """A witness for files of a PyTorch in which some operators meant something else.

    Args:
        witness: Executes all others.
        release: The file's release, as (major, minor); 1.4.0 calls itself 1.3.
    """

    def __init__(self, witness: Witness, release: tuple[int, int]) -> None:
        self.witness, self.release = witness, release

    def __call__(self, call: Call, values: Sequence[Any], *, where: str) -> Any:
        """As `Witness`."""
        values = taken(call.operator, values, self.release)
        cuts = self._divides_and_cuts(call, values)
        if cuts and _are_whole(values[:2]):
            return cut_quotient(*values[:2])
        if call.operator == "pow" and self.release < (1, 6) and is_of_a_fraction(values):
            return cut_power(*values[:2])
        # the distance was along axis 1, of which there is one more in batches of matrices
        # (documentation of torch.nn.functional.pairwise_distance, up to 1.9 and from 1.10 on)
        if call.operator in _DISTANCES and self.release < _DISTANCES_ALONG_THE_LAST:
            return self._along_one(call, values, where)
        # every real number had the angle 0 before 1.8 (documentation of torch.angle)
        if call.operator == "angle" and self.release < (1, 8) and values[0].dtype.kind != "c":
            return np.zeros_like(values[0])
        # of numbers of scripts halves went away from zero before 1.7 (its own outputs)
        if call.operator == "round" and self.release < (1, 7) and is_number(values[0]):
            return np.copysign(np.floor(np.abs(values[0]) + 0.5), values[0])
        result = self.witness(call, values, where=where)
        if call.operator == "fmod" and self.release < (1, 8):
            return result.astype(values[0].dtype, copy=False)  # it was written in the first's
        if cuts and call.operator != "div" and result.dtype.kind == "f":
            first, second = (np.asarray(v).astype(result.dtype) for v in values[:2])
            with np.errstate(all="ignore"):
                return np.asarray(np.trunc(first / second))
        return self._as_before(call, values, result)

    def _divides_and_cuts(self, call: Call, values: Sequence[Any]) -> bool:
        """Whether it is a division that cut off what is behind the point, where it is of integers.

        torch.div of integers was an integer up to 1.5 (1.6 refuses it), and floor_divide
        rounded to zero before 1.13 (release notes of 1.13.0), and so did `//` of tensors in scripts
        before 1.5, which had an operator of their own for it.
        """
        if len(values) < 2:
            return False
        return (
            (call.operator == "div" and self.release < (1, 6))
            or (call.operator == "floor_divide" and self.release < (1, 13))
            or (call.operator == "floordiv" and self.release < (1, 5) and _are_tensors(values))
        )

    def _as_before(self, call: Call, values: Sequence[Any], result: Any) -> Any:
        """A result as the file's release would have given it."""
        # each norm is at least eps since 1.12, and their product was before (release notes of 1.12)
        if call.operator == "cosine_similarity" and self.release < (1, 12):
            apart = self.release < _NORMS_OF_THE_STRETCHED
            given = fit((_COSINE,), call, values)[1]
            return cosine(**given, apart=apart).astype(result.dtype)
        # of equals the last was given, as releases before these did (their own outputs)
        if self.release < _FIRST_OF_EQUALS.get(call.operator, (0, 0)):
            result = _with_the_last(call, values, result)
        # the place among all was a number before 1.10, `keepdim` or not (its own outputs)
        if call.operator in ("argmax", "argmin") and self.release < (1, 10):
            place = fit((_EXTREME,), call, values)[1]
            result = result.reshape(()) if place.get("dim") is None else result
        # a mean over targets that are all ignored was 0 before 1.11 (its own outputs)
        if call.operator in _LIKELIHOODS and self.release < (1, 11):
            return zero_of_none(result, **fit((_LIKELIHOOD,), call, values)[1])
        # comparisons gave bytes before 1.2 (release notes of 1.2.0)
        if self.release < (1, 2) and isinstance(result, np.ndarray) and result.dtype == np.bool_:
            return result.astype(np.uint8)
        if call.operator == "istft":
            return without_end(result, fit((_INVERSE,), call, values)[1], self.release)
        if call.operator == "scaled_dot_product_attention" and self.release < (2, 5):
            return without_keys(result, values[3] if len(values) > 3 else None)
        return result

    def _along_one(self, call: Call, values: Sequence[Any], where: str) -> Any:
        """As along the last axis, with axis 1 in its place."""
        there = [np.moveaxis(v, 1, -1) if np.ndim(v) > 2 else v for v in values]
        result = self.witness(call, there, where=where)
        return np.moveaxis(result, -1, 1) if result.ndim == np.ndim(values[0]) > 2 else result


def _with_the_last(call: Call, values: Sequence[Any], result: Any) -> Any:
    """The place of the largest or smallest, alone or behind it, as the last of equals."""
    if call.operator in ("max", "min") and not isinstance(result, tuple):
        return result
    place = last_place(call.operator, **fit((_EXTREME,), call, values)[1])
    return (result[0], place) if isinstance(result, tuple) else place


def _are_whole(values: Sequence[Any]) -> bool:
    """Whether both are integers, or one of them is a boolean."""
    kinds = [v.dtype.kind if isinstance(v, np.ndarray) else "" for v in values]
    return all(kind in ("i", "u", "b") for kind in kinds) and kinds != ["b", "b"]


def _are_tensors(values: Sequence[Any]) -> bool:
    return any(isinstance(v, np.ndarray) and v.ndim > 0 for v in values)
