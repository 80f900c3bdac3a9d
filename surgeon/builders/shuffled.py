"""DepthToSpace by blocks of one channel (`CRD`) as one by channels of one place of a block."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench
from surgeon.builders.own_constants import own_weight
from surgeon.builders.picked import of_outputs
from surgeon.facts.fact import Array
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused


def shuffled_behind_conv(draft: Draft, match: Match) -> gs.Tensor:
    """A Conv whose channels come in the other order, and the DepthToSpace behind it."""
    c, root = Bench(draft), match.root
    made = match.values["m"]
    assert made is not None
    conv = made.inputs[0]
    channels = own_weight(draft, conv).shape[0]
    y = of_outputs(draft, conv, 1, _order(channels, _side(root)))
    return c.op("DepthToSpace", y, blocksize=_side(root), mode="DCR")


def shuffled_first(draft: Draft, match: Match) -> gs.Tensor:
    """Channels in the other order, and the DepthToSpace of these."""
    c, root = Bench(draft), match.root
    shape = c.shape(root.inputs[0])
    channels = None if shape is None else shape[1]
    if not isinstance(channels, int):
        raise Refused("how many channels there are is not known")
    places = c.ints_of(_order(channels, _side(root)), "places")
    moved = c.op("Gather", root.inputs[0], places, axis=1)
    return c.op("DepthToSpace", moved, blocksize=_side(root), mode="DCR")


def _side(node: gs.Node) -> int:
    if attribute_of(node, "mode") not in ("CRD", b"CRD"):
        raise Refused("its blocks are as `DCR` has them")
    return int(attribute_of(node, "blocksize"))


def _order(channels: int, side: int) -> Array:
    """Which channel of `CRD` each of `DCR` is."""
    if channels % (side * side):
        raise Refused(f"{channels} channels make no blocks of {side} by {side}")
    return np.arange(channels).reshape(-1, side * side).T.reshape(-1)
