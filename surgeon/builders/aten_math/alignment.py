"""`ctc_loss`: all alignments of a text with a series of steps, summed step by step.

A. Graves et al., Connectionist Temporal Classification, 2006, section 4.1: the forward variables of
the labels with blanks between, in logarithms, with a number below all others for minus infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.entropy import number_of
from surgeon.builders.aten_math.losses import MEAN, reduced
from surgeon.builders.aten_math.reductions import reduce
from surgeon.builders.aten_math.work import DOUBLE, FLOAT, INT64, Work
from surgeon.builders.aten_shape.indices import gather
from surgeon.builders.bench import Bench, Size
from surgeon.builders.turns import in_turns
from surgeon.rewrite import Draft, Refused

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
        known = not isinstance(labels, gs.Tensor) or work.facts.array(labels) is not None
        targets = _padded(work, targets) if known else _in_rows(work, targets, labels)
    targets = _classes(work, x, targets)
    lengths = [
        work.draft.op("Reshape", work.cast(t, INT64), work.axes([-1, 1])) for t in (steps, labels)
    ]
    loss = _of_no_steps(work, _likelihood(work, x, targets, *lengths), *lengths)
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


def _of_no_steps(work: Work, loss: gs.Tensor, steps: gs.Tensor, labels: gs.Tensor) -> gs.Tensor:
    """The loss, or what is left where there is no step: only a text without labels is certain."""
    known = work.facts.array(steps)
    if known is not None and (known > 0).all():
        return loss
    steps, labels = (work.draft.op("Squeeze", t, work.axes([1])) for t in (steps, labels))
    certain = work.where(work.op("Less", labels, 1), work.number(0, work.dtype(loss)), -_NOTHING)
    return work.where(work.op("Less", steps, 1), certain, loss)


def _classes(work: Work, x: gs.Tensor, targets: gs.Tensor) -> gs.Tensor:
    """The labels, what pads a text behind its length among them: that may be no class at all."""
    bench, known = Bench(work.draft), work.facts.array(targets)
    count = bench.size(x, 2)
    if known is not None and isinstance(count, int) and ((known >= 0) & (known < count)).all():
        return targets
    last = number_of(work, bench.add(count, -1), INT64)
    return work.extreme("Max", work.extreme("Min", targets, last), work.number(0, INT64))


def _padded(work: Work, targets: gs.Tensor) -> gs.Tensor:
    """Targets that stand one behind the other, in rows."""
    lengths = np.asarray(work.args.value("target_lengths"), np.int64).reshape(-1)
    longest, starts = int(lengths.max(initial=1)), np.cumsum(lengths) - lengths
    places = starts[:, None] + np.minimum(np.arange(longest), np.maximum(lengths - 1, 0)[:, None])
    last = max(int(lengths.sum()) - 1, 0)
    index = work.draft.constant(np.minimum(places, last), "places")
    made: gs.Tensor = work.draft.op("Gather", targets, index, axis=0)
    return made


def _in_rows(work: Work, targets: gs.Tensor, lengths: gs.Tensor) -> gs.Tensor:
    """The same where the lengths are known at run time only: each begins where those before end."""
    bench = Bench(work.draft)
    lengths = bench.flat(work.cast(lengths, INT64))
    row = bench.count(bench.size(lengths, 0))
    before = bench.op("Less", bench.unsqueeze(row, [0]), bench.unsqueeze(row, [1]))
    summed = bench.op("Mul", work.cast(before, INT64), lengths)
    starts = bench.op("ReduceSum", summed, work.axes([1]), keepdims=1)
    some = bench.op("Concat", lengths, work.axes([1]), axis=0)  # a text of no labels has a row too
    longest = bench.op("ReduceMax", some, work.axes([0]), keepdims=1)
    places = bench.op("Add", starts, bench.count(Size(None, lambda: longest)))
    end = bench.vector([bench.size(targets, 0)], "end")
    longer = bench.op("Concat", targets, work.axes([0]), axis=0)
    made: gs.Tensor = bench.op("Gather", longer, work.extreme("Min", places, end), axis=0)
    return made


def _likelihood(
    work: Work, x: gs.Tensor, targets: gs.Tensor, steps: gs.Tensor, labels: gs.Tensor
) -> gs.Tensor:
    """Minus the logarithm of the sum over all alignments, one for each text."""
    bench = Bench(work.draft)
    time, width = bench.size(x, 0), bench.size(targets, 1)
    if time == 0 or width == 0:
        raise Refused("it has no steps, or no labels")
    dtype, blank = work.dtype(x), int(work.constant_of("blank", 0))
    between = work.op("Add", work.op("Mul", targets, 0), work.number(blank, INT64))
    pairs = work.draft.op(
        "Concat",
        *(work.draft.op("Unsqueeze", t, work.axes([2])) for t in (between, targets)),
        axis=2,
    )
    first = work.op("Add", work.op("Mul", labels, 0), work.number(blank, INT64))
    text = work.draft.op("Reshape", pairs, work.axes([0, -1]))
    text = work.draft.op("Concat", text, first, axis=1)
    # a step may leave out the blank between two labels that differ
    before = _delayed(work, text, 2, -1)
    skips = work.invert(
        work.op("Or", work.equal(text, before), work.equal(text, work.number(blank, INT64)))
    )
    places = bench.count(bench.add(bench.mul(width, 2), 1))
    early = work.op("Less", work.draft.op("Unsqueeze", places, work.axes([0])), 2)
    start = work.where(early, work.number(0, dtype), _NOTHING)
    if isinstance(time, int) and time <= _LONGEST:
        state = work.op("Add", start, _now(work, x, work.number(0, INT64), text))
        for step in range(1, time):
            number = work.number(step, INT64)
            state = _moved(work, state, _now(work, x, number, text), skips, number, steps)
    else:
        state = _in_turns(work, start, x, text, skips, steps, bench.count(time))
    return work.op("Neg", _ended(work, state, labels, places))


def _now(work: Work, x: gs.Tensor, number: gs.Tensor, text: gs.Tensor) -> gs.Tensor:
    """How likely the text's labels are at a step, whose number has no axis."""
    found = gather(Bench(work.draft), work.draft.op("Gather", x, number, axis=0), text, 1)
    return work.extreme("Max", found, work.number(_NOTHING, work.dtype(x)))


