"""What the two sides of a rewrite are given: values that agree with the facts, and edge values.

A rewrite that is right for normal values may be wrong at zeros, ties, negative or large integers,
or NaN. Which of these a piece can be held to hangs on its operators.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np
import onnx

from surgeon.facts import Fact
from surgeon.facts.fact import BOOL, INTEGERS, Array

NORMAL, EDGES, NOT_NUMBERS, LARGE = "normal", "edges", "not numbers", "large"
WORDS = {
    EDGES: "of edge values",
    NOT_NUMBERS: "with NaN and infinities among the values",
    LARGE: "of large numbers",
}
# Zeros, ties of every rounding, the knees of activations, and what is nearly one of them.
_EDGE_VALUES = np.array(
    [0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 2, -2, 3, -3, 6, -6, 1e-3, 20, -20]
)
_NO_NUMBERS = np.array([np.nan, np.inf, -np.inf, 0.0])
_LARGE_VALUES = (
    *(0, 1, -1, 127, -128, 255, 2**15 - 1, 2**24 + 1, -(2**24) - 1, 2**24 + 3, 2**31 - 1),
    *(2**31 + 5, 2**33 + 1, -(2**33) - 1, 2**53 + 1),
)
_OF_NOT_NUMBERS = frozenset({"IsNaN", "IsInf", "isnan", "isinf", "nan_to_num"})
# Operators that say the same of NaN and infinities in every runtime.
_PLAIN_OF_NOT_NUMBERS = _OF_NOT_NUMBERS | frozenset(
    "Identity Neg Abs Add Sub Mul Div Where Transpose Reshape Concat Slice Gather Split Squeeze "
    "Unsqueeze Flatten Expand Tile Pad Equal Not And Or Relu Sqrt Exp Floor Ceil Round Constant "
    "Shape Cast Max Min Clip Less LessOrEqual Greater GreaterOrEqual".split()
)
# Operators that a zero or two equal numbers make undecided, or that the piece knows too little of.
_UNSTEADY = frozenset(
    "qr linalg_qr svd linalg_svd _linalg_svd symeig linalg_eigh _linalg_eigh inverse linalg_inv "
    "linalg_inv_ex linalg_solve cholesky linalg_cholesky lu linalg_det det Det logdet slogdet "
    "pinverse linalg_pinv NonZero nonzero kthvalue median".split()
)
# Operators whose outputs are no larger for larger numbers.
_ELEMENTWISE = frozenset(
    "Add Sub Mul Div Mod Neg Abs Sign Min Max Cast Where Equal Less LessOrEqual Greater "
    "GreaterOrEqual Not And Or Xor Identity Clip Relu Sum Mean ReduceSum ReduceMax ReduceMin "
    "ReduceProd Transpose Concat Squeeze Unsqueeze Flatten BitwiseAnd BitwiseOr BitwiseNot "
    "BitwiseXor Constant ArgMax ArgMin Sqrt Floor Ceil Round".split()
)


def styles(operators: Set[str], *, integers: bool, exact: bool) -> list[str]:
    """The ways of drawing edge values that a piece can be held to.

    Args:
        operators: Of both sides; ATen's by their own names.
        integers: Whether any input holds integers.
        exact: Whether the rule promises the same bits.
    """
    if operators & _UNSTEADY:
        return []
    found = [EDGES]
    if operators <= _PLAIN_OF_NOT_NUMBERS and (exact or operators & _OF_NOT_NUMBERS):
        found.append(NOT_NUMBERS)
    if operators <= _ELEMENTWISE and integers:
        found.append(LARGE)
    return found


def draw(
    rng: np.random.Generator, fact: Fact, shape: tuple[int, ...], style: str = NORMAL
) -> Array:
    """Seeded values that agree with the fact."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(fact.dtype)
    if fact.dtype == BOOL:
        return rng.random(shape) < 0.5
    if fact.dtype in INTEGERS:
        return _integers(rng, dtype, shape, style)
    values = rng.standard_normal(shape)
    if fact.unit_axis is not None and values.size:
        exponential = np.exp(values * 2)
        values = exponential / exponential.sum(fact.unit_axis, keepdims=True)
        return np.asarray(values).astype(dtype)
    if style == EDGES:
        values = np.where(rng.random(shape) < 0.7, rng.choice(_EDGE_VALUES, shape), values)
    elif style == NOT_NUMBERS:
        values = np.where(rng.random(shape) < 0.5, rng.choice(_NO_NUMBERS, shape), values)
    if fact.not_negative:
        values = np.abs(values)
    return np.asarray(values).astype(dtype)


def _integers(
    rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], style: str
) -> Array:
    """Small, so that they may be places; signed at the edges; and beyond what a float can hold."""
    limits = np.iinfo(dtype)
    if style == EDGES:
        return np.asarray(rng.integers(max(-4, limits.min), 5, shape)).astype(dtype)
    if style == LARGE:
        known = [v for v in _LARGE_VALUES if limits.min <= v <= limits.max]
        return np.asarray(rng.choice(np.array(known, dtype), shape), dtype)
    return np.asarray(rng.integers(0, 3, shape)).astype(dtype)
