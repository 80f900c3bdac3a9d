"""A match and its replacement, cut out as two tiny models with the same inputs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import blocks, dims, edges, suited
from surgeon.dims import Dim
from surgeon.edges import EDGES, NORMAL, SMALL, WITHIN, Drawing
from surgeon.facts import Fact
from surgeon.facts.fact import Array
from surgeon.firing import Pairs
from surgeon.links import captured_by, named_inputs
from surgeon.model import Model
from surgeon.recipe import Rule
from surgeon.reference.arguments import constant_value
from surgeon.runtime import ENDLESS, blind, release
from surgeon.trial.placing import ranges
from surgeon.verify.limits import Bound

_LARGEST_INPUT = 1 << 22  # elements of one drawn input
_LARGEST_SIZE = 600  # a number in a replacement that may be a size
_SMALL = 0.01  # an epsilon is no larger
_MAPPED = "ZipMap"  # its output is a list of maps


@dataclass(frozen=True, slots=True)
class Piece:
    """A match and its replacement, cut out.

    Attributes:
        model: The model they are cut out of.
        nodes: The match, and what the replacement reads behind it.
        behind: Those of the nodes that make what the replacement reads.
        draft: The replacement.
        pairs: Which value takes the place of which.
        constants: By name, what needs no drawing.
        passed: Those of the constants that both sides read, and whose values decided nothing.
        inputs: What is drawn, and what is known of it.
        symbols: The symbols in its shapes, each with the largest number it may be.
        counts: Those of them that say how often something holds, and may be 0.
        shapes: Those of its inputs and of what both sides compute, where they are known, and how
            many values have each.
        ends_early: Whether more may lie behind the match than was looked at.
        windows: Lengths that pools of the original go over, and how long each is at least.
        joined: Lengths of parts that the original joins along another axis, which are equal.
        laid: Lengths of what the original adds to another value, as long as it there, or 1.
        broadcast: Those of the symbols that lengths are broadcast to in front of it, with these.
        places: What the original's nodes allow integers to hold, by name, as `placing` has it.
    """

    model: Model
    nodes: Sequence[gs.Node]
    behind: Sequence[gs.Node]
    draft: Sequence[gs.Node]
    pairs: Pairs
    constants: Mapping[str, Array]
    passed: frozenset[str]
    inputs: Sequence[tuple[gs.Tensor, Fact]]
    symbols: Mapping[str, int | None]
    counts: frozenset[str]
    shapes: Mapping[tuple[Dim, ...], int]
    ends_early: bool
    windows: Sequence[tuple[Dim, int]] = ()
    joined: Sequence[tuple[Dim, Dim]] = ()
    laid: Sequence[tuple[Dim, Dim]] = ()
    broadcast: Mapping[str, Sequence[Dim]] = field(default_factory=dict)
    places: Mapping[str, Bound] = field(default_factory=dict)

    def key(self, rule: Rule) -> str:
        """What makes two pieces the same: rule, operators, attributes, shapes and constants.

        Values and sizes count by their places: what is not 0 has a length of its own each time.
        """
        digest = hashlib.sha256(f"{rule.location}{[*self.symbols.values()]}".encode())
        names: dict[str, str] = {}
        symbols = {name: dims.symbol(f"s{place}") for place, name in enumerate(self.symbols)}

        def sized(shape: Iterable[Dim]) -> list[tuple[str, tuple[int | None, int | None]]]:
            return [(str(dims.substitute(dim, symbols)), dims.bounds(dim)) for dim in shape]

        def number(name: str) -> str:
            return names.setdefault(name, f"v{len(names)}") if name else ""

        for node in (*self.nodes, None, *self.draft):
            if node is None:
                digest.update(b"|")
                continue
            origin = node.origin
            reads = ",".join(number(t.name) for t in named_inputs(node))
            gives = ",".join(number(t.name) for t in node.outputs)
            digest.update(f"{origin.domain}.{origin.op_type}({reads})->{gives};".encode())
            for attribute in origin.attribute:
                digest.update(attribute.SerializeToString(deterministic=True))
        for tensor, fact in self.inputs:
            value = fact.value.reshape(-1).tolist() if fact.value is not None else None
            value = sized(value) if value and fact.symbolic else value
            shape = None if fact.shape is None else sized(fact.shape)
            known = (fact.dtype, shape, value, fact.unit_axis, fact.not_negative)
            text = f"{number(tensor.name)}:{known}"
            digest.update(text.encode())
        counted = [name in self.counts for name in symbols]
        spread = [(str(symbols[name]), sized(to)) for name, to in self.broadcast.items()]
        asked = [sized(two) for two in (*self.joined, *self.laid)]
        windows = [(sized([length]), least) for length, least in self.windows]
        digest.update(f"{counted}{sorted(spread)}{asked}{windows}".encode())
        for name, array in self.constants.items():
            digest.update(f"{number(name)}:{array.dtype}{array.shape}".encode())
            if name not in self.passed:
                digest.update(array.tobytes())
        return digest.hexdigest()

    @property
    def numbers(self) -> list[float]:
        """The few numbers that either side holds: bounds, thresholds, slopes."""
        arrays = [*self.constants.values(), *_constants((*self.nodes, *self.draft))]
        found = [n for a in arrays if _is_short(a, "fiu") for n in a.reshape(-1).tolist()]
        for node in (*self.nodes, *self.draft):
            found.extend(a.f for a in node.origin.attribute if a.type == a.FLOAT)
        return found

    @property
    def least(self) -> float:
        """The least of them, where it is as small as what is added lest a quotient be infinite."""
        return min((abs(n) for n in self.numbers if 1e-30 < abs(n) <= _SMALL), default=0.0)

    @property
    def sizes(self) -> list[int]:
        """The numbers that the replacement alone holds, and that may be sizes it was made for."""
        read = {t.name for node in self.nodes for t in named_inputs(node)}
        arrays = [array for name, array in self.constants.items() if name not in read]
        arrays += _constants(self.draft)
        found = [n for a in arrays if _is_short(a, "iu") for n in a.reshape(-1).tolist()]
        return [number for number in dict.fromkeys(found) if 7 < number < _LARGEST_SIZE]

    def drawing(self, point: Mapping[str, int], *, seed: int, style: str = NORMAL) -> Drawing:
        """Both models' inputs where every symbol has a size.

        Raises:
            KeyError: A symbol has none.
            ValueError: A dimension comes out negative, an input too large, or the original's pools
                and joins, or what is broadcast in front of it, are not defined there.
        """
        self._defined(point)
        drawn = {
            tensor.name: (fact._replace(shape=None), _shape(fact, point))
            for tensor, fact in self.inputs
            if fact.value is None
        }
        beside: Sequence[float] = ()
        if style in (EDGES, WITHIN):
            beside = edges.near(tuple(self.numbers))
        elif style == SMALL:
            beside = (self.least,)
        levels = suited.levels(self._reads(), self.constants) if style == NORMAL else {}
        within = ranges(self.places, {name: shape for name, (_, shape) in drawn.items()})
        products = style != NORMAL and any(n.op in edges.OF_RUNNING_PRODUCTS for n in self.nodes)
        return Drawing(drawn, self.known(point), style, seed, beside, levels, within, products)

    def _defined(self, point: Mapping[str, int]) -> None:
        """Refuse sizes at which onnxruntime runs the original, and ONNX says nothing of it.

        And those that the model does not have in this place.

        Raises:
            ValueError: Says why.
        """
        for length, least in self.windows:
            if dims.symbols(length) <= point.keys() and dims.evaluate(length, point) < least:
                raise ValueError("a window longer than what it goes over")
        for one, other in self.joined:
            told = dims.symbols(one) | dims.symbols(other) <= point.keys()
            if told and dims.evaluate(one, point) != dims.evaluate(other, point):
                raise ValueError("parts of other lengths joined")
        for one, other in self.laid:
            told = dims.symbols(one) | dims.symbols(other) <= point.keys()
            if told and dims.evaluate(one, point) not in (1, dims.evaluate(other, point)):
                raise ValueError("a batch that is added to another one")
        for name, among in self.broadcast.items():
            if name in point and point[name] != _broadcast(among, point, point[name]):
                raise ValueError("a length that nothing is broadcast to")

    def fitted(self, point: Mapping[str, int]) -> dict[str, int]:
        """The sizes, but for lengths that others are broadcast to: those are as these say."""
        found = dict(point)
        for _ in self.broadcast:  # as often as one may rest on another
            before = dict(found)
            for name, among in self.broadcast.items():
                with suppress(ValueError):  # no size of these: it is left out when it is drawn
                    if name in found:
                        found[name] = _broadcast(among, found, found[name])
            if found == before:
                break
        return found

    def _reads(self) -> Iterator[tuple[str, list[str]]]:
        for node in self.nodes:
            yield node.op, [tensor.name for tensor in named_inputs(node)]

    def known(self, point: Mapping[str, int]) -> dict[str, Array]:
        """Those of the inputs whose values follow from the sizes.

        Raises:
            KeyError: A symbol has none.
            ValueError: A dimension comes out negative, or an input too large.
        """
        found = {}
        for tensor, fact in self.inputs:
            if fact.value is not None:
                numbers = [dims.evaluate(d, point) for d in fact.value.reshape(-1).tolist()]
                dtype = onnx.helper.tensor_dtype_to_np_dtype(fact.dtype)
                found[tensor.name] = np.array(numbers, dtype).reshape(_shape(fact, point))
        if any(node.op in suited.CACHES for node in self.nodes):
            shapes = {tensor.name: _shape(fact, point) for tensor, fact in self.inputs}
            for operator, names in self._reads():
                found |= suited.lengths(operator, names, shapes)
        return found

    def elements(self, point: Mapping[str, int]) -> int:
        """How many elements a run of both sides reads and computes at these sizes, as far as known.

        What depends on other symbols, or is no number there, does not count.
        """
        total = sum(array.size for array in self.constants.values())
        for shape, count in self.shapes.items():
            # asked first: what an unknown size leaves over is compared symbolically, which is slow
            if _symbols(shape) <= point.keys():
                with suppress(ValueError):  # a remainder of 0: nothing will run
                    total += count * math.prod([dims.evaluate(d, point) for d in shape])
        return total

    def is_empty(self, point: Mapping[str, int]) -> bool:
        """Whether something that is drawn has no element at these sizes."""
        return any(0 in _shape(fact, point) for _, fact in self.inputs if fact.value is None)

    def counts_nothing(self, point: Mapping[str, int]) -> bool:
        """Whether nothing but counts makes a length 0 at these sizes, as may be on any input.

        Where no size is 0, a length that is computed from them may be: of a window that is longer
        than its input, on which no model runs.
        """
        nothing = {name for name, size in point.items() if size == 0}
        drawn = [] if nothing else [fact for _, fact in self.inputs if fact.value is None]
        for fact in drawn:
            empty = [d for d in fact.shape or () if dims.evaluate(d, point) == 0]
            nothing |= _symbols(tuple(empty))
        return nothing <= self.counts

    def ends_the_process(self, point: Mapping[str, int]) -> bool:
        """Whether onnxruntime would, or never end, on no elements; some operators ask no length."""
        ran = (*self.nodes, *self.behind, *self.draft)
        kernels = {node.inputs[1].name for node in ran if node.op in ENDLESS}
        try:
            if any(node.op in blind(release()) for node in ran):
                return self.is_empty(point)
            computed = not kernels <= {*self.constants, *(t.name for t, _ in self.inputs)}
            return any(
                0 in _shape(fact, point)
                for tensor, fact in (self.inputs if kernels else ())
                if computed or tensor.name in kernels
            )
        except (KeyError, ValueError):  # these sizes make no piece, and nothing will run
            return False

    def models(self) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        """Both models; dimensions that are no numbers are left open, so that each runs anywhere."""
        before = self._model(self.nodes, [old for old, _ in self.pairs])
        after = self._model([*self.behind, *self.draft], [new for _, new in self.pairs])
        return before, after

    def _model(self, nodes: Sequence[gs.Node], outputs: Sequence[gs.Tensor]) -> onnx.ModelProto:
        graph = onnx.GraphProto(name="piece")
        read: set[str] = set()
        for node in nodes:
            proto = onnx.NodeProto()
            proto.CopyFrom(node.origin)
            proto.ClearField("doc_string")
            names = [t.name for t in named_inputs(node)]
            del proto.input[:]
            proto.input.extend(names)
            del proto.output[:]
            proto.output.extend(t.name for t in node.outputs)
            read.update(names)
            read.update(t.name for t in captured_by(node))
            graph.node.append(proto)
        nameless = {t.name for node in nodes if node.op == "Uninitialized" for t in node.outputs}
        for value in self.model.proto.graph.value_info if nameless else ():
            if value.name in nameless:  # which has the type that the file says, and no other
                graph.value_info.append(value)
        for index, tensor in enumerate(outputs):
            if tensor.inputs and tensor.inputs[0].op == _MAPPED:  # of which there is no Identity
                for proto in graph.node:
                    names = [
                        n if n != tensor.name else f"surgeon.output.{index}" for n in proto.output
                    ]
                    proto.output[:] = names
                graph.output.append(onnx.ValueInfoProto(name=f"surgeon.output.{index}"))
                continue
            graph.node.append(
                onnx.helper.make_node("Identity", [tensor.name], [f"surgeon.output.{index}"])
            )
            graph.output.append(onnx.ValueInfoProto(name=f"surgeon.output.{index}"))
            read.add(tensor.name)
        for name, array in self.constants.items():
            if name in read:
                graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        for tensor, fact in self.inputs:
            shape = [d if isinstance(d, int) else None for d in fact.shape or ()]
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, fact.dtype, shape))
        version = max(self.model.proto.ir_version, 4)
        model = onnx.helper.make_model(graph, ir_version=version)
        model.producer_name = (
            self.model.proto.producer_name
        )  # some operators' meanings depend on it
        model.producer_version = self.model.proto.producer_version
        del model.opset_import[:]
        model.opset_import.extend(self.model.proto.opset_import)
        if blocks.has_blocks(model):
            blocks.note(model, blocks.told(self.model.proto, self.model.folder))
        return model


def _constants(nodes: Sequence[gs.Node]) -> list[Array]:
    """What the Constant nodes among them hold."""
    held = (constant_value(node.origin) for node in nodes if node.origin.op_type == "Constant")
    return [value for value in held if isinstance(value, np.ndarray)]


def _is_short(array: Array, kinds: str) -> bool:
    return array.size <= 8 and array.dtype.kind in kinds


@lru_cache(maxsize=1 << 12)  # asked at each size
def _symbols(shape: tuple[Dim, ...]) -> frozenset[str]:
    """The symbols in a shape."""
    return frozenset().union(*(dims.symbols(d) for d in shape))


def _broadcast(among: Sequence[Dim], point: Mapping[str, int], free: int) -> int:
    """What lengths are broadcast to, or `free` where that is not told by those that have a size.

    Raises:
        ValueError: They are not broadcast to one another, or are none.
    """
    known = [dims.evaluate(dim, point) for dim in among if dims.symbols(dim) <= point.keys()]
    longer = {length for length in known if length != 1}
    if len(longer) > 1:
        raise ValueError("lengths that are not broadcast to one another")
    if longer:
        return longer.pop()
    return 1 if len(known) == len(among) else free


def _shape(fact: Fact, point: Mapping[str, int]) -> tuple[int, ...]:
    shape = tuple(dims.evaluate(d, point) for d in fact.shape or ())
    if any(d < 0 for d in shape):
        raise ValueError("a negative dimension")
    if int(np.prod(shape, dtype=object)) > _LARGEST_INPUT:
        raise ValueError("a large dimension")
    return shape
