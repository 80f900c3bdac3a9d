"""A result whose ends are floats of another width than the original's: compared all the same.

What goes in is rounded to the type that the result takes, and what comes out is brought to the
original's, outside of the models: in them onnxruntime leaves out two Casts that follow one another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx

from surgeon.declared import tensor_of
from surgeon.errors import few
from surgeon.runtime import Runner
from surgeon.verify.compare import TOLERANCES
from surgeon.verify.originals import Side
from surgeon.verify.verdict import Verdict

_FLOATS: Mapping[int, str] = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.DOUBLE: "float64",
    onnx.TensorProto.FLOAT16: "float16",
}


@dataclass(frozen=True, slots=True)
class Retyped:
    """Where a result's ends have other floats.

    Attributes:
        inputs: Its inputs, and the dtypes that it takes.
        outputs: Its outputs, and the dtypes that the original gives.
        tolerance: What floats of all these widths are allowed.
    """

    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    tolerance: float = 0.0

    @property
    def names(self) -> list[str]:
        """The ends that differ."""
        return list(dict.fromkeys((*self.inputs, *self.outputs)))

    def around(self, side: Side) -> Side:
        """The result, taking and giving what the original does."""
        return replace(side, runner=_Recast(side.runner, self)) if self.names else side

    def taken(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """What the original is given, as the result takes it."""
        return {name: _as(value, self.inputs.get(name)) for name, value in feeds.items()}

    def judged(self, verdict: Verdict) -> Verdict:
        """The verdict, which is not that one may stand in the place of the other."""
        if verdict.status != "equivalent" or not self.names:
            return verdict
        said = f"floats of another width at {few(self.names)}"
        return replace(verdict, status="runs", detail=f"{said}; {verdict.detail}")


@dataclass(frozen=True, slots=True)
class _Recast:
    """Runs a model with inputs and outputs of other dtypes than its own."""

    runner: Runner
    ends: Retyped

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        found = self.runner.run(self.ends.taken(feeds), outputs)
        return {name: _as(value, self.ends.outputs.get(name)) for name, value in found.items()}


def _as(value: Any, dtype: str | None) -> Any:
    if dtype is None or not isinstance(value, np.ndarray):
        return value
    with np.errstate(over="ignore"):  # beyond the range of halves it is infinite there too
        return value.astype(dtype)


def of_one_width(wanted: Any, found: Any) -> tuple[Any, float]:
    """What a result has for a value of the original, in the original's floats where both are some.

    Gives what such floats are allowed too, or nothing where they are of one width.
    """
    kinds = [getattr(value, "dtype", np.dtype(object)).name for value in (wanted, found)]
    if kinds[0] == kinds[1] or not {*kinds} <= {*_FLOATS.values()}:
        return found, 0.0
    return _as(found, kinds[0]), max(TOLERANCES[kind][0] for kind in kinds)


def retyped_ends(before: onnx.ModelProto, after: onnx.ModelProto) -> Retyped:
    """The ends at which a result has floats of another width than the original."""
    inputs = _pairs(before.graph.input, after.graph.input)
    outputs = _pairs(before.graph.output, after.graph.output)
    widths = {kind for pair in (*inputs.values(), *outputs.values()) for kind in pair}
    return Retyped(
        {name: own for name, (_, own) in inputs.items()},
        {name: wanted for name, (wanted, _) in outputs.items()},
        max((TOLERANCES[kind][0] for kind in widths), default=0.0),
    )


def _pairs(
    before: Collection[onnx.ValueInfoProto], after: Collection[onnx.ValueInfoProto]
) -> dict[str, tuple[str, str]]:
    """By name, the dtypes on both sides, where they are floats of two widths."""
    kinds = [
        {
            value.name: _FLOATS.get(tensor.elem_type)
            for value in values
            if (tensor := tensor_of(value.type))
        }
        for values in (before, after)
    ]
    return {
        name: (one, other)
        for name, one in kinds[0].items()
        if one and (other := kinds[1].get(name)) and one != other
    }
