"""Attention spelled out, fused from an older opset, and spelled out again: `attention-fuse`."""

from __future__ import annotations

from collections import Counter

import onnx
import pytest
from onnx import parser

import surgeon

WRITTEN = """
<ir_version: 8, opset_import: ["": {opset}]>
g (float[b,s,16] x, int64[b,s] seen) => (float[b,s,16] y) <
    int64[4] heads = {{0, 0, 2, 8}}, int64[3] whole = {{0, 0, 16}}, int64[2] axes = {{1, 2}},
    float root = {{2.828427}}, float one = {{1}}, float low = {{-10000.0}}
> {{
    f = Cast <to = 1> (seen)
    m = Unsqueeze {axes}
    i = Sub (one, m)
    mask = Mul (i, low)
    h = Reshape (x, heads)
    q = Transpose <perm = [0, 2, 1, 3]> (h)
    k = Transpose <perm = [0, 2, 3, 1]> (h)
    a = MatMul (q, k)
    d = Div (a, root)
    e = Add (d, mask)
    p = Softmax <axis = -1> (e)
    c = MatMul (p, q)
    t = Transpose <perm = [0, 2, 1, 3]> (c)
    y = Reshape (t, whole)
}}
"""


def _operators(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


@pytest.mark.parametrize("opset", [11, 17, 23])
def test_an_older_model_is_brought_to_the_opset_and_fused(opset: int) -> None:
    axes = "<axes = [1, 2]> (f)" if opset < 13 else "(f, axes)"
    model = parser.parse_model(WRITTEN.format(opset=opset, axes=axes))
    drawn = {"inputs": {"seen": "mask"}, "require": "equivalent"}
    result = surgeon.apply(model, "clean", "attention-fuse", "clean", opset=23, **drawn)
    assert _operators(result.model.to_proto())["Attention"] == 1
    assert "Softmax" not in _operators(result.model.to_proto())
    assert any("gives zeros" in (change.contract or "") for change in result.report.changes)
    again = surgeon.apply(result.model, "attention-fuse", "clean", **drawn)
    assert not again.report.changes
    spelled = surgeon.apply(result.model, "attention-decompose", "clean", **drawn)
    assert not {"Attention"} & _operators(spelled.model.to_proto()).keys()
