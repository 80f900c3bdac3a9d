"""Which inputs decide what is computed, branches, turns or sizes: `--value` may settle them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import onnx

from surgeon.declared import length_of
from surgeon.nested import every_node
from surgeon.standard import STANDARD

_MOST = 16  # numbers of an input that is a setting and no data
_PLACES = {  # operands that are no data, from the first to the last
    "ConstantOfShape": (0, 1),
    "Expand": (1, 2),
    "If": (0, 1),
    "Loop": (0, 2),
    "Range": (0, 3),
    "Reshape": (1, 2),
    "Resize": (1, 4),
    "Slice": (1, 5),
    "Tile": (1, 2),
    "TopK": (1, 2),
    "Upsample": (1, 2),
}
_PASSED = frozenset(
    "Add And Cast Ceil Concat Div Equal Floor Gather Greater GreaterOrEqual Identity Less "
    "LessOrEqual Max Min Mod Mul Neg Not Or ReduceMax ReduceMin ReduceProd ReduceSum Reshape Round "
    "Slice Split Squeeze Sub Unsqueeze Where".split()
)


def deciding(proto: onnx.ModelProto) -> tuple[str, ...]:
    """The inputs of a few numbers on which branches, turns or sizes hang."""
    given = {tensor.name for tensor in proto.graph.initializer}
    small = {v.name for v in proto.graph.input if v.name not in given and _is_small(v)}
    if not small:
        return ()
    nodes = list(every_node(proto.graph.node))
    makers = {name: node for node in nodes for name in node.output if name}
    wanted = [name for node in nodes for name in _decided_by(node)]
    seen: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        node = makers.get(name)
        if node is not None and node.op_type in _PASSED:
            wanted.extend(node.input)
    return tuple(value.name for value in proto.graph.input if value.name in small & seen)


def _decided_by(node: onnx.NodeProto) -> Iterator[str]:
    if node.domain in STANDARD and node.op_type in _PLACES:
        first, last = _PLACES[node.op_type]
        yield from node.input[first:last]


def _is_small(value: onnx.ValueInfoProto) -> bool:
    """Whether an input holds a few numbers, as the file says."""
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return False
    sizes = [length_of(d) for d in tensor.shape.dim]
    return None not in sizes and math.prod(s for s in sizes if s is not None) <= _MOST
