"""Builders of the recipe `aten-linalg`: linear algebra of small matrices, step by step."""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.aten_linalg import factors, packed, powers, singular, solving, vectors
from surgeon.builders.aten_shape.call import Call
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **factors.LOWERINGS,
    **packed.LOWERINGS,
    **powers.LOWERINGS,
    **singular.LOWERINGS,
    **solving.LOWERINGS,
}
# Why there is nothing to put in the place of an operator, and what helps.
HOPELESS: Mapping[str, str] = {
    **dict.fromkeys(
        "linalg_eig linalg_eigvals eig".split(),
        "eigenvalues of any matrix are complex, and their order is the implementation's",
    ),
    "lstsq": "it gives what LAPACK leaves of the right side, where `linalg_lstsq` gives a solution",
    **dict.fromkeys(
        ("linalg_ldl_factor", "linalg_ldl_factor_ex"),
        "its pivots are blocks of one or two rows, in LAPACK's packing; `linalg_solve` needs none",
    ),
}


def aten_linalg(draft: Draft, match: Match, *, outputs: int = 1, with_vectors: bool = False) -> Any:
    """An ATen operator as its lowering here says.

    Args:
        draft: The writer of the replacement.
        match: The node.
        outputs: How many the rule names.
        with_vectors: Whether singular vectors and eigenvectors are among them.
    """
    operator = match.root.op
    if operator in HOPELESS:
        raise Refused(
            f"{HOPELESS[operator]}; compute it outside the model, or train the model to do without"
        )
    lowerings = vectors.LOWERINGS if with_vectors else LOWERINGS
    made = lowerings[operator](Call(draft, match.root))
    if not isinstance(made, tuple):
        return made
    return (*made, *made[:1] * (outputs - len(made)))


TABLE: Mapping[str, Callable[..., Any]] = {"aten_linalg": aten_linalg}
