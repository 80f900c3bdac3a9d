"""Constants of two models, paired by name and, where a name went, by their values.

Whether a constant is an initializer or the value of a Constant node makes no difference.
"""

from __future__ import annotations

from typing import Any

import onnx

from surgeon.difference.texts import Tensor, tensor_said
from surgeon.difference.values import Values, content
from surgeon.soundness.scopes import Node, Scope

_KINDS = onnx.AttributeProto.AttributeType
_HELD = (  # the attributes that hold a tensor: their kind, which files before IR 2 leave out
    ("value", _KINDS.TENSOR, "t"),
    ("sparse_value", _KINDS.SPARSE_TENSOR, "sparse_tensor"),
)
_PLAIN: dict[
    str, tuple[int, int]
] = {  # the attributes of a Constant that hold no tensor: their kind, the dtype they mean
    "value_float": (_KINDS.FLOAT, onnx.TensorProto.FLOAT),
    "value_floats": (_KINDS.FLOATS, onnx.TensorProto.FLOAT),
    "value_int": (_KINDS.INT, onnx.TensorProto.INT64),
    "value_ints": (_KINDS.INTS, onnx.TensorProto.INT64),
    "value_string": (_KINDS.STRING, onnx.TensorProto.STRING),
    "value_strings": (_KINDS.STRINGS, onnx.TensorProto.STRING),
}


class Weights:
    """Pairs initializers and notes what became of them.

    Attributes:
        found: (name, before, after) of each that changed, went, came or was renamed.

    Args:
        values: Compares them.
    """

    def __init__(self, values: Values) -> None:
        self.found: list[tuple[str, str, str]] = []
        self._values = values

    def pair(self, one: Scope, other: Scope, where: str) -> dict[str, str]:
        """Compare the constants of two graphs, bodies or functions.

        Returns:
            For names of the second that hold what the first has under another name, that name.
        """
        before, after = constants_of(one), constants_of(other)
        # a value that is computed in one of the models is told of where its node is
        for names, nodes in ((before, other.nodes), (after, one.nodes)):
            for name in {name for node in nodes if not constant(node) for name in node.outputs}:
                names.pop(name, None)
        for name in before:
            if name in after:
                told = self._values.told(before[name], after[name])
                self.found += [(f"{where}{name}", *told)] if told else []
        went: dict[bytes, list[str]] = {}
        for name in reversed(before):
            if name not in after:
                went.setdefault(content(before[name]), []).append(name)
        renamed: dict[str, str] = {}
        for name in after:
            if name not in before:
                twins = went.get(content(after[name]))
                said = tensor_said(after[name])
                # one place in files of two folders may hold two things
                if twins and not self._values.told(before[twins[-1]], after[name]):
                    renamed[name] = twins.pop()
                    self.found.append((f"{where}{name}", f"{renamed[name]}, {said}", said))
                else:
                    self.found.append((f"{where}{name}", "", said))
        kept = set(renamed.values())
        for name in before:
            if name not in after and name not in kept:
                self.found.append((f"{where}{name}", tensor_said(before[name]), ""))
        return renamed


def constant(node: Node) -> bool:
    """Whether a node is the Constant of a tensor, however it is written."""
    return _value(node) is not None


def constants_of(scope: Scope) -> dict[str, Tensor]:
    """By the names that nodes read."""
    found: dict[str, Tensor] = {}
    if isinstance(scope.proto, onnx.GraphProto):
        found.update((tensor.name, tensor) for tensor in scope.proto.initializer)
        found.update((s.values.name, s) for s in scope.proto.sparse_initializer)
    for node in scope.nodes:
        value = _value(node)
        if value is not None:
            found[node.outputs[0]] = value
    return found


def _value(node: Node) -> Tensor | None:
    if (
        node.proto.op_type != "Constant"
        or node.proto.domain not in ("", "ai.onnx")
        or len(node.attributes) != 1
        or len(node.outputs) != 1
    ):
        return None
    attribute = node.attributes[0]
    if attribute.ref_attr_name:  # a function's caller says it
        return None
    for name, own, field in _HELD:
        if attribute.name == name and attribute.type in (0, own) and attribute.HasField(field):
            return getattr(attribute, field)  # type: ignore[no-any-return]
    kind, dtype = _PLAIN.get(attribute.name, (0, 0))
    return _plain(attribute, dtype) if kind and attribute.type == kind else None


def _plain(attribute: onnx.AttributeProto, dtype: int) -> onnx.TensorProto:
    held: Any = onnx.helper.get_attribute_value(attribute)
    many = attribute.name.endswith("s")
    dims = [len(held)] if many else []
    return onnx.helper.make_tensor("", dtype, dims, held if many else [held])
