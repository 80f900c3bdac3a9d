"""Random writes at constant places: what `scatter-forms` makes of them, held against numpy."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import surgeon
from surgeon.runtime import Session

TRIES = 60
COMBINE = {"none": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def random_places(pick: random.Random, sizes: list[int]) -> Any:
    """Places of a box or of a grid, sometimes shuffled, one left out, or counted from behind."""
    lines = []
    for size in sizes:
        low = pick.randrange(size)
        lines.append(range(low, pick.randint(low + 1, size), pick.choice([1, 1, 1, 2])))
    places = list(product(*lines))
    if pick.random() < 0.3:
        pick.shuffle(places)
    if pick.random() < 0.2 and len(places) > 1:
        places.pop()
    back = [size if pick.random() < 0.2 else 0 for size in sizes]
    return np.asarray(places, np.int64) - np.asarray(back)


def scatter_nd(
    shape: list[int | str], places: Any, updates: Any, reduction: str
) -> onnx.ModelProto:
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction=reduction)
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("u", TensorProto.FLOAT, updates.shape),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "g", inputs, outputs, [numpy_helper.from_array(places, "i")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_what_is_written_at_constant_places_is_what_numpy_writes() -> None:
    pick, draw = random.Random(11), np.random.default_rng(11)
    fired: Counter[str] = Counter()
    for _ in range(TRIES):
        sizes = [pick.randint(1, 5) for _ in range(pick.randint(1, 4))]
        depth = pick.randint(1, len(sizes))
        places = random_places(pick, sizes[:depth])
        reduction = pick.choice(["none", *COMBINE])
        x = draw.normal(size=sizes).astype(np.float32)
        u = draw.normal(size=(len(places), *sizes[depth:])).astype(np.float32)
        declared = [f"d{i}" if pick.random() < 0.2 else n for i, n in enumerate(sizes)]
        result = surgeon.apply(
            scatter_nd(declared, places, u, reduction), "scatter-forms", verify=False
        )
        if not result.report.changes:
            assert any(isinstance(d, str) for d in declared[:depth]), result.report.misses
            continue
        fired.update(change.rule for change in result.report.changes)
        expected, combine = x.copy(), COMBINE[reduction]
        for place, line in zip(places, u, strict=True):
            at = tuple(int(n) for n in place)
            expected[at] = line if combine is None else combine(x[at], line)
        got = Session(result.model.to_proto()).run({"x": x, "u": u})["y"]
        assert np.array_equal(got, expected), f"{declared} {places.tolist()} {reduction}"
    assert fired.keys() == {"scatter-box", "scatter-grid"}


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_elements_go_where_numpy_puts_them(axis: int, count: int) -> None:
    draw = np.random.default_rng(count)
    x = draw.normal(size=(3, 4, 5)).astype(np.float32)
    places = draw.random(x.shape).argsort(axis).take(range(count), axis)
    u = draw.normal(size=places.shape).astype(np.float32)
    model = scatter_nd([*x.shape], places, u, "none")
    node = model.graph.node[0]
    node.op_type = "ScatterElements"
    node.attribute.append(helper.make_attribute("axis", axis))
    result = surgeon.apply(model, "scatter-forms")
    assert [change.rule for change in result.report.changes] == ["scatter-elements"]
    expected = x.copy()
    np.put_along_axis(expected, places, u, axis)
    got = Session(result.model.to_proto()).run({"x": x, "u": u})["y"]
    assert np.array_equal(got, expected)


MESH = """
<ir_version: 8, opset_import: ["": 13]>
g (float[n,4] x, float[n,2] u) => (float[n,4] y)
  <int64 zero = {0}, int64 unit = {1}, int64[2] column = {-1, 1}, int64[1,2] places = {1, 2},
   int64[1] behind = {-1}> {
  s = Shape (x)
  l = Gather <axis = 0> (s, zero)
  r = Range (zero, l, unit)
  rows = Reshape (r, column)
  a = Add (rows, places)
  t = Shape (a)
  b = Expand (rows, t)
  c = Unsqueeze (b, behind)
  d = Expand (places, t)
  e = Unsqueeze (d, behind)
  i = Concat <axis = -1> (c, e)
  z = Exp (x)
  y = ScatterND (z, i, u)
}
"""


def test_the_check_of_a_mesh_holds_how_its_indices_are_made() -> None:
    """The replacement reads neither the indices nor what they are made of."""
    result = surgeon.apply(onnx.parser.parse_model(MESH), "scatter-forms")
    assert [change.rule for change in result.report.changes] == ["scatter-mesh"]
    assert result.report.pieces == {"compared": 1}
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
