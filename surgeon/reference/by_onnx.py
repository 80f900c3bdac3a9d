"""Standard nodes that onnxruntime does not have, by onnx's own reference.

Those of complex values, which no runtime computes, and some of types that it has no kernel for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from surgeon.reference.errors import NoWitness, Undefined
from surgeon.standard import STANDARD

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# What PyTorch sums in int64 where ONNX has no sum of it.
_SUMMED: Mapping[str, tuple[type[np.generic], ...]] = {
    "CumSum": (np.bool_, np.uint8, np.int8, np.int16),
    "ReduceSum": (np.bool_,),
}
_OF_TWO_NUMBERS = frozenset("Add Sub Mul Div MatMul Einsum Concat".split())
# What onnxruntime 1.31 has of other types alone, and recipes bring to those; it has no list of two.
_OF_OTHER_TYPES = frozenset(
    "ArgMax ArgMin Clip CumSum Einsum Equal EyeLike Max Min NonZero Pad SequenceConstruct TopK "
    "Trilu Unique Where".split()
)
# Of operands of one type, to which PyTorch brings them where its exporter does not; of Where the
# condition is none of them.
_OF_ONE_TYPE = frozenset(
    "Add Concat Div Einsum Equal Greater GreaterOrEqual Less LessOrEqual MatMul Mul Pow Scatter "
    "Sub Where".split()
)
# Of whole numbers of few bits; what is beyond them goes round.
_OF_WHOLE_NUMBERS = frozenset("Add Div Mul Sub".split())
_CLASSES = {"b": 0, "i": 1, "u": 1, "f": 2}  # of element types, as PyTorch ranks them
# What onnxruntime says of a stretch with such a node.
_OF_TYPES = ("bound to different types", "' of input parameter")
# What it does not have for doubles.
_NOT_OF_DOUBLES = frozenset(
    "Acos Acosh Asin Asinh Atan Atanh Celu Conv Cosh Det Elu Erf Gelu GlobalAveragePool "
    "GlobalMaxPool HardSigmoid HardSwish Hardmax InstanceNormalization LeakyRelu Mean Mish PRelu "
    "Selu Sinh Softplus Softsign Tan ThresholdedRelu".split()
)

# Before opset 7 an attribute says with which axis an operand lines up; onnxruntime begins with 7.
_LINED_UP = frozenset("Add And Div Equal Greater Less Mul Or Pow Sub Xor".split())
_OF_OLD = _LINED_UP | {"AveragePool", "BatchNormalization", "Dropout", "Gemm", "PRelu"}
_BROADCASTING = 7

# Of lists alone, and of a tensor where the exporter has one for a list of sizes.
_OF_LISTS = frozenset(
    "SequenceInsert SequenceErase SequenceAt SequenceLength ConcatFromSequence".split()
)


def is_complex(value: Any) -> bool:
    """Whether it is an array of complex values, or a list that holds one."""
    if isinstance(value, list):
        return any(map(is_complex, value))
    return isinstance(value, np.ndarray) and value.dtype.kind == "c"


def is_bfloat16(value: Any) -> bool:
    """Whether it is an array of bfloat16, of which onnxruntime computes nothing on a CPU."""
    return isinstance(value, np.ndarray) and value.dtype == _BFLOAT16


def casts_to_bfloat16(node: onnx.NodeProto) -> bool:
    """Whether it casts to bfloat16."""
    return node.op_type == "Cast" and any(a.i == onnx.TensorProto.BFLOAT16 for a in node.attribute)


def lists_beside_bfloat16(nodes: Iterable[onnx.NodeProto], values: Iterable[Any]) -> bool:
    """Whether a list is made where onnxruntime is asked for bfloat16: it gives out no list then."""
    nodes = list(nodes)
    makes = any(node.op_type == "SequenceConstruct" for node in nodes)
    return makes and (any(map(is_bfloat16, values)) or any(map(casts_to_bfloat16, nodes)))


def refuse_nothing(nodes: Iterable[onnx.NodeProto], values: Iterable[Any]) -> None:
    """Raises Undefined where an Einsum may be given no elements: onnxruntime ends the process."""
    asked = next((node for node in nodes if node.op_type == "Einsum"), None)
    if asked is not None and any(isinstance(v, np.ndarray) and not v.size for v in values):
        why = "onnxruntime divides by the length of an axis, and would end"
        raise Undefined(why, operator="Einsum", where=f"node `{asked.output[0]}`")


def in_floats(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values, those of bfloat16 in float32, which holds each of them."""
    return {n: v.astype(np.float32) if is_bfloat16(v) else v for n, v in given.items()}


