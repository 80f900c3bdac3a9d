"""Runs a model that no runtime takes: stretches in onnxruntime, foreign nodes by the witness."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import ml_dtypes  # noqa: F401 - teaches numpy bfloat16 and the float8 kinds
import numpy as np
import onnx

from surgeon.declared import length_of
from surgeon.errors import ModelError
from surgeon.isolation import Isolated, cell, lightened
from surgeon.nested import state_loops
from surgeon.producer import release_of
from surgeon.reference import by_onnx, control, quantized
from surgeon.reference.by_onnx import is_complex
from surgeon.reference.early import with_domain
from surgeon.reference.errors import NoWitness, Undefined
from surgeon.reference.libraries.nchwc import with_blocks
from surgeon.reference.operators.precision import computed
from surgeon.reference.plan import (
    CONTROL,
    Constants,
    Step,
    captures,
    make_plan,
    operator_sets,
    reads,
    without_calls,
)
from surgeon.reference.releases import OldMeanings
from surgeon.reference.witness import NumpyWitness, Trembling, Witness, execute
from surgeon.runtime import Feeds, NotRunnable, RunFailed, Runner, Session
from surgeon.standard import STANDARD

OpenSession = Callable[..., Runner]
_MOST_SIZES = 8  # a longer line of integers is data, and may be of another length next time


class Trembler(Runner, Protocol):
    """What runs a model and can tremble."""

    def run_trembling(self, feeds: Feeds, outputs: Sequence[str], seed: int) -> dict[str, Any]:
        """As `Reference.run_trembling`."""


def open_reference(
    model: onnx.ModelProto, folder: Path | None = None, *, torch: bool = False
) -> Trembler:
    """A `Reference`, in the worker where one is to be used, as `open_session` opens sessions.

    Args:
        model: A model.
        folder: Where its external data lie.
        torch: Let PyTorch execute the foreign nodes.

    Raises:
        VerifyError: PyTorch is wanted and is not installed.
        ForeignError: It ended the worker.
    """
    model, folder = lightened(model, folder)
    if (here := cell()) is None:
        return _reference(model, folder, torch)
    task, called = "surgeon.reference.executor:_reference", "torch" if torch else "the witness"
    return Isolated(here, task, model, folder, torch, called=called)


def _reference(model: onnx.ModelProto, folder: Path | None, torch: bool) -> Reference:
    if not torch:
        return Reference(model, folder)
    from surgeon.reference.torch_witness import TorchWitness

    return Reference(model, folder, witness=TorchWitness())


class Reference:
    """A model with ATen nodes, executed.

    Args:
        model: A model, or the path of one.
        folder: Where the external data of a `ModelProto` lie.
        witness: Executes the foreign nodes; numpy by default.
        open_session: Opens what runs a standard stretch; called as `Session` is.
    """

    def __init__(
        self,
        model: onnx.ModelProto | Path,
        folder: Path | None = None,
        *,
        witness: Witness | None = None,
        open_session: OpenSession = Session,
    ) -> None:
        if isinstance(model, Path):
            folder = folder or model.parent
            model = onnx.load(model, load_external_data=False)
        self._model = model = with_blocks(with_domain(without_calls(model)), folder)
        self._folder = folder
        self._witness: Witness = witness or NumpyWitness()
        release = release_of(model)
        if release is not None:
            self._witness = OldMeanings(self._witness, release)
        self._trembling = self._witness = Trembling(self._witness)
        self._open = open_session
        self._opsets = operator_sets(model)
        self._programs: dict[tuple[frozenset[str], tuple[str, ...]], Program] = {}

    def run(self, feeds: Feeds, outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """The named values; all graph outputs by default. Any value in the graph may be named.

        Raises:
            Undefined: A foreign node is not defined on what it is given.
            NoWitness: Nothing here executes a foreign node.
            RunFailed: An input is missing or does not fit, or a standard operator fails.
        """
        graph = self._model.graph
        initializers = {t.name for t in graph.initializer}
        names = tuple(v.name for v in graph.output) if outputs is None else tuple(outputs)
        overridden = frozenset(feeds.keys() & initializers)
        for value in graph.input:
            if value.name not in initializers or value.name in feeds:
                _check_feed(value, feeds)
        key = (overridden, names)
        if key not in self._programs:
            constants = Constants(graph, self._folder, overridden=overridden)
            fed = {v.name for v in graph.input}
            self._programs[key] = Program(
                graph, self._session, self._witness, constants, fed, names, self._opsets
            )
        return self._programs[key].run(feeds)

    def run_trembling(self, feeds: Feeds, outputs: Sequence[str], seed: int) -> dict[str, Any]:
        """As `run`, every float that a foreign node makes moved by one rounding or none."""
        self._trembling.generator = np.random.default_rng(seed)
        try:
            return self.run(feeds, outputs)
        finally:
            self._trembling.generator = None

    def _session(self, model: onnx.ModelProto) -> Runner:
        model.ir_version = max(4, self._model.ir_version)  # below 4, initializers must be inputs
        for domain, version in self._opsets.items():
            model.opset_import.add(domain=domain, version=version)
        try:
            return self._open(model, folder=self._folder)
        except NotRunnable as error:
            if error.operators:
                raise NoWitness(error.operators[0], where=error.where, why=error.text) from None  # type: ignore[arg-type]
            raise


class Program:
    """A graph made ready to run: its plan, and the sessions of its stretches.

    Args:
        graph: Main graph or body.
        open_session: Opens a session on a stretch.
        witness: Executes the foreign nodes.
        constants: What needs no computing.
        available: Names that are fed, or captured from around the graph.
        requested: Names to compute.
        opsets: The operator sets of the model, by domain.
    """

    def __init__(
        self,
        graph: onnx.GraphProto,
        open_session: Callable[[onnx.ModelProto], Runner],
        witness: Witness,
        constants: Constants,
        available: Collection[str],
        requested: Sequence[str],
        opsets: Mapping[str, int],
    ) -> None:
        self._graph, self._open, self._witness = graph, open_session, witness
        self._opsets = opsets
        self._constants = constants
        self._requested = tuple(requested)
        self._steps = make_plan(graph, constants, available, requested)
        self._sessions: dict[tuple[Any, ...], Runner] = {}
        self._apart: set[tuple[Any, ...]] = set()  # of which onnxruntime lacks an operator
        self._bodies: dict[int, Program] = {}

    def run(
        self, feeds: Mapping[str, Any], around: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The requested values by name.

        Args:
            feeds: The graph's inputs.
            around: Values of the surrounding graph, for a body.
        """
        values = {**(around or {}), **feeds}
        for index, step in enumerate(self._steps):
            if step.standard:
                values.update(self._run_stretch(index, step, values))
            else:
                node = step.nodes[0]
                if node.op_type in CONTROL and node.domain in STANDARD:
                    results = control.run(node, values, self._look_up, self._body)
                elif (node.domain, node.op_type) == ("prim", "Uninitialized"):
                    results = [self._unread(name) for name in node.output]
                else:
                    operands = [
                        computed(value) if name in values else value
                        for name in node.input
                        for value in [self._look_up(name, values)]
                    ]
                    results = execute(node, operands, self._witness)
                values.update(
                    (name, value)
                    for name, value in zip(node.output, results, strict=False)
                    if name in step.outputs
                )
            for name in step.dead:
                values.pop(name, None)
        found = {name: self._look_up(name, values) for name in self._requested}
        if quantized.first([*found.values()]) is not None:
            why = "a quantised tensor is given out"
            raise NoWitness("dequantize", where=f"graph `{self._graph.name}`", why=why)
        return found

    def _unread(self, name: str) -> Any:
        """What stands for a value that is not there and that nothing reads: a zero of its type."""
        found = (v.type.tensor_type.elem_type for v in self._graph.value_info if v.name == name)
        kind = next(found, 0) or onnx.TensorProto.FLOAT
        return np.zeros((), onnx.helper.tensor_dtype_to_np_dtype(kind))

    def _look_up(self, name: str, values: Mapping[str, Any]) -> Any:
        if not name:
            return None
        if name in values:
            if isinstance(values[name], Undefined):
                raise values[name]
            return values[name]
        if name in self._constants:
            return self._constants.value(name)
        raise ModelError(
            f"no value is called `{name}`",
            where=f"graph `{self._graph.name}`",
            mend="Name a value of this graph.",
        )

    def _body(self, graph: onnx.GraphProto) -> Program:
        if id(graph) not in self._bodies:
            constants = Constants(graph, None, self._constants)
            available = {v.name for v in graph.input} | set(captures(graph))
            names = [v.name for v in graph.output]
            self._bodies[id(graph)] = Program(
                graph, self._open, self._witness, constants, available, names, self._opsets
            )
        return self._bodies[id(graph)]

    def _run_stretch(self, index: int, step: Step, values: Mapping[str, Any]) -> dict[str, Any]:
        feeds = {name: self._look_up(name, values) for name in step.inputs}
        by_onnx.refuse_nothing(step.nodes, feeds.values())
        key = (index, *(_kind(value) for value in feeds.values()))
        unusual = quantized.first([*feeds.values()]) or any(map(is_complex, feeds.values()))
        unusual = unusual or by_onnx.lists_beside_bfloat16(step.nodes, feeds.values())
        if key in self._apart or unusual:
            return self._run_apart(step, feeds)
        if key not in self._sessions:
            try:
                self._sessions[key] = self._open(self._stretch(step, feeds))
            except (NoWitness, NotRunnable) as error:
                read = [self._look_up(name, feeds) for name in (*step.inputs, *step.constants)]
                if not by_onnx.helps(step.nodes, read, error, self._opsets):
                    raise
                self._apart.add(key)
                return self._run_apart(step, feeds)
        return self._sessions[key].run(feeds, step.outputs)

    def _run_apart(self, step: Step, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """One node after the other, those that onnxruntime lacks in Python or in float32."""
        values = dict(feeds)
        for node in step.nodes:
            given = {name: self._look_up(name, values) for name in reads(node)}
            like = quantized.first([*given.values()])
            bfloat16 = any(map(by_onnx.is_bfloat16, given.values()))
            if (like is not None or bfloat16) and node.op_type == "SequenceConstruct":
                values[node.output[0]] = [given[name] for name in node.input]
                continue
            found = self._run_one(node, {n: quantized.plain(v) for n, v in given.items()}, values)
            if like is not None:
                found = {n: quantized.rounded(node.op_type, v, like) for n, v in found.items()}
            values.update(found)
        return {name: values[name] for name in step.outputs}

    def _run_one(
        self, node: onnx.NodeProto, given: Mapping[str, Any], values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What a node makes of what it is given; what is not among `values` is constant."""
        if any(map(is_complex, given.values())):
            return by_onnx.run(node, given, self._opsets)
        if (found := by_onnx.of_list(node, given)) is not None:
            return {node.output[0]: found}
        made = tuple(name for name in node.output if name)
        fed = {name: value for name, value in given.items() if name in values}
        known = tuple(name for name in given if name not in values)
        try:
            step = Step((node,), True, tuple(fed), known, made, ())
            return self._open(self._stretch(step, fed)).run(fed, made)
        except (NoWitness, NotRunnable):
            if any(map(by_onnx.is_bfloat16, given.values())):
                wide = by_onnx.in_floats(given)
                step = Step((node,), True, tuple(wide), (), made, ())
                return by_onnx.to_bfloat16(self._open(self._stretch(step, wide)).run(wide, made))
            if by_onnx.has(node, given.values(), self._opsets):
                return by_onnx.run(node, given, self._opsets)
            raise

    def _stretch(self, step: Step, feeds: Mapping[str, Any]) -> onnx.ModelProto:
        model = onnx.ModelProto()
        graph = model.graph
        graph.name = self._graph.name or "graph"
        graph.node.extend(step.nodes)
        state_loops(graph)
        for name in step.constants:
            if not self._constants.embed(name, graph):
                raise NoWitness(
                    step.nodes[0].op_type,
                    where=f"graph `{self._graph.name}`",
                    why=f"`{name}` is a constant of no standard kind",
                )
        for name, value in feeds.items():
            graph.input.append(_typed(name, value))
        for name in step.outputs:  # onnxruntime infers the types
            graph.output.add(name=name)
        return model


def _kind(value: Any) -> tuple[Any, ...]:
    """What a session must be made for: dtype and rank, and how many sizes there are."""
    if isinstance(value, list):
        return ("list", value[0].dtype if value else None)
    array = np.asarray(value)
    return (array.dtype, *_lengths(array))


def _lengths(array: np.ndarray[Any, Any]) -> tuple[int | None, ...]:
    """The lengths that a session is told: those of what may be sizes, and else none.

    onnxruntime takes a line of sizes of unknown length, joined to known ones, for an empty one.
    """
    if array.ndim == 1 and array.dtype.kind == "i" and len(array) <= _MOST_SIZES:
        return (len(array),)
    return (None,) * array.ndim


def _typed(name: str, value: Any) -> onnx.ValueInfoProto:
    """An input of a stretch, with the dtype and rank of the array at hand."""
    info = onnx.ValueInfoProto(name=name)
    if isinstance(value, list):
        dtype = value[0].dtype if value else np.dtype(np.float32)
        info.type.sequence_type.elem_type.tensor_type.elem_type = _element(dtype)
        return info
    if isinstance(value, dict):
        raise NoWitness("DictConstruct", where=f"value `{name}`", why="ONNX has no dictionaries")
    array = np.asarray(value)
    tensor = info.type.tensor_type
    tensor.elem_type = _element(array.dtype)
    tensor.shape.SetInParent()  # rank 0 is a rank
    for length in _lengths(array):
        tensor.shape.dim.add(dim_value=length)
    return info


def _element(dtype: np.dtype[Any]) -> int:
    if dtype.kind in "OUS":
        return int(onnx.TensorProto.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))


def _check_feed(value: onnx.ValueInfoProto, feeds: Feeds) -> None:
    """What onnxruntime checks of an input, checked here too: the witness is no laxer."""
    where = f"input `{value.name}`"
    if value.name not in feeds:
        raise RunFailed(where=where, text=f"`{value.name}` is not given")
    array = feeds[value.name]
    if not value.type.HasField("tensor_type") or not isinstance(array, np.ndarray):
        return
    tensor = value.type.tensor_type
    if tensor.elem_type and tensor.elem_type != _element(array.dtype):
        raise RunFailed(where=where, text=f"`{value.name}` is given as {array.dtype.name}")
    if not tensor.HasField("shape"):
        return
    declared = [length_of(d) for d in tensor.shape.dim]
    fits = len(declared) == array.ndim and all(
        want in (None, has) for want, has in zip(declared, array.shape, strict=True)
    )
    if not fits:
        text = f"`{value.name}` has shape {list(array.shape)}, declared is {declared}"
        raise RunFailed(where=where, text=text)
