"""Losses of margins and of counts: what is on the wrong side, and by how much."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.activations import log_one_plus_exp
from surgeon.builders.aten_math.entropy import number_of
from surgeon.builders.aten_math.losses import MEAN, NONE, reduced
from surgeon.builders.aten_math.ordered import running_sum
from surgeon.builders.aten_math.reductions import element_count, reduce
from surgeon.builders.aten_math.work import BOOL, INT64, UINT8, Work
from surgeon.builders.bench import Bench, Size
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

_TINY = 1e-12  # what PyTorch adds to a squared length (ATen/native/Loss.cpp)


def _positive(work: Work, x: gs.Tensor) -> gs.Tensor:
    return work.extreme("Max", x, work.number(0, work.dtype(x)))


def _float(work: Work, name: str) -> gs.Tensor:
    x = work.args.tensor(name)
    if work.dtype(x) not in FLOATS:
        raise Refused("PyTorch has no such loss of integers, or an integer for its result")
    return x


def _numbers(work: Work, name: str) -> gs.Tensor:
    x = work.args.tensor(name)
    if work.dtype(x) == BOOL:
        raise Refused("PyTorch subtracts no booleans")
    return x


def _is(work: Work, target: gs.Tensor, number: int) -> gs.Tensor:
    dtype = work.dtype(target)
    if dtype == BOOL:  # which are compared as numbers, and never are -1
        target, dtype = work.cast(target, INT64), INT64
    # as it wraps: -1 is 255 where there is nothing below 0
    return work.equal(target, work.number(number % 256 if dtype == UINT8 else number, dtype))


def cosine_embedding(work: Work) -> gs.Tensor:
    """`cosine_embedding_loss`: 1 less the cosine of like ones, above the margin of unlike ones."""
    _, (a, b) = work.together(work.args.tensor("input1"), work.args.tensor("input2"))
    target = work.args.tensor("target")
    axis = work.rank(target)
    if work.rank(a) != axis + 1 or axis > 1:
        raise Refused(f"its inputs have rank {work.rank(a)}, its target {axis}")
    product = _scalar_product(work, a, b, axis)
    sizes = [work.op("Add", _scalar_product(work, x, x, axis), _TINY) for x in (a, b)]
    cosine = work.op("Div", product, work.op("Sqrt", work.op("Mul", *sizes)))
    like = work.op("Sub", work.number(1, work.dtype(cosine)), cosine)
    margin = float(work.constant_of("margin", 0.0))
    unlike = _positive(work, work.op("Sub", cosine, margin))
    unlike = work.where(_is(work, target, -1), unlike, 0.0)
    return reduced(work, work.where(_is(work, target, 1), like, unlike))


def _scalar_product(work: Work, a: gs.Tensor, b: gs.Tensor, axis: int) -> gs.Tensor:
    """Along an axis, in floats; integers are multiplied as they wrap, and added in 64 bits."""
    dtype = work.dtype(a)
    product = work.op("And", a, b) if dtype == BOOL else work.widely("Mul", a, b)
    if dtype not in FLOATS:
        product = work.cast(product, INT64)
    return work.floating(reduce(work, "ReduceSum", product, [axis], keepdim=False))


def margin_ranking(work: Work) -> gs.Tensor:
    """`margin_ranking_loss`: how far the first is not above the second by the margin."""
    _, (a, b) = work.together(_numbers(work, "input1"), _numbers(work, "input2"))
    order, apart = _numbers(work, "target"), work.widely("Sub", b, a)
    if {work.dtype(a), work.dtype(order)} - FLOATS:  # the target is turned round, and may wrap
        order, apart = work.widely("Neg", order), work.widely("Sub", a, b)
    _, (order, apart) = work.together(order, apart)
    wrong = work.floating(work.widely("Mul", order, apart))
    return reduced(
        work, _positive(work, work.op("Add", wrong, float(work.constant_of("margin", 0))))
    )


def hinge_embedding(work: Work) -> gs.Tensor:
    """`hinge_embedding_loss`: x itself where the target is 1, what x lacks of the margin at -1."""
    x, target = _numbers(work, "self"), work.args.tensor("target")
    margin = work.given_number("margin", work.dtype(x), 1.0)  # PyTorch writes it into such a tensor
    lack = _positive(work, work.widely("Sub", margin, x))
    near, far = (work.invert(_is(work, target, n)) for n in (1, -1))
    errors = work.widely("Add", work.where(near, lack, 0), work.where(far, x, 0))
    return reduced(work, errors)


def soft_margin(work: Work) -> gs.Tensor:
    """`soft_margin_loss`: log(1 + e^-xy)."""
    x = _float(work, "self")
    y = work.cast(work.args.tensor("target"), work.dtype(x))  # PyTorch writes it into such a one
    return reduced(work, log_one_plus_exp(work, work.op("Neg", work.op("Mul", x, y))))


def _classes(work: Work, x: gs.Tensor) -> Size | int:
    rank = work.rank(x)
    if rank not in (1, 2):
        raise Refused(f"its input has rank {rank}")
    return Bench(work.draft).size(x, rank - 1)


class _Beside(NamedTuple):
    """Every class beside the one that is named, by how much it is too much (0 at the least)."""

    errors: gs.Tensor
    own: gs.Tensor
    weight: gs.Tensor | None
    axis: int
    listed: bool
    power: int


def multi_margin(work: Work) -> gs.Tensor:
    """`multi_margin_loss`: what every other class has too much, to the power of 1 or 2."""
    found = _beside(work)
    errors = found.errors
    errors = work.op("Mul", errors, errors) if found.power == 2 else errors
    if found.weight is not None:
        errors = work.op("Mul", errors, found.weight)
    errors = work.where(found.own, 0.0, errors)
    mean = reduce(work, "ReduceMean", errors, [found.axis], keepdim=found.listed)
    return reduced(work, mean)


def gradient_of_multi_margin(work: Work) -> gs.Tensor:
    """`multi_margin_loss_backward`: what the others are too much, and all of it off the own one."""
    found, gradient = _beside(work), work.args.first()
    dtype, kind = work.dtype(found.errors), work.constant_of("reduction", MEAN)
    wrong = work.less(work.number(0, dtype), found.errors)
    slopes = found.errors if found.power == 2 else work.cast(wrong, dtype)
    if found.weight is not None:
        slopes = work.op("Mul", slopes, found.weight)
    slopes = work.where(found.own, 0.0, slopes)
    total = reduce(work, "ReduceSum", slopes, [found.axis], keepdim=True)
    slopes = work.where(found.own, work.op("Neg", total), slopes)
    if kind == NONE and work.rank(gradient) and not found.listed:
        gradient = work.draft.op("Unsqueeze", gradient, work.axes([found.axis]))
    slopes = work.op("Mul", slopes, gradient)
    parts = None if kind == MEAN else [found.axis]  # a mean over the classes it is in any case
    count = element_count(work, slopes, parts, dtype)
    slopes = work.op("Div", slopes, float(count) if isinstance(count, int) else count)
    slopes = work.op("Mul", slopes, 2.0) if found.power == 2 else slopes
    x = work.args.tensor("self")
    return work.draft.op("Reshape", slopes, work.axes([])) if work.rank(x) == 0 else slopes


def _beside(work: Work) -> _Beside:
    x, target = _float(work, "self"), work.cast(work.args.tensor("target"), INT64)
    x = work.as_list(x)
    classes, axis = _classes(work, x), work.rank(x) - 1
    listed = axis == 0 and work.rank(target) == 1  # one class, given and answered as a list
    if work.rank(target) != axis and not listed:
        raise Refused(f"its target has rank {work.rank(target)}")
    column = target if listed else work.draft.op("Unsqueeze", target, work.axes([axis]))
    own = work.op("Equal", column, Bench(work.draft).count(classes))
    score = reduce(work, "ReduceSum", work.where(own, x, 0.0), [axis], keepdim=True)
    errors = work.op("Add", work.op("Sub", x, score), float(work.constant_of("margin", 1)))
    errors = _positive(work, errors)
    p = int(work.constant_of("p", 1))
    if p not in (1, 2):
        raise Refused(f"PyTorch has no margin to the power of {p}")
    weight = work.args.optional("weight")
    if weight is not None:
        weight = work.draft.op("Gather", work.cast(weight, work.dtype(x)), column, axis=0)
    return _Beside(errors, own, weight, axis, listed, p)


class _Against(NamedTuple):
    """Each named class against every other one, [..., names, classes].

    Attributes:
        errors: By how much the other is too much; 0 where there is no pair.
        here: Which class each name is.
        axis: That of the names.
        classes: How many there are.
    """

    errors: gs.Tensor
    here: gs.Tensor
    axis: int
    classes: Size | int


def multilabel_margin(work: Work) -> gs.Tensor:
    """`multilabel_margin_loss`: each named class against the others."""
    return _sum_against(work, _against(work))


def multilabel_margin_with_names(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    """`multilabel_margin_loss_forward`, which says as well what classes are named."""
    found = _against(work)
    named = reduce(work, "ReduceMax", work.cast(found.here, INT64), [found.axis], keepdim=False)
    named = work.cast(named, work.dtype(found.errors))
    if not work.rank(work.args.tensor("target")):
        named = work.draft.op("Reshape", named, work.axes([]))
    return _sum_against(work, found), named


def gradient_of_multilabel_margin(work: Work) -> gs.Tensor:
    """`multilabel_margin_loss_backward`: what is too much, and off the class that it is above."""
    found, gradient = _against(work), work.args.first()
    dtype, axis = work.dtype(found.errors), found.axis
    wrong = work.cast(work.less(work.number(0, dtype), found.errors), dtype)
    total = reduce(work, "ReduceSum", wrong, [axis + 1], keepdim=True)
    slopes = work.op("Sub", wrong, work.op("Mul", work.cast(found.here, dtype), total))
    slopes = reduce(work, "ReduceSum", slopes, [axis], keepdim=False)
    kind = work.constant_of("reduction", MEAN)
    if kind == NONE and work.rank(gradient):
        gradient = work.draft.op("Unsqueeze", gradient, work.axes([axis]))
    slopes = work.op("Mul", slopes, gradient)
    parts = None if kind == MEAN else [axis]
    count = element_count(work, slopes, parts, dtype)
    slopes = work.op("Div", slopes, float(count) if isinstance(count, int) else count)
    x = work.args.tensor("self")
    return work.draft.op("Reshape", slopes, work.axes([])) if work.rank(x) == 0 else slopes


def _sum_against(work: Work, found: _Against) -> gs.Tensor:
    over = [found.axis, found.axis + 1]
    total = reduce(work, "ReduceSum", found.errors, over, keepdim=False)
    count = number_of(work, found.classes, work.dtype(total))
    return reduced(work, work.op("Div", total, count))


def _against(work: Work) -> _Against:
    """Names end at -1."""
    x, target = _float(work, "self"), work.cast(work.args.tensor("target"), INT64)
    x, target = work.as_list(x), work.as_list(target)
    classes, axis = _classes(work, x), work.rank(x) - 1
    ends = running_sum(work, work.cast(_is(work, target, -1), INT64), axis)
    named = work.equal(ends, work.number(0, INT64))
    index = work.where(named, target, 0)
    wide = work.draft.op("Unsqueeze", index, work.axes([axis + 1]))
    here = work.op("Equal", wide, Bench(work.draft).count(classes))
    here = work.op("And", here, work.draft.op("Unsqueeze", named, work.axes([axis + 1])))
    dtype = work.dtype(x)
    row = work.draft.op("Unsqueeze", x, work.axes([axis]))
    chosen = reduce(work, "ReduceSum", work.where(here, row, 0.0), [axis + 1], keepdim=True)
    other = work.invert(
        work.cast(reduce(work, "ReduceMax", work.cast(here, dtype), [axis], keepdim=True), BOOL)
    )
    errors = _positive(work, work.op("Add", work.op("Sub", row, chosen), 1.0))
    kept = work.op("And", work.draft.op("Unsqueeze", named, work.axes([axis + 1])), other)
    return _Against(work.where(kept, errors, 0.0), here, axis, classes)


def poisson_nll(work: Work) -> gs.Tensor:
    """`poisson_nll_loss`, with Stirling's formula for the factorial where asked."""
    pair = [work.args.tensor(name) for name in ("input", "target")]
    truths = [work.dtype(x) == BOOL for x in pair]
    logs = bool(work.args.value("log_input"))
    if all(truths) or (truths[0] and not logs) or (truths[1] and work.args.value("full")):
        raise Refused("PyTorch subtracts no booleans")
    _, (x, target) = work.together(*pair)
    named = work.floating(work.widely("Mul", target, x))
    x, target = work.floating(x), work.floating(target)
    if logs:
        errors = work.op("Sub", work.op("Exp", x), named)
    else:
        log = work.op("Log", work.op("Add", x, float(work.args.value("eps"))))
        errors = work.op("Sub", x, work.op("Mul", target, log))
    if work.args.value("full"):
        one = work.number(1, work.dtype(target))
        large = work.extreme("Max", target, one)
        half = work.op("Mul", work.op("Log", work.op("Mul", large, 2 * math.pi)), 0.5)
        rest = work.op("Sub", work.op("Mul", large, work.op("Log", large)), large)
        more = work.op("Add", rest, half)
        errors = work.op("Add", errors, work.where(work.op("Less", one, target), more, 0.0))
    return reduced(work, errors)


FUNCTIONS: Mapping[str, Callable[[Work], Any]] = {
    "cosine_embedding_loss": cosine_embedding,
    "margin_ranking_loss": margin_ranking,
    "hinge_embedding_loss": hinge_embedding,
    "soft_margin_loss": soft_margin,
    "multi_margin_loss": multi_margin,
    "multilabel_margin_loss": multilabel_margin,
    "multilabel_margin_loss_forward": multilabel_margin_with_names,
    "poisson_nll_loss": poisson_nll,
}