def to_bfloat16(made: Mapping[str, Any]) -> dict[str, Any]:
    """What was computed in float32, rounded once to bfloat16, as PyTorch's kernels do."""
    return {
        n: v.astype(_BFLOAT16) if getattr(v, "dtype", None) == np.float32 else v
        for n, v in made.items()
    }


def has(node: onnx.NodeProto, values: Iterable[Any], opsets: Mapping[str, int]) -> bool:
    """Whether onnx's reference is taken where onnxruntime has the operator of other types alone.

    Of double precision a Conv and what is said element by element: its Loop without a condition,
    for one, takes no turn. And a permutation whose axes are counted from behind, as by PyTorch, and
    what lines up otherwise in the opsets that onnxruntime does not know.
    """
    if node.domain not in STANDARD:
        return False
    if node.op_type in _OF_OLD and _is_old(opsets):
        return True
    if node.op_type == "Transpose":
        return any(axis < 0 for a in node.attribute if a.name == "perm" for axis in a.ints)
    if node.op_type == "LayerNormalization":
        return not all(node.input[:2])
    values = list(values)
    if _is_mixed(node, values):
        return True
    if node.op_type in _OF_WHOLE_NUMBERS and all(map(_is_narrow, values)):
        return node.op_type != "Div" or all(value.dtype.kind == "u" for value in values)
    doubles = (isinstance(value, np.ndarray) and value.dtype == np.float64 for value in values)
    return node.op_type in _OF_OTHER_TYPES or (node.op_type in _NOT_OF_DOUBLES and any(doubles))


def helps(
    nodes: Sequence[onnx.NodeProto],
    values: Sequence[Any],
    said: Exception,
    opsets: Mapping[str, int],
) -> bool:
    """Whether a stretch that onnxruntime does not load may run node by node, some of them here.

    Args:
        nodes: The stretch.
        values: What goes into it.
        said: What onnxruntime has against it.
        opsets: By domain.
    """
    if any(words in str(said) for words in _OF_TYPES):
        return True
    if any(map(is_bfloat16, values)) or any(map(casts_to_bfloat16, nodes)):
        return True
    if any(node.op_type in _OF_LISTS for node in nodes):
        return True
    lists = {node.output[0] for node in nodes if node.op_type == "SequenceConstruct"}
    cuts = any(node.op_type == "Slice" and node.input[0] in lists for node in nodes)
    given = any(isinstance(value, list) for value in values)
    picks = given and any(node.op_type == "Gather" for node in nodes)
    return cuts or picks or any(has(node, values, opsets) for node in nodes)


def of_list(node: onnx.NodeProto, given: Mapping[str, Any]) -> Any:
    """What PyTorch's exporter takes for an operator of tensors, or of lists; None of all else.

    A Slice cuts a list, a Gather picks of one, and a list of sizes is a tensor that sequences'
    operators change.
    """
    first, *others = (given[name] if name else None for name in node.input or [""])
    if node.op_type == "Slice" and isinstance(first, list):
        return _part_of_list(node, first, others)
    if node.op_type == "Gather" and isinstance(first, list):
        return _picked(node, first, others[0])
    if node.op_type not in _OF_LISTS or not isinstance(first, np.ndarray) or first.ndim != 1:
        return None
    numbers = [int(np.ravel(each)[0]) for each in others if each is not None]
    if node.op_type == "SequenceInsert":
        at = numbers[1] if len(numbers) > 1 else len(first)
        return np.insert(first, at, numbers[0])
    if node.op_type == "SequenceErase":
        return np.delete(first, [*numbers, -1][0])
    if node.op_type == "SequenceAt":
        return first[numbers[0]]
    return np.asarray(len(first)) if node.op_type == "SequenceLength" else first


def _picked(node: onnx.NodeProto, elements: list[Any], at: Any) -> Any:
    place = int(np.ravel(at)[0])
    if not -len(elements) <= place < len(elements):
        where = f"node '{node.name or node.output[0]}'"
        why = f"place {place} of a list of {len(elements)}"
        raise Undefined(why, operator="Gather", where=where)
    return elements[place]


def _part_of_list(node: onnx.NodeProto, first: list[Any], others: Sequence[Any]) -> list[Any]:
    lines = [None if each is None else np.ravel(each).tolist() for each in others]
    start, end, axes, steps = [*lines, None, None][:4]
    if axes not in (None, [0]) or any(each and len(each) != 1 for each in (start, end, steps)):
        raise NoWitness("Slice", where=f"node '{node.name}'", why="a list has one axis")
    bounds = [each[0] if each else None for each in (start, end, steps)]
    return first[slice(*bounds)]


