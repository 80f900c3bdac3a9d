"""`extract`: the part of a model between values of it, compared with what it was cut out of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import onnx

from surgeon.auditing import compared_with, source_said, verdict_said
from surgeon.choices import (
    Data,
    Reference,
    check_by_name,
    check_choice,
    check_data,
    check_reference,
    check_unasked,
    several,
)
from surgeon.ends import Value, inputs_of, value_of
from surgeon.errors import RecipeError, VerifyError
from surgeon.extraction.cut import FROM, TO, Cut, End, Wiring, cut, read_end, renamed
from surgeon.extraction.marked import given_by, weights_of
from surgeon.extraction.rejoined import compare
from surgeon.extraction.types import types_of
from surgeon.model import Model, ModelLike
from surgeon.opening import told_apart
from surgeon.provenance import begun, stamps
from surgeon.renaming import names_of_values, unused
from surgeon.standard import opset_of
from surgeon.surgery import GOOD
from surgeon.wire import copy_field
from surgeon.writer import imports, set_property

if TYPE_CHECKING:
    from surgeon.verify import Verdict


@dataclass(frozen=True, slots=True)
class Extraction:
    """What `extract` gives.

    Attributes:
        model: The part.
        inputs: As it declares them, but for weights that stand among them.
        outputs: As it declares them.
        nodes: How many nodes of the main graph it has.
        of: How many the whole has.
        verdict: How it compares with the whole; None where that was not asked for.
        without: Outputs of the whole that are none of the part, where others are.
        not_given: What nodes of `outputs_of` give and the part does not: it is no tensor, or one of
            unknown type.
    """

    model: Model
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: int
    of: int
    verdict: Verdict | None = None
    without: tuple[str, ...] = ()
    not_given: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        values = {
            side: [{"name": v.name, "kind": v.kind, "shape": v.shape} for v in ends]
            for side, ends in (("inputs", self.inputs), ("outputs", self.outputs))
        }
        verdict = None if self.verdict is None else self.verdict.to_dict()
        counts = {"nodes": self.nodes, "of": self.of}
        lists = {"without": list(self.without), "not_given": list(self.not_given)}
        return {**values, **counts, **lists, "verdict": verdict}


def extract(
    model: ModelLike,
    *,
    inputs: str | Sequence[str] = (),
    outputs: str | Sequence[str] = (),
    outputs_of: str | Sequence[str] = (),
    weights_as_inputs: str | Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    verify: bool = True,
    require: str = "runs",
    reference: Reference = None,
    drawn: Mapping[str, str] | None = None,
    data: Data = (),
    progress: Callable[[str], None] | None = None,
    date: str | None = None,
) -> Extraction:
    """Cut the part of a model between values out of it, and compare it with the whole.

    Functions, bodies, weights and external data that the part reads go with it. What is compared
    is the model, asked for the part's outputs, with its own beginning and the part behind it.

    Args:
        model: A path, a `Model`, an `onnx.ModelProto` or a graphsurgeon `Graph`; not changed.
        inputs: The values of the main graph that the part is given, in this order; `NAME=VALUE`
            calls one otherwise. By default the graph inputs that it reads.
        outputs: The values that it gives; by default the model's outputs.
        outputs_of: Operators whose values it gives too, `Conv` or `com.microsoft.*`, and `*` for
            what any node gives: of the nodes between `inputs` and `outputs`, with neither of all of
            the main graph. Those that are known to be tensors, in the order of the file.
        weights_as_inputs: Names of weights that the part is given and does not have, `*lora*` say:
            behind its other inputs, in the order of the file.
        types: By its name in the model, the type of a value, `int64[n,t]`, where none is known: of
            what an operator gives that nobody knows.
        verify: Whether to compare.
        require: `equivalent` refuses a part that could not be compared.
        reference: What stands for the whole, as for `apply`.
        drawn: By the whole model's input name, how it is drawn, as `uniform(0,1)`.
        data: Files with real inputs of the whole model, compared beside drawn ones.
        progress: Called with a line of text when a stage begins.
        date: When, for the log that the part keeps of its making. Without one equal runs give
            equal bytes.

    Raises:
        ModelError: The model cannot be read, or the type of a value is unknown.
        RecipeError: No value was named, there is none such, no node is of such an operator, or
            the part reads more than it is given.
        VerifyError: The part does not run, or differs.
    """
    check_choice("require", require, ("runs", "equivalent"))
    check_by_name(drawn=drawn, types=types)
    check_data(data)
    check_reference(reference)
    if not verify:
        check_unasked(require == "equivalent", reference, drawn, data)
    operators, given = several(outputs_of), several(weights_as_inputs)
    if not inputs and not outputs and not operators and not given:
        what, mend = "where to cut is not said", "Give `--from VALUE`, `--to VALUE`, or both."
        raise RecipeError(what, where=FROM, mend=mend)
    source = Model.of(model)
    whole, _ = told_apart(source)
    proto = whole.proto
    wiring = Wiring(proto.graph)
    begin, end = (
        [read_end(text, wiring, where) for text in several(texts)]
        for where, texts in ((FROM, inputs), (TO, outputs))
    )
    part = named = cut(wiring, begin, end)
    left: list[str] = []
    if operators:
        nodes = part.nodes if begin or end else wiring.nodes
        more, left = given_by(whole, nodes, operators, part)
        part = cut(wiring, begin, [*part.outputs, *more])
    if given:
        part = cut(wiring, begin, part.outputs, weights_of(proto.graph, given, part))
    known = types_of(whole, [end.value for end in (*part.inputs, *part.outputs)], types or {})
    made = model_of(proto, part, known)
    ends = {"from": _told(part.inputs), "to": _told(named.outputs)}
    ends |= {"outputs of": [*operators]} if operators else {}
    start = begun(date) | source_said(source.path) | {"extracted": ends}
    earlier = list(made.metadata_props)
    result = Model(made, folder=whole.folder)
    result.watch = source.watch

    def log(verdict: Verdict | None) -> None:
        said = start | {"verdict": verdict_said(verdict, date)} | compared_with(data, reference)
        result.stamps |= stamps(earlier, said)
        for key, text in result.stamps.items():
            set_property(made.metadata_props, key, text)

    log(None)
    found = Extraction(
        result,
        inputs_of(made.graph),
        tuple(map(value_of, made.graph.output)),
        len(part.nodes),
        len(wiring.nodes),
        without=_left([value.name for value in proto.graph.output], part.outputs),
        not_given=tuple(left),
    )
    if not verify:
        return found
    if progress:
        progress("verify")
    settings: dict[str, Any] = {"reference": reference, "inputs": drawn, "data": data}
    verdict = compare(whole, wiring, part, made, known, progress=progress, **settings)
    if verdict.status not in GOOD or (require == "equivalent" and verdict.status == "runs"):
        raise VerifyError(
            f"the part is not shown to compute what the model does: {verdict.detail}",
            where=str(whole.path or "model"),
            mend="See whether the whole runs: surgeon inspect; or mend it first: surgeon apply.",
        )
    source.see_unchanged(model)
    log(verdict)
    return replace(found, verdict=verdict)


def _left(whole: Sequence[str], given: Sequence[End]) -> tuple[str, ...]:
    """Outputs that nobody named beside others that somebody did: they may be forgotten."""
    named = {end.value for end in given}
    return tuple(name for name in whole if name not in named) if named.intersection(whole) else ()


def _told(ends: Sequence[End]) -> list[str]:
    return [e.value if e.name == e.value else f"{e.name}={e.value}" for e in ends]


def model_of(
    proto: onnx.ModelProto, part: Cut, types: Mapping[str, onnx.TypeProto]
) -> onnx.ModelProto:
    """The part as a model of its own."""
    made = onnx.ModelProto()
    for field, value in proto.ListFields():
        if field.name not in ("graph", "functions", "opset_import", "training_info"):
            copy_field(field.name, value, made)
    source, graph = proto.graph, made.graph
    for field, value in source.ListFields():
        if field.name in ("name", "doc_string", "metadata_props"):
            copy_field(field.name, value, graph)
    names = {end.value: end.name for end in (*part.inputs, *part.outputs)}
    changed = {old: new for old, new in names.items() if old != new}
    graph.node.extend(renamed(part.nodes, changed))
    _set_aside(graph, [end.name for end in part.inputs], proto)
    _declare_ends(graph, part, types, source)
    _take_weights(graph, part, source)
    inner = {name for node in part.nodes for name in node.output if name}
    inner |= part.reads - {end.value for end in part.inputs}
    inner -= names.keys()
    graph.value_info.extend(v for v in source.value_info if v.name in inner)
    annotated = (a for a in source.quantization_annotation if a.tensor_name in inner)
    graph.quantization_annotation.extend(annotated)
    made.functions.extend(_called(proto, part.nodes))
    opset = opset_of(proto) or 1
    before, now = [source, *proto.functions], [graph, *made.functions]
    made.opset_import.extend(imports(proto.opset_import, opset, before, now))
    return made


def _declare_ends(
    graph: onnx.GraphProto, part: Cut, types: Mapping[str, onnx.TypeProto], source: onnx.GraphProto
) -> None:
    """Declare the part's inputs and outputs, with what the whole says of those that are its own."""
    declared = {v.name: v for v in (*source.input, *source.output)}
    for ends, field in ((part.inputs, graph.input), (part.outputs, graph.output)):
        for end in ends:
            value = field.add()
            if end.value in declared:
                value.CopyFrom(declared[end.value])
            value.name = end.name
            value.type.CopyFrom(types[end.value])


