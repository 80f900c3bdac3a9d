"""What is computed in float32, in halves: where their range and their eleven bits do for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims, standard
from surgeon.builders.aten_shape.lists import as_many
from surgeon.facts import Facts
from surgeon.facts.fact import Array
from surgeon.links import maker_of
from surgeon.match import Match, producer_of
from surgeon.rewrite import Draft, Refused

_FLOAT, _HALF = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16
_LARGEST = 65504.0
_LEAST = 2.0**-14  # halves below it have fewer bits
_MOST_ADDED = 2048  # a half counts by ones no further
_MOST_PARTS = 8  # as the rule names
_ENDS = ("Clip",)  # what bounds a half by a number that no half reaches does not bound it
_EACH = ("Div",)  # every element of the constant counts, however large another one is
_COPIES = ("Expand", "Tile")  # of a constant, as often as is known at run time only
_MOST_ADDED_TO = (
    1024.0  # halves beyond it have no fractions: what such a number is added to is lost
)
_SHIFTS = ("Add", "Sub")  # of which a single small number may be what keeps another from 0
# What these add up, or take a mean of, without saying in which precision.
_POOLS = frozenset({"AveragePool", "GlobalAveragePool", "ReduceMean", "Softmax", "LogSoftmax"})
_PLANE = 4  # the rank from which on a mean of the last two axes is a pool
# An operand of these is a place or an angle: the larger a half is, the coarser it is as one.
_PLACED = frozenset("Ceil Cos Floor GridSample Mod Range RoiAlign Round Sin Tan".split())
_LEADS_ON = frozenset(
    "Add Cast Concat Div Expand Flatten Gather Identity Mul Neg Reshape Slice Split Squeeze Sub "
    "Tile Transpose Unsqueeze".split()
)
_MOVES = frozenset("Flatten Reshape Squeeze Transpose Unsqueeze".split())
_LEVELS_OF = _MOVES | {"Clip", "QuantizeLinear"}  # what may stand before a weight's levels
_FARTHEST = 64  # readers that are looked at


def computed_in_halves(draft: Draft, match: Match, cast: bool = False, most: int = 1) -> Any:
    """An operator of float32 whose operands are halves that were made wider, or fit into halves.

    Args:
        draft: Where the nodes go.
        match: The operator.
        cast: Whether operands of float32 are rounded to halves for it: what multiplies and adds up
            is worth that.
        most: How many values the rule names.
    """
    node, facts = match.root, draft.facts
    data = _data(facts, node)
    _check(facts, node, data, cast=cast)
    narrow = [
        _narrowed(draft, node, x) if place in data else x for place, x in enumerate(node.inputs)
    ]
    count = len(node.outputs)
    if count > most:
        raise Refused(f"it gives {count} values")
    said = {**node.attrs, "outputs": count} if count > 1 else node.attrs
    made = draft.op(node.op, *narrow, **said)
    found = list(made) if isinstance(made, tuple) else [made]
    back = [draft.op("Cast", y, to=_FLOAT) if facts.of(y).dtype == _HALF else y for y in found]
    return as_many(back, most) if most > 1 else back[0]


def table_in_halves(draft: Draft, match: Match) -> gs.Tensor:
    """Rows of a constant table, which is kept in halves.

    Args:
        draft: Where the nodes go.
        match: The Gather.
    """
    node, facts = match.root, draft.facts
    table = node.inputs[0]
    if facts.of(table).dtype != _FLOAT or facts.array(table, decides=False) is None:
        raise Refused("it takes nothing from a constant table of float32")
    if facts.array(node.inputs[1]) is not None:
        raise Refused("it depends on constants alone")
    made = draft.op(node.op, _narrowed(draft, node, table), *node.inputs[1:], **node.attrs)
    back: gs.Tensor = draft.op("Cast", made, to=_FLOAT)
    return back


def masked_in_halves(draft: Draft, match: Match) -> gs.Tensor:
    """A Softmax of scores in halves, of which those under a mask are float32's lowest number.

    Whole rows of it, and of the lowest half, are equal shares; beside a score the share of either
    is 0, where the score is no lowest half nearly itself. Whole rows of infinity are NaN in both.

    Args:
        draft: Where the nodes go.
        match: The Softmax, and the Where before it.
    """
    where, node, facts = match.nodes[1], match.root, draft.facts
    _check_length(facts, node)
    operands, found = list(where.inputs), 0
    for place in (1, 2):
        values = facts.array(where.inputs[place])
        if values is not None and values.dtype == np.float32 and (values < -_LARGEST).all():
            lowest = np.where(np.isfinite(values), -_LARGEST, values).astype(np.float16)
            operands[place] = draft.constant(lowest, "lowest")
            found += 1
        elif (half := _widened(facts, where.inputs[place])) is not None:
            draft.leans.append(where.inputs[place].inputs[0])
            operands[place] = half
    if found != 1 or any(facts.of(x).dtype != _HALF for x in operands[1:]):
        raise Refused("it is no choice between halves and float32's lowest number")
    made = draft.op("Softmax", draft.op("Where", *operands), **node.attrs)
    back: gs.Tensor = draft.op("Cast", made, to=_FLOAT)
    return back


def memory_in_halves(draft: Draft, match: Match) -> gs.Tensor:
    """What a network remembers, with what it is given beside it, in the halves that it reads.

    Args:
        draft: Where the nodes go.
        match: The Concat of what the caller kept and what is new, of which it gives the next.
    """
    node = match.root
    if not any(not x.inputs and not isinstance(x, gs.Constant) for x in node.inputs):
        raise Refused("none of its operands is an input")
    if not node.outputs[0].outputs or not _is_given(draft, node.outputs[0]):
        raise Refused("what it gives is no output that is read here too")
    return cast(gs.Tensor, computed_in_halves(draft, match, cast=True))


def _is_given(draft: Draft, tensor: gs.Tensor) -> bool:
    """Whether an output is a value, or a part of it."""
    parts = [node for node in tensor.outputs if node.op == "Slice" and node.inputs[0] is tensor]
    return any(map(draft.surgery.is_output, (tensor, *(n.outputs[0] for n in parts))))


def _data(facts: Facts, node: gs.Node) -> list[int]:
    """The places of the operands in float32 that are of the type of what is computed."""
    newest = standard.schema(node.op, standard.newest_opset())
    if newest is None or not standard.schema(node.op, facts.opset):
        raise Refused("the opset has no such operator")
    kinds = [
        newest.inputs[min(i, len(newest.inputs) - 1)].type_str for i in range(len(node.inputs))
    ]
    own = newest.outputs[0].type_str
    same = {own, "T1", "T2"} if node.op == "BatchNormalization" else {own}
    found = [
        place
        for place, x in enumerate(node.inputs)
        if not x.is_empty() and kinds[place] in same and facts.of(x).dtype == _FLOAT
    ]
    if not found:
        raise Refused("it computes nothing in float32")
    if any(x.name and not facts.of(x).dtype for x in node.inputs):
        raise Refused("the element type of an operand is not known")
    return found


def _check(facts: Facts, node: gs.Node, data: Sequence[int], *, cast: bool) -> None:
    """Whether halves do for it, as far as it shows without its numbers.

    Raises:
        Refused: They do not.
    """
    schema = standard.schema(node.op, facts.opset)
    named = len(schema.inputs) if schema is not None else 0  # others became inputs later
    if not all(standard.takes(node.op, facts.opset, i, _HALF) for i in data if i < named):
        raise Refused(f"{node.op} takes no halves at opset {facts.opset}")
    operands = [node.inputs[place] for place in data]
    known = [facts.array(x, decides=False) is not None for x in operands]
    if all(known):
        others = [x for x in node.inputs if x.name and all(x is not y for y in operands)]
        if node.op not in _COPIES or all(facts.array(x) is not None for x in others):
            raise Refused("it depends on constants alone")
    wide = [x for x, k in zip(operands, known, strict=True) if not k and not _widened(facts, x)]
    if wide and not cast:
        raise Refused(f"`{wide[0].name}` is computed in float32")
    if len(operands) > 1 and operands[0] is operands[1] and node.op in ("Mul", "MatMul"):
        raise Refused("a square may leave the range of halves")
    if node.op == "Div" and not known[-1]:
        raise Refused("what it divides by may be small")
    if node.op in _POOLS:
        _check_length(facts, node)
    if node.op == "LayerNormalization" and node.attrs.get("stash_type", 1) != _FLOAT:
        raise Refused("it does not compute its variance in float32")
    if cast and any(map(_of_levels, operands)):
        raise Refused(
            "it is between levels: runtimes find integer kernels by the DequantizeLinear in "
            "front of it, and a Cast between the two hides them"
        )
    if cast and (reader := _placed(node)):
        raise Refused(f"{reader} reads it, to which a half is no place and no angle")


def _of_levels(tensor: gs.Tensor) -> bool:
    """Whether a value is of levels that the run computes, moved or not; weights alone may be."""
    made = _behind(tensor, _MOVES).inputs
    if not made or made[0].op != "DequantizeLinear":
        return False
    return not isinstance(_behind(made[0].inputs[0], _LEVELS_OF), gs.Constant)


def _behind(tensor: gs.Tensor, through: frozenset[str]) -> gs.Tensor:
    """What a value was before these operators, onnxruntime's own ones among them."""
    while (maker := maker_of(tensor)) is not None and maker.op in through:
        tensor = maker.inputs[0]
    return tensor


