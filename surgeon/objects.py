"""graphsurgeon's nodes and tensors, made lean: most of a large graph's memory, and of its reading.

What its constructors give, with the fields that they set; each field written once, without the
question for a list behind it that graphsurgeon's `__setattr__` asks. The fields that surgeon fills
in later are there from the beginning (`model` lists them): a dict of which all instances have the
same names shares them, and one that gets a name later is three times as large (CPython 3.11).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_graphsurgeon as gs
from onnx_graphsurgeon.util.misc import SynchronizedList

_add = list.append
_MANY = 64  # readers of a constant


class Links(SynchronizedList):  # type: ignore[misc]
    """graphsurgeon's list of neighbours, without a dict in each."""

    __slots__ = ("field_name", "parent_obj")

    def __init__(self, owner: gs.Node | gs.Tensor, field: str) -> None:
        self.parent_obj, self.field_name = owner, field


def make_node(
    op: str,
    name: str,
    attrs: dict[str, Any],
    inputs: Sequence[gs.Tensor],
    outputs: Sequence[gs.Tensor],
    domain: str | None,
    origin: Any,
    home: gs.Graph,
) -> gs.Node:
    """A node among its neighbours, with what graphsurgeon and `model` say of one."""
    node: gs.Node = object.__new__(gs.Node)
    reads, gives = Links(node, "outputs"), Links(node, "inputs")
    for tensor in inputs:
        _add(reads, tensor)
        _add(tensor.outputs, node)
    for tensor in outputs:
        _add(gives, tensor)
        _add(tensor.inputs, node)
    fields = node.__dict__  # one by one: of an update the names are not shared
    fields["op"] = op
    fields["name"] = name
    fields["attrs"] = attrs
    fields["inputs"] = reads
    fields["outputs"] = gives
    fields["domain"] = domain
    fields["origin"] = origin
    fields["home"] = home
    fields["origin_inputs"] = None
    fields["made"] = None
    fields["drafted"] = False
    fields["normal"] = False
    fields["attributes_key"] = False
    fields["seen"] = None
    fields["gone"] = False
    return node


def make_variable(name: str) -> gs.Variable:
    """A value that no initializer holds; "" is an operand left out."""
    tensor: gs.Variable = object.__new__(gs.Variable)
    fields = _begun(tensor, name)
    fields["dtype"] = None
    fields["shape"] = None
    fields["type"] = "tensor_type"
    return tensor


def make_constant(
    name: str, values: Any, home: gs.Graph, data_location: int | None = None
) -> gs.Constant:
    """An initializer of `home`: an array, or graphsurgeon's values that are read when asked."""
    tensor: gs.Constant = object.__new__(gs.Constant)
    fields = _begun(tensor, name)
    fields["_values"] = values
    fields["data_location"] = data_location
    fields["_export_dtype"] = None
    fields["home"] = home
    return tensor


def _begun(tensor: gs.Tensor, name: str) -> dict[str, Any]:
    """The fields of a tensor, with those that every kind has."""
    fields: dict[str, Any] = tensor.__dict__
    fields["name"] = name
    fields["inputs"] = Links(tensor, "outputs")
    fields["outputs"] = Links(tensor, "inputs")
    fields["fact"] = None
    fields["became"] = None
    return fields


def forget_reader(tensor: gs.Tensor, node: gs.Node) -> None:
    """Take a node, which lists the tensor no longer, once from the tensor's readers, by identity.

    A constant with many readers keeps it until half of them have left: to look for each among the
    readers of an axis that every node has would cost their square.
    """
    readers = tensor.outputs
    if len(readers) > _MANY and isinstance(tensor, gs.Constant):
        fields = tensor.__dict__
        fields["left"] = fields.get("left", 0) + 1
        if fields["left"] * 2 > len(readers):
            still = [reader for reader in readers if any(t is tensor for t in reader.inputs)]
            list.__setitem__(readers, slice(None), still)
            fields["left"] = 0
        return
    # the file's first nodes leave first, and the last that came are often the next to go
    for index in range(len(readers)):
        for place in (index, -1 - index):
            if readers[place] is node:
                list.__delitem__(readers, place)
                return