def _moved(
    work: Work,
    state: gs.Tensor,
    now: gs.Tensor,
    skips: gs.Tensor,
    number: gs.Tensor,
    steps: gs.Tensor,
) -> gs.Tensor:
    """One step further, where there is one."""
    arrived = work.op("Add", _summed(work, state, skips), now)
    return work.where(work.op("Less", number, steps), arrived, state)


def _in_turns(
    work: Work,
    start: gs.Tensor,
    x: gs.Tensor,
    text: gs.Tensor,
    skips: gs.Tensor,
    steps: gs.Tensor,
    numbers: gs.Tensor,
) -> gs.Tensor:
    """The state after the last step, each of which is a turn."""
    begin = work.draft.op("Expand", start, work.draft.op("Shape", text))

    def step(draft: Draft, state: list[gs.Tensor], number: gs.Tensor) -> list[gs.Tensor]:
        inner = work.within(draft)
        place = draft.op("Reshape", number, inner.axes([]))
        now = _now(inner, x, place, text)
        later = _moved(inner, state[0], now, skips, place, steps)
        first = inner.op("Less", place, 1)
        return [inner.where(first, inner.op("Add", start, now), later)]

    rows = work.draft.op("Unsqueeze", numbers, work.axes([1]))
    (found,) = in_turns(work.draft, [begin], rows, step)
    return found


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


def _ended(work: Work, state: gs.Tensor, labels: gs.Tensor, places: gs.Tensor) -> gs.Tensor:
    """What ends on the last label or on the blank behind it."""
    last = work.op("Mul", labels, 2)
    ends = work.op("Equal", places, last)
    ends = work.op("Or", ends, work.op("Equal", places, work.op("Sub", last, 1)))
    kept = work.where(ends, state, _NOTHING)
    return reduce(work, "ReduceLogSumExp", kept, [1], keepdim=False)


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    **dict.fromkeys(("ctc_loss", "_ctc_loss"), ctc_loss)
}