def _check_length(facts: Facts, node: gs.Node) -> None:
    """Whether a half may count what is added up.

    Raises:
        Refused: It is too many, or how many is known at run time only.
    """
    shape = facts.of(node.inputs[0]).shape
    if shape is None:
        raise Refused("how many values it adds up is not known")
    if node.op == "AveragePool":
        sizes: list[Any] = list(node.attrs["kernel_shape"])
    elif node.op == "GlobalAveragePool":
        sizes = list(shape[2:])
    elif node.op == "ReduceMean":
        axes = facts.array(node.inputs[1]) if len(node.inputs) > 1 else None
        chosen = sorted(int(a) % len(shape) for a in axes.reshape(-1)) if axes is not None else []
        if len(shape) < _PLANE or chosen != [len(shape) - 2, len(shape) - 1]:
            raise Refused(
                "a mean that is no pool may be one of squares, or be taken from what it is of"
            )
        sizes = [shape[a] for a in chosen]
    else:
        sizes = [shape[int(node.attrs.get("axis", -1))]]
    length = dims.product(sizes)
    if not isinstance(length, int):
        raise Refused("how many values it adds up is known at run time only")
    if length > _MOST_ADDED:
        raise Refused(f"it adds up {length} values, and halves count to {_MOST_ADDED}")


