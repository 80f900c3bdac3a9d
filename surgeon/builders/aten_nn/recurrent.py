"""PyTorch's recurrent layers as ONNX's: gates in another order, layers one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.builders.bench import Bench
from surgeon.builders.packing import Places, places_of, taken
from surgeon.builders.zeros import is_zero
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

# ONNX's operator, its activation where it has to be said, and where its gates stand among those of
# PyTorch: i, f, g, o become i, o, f, c; r, z, n become z, r, h (torch.nn.LSTM and GRU, onnx's).
_KINDS: Mapping[str, tuple[str, str | None, tuple[int, ...]]] = {
    "lstm": ("LSTM", None, (0, 3, 1, 2)),
    "gru": ("GRU", None, (1, 0, 2)),
    "rnn_tanh": ("RNN", "Tanh", (0,)),
    "rnn_relu": ("RNN", "Relu", (0,)),
}
_UNKNOWN_SIZE = "the size of its hidden state is not known"


@dataclass(frozen=True, slots=True)
class _Weights:
    """What one direction of one layer has; gates in ONNX's order."""

    into: gs.Tensor  # [gates * H, I]
    again: gs.Tensor  # [gates * H, P]
    biases: gs.Tensor | None  # [2 * gates * H]
    projection: gs.Tensor | None  # [P, H]


def recurrent(draft: Draft, match: Match) -> Any:
    """`aten.lstm`, `gru`, `rnn_tanh` and `rnn_relu`, of a batch or of a packed sequence."""
    args = bind(match.root, draft.facts)
    if args.value("train") and float(args.value("dropout")) > 0:
        raise Refused("it drops out at random: it was exported in training mode")
    packing = None
    if args.schema.takes("batch_sizes"):
        sizes = parts.cast(draft, args.tensor("batch_sizes"), parts.INT64)
        packing = places_of(Bench(draft), sizes)
    x = args.tensor("input" if packing is None else "data")
    if parts.rank_of(draft, x) != (3 if packing is None else 2):
        raise Refused("its input has no batch, or no time")
    dtype = parts.numpy_dtype(draft, x)
    if dtype.name not in ("float32", "float16"):
        raise Refused(f"onnxruntime has no `{_KINDS[match.root.op][0]}` of {dtype.name}")
    number = draft.facts.of(x).dtype
    states = args.tensors("hx") if match.root.op == "lstm" else [args.tensor("hx")]
    states = [parts.cast(draft, state, parts.FLOAT) for state in states]
    x = parts.cast(draft, x, parts.FLOAT)
    turned = packing is None and bool(args.value("batch_first"))
    if packing is not None:
        x = draft.op("Gather", x, packing.rows, axis=0)
    elif turned:
        x = draft.op("Transpose", x, perm=[1, 0, 2])
    y, finals = _Stack(draft, args, match.root.op, packing).run(x, states)
    if packing is not None:
        y = taken(Bench(draft), y, packing.inside)
    elif turned:
        y = draft.op("Transpose", y, perm=[1, 0, 2])
    return tuple(parts.cast(draft, t, number) for t in (y, *finals))


