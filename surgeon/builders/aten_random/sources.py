"""Where all draws come from: uniform and normal numbers of a shape or of a tensor's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import TYPE, Call, Size
from surgeon.builders.bench import dim_of
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

# How many uniform numbers there are below 1 in PyTorch's half precisions (ATen/core/
# TransformationHelper.h): one more would round to 1, which is never drawn.
_STEPS = {int(TYPE.FLOAT16): 2.0**11, int(TYPE.BFLOAT16): 2.0**8}

Like: TypeAlias = gs.Tensor | Sequence[Size | int]  # a tensor whose shape it is, or the sizes


def computed(dtype: int) -> int:
    """What numbers of a dtype are drawn in: runtimes draw in single and double precision alone.

    Raises:
        Refused: The dtype is no float.
    """
    if dtype not in FLOATS:
        raise Refused("PyTorch draws no such numbers in integers")
    return int(TYPE.DOUBLE if dtype == TYPE.DOUBLE else TYPE.FLOAT)


def uniform(c: Call, like: Like, dtype: int) -> gs.Tensor:
    """Numbers from 0 inclusive to 1 exclusive, in float32 or float64."""
    return _draw(c, "RandomUniform", like, dtype)


def uniform_in(c: Call, like: Like, dtype: int) -> gs.Tensor:
    """As `uniform`, in any float dtype."""
    y = uniform(c, like, computed(dtype))
    steps = _STEPS.get(dtype)
    if steps is not None:
        number = c.number(steps, TYPE.FLOAT)
        y = c.op("Div", c.op("Floor", c.op("Mul", y, number)), number)
    return c.cast(y, dtype)


def normal(c: Call, like: Like, dtype: int) -> gs.Tensor:
    """Standard normal numbers, in float32 or float64."""
    return _draw(c, "RandomNormal", like, dtype)


def exponential(c: Call, like: Like, dtype: int) -> gs.Tensor:
    """-log(1 - u): numbers of mean 1, never infinite."""
    rest = c.op("Sub", c.number(1, dtype), uniform(c, like, dtype))
    return c.op("Neg", c.op("Log", rest))


def _draw(c: Call, operator: str, like: Like, dtype: int) -> Any:
    if isinstance(like, gs.Tensor):
        return c.op(f"{operator}Like", like, dtype=int(dtype))
    plain = list(map(dim_of, like))
    known = [d for d in plain if isinstance(d, int)]
    if known and len(known) == len(plain):
        return c.op(operator, dtype=int(dtype), shape=known)
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    shape = c.vector(like) if plain else c.ints([], "sizes")
    return c.op(
        f"{operator}Like",
        c.op("ConstantOfShape", shape, value=np.zeros(1, kind)),
        dtype=int(dtype),
    )
