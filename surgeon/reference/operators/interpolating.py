"""PyTorch operators: torch.nn.functional.interpolate, as scripted modules call it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators import resampling
from surgeon.reference.operators.precision import Array, Row
from surgeon.reference.schema import parse_schema

_NAMES: Mapping[tuple[str, int], str] = {
    **{("nearest", n): f"upsample_nearest{n}d" for n in (1, 2, 3)},
    **{("nearest-exact", n): f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)},
    ("linear", 1): "upsample_linear1d",
    ("bilinear", 2): "upsample_bilinear2d",
    ("trilinear", 3): "upsample_trilinear3d",
    ("bicubic", 2): "upsample_bicubic2d",
}
_BY_FACTORS = {
    parse_schema(text).name: run for text, run in resampling.TABLE if parse_schema(text).overload
}


def interpolate(
    input: Array,
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: bool | None,
    recompute_scale_factor: bool | None,
    antialias: bool,
) -> Array:
    """A size or factors, one for all axes or one for each; a size made of factors forgets them."""
    spatial = input.ndim - 2
    name = _NAMES.get((mode, spatial))
    if name is None or (size is None) == (scale_factor is None):
        raise Unsuited(f"the mode {mode} of an input of rank {input.ndim}")
    if antialias:
        name = f"_{name}_aa"
    sizes = None if size is None else _each(size, spatial)
    factors = None if scale_factor is None else _each(scale_factor, spatial)
    if factors is not None and recompute_scale_factor:
        typed = resampling.unrounded(factors) or []
        sizes = [math.floor(n * f) for n, f in zip(input.shape[2:], typed, strict=True)]
        factors = None
    given: dict[str, Any] = {"input": input, "output_size": sizes, "scale_factors": factors}
    if "nearest" not in mode:
        given["align_corners"] = bool(align_corners)
    found: Array = _BY_FACTORS[name](**given)
    return found


def _each(given: Any, count: int) -> list[Any]:
    listed = list(given) if isinstance(given, list) else [given]
    listed = listed * count if len(listed) == 1 else listed
    if len(listed) != count:
        raise Unsuited(f"{len(listed)} numbers for {count} axes")
    return listed


_HOW = (
    "str mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, "
    "bool antialias=False) -> Tensor"
)
TABLE: tuple[Row, ...] = (
    (
        f"__interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, {_HOW}",
        interpolate,
    ),
)
