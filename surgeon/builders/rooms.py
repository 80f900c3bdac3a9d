"""Where builders are: which module, or which package with a table of its own, has each."""

from __future__ import annotations

from collections.abc import Mapping

_HELD: Mapping[str, str] = {
    "abreast": "convs_joined",
    "affine": "affine_chain summands_of_both",
    "antialiased": "antialiased_as_products",
    "attending": "products_as_attention",
    "attention": "attention_as_products",
    "authors": "authors_activation authors_deform_conv",
    "averages": "average_pool_as_conv sum_as_product",
    "basics": (
        "clip_as_bounds depth_to_space_as_views gemm_as_product global_pool_as_reduction "
        "ones_as_reshape quotient_as_product small_power_as_products whole_product_as_sum"
    ),
    "batch_norm": (
        "batch_norm_before_linear batch_norm_into_conv batch_norm_into_matmul "
        "batch_norm_into_rows batch_norm_into_stacked shift_before_linear "
        "statistics_of_channels"
    ),
    "batch_statistics": "norm_by_batch",
    "batches": "parted_batch",
    "borders": "edges_as_pad pad_behind_transpose pad_between",
    "bounded_twice": "constants_of_greatest",
    "bounds": "clipped",
    "broadcasts": "broadcast_anyway",
    "caffe2": "caffe2_int8 caffe2_range",
    "causal": "causal_conv_as_conv",
    "chains": (
        "choice_made expand_chain gather_all gather_chain pad_chain same_branches slice_chain"
    ),
    "cleaning": (
        "cast_chain cast_like concat_chain drop_dropout drop_empty_operand neutral out_of_training "
        "reduce_chain same_as_input transpose_chain transposes_around whole_split"
    ),
    "col2im": "col2im_as_conv_transpose",
    "computed_conv": "computed_1x1_as_matmul computed_conv_any_batch computed_conv_as_matmul",
    "convolution": "aten_convolution output_padding_as_pads",
    "counted": (
        "bits_as_products bound_as_clip mod_as_products mod_of_floats several_two_by_two top_of_few"
    ),
    "cropped": "slice_into_window",
    "directions": "directions_joined with_last_state",
    "dynamic": "stacked_convolution",
    "each_row": "batch_of_places batch_of_rows",
    "einsum": "einsum_as_matmul einsum_in_bounds",
    "element_types": (
        "computed_in_the_wider convolved_in_one_type eye_of_booleans operand_types "
        "scales_of_float32 sizes_of_64_bits unique_of_wider"
    ),
    "elements": (
        "elements_as_gather eye_as_equal lines_as_gather ordered_integers place_of_extreme "
        "reversed_as_gather reversed_as_slice unique_as_runs"
    ),
    "factors": "factor_before factor_behind factor_of_both negative_behind",
    "fills": "filled_as_cast",
    "flattened": "places_in_their_axes",
    "forked": "factor_before_all factor_of_forked",
    "gathered": "product_of_few_axes products_along_one_axis steps_as_gather windows_at_once",
    "grids": "axes_before_expand fill_as_view stack_in_rows",
    "halves": "factor_of_joined sign_behind_join",
    "in_float32": (
        "computed_in_float32 joined_before_cast moved_before_cast parted_before_cast "
        "selected_in_float32 several_in_float32"
    ),
    "in_halves": "computed_in_halves masked_in_halves memory_in_halves table_in_halves",
    "in_int32": "computed_in_int32 inputs_in_int32",
    "indexed": (
        "blocks_as_slices expand_as_product filled_as_expand instance_norm_as_means "
        "one_hot_as_equal place_as_slice tile_as_concat"
    ),
    "integers": "dynamic_product_in_floats dynamic_quantize_in_floats integer_product_in_floats",
    "joined": "joined_places",
    "jointly": (
        "layers_as_concat number_of_transposed numbers_as_split picked_part repeated_lines "
        "transpose_before_split transposes_of_both view_before_split"
    ),
    "leading": "constant_without_leading",
    "leaky": "leaky",
    "lengths": "shape_of_source",
    "levelled": "lines_as_planes resized_lines_as_planes volume_pool_as_planes",
    "linear": ("gemm_of_rows gemm_onto_gemm matmul_as_gemm shift_into_linear transposed_into_gemm"),
    "linear_attention": "linear_attention_in_turns",
    "lists": (
        "list_in_order list_of_one number_as_list one_hot_of_sizes shapes_in_a_row where_of_lists"
    ),
    "logic": "choice_as_bounds logic_as_numbers not_as_less number_of_number",
    "lookups": "joined_lookups",
    "masked_rows": "mask_as_places masked_row row_at_places where_of_rows",
    "masks": "masked_count masked_put masked_put_lines masked_reduce",
    "merged_axes": "merged_axes",
    "modulated": "modulated_any_batch modulated_convolution",
    "named_axes": (
        "center_crop_pad pad_of_all_axes resize_of_all_axes split_by_sizes windows_as_pads"
    ),
    "neighbours": "deviations_along_axes responses_of_neighbours",
    "newer": (
        "cumprod_as_products floored_remainder rms_norm_as_means "
        "softmax_turned swish_as_sigmoid tensor_scatter_as_elements"
    ),
    "norms": (
        "casts_into_rms_norm group_norm_as_instances groups_as_group_norm layer_norm_as_means "
        "mean_subtracted_once means_as_layer_norm rows_as_layer_norm scale_into_norm "
        "shift_into_norm squares_as_rms_norm summed_squares_as_layer_norm"
    ),
    "numbers": "numbers_as_lists",
    "one_axis": "list_as_parts steps_as_views sum_along_one_axis",
    "one_line": "pool_of_plane windows_of_line",
    "ones_around": "product_without_ones",
    "operands": (
        "attributes_as_inputs axes_from_front dynamic_slice expand_but_kept gather_of_places "
        "gather_under_mask joined_but_nothing sizes_said_once slice_bounds split_to_the_rest "
        "squeeze_of_ones upsample_as_resize without_axes"
    ),
    "padded": "pad_into_window",
    "padding": "pad_to_concat",
    "pairs": "qlinear_conv_as_pairs qlinear_matmul_as_pairs",
    "parallel": "conv_and_conv conv_and_norm",
    "picked": "picked_before picked_behind",
    "pieces": "pieces_as_gather",
    "places": (
        "all_written counted_down counted_from_end gather_constant_places known_places "
        "places_as_gather places_of_mask"
    ),
    "placing": "scatter_elements_computed scatter_lines_computed",
    "pooling": "adaptive_pool",
    "ranges": (
        "fractions_as_sums range_as_slice range_as_sums range_of_numbers range_within_table"
    ),
    "rare": (
        "affine_grid_as_products bits_as_sums celu_as_elu compress_as_gather det_as_pivots "
        "grid_sample_as_gathers kernel_with_zeros line_as_row max_pool_gathered"
    ),
    "ratios": "ratio_of_sizes",
    "real_matrices": "aten_linalg",
    "reductions": (
        "mean_times_count pooled_before_view reduced_axes reduced_before_view sum_as_mean "
        "two_axes_at_a_time"
    ),
    "refused": "refused_by_name",
    "regions": "roi_align_as_gathers",
    "regrouped": "regrouped",
    "repeated": "product_without_expand repeated_as_gather transpose_before_expand",
    "repeats": "clip_chain reduced_nothing twice_the_same whole_already",
    "resizing": "interpolation_as_products nearest_as_copies sizes_as_scales",
    "rotary": "rotary_embedding_as_products",
    "rows": "rows_between_views",
    "rows_in_windows": "rows_in_windows",
    "sampling": "resize_as_gathers stretch_as_conv_transpose",
    "scatter": "scatter_box scatter_elements scatter_grid scatter_mesh",
    "scored": "max_unpool_as_scatter negative_log_likelihood softmax_cross_entropy",
    "sequences": (
        "item_of_list item_of_parts joined_list joined_parts length_of_list length_of_parts "
        "other_list part_of_parts parts_as_list"
    ),
    "shape_parts": "part_of_shape sizes_as_numbers",
    "shifts": "shift_rounded_down",
    "shuffled": "shuffled_behind_conv shuffled_first",
    "siblings": (
        "merge_gemms merge_products parts_as_slices parts_of_part slices_as_split split_with_sizes"
    ),
    "quark": (
        "quark_block_floats quark_dequantize quark_few_bits quark_instance_norm quark_quantize "
        "quark_refused"
    ),
    "signs": "levels_with_sign",
    "spectra": "frames_as_conv transform_as_product",
    "spelled": (
        "exponentials_as_sum hardmax_as_places log_softmax_as_difference normal_as_quotient "
        "norms_of_planes norms_of_windows product_of_few scaled_by_ones softmax_as_quotient"
    ),
    "spreads": "axes_without_expand beside_truth tile_as_expand",
    "stacked": "parts_as_layers sum_of_layers two_shares",
    "stepwise": "layer_step_by_step",
    "strided": "strided_into_window",
    "summed": "sums_put_right",
    "sums": "cast_updates cumsum_as_matmul",
    "tapped": "deform_conv_as_samples",
    "targets": "constant_expand copied_entries inferred_entry reshape_of_reshape",
    "transposed": "transposed_any_batch",
    "trials": "dropped_operator early_operator",
    "triangles": "reshape_without_zeros shape_of_some_axes trilu_as_where",
    "trt": "trt_dequantize trt_quantize trt_refused",
    "truths": "choice_of_numbers equal_to_truth settled_truth",
    "turned": "turned_region",
    "turned_axes": "reduced_before_transpose",
    "turned_in_steps": "turned_in_steps",
    "turned_sums": "transpose_behind_einsum transposes_into_einsum",
    "undilated": "conv_of_groups conv_with_zeros transposed_as_conv",
    "unfolded": "windows_put_right",
    "unquantized": (
        "constant_of_levels levels_in_floats moved_levels pair_as_bounds rounded_to_levels"
    ),
    "views": (
        "constant_slice joined_before_transpose sink_view squeeze_where_defined squeezed_and_back "
        "unsqueeze_chain view view_transpose"
    ),
    "windows": (
        "kernel_of_weight output_padding_in_bounds pad_without_batch pool_in_bounds "
        "pool_without_batch same_as_pads stated_attributes stated_pads "
        "uneven_crop_apart uneven_pads_apart"
    ),
    "zeros": "full_lengths plus_zero without_zero_bias zero_state",
}
# Which room of this package has a builder; it is imported when one of its builders is asked for.
ROOMS: Mapping[str, str] = {name: room for room, names in _HELD.items() for name in names.split()}
# Rooms of families, each with a table of its own.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "aten_math": tuple("aten_math fake_quantize_as_pair observer_as_off".split()),
    "aten_quantized": tuple(
        "chosen_scale dequantized_apart quantized_apart quantized_read".split()
    ),
    "aten_random": tuple("aten_random".split()),
    "contrib": tuple(
        "contrib_as_aten contrib_attention contrib_bias_add contrib_bias_softmax "
        "contrib_bias_split_gelu contrib_blocks_as_here contrib_branchwise_rms_norm "
        "contrib_causal_conv contrib_channels_in_blocks contrib_conv_channels_last "
        "contrib_crop_and_resize contrib_dynamic_quantize_lstm contrib_dynamic_quantize_matmul "
        "contrib_embed_layer_norm contrib_engram_gate contrib_fast_gelu "
        "contrib_fused_conv contrib_fused_conv_channels_last contrib_fused_gemm "
        "contrib_fused_matmul contrib_fused_matmul_activation contrib_gated_add "
        "contrib_gated_delta_net contrib_gated_relative_position_bias "
        "contrib_gated_rms_norm contrib_gather_block_quantized contrib_gather_packed "
        "contrib_gelu contrib_gemm_fast_gelu contrib_group_norm "
        "contrib_group_query_attention contrib_group_router "
        "contrib_hyper_connection_behind contrib_hyper_connection_in_front "
        "contrib_internal_nhwc contrib_linear_attention contrib_linear_attention_gate "
        "contrib_matmul_bnb4 contrib_matmul_integer_to_float contrib_matmul_n_bits "
        "contrib_matmul_n_bits_exactly contrib_max_pool_of_bytes contrib_mixture "
        "contrib_multi_head_attention contrib_multi_rotary_embedding contrib_n_bits_mlp "
        "contrib_n_bits_mlp_in_floats contrib_n_bits_qkv contrib_n_bits_qkv_in_floats "
        "contrib_ngram_repeat_block "
        "contrib_old_layer_norm contrib_older_form contrib_qgemm contrib_qlinear "
        "contrib_qlinear_concat contrib_qlinear_where contrib_quantize_linear "
        "contrib_quantized_attention contrib_quantized_conv "
        "contrib_quantized_embed_layer_norm contrib_quantized_mixture "
        "contrib_quantized_mixture_exactly contrib_quick_gelu contrib_refused "
        "contrib_relative_position_bias contrib_rms_norm contrib_rotary_embedding "
        "contrib_router_gate_up contrib_scaled_silu contrib_skip_group_norm "
        "contrib_skip_layer_norm contrib_skip_rms_norm contrib_swiglu contrib_unique".split()
    ),
    "ml": tuple(
        "ml_array_feature_extractor ml_binarizer ml_feature_vectorizer ml_imputer "
        "ml_label_encoder ml_linear_classifier ml_linear_regressor ml_normalizer "
        "ml_one_hot_encoder ml_one_hot_encoder_of_any ml_refused ml_scaler ml_tree_classifier "
        "ml_tree_regressor ml_zip_map".split()
    ),
    "openvino": tuple(
        "openvino_group_norm openvino_normalize openvino_quantized_constant "
        "openvino_quantized_pair openvino_quantized_steps openvino_swish".split()
    ),
    "plugins": tuple(
        "plugin_attention plugin_batched_nms plugin_bev_grid_sampler plugin_bev_inverse "
        "plugin_bev_rotate plugin_caffe2_roi_align plugin_corner_pool plugin_deform_conv "
        "plugin_deformable_attention plugin_efficient_nms plugin_gather_topk "
        "plugin_grid_priors plugin_grid_sampler plugin_group_norm plugin_instance_norm "
        "plugin_mmcv_nms plugin_mmcv_roi_align plugin_modulated_deform_conv "
        "plugin_multi_level_roi_align plugin_nms_rotated plugin_refused plugin_resized "
        "plugin_roi_align_rotated plugin_running plugin_tensorrt_roi_align "
        "plugin_trt_batched_nms".split()
    ),
    "qonnx": tuple(
        "qonnx_bipolar qonnx_constant qonnx_float_pair qonnx_float_steps qonnx_pair "
        "qonnx_steps qonnx_trunc".split()
    ),
    "aten_scripts": tuple(
        "changed_list dictionary_entry dictionary_value known_list made_list number_function "
        "number_pair numbers_of_list numbers_together numbers_with_one_less numbers_with_one_more "
        "numbers_with_one_set part_of_list read_list same_list script_scalar stacked_read "
        "typed_list uninitialized".split()
    ),
    "aten_shape": tuple(
        "aten_shape constant_chunk list_element slope unpack_list unpack_slopes unpacked".split()
    ),
    "aten_nn": tuple(
        "adaptive_avg_pool_computed adaptive_max_pool_computed adaptive_max_pool_indices "
        "affine_grid_backward affine_grid_generator attention_backward attention_forward "
        "attention_with_sums attention_with_weights avg_pool batch_norm batch_norm_backward col2im "
        "convolution_backward eigenvectors_of_complex embedding_bag fft_c2r fft_irfft "
        "fractional_max_pool grid_sampler grid_sampler_backward "
        "group_norm group_norm_backward gru_cell im2col instance_norm interpolate istft "
        "layer_norm layer_norm_backward lstm_cell max_pool max_unpool native_batch_norm "
        "native_group_norm native_layer_norm native_multi_head_attention old_fft "
        "real_of_complex recurrent recursive_filter rms_norm rnn_cell "
        "scaled_dot_product_attention several_of_complex shape_of_complex "
        "shaped_as_complex stft_as_real transformer_encoder_layer turned upsample weight_norm "
        "weight_norm_backward weight_norm_with_lengths".split()
    ),
}
