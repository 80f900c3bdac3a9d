"""Comparisons, logic, bits, and the choice between values: nothing here rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.work import BOOL, DOUBLE, FLOAT, INT32, INT64, Work, numpy_dtype
from surgeon.builders.scalar_types import finfo
from surgeon.facts.kinds import FLOATS
from surgeon.links import maker_of
from surgeon.rewrite import Refused


def compare(work: Work) -> gs.Tensor:
    """`eq ne lt le gt ge` in the operands' common dtype."""
    _, (a, b) = work.together(*work.args.pair())
    kind = work.name
    if kind == "eq":
        return work.equal(a, b)
    if kind in ("ne", "not_equal"):
        return work.invert(work.equal(a, b))
    if kind in ("gt", "greater"):
        return work.less(b, a)
    if kind in ("ge", "greater_equal"):
        return work.less(b, a, or_equal=True)
    return work.less(a, b, or_equal=kind in ("le", "less_equal"))


def truth(work: Work, x: gs.Tensor) -> gs.Tensor:
    """Whether a value is not zero; NaN is not.

    Raises:
        Refused: It may be complex, as long as the node that makes it is PyTorch's.
    """
    if not work.facts.of(x).dtype and _is_pytorchs(x):
        work.dtype(x)  # says that it is not known
    return work.cast(x, BOOL)


def _is_pytorchs(x: gs.Tensor) -> bool:
    """Whether it is made of a PyTorch operator's first output, by standard ones or by none."""
    at: gs.Tensor | None = x
    while at is not None and (node := maker_of(at)) is not None:
        if node.domain == "aten":
            return True
        at = node.inputs[0] if node.inputs else None
    return False


def logical(work: Work) -> gs.Tensor:
    """`logical_and`, `logical_or`, `logical_xor`."""
    operator = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}[work.name]
    a, b = work.args.pair()
    return work.op(operator, truth(work, a), truth(work, b))


def logical_not(work: Work) -> gs.Tensor:
    """`logical_not`."""
    return work.invert(truth(work, work.args.tensor("self")))


def extreme_of_two(work: Work, operator: str, *operands: gs.Tensor) -> gs.Tensor:
    """`maximum`, `minimum`: NaN wins."""
    _, (a, b) = work.together(*operands)
    return work.extreme(operator, a, b)


def maximum(work: Work) -> gs.Tensor:
    """`maximum` and `minimum`."""
    return extreme_of_two(work, "Max" if work.name == "maximum" else "Min", *work.args.pair())


def fmax(work: Work) -> gs.Tensor:
    """`fmax` and `fmin`: a number wins over NaN."""
    operator = "Max" if work.name == "fmax" else "Min"
    dtype, (a, b) = work.together(*work.args.pair())
    if work.opset >= 12 and dtype in (FLOAT, DOUBLE):
        chosen = _not_behind(work, operator, a, b, b)  # NaN where b is
        return _not_behind(work, operator, chosen, b, a)
    chosen = work.extreme(operator, a, b)
    if dtype not in FLOATS:
        return chosen
    chosen = work.where(work.is_nan(b), a, chosen)
    return work.where(work.is_nan(a), b, chosen)


def _not_behind(
    work: Work, operator: str, x: gs.Tensor, b: gs.Tensor, otherwise: gs.Tensor
) -> gs.Tensor:
    """`x` where it is as extreme as `b`, which NaN is not."""
    pair = (b, x) if operator == "Max" else (x, b)
    return work.where(work.less(*pair, or_equal=True), x, otherwise)


def clamp(work: Work) -> gs.Tensor:
    """`clamp`, `clip`, `clamp_min`, `clamp_max`; where the limits cross, the upper one holds.

    Before PyTorch 1.12 integers stayed integers, and numbers as limits became such too.
    """
    x = work.args.tensor("self")
    limits = [work.args.optional(n) if work.args.schema.takes(n) else None for n in ("min", "max")]
    given = [t for t in limits if t is not None]
    if not given:
        raise Refused("neither limit is given")
    dtype = work.result_type(x, *given)
    if work.facts.model.is_before(1, 12) and all(work.is_number(t) for t in given):
        dtype = work.dtype(x)
    if dtype == BOOL and (len(given) > 1 or any(work.is_number(t) for t in given)):
        raise Refused("PyTorch clamps no booleans between numbers")
    x = work.cast(x, dtype)
    if dtype != BOOL and _clips(work, dtype, given):
        made = [None if t is None else _scalar(work, t, dtype) for t in limits]
        while made and made[-1] is None:
            made.pop()
        clipped: gs.Tensor = work.draft.op("Clip", x, *made)
        return clipped
    if limits[0] is not None:
        x = work.extreme("Max", x, work.cast(limits[0], dtype))
    return x if limits[1] is None else work.extreme("Min", x, work.cast(limits[1], dtype))


