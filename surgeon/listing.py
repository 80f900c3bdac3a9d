"""Every node of a model as pattern text, which a `match` may begin with; weights in short."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import onnx

from surgeon.errors import Location
from surgeon.model import Model, ModelLike
from surgeon.notation import Argument, NodePattern, Pattern, print_pattern
from surgeon.notation.pattern import print_value, word_of
from surgeon.soundness import see_texts
from surgeon.spelling import OVERLOAD, names_operator, operator_name
from surgeon.standard import STANDARD

_MOST_ITEMS = 16  # of a list that is an attribute
_MOST_TEXT = 80  # characters of a text that is one
_FEW = 8  # elements of a constant
_NOWHERE = Location("", 0, 0)
_PLAIN = onnx.AttributeProto
_FLOATS = {_PLAIN.FLOAT, _PLAIN.FLOATS}
_LITERAL = _FLOATS | {_PLAIN.INT, _PLAIN.INTS, _PLAIN.STRING, _PLAIN.STRINGS}
_OPERATOR = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
Constants = Mapping[str, onnx.TensorProto | None]  # None: a constant that is no plain tensor


@dataclass(frozen=True, slots=True)
class Written:
    """A node as text.

    Attributes:
        pattern: What finds such nodes; empty of a Constant, which patterns see as a value.
        note: What the pattern does not say: the node's name, constants that it reads, attributes
            that are long or no text.
        name: The node's name in the file; often empty.
        operator: As recipes write it.
        graph: Where it stands: empty in the main graph, else the function, or the node and the
            attribute whose body it is in.
        depth: In how many bodies.
    """

    pattern: str
    note: str
    name: str
    operator: str
    graph: str
    depth: int

    def __str__(self) -> str:
        """A line of a `match`, where what stands behind `#` is a comment too."""
        note = f"# {self.note}" if self.note else ""
        return "  ".join(filter(None, (self.pattern, note)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def nodes(model: ModelLike) -> tuple[Written, ...]:
    """Every node of a model as pattern text, in the order of the file, each before its bodies.

    The nodes of functions come last. What is written is what the file says: rules see newer forms
    too, of which an attribute that became an input may be written as the attribute.

    Args:
        model: A path, a `Model`, an `onnx.ModelProto` or a graphsurgeon `Graph`; not changed.

    Raises:
        ModelError: Missing, empty, truncated, or no ONNX model.
    """
    loaded = Model.of(model)
    proto = loaded.proto
    see_texts(proto, where=str(loaded.path or "model"))
    found = list(_of_graph(proto.graph, ChainMap(), "", 0))
    for function in proto.functions:
        ends = f"({', '.join(function.input)}) => ({', '.join(function.output)})"
        where = f"function {function.domain}.{function.name} {ends}"
        found.extend(_of_graph(function, ChainMap(), where, 0))
    return tuple(found)


def _of_graph(
    graph: onnx.GraphProto | onnx.FunctionProto,
    outer: MutableMapping[str, onnx.TensorProto | None],
    where: str,
    depth: int,
) -> Iterator[Written]:
    known = ChainMap(constants_of(graph), outer)
    for node in graph.node:
        yield written(node, known, where, depth)
        for attribute in node.attribute:
            inside = f"{attribute.name} of {_label(node)}"
            if attribute.HasField("g"):
                yield from _of_graph(attribute.g, known, inside, depth + 1)
            for place, body in enumerate(attribute.graphs):
                yield from _of_graph(body, known, f"{inside}, {place}", depth + 1)


def constants_of(
    graph: onnx.GraphProto | onnx.FunctionProto,
) -> dict[str, onnx.TensorProto | None]:
    """The constants of a graph by name, not those of its bodies."""
    found: dict[str, onnx.TensorProto | None] = {}
    if isinstance(graph, onnx.GraphProto):
        found |= {tensor.name: tensor for tensor in graph.initializer}
        found |= {tensor.values.name: None for tensor in graph.sparse_initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.domain in STANDARD:
            found |= dict.fromkeys(node.output, _constant(node))
    return found


def _constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """What a node Constant holds; None where that is sparse, or an attribute of a function."""
    for attribute in node.attribute:
        if attribute.type == _PLAIN.TENSOR:
            held: onnx.TensorProto = attribute.t
            return held
        if attribute.type in _LITERAL and not attribute.ref_attr_name:
            value = onnx.helper.get_attribute_value(attribute)
            dtype = np.float32 if attribute.type in _FLOATS else np.int64
            texts = attribute.type in (_PLAIN.STRING, _PLAIN.STRINGS)
            return onnx.numpy_helper.from_array(np.asarray(value, object if texts else dtype))
    return None


def written(node: onnx.NodeProto, known: Constants, where: str = "", depth: int = 0) -> Written:
    """A node as pattern text.

    Args:
        node: Not changed.
        known: The constants by name.
        where: The graph that it stands in.
        depth: In how many bodies.
    """
    operator = operator_name(node)
    if node.op_type == "Constant" and node.domain in STANDARD:
        name = next(iter(node.output), "")
        note = _on_one_line(f"{name} = {_said(known.get(name))}")
        return Written("", note, node.name, operator, where, depth)
    domain, _, plain = operator.rpartition(".")
    fallback = names_operator(node.domain, node.op_type)
    attributes: dict[str, Any] = {}
    captures: dict[str, str] = {}
    notes = [node.name] if node.name else []
    overload = ""
    for attribute in node.attribute:
        if fallback and attribute.name in (fallback, OVERLOAD):
            if attribute.name == OVERLOAD:
                overload = attribute.s.decode("utf-8", "replace")
        elif attribute.ref_attr_name:
            captures[attribute.name] = attribute.ref_attr_name
        elif (value := _literal(attribute)) is not None:
            attributes[attribute.name] = value
        else:
            notes.append(f"{attribute.name}: {_in_short(attribute)}")
    for name in dict.fromkeys(node.input):
        if name and name in known:
            notes.append(f"{name}: {_said(known[name])}")
    if not _OPERATOR.fullmatch(operator):
        notes.append("no pattern names this operator")
    pattern = NodePattern(
        domain,
        (plain,),
        overload,
        tuple(map(Argument, _without_last(list(node.input)))),
        tuple(name or "_" for name in _without_last(list(node.output))) or ("_",),
        attributes,
        captures,
        None,
        _NOWHERE,
    )
    text = print_pattern(Pattern((pattern,)))
    return Written(text, _on_one_line("; ".join(notes)), node.name, operator, where, depth)


def _on_one_line(text: str) -> str:
    """A comment ends with its line."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _without_last(names: list[str]) -> list[str]:
    """Names without those behind them that are left out."""
    while names and not names[-1]:
        names.pop()
    return names


