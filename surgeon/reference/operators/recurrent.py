"""Recurrent layers (torch.nn.LSTM, GRU, RNN and their cells), step by step in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide

States = tuple[Any, ...]
Step = Callable[[Any, States, list[Any], bool], States]


def _sigmoid(x: Any) -> Any:
    return np.exp(-np.logaddexp(0, -x))


def _linear(x: Any, weight: Any, bias: Any) -> Any:
    if x.shape[-1] != weight.shape[-1]:
        raise Unsuited(f"{x.shape[-1]} features, and weights of {weight.shape[-1]}")
    return x @ weight.T + (0 if bias is None else bias)


def _parts(weights: list[Any], biased: bool) -> tuple[Any, Any, Any, Any, Any]:
    into, again, *rest = weights
    first, second = rest[:2] if biased else (None, None)
    projection = rest[-1] if len(rest) == (3 if biased else 1) else None
    return into, again, first, second, projection


def _lstm_step(x: Any, states: States, weights: list[Any], biased: bool) -> States:
    into, again, first, second, projection = _parts(weights, biased)
    gates = _linear(x, into, first) + _linear(states[0], again, second)
    i, f, g, o = np.split(gates, 4, -1)
    cell = _sigmoid(f) * states[1] + _sigmoid(i) * np.tanh(g)
    hidden = _sigmoid(o) * np.tanh(cell)
    return (hidden if projection is None else _linear(hidden, projection, None)), cell


def _gru_step(x: Any, states: States, weights: list[Any], biased: bool) -> States:
    into, again, first, second, _ = _parts(weights, biased)
    r, z, n = np.split(_linear(x, into, first), 3, -1)
    of_r, of_z, of_n = np.split(_linear(states[0], again, second), 3, -1)
    update = _sigmoid(z + of_z)
    fresh = np.tanh(n + _sigmoid(r + of_r) * of_n)
    return ((1 - update) * fresh + update * states[0],)


def _rnn_step(function: Callable[[Any], Any]) -> Step:
    def step(x: Any, states: States, weights: list[Any], biased: bool) -> States:
        into, again, first, second, _ = _parts(weights, biased)
        return (function(_linear(x, into, first) + _linear(states[0], again, second)),)

    return step


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


STEPS: dict[str, Step] = {
    "lstm": _lstm_step,
    "gru": _gru_step,
    "rnn_tanh": _rnn_step(np.tanh),
    "rnn_relu": _rnn_step(_relu),
}


def _one_way(step: Step, rows: list[Any], states: States, weights: list[Any], biased: bool) -> Any:
    """The hidden state after each step, and the last states; a step may have fewer samples."""
    outputs = []
    states = tuple(np.array(s) for s in states)
    for row in rows:
        count = len(row)
        found = step(row, tuple(s[:count] for s in states), weights, biased)
        for whole, part in zip(states, found, strict=True):
            whole[:count] = part
        outputs.append(found[0])
    return outputs, states


def _layers(
    step: Step,
    rows: list[Any],
    hx: list[Any],
    params: list[Any],
    biased: bool,
    layers: int,
    ways: int,
) -> Any:
    if any(len(s) != layers * ways for s in hx):
        raise Unsuited(f"its states are not of {layers * ways} layers and directions")
    each = len(params) // (layers * ways)
    finals: list[list[Any]] = [[] for _ in hx]
    for layer in range(layers):
        sides = []
        for way in range(ways):
            index = layer * ways + way
            weights = params[index * each : (index + 1) * each]
            order = rows[::-1] if way else rows
            outputs, last = _one_way(step, order, tuple(s[index] for s in hx), weights, biased)
            sides.append(outputs[::-1] if way else outputs)
            for kept, state in zip(finals, last, strict=True):
                kept.append(state)
        rows = [np.concatenate(both, -1) for both in zip(*sides, strict=True)]
    return rows, [np.stack(f) for f in finals]


def _sequence(kind: str, many: bool) -> Callable[..., Any]:
    def run(
        input: Array,
        hx: Any,
        params: list[Array],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> Any:
        if train and dropout > 0:
            raise Unsuited("it drops out at random")
        if input.ndim != 3:
            raise Unsuited(f"its input has rank {input.ndim}")
        x = wide(input).swapaxes(0, 1) if batch_first else wide(input)
        states = [wide(s) for s in (hx if many else [hx])]
        if any(s.shape[1] != x.shape[1] for s in states):
            raise Unsuited("its states are of another batch")
        rows, finals = _layers(
            STEPS[kind],
            list(x),
            states,
            [wide(p) for p in params],
            has_biases,
            num_layers,
            1 + bidirectional,
        )
        y = np.stack(rows)
        y = y.swapaxes(0, 1) if batch_first else y
        return tuple(narrow(np.ascontiguousarray(t), input) for t in (y, *finals))

    return run


def _packed(kind: str, many: bool) -> Callable[..., Any]:
    def run(
        data: Array,
        batch_sizes: Array,
        hx: Any,
        params: list[Array],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
    ) -> Any:
        if train and dropout > 0:
            raise Unsuited("it drops out at random")
        falls = batch_sizes.size and (np.diff(batch_sizes) <= 0).all() and batch_sizes[-1] > 0
        if not falls or batch_sizes.sum() != len(data):
            raise Unsuited("its batch sizes do not fall, or are not those of its rows")
        bounds = np.cumsum(batch_sizes)[:-1]
        states = [wide(s) for s in (hx if many else [hx])]
        if any(s.shape[1] != batch_sizes[0] for s in states):
            raise Unsuited("its states are of another batch")
        rows, finals = _layers(
            STEPS[kind],
            np.split(wide(data), bounds),
            states,
            [wide(p) for p in params],
            has_biases,
            num_layers,
            1 + bidirectional,
        )
        return tuple(narrow(t, data) for t in (np.concatenate(rows), *finals))

    return run


def _cell(kind: str, many: bool) -> Callable[..., Any]:
    def run(
        input: Array, hx: Any, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None
    ) -> Any:
        given = [None if w is None else wide(w) for w in (w_ih, w_hh, b_ih, b_hh)]
        states = tuple(wide(s) for s in (hx if many else [hx]))
        found = STEPS[kind](wide(input), states, given, True)  # each bias may be absent
        return tuple(narrow(t, input) for t in found) if many else narrow(found[0], input)

    return run


_REST = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train"
_WEIGHTS = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


def _rows(kind: str) -> tuple[Row, ...]:
    many = kind == "lstm"
    state, results = ("Tensor[] hx", 3) if many else ("Tensor hx", 2)
    made = f"({', '.join(['Tensor'] * results)})"
    one = "(Tensor, Tensor)" if many else "Tensor"
    return (
        (
            f"{kind}.input(Tensor input, {state}, {_REST}, bool bidirectional, "
            f"bool batch_first) -> {made}",
            _sequence(kind, many),
        ),
        (
            f"{kind}.data(Tensor data, Tensor batch_sizes, {state}, {_REST}, "
            f"bool bidirectional) -> {made}",
            _packed(kind, many),
        ),
        (f"{kind}_cell(Tensor input, {state}, {_WEIGHTS}) -> {one}", _cell(kind, many)),
    )


TABLE: tuple[Row, ...] = tuple(row for kind in STEPS for row in _rows(kind))
