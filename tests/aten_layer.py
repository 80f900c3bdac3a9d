"""A layer that fell back: as a model, and what holds of it or refuses it."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

import surgeon
from surgeon.reference import Reference
from surgeon.runtime import Session

HAS_TORCH = importlib.util.find_spec("torch") is not None
GENERATOR = np.random.default_rng(7)
SPELLINGS = ("A+", "A", "N")


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return GENERATOR.normal(size=shape).astype(dtype)


@dataclass
class Held:
    """An array that is a Constant of the model."""

    array: Any


@dataclass
class Call:
    """A node: arrays, also those in lists, are inputs of the model; all else is a Constant."""

    operator: str
    operands: list[Any]
    overload: str = ""
    outputs: int = 1
    opset: int = 17
    dynamic: bool = False
    spelling: str = "A+"
    before: list[tuple[str, list[Any]]] = field(default_factory=list)
    after: str = ""

    def model(self) -> onnx.ModelProto:
        """The model."""
        inputs, nodes = [], []

        def name(operand: Any, label: str) -> str:
            if operand is None:
                return ""
            if is_tensors(operand):
                members = [name(member, f"{label}_{i}") for i, member in enumerate(operand)]
                kind, domain = (
                    ("SequenceConstruct", "") if self.opset >= 11 else ("ListConstruct", "prim")
                )
                nodes.append(helper.make_node(kind, members, [label], domain=domain))
                return label
            if isinstance(operand, np.ndarray):
                kind = helper.np_dtype_to_tensor_dtype(operand.dtype)
                dims: list[Any] = list(operand.shape)
                if self.dynamic and operand.ndim > 1:
                    dims = [f"{label}_{i}" for i in range(operand.ndim)]
                    dims[1] = operand.shape[1]
                inputs.append(helper.make_tensor_value_info(label, kind, dims))
                return label
            if isinstance(operand, str):
                nodes.append(helper.make_node("Constant", [], [label], value=operand))
                return label
            array = operand.array if isinstance(operand, Held) else operand
            tensor = onnx.numpy_helper.from_array(np.asarray(array))
            nodes.append(helper.make_node("Constant", [], [label], value=tensor))
            return label

        def aten(operator: str, names: list[str], outputs: list[str], overload: str) -> None:
            attributes = {
                "A+": {"operator": operator, "overload_name": overload},
                "A": {"operator": operator},
                "N": {},
            }[self.spelling]
            kind = operator if self.spelling == "N" else "ATen"
            nodes.append(
                helper.make_node(kind, names, outputs, domain="org.pytorch.aten", **attributes)
            )

        made = [f"y{i}" for i in range(self.outputs)]
        names = [name(operand, f"v{i}") for i, operand in enumerate(self.operands)]
        chain = [*((op, rest) for op, rest in self.before), (self.operator, self.operands[1:])]
        current = names[0]
        for step, (operator, rest) in enumerate(chain):
            last = step == len(chain) - 1
            more = names[1:] if last else [name(o, f"w{step}_{i}") for i, o in enumerate(rest)]
            outputs = made if last and not self.after else [f"t{step}"]
            aten(operator, [current, *more], outputs, self.overload if last else "")
            current = outputs[0]
        if self.after:
            aten(self.after, [current], made, "")
        values = [onnx.ValueInfoProto(name=n) for n in made]
        graph = helper.make_graph(nodes, "g", inputs, values)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("org.pytorch.aten", 1)]
        opsets.append(helper.make_opsetid("prim", 1))
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    @property
    def feeds(self) -> dict[str, Any]:
        """The model's inputs."""
        given = {f"v{i}": v for i, v in enumerate(self.operands)}
        for label, operand in list(given.items()):
            if is_tensors(operand):
                given |= {f"{label}_{i}": member for i, member in enumerate(operand)}
        return {label: v for label, v in given.items() if isinstance(v, np.ndarray)}

    def __str__(self) -> str:
        def show(o: Any) -> str:
            if is_tensors(o):
                return f"[{', '.join(map(show, o))}]"
            array = o.array if isinstance(o, Held) else o
            return f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else repr(o)

        shown = [show(o) for o in self.operands]
        rest = f"opset {self.opset}, dynamic {self.dynamic}, {self.spelling}"
        operator = f"{self.before} {self.operator}.{self.overload}({', '.join(shown)})"
        return f"{operator} {self.after}; {rest}"


def is_tensors(operand: Any) -> bool:
    """Whether it is a list of tensors."""
    return isinstance(operand, list) and any(isinstance(o, (np.ndarray, Held)) for o in operand)


def holds(call: Call, *, tolerance: float | None = None, witness: bool = True) -> None:
    """The three agree, or the failure prints the arguments."""
    model = call.model()
    result = surgeon.apply(model, "adaptive-pool", "aten-nn", verify=False)
    saved = result.model.to_proto()
    left = [n.op_type for n in saved.graph.node if n.domain not in ("", "ai.onnx")]
    assert not left, f"{call}: {left} left: {reasons(result)}"
    found = list(Session(saved).run(call.feeds).values())
    tellers = []
    if witness:
        tellers.append(("witness", list(Reference(model).run(call.feeds).values())))
    if HAS_TORCH and call.operator not in ("thnn_col2im", "thnn_im2col", "rfft"):
        from surgeon.reference.torch_witness import TorchWitness

        tellers.append(
            ("torch", list(Reference(model, witness=TorchWitness()).run(call.feeds).values()))
        )
    for teller, values in tellers:
        for got, want in zip(found, values, strict=True):
            assert got.dtype == want.dtype, f"{call}: {got.dtype}, {teller} {want.dtype}"
            assert got.shape == want.shape, f"{call}: {got.shape}, {teller} {want.shape}"
            if not got.size:
                continue
            limit = tolerance or (3e-3 if got.dtype == np.float16 else 2e-5)
            mine, its = (np.where(np.isnan(want), 0.0, t.astype(np.float64)) for t in (got, want))
            assert (np.isnan(got) == np.isnan(want)).all(), f"{call}: NaN elsewhere than {teller}"
            scale = max(1.0, float(np.abs(its).max()))
            error = float(np.abs(mine - its).max())
            assert error <= limit * scale, f"{call}: off by {error} from {teller}"


def reasons(result: Any) -> list[str]:
    return [str(miss.reason) for miss in result.report.misses]


def refuses(call: Call, because: str) -> None:
    """The node stays, for a reason that says this."""
    result = surgeon.apply(call.model(), "adaptive-pool", "aten-nn", verify=False, every_miss=True)
    assert any(because in reason for reason in reasons(result)), f"{call}: {reasons(result)}"


def opset_for(index: int, *choices: int) -> int:
    """One of the opsets, in turn: the grid is too large for every one."""
    return choices[index % len(choices)]
