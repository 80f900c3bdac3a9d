"""What a file says beside its graph: texts and metadata leave or are set; surgeon's log stays.

Exporters of today note at each node where in the source it came from, which is most of a file
without its weights. Who wrote the file is not among this: what its operators mean depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx

from surgeon.errors import few
from surgeon.nested import every_body
from surgeon.provenance import OWN
from surgeon.recipe.rules import HeaderStep
from surgeon.writer import set_property

PLAIN, HEADER = "plain-metadata", "header"
_FIELDS = {"doc-string": "doc_string", "model-version": "model_version", "domain": "domain"}


def without_metadata(proto: onnx.ModelProto, *, inside: bool) -> onnx.ModelProto:
    """A copy of the model without doc strings and metadata.

    Args:
        proto: The model.
        inside: Whether those of the model as a whole stay.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    for holder in _holders(changed, inside=inside):
        if holder.doc_string:
            holder.ClearField("doc_string")
        entries: Any = getattr(holder, "metadata_props", ())
        for place in reversed(range(len(entries))):
            if not entries[place].key.startswith(OWN):
                del entries[place]
    return changed


def size_of_metadata(proto: onnx.ModelProto, *, inside: bool) -> int:
    """How many characters of doc strings and metadata there are."""
    return sum(
        len(holder.doc_string)
        + sum(
            len(entry.key) + len(entry.value)
            for entry in getattr(holder, "metadata_props", ())
            if not entry.key.startswith(OWN)
        )
        for holder in _holders(proto, inside=inside)
    )


def with_header(proto: onnx.ModelProto, step: HeaderStep) -> onnx.ModelProto:
    """A copy of the model that says this of itself."""
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    for name, value in step.fields:
        if name == "graph-name":
            changed.graph.name = value
        elif value:
            setattr(changed, _FIELDS[name], value)
        else:
            changed.ClearField(_FIELDS[name])
    entries = changed.metadata_props
    for key, text in step.metadata:
        said = [place for place, entry in enumerate(entries) if entry.key == key]
        for place in reversed(said if text is None else said[1:]):
            del entries[place]
        if text is not None:
            set_property(entries, key, text)
    return changed


def says(proto: onnx.ModelProto, step: HeaderStep) -> bool:
    """Whether the model says this of itself already."""
    held = _held(proto)
    return bool(held == with_header(held, step))


def changes_of(proto: onnx.ModelProto, step: HeaderStep) -> str:
    """What the step sets and takes out, in words."""
    held = _held(proto)
    new = with_header(held, step)
    fields = {"graph-name": (held.graph.name, new.graph.name)}
    fields |= {name: (getattr(held, own), getattr(new, own)) for name, own in _FIELDS.items()}
    before = {entry.key: entry.value for entry in held.metadata_props}
    put = [name for name, (old, made) in fields.items() if old != made and made]
    gone = [name for name, (old, made) in fields.items() if old != made and not made]
    put += [key for key, text in step.metadata if text is not None and before.get(key) != text]
    gone += [key for key, text in step.metadata if text is None and key in before]
    told = [f"set in the file: {few(put)}"] if put else []
    return "; ".join([*told, f"taken out of it: {few(gone)}"] if gone else told)


def _held(proto: onnx.ModelProto) -> onnx.ModelProto:
    """What a model says of itself, without its weights."""
    held = onnx.ModelProto()
    held.graph.name = proto.graph.name
    for name in _FIELDS.values():
        if value := getattr(proto, name):
            setattr(held, name, value)
    held.metadata_props.extend(proto.metadata_props)
    return held


def _holders(proto: onnx.ModelProto, *, inside: bool) -> Iterator[Any]:
    """All that has a doc string, or metadata."""
    if not inside:
        yield proto
    for graph in (proto.graph, *every_body(proto.graph.node)):
        yield from _of_graph(graph)
    for function in proto.functions:
        yield function
        yield from _of_nodes(function.node)
        yield from function.value_info
        yield from function.attribute_proto
        for body in every_body(function.node):
            yield from _of_graph(body)


def _of_graph(graph: onnx.GraphProto) -> Iterator[Any]:
    yield graph
    yield from (*graph.input, *graph.output, *graph.value_info)
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Any) -> Iterator[Any]:
    """Nodes with their attributes; those in bodies have their own graph."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            yield attribute
            if attribute.HasField("t"):
                yield attribute.t
