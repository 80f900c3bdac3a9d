"""What moved between attributes and inputs over the opsets, and what a node looks like in each.

In memory every standard node has its newest form (arguments that became inputs are inputs), so a
pattern is written once. `raise_form` brings a node of the file there; `emit` says a new node in the
model's own opset, or says which opset would do. The facts here are read from `onnx.defs`, but for
the table `MOVED`, which that library does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
import onnx.defs
import onnx_graphsurgeon as gs

from surgeon.objects import make_variable
from surgeon.standard import STANDARD, defaults, first_opset, newest_opset, schema, takes
from surgeon.writer import Writer, tensor_of

Array = npt.NDArray[Any]
ValueOf = Callable[[gs.Tensor], Array | None]

# In memory: an old meaning under a name that now means something else, or one a function's
# caller decides by an attribute. A pattern names the old meaning by this domain; none is written.
LEGACY = "ai.onnx.legacy"


@dataclass(frozen=True, slots=True)
class Moved:
    """An argument that was an attribute before opset `since` and is input `index` from then on.

    Attributes:
        like_input: Whether the constant takes the dtype of input 0 (else int64).
        scalar: Whether the attribute is a number and not a list.
    """

    attribute: str
    index: int
    since: int
    like_input: bool = False
    scalar: bool = False

    def constant(self, value: Any, dtype_of_input: Any) -> Array:
        """What the attribute says, as the input that it became."""
        array = np.array(value, dtype_of_input if self.like_input else np.int64)
        return array if self.scalar else np.atleast_1d(array)


_AXES_18 = (Moved("axes", 1, 18),)
MOVED: Mapping[str, tuple[Moved, ...]] = {
    "Squeeze": (Moved("axes", 1, 13),),
    "Unsqueeze": (Moved("axes", 1, 13),),
    "ReduceSum": (Moved("axes", 1, 13),),
    **dict.fromkeys(
        (
            "ReduceMean",
            "ReduceMax",
            "ReduceMin",
            "ReduceProd",
            "ReduceL1",
            "ReduceL2",
            "ReduceLogSum",
            "ReduceLogSumExp",
            "ReduceSumSquare",
        ),
        _AXES_18,
    ),
    "Split": (Moved("split", 1, 13),),
    "Slice": (Moved("starts", 1, 10), Moved("ends", 2, 10), Moved("axes", 3, 10)),
    "Pad": (Moved("pads", 1, 11), Moved("value", 2, 11, like_input=True, scalar=True)),
    "Clip": (
        Moved("min", 1, 11, like_input=True, scalar=True),
        Moved("max", 2, 11, like_input=True, scalar=True),
    ),
    "TopK": (Moved("k", 1, 10),),
}
# Operators whose meaning changed under one name: before `version`, in-memory domain LEGACY,
# unless `raise_form` can prove that both meanings agree.
CHANGED_MEANING = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "GroupNormalization": 21}


# Attributes of old that newer forms lack, with the value that says what those say (in test
# mode, once for each channel); None where no value does. A `broadcast` without an `axis` lines up
# the last dimensions, as newer forms do.
_GONE: Mapping[str, object] = {
    "is_test": 1,
    "spatial": 1,
    "axis": None,
    "shape": None,
    "paddings": None,
}
_IDLE = frozenset({"broadcast", "consumed_inputs", *_GONE})
_WITHOUT_OLD_ATTRIBUTES = 9  # the first opset where no operator has one
# Operators of another form before, whatever their attributes.
_SINCE = {"Scan": 9, "Dropout": 7, "BatchNormalization": 7, "Tile": 6, "Cast": 6, "Concat": 4}
_SAYS_THAT_IT_TRAINS = 14  # the first opset whose BatchNormalization has `training_mode`
PRECISION = 23  # the opset from which QuantizeLinear divides in the type of its scale
BROADCASTING = 7  # the first opset that lines up shapes without being told to


class Unavailable(Exception):
    """An operator, attribute or form that the model's opset lacks; says what would do."""


class Unknown(Unavailable):
    """An operator that no opset has."""


class UnknownAttribute(Unavailable):
    """An attribute that an operator has neither in the model's opset nor in the newest."""


def is_moved(op: str, opset: int) -> bool:
    """Whether nodes of a standard operator may need `raise_form`."""
    if op == "BatchNormalization" and opset < _SAYS_THAT_IT_TRAINS:
        return True
    return op in MOVED or op in CHANGED_MEANING or opset < _WITHOUT_OLD_ATTRIBUTES


def trains_by_outputs(op: str, opset: int, outputs: Sequence[str]) -> bool:
    """Whether a node trains because it gives more than one value.

    So did BatchNormalization before it had an attribute for it: it takes the batch's own mean and
    variance then, whether or not anything reads what it gives beside.
    """
    between = _SINCE["BatchNormalization"] <= opset < _SAYS_THAT_IT_TRAINS
    return op == "BatchNormalization" and between and any(outputs[1:])