def _clips(work: Work, dtype: int, limits: list[gs.Tensor]) -> bool:
    """Whether Clip does: its limits are scalars, and constant floats before opset 11."""
    arrays = [work.facts.array(t) for t in limits]
    if any(a is None or a.ndim or np.isnan(a) for a in arrays):
        return False
    # With one limit alone, Clip's other one is the largest finite number: infinities would go.
    if len(arrays) != 2 or not arrays[0] <= arrays[1]:  # type: ignore[operator]
        return False
    return dtype != INT64 and (work.opset >= 12 or dtype == FLOAT)


def _scalar(work: Work, limit: gs.Tensor, dtype: int) -> gs.Tensor:
    return work.cast(limit, dtype)


def choose(work: Work) -> gs.Tensor:
    """`where` with three arguments."""
    condition = work.args.tensor("condition")
    if not work.args.has("self"):
        raise Refused("`where` of one argument gives indices: it is no arithmetic")
    _, (a, b) = work.together(work.args.tensor("self"), work.args.tensor("other"))
    return work.where(truth(work, condition), a, b)


def masked_fill(work: Work) -> gs.Tensor:
    """`masked_fill`, in the dtype of what is filled."""
    x = work.args.tensor("self")
    value = work.cast(work.args.tensor("value"), work.dtype(x))
    return work.where(truth(work, work.args.tensor("mask")), value, x)


def is_kind(work: Work) -> gs.Tensor:
    """`isnan`, `isinf`, `isfinite`, `isposinf`, `isneginf`; integers are finite."""
    x = work.args.tensor("self")
    dtype = work.dtype(x)
    if dtype not in FLOATS:
        same = work.equal(x, x)
        return same if work.name == "isfinite" else work.invert(same)
    if work.name == "isnan":
        return work.is_nan(x)
    if work.name in ("isposinf", "isneginf"):
        sign = 1 if work.name == "isposinf" else -1
        return work.equal(x, work.number(sign * np.inf, dtype))
    if work.name == "isinf":
        return work.is_infinite(x)
    return work.op("Less", work.op("Abs", x), np.inf)


def is_close(work: Work) -> gs.Tensor:
    """`isclose`: |a - b| <= atol + rtol * |b|, or equal, or both NaN where asked."""
    a, b = work.args.pair()
    dtype, (a, b) = work.together(a, b)
    same = work.equal(a, b)
    rtol, atol = work.constant_of("rtol", 1e-5), work.constant_of("atol", 1e-8)
    wide = dtype
    nan_too = bool(work.constant_of("equal_nan", False)) and dtype in FLOATS
    both = work.op("And", work.is_nan(a), work.is_nan(b)) if nan_too else None
    if dtype not in FLOATS:  # of integers PyTorch compares in its default dtype
        a, b, wide = work.cast(a, FLOAT), work.cast(b, FLOAT), FLOAT
    room = work.op("Add", work.op("Mul", work.op("Abs", b), rtol), atol)
    apart = work.op("Abs", work.op("Sub", a, b))
    finite = work.op("Less", apart, work.number(np.inf, wide))
    near = work.op("And", work.less(apart, room, or_equal=True), finite)
    found = work.op("Or", same, near)
    return found if both is None else work.op("Or", found, both)


def nan_to_num(work: Work) -> gs.Tensor:
    """`nan_to_num`: NaN and infinities by numbers, those of the dtype where none are given."""
    x = work.args.tensor("self")
    dtype = work.dtype(x)
    if dtype not in FLOATS:
        return x
    most = float(finfo(numpy_dtype(dtype)).max)
    nan, high, low = (
        work.constant_of(name, default)
        for name, default in (("nan", 0.0), ("posinf", most), ("neginf", -most))
    )
    y = work.where(work.is_nan(x), float(nan), x)
    y = work.where(work.equal(x, work.number(np.inf, dtype)), float(high), y)
    return work.where(work.equal(x, work.number(-np.inf, dtype)), float(low), y)


def copy_sign(work: Work) -> gs.Tensor:
    """`copysign`: the magnitude of one and the sign of the other, -0.0 included."""
    _, (a, b) = work.together(*work.args.pair(), floating=True)
    size = work.op("Abs", a)
    # onnxruntime's Where keeps -0.0 of what is chosen where the condition does not hold
    return work.where(work.op("Not", sign_bit(work, b)), size, work.op("Neg", size))


def sign_bit(work: Work, x: gs.Tensor) -> gs.Tensor:
    """Whether the sign bit is set; 1 / -0.0 is less than zero, and NaN counts as positive."""
    dtype = work.dtype(x)
    if dtype not in FLOATS:
        return work.less(x, work.number(0, dtype))
    zero = work.number(0, dtype)
    below = work.op("Less", x, zero)
    inverse_below = work.op("Less", work.op("Reciprocal", x), zero)
    made: gs.Tensor = work.op("Or", below, inverse_below)
    return made


