"""Values, nodes and sizes under names that somebody gives them: the step `rename`."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import parser

import surgeon

BRANCHED = """
<ir_version: 8, opset_import: ["": 13]>
g (float[N,4] x, bool c) => (float[N,4] y, float[N,4] z) {
  ["a"] h = Relu (x)
  y = If (c) <then_branch = t () => (float[N,4] p) { p = Neg (h) },
              else_branch = e () => (float[N,4] q) { q = Add (h, x) }>
  z = Neg (h)
}
"""


def _renamed(names: str, **told: Any) -> surgeon.Result:
    text = f"surgeon: 1\nname: own\nallow: [contract]\nsteps:\n  - rename: {names}\n"
    return surgeon.apply(parser.parse_model(BRANCHED), surgeon.Recipe.parse(text), **told)


def test_whatever_is_named_is_called_otherwise() -> None:
    result = _renamed("{x: image, h: features, a: first, N: batch, z: y, y: z}")
    after = result.model.to_proto()
    assert result.report.verdict.status == "equivalent"
    assert [value.name for value in (*after.graph.input, *after.graph.output)] == [
        *("image", "c", "z", "y")
    ]
    dims = [value.type.tensor_type.shape.dim[0].dim_param for value in after.graph.output]
    assert dims == ["batch", "batch"]
    node = after.graph.node[0]
    assert (node.name, [*node.input], [*node.output]) == ("first", ["image"], ["features"])
    contract = result.report.changes[0].contract
    assert contract is not None
    assert "`x` is called `image`" in contract


REFUSED_NAMES = {
    "{xx: y2}": "nothing is called `xx`",
    "{x: h}": "`h` is a name already",
    "{x: a1, y: a1}": "two get one name",
    '{N: "4"}': "no name of a size",
}


@pytest.mark.parametrize("names", REFUSED_NAMES)
def test_names_that_cannot_be_given(names: str) -> None:
    result = _renamed(names)
    assert REFUSED_NAMES[names] in result.report.failures[0]
    assert not result.model.changed


def test_a_name_by_which_a_shape_was_told_stays() -> None:
    result = _renamed("{x: image}", shape={"x": [2, 4]})
    assert "was told by that name" in result.report.failures[0]
