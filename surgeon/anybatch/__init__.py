"""Makes the batch of a model dynamic that was exported for one of a fixed size.

The batch is followed from the inputs to the outputs, operator by operator: each has to treat the
items apart, and what the trace froze of their number (the shapes of Reshape and Expand, states of
an LSTM, a constant that is put in front of each) is written for any. Where an operator mixes items,
or is not known, nothing is done, and it is named with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx

from surgeon.anybatch import moving
from surgeon.anybatch.carriers import CARRIERS, OF_ANY_RANK, ROW_BY_ROW
from surgeon.anybatch.flow import Flow
from surgeon.anybatch.freed import STEP, Freed, refusal
from surgeon.anybatch.items import COUNTS, check_items
from surgeon.anybatch.known import Known
from surgeon.anybatch.moving import items_together
from surgeon.declared import length_of
from surgeon.frozen import Frozen
from surgeon.nested import WRITE_OUT, all_read, drop_constants, functions_left
from surgeon.standard import STANDARD

__all__ = ["COMPARED", "CONTRACT", "EXACT", "STEP", "WHY", "free_batch"]

WHY = "Every operator treats the items of a batch apart, so that it may be of any size."
EXACT = "rounding"  # kernels may add up a larger batch in another order
CONTRACT = (
    "extends: the file is for a batch of one size; the result computes of each item what it does, "
    "in a batch of any"
)
COMPARED = (
    f"of {', '.join(map(str, COUNTS))} batches of the file's size at once, the result gives what "
    "the original gives of each"
)
_MEND = (
    "`clean` in front may take that away, or may have brought it (surgeon apply clean any-batch IN "
    "OUT, or any-batch clean); else export it with a dynamic batch, or cut the model in front of "
    "it: surgeon extract IN OUT --to VALUE."
)
_MOST_TRIED = 200


def free_batch(
    proto: onnx.ModelProto, name: str, *, check: bool = True, folder: Path | None = None
) -> onnx.ModelProto:
    """The model with a first dimension of this name, in place of the number in the file.

    Args:
        proto: The model, with constants folded. Of its inputs those are taken apart by items whose
            first dimension is the batch, which is that of the first input.
        name: Of the dimension.
        check: Whether to run both, the original on each item and the result on several at once.
        folder: Where external data lie.

    Raises:
        SurgeonError: There is no fixed batch, an operator does not treat its items apart, or the
            two differ.
    """
    if proto.functions:
        raise refusal(f"the model has {functions_left(proto)}", WRITE_OUT)
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    inputs = list(_batched_inputs(model))
    for value in (*model.graph.input, *model.graph.output):
        if any(dim.dim_param == name for dim in _dims(value)):
            said = f"a dimension of `{value.name}` is called `{name}` already; if it is the batch, "
            raise refusal(
                f"{said}`--assume '{name} == {_dims(inputs[0])[0].dim_value}'` fixes it first",
                "Give it another name.",
            )
    flow = _followed(model, [value.name for value in inputs], _dims(inputs[0])[0].dim_value, folder)
    for value in inputs:
        _dims(value)[0].dim_param = name
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend(flow.nodes)
    model.graph.initializer.extend(flow.added)
    drop_constants(model.graph, all_read(proto.graph) - all_read(model.graph))
    for value in model.graph.output:
        _declare(flow, value, name)
    outputs = {v.name: flow.places[v.name] for v in model.graph.output if v.name in flow.places}
    freed = Freed(model, name, flow.size, tuple(value.name for value in inputs), outputs)
    if check:
        check_items(proto, freed, folder)
    return model


def _see_outputs(flow: Flow, names: Sequence[str]) -> None:
    """See that no output has what several items share once for each of the file's.

    Raises:
        SurgeonError: One has; it would stay of that many.
    """
    for name in names:
        if flow.size > 1 and name not in flow.places and flow.length(name) == flow.size:
            raise refusal(
                f"output `{name}` has {flow.size} items, made of no input's: it would stay so",
                "Leave it out (`surgeon extract --to`), or export the model with a dynamic batch.",
            )


def _batched_inputs(model: onnx.ModelProto) -> Iterator[onnx.ValueInfoProto]:
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in constants]
    size = 0
    for value in inputs:
        dims = _dims(value)
        length = length_of(dims[0]) if dims else None
        if length and length == (size or length):
            size = length
            yield value
        elif not size and dims:
            raise refusal(
                f"the first dimension of `{value.name}` is dynamic as it is; if the file runs at "
                f"one batch alone, a number stands inside, and {_told(value)} says for which it is",
                "Leave the step out, or say for which batch the file is.",
            )
    if not size:
        raise refusal("no input has a first dimension", "Leave the step out.")


def _told(value: onnx.ValueInfoProto) -> str:
    """The option that fixes the batch of an input at one."""
    first, *others = _dims(value)
    if first.dim_param:
        return f"`--assume '{first.dim_param} == 1'`"
    sizes = (str(length_of(dim) or dim.dim_param or "n") for dim in others)
    return f"`--shape {value.name}={','.join(('1', *sizes))}`"


def _dims(value: onnx.ValueInfoProto) -> Any:
    return value.type.tensor_type.shape.dim


def _followed(
    model: onnx.ModelProto, inputs: Sequence[str], size: int, folder: Path | None
) -> Flow:
    """The batch from the inputs to the outputs.

    A Reshape may leave it in one of several axes where others are of size one, and what comes
    behind tells which was meant: the latest choice that fails is taken back first.

    Raises:
        SurgeonError: There is no way; the reason is that of the one that went furthest.
    """
    known = Known(model, folder)
    furthest, reason = -1, ""
    apart: Flow | None = None
    choices: Sequence[int] | None = ()
    for _ in range(_MOST_TRIED):
        if choices is None:
            break
        flow = Flow(known, size, choices)
        flow.places.update(dict.fromkeys(inputs, 0))
        done = 0
        try:
            for node in model.graph.node:
                _carry(flow, node)
                done += 1
            if any(value.name in flow.leads for value in model.graph.output):
                apart, choices = apart or flow, flow.other_choices()
                continue
        except Frozen as error:
            if done > furthest:
                furthest, reason = done, str(error)
            choices = flow.other_choices()
        else:
            _see_outputs(flow, [value.name for value in model.graph.output])
            return flow
    if apart is not None:
        outputs = list(dict.fromkeys(value.name for value in model.graph.output))
        try:
            for name in outputs:
                items_together(apart, name, outputs)
        except Frozen as error:
            raise refusal(str(error), _MEND) from None
        return apart
    node = model.graph.node[furthest]
    title = node.name or (node.output[0] if node.output else "")
    raise refusal(f"{node.op_type} `{title}` does not treat items apart: {reason}", _MEND)


def _carry(flow: Flow, node: onnx.NodeProto) -> None:
    inside = {name for each in node.attribute for name in _read(each)}
    if inside.intersection(flow.places):
        raise Frozen("its bodies read what differs from item to item")
    held = [name for name in node.input if name in flow.places]
    if not held:
        flow.nodes.append(node)
        return
    carrier = CARRIERS.get(node.op_type) if node.domain in STANDARD else None
    if carrier is None and node.op_type in ("Shape", "Size"):
        moving.asked(flow, node)
        return
    if carrier is None:
        raise Frozen("of this operator that is not known")
    if carrier not in OF_ANY_RANK and (grown := flow.grown.intersection(held)):
        raise Frozen(f"the batch is an axis more, in front of those of `{min(grown)}`")
    made = onnx.NodeProto()
    made.CopyFrom(node)
    leads = {flow.leads.get(name, 1) for name in held}
    if leads != {1} and (node.op_type not in ROW_BY_ROW or len(leads) > 1):
        raise Frozen("the items lie apart in what it reads")
    try:
        carrier(flow, made)
    except (LookupError, StopIteration, TypeError, ValueError):
        raise Frozen("its operands or attributes are not those that it has") from None
    if leads != {1} and node.op_type != "Reshape":
        flow.leads.update(dict.fromkeys(filter(None, node.output), *leads))
    flow.nodes += [made, *flow.behind]
    flow.behind.clear()


def _read(attribute: onnx.AttributeProto) -> Iterator[str]:
    """What the bodies of an attribute read."""
    graphs = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
    for graph in graphs:
        yield from (value.name for value in graph.output)
        for node in graph.node:
            yield from node.input
            for each in node.attribute:
                yield from _read(each)


def _declare(flow: Flow, value: onnx.ValueInfoProto, name: str) -> None:
    axis = flow.places.get(value.name)
    tensor = value.type.tensor_type
    if axis is None or not tensor.HasField("shape"):
        return
    tensor.shape.dim[axis].Clear()
    if flow.shape(value.name)[axis] == flow.size:
        tensor.shape.dim[axis].dim_param = name