def _take_weights(graph: onnx.GraphProto, part: Cut, source: onnx.GraphProto) -> None:
    """Take the initializers that the part reads, and is not given."""
    read = part.reads - {end.value for end in part.inputs}
    kept = [t for t in source.initializer if t.name in read]
    graph.initializer.extend(kept)
    graph.sparse_initializer.extend(t for t in source.sparse_initializer if t.values.name in read)
    overridable = {t.name for t in kept}  # of IR below 4 they have to stand among the inputs
    graph.input.extend(v for v in source.input if v.name in overridable)


def _set_aside(graph: onnx.GraphProto, given: Sequence[str], whole: onnx.ModelProto) -> None:
    """Call values otherwise that the part is given and one of its nodes makes beside others."""
    taken = {name for each in (whole.graph, graph) for name in names_of_values(each)}
    for node in graph.node:
        for place, name in enumerate(node.output):
            if name in given:
                node.output[place] = unused(f"{name}_aside", taken)


def _called(proto: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> list[onnx.FunctionProto]:
    """The functions that nodes call, and those that these call, in the model's order."""
    known = {(f.domain, f.name, f.overload): f for f in proto.functions}
    found: dict[int, None] = {}
    pending = list(nodes)
    while known and pending:
        node = pending.pop()
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                pending.extend(body.node)
        function = known.get((node.domain, node.op_type, node.overload))
        if function is not None and id(function) not in found:
            found[id(function)] = None
            pending.extend(function.node)
    return [function for function in proto.functions if id(function) in found]
