"""The recipe `contrib`: what onnxruntime-genai and Olive write for language models.

onnxruntime, whose operators they are, is the witness: it runs each model before and after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from expert_cases import CASES as MIXTURES
from expert_cases import ROUNDED, WRONG_BEFORE
from language_cases import CASES as LAYERS
from onnx import helper, numpy_helper
from onnxruntime_cases import Case, model_of, normal

import surgeon
from surgeon.errors import SurgeonError
from surgeon.recipe import Recipe
from surgeon.runtime import Session, release

RECIPE = Recipe.load("contrib")
CASES = {**LAYERS, **MIXTURES}
NEWEST = (1, 32)  # the onnxruntime that has a kernel for every case
NAMES = [  # every fourth of them is enough while one works
    pytest.param(name, marks=[pytest.mark.slow] if place % 4 else [])
    for place, name in enumerate(CASES)
]
OPSETS = (21, *(pytest.param(opset, marks=pytest.mark.slow) for opset in (13, 17, 24)))


def is_older() -> bool:
    return tuple(map(int, release().split(".")[:2])) < NEWEST


def truth(proto: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """What onnxruntime computes; an older one lacks some operators, or some of their forms."""
    try:
        return Session(proto).run(dict(feeds))
    except SurgeonError:
        if not is_older():
            raise
        pytest.skip("this onnxruntime does not run it")


def needs_right_kernel(name: str) -> None:
    if name in WRONG_BEFORE and is_older():
        pytest.skip("this onnxruntime computes it wrongly")


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
@pytest.mark.parametrize("name", NAMES)
def test_standard_operators_compute_the_same(name: str, opset: int) -> None:
    needs_right_kernel(name)
    case = CASES[name]
    if opset < case.since:
        pytest.skip(f"needs opset {case.since}")
    proto = model_of(case, opset)
    wanted = truth(proto, case.inputs)
    with_types(proto, wanted, loose=False)
    out = standard(proto)
    compare(case, out, wanted)
    assert not surgeon.apply(out, RECIPE).model.changed


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.dynamic])
def test_so_they_do_where_the_sizes_of_what_is_fed_are_not_known(name: str) -> None:
    """Batches and lengths have names; how wide a head is, and how many experts, is known."""
    needs_right_kernel(name)
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


def test_a_few_tokens_take_no_scan_where_they_are_unrolled() -> None:
    widths = {"q": 8, "k0": 8, "v": 6, "g0": 2, "b0": 2}
    shape: dict[str, list[int | str]] = {name: ["B", 4, width] for name, width in widths.items()}
    proto = onnx.parser.parse_model(LAYER)
    out = surgeon.apply(proto, RECIPE, "unroll", shape=shape).model.to_proto()
    assert not {"Scan", "Loop"} & {node.op_type for node in out.graph.node}
    wanted = truth(proto, feeds := fed(4))
    for name, value in Session(out).run(feeds).items():
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


@pytest.mark.parametrize("name", ROUNDED)
def test_what_its_kernel_rounds_is_near(name: str) -> None:
    case = ROUNDED[name]
    proto = model_of(case, 21)
    wanted = truth(proto, case.inputs)["y0"]
    with_types(proto, {"y0": wanted}, loose=False)
    result = surgeon.apply(proto, RECIPE)
    assert not result.model.changed
    assert "rounds what it multiplies" in result.report.misses[0].reason
    found = Session(standard(proto, allow=["approximate"])).run(dict(case.inputs))["y0"]
    assert np.abs(found - wanted).max() <= 0.15 * wanted.std()


def mixture_of(x: np.ndarray, r: np.ndarray, held: Mapping[str, np.ndarray], each: Any) -> Any:
    """Each token by its two experts of the largest shares, as the documentation has it."""
    shares = np.exp(r) / np.exp(r).sum(-1, keepdims=True)
    found = np.zeros_like(x)
    for row, line in enumerate(x):
        for expert in np.argsort(-r[row])[:2]:
            inner = each({name: array[expert] for name, array in held.items()}, line)
            found[row] += shares[row, expert] * (held["w2"][expert] @ inner)
    return found


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


ON_CUDA = {  # which onnxruntime runs on CUDA alone: as its documentation says
    "relu2": (1, {}, lambda h, x: np.maximum(h["w1"] @ x, 0) ** 2),
    "silu": (3, {}, lambda h, x: silu(h["w1"] @ x) * (h["w3"] @ x)),
    "swiglu": (3, {}, lambda h, x: silu(h["w1"] @ x) * (h["w3"] @ x)),
    "swiglu of halves": (
        2, {"swiglu_fusion": 2}, lambda h, x: silu(h["w1"][:6] @ x) * (h["w1"][6:] @ x),
    ),
    "geglu in turn": (
        2, {"swiglu_fusion": 1}, lambda h, x: gelu(h["w1"][::2] @ x) * (h["w1"][1::2] @ x),
    ),
    "geglu": (2, {"swiglu_fusion": 2}, lambda h, x: gelu(h["w1"][:6] @ x) * (h["w1"][6:] @ x)),
}  # fmt: skip


@pytest.mark.parametrize("name", ON_CUDA)
def test_experts_of_forms_that_only_cuda_runs(name: str) -> None:
    layers, attributes, each = ON_CUDA[name]
    held = {"w1": normal(4, 6 * (1 + (layers == 2)), 8), "w2": normal(4, 8, 6)}
    held |= {"w3": normal(4, 6, 8)} if layers == 3 else {}
    order = ["x", "r", "w1", "", "w2", *(["", "w3"] if layers == 3 else [])]
    fed = {"x": normal(7, 8), "r": normal(7, 4)}
    attributes = {"k": 2, "activation_type": name.split()[0], **attributes}
    proto = model_of(Case("MoE", fed, held, order, attributes), 17)
    wanted = mixture_of(fed["x"], fed["r"], held, each)
    with_types(proto, {"y0": wanted}, loose=False)
    found = Session(standard(proto)).run(fed)["y0"]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_an_expert_that_is_not_chosen_may_be_infinite() -> None:
    case = CASES["experts, one is chosen"]
    held = {name: array.copy() for name, array in case.weights.items()}
    held["w1"][3] = np.inf
    scores = case.inputs["r"].copy()
    scores[:, 3] = -9
    case = case._replace(weights=held, inputs={**case.inputs, "r": scores})
    proto = model_of(case, 17)
    wanted = truth(proto, case.inputs)
    assert np.isfinite(wanted["y0"]).all()
    with_types(proto, wanted, loose=False)
    compare(case, standard(proto, verify=False), wanted)


OPERATORS = sorted({case.op for case in CASES.values()})


@pytest.mark.parametrize("op", OPERATORS)
def test_an_attribute_of_tomorrow_is_refused(op: str) -> None:
    case = next(case for case in CASES.values() if case.op == op)
    proto = model_of(case._replace(attributes={**case.attributes, "of_tomorrow": 1}), 21)
    result = surgeon.apply(proto, RECIPE, allow=["approximate"], verify=False)
    assert not result.model.changed
    reasons = {miss.reason for miss in result.report.misses}
    assert reasons == {"nothing is written for its `of_tomorrow`, which is 1"}


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("halves")])
def test_what_is_of_bfloat16_is_of_types_that_its_opset_has(name: str) -> None:
    """Which onnxruntime runs on other devices than CPUs alone."""
    case = CASES[name]
    if case.op in ("QMoE", "GatherPacked", "MoEGroupRouter"):
        pytest.skip("what it gives is of a type that an attribute says")

    def other(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        kept = {name: array.dtype != np.float16 for name, array in arrays.items()}
        return {k: v if kept[k] else v.astype(ml_dtypes.bfloat16) for k, v in arrays.items()}

    wanted = truth(model_of(case, 21), case.inputs)
    proto = model_of(case._replace(inputs=other(case.inputs), weights=other(case.weights)), 13)
    with_types(proto, other(wanted), loose=True)
    standard(proto, verify=False)


DECODER = """
    <ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
    g (float[B,T,8] q, float[B,T,8] k, float[B,T,12] v, float[B,4,4,3] s, float[B,T,4] a,
       float[B,T,4] b, float[B,T,12] z, float[B,12,3] past)
      => (float[B,T,12] y, float[B,4,4,3] n, float[B,12,3] present)
      <int64[4] heads = {0, 0, 2, 4}, int64[3] back = {0, 0, 8}, int64[2] flat = {-1, 12}> {
      turned = Transpose <perm = [0, 2, 1]> (v)
      c, present = com.microsoft.CausalConvWithState <activation = "silu"> (turned, w, , past)
      value = Transpose <perm = [0, 2, 1]> (c)
      q1 = Reshape (q, heads)
      q2 = LpNormalization (q1)
      query = Reshape (q2, back)
      k1 = Reshape (k, heads)
      k2 = LpNormalization (k1)
      key = Reshape (k2, back)
      g, rate = com.microsoft.LinearAttentionGate (a, bias, scale, b)
      o, n = com.microsoft.LinearAttention <q_num_heads = 2, kv_num_heads = 4>
        (query, key, value, s, g, rate)
      u = com.microsoft.GatedRMSNorm (o, norm, z)
      f = Reshape (u, flat)
      r = MatMul (f, router)
      y = com.microsoft.MoE <k = 2, activation_type = "swiglu", swiglu_fusion = 1>
        (u, r, w1, , w2)
    }
"""


@pytest.mark.parametrize("length", [1, 9])
def test_a_layer_of_a_decoder_without_a_single_shape_in_between(length: int) -> None:
    """As of Qwen3-Next: what one operator gives, the next one has to know."""
    proto = onnx.parser.parse_model(DECODER)
    shapes = {"w": (12, 1, 4), "bias": (4,), "norm": (3,), "router": (12, 5)}
    shapes |= {"w1": (5, 14, 12), "w2": (5, 12, 7)}
    held = {name: normal(*shape) for name, shape in shapes.items()}
    held["scale"] = -np.abs(normal(4))
    proto.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in held.items())
    widths = {"q": 8, "k": 8, "v": 12, "a": 4, "b": 4, "z": 12}
    feeds = {name: normal(2, length, width) for name, width in widths.items()}
    feeds |= {"s": normal(2, 4, 4, 3), "past": normal(2, 12, 3)}
    wanted = truth(proto, feeds)
    for name, value in Session(standard(proto)).run(feeds).items():
        np.testing.assert_allclose(value, wanted[name], rtol=1e-4, atol=1e-5)
