"""The functions that expressions may call: one literal table; pure, bounded in size, three-valued.

They take plain values: numbers, texts, symbolic dims, lists, numpy arrays. Where a number is needed
and a dim is symbolic, the answer is `Unknown` with the reason, as it is for every argument that
makes no sense: a recipe's expression is proven or it is not, it never fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from surgeon import dims
from surgeon.functions import arrays, scalars
from surgeon.functions.values import DTYPES, Captured, Unknown, decided, items_of

__all__ = ["DTYPES", "FUNCTIONS", "Captured", "Unknown"]

_TABLE: dict[str, Callable[..., object]] = {
    "len": scalars.length_of,
    "min": scalars.pairwise("min", dims.minimum),
    "max": scalars.pairwise("max", dims.maximum),
    "abs": scalars.absolute,
    "all": scalars.all_of,
    "any": scalars.any_of,
    "sum": scalars.sum_of,
    "range": scalars.range_of,
    "product": scalars.product,
    "reshape_target": scalars.reshape_target,
    "reversed": scalars.backwards,
    "sorted": scalars.in_order,
    "list": items_of,
    "int": scalars.to_integer,
    "float": scalars.to_float,
    "round": scalars.rounded,
    "scalar": scalars.scalar,
    "const": arrays.const,
    "zeros": arrays.zeros,
    "ones": arrays.ones,
    "arange": arrays.arange,
    "eye": arrays.eye,
    "transpose": arrays.transpose,
    "reshape": arrays.reshape,
    "concat": arrays.concat,
    "stack": arrays.stack,
    "squeeze": arrays.squeeze,
    "expand_dims": arrays.expand_dims,
    "cast": arrays.cast_to,
    "sqrt": scalars.elementwise("sqrt", math.sqrt),
    "exp": scalars.elementwise("exp", math.exp),
    "log": scalars.elementwise("log", math.log),
    "tanh": scalars.elementwise("tanh", math.tanh),
    "erf": scalars.elementwise("erf", math.erf),
    "floor": scalars.elementwise("floor", scalars.round_to(math.floor)),
    "ceil": scalars.elementwise("ceil", scalars.round_to(math.ceil)),
    "pooling_matrix": arrays.pooling_matrix,
    "is_divisible": scalars.is_divisible,
}
FUNCTIONS: Mapping[str, Callable[..., object]] = MappingProxyType(
    {name: decided(name, function) for name, function in _TABLE.items()}
)