def _literal(attribute: onnx.AttributeProto) -> Any:
    """An attribute's value as patterns have it; None where it has no text, or a long one."""
    if attribute.type == _PLAIN.TENSOR:
        return _small(attribute.t)
    if attribute.type not in _LITERAL:
        return None
    value = onnx.helper.get_attribute_value(attribute)
    several = attribute.type in (_PLAIN.INTS, _PLAIN.FLOATS, _PLAIN.STRINGS)
    items = tuple(map(_item, value if several else [value]))
    if len(items) > _MOST_ITEMS or any(isinstance(i, str) and len(i) > _MOST_TEXT for i in items):
        return None
    return items if several else items[0]


def _item(value: Any) -> int | float | str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    # as it was written, 0.1 say, and not as the nearest of 32 bits in 64
    return float(str(np.float32(value))) if isinstance(value, float) else int(value)


def _small(tensor: onnx.TensorProto) -> Any:
    """A tensor of a few elements whose type has a name in text; None of others."""
    size = int(np.prod(tensor.dims, dtype=np.float64))
    if size > _FEW or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return None
    try:
        array = onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError):  # fewer bytes than its shape says
        return None
    if array.dtype == object:
        texts = [_item(e) if isinstance(e, bytes) else str(e) for e in array.ravel()]
        array = np.array(texts, object).reshape(array.shape)
    return array if word_of(array.dtype) is not None and array.dtype.kind != "c" else None


def _said(tensor: onnx.TensorProto | None) -> str:
    """A constant in short: its type and, where they are few, its elements."""
    if tensor is None:
        return "a constant"
    if (array := _small(tensor)) is not None:
        texts = array.dtype == object
        items = (print_value(each) if texts else str(each) for each in array.ravel())
        return f"{word_of(array.dtype)}{_dims(array.shape)} {{{', '.join(items)}}}"
    try:
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        word = word_of(kind) or kind.name
    except KeyError:  # a number that no onnx knows
        word = f"dtype {tensor.data_type}"
    return f"{word}{_dims(tensor.dims)}"


def _dims(dims: Iterable[int]) -> str:
    listed = ",".join(map(str, dims))
    return f"[{listed}]" if listed else ""


def _in_short(attribute: onnx.AttributeProto) -> str:
    """What an attribute is that the pattern leaves out."""
    if attribute.HasField("g") or attribute.graphs:
        return "a body"
    if attribute.type == _PLAIN.TENSOR:
        return _said(attribute.t)
    if attribute.type == _PLAIN.STRING:
        return f"a text of {len(attribute.s):,} bytes"
    values = (attribute.ints, attribute.floats, attribute.strings)
    count = max(map(len, values))
    return f"{count:,} values" if count else _PLAIN.AttributeType.Name(attribute.type).lower()


def _label(node: onnx.NodeProto) -> str:
    return f"{operator_name(node)} {node.name or next(filter(None, node.output), '')}"
