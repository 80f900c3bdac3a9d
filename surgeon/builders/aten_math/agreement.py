"""Whether two tensors agree as a whole, and what their dtypes alone answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.aten_math.comparison import is_close
from surgeon.builders.aten_math.reductions import flattened, reduce
from surgeon.builders.aten_math.work import BOOL, INT64, UINT8, Work
from surgeon.builders.scalar_types import PARTS
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def _truth(work: Work, value: bool) -> gs.Tensor:
    return work.draft.constant(np.asarray(value))


def _pair(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    return work.args.tensor("self"), work.args.tensor("other")


def everywhere(work: Work, condition: gs.Tensor) -> gs.Tensor:
    """Whether it holds everywhere; of no elements it does."""
    failures = work.cast(work.invert(flattened(work, condition)), INT64)
    count = reduce(work, "ReduceSum", failures, [0], keepdim=False)
    return work.equal(count, work.number(0, INT64))


def _of_one_dtype(work: Work, a: gs.Tensor, b: gs.Tensor) -> int:
    if work.dtype(a) != work.dtype(b):
        raise Refused("its operands differ in dtype, which PyTorch's releases take differently")
    return work.dtype(a)


def _same_shape(work: Work, a: gs.Tensor, b: gs.Tensor) -> bool | gs.Tensor:
    """Whether two shapes are one: proven, or computed."""
    if work.rank(a) != work.rank(b):
        return False
    mine, its = work.facts.of(a).shape, work.facts.of(b).shape
    assert mine is not None
    assert its is not None
    same = [dims.equal(p, q) for p, q in zip(mine, its, strict=True)]
    if False in same:
        return False
    if all(one is True for one in same):
        return True
    return everywhere(work, work.op("Equal", work.draft.op("Shape", a), work.draft.op("Shape", b)))


def is_same_size(work: Work) -> gs.Tensor:
    """`is_same_size`."""
    found = _same_shape(work, *_pair(work))
    return _truth(work, found) if isinstance(found, bool) else found


def equal(work: Work) -> gs.Tensor:
    """`equal`: of one shape, and equal everywhere; NaN equals nothing."""
    a, b = _pair(work)
    dtype = _of_one_dtype(work, a, b)
    same = _same_shape(work, a, b)
    if same is False:
        return _truth(work, False)
    if same is not True:  # rows of one length, so that they can be compared whatever the shapes
        rows = [flattened(work, x) for x in (a, b)]
        lengths = [work.draft.op("Shape", row) for row in rows]
        least = work.extreme("Min", *lengths)
        a, b = (work.draft.op("Slice", row, work.axes([0]), least, work.axes([0])) for row in rows)
    alike = work.invert(work.op("Xor", a, b)) if dtype == BOOL else work.equal(a, b)
    whole = everywhere(work, alike)
    return whole if same is True else work.op("And", same, whole)


def all_close(work: Work) -> gs.Tensor:
    """`allclose`: `isclose`, everywhere."""
    _of_one_dtype(work, *_pair(work))
    return everywhere(work, is_close(work))


def kind_of_dtype(work: Work) -> gs.Tensor:
    """`is_floating_point`, `is_complex`, `is_signed`: the dtype says."""
    x = work.args.tensor("self")
    found = work.facts.of(x).dtype
    if not found:
        raise Refused(f"the dtype of `{x.name}` is not known")
    answers = {
        "is_floating_point": found in FLOATS,
        "is_complex": found in PARTS,
        "is_signed": found not in (BOOL, UINT8),
    }
    return _truth(work, answers[work.name])


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    "equal": equal,
    "allclose": all_close,
    "is_same_size": is_same_size,
    **dict.fromkeys(("is_floating_point", "is_complex", "is_signed"), kind_of_dtype),
}
