"""Where along an axis the largest or the smallest element lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.activations import axis_of
from surgeon.builders.aten_math.reductions import flattened, keeps
from surgeon.builders.aten_math.work import BOOL, INT32, NARROW, Work
from surgeon.builders.aten_shape.slices import reverse
from surgeon.builders.bench import Bench
from surgeon.facts.kinds import FLOATS

_FIRST_OF_EQUALS = {"max": (1, 6), "min": (1, 6), "argmax": (1, 7), "argmin": (1, 7)}
_KEEPS_NONE = (1, 10)  # before it, the place among all was a number, `keepdim` or not
_SELECTS_LAST = 12  # the opset from which on ArgMax gives the last of equals, if told so


def index_of_extreme(
    work: Work, x: gs.Tensor, operator: str, axis: int, *, keepdim: bool
) -> gs.Tensor:
    """`ArgMax` or `ArgMin`, the first of equals; NaN counts as the extreme.

    It was the last of equals in older releases, but the first NaN too.
    """
    dtype = work.dtype(x)
    if work.rank(x) == 0:
        return work.draft.constant(np.asarray(0, np.int64))
    strange = work.is_nan(x) if dtype in FLOATS else None
    if strange is not None:
        x = work.where(strange, np.inf if operator == "ArgMax" else -np.inf, x)
    elif dtype in NARROW or dtype == BOOL:
        x = work.cast(x, INT32)
    given = {"axis": axis, "keepdims": int(keepdim)}
    if not work.facts.model.is_before(*_FIRST_OF_EQUALS[work.name]):
        return work.op(operator, x, **given)
    place = _last_of_equals(work, x, operator, given)
    if strange is None:
        return place
    numbers = work.cast(strange, INT32)
    some = work.cast(
        work.draft.op("ReduceMax", numbers, work.axes([axis]), keepdims=int(keepdim)), BOOL
    )
    return work.where(some, work.op("ArgMax", numbers, **given), place)


def _last_of_equals(work: Work, x: gs.Tensor, operator: str, given: dict[str, int]) -> gs.Tensor:
    if work.opset >= _SELECTS_LAST:
        return work.op(operator, x, select_last_index=1, **given)
    bench, axis = Bench(work.draft), given["axis"]
    place = work.op(operator, reverse(bench, x, [axis]), **given)
    end = bench.vector([bench.sub(bench.size(x, axis), 1)], "end")
    return work.op("Sub", work.op("Squeeze", end, work.axes([0])), place)


def argmax(work: Work) -> gs.Tensor:
    """`argmax` and `argmin`; without a dim over the flattened input.

    That was one number before PyTorch 1.10, whatever `keepdim` said.
    """
    x = work.args.tensor("self")
    operator = "ArgMax" if work.name == "argmax" else "ArgMin"
    if work.args.value("dim") is not None:
        return index_of_extreme(work, x, operator, axis_of(work, x), keepdim=keeps(work))
    flat = flattened(work, x)
    if not keeps(work) or work.facts.model.is_before(*_KEEPS_NONE):
        return index_of_extreme(work, flat, operator, 0, keepdim=False)
    found = index_of_extreme(work, flat, operator, 0, keepdim=True)
    return work.draft.op("Reshape", found, work.axes([1] * work.rank(x)))


FUNCTIONS: Mapping[str, Callable[[Work], Any]] = {
    **dict.fromkeys(("argmax", "argmin"), argmax),
}
