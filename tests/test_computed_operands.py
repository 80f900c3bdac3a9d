"""Computed operands of a replacement are put in the type of what stands beside them."""

import onnx.parser
import pytest

import surgeon
from surgeon.explaining import explain
from surgeon.recipe import Recipe

RECIPE = """\
surgeon: 1
name: r
rules:
  - id: r
    why: w
    exact: rounding
    match: y = Mul (x, c)
    where: [c.is_constant]
    let: {k: "%s"}
    replace: y = Sub (x, @k)
"""
GRAPH = """
<ir_version: 8, opset_import: ["": 17]>
g (KIND[n] x) => (KIND[n] y) <KIND c = {100}> { y = Mul (x, c) }"""


@pytest.mark.parametrize("kind", ["int8", "int32", "uint8", "int64", "uint64", "float", "double"])
def test_numbers_that_the_type_holds(kind: str) -> None:
    graph = onnx.parser.parse_model(GRAPH.replace("KIND", kind))
    for told in ("c.value + 20", "7"):
        result = surgeon.apply(graph, Recipe.parse(RECIPE % told), verify=False)
        assert result.report.changes
        onnx.checker.check_model(result.model.to_proto(), full_check=True)


@pytest.mark.parametrize(
    ("kind", "told", "reason"),
    [
        ("int8", "c.value * 3", "`@k` holds 300, and stands beside an operand of int8"),
        ("uint64", "c.value - 101", "`@k` holds -1, and stands beside an operand of uint64"),
        ("int32", "c.value / 3", "`@k` is computed as fractions, beside an operand of int32"),
    ],
)
def test_numbers_that_it_does_not_hold_are_named(kind: str, told: str, reason: str) -> None:
    graph = onnx.parser.parse_model(GRAPH.replace("KIND", kind))
    found = explain(graph, Recipe.parse(RECIPE % told))
    assert [miss.reason for miss in found.report.misses] == [reason]
