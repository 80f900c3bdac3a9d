"""What is known of lists: the element type of their items, and the shape that all of these have.

A list that is proven to be empty says nothing of its items; what is put into it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.declared import length_of
from surgeon.dims import Dim
from surgeon.facts.fact import FIRST_STATE, INT64, UNKNOWN, Fact, Items
from surgeon.facts.kinds import known_type
from surgeon.links import maker_of

NewDim = Callable[[int], Dim]
NO_ITEMS = Items(empty=True)
ANY_ITEMS = Items()


def either(lists: Sequence[Items]) -> Items:
    """What holds of the items of every one of some lists, empty ones left out."""
    filled = [items for items in lists if not items.empty]
    if not filled:
        return NO_ITEMS
    dtypes = {items.dtype for items in filled}
    shape = filled[0].shape
    for items in filled[1:]:
        if shape is None or items.shape is None or len(shape) != len(items.shape):
            shape = None
            break
        pairs = zip(shape, items.shape, strict=True)
        shape = tuple(a if a is not None and a == b else None for a, b in pairs)
    return Items(dtypes.pop() if len(dtypes) == 1 else 0, shape)


def of_tensor(fact: Fact) -> Items:
    """What is known of a list by one of its items."""
    return Items(fact.dtype, fact.shape)


def declared(type_: onnx.TypeProto | None) -> Fact:
    """What the type of a model's input says of a list; nothing where it is none."""
    if type_ is None or not type_.HasField("sequence_type"):
        return UNKNOWN
    item = type_.sequence_type.elem_type
    if not item.HasField("tensor_type"):
        return UNKNOWN
    tensor = item.tensor_type
    if not tensor.HasField("shape"):
        return Fact(items=Items(known_type(tensor.elem_type)))
    sizes = [length_of(d) for d in tensor.shape.dim]
    return Fact(items=Items(known_type(tensor.elem_type), tuple(sizes)))


def facts(
    op: str, inputs: Sequence[Fact | None], attributes: Mapping[str, Any], new_dim: NewDim
) -> list[Fact] | None:
    """The facts of the outputs of an operator on lists; None where it is no such operator."""
    if op == "Identity" and inputs and inputs[0] is not None and inputs[0].items is not None:
        return [inputs[0]]
    function = _FUNCTIONS.get(op)
    return None if function is None else [function(inputs, attributes, new_dim)]


def _empty(inputs: Any, attributes: Any, new_dim: Any) -> Fact:
    return Fact(items=NO_ITEMS)


def _construct(inputs: Sequence[Fact | None], attributes: Any, new_dim: Any) -> Fact:
    return Fact(items=either([of_tensor(f or UNKNOWN) for f in inputs]))


def _insert(inputs: Sequence[Fact | None], attributes: Any, new_dim: Any) -> Fact:
    before, item = inputs[0] or UNKNOWN, inputs[1] or UNKNOWN
    mine = either([before.items or ANY_ITEMS, of_tensor(item)])
    # all the items of a list are of one type
    return Fact(items=mine._replace(dtype=mine.dtype or item.dtype))


def _same(inputs: Sequence[Fact | None], attributes: Any, new_dim: Any) -> Fact:
    first = inputs[0] or UNKNOWN
    return Fact(items=first.items or ANY_ITEMS)


def _length(inputs: Any, attributes: Any, new_dim: Any) -> Fact:
    return Fact(INT64, ())


def _at(inputs: Sequence[Fact | None], attributes: Any, new_dim: NewDim) -> Fact:
    items = (inputs[0] or UNKNOWN).items
    return UNKNOWN if items is None else Fact(items.dtype, _named(items.shape, new_dim))


def _concat(inputs: Sequence[Fact | None], attributes: Mapping[str, Any], new_dim: NewDim) -> Fact:
    items = (inputs[0] or UNKNOWN).items
    if items is None:
        return UNKNOWN
    if items.shape is None:
        return Fact(items.dtype)
    shape, axis = list(items.shape), int(attributes.get("axis", 0))
    if attributes.get("new_axis", 0):
        shape.insert(axis % (len(shape) + 1), None)
    elif shape:
        shape = list(shape)
        shape[axis % len(shape)] = None
    return Fact(items.dtype, _named(tuple(shape), new_dim))


