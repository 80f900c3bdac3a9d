"""TorchScript's lists: what makes one, how long it is, and what is taken out of it."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import bind, maker_of_list
from surgeon.bodies.listed import elements
from surgeon.builders.aten_scripts.dictionaries import entries, of_key
from surgeon.builders.aten_scripts.operands import (
    FIRST_SEQUENCES,
    LENGTHS,
    NO_LIST,
    PLACES,
    STACKED,
    WHOLE,
    as_sequence,
    is_list,
    is_numbers,
    is_sequence,
    operator_of,
    place,
    required,
    scalar,
    sequence,
    within,
)
from surgeon.builders.aten_shape.call import LARGEST, TYPE, Call
from surgeon.builders.aten_shape.lists import LISTS, element, every_part
from surgeon.builders.aten_shape.slices import select
from surgeon.builders.bench import Bench, operand
from surgeon.builders.scalar_types import PARTS
from surgeon.facts.fact import FIRST_STATE
from surgeon.facts.sequences import carried
from surgeon.links import maker_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_CUT = frozenset({"unbind", "chunk", "split", "split_with_sizes"})  # as SplitToSequence does
_LISTS_AS_THEY_ARE = 14  # the opset whose Identity takes lists
_FROM_THE_END = 11  # the opset whose Gather takes places below 0


def made_list(draft: Draft, match: Match) -> gs.Tensor:
    """`prim.ListConstruct` where a list is needed, and the parts that an operator cuts."""
    c, node = Bench(draft), match.root
    made = node.outputs[0]
    readers = {operator_of(reader) for reader in made.outputs}
    if node.domain == "prim":
        if not readers & (WHOLE | PLACES | LENGTHS) and not draft.surgery.is_output(made):
            raise Refused("nothing that reads it needs a list")
        if c.opset < FIRST_SEQUENCES:
            raise Refused("ONNX has lists from opset 11 on")
        return sequence(c, list(node.inputs))
    if maker_of_list(made) is None:
        raise Refused("it gives its parts one by one")
    if c.facts.of(node.inputs[0]).dtype in PARTS:
        raise Refused("it cuts complex values, of which there are no sequences")
    if c.opset < FIRST_SEQUENCES:
        if not readers & (STACKED | WHOLE):
            raise Refused("its parts are taken at places that are known")
        return sequence(c, every_part(Call(draft, node)))
    # the elements of an axis are taken from there
    needed = WHOLE if node.op == "unbind" else WHOLE | PLACES | LENGTHS
    if not readers & needed and not draft.surgery.is_output(made):
        raise Refused("nothing that reads it needs a list")
    if node.op not in _CUT:
        return sequence(c, every_part(Call(draft, node)))
    return _parts(Call(draft, node))


def _parts(c: Call) -> gs.Tensor:
    x, kind = c.tensor(), c.node.op
    axis = c.axis(c.integer("dim"), c.rank(x))
    made: gs.Tensor
    if kind == "unbind":
        made = c.op("SplitToSequence", x, axis=axis, keepdims=0)
        return made
    if kind == "chunk":
        chunks = c.integer("chunks")
        if chunks < 1:
            raise Refused(f"it asks for {chunks} parts")
        each = c.div(c.add(c.size(x, axis), chunks - 1), chunks)
        if isinstance(each, int):
            each = max(each, 1)
            made = c.op("SplitToSequence", x, c.number(each, TYPE.INT64), axis=axis)
            return made
        most = c.op("Max", each.tensor, c.ints([1], "one"))  # of nothing, which is one part
        made = c.op("SplitToSequence", x, scalar(c, most, TYPE.INT64), axis=axis)
        return made
    names = [p.name for p in c.args.schema.parameters]
    name = next(n for n in ("split_size", "split_sizes") if n in names)
    sizes = c.tensor(name)
    rank = c.facts.of(sizes).rank
    if rank is None:
        raise Refused("whether it cuts by one size or by several is not known")
    if rank == 0:
        sizes = scalar(c, sizes, TYPE.INT64)
    made = c.op("SplitToSequence", x, c.cast(sizes, TYPE.INT64), axis=axis)
    return made


def _unbound(tensor: gs.Tensor) -> gs.Node | None:
    """The `unbind` that makes a list, whose elements are those of an axis."""
    made = maker_of(tensor)
    return made if made is not None and (made.domain, made.op) == ("aten", "unbind") else None


def _maker(tensor: gs.Tensor) -> gs.Node | None:
    """The operator that makes a list of parts."""
    made = maker_of_list(tensor)
    return made if made is not None and made.op in LISTS else None


def read_list(draft: Draft, match: Match) -> gs.Tensor:
    """`len`, `__getitem__`, `list`, `slice` and what joins a list; the first also of tensors."""
    c, node = Bench(draft), match.root
    kind = {"concat": "cat", "concatenate": "cat", "copy": "list"}.get(node.op, node.op)
    if (dictionary := entries(required(node, 0))) is not None:
        if kind in PLACES:
            return of_key(dictionary, node)
        if kind in LENGTHS:
            return c.number(len(dictionary), TYPE.INT64)
        raise Refused("it is a dictionary")
    if kind in LENGTHS:
        return _length(c, required(node, 0))
    if kind in PLACES:
        return _element(c, node)
    if kind == "list":
        if len(node.inputs) != 1:
            raise Refused("it copies one tensor into another")
        return required(node, 0)
    if kind == "slice":
        return _slice(c, node)
    if kind == "sum":
        return _sum(c, required(node, 0))
    return _joined(c, node, new_axis=kind == "stack")


def _length(c: Bench, listed: gs.Tensor) -> gs.Tensor:
    known = elements(listed)
    if known is not None:
        return c.number(len(known), TYPE.INT64)
    made: gs.Tensor
    if is_sequence(c, listed):
        made = c.op("SequenceLength", listed)
        return made
    cut = _unbound(listed)
    if cut is not None:
        args = bind(cut, c.facts)
        x = args.tensor("self")
        axis = c.axis(int(args.value("dim")), c.rank(x))
        made = c.op("Gather", c.op("Shape", x), c.number(axis, TYPE.INT64), axis=0)
        return made
    if (maker := _maker(listed)) is not None:
        return c.number(len(every_part(Call(c.draft, maker))), TYPE.INT64)
    if not c.facts.of(listed).rank:
        raise Refused(NO_LIST)
    # of a tensor as of a list of numbers, the length of the first axis
    made = c.op("Gather", c.op("Shape", listed), c.number(0, TYPE.INT64), axis=0)
    return made


def _sum(c: Bench, listed: gs.Tensor) -> gs.Tensor:
    """Python's own `sum`, of numbers."""
    if known := elements(listed):
        return reduce(partial(c.op, "Add"), known)
    if not is_sequence(c, listed):
        raise Refused("it is no sum of a list")
    joined = c.op("ConcatFromSequence", listed, axis=0, new_axis=1)
    made: gs.Tensor = c.op("ReduceSum", joined, c.ints([0], "axes"), keepdims=0)
    return made


