"""The recipe `contrib`: what onnxruntime-genai and Olive write for language models.

onnxruntime, whose operators they are, is the witness: it runs each model before and after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from language_cases import CASES
from onnx import helper
from onnxruntime_cases import Case, model_of

import surgeon
from surgeon.errors import SurgeonError
from surgeon.recipe import Recipe
from surgeon.runtime import Session, release

RECIPE = Recipe.load("contrib")
NEWEST = (1, 32)  # the onnxruntime that has a kernel for every case
OPSETS = (21, *(pytest.param(opset, marks=pytest.mark.slow) for opset in (13, 17, 24)))


def truth(proto: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What onnxruntime computes; an older one lacks some operators, or some of their forms."""
    try:
        return Session(proto).run(dict(feeds))
    except SurgeonError:
        if tuple(map(int, release().split(".")[:2])) >= NEWEST:
            raise
        pytest.skip("this onnxruntime does not run it")


def with_types(proto: onnx.ModelProto, found: Mapping[str, np.ndarray], *, loose: bool) -> None:
    """Say the outputs' types; where `loose`, every size of inputs and outputs has a name."""
    for output in proto.graph.output:
        value = found[output.name]
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        sizes = [f"{output.name}_{i}" for i in range(value.ndim)] if loose else value.shape
        output.CopyFrom(helper.make_tensor_value_info(output.name, kind, sizes))


def standard(proto: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    """The model in standard operators."""
    result = surgeon.apply(proto, RECIPE, **options)
    assert result.model.changed, result.report.misses
    out = result.model.to_proto()
    assert {node.domain for node in out.graph.node} == {""}
    onnx.checker.check_model(out, full_check=True)
    return out


def compare(case: Case, proto: onnx.ModelProto, wanted: Mapping[str, np.ndarray]) -> None:
    found = Session(proto).run(dict(case.inputs))
    assert found.keys() == wanted.keys()
    for name, value in found.items():
        assert value.dtype == wanted[name].dtype
        np.testing.assert_allclose(value, wanted[name], rtol=1e-4, atol=case.tolerance)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", CASES)
def test_standard_operators_compute_the_same(name: str, opset: int) -> None:
    case = CASES[name]
    if opset < case.since:
        pytest.skip(f"needs opset {case.since}")
    proto = model_of(case, opset)
    wanted = truth(proto, case.inputs)
    with_types(proto, wanted, loose=False)
    out = standard(proto)
    compare(case, out, wanted)
    assert not surgeon.apply(out, RECIPE).model.changed


@pytest.mark.parametrize("name", CASES)
def test_so_they_do_where_the_sizes_of_what_is_fed_are_not_known(name: str) -> None:
    """Batches and lengths have names; how wide a head, and how many experts, is known."""
    case = CASES[name]
    proto = model_of(case, max(case.since, 17))
    wanted = truth(proto, case.inputs)
    with_types(proto, wanted, loose=True)
    for given in proto.graph.input:
        for axis, dim in enumerate(given.type.tensor_type.shape.dim):
            if axis in case.dynamic.get(given.name, ()):
                dim.dim_param = f"{given.name}_{axis}"
    compare(case, standard(proto), wanted)
