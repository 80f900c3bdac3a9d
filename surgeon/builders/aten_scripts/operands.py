"""The operands of TorchScript's own operators: lists by their elements, as sequences, as numbers.

The file does not say what is a list: nodes that make one do, and what is proven of the value.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_graphsurgeon as gs

from surgeon.bodies.listed import elements
from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.rewrite import Refused
from surgeon.spelling import named_operator, names_operator

FIRST_SEQUENCES = 11
# What needs a list to be one, whatever is known of its elements; what reads one at a place.
WHOLE = frozenset(
    "append insert extend pop reverse _set_item Delete add list copy cat stack Loop SequenceInsert "
    "SequenceErase ConcatFromSequence".split()
)
PLACES = frozenset({"__getitem__", "SequenceAt"})
LENGTHS = frozenset({"len", "SequenceLength"})
STACKED = frozenset({"Gather", "Slice", "Shape"})  # what reads a list below opset 11
READERS = (
    WHOLE | PLACES | LENGTHS | STACKED | {"slice", "sum", "concat", "concatenate", "Identity", "If"}
)
NO_LIST = "what its list is made of is not known"


def required(node: gs.Node, index: int) -> gs.Tensor:
    """An argument that must be there."""
    found = operand(node, index)
    if found is None:
        raise Refused(f"argument {index} is not given")
    return found


def operator_of(node: gs.Node) -> str:
    """The operator of a node that the walk may not have come to yet."""
    key = names_operator(node.domain or "", str(node.op))
    return named_operator(str(node.attrs.get(key, "") if key else node.op))


def is_sequence(c: Bench, tensor: gs.Tensor) -> bool:
    """Whether a value is proven to be one of ONNX's sequences."""
    return c.facts.of(tensor).items is not None


def is_list(c: Bench, tensor: gs.Tensor) -> bool:
    """Whether a value is a list of values by themselves, and no tensor."""
    return is_sequence(c, tensor) or elements(tensor) is not None


def is_numbers(c: Bench, tensor: gs.Tensor) -> bool:
    """Whether a value is a list of numbers, which exporters write as a tensor of rank 1."""
    return not is_list(c, tensor) and c.facts.of(tensor).rank == 1


def sequence(c: Bench, items: Sequence[gs.Tensor]) -> gs.Tensor:
    """A list of these: a sequence, where the opset has such.

    Below, PyTorch's own list stands for it: what reads its elements takes them, and it goes.
    """
    made: gs.Tensor
    if c.opset < FIRST_SEQUENCES:
        made = c.op("ListConstruct", *items, domain="prim")
    elif items:
        made = c.op("SequenceConstruct", *items)
    else:
        made = c.op("SequenceEmpty", dtype=TYPE.FLOAT)
    return made


def as_sequence(c: Bench, tensor: gs.Tensor) -> gs.Tensor:
    """A list as ONNX's sequence.

    Raises:
        Refused: Nothing shows that it is a list.
    """
    if is_sequence(c, tensor):
        return tensor
    known = elements(tensor)
    if known is None:
        raise Refused(NO_LIST)
    if c.opset < FIRST_SEQUENCES:
        raise Refused("a list of which more than its elements is read needs opset 11")
    return sequence(c, known)


def place(c: Bench, node: gs.Node, index: int, default: int | None = None) -> int | None:
    """A place in a list where it is constant; None where it is known at run time.

    Raises:
        Refused: It is not given, and has no default.
    """
    given = operand(node, index)
    if given is None:
        if default is None:
            raise Refused("its place is not given")
        return default
    array = c.facts.array(given)
    return None if array is None or array.size != 1 else int(array.item())


def within(at: int, items: Sequence[gs.Tensor]) -> int:
    """A place in a list of known elements.

    Raises:
        Refused: There is none.
    """
    if not -len(items) <= at < len(items):
        raise Refused(f"element {at} of {len(items)}")
    return at


def scalar(c: Bench, tensor: gs.Tensor, dtype: int) -> gs.Tensor:
    """A number as a tensor without axes, as ONNX's operators on sequences want it."""
    cast = c.cast(tensor, dtype)
    if c.facts.of(tensor).rank == 0:
        return cast
    made: gs.Tensor = c.op("Reshape", cast, c.ints([], "scalar"))
    return made
