"""Sequences that a model makes itself, in standard operators on tensors."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


def item_of_list(draft: Draft, match: Match) -> gs.Tensor:
    """The item at a constant place, counted from the end where it is negative."""
    items = list(match.nodes[1].inputs)
    place = draft.facts.array(match.root.inputs[1])
    if place is None or place.size != 1:
        raise Refused("its place is computed at run time")
    if not -len(items) <= int(place.item()) < len(items):
        raise Refused(f"place {int(place.item())} of {len(items)} items")
    item: gs.Tensor = items[int(place.item())]
    return item


def length_of_list(draft: Draft, match: Match) -> gs.Tensor:
    """How many items there are."""
    return draft.constant(np.array(len(match.nodes[1].inputs), np.int64), "length")


def joined_list(draft: Draft, match: Match) -> gs.Tensor:
    """The items along one of their axes, or along a new one."""
    items = list(match.nodes[1].inputs)
    axis = int(attribute_of(match.root, "axis"))
    if attribute_of(match.root, "new_axis"):
        axes = draft.constant([axis], "axes")
        items = [draft.op("Unsqueeze", item, axes) for item in items]
    joined: gs.Tensor = draft.op("Concat", *items, axis=axis)
    return joined
