"""What newer forms of standard operators do, said in operators that an older opset has.

Where an opset has an operator but not for these types, or not with these operands. Each form is
exact; where there is none, the operator is refused by `opsets`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import opsets
from surgeon.facts import Facts

_FLOATS = (onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
_ORDERED = (*_FLOATS, onnx.TensorProto.INT32, onnx.TensorProto.INT64)


class Drafting(Protocol):
    """What makes nodes and constants: `rewrite.Draft`."""

    facts: Facts

    def op(self, op_type: str, *inputs: gs.Tensor | None, **attributes: Any) -> Any:
        """A node's output."""

    def constant(self, array: Any, ending: str = "constant") -> gs.Constant:
        """An initializer."""


def older_form(draft: Drafting, op: str, inputs: Sequence[gs.Tensor]) -> gs.Tensor | None:
    """The result of a standard operator; None where the opset has it, or nothing says it."""
    since, form = _FORMS.get(op, (0, None))
    if form is None or draft.facts.opset >= since:
        return None
    return form(draft, op, inputs)


def _equal(draft: Drafting, op: str, inputs: Sequence[gs.Tensor]) -> gs.Tensor | None:
    """Of floats: neither less nor greater, and the sum is NaN where one of two equals could be."""
    a, b = inputs
    if draft.facts.of(a).dtype not in _FLOATS:
        return None
    apart = draft.op("Or", draft.op("Less", a, b), draft.op("Greater", a, b))
    strange = draft.op("IsNaN", draft.op("Add", a, b))  # of infinities apart from each other too
    return _made(draft.op("Not", draft.op("Or", apart, strange)))


def _extreme(draft: Drafting, op: str, inputs: Sequence[gs.Tensor]) -> gs.Tensor | None:
    """Of integers: a choice between two after two."""
    dtype = draft.facts.of(inputs[0]).dtype
    if dtype not in _ORDERED or opsets.takes(op, draft.facts.opset, 0, dtype):
        return None
    made, *others = inputs
    for other in others:
        chosen = (other, made) if op == "Max" else (made, other)
        made = draft.op("Where", draft.op("Less", made, other), *chosen)
    return made


def _round(draft: Drafting, op: str, inputs: Sequence[gs.Tensor]) -> gs.Tensor | None:
    """Down, and one more where the rest is above a half, or a half behind an odd number."""
    x = inputs[0]
    dtype = draft.facts.of(x).dtype
    if dtype not in _FLOATS:
        return None
    half = draft.constant(np.array(0.5, onnx.helper.tensor_dtype_to_np_dtype(dtype)), "half")
    low = draft.op("Floor", x)
    rest, middle = draft.op("Sub", x, low), draft.op("Mul", low, half)
    odd = draft.op("Less", draft.op("Floor", middle), middle)
    tie = draft.op("And", draft.op("Not", draft.op("Less", rest, half)), odd)
    up = draft.op("Or", draft.op("Greater", rest, half), tie)
    return _made(draft.op("Add", low, draft.op("Cast", up, to=dtype)))


def _slice(draft: Drafting, op: str, inputs: Sequence[gs.Tensor]) -> gs.Tensor | None:
    """With steps, along axes of known lengths: their places."""
    if len(inputs) < 5 or inputs[3].is_empty():
        return None
    x, known = inputs[0], [draft.facts.array(t) for t in inputs[1:5]]
    shape = draft.facts.of(x).shape
    if shape is None or any(v is None or v.dtype == object for v in known):
        return None
    pieces = list(zip(*(v.reshape(-1).tolist() for v in known if v is not None), strict=True))
    lengths = [shape[axis] for _, _, axis, _ in pieces]
    if not all(isinstance(length, int) for length in lengths):
        return None
    for (start, end, axis, step), length in zip(pieces, lengths, strict=True):
        places = np.arange(length)[start:end:step]
        x = draft.op("Gather", x, draft.constant(places, "places"), axis=axis % len(shape))
    return x


def _made(value: Any) -> gs.Tensor:
    tensor: gs.Tensor = value
    return tensor


Form = Callable[[Drafting, str, Sequence[gs.Tensor]], gs.Tensor | None]
# The opset from which on no form is needed.
_FORMS: Mapping[str, tuple[int, Form]] = {
    "Equal": (11, _equal),
    "Max": (12, _extreme),
    "Min": (12, _extreme),
    "Round": (11, _round),
    "Slice": (10, _slice),
}