def raise_form(
    node: gs.Node, opset: int, dtype_of_input: type[Any] | np.dtype[Any] | None, rank: int | None
) -> None:
    """Bring a standard node of the file to its newest form, in memory.

    Args:
        node: Changed in place; `origin` keeps what the file says.
        opset: The model's default opset.
        dtype_of_input: The numpy dtype of input 0, where known.
        rank: The rank of input 0, where known.
    """
    if opset < _WITHOUT_OLD_ATTRIBUTES and _is_old(node, opset):
        node.domain = LEGACY
        return
    if trains_by_outputs(node.op, opset, [value.name for value in node.outputs]):
        node.attrs["training_mode"] = 1
    changed = CHANGED_MEANING.get(node.op)
    if changed is not None and opset < changed:
        axis = node.attrs.get("axis", 1)
        if node.op == "GroupNormalization" or rank is None or axis not in (-1, rank - 1):
            node.domain = LEGACY
        else:
            node.attrs["axis"] = -1
        return
    moved = MOVED.get(node.op)
    if moved is None or opset >= moved[0].since:
        return
    if dtype_of_input is None and any(m.like_input and m.attribute in node.attrs for m in moved):
        node.domain = LEGACY
        return
    stated = [move for move in moved if move.attribute in node.attrs]
    try:
        arrays = [move.constant(node.attrs[move.attribute], dtype_of_input) for move in stated]
    except (OverflowError, TypeError, ValueError):  # no number, or none of this type: no valid node
        node.domain = LEGACY
        return
    inputs = list(node.inputs)
    node.origin_inputs = tuple(inputs)
    for move, array in zip(stated, arrays, strict=True):
        del node.attrs[move.attribute]
        while len(inputs) < move.index:
            inputs.append(make_variable(""))
        constant = gs.Constant(f"{node.outputs[0].name}/{move.attribute}", array)
        if len(inputs) == move.index:
            inputs.append(constant)
        else:
            inputs[move.index] = constant
    node.inputs = inputs


def _is_old(node: gs.Node, opset: int) -> bool:
    """Whether a node of an opset before 9 means what no newer form says.

    Attributes that leave the newer meaning as it is go. A Dropout trains unless it says otherwise;
    a Cast named its target by a word; Tile and Scan had other inputs; slopes of a PRelu went along
    the channels.
    """
    newest = schema(node.op, newest_opset())
    if newest is None:
        return False
    if opset < _SINCE.get(node.op, 1) and node.attrs.get("is_test") != 1:
        return True
    if opset < BROADCASTING and node.op == "PRelu" and not _has_one_slope(node):
        return True
    known = {*newest.attributes, *(move.attribute for move in MOVED.get(node.op, ()))}
    old = [key for key in node.attrs if key in _IDLE and key not in known]
    if any(key in _GONE and node.attrs[key] != _GONE[key] for key in old):
        return True
    for key in old:
        del node.attrs[key]
    return False


def _has_one_slope(node: gs.Node) -> bool:
    shape = node.inputs[1].shape if len(node.inputs) > 1 else None
    return shape is not None and all(size == 1 for size in shape)


def emit(
    op: str,
    domain: str,
    attributes: Mapping[str, Any],
    inputs: Sequence[gs.Tensor],
    outputs: Sequence[str],
    *,
    name: str,
    opset: int,
    value_of: ValueOf,
    rank_of: Callable[[gs.Tensor], int | None],
    dtype_of: Callable[[gs.Tensor], int],
) -> tuple[onnx.NodeProto, tuple[gs.Tensor, ...]]:
    """A node of newest form in the model's own opset, and the tensors its inputs name.

    Raises:
        Unavailable: The opset has no such operator, attribute, form or dtype.
    """
    attributes = dict(attributes)
    inputs = list(inputs)
    if domain not in STANDARD:
        return _proto(op, domain, attributes, inputs, outputs, name)
    own = _form(op, opset)
    if own is None:
        first = first_opset(op)
        if not first:
            of, _, short = op.rpartition(".")
            apart = f": `op({short!r}, ..., domain={of!r})`" if of else ""
            raise Unknown(f"`{op}` is no standard operator{apart}")
        raise Unavailable(f"`{op}` needs opset {first}")
    formed = BROADCASTING if "broadcast" in own.attributes else _SINCE.get(op, 1)
    if opset < formed:
        raise Unavailable(f"`{op}` as it is now needs opset {formed}")
    changed = CHANGED_MEANING.get(op)
    if changed is not None and opset < changed:
        rank = rank_of(inputs[0])
        axis = attributes.get("axis", -1)
        if op == "GroupNormalization" or rank is None or axis not in (-1, rank - 1):
            raise Unavailable(f"`{op}` over an axis that is not the last needs opset {changed}")
        attributes["axis"] = rank - 1
    _move_to_attributes(op, opset, attributes, inputs, value_of)
    _drop_newer(op, own, opset, attributes)
    while inputs and inputs[-1].is_empty():
        inputs.pop()
    if len(inputs) > own.most:
        raise Unavailable(f"`{op}` with {len(inputs)} inputs needs a newer opset than {opset}")
    _check_dtypes(op, own, inputs, dtype_of, opset)
    return _proto(op, domain, attributes, inputs, outputs, name)