def _split(inputs: Sequence[Fact | None], attributes: Mapping[str, Any], new_dim: Any) -> Fact:
    x = inputs[0] or UNKNOWN
    if not x.shape:
        return Fact(items=Items(x.dtype))
    shape: list[Dim | None] = list(x.shape)
    axis = int(attributes.get("axis", 0)) % len(shape)
    sizes = inputs[1] if len(inputs) > 1 else None
    kept = bool(attributes.get("keepdims", 1))
    if not kept and sizes is not None and sizes.rank is None:
        return Fact(items=Items(x.dtype))
    if not kept and (sizes is None or sizes.rank == 0):  # so onnxruntime does
        del shape[axis]
    else:
        shape[axis] = 1 if sizes is None else None
    return Fact(items=Items(x.dtype, tuple(shape)))


def _named(shape: tuple[Dim | None, ...] | None, new_dim: NewDim) -> tuple[Dim, ...] | None:
    if shape is None:
        return None
    return tuple(new_dim(axis) if dim is None else dim for axis, dim in enumerate(shape))


_FUNCTIONS: Mapping[str, Callable[..., Fact]] = {
    "SequenceEmpty": _empty,
    "SequenceConstruct": _construct,
    "SequenceInsert": _insert,
    "SequenceErase": _same,
    "SequenceLength": _length,
    "SequenceAt": _at,
    "ConcatFromSequence": _concat,
    "SplitToSequence": _split,
}

OPERATORS = frozenset({*_FUNCTIONS, "Identity"})


def carried(
    of: Callable[[gs.Tensor], Fact], node: gs.Node, index: int, place: str = ""
) -> Items | None:
    """What is known of a list that a Loop carries, by what its body puts into it.

    Args:
        of: What is known of a value.
        node: A Loop whose body was looked at, with its state taken for a list of anything.
        index: Which of its states.
        place: Of the body; with it begin the names of dimensions that are other ones every turn.
            Without it, of sizes only numbers are known.
    """
    body = node.attrs.get("body")
    if not isinstance(body, gs.Graph) or index + FIRST_STATE >= len(node.inputs):
        return None
    first = of(node.inputs[index + FIRST_STATE]).items
    if first is None or index + FIRST_STATE >= len(body.inputs) or index + 1 >= len(body.outputs):
        return None
    put = _put(of, body.outputs[index + 1], body.inputs[index + FIRST_STATE], depth=0)
    if put is None:
        return ANY_ITEMS
    items = either([first, *put])
    if items.shape is None:
        return items
    return items._replace(shape=tuple(outside(dim, place) for dim in items.shape))


def outside(dim: Dim | None, place: str) -> Dim | None:
    """A dimension in the body at a place, where it is the same every turn."""
    if dim is None or any(name.startswith(place) for name in dims.symbols(dim)):
        return None
    return dim


_DEEPEST = 64


def _put(
    of: Callable[[gs.Tensor], Fact], tensor: gs.Tensor, state: gs.Tensor, depth: int
) -> list[Items] | None:
    """What a list holds beside the items of the state; None where that is not known."""
    if tensor is state:
        return []
    made = maker_of(tensor)
    if depth > _DEEPEST or made is None:
        return None
    if made.op in ("Identity", "SequenceErase"):
        return _put(of, made.inputs[0], state, depth + 1)
    if made.op == "SequenceInsert":
        before = _put(of, made.inputs[0], state, depth + 1)
        return None if before is None else [*before, of_tensor(of(made.inputs[1]))]
    if made.op == "If":
        found: list[Items] = []
        place = made.outputs.index(tensor)
        for branch in made.attrs.values():
            if not isinstance(branch, gs.Graph):
                continue
            inside = _put(of, branch.outputs[place], state, depth + 1)
            if inside is None:
                return None
            found.extend(inside)
        return found
    items = of(tensor).items
    return None if items is None or items == ANY_ITEMS else [items]
