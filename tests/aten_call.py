"""One call of an ATen operator: as a model, lowered, by the witness and by PyTorch."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import surgeon
from surgeon.errors import SurgeonError
from surgeon.reference.executor import Reference

HAS_TORCH = importlib.util.find_spec("torch") is not None
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


OPSETS = (9, 11, 13, 18, 20)


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
