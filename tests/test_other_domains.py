"""Operators of another domain that are called as ONNX's are: no rule takes one for the other.

In the graphs of the cases each node in turn becomes a function of a domain of its own, under the
name that it had, which gives the square of what the node gave, or the opposite of a condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import surgeon
from surgeon.cases.reading import read_cases
from surgeon.errors import SurgeonError
from surgeon.runtime import Session

RECIPES = Path(__file__).parent.parent / "recipes"
OF_CLEAN = [
    "no-ops", "pads-fold", "shape-chains", "batch-norm", "linear-fuse", "layer-norm-fuse",
    "rms-norm-fuse", "gelu-fuse", "activations-fuse", "merge-siblings", "affine",
]  # fmt: skip
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)
SIZE = 4


def twins(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    """The model with one node after another as that of another domain."""
    known = onnx.shape_inference.infer_shapes(model).graph
    types = {v.name: v for v in (*known.value_info, *known.output)}
    opset = next(o.version for o in model.opset_import if not o.domain)
    for place, node in enumerate(model.graph.node):
        made = [types[name].type.tensor_type.elem_type for name in node.output if name in types]
        if node.domain or len(made) != 1 or len(node.output) != 1 or node.op_type == "Constant":
            continue
        if made[0] not in (*FLOATS, TensorProto.BOOL):
            continue
        operands = [f"x{index}" if name else "" for index, name in enumerate(node.input)]
        inner = helper.make_node(node.op_type, operands, ["plain"])
        inner.attribute.extend(node.attribute)
        other = (
            helper.make_node("Mul", ["plain", "plain"], ["y"])
            if made[0] in FLOATS
            else helper.make_node("Not", ["plain"], ["y"])
        )
        twin = onnx.ModelProto()
        twin.CopyFrom(model)
        twin.ir_version = max(twin.ir_version, 8)
        twin.graph.node[place].domain = "my"
        del twin.graph.node[place].attribute[:]
        twin.opset_import.append(helper.make_opsetid("my", 1))
        named = [name for name in operands if name]
        if len(named) < len(operands):
            continue
        domain, opsets = "my", [helper.make_opsetid("", opset)]
        twin.functions.append(
            helper.make_function(domain, node.op_type, named, ["y"], [inner, other], opsets)
        )
        if node.output[0] in {v.name for v in known.value_info}:
            twin.graph.value_info.append(types[node.output[0]])
        yield twin


def feeds_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Drawn inputs; every dynamic size is the same."""
    drawn = np.random.default_rng(1)
    given = {tensor.name for tensor in model.graph.initializer}
    feeds = {}
    for value in model.graph.input:
        if value.name in given:
            continue
        kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = [dim.dim_value or SIZE for dim in value.type.tensor_type.shape.dim]
        feeds[value.name] = np.asarray(drawn.normal(0, 2, shape)).astype(kind)
    return feeds


def wrong(recipe: str, before: onnx.ModelProto) -> bool | None:
    """Whether a recipe, unchecked, gives another result; None where nothing can be compared."""
    try:
        expected = Session(before).run(feeds_of(before))
    except Exception:  # of sizes that do not go together
        return None
    result = surgeon.apply(
        before, recipe, allow=["approximate", "contract"], check=False, verify=False
    )
    if not result.report.changes:
        return False
    found = Session(result.model.to_proto()).run(feeds_of(before))
    return not all(
        np.allclose(expected[name], found[name], 1e-2, 1e-3, equal_nan=True) for name in expected
    )


def _misses(recipe: str) -> tuple[int, list[str]]:
    """How many twins of the cases of a recipe were compared, and those that came out wrong."""
    path, count, found = RECIPES / f"{recipe}.cases.yaml", 0, []
    rules = [rule.id for rule in surgeon.Recipe.load(recipe).rules]
    for case in read_cases(path, rules):
        if not case.fires:
            continue
        try:
            model = case.before.model(case.values, None)
            for twin in twins(model):
                verdict = wrong(recipe, twin)
                count += verdict is not None
                if verdict:
                    found.append(f"{case.title}: {twin.functions[0].name}")
        except SurgeonError:
            continue
    return count, found


@pytest.mark.parametrize("recipe", [pytest.param("no-ops", marks=pytest.mark.slow), *OF_CLEAN[1:]])
def test_what_another_domain_has_under_the_same_name_is_left(recipe: str) -> None:
    count, found = _misses(recipe)
    assert count
    assert not found
