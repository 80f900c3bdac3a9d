"""One step of PyTorch's recurrent layers: its gates are two products."""

from __future__ import annotations

from typing import Any

import onnx_graphsurgeon as gs

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


def _gates(draft: Draft, x: gs.Tensor, count: int) -> Any:
    shape = draft.facts.of(x).shape
    if shape is None or not isinstance(shape[-1], int):
        raise Refused("the size of its hidden state is not known")
    sizes = draft.constant([shape[-1] // count] * count, "sizes")
    return draft.op("Split", x, sizes, outputs=count, axis=len(shape) - 1)


def lstm_cell(draft: Draft, match: Match) -> Any:
    """`aten.lstm_cell`: the next hidden state and the next cell state."""
    args = bind(match.root, draft.facts)
    hidden, cell = args.tensors("hx")
    total = draft.op("Add", *_products(draft, args, hidden))
    gates = _gates(draft, total, 4)
    into, forget, out = (draft.op("Sigmoid", gates[i]) for i in (0, 1, 3))
    fresh = draft.op("Mul", into, draft.op("Tanh", gates[2]))
    cell = draft.op("Add", draft.op("Mul", forget, cell), fresh)
    return draft.op("Mul", out, draft.op("Tanh", cell)), cell


def gru_cell(draft: Draft, match: Match) -> Any:
    """`aten.gru_cell`: the reset gate acts on the product with the state, its bias included."""
    args = bind(match.root, draft.facts)
    hidden = args.tensor("hx")
    mine, its = (_gates(draft, part, 3) for part in _products(draft, args, hidden))
    reset, update = (draft.op("Sigmoid", draft.op("Add", mine[i], its[i])) for i in (0, 1))
    fresh = draft.op("Tanh", draft.op("Add", mine[2], draft.op("Mul", reset, its[2])))
    return draft.op("Add", fresh, draft.op("Mul", update, draft.op("Sub", hidden, fresh)))


def rnn_cell(draft: Draft, match: Match) -> Any:
    """`aten.rnn_tanh_cell` and `rnn_relu_cell`."""
    args = bind(match.root, draft.facts)
    total = draft.op("Add", *_products(draft, args, args.tensor("hx")))
    return draft.op("Tanh" if match.root.op == "rnn_tanh_cell" else "Relu", total)
