"""Operands in the types that their operator takes, where an exporter wrote others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import opsets
from surgeon.builders.aten_math.work import BOOL, DOUBLE, FLOAT, INT64, Work
from surgeon.builders.aten_shape.lists import MOST_PARTS, as_many
from surgeon.builders.bench import Bench
from surgeon.facts.fact import INTEGERS
from surgeon.facts.kinds import FLOATS, HALVES
from surgeon.links import maker_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FIRST_FROM_BEHIND = 11  # the opset whose views count axes from behind too
# PyTorch gives integers and booleans back as they are.
_ROUNDING = frozenset({"Floor", "Ceil", "Round"})
# PyTorch computes these of integers in float32 and keeps that.
_REAL = frozenset(
    """Acos Acosh Asin Asinh Atan Atanh Cos Cosh Erf Exp Log Reciprocal Sigmoid Sin Sinh Softmax
    Sqrt Tan Tanh""".split()
)
# It sums integers and booleans in int64 and keeps that.
_COUNTING = frozenset({"CumSum"})
# Exporters of PyTorch that take a count for a truth write a product of truths so.
_OF_TRUTHS = frozenset({"And", "Or", "Xor", "Not"})
# It counts booleans so; of integers an exporter writes the type to add in itself.
_COUNTING_TRUTHS = frozenset({"ReduceSum", "ReduceProd"})
_BYTES, _SHORTS = (onnx.TensorProto.UINT8, onnx.TensorProto.INT8), (onnx.TensorProto.INT16,)
# Types of PyTorch for which ONNX has an operator and onnxruntime 1.31 does not.
_NOT_IN_ONNXRUNTIME: dict[str, tuple[int, ...]] = {
    **dict.fromkeys("ArgMax ArgMin Clip Max Min Pad Where".split(), _SHORTS),
    **dict.fromkeys(("Einsum", "Trilu"), (*_BYTES, *_SHORTS)),
    "NonZero": (DOUBLE, onnx.TensorProto.INT8, *_SHORTS),
}
_WITHOUT_UNIQUE = (BOOL, onnx.TensorProto.UINT8, onnx.TensorProto.INT16, onnx.TensorProto.INT32)


def operand_types(draft: Draft, match: Match) -> Any:
    """A standard operator whose operands have types that ONNX does not let it take.

    Operands of one type parameter go to PyTorch's common type, and from there to one that the
    operator has in the model's opset, and its outputs back.
    """
    node = match.root
    work = Work(draft, node)
    schema = opsets.schema(node.op, draft.facts.opset)
    if schema is None:
        raise Refused(f"the model's opset has no `{node.op}`")
    if (made := _otherwise(draft, work, node)) is not None:
        return made
    operands, computed = _cast_operands(work, node, schema)
    if all(a is b for a, b in zip(operands, node.inputs, strict=True)):
        raise Refused("its operands have types that it takes")
    if node.op in _ROUNDING and work.dtype(node.inputs[0]) not in FLOATS:
        return node.inputs[0]
    given = [None if t.is_empty() else t for t in operands]
    made = draft.op(node.op, *given, **node.attrs)
    common, kind = computed.get(schema.outputs[0].type_str, (0, 0))
    keeps = common == kind or node.op in _REAL or _counts(node.op, common)
    return made if keeps else work.cast(made, common)


def _otherwise(draft: Draft, work: Work, node: gs.Node) -> gs.Tensor | None:
    """What takes the place of an operator that casting its operands does not help; None of others.

    Raises:
        Refused: The exporter meant another operator.
    """
    if node.op == "Equal" and draft.facts.opset < 11 and work.result_type(*node.inputs) in FLOATS:
        return work.equal(*work.together(*node.inputs)[1])
    if node.op == "Clip" and work.dtype(node.inputs[0]) in INTEGERS and draft.facts.opset < 12:
        return _clipped(draft, work, node)
    if node.op == "Where" and {work.dtype(t) for t in node.inputs} == {BOOL}:
        return Bench(draft).where(*node.inputs)  # of booleans onnxruntime has none
    if node.op in _OF_TRUTHS and any(_is_count(work, tensor) for tensor in node.inputs):
        raise Refused("it is given a count, which the exporter took for a truth: a product, maybe")
    return None


def _cast_operands(
    work: Work, node: gs.Node, schema: onnx.defs.OpSchema
) -> tuple[list[gs.Tensor], dict[str, tuple[int, int]]]:
    """The operands as the operator takes them, and of each type parameter what it was and is."""
    allowed = {
        constraint.type_param_str: {opsets.element_type(t) for t in constraint.allowed_type_strs}
        for constraint in schema.type_constraints
    }
    operands, computed = list(node.inputs), {}
    for parameter, places in _places(schema, operands).items():
        tensors = [operands[i] for i in places]
        kinds = {work.dtype(t) for t in tensors}
        common = kinds.pop() if len(kinds) == 1 else work.result_type(*tensors)
        taken = allowed.get(parameter) or {opsets.element_type(parameter)}
        if common in _NOT_IN_ONNXRUNTIME.get(node.op, ()):
            taken = {BOOL} if node.op == "NonZero" else taken.difference(_BYTES, _SHORTS)
        kind = _kind(node.op, common, taken)
        computed[parameter] = common, kind
        for place, tensor in zip(places, tensors, strict=True):
            operands[place] = work.cast(tensor, kind)
    return operands, computed


def unique_of_wider(draft: Draft, match: Match) -> Any:
    """A Unique of what onnxruntime has none of, in 64 bits: its elements stand where they did."""
    work, x = Work(draft, match.root), match.root.inputs[0]
    kind = work.dtype(x)
    if kind not in _WITHOUT_UNIQUE:
        raise Refused("onnxruntime has it of this type")
    found, *rest = draft.op("Unique", work.cast(x, INT64), outputs=4, **match.root.attrs)
    return (work.cast(found, kind), *rest)


def attributes_as_inputs(draft: Draft, match: Match) -> Any:
    """A standard operator with attributes that are inputs in the model's opset."""
    node = match.root
    inputs, attributes = list(node.inputs), dict(node.attrs)
    old = [move for move in opsets.MOVED[node.op] if move.attribute in attributes]
    if not old:  # an opset that has them as attributes has them as inputs in the newest form
        raise Refused("its attributes are its opset's")
    dtype = draft.facts.of(inputs[0]).dtype if inputs else 0
    numpy_dtype = onnx.helper.tensor_dtype_to_np_dtype(dtype) if dtype else None
    for move in old:
        inputs += [gs.Variable.empty()] * (move.index + 1 - len(inputs))
        if not inputs[move.index].is_empty():
            raise Refused(f"`{move.attribute}` is an attribute and an input")
        if move.like_input and not dtype:
            raise Refused("the dtype of its input is not known")
        value = move.constant(attributes.pop(move.attribute), numpy_dtype)
        inputs[move.index] = draft.constant(value, move.attribute)
    given = [None if t.is_empty() else t for t in inputs]
    return draft.op(node.op, *given, outputs=len(node.outputs), **attributes)


