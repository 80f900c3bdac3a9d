"""Replacements whose structure is computed: `replace: {build: NAME}` in a recipe.

A builder gets the draft to add nodes to, the match, and the arguments the recipe wrote; it gives
the tensors that take the places of the root's outputs, or raises `Refused` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

# Which room of this package has a builder; it is imported when one of its builders is asked for.
_ROOMS: Mapping[str, str] = {
    "adaptive_pool": "pooling",
    "affine_chain": "affine",
    "all_written": "places",
    "aten_convolution": "convolution",
    "batch_norm_before_linear": "batch_norm",
    "batch_norm_into_conv": "batch_norm",
    "batch_norm_into_matmul": "batch_norm",
    "batch_norm_into_rows": "batch_norm",
    "batch_norm_into_stacked": "batch_norm",
    "beside_truth": "spreads",
    "broadcast_anyway": "broadcasts",
    "cast_chain": "cleaning",
    "cast_like": "cleaning",
    "cast_updates": "sums",
    "casts_into_rms_norm": "norms",
    "clip_chain": "repeats",
    "col2im_as_conv_transpose": "col2im",
    "computed_1x1_as_matmul": "computed_conv",
    "computed_conv_any_batch": "computed_conv",
    "computed_conv_as_matmul": "computed_conv",
    "concat_chain": "cleaning",
    "constant_expand": "targets",
    "constant_slice": "views",
    "conv_and_conv": "parallel",
    "conv_and_norm": "parallel",
    "counted_down": "places",
    "cumsum_as_matmul": "sums",
    "drop_dropout": "cleaning",
    "drop_empty_operand": "cleaning",
    "einsum_as_matmul": "einsum",
    "factor_before": "factors",
    "factor_behind": "factors",
    "factor_of_both": "factors",
    "factor_of_joined": "halves",
    "fractions_as_sums": "ranges",
    "gather_constant_places": "places",
    "gemm_of_rows": "linear",
    "group_norm_as_instances": "norms",
    "groups_as_group_norm": "norms",
    "inferred_entry": "targets",
    "interpolation_as_products": "resizing",
    "item_of_list": "sequences",
    "joined_but_nothing": "operands",
    "joined_list": "sequences",
    "joined_places": "joined",
    "kernel_of_weight": "windows",
    "known_places": "places",
    "layer_norm_as_means": "norms",
    "length_of_list": "sequences",
    "list_of_one": "targets",
    "mask_as_places": "masked_rows",
    "masked_count": "masks",
    "masked_put": "masks",
    "masked_put_lines": "masks",
    "masked_reduce": "masks",
    "masked_row": "masked_rows",
    "where_of_rows": "masked_rows",
    "transposed_any_batch": "transposed",
    "matmul_as_gemm": "linear",
    "means_as_layer_norm": "norms",
    "merge_gemms": "siblings",
    "merge_products": "siblings",
    "modulated_any_batch": "modulated",
    "modulated_convolution": "modulated",
    "nearest_as_copies": "resizing",
    "negative_behind": "factors",
    "neutral": "cleaning",
    "number_of_transposed": "jointly",
    "numbers_as_lists": "numbers",
    "numbers_as_split": "jointly",
    "attributes_as_inputs": "operands",
    "axes_from_front": "operands",
    "expand_but_kept": "operands",
    "eye_of_booleans": "operands",
    "gather_under_mask": "operands",
    "operand_types": "operands",
    "split_to_the_rest": "operands",
    "output_padding_as_pads": "convolution",
    "pool_in_bounds": "windows",
    "picked_part": "jointly",
    "pad_into_window": "linear",
    "pad_to_concat": "padding",
    "parted_batch": "batches",
    "parts_as_list": "sequences",
    "part_of_shape": "ranges",
    "pieces_as_gather": "pieces",
    "places_as_gather": "places",
    "places_of_mask": "places",
    "plus_zero": "zeros",
    "range_as_slice": "ranges",
    "range_as_sums": "ranges",
    "range_of_numbers": "ranges",
    "range_within_table": "ranges",
    "ratio_of_sizes": "ratios",
    "reshape_of_reshape": "targets",
    "resize_as_gathers": "sampling",
    "product_without_expand": "repeated",
    "repeated_as_gather": "repeated",
    "shape_of_source": "lengths",
    "slice_into_window": "cropped",
    "sign_behind_join": "halves",
    "shift_before_linear": "batch_norm",
    "transpose_before_expand": "repeated",
    "rows_between_views": "rows",
    "same_as_input": "cleaning",
    "reduce_chain": "cleaning",
    "twice_the_same": "repeats",
    "unsqueeze_chain": "cleaning",
    "reduced_axes": "reductions",
    "reduced_nothing": "repeats",
    "reduced_before_view": "reductions",
    "pooled_before_view": "reductions",
    "refused_by_name": "refused",
    "scale_into_norm": "norms",
    "scatter_box": "scatter",
    "scatter_elements": "scatter",
    "scatter_elements_computed": "placing",
    "scatter_grid": "scatter",
    "scatter_lines_computed": "placing",
    "scatter_mesh": "scatter",
    "shift_into_linear": "linear",
    "shift_into_norm": "norms",
    "sink_view": "views",
    "sizes_as_scales": "resizing",
    "slice_bounds": "operands",
    "slice_chain": "chains",
    "same_branches": "chains",
    "gather_all": "chains",
    "gather_chain": "chains",
    "pad_chain": "chains",
    "expand_chain": "chains",
    "slices_as_split": "siblings",
    "squares_as_rms_norm": "norms",
    "squeeze_where_defined": "views",
    "stacked_convolution": "dynamic",
    "stretch_as_conv_transpose": "sampling",
    "transpose_before_split": "jointly",
    "transpose_chain": "cleaning",
    "transposes_around": "cleaning",
    "transposes_of_both": "jointly",
    "view": "views",
    "view_before_split": "jointly",
    "view_transpose": "views",
    "where_of_lists": "targets",
    "whole_split": "cleaning",
    "zero_state": "zeros",
}
# Rooms of the ATen families, each with a table of its own.
_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "aten_linalg": ("aten_linalg",),
    "aten_math": ("aten_math",),
    "aten_random": ("aten_random",),
    "aten_scripts": (
        "changed_list",
        "dictionary_entry",
        "dictionary_value",
        "made_list",
        "read_list",
        "same_list",
        "script_scalar",
        "stacked_read",
        "typed_list",
        "uninitialized",
    ),
    "aten_shape": (
        "aten_shape",
        "constant_chunk",
        "list_element",
        "slope",
        "unpack_list",
        "unpack_slopes",
        "unpacked",
    ),
    "aten_nn": (
        "adaptive_avg_pool_computed",
        "adaptive_max_pool_computed",
        "adaptive_max_pool_indices",
        "affine_grid_generator",
        "attention_forward",
        "avg_pool",
        "batch_norm",
        "col2im",
        "embedding_bag",
        "fft_c2r",
        "fft_irfft",
        "fractional_max_pool",
        "grid_sampler",
        "group_norm",
        "gru_cell",
        "im2col",
        "instance_norm",
        "interpolate",
        "istft",
        "layer_norm",
        "lstm_cell",
        "max_pool",
        "max_unpool",
        "native_batch_norm",
        "native_group_norm",
        "native_layer_norm",
        "native_multi_head_attention",
        "old_fft",
        "real_of_complex",
        "recursive_filter",
        "recurrent",
        "rms_norm",
        "shape_of_complex",
        "rnn_cell",
        "scaled_dot_product_attention",
        "attention_backward",
        "attention_with_sums",
        "attention_with_weights",
        "stft_as_real",
        "transformer_encoder_layer",
        "turned",
        "upsample",
        "weight_norm",
    ),
}


class _Builders(Mapping[str, Callable[..., Any]]):
    """Builders by name."""

    def __init__(self) -> None:
        families = {name: family for family, names in _FAMILIES.items() for name in names}
        self._rooms = {**_ROOMS, **families}
        self._found: dict[str, Callable[..., Any]] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self._found:
            self._found[name] = self._import(name)
        return self._found[name]

    def _import(self, name: str) -> Callable[..., Any]:
        room = self._rooms[name]
        module = import_module(f"surgeon.builders.{room}")
        found: Callable[..., Any] = (
            module.TABLE[name] if room in _FAMILIES else getattr(module, name)
        )
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._rooms)

    def __len__(self) -> int:
        return len(self._rooms)


BUILDERS: Mapping[str, Callable[..., Any]] = _Builders()
