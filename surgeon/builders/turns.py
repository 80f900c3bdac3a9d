"""Steps that are many and alike, as the body of one Scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.facts.bodies import body_output
from surgeon.facts.fact import Fact
from surgeon.rewrite import Draft, Refused

Step = Callable[[Draft, list[gs.Tensor], gs.Tensor], list[gs.Tensor]]
RowStep = Callable[
    [Draft, list[gs.Tensor], list[gs.Tensor]], tuple[list[gs.Tensor], list[gs.Tensor]]
]


def in_turns(
    draft: Draft, state: Sequence[gs.Tensor], numbers: Sequence[int] | gs.Tensor, step: Step
) -> list[gs.Tensor]:
    """The state after as many turns as there are numbers.

    Args:
        draft: Where the Scan goes.
        state: What it begins with; dtype and rank must be known.
        numbers: One for each turn, also as int64[n, 1]; a runtime may want one at least.
        step: Makes, in the draft of a turn, the next state of the last one and of the turn's number
            (int64, [1]); each must be made there. It may read what stands around the Scan.

    Raises:
        Unavailable: The model's opset has no Scan, or the step needs a newer one.
    """
    rows = numbers
    if not isinstance(rows, gs.Tensor):
        rows = draft.constant(np.asarray(rows, np.int64).reshape(-1, 1), "numbers")
    names = ["number"]
    return row_by_row(draft, state, [rows], lambda d, s, r: (step(d, s, r[0]), []), names)[0]


def row_by_row(
    draft: Draft,
    state: Sequence[gs.Tensor],
    rows: Sequence[gs.Tensor],
    step: RowStep,
    names: Sequence[str] = (),
) -> tuple[list[gs.Tensor], list[gs.Tensor]]:
    """The state after a turn for each row, and what the turns gave, as rows.

    Args:
        draft: Where the Scan goes.
        state: What it begins with; dtype and rank must be known.
        rows: Taken apart along their first axis, which a runtime may want to be 1 at least; the
            rank must be known.
        step: Makes, in the draft of a turn, the next state of the last one and of a row of each,
            and what the turn gives; each must be made there.
        names: What the rows are, for their names.

    Raises:
        Refused: The rank of what a turn gives is not known, and runtimes want it said.
        Unavailable: The model's opset has no Scan, or the step needs a newer one.
    """
    surgery, facts = draft.surgery, draft.facts
    body = gs.Graph(name=surgery.fresh(f"{draft.stem}/turn"))
    inner = Draft(surgery, body, body.name)
    given = [_input(inner, f"state_{i}", facts.of(t)) for i, t in enumerate(state)]
    called = names or [f"row_{i}" for i in range(len(rows))]
    slices = [_input(inner, name, _row(facts.of(t))) for name, t in zip(called, rows, strict=True)]
    after, out = step(inner, given, slices)
    made = [*after, *out]
    body.inputs.extend([*given, *slices])
    body.nodes.extend(inner.nodes)
    body.outputs.extend(made)
    for tensor in made:
        if facts.of(tensor).rank is None:
            raise Refused("the rank of its result is not known")
        tensor.dtype = _kind(facts.of(tensor))
        tensor.shape = _ranked(facts.of(tensor))
        surgery.outputs[id(tensor)] = tensor
    endings = [f"after_{i}" for i in range(len(after))] + [f"rows_{i}" for i in range(len(out))]
    found = draft.op("Scan", *state, *rows, outputs=endings, body=body, num_scan_inputs=len(rows))
    results = [found] if len(made) == 1 else list(found)
    for index, tensor in enumerate(results):
        tensor.__dict__["fact"] = body_output(facts, draft.nodes[-1], index)
    return results[: len(after)], results[len(after) :]


def _row(fact: Fact) -> Fact:
    return Fact(fact.dtype, None if fact.shape is None else fact.shape[1:])


def _input(inner: Draft, ending: str, fact: Fact) -> gs.Variable:
    tensor = gs.Variable(inner.surgery.fresh(f"{inner.stem}/{ending}"), dtype=_kind(fact))
    tensor.__dict__["fact"] = Fact(fact.dtype, fact.shape)
    return tensor


def _ranked(fact: Fact) -> list[int | None] | None:
    """A shape of its rank, which runtimes want to see on what a body gives."""
    return None if fact.shape is None else [d if isinstance(d, int) else None for d in fact.shape]


def _kind(fact: Fact) -> np.dtype[np.generic]:
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(fact.dtype))
