"""Losses of classes: the entry that a target names, or what it shares out among all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.activations import normalised_exponential
from surgeon.builders.aten_math.losses import MEAN, NONE, SUM, reduced
from surgeon.builders.aten_math.reductions import reduce
from surgeon.builders.aten_math.work import INT64, Work
from surgeon.builders.bench import Bench, Size
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused

_NO_NUMBER_OF_NONE = (1, 11)  # the release from which on a mean of nothing named is none


class _Named(NamedTuple):
    """Which class counts at each place, [N, C, ...]: true or false, and with its weight."""

    chosen: gs.Tensor
    weights: gs.Tensor


def _in_batch(work: Work) -> tuple[gs.Tensor, gs.Tensor, bool]:
    """The input and the target; one without a batch in a batch of one, and whether it was so."""
    x, target = work.args.tensor("self"), work.args.tensor("target")
    if work.rank(x) > 1:
        return x, target, False
    if work.rank(x) == 0 or work.rank(target) != (1 if work.dtype(target) in FLOATS else 0):
        raise Refused(f"its input has rank {work.rank(x)}, its target {work.rank(target)}")
    x, target = (work.draft.op("Unsqueeze", t, work.axes([0])) for t in (x, target))
    return x, target, True


def _out_of_batch(work: Work, y: gs.Tensor, alone: bool) -> gs.Tensor:
    if not alone or work.constant_of("reduction", MEAN) != NONE:
        return y
    made: gs.Tensor = work.draft.op("Squeeze", y, work.axes([0]))
    return made


def _classes(work: Work, x: gs.Tensor) -> Size | int:
    return Bench(work.draft).size(x, 1)


def number_of(work: Work, size: Size | int, dtype: int) -> gs.Tensor:
    """A length as a 0-d tensor to reckon with."""
    if isinstance(size, int):
        return work.number(size, dtype)
    return work.cast(work.draft.op("Reshape", size.tensor, work.axes([])), dtype)


def _column(work: Work, rank: int, dtype: int) -> gs.Tensor | None:
    """The weights of the classes, as they broadcast over [N, C, ...].

    Exporters fold such weights in double precision, where the module has them in the input's type.
    """
    weight = work.args.optional("weight")
    if weight is None:
        return None
    weight = work.cast(weight, dtype)
    if rank == 2:
        return weight
    return work.draft.op("Unsqueeze", weight, work.axes(range(1, rank - 1)))


def _named(work: Work, x: gs.Tensor, target: gs.Tensor) -> _Named:
    classes, rank, dtype = _classes(work, x), work.rank(x), work.dtype(x)
    column = work.draft.op("Unsqueeze", work.cast(target, INT64), work.axes([1]))
    bench = Bench(work.draft)
    places = bench.unsqueeze(bench.count(classes), range(1, rank - 1))
    ignored = int(work.constant_of("ignore_index", -100))
    chosen = work.op("Equal", column, places)
    if ignored >= 0 and not (isinstance(classes, int) and classes <= ignored):
        kept = work.invert(work.op("Equal", column, work.number(ignored, INT64)))
        chosen = work.op("And", chosen, kept)
    weights, weight = work.cast(chosen, dtype), _column(work, rank, dtype)
    return _Named(chosen, weights if weight is None else work.op("Mul", weights, weight))


def _over(work: Work, per_place: gs.Tensor, weights: gs.Tensor) -> gs.Tensor:
    """What each place costs, reduced; a mean is by the weights of what was named.

    Where those are 0 in all, it was 0 in older releases, but of no elements no number, as now.
    """
    kind = work.constant_of("reduction", MEAN)
    if kind == NONE:
        return per_place
    total = reduce(work, "ReduceSum", per_place, None, keepdim=False)
    if kind == SUM:
        return total
    named = reduce(work, "ReduceSum", weights, None, keepdim=False)
    mean = work.op("Div", total, named)
    if not work.facts.model.is_before(*_NO_NUMBER_OF_NONE):
        return mean
    some = work.less(work.number(0, INT64), work.draft.op("Size", per_place))
    none = work.op("And", some, work.equal(named, work.number(0, work.dtype(named))))
    return work.where(none, total, mean)


def _likelihood(work: Work, x: gs.Tensor, named: _Named) -> gs.Tensor:
    terms = work.where(named.chosen, work.op("Mul", x, named.weights), 0.0)
    return work.op("Neg", reduce(work, "ReduceSum", terms, [1], keepdim=False))


def negative_log_likelihood(work: Work) -> gs.Tensor:
    """`nll_loss`, `nll_loss2d`, `nll_loss_nd`: minus the entry that the target names (axis 1)."""
    x, target, alone = _in_batch(work)
    named = _named(work, x, target)
    return _out_of_batch(work, _over(work, _likelihood(work, x, named), named.weights), alone)


def likelihood_with_total(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    """`nll_loss_forward` and what its gradient reads: the sum of the weights of what was named."""
    x, target, alone = _in_batch(work)
    named = _named(work, x, target)
    y = _out_of_batch(work, _over(work, _likelihood(work, x, named), named.weights), alone)
    if work.constant_of("reduction", MEAN) == NONE and not alone:
        return y, work.number(0, work.dtype(x))
    return y, reduce(work, "ReduceSum", named.weights, None, keepdim=False)


def gradient_of_likelihood(work: Work) -> gs.Tensor:
    """`nll_loss_backward` and `nll_loss2d_backward`: minus the weight, where a class was named."""
    x, target, alone = _in_batch(work)
    named, kind = _named(work, x, target), work.constant_of("reduction", MEAN)
    gradient = work.args.first()
    if kind == NONE and not alone:
        gradient = work.draft.op("Unsqueeze", gradient, work.axes([1]))
    elif kind == MEAN:
        gradient = work.op("Div", gradient, work.args.tensor("total_weight"))
    slopes = work.op("Neg", work.op("Mul", named.weights, gradient))
    slopes = work.where(named.chosen, slopes, 0.0)
    return work.draft.op("Squeeze", slopes, work.axes([0])) if alone else slopes


def cross_entropy(work: Work) -> gs.Tensor:
    """`cross_entropy_loss`, of classes or of shares, with what `label_smoothing` gives to all."""
    x, target, alone = _in_batch(work)
    return _out_of_batch(work, _entropy(work, x, target), alone)


def _each(work: Work, x: gs.Tensor, smooth: float) -> gs.Tensor:
    """What every class gets of what is smoothed."""
    dtype = work.dtype(x)
    return work.op("Div", work.number(smooth, dtype), number_of(work, _classes(work, x), dtype))


def _entropy(work: Work, x: gs.Tensor, target: gs.Tensor) -> gs.Tensor:
    smooth = float(work.constant_of("label_smoothing", 0.0))
    logs = normalised_exponential(work, "LogSoftmax", x, 1)
    dtype = work.dtype(x)
    weight = _column(work, work.rank(x), dtype)
    of_all = logs if weight is None else work.op("Mul", logs, weight)
    if work.dtype(target) in FLOATS:
        target = work.cast(target, dtype)
        if smooth:
            target = work.op("Add", work.op("Mul", target, 1 - smooth), _each(work, x, smooth))
        shares = reduce(work, "ReduceSum", work.op("Mul", of_all, target), [1], keepdim=False)
        return reduced(work, work.op("Neg", shares))
    named = _named(work, logs, target)
    costs = _likelihood(work, logs, named)
    if smooth:
        kept = work.cast(named.chosen, dtype)
        kept = reduce(work, "ReduceMax", kept, [1], keepdim=False)
        rest = reduce(work, "ReduceSum", of_all, [1], keepdim=False)
        rest = work.op("Neg", work.op("Mul", work.op("Mul", rest, kept), _each(work, x, smooth)))
        costs = work.op("Add", work.op("Mul", costs, 1 - smooth), rest)
    return _over(work, costs, named.weights)


FUNCTIONS: Mapping[str, Callable[[Work], Any]] = {
    **dict.fromkeys(("nll_loss", "nll_loss2d", "nll_loss_nd"), negative_log_likelihood),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), likelihood_with_total),
    "cross_entropy_loss": cross_entropy,
}
