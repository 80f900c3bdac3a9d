"""PyTorch operators: torch.nn.functional.interpolate, as scripted modules call it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators import pooling, resampling
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
_POOLS = {parse_schema(text).name: run for text, run in pooling.TABLE}


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
    if mode == "area":
        return _by_area(input, size, scale_factor)
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


def _by_area(input: Array, size: Any, scale_factor: Any) -> Array:
    """Means of all that falls into an element, as adaptive pooling has them."""
    run = _POOLS.get(f"adaptive_avg_pool{input.ndim - 2}d")
    if run is None or (size is None) == (scale_factor is None):
        raise Unsuited(f"the mode area of an input of rank {input.ndim}")
    lengths = input.shape[2:]
    if size is not None:
        sizes = _each(size, len(lengths))
    else:
        factors = resampling.unrounded(_each(scale_factor, len(lengths))) or []
        sizes = [math.floor(n * f) for n, f in zip(lengths, factors, strict=True)]
    found: Array = run(input, sizes)
    return found


def before_1_5(
    input: Array,
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: bool | None,
) -> Array:
    """Factors made a size and were forgotten, always."""
    return interpolate(input, size, scale_factor, mode, align_corners, True, False)


def _flattened(run: Callable[..., Array], count: int) -> Callable[..., Array]:
    """With a factor for each axis, one beside the other."""

    def by_each(**given: Any) -> Array:
        factors = [given.pop(f"scale_{axis}") for axis in range(count)]
        return run(scale_factor=factors, **given)

    return by_each


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
_BEFORE_1_5 = "str mode, bool? align_corners) -> Tensor"
_SCALES = {n: ", ".join(f"float scale_{axis}" for axis in range(n)) for n in (2, 3)}
TABLE: tuple[Row, ...] = (
    (
        f"__interpolate(Tensor input, int[]? size, float[]? scale_factor, {_BEFORE_1_5}",
        before_1_5,
    ),
    *(
        (
            f"__interpolate(Tensor input, int[]? size, {_SCALES[n]}, {_BEFORE_1_5}",
            _flattened(before_1_5, n),
        )
        for n in _SCALES
    ),
    (
        f"__interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, {_HOW}",
        interpolate,
    ),
)
