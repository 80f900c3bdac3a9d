"""Operators of ONNX's own domain in files of an opset that does not have them yet, or no longer.

Export scripts register them below their opset, and mean what ONNX came to mean by them. PyTorch 1.5
writes Upsample where there is none any more, and means what it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx

DOMAIN = "early"  # where the witness has them
# By operator, the first opset that has it.
SINCE: Mapping[str, int] = {"Gelu": 20, "GridSample": 16, "HardSwish": 14, "Mish": 18, "Swish": 24}
# By operator, the first opset that has it no longer.
_UNTIL: Mapping[str, int] = {"Upsample": 10}


def holds_early(model: onnx.ModelProto) -> bool:
    """Whether an operator of ONNX's, however deep, is of a newer opset than the model, or gone."""
    return any(True for _ in _early(model))


def with_domain(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with these operators in a domain of their own; as it is, where there are none."""
    if not holds_early(model):
        return model
    marked = onnx.ModelProto()
    marked.CopyFrom(model)
    for node in _early(marked):
        node.domain = DOMAIN
    return marked


def _early(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    names = {name for name, since in SINCE.items() if opset < since}
    names |= {name for name, until in _UNTIL.items() if opset >= until}
    waiting = [model.graph] if names and opset else []
    while waiting:
        for node in waiting.pop().node:
            if node.domain in ("", "ai.onnx") and node.op_type in names:
                yield node
            for attribute in node.attribute:
                waiting += [attribute.g] if attribute.HasField("g") else attribute.graphs