def without_axes(draft: Draft, match: Match) -> gs.Tensor:
    """A reduction whose axes are left out, over all of them or as it says of none."""
    node = match.root
    made: gs.Tensor = draft.op(node.op, node.inputs[0], **node.attrs)
    return made


def axes_from_front(draft: Draft, match: Match) -> gs.Tensor:
    """Unsqueeze and Squeeze below opset 11, whose axes ONNX counts from the front alone there.

    onnxruntime counts them from behind too, but its optimisations lose the axis behind a Reshape.
    """
    node, facts = match.root, draft.facts
    if facts.opset >= _FIRST_FROM_BEHIND:
        raise Refused("its opset counts axes from behind too")
    axes = facts.array(node.inputs[1])
    rank = facts.of(node.outputs[0] if node.op == "Unsqueeze" else node.inputs[0]).rank
    if axes is None or rank is None:
        raise Refused("its axes or its rank are not known")
    if not (axes < 0).any():
        raise Refused("no axis of it is counted from behind")
    made: gs.Tensor = draft.op(node.op, node.inputs[0], draft.constant(axes % rank, "axes"))
    return made


def expand_but_kept(draft: Draft, match: Match) -> gs.Tensor:
    """An Expand to sizes of which some are -1: those axes stay as they are.

    A target of 1 keeps an axis, whatever its length.
    """
    x, sizes = match.root.inputs
    known = draft.facts.array(sizes)
    entries = draft.facts.of(sizes).value if known is None else known
    said = [] if entries is None else entries.reshape(-1).tolist()
    kept = np.array([isinstance(size, int) and size == -1 for size in said])
    if not kept.any():
        raise Refused("none of its sizes is known to be -1")
    if known is None:
        one = draft.constant([1], "one")
        target: gs.Tensor = draft.op("Where", draft.constant(kept, "kept"), one, sizes)
    else:
        target = draft.constant(np.where(kept, 1, known), "sizes")
    made: gs.Tensor = draft.op("Expand", x, target)
    return made