def run(
    node: onnx.NodeProto, given: Mapping[str, Any], opsets: Mapping[str, int]
) -> dict[str, Any]:
    """What a node makes of its operands, by name.

    Raises:
        NoWitness: It is not defined for these values in Python either.
    """
    from onnx.reference import ReferenceEvaluator

    of_complex = any(is_complex(value) for value in given.values())
    if of_complex and node.op_type == "Abs":  # it is real, which onnx does not expect
        return {node.output[0]: np.abs(given[node.input[0]])}
    if of_complex and node.op_type == "Cast" and not _is_of_truths(node):
        given = {name: _in_real(node, value) for name, value in given.items()}
    if of_complex and node.op_type in _OF_TWO_NUMBERS:  # PyTorch takes one that is real beside them
        common = np.result_type(*given.values())
        given = {name: value.astype(common) for name, value in given.items()}
    if node.op_type in _OF_OLD and _is_old(opsets):
        node, given = _as_newer(node, given)
        opsets = {**opsets, "": _BROADCASTING}
    if node.op_type == "Clip" and node.attribute:
        return {node.output[0]: _clipped(node, given[node.input[0]])}
    if (kinds := _SUMMED.get(node.op_type)) is not None:
        given = {n: v.astype(np.int64) if v.dtype in kinds else v for n, v in given.items()}
    if node.op_type in _OF_ONE_TYPE and node.op_type != "Scatter" and not of_complex:
        given = _in_one_type(node, given)
    try:
        with np.errstate(all="ignore"):  # NaN and infinities are results like any other
            made: Any = _as_written(node, given)
            if made is None:
                made = ReferenceEvaluator(node, opsets=dict(opsets)).run(None, dict(given))
    except Exception as error:  # whatever Python has against these values
        where = f"node '{node.name or node.output[0]}'"
        raise NoWitness(node.op_type, where=where, why=str(error)) from None
    return dict(zip(node.output, made, strict=False))


def _is_old(opsets: Mapping[str, int]) -> bool:
    return opsets.get("", _BROADCASTING) < _BROADCASTING


def _as_newer(
    node: onnx.NodeProto, given: Mapping[str, Any]
) -> tuple[onnx.NodeProto, Mapping[str, Any]]:
    """A node of before opset 7 as opset 7 has it, with its operands lined up from behind.

    ONNX's Changelog of opset 6: the shape of the second operand is a part of the first's, which
    begins at `axis`, or ends where that ends; or it is of one element. Slopes of a PRelu are of
    channels. BatchNormalization and Dropout compute what is learnt by where `is_test` is not 0.

    Raises:
        NoWitness: It trains.
    """
    said = {each.name: each.i for each in node.attribute}
    if node.op_type in ("BatchNormalization", "Dropout") and not said.get("is_test"):
        raise NoWitness(node.op_type, where=f"node '{node.output[0]}'", why="it trains")
    values = [given[name] for name in node.input]
    if node.op_type in _LINED_UP and "axis" in said and values[1].size != 1:
        behind = values[0].ndim - said["axis"] % values[0].ndim - values[1].ndim
        values[1] = values[1].reshape(*values[1].shape, *[1] * behind)
    if node.op_type == "PRelu" and values[1].size != 1:
        values[1] = values[1].reshape(-1, *[1] * (values[0].ndim - 2))
    newer = onnx.NodeProto()
    newer.CopyFrom(node)
    del newer.attribute[:]
    gone = ("axis", "broadcast", "consumed_inputs", "is_test", "ratio")
    newer.attribute.extend(each for each in node.attribute if each.name not in gone)
    return newer, dict(zip(node.input, values, strict=True))


def _as_written(node: onnx.NodeProto, given: Mapping[str, Any]) -> Sequence[Any] | None:
    """What PyTorch means by forms that no opset has; None of all others."""
    first = given[node.input[0]]
    if node.op_type == "Pad" and any(each.name == "pads" for each in node.attribute):
        return [_padded(node, first)]
    if node.op_type == "LayerNormalization":
        return [_normalised(node, given)]
    if node.op_type == "TopK" and first.dtype.kind in "iu":
        return _ranked(node, given)
    return [_scattered(node, given)] if node.op_type == "Scatter" else None


def _told(node: onnx.NodeProto) -> dict[str, Any]:
    return {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}


