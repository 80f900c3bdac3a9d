"""What a file says of the shapes of its values beside the axioms, held against facts.

Exporters leave stale static shapes on dynamic models. With a false size of an output onnxruntime
reuses buffers and merges views for the size it was told, and fails at others, so that it is
corrected too where no runtime knew the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from surgeon import dims
from surgeon.claims.types import as_tensor, as_they_came, name_of, of_type
from surgeon.declared import length_of, tensor_of
from surgeon.dims import Dim
from surgeon.facts import Facts
from surgeon.links import bodies, current
from surgeon.model import Model
from surgeon.sizenames import renamed
from surgeon.standard import STANDARD

_UNTOLD = dims.symbol("")  # a size without a name
_CUTS_KEEP = 10  # the opset whose Slice onnx infers so
_COUNTED_BY_VALUES = frozenset({"Unique", "NonZero", "Compress", "NonMaxSuppression"})


def correct_claims(model: Model, facts: Facts) -> list[str]:
    """Correct every false type and shape in value_info of the model; names what was corrected.

    Tools that make halves of floats state halves, also of what a Cast left as it was.

    Args:
        model: Its graphs are given `corrected`, which the writer uses.
        facts: What is proven.
    """
    found: list[str] = []
    for graph, origin in as_they_came(model):
        if not origin.value_info:
            continue
        tensors = {t.name: t for node in graph.nodes for t in node.outputs if t.name}
        corrected: dict[str, onnx.ValueInfoProto] = {}
        for value in origin.value_info:
            tensor = tensors.get(value.name)
            if tensor is not None:
                fact = facts.of(tensor)
                mended = as_tensor(value, fact) or of_type(value, fact.dtype)
                mended = _mend(mended or value, fact.shape) or mended
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
    for graph, origin in as_they_came(model):
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
    for graph, origin in as_they_came(model):
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
    for graph, origin in as_they_came(model):
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


def _mend(value: onnx.ValueInfoProto, shape: tuple[Dim, ...] | None) -> onnx.ValueInfoProto | None:
    """The claim with what is proven in place of what is false; None where nothing is false."""
    type_ = value.type
    if shape is None or not type_.HasField("tensor_type"):
        return None
    claimed = type_.tensor_type
    if not claimed.HasField("shape"):
        return None
    if len(claimed.shape.dim) != len(shape):
        return _with_shape(value, [name_of(d) for d in shape])
    news: list[int | str] = []
    false = False
    for dim, proven in zip(claimed.shape.dim, shape, strict=True):
        wrong = dim.HasField("dim_value") and _differs(dim.dim_value, proven)
        false = false or wrong
        news.append(name_of(proven) if wrong else _dim(dim))
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
