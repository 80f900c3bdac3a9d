"""What the recipe `aten-linalg` puts in the place of operators: small matrices, step by step."""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.aten_linalg import factors, packed, powers, singular, solving
from surgeon.builders.aten_shape.call import Call

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
