"""What a file says of its values beside the axioms, and what of it is proven to be false.

A claim that is proven false is corrected in the saved file and reported. With a false element type
no runtime loads the file.
"""

from surgeon.claims.shapes import (
    correct_carried,
    correct_claims,
    correct_outputs,
    declare,
    state_cuts,
)
from surgeon.claims.types import correct_types, declare_numbers, declare_tables, declare_types

__all__ = [
    "correct_carried",
    "correct_claims",
    "correct_outputs",
    "correct_types",
    "declare",
    "declare_numbers",
    "declare_tables",
    "declare_types",
    "state_cuts",
]
