"""`ctc_loss`: all alignments of a text with a series of steps, summed step by step.

A. Graves et al., Connectionist Temporal Classification, 2006, section 4.1: the forward variables of
the labels with blanks between, in logarithms, with a number below all others for minus infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.losses import MEAN, reduced
from surgeon.builders.aten_math.reductions import reduce
from surgeon.builders.aten_math.work import DOUBLE, FLOAT, INT64, Work
from surgeon.builders.aten_shape.indices import gather
from surgeon.builders.bench import Bench
from surgeon.rewrite import Refused

_LONGEST = 512  # steps that are unrolled, each some twenty nodes
_NOTHING = -1e30


def ctc_loss(work: Work) -> gs.Tensor:
    """`ctc_loss` of padded targets, of any lengths."""
    x, targets = work.args.tensor("log_probs"), work.cast(work.args.tensor("targets"), INT64)
    if work.dtype(x) not in (FLOAT, DOUBLE):
        raise Refused("PyTorch has such a loss in single and double precision alone")
    batched = work.rank(x) == 3
    if not batched and work.rank(x) != 2:
        raise Refused(f"its logarithms have rank {work.rank(x)}")
    steps, labels = work.args.tensor("input_lengths"), work.args.tensor("target_lengths")
    if not batched:
        x = work.draft.op("Unsqueeze", x, work.axes([1]))
        targets = work.draft.op("Reshape", targets, work.axes([1, -1]))
    elif work.rank(targets) == 1:
        targets = _padded(work, targets)
    lengths = [
        work.draft.op("Reshape", work.cast(t, INT64), work.axes([-1, 1])) for t in (steps, labels)
    ]
    loss = _likelihood(work, x, targets, *lengths)
    far = work.op("Less", work.number(-_NOTHING / 2, work.dtype(x)), loss)
    if work.name == "_ctc_loss":  # infinities are for `ctc_loss` to take away, and the mean to take
        loss = work.where(far, np.inf, loss)
        return loss if batched else work.draft.op("Squeeze", loss, work.axes([0]))
    loss = work.where(far, 0.0 if work.args.value("zero_infinity") else np.inf, loss)
    if work.constant_of("reduction", MEAN) == MEAN:
        share = work.extreme("Max", lengths[1], work.number(1, INT64))
        share = work.cast(work.draft.op("Squeeze", share, work.axes([1])), work.dtype(x))
        loss = work.op("Div", loss, share)
    elif not batched:
        loss = work.draft.op("Squeeze", loss, work.axes([0]))
    return reduced(work, loss)


def _padded(work: Work, targets: gs.Tensor) -> gs.Tensor:
    """Targets that stand one behind the other, in rows."""
    lengths = np.asarray(work.args.value("target_lengths"), np.int64).reshape(-1)
    longest, starts = int(lengths.max(initial=1)), np.cumsum(lengths) - lengths
    places = starts[:, None] + np.minimum(np.arange(longest), np.maximum(lengths - 1, 0)[:, None])
    last = max(int(lengths.sum()) - 1, 0)
    index = work.draft.constant(np.minimum(places, last), "places")
    made: gs.Tensor = work.draft.op("Gather", targets, index, axis=0)
    return made


def _likelihood(
    work: Work, x: gs.Tensor, targets: gs.Tensor, steps: gs.Tensor, labels: gs.Tensor
) -> gs.Tensor:
    """Minus the logarithm of the sum over all alignments, one for each text."""
    shape, wanted = work.facts.of(x).shape, work.facts.of(targets).shape
    time, width = shape[0] if shape else None, wanted[1] if wanted else None
    if not isinstance(time, int) or not isinstance(width, int):
        raise Refused("how many steps or labels there are is known at run time only")
    if not 0 < time <= _LONGEST or not width:
        raise Refused(f"it has {time} steps and {width} labels; up to {_LONGEST} are unrolled")
    dtype, blank = work.dtype(x), int(work.constant_of("blank", 0))
    between = work.op("Mul", targets, 0)
    between = work.op("Add", between, work.number(blank, INT64))
    pairs = work.draft.op(
        "Concat",
        *(work.draft.op("Unsqueeze", t, work.axes([2])) for t in (between, targets)),
        axis=2,
    )
    first = work.draft.op("Slice", between, work.axes([0]), work.axes([1]), work.axes([1]))
    text = work.draft.op("Reshape", pairs, work.axes([0, 2 * width]))
    text = work.draft.op("Concat", text, first, axis=1)
    # a step may leave out the blank between two labels that differ
    before = _delayed(work, text, 2, -1)
    skips = work.invert(
        work.op("Or", work.equal(text, before), work.equal(text, work.number(blank, INT64)))
    )
    start = np.full((1, 2 * width + 1), _NOTHING)
    start[0, :2] = 0
    state: gs.Tensor = work.cast(work.draft.constant(start, "start"), dtype)
    for step in range(time):
        now = work.draft.op("Gather", x, work.number(step, INT64), axis=0)
        now = gather(Bench(work.draft), now, text, 1)
        now = work.extreme("Max", now, work.number(_NOTHING, dtype))
        if step:
            arrived = _summed(work, state, skips)
            running = work.op("Less", work.number(step, INT64), steps)
            state = work.where(running, work.op("Add", arrived, now), state)
        else:
            state = work.op("Add", state, now)
    return work.op("Neg", _ended(work, state, labels, width))


def _delayed(work: Work, x: gs.Tensor, places: int, fill: float) -> gs.Tensor:
    head = work.draft.op("Slice", x, work.axes([0]), work.axes([places]), work.axes([1]))
    value = work.number(fill, work.dtype(x))
    head = work.draft.op("Expand", value, work.draft.op("Shape", head))
    rest = work.draft.op("Slice", x, work.axes([0]), work.axes([-places]), work.axes([1]))
    made: gs.Tensor = work.draft.op("Concat", head, rest, axis=1)
    return made


def _summed(work: Work, state: gs.Tensor, skips: gs.Tensor) -> gs.Tensor:
    """The logarithm of what stays, of what comes from one place before, and from two."""
    near = _delayed(work, state, 1, _NOTHING)
    far = work.where(skips, _delayed(work, state, 2, _NOTHING), _NOTHING)
    largest = work.extreme("Max", work.extreme("Max", state, near), far)
    terms = [work.op("Exp", work.op("Sub", t, largest)) for t in (state, near, far)]
    total = work.op("Add", work.op("Add", terms[0], terms[1]), terms[2])
    return work.op("Add", largest, work.op("Log", total))


def _ended(work: Work, state: gs.Tensor, labels: gs.Tensor, width: int) -> gs.Tensor:
    """What ends on the last label or on the blank behind it."""
    last = work.op("Mul", labels, 2)
    places = work.draft.constant(np.arange(2 * width + 1), "places")
    ends = work.op("Equal", places, last)
    ends = work.op("Or", ends, work.op("Equal", places, work.op("Sub", last, 1)))
    kept = work.where(ends, state, _NOTHING)
    return reduce(work, "ReduceLogSumExp", kept, [1], keepdim=False)


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    **dict.fromkeys(("ctc_loss", "_ctc_loss"), ctc_loss)
}
