"""An example of each function of expressions, and what it gives; tests hold them true.

`x` is a value of the graph, float16[2, t]; `t` is a size known at run time only.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EXAMPLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "len": ("len(x.shape)", "2"),
        "min": ("min(3, 2)", "2"),
        "max": ("max([1, 4, 2])", "4"),
        "abs": ("abs(-2)", "2"),
        "all": ("all(d > 0 for d in [1, 2])", "True"),
        "any": ("any(d == 1 for d in x.shape)", "unknown"),
        "sum": ("sum(x.shape)", "t + 2"),
        "range": ("range(1, 4)", "[1, 2, 3]"),
        "product": ("product(x.shape)", "2*t"),
        "reshape_target": ("reshape_target(x.shape, [1, 2 * x.shape[1]])", "[1, -1]"),
        "reversed": ("reversed(x.shape)", "[t, 2]"),
        "sorted": ("sorted([3, 1, 2])", "[1, 2, 3]"),
        "list": ("list(arange(3))", "[0, 1, 2]"),
        "int": ("int(2.7)", "2"),
        "float": ("float(2)", "2.0"),
        "round": ("round(2.46, 1)", "2.5"),
        "scalar": ("scalar([[7]])", "7"),
        "const": ("const([0.5, 1], like=x)", "[0.5, 1.0]"),
        "zeros": ("zeros([1, 2], x.dtype)", "[[0.0, 0.0]]"),
        "ones": ("ones(3, int64)", "[1, 1, 1]"),
        "arange": ("arange(0, 6, 2)", "[0, 2, 4]"),
        "eye": ("eye(2)", "[[1.0, 0.0], [0.0, 1.0]]"),
        "transpose": ("transpose([[1, 2], [3, 4]])", "[[1, 3], [2, 4]]"),
        "reshape": ("reshape([1, 2, 3, 4], [2, -1])", "[[1, 2], [3, 4]]"),
        "concat": ("concat([[1], [2, 3]])", "[1, 2, 3]"),
        "stack": ("stack([[1, 2], [3, 4]], axis=1)", "[[1, 3], [2, 4]]"),
        "squeeze": ("squeeze([[1, 2]])", "[1, 2]"),
        "expand_dims": ("expand_dims([1, 2], 0)", "[[1, 2]]"),
        "cast": ("cast([1, 2], float32)", "[1.0, 2.0]"),
        "sqrt": ("sqrt(2) ** 2 < 2.001", "True"),
        "exp": ("exp(0)", "1.0"),
        "log": ("log(1)", "0.0"),
        "tanh": ("tanh(0)", "0.0"),
        "erf": ("erf(0)", "0.0"),
        "floor": ("floor(-1.5)", "-2"),
        "ceil": ("ceil(1.2)", "2"),
        "pooling_matrix": ("pooling_matrix(3, 2, float32)", "[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]"),
        "is_divisible": ("is_divisible(4 * x.shape[1], 2)", "True"),
    }
)
