"""TorchScript's functions of Python's numbers alone: Python's floats are in double precision.

(torch/csrc/jit/runtime/register_prim_ops.h, the overloads `.int`, `.float` and `.Scalar`.)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_scripts.operands import required, scalar
from surgeon.builders.bench import TYPE, Bench
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused
from surgeon.schemas import overloads

_NUMBERS = frozenset({"int", "float", "number"})
# Of one number, a float; and what a tensor's operator of this meaning is called.
_OF_ONE: Mapping[str, str] = {
    **{
        name: name
        for name in (
            "acos acosh asin asinh atan atanh cos cosh sin sinh tan tanh exp expm1 log log10 log1p "
            "sqrt erf erfc lgamma angle round isnan isinf isfinite"
        ).split()
    },
    "degrees": "rad2deg",
    "radians": "deg2rad",
    "fabs": "abs",
}
# Of constants, as Python computes it; the first ones are no tensor's operator by that name.
_MATHS: Mapping[str, Callable[..., Any]] = {
    "gamma": math.gamma,
    "factorial": math.factorial,
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "floordiv")},
    "div": operator.truediv,
    "remainder": operator.mod,
    **{name: getattr(math, name) for name in ("atan2", "copysign", "fmod", "erf", "erfc")},
    **{name: getattr(math, name) for name in ("acos", "asin", "atan", "acosh", "asinh", "atanh")},
}
_CONSTANT = ("gamma", "factorial", "add", "sub", "mul", "div", "floordiv", "remainder")
_WHOLE_TOO = ("add", "sub", "mul", "floordiv", "remainder")  # of integers one themselves


def number_function(draft: Draft, match: Match) -> gs.Tensor:
    """A function of numbers, by the tensors' operator of the same name in the right precision."""
    c, node = Bench(draft), match.root
    if not _is_of_numbers(node):
        raise Refused("it is no overload of numbers alone")
    given = [required(node, index) for index in range(len(node.inputs))]
    if (made := _constant(c, node, given)) is not None:
        return made
    if node.op in _CONSTANT:
        raise Refused("it is of constants, and these are none, or in single precision")
    if node.op in ("gcd", "__round_to_zero_floordiv"):
        whole = [scalar(c, x, TYPE.INT64) for x in given]
        if node.op == "gcd":
            return _tensors(c, "gcd", *whole)
        cut: gs.Tensor = c.op("Div", *whole)
        return cut
    if node.op == "neg":
        return _tensors(c, "neg", scalar(c, given[0], c.dtype(given[0])))
    kind, single = _kind(c, given), node.attrs.get("overload") == "Scalar"
    # a number that may be of any type is rounded to single precision, before and behind
    found = _of_floats(c, node, [scalar(c, x, TYPE.FLOAT if single else kind) for x in given])
    return c.cast(found, kind) if single and not node.op.startswith("is") else found


def _is_of_numbers(node: gs.Node) -> bool:
    """Whether the file says that it is an overload of numbers, or there are no others."""
    known = overloads(node.op)
    told = node.attrs.get("overload", "")
    named = [s for s in known if s.overload == told] if told else list(known)
    return bool(named) and all(
        p.type in _NUMBERS and not p.is_list for s in named for p in s.parameters
    )


def _kind(c: Bench, given: list[gs.Tensor]) -> int:
    """In double precision, but where a number was rounded to single precision before."""
    return TYPE.FLOAT if TYPE.FLOAT in {c.dtype(x) for x in given} else TYPE.DOUBLE


def _tensors(c: Bench, operator: str, *inputs: gs.Tensor) -> gs.Tensor:
    made: gs.Tensor = c.op(operator, *inputs, domain="aten")
    return made


def _of_floats(c: Bench, node: gs.Node, x: list[gs.Tensor]) -> gs.Tensor:
    if node.op == "mathremainder":  # the nearest multiple of the second is taken off
        times = _tensors(c, "round", c.op("Div", *x))
        return c.op("Sub", x[0], c.op("Mul", times, x[1]))
    if node.op == "log" and len(x) == 2:
        return c.op("Div", *(_tensors(c, "log", each) for each in x))
    if len(x) == 2:
        return _tensors(c, node.op, *x)
    return _tensors(c, _OF_ONE[node.op], *x)


def _constant(c: Bench, node: gs.Node, given: list[gs.Tensor]) -> gs.Tensor | None:
    """Of constants, as Python computes it; None where it is to be a tensor's operator."""
    arrays = [c.facts.array(x) for x in given]
    known = [a.item() for a in arrays if a is not None and a.size == 1]
    if node.op not in _MATHS or len(known) < len(given) or _kind(c, given) == TYPE.FLOAT:
        return None
    if node.op in _WHOLE_TOO and all(isinstance(n, int) for n in known):
        return None
    single = node.attrs.get("overload") == "Scalar"
    try:
        found = _MATHS[node.op](*(float(np.float32(n)) if single else n for n in known))
    except (ArithmeticError, ValueError):
        return None
    number = np.asarray(found, np.int64 if node.op == "factorial" else np.float64)
    return c.draft.constant(number.astype(np.float32).astype(np.float64) if single else number)
