"""What the two sides of a rewrite are given: values that agree with the facts, and edge values.

A rewrite that is right for normal values may be wrong at zeros, ties, negative or large integers,
or NaN. Which of these a piece can be held to depends on its operators.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import onnx
from ml_dtypes import finfo

from surgeon.arranged import alternating, definite, multiplied, one_true, ordered, pivoted
from surgeon.facts import Fact
from surgeon.facts.fact import BOOL, INTEGERS, STRING, Array

NORMAL, EDGES, NOT_NUMBERS, LARGE, VAST = "normal", "edges", "not numbers", "large", "vast"
FLAT, TINY, HUGE, NEGATIVE, ZEROS = "flat", "tiny", "huge", "negative", "zeros"
ORDERED, DEFINITE, REAL, ENDS = "ordered", "definite", "real", "ends"
FAR, PIVOTED, WITHIN, FEW, SMALL = "far", "pivoted", "within", "few", "small"
WORDS = {
    EDGES: "of edge values",
    NOT_NUMBERS: "with NaN and infinities among the values",
    LARGE: "of large numbers",
    VAST: "of numbers beyond those of a double",
    FLAT: "with one value in each input",
    TINY: "with tiny numbers among the values",
    HUGE: "with large magnitudes among the values",
    NEGATIVE: "with places from the end",
    ZEROS: "with zeros of both signs",
    ENDS: "with the largest numbers of their type among the values",
    FAR: "whose exponentials are infinite or zero",
    PIVOTED: "of matrices with zeros on the diagonal",
    WITHIN: "of edge values, with integers within their range",
    SMALL: "of numbers as small as one that it holds",
    FEW: "of which few are positive or true",
    ORDERED: "in order",
    REAL: "of the original's own values on the given data",
    DEFINITE: "of positive definite matrices",
}
# Zeros, ties of every rounding, the knees of activations, and what is nearly one of them.
_EDGE_VALUES = (
    *(0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 2, -2, 3, -3, 6, -6, 1e-3, 20, -20),
    *(0.49999997, -0.49999997, 0.99999994, -0.99999994),
)
_WORDS = ("", "a", "b", "ab", "a,b", "A", "1", "é")
_HUGE_VALUES = np.array([30, -30, 100, -100, 300, -300, 1000, -1000, 3e4, -3e4])
_NO_NUMBERS = np.array([np.nan, np.inf, -np.inf, 0.0])
_ALIKE = 2  # the seed of those that stand at the same places of all inputs
_LARGE_VALUES = (
    *(0, 1, -1, 127, -128, 255, 2**15 - 1, 2**24 + 1, -(2**24) - 1, 2**24 + 3, 2**31 - 1),
    *(2**31 + 5, 2**33 + 1, -(2**33) - 1),
)
_VAST_VALUES = (*_LARGE_VALUES, 2**53 + 1, 2**53 + 3)
ARRANGED = {ORDERED: ordered, DEFINITE: definite, PIVOTED: pivoted}
_ENDS = (np.float32(-np.inf), np.float32(np.inf))
_KEPT = (1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22)  # so many normal numbers of a seed are kept
_COARSE = 100
_MOST_NEAR = 16  # numbers of the piece itself around which values are drawn
_OF_NOT_NUMBERS = frozenset({"IsNaN", "IsInf", "isnan", "isinf", "nan_to_num"})
# Operators that say the same of NaN and infinities in every runtime.
_PLAIN_OF_NOT_NUMBERS = _OF_NOT_NUMBERS | frozenset(
    "Identity Neg Abs Add Sub Mul Div Where Transpose Reshape Concat Slice Gather Split Squeeze "
    "Unsqueeze Flatten Expand Tile Pad Equal Not And Or Relu Sqrt Exp Floor Ceil Round Constant "
    "Shape Cast Max Min Clip Less LessOrEqual Greater GreaterOrEqual LeakyRelu PRelu Reciprocal "
    "Log Sin Cos Sign Xor".split()
)
# Operators that a zero or two equal numbers make undecided (a variance by squares of equal ones may
# be below 0), or that the piece knows too little of.
_UNSTEADY = frozenset(
    "linalg_lu linalg_lu_factor linalg_lu_factor_ex _lu_with_info geqrf lu_solve linalg_lu_solve "
    "qr linalg_qr svd linalg_svd _linalg_svd symeig linalg_eigh _linalg_eigh inverse linalg_inv "
    "linalg_inv_ex linalg_solve cholesky linalg_cholesky lu linalg_det det Det logdet slogdet "
    "pinverse linalg_pinv matrix_exp linalg_matrix_exp linalg_matrix_power matrix_power "
    "triangular_solve linalg_solve_triangular cholesky_solve cholesky_inverse histc kthvalue "
    "median MeanVarianceNormalization".split()
)
# A state that is corrected by what it holds is multiplied, at each token, by as much as the square
# of a key: of any but short ones it soon is infinite, and each side gets there at another place.
_OF_GROWING_STATES = frozenset({"LinearAttention", "GatedDeltaNet"})
# Operators that give as many elements as there are of a kind: ties among what a model gives in
# order, by scores say, are undecided.
_SELECTING = frozenset({"NonZero", "nonzero"})
# Of these, what is defined for each matrix that has an inverse.
_OF_MATRICES = re.compile(
    r"(linalg_)?(lu|lu_factor|lu_factor_ex|qr|svd|inv|inv_ex|inverse|solve|det|slogdet|"
    r"pinv|matrix_exp|matrix_power)|_linalg_svd|_lu_with_info|geqrf|Det|logdet|pinverse"
)
# Exponentials of sums, and what may stand beside one without making more of its rounding.
_OF_EXPONENTIALS = re.compile(r"(?i)_?(log_?)?softmax|(reduce|special_)?_?log(cum)?sum_?exp|Exp")
_BESIDE_EXPONENTIALS = frozenset(
    "Identity Neg Abs Add Sub Div Log Max ReduceMax ReduceSum ReduceLogSum Sum Relu Where "
    "Transpose Reshape Concat Slice Gather Split Squeeze Unsqueeze Flatten Expand Constant Shape "
    "neg add sub div log max amax sum transpose reshape view unsqueeze squeeze".split()
)
# Of sums of large products, and of a Softmax of them, each side rounds to another; a few agree.
_OF_SUMS_OF_PRODUCTS = re.compile(
    r"(?i)attention|matmul|mm(_|$)|mv$|addr|gemm|einsum|conv|linear|lstm|gru|rnn|dist|dot|multi_head"
)
# What is left of a large quotient is a matter of its rounding; a polynomial's terms are infinite,
# as are the squares that onnxruntime takes away again where LRN goes on to the next channel.
_NOT_OF_HUGE = re.compile(
    r"^LRN$|fmod|remainder|floor_divide|div_floor|cumprod|special_shifted_chebyshev_polynomial_[tuvw]"
)
OF_RUNNING_PRODUCTS = frozenset({"cumprod", "CumProd"})
# Operators that leave it open which of two zeros they give.
_LEAVES_SIGNS = re.compile(
    r"(?i)max|min|clip|clamp|relu|sum|mean|pool|mul|gemm|conv|sort|topk|where|mask|solve|diag|unique"
)
# onnxruntime adds up and multiplies whole numbers as doubles in these, whoever wrote them.
_IN_DOUBLES = re.compile(r"(?i)sum|mean|prod|^sign$|^mod$")
# A sum of squares of tiny numbers is 0, by which nothing is divided in double precision; and
# onnxruntime's logarithm of what is less than the least normal number is that of the latter.
_NOT_OF_TINY = re.compile(
    r"_weight_norm|_weight_norm_interface|norm_except_dim|special_(.*bessel_[yk][01]|ndtri)"
)
# onnxruntime 1.29 looks at the lower halves alone of what Sign is of.
_OVERFLOWING = re.compile(r"(?i)prod|addbmm|^sign$")
_OF_COMPLEX = re.compile(r"view_as_complex|complex|polar|stft|_?fft_.*")
# What runtimes make of complex values that are 0 or nearly so differs: NaN, infinities, any angle.
_UNSTEADY_OF_COMPLEX = frozenset("div Div reciprocal sgn angle log log2 log10 pow Pow".split())
# Operators whose outputs grow with an operand's value.
_GROWING = frozenset(
    "Expand Tile Range ConstantOfShape OneHot Pad Resize Upsample Reshape RandomNormal "
    "RandomUniform EyeLike MaxUnpool Col2Im AffineGrid HannWindow HammingWindow BlackmanWindow "
    "CenterCropPad Loop Scan GridSample DFT STFT MelWeightMatrix Pow Exp "
    "expand repeat repeat_interleave arange range full zeros ones new_full new_zeros new_ones eye "
    "one_hot pad constant_pad_nd upsample interpolate bincount linspace logspace tile tril_indices "
    "triu_indices combinations col2im im2col fft_fft stft view reshape".split()
)


def styles(
    operators: Set[str], *, integers: bool, floats: bool, truths: bool, quantized: bool, exact: bool
) -> list[tuple[str, int]]:
    """The ways of drawing values that a piece can be held to, each with a seed.

    Args:
        operators: Of both sides; ATen's by their own names.
        integers: Whether any input holds integers.
        floats: Whether any holds floats.
        truths: Whether any holds truths.
        quantized: Whether any holds integers of 8 bits.
        exact: Whether the rule promises the same bits.
    """
    if operators & _UNSTEADY:
        solid = any(_OF_MATRICES.fullmatch(name) for name in operators)
        return [(PIVOTED, 0)] if solid else []
    if operators & _OF_GROWING_STATES:
        return [(TINY, 0)]
    if operators & _SELECTING:
        return [(FLAT, 0), (FLAT, 1), (FEW, 0)]
    complex_ = any(_OF_COMPLEX.fullmatch(name) for name in operators)
    if complex_ and operators & _UNSTEADY_OF_COMPLEX:
        return []
    found = [(EDGES, 0), (EDGES, 1), (FLAT, 0), (FLAT, 1)]
    if operators <= _PLAIN_OF_NOT_NUMBERS and (exact or operators & _OF_NOT_NUMBERS):
        found += [(NOT_NUMBERS, 0), (NOT_NUMBERS, 1), (NOT_NUMBERS, _ALIKE)]
        if operators & _OF_NOT_NUMBERS:  # elsewhere a sum in another order is infinite, or is not
            found.append((ENDS, 0))
    if floats and not complex_:  # a square or a product of parts is 0 or infinite where it is not
        tiny = not any(_NOT_OF_TINY.fullmatch(name) for name in operators)
        huge = not any(_NOT_OF_HUGE.fullmatch(name) for name in operators)
        found += [(style, 0) for style, fits in ((TINY, tiny), (HUGE, huge)) if fits]
        if huge and not any(_OF_SUMS_OF_PRODUCTS.search(name) for name in operators):
            found.append((HUGE, 1))
        risen = {name for name in operators if _OF_EXPONENTIALS.fullmatch(name)}
        if risen and operators - risen <= _BESIDE_EXPONENTIALS:
            found += [(FAR, 0), (FAR, 1), (FAR, 2)]
    if floats and exact and not any(_LEAVES_SIGNS.search(name) for name in operators):
        found.append((ZEROS, 0))
    if integers:
        found += [(NEGATIVE, 0), (NEGATIVE, 1)]
    overflowing = any(_OVERFLOWING.search(name) for name in operators)
    if (quantized and not overflowing) or (integers and floats):
        found += [(WITHIN, 0), (WITHIN, 1)]
    if truths or (floats and not complex_):
        found.append((FEW, 0))
    if integers and not operators & _GROWING:
        if not overflowing:
            found += [(LARGE, 0), (LARGE, 1)]
        if not any(_IN_DOUBLES.search(name) for name in operators):
            found.append((VAST, 0))
    return found


@lru_cache(maxsize=64)  # of a piece, for each of its drawings
def near(numbers: tuple[float, ...]) -> tuple[float, ...]:
    """Values at, beside and beyond the numbers that a piece itself holds: its thresholds say.

    Not at one that a float32 rounds: which side of it a value lies on is a matter of rounding.
    """
    found: dict[float, None] = {}
    small = [number for number in dict.fromkeys(numbers) if 1e-6 < abs(number) < 1e6]
    rounded = [number for number in small if float(np.float32(number)) != number]
    for number in small[:_MOST_NEAR]:
        single = np.float32(number)
        if any(np.isclose(number, other, rtol=1e-6, atol=0) for other in rounded):
            beside = [number * 0.999, number * 1.001]
        else:
            beside = [number, *(float(np.nextafter(single, to)) for to in _ENDS)]
        if abs(number) >= _COARSE:  # halves have no number so near to it
            beside += [number * 0.99, number * 1.01]
        beside += [-value for value in beside]
        found.update(dict.fromkeys((*beside, number + 1, number - 1)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A set of inputs that is yet to be drawn: a few numbers, where the arrays may be megabytes.

    Attributes:
        drawn: By name, what is known of a value, and its sizes.
        known: By name, the values that need no drawing.
        style: One of this module's words.
        seed: What the values are drawn from.
        beside: Further edge values.
        levels: By name, the middle and the deviation of normal numbers that are rounded to levels.
        ranges: By name, from where and below what an integer is a place, or a length.
        products: Whether floats are multiplied with as many as lie along an axis.
    """

    drawn: Mapping[str, tuple[Fact, tuple[int, ...]]]
    known: Mapping[str, Array]
    style: str
    seed: int
    beside: Sequence[float] = ()
    levels: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    products: bool = False

    def feeds(self) -> dict[str, Array]:
        """The inputs."""
        source = Source(self.seed)
        made = {
            name: draw(source, fact, shape, self.style, self.beside, self.ranges.get(name))
            for name, (fact, shape) in self.drawn.items()
        }
        if self.products:
            made = {name: multiplied(array) for name, array in made.items()}
        for name in self.levels.keys() & made.keys():
            middle, deviation = self.levels[name]
            made[name] = (made[name] * deviation + middle).astype(made[name].dtype)
        return {**made, **self.known}


