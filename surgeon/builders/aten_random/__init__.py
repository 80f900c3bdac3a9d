"""Builders of the recipe `aten-random`: PyTorch's draws as ONNX's, of the same distributions."""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.aten_random import dropping, sampling
from surgeon.builders.aten_shape.call import Call
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

LOWERINGS: Mapping[str, Callable[[Call], Any]] = {**dropping.LOWERINGS, **sampling.LOWERINGS}
# Why there is nothing to put in the place of an operator.
HOPELESS: Mapping[str, str] = {
    name: f"it draws from {what}, which takes a number of tries that only the draws decide"
    for name, what in (
        ("poisson", "a Poisson distribution"),
        ("binomial", "a binomial distribution"),
        ("_standard_gamma", "a gamma distribution"),
        ("_sample_dirichlet", "a Dirichlet distribution"),
    )
}


def aten_random(draft: Draft, match: Match) -> Any:
    """Any operator of `LOWERINGS`; a tuple where it has several outputs."""
    operator = match.root.op
    if operator in HOPELESS:
        raise Refused(f"{HOPELESS[operator]}; draw outside the model, and feed the numbers")
    made = LOWERINGS[operator](Call(draft, match.root))
    return made if isinstance(made, tuple) else (made, made)


TABLE: Mapping[str, Callable[..., Any]] = {"aten_random": aten_random}
