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
from surgeon.facts.fact import INTEGERS
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
_CONSTANT = ("add", "sub", "mul", "div", "floordiv", "remainder")
_LAST_FACTORIAL = 66  # from which on it has a factor of 2^64, and is 0 in 64 bits
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
    if node.op == "factorial":
        return _factorial(c, scalar(c, given[0], TYPE.INT64))
    if node.op == "neg":
        return _tensors(c, "neg", scalar(c, given[0], c.dtype(given[0])))
    kind, single = _kind(c, given), node.attrs.get("overload") == "Scalar"
    # a number that may be of any type is rounded to single precision, before and behind
    found = _of_floats(c, node, [scalar(c, x, TYPE.FLOAT if single else kind) for x in given])
    return c.cast(found, kind) if single and not node.op.startswith("is") else found


def number_pair(draft: Draft, match: Match) -> tuple[gs.Tensor, gs.Tensor]:
    """`divmod` (a quotient rounded down, and the rest) and `modf` (a fraction, and the rest)."""
    c, node = Bench(draft), match.root
    given = [required(node, index) for index in range(len(node.inputs))]
    if node.op == "modf":
        x = scalar(c, given[0], _kind(c, given))
        cut = _tensors(c, "trunc", x)
        return c.op("Sub", x, cut), cut
    whole = all(c.dtype(x) in INTEGERS for x in given)
    kind = TYPE.INT64 if whole else _kind(c, given)
    x, by = (scalar(c, each, kind) for each in given)
    rest = _tensors(c, "fmod", x, by)
    zero = c.number(0, kind)
    sides = c.op("Xor", c.op("Less", x, zero), c.op("Less", by, zero))
    apart = c.op("Or", c.op("Less", rest, zero), c.op("Less", zero, rest))
    rest = c.where(c.op("And", apart, sides), c.op("Add", rest, by), rest)
    return c.op("Div", c.op("Sub", x, rest), by), rest


def _factorial(c: Bench, x: gs.Tensor) -> gs.Tensor:
    """By a table, in 64 bits that wrap."""
    wrapped = [math.factorial(n) % 2**64 for n in range(_LAST_FACTORIAL + 1)]
    table = c.draft.constant(np.asarray(wrapped, np.uint64).astype(np.int64), "factorials")
    last = c.number(_LAST_FACTORIAL, TYPE.INT64)
    made: gs.Tensor = c.op("Gather", table, c.where(c.op("Less", x, last), x, last), axis=0)
    return made


def _gamma(c: Bench, x: gs.Tensor) -> gs.Tensor:
    """e to its logarithm; below 0 its sign turns at every whole number."""
    dtype = c.dtype(x)
    size = c.op("Exp", _tensors(c, "lgamma", x))
    floor = c.op("Floor", x)
    half = c.op("Mul", floor, c.number(0.5, dtype))
    odd = c.op("Less", c.op("Floor", half), half)
    turned = c.op("And", odd, c.op("Less", x, c.number(0, dtype)))
    sign = c.op("Sub", c.number(1, dtype), c.op("Mul", c.cast(turned, dtype), c.number(2, dtype)))
    made: gs.Tensor = c.op("Mul", size, sign)
    return made


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
    return _gamma(c, x[0]) if node.op == "gamma" else _tensors(c, _OF_ONE[node.op], *x)


def _constant(c: Bench, node: gs.Node, given: list[gs.Tensor]) -> gs.Tensor | None:
    """Of constants, as Python computes it; None where it is to be a tensor's operator."""
    arrays = [c.facts.array(x) for x in given]
    known = [a.item() for a in arrays if a is not None and a.size == 1]
    if node.op not in _MATHS or len(known) < len(given) or _kind(c, given) == TYPE.FLOAT:
        return None
    if node.op in _WHOLE_TOO and all(isinstance(n, int) for n in known):
        return None
    if node.op == "factorial" and not 0 <= known[0] <= _LAST_FACTORIAL:
        return None
    single = node.attrs.get("overload") == "Scalar"
    try:
        found = _MATHS[node.op](*(float(np.float32(n)) if single else n for n in known))
    except (ArithmeticError, ValueError):
        return None
    number = np.asarray(found, np.int64 if node.op == "factorial" else np.float64)
    return c.draft.constant(number.astype(np.float32).astype(np.float64) if single else number)
