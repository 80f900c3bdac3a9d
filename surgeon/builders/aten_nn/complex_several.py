"""Operators that give several values of a complex one, complex ones among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.aten_nn import complex_elimination as elimination
from surgeon.builders.aten_nn import complex_matrices as matrices
from surgeon.builders.aten_nn import complex_moments as moments
from surgeon.builders.aten_nn import complex_vectors as vectors
from surgeon.builders.aten_nn.complex_arithmetic import both_of
from surgeon.builders.aten_nn.complexes import complex_of, is_complex
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_GIVEN: Mapping[str, Callable[[Draft, gs.Node, Complex], Sequence[Complex | gs.Tensor]]] = {
    **dict.fromkeys(("var_mean", "std_mean"), moments.moments),
    **dict.fromkeys(("slogdet", "linalg_slogdet"), elimination.sign_and_size),
    "linalg_inv_ex": elimination.inverse_and_info,
    "linalg_cholesky_ex": matrices.factor_and_info,
    **dict.fromkeys(("svd", "linalg_svd", "_linalg_svd"), vectors.singular_vectors),
    **dict.fromkeys(("qr", "linalg_qr"), elimination.orthogonal_factors),
}


def several_of_complex(draft: Draft, match: Match) -> Any:
    """The values of an operator, each complex one made of its parts again for those who read it."""
    node, x = match.root, match.root.inputs[0]
    if not is_complex(draft, x):
        raise Refused("its input is not known to be complex")
    made = _GIVEN[node.op](draft, node, complex_of(draft, x))
    return tuple(_whole(draft, value) for value in made)


def _whole(draft: Draft, value: Complex | gs.Tensor) -> gs.Tensor:
    if not isinstance(value, Complex):
        return value
    found: gs.Tensor = draft.op("complex", *both_of(value), domain="aten")
    return found
