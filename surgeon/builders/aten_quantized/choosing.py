"""Scales chosen by the range of what is quantised, while it runs: `choose_qparams` and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders.bench import TYPE, Bench
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_UINT8, _INT8 = 0, 1  # PyTorch's numbers
Chosen = tuple[gs.Tensor, gs.Tensor]


def chosen_scale(draft: Draft, match: Match) -> Chosen:
    """Scale and zero point: by the least and the greatest value, or the greatest magnitude."""
    c = Bench(draft)
    args = bind(match.root, c.facts)
    if c.dtype(args.tensor("self")) != TYPE.FLOAT:
        raise Refused("only single precision is quantised here")
    return _MANNERS[match.root.op](c, args)


def _affine(c: Bench, args: Arguments) -> Chosen:
    low, high = _range(c, args.tensor("self"), None)
    least, most = int(args.value("quant_min")), int(args.value("quant_max"))
    step = c.op("Div", c.op("Sub", high, low), _number(c, most - least))
    step = c.op("Max", step, _number(c, args.value("eps")))
    zero = c.op("Sub", _number(c, least), c.op("Round", c.op("Div", low, step)))
    zero = c.op("Clip", zero, _number(c, least), _number(c, most))
    return _line(c, step, TYPE.DOUBLE), _line(c, zero, TYPE.INT64)


def _symmetric(c: Bench, args: Arguments) -> Chosen:
    reach = c.op("ReduceMax", c.op("Abs", args.tensor("self")), keepdims=0)
    half = (int(args.value("quant_max")) - int(args.value("quant_min"))) / 2
    step = c.op("Max", c.op("Div", reach, _number(c, half)), _number(c, args.value("eps")))
    zero = np.asarray([128 if int(args.value("dtype")) == _UINT8 else 0], np.int64)
    return _line(c, step, TYPE.DOUBLE), c.draft.constant(zero, "zero_point")


def _per_token(c: Bench, args: Arguments) -> Chosen:
    if int(args.value("dtype")) != _INT8:
        raise Refused("it is of 8 bits with a sign alone")
    x = args.tensor("self")
    reach = c.op("ReduceMax", c.op("Abs", x), c.ints([c.rank(x) - 1]), keepdims=1)
    step = c.op("Div", c.op("Max", reach, _number(c, 1e-5)), _number(c, 127))
    return step, c.op("Mul", step, _number(c, 0))


def _per_token_affine(c: Bench, args: Arguments) -> Chosen:
    x = args.tensor("self")
    low, high = _range(c, x, c.rank(x) - 1)
    step = c.op("Div", c.op("Sub", high, low), _number(c, 255))
    step = c.op("Max", step, _number(c, np.finfo(np.float32).eps))
    below, above = c.op("Div", low, step), c.op("Div", high, step)
    error = c.op("Add", c.op("Add", below, _number(c, -128)), c.op("Add", above, _number(c, 127)))
    zero = c.op(
        "Where",
        c.op("Greater", error, _number(c, 0)),
        c.op("Sub", _number(c, -128), below),
        c.op("Sub", _number(c, 127), above),
    )
    zero = c.op("Round", c.op("Clip", zero, _number(c, -128), _number(c, 127)))
    return c.cast(step, TYPE.DOUBLE), c.cast(zero, TYPE.INT64)


def _range(c: Bench, x: gs.Tensor, axis: int | None) -> tuple[gs.Tensor, gs.Tensor]:
    """The least and the greatest value, and 0 where all lie on one side of it."""
    along = [] if axis is None else [c.ints([axis])]
    keep = int(axis is not None)
    return (
        c.op("Min", c.op("ReduceMin", x, *along, keepdims=keep), _number(c, 0)),
        c.op("Max", c.op("ReduceMax", x, *along, keepdims=keep), _number(c, 0)),
    )


def _number(c: Bench, value: Any) -> gs.Tensor:
    return c.number(value, TYPE.FLOAT)


def _line(c: Bench, x: gs.Tensor, dtype: int) -> gs.Tensor:
    """As a vector of one."""
    return c.op("Reshape", c.cast(x, dtype), c.ints([1]))


_MANNERS: Mapping[str, Callable[[Bench, Arguments], Chosen]] = {
    "choose_qparams": _affine,
    "choose_qparams_symmetric": _symmetric,
    "choose_qparams_per_token": _per_token,
    "choose_qparams_per_token_asymmetric": _per_token_affine,
    "_choose_qparams_per_token_asymmetric_impl": _per_token_affine,
}
TABLE: Mapping[str, Callable[..., Any]] = {"chosen_scale": chosen_scale}
