"""Lowered operators against the witness, and against PyTorch where it is installed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from aten_call import HAS_TORCH, call, check, check_all, defined, lowered, model_of
from aten_operands import BOOLS, BYTES, EDGED, EDGES, INF, INTS, UNIT, X, Y, floats, integers

import surgeon
from surgeon.builders.aten_math import FUNCTIONS
from surgeon.reference.operators.table import OPERATORS

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

_PAIRS = (
    "add sub mul div maximum minimum eq ne lt le gt ge remainder fmod floor_divide fmax fmin hypot"
).split()
_OPERANDS = (
    floats("f4", 3, 4),
    floats("f4", 4, seed=1),
    np.array(2.5, np.float32),
    integers("i8", 3, 4),
    integers("i4", 4),
    integers("u1", 4),
    integers("b1", 4),
    integers("i1", 4),
    floats("f8", 4),
    floats("f2", 4),
    2,
    1.5,
)


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch says which pairs are defined")
@pytest.mark.parametrize("operator", _PAIRS)
def test_promotion_of_every_pair(operator: str) -> None:
    calls = []
    for number, a in enumerate(_OPERANDS[:10]):
        for b in _OPERANDS[number % 2 :: 2]:
            if operator in ("remainder", "fmod", "floor_divide") and isinstance(b, np.ndarray):
                b = np.where(b == 0, np.ones((), b.dtype), b)
            if defined(operator, a, b):
                calls.append(call(operator, a, b, tolerance=1e-2))
    check_all(calls)


@pytest.mark.parametrize(
    "operator",
    """exp log sqrt sin cos tan asin acos atan sinh cosh asinh acosh atanh tanh sigmoid erf
    reciprocal floor ceil round trunc frac abs neg square expm1 log1p log2 log10 exp2 rsqrt erfc
    deg2rad rad2deg isnan isinf isfinite isposinf isneginf signbit relu relu6 selu silu mish
    log_sigmoid hardsigmoid hardswish hardtanh elu leaky_relu celu softplus softshrink hardshrink
    nan_to_num logical_not clone""".split(),
)
def test_functions_at_their_edges(operator: str) -> None:
    edges = np.array(EDGES, np.float32)
    small = np.array([0.3, -0.7, 0.001, 0.9, -0.2, 0.5])
    calls = [call(operator, edges), call(operator, small.astype("f2"), tolerance=1e-2)]
    without_double = {"asin", "acos", "atan", "erf", "erfc"}
    if operator not in without_double:
        calls.append(call(operator, small))
    check_all(calls)


def test_acosh_of_what_is_far_below_one_is_no_number() -> None:
    """In double precision its logarithm is written out, and once was that of 0."""
    x = np.array([-1e10, -1e200, 0.5, 1, 1 + 1e-9, 1e200])
    (found,) = lowered(*model_of("acosh", (x,), opset=13))
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, np.arccosh(x), rtol=1e-11)


def test_logarithms_next_to_one_keep_their_digits() -> None:
    small = (10.0 ** np.arange(-12, 1)).astype(np.float32)
    x = np.concatenate([small, -small, np.array([0.0, -0.0, 3e38], np.float32)])
    for operator, arguments in (("log1p", (x,)), ("special_xlog1py", (np.full_like(x, 2), x))):
        for opset in (9, 13):
            (found,) = lowered(*model_of(operator, arguments, opset=opset))
            with np.errstate(divide="ignore"):
                wanted = np.log1p(x.astype(np.float64)) * (len(arguments))
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_functions_of_integers() -> None:
    names = "exp sqrt sin floor round trunc sign abs square isnan isfinite relu logical_not".split()
    dtypes = ("i8", "i4", "i1", "u1")
    check_all([call(f, integers(d, 5)) for f in names for d in dtypes])
    check_all([call(f, integers(d, 5)) for f in ("bitwise_not", "neg") for d in dtypes])


@pytest.mark.parametrize(
    "operator", "atan2 copysign hypot logaddexp logaddexp2 fmax fmin maximum minimum".split()
)
def test_pairs_of_edges(operator: str) -> None:
    edges = np.array(EDGES, np.float32)
    a, b = np.repeat(edges, len(edges)), np.tile(edges, len(edges))
    for opset in (9, 13, 20):
        check(operator, a, b, opset=opset, tolerance=1e-4)


@pytest.mark.parametrize("operator", "heaviside eq le ne xlogy remainder fmod floor_divide".split())
def test_more_pairs_of_edges(operator: str) -> None:
    edges = np.array(EDGES, np.float32)
    a, b = np.repeat(edges, len(edges)), np.tile(edges, len(edges))
    for opset in (9, 13, 20):
        check(operator, a, b, opset=opset, tolerance=1e-4)


def test_choices_and_limits() -> None:
    limits = ((0, 1), (None, 0.5), (-0.5, None), (1, -1), (-1.5, 1.5))
    check_all([call("clamp", x, *pair) for pair in limits for x in (X, EDGED, INTS, BYTES)])
    check_all(
        [
            call("clamp", X, floats("f4", 4), floats("f4", 3, 1) + 2, overload="Tensor"),
            call("clamp_min", X, 0.5),
            call("clamp_max", INTS, 2),
            call("where", BOOLS, X, INTS, overload="self"),
            call("where", BOOLS, X, np.array(2.0, np.float32), overload="self"),
            call("where", BOOLS, INTS, 2.5, overload="ScalarOther"),
            call("where", BOOLS, 1.5, X, overload="ScalarSelf"),
            call("where", BOOLS, BYTES, BYTES, overload="self"),
            call("where", BOOLS, BOOLS, BOOLS, overload="self"),
            call("masked_fill", X, BOOLS, -INF),
            call("masked_fill", INTS, BOOLS, 2),
            call("masked_fill", X, BOOLS, np.array(1.0, np.float32)),
            call("isclose", EDGED, Y, 1e-1, 0.5, False),
            call("isclose", EDGED, EDGED, 1e-5, 1e-8, True),
            call("isclose", INTS, INTS[::-1].copy(), 1e-5, 1.5, False),
        ]
    )


def test_bits() -> None:
    generator = np.random.default_rng(1)
    large = generator.integers(-(2**63), 2**63 - 1, 40)
    calls = []
    for name in "bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__".split():
        for a in (BOOLS, large, large.astype("i4"), large.astype("i1"), large.astype("u1")):
            calls.append(call(name, a, a[::-1].copy(), least=0 if a is BOOLS else 10))
    for name in ("__lshift__", "__rshift__", "bitwise_left_shift", "bitwise_right_shift"):
        calls += [call(name, INTS, 2), call(name, integers("u1", 5), 1)]
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        calls.append(call(name, INTS, np.abs(INTS), overload="Tensor"))
    for name in ("logical_and", "logical_or", "logical_xor"):
        calls += [call(name, x, x[::-1].copy()) for x in (BOOLS, INTS, EDGED)]
    check_all(calls)


def test_quotients_powers_and_scaled_sums() -> None:
    divisor = np.where(INTS == 0, 3, INTS)[::-1].copy()
    operands = (
        (X, Y),
        (INTS, divisor),
        (INTS, 3),
        (INTS, -3),
        (X, 0.7),
        (integers("i1", 9), np.array(-2, np.int8)),
        (INTS, 2.5),
    )
    calls = [
        call("div", a, b, m, overload="Tensor_mode" if isinstance(b, np.ndarray) else "Scalar_mode")
        for m in ("floor", "trunc", None)
        for a, b in operands
    ]
    calls += [call("pow", np.abs(X) + 1, e, tolerance=1e-4) for e in (2, 3, 0.5, 1, 2.5, -1, 0)]
    calls += [
        call("pow", INTS, 2),
        call("pow", INTS, 2.5),
        *(call("pow", INTS, e) for e in (0, 3, 7, 64)),
        *(call("pow", x, np.abs(INTS)) for x in (INTS, INTS[:, :1] + 1)),
        call("pow", INTS % 3 - 1, INTS),
        call("pow", 2, np.abs(INTS) * 9, overload="Scalar"),
        call("pow", -3, BYTES, overload="Scalar"),
        call("pow", BYTES, BYTES),
        call("pow", 2, X, overload="Scalar"),
        call("pow", UNIT, Y, tolerance=1e-4),
        call("float_power", UNIT, Y, overload="Tensor_Tensor", tolerance=1e-5),
        call("float_power", INTS, 2, overload="Tensor_Scalar"),
        call("add", X, Y, 2.5),
        call("sub", INTS, INTS, 3),
        call("sub", BYTES, BYTES[::-1].copy(), 1),
        call("rsub", X, 2, 3),
        call("rsub", X, Y, overload="Tensor"),
        call("add", BOOLS, BOOLS),
        call("lerp", X, Y, 0.3),
        call("lerp", X, Y, UNIT, overload="Tensor"),
        call("addcmul", X, Y, UNIT, 0.5),
        call("addcdiv", X, Y, UNIT, 2, tolerance=1e-4),
        call("addcmul", INTS, INTS, INTS, 3),
        call("round", X, 2, overload="decimals"),
        call("nansum", EDGED, [1], False),
        call("sinc", UNIT),
    ]
    check_all(calls)


def test_signs_of_zeros_are_copied() -> None:
    a, b = (np.array(x, np.float32) for x in ([0.0, -0.0, 0.0, -0.0], [-1.0, 2.0, -0.0, 0.0]))
    model, feeds = model_of("copysign", [a, b])
    (found,) = lowered(model, feeds)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(b))
    result = surgeon.apply(model, "aten-math")  # to the last bit, as the check holds it to
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


def test_conversions() -> None:
    dtypes = (np.float64, np.int64, np.float16, np.bool_, np.uint8, np.int32)
    check_all(
        [call("to", np.abs(X), d, False, False, None, overload="dtype") for d in dtypes]
        + [call("type_as", X, INTS), call("to", X, X.astype("f8"), overload="other")]
        + [call("dropout", X, 0.5, False)]
    )


@pytest.mark.parametrize("operator", sorted(FUNCTIONS))
def test_every_operator_has_a_witness(operator: str) -> None:
    assert operator in OPERATORS


@pytest.mark.parametrize("opset", [11, 12, 17])
@pytest.mark.parametrize("operator", ["fmax", "fmin", "hypot"])
def test_what_is_no_number_is_compared(operator: str, opset: int) -> None:
    """Many runtimes have neither IsNaN nor IsInf, and fewer nodes say the same."""
    edges = np.array(EDGES, np.float32)
    a, b = (np.ascontiguousarray(t) for t in np.meshgrid(edges, edges))
    model, feeds = model_of(operator, [a, b], opset=opset)
    (found,) = lowered(model, feeds)
    np.testing.assert_allclose(found, getattr(np, operator)(a, b), rtol=1e-6)
    saved = surgeon.apply(model, "aten-math", verify=False).model.to_proto()
    asked = {node.op_type for node in saved.graph.node} & {"IsNaN", "IsInf"}
    assert not asked or (opset < 12 and operator != "hypot")


def test_a_threshold_asks_for_no_nan_from_opset_11_on() -> None:
    edges = np.array(EDGES, np.float32)
    for opset in (9, 11, 12):
        model, feeds = model_of("threshold", [edges, 0.5, 7.0], opset=opset)
        (found,) = lowered(model, feeds)
        np.testing.assert_array_equal(found, np.where(edges <= 0.5, np.float32(7), edges))
        saved = surgeon.apply(model, "aten-math", verify=False).model.to_proto()
        assert ("IsNaN" in [node.op_type for node in saved.graph.node]) == (opset == 9)


def test_what_is_counted_is_compared_with_none() -> None:
    """Runtimes hold a Cast to booleans as the number, and what Not makes of it is wrong."""
    calls = [("all", [BOOLS]), ("any", [BOOLS, [0]]), ("isin", [INTS, INTS[:1]]), ("equal", [X, Y])]
    for operator, arguments in calls:
        model, feeds = model_of(operator, arguments, opset=13)
        lowered(model, feeds)
        nodes = surgeon.apply(model, "aten-math", verify=False).model.to_proto().graph.node
        made = {name: node for node in nodes for name in node.output}
        casts = [
            n for n in nodes if n.op_type == "Cast" and n.attribute[0].i == onnx.TensorProto.BOOL
        ]
        assert all(n.input[0] not in made or made[n.input[0]].op_type != "ReduceSum" for n in casts)
        assert nodes[-1].op_type in ("Equal", "Less", "Greater")


def test_inverted_bits_of_numbers_are_a_difference() -> None:
    model, feeds = model_of("bitwise_not", [INTS], opset=18)
    (found,) = lowered(model, feeds)
    np.testing.assert_array_equal(found, ~INTS)
    saved = surgeon.apply(model, "aten-math", verify=False).model.to_proto()
    assert [node.op_type for node in saved.graph.node] == ["Sub"]
