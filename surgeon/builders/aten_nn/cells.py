"""One step of PyTorch's recurrent layers: its gates are two products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def _products(draft: Draft, args: Arguments, hidden: gs.Tensor) -> tuple[gs.Tensor, gs.Tensor]:
    """What comes from the input and what from the state, gates side by side."""
    return (
        parts.linear(draft, args.tensor("input"), args.tensor("w_ih"), args.optional("b_ih")),
        parts.linear(draft, hidden, args.tensor("w_hh"), args.optional("b_hh")),
    )


def _state(draft: Draft, args: Arguments, state: gs.Tensor, count: int) -> gs.Tensor:
    """A state as the rows that it must be, where a Loop carries it and nothing is known of it.

    What is behind the cell then knows its rank.
    """
    if draft.facts.of(state).rank is not None:
        return state
    width = _width(draft, args, None, count)
    rows: gs.Tensor = draft.op("Reshape", state, draft.constant([-1, width], "rows"))
    return rows


def _gates(draft: Draft, args: Arguments, x: gs.Tensor, count: int) -> Any:
    """The gates apart: they lie side by side along the last axis, each as wide as the state.

    A Loop may carry a state of which nothing is known; the weights say how wide it is. PyTorch's
    cells take a batch of rows, where no rank is known as well.
    """
    shape = draft.facts.of(x).shape
    size = _width(draft, args, shape, count)
    axis = 1 if shape is None else len(shape) - 1
    sizes = draft.constant([size] * count, "sizes")
    return draft.op("Split", x, sizes, outputs=count, axis=axis)


def _width(draft: Draft, args: Arguments, shape: Sequence[dims.Dim] | None, count: int) -> int:
    """How wide the hidden state is: `w_hh` is [count * width, width]."""
    if shape and isinstance(shape[-1], int):
        return shape[-1] // count
    again, into = (draft.facts.of(args.tensor(name)).shape for name in ("w_hh", "w_ih"))
    for weight in (again, into):
        if weight is not None and len(weight) == 2 and isinstance(weight[0], int):
            return weight[0] // count
    if again is not None and len(again) == 2 and isinstance(again[1], int):
        return again[1]
    raise Refused("the size of its hidden state is not known")


def lstm_cell(draft: Draft, match: Match) -> Any:
    """`aten.lstm_cell`: the next hidden state and the next cell state."""
    args = bind(match.root, draft.facts)
    hidden, cell = (_state(draft, args, state, 4) for state in args.tensors("hx"))
    total = draft.op("Add", *_products(draft, args, hidden))
    gates = _gates(draft, args, total, 4)
    into, forget, out = (draft.op("Sigmoid", gates[i]) for i in (0, 1, 3))
    fresh = draft.op("Mul", into, draft.op("Tanh", gates[2]))
    cell = draft.op("Add", draft.op("Mul", forget, cell), fresh)
    return draft.op("Mul", out, draft.op("Tanh", cell)), cell


def gru_cell(draft: Draft, match: Match) -> Any:
    """`aten.gru_cell`: the reset gate acts on the product with the state, its bias included."""
    args = bind(match.root, draft.facts)
    hidden = _state(draft, args, args.tensor("hx"), 3)
    mine, its = (_gates(draft, args, part, 3) for part in _products(draft, args, hidden))
    reset, update = (draft.op("Sigmoid", draft.op("Add", mine[i], its[i])) for i in (0, 1))
    fresh = draft.op("Tanh", draft.op("Add", mine[2], draft.op("Mul", reset, its[2])))
    return draft.op("Add", fresh, draft.op("Mul", update, draft.op("Sub", hidden, fresh)))


def rnn_cell(draft: Draft, match: Match) -> Any:
    """`aten.rnn_tanh_cell` and `rnn_relu_cell`."""
    args = bind(match.root, draft.facts)
    hidden = _state(draft, args, args.tensor("hx"), 1)
    total = draft.op("Add", *_products(draft, args, hidden))
    return draft.op("Tanh" if match.root.op == "rnn_tanh_cell" else "Relu", total)
