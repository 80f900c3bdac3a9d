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

from surgeon import standard
from surgeon.facts import Facts

_FLOAT, _BFLOAT16 = onnx.TensorProto.FLOAT, onnx.TensorProto.BFLOAT16
_GREATEST_HALF = 65504.0
_OWN_ENDS = 12  # the opset from which onnxruntime clips halves as halves
_FLOATS = (onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
_WIDE = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
_ORDERED = (*_FLOATS, *_WIDE)
Said = Mapping[str, Any]  # a node's attributes


class Drafting(Protocol):
    """What makes nodes and constants: `rewrite.Draft`."""

    facts: Facts

    def op(self, op_type: str, *inputs: gs.Tensor | None, **attributes: Any) -> Any:
        """A node's output."""

    def constant(self, array: Any, ending: str = "constant") -> gs.Constant:
        """An initializer."""


def older_form(
    draft: Drafting, op: str, inputs: Sequence[gs.Tensor], attributes: Said
) -> gs.Tensor | None:
    """The result of a standard operator; None where the opset has it, or nothing says it."""
    since, form = _FORMS.get(op, (0, None))
    if form is not None and draft.facts.opset < since:
        return form(draft, op, inputs, attributes)
    foreign = any(
        _is(draft, x, _BFLOAT16) and not _takes(draft, op, i) for i, x in enumerate(inputs)
    )
    if foreign and _takes(draft, "Cast", 0):  # below opset 13 nothing takes bfloat16
        made: gs.Tensor = in_float32(draft, op, inputs, attributes)
        return made
    return None


def in_float32(
    draft: Drafting,
    op: str,
    inputs: Sequence[gs.Tensor],
    attributes: Said,
    dtype: int = _BFLOAT16,
) -> Any:
    """An operator on another type, computed in float32 and rounded once, as PyTorch's kernels do.

    Args:
        draft: Where the nodes go.
        op: The operator.
        inputs: Its operands, those of the other type among them.
        attributes: Its attributes.
        dtype: The other type.
    """
    own = standard.schema(op, draft.facts.opset)
    operands = len(inputs) if own is None else own.max_input  # more are attributes of this opset
    cast = [n for n, x in enumerate(inputs[:operands]) if _is(draft, x, dtype)]
    wide = [draft.op("Cast", x, to=_FLOAT) if n in cast else x for n, x in enumerate(inputs)]
    if op == "Clip" and dtype == onnx.TensorProto.FLOAT16 and draft.facts.opset >= _OWN_ENDS:
        wide = _between_ends(draft, wide)
    made = draft.op(op, *wide, **attributes)
    found = made if isinstance(made, tuple) else (made,)
    back = [
        draft.op("Cast", y, to=dtype)
        if standard.typed_by(op, draft.facts.opset, cast, place)
        else y
        for place, y in enumerate(found)
    ]
    return tuple(back) if isinstance(made, tuple) else back[0]


def _between_ends(draft: Drafting, operands: Sequence[gs.Tensor]) -> list[gs.Tensor]:
    """The operands of a Clip of halves: a bound that is left out is the last half, not infinity."""
    x, *bounds = operands
    ends = (-_GREATEST_HALF, _GREATEST_HALF)
    given = [bounds[n] if n < len(bounds) and bounds[n].name else None for n in range(len(ends))]
    stated = (
        draft.constant(np.array(end, np.float32), "bound") if bound is None else bound
        for bound, end in zip(given, ends, strict=True)
    )
    return [x, *stated]


def _is(draft: Drafting, x: gs.Tensor, dtype: int) -> bool:
    return bool(x.name) and draft.facts.of(x).dtype == dtype


def _takes(draft: Drafting, op: str, index: int) -> bool:
    own = standard.schema(op, draft.facts.opset)
    if own is None or not own.inputs:
        return True
    return standard.takes(op, draft.facts.opset, min(index, len(own.inputs) - 1), _BFLOAT16)


def _equal(draft: Drafting, op: str, inputs: Sequence[gs.Tensor], _: Said) -> gs.Tensor | None:
    """Of floats: neither less nor greater, and the sum is NaN where one of two equals could be."""
    a, b = inputs
    if draft.facts.of(a).dtype not in _FLOATS:
        return None
    apart = draft.op("Or", draft.op("Less", a, b), draft.op("Greater", a, b))
    strange = draft.op("IsNaN", draft.op("Add", a, b))  # of infinities apart from each other too
    return _made(draft.op("Not", draft.op("Or", apart, strange)))


def _extreme(draft: Drafting, op: str, inputs: Sequence[gs.Tensor], _: Said) -> gs.Tensor | None:
    """Of integers: a choice between two after two."""
    dtype = draft.facts.of(inputs[0]).dtype
    if dtype not in _ORDERED or standard.takes(op, draft.facts.opset, 0, dtype):
        return None
    made, *others = inputs
    for other in others:
        chosen = (other, made) if op == "Max" else (made, other)
        made = draft.op("Where", draft.op("Less", made, other), *chosen)
    return made


def _round(draft: Drafting, op: str, inputs: Sequence[gs.Tensor], _: Said) -> gs.Tensor | None:
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


def _mod(draft: Drafting, op: str, inputs: Sequence[gs.Tensor], said: Said) -> gs.Tensor | None:
    """Of integers: what a quotient without its fraction leaves.

    The divisor is added once more where the signs differ, unless `fmod` asks for the dividend's.
    """
    a, b = inputs
    dtype = draft.facts.of(a).dtype
    if dtype not in _WIDE:
        return None
    known, whole = draft.facts.array(a), draft.op("Div", a, b)
    if known is not None and known.size == 1 and known.item() == 1:
        # onnxruntime's optimisations make b / b of (1 / b) * b, of integers too
        rest = draft.op("Add", a, draft.op("Mul", draft.op("Neg", whole), b))
    else:
        rest = draft.op("Sub", a, draft.op("Mul", whole, b))
    if said.get("fmod"):
        return _made(rest)
    zero = draft.constant(np.zeros((), onnx.helper.tensor_dtype_to_np_dtype(dtype)), "zero")
    apart = draft.op("Xor", draft.op("Less", rest, zero), draft.op("Less", b, zero))
    apart = draft.op("And", apart, draft.op("Cast", rest, to=onnx.TensorProto.BOOL))
    return _made(draft.op("Where", apart, draft.op("Add", rest, b), rest))


def _running_sum(
    draft: Drafting, op: str, inputs: Sequence[gs.Tensor], said: Said
) -> gs.Tensor | None:
    """Of integers: a product with ones where what is added stands first."""
    x, known = inputs[0], draft.facts.array(inputs[1])
    dtype, rank = draft.facts.of(x).dtype, draft.facts.of(x).rank
    if known is None or dtype not in _WIDE or not rank or said.get("reverse"):
        return None
    axis = int(known.reshape(-1)[0]) % rank
    places = _counted(draft, _length(draft, x, axis))
    rows = draft.op("Unsqueeze", places, draft.constant([1], "axes"))
    if said.get("exclusive"):
        first = draft.op("Less", rows, places)
    else:
        first = draft.op("Not", draft.op("Less", places, rows))
    ones = draft.op("Cast", first, to=dtype)
    if axis == rank - 1:
        return _made(draft.op("MatMul", x, ones))
    swap = list(range(rank))
    swap[axis], swap[-1] = swap[-1], swap[axis]
    turned = draft.op("MatMul", draft.op("Transpose", x, perm=swap), ones)
    return _made(draft.op("Transpose", turned, perm=swap))


def _scatter(draft: Drafting, op: str, inputs: Sequence[gs.Tensor], said: Said) -> gs.Tensor | None:
    """Under its first name."""
    return _made(draft.op("Scatter", *inputs, axis=said.get("axis", 0)))


def _slice(draft: Drafting, op: str, inputs: Sequence[gs.Tensor], _: Said) -> gs.Tensor | None:
    """With steps or with computed bounds: the places that are taken."""
    x, rank = inputs[0], draft.facts.of(inputs[0]).rank
    if len(inputs) < 4 or inputs[3].is_empty() or rank is None:
        return None
    starts, ends, axes = (draft.facts.array(t) for t in inputs[1:4])
    known = [v is not None and v.dtype != object for v in (starts, ends, axes)]
    if not known[2] or (len(inputs) == 4 and all(known)):  # else they are attributes
        return None
    around = _integers(axes)
    steps = _integers(draft.facts.array(inputs[4])) if len(inputs) > 4 else [1] * len(around)
    if len(steps) != len(around):
        return None
    if len(inputs) > 4 and all(step == 1 for step in steps):
        return _made(draft.op("Slice", *inputs[:4]))
    for number, (axis, step) in enumerate(zip(around, steps, strict=True)):
        length = (draft.facts.of(x).shape or [None] * rank)[axis]
        if known[0] and known[1] and isinstance(length, int):
            some = slice(_integers(starts)[number], _integers(ends)[number], step)
            places: gs.Tensor = draft.constant(np.arange(length)[some], "places")
        elif step > 0:
            bounds = [draft.op("Gather", t, draft.constant([number]), axis=0) for t in inputs[1:3]]
            places = _places(draft, _length(draft, x, axis % rank), bounds, step)
        else:
            return None
        x = draft.op("Gather", x, places, axis=axis % rank)
    return x


def _integers(array: Any) -> list[int]:
    found = [] if array is None or array.dtype == object else array.reshape(-1).tolist()
    return [int(v) for v in found]


def _length(draft: Drafting, x: gs.Tensor, axis: int) -> gs.Tensor:
    return _made(draft.op("Gather", draft.op("Shape", x), draft.constant([axis], "axis"), axis=0))


def _places(
    draft: Drafting, length: gs.Tensor, bounds: Sequence[gs.Tensor], step: int
) -> gs.Tensor:
    """Every `step`-th from one bound up to another, each counted from the end where negative."""
    zero = draft.constant([0], "zero")
    ends = []
    for bound in bounds:
        bound = draft.op("Cast", bound, to=onnx.TensorProto.INT64)
        turned = draft.op(
            "Where", draft.op("Less", bound, zero), draft.op("Add", bound, length), bound
        )
        ends.append(draft.op("Max", draft.op("Min", turned, length), zero))
    room = draft.op("Max", draft.op("Sub", ends[1], ends[0]), zero)
    if step == 1:
        return _made(draft.op("Add", _counted(draft, room), ends[0]))
    stride = draft.constant([step], "step")
    room = draft.op("Div", draft.op("Add", room, draft.constant([step - 1])), stride)
    return _made(draft.op("Add", draft.op("Mul", _counted(draft, room), stride), ends[0]))


def _counted(draft: Drafting, length: gs.Tensor) -> gs.Tensor:
    """0, 1, ... length - 1, before there is a Range."""
    ones = draft.op("ConstantOfShape", length, value=np.asarray([1], np.int64))
    return _made(draft.op("Reshape", draft.op("NonZero", ones), draft.constant([-1], "line")))


def _made(value: Any) -> gs.Tensor:
    tensor: gs.Tensor = value
    return tensor


Form = Callable[[Drafting, str, Sequence[gs.Tensor], Said], gs.Tensor | None]
# The opset from which on no form is needed.
_FORMS: Mapping[str, tuple[int, Form]] = {
    "CumSum": (11, _running_sum),
    "Equal": (11, _equal),
    "Max": (12, _extreme),
    "Min": (12, _extreme),
    "Mod": (10, _mod),
    "Round": (11, _round),
    "ScatterElements": (11, _scatter),
    "Slice": (10, _slice),
}
