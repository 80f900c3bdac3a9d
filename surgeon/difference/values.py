"""How the values of two tensors differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx

from surgeon.difference.parts import Part
from surgeon.difference.texts import Tensor, apart, tensor_said
from surgeon.errors import ModelError
from surgeon.tensors import array_of

_AT_ONCE = 1 << 22  # elements compared at once


class Values:
    """Compares parts of two models.

    Args:
        folders: Where the external data of the first and of the second lies.
    """

    def __init__(self, folders: tuple[Path | None, Path | None]) -> None:
        self._folders = folders

    def told(
        self, one: Part | None, other: Part | None, *, longest: int | None = None
    ) -> tuple[str, str] | None:
        """Two parts in words, with how their values differ; None where they are the same.

        Args:
            one: Of the first model; None where it has no such part.
            other: Of the second.
            longest: Characters of a text, which is cut to where it begins to differ.
        """
        if isinstance(one, Tensor) and isinstance(other, Tensor):
            return self._tensors(one, other)
        was, now = ("" if each is None else said(each) for each in (one, other))
        if was == now:
            return None
        return apart(was, now, longest) if longest else (was, now)

    def _tensors(self, one: Tensor, other: Tensor) -> tuple[str, str] | None:
        was, now = tensor_said(one), tensor_said(other)
        if type(one) is not type(other) or (
            list(one.dims) != list(other.dims) or _dtype(one) != _dtype(other)
        ):
            return was, now
        outside = any(p.data_location == p.EXTERNAL for t in (one, other) for p in _pieces(t))
        if (not outside or self._folders[0] == self._folders[1]) and (
            content(one) == content(other)
        ):
            return None
        try:
            how = self._sparse(one, other) if len(_pieces(one)) > 1 else self._dense(one, other)
        except ModelError as error:
            return was, f"not compared: {error.what}"
        return (was, f"{now}, {how}") if how else None

    def _dense(self, one: Any, other: Any) -> str:
        return how_differ(
            *(array_of(t, at) for t, at in zip((one, other), self._folders, strict=True))
        )

    def _sparse(self, one: Any, other: Any) -> str:
        """Sparse tensors of one size are the same where every place holds the same."""
        (places, values), (others, theirs) = (
            _by_place(array_of(t.indices, at), array_of(t.values, at), tuple(t.dims))
            for t, at in zip((one, other), self._folders, strict=True)
        )
        if not np.array_equal(places, others):
            return "values at other places"
        return how_differ(values, theirs)


def said(part: Part) -> str:
    """A part in words."""
    return part if isinstance(part, str) else tensor_said(part)


def content(tensor: Tensor) -> bytes:
    """A tensor without its name and text, to be compared."""
    copy = type(tensor)()
    copy.CopyFrom(tensor)
    for piece in _pieces(copy):
        for field in ("name", "doc_string", "metadata_props"):
            piece.ClearField(field)
    return bytes(copy.SerializeToString(deterministic=True))


def how_differ(one: Any, other: Any) -> str:
    """How values of one dtype and size differ; empty where they do not, to the bit."""
    differ, lone, other_bits = 0, 0, False
    largest: float | int = 0
    for start in range(0, one.size, _AT_ONCE):
        part, its = (a.reshape(-1)[start : start + _AT_ONCE] for a in (one, other))
        if part.dtype.kind != "O" and part.tobytes() == its.tobytes():
            continue
        if part.dtype.kind in "OSU":
            differ += int(np.count_nonzero(part != its))
            continue
        unequal, alone, distance = _distances(part, its)
        other_bits = other_bits or not unequal.any()
        differ += int(np.count_nonzero(unequal))
        lone += int(np.count_nonzero(alone))
        largest = max(largest, distance)
    if not differ:
        same = "zeros or NaNs" if one.dtype.kind != "b" else "the same values"
        return f"{same} of other bits" if other_bits else ""
    told = [f"{differ} of {one.size} values differ"]
    if one.dtype.kind not in "OSU" and differ > lone:
        told.append(f"by {largest if isinstance(largest, int) else f'{largest:.3g}'} at most")
    if lone:
        told.append(f"{lone} of them NaN in one model only")
    return ", ".join(told)


def _distances(one: Any, other: Any) -> tuple[Any, Any, float | int]:
    """Which values differ, which of them are NaN in one only, and the largest distance."""
    if one.dtype.kind in "iu":  # doubles do not hold all integers
        unequal = one != other
        wide = [a.astype(np.int64 if a.dtype.kind == "i" else np.uint64) for a in (one, other)]
        bits = [a.view(np.uint64) for a in wide]
        distance = np.where(wide[0] > wide[1], bits[0] - bits[1], bits[1] - bits[0])
        return unequal, np.zeros_like(unequal), int(distance.max(initial=0))
    kind = np.complex128 if one.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        both = one.astype(kind), other.astype(kind)
        nans = np.isnan(both[0]), np.isnan(both[1])
        unequal = (both[0] != both[1]) & ~(nans[0] & nans[1])
        alone = nans[0] ^ nans[1]
        apart_by = np.abs(both[0] - both[1])[unequal & ~alone]
    return unequal, alone, float(apart_by.max(initial=0))


def _by_place(indices: Any, values: Any, dims: tuple[int, ...]) -> tuple[Any, Any]:
    """The values of a sparse tensor in order of their places, and the places along the whole.

    Raises:
        ModelError: The places lie outside.
    """
    try:
        if indices.ndim == 2:
            indices = np.ravel_multi_index(tuple(indices.T), dims)
        order = np.argsort(indices, kind="stable")
        return indices[order], values[order]
    except (IndexError, ValueError) as error:
        raise ModelError(
            f"the places of its values cannot be read: {error}",
            where="model",
            mend="Export the model again.",
        ) from None


def _pieces(tensor: Tensor) -> tuple[Any, ...]:
    if isinstance(tensor, onnx.SparseTensorProto):
        return tensor.values, tensor.indices
    return (tensor,)


def _dtype(tensor: Tensor) -> int:
    return int(_pieces(tensor)[0].data_type)