def _element(c: Bench, node: gs.Node) -> gs.Tensor:
    made: gs.Tensor
    listed, known = required(node, 0), elements(required(node, 0))
    at = place(c, node, 1)
    if known is not None and at is not None:
        return known[within(at, known)]
    cut = _unbound(listed)
    if cut is not None:
        call = Call(c.draft, cut)
        x = call.tensor()
        axis = call.axis(call.integer("dim"), call.rank(x))
        if at is None and c.opset >= _FROM_THE_END:
            made = c.op("Gather", x, scalar(c, required(node, 1), TYPE.INT64), axis=axis)
            return made
        return select(call, x, axis, call.scalar(required(node, 1)))
    if is_list(c, listed):
        if is_sequence(c, listed) and node.op == "SequenceAt":
            raise Refused("it has this form already")
        made = c.op("SequenceAt", as_sequence(c, listed), scalar(c, required(node, 1), TYPE.INT64))
        return made
    if at is not None and (maker := _maker(listed)) is not None:
        return element(Call(c.draft, maker), at)
    if not is_numbers(c, listed):
        raise Refused(NO_LIST)
    if c.opset < _FROM_THE_END and (at is None or at < 0):
        if at is None:
            raise Refused("a place that is computed may be below 0, which needs opset 11")
        return c.squeeze(c.slice(listed, 0, at, at + 1 if at < -1 else LARGEST), [0])
    made = c.op("Gather", listed, scalar(c, required(node, 1), TYPE.INT64), axis=0)
    return made


