"""Lowered operators against the witness, and against PyTorch where it is installed."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import surgeon
from surgeon.builders.aten_math import FUNCTIONS
from surgeon.errors import SurgeonError
from surgeon.reference.executor import Reference
from surgeon.reference.operators import OPERATORS

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

HAS_TORCH = importlib.util.find_spec("torch") is not None
NAN, INF = math.nan, math.inf
_SCALAR_TYPES = {
    np.dtype(np.uint8): 0,
    np.dtype(np.int8): 1,
    np.dtype(np.int16): 2,
    np.dtype(np.int32): 3,
    np.dtype(np.int64): 4,
    np.dtype(np.float16): 5,
    np.dtype(np.float32): 6,
    np.dtype(np.float64): 7,
    np.dtype(np.bool_): 11,
}


def model_of(
    operator: str,
    arguments: Sequence[Any],
    *,
    overload: str = "",
    spelling: str = "A+",
    opset: int = 13,
    outputs: int = 1,
    dynamic: bool = False,
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A model of one ATen node: arrays are inputs, the rest constants as exporters write them."""
    names, inputs, initializers, feeds, nodes = [], [], [], {}, []
    for index, value in enumerate(arguments):
        name = f"x{index}"
        if value is None:
            names.append("")
            continue
        names.append(name)
        if isinstance(value, str):
            node = helper.make_node("Constant", [], [name])
            node.attribute.add(name="value", type=onnx.AttributeProto.STRING, s=value.encode())
            nodes.append(node)
        elif isinstance(value, np.ndarray):
            dims = [f"d{index}_{i}" if dynamic else n for i, n in enumerate(value.shape)]
            dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
            inputs.append(helper.make_tensor_value_info(name, dtype, dims))
            feeds[name] = value
        else:
            if isinstance(value, (type, np.dtype)):
                array = np.asarray(_SCALAR_TYPES[np.dtype(value)], np.int64)
            elif isinstance(value, bool):
                array = np.asarray(value)
            elif isinstance(value, float):
                array = np.asarray(value, np.float64)
            else:
                array = np.asarray(value, np.int64)
            initializers.append(numpy_helper.from_array(array, name))
    made = [f"y{i}" for i in range(outputs)]
    domain = "org.pytorch.aten"
    if spelling == "N":
        node = helper.make_node(operator, names, made, domain=domain)
    else:
        node = helper.make_node("ATen", names, made, domain=domain, operator=operator)
        if spelling == "A+":
            node.attribute.append(helper.make_attribute("overload_name", overload))
    graph = helper.make_graph(
        [*nodes, node],
        "g",
        inputs,
        [onnx.ValueInfoProto(name=n) for n in made],
        initializers,
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(domain, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), feeds


def lowered(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """The outputs of the repaired model in onnxruntime."""
    result = surgeon.apply(model, "aten-math", verify=False, allow=["approximate"])
    proto = result.model.to_proto()
    left = [n.op_type for n in proto.graph.node if n.domain]
    assert not left, f"left: {[miss.reason for miss in result.report.misses]}"
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    found: list[Any] = session.run(None, feeds)
    return found


def by_torch(operator: str, arguments: Sequence[Any], overload: str) -> list[Any]:
    """PyTorch's outputs; Python numbers go in as such."""
    import torch

    def into(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return torch.from_numpy(np.array(value))
        if isinstance(value, (type, np.dtype)):
            return getattr(torch, np.dtype(value).name)
        return value

    packet = getattr(torch.ops.aten, operator)
    values = [into(v) for v in arguments]
    # which of the arguments are keyword-only, only the schema says
    names = packet.overloads() if not overload else [overload]
    error: Exception | None = None
    for name in names:
        schema = getattr(packet, name)._schema
        if any(a.is_out for a in schema.arguments) or len(schema.arguments) < len(values):
            continue
        if not overload and "names" in name:
            continue
        pairs = list(zip(schema.arguments, values, strict=False))
        positional = [v for a, v in pairs if not a.kwarg_only]
        named = {a.name: v for a, v in pairs if a.kwarg_only}
        try:
            with torch.no_grad():
                got = getattr(packet, name)(*positional, **named)
        except (RuntimeError, TypeError, ValueError) as caught:
            error = error or caught
            continue
        return [g.numpy() for g in (got if isinstance(got, tuple) else (got,))]
    raise error or AssertionError(f"no overload of {operator} fits")


def assert_same(got: Any, want: Any, said: str, tolerance: float | None = None) -> None:
    """Equal in dtype and shape, and in value up to rounding."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype, f"{said}: dtype {got.dtype}, not {want.dtype}"
    assert got.shape == want.shape, f"{said}: shape {got.shape}, not {want.shape}"
    if want.dtype.kind != "f":
        assert np.array_equal(got, want), f"{said}: {got}, not {want}"
        return
    if tolerance is None:
        tolerance = {2: 4e-3, 4: 2e-5, 8: 1e-12}[want.dtype.itemsize]
    close = np.isclose(
        got.astype(np.float64), want.astype(np.float64), tolerance, tolerance, equal_nan=True
    )
    assert close.all(), f"{said}:\n{got}\nnot\n{want}"


def check(
    operator: str,
    *arguments: Any,
    overload: str = "",
    opset: int = 13,
    outputs: int = 1,
    compared: int | None = None,
    spellings: Sequence[str] = ("A+",),
    dynamic: bool = False,
    tolerance: float | None = None,
    torch: bool = True,
    witness: bool = True,
) -> None:
    """Lowering, witness and PyTorch agree on one call."""
    shown = [f"{a.dtype}{a.tolist()}" if isinstance(a, np.ndarray) else a for a in arguments]
    said = f"{operator}.{overload}({', '.join(map(str, shown))}) at opset {opset}"
    compared = outputs if compared is None else compared
    want: list[Any] | None = None
    if torch and HAS_TORCH:
        want = by_torch(operator, arguments, overload)
    for spelling in spellings:
        model, feeds = model_of(
            operator,
            arguments,
            overload=overload,
            spelling=spelling,
            opset=opset,
            outputs=outputs,
            dynamic=dynamic,
        )
        try:
            got = lowered(model, feeds)
        except (
            SurgeonError,
            AssertionError,
            onnxruntime.capi.onnxruntime_pybind11_state.Fail,
        ) as e:
            raise AssertionError(f"{said} [{spelling}]: {e}") from e
        if witness:
            seen = list(Reference(model).run(feeds).values())
            for a, b in zip(got[:compared], seen, strict=False):
                assert_same(a, b, f"{said} [{spelling}] against the witness", tolerance)
        for a, b in zip(got[:compared], want or (), strict=False):
            assert_same(a, b, f"{said} [{spelling}] against PyTorch", tolerance)


def floats(dtype: Any, *shape: int, seed: int = 0) -> Any:
    """Normal numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype) * np.asarray(2, dtype)


def integers(dtype: Any, *shape: int, seed: int = 0, low: int = -9, high: int = 9) -> Any:
    """Small integers, no negative ones where the dtype has none."""
    low = 0 if np.dtype(dtype).kind in "ub" else low
    high = 1 if np.dtype(dtype).kind == "b" else high
    return np.random.default_rng(seed).integers(low, high + 1, shape).astype(dtype)


EDGES = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-4, -30.0, 30.0]


OPSETS = (9, 11, 13, 18, 20)
X = floats("f4", 2, 3, 4)
Y = floats("f4", 2, 3, 4, seed=5)
EDGED = X.copy()
EDGED[0, 1, 2] = EDGED[1, 1, 1] = NAN
EDGED[1, 2, 0], EDGED[0, 0, 0] = INF, -INF
ODD = np.where(np.isinf(EDGED), np.float32(3), EDGED)  # NaN and no infinity
INTS, BOOLS, BYTES = integers("i8", 2, 3, 4), integers("b1", 2, 3, 4), integers("u1", 2, 3, 4)
UNIT = (0.01 + 0.98 * np.abs(np.tanh(X))).astype(np.float32)  # strictly between 0 and 1


def call(*arguments: Any, **options: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of `check`, kept."""
    return arguments, options


def check_all(calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]) -> None:
    """Each call at one opset, the opsets in turn."""
    for index, (arguments, options) in enumerate(calls):
        lowest = options.get("least", 0)
        opset = OPSETS[index % len(OPSETS)]
        kept = {k: v for k, v in options.items() if k != "least"}
        check(*arguments, **{"opset": max(opset, lowest), **kept})


def defined(operator: str, *arguments: Any, overload: str = "") -> int:
    """How many outputs PyTorch gives; 0 where it refuses the arguments."""
    try:
        return len(by_torch(operator, arguments, overload))
    except Exception:  # whatever PyTorch raises
        return 0


def test_a_sum_of_integers_is_int64_in_every_spelling() -> None:
    check("sum", integers("i4", 2, 3), [1], False, None, spellings=("A", "A+", "N"))


def test_arguments_as_attributes() -> None:
    node = helper.make_node("ATen", ["x"], ["y"], operator="cumsum", dim=1)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 4])],
    )
    for opset in (9, 13):
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6
        )
        assert_same(lowered(model, {"x": X})[0], np.cumsum(X, 1), f"cumsum at opset {opset}")


def test_div_of_integers_before_torch_1_5_is_an_integer() -> None:
    a, b = np.array([-7, 7, 8]), np.array([2, 2, -3])
    model, feeds = model_of("div", [a, b])
    model.producer_name, model.producer_version = "pytorch", "1.3"
    assert_same(lowered(model, feeds)[0], np.array([-3, 3, -2]), "div of torch 1.4")
    model.producer_version = "1.12.1"
    assert_same(lowered(model, feeds)[0], (a / b).astype(np.float32), "div of torch 1.12")


def test_angles_of_reals_before_torch_1_8_are_0() -> None:
    for x in (np.array([-2, 0.5, np.nan], np.float32), np.array([-2, 3])):
        model, feeds = model_of("angle", [x])
        model.producer_name, model.producer_version = "pytorch", "1.8"
        wanted = np.angle(x).astype(np.float32)
        assert_same(lowered(model, feeds)[0], wanted, "angle of torch 1.8")
        model.producer_version = "1.7"
        output = model.graph.output[0].type.tensor_type
        output.elem_type = helper.np_dtype_to_tensor_dtype(x.dtype)
        assert_same(Reference(model).run(feeds)["y0"], np.zeros_like(x), "its witness")
        assert_same(lowered(model, feeds)[0], np.zeros_like(x), "angle of torch 1.7")


def test_truth_before_torch_1_2_is_bytes() -> None:
    model, feeds = model_of("isclose", [X, X + 1e-7])
    model.graph.output[0].type.CopyFrom(
        helper.make_tensor_type_proto(TensorProto.UINT8, list(X.shape))
    )
    model.producer_name, model.producer_version = "pytorch", "1.1"
    assert Reference(model).run(feeds)["y0"].dtype == np.uint8
    verdict = surgeon.apply(model, "aten-math").report.verdict
    assert verdict is not None
    assert verdict.status == "equivalent"
    model.producer_version = "1.2"
    assert Reference(model).run(feeds)["y0"].dtype == np.bool_


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


def _axes(operator: str) -> list[tuple[Any, ...]]:
    """Ways to say which axes are reduced, and whether they stay."""
    several = [(d, k) for d in ([1], [0, -1], [-2]) for k in (False, True)]
    single = [(d, k) for d in (0, 1, -1) for k in (False, True)]
    if operator in ("std", "var"):
        return [(), *((d, u, k) for d, k in several for u in (True, False))]
    if operator == "count_nonzero":
        return [(), *((d,) for d, _ in several[::2])]
    if operator in ("argmax", "argmin"):
        return [(None,), (None, True), *single]
    if operator in ("sum", "mean"):
        return [(), *several]
    if operator in ("amax", "amin", "logsumexp"):
        return several
    return [(), *single, *(several if operator in ("any", "all") else ())]


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch says what is defined")
@pytest.mark.parametrize(
    "operator",
    """sum prod any all mean max min amax amin std var argmax argmin median count_nonzero
    logsumexp""".split(),
)
def test_reductions(operator: str) -> None:
    calls = []
    inputs = (X, ODD, EDGED, INTS, BOOLS, BYTES, X.astype("f8"), X.astype("f2"))
    for x in inputs:
        if x is EDGED and operator.startswith("arg"):
            continue  # infinity beside NaN: the first of both
        for position, axes in enumerate(_axes(operator)):
            if position % 3 and x is not X and x is not EDGED:
                continue
            outputs = defined(operator, x, *axes)
            if outputs:
                options: dict[str, Any] = {"outputs": outputs, "tolerance": 1e-4}
                if x.dtype == np.float16:
                    options["tolerance"] = 1e-2
                if operator == "median":
                    options["compared"] = 1
                calls.append(call(operator, x, *axes, **options))
    check_all(calls)


def test_sums_over_dynamic_axes_and_of_nothing() -> None:
    for opset in OPSETS:
        check("sum", X, [0, -1], False, None, opset=opset, dynamic=True)
        check("cumsum", X, 1, None, opset=opset, dynamic=True)
        check("std", X, [1], True, False, opset=opset, dynamic=True, overload="dim")
        check("max", X, -1, True, outputs=2, opset=opset, dynamic=True, overload="dim")
    empty = np.zeros((2, 0, 3), np.float32)
    check_all(
        [
            call("sum", empty, [1], False, None),
            call("any", empty, 1, False),
            call("all", empty, 1, False),
            call("sum", np.array(3.0, np.float32), None),
            call("max", np.array(3.0, np.float32), 0, False, outputs=2, overload="dim"),
            call("sum", X, [], True, None, overload="dim_IntList"),
            call("sum", X, None, False, None, overload="dim_IntList"),
            *(
                call("sum", INTS, [1], False, d, overload="dim_IntList")
                for d in (np.float64, np.float32, np.int32)
            ),
        ]
    )


def test_norms_and_moments() -> None:
    norms = [
        (2,),
        (1,),
        (2.0, [1], True),
        (INF, [0], False),
        (0, [1], False),
        (3, [2], False),
        (1, [0, 1], True),
    ]
    check_all([call("norm", x, *a, tolerance=1e-4) for a in norms for x in (X, ODD)])
    check_all([call("linalg_vector_norm", X, p, [1], True, None) for p in (2, 1, INF, 3, 0)])
    check_all([call("dist", X, floats("f4", 4, seed=3), p, tolerance=1e-4) for p in (2, 1, INF)])
    check_all(
        [
            *(call(n, X, True, outputs=2) for n in ("std_mean", "var_mean")),
            *(call(n, X, [1], False, True, outputs=2) for n in ("std_mean", "var_mean")),
            call("std", X, [1], 0, True, overload="correction"),
            call("var_mean", X, [1], 2, False, overload="correction", outputs=2),
            call("aminmax", EDGED, outputs=2),
            call("cosine_similarity", X, floats("f4", 3, 4, seed=3), -1, 1e-8),
            call("cosine_similarity", X, Y, 1, 1e-8),
            call("pairwise_distance", X, Y, 2.0, 1e-6, False),
        ]
    )


@pytest.mark.parametrize("operator", "cumsum cumprod cummax cummin logcumsumexp".split())
def test_running_results(operator: str) -> None:
    two = operator in ("cummax", "cummin")
    rest = (None,) if operator in ("cumsum", "cumprod") else ()
    inputs = [X, X.astype("f8"), *([] if operator == "logcumsumexp" else [INTS, BOOLS])]
    calls = [
        call(operator, x, dim, *rest, outputs=1 + two, tolerance=1e-4)
        for x in inputs
        for dim in (0, 1, -1)
    ]
    if operator != "cumsum":
        calls.append(call(operator, EDGED, 1, *rest, outputs=1 + two, tolerance=1e-4))
    check_all(calls)


def test_kth_values() -> None:
    check_all(
        [
            call("kthvalue", x, k, 1, k == 2, outputs=2, compared=1)
            for k in (1, 2, 3)
            for x in (X, EDGED, INTS, BYTES)
        ]
    )
    check("kthvalue", X, 2, -1, False, outputs=2)
    check("median", X, -1, False, outputs=2, overload="dim")


@pytest.mark.parametrize("operator", ["softmax", "log_softmax"])
def test_softmax(operator: str) -> None:
    calls = [call(operator, x, d, None) for x in (X, X.astype("f8")) for d in (0, 1, -1)]
    check_all([*calls, call(operator, INTS, 1, np.float32)])


def test_activations_with_arguments() -> None:
    check_all(
        [
            call(*arguments)
            for arguments in (
                ("threshold", EDGED, 0.3, 20.0),
                ("elu", EDGED, 1.5, 2.0, 3.0),
                ("softplus", EDGED, 2, 1),
                ("hardtanh", EDGED, -0.5, 0.5),
                ("gelu", X, "tanh"),
                ("gelu", X, "none"),
                ("celu", X, 2.0),
                ("leaky_relu", X, 0.3),
                ("prelu", X, np.array([0.1, 0.2, 0.3], np.float32)),
                ("prelu", X, np.array([0.1], np.float32)),
                ("prelu", X.astype("f8"), np.array([0.1])),
                ("glu", X, -1),
                ("glu", X, 0),
                ("rrelu", X, 0.1, 0.3, False, None),
                ("logit", UNIT, 0.1),
                ("logit", np.array([0, 1e-9, 0.5, 0.9999999, 1], np.float32), 1e-6),
                ("logit", UNIT, None),
            )
        ]
    )
    for opset in OPSETS:
        check("gelu", X, "tanh", opset=opset)
        check("glu", X, -1, opset=opset, dynamic=True)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_losses(reduction: int) -> None:
    target = integers("i8", 2, low=0, high=2)
    ignored = np.array([2, -100])
    weight = np.array([1, 2, 3], np.float32)
    share = np.abs(np.tanh(Y)).astype(np.float32)
    check_all(
        [
            *(
                call(name, X, Y, reduction, tolerance=1e-4)
                for name in ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss")
            ),
            call("smooth_l1_loss", X, Y, reduction, 0.3, tolerance=1e-4),
            call("huber_loss", X, Y, reduction, 0.3, tolerance=1e-4),
            call("kl_div", X, share, reduction, False, tolerance=1e-4),
            call("kl_div", X, Y, reduction, True, tolerance=1e-4),
            call("binary_cross_entropy", UNIT, share, None, reduction, tolerance=1e-4),
            call(
                "binary_cross_entropy_with_logits",
                X,
                share,
                None,
                np.array([1, 2, 3, 0.5], np.float32),
                reduction,
                tolerance=1e-4,
            ),
            call("nll_loss_nd", floats("f4", 2, 3), target, None, reduction, -100),
            call("nll_loss", floats("f4", 2, 3), ignored, weight, reduction, -100),
            call("nll_loss_nd", floats("f4", 2, 3), ignored, weight, reduction, -100),
            call("nll_loss_nd", X, integers("i8", 2, 4, low=0, high=2), weight, reduction, 1),
            *(
                call("cross_entropy_loss", X, named, scale, reduction, ignore, smooth)
                for smooth in (0.0, 0.2)
                for scale in (None, weight)
                for named, ignore in (
                    (integers("i8", 2, 4, low=0, high=2), -100),
                    (integers("i8", 2, 4, low=0, high=2), 1),
                    (share, -100),
                )
            ),
            call("cross_entropy_loss", floats("f4", 2, 3), ignored, weight, reduction, -100, 0.1),
            call("triplet_margin_loss", X, Y, UNIT, 1.0, 2.0, 1e-6, True, reduction),
        ]
    )


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