def _move_to_attributes(
    op: str,
    opset: int,
    attributes: dict[str, Any],
    inputs: list[gs.Tensor],
    value_of: ValueOf,
) -> None:
    """Make attributes, in place, of the inputs that are attributes at the opset.

    Raises:
        Unavailable: One is computed.
    """
    for move in reversed(MOVED.get(op, ())):
        if opset >= move.since or len(inputs) <= move.index:
            continue
        tensor = inputs.pop(move.index) if move.index == len(inputs) - 1 else inputs[move.index]
        if tensor.is_empty():
            continue
        array = value_of(tensor)
        if array is None or array.dtype == object:
            raise Unavailable(f"`{op}` with computed `{move.attribute}` needs opset {move.since}")
        attributes[move.attribute] = (
            array.reshape(-1).tolist()[0] if move.scalar or op == "TopK" else array.tolist()
        )


def _drop_newer(op: str, own: _Form, opset: int, attributes: dict[str, Any]) -> None:
    """Take attributes that came later than the opset out, in place.

    Raises:
        Unavailable: One says something else than what holds without it.
        UnknownAttribute: The operator has no such attribute.
    """
    for key in list(attributes):
        if key in own.attributes:
            continue
        newest = schema(op, newest_opset())
        known = newest.attributes if newest is not None else {}
        if key not in known:
            raise UnknownAttribute(f"`{op}` of opset {opset} has no attribute `{key}`")
        if defaults(op, newest_opset()).get(key) != attributes[key]:
            raise Unavailable(f"attribute `{key}` of `{op}` needs a newer opset than {opset}")
        del attributes[key]


def _check_dtypes(
    op: str,
    own: _Form,
    inputs: Sequence[gs.Tensor],
    dtype_of: Callable[[gs.Tensor], int],
    opset: int,
) -> None:
    if not own.operands:
        return
    for index, tensor in enumerate(inputs):
        dtype = dtype_of(tensor) if tensor.name else 0
        if dtype and not takes(op, opset, min(index, own.operands - 1), dtype):
            name = onnx.TensorProto.DataType.Name(dtype).lower()
            raise Unavailable(
                f"`{op}` of opset {opset} does not take tensor({name}) as input {index}"
            )


class _Form(NamedTuple):
    """What `emit` asks of a schema, which is slow to answer.

    Attributes:
        operands: How many inputs it names.
        most: How many inputs it takes.
    """

    attributes: frozenset[str]
    operands: int
    most: int


@cache
def _form(op: str, opset: int) -> _Form | None:
    own = schema(op, opset)
    if own is None:
        return None
    return _Form(frozenset(own.attributes), len(own.inputs), own.max_input)


def _proto(
    op: str,
    domain: str,
    attributes: Mapping[str, Any],
    inputs: Sequence[gs.Tensor],
    outputs: Sequence[str],
    name: str,
) -> tuple[onnx.NodeProto, tuple[gs.Tensor, ...]]:
    node = onnx.NodeProto()
    node.op_type, node.name = op, name
    node.domain = "" if domain in STANDARD else domain
    node.input.extend([tensor.name for tensor in inputs])
    node.output.extend(outputs)
    for key, value in attributes.items():
        if isinstance(value, np.ndarray):
            node.attribute.append(
                onnx.helper.make_attribute(key, onnx.numpy_helper.from_array(value))
            )
        elif isinstance(value, gs.Constant):  # an attribute that a match carries over
            node.attribute.append(onnx.helper.make_attribute(key, tensor_of(value)))
        elif isinstance(value, gs.Graph):
            body = onnx.GraphProto()
            Writer(value, set(), onnx.IR_VERSION).graph(value, body)
            node.attribute.append(onnx.helper.make_attribute(key, body))
        elif value is not None:
            # an empty list does not say of what: those of axes may be
            kind = onnx.AttributeProto.INTS if value in ([], ()) else None
            node.attribute.append(onnx.helper.make_attribute(key, value, attr_type=kind))
    return node, tuple(inputs)
