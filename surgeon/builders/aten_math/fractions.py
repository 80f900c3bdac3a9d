"""TorchScript's arithmetic of numbers with fractions, which are doubles as Python's are.

The tensors of ATen's operators of the same names are another thing: a double beside whole numbers
is in single precision there, and 100 * 0.29 is 29 and not a little less.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.work import DOUBLE, INT64, Work
from surgeon.facts.kinds import FLOATS

_MIXED = ("float", "int_float", "float_int")
# ONNX's operator, and the overloads of numbers: of whole ones alone where fractions come of them.
_ARITHMETIC: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "add": ("Add", _MIXED),
    "sub": ("Sub", _MIXED),
    "mul": ("Mul", _MIXED),
    "div": ("Div", ("int", "float")),
    "pow": ("Pow", ("int", *_MIXED, "Scalar_Scalar")),
}
_TO_WHOLE: Mapping[str, str] = {"floor": "Floor", "ceil": "Ceil"}
_NUMBERS = ("int", "float", "Scalar")  # the overloads of these two


def of_numbers(work: Work) -> gs.Tensor | None:
    """What an operator on Python's numbers gives; None where it is one on tensors.

    Numbers that were rounded to single precision before are taken as tensors are.
    """
    overload, given = work.node.attrs.get("overload"), work.node.inputs
    made: gs.Tensor
    if work.name in _TO_WHOLE and overload in _NUMBERS:
        if work.dtype(given[0]) in FLOATS:
            made = work.cast(work.op(_TO_WHOLE[work.name], given[0]), INT64)
            return made
        return work.cast(given[0], INT64)
    operator, overloads = _ARITHMETIC.get(work.name, ("", ()))
    if overload not in overloads or any(work.dtype(x) in FLOATS - {DOUBLE} for x in given):
        return None
    made = work.op(operator, *(work.cast(x, DOUBLE) for x in given))
    return made