class _Stack:
    """Layers one after the other."""

    def __init__(self, draft: Draft, args: Arguments, kind: str, packing: Places | None) -> None:
        self.draft, self.packing = draft, packing
        self.operator, self.activation, self.order = _KINDS[kind]
        self.layers = int(args.value("num_layers"))
        self.directions = 2 if args.value("bidirectional") else 1
        self.biased = bool(args.value("has_biases"))
        self.parameters = [parts.cast(draft, t, parts.FLOAT) for t in args.tensors("params")]
        sets, rest = divmod(len(self.parameters), self.layers * self.directions)
        self.projected = sets == (5 if self.biased else 3)
        if rest or sets not in ((4, 5) if self.biased else (2, 3)):
            raise Refused(f"{len(self.parameters)} parameters in {self.layers} layers")
        self.each = sets

    def run(self, x: gs.Tensor, states: Sequence[gs.Tensor]) -> tuple[gs.Tensor, list[gs.Tensor]]:
        """The output [T, B, D * H], and the last states [L * D, B, H]."""
        finals: list[list[gs.Tensor]] = [[] for _ in states]
        for layer in range(self.layers):
            first = [self._of_layer(state, layer, x) for state in states]
            x, last = self._layer(
                x, [self._weights(layer, d) for d in range(self.directions)], first
            )
            for kept, state in zip(finals, last, strict=True):
                kept.append(state)
        return x, [t[0] if len(t) == 1 else self.draft.op("Concat", *t, axis=0) for t in finals]

    def _of_layer(self, state: gs.Tensor, layer: int, x: gs.Tensor) -> gs.Tensor | None:
        """The part of a first state that is this layer's; None for zeros, with which all begin.

        Zeros for a batch that may be another than the input's stay: PyTorch refuses that batch.
        """
        mine, its = (self.draft.facts.of(t).shape for t in (state, x))
        same = mine is not None and its is not None and dims.equal(mine[1], its[1]) is True
        if same and is_zero(self.draft, state):
            return None
        if self.layers == 1:
            return state
        start = layer * self.directions
        bounds = [self.draft.constant([n], "bound") for n in (start, start + self.directions, 0)]
        return self.draft.op("Slice", state, *bounds)

    def _weights(self, layer: int, direction: int) -> _Weights:
        start = (layer * self.directions + direction) * self.each
        into, again, *rest = self.parameters[start : start + self.each]
        rows = self._rows(again)
        into, again = (self._ordered(t, rows) for t in (into, again))
        biases = None
        if self.biased:
            both = [self._ordered(t, rows) for t in rest[:2]]
            biases = self.draft.op("Concat", *both, axis=0)
        return _Weights(into, again, biases, rest[-1] if self.projected else None)

    def _rows(self, again: gs.Tensor) -> parts.Array | None:
        if len(self.order) == 1:
            return None
        shape = self.draft.facts.of(again).shape
        if shape is None or not isinstance(shape[0], int):
            raise Refused(_UNKNOWN_SIZE)
        rows: parts.Array = np.arange(shape[0]).reshape(len(self.order), -1)
        return rows[list(self.order)].reshape(-1)

    def _ordered(self, weight: gs.Tensor, rows: parts.Array | None) -> gs.Tensor:
        if rows is None:
            return weight
        return self.draft.op("Gather", weight, self.draft.constant(rows, "gates"), axis=0)

    def _stacked(self, tensors: Sequence[gs.Tensor]) -> gs.Tensor:
        """One for each direction, on a new first axis."""
        wide = [parts.unsqueeze(self.draft, t, 0) for t in tensors]
        return wide[0] if len(wide) == 1 else self.draft.op("Concat", *wide, axis=0)

    def _layer(
        self, x: gs.Tensor, weights: Sequence[_Weights], first: Sequence[gs.Tensor | None]
    ) -> tuple[gs.Tensor, list[gs.Tensor]]:
        draft = self.draft
        into = self._stacked([w.into for w in weights])
        again = self._stacked([w.again for w in weights])
        projection = None
        if self.projected:
            projection = self._stacked([w.projection for w in weights if w.projection is not None])
            if first[0] is not None:
                x, into = self._begun(x, into, again, first[0])
                first = [None, *first[1:]]
            again = draft.op("MatMul", again, projection)
        biases = [w.biases for w in weights if w.biases is not None]
        lengths = None
        if self.packing is not None:
            lengths = parts.cast(draft, self.packing.lengths, onnx.TensorProto.INT32)
        extra: dict[str, Any] = {"linear_before_reset": 1} if self.operator == "GRU" else {}
        if self.activation:
            extra["activations"] = [self.activation] * self.directions
        shape = draft.facts.of(again).shape
        if shape is None or not isinstance(shape[2], int):
            raise Refused(_UNKNOWN_SIZE)
        y, *last = draft.op(
            self.operator,
            *(x, into, again, self._stacked(biases) if biases else None, lengths, *first),
            outputs=1 + len(first),
            hidden_size=shape[2],
            direction="bidirectional" if self.directions == 2 else "forward",
            **extra,
        )
        if projection is not None:
            turned = draft.op("Transpose", projection, perm=[0, 2, 1])
            y, last[0] = draft.op("MatMul", y, turned), draft.op("MatMul", last[0], turned)
        if self.directions == 1:
            return parts.squeeze(draft, y, 1), last
        sides = draft.op("Transpose", y, perm=[0, 2, 1, 3])
        return draft.op("Reshape", sides, draft.constant([0, 0, -1], "shape")), last

    def _begun(
        self, x: gs.Tensor, into: gs.Tensor, again: gs.Tensor, state: gs.Tensor
    ) -> tuple[gs.Tensor, gs.Tensor]:
        """A projected first state as part of the input: ONNX's state is the one before projection.

        Each direction's state is fed where that direction begins, by the weights it always has.
        """
        if self.packing is not None:
            raise Refused("a packed sequence with a projection begins in a state that is not zero")
        draft = self.draft
        time = parts.lengths_of(draft, x, 3)[0]
        one = draft.constant([1], "one")
        rest = parts.Length(
            time.static - 1 if time.static is not None else None,
            lambda: draft.op("Sub", time.make(), one),
        )
        if rest.static is not None:
            rest = parts.constant_length(draft, rest.static)
        fed, columns = [x], [into]
        for direction in range(self.directions):
            begin, end = (draft.constant([n], "side") for n in (direction, direction + 1))
            mine = draft.op("Slice", state, begin, end, draft.constant([0], "axis"))
            before, behind = (0, rest) if direction == 0 else (rest, 0)
            amounts = parts.shape_from(draft, [before, 0, 0, behind, 0, 0])
            fed.append(draft.op("Pad", mine, amounts))
            keep = np.zeros((self.directions, 1, 1), np.float32)
            keep[direction] = 1
            columns.append(
                again
                if self.directions == 1
                else draft.op("Mul", again, draft.constant(keep, "side"))
            )
        return draft.op("Concat", *fed, axis=2), draft.op("Concat", *columns, axis=2)