def slice_bounds(draft: Draft, match: Match) -> gs.Tensor:
    """A Slice whose bounds are int32 here and int64 there: int64 all, as ONNX wants one type."""
    c = Bench(draft)
    x, *bounds = match.root.inputs
    given = [t for t in bounds if not t.is_empty()]
    if len({c.dtype(t) for t in given}) < 2:
        raise Refused("its bounds are of one type")
    made: gs.Tensor = c.op(
        "Slice", x, *(None if t.is_empty() else c.cast(t, INT64) for t in bounds)
    )
    return made


def dynamic_slice(draft: Draft, match: Match) -> gs.Tensor:
    """A DynamicSlice, whose bounds may be an Unsqueeze of nothing: from the start, to the end."""
    x, starts, ends, axes = match.root.inputs
    if _of_nothing(starts):
        starts = draft.constant([0], "start")
    if _of_nothing(ends):
        ends = draft.constant([np.iinfo(np.int64).max], "end")
    made: gs.Tensor = draft.op("Slice", x, starts, ends, axes)
    return made


def _of_nothing(bound: gs.Tensor) -> bool:
    producer = maker_of(bound)
    if producer is None or producer.op != "Unsqueeze":
        return False
    return all(t.is_empty() for t in producer.inputs[:1])


def joined_but_nothing(draft: Draft, match: Match) -> gs.Tensor:
    """A Concat without operands of shape [0] beside such of another rank, which PyTorch skips."""
    facts, inputs = draft.facts, match.root.inputs
    shapes = [facts.of(t).shape for t in inputs]
    kept = [t for t, shape in zip(inputs, shapes, strict=True) if shape != (0,)]
    ranks = {facts.of(t).rank for t in kept}
    if not kept or len(kept) == len(inputs) or ranks & {None, 1}:
        raise Refused("it has no operand of shape [0] beside such of another rank")
    made: gs.Tensor = draft.op("Concat", *kept, **match.root.attrs) if len(kept) > 1 else kept[0]
    return made


def sizes_said_once(draft: Draft, match: Match) -> gs.Tensor:
    """A Concat of sizes, of which a list stands there once for every axis, as if it were a number.

    PyTorch writes so what a scripted interpolation is given as `size=x.shape[2:]`.
    """
    facts, inputs = draft.facts, match.root.inputs
    ranks = [facts.of(t).rank for t in inputs]
    if sorted(set(ranks), key=str) != [1, 2] or match.root.attrs.get("axis") != 0:
        raise Refused("it does not join lists of sizes with rows of them")
    parts = [
        t if rank == 1 else _said_once(draft, t) for t, rank in zip(inputs, ranks, strict=True)
    ]
    made: gs.Tensor = draft.op("Concat", *parts, axis=0)
    return made


