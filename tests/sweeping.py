"""Recipes of one rule or step, and what holds of a model that they were applied to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from truth import draw

from surgeon.recipe import Recipe
from surgeon.runtime import Session
from surgeon.surgery import Result

F32 = np.float32
DOUBLE_NEG = """
surgeon: 1
name: signs
rules:
  - id: double-neg
    why: Two changes of sign are none.
    exact: bit
    match: |
      a = Neg (x)
      y = Neg (a)
    replace: y = Identity (x)
"""
SIGNS = Recipe.parse(DOUBLE_NEG)
FOLD = Recipe.parse("surgeon: 1\nname: folding\nsteps:\n  - fold:\n")


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


def same(
    proto: onnx.ModelProto, result: Result, points: Sequence[dict[str, int]] = ({"n": 3}, {"n": 1})
) -> onnx.ModelProto:
    """The result, which must compute the same."""
    out = result.model.to_proto()
    onnx.checker.check_model(out, full_check=True)
    for index, point in enumerate(points):
        feeds = draw(proto, point, seed=index)
        wanted, found = Session(proto).run(feeds), Session(out).run(feeds)
        for name, value in wanted.items():
            np.testing.assert_array_equal(found[name], value)
    assert [v.name for v in out.graph.input] == [v.name for v in proto.graph.input]
    assert [v.name for v in out.graph.output] == [v.name for v in proto.graph.output]
    return out


def ops(graph: Any) -> list[str]:
    return [node.op_type for node in graph.node]
