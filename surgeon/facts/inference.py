"""Facts of a graph, one node at a time: depth from `shapes` and `values`, breadth from onnx."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from operator import is_
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims, opsets
from surgeon.alike import attributes_of
from surgeon.dims import Dim
from surgeon.facts import breadth, contrib, cuts, libraries, likeness, sequences, shapes, values
from surgeon.facts.constants import LARGEST_VALUE, Constants
from surgeon.facts.fact import BOOL, INT64, INTEGERS, UNKNOWN, Array, Fact, of_value
from surgeon.facts.fitting import Fitting
from surgeon.facts.kinds import known_type
from surgeon.facts.lengths import Lengths
from surgeon.facts.properties import not_negative, not_zero, unit_axis
from surgeon.facts.question import Question, Shape
from surgeon.meanings import Meanings, full_name
from surgeon.model import Model
from surgeon.standard import STANDARD

_AttributeRef = gs.Node.AttributeRef
_FIRST_BOOLEAN_MASK = 10  # the opset from which on a Dropout's mask is not of its input's type
_DOMAINS = frozenset({*STANDARD, opsets.LEGACY})
_MALFORMED = (  # what a node that is not as its operator wants it may bring about
    AttributeError,
    IndexError,
    KeyError,
    OverflowError,
    TypeError,
    ValueError,
    ZeroDivisionError,
)

_SIZES = frozenset({"Shape", "Size"})
# Operators whose inputs and output are all of one dtype.
_OF_ONE_TYPE = frozenset("Add Sub Mul Div MatMul Gemm Concat Max Min Sum Mean".split())
# By which of its inputs an operator's result is typed, where that is not the first.
_TYPED_BY: Mapping[str, int] = {
    **dict.fromkeys(("Where", "CastLike"), 1),
    # onnxruntime's own of before opset 17 too
    **dict.fromkeys(("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"), 1),
    "OneHot": 2,
}


class Facts:
    """What is known of each tensor of a model; kept on the tensors (`tensor.fact`).

    Attributes:
        lengths: The names of its dimensions.
        defined_at: Dimensions for which the model, as it came, has a value at one size only.

    Args:
        model: Its graph's inputs and initializers are the axioms.
        fixed: Shapes the user gives for inputs, by name: numbers or names of dimensions.
        assumptions: Symbols the user's `--assume` replaces, by name.
        same_shape: Operators (`my.domain.Op`) of which the recipe promises that their first output
            has the dtype and shape of their first input.
        meanings: What operators compute of which no standard knows.
    """

    def __init__(
        self,
        model: Model,
        *,
        fixed: Mapping[str, tuple[int | str, ...]] | None = None,
        assumptions: Mapping[str, Dim] | None = None,
        same_shape: Collection[str] = (),
        meanings: Meanings | None = None,
    ) -> None:
        self.model = model
        self.opset = model.opset
        self.lengths = Lengths(fixed or {}, assumptions or {})
        self.same_shape = frozenset(same_shape)
        self.meanings = meanings or Meanings()
        self._homeless = self.meanings.homeless | self.same_shape
        self.defined_at: dict[str, int] = {}
        self.fitting = Fitting()
        self.inferred = 0
        self.asked_onnx = 0
        self.breadth = breadth.Breadth(model, self.lengths.new)
        # What was inferred, by operator, attributes and the facts of the inputs, which are held so
        # that no other fact gets the place in memory by which they are known: blocks repeat.
        self._alike: dict[Any, tuple[list[Fact | None], list[Fact]]] = {}
        self._constants = Constants(model)
        self._known: dict[Any, Fact] = {}

    def enter(self, graph: gs.Graph) -> None:
        """Take a top-level graph's inputs as axioms."""
        origin = getattr(graph, "origin", None)
        declared = (
            {v.name: v.type for v in origin.input} if isinstance(origin, onnx.GraphProto) else {}
        )
        for tensor in graph.inputs:
            if getattr(tensor, "fact", None) is None:
                tensor.fact = self.lengths.declared(tensor.name, declared.get(tensor.name))

    def of(self, tensor: gs.Tensor) -> Fact:
        """What is known of a tensor."""
        fact = getattr(tensor, "fact", None)
        if fact is not None:
            return fact  # type: ignore[no-any-return]
        if isinstance(tensor, gs.Constant):
            tensor.__dict__["fact"] = fact = self._constants.fact(tensor)
            return fact
        return UNKNOWN

    def array(self, tensor: gs.Tensor, *, decides: bool = True) -> Array | None:
        """The values of a tensor where every one is known as a number, of any size.

        Args:
            tensor: Any tensor.
            decides: Whether anything is to depend on the values: see `is_unread`.
        """
        fact = self.of(tensor)
        if fact.concrete is not None:
            return fact.concrete
        if isinstance(tensor, gs.Constant) and tensor.name not in self.model.overridable:
            return self._constants.array(tensor, decides=decides)
        return None

    def is_unread(self, tensor: gs.Tensor) -> bool:
        """Whether only the dtype and the shape of a large constant decided anything so far."""
        return self._constants.is_unread(tensor)

    def infer(self, node: gs.Node) -> None:
        """Fill the facts of a node's outputs, unless its inputs' are the same as last time."""
        domain = node.domain or ""
        attributes = attributes_of(node)
        refers = attributes is None and any(
            isinstance(v, _AttributeRef) for v in node.attrs.values()
        )
        if domain not in _DOMAINS or node.op in self._homeless:
            for tensor in node.outputs:
                tensor.fact = UNKNOWN  # not what an earlier call of its function made it
            if full_name(domain, node.op) in self.same_shape and node.inputs and node.outputs:
                first = self.of(node.inputs[0])
                node.outputs[0].fact = Fact(first.dtype, first.shape)
            elif not refers:
                self._infer_documented(node, domain)
            return
        if refers or domain == opsets.LEGACY:
            self._ask_onnx(node)
            return
        inputs = [(t.__dict__.get("fact") or self.of(t)) if t.name else None for t in node.inputs]
        scope, seen = getattr(node, "seen", None) or (None, ())
        if (
            scope == self.lengths.scope  # another call of a function has new dimensions of its own
            and len(seen) == len(inputs)
            and all(map(is_, seen, inputs))
        ):
            return
        # graphsurgeon's `__setattr__` costs more than what is set; its lists are not meant here
        node.__dict__["seen"] = self.lengths.scope, inputs
        self.inferred += 1
        if attributes is None:
            self._infer(node, inputs)
            return
        key = (node.op, attributes, len(node.outputs), *map(id, inputs))
        if key in self._alike:
            for tensor, fact in zip(node.outputs, self._alike[key][1], strict=True):
                tensor.__dict__["fact"] = fact
            return
        before = self.asked_onnx, self.lengths.made  # what depends on more than the facts
        self._infer(node, inputs)
        if before == (self.asked_onnx, self.lengths.made):
            found = [self._same(self.of(tensor)) for tensor in node.outputs]
            for tensor, fact in zip(node.outputs, found, strict=True):
                tensor.__dict__["fact"] = fact
            self._alike[key] = inputs, found

    def _infer_documented(self, node: gs.Node, domain: str) -> None:
        """The facts of an operator outside the standard.

        As its domain's documentation tells, or the function that a recipe gives of it.
        """
        if domain == contrib.DOMAIN:
            facts = partial(contrib.facts, node.op)
        elif domain in libraries.DOMAINS:
            facts = partial(libraries.facts, domain, node.op)
        else:
            if function := self.meanings.function(full_name(domain, node.op), self.opset):
                inferred = self.breadth.infer_by_function(node, function, self.of)
                for tensor in node.outputs:
                    tensor.fact = inferred.get(tensor.name, UNKNOWN)
            return
        inputs = [self.of(t) if t.name else None for t in node.inputs]
        try:
            found = facts(self._question(node, inputs))
        except _MALFORMED:
            return
        for tensor, fact in zip(node.outputs, found or (), strict=False):
            tensor.fact = fact

    def _same(self, fact: Fact) -> Fact:
        """The fact that stands for all equal ones, so that what is behind them is known again."""
        value = fact.value
        if value is None:
            return self._known.setdefault(fact, fact)
        if value.dtype.kind not in "iuO":
            return fact
        elements = value.dtype, tuple(value.reshape(-1).tolist())
        key = fact.dtype, fact.shape, elements, fact.unit_axis, fact.not_negative
        return self._known.setdefault(key, fact)

    def _infer(self, node: gs.Node, inputs: list[Fact | None]) -> None:
        """The facts of a standard operator's outputs."""
        try:
            self._reason(node, inputs)
        except _MALFORMED:
            self._ask_onnx(node)  # the node is malformed; onnx's own inference may say more

    def _reason(self, node: gs.Node, inputs: list[Fact | None]) -> None:
        """The same; raises anything where the node is malformed."""
        if node.op == "Conv":
            self._constrain(node, inputs)
        known = None
        if node.op in sequences.OPERATORS:
            known = sequences.facts(node.op, inputs, node.attrs, partial(self._fresh, node))
        elif node.op in likeness.STANDARD:
            question = self._question(node, inputs)
            known = likeness.by_form(likeness.STANDARD[node.op], question)
        if known is None:
            known = self._values(node, inputs)
            if node.op == "Div":
                self.fitting.heed(inputs, known)
        if known is not None:
            for tensor, fact in zip(node.outputs, known, strict=False):
                tensor.__dict__["fact"] = fact
            return
        function = shapes.FUNCTIONS.get(node.op)
        found = None
        if function is not None:
            try:
                found = function(self._question(node, inputs))
            except _MALFORMED:
                found = None
        if found is None or found[0] is None or not shapes.whole(found):
            self._ask_onnx(node)
            return
        for index, (tensor, shape) in enumerate(zip(node.outputs, found, strict=False)):
            tensor.__dict__["fact"] = Fact(
                self._dtype(node, inputs, index),
                shape,
                None,
                unit_axis(node, inputs, shape),
                not_negative(node, inputs, index),
                not_zero(node, inputs, self.model.array),
            )

    def _constrain(self, node: gs.Node, inputs: list[Fact | None]) -> None:
        """Learn from a Conv at which sizes the model has a value: channels are group * weight's.

        A trace freezes the batch into `group` where samples became groups.
        """
        x, weight = inputs[0], inputs[1]
        if x is None or weight is None or not x.shape or not weight.shape:
            return
        if len(x.shape) < 3 or len(weight.shape) < 3:
            return
        solved = dims.solve(x.shape[1] - weight.shape[1] * node.attrs.get("group", 1))
        if solved is not None:
            self.defined_at.setdefault(*solved)
        if not self.lengths.scope and not node.__dict__.get(
            "made"
        ):  # what a rule made may need more
            self.fitting.learn(x.shape, weight.shape, node.attrs)

    def sharpen(self) -> tuple[str, ...]:
        """Take what was learned of inputs' lengths as axioms; gives the names, most often none."""
        found = self.lengths.heed(self.fitting)
        if found:
            for tensor in self.model.graph.inputs:
                tensor.fact = None  # until the graph is entered again
        return found

    def _question(self, node: gs.Node, inputs: list[Fact | None]) -> Question:
        return Question(inputs, node.attrs, len(node.outputs), partial(self._fresh, node))

    def _fresh(self, node: gs.Node, axis: int, *, filled: bool = False, among: Shape = ()) -> Dim:
        return self.lengths.new(*cuts.source(node, axis), filled=filled, among=among)

    def _values(self, node: gs.Node, inputs: list[Fact | None]) -> list[Fact] | None:
        """The outputs' facts where even their elements are known."""
        op = node.op
        if op in _SIZES:
            return self._sizes(node, inputs[0])
        if op == "Constant":
            return self._constant(node)
        operands: list[Array | None] = []
        for fact in inputs:
            if fact is not None and fact.value is None:
                return None
            operands.append(None if fact is None else fact.value)
        if op == "Cast":
            return self._cast(node, inputs[0])
        if not operands and op != "ConstantOfShape":
            return None
        first = next((f for f in inputs if f is not None), None)
        dtype = self._dtype(node, inputs, 0)
        whole = all(f is None or f.dtype in INTEGERS or f.dtype == BOOL for f in inputs)
        if not whole and op not in values.MOVES:
            return None
        if first is None or self._too_large(node, inputs):
            return None
        if op == "Split" and len(operands) < 2:
            return self._even_split(node, first)
        attributes = node.attrs
        if isinstance(attributes.get("value"), gs.Constant):
            attributes = {**attributes, "value": self.model.array(attributes["value"])}
        result = values.evaluate(op, operands, attributes)
        if result is None or any(values.may_wrap(a, dtype) for a in result):
            return None
        return [of_value(np.asarray(a), dtype) for a in result]

    def _sizes(self, node: gs.Node, source: Fact | None) -> list[Fact] | None:
        """What Shape and Size give."""
        if source is None or source.shape is None:
            return None
        if node.op == "Shape":
            return [of_value(shapes.shape_value(source.shape, node.attrs), INT64)]
        size = np.empty((), object)
        size[()] = dims.product(source.shape)
        return [of_value(size, INT64)]

    def _constant(self, node: gs.Node) -> list[Fact] | None:
        value = node.attrs.get("value")
        if isinstance(value, np.ndarray):
            return [of_value(value, int(onnx.helper.np_dtype_to_tensor_dtype(value.dtype)))]
        return [self._constants.fact(value)] if isinstance(value, gs.Constant) else None

    def _cast(self, node: gs.Node, source: Fact | None) -> list[Fact] | None:
        to = known_type(node.attrs.get("to") or 0)
        if source is None or source.value is None or not to:
            return None
        value = source.value
        if source.symbolic:
            # The symbols are dimensions: they fit int32 and int64.
            whole = to in (INT64, onnx.TensorProto.INT32) and not values.may_wrap(value, to)
            return [Fact(to, source.shape, value)] if whole else None
        if (source.dtype in INTEGERS or source.dtype == BOOL) and (to in INTEGERS or to == BOOL):
            return [of_value(value.astype(onnx.helper.tensor_dtype_to_np_dtype(to)), to)]
        return None

    def _even_split(self, node: gs.Node, source: Fact) -> list[Fact] | None:
        count, axis = len(node.outputs), node.attrs.get("axis", 0)
        if source.value is None or source.value.shape[axis] % count:
            return None
        parts = np.split(source.value, count, axis)
        return [of_value(np.asarray(part), source.dtype) for part in parts]

    def _too_large(self, node: gs.Node, inputs: list[Fact | None]) -> bool:
        """Whether the output could be no shape arithmetic: known before anything is computed."""
        if node.op in ("ConstantOfShape", "Expand", "Tile", "Range"):
            found = shapes.FUNCTIONS[node.op](
                Question(inputs, node.attrs, len(node.outputs), lambda axis, **_more: -1)
            )
            size = dims.product(found[0]) if found and found[0] is not None else None
            return not isinstance(size, int) or not 0 <= size <= LARGEST_VALUE
        sizes = [f.value.size for f in inputs if f is not None and f.value is not None]
        return sum(sizes) > 4 * LARGEST_VALUE

    def _dtype(self, node: gs.Node, inputs: list[Fact | None], index: int) -> int:
        op = node.op
        if op in shapes.COMPARES:
            return BOOL
        if (op, index) in shapes.COUNTS:
            return INT64
        if op == "Cast":
            return known_type(int(node.attrs.get("to", 0)))
        if op == "ConstantOfShape":
            value = node.attrs.get("value")
            return int(onnx.TensorProto.FLOAT if value is None else self._attribute_dtype(value))
        if op == "Dropout" and index == 1 and self.opset >= _FIRST_BOOLEAN_MASK:
            return BOOL
        which = _TYPED_BY.get(op, 0)
        fact = inputs[which] if which < len(inputs) else None
        if fact is not None and not fact.dtype and op in _OF_ONE_TYPE:
            return next((f.dtype for f in inputs if f is not None and f.dtype), 0)
        return 0 if fact is None else fact.dtype

    def _attribute_dtype(self, value: Any) -> int:
        if isinstance(value, gs.Tensor):
            return self.of(value).dtype
        return int(onnx.helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype))

    def _ask_onnx(self, node: gs.Node) -> None:
        self.asked_onnx += 1
        found = self.breadth.infer(node, self.of)
        for tensor in node.outputs:
            tensor.fact = found.get(tensor.name, UNKNOWN)
