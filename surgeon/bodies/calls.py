"""A call of a model-local function as the nodes of the function, which then know what it gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from graphlib import TopologicalSorter

import onnx_graphsurgeon as gs

from surgeon import opsets
from surgeon.copies import Copier
from surgeon.facts import Facts
from surgeon.links import bodies, toposort
from surgeon.model import Model
from surgeon.rewrite import Surgery
from surgeon.standard import STANDARD, fits

Key = tuple[str, str, str]  # domain, name, and which of several of one name

MOST_NODES = 10_000  # of all the copies of a function, where they are more than the calls are
_DOMAINS = (*STANDARD, opsets.LEGACY)
_RUNTIMES = ("ai.onnx", "com.microsoft")  # what is of these may have a kernel of its own
_TORCHLIB = ("pkg.onnxscript.torch_lib", "pkg.torch.onnx")  # how exporters spell operators


class Calls:
    """Puts the nodes of functions in the place of their calls.

    Where that makes no more nodes, where a function is an exporter's spelling of an operator, and
    where a node in it has to be rewritten and was not, for what is not known of all its calls, or
    has operands in one of them of types that it does not take.

    Args:
        model: Whose functions.
        surgery: The writer of wiring.
        opset: Functions of another one stay.
        tidy: Whether nodes are to be few; else only what has to be rewritten counts.
        every: Whether all calls go that may, for a step that knows nothing of functions.
        wanted: Whether a node is one that no runtime knows, and there are rules for it.

    Attributes:
        unfit: Functions of which a call has operands of types that an operator in it does not take.
    """

    def __init__(
        self,
        model: Model,
        surgery: Surgery,
        opset: int,
        *,
        tidy: bool,
        every: bool,
        wanted: Callable[[gs.Node], bool],
    ) -> None:
        self.model, self.surgery, self.tidy, self.wanted = model, surgery, tidy, wanted
        self.every = every
        self.functions: dict[Key, gs.Function] = {
            _key_of_function(f): f for f in model.graph.functions if f.opset == opset
        }
        self.chosen: set[Key] = set()
        self.unfit: set[Key] = set()

    def choose(self, *, swept: bool) -> bool:
        """Say of which functions the calls go, as they and their calls are now.

        Args:
            swept: Whether the functions were brought as far as they come by themselves. Before,
                only those go that are called once.

        Returns:
            Whether there is one among them that was not before.
        """
        if not self.functions:
            return False
        sites, before = self._sites(), len(self.chosen)
        sizes: dict[Key, int] = {}
        for function in reversed(self.callers_first()):  # each may hold what it calls by then
            key = _key_of_function(function)
            nodes = _nodes_of(function)
            called = [k for node in nodes if (k := key_of(node)) in self.chosen and k in sizes]
            sizes[key] = sum(node.op != "Constant" for node in nodes) - len(called)
            sizes[key] += sum(sizes[k] for k in called)
            if (swept or sites[key] == 1) and self._goes(function, nodes, sizes[key], sites[key]):
                self.chosen.add(key)
        return len(self.chosen) > before

    def function(self, node: gs.Node) -> gs.Function | None:
        """What a node calls; None where that is no function of this model and opset."""
        return self.functions.get(key_of(node)) if self.functions else None

    def called_unseen(self) -> Iterator[gs.Function]:
        """Functions that are called where no facts are: in functions of another opset."""
        for outer in self.model.graph.functions:
            if _key_of_function(outer) not in self.functions:
                found = map(self.function, _nodes_of(outer))
                yield from (function for function in found if function is not None)

    def heed(self, node: gs.Node, function: gs.Function, facts: Facts) -> None:
        """Mark the function where a call, whose facts its values have now, is unfit for it."""
        if not all(
            fits(inner.op, facts.opset, tuple(facts.of(t).dtype for t in inner.inputs))
            for inner in function.nodes
            if (inner.domain or "") in _DOMAINS
        ):
            self.unfit.add(key_of(node))

    def inline(self, node: gs.Node, graph: gs.Graph) -> list[gs.Node] | None:
        """The nodes in the place of a call, producers first; None where it stays.

        Args:
            node: Any node.
            graph: Where it is.
        """
        key = key_of(node)
        if key not in self.chosen or not all(map(self.surgery.may_end, node.outputs)):
            return None
        function = self.functions[key]
        if len(node.inputs) > len(function.inputs) or len(node.outputs) > len(function.outputs):
            return None
        try:
            order = toposort(function)
        except ValueError:
            return None  # a cycle, which the sweep of the function names
        missing = len(function.inputs) - len(node.inputs)
        operands = [*node.inputs, *(gs.Variable.empty() for _ in range(missing))]
        inside = {id(t): o for t, o in zip(function.inputs, operands, strict=True)}
        given = {p.name: (p, function.attrs.get(p.name)) for p in function.origin.attribute_proto}
        given |= {p.name: (p, node.attrs.get(p.name)) for p in node.origin.attribute}
        copier = Copier(self.surgery, graph, inside, given)
        copier.constants(function)
        made = copier.nodes(order)
        pairs = [
            (old, copier.stands_for(new))
            for old, new in zip(node.outputs, function.outputs, strict=False)
        ]
        return [*made, *self.surgery.end_in(node, graph, pairs)]

    def forget(self) -> int:
        """Let functions go that nothing calls: those whose calls went, and if tidy the others.

        Returns:
            How many went that nothing called from the beginning.
        """
        gone: set[Key] = set()
        while self.functions:
            sites = self._sites()
            able = self.functions.keys() if self.tidy else self.chosen & self.functions.keys()
            uncalled = {key for key in able if not sites[key]}
            if not uncalled:
                break
            gone |= uncalled
            for key in uncalled:
                del self.functions[key]
            kept = [f for f in self.model.graph.functions if _key_of_function(f) not in uncalled]
            self.model.graph.functions = kept
        return len(gone - self.chosen)

    def _goes(self, function: gs.Function, nodes: Sequence[gs.Node], size: int, calls: int) -> bool:
        if not calls or not function.domain or function.domain.startswith(_RUNTIMES):
            return False
        if self.tidy and calls * size <= calls + size:
            return True
        if calls * size > MOST_NODES:
            return False
        if self.every or (self.tidy and function.domain.startswith(_TORCHLIB)):
            return True
        return _key_of_function(function) in self.unfit or any(map(self.wanted, nodes))

    def _sites(self) -> Counter[Key]:
        return Counter(key_of(n) for graph in self.model.graphs() for n in graph.nodes)

    def callers_first(self) -> list[gs.Function]:
        """The functions, each behind those that call it: then all its calls are known."""
        sorter: TopologicalSorter[Key] = TopologicalSorter()
        for key, function in self.functions.items():
            sorter.add(key)
            for node in _nodes_of(function):
                sorter.add(key_of(node), key)
        # what calls itself was refused when the model was read
        return [self.functions[key] for key in sorter.static_order() if key in self.functions]


def key_of(node: gs.Node) -> Key:
    """What a node calls, if it is a call."""
    return node.domain or "", node.op, getattr(node.origin, "overload", "")


def _key_of_function(function: gs.Function) -> Key:
    return function.domain, function.name, getattr(function.origin, "overload", "")


def _nodes_of(function: gs.Function) -> list[gs.Node]:
    return [node for inner in (function, *bodies(function)) for node in inner.nodes]
