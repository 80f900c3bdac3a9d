"""A model of one ATen node: written, executed by the witnesses, lowered and run."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from packaging.version import Version

import surgeon
from surgeon.reference import NoWitness
from surgeon.reference.arguments import Call
from surgeon.reference.torch_witness import TorchWitness
from surgeon.reference.witness import NumpyWitness

TEXTS = onnx.AttributeProto.STRING


@functools.cache
def torch_witness() -> TorchWitness | None:
    try:
        return TorchWitness()
    except surgeon.SurgeonError:
        return None


class Left(AssertionError):
    """An ATen node is still there."""


class Written:
    """A model of one ATen node."""

    def __init__(
        self, operator: str, arguments: list[Any], spelling: str, opset: int, *, dynamic: bool
    ) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.feeds: dict[str, np.ndarray[Any, Any]] = {}
        self.values: list[Any] = []
        self.dynamic, self.opset = dynamic, opset
        names = []
        for argument in arguments:
            if isinstance(argument, list) and any(
                isinstance(a, np.ndarray) or a is None for a in argument
            ):
                members = [self.tensor(a) for a in argument]
                listed = "l" + str(len(self.nodes))
                domain, kind = (
                    ("", "SequenceConstruct") if opset >= 11 else ("prim", "ListConstruct")
                )
                if None in [a if a is None else 0 for a in argument] or spelling == "flat":
                    names.extend(members)
                else:
                    self.nodes.append(onnx.helper.make_node(kind, members, [listed], domain=domain))
                    names.append(listed)
                self.values.append(list(argument))
            else:
                names.append(self.tensor(argument))
                self.values.append(argument)
        self.operator = operator
        domain = "org.pytorch.aten"
        name, _, overload = operator.partition(".")
        if spelling == "N":
            self.main = onnx.helper.make_node(name, names, [], domain=domain)
        else:
            self.main = onnx.helper.make_node(
                "ATen", names, [], domain=domain, operator=name, overload_name=overload
            )

    def tensor(self, value: Any) -> str:
        if value is None:
            return ""
        name = f"v{len(self.inputs) + len(self.initializers) + len(self.nodes)}"
        if isinstance(value, str):
            node = onnx.NodeProto(op_type="Constant", output=[name])
            node.attribute.append(onnx.AttributeProto(name="value", type=TEXTS, s=value.encode()))
            self.nodes.append(node)
            return name
        if isinstance(value, np.ndarray):
            shape = [f"{name}_{i}" if self.dynamic else n for i, n in enumerate(value.shape)]
            kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
            self.inputs.append(onnx.helper.make_tensor_value_info(name, kind, shape))
            self.feeds[name] = value
            return name
        dtype: Any = {bool: np.bool_, float: np.float64}.get(type(value), np.int64)
        self.initializers.append(onnx.numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def model(self, outputs: list[np.ndarray[Any, Any]], *, listed: bool) -> onnx.ModelProto:
        names = [f"y{i}" for i in range(len(outputs))]
        if listed:
            self.main.output.append("list")
            unpack = onnx.helper.make_node("ListUnpack", ["list"], names, domain="prim")
            nodes = [*self.nodes, self.main, unpack]
        else:
            self.main.output.extend(names)
            nodes = [*self.nodes, self.main]
        values = [
            onnx.helper.make_tensor_value_info(
                name,
                onnx.helper.np_dtype_to_tensor_dtype(a.dtype),
                [f"{name}_{i}" for i in range(a.ndim)] if self.dynamic else list(a.shape),
            )
            for name, a in zip(names, outputs, strict=True)
        ]
        graph = onnx.helper.make_graph(nodes, "g", self.inputs, values, self.initializers)
        domains = {"": self.opset, "org.pytorch.aten": 1, "prim": 1}
        opsets = [onnx.helper.make_opsetid(k, v) for k, v in domains.items()]
        return onnx.helper.make_model(graph, ir_version=8, opset_imports=opsets)


def expected(operator: str, values: list[Any]) -> list[np.ndarray[Any, Any]]:
    """By the witness, which agrees with torch."""
    name, _, overload = operator.partition(".")
    call = Call(name, overload, {})
    arrays = [v if not isinstance(v, bool | int | float) else np.asarray(v) for v in values]
    arrays = [
        np.asarray(v, np.int64) if isinstance(v, list) and not _is_tensors(v) else v for v in arrays
    ]
    found = NumpyWitness()(call, arrays, where="test")
    results = list(found) if isinstance(found, (list, tuple)) else [found]
    other = torch_witness()
    if other is not None:
        try:
            theirs = other(call, arrays, where="test")
        except NoWitness:  # a signature of older releases
            return results
        theirs = list(theirs) if isinstance(theirs, (list, tuple)) else [theirs]
        for mine, its in zip(results, theirs, strict=False):
            if mine is None:  # what is kept for training alone
                continue
            assert mine.dtype == its.dtype, f"witness {mine.dtype}, torch {its.dtype}"
            assert mine.shape == its.shape, f"witness {mine.shape}, torch {its.shape}"
            close(mine, its)
    return results


def _is_tensors(value: list[Any]) -> bool:
    return any(isinstance(v, np.ndarray) or v is None for v in value)


def close(mine: Any, its: Any) -> None:
    if mine.dtype.kind == "f":
        np.testing.assert_allclose(mine, its, rtol=2e-5, atol=2e-5)
    else:
        np.testing.assert_array_equal(mine, its)


def lowered(
    written: Written,
    outputs: list[np.ndarray[Any, Any]],
    *,
    listed: bool = False,
    recipe: str = "aten-shape",
) -> list[Any]:
    """The outputs of the lowered model in onnxruntime.

    Raises:
        Left: The node was not lowered; with the reasons.
    """
    model = written.model(outputs, listed=listed)
    result = surgeon.apply(model, recipe, verify=False, allow=["leftover"])
    proto = result.model.to_proto()
    left = [n for n in proto.graph.node if n.domain not in ("", "ai.onnx")]
    if left:
        reasons = {
            str(m.reason() if callable(m.reason) else m.reason) for m in result.report.misses
        }
        raise Left(f"{left[0].op_type} is left: {sorted(reasons)}")
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    lacking: list[str] = []
    if Version(ort.__version__) < Version("1.30"):
        # the one has no kernel for doubles, the other makes pads that the pool refuses, and the
        # third fails over a Concat that it took out itself
        lacking = ["QuickGeluFusion", "Pad_Fusion", "ReshapeFusion"]
        empty = any(np.size(fed) == 0 for fed in written.feeds.values())
        if empty and any(node.op_type == "TopK" for node in proto.graph.node):
            pytest.skip("onnxruntime before 1.30 ends the process where TopK is of nothing")
    session = ort.InferenceSession(proto.SerializeToString(), settings, disabled_optimizers=lacking)
    wanted = {i.name for i in session.get_inputs()}
    return list(session.run(None, {k: v for k, v in written.feeds.items() if k in wanted}))


Called = tuple[str, list[Any], dict[str, Any]]
"""An operator, its arguments, and options."""


class Calls(list[Called]):
    """Calls, in the order in which they were added."""

    def add(
        self, operator: str, *arguments: Any, least: int = 9, still: bool = False, **rest: Any
    ) -> None:
        """Add a call.

        Args:
            operator: Its name, with the overload's behind a dot.
            *arguments: What it is given.
            least: The oldest opset.
            still: Whether its sizes must be known.
            **rest: `outputs`: how many count; `listed`: it gives a list; `loose`: it is near a
                pole; `throughout`: its sizes are dynamic at every opset.
        """
        self.append((operator, list(arguments), {"least": least, "still": still, **rest}))


def each(calls: list[Called]) -> list[Any]:
    """Test cases of calls: at the opset they need at least, at the newest, and at one between.

    Sizes are dynamic at the newest, and at all of them where an option says `throughout`.
    """
    cases = []
    for index, (operator, arguments, options) in enumerate(calls):
        allowed = [o for o in (9, 11, 13, 18) if o >= options["least"]]
        for opset in sorted({allowed[0], allowed[index % len(allowed)], allowed[-1]}):
            for dynamic in (False, True):
                old = opset != allowed[-1] and not options.get("throughout")
                if dynamic and (options["still"] or old):
                    continue
                label = f"{operator}({show(arguments)})-{opset}" + "-dynamic" * dynamic
                cases.append(pytest.param(operator, arguments, options, opset, dynamic, id=label))
    return cases


def agrees(
    operator: str, arguments: list[Any], options: dict[str, Any], opset: int, *, dynamic: bool
) -> None:
    """The lowered node gives what the witness does."""
    wanted = expected(operator, arguments)[: options.get("outputs")]
    written = Written(operator, arguments, "A+", opset, dynamic=dynamic)
    made = lowered(written, wanted, listed=options.get("listed", False), recipe="aten")
    for mine, its in zip(made, wanted, strict=True):
        assert mine.dtype == its.dtype
        assert mine.shape == its.shape
        if options.get("loose"):
            np.testing.assert_allclose(mine, its, rtol=5e-3, atol=5e-3)
        else:
            close(mine, its)


def show(values: list[Any]) -> str:
    return ", ".join(
        f"{v.dtype}{list(v.shape)}"
        if isinstance(v, np.ndarray)
        else f"[{show(v)}]"
        if isinstance(v, list)
        else repr(v)
        for v in values
    )


def stays(
    operator: str, arguments: list[Any], outputs: list[np.ndarray[Any, Any]], because: str
) -> None:
    """Assert that `aten` leaves the node, with this reason."""
    written = Written(operator, arguments, "A+", 13, dynamic=False)
    with pytest.raises(Left, match=because):
        lowered(written, outputs, recipe="aten")