def _padded(node: onnx.NodeProto, x: Any) -> Any:
    """A Pad by attributes, which PyTorch 1.3 writes above opset 10 as well; below 0 it cuts."""
    told = _told(node)
    pads = np.reshape(told["pads"], (2, -1)).T.tolist()
    cut = tuple(slice(max(-first, 0), last if last < 0 else None) for first, last in pads)
    ways = {"constant": {"constant_values": told.get("value", 0.0)}, "reflect": {}, "edge": {}}
    mode = told.get("mode", b"constant").decode()
    return np.pad(x[cut], np.maximum(pads, 0).tolist(), mode, **ways[mode])


def _ranked(node: onnx.NodeProto, given: Mapping[str, Any]) -> tuple[Any, Any]:
    """The greatest or least integers of an axis and their places, of equal ones the first ones."""
    x, *counts = (given[name] for name in node.input)
    told = _told(node)
    axis, count = told.get("axis", -1), int(np.ravel(counts[0])[0]) if counts else told["k"]
    order = np.argsort(~x if told.get("largest", 1) else x, axis, kind="stable")
    places = np.take(order, np.arange(count), axis)
    return np.take_along_axis(x, places, axis), places


def _normalised(node: onnx.NodeProto, given: Mapping[str, Any]) -> Any:
    """A LayerNormalization without a scale, in double precision; of its outputs the first."""
    told = _told(node)
    x = given[node.input[0]]
    axes = tuple(range(told.get("axis", -1) % x.ndim, x.ndim))
    gap = x.astype(np.float64) - x.mean(axes, np.float64, keepdims=True)
    found = gap / np.sqrt((gap * gap).mean(axes, keepdims=True) + told.get("epsilon", 1e-5))
    shift = given[node.input[2]] if len(node.input) > 2 and node.input[2] else 0
    return (found + shift).astype(x.dtype)


def _scattered(node: onnx.NodeProto, given: Mapping[str, Any]) -> Any:
    """A Scatter of one number, which PyTorch writes without a shape, and of another float type."""
    data, index, updates = (given[name] for name in node.input)
    axis = _told(node).get("axis", 0)
    places = list(np.indices(index.shape, sparse=True))
    places[axis] = index
    found = data.copy()
    found[tuple(places)] = updates
    return found


def _clipped(node: onnx.NodeProto, x: Any) -> Any:
    """A Clip between attributes, which PyTorch 1.4 and 1.5 write above opset 10 as well."""
    bounds = {a.name: a.f for a in node.attribute}
    if x.dtype.kind in "iu" and not all(float(each).is_integer() for each in bounds.values()):
        raise NoWitness("Clip", where=f"node '{node.name}'", why="integers between fractions")
    low, high = (x.dtype.type(bounds[n]) if n in bounds else None for n in ("min", "max"))
    return x if low is None and high is None else np.clip(x, low, high)


def _is_mixed(node: onnx.NodeProto, values: Sequence[Any]) -> bool:
    """Whether operands are not of one type, or truths are summed; quotients of fractions alone."""
    types = {value.dtype for value in values if isinstance(value, np.ndarray)}
    if node.op_type == "ReduceSum":
        return np.dtype(np.bool_) in types
    if node.op_type == "Where":  # whose condition is a truth by itself
        types.discard(np.dtype(np.bool_))
    fit = all(each.kind in _CLASSES for each in types)
    whole = node.op_type == "Div" and all(each.kind != "f" for each in types)
    return node.op_type in _OF_ONE_TYPE and len(types) > 1 and fit and not whole


def _is_narrow(value: Any) -> bool:
    """Whether it is of whole numbers of 8 or 16 bits, for which onnxruntime has few operators."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.dtype.itemsize < 4


def _in_one_type(node: onnx.NodeProto, given: Mapping[str, Any]) -> dict[str, Any]:
    """Operands in PyTorch's common type: a number alone counts where its class is above all."""
    names = node.input[1:] if node.op_type == "Where" else node.input
    operands = [given[name] for name in names if name]
    if any(each.dtype.kind not in _CLASSES for each in operands):  # texts
        return dict(given)
    classes = [_CLASSES[each.dtype.kind] for each in operands]
    first = [each for each, rank in zip(operands, classes, strict=True) if rank == max(classes)]
    types = [each.dtype for each in first if each.ndim] or [each.dtype for each in first]
    common = np.result_type(*types)
    return {n: v.astype(common) if n in names else v for n, v in given.items()}


def _is_of_truths(node: onnx.NodeProto) -> bool:
    return any(a.name == "to" and a.i == onnx.TensorProto.BOOL for a in node.attribute)


def _in_real(node: onnx.NodeProto, value: Any) -> Any:
    """The real part alone, where the cast is to a real dtype; PyTorch and numpy warn of it."""
    kinds = (onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128)
    stays = any(a.name == "to" and a.i in kinds for a in node.attribute)
    return value if stays else value.real
