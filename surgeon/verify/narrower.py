"""A result that declares numbers where the original's dims are dynamic: it is compared at these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any

import numpy as np
import onnx

from surgeon.declared import tensor_of
from surgeon.verify.inputs import required_inputs
from surgeon.verify.limits import Dim
from surgeon.verify.verdict import Verdict, describe

_MOST = 6  # options in words


@dataclass(frozen=True, slots=True)
class Narrower:
    """What a result takes of the sizes that the original takes.

    Attributes:
        shapes: By input name, the dims at which both are compared; those given, where it takes all.
        sizes: By dim of the original, the one size that the result takes.
        names: By input name, the dims as the original has them.
    """

    shapes: Mapping[str, Sequence[Dim]] | None
    sizes: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[str, Sequence[Dim]] = field(default_factory=dict)

    @property
    def why(self) -> str:
        """Why other sizes are not compared."""
        return f"the result is fixed at {describe(self.sizes)}"

    def refuses(self, feeds: Mapping[str, Any]) -> bool:
        """Whether these inputs, recorded or given, are of sizes that the result does not take."""
        if not self.sizes:
            return False
        for name, dims in (self.shapes or {}).items():
            shape = np.shape(feeds[name]) if name in feeds else ()
            if len(shape) == len(dims) and any(
                isinstance(dim, int) and dim != size for dim, size in zip(dims, shape, strict=True)
            ):
                return True
        return False

    def judged(self, verdict: Verdict) -> Verdict:
        """The verdict with what it does not cover: a result that takes less replaces nothing."""
        if verdict.status != "equivalent" or not self.sizes:
            return verdict
        told = [
            f"--shape {quote(name)}={','.join(map(str, dims))}"
            for name, dims in (self.shapes or {}).items()
            if not self.sizes.keys().isdisjoint(self.names[name])
        ]
        more = " ..." if len(told) > _MOST else ""
        return replace(
            verdict,
            status="runs",
            detail=f"{self.why}: other sizes are not compared; {verdict.detail}",
            mend=f"Say that these sizes are meant: `{' '.join(told[:_MOST])}{more}`.",
        )


def narrower(
    original: onnx.ModelProto,
    result: onnx.ModelProto,
    shapes: Mapping[str, Sequence[Dim]] | None,
    tied: Mapping[str, str],
) -> Narrower:
    """The dims at which two models can be compared.

    Args:
        original: The first.
        result: The second, of the same inputs.
        shapes: By input name, in place of what the first declares.
        tied: By dim name, another dim that has the same size.
    """
    try:
        wanted = required_inputs(original, shapes, tied)
    except ValueError:  # said where inputs are drawn
        return Narrower(shapes)
    declared = {value.name: tensor_of(value.type) for value in result.graph.input}
    numbers: dict[str, dict[int, int]] = {}
    sizes: dict[str, int] = {}
    for each in wanted:
        tensor, first = declared.get(each.name), int(each.is_list)
        for axis, dim in enumerate(tensor.shape.dim if tensor is not None else ()):
            own = each.dims[axis + first] if axis + first < len(each.dims) else 0
            if isinstance(own, str) and dim.HasField("dim_value") and dim.dim_value > 0:
                numbers.setdefault(each.name, {})[axis] = dim.dim_value
                if sizes.setdefault(own, dim.dim_value) != dim.dim_value:
                    sizes[f"{each.name}.{axis}"] = dim.dim_value  # the same dim, of another size
    if not sizes:
        return Narrower(shapes)
    found: dict[str, Sequence[Dim]] = {}
    for each in wanted:
        own_numbers = numbers.get(each.name, {})
        dims = each.dims[int(each.is_list) :]
        found[each.name] = [
            own_numbers.get(axis, sizes.get(dim, dim) if isinstance(dim, str) else dim)
            for axis, dim in enumerate(dims)
        ]
    return Narrower(found, sizes, {each.name: each.dims for each in wanted})
