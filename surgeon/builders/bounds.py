"""What is raised to one number and lowered to another, as a Clip."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import TYPE, Bench
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FIRST_OF_DOUBLES = 12


def need_clip(c: Bench, dtype: int) -> None:
    """Check that onnxruntime has a Clip of this type.

    Raises:
        Refused: It has none.
    """
    if dtype == TYPE.DOUBLE and c.opset < _FIRST_OF_DOUBLES:
        raise Refused(f"onnxruntime has no Clip of doubles below opset {_FIRST_OF_DOUBLES}")


def clipped(draft: Draft, match: Match) -> gs.Tensor:
    """`x` between `low`, or 0 where the pattern names none, and `high`."""
    c, x = Bench(draft), match.values["x"]
    assert x is not None
    need_clip(c, c.dtype(x))
    kind = parts.numpy_dtype(draft, x)
    bounds = []
    for name, said in (("low", "least"), ("high", "most")):
        bound = match.values.get(name)
        array = np.zeros(1) if bound is None else draft.facts.array(bound)
        if array is None:
            raise Refused("a bound is computed")
        bounds.append(draft.constant(array.reshape(()).astype(kind), said))
    y: gs.Tensor = c.op("Clip", x, *bounds)
    return y
