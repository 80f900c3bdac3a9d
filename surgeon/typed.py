"""Numbers as operands: in the type of those beside them that have to have the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import NDArray
from onnx import TensorProto

from surgeon import standard
from surgeon.facts import Facts
from surgeon.facts.fact import INTEGERS
from surgeon.facts.kinds import FLOATS
from surgeon.objects import make_variable
from surgeon.standard import STANDARD

Numbers: TypeAlias = bool | int | float | Sequence[Any] | NDArray[Any]


class NotOfType(ValueError):
    """Numbers are not of the type that they have to be of; the text says what they are."""


def type_beside(
    facts: Facts, domain: str, operator: str, operands: Sequence[object], place: int
) -> int:
    """The element type that an operand shares with those beside it; 0 where none is known.

    Args:
        facts: What is known of them.
        domain: The operator's.
        operator: Its name.
        operands: All; what is no tensor is not looked at.
        place: That of the operand.
    """
    own = standard.schema(operator, standard.newest_opset())
    if own is None or domain not in STANDARD:
        return 0
    kinds = [own.inputs[min(i, len(own.inputs) - 1)].type_str for i in range(len(operands))]
    for kind, other in zip(kinds, operands, strict=True):
        if kind == kinds[place] and isinstance(other, gs.Tensor):
            dtype = facts.of(other).dtype
            if dtype in FLOATS or dtype in INTEGERS:
                return dtype
    return 0


def typed(array: NDArray[Any], dtype: int) -> NDArray[Any]:
    """Numbers in an element type.

    Raises:
        NotOfType: It does not hold them.
    """
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    if dtype in FLOATS:
        return array.astype(kind)
    if array.dtype.kind == "f":
        raise NotOfType(f"is computed as fractions, beside an operand of {kind}")
    with np.errstate(all="ignore"):
        held = array.astype(kind)
    lost = (held.astype(array.dtype) != array) | ((array < 0) & (kind.kind == "u"))
    for number in array[lost].ravel()[:1]:
        raise NotOfType(f"holds {number}, and stands beside an operand of {kind}")
    return held


def wide(numbers: Sequence[Any]) -> NDArray[Any]:
    """Numbers of Python as an array: int64, on systems too where numpy takes int32 for them."""
    array = np.asarray(numbers)
    return array.astype(np.int64) if array.dtype.kind == "i" else array


class _Draft(Protocol):
    """What makes constants."""

    facts: Facts

    def constant(self, array: NDArray[Any]) -> gs.Constant: ...


def as_tensor(
    draft: _Draft, operator: str, domain: str, operands: Sequence[object], place: int
) -> gs.Tensor:
    """The tensor for an operand that is none: numbers, a list or an array; None for one left out.

    Numbers of Python are of the type of those beside them, and else float32 and int64; an array is
    of its own.

    Raises:
        NotOfType: They are not of that type.
    """
    given = operands[place]
    if given is None:
        return make_variable("")
    array = np.asarray(given)
    if array.dtype.kind in "fiu" and not isinstance(given, np.ndarray | np.generic):
        dtype = type_beside(draft.facts, domain, operator, operands, place)
        plain = TensorProto.FLOAT if array.dtype.kind == "f" else TensorProto.INT64
        array = typed(array, dtype or plain)
    return draft.constant(array)
