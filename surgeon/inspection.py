"""Looks at a model and says what is in it, and whether onnxruntime loads it; changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx

from surgeon.advice import by_count, fit_of
from surgeon.deciding import deciding
from surgeon.dialect import wants_listed
from surgeon.ends import Value, defaults_of, dynamic_of, inputs_of, value_of
from surgeon.errors import ModelError
from surgeon.external import external_tensors
from surgeon.helpful import helpful, recipes_for
from surgeon.importer import types_given
from surgeon.misexported import misexported
from surgeon.misfits import Misfit, misfits, unread
from surgeon.model import Model, ModelLike
from surgeon.nested import bodies
from surgeon.numerals import natural
from surgeon.oddities import Oddities, oddities
from surgeon.provenance import recipes_of
from surgeon.reading import bytes_in, external_path
from surgeon.soundness import see_texts
from surgeon.spelling import operator_name, spelling
from surgeon.standard import STANDARD
from surgeon.steps.asread import could_be_left
from surgeon.stored import bytes_of
from surgeon.targets import Fit
from surgeon.targets import target as of_target
from surgeon.weights import Weight, weights_of

_OF_ONNX = frozenset({*STANDARD, "ai.onnx.ml"})
TIMEOUT = 10.0  # seconds for what native code is asked


@dataclass(frozen=True, slots=True)
class Foreign:
    """An operator that is not ONNX's.

    Attributes:
        operator: As recipes write it: `aten.adaptive_avg_pool2d`, or `domain.operator`.
        count: How many nodes.
        spelled: How the file says it: `org.pytorch.aten.ATen`, with the operator as an attribute.
        runs: Whether onnxruntime has it nevertheless, as a contributed operator.
        recipes: Bundled recipes that have a rule for it.
    """

    operator: str
    count: int
    spelled: tuple[str, ...]
    runs: bool
    recipes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """A file of weights beside the model.

    Attributes:
        name: As the model writes it.
        tensors: How many weights lie in it.
        size: In bytes; None where it is missing or lies outside the model's folder.
        needed: Up to which byte weights lie in it: more than `size` where it is cut off.
    """

    name: str
    tensors: int
    size: int | None
    needed: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is in a model.

    Attributes:
        source: Its path; `<model>` of one in memory.
        size: Of the file, in bytes.
        ir_version: Of ONNX's file format.
        producer: The exporter and its version, as it names itself.
        opsets: Operator set versions by domain, `ai.onnx` for the default one.
        inputs: Without those that have an initializer.
        outputs: As the file declares them.
        defaults: Inputs that have a value in the file, and need not be given; none where every
            weight is listed so, as old converters did.
        overridable: How many initializers are graph inputs too.
        dynamic: The inputs' dynamic dims by name, an unnamed one as `input.axis`.
        operators: How many nodes of each, `Constant` nodes left out, bodies and functions included.
        initializers: How many.
        weight_bytes: Of all initializers, external ones included.
        weight_dtypes: Their bytes by element type, the most first.
        largest: The few largest of them.
        external: Files of weights beside the model.
        functions: The model's own functions, as `domain.name`.
        subgraphs: How many bodies of If, Loop and Scan.
        foreign: Operators outside standard ONNX.
        computed_weights: Conv nodes whose kernel is computed: many runtimes refuse them.
        bfloat16: How many inputs and weights are in bfloat16, of which few runtimes compute.
        float64: How many inputs, constants and Casts are in double precision.
        recipes: Bundled recipes that have rules for operators of this model, and how many rules.
        loads: Whether onnxruntime loads it; None where it was not asked.
        fault: What it says where it does not.
        fit: Beside the list of a target, where one was asked for.
        cast: Inputs that are only cast before anything computes with them, bytes of an image say.
        cast_behind: Outputs that could be given in the type in which they are computed.
        turned: Inputs that are only turned, from N,H,W,C to N,C,H,W say.
        made: The recipes that made it, as its own log says.
        deciding: Inputs of a few numbers on which branches, turns of loops or sizes hang.
        misstated: Values of which the file states another type or shape than they have.
        unsorted: Whether a node stands in front of one whose result it reads.
        training: How many Dropouts and BatchNormalizations are in training mode.
        misexported: Values that PyTorch's exporter wrote otherwise than the module has them, by
            the recipe that mends them.
        broken: Why every command but this refuses the file; "" where none does.
        bare_kernels: How many convolutions leave the size of their kernel to the weight.
        below_zero: Inputs and outputs that declare a size below 0, which is read as unknown.
        misfits: Nodes that cannot be as they stand, as far as ONNX's own inference tells; none
            where onnxruntime loads the model.
        unread: Nodes, besides constants, that lead to no output.
    """

    source: str
    size: int
    ir_version: int
    producer: str
    opsets: Mapping[str, int]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    defaults: tuple[Value, ...]
    overridable: int
    dynamic: tuple[str, ...]
    operators: Mapping[str, int]
    initializers: int
    weight_bytes: int
    weight_dtypes: Mapping[str, int]
    largest: tuple[Weight, ...]
    external: tuple[ExternalFile, ...]
    functions: tuple[str, ...]
    subgraphs: int
    foreign: tuple[Foreign, ...]
    computed_weights: int
    bfloat16: int
    float64: int
    recipes: Mapping[str, int]
    loads: bool | None = None
    fault: str = ""
    fit: Fit | None = None
    cast: tuple[str, ...] = ()
    cast_behind: tuple[str, ...] = ()
    turned: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    deciding: tuple[str, ...] = ()
    misstated: tuple[str, ...] = ()
    unsorted: bool = False
    training: int = 0
    misexported: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    broken: str = ""
    bare_kernels: int = 0
    below_zero: tuple[str, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    unread: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        plain = {
            name: [e._asdict() for e in getattr(self, name)] for name in ("largest", "misfits")
        }
        return {**asdict(self), **plain}


def with_load(found: Inspection, *, timeout: float = TIMEOUT) -> Inspection:
    """The same, after onnxruntime was asked, in a process of its own, whether it loads the model.

    It is not asked where operators or data are missing, and of models above a gigabyte or with
    functions, which may be a great many when they are inlined; nothing is said where it takes more
    than `timeout` seconds.
    """
    from surgeon.isolation import MOST_LOADED, fault_of, isolation

    missing = any(file.size is None for file in found.external)
    if (
        missing
        or found.functions
        or found.weight_bytes > MOST_LOADED
        or any(not f.runs for f in found.foreign)
    ):
        return found
    with isolation(timeout=timeout):
        fault = fault_of(Path(found.source))
    if fault is None:
        return found
    return replace(found, loads=not fault, fault=fault, misfits=found.misfits if fault else ())


_UNSAVED = Path("model.onnx")  # for commands


def inspect(model: ModelLike, *, target: str | Path | None = None) -> Inspection:
    """Look at a model; external data is counted, not read, and nothing is run.

    Args:
        model: A path, a `Model`, an `onnx.ModelProto` or a graphsurgeon `Graph`.
        target: A runtime whose list of operators is looked through, as `surgeon.targets` names it.

    Raises:
        ModelError: Missing, empty, truncated, or no ONNX model.
        RecipeError: There is no list of this target.
    """
    wanted = None if target is None else of_target(target)
    model = Model.of(model)
    proto, path = model.proto, model.path
    see_texts(proto, where=str(path or "model"))
    nodes = list(nodes_of(proto))
    operators = Counter(operator_name(node) for node in nodes if not _is_constant(node))
    inputs = inputs_of(proto.graph)
    types, weights = types_given(proto), weights_of(proto.graph)
    made = recipes_of(proto.metadata_props)
    broken = _broken(model)
    sound = not broken
    left = could_be_left(proto) if sound else {}
    odd = oddities(proto) if sound else Oddities()
    return Inspection(
        source=str(path or "<model>"),
        size=path.stat().st_size if path else proto.ByteSize(),
        ir_version=proto.ir_version,
        producer=" ".join(filter(None, (proto.producer_name, proto.producer_version))),
        opsets={entry.domain or "ai.onnx": entry.version for entry in proto.opset_import},
        inputs=inputs,
        outputs=tuple(value_of(v) for v in proto.graph.output),
        defaults=defaults_of(proto),
        overridable=len(model.overridable),
        dynamic=dynamic_of(inputs),
        operators=dict(by_count(operators)),
        initializers=len(proto.graph.initializer) + len(proto.graph.sparse_initializer),
        weight_bytes=weights.size,
        weight_dtypes=weights.dtypes,
        largest=weights.largest,
        external=tuple(_external(model)),
        functions=tuple(f"{f.domain}.{f.name}" for f in proto.functions),
        subgraphs=sum(1 for node in nodes for _ in bodies(node)),
        foreign=tuple(_foreign(proto, nodes, operators)),
        computed_weights=_computed_weights(model),
        bfloat16=types.count(onnx.TensorProto.BFLOAT16),
        float64=types.count(onnx.TensorProto.DOUBLE) + odd.doubles,
        recipes=helpful(operators),
        fit=fit_of(model, operators, wanted, path or _UNSAVED, made, sound=sound),
        cast=left.get("types", ()),
        cast_behind=left.get("output-types", ()),
        made=made,
        turned=left.get("order", ()),
        deciding=deciding(proto),
        misstated=odd.misstated,
        unsorted=odd.unsorted,
        training=odd.training,
        misexported=misexported(proto) if sound else {},
        broken=broken,
        bare_kernels=odd.bare,
        below_zero=odd.below_zero,
        misfits=misfits(proto, sound=sound),
        unread=unread(proto),
    )


def _broken(model: Model) -> str:
    """Why it is no model throughout; what is in a broken one is shown all the same."""
    try:
        model.sound  # noqa: B018 - what it has is looked at, and refused
    except ModelError as error:
        return error.what
    return ""


def nodes_of(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Every node of the graph, the functions and all bodies."""
    stack: list[Any] = [*reversed(proto.functions), proto.graph]
    while stack:
        for node in stack.pop().node:
            yield node
            stack.extend(bodies(node))


def _is_constant(node: onnx.NodeProto) -> bool:
    return node.op_type == "Constant" and node.domain in STANDARD


def _foreign(
    proto: onnx.ModelProto,
    nodes: Sequence[onnx.NodeProto],
    operators: Mapping[str, int],
) -> Iterator[Foreign]:
    functions = {(f.domain, f.name) for f in proto.functions}
    versions = {entry.domain: entry.version for entry in proto.opset_import}
    spelled: dict[str, dict[str, None]] = {}
    for node in nodes:
        if (node.domain, node.op_type) not in functions and not _is_standard(node, versions):
            spelled.setdefault(operator_name(node), {})[spelling(node)] = None
    if not spelled:
        return
    from surgeon.isolation import unknown_operators

    unknown = set(unknown_operators(proto))
    for operator in sorted(spelled, key=lambda name: (-operators[name], name)):
        spellings = tuple(spelled[operator])
        yield Foreign(
            operator=operator,
            count=operators[operator],
            spelled=spellings,
            runs=not unknown.intersection(spellings),
            recipes=recipes_for(operator),
        )


def _is_standard(node: onnx.NodeProto, versions: Mapping[str, int]) -> bool:
    if node.domain not in STANDARD:
        return False  # `ai.onnx.ml` is ONNX's too, and few runtimes have it
    version = versions.get("", versions.get(node.domain, 1))
    newest = onnx.defs.onnx_opset_version()
    return bool(onnx.defs.has(node.op_type, min(version, newest), ""))


def _external(model: Model) -> Iterator[ExternalFile]:
    ends, folder = dict[str, list[int]](), model.folder or Path()
    for tensor in external_tensors(model.proto):
        told = {entry.key: entry.value for entry in tensor.external_data}
        end = (natural(told.get("offset") or "0") or 0) + bytes_of(tensor)
        ends.setdefault(told.get("location", ""), []).append(end)
    for location, each in ends.items():
        try:
            length = bytes_in(external_path(location, folder), folder)
        except ModelError:
            length = None
        yield ExternalFile(location, len(each), length, max(each))


def _computed_weights(model: Model) -> int:
    """Conv nodes whose kernel depends on the model's inputs; a dequantised constant does not."""
    proto = model.proto
    given = {value.name for value in proto.graph.input}
    constant = {tensor.name for tensor in proto.graph.initializer} - given
    constant |= {tensor.values.name for tensor in proto.graph.sparse_initializer} | {""}
    if model.listed or wants_listed(model):  # what is listed among the inputs is a constant
        constant |= {tensor.name for tensor in proto.graph.initializer}
    found = 0
    for node in nodes_of(proto):
        if constant.issuperset(node.input) and not any(a.HasField("g") for a in node.attribute):
            constant.update(node.output)
        elif node.op_type in ("Conv", "ConvTranspose") and node.domain in STANDARD:
            found += int(len(node.input) > 1 and node.input[1] not in constant)
    return found
