"""The witness's operators: PyTorch's schemas, each with the numpy function that means the same.

To add one: write the function in the module of its family, with its parameters named as in the
schema, and add a row to that module's TABLE. Every row whose schema has the operator's name is
tried in order, so an older signature stands above the newer.
"""

from __future__ import annotations

from collections.abc import Mapping

from surgeon.reference.operators import (
    arithmetic,
    attention,
    bags,
    batch_norms,
    choices,
    conversions,
    convolution,
    counting,
    decomposed,
    drawing,
    elements,
    filling,
    filtering,
    forward,
    gathering,
    gradients,
    gradients_in_place,
    gradients_of_grids,
    gradients_of_layers,
    gradients_of_linear,
    gradients_of_losses,
    incomplete,
    indexing,
    integrals,
    interpolating,
    layout,
    linear_algebra,
    margins,
    normalisation,
    numbers_alone,
    packed_factors,
    packing,
    pooling,
    quantizing,
    recurrent,
    scripts,
    segments,
    shapes,
    singular_values,
    singular_vectors,
    sorting,
    special,
    transformer_layers,
    vision,
    whole,
    writes,
)
from surgeon.reference.operators.precision import Row
from surgeon.reference.schema import parse_schema

_TABLES = (
    arithmetic.TABLE,
    attention.TABLE,
    transformer_layers.TABLE,
    bags.TABLE,
    batch_norms.TABLE,
    choices.TABLE,
    conversions.TABLE,
    convolution.TABLE,
    counting.TABLE,
    decomposed.TABLE,
    drawing.TABLE,
    elements.TABLE,
    filling.TABLE,
    filtering.TABLE,
    forward.TABLE,
    gathering.TABLE,
    gradients.TABLE,
    gradients_in_place.TABLE,
    gradients_of_grids.TABLE,
    gradients_of_layers.TABLE,
    gradients_of_linear.TABLE,
    gradients_of_losses.TABLE,
    incomplete.TABLE,
    indexing.TABLE,
    integrals.TABLE,
    interpolating.TABLE,
    layout.TABLE,
    linear_algebra.TABLE,
    margins.TABLE,
    normalisation.TABLE,
    packed_factors.TABLE,
    packing.TABLE,
    pooling.TABLE,
    quantizing.TABLE,
    recurrent.TABLE,
    scripts.TABLE,
    segments.TABLE,
    shapes.TABLE,
    singular_values.TABLE,
    singular_vectors.TABLE,
    sorting.TABLE,
    special.TABLE,
    vision.TABLE,
    whole.TABLE,
    writes.TABLE,
    numbers_alone.TABLE,  # behind those of tensors, for nodes that do not say which they are
)


def _by_name() -> Mapping[str, tuple[Row, ...]]:
    found: dict[str, tuple[Row, ...]] = {}
    for table in _TABLES:
        for row in table:
            name = parse_schema(row[0]).name
            found[name] = (*found.get(name, ()), row)
    return found


OPERATORS = _by_name()