class Source:
    """Random numbers of a seed.

    Args:
        seed: The same numbers for the same seed.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._at = 0

    @cached_property
    def rng(self) -> np.random.Generator:
        """What the other numbers come from: none of them depends on a normal one."""
        return np.random.default_rng((self.seed, 1))

    def normal(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Normal numbers: the seed's own, from where the last ones ended."""
        size = math.prod(shape)
        begin, self._at = self._at, self._at + size
        kept = next((count for count in _KEPT if count >= self._at), None)
        if kept is None:
            rng = np.random.default_rng((self.seed, 2, begin))
            return rng.standard_normal(shape).astype(dtype)
        return _normal(self.seed, kept)[begin : self._at].reshape(shape).astype(dtype)


@lru_cache(maxsize=3 * len(_KEPT))  # seeds 0, 1 and 2
def _normal(seed: int, count: int) -> Array:
    """A seed's first normal numbers: most pieces are given the same ones, in other shapes."""
    return np.random.default_rng(seed).standard_normal(count)


def draw(
    source: Source,
    fact: Fact,
    shape: tuple[int, ...],
    style: str = NORMAL,
    beside: Sequence[float] = (),
    range_: tuple[int, int] | None = None,
) -> Array:
    """Values that agree with the fact.

    Args:
        source: Where they come from; its seed is the value itself, where there is one.
        fact: What is known of the value.
        shape: The sizes.
        style: One of this module's words.
        beside: Further edge values.
        range_: From where and below what an integer is a place, or a length.
    """
    dtype = onnx.helper.tensor_dtype_to_np_dtype(fact.dtype)
    if fact.dtype == BOOL:
        if style == FEW:
            return one_true(source.rng, shape)
        truths = source.seed == 1 if style == FLAT else source.rng.random(shape) < 0.5
        return np.full(shape, truths)
    if fact.dtype == STRING:
        many = len(_WORDS)
        place = (
            np.full(shape, source.seed) if style == FLAT else source.rng.integers(many, size=shape)
        )
        return np.asarray(np.array(_WORDS, object)[place % many], object)
    if fact.dtype in INTEGERS:
        integers = _integers(source, dtype, shape, style, beside, range_)
        return np.where(integers < 0, ~integers, integers) if fact.not_negative else integers
    if style == NORMAL and fact.unit_axis is None and not fact.not_negative:
        return source.normal(shape, dtype)
    values = source.normal(shape, np.dtype(np.float64))
    if fact.unit_axis is not None and values.size:
        exponential = np.exp(values * 2)
        values = exponential / exponential.sum(fact.unit_axis, keepdims=True)
        return np.asarray(values).astype(dtype)
    if style in ARRANGED:
        values = ARRANGED[style](values)
    elif style == FAR:
        end = 1.6 * math.log(float(finfo(dtype).max))  # type: ignore[no-untyped-call]
        level = alternating(shape) if source.seed == 2 else 1 - 2 * source.seed
        values = values + end * level
    elif style == FEW:
        values = values - 2
    elif style == SMALL:
        values = values * (beside[0] if source.seed else math.sqrt(beside[0]))
    elif style == FLAT:
        values = np.full(shape, float(source.seed))
    elif style == NOT_NUMBERS and source.seed == _ALIKE:
        values.reshape(-1)[:2] = _NO_NUMBERS[1:3][: values.size]
    elif style != NORMAL:
        chosen, share = _among(dtype, style, beside)
        taken = source.rng.random(shape, np.float32) < share
        values = np.where(taken, source.rng.choice(chosen, shape), values)
    if fact.not_negative:
        values = np.abs(values)
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(dtype)