def _slice(c: Bench, node: gs.Node) -> gs.Tensor:
    """`slice.t`, of a list: there is no axis among its arguments."""
    listed = required(node, 0)
    known = elements(listed)
    of_list = node.attrs.get("overload") == "t" or is_list(c, listed)
    # TorchScript gives every argument, which are five of a tensor: there is an axis among them
    numbers = is_numbers(c, listed) and c.facts.of(listed).dtype == TYPE.INT64
    if not of_list and (len(node.inputs) != 4 or not numbers):
        raise Refused("it is a slice of a tensor")
    bounds = [None if operand(node, i) is None else place(c, node, i, 0) for i in (1, 2, 3)]
    computed = [operand(node, i) is not None and bounds[i - 1] is None for i in (1, 2, 3)]
    if any(computed):
        raise Refused("its bounds are known at run time only")
    start, end, step = bounds
    if step == 0:
        raise Refused("its step is 0")
    if known is not None:
        return sequence(c, known[slice(start, end, step)])
    if not is_numbers(c, listed):
        what = "a list whose length is known at run time" if is_list(c, listed) else "what it cuts"
        raise Refused(f"ONNX has no slice of {what}")
    step = 1 if step is None else step
    first = (0 if step > 0 else LARGEST) if start is None else start
    last = (LARGEST if step > 0 else -LARGEST) if end is None else end
    if step < 0 and c.opset < 10:
        raise Refused("a Slice that counts down needs opset 10")
    return c.slice(listed, 0, first, last, step)


def _joined(c: Bench, node: gs.Node, *, new_axis: bool) -> gs.Tensor:
    """A list joined along an axis; of known elements, that is any Concat."""
    listed, axis = required(node, 0), place(c, node, 1, 0)
    if len(node.inputs) > 2 or not is_sequence(c, listed) or elements(listed) is not None:
        raise Refused("its list is of known elements, or none")
    if axis is None:
        raise Refused("its axis is known at run time only")
    made: gs.Tensor = c.op(
        "ConcatFromSequence", listed, axis=axis, **({"new_axis": 1} if new_axis else {})
    )
    return made


def typed_list(draft: Draft, match: Match) -> gs.Tensor:
    """An empty list of the type of what is put into it, which exporters leave at float."""
    c, made = Bench(draft), match.root.outputs[0]
    mine = int(match.root.attrs.get("dtype", TYPE.FLOAT))
    wanted = {dtype for reader in made.outputs for dtype in _put_in(c, made, reader)}
    if wanted <= {mine} or len(wanted) > 1:
        raise Refused("nothing of another type is put into it")
    typed: gs.Tensor = c.op("SequenceEmpty", dtype=wanted.pop())
    return typed


def _put_in(c: Bench, listed: gs.Tensor, reader: gs.Node) -> list[int]:
    """The types of what an operator puts into a list, as far as they are proven."""
    found: list[int] = []
    if reader.op == "SequenceInsert" and reader.inputs[0] is listed:
        found.append(c.facts.of(reader.inputs[1]).dtype)
    for index, tensor in enumerate(reader.inputs[FIRST_STATE:] if reader.op == "Loop" else []):
        items = carried(c.facts.of, reader, index) if tensor is listed else None
        if items is not None:
            found.append(items.dtype)
    return [dtype for dtype in found if dtype]


def same_list(draft: Draft, match: Match) -> gs.Tensor:
    """A list that a body gives as it is: one element put in, and taken out again."""
    c, listed = Bench(draft), match.root.inputs[0]
    items = c.facts.of(listed).items
    if items is None:
        raise Refused("it is no list")
    if c.opset >= _LISTS_AS_THEY_ARE:
        raise Refused("the opset has an Identity of lists")
    dtype = items.dtype or (TYPE.FLOAT if items.empty else 0)
    if not dtype:
        raise Refused("the type of its elements is not known")
    # of the rank of the others, so that what is known of them stays
    shape = [d if isinstance(d, int) else 1 for d in items.shape or ()]
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    longer = c.op("SequenceInsert", listed, draft.constant(np.zeros(shape, kind), "element"))
    same: gs.Tensor = c.op("SequenceErase", longer)
    return same