def signbit(work: Work) -> gs.Tensor:
    """`signbit`."""
    x = work.args.tensor("self")
    if work.dtype(x) == BOOL:
        return work.op("And", x, work.invert(x))
    return sign_bit(work, x)


def heaviside(work: Work) -> gs.Tensor:
    """`heaviside`: 0 below zero, `values` at zero, 1 above; NaN is not above."""
    x, values = work.args.pair()
    dtype = work.dtype(x)
    if work.dtype(values) != dtype:
        raise Refused("PyTorch wants both of one dtype")
    zero = work.number(0, dtype)
    step = work.cast(work.less(zero, x), dtype)
    return work.where(work.equal(x, zero), values, step)


def sign(work: Work) -> gs.Tensor:
    """`sign` and `sgn`."""
    x = work.args.tensor("self")
    dtype = work.dtype(x)
    if dtype == BOOL:
        return x
    if dtype != INT64:
        return work.op("Sign", x)
    zero = work.number(0, INT64)  # onnxruntime looks at the lower half alone (seen in 1.31)
    above, below = work.op("Less", zero, x), work.op("Less", x, zero)
    return work.op("Sub", work.cast(above, INT64), work.cast(below, INT64))


_TO = {
    "_cast_Float": FLOAT,
    "_cast_Double": DOUBLE,
    "_cast_Half": 10,
    "_cast_Int": INT32,
    "_cast_Long": INT64,
    "_cast_Short": 5,
    "_cast_Char": 3,
    "_cast_Byte": 2,
}


def convert(work: Work) -> gs.Tensor:
    """`to` in every overload, `type_as`, `_to_copy`, `float` and kin."""
    if work.name in _TO:
        return work.cast(work.node.inputs[0], _TO[work.name])
    x = work.args.tensor("self")
    if work.name == "type_as" or work.args.schema.overload == "other":
        return work.cast(x, work.dtype(work.args.tensor("other")))
    if not work.args.schema.takes("dtype"):
        return x
    dtype = work.dtype_argument()
    return x if dtype is None else work.cast(x, dtype)


def same(work: Work) -> gs.Tensor:
    """Copies and aliases."""
    return work.node.inputs[0]


def dropout(work: Work) -> gs.Tensor:
    """Dropout outside training changes nothing."""
    p = work.args.value("p")
    if work.args.value("train") and p != 0:
        raise Refused("it drops at random: the model was exported for training")
    return work.args.tensor("input")


def is_in(work: Work) -> gs.Tensor:
    """`isin`: whether any of the others is equal."""
    first, second = work.args.pair()
    rank = work.rank(first)
    dtype, (x, others) = work.together(first, second)
    if dtype == BOOL:
        raise Refused("PyTorch does not look for booleans")
    row = work.draft.op("Reshape", others, work.axes([-1]))
    wide = work.draft.op("Unsqueeze", x, work.axes([rank]))
    hits = work.cast(work.equal(wide, row), INT32)
    count = work.draft.op("ReduceSum", hits, work.axes([rank]), keepdims=0)
    none = work.number(0, INT32)
    return work.equal(count, none) if work.args.value("invert") else work.less(none, count)


def is_real(work: Work) -> gs.Tensor:
    """`isreal`: what is not complex is."""
    x = work.args.tensor("self")
    work.dtype(x)
    true = work.draft.constant(np.asarray(True))
    made: gs.Tensor = work.draft.op("Expand", true, work.draft.op("Shape", x))
    return made


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    **dict.fromkeys(
        "eq ne lt le gt ge greater greater_equal less less_equal not_equal".split(), compare
    ),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), logical),
    "logical_not": logical_not,
    "maximum": maximum,
    "minimum": maximum,
    "fmax": fmax,
    "fmin": fmax,
    **dict.fromkeys(("clamp", "clip", "clamp_min", "clamp_max"), clamp),
    "where": choose,
    "masked_fill": masked_fill,
    **dict.fromkeys(("isnan", "isinf", "isfinite", "isposinf", "isneginf"), is_kind),
    "isclose": is_close,
    "nan_to_num": nan_to_num,
    "copysign": copy_sign,
    "signbit": signbit,
    "heaviside": heaviside,
    "sign": sign,
    "sgn": sign,
    **dict.fromkeys((*_TO, "to", "type_as", "_to_copy"), convert),
    **dict.fromkeys("clone contiguous detach alias lift_fresh positive".split(), same),
    **dict.fromkeys(
        ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"), dropout
    ),
    "isin": is_in,
    "isreal": is_real,
}
