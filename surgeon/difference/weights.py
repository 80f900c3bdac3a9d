"""Constants of two models, paired by name and, where a name went, by their values.

Whether a constant is an initializer or the value of a Constant node makes no difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from surgeon.errors import ModelError
from surgeon.model import Model, array_of
from surgeon.soundness.scopes import Node, Scope

_AT_ONCE = 1 << 22  # elements compared at once


class Weights:
    """Pairs initializers and notes what became of them.

    Attributes:
        found: (name, before, after) of each that changed, went, came or was renamed.
    """

    def __init__(self, one: Model, other: Model) -> None:
        self.found: list[tuple[str, str, str]] = []
        self._folders = one.folder, other.folder

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
                self._compare(f"{where}{name}", before[name], after[name])
        went = {_content(before[name]): name for name in before if name not in after}
        renamed: dict[str, str] = {}
        for name in after:
            if name not in before:
                was = went.pop(_content(after[name]), None)
                said = _said(after[name])
                if was is None:
                    self.found.append((f"{where}{name}", "", said))
                else:
                    renamed[name] = was
                    self.found.append((f"{where}{name}", f"{was}, {said}", said))
        for name in before:
            if name not in after and name not in renamed.values():
                self.found.append((f"{where}{name}", _said(before[name]), ""))
        return renamed

    def _compare(self, name: str, one: onnx.TensorProto, other: onnx.TensorProto) -> None:
        if one.data_type != other.data_type or list(one.dims) != list(other.dims):
            self.found.append((name, _said(one), _said(other)))
            return
        outside = onnx.TensorProto.EXTERNAL in (one.data_location, other.data_location)
        if (not outside or self._folders[0] == self._folders[1]) and _content(one) == _content(
            other
        ):
            return
        try:
            arrays = [
                array_of(t, folder) for t, folder in zip((one, other), self._folders, strict=True)
            ]
        except ModelError as error:
            self.found.append((name, _said(one), f"not compared: {error.what}"))
            return
        said = _values(*arrays)
        if said:
            self.found.append((name, _said(one), f"{_said(other)}, {said}"))


def constant(node: Node) -> bool:
    """Whether a node is the Constant of a tensor."""
    return (
        node.proto.op_type == "Constant"
        and node.proto.domain in ("", "ai.onnx")
        and any(a.name == "value" and a.HasField("t") for a in node.attributes)
    )


def constants_of(scope: Scope) -> dict[str, onnx.TensorProto]:
    """By the names that nodes read; of a sparse tensor, its values."""
    found: dict[str, onnx.TensorProto] = {}
    if isinstance(scope.proto, onnx.GraphProto):
        found.update((tensor.name, tensor) for tensor in scope.proto.initializer)
        found.update((s.values.name, s.values) for s in scope.proto.sparse_initializer)
    for node in scope.nodes:
        if constant(node):
            found[node.outputs[0]] = next(a.t for a in node.attributes if a.name == "value")
    return found


def _values(one: Any, other: Any) -> str:
    """How the values differ; empty where they do not, to the bit."""
    differ, largest = 0, 0.0
    for start in range(0, max(one.size, 1), _AT_ONCE):
        part, its = (a.reshape(-1)[start : start + _AT_ONCE] for a in (one, other))
        if part.tobytes() == its.tobytes():
            continue
        if one.dtype.kind not in "iufb":
            return "other values"
        with np.errstate(all="ignore"):
            both = part.astype(np.float64), its.astype(np.float64)
            unequal = (both[0] != both[1]) & ~(np.isnan(both[0]) & np.isnan(both[1]))
            distance = np.abs(both[0] - both[1])[unequal]
        differ += int(np.count_nonzero(unequal))
        largest = max(largest, float(distance.max(initial=0)))
        if not distance.size:
            return "zeros or NaNs of other bits"
    return f"{differ} of {one.size} values differ, by {largest:.3g} at most" if differ else ""


def _content(tensor: onnx.TensorProto) -> bytes:
    """A tensor without its name and text, to be compared."""
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.ClearField("name")
    copy.ClearField("doc_string")
    return bytes(copy.SerializeToString(deterministic=True))


def _said(tensor: onnx.TensorProto) -> str:
    kind = onnx.TensorProto.DataType.Name(tensor.data_type).lower()
    return f"{kind} [{', '.join(map(str, tensor.dims))}]"
