"""Replacements whose structure is computed: `replace: {build: NAME}` in a recipe.

A builder gets the draft to add nodes to, the match, and the arguments the recipe wrote; it gives
the tensors that take the places of the root's outputs, or raises `Refused` with the reason.
"""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders import aten_math, aten_nn, aten_shape
from surgeon.builders.affine import affine_chain, scale_into_gemm
from surgeon.builders.batch_norm import (
    batch_norm_into_conv,
    batch_norm_into_matmul,
    batch_norm_into_stacked,
)
from surgeon.builders.convolution import aten_convolution
from surgeon.builders.dynamic import computed_1x1_as_matmul, stacked_convolution
from surgeon.builders.padding import pad_to_concat
from surgeon.builders.pooling import adaptive_pool
from surgeon.builders.siblings import merge_gemms, slices_as_split
from surgeon.builders.sums import cast_updates, cumsum_as_matmul
from surgeon.builders.views import (
    constant_slice,
    sink_view,
    squeeze_where_defined,
    view,
    view_transpose,
)

BUILDERS: Mapping[str, Callable[..., Any]] = {
    "adaptive_pool": adaptive_pool,
    "affine_chain": affine_chain,
    "aten_convolution": aten_convolution,
    "batch_norm_into_conv": batch_norm_into_conv,
    "batch_norm_into_matmul": batch_norm_into_matmul,
    "batch_norm_into_stacked": batch_norm_into_stacked,
    "constant_slice": constant_slice,
    "cast_updates": cast_updates,
    "cumsum_as_matmul": cumsum_as_matmul,
    "pad_to_concat": pad_to_concat,
    "computed_1x1_as_matmul": computed_1x1_as_matmul,
    "merge_gemms": merge_gemms,
    "scale_into_gemm": scale_into_gemm,
    "sink_view": sink_view,
    "slices_as_split": slices_as_split,
    "squeeze_where_defined": squeeze_where_defined,
    "stacked_convolution": stacked_convolution,
    "view": view,
    "view_transpose": view_transpose,
    **aten_math.TABLE,
    **aten_nn.TABLE,
    **aten_shape.TABLE,
}