def _said_once(draft: Draft, rows: gs.Tensor) -> gs.Tensor:
    """The list of sizes that each of as many rows is."""
    facts, kind = draft.facts, draft.facts.of(rows).dtype
    known = facts.array(rows)
    if known is not None:
        if known.shape[0] != known.shape[1] or (known != known[0]).any():
            raise Refused("its rows are not one list of sizes for every axis")
        return draft.constant(known[0], "sizes")
    maker = maker_of(rows)
    while maker is not None and maker.op == "Cast":
        behind = maker.inputs[0].inputs
        maker = behind[0] if behind else None
    sizes = None
    if maker is not None and maker.op == "Concat" and maker.attrs.get("axis") == 0:
        sizes = _of_one_row(draft, maker.inputs)
    if sizes is None:
        raise Refused("its rows are not one list of sizes for every axis")
    if facts.of(sizes).dtype != kind:
        sizes = draft.op("Cast", sizes, to=kind)
    return sizes


def _of_one_row(draft: Draft, rows: Sequence[gs.Tensor]) -> gs.Tensor | None:
    """The list that each of the rows is, as many rows as it has elements."""
    one = rows[0]
    row = maker_of(one)
    if row is None or row.op != "Unsqueeze" or any(t is not one for t in rows):
        return None
    fits = draft.facts.of(one).shape == (1, len(rows)) and draft.facts.of(row.inputs[0]).rank == 1
    found: gs.Tensor = row.inputs[0]
    return found if fits else None


def split_to_the_rest(draft: Draft, match: Match) -> Any:
    """A Split into equal parts that are more than there is: the last part is what is left.

    `torch.split` makes it so; the exporters write equal parts where they do not know the length.
    """
    node = match.root
    x, sizes = node.inputs
    shape, axis = draft.facts.of(x).shape, node.attrs.get("axis", 0)
    parts = draft.facts.array(sizes)
    if parts is None or not 1 < len(parts) == len(node.outputs) or len(set(parts.tolist())) != 1:
        raise Refused("its parts are not known to be equally long")
    if shape is None or not isinstance(whole := shape[axis], int):
        raise Refused(f"the length of axis {axis} is not known")
    rest = whole - int(parts[:-1].sum())
    if not 0 < rest < parts[-1]:
        raise Refused(f"{len(parts)} parts of {parts[0]} are not the whole of {whole} and a rest")
    cut = draft.constant([*parts[:-1], rest], "sizes")
    made = draft.op("Split", x, cut, axis=axis, outputs=len(parts))
    return as_many(made, MOST_PARTS)


def eye_of_booleans(draft: Draft, match: Match) -> gs.Tensor:
    """An EyeLike of conditions, by its own dtype or its input's, as one of numbers."""
    attributes, like = dict(match.root.attrs), match.root.inputs[0]
    given = draft.facts.of(like).dtype
    if (attributes.pop("dtype", None) or given) != BOOL:
        raise Refused("it is not known to be of booleans")
    if given == BOOL:
        like = draft.op("Cast", like, to=FLOAT)
    numbers = draft.op("EyeLike", like, dtype=FLOAT, **attributes)
    made: gs.Tensor = draft.op("Cast", numbers, to=BOOL)
    return made


def gather_under_mask(draft: Draft, match: Match) -> gs.Tensor:
    """A Gather of booleans, as PyTorch 1.4 writes `x[mask]`: the elements under the mask.

    The mask covers the first axes; what it covers becomes one axis.
    """
    x, mask = match.root.inputs
    c = Bench(draft)
    if c.dtype(mask) != BOOL:
        raise Refused("its indices are no booleans")
    depth, sizes = c.rank(mask), c.sizes(x)
    if match.root.attrs.get("axis", 0) or not 0 < depth <= len(sizes):
        raise Refused(f"a mask of rank {depth} for axis {match.root.attrs.get('axis', 0)}")
    lines = c.reshape(x, [c.product(sizes[:depth]), *sizes[depth:]])
    made: gs.Tensor = c.op("Compress", lines, c.flat(mask), axis=0)
    return made


