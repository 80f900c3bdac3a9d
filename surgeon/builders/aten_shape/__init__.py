"""Builders of the recipe `aten-shape`: PyTorch's data movement in standard operators."""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.aten_shape import (
    counts,
    creation,
    distances,
    gradients,
    grouped,
    histograms,
    indices,
    joins,
    layout,
    lists,
    masked,
    order,
    packed,
    pads,
    products,
    ragged,
    ranks,
    regions,
    segments,
    series,
    slices,
    views,
    writes,
)
from surgeon.builders.aten_shape.call import Call
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **views.LOWERINGS,
    **joins.LOWERINGS,
    **gradients.LOWERINGS,
    **slices.LOWERINGS,
    **creation.LOWERINGS,
    **indices.LOWERINGS,
    **writes.LOWERINGS,
    **order.LOWERINGS,
    **products.LOWERINGS,
    **pads.LOWERINGS,
    **counts.LOWERINGS,
    **distances.LOWERINGS,
    **grouped.LOWERINGS,
    **histograms.LOWERINGS,
    **layout.LOWERINGS,
    **masked.LOWERINGS,
    **packed.LOWERINGS,
    **ragged.LOWERINGS,
    **ranks.LOWERINGS,
    **regions.LOWERINGS,
    **segments.LOWERINGS,
    **series.LOWERINGS,
}


def aten_shape(draft: Draft, match: Match) -> Any:
    """An ATen operator as its lowering here says."""
    lower = LOWERINGS.get(match.root.op)
    if lower is None:
        raise Refused(f"`aten.{match.root.op}` has no lowering")
    return lower(Call(draft, match.root))


TABLE: Mapping[str, Callable[..., Any]] = {
    "aten_shape": aten_shape,
    "list_element": lists.list_element,
    "constant_chunk": lists.constant_chunk,
    "slope": lists.slope,
    "unpack_list": lists.unpack_list,
    "unpack_slopes": lists.unpack_slopes,
    "unpacked": lists.unpacked,
}
