"""Holds facts against what onnxruntime computes: every value, at several sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_graphsurgeon as gs

from surgeon import dialect, dims
from surgeon.facts import Fact, Facts
from surgeon.model import Model
from surgeon.report import Notes
from surgeon.rewrite import Surgery
from surgeon.runtime import RunFailed, Session
from surgeon.sweep import Sweep

Array = npt.NDArray[Any]
Feeds = dict[str, Any]
SIZES = (5, 2, 3, 1, 8, 4, 7, 6, 16, 32)


@dataclass
class Held:
    """What a comparison found.

    Attributes:
        ran: How many sizes the model ran at.
        values: How many values were held against their facts.
        blank: Values of which not even the rank is known.
        unbound: Dimensions that no symbol of an input decides.
        wrong: Facts that are not so, in words.
    """

    ran: int = 0
    values: int = 0
    blank: int = 0
    unbound: int = 0
    wrong: list[str] = field(default_factory=list)


def parse(text: str, opset: int = 17, ir: int = 8, domains: str = "") -> onnx.ModelProto:
    """A model from the text of its graph (and functions)."""
    header = f'<ir_version: {ir}, opset_import: ["": {opset}{domains}]>\n'
    return onnx.parser.parse_model(header + text)


def model_of(
    inputs: str,
    body: str,
    outputs: str,
    opset: int = 17,
    constants: Mapping[str, Any] | None = None,
) -> onnx.ModelProto:
    """A model from the text of its nodes; `constants` become initializers."""
    proto = parse(f"g ({inputs}) => ({', '.join(outputs.split())}) {{ {body} }}", opset)
    for name, array in (constants or {}).items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), name))
    return proto


def infer(proto: onnx.ModelProto, **options: Any) -> tuple[Facts, dict[str, gs.Tensor]]:
    """The facts of a sweep without rules, and the main graph's values by name."""
    model = Model(proto)
    dialect.strip_initializer_inputs(model, keep=False)
    facts = Facts(model, **options)
    tensors = {t.name: t for n in model.graph.nodes for t in n.outputs if t.name}
    Sweep(model, facts, Surgery(model, facts), Notes(), (), fold=None).run()
    return facts, tensors


def fact_of(proto: onnx.ModelProto, name: str, **options: Any) -> Fact:
    """What is known of one value."""
    facts, tensors = infer(proto, **options)
    return facts.of(tensors[name])