def _clipped(draft: Draft, work: Work, node: gs.Node) -> gs.Tensor:
    """An integer between two others; a bound beyond what its type holds is none."""
    x: gs.Tensor = node.inputs[0]
    kind = work.dtype(x)
    limits = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(kind))
    # as the file has them: in the newest form bounds are of the input's type
    written = {a.name: a.f for a in node.origin.attribute if a.name in ("min", "max")}
    made = x
    bounds = (("min", "Max"), ("max", "Min"))
    for (name, operator), tensor in zip(bounds, node.inputs[1:3], strict=False):
        if tensor.is_empty():
            continue
        number: Any = written.get(name)
        if number is None:
            array = draft.facts.array(tensor)
            if array is None and work.dtype(tensor) not in INTEGERS:
                raise Refused("its bounds are floats that are computed at run time")
            number = None if array is None else array.item()
        if number is None:
            made = draft.op(operator, made, work.cast(tensor, kind))
        elif limits.min < number < limits.max:
            if number != int(number) and not draft.facts.model.is_before(1, 12):
                raise Refused("its bounds are no integers: PyTorch would make it a float")
            bound = draft.constant(np.array(int(number), limits.dtype), "bound")
            made = draft.op(operator, made, bound)
        elif (number > 0) == (operator == "Max"):
            raise Refused(f"no integer of its type is beyond its bound {number}")
    return made


def _places(schema: onnx.defs.OpSchema, operands: Sequence[gs.Tensor]) -> dict[str, list[int]]:
    """Which operands share a type parameter; one that is an attribute in the opset goes along."""
    newest = opsets.schema(schema.name, opsets.newest_opset()) or schema
    last = schema.inputs[-1]
    found: dict[str, list[int]] = {}
    for index, tensor in enumerate(operands):
        if index < len(schema.inputs):
            formal = schema.inputs[index]
        elif last.option == onnx.defs.OpSchema.FormalParameterOption.Variadic:
            formal = last
        elif newest.inputs[index].type_str == newest.inputs[0].type_str:
            formal = schema.inputs[0]
        else:
            continue
        if not tensor.is_empty() and formal.is_homogeneous:
            found.setdefault(formal.type_str, []).append(index)
    return found


def _is_count(work: Work, tensor: gs.Tensor) -> bool:
    """Whether it is how many of some truths hold."""
    node = maker_of(tensor)
    counts = node is not None and node.op in _COUNTING | _COUNTING_TRUTHS
    return counts and work.dtype(tensor) in INTEGERS


def _counts(operator: str, common: int) -> bool:
    """Whether it gives int64, whatever whole numbers or truths of this type it is given."""
    if operator in _COUNTING:
        return common not in FLOATS
    return operator in _COUNTING_TRUTHS and common == BOOL


def _kind(operator: str, common: int, allowed: set[int]) -> int:
    """The type to compute in."""
    if common in allowed:
        return common
    if allowed == {BOOL}:
        return BOOL
    if operator in _REAL and FLOAT in allowed:
        return FLOAT
    if _counts(operator, common):
        return INT64
    if common in HALVES and FLOAT in allowed:
        return FLOAT
    for kind in (onnx.TensorProto.INT32, onnx.TensorProto.INT64, DOUBLE, FLOAT):
        narrower = common not in FLOATS and _width(common) <= _width(kind)
        if kind in allowed and (narrower or kind in (DOUBLE, FLOAT)):
            return int(kind)
    raise Refused(f"it takes nothing that holds {onnx.TensorProto.DataType.Name(common).lower()}")


def _width(dtype: int) -> int:
    return int(onnx.helper.tensor_dtype_to_np_dtype(dtype).itemsize)
