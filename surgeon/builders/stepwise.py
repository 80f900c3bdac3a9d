"""Recurrent layers over a known number of steps, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import own_constants, parts
from surgeon.builders.bench import Bench, operand
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_MOST_STEPS = 64
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_USUAL = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_PEEPHOLES = 7  # the operand
_PLAIN = ("Sigmoid", "Tanh", "Relu")

State = list[gs.Tensor]
Step = Callable[[gs.Tensor, State], State]


def layer_step_by_step(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """LSTM, GRU or RNN over a constant number of steps: products, gates and states of each."""
    c, node = Bench(draft), match.root
    _check(c, node)
    x = node.inputs[0]
    directions = [bool(n) for n in _DIRECTIONS[_text(node, "direction", "forward")]]
    found = [_run(c, node, x, place, back) for place, back in enumerate(directions)]
    y = c.concat([c.unsqueeze(steps, [1]) for steps, _ in found], 1)
    states = [c.concat(list(each), 0) for each in zip(*(last for _, last in found), strict=True)]
    return (y, *states)


_DIRECTIONS = {"forward": [0], "reverse": [1], "bidirectional": [0, 1]}


def _text(node: gs.Node, key: str, usual: str) -> str:
    value = attribute_of(node, key)
    return usual if value is None else str(value)


def _check(c: Bench, node: gs.Node) -> None:
    """See that the layer is of a kind that is known here.

    Raises:
        Refused: It is not.
    """
    length = c.size(node.inputs[0], 0)
    if attribute_of(node, "layout"):
        raise Refused("its batch is in front")
    if not isinstance(length, int) or not 1 <= length <= _MOST_STEPS:
        raise Refused(f"it is not known to have 1 to {_MOST_STEPS} steps")
    if operand(node, 4) is not None or operand(node, _PEEPHOLES) is not None:
        raise Refused("it has lengths, or peepholes")
    if attribute_of(node, "clip") or attribute_of(node, "input_forget"):
        raise Refused("it clips, or forgets what it takes in")
    if node.attrs.get("activation_alpha") or node.attrs.get("activation_beta"):
        raise Refused("its activations have numbers of their own")


def _activations(node: gs.Node, place: int) -> list[str]:
    usual = _USUAL[node.op]
    named = [str(name) for name in node.attrs.get("activations") or usual * 2]
    found = named[place * len(usual) : (place + 1) * len(usual)]
    if len(found) < len(usual) or not set(found) <= set(_PLAIN):
        raise Refused("its activations are others than Sigmoid, Tanh and Relu")
    return found


def _run(c: Bench, node: gs.Node, x: gs.Tensor, place: int, back: bool) -> tuple[gs.Tensor, State]:
    """The states after each step of one direction, and the last ones."""
    weight, turn = (own_constants.own_weight(c.draft, node, n)[place] for n in (1, 2))
    gates, hidden = _GATES[node.op], turn.shape[1]
    given = operand(node, 3)
    bias = np.zeros(2 * gates * hidden, weight.dtype)
    if given is not None:
        array = c.facts.array(given)
        if array is None:
            raise Refused("its bias is computed")
        bias = array[place]
    ahead, behind = np.split(bias, 2)
    apart = node.op == "GRU" and bool(attribute_of(node, "linear_before_reset"))
    if apart:  # what the reset is for has its bias by itself
        ahead = np.concatenate([ahead[: 2 * hidden] + behind[: 2 * hidden], ahead[2 * hidden :]])
        behind = np.concatenate([0 * behind[: 2 * hidden], behind[2 * hidden :]])
    else:
        ahead, behind = ahead + behind, 0 * behind
    drafted = c.draft.constant
    inner = c.op("MatMul", x, drafted(np.ascontiguousarray(weight.T), "weight"))
    inner = c.op("Add", inner, drafted(ahead, "bias"))
    layer = _Layer(c, hidden, turn, behind, _activations(node, place))
    step = {"LSTM": layer.lstm, "GRU": layer.gru_apart if apart else layer.gru, "RNN": layer.rnn}
    states = _first(c, node, place, hidden, weight.dtype)
    length = c.size(x, 0)
    assert isinstance(length, int)
    found: list[gs.Tensor] = []
    for time in reversed(range(length)) if back else range(length):
        part = inner if length == 1 else c.slice(inner, 0, time, time + 1)
        states = step[node.op](part, states)
        found.append(states[0])
    return c.concat(found[::-1] if back else found, 0), states


def _first(c: Bench, node: gs.Node, place: int, hidden: int, dtype: np.dtype[Any]) -> State:
    """The states before the first step: zeros where none are given."""
    found = []
    for index in (5, 6) if node.op == "LSTM" else (5,):
        given = operand(node, index)
        if given is None:
            found.append(c.draft.constant(np.zeros((1, 1, hidden), dtype), "zeros"))
            continue
        count = c.size(given, 0)
        found.append(given if count == 1 else c.slice(given, 0, place, place + 1))
    return found


class _Layer:
    """What the steps of one direction share."""

    def __init__(
        self,
        c: Bench,
        hidden: int,
        turn: parts.Array,
        behind: parts.Array,
        activations: Sequence[str],
    ) -> None:
        self.c, self.hidden, self.names = c, hidden, activations
        self._turn, self._behind = turn, behind
        self._made: dict[tuple[int, int], gs.Tensor] = {}

    def rnn(self, x: gs.Tensor, states: State) -> State:
        """h = f(x + h R)."""
        return [self.c.op(self.names[0], self.c.op("Add", x, self._times(states[0], 0, 1)))]

    def lstm(self, x: gs.Tensor, states: State) -> State:
        """The gates are in, out, forget and cell."""
        c, (f, g, h) = self.c, self.names
        into, out, keep, cell = self._parts(c.op("Add", x, self._times(states[0], 0, 4)), 4)
        kept = c.op("Mul", c.op(f, keep), states[1])
        new = c.op("Add", kept, c.op("Mul", c.op(f, into), c.op(g, cell)))
        return [c.op("Mul", c.op(f, out), c.op(h, new)), new]

    def gru(self, x: gs.Tensor, states: State) -> State:
        """The gates are update, reset and hidden; the reset is in front of the product."""
        c, (f, g), state = self.c, self.names, states[0]
        pair, inner = self._pair(x)
        update, reset = self._parts(c.op(f, c.op("Add", pair, self._times(state, 0, 2))), 2)
        turned = self._times(c.op("Mul", reset, state), 2, 3)
        return self._mixed(update, c.op(g, c.op("Add", inner, turned)), state)

    def gru_apart(self, x: gs.Tensor, states: State) -> State:
        """The reset is behind the product, and what is added to that."""
        c, (f, g), state = self.c, self.names, states[0]
        pair, inner = self._pair(x)
        turned, last = self._pair(self._times(state, 0, 3))
        last = c.op("Add", last, self._constant("behind", self._behind[2 * self.hidden :]))
        update, reset = self._parts(c.op(f, c.op("Add", pair, turned)), 2)
        new = c.op(g, c.op("Add", inner, c.op("Mul", reset, last)))
        return self._mixed(update, new, state)

    def _mixed(self, update: gs.Tensor, new: gs.Tensor, state: gs.Tensor) -> State:
        """(1 - z) n + z h."""
        c = self.c
        one = c.number(1, c.dtype(new))
        fresh = c.op("Mul", c.op("Sub", one, update), new)
        return [c.op("Add", fresh, c.op("Mul", update, state))]

    def _constant(self, name: str, array: parts.Array) -> gs.Tensor:
        key = (-1, -1)
        if key not in self._made:
            self._made[key] = self.c.draft.constant(array, name)
        return self._made[key]

    def _times(self, state: gs.Tensor, first: int, end: int) -> gs.Tensor:
        """The product with the weights of some gates."""
        if (first, end) not in self._made:
            rows = self._turn[first * self.hidden : end * self.hidden]
            turned = self.c.draft.constant(np.ascontiguousarray(rows.T), "turn")
            self._made[first, end] = turned
        made: gs.Tensor = self.c.op("MatMul", state, self._made[first, end])
        return made

    def _parts(self, x: gs.Tensor, count: int) -> list[gs.Tensor]:
        """The gates, side by side along the last axis."""
        sizes = self.c.ints([self.hidden] * count, "sizes")
        return list(self.c.op("Split", x, sizes, outputs=count, axis=2))

    def _pair(self, x: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor]:
        """The first two gates as one, and the third."""
        sizes = self.c.ints([2 * self.hidden, self.hidden], "sizes")
        first, last = self.c.op("Split", x, sizes, outputs=2, axis=2)
        return first, last
