"""The only writer of wiring: adds nodes, hands outputs over, and lets go of what nobody reads.

A rewrite never changes what a value means: it takes over the root's outputs under their own names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs
from onnx.helper import np_dtype_to_tensor_dtype

from surgeon import opsets, standard
from surgeon.departed import Departures, unlink, unlink_bodies
from surgeon.facts import Facts
from surgeon.facts.fact import Array
from surgeon.links import constants_of, current, maker_of, toposort
from surgeon.model import Model
from surgeon.objects import make_constant, make_node, make_variable
from surgeon.older import older_form
from surgeon.sparing import Spared
from surgeon.typed import Numbers, as_tensor, wide

_MANY = 16  # names of one stem from which on the next number is remembered


class Refused(Exception):
    """A builder or template cannot replace this match; the text says why."""


class Surgery:
    """The wiring of one model.

    Args:
        model: Its graph is changed in place.
        facts: Asked for dtypes and constants where the model's opset wants attributes.
        spared: Which nodes stay, also where nobody reads them.
    """

    def __init__(self, model: Model, facts: Facts, spared: Spared | None = None) -> None:
        self.model, self.facts, self.spared = model, facts, spared or Spared()
        self.names: set[str] = set()
        self._many: dict[str, int] = {}  # how far the numbers behind a stem are taken
        self.outputs: dict[int, gs.Tensor] = {}
        self.removed = Departures()
        self.findings: dict[str, Any] = {}  # what builders found out that is costly to find again
        self.unkept: dict[int, gs.Tensor] = {}  # at which the check refused a rule of a contract
        for graph in model.graphs():
            for tensor in graph.outputs:
                self.outputs[id(tensor)] = tensor
            self.names.update(t.name for t in graph.inputs)
            for node in graph.nodes:
                self.names.update([node.name, *[t.name for t in (*node.inputs, *node.outputs)]])

    def is_output(self, tensor: gs.Tensor) -> bool:
        """Whether the tensor is an output of the model, of a body or of a function."""
        return id(tensor) in self.outputs

    def gives_output(self, node: gs.Node) -> bool:
        """Whether a value that the node makes is one."""
        for tensor in node.outputs:  # noqa: SIM110 - as in `is_dead`
            if id(tensor) in self.outputs:
                return True
        return False

    def fresh(self, stem: str) -> str:
        """A name that nothing in the model has, from the name of the value it stands for."""
        name, count = stem, self._many.get(stem, 1)
        while name in self.names:
            count += 1
            name = f"{stem}_{count}"
        if count > _MANY:
            self._many[stem] = count
        self.names.add(name)
        return name

    def draft(self, graph: gs.Graph, stem: str) -> Draft:
        """Begin a replacement in `graph` whose names come from the value `stem`."""
        return Draft(self, graph, stem)

    def replace_value(self, old: gs.Tensor, new: gs.Tensor) -> None:
        """Let every reader of `old` read `new`, which must hold the same values."""
        for node in list(old.outputs):
            for index, tensor in enumerate(node.inputs):
                if tensor is old:
                    list.__setitem__(node.inputs, index, new)
                    list.append(new.outputs, node)
        list.clear(old.outputs)
        old.became = new

    def hand_over(
        self, root: gs.Node, pairs: Sequence[tuple[gs.Tensor, gs.Tensor]], *, adopt: bool = True
    ) -> None:
        """Give the outputs of `root` to other producers; `root` and what only it read go.

        Args:
            root: The node that is replaced.
            pairs: (output of root, tensor of the replacement that holds the same values).
            adopt: Whether a drafted producer makes the output of `root` itself, name and all; it
                always makes one that is a graph's.
        """
        list.clear(root.outputs)
        for old, new in pairs:
            list.clear(old.inputs)
            new = current(new)
            producer = maker_of(new)
            drafted = producer is not None and getattr(producer, "drafted", False)
            if (adopt or self.is_output(old)) and drafted and not self.is_output(new):
                self.adopt(producer, new, old)
            else:
                self.replace_value(old, new)
        self.release(root)

    def adopt(self, producer: gs.Node, new: gs.Tensor, old: gs.Tensor) -> None:
        """`producer` makes `old` instead of `new`."""
        if not getattr(producer, "drafted", False):
            proto = type(producer.origin)()  # what was read stays as it was
            proto.CopyFrom(producer.origin)
            producer.origin = proto
        index = next(i for i, t in enumerate(producer.outputs) if t is new)
        list.__setitem__(producer.outputs, index, old)
        list.append(old.inputs, producer)
        producer.origin.output[index] = old.name
        producer.seen = None  # to be inferred once more, under the new name
        old.fact = self.facts.of(new)  # but readers may come first: a producer can lie behind
        list.clear(new.inputs)
        self.replace_value(new, old)
        self.names.discard(new.name)

    def make_directly(self, node: gs.Node, graph: gs.Graph) -> bool:
        """Let an Identity go that gives an output: who makes its input makes the output.

        False where its input is made elsewhere, or by what is to stay, or is an output too.
        """
        source, out = node.inputs[0], node.outputs[0]
        producer = maker_of(source)
        origin = getattr(graph, "origin", None)
        if producer is None or self.is_output(source) or not self.holds(graph, producer):
            return False
        if self.spared.holds(producer):  # whose output keeps its name too
            return False
        if getattr(origin, "quantization_annotation", ()):  # it may speak of the name that goes
            return False
        list.clear(node.outputs)
        list.clear(out.inputs)
        self.adopt(producer, source, out)
        self.release(node)
        return True

    def holds(self, graph: gs.Graph, node: gs.Node) -> bool:
        """Whether a node is in this graph, and not in a body or around it."""
        home = getattr(node, "home", None)
        return home is graph if home is not None else any(n is node for n in graph.nodes)

    def to_constant(self, tensor: gs.Tensor, array: Any, graph: gs.Graph) -> None:
        """Make a computed value a constant; its producer is let go when all its outputs are.

        Args:
            tensor: A node's output, and no graph's.
            array: Its values, or what graphsurgeon keeps of values that are not loaded yet.
            graph: Where the initializer lives.
        """
        producer = tensor.inputs[0]
        list.clear(tensor.inputs)
        index = next(i for i, t in enumerate(producer.outputs) if t is tensor)
        list.__setitem__(producer.outputs, index, make_variable(""))
        tensor.to_constant(
            np.ascontiguousarray(array).reshape(array.shape)
            if isinstance(array, np.ndarray)
            else array
        )
        tensor.home = graph
        if not any(t.name for t in producer.outputs):
            self.release(producer)

    def inline(self, node: gs.Node, body: gs.Graph, graph: gs.Graph) -> list[gs.Node]:
        """Put the nodes of a body without inputs in the place of the node that it hangs on.

        Args:
            node: What runs this body and no other.
            body: One of its bodies. Its values get fresh names: siblings may use the same ones.
            graph: Where the node is.

        Returns:
            The nodes, producers first.

        Raises:
            ValueError: The body has a cycle; nothing is changed then.
        """
        moved = toposort(body)
        for key in [key for key, value in node.attrs.items() if value is body]:
            del node.attrs[key]
        own = {id(tensor) for member in moved for tensor in member.outputs}
        self.raise_constants(body, graph)
        for tensor in body.outputs:
            if id(tensor) in own or getattr(tensor, "home", None) is graph:
                self.outputs.pop(id(tensor), None)
        for member in moved:
            origin = type(member.origin)()
            origin.CopyFrom(member.origin)
            for index, tensor in enumerate(member.outputs):
                if old := tensor.name:
                    tensor.name = origin.output[index] = self.fresh(old)
                    self.spared.copied(old, tensor.name)
            if old := origin.name:
                member.name = origin.name = self.fresh(old)
                self.spared.copied(old, member.name)
            member.origin, member.home, member.seen = origin, graph, None
        pairs = zip(list(node.outputs), [current(t) for t in body.outputs], strict=True)
        return [*moved, *self.end_in(node, graph, list(pairs))]

    def raise_constants(self, body: gs.Graph, graph: gs.Graph) -> None:
        """Let the constants of a body live in the graph around it, under fresh names."""
        for tensor in constants_of(body):
            tensor.name, tensor.home = self.fresh(tensor.name), graph

    def may_end(self, tensor: gs.Tensor, taken: gs.Tensor | None = None) -> bool:
        """Whether `end_in` may give a value: what is a graph's output needs an Identity.

        Identities of sequences came late, and some types later than others.

        Args:
            tensor: The value.
            taken: What is to be given, which may say its type where the value does not.
        """
        if not self.is_output(tensor):
            return True
        if getattr(tensor, "type", "") != "tensor_type":
            return False
        dtype = self._dtype_of(tensor)
        if not dtype and taken is not None and getattr(taken, "type", "") == "tensor_type":
            dtype = self._dtype_of(taken)
        return standard.takes("Identity", self.facts.opset, 0, dtype)

    def _dtype_of(self, tensor: gs.Tensor) -> int:
        """The element type that is proven or declared; 0 where neither is."""
        dtype = self.facts.of(tensor).dtype or getattr(tensor, "dtype", None) or 0
        return dtype if isinstance(dtype, int) else int(np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def end_in(
        self, node: gs.Node, graph: gs.Graph, pairs: Sequence[tuple[gs.Tensor, gs.Tensor]]
    ) -> list[gs.Node]:
        """Give a node's outputs to values that are there; a graph's output gets an Identity.

        Returns:
            The Identities.
        """
        ends: list[gs.Node] = []
        named = [(old, new) for old, new in pairs if old.name]
        for index, (old, new) in enumerate(named):
            if self.is_output(old):
                draft = self.draft(graph, old.name)
                named[index] = old, draft.op("Identity", new)
                ends.extend(draft.nodes)
        self.hand_over(node, named, adopt=False)
        return ends

    def constant(self, graph: gs.Graph, stem: str, array: Array) -> gs.Constant:
        """A new initializer of `graph`."""
        return make_constant(self.fresh(stem), np.asarray(array), graph)

    def release(self, node: gs.Node) -> None:
        """Let a node go that nobody reads, and what only it read; the sweep drops them."""
        root, stack = node, [node]
        while stack:
            node = stack.pop()
            if getattr(node, "gone", False):
                continue
            node.__dict__["gone"] = True
            self.removed.add(node, root)
            unlink_bodies(node)
            for tensor in unlink(node, node.inputs):
                if tensor.outputs or self.is_output(tensor) or not tensor.inputs:
                    continue
                producer = tensor.inputs[0]
                if self.is_dead(producer):
                    stack.append(producer)

    def is_dead(self, node: gs.Node) -> bool:
        """Whether nothing reads any output of the node, and it need not stay."""
        for tensor in node.outputs:  # asked at every node, and half the time of `all`
            if tensor.outputs or id(tensor) in self.outputs:
                return False
        return not self.spared.holds(node)

    def parted(
        self, nodes: Sequence[gs.Node], pairs: Sequence[tuple[gs.Tensor, gs.Tensor]] = ()
    ) -> gs.Node | None:
        """A node that is to stay, and that nobody would read any more when these go; else None.

        Args:
            nodes: Those that go.
            pairs: As in `hand_over`.
        """
        return self.spared.goes_with(nodes, self.is_output, {id(new) for _, new in pairs})


class Draft:
    """New nodes beside the old ones, not yet read by anybody.

    Builders and templates make nodes with `op` and constants with `constant`; the sweep commits the
    draft or discards it.

    Attributes:
        nodes: What was drafted, in order.
        results: What the names of a template stand for.
        also: Further nodes that the draft replaces, each with (its output, the new tensor).
        leans: Nodes that the check has to hold, as what the replacement reads rests on them.
        premises: Values, of which it reads none, whose making it rests on; the check holds them.
        findings: What builders found out for this replacement, to be asked for once more.
    """

    def __init__(self, surgery: Surgery, graph: gs.Graph, stem: str) -> None:
        self.surgery, self.graph, self.stem = surgery, graph, stem
        self.facts = surgery.facts
        self.nodes: list[gs.Node] = []
        self.results: dict[str, gs.Tensor] = {}
        self.also: list[tuple[gs.Node, list[tuple[gs.Tensor, gs.Tensor]]]] = []
        self.premises: list[gs.Tensor] = []
        self.leans: list[gs.Node] = []
        self.findings: dict[str, Any] = {}

    def op(
        self,
        op_type: str,
        *inputs: gs.Tensor | Numbers | None,
        outputs: int | Sequence[str] = 1,
        domain: str = "",
        name: str | None = None,
        also: Mapping[str, Any] | None = None,
        **attributes: Any,
    ) -> Any:
        """Add a node, in the newest form of its operator.

        Args:
            op_type: The operator.
            inputs: Operands; None for one left out; numbers become constants: see `as_tensor`.
            outputs: How many outputs, or their names' endings.
            domain: The operator's domain.
            name: The ending of the node's name; default the operator.
            also: Attributes of any name, such as `name`.
            attributes: As ONNX names them.

        Returns:
            The output tensor, or a tuple of them when there are several.

        Raises:
            surgeon.opsets.Unavailable: The model's opset has no such operator or form.
        """
        surgery, attributes = self.surgery, {**attributes, **(also or {})}
        tensors = [
            t if isinstance(t, gs.Tensor) else as_tensor(self, op_type, domain, inputs, i)
            for i, t in enumerate(inputs)
        ]
        plain = domain in standard.STANDARD and outputs == 1
        if plain and (older := older_form(self, op_type, tensors, attributes)) is not None:
            return older
        endings = [op_type] if outputs == 1 else outputs
        if isinstance(endings, int):
            endings = [f"{op_type}_{i}" for i in range(endings)]
        made = [make_variable(surgery.fresh(f"{self.stem}/{ending}")) for ending in endings]
        label = surgery.fresh(f"{self.stem}/{name or op_type}:node")
        proto, named = opsets.emit(
            op_type,
            domain,
            attributes,
            tensors,
            [t.name for t in made],
            name=label,
            opset=self.facts.opset,
            value_of=self.facts.array,
            rank_of=lambda t: self.facts.of(t).rank,
            dtype_of=lambda t: self.facts.of(t).dtype,
        )
        node = make_node(
            op_type, label, attributes, tensors, made, domain or None, proto, self.graph
        )
        node.__dict__.update(origin_inputs=named, drafted=True, normal=True)
        self.nodes.append(node)
        self.facts.infer(node)
        return made[0] if len(made) == 1 else tuple(made)

    def constant(self, array: Array | Sequence[Any], ending: str = "constant") -> gs.Constant:
        """A new initializer; lists of integers become int64."""
        value = array if isinstance(array, np.ndarray) else wide(array)
        return self.surgery.constant(self.graph, f"{self.stem}/{ending}", value)

    def holds(self, node: gs.Node) -> bool:
        """Whether a node is in this draft's graph, and not in a body or around it."""
        return self.surgery.holds(self.graph, node)

    def discard(self) -> None:
        """Unlink everything that was drafted."""
        for node in reversed(self.nodes):
            unlink_bodies(node)
            unlink(node, node.inputs)
            node.__dict__["gone"] = True
        self.nodes.clear()