def _among(dtype: np.dtype[Any], style: str, beside: Sequence[float]) -> tuple[Array, float]:
    """The values to mix among the normal ones, and their share."""
    if style in (EDGES, WITHIN):  # what a mask puts in place of a score is its dtype's last number
        most = float(finfo(dtype).max) / 2  # type: ignore[no-untyped-call]
        return np.array([*_EDGE_VALUES, *(v for v in beside if abs(v) <= most)]), 0.7
    if style == NOT_NUMBERS:
        return _NO_NUMBERS, 0.5
    if style == ZEROS:
        return np.array([0.0, -0.0]), 0.5
    if style == HUGE:  # of which a half holds a product of two
        return _HUGE_VALUES[:4] if dtype.itemsize == 2 else _HUGE_VALUES, 0.3
    info: Any = finfo(dtype)  # type: ignore[no-untyped-call]
    if style == ENDS:
        most = float(info.max)
        return np.array([most, -most, most / 2, -most / 2, *_NO_NUMBERS]), 0.7
    normal = float(info.tiny)
    # Half of the least normal number has all its digits but one; the least of all has one.
    tiny = [normal / 2, normal, float(np.sqrt(normal)), float(info.eps)]
    return np.array([*tiny, *(-v for v in tiny), 0.0]), 0.7


