"""Within what the integers of a piece are drawn: a place beyond its operand ends the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx
import onnx_graphsurgeon as gs

from surgeon.facts import Fact
from surgeon.facts.fact import INTEGERS
from surgeon.verify.limits import Bound, Input, bounds


def places(
    original: onnx.ModelProto, inputs: Iterable[tuple[gs.Tensor, Fact]]
) -> Mapping[str, Bound]:
    """What the nodes of a piece's original allow its drawn integers to hold, by name.

    Args:
        original: The piece.
        inputs: Its inputs, and what is known of each. A dim that is no number is called
            `input.axis`.
    """
    inputs = list(inputs)
    if not any(fact.value is None and fact.dtype in INTEGERS for _, fact in inputs):
        return {}
    held = []
    for tensor, fact in inputs:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(fact.dtype)
        shape = fact.shape or ()
        dims = [d if isinstance(d, int) else f"{tensor.name}.{n}" for n, d in enumerate(shape)]
        held.append(Input(tensor.name, dtype, tuple(dims)))
    return bounds(original, held)


def ranges(
    found: Mapping[str, Bound], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, int]]:
    """From where and below what each is to be drawn, where the inputs have these shapes."""
    if not found:
        return {}
    sizes = {f"{name}.{n}": size for name, dims in shapes.items() for n, size in enumerate(dims)}
    within = {}
    for name, bound in found.items():
        high = bound.high if isinstance(bound.high, int) else sizes.get(bound.high, 2)
        within[name] = bound.low, max(bound.low + 1, high)
    return within
