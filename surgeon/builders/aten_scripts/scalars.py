"""TorchScript's operators on Python's numbers: truth, identity, membership, conversions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import text_of
from surgeon.bodies.listed import elements
from surgeon.builders.aten_scripts.dictionaries import entries
from surgeon.builders.aten_scripts.operands import (
    is_numbers,
    required,
    scalar,
)
from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.builders.scalar_types import promote
from surgeon.facts.fact import INTEGERS
from surgeon.links import maker_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_DEVICES = ("cpu", "cuda")  # where networks are exported
_MOST_UNINITIALIZED = 8  # of one node: what a function gives that returns early


def _truth(c: Bench, value: bool) -> gs.Tensor:
    return c.draft.constant(np.asarray(value), "truth")


def _no_list(c: Bench, x: gs.Tensor) -> None:
    if c.facts.of(x).items is not None or elements(x) is not None:
        raise Refused(f"`{x.name}` is a list")


def _negated(c: Bench, node: gs.Node) -> gs.Tensor:
    x = required(node, 0)
    known = c.facts.array(x)
    if known is not None and known.size == 1:
        return _truth(c, not known.item())
    _no_list(c, x)
    negated: gs.Tensor = c.op("Not", scalar(c, x, TYPE.BOOL))
    return negated


def _is_none(c: Bench, tensor: gs.Tensor | None) -> bool:
    """Whether an argument is None.

    Raises:
        Refused: It may be: an If may give None by one branch, and then has no type.
    """
    if tensor is None:
        return True
    made = maker_of(tensor)
    if made is not None and made.op == "Constant" and not made.attrs:
        return True
    fact = c.facts.of(tensor)
    if fact.dtype or fact.items is not None or text_of(tensor) is not None:
        return False
    raise Refused(f"whether `{tensor.name}` is None is not known")


def _is_type_of_device(tensor: gs.Tensor) -> bool:
    """Whether it is `x.device.type`."""
    node = maker_of(tensor)
    if node is None or (node.domain, node.op) != ("prim", "type"):
        return False
    asked = maker_of(node.inputs[0])
    return asked is not None and (asked.domain, asked.op) == ("prim", "device")


def _same_on_all(truths: list[bool]) -> bool:
    """What holds wherever a network runs: the file does not say where it did."""
    if len(set(truths)) != 1:
        raise Refused("it asks on which device a tensor lies, which decides")
    return truths[0]


def _is(c: Bench, node: gs.Node) -> gs.Tensor:
    """Whether both are None: tensors are compared with nothing else by the exporter."""
    first, second = (_is_none(c, operand(node, index)) for index in (0, 1))
    if not first and not second:
        raise Refused("whether two values are one object is nothing that ONNX can say")
    return _truth(c, (first and second) == (node.op == "__is__"))


def _contains(c: Bench, node: gs.Node) -> gs.Tensor:
    listed, item = required(node, 0), required(node, 1)
    if (dictionary := entries(listed)) is not None:
        if text_of(item) is None:
            raise Refused("its key is no constant text")
        return _truth(c, text_of(item) in dictionary)
    word, parts = text_of(item), elements(listed)
    if parts is not None and (word is not None or any(text_of(p) is not None for p in parts)):
        words = [text_of(part) for part in parts]
        if _is_type_of_device(item) and None not in words:
            return _truth(c, _same_on_all([device in words for device in _DEVICES]))
        if word is None or None in words:
            raise Refused("its list is of texts that are not all known")
        return _truth(c, word in words)
    numbers, number = c.facts.array(listed), c.facts.array(item)
    if parts is not None:
        arrays = [c.facts.array(part) for part in parts]
        known = [a for a in arrays if a is not None and a.size == 1]
        numbers = np.asarray([a.item() for a in known]) if len(known) == len(arrays) else None
    if numbers is not None and not numbers.size:
        return _truth(c, False)
    if numbers is not None and number is not None and number.size == 1:
        return _truth(c, number.item() in numbers.reshape(-1).tolist())
    if c.dtype(item) not in INTEGERS:
        raise Refused("it looks for what is no integer, known at run time only")
    if numbers is not None:
        listed = c.draft.constant(numbers.astype(np.int64).reshape(-1), "numbers")
    elif parts is not None:
        listed = c.concat([c.unsqueeze(scalar(c, p, TYPE.INT64), [0]) for p in parts], 0)
    elif not is_numbers(c, listed) or c.dtype(listed) not in INTEGERS:
        raise Refused("its list is not known to be one of integers")
    same = c.op("Equal", c.cast(listed, TYPE.INT64), scalar(c, item, TYPE.INT64))
    count = c.op("ReduceSum", c.cast(same, TYPE.FLOAT), c.ints([0], "axes"), keepdims=0)
    held: gs.Tensor = c.op("Greater", count, c.number(0, TYPE.FLOAT))
    return held


def _number(dtype: int) -> Callable[[Bench, gs.Node], gs.Tensor]:
    """Python's conversion of a number: to integers towards zero, as Cast does."""

    def run(c: Bench, node: gs.Node) -> gs.Tensor:
        x = required(node, 0)
        if text_of(x) is not None:
            raise Refused("it reads a number out of a text")
        _no_list(c, x)
        return scalar(c, x, dtype)

    return run


