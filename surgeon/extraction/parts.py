"""Any choice of a model's nodes as a model of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import onnx

from surgeon.errors import ModelError
from surgeon.extraction import model_of
from surgeon.extraction.cut import End, Wiring, cut
from surgeon.extraction.types import known_types
from surgeon.model import Model
from surgeon.reference.plan import reads

Nodes = frozenset[int]  # by their places in the main graph
_AXES = 8  # whole numbers along one axis, up to which they may be the sizes of a tensor
_T = onnx.TensorProto
_WHOLE_NUMBERS = frozenset(
    {_T.INT64, _T.INT32, _T.INT16, _T.INT8, _T.UINT64, _T.UINT32, _T.UINT16, _T.UINT8, _T.BOOL}
)


class Parts:
    """The nodes of a model's main graph, in order, and the models that choices of them make.

    Constants go with the nodes that read them. A part begins at inputs of the model and at
    tensors: sizes, which are a whole number or a few, are computed in it, since runtimes refuse a
    Reshape whose target is an input for reasons of their own.

    Args:
        model: Not changed.

    Attributes:
        nodes: The places of all nodes that are no constants.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.wiring = Wiring(model.proto.graph)
        nodes = self.wiring.nodes
        self.reads = [tuple(reads(node)) for node in nodes]
        self.nodes = [at for at, node in enumerate(nodes) if node.op_type != "Constant"]
        self._used = {name for names in self.reads for name in names}
        self._used |= {value.name for value in model.proto.graph.output}
        self._types = known_types(model, [*self.wiring.makers, *self.wiring.inputs])
        self._made_by = {
            name: at for name, at in self.wiring.makers.items() if nodes[at].op_type != "Constant"
        }

    def whole(self, nodes: Collection[int]) -> Nodes:
        """These nodes, and those that make what no part can be given."""
        found = set(nodes)
        pending = list(found)
        while pending:
            for name in self.reads[pending.pop()]:
                at = self._made_by.get(name)
                if at is not None and at not in found and not self.can_be_given(name):
                    found.add(at)
                    pending.append(at)
        return frozenset(found)

    def needed(self, names: Iterable[str], given: Collection[str]) -> Nodes:
        """The nodes that make values of others that are given, and of inputs."""
        pending = [name for name in names if name not in given]
        found: set[int] = set()
        while pending:
            at = self._made_by.get(pending.pop())
            if at is not None and at not in found:
                found.add(at)
                pending += [name for name in self.reads[at] if name not in given]
        return frozenset(found)

    def makes(self, node: int, among: Nodes) -> Nodes:
        """The nodes of a part that one of them needs, itself included."""
        made = (name for name in self.wiring.nodes[node].output if name)
        return self.needed(made, ()) & among

    def made_by(self, names: Iterable[str]) -> Nodes:
        """The nodes that make values; of constants and inputs none does."""
        return frozenset(self._made_by[name] for name in names if name in self._made_by)

    def ends(self, nodes: Nodes) -> tuple[list[str], list[str]]:
        """The values that a part is given, and those that it gives: what nobody in it reads."""
        read = dict.fromkeys(name for at in sorted(nodes) for name in self.reads[at])
        inputs = [name for name in read if self._is_given(name, nodes)]
        outputs: list[str] = []
        for at in sorted(nodes):
            made = [name for name in self.wiring.nodes[at].output if name]
            if not any(name in read for name in made):
                outputs += [name for name in made if name in self._used] or made[:1]
        return inputs, outputs

    def model_of(self, nodes: Nodes) -> Model:
        """A part as a model.

        Raises:
            ModelError: The type of what it gives is unknown.
        """
        inputs, outputs = ([End(name, name) for name in names] for names in self.ends(nodes))
        if unknown := next((end.value for end in outputs if end.value not in self._types), None):
            raise ModelError(
                f"the type of `{unknown}` is unknown",
                where=str(self.model.path or "model"),
                mend="Reduce what `surgeon apply aten clean` makes of the model.",
            )
        part = cut(self.wiring, inputs, outputs)
        return Model(model_of(self.model.proto, part, self._types), folder=self.model.folder)

    def _is_given(self, name: str, nodes: Nodes) -> bool:
        """Whether a part that reads a value is given it."""
        if name in self._made_by:
            return self._made_by[name] not in nodes
        return name in self.wiring.required

    def can_be_given(self, name: str) -> bool:
        """Whether a part may begin at a value that a node makes."""
        type_ = self._types.get(name)
        if type_ is None or not type_.HasField("tensor_type") or not type_.tensor_type.elem_type:
            return False
        tensor = type_.tensor_type
        if tensor.elem_type not in _WHOLE_NUMBERS:
            return True
        dims = tensor.shape.dim
        if len(dims) != 1:
            return len(dims) > 1
        return bool(dims[0].dim_param) or dims[0].dim_value > _AXES
