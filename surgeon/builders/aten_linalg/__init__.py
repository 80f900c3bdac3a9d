"""Builders of the recipe `aten-linalg`: linear algebra of small matrices, step by step."""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.aten_linalg import factors, powers, solving
from surgeon.builders.aten_shape.call import Call
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **factors.LOWERINGS,
    **powers.LOWERINGS,
    **solving.LOWERINGS,
}
# Why there is nothing to put in the place of an operator, and what helps.
HOPELESS: Mapping[str, str] = {
    **dict.fromkeys(
        ("svd", "linalg_svd", "linalg_svdvals", "_linalg_svd", "nuclear_norm", "linalg_cond"),
        "singular values take an iteration that ends when the data say so, and the signs of the "
        "vectors are the implementation's",
    ),
    **dict.fromkeys(
        "linalg_eigh linalg_eigvalsh linalg_eig linalg_eigvals _linalg_eigh symeig eig".split(),
        "eigenvalues take an iteration that ends when the data say so, and the signs of the "
        "vectors are the implementation's",
    ),
    **dict.fromkeys(
        ("linalg_lstsq", "linalg_matrix_rank", "lstsq", "matrix_rank"),
        "the rank decides on the result, and is known at run time only",
    ),
    **dict.fromkeys(
        "linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_ldl_factor linalg_ldl_factor_ex "
        "geqrf".split(),
        "its factors come in LAPACK's own packing; `linalg_solve` and `linalg_qr` need no factors",
    ),
}


def aten_linalg(draft: Draft, match: Match, *, outputs: int = 1) -> Any:
    """An ATen operator as its lowering here says; `outputs` is how many the rule names."""
    operator = match.root.op
    if operator in HOPELESS:
        raise Refused(
            f"{HOPELESS[operator]}; compute it outside the model, or train the model to do without"
        )
    made = LOWERINGS[operator](Call(draft, match.root))
    if not isinstance(made, tuple):
        return made
    return (*made, *made[:1] * (outputs - len(made)))


TABLE: Mapping[str, Callable[..., Any]] = {"aten_linalg": aten_linalg}
