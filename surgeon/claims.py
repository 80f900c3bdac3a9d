"""What a file says of its values beside the axioms: shapes that stand in it, held against facts.

Exporters leave stale static shapes on dynamic models. A claim that is proven false is corrected in
the saved file and reported. With a false element type of an output no runtime loads the file; with
a false size of one onnxruntime reuses buffers and merges views for the size it was told, and fails
at others, so that it is corrected too where no runtime knew the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx

from surgeon import dims
from surgeon.declared import length_of, tensor_of
from surgeon.dims import Dim, Expr
from surgeon.facts import Fact, Facts
from surgeon.links import bodies, current
from surgeon.model import Model
from surgeon.sizenames import renamed
from surgeon.standard import STANDARD

_UNTOLD = dims.symbol("")  # a size without a name
_CUTS_KEEP = 10  # the opset whose Slice onnx infers so
_COUNTED_BY_VALUES = frozenset({"Unique", "NonZero", "Compress", "NonMaxSuppression"})


def _as_they_came(model: Model) -> Iterator[tuple[Any, onnx.GraphProto]]:
    """The main graph and every body of the file that is still there, with what was read."""
    for graph in (model.graph, *bodies(model.graph)):
        origin = getattr(graph, "origin", None)
        if isinstance(origin, onnx.GraphProto):
            yield graph, origin


def correct_claims(model: Model, facts: Facts) -> list[str]:
    """Correct every false shape in the value_info of the model; names what was corrected.

    Args:
        model: Its graphs are given `corrected`, which the writer uses.
        facts: What is proven.
    """
    found: list[str] = []
    for graph, origin in _as_they_came(model):
        if not origin.value_info:
            continue
        tensors = {t.name: t for node in graph.nodes for t in node.outputs if t.name}
        corrected: dict[str, onnx.ValueInfoProto] = {}
        for value in origin.value_info:
            tensor = tensors.get(value.name)
            if tensor is not None:
                mended = _as_tensor(value, facts.of(tensor)) or _mend(value, facts.of(tensor).shape)
                if mended is not None:
                    corrected[value.name] = mended
        graph.corrected = corrected
        found.extend(corrected)
    return found


def state_cuts(model: Model, facts: Facts) -> None:
    """Say how long cuts are, at the opset at which onnx infers that they are as long as before.

    onnxruntime believes that, and lets values of one shape share memory.

    Args:
        model: Its graphs are given `stated`, which the writer adds to what the file said.
        facts: What is proven.
    """
    if facts.opset != _CUTS_KEEP:
        return
    for graph, origin in _as_they_came(model):
        said = {value.name for value in (*origin.value_info, *origin.output)}
        stated = []
        for node in graph.nodes:
            if node.op != "Slice" or (node.domain or "") not in STANDARD:
                continue
            before, after = (facts.of(current(t)) for t in (node.inputs[0], node.outputs[0]))
            name = node.outputs[0].name
            if name in said or not after.dtype or before.rank is None or before.rank != after.rank:
                continue
            pairs = enumerate(zip(before.shape or (), after.shape or (), strict=True))
            shape = [
                None if dims.equal(a, b) is True else b if isinstance(b, int) else f"{name}.{axis}"
                for axis, (a, b) in pairs
            ]
            stated.append(onnx.helper.make_tensor_value_info(name, after.dtype, shape))
        graph.stated = stated


def correct_outputs(model: Model, facts: Facts, *, ranks: bool = False) -> list[str]:
    """Correct every size that an output declares and that varies, or may vary, with the inputs.

    Gives the names of what was corrected. Of a size that nothing but the run itself tells an
    exporter knows what its trace had: nothing is declared of it, unless no input varies. Where the
    values of the inputs tell it, it varies with these.

    Args:
        model: Its graphs are given `declared`, which the writer uses.
        facts: What is proven.
        ranks: Only where the rank is another, with which no runtime loads the file.
    """
    known = {
        name
        for tensor in model.graph.inputs
        for dim in facts.of(tensor).shape or ()
        for name in dims.symbols(dim)
    }
    by_values = {
        name
        for graph in (model.graph, *bodies(model.graph))
        for node in graph.nodes
        if node.op in _COUNTED_BY_VALUES
        for tensor in node.outputs
        for dim in facts.of(tensor).shape or ()
        for name in dims.symbols(dim)
    }
    found: list[str] = []
    for graph, origin in _as_they_came(model):
        declared = dict(getattr(graph, "declared", {}))
        for value, tensor in zip(origin.output, graph.outputs, strict=False):
            shape = facts.of(tensor).shape
            if shape is None or not tensor.inputs:
                continue
            if ranks and not _has_other_rank(value, len(shape)):
                continue
            shape = tuple(dims.substitute(dim, facts.defined_at) for dim in shape)
            open_ = {name for dim in shape for name in dims.symbols(dim)}
            if not known and not open_ <= by_values:
                continue
            shape = tuple(dim if dims.symbols(dim) <= known else _UNTOLD for dim in shape)
            mended = _mend(declared.get(value.name, value), shape)
            if mended is not None:
                declared[value.name] = mended
                found.append(value.name)
        graph.declared = declared
    return found


def correct_carried(model: Model, facts: Facts) -> list[str]:
    """Correct what bodies declare of the shapes that they are given and give, if it is not proven.

    Exporters state a Loop's first turn; onnxruntime takes that for all, and may never end then.

    Args:
        model: Its bodies are given `declared`, which the writer uses.
        facts: What is proven.
    """
    found: list[str] = []
    for graph, origin in _as_they_came(model):
        if graph is model.graph:
            continue
        declared = dict(getattr(graph, "declared", {}))
        ends = zip(origin.output, graph.outputs, strict=False) if graph.inputs else ()  # no branch
        for value, tensor in (*zip(origin.input, graph.inputs, strict=False), *ends):
            claimed, shape = value.type.tensor_type, facts.of(tensor).shape
            if not claimed.HasField("shape"):
                continue
            if shape is not None:
                open_ = tuple(_UNTOLD if dims.symbols(dim) else dim for dim in shape)
                mended = _mend(declared.get(value.name, value), open_)
            elif any(dim.dim_value for dim in claimed.shape.dim):
                mended = onnx.ValueInfoProto()
                mended.CopyFrom(declared.get(value.name, value))
                mended.type.tensor_type.ClearField("shape")
            else:
                mended = None
            if mended is not None:
                declared[value.name] = mended
                found.append(value.name)
        graph.declared = declared
    return found


def correct_types(model: Model, facts: Facts) -> list[str]:
    """Correct every false element type of an output, in bodies too; names what was corrected.

    Exporters guess the type of what they have no operator for.

    Args:
        model: Its graphs are given `declared`, which the writer uses.
        facts: What is proven.
    """
    found: list[str] = []
    for graph, origin in _as_they_came(model):
        declared = dict(getattr(graph, "declared", {}))
        for value, tensor in zip(origin.output, graph.outputs, strict=False):
            proven = facts.of(tensor).dtype
            claimed = value.type.tensor_type.elem_type
            if not tensor.inputs or not proven or claimed in (0, proven):
                continue
            mended = onnx.ValueInfoProto()
            mended.CopyFrom(declared.get(value.name, value))
            mended.type.tensor_type.elem_type = proven
            declared[value.name] = mended
            found.append(value.name)
        graph.declared = declared
    return found


def declare_tables(model: Model, facts: Facts) -> list[str]:
    """Declare as tensors what the file declares as lists of maps, and is one; names the outputs.

    Args:
        model: It is given `declared`, which the writer uses.
        facts: What is proven.
    """
    found: list[str] = []
    for graph, origin in _as_they_came(model):
        declared = dict(getattr(graph, "declared", {}))
        for value, tensor in zip(origin.output, graph.outputs, strict=False):
            fact = facts.of(tensor)
            item = value.type.sequence_type.elem_type
            if item.WhichOneof("value") == "map_type" and fact.dtype and fact.items is None:
                shape = [
                    dims.named(dim) or f"{value.name}_{i}" if not isinstance(dim, int) else dim
                    for i, dim in enumerate(fact.shape or ())
                ]
                declared[value.name] = onnx.helper.make_tensor_value_info(
                    value.name, fact.dtype, None if fact.shape is None else shape
                )
                found.append(value.name)
        graph.declared = declared
    return found


def declare_numbers(model: Model, facts: Facts) -> None:
    """Declare the number and the condition of a Loop's turn where the file says nothing of them.

    onnxruntime runs no Loop whose turn has an unknown shape.

    Args:
        model: The bodies of its Loops are given `declared`, which the writer uses.
        facts: What is proven.
    """
    for graph, origin in _as_they_came(model):
        declared = dict(getattr(graph, "declared", {}))
        for value, tensor in zip(origin.input, graph.inputs, strict=False):
            proven, claimed = facts.of(tensor), value.type.tensor_type
            silent = not claimed.HasField("shape") and claimed.elem_type in (0, proven.dtype)
            if silent and proven.dtype and proven.shape == ():
                declared[value.name] = onnx.helper.make_tensor_value_info(
                    value.name, proven.dtype, ()
                )
        graph.declared = declared


def declare_types(model: Model, facts: Facts) -> None:
    """Declare what is proven of values whose type the file leaves empty, or says in part.

    Exporters write so what a scripted module's Loop carries, lists above all, and no runtime reads
    it. What is not proven is not declared, so that a runtime infers it.

    Args:
        model: Its graphs are given `declared`, which the writer uses.
        facts: What is proven.
    """
    for graph, origin in _as_they_came(model):
        declared = dict(getattr(graph, "declared", {}))
        pairs = [*zip(origin.input, graph.inputs, strict=False)] if graph is not model.graph else []
        for value, tensor in (*pairs, *zip(origin.output, graph.outputs, strict=False)):
            fact, mended = facts.of(tensor), onnx.ValueInfoProto(name=value.name)
            if value.name in declared or not _says_too_little(value.type, fact):
                continue
            if fact.items is not None and (fact.items.dtype or fact.items.empty):
                item = mended.type.sequence_type.elem_type.tensor_type
                item.elem_type = fact.items.dtype or onnx.TensorProto.FLOAT
            elif fact.items is None and fact.dtype:
                mended.type.tensor_type.elem_type = fact.dtype
            declared[value.name] = mended
        graph.declared = declared


def _says_too_little(claimed: onnx.TypeProto, fact: Fact) -> bool:
    """Whether a type has no kind, or is not that of a list, or not of what is in the list."""
    kind = claimed.WhichOneof("value")
    if kind is None:
        return True
    if kind == "tensor_type":
        return fact.items is not None or (not claimed.tensor_type.elem_type and bool(fact.dtype))
    if kind != "sequence_type" or fact.items is None:
        return False
    item = claimed.sequence_type.elem_type
    said = item.tensor_type.elem_type if item.WhichOneof("value") == "tensor_type" else 0
    return said == 0 or (fact.items.dtype not in (0, said))


def declare(
    model: Model, facts: Facts, shapes: Mapping[str, Sequence[int | str]], fixed: Mapping[str, int]
) -> bool:
    """Write the shapes that the user fixed into the model's interface; True where that changed it.

    Args:
        model: Its main graph is given `declared`, which the writer uses.
        facts: Says what the outputs have become.
        shapes: By input name; a size that has a new name there has it at outputs too.
        fixed: Dimensions that the user gave a number, by name.
    """
    if not shapes and not fixed:
        return False
    graph = model.graph
    declared: dict[str, onnx.ValueInfoProto] = {}
    names = renamed(model, facts, shapes)
    for value in graph.origin.input:
        tensor, given = tensor_of(value.type), shapes.get(value.name)
        if tensor is None or (given is None and not tensor.HasField("shape")):
            continue
        if given is None:
            given = [fixed.get(d.dim_param, _dim(d)) for d in tensor.shape.dim]
        declared[value.name] = _with_shape(value, given)
    outputs = {t.name: t for t in graph.outputs}
    for value in graph.origin.output:
        shape, tensor = facts.of(outputs[value.name]).shape, tensor_of(value.type)
        old = [] if tensor is None else tensor.shape.dim
        if shape and len(shape) == len(old):
            pairs = zip(shape, old, strict=True)
            news = [d if isinstance(d, int) else names.of(d) or _dim(o) for d, o in pairs]
            declared[value.name] = _with_shape(value, news)
    graph.declared = declared
    return any(
        declared[v.name] != v
        for v in (*graph.origin.input, *graph.origin.output)
        if v.name in declared
    )


def _as_tensor(value: onnx.ValueInfoProto, fact: Fact) -> onnx.ValueInfoProto | None:
    """The claim where a tensor is said to be a list; None where it is not.

    PyTorch's exporter says so of sizes that a scripted module asks for.
    """
    if not value.type.HasField("sequence_type") or fact.items is not None or not fact.dtype:
        return None
    shape = None if fact.shape is None else [_name(dim) for dim in fact.shape]
    return onnx.helper.make_tensor_value_info(value.name, fact.dtype, shape)


def _mend(value: onnx.ValueInfoProto, shape: tuple[Dim, ...] | None) -> onnx.ValueInfoProto | None:
    """The claim with what is proven in place of what is false; None where nothing is false."""
    type_ = value.type
    if shape is None or not type_.HasField("tensor_type"):
        return None
    claimed = type_.tensor_type
    if not claimed.HasField("shape"):
        return None
    if len(claimed.shape.dim) != len(shape):
        return _with_shape(value, [_name(d) for d in shape])
    news: list[int | str] = []
    false = False
    for dim, proven in zip(claimed.shape.dim, shape, strict=True):
        wrong = dim.HasField("dim_value") and _differs(dim.dim_value, proven)
        false = false or wrong
        news.append(_name(proven) if wrong else _dim(dim))
    return _with_shape(value, news) if false else None


def _has_other_rank(value: onnx.ValueInfoProto, rank: int) -> bool:
    tensor = value.type.tensor_type
    return tensor.HasField("shape") and len(tensor.shape.dim) != rank


def _differs(claimed: int, proven: Dim) -> bool:
    """Whether the claim is false for some size: the proven dimension is another, or varies."""
    if isinstance(proven, int):
        return claimed != proven
    low, high = dims.bounds(proven)
    return low is None or high is None or low != high


def _name(dim: Dim) -> int | str:
    """A dimension as a file can say it: a number, a symbol's name, or nothing."""
    if isinstance(dim, Expr):
        names = dims.symbols(dim)
        return str(dim) if len(names) == 1 and str(dim) in names else ""
    return dim


def _dim(dim: onnx.TensorShapeProto.Dimension) -> int | str:
    length = length_of(dim)
    return dim.dim_param if length is None else length


def _with_shape(value: onnx.ValueInfoProto, shape: Sequence[int | str]) -> onnx.ValueInfoProto:
    out = onnx.ValueInfoProto()
    out.CopyFrom(value)
    tensor = tensor_of(out.type)
    assert tensor is not None
    target = tensor.shape
    notes = [dim.denotation for dim in target.dim]
    del target.dim[:]
    for index, given in enumerate(shape):
        dim = target.dim.add()
        if isinstance(given, int):
            dim.dim_value = given
        elif given:
            dim.dim_param = given
        if index < len(notes) and notes[index]:
            dim.denotation = notes[index]
    return out