def _placed(node: gs.Node) -> str:
    """An operator that takes what a node gives for places or angles; "" where none does."""
    seen, pending = {id(node)}, [node]
    while pending and len(seen) < _FARTHEST:
        for reader in _readers(pending.pop(0)):
            if reader.op in _PLACED:
                return str(reader.op)
            if reader.op in _LEADS_ON and id(reader) not in seen:
                seen.add(id(reader))
                pending.append(reader)
    return ""


def _readers(node: gs.Node) -> Iterator[gs.Node]:
    """What reads a value as data: not the picture from which a GridSample takes places."""
    for tensor in node.outputs:
        for reader in tensor.outputs:
            first = bool(reader.inputs) and reader.inputs[0] is tensor
            if not (first and reader.op in ("GridSample", "RoiAlign")):
                yield reader


def _widened(facts: Facts, x: gs.Tensor) -> gs.Tensor | None:
    """The half that a value was made of, if it was made of one."""
    maker = producer_of(x)
    if maker is None or maker.op != "Cast" or facts.of(x).dtype != _FLOAT:
        return None
    source = maker.inputs[0]
    return source if facts.of(source).dtype == _HALF else None


def _narrowed(draft: Draft, node: gs.Node, x: gs.Tensor) -> gs.Tensor:
    """The half that an operand was made of, or the same rounded to halves."""
    if (half := _widened(draft.facts, x)) is not None:
        draft.leans.append(x.inputs[0])
        return half
    values = draft.facts.array(x)
    if values is None:
        made: gs.Tensor = draft.op("Cast", x, to=_HALF)
        return made
    return draft.constant(_rounded(values, x.name, node.op), "half")


def _rounded(values: Array, name: str, op: str) -> Array:
    """A constant in halves, where they hold it.

    Raises:
        Refused: It leaves their range, or is too small for them.
    """
    sizes = np.abs(values[np.isfinite(values)])
    if op == "Where" and sizes.size < values.size:
        raise Refused(f"`{name}` holds infinity, as masks do")
    if np.isnan(values).any():
        raise Refused(f"`{name}` holds NaN")
    if sizes.size and float(sizes.max()) > _LARGEST:
        if op not in _ENDS:
            raise Refused(
                f"`{name}` holds {float(sizes.max()):.3g}, and halves end at {_LARGEST:.0f}"
            )
        values = np.clip(values, -_LARGEST, _LARGEST)
    if op in _SHIFTS and sizes.size and float(sizes.max()) > _MOST_ADDED_TO:
        raise Refused(
            f"`{name}` holds {float(sizes.max()):.3g}, beside which halves have no fractions"
        )
    known = sizes[sizes > 0]
    least = (known.min() if op in _EACH else known.max()) if known.size else _LEAST
    if op in _SHIFTS and values.size > 1:
        least = _LEAST
    if float(least) < _LEAST:
        raise Refused(f"`{name}` holds {float(least):.3g}, of which halves keep too few bits")
    return np.asarray(values).astype(np.float16)
