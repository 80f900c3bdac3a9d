"""Every way in which nodes can stand for a pattern's, and why the nearest does not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import opsets
from surgeon.dims import Dim
from surgeon.facts import Facts
from surgeon.match import attribute_of, look_through
from surgeon.meanings import full_name
from surgeon.model import describe
from surgeon.notation import Argument, NodePattern
from surgeon.spelling import home
from surgeon.standard import STANDARD
from surgeon.wordy import default_in_words

COMMUTATIVE = frozenset(
    "Add Mul And Or Xor Equal Min Max Sum Mean BitwiseAnd BitwiseOr BitwiseXor".split()
)


@dataclass(slots=True)
class State:
    """What is bound so far; copied at a choice (the order of operands), and nowhere else."""

    values: dict[str, gs.Tensor | None] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    rests: dict[str, tuple[gs.Tensor, ...]] = field(default_factory=dict)
    views: dict[str, tuple[gs.Node, ...]] = field(default_factory=dict)
    nodes: tuple[gs.Node, ...] = ()

    def copy(self) -> State:
        """The same, to be bound further by one of several choices."""
        return State(
            dict(self.values), dict(self.attributes), dict(self.rests), dict(self.views), self.nodes
        )


class Search:
    """One search behind one root.

    Args:
        producers: The pattern's nodes by the names of their outputs.
        facts: Asked for ranks and constants.
        is_output: Whether a tensor is an output of a graph.

    Attributes:
        deepest: How many nodes the best attempt came to.
        matched: How many of them fit: all, or all but the last.
        why: Why it found no more, in words.
    """

    def __init__(
        self,
        producers: Mapping[str, NodePattern],
        facts: Facts,
        is_output: Callable[[gs.Tensor], bool],
    ) -> None:
        self.producers, self.facts, self.is_output = producers, facts, is_output
        self.deepest = self.matched = 0
        self._node = False  # whether the best attempt ended at a node
        self.why: Callable[[], str] = lambda: "it does not match"

    def fail(
        self, state: State, why: Callable[[], str], *, last: bool = True, node: bool = True
    ) -> None:
        """Note why an attempt ends, where none came further, and whether its last node fits.

        Of the two orders of operands the one that met a node is the nearer.
        """
        reached = len(state.nodes), node
        if reached >= (self.deepest, self._node):
            (self.deepest, self._node), self.why = reached, why
            self.matched = self.deepest - (not last)

    def node(self, want: NodePattern, node: gs.Node, state: State) -> Iterator[State]:
        """Every way in which `node` can stand for `want`."""
        domain = node.domain or ""
        if node.op not in want.operators or (
            domain != want.domain
            and not (domain in STANDARD and want.domain in STANDARD)
            and home(domain, node.op) != home(want.domain, node.op)
        ):
            expected = " | ".join(want.operators)
            self.fail(
                state, lambda: f"{describe(node)} is not {want.domain or 'ai.onnx'}.{expected}"
            )
            return
        if any(node is other for other in state.nodes):
            self.fail(state, lambda: f"{describe(node)} would be matched twice")
            return
        state.nodes = (*state.nodes, node)
        if want.overload and node.attrs.get("overload", "") != want.overload:
            self.fail(
                state, lambda: f"{describe(node)} has overload {node.attrs.get('overload')!r}"
            )
            return
        moved = self._attributes(want, node, state)
        if moved is None or not self._outputs(want, node, state):
            return
        arguments: Sequence[Argument | _Literal] = want.inputs
        if moved:
            arguments = _with_moved(want, moved)
        commutes = node.op in COMMUTATIVE and len(arguments) == len(node.inputs) == 2
        operands = list(node.inputs)
        if commutes:
            yield from self._inputs(arguments, 0, operands, node, state.copy())
            operands.reverse()
        yield from self._inputs(arguments, 0, operands, node, state)

    def _attributes(self, want: NodePattern, node: gs.Node, state: State) -> dict[int, Any] | None:
        """Check and capture attributes; those that are inputs now are returned by input index."""
        moved: dict[int, Any] = {}
        moves = {move.attribute: move.index for move in opsets.MOVED.get(node.op, ())}
        for key, value in want.attributes.items():
            if key in moves:
                moved[moves[key]] = value
                continue
            found = self._attribute(node, key)
            if not self._agrees(node, key, found, value):
                self.fail(state, _differs(node, key, found, value))
                return None
        for key, name in want.captures.items():
            if key in moves:
                moved[moves[key]] = name
                continue
            found = self._attribute(node, key)
            if found is None:
                self.fail(state, lambda key=key: f"{describe(node)} has no attribute `{key}`")  # type: ignore[misc]
                return None
            if not self._capture(name, _as_stored(found), state, node, key):
                return None
        if want.rest is not None:
            named = {*want.attributes, *want.captures, "overload"}
            rest = {k: v for k, v in node.attrs.items() if k not in named}
            if not self._capture(f"*{want.rest}", rest, state, node):
                return None
        return moved

    def _capture(self, name: str, found: Any, state: State, node: gs.Node, key: str = "") -> bool:
        """Bind a name to what is captured; whether that is what it is bound to, if it is.

        Args:
            name: Of an attribute, or of the others (`*rest`).
            found: At this node.
            state: What is bound.
            node: Whose attribute it is.
            key: Of the attribute.
        """
        bound = state.attributes.setdefault(name, found)
        if bound is found or self._agrees(node, key, found, bound):
            return True
        self.fail(state, lambda: _both(name, bound, found), last=False)
        return False

    def _attribute(self, node: gs.Node, key: str) -> Any:
        """What a node states, or the default of its operator's schema or function; or None."""
        found = attribute_of(node, key)
        if found is None and key not in node.attrs:
            name = full_name(node.domain or "", node.op)
            found = self.facts.meanings.default(name, key, self.facts.opset)
            if found is None:
                found = default_in_words(node, key, self.facts)
        return found

    def _agrees(self, node: gs.Node, key: str, found: Any, value: Any) -> bool:
        if found is None:
            return False
        found, value = _plain(found), _plain(value)
        if key == "axis" and isinstance(found, int) and isinstance(value, int) and found != value:
            rank = self.facts.of(node.inputs[0]).rank if node.inputs else None
            return rank is not None and -rank <= value < rank and (found - value) % rank == 0
        if isinstance(value, float) and isinstance(found, float):
            return bool(np.float32(value) == np.float32(found))
        return bool(found == value)

    def _outputs(self, want: NodePattern, node: gs.Node, state: State) -> bool:
        for index, tensor in enumerate(node.outputs):
            name = want.outputs[index] if index < len(want.outputs) else ""
            if name in ("", "_"):
                # An inner node keeps its other readers; a root goes, and its outputs with it.
                is_root = not state.nodes[1:]
                if is_root and tensor.name and (tensor.outputs or self.is_output(tensor)):
                    self.fail(
                        state,
                        lambda index=index: f"output {index} of {describe(node)} is read",  # type: ignore[misc]
                    )
                    return False
                continue
            state.values[name] = tensor
        return True

    def _inputs(
        self,
        arguments: Sequence[Argument | _Literal],
        index: int,
        operands: list[gs.Tensor],
        node: gs.Node,
        state: State,
    ) -> Iterator[State]:
        if index == len(arguments):
            extra = [t for t in operands[index:] if not t.is_empty()]
            if extra:
                self.fail(
                    state, lambda: f"{describe(node)} has {len(operands)} inputs, not {index}"
                )
                return
            yield state
            return
        argument = arguments[index]
        if isinstance(argument, _Literal):
            if self._literal(argument, operands, index, node, state):
                yield from self._inputs(arguments, index + 1, operands, node, state)
            return
        if argument.rest:
            state.rests[argument.name] = tuple(operands[index:])
            yield state
            return
        tensor = operands[index] if index < len(operands) else None
        if tensor is not None and tensor.is_empty():
            tensor = None
        for bound in self._operand(argument, index, tensor, node, state):
            yield from self._inputs(arguments, index + 1, operands, node, bound)

    def _literal(
        self, literal: _Literal, operands: list[gs.Tensor], index: int, node: gs.Node, state: State
    ) -> bool:
        tensor = operands[index] if index < len(operands) else None
        if tensor is not None and tensor.is_empty():
            tensor = None
        wanted = np.asarray(literal.value).reshape(-1).tolist()
        if tensor is None:
            said = "" if literal.capture else f", where the pattern wants {wanted}"
            self.fail(state, lambda: f"{describe(node)} has no input {index}{said}")
            return False
        shape = self.facts.of(tensor).shape
        if literal.capture is None and _are_more(shape, len(wanted)):  # weights are not read
            many = f"has the shape {list(shape or ())}, and is not {wanted}"
            self.fail(state, lambda: f"input {index} of {describe(node)} {many}")
            return False
        array = self.facts.array(tensor)
        found = None if array is None else array.reshape(-1).tolist()
        if literal.capture is not None:
            if found is None:
                self.fail(state, lambda: f"input {index} of {describe(node)} is not a known value")
                return False
            return self._capture(literal.capture, found, state, node)
        if found is None or [float(v) for v in found] != [float(v) for v in wanted]:
            self.fail(state, lambda: f"input {index} of {describe(node)} is {found}, not {wanted}")
            return False
        return True

    def _operand(
        self,
        argument: Argument,
        index: int,
        tensor: gs.Tensor | None,
        node: gs.Node,
        state: State,
    ) -> Iterator[State]:
        name = argument.name
        if tensor is None:
            if state.values.get(name) is not None:
                self.fail(state, lambda: _both(name, state.values[name], None), last=False)
            elif name == "" or argument.optional:
                if name:
                    state.values[name] = None
                yield state
            else:
                self.fail(state, lambda: f"{describe(node)} has no input {index} (`{name}`)")
            return
        if name == "":
            self.fail(state, lambda: f"{describe(node)} has an input {index}, the pattern has none")
            return
        if name == "_":
            yield state
            return
        producer = self.producers.get(name)
        views: list[gs.Node] = []
        if argument.through:
            wanted = producer.operators if producer is not None else ()
            tensor, views = look_through(tensor, wanted)
        bound = state.values.get(name, _UNBOUND)
        if bound is not _UNBOUND:
            if bound is not tensor:
                self.fail(state, lambda: _both(name, bound, tensor), last=False)
                return
            yield state
            return
        if producer is not None:
            made_by = tensor.inputs[0] if tensor.inputs else None
            if made_by is None:
                what = f"`{name}` ({tensor.name!r}) is not computed by a node"
                self.fail(state, lambda: what, node=False)
                return
            position = producer.outputs.index(name)
            if position >= len(made_by.outputs) or made_by.outputs[position] is not tensor:
                self.fail(state, lambda: f"`{name}` is another output of {describe(made_by)}")
                return
            state.views[name] = tuple(views)
            yield from self.node(producer, made_by, state)
            return
        state.values[name] = tensor
        state.views[name] = tuple(views)
        yield state


