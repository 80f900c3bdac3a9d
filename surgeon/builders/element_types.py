"""Operands in the element types that their operator takes, where an exporter wrote others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import standard
from surgeon.builders.aten_math.arithmetic import float_remainder, floor_quotient_of_sizes
from surgeon.builders.aten_math.work import BOOL, DOUBLE, FLOAT, INT64, Work
from surgeon.builders.bench import Bench
from surgeon.builders.scalar_types import promote
from surgeon.facts.fact import INTEGERS
from surgeon.facts.kinds import FLOATS, HALVES
from surgeon.match import Match, producer_of
from surgeon.rewrite import Draft, Refused

# PyTorch gives integers and booleans back as they are.
_ROUNDING = frozenset({"Floor", "Ceil", "Round"})
# PyTorch computes these of integers in float32 and keeps that.
_REAL = frozenset(
    """Acos Acosh Asin Asinh Atan Atanh Cos Cosh Erf Exp Log Reciprocal Sigmoid Sin Sinh Softmax
    Sqrt Tan Tanh""".split()
)
# PyTorch sums integers and booleans in int64 and keeps that.
_COUNTING = frozenset({"CumSum"})
# Exporters of PyTorch that take a count for a truth write a product of truths so.
_OF_TRUTHS = frozenset({"And", "Or", "Xor", "Not"})
# PyTorch counts booleans so; of integers an exporter writes the type to add in itself.
_COUNTING_TRUTHS = frozenset({"ReduceSum", "ReduceProd"})
_BYTES, _SHORTS = (onnx.TensorProto.UINT8, onnx.TensorProto.INT8), (onnx.TensorProto.INT16,)
# Types of PyTorch for which ONNX has an operator and onnxruntime 1.31 does not.
_NOT_IN_ONNXRUNTIME: dict[str, tuple[int, ...]] = {
    **dict.fromkeys("ArgMax ArgMin Clip Max Min Pad Where".split(), _SHORTS),
    **dict.fromkeys(("Einsum", "Trilu"), (*_BYTES, *_SHORTS)),
    "NonZero": (DOUBLE, onnx.TensorProto.INT8, *_SHORTS),
    "Range": tuple(HALVES),
}
_AT_PLACES = frozenset({"ScatterND", "GatherND"})
_MOD_OF_FLOATS = 28  # the opset from which Mod has the sign of the divisor of floats too
_FIRST_WITH_ROI = 11  # the opset whose Resize has a region in front of its scales
_WITHOUT_UNIQUE = (BOOL, onnx.TensorProto.UINT8, onnx.TensorProto.INT16, onnx.TensorProto.INT32)


def operand_types(draft: Draft, match: Match) -> Any:
    """A standard operator whose operands have types that ONNX does not let it take.

    Operands of one type parameter go to PyTorch's common type, and from there to one that the
    operator has in the model's opset, and its outputs back.
    """
    node = match.root
    work = Work(draft, node)
    schema = standard.schema(node.op, draft.facts.opset)
    if schema is None:
        raise Refused(f"the model's opset has no `{node.op}`")
    if node.op == "Concat" and _is_mask_of_places(work, node):
        raise Refused(
            "a mask stands among places, which PyTorch up to 1.8 writes; export with 1.9 or later"
        )
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


def _is_mask_of_places(work: Work, node: gs.Node) -> bool:
    """Whether booleans are joined with numbers to say where rows are read or written.

    As a number, what a mask holds would be a place of its own.
    """
    readers = [(n, t) for t in node.outputs for n in t.outputs]
    places = any(n.op in _AT_PLACES and n.inputs[1] is t for n, t in readers)
    return places and any(work.dtype(tensor) == BOOL for tensor in node.inputs)


def convolved_in_one_type(draft: Draft, match: Match) -> gs.Tensor:
    """A convolution of operands of two floating-point types, in the narrower of them.

    PyTorch convolves one type alone, so that both were of one; an exporter only ever widens.
    The result goes back to the input's type, in which the file goes on.
    """
    node, work = match.root, Work(draft, match.root)
    given = [tensor for tensor in node.inputs if not tensor.is_empty()]
    kinds = {work.dtype(tensor) for tensor in given}
    if len(kinds) == 1 or not kinds <= set(FLOATS):
        raise Refused("its operands have types that it takes, or are no floats")
    if kinds >= set(HALVES):
        raise Refused("of float16 and bfloat16 neither is the narrower")
    narrow = min(kinds, key=lambda kind: onnx.helper.tensor_dtype_to_np_dtype(kind).itemsize)
    made = draft.op(node.op, *(work.cast(tensor, narrow) for tensor in given), **node.attrs)
    return work.cast(made, work.dtype(node.inputs[0]))


def computed_in_the_wider(draft: Draft, match: Match) -> Any:
    """An operator of operands of several floating-point types, in one that holds them all.

    PyTorch computes norms and recurrences of halves with weights of float32 in float32, and gives
    the result in the input's type, in which the file goes on.
    """
    node, work = match.root, Work(draft, match.root)
    schema = standard.schema(node.op, draft.facts.opset)
    if schema is None:
        raise Refused(f"the model's opset has no `{node.op}`")
    if node.attrs.get("training_mode"):
        raise Refused("it is in training mode, and gives its statistics too")
    operands = list(node.inputs)
    places = [of for of in _places(schema, operands).values() if _differ(work, operands, of)]
    if not places:
        raise Refused("its operands have types that it takes")
    kinds = {work.dtype(operands[place]) for of in places for place in of}
    if not kinds <= set(FLOATS):
        raise Refused("an operand is no float")
    wider = promote(*kinds)
    for place in (place for of in places for place in of):
        operands[place] = work.cast(operands[place], wider)
    given = [None if t.is_empty() else t for t in operands]
    made = draft.op(node.op, *given, outputs=len(node.outputs), **node.attrs)
    kind = work.dtype(node.inputs[0])
    if isinstance(made, tuple):
        return tuple(work.cast(y, kind) for y in made)
    return work.cast(made, kind)


def _differ(work: Work, operands: Sequence[gs.Tensor], places: Sequence[int]) -> bool:
    """Whether operands that share a type parameter are of several types."""
    return len({work.dtype(operands[place]) for place in places}) > 1


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
    if node.op == "Mod" and not node.attrs.get("fmod") and draft.facts.opset < _MOD_OF_FLOATS:
        kind, (a, b) = work.together(*node.inputs)
        if kind in FLOATS:
            return float_remainder(work, a, b)
    if node.op == "Floor" and (pair := _whole_quotient(work, node.inputs[0])):
        return floor_quotient_of_sizes(work, *pair)
    if node.op in _OF_TRUTHS:
        _check_truths(work, node)
    return None


def _check_truths(work: Work, node: gs.Node) -> None:
    if any(_is_count(work, tensor) for tensor in node.inputs):
        raise Refused("it is given a count, which the exporter took for a truth: a product, maybe")
    if work.facts.model.is_before(1, 2):
        return  # truths were bytes
    if any(work.dtype(tensor) in INTEGERS for tensor in node.inputs):
        # The functions of the exporters of 2.1 to 2.3 are of both.
        raise Refused(
            "whole numbers are joined by their bits or as truths, and the file does not say which"
        )


def _whole_quotient(work: Work, value: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor] | None:
    """What two integers a value is the quotient of, of which PyTorch wants the next one below.

    The exporters that came with 2.1 to 2.5 call a function for `floor_divide` that is Floor of Div,
    whatever the type. ONNX's Div of integers rounds to zero, and Floor changes nothing then.
    """
    made = producer_of(value)
    if made is None or made.op != "Div" or work.dtype(value) not in INTEGERS:
        return None
    if work.facts.model.is_before(2, 1) or not work.facts.model.is_before(2, 6):
        return None
    a, b = made.inputs[:2]
    return a, b


def _cast_operands(
    work: Work, node: gs.Node, schema: onnx.defs.OpSchema
) -> tuple[list[gs.Tensor], dict[str, tuple[int, int]]]:
    """The operands as the operator takes them, and of each type parameter what it was and is."""
    allowed = {
        constraint.type_param_str: {standard.element_type(t) for t in constraint.allowed_type_strs}
        for constraint in schema.type_constraints
    }
    operands, computed = list(node.inputs), {}
    for parameter, places in _places(schema, operands).items():
        tensors = [operands[i] for i in places]
        kinds = {work.dtype(t) for t in tensors}
        common = kinds.pop() if len(kinds) == 1 else work.result_type(*tensors)
        if node.op == "Pad":  # PyTorch fills with a number of what is padded
            common = work.dtype(tensors[0])
        taken = allowed.get(parameter) or {standard.element_type(parameter)}
        if common in _NOT_IN_ONNXRUNTIME.get(node.op, ()):
            taken = {BOOL} if node.op == "NonZero" else taken.difference(_BYTES, _SHORTS, HALVES)
        kind = _kind(node.op, common, taken)
        computed[parameter] = common, kind
        for place, tensor in zip(places, tensors, strict=True):
            operands[place] = work.cast(tensor, kind)
    return operands, computed


def sizes_of_64_bits(draft: Draft, match: Match) -> Any:
    """The same, with the sizes, pads or axes that it is given in int64."""
    node = match.root
    x, sizes, *others = node.inputs
    wide = draft.op("Cast", sizes, to=INT64)
    return draft.op(node.op, x, wide, *others, outputs=len(node.outputs), **node.attrs)


def scales_of_float32(draft: Draft, match: Match) -> gs.Tensor:
    """A Resize or Upsample with scales in float32, and sizes in int64."""
    node, work = match.root, Work(draft, match.root)
    operands = list(node.inputs)
    first = 1 if node.op == "Upsample" or draft.facts.opset < _FIRST_WITH_ROI else 2
    for place, (kinds, kind) in enumerate(((FLOATS, FLOAT), (INTEGERS, INT64)), first):
        if place >= len(operands) or operands[place].is_empty():
            continue
        if work.dtype(operands[place]) in kinds:
            operands[place] = work.cast(operands[place], kind)
    if all(a is b for a, b in zip(operands, node.inputs, strict=True)):
        raise Refused("its scales and sizes have types that it takes")
    given = [None if t.is_empty() else t for t in operands]
    y: gs.Tensor = draft.op(node.op, *given, **node.attrs)
    return y


def unique_of_wider(draft: Draft, match: Match) -> Any:
    """A Unique of what onnxruntime has none of, in 64 bits: its elements stand where they did."""
    work, x = Work(draft, match.root), match.root.inputs[0]
    kind = work.dtype(x)
    if kind not in _WITHOUT_UNIQUE:
        raise Refused("onnxruntime has it of this type")
    found, *rest = draft.op("Unique", work.cast(x, INT64), outputs=4, **match.root.attrs)
    return (work.cast(found, kind), *rest)


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
                tensor = _integer_of(work, tensor)
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


def _integer_of(work: Work, bound: gs.Tensor) -> gs.Tensor:
    """The integer that an exporter cast to floats, as Clip takes these alone below opset 12.

    Raises:
        Refused: It is no such cast.
    """
    cast = producer_of(bound)
    if cast is None or cast.op != "Cast" or work.dtype(cast.inputs[0]) not in INTEGERS:
        raise Refused("its bounds are floats that are computed at run time")
    found: gs.Tensor = cast.inputs[0]
    return found


def _places(schema: onnx.defs.OpSchema, operands: Sequence[gs.Tensor]) -> dict[str, list[int]]:
    """Which operands share a type parameter; one that is an attribute in the opset goes along."""
    newest = standard.schema(schema.name, standard.newest_opset()) or schema
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
    node = producer_of(tensor)
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