def _as_it_is(c: Bench, node: gs.Node) -> gs.Tensor:
    x = required(node, 0)
    return scalar(c, x, c.dtype(x))


def _nth(c: Bench, node: gs.Node) -> gs.Tensor:
    """The number of a range at an index: start + index * step."""
    index, start, step = (scalar(c, required(node, i), TYPE.INT64) for i in range(3))
    found: gs.Tensor = c.op("Add", start, c.op("Mul", index, step))
    return found


def _range_length(c: Bench, node: gs.Node) -> gs.Tensor:
    """How many numbers a range has: the distance over the step rounded up, or none."""
    low, high = (scalar(c, required(node, i), TYPE.INT64) for i in range(2))
    array = c.facts.array(required(node, 2))
    if array is None or array.size != 1 or not array.item():
        raise Refused("its step is not known, or is 0")
    step = int(array.item())
    whole = c.op("Sub", high, low) if step > 0 else c.op("Sub", low, high)
    if abs(step) != 1:
        whole = c.op("Add", whole, c.number(abs(step) - 1, TYPE.INT64))
        whole = c.op("Div", whole, c.number(abs(step), TYPE.INT64))
    zero = c.number(0, TYPE.INT64)
    return c.where(c.op("Less", zero, whole), whole, zero)


def _constant(c: Bench, node: gs.Node) -> gs.Tensor:
    """A number, or a list of them or of truth values, that the exporter had no Constant for."""
    value = node.attrs.get("value")
    is_number = isinstance(value, (bool, int, float)) and node.domain == "prim"
    numbers = np.asarray(value if is_number or isinstance(value, (list, tuple)) else [])
    if not numbers.size or numbers.dtype.kind not in "bif":
        raise Refused("it is no list of numbers")
    kind = np.float64 if numbers.dtype.kind == "f" else np.int64
    made: gs.Tensor = c.op("Identity", c.draft.constant(numbers.astype(kind), "numbers"))
    return made


def _larger(c: Bench, node: gs.Node) -> gs.Tensor:
    """The larger or the smaller of two of Python's numbers: a float where one is."""
    if operand(node, 1) is None:
        raise Refused("it reads a list of numbers")
    pair = [required(node, index) for index in (0, 1)]
    for x in pair:
        _no_list(c, x)
    dtype = promote(*(c.dtype(x) for x in pair))
    a, b = (scalar(c, x, dtype) for x in pair)
    b_is_it = c.op("Less", a, b) if node.op == "max" else c.op("Less", b, a)
    return c.where(b_is_it, b, a)


_SCALARS: Mapping[str, Callable[[Bench, gs.Node], gs.Tensor]] = {
    "__not__": _negated,
    **dict.fromkeys(("__is__", "__isnot__"), _is),
    "__contains__": _contains,
    **dict.fromkeys(("Int", "IntImplicit"), _number(TYPE.INT64)),
    **dict.fromkeys(("Float", "FloatImplicit"), _number(TYPE.DOUBLE)),
    "Bool": _number(TYPE.BOOL),
    "ScalarImplicit": _as_it_is,
    "__derive_index": _nth,
    "__range_length": _range_length,
    "Constant": _constant,
    **dict.fromkeys(("max", "min"), _larger),
}


def script_scalar(draft: Draft, match: Match) -> Any:
    """An operator on Python's numbers, of which None and texts are some."""
    return _SCALARS[match.root.op](Bench(draft), match.root)


def uninitialized(draft: Draft, match: Match) -> Any:
    """`prim.Uninitialized`, which stands for a value that is not there on this way and is not read.

    A zero of the type that the file states; of a tensor it states none, and most are of floats.
    """
    outputs = match.root.outputs
    origin = getattr(draft.graph, "origin", None)
    stated = {v.name: v.type.tensor_type.elem_type for v in getattr(origin, "value_info", ())}
    if any(map(draft.surgery.is_output, outputs)):
        raise Refused("the model gives it out")
    zeros = []
    for tensor in outputs:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(stated.get(tensor.name) or TYPE.FLOAT)
        zeros.append(draft.op("Identity", draft.constant(np.zeros((), dtype), "nothing")))
    return (*zeros, *[zeros[0]] * (_MOST_UNINITIALIZED - len(outputs)))