class _Literal(NamedTuple):
    """An input that the recipe wrote as the attribute it once was."""

    value: Any = None
    capture: str | None = None


def _differs(node: gs.Node, key: str, found: Any, value: Any) -> Callable[[], str]:
    return lambda: (
        f"attribute `{key}` of {describe(node)} is {_plain(found)!r}, not {_plain(value)!r}"
    )


class _Unbound:
    name = ""


_UNBOUND: Any = _Unbound()
_NAMED = 64  # numbers of a constant that a message names


def _with_moved(want: NodePattern, moved: Mapping[int, Any]) -> tuple[Argument | _Literal, ...]:
    arguments: list[Argument | _Literal] = list(want.inputs)
    captures = set(want.captures.values())
    for index in sorted(moved):
        while len(arguments) <= index:
            arguments.append(Argument(""))
        value = moved[index]
        is_capture = isinstance(value, str) and value in captures
        arguments[index] = _Literal(capture=value) if is_capture else _Literal(value=value)
    return tuple(arguments)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, gs.Constant):
        return np.asarray(value.values).tolist()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value


def _as_stored(value: Any) -> Any:
    """A captured attribute; a float as the float32 it is in the file, so that 1e-5 equals 1e-5."""
    found = _plain(value)
    return np.float32(found) if isinstance(found, float) else found


def _are_more(shape: Sequence[Dim] | None, numbers: int) -> bool:
    """Whether a shape has more elements than so many numbers, and than a message would name."""
    if shape is None or not all(isinstance(d, int) for d in shape):
        return False
    return math.prod(d for d in shape if isinstance(d, int)) > max(numbers, _NAMED)


def _both(name: str, one: Any, other: Any) -> str:
    """What is said where two places give a name something else: values, or attributes."""
    return f"`{name}` would be both {_said(one)} and {_said(other)}"


def _said(bound: Any) -> str:
    if bound is None:
        return "'nothing'"
    if isinstance(bound, np.generic):
        return str(bound)
    return repr(bound.name if isinstance(bound, gs.Tensor) else _plain(bound))