def exposed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every value of its main graph as an output, and nothing else claimed."""
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    del out.graph.value_info[:]
    have = {value.name for value in out.graph.output}
    for node in out.graph.node:
        for name in node.output:
            if name and name not in have:
                out.graph.output.append(onnx.ValueInfoProto(name=name))
                have.add(name)
    return out


def draw(proto: onnx.ModelProto, point: Mapping[str, int], seed: int = 0) -> Feeds:
    """Seeded inputs of a model whose dimensions have these sizes."""
    rng = np.random.default_rng(seed)
    constants = {t.name for t in proto.graph.initializer}
    feeds: Feeds = {}
    for value in proto.graph.input:
        if value.name in constants:
            continue
        tensor = value.type.tensor_type
        shape = [point[d.dim_param] if d.dim_param else d.dim_value for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if dtype == np.bool_:
            feeds[value.name] = np.asarray(rng.random(shape) < 0.5)
        elif dtype.kind in "iu":
            feeds[value.name] = rng.integers(0, 3, shape).astype(dtype)
        else:
            feeds[value.name] = rng.standard_normal(shape).astype(dtype)
    return feeds


def symbols_of(proto: onnx.ModelProto) -> list[str]:
    """The names of the dynamic dimensions of the inputs, in order."""
    found: dict[str, None] = {}
    for value in proto.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                found[dim.dim_param] = None
    return list(found)


def points(symbols: Sequence[str], count: int = 6) -> Iterable[dict[str, int]]:
    """Sizes to try: no two symbols go together, and equal, odd and 1 are among them."""
    for index in range(count):
        yield {
            name: SIZES[(index + place * (index // 2 + 1)) % len(SIZES)]
            for place, name in enumerate(symbols)
        }


def hold(proto: onnx.ModelProto, runs: Iterable[Mapping[str, int] | Feeds], **options: Any) -> Held:
    """Hold each fact of a model, evaluated, against the arrays of every run.

    Args:
        proto: The model.
        runs: For each run the sizes of the dynamic dimensions, or the inputs themselves.
        options: For `Facts`.
    """
    facts, tensors = infer(proto, **options)
    session = Session(exposed(proto))
    held = Held()
    inputs = {v.name: v for v in proto.graph.input}
    for index, run in enumerate(runs):
        whole = any(isinstance(v, np.ndarray) for v in run.values())
        feeds: Feeds = dict(run) if whole else draw(proto, run, seed=index)  # type: ignore[arg-type]
        try:
            found = session.run(feeds)
        except RunFailed:
            continue
        if _out_of_account(proto, found):
            continue
        held.ran += 1
        binding: dict[str, int] = {}
        for name, array in feeds.items():
            for dim, size in zip(
                inputs[name].type.tensor_type.shape.dim, np.shape(array), strict=False
            ):
                if dim.dim_param:
                    binding[dim.dim_param] = size
        for axis_of, symbol in facts.lengths.assumptions.items():
            for name in dims.symbols(symbol):
                binding.setdefault(name, _solve(symbol, name, binding[axis_of]))
        ordered = [(n, found[n], facts.of(t)) for n, t in tensors.items() if n in found]
        _bind_fresh(ordered, binding)
        for name, value, fact in ordered:
            _hold_one(held, name, value, fact, binding)
    held.wrong = list(dict.fromkeys(held.wrong))
    return held


def _out_of_account(proto: onnx.ModelProto, found: Mapping[str, Any]) -> bool:
    """Whether a run says nothing about facts.

    A Reshape that is given a computed size of 0 takes it for "as it was": the tensor is empty, and
    facts speak of the sizes that were computed. onnxruntime does not drop the axes of an empty
    tensor that it reduces.
    """
    for node in proto.graph.node:
        if node.op_type == "Reshape" and 0 in found.get(node.input[1], ()):
            return True
        if node.op_type.startswith("Reduce") and found.get(node.input[0], np.ones(1)).size == 0:
            return True
    return False


def _solve(symbol: Any, name: str, size: int) -> int:
    return next(n for n in itertools.count() if dims.evaluate(symbol, {name: n}) == size)


def _bind_fresh(ordered: Sequence[tuple[str, Any, Fact]], binding: dict[str, int]) -> None:
    """A dimension that is a symbol of its own is what it is where it is first seen."""
    for _, value, fact in ordered:
        if fact.shape is None or not isinstance(value, np.ndarray):
            continue
        for dim, size in zip(fact.shape, value.shape, strict=False):
            if not isinstance(dim, int) and dims.symbols(dim) == {str(dim)}:
                binding.setdefault(str(dim), size)


def _hold_one(held: Held, name: str, value: Any, fact: Fact, binding: Mapping[str, int]) -> None:
    if not isinstance(value, np.ndarray):
        return
    held.values += 1
    if fact.dtype and fact.dtype != onnx.TensorProto.STRING:
        want = onnx.helper.tensor_dtype_to_np_dtype(fact.dtype)
        if want != value.dtype:
            held.wrong.append(f"{name}: dtype {want}, is {value.dtype}")
    if fact.shape is None:
        held.blank += 1
        return
    if len(fact.shape) != value.ndim:
        held.wrong.append(f"{name}: shape {list(fact.shape)}, is {list(value.shape)}")
        return
    for dim, size in zip(fact.shape, value.shape, strict=True):
        try:
            if dims.evaluate(dim, binding) != size:
                held.wrong.append(f"{name}: shape {list(fact.shape)}, is {list(value.shape)}")
                return
        except KeyError:
            held.unbound += 1
    _hold_elements(held, name, value, fact, binding)


def _hold_elements(
    held: Held, name: str, value: Array, fact: Fact, binding: Mapping[str, int]
) -> None:
    if fact.value is not None:
        flat = fact.value.reshape(-1).tolist()
        try:
            if fact.symbolic:
                flat = [dims.evaluate(item, binding) for item in flat]
        except KeyError:
            flat = None
        if flat is not None:
            same = fact.value.shape == value.shape and all(
                a == b or (a != a and b != b)
                for a, b in zip(flat, value.reshape(-1).tolist(), strict=True)
            )
            if not same:
                held.wrong.append(f"{name}: value {flat}, is {value.tolist()}")
    if value.size and value.dtype.kind == "f":
        if fact.unit_axis is not None and not np.allclose(
            value.sum(fact.unit_axis, dtype=np.float64), 1, atol=1e-3
        ):
            held.wrong.append(f"{name}: does not sum to 1 along axis {fact.unit_axis}")
        if fact.not_negative and not (value >= 0).all():
            held.wrong.append(f"{name}: is negative")
