"""Builder of the recipe `aten-linalg`: linear algebra of real matrices."""

from __future__ import annotations

from typing import Any

from surgeon.builders.aten_linalg import HOPELESS, LOWERINGS, vectors
from surgeon.builders.aten_nn.complexes import is_complex
from surgeon.builders.aten_shape.call import Call
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


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
    if any(is_complex(draft, tensor) for tensor in match.root.inputs[:1]):
        # what reads them as real values, or is known of them, has a rule in `aten-nn`
        raise Refused(f"its matrices are complex, for which `{operator}` has no form here")
    lowerings = vectors.LOWERINGS if with_vectors else LOWERINGS
    made = lowerings[operator](Call(draft, match.root))
    if not isinstance(made, tuple):
        return made
    return (*made, *made[:1] * (outputs - len(made)))
