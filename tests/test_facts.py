"""The strongest test of facts: each, evaluated, against what onnxruntime computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from chains import chains
from facts_case import Case
from facts_of_arithmetic import ARITHMETIC
from facts_of_attention import ATTENTION
from facts_of_bodies import BODIES
from facts_of_quantized import QUANTIZED
from facts_of_sizes import SIZES
from facts_of_views import VIEWS
from facts_of_windows import WINDOWS
from hypothesis import HealthCheck, given, reject, settings
from shares import some
from truth import fact_of, hold, infer, parse, points, symbols_of

from surgeon import dims
from surgeon.runtime import NotRunnable

CASES: dict[str, Case] = {
    **WINDOWS,
    **ARITHMETIC,
    **VIEWS,
    **SIZES,
    **QUANTIZED,
    **BODIES,
    **ATTENTION,
}


def variants() -> list[Any]:
    return [
        pytest.param(case, opset, id=f"{name}-{opset}")
        for name, case in CASES.items()
        for opset in case.opsets
    ]


@pytest.mark.parametrize(("case", "opset"), variants())
def test_every_fact_is_what_onnxruntime_computes(case: Case, opset: int) -> None:
    proto = case.proto(opset)
    sizes = list(case.at or points(symbols_of(proto)))
    held = hold(proto, sizes)
    assert held.wrong == []
    assert held.ran >= min(case.least, len(sizes))
    fact = fact_of(proto, "y")
    if case.shape is not None:
        assert fact.shape is not None
        assert str(list(fact.shape)) == case.shape
    if case.value is not None:
        assert fact.value is not None
        assert str(fact.value.tolist()) == case.value
    if case.frozen:
        for point in sizes[:3]:
            held = hold(fixed(proto, point), [{}])
            assert held.wrong == []


def fixed(proto: onnx.ModelProto, point: Mapping[str, int]) -> onnx.ModelProto:
    """The model with numbers for its dynamic dimensions."""
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    for value in out.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = point[dim.dim_param]
    return out


# -------------------------------------------------------------------------- onnx's own inference


@pytest.mark.parametrize(("case", "opset"), variants())
def test_onnx_says_nothing_else(case: Case, opset: int) -> None:
    if case is CASES["slice-no-axes"] and opset == 10:
        pytest.skip("onnx takes a Slice of opset 10 without axes for the whole operand")
    proto = case.proto(opset)
    inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    facts, tensors = infer(proto)
    for value in (*inferred.graph.value_info, *inferred.graph.output):
        fact, tensor = facts.of(tensors[value.name]), value.type.tensor_type
        if fact.dtype and tensor.elem_type:
            assert fact.dtype == tensor.elem_type
        if fact.shape is None or not tensor.HasField("shape"):
            continue
        assert len(fact.shape) == len(tensor.shape.dim), value.name
        for dim, theirs in zip(fact.shape, tensor.shape.dim, strict=True):
            if theirs.dim_value < 0:  # of an Expand to -1, say
                assert not isinstance(dim, int), value.name
            elif theirs.HasField("dim_value"):
                assert dims.equal(dim, theirs.dim_value) is not False, value.name
            elif theirs.dim_param in symbols_of(proto) and dims.symbols(dim) <= set(
                symbols_of(proto)
            ):
                assert str(dim) == theirs.dim_param, value.name


# ------------------------------------------------------------------------------- drawn at random

CHAIN_POINTS = tuple(
    dict(zip("bct", sizes, strict=True)) for sizes in ((5, 2, 3), (2, 4, 8), (3, 3, 7), (1, 6, 1))
)


def _hold_chain(proto: onnx.ModelProto) -> None:
    try:
        held = hold(proto, CHAIN_POINTS)
    except NotRunnable:
        reject()
    assert held.wrong == []


@pytest.mark.slow
@settings(max_examples=120, suppress_health_check=[HealthCheck.filter_too_much])
@given(chains())
def test_facts_of_graphs_drawn_at_random(proto: onnx.ModelProto) -> None:
    _hold_chain(proto)


@pytest.mark.slow
@settings(max_examples=some(400, of=1000), suppress_health_check=[HealthCheck.filter_too_much])
@given(chains(most=14))
def test_facts_of_many_graphs_drawn_at_random(proto: onnx.ModelProto) -> None:
    _hold_chain(proto)


def test_the_sign_of_a_remainder_is_that_of_its_own_divisors() -> None:
    many = 2000  # of which no values are kept: constants of one shape have one fact
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]>'
        f"g (int64[{many}] x) => (int64[{many}] y, int64[{many}] z) "
        "{ y = Mod (x, more) z = Mod (x, less) }"
    )
    for name, number in (("more", 3), ("less", -3)):
        array = np.full(many, number, np.int64)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    assert not fact_of(proto, "z").not_negative


@pytest.mark.parametrize(("factor", "known"), [(1 << 10, True), (1 << 20, False)])
def test_a_cast_may_leave_its_type_at_sizes_that_tensors_have(factor: int, known: bool) -> None:
    text = (
        f"g (float[n] x) => (int32[1] y) <int64[1] k = {{{factor}}}> "
        "{ s = Shape (x) m = Mul (s, k) y = Cast <to = 6> (m) }"
    )
    assert (fact_of(parse(text), "y").value is not None) == known


@pytest.mark.parametrize(
    ("attributes", "known"),
    [
        ("kernel_shape = [3], pads = [1, 1]", True),
        ('kernel_shape = [3], auto_pad = "SAME_UPPER"', True),
        ("kernel_shape = [2], dilations = [3]", True),
        ("kernel_shape = [2], dilations = [3], pads = [1, 1]", False),
        ('kernel_shape = [2], dilations = [3], auto_pad = "SAME_UPPER"', False),
        ("kernel_shape = [1], strides = [3], ceil_mode = 1", False),
    ],
)
def test_a_window_of_pads_alone_is_the_least_number(attributes: str, known: bool) -> None:
    proto = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[1,1,n] x) => (float[1,1,m] y) {{
            r = Relu (x)
            y = MaxPool <{attributes}> (r)
        }}"""
    )
    assert fact_of(proto, "y").not_negative is known
