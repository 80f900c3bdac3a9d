"""Groups of a convolution that are the samples of a batch."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.dims import Dim
from surgeon.facts import Facts
from surgeon.facts.fact import same_dims
from surgeon.match import Match
from surgeon.rewrite import Refused


def refuse_unnamed(facts: Facts, match: Match, y: gs.Tensor, samples: Dim) -> None:
    """Refuse where the Reshape behind does not name the samples that `y` has.

    Args:
        facts: Of the graph.
        match: Of `c`, what the convolution gives [1, samples * channels, ...], and its Reshape.
        y: The same as [samples, channels, ...].
        samples: How many there are.

    Raises:
        Refused: Their number, the channels of each or their height and width are not proven.
    """
    made = match.values["c"]
    assert made is not None
    named, inside = facts.of(match.root.inputs[1]).value, facts.of(made).shape
    wanted = facts.of(y).shape
    if named is None or inside is None or wanted is None:
        raise Refused("the shape of its samples is not known")
    if not same_dims(tuple(named.reshape(-1).tolist()), (samples, wanted[1], *inside[2:])):
        raise Refused("what is behind it does not name its samples, each with its channels")
    if not same_dims(wanted[2:], inside[2:]):
        raise Refused("its height and width are not proven")
