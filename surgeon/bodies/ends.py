"""What a body gives: values that it makes itself, and what it says of them."""

from __future__ import annotations

import onnx
import onnx_graphsurgeon as gs

from surgeon.facts.fact import Fact
from surgeon.links import current, maker_of
from surgeon.rewrite import Surgery


def ended(surgery: Surgery, body: gs.Graph, value: gs.Tensor) -> gs.Tensor:
    """A value as one that the body makes and gives once."""
    value = current(value)
    made = maker_of(value)
    if made is None or made.home is not body or surgery.is_output(value):
        return same(surgery, body, value.name, value)
    surgery.outputs[id(value)] = value
    return value


def same(surgery: Surgery, body: gs.Graph, stem: str, value: gs.Tensor) -> gs.Tensor:
    """A value once more, as one that the body makes and gives."""
    draft = surgery.draft(body, stem)
    end: gs.Tensor = draft.op("Identity", value)
    body.nodes.extend(draft.nodes)
    surgery.outputs[id(end)] = end
    return end


def face(body: gs.Graph) -> onnx.GraphProto:
    """What the file says of a body, on a copy: what was read stays as it was."""
    copied = onnx.GraphProto()
    copied.CopyFrom(body.origin)
    del copied.node[:]
    return copied


def declared(tensor: gs.Tensor, fact: Fact) -> onnx.ValueInfoProto:
    """What a body says of one of its values."""
    shape = None if fact.shape is None else [d if isinstance(d, int) else None for d in fact.shape]
    return onnx.helper.make_tensor_value_info(tensor.name, fact.dtype, shape)
