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
from onnxruntime_cases import Case, model_of, normal

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


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.dynamic])
def test_so_they_do_where_the_sizes_of_what_is_fed_are_not_known(name: str) -> None:
    """Batches and lengths have names; how wide a head is, and how many experts, is known."""
    case = CASES[name]
    proto = model_of(case, max(case.since, 17))
    wanted = truth(proto, case.inputs)
    with_types(proto, wanted, loose=True)
    for given in proto.graph.input:
        for axis, dim in enumerate(given.type.tensor_type.shape.dim):
            if axis in case.dynamic.get(given.name, ()):
                dim.dim_param = f"{given.name}_{axis}"
    compare(case, standard(proto), wanted)


LAYER = """
    <ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
    g (float[B,T,8] q, float[B,T,8] k0, float[B,T,6] v, float[B,2,4,3] s, float[B,T,2] g0,
       float[B,T,2] b0)
      => (float[B,T,6] y, float[B,2,4,3] n) <float part = {0.3}> {
      k = Mul (k0, part)
      g1 = Softplus (g0)
      g = Neg (g1)
      b = Sigmoid (b0)
      y, n = com.microsoft.LinearAttention <q_num_heads = 2, kv_num_heads = 2> (q, k, v, s, g, b)
    }
"""


def fed(length: int) -> dict[str, np.ndarray]:
    shapes = {"q": 8, "k0": 8, "v": 6, "g0": 2, "b0": 2}
    return {
        **{name: normal(2, length, width) for name, width in shapes.items()},
        "s": normal(2, 2, 4, 3),
    }


@pytest.mark.parametrize("length", [1, 2, 300])
def test_linear_attention_takes_any_number_of_tokens(length: int) -> None:
    proto = onnx.parser.parse_model(LAYER)
    wanted = truth(proto, feeds := fed(length))
    for name, value in Session(standard(proto)).run(feeds).items():
        np.testing.assert_allclose(value, wanted[name], rtol=1e-4, atol=1e-5)


def test_linear_attention_in_two_parts_is_that_of_the_whole() -> None:
    out = Session(standard(onnx.parser.parse_model(LAYER)))
    whole = fed(7)
    first = {k: v if k == "s" else v[:, :4] for k, v in whole.items()}
    begun = out.run(first)
    rest = {k: begun["n"] if k == "s" else v[:, 4:] for k, v in whole.items()}
    ended, wanted = out.run(rest), out.run(whole)
    found = np.concatenate([begun["y"], ended["y"]], 1)
    np.testing.assert_allclose(found, wanted["y"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ended["n"], wanted["n"], rtol=1e-4, atol=1e-5)


def test_a_token_that_is_told_takes_no_scan_and_more_take_one() -> None:
    proto = onnx.parser.parse_model(LAYER)
    assert [n.op_type for n in standard(proto).graph.node].count("Scan") == 1
    one = standard(proto, shape={"q": ["B", 1, 8]})
    assert "Scan" not in {n.op_type for n in one.graph.node}
    wanted = truth(proto, feeds := fed(1))
    for name, value in Session(one).run(feeds).items():
        np.testing.assert_allclose(value, wanted[name], rtol=1e-4, atol=1e-5)


def test_inside_a_branch() -> None:
    proto = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
        g (float[B,T,8] q, bool c) => (float[B,T,8] y) {
          y = If (c) <
            then_branch = a () => (float[B,T,8] z) {
              t = Tanh (q)
              z, n = com.microsoft.LinearAttention
                <q_num_heads = 2, kv_num_heads = 2, update_rule = "linear"> (q, t, q)
            },
            else_branch = b () => (float[B,T,8] i) { i = Identity (q) }
          >
        }
        """
    )
    out = standard(proto)
    assert "LinearAttention" not in str(out.graph)
    for c in (True, False):
        feeds = {"q": normal(2, 5, 8), "c": np.array(c)}
        np.testing.assert_allclose(
            Session(out).run(feeds)["y"], truth(proto, feeds)["y"], rtol=1e-4, atol=1e-5
        )