def _integers(
    source: Source,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    style: str,
    beside: Sequence[float],
    range_: tuple[int, int] | None,
) -> Array:
    """Small, so that they may be places; signed at the edges; and beyond what a float can hold."""
    limits, rng = np.iinfo(dtype), source.rng
    low, high = range_ or (0, 3)
    if style == FLAT:
        return np.full(shape, min(max(source.seed, low), high - 1), dtype)
    if style == WITHIN and range_ is None and dtype.itemsize == 1:  # quantized numbers
        return np.asarray(rng.integers(limits.min, limits.max, shape, dtype, endpoint=True))
    if style == NEGATIVE:
        places = np.arange(max(-2, limits.min), 2)  # each of them, where there are as many elements
        return rng.permutation(np.resize(places, math.prod(shape))).reshape(shape).astype(dtype)
    if style == ORDERED:
        return np.sort(rng.integers(low, high, shape), -1 if shape else None).astype(dtype)
    if style in (EDGES, LARGE, VAST):
        known: Sequence[float] = _VAST_VALUES if style == VAST else _LARGE_VALUES
        if style == EDGES:
            whole = [int(v) for v in beside if v == int(v)]
            known = [*range(-4, 5), *range(-4, 5), *whole]
        held = np.array([v for v in known if limits.min <= v <= limits.max], dtype)
        return np.asarray(rng.choice(held, shape))
    return np.asarray(rng.integers(low, high, shape)).astype(dtype)
