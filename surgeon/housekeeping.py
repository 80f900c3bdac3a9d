"""What the normal form does at every node: constants and identities, folding, merging equals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Set
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.facts import Facts
from surgeon.fold import Folder
from surgeon.links import captured_by, current
from surgeon.model import Model
from surgeon.rewrite import Surgery
from surgeon.sameness import Large, Sameness
from surgeon.standard import STANDARD

_MERGED = 256  # elements of an initializer of which another one like it is looked for
_WITH_BODIES = frozenset({"If", "Loop", "Scan"})
FOLDED = "was folded: what it gives is constant"
UNWRAPPED = {
    "Constant": "was made an initializer",
    "Identity": "was dropped: its readers read its input",
}

# What onnxruntime's MatMulAddFusion calls its constants, also where a file has such ones.
TAKEN = frozenset({"gemm_input_shape", "gemm_output_shape"})


def rename_constants(surgery: Surgery, names: Set[str]) -> None:
    """Give the constants of these names others."""
    for graph in surgery.model.graphs():
        for node in graph.nodes:
            for tensor in node.inputs:
                if tensor.name in names and isinstance(tensor, gs.Constant):
                    tensor.name = surgery.fresh(tensor.name)


def tidied(model: Model, facts: Facts) -> Counter[str]:
    """Initializers that nobody reads, or that say what another does, go; how many of each.

    So do imports that no node needs, with what changes.
    """
    model.plain = True
    done = {
        "equal initializers merged": _merge_equal_weights(model, facts),
        "initializers dropped that nobody reads": _drop_unread_weights(model),
    }
    return +Counter(done)


def _drop_unread_weights(model: Model) -> int:
    """Let go of the initializers that nobody read from the beginning; gives how many.

    Those that are inputs too stay, and what quantisers noted the scale of a value by.
    """
    count = 0
    for graph in model.graphs():
        origin = getattr(graph, "origin", None)
        if not isinstance(origin, onnx.GraphProto):
            continue
        noted = {
            entry.value
            for note in origin.quantization_annotation
            for entry in note.quant_parameter_tensor_names
        }
        dense, sparse = origin.initializer, origin.sparse_initializer
        names = {*(tensor.name for tensor in dense), *(tensor.values.name for tensor in sparse)}
        unread = names - graph.reads - model.overridable - noted
        graph.reads |= unread  # as if their readers had gone
        count += len(unread)
    return count


def _merge_equal_weights(model: Model, facts: Facts) -> int:
    """Let who reads one of equal initializers read the first of them; gives how many go.

    Of those of the main graph, whose values are in the file. What is an input or an output too
    stays, what bodies read, and what quantisers noted something by.
    """
    noted = {
        name
        for note in model.proto.graph.quantization_annotation
        for name in (note.tensor_name, *(e.value for e in note.quant_parameter_tensor_names))
    }
    stay = {tensor.name for tensor in model.graph.outputs} | model.overridable | noted
    stay |= {tensor.name for node in model.graph.nodes for tensor in captured_by(node)}
    first: dict[tuple[bytes, Large], gs.Constant] = {}
    gone = set()
    for node in model.graph.nodes:
        for place, tensor in enumerate(node.inputs):
            if not isinstance(tensor, gs.Constant) or tensor.name in stay:
                continue
            if math.prod(tensor.shape) < _MERGED or model.bytes_outside(tensor):
                continue
            fact = facts.of(tensor)
            large = Large(facts, tensor, (fact.dtype, fact.shape))
            known = first.setdefault((large.begin, large), tensor)
            if known is not tensor:
                node.inputs[place] = known
                gone.add(tensor.name)
    return len(gone)


class Known:
    """Nodes by what they compute, in a scope and those around it."""

    def __init__(self, outer: Known | None = None) -> None:
        self.outer = outer
        self.nodes: dict[tuple[Any, ...], gs.Node] = {}

    def find(self, key: tuple[Any, ...]) -> gs.Node | None:
        """The node that computes this, if one came before."""
        scope: Known | None = self
        while scope is not None:
            if key in scope.nodes:
                return scope.nodes[key]
            scope = scope.outer
        return None


class Housekeeper:
    """Tidies nodes on the way.

    Args:
        facts: Asked for values.
        surgery: The writer of wiring.
        folder: Computes constants.
        done: Counts what was done, in words.
    """

    def __init__(self, facts: Facts, surgery: Surgery, folder: Folder, done: Counter[str]) -> None:
        self.facts, self.surgery, self.folder, self.done = facts, surgery, folder, done
        self.sameness = Sameness(facts)
        self.folded: set[tuple[str, str]] = set()  # domain and operator

    def unwrap(self, node: gs.Node, graph: gs.Graph) -> bool:
        """Constant nodes become constants, Identity goes; True where the node went."""
        if node.op not in ("Constant", "Identity") or (node.domain or "") not in STANDARD:
            return False
        out = node.outputs[0]
        if node.op == "Identity" and not node.inputs:
            return False
        self.surgery.removed.cause = UNWRAPPED[node.op]
        if self.surgery.is_output(out):
            if node.op != "Identity" or not self.surgery.make_directly(node, graph):
                return False
            self.done["Identity nodes dropped"] += 1
            return True
        if node.op == "Identity":
            self.surgery.hand_over(node, [(out, node.inputs[0])])
            self.done["Identity nodes dropped"] += 1
            return True
        value = constant_value(node)
        if value is None:
            return False
        self.surgery.to_constant(out, value, graph)
        out.fact = None  # a call may have asked onnx, which says less
        if not isinstance(graph, gs.Function):  # which has no initializers: it is written as it was
            self.done["Constant nodes made initializers"] += 1
        return True

    def fold(self, node: gs.Node, graph: gs.Graph) -> bool:
        """Compute a node of constants alone that gives no output; True where it went."""
        arrays = self.folder.fold(node)
        if arrays is None or self.surgery.parted([node]):
            return False
        self.surgery.removed.cause = FOLDED
        for tensor, array in zip(list(node.outputs), arrays, strict=True):
            if array is not None:
                self.surgery.to_constant(tensor, array, graph)
                tensor.fact = None  # now the value is known, where it was not
        self._count(node)
        return True

    def inline(self, node: gs.Node, graph: gs.Graph) -> list[gs.Node] | None:
        """The nodes of the branch that an If takes, where that is proven; None where it stays."""
        if node.op != "If" or (node.domain or "") not in STANDARD:
            return None
        condition = self.facts.array(node.inputs[0])
        if condition is None or condition.size != 1:
            return None
        taken = node.attrs.get("then_branch" if condition.any() else "else_branch")
        if not isinstance(taken, gs.Graph) or len(taken.outputs) != len(node.outputs):
            return None
        if not all(map(self.surgery.may_end, node.outputs, map(current, taken.outputs))):
            return None
        self.surgery.removed.cause = "was inlined: which branch it takes is proven"
        try:
            moved = self.surgery.inline(node, taken, graph)
        except ValueError:
            return None  # a cycle, which the sweep of the body names
        self.done["If nodes with a proven condition inlined"] += 1
        return moved

    def merge(self, node: gs.Node, known: Known) -> bool:
        """Let the readers of a node read an equal one that came before; True where it went.

        Args:
            node: One that gives no output.
            known: What came before.
        """
        twin = self._twin(node, known)
        if twin is None or self.surgery.parted([node]):
            return False
        pairs = list(zip(list(node.outputs), twin.outputs, strict=True))
        self.surgery.removed.cause = twin
        # The twin's values stay the objects they are: what reads them is known by them, and would
        # not be found again by what reads this node's.
        self.surgery.hand_over(node, pairs, adopt=False)
        self.done["equal nodes merged"] += 1
        return True

    def known_output(
        self, node: gs.Node, graph: gs.Graph, known: Known, *, fold: bool
    ) -> list[gs.Node] | None:
        """A Constant or an Identity for an output that depends on constants, or came before.

        Args:
            node: One that gives an output.
            graph: Where it lies.
            known: What came before.
            fold: Whether it may depend on constants alone.

        Returns:
            What took its place; None where it stays.
        """
        if len(node.outputs) != 1:
            return None
        out = node.outputs[0]
        arrays = None
        if fold and node.op not in ("Constant", "Identity"):
            arrays = self.folder.fold(node)
        if self.surgery.parted([node]):
            return None
        draft = self.surgery.draft(graph, out.name)
        if arrays is not None and arrays[0] is not None:
            self.surgery.removed.cause = FOLDED
            self.surgery.hand_over(node, [(out, draft.op("Constant", value=arrays[0]))])
            self._count(node)
            return draft.nodes
        if node.op in _WITH_BODIES and not self.surgery.may_end(out):
            return None
        twin = self._twin(node, known)
        if twin is None or self.surgery.gives_output(twin) or not self.surgery.holds(graph, twin):
            return None
        self.surgery.removed.cause = twin
        self.surgery.hand_over(node, [(out, draft.op("Identity", twin.outputs[0]))])
        self.done["equal nodes merged"] += 1
        return draft.nodes

    def _count(self, node: gs.Node) -> None:
        self.done["constants folded"] += 1
        self.folded.add((_plain(node.domain), node.op))

    def _twin(self, node: gs.Node, known: Known) -> gs.Node | None:
        """An equal node that came before; the node itself is remembered where there is none."""
        twin = None
        spelling = self.sameness.of(node)
        for key in (spelling, self._value(node)):
            if key is None:
                continue
            found = known.find(key)
            if found is None or getattr(found, "gone", False):
                known.nodes[key] = node
            elif found is node or not _gives_all(found, node):
                continue
            elif key is spelling and not self.sameness.holds(key, found, node):
                known.nodes[key] = node
            else:
                twin = twin or found
        return twin

    def _value(self, node: gs.Node) -> tuple[Any, ...] | None:
        """Shape arithmetic with one symbolic result computes one thing, however it is spelled."""
        if len(node.outputs) != 1:
            return None
        fact = self.facts.of(node.outputs[0])
        if fact.value is None or not fact.symbolic or node.op in _WITH_BODIES:
            return None  # what is known of a value that a body gives may change
        return ("value", fact.dtype, fact.shape, tuple(fact.value.reshape(-1).tolist()))


def _plain(domain: str | None) -> str:
    return "" if (domain or "") in STANDARD else domain or ""


def _gives_all(found: gs.Node, node: gs.Node) -> bool:
    """Whether a node names every output that an equal one does: those not wanted have no name."""
    if len(found.outputs) != len(node.outputs):
        return False
    return len(node.outputs) == 1 or all(
        a.name or not b.name for a, b in zip(found.outputs, node.outputs, strict=True)
    )


def constant_value(node: gs.Node) -> Any:
    """What a Constant node holds, not loaded if it is not yet; None for what is no tensor."""
    attrs = node.attrs
    if isinstance(attrs.get("value"), gs.Constant):
        return attrs["value"]._values
    for key, dtype in (
        ("value_int", np.int64),
        ("value_ints", np.int64),
        ("value_float", np.float32),
        ("value_floats", np.float32),
    ):
        held = attrs.get(key)
        numbers = held if isinstance(held, list) else [held]
        if key in attrs and all(isinstance(number, (int, float)) for number in numbers):
            return np.asarray(held, dtype)
    # PyTorch's exporter, of what it unpacks of quantised operators: numbers under the wrong name
    held = attrs.get("value")
    numbers = held if isinstance(held, list) else [held]
    if numbers and all(isinstance(number, (int, float)) for number in numbers):
        return np.asarray(held, np.int64 if isinstance(numbers[0], int) else np.float32)
    return np.zeros(0, np.int64) if _is_empty_list(node.origin) else None


def _is_empty_list(origin: onnx.NodeProto | None) -> bool:
    """Whether PyTorch wrote `[]`: as a list of tensors, which graphsurgeon does not read."""
    said = [] if origin is None else origin.attribute
    return any(
        a.name == "value" and a.type == onnx.AttributeProto.TENSORS and not a.tensors for a in said
    )
