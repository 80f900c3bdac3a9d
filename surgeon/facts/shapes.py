"""Output shapes of the operators whose dimensions are arithmetic, from ONNX's specification.

onnx's own inference gives up where a dimension is computed (`Conv` on [b, 3, h, w] gives
[b, 8, ?, ?]); these functions do not. Each takes a `Question` and gives the outputs' shapes, or
None, and then onnx's inference is asked. Every node is in its newest form (see `opsets`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surgeon import dims
from surgeon.dims import Dim
from surgeon.facts import cuts, windows
from surgeon.facts.elementwise import BINARY, REDUCTIONS, UNARY
from surgeon.facts.fact import Array
from surgeon.facts.question import Function, Question, Shape, broadcast

_MOST_AXES = 1 << 10  # whoever has more has no shape here: a file may ask for millions
_MOST = 2**63 - 1


def _elementwise(question: Question) -> Sequence[Shape | None] | None:
    shapes = [fact.shape for fact in question.inputs if fact is not None]
    if not shapes or any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    if all(shape == known[0] for shape in known):
        return [known[0]]
    return [broadcast(known, question.fresh)]


def _same(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    # Further outputs (a mask, statistics) have shapes and dtypes of their own: onnx knows them.
    return None if shape is None or question.outputs > 1 else [shape]


def _matmul(question: Question) -> Sequence[Shape | None] | None:
    left, right = question.shape(0), question.shape(1)
    if not left or not right:
        return None
    rows: Shape = left[-2:-1]
    columns: Shape = right[-1:] if len(right) > 1 else ()
    batches = [left[:-2], right[:-2]]
    batch = broadcast(batches, question.fresh) if any(batches) else ()
    return [(*batch, *rows, *columns)]


def _gemm(question: Question) -> Sequence[Shape | None] | None:
    left, right = question.shape(0), question.shape(1)
    if left is None or right is None or len(left) != 2 or len(right) != 2:
        return None
    rows = left[1] if question.attributes.get("transA", 0) else left[0]
    columns = right[0] if question.attributes.get("transB", 0) else right[1]
    return [(rows, columns)]


def _einsum(question: Question) -> Sequence[Shape | None] | None:
    """Of each letter the sizes of all operands that have it, of which any may be 1.

    An ellipsis is so many letters more, counted from behind.
    """
    equation = question.attributes.get("equation", "")
    text = equation.decode() if isinstance(equation, bytes) else str(equation)
    given, arrow, result = text.replace(" ", "").partition("->")
    shapes = [fact and fact.shape for fact in question.inputs]
    known = [shape for shape in shapes if shape is not None]
    if len(known) != given.count(",") + 1:
        return None
    if not arrow:
        once = (letter for letter in {*given} - {*",."} if given.count(letter) == 1)
        result = "..." * ("." in given) + "".join(sorted(once))
    texts = given.split(",")
    behind = [len(s) - len(t) + 3 for t, s in zip(texts, known, strict=True) if "..." in t]
    most = max(behind, default=0)
    terms = [_letters(t, len(s) - len(t) + 3) for t, s in zip(texts, known, strict=True)]
    if min([0, *behind]) < 0 or [len(s) for s in known] != [len(term) for term in terms]:
        return None
    wanted = _letters(result, most)
    each = [
        tuple(dim if letter == other else 1 for other in wanted)
        for term, shape in zip(terms, known, strict=True)
        for letter, dim in zip(term, shape, strict=True)
    ]
    return [broadcast([*each, (1,) * len(wanted)], question.fresh)]


def _letters(term: str, count: int) -> list[str]:
    """The letters of a term, an ellipsis as so many numbers."""
    before, dots, behind = term.partition("...")
    return [*before, *(str(n) for n in range(count, 0, -1) if dots), *behind]


def _transpose(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    if shape is None:
        return None
    perm = question.attributes.get("perm") or range(len(shape) - 1, -1, -1)
    return [tuple(shape[i] for i in perm)]


def _reshape(question: Question) -> Sequence[Shape | None] | None:
    """As the target says.

    A computed size is taken as it is. Should it be 0 at run time, the tensor is empty, and Reshape
    reads the 0 as "as it was": such sizes are left out of account.
    """
    shape, target = question.shape(0), question.value(1)
    if target is None:
        length = question.shape(1)
        if length and isinstance(length[0], int):
            if length[0] > _MOST_AXES:
                return [None]
            return [tuple(question.fresh(axis) for axis in range(length[0]))]
        return None
    out: list[Dim | None] = []
    for axis, dim in enumerate(target):
        if dim == 0 and not question.attributes.get("allowzero", 0):
            out.append(
                shape[axis] if shape is not None and axis < len(shape) else question.fresh(axis)
            )
        elif dim == -1:
            out.append(None)
        elif isinstance(dim, int) or dims.not_negative(dim):
            out.append(dim)
        else:
            out.append(question.fresh(axis))  # it could be -1, or 0
    if None in out:
        axis = out.index(None)
        quotient = None
        if shape is not None:
            rest = dims.product(d for d in out if d is not None)
            quotient = dims.exact_quotient(dims.product(shape), rest)
        out[axis] = question.fresh(axis) if quotient is None else quotient
    return [tuple(d for d in out if d is not None)]


def _flatten(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    if shape is None:
        return None
    axis = question.attributes.get("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return [(dims.product(shape[:axis]), dims.product(shape[axis:]))]


def _squeeze(question: Question) -> Sequence[Shape | None] | None:
    shape, axes = question.shape(0), question.axes(1)
    if shape is None or (question.has(1) and axes is None):
        return None
    if axes is None:
        if any(not isinstance(d, int) for d in shape):
            return None  # whether a dynamic dimension is 1 decides the rank
        return [tuple(d for d in shape if d != 1)]
    if not axes:  # none by ONNX, and all that are 1 by onnxruntime
        return [shape] if all(isinstance(d, int) and d != 1 for d in shape) else None
    gone = {axis % len(shape) for axis in axes} if shape else set()
    return [tuple(d for i, d in enumerate(shape) if i not in gone)]


def _unsqueeze(question: Question) -> Sequence[Shape | None] | None:
    shape, axes = question.shape(0), question.axes(1)
    if shape is None or axes is None:
        return None
    rank = len(shape) + len(axes)
    new, rest = {axis % rank for axis in axes}, iter(shape)
    if len(new) < len(axes):
        return None  # one is told twice
    return [tuple(1 if i in new else next(rest) for i in range(rank))]


def _reduce(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    if shape is None:
        return None
    axes: Sequence[int] | None = question.attributes.get("axes")
    if question.has(1):
        axes = question.axes(1)
        if axes is None:
            return None
    if not axes:
        if question.attributes.get("noop_with_empty_axes", 0):
            return [shape]
        axes = range(len(shape))
    return _reduced(question, shape, {axis % len(shape) for axis in axes} if shape else set())


def _arg_reduce(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    if not shape:
        return None
    return _reduced(question, shape, {question.attributes.get("axis", 0) % len(shape)})


def _reduced(question: Question, shape: Shape, axes: set[int]) -> Sequence[Shape]:
    if question.attributes.get("keepdims", 1):
        return [tuple(1 if i in axes else d for i, d in enumerate(shape))]
    return [tuple(d for i, d in enumerate(shape) if i not in axes)]


def _shape_of(question: Question) -> Sequence[Shape | None] | None:
    shape = question.shape(0)
    if shape is None:
        return [(question.fresh(0),)]
    return [(len(shape[question.attributes.get("start", 0) : question.attributes.get("end")]),)]


def _scalar(question: Question) -> Sequence[Shape | None] | None:
    return [()]


def shape_value(shape: Shape, attributes: Mapping[str, Any]) -> Array:
    """What `Shape` gives: the dims from `start` to `end`, as objects."""
    part = shape[attributes.get("start", 0) : attributes.get("end")]
    out = np.empty(len(part), object)
    out[:] = list(part)
    return out


# Whose first result has the shape of the first operand.
_SAME = (
    "BatchNormalization CastLike Clip CumSum Dropout GroupNormalization Hardmax "
    "InstanceNormalization LRN LayerNormalization LogSoftmax LpNormalization "
    "MeanVarianceNormalization MemcpyFromHost MemcpyToHost RMSNormalization Scatter "
    "ScatterElements ScatterND SimplifiedLayerNormalization Softmax Trilu".split()
)
COMPARES = frozenset(
    "And Or Xor Not Equal Less LessOrEqual Greater GreaterOrEqual IsNaN IsInf".split()
)
# outputs that are sizes or places
COUNTS = frozenset(
    {
        *((op, 0) for op in ("Shape", "Size", "ArgMax", "ArgMin", "NonZero", "NonMaxSuppression")),
        *((op, 1) for op in ("MaxPool", "TopK")),
    }
)


def _attention(question: Question) -> Sequence[Shape | None] | None:
    """Of queries, keys and values as [N, heads, L, width] or [N, L, heads * width].

    onnx 1.23 takes for 0 what it does not know: the length of the scores where nothing is kept of
    what was before, and the width of lines; so it is not asked.
    """
    query, key, value = (question.shape(index) for index in range(3))
    if query is None or len(query) not in (3, 4):
        return None
    unknown: list[Shape | None] = [(*query[:-1], question.fresh(len(query) - 1)), None, None, None]
    if key is None or value is None or not len(query) == len(key) == len(value):
        return unknown[: question.outputs]
    if len(query) == 4:
        heads, of_keys, length, own = query[1], key[1], query[2], key[2]
        width, of_values = key[3], value[3]
        y: Shape = (*query[:3], of_values)
    else:
        heads, of_keys = (question.attributes.get(f"{side}_num_heads", 0) for side in ("q", "kv"))
        wide, wide_values = key[2], value[2]
        if not (heads and of_keys and isinstance(wide, int) and isinstance(wide_values, int)):
            return unknown[: question.outputs]
        length, own = query[1], key[1]
        width, of_values = wide // of_keys, wide_values // of_keys
        y = (*query[:2], heads * of_values)
    past = question.shape(4) if question.has(4) else ()
    if past is None or len(past) not in (0, 4):
        return [y, None, None, None][: question.outputs]
    whole = own + past[2] if past else own
    keys: Shape = (query[0], of_keys, whole, width)
    values: Shape = (query[0], of_keys, whole, of_values)
    return [y, keys, values, (query[0], heads, length, whole)][: question.outputs]


def _stft(question: Question) -> Sequence[Shape | None] | None:
    """Frames of a signal [N, L] or [N, L, 1 or 2]: half of the frequencies, unless it says all.

    onnx 1.23 takes all where `onesided` is left out.
    """
    signal, window = question.shape(0), question.shape(2)
    if signal is None or len(signal) < 2:
        return None
    step, length = (question.axes(1) or [0])[0], question.axes(3)
    whole: Dim | None = length[0] if length else window[0] if window else None
    if whole is None:
        return [(signal[0], question.fresh(1), question.fresh(2), 2)]
    half = question.attributes.get("onesided", 1)
    bins = dims.floor_divide(whole, 2) + 1 if half else whole
    frames = dims.floor_divide(signal[1] - whole, step) + 1 if step > 0 else question.fresh(1)
    return [(signal[0], frames, bins, 2)]


FUNCTIONS: Mapping[str, Function] = {
    "STFT": _stft,
    "Attention": _attention,
    **dict.fromkeys((*UNARY, *_SAME), _same),
    **dict.fromkeys((*BINARY, "PRelu"), _elementwise),
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg_reduce),
    **dict.fromkeys(REDUCTIONS, _reduce),
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Einsum": _einsum,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Shape": _shape_of,
    "Size": _scalar,
    **windows.FUNCTIONS,
    **cuts.FUNCTIONS,
}


def whole(found: Sequence[tuple[Dim, ...] | None]) -> bool:
    """Whether sizes are whole numbers that ONNX counts: those of floats or truths are none."""
    for shape in found:
        for dim in shape or ():
            if isinstance(dim, float | bool) or (isinstance(dim, int) and not 0 <= dim <= _MOST):
                return False
    return True
