"""What a quantiser of QONNX asks for, and how it rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.rewrite import Refused

Array = np.ndarray[Any, Any]
_SAME: Mapping[str, str] = {"HALF_EVEN": "ROUND", "ROUND_TO_ZERO": "DOWN"}
MODES = ("ROUND", "CEIL", "FLOOR", "UP", "DOWN", "HALF_UP", "HALF_DOWN")


def mode_of(node: gs.Node, default: str) -> str:
    """How it rounds, in one word of `MODES`.

    Raises:
        Refused: It is none of them.
    """
    said = str(node.attrs.get("rounding_mode", default)).upper()
    mode = _SAME.get(said, said)
    if mode not in MODES:
        raise Refused(f"its rounding mode `{said}` is not among QONNX's")
    return mode


def rounded(c: Bench, x: gs.Tensor, mode: str) -> gs.Tensor:
    """Whole numbers; of halves, and of what lies between, as the mode says."""
    if mode in ("ROUND", "CEIL", "FLOOR"):
        made: gs.Tensor = c.op({"ROUND": "Round", "CEIL": "Ceil", "FLOOR": "Floor"}[mode], x)
        return made
    size = c.op("Abs", x)
    half = c.number(0.5, TYPE.FLOAT)
    if mode.startswith("HALF"):
        size = c.op("Add" if mode == "HALF_UP" else "Sub", size, half)
    size = c.op("Ceil" if mode in ("UP", "HALF_DOWN") else "Floor", size)
    turned: gs.Tensor = c.op("Mul", c.op("Sign", x), size)
    return turned


_ROUND_ARRAY: Mapping[str, Callable[[Array], Array]] = {
    "ROUND": np.round,
    "CEIL": np.ceil,
    "FLOOR": np.floor,
    "UP": lambda x: np.sign(x) * np.ceil(np.abs(x)),
    "DOWN": np.trunc,
    "HALF_UP": lambda x: np.sign(x) * np.floor(np.abs(x) + np.float32(0.5)),
    "HALF_DOWN": lambda x: np.sign(x) * np.ceil(np.abs(x) - np.float32(0.5)),
}


@dataclass(frozen=True)
class Scheme:
    """What `Quant` is given.

    Attributes:
        x: What is quantised, in float32.
        scale: The size of a step.
        zero: The level of 0, which need not be whole.
        steps: The scale, where it is known.
        shift: The level of 0, where it is known.
        low: The least level.
        high: The greatest.
        mode: How it rounds.
    """

    x: gs.Tensor
    scale: gs.Tensor
    zero: gs.Tensor
    steps: Array | None
    shift: Array | None
    low: int
    high: int
    mode: str

    def levels(self, x: Array) -> Array:
        """The levels of a constant, as floats."""
        assert self.steps is not None
        assert self.shift is not None
        with np.errstate(all="ignore"):
            level = np.clip(x / self.steps + self.shift, np.float32(self.low), self.high)
            return np.asarray(_ROUND_ARRAY[self.mode](level), np.float32)


def scheme_of(c: Bench, node: gs.Node) -> Scheme:
    """What an operator `Quant` or `IntQuant` asks for.

    Raises:
        Refused: That is not known before it runs, or not defined.
    """
    x, scale, zero, width = given(c, node, 4)
    signed, narrow = (bool(node.attrs.get(n, d)) for n, d in (("signed", 1), ("narrow", 0)))
    bits = bits_of(c, width, "bit width")
    if bits == 1 and signed:
        raise Refused("one bit with a sign is not defined; BipolarQuant is what is meant")
    low, high = ends(bits, signed, narrow)
    steps, shift = (known(c, value) for value in (scale, zero))
    return Scheme(x, scale, zero, steps, shift, low, high, mode_of(node, "ROUND"))


def ends(bits: int, signed: bool, narrow: bool) -> tuple[int, int]:
    """The least and the greatest level of so many bits."""
    if signed:
        return -(2 ** (bits - 1)) + int(narrow), 2 ** (bits - 1) - 1
    return 0, 2**bits - 1 - int(narrow)


def given(c: Bench, node: gs.Node, count: int) -> list[gs.Tensor]:
    """Its operands, none left out; what is quantised, and its scale, in float32."""
    found = [operand(node, index) for index in range(len(node.inputs))]
    values = [value for value in found if value is not None]
    if len(values) != count or len(found) != count:
        raise Refused(f"it lacks its {count} operands")
    for value in values[:2]:
        if c.dtype(value) != TYPE.FLOAT:
            raise Refused("only single precision is quantised here")
    return values


def known(c: Bench, value: gs.Tensor) -> Array | None:
    """A constant in float32; None where it is known at run time only."""
    array = c.facts.array(value)
    return None if array is None else np.asarray(array, np.float32)


def bits_of(c: Bench, value: gs.Tensor, what: str) -> int:
    """A count of bits, which has to be a whole number that the file tells."""
    number = number_of(c, value, what)
    if number != int(number) or not 1 <= number <= 32:
        raise Refused(f"its {what} is {number:g}")
    return int(number)


def number_of(c: Bench, value: gs.Tensor, what: str) -> float:
    """One number that the file tells."""
    array = known(c, value)
    if array is None:
        raise Refused(f"its {what} is known at run time only")
    if array.size == 0 or (array != array.reshape(-1)[0]).any():
        raise Refused(f"its {what} is not one number")
    return float(array.reshape(-1)[0])
