"""Operators that PyTorch documents and no rule replaces: refused by name, with what would help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

# What is wrong with some operators, and those operators.
_GROUPS: tuple[tuple[str, str], ...] = (
    (
        "checks something while the model runs, and ONNX has no assertions; leave it out of the "
        "module",
        "_assert_async _assert_tensor_metadata _functional_assert_async "
        "_functional_assert_scalar _functional_sym_constrain_range "
        "_functional_sym_constrain_range_for_size _linalg_check_errors",
    ),
    (
        "belongs to an optimiser or to training; export the model after `model.eval()`, in "
        "`torch.no_grad()`",
        "_amp_foreach_non_finite_check_and_unscale _amp_update_scale _dirichlet_grad "
        "_foreach_abs _foreach_acos _foreach_add _foreach_addcdiv _foreach_addcmul _foreach_asin "
        "_foreach_atan _foreach_ceil _foreach_clamp_max _foreach_clamp_min _foreach_clone "
        "_foreach_copy _foreach_cos _foreach_cosh _foreach_div _foreach_erf _foreach_erfc "
        "_foreach_exp _foreach_expm1 _foreach_floor _foreach_frac _foreach_lerp _foreach_lgamma "
        "_foreach_log _foreach_log10 _foreach_log1p _foreach_log2 _foreach_max _foreach_maximum "
        "_foreach_minimum _foreach_mm _foreach_mul _foreach_neg _foreach_norm _foreach_pow "
        "_foreach_powsum _foreach_reciprocal _foreach_round _foreach_rsqrt _foreach_sigmoid "
        "_foreach_sign _foreach_sin _foreach_sinh _foreach_sqrt _foreach_sub _foreach_tan "
        "_foreach_tanh _foreach_trunc _foreach_zero _fused_adagrad _fused_adam _fused_adamw "
        "_fused_dropout _fused_sgd _fw_primal _fw_primal_copy _make_dual _make_dual_copy "
        "_masked_scale _new_zeros_with_same_feature_meta _saturate_weight_to_fp16 "
        "_standard_gamma_grad _unpack_dual _version batch_norm_elemt batch_norm_gather_stats "
        "batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats glu_jvp "
        "grad is_leaf output_nr retain_grad retains_grad",
    ),
    (
        "is a gradient for which nothing is written; leave the derivative out of the module, or "
        "spell it out there",
        "_backward _batch_norm_impl_index_backward _convolution_double_backward "
        "_ctc_loss_backward _cudnn_attention_backward _cudnn_rnn_backward "
        "_efficient_attention_backward _embedding_bag_backward _embedding_bag_dense_backward "
        "_embedding_bag_per_sample_weights_backward "
        "_fake_quantize_learnable_per_channel_affine_backward "
        "_fake_quantize_learnable_per_tensor_affine_backward _flash_attention_backward "
        "_grid_sampler_2d_cpu_fallback_backward _masked_softmax_backward _nested_select_backward "
        "_nested_sum_backward _pack_padded_sequence_backward "
        "_scaled_dot_product_cudnn_attention_backward "
        "_scaled_dot_product_efficient_attention_backward "
        "_scaled_dot_product_flash_attention_backward "
        "_scaled_dot_product_fused_attention_overrideable_backward _segment_reduce_backward "
        "_slow_conv2d_backward _thnn_differentiable_gru_cell_backward "
        "_thnn_differentiable_lstm_cell_backward _thnn_fused_gru_cell_backward "
        "_thnn_fused_lstm_cell_backward _thnn_fused_lstm_cell_backward_impl "
        "_weight_norm_differentiable_backward backward "
        "batch_norm_backward batch_norm_backward_elemt batch_norm_backward_reduce "
        "conv_tbc_backward convolution_backward_overrideable "
        "cudnn_batch_norm_backward cudnn_grid_sampler_backward "
        "cumprod_backward dist_backward fake_quantize_per_channel_affine_cachemask_backward "
        "fake_quantize_per_tensor_affine_cachemask_backward glu_backward_jvp "
        "  linear_backward lstm_mps_backward "
        "matmul_backward matrix_exp_backward "
        "max_pool2d_backward miopen_batch_norm_backward miopen_rnn_backward "
        "mkldnn_adaptive_avg_pool2d_backward mkldnn_linear_backward mkldnn_linear_backward_input "
        "mkldnn_linear_backward_weights mkldnn_max_pool2d_backward mkldnn_max_pool3d_backward "
        "mkldnn_rnn_layer_backward mps_convolution_backward mps_convolution_transpose_backward "
        "to_mkldnn_backward",
    ),
    (
        "casts as an autocast asks; export outside `torch.autocast`, in the dtype that the model "
        "is to have",
        "_autocast_to_full_precision _autocast_to_reduced_precision",
    ),
    (
        "belongs to a transform of `torch.func`, which an export is to have resolved; write the "
        "batch into the module",
        "_add_batch_dim _remove_batch_dim",
    ),
    (
        "gives the ranges that it follows beside the result; export the module as it is, without "
        "`torch.func.functionalize`",
        "_fused_moving_avg_obs_fq_helper_functional",
    ),
    (
        "changes a weight while the model runs; do it once before the export, and leave "
        "`max_norm` or the pruning out of the module",
        "_rowwise_prune embedding_renorm",
    ),
    (
        "writes into tensors that are given to it; export the operator without `_helper`",
        "_cummax_helper _cummin_helper",
    ),
    (
        "is of sparse tensors, which ONNX lacks; make them dense (`to_dense`) before the export",
        "_embedding_bag_sparse_backward _gather_sparse_backward "
        "_sparse_log_softmax_backward_data _sparse_mm_reduce_impl_backward "
        "_sparse_softmax_backward_data _sparse_sum_backward embedding_sparse_backward "
        "to_dense_backward "
        "_coalesce _coalesced _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo "
        "_cslt_compress _cslt_sparse_mm _cslt_sparse_mm_search _dimI _dimV _indices "
        "_indices_copy _nnz _sparse_addmm _sparse_broadcast_to _sparse_broadcast_to_copy "
        "_sparse_bsc_tensor_unsafe _sparse_bsr_tensor_unsafe _sparse_compressed_tensor_unsafe "
        "_sparse_coo_tensor_unsafe _sparse_coo_tensor_with_dims_and_tensors "
        "_sparse_csc_tensor_unsafe _sparse_csr_prod _sparse_csr_sum _sparse_csr_tensor_unsafe "
        "_sparse_log_softmax _sparse_mask_projection _sparse_mm _sparse_mm_reduce_impl "
        "_sparse_semi_structured_addmm _sparse_semi_structured_apply "
        "_sparse_semi_structured_apply_dense _sparse_semi_structured_linear "
        "_sparse_semi_structured_mm _sparse_semi_structured_tile _sparse_softmax "
        "_sparse_sparse_matmul _sparse_sum _spdiags _spsolve _to_dense _to_sparse _to_sparse_bsc "
        "_to_sparse_bsr _to_sparse_csc _to_sparse_csr _to_sparse_semi_structured "
        "_validate_compressed_sparse_indices _validate_sparse_bsc_tensor_args "
        "_validate_sparse_bsr_tensor_args _validate_sparse_compressed_tensor_args "
        "_validate_sparse_coo_tensor_args _validate_sparse_csc_tensor_args "
        "_validate_sparse_csr_tensor_args _values _values_copy ccol_indices ccol_indices_copy "
        "coalesce col_indices col_indices_copy copy_sparse_to_sparse crow_indices "
        "crow_indices_copy dense_dim hspmm indices indices_copy is_coalesced resize_as_sparse "
        "row_indices row_indices_copy smm sparse_bsc_tensor sparse_bsr_tensor "
        "sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor "
        "sparse_dim sparse_mask sparse_resize sparse_resize_and_clear sparse_sampled_addmm "
        "sspaddmm to_dense to_sparse to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr "
        "values_copy",
    ),
    (
        "is of nested or jagged tensors, which ONNX lacks; pad them and pass a mask",
        " _ncf_unsqueeze _ncf_view "
        "_nested_compute_contiguous_strides_offsets _nested_from_padded "
        "_nested_from_padded_and_nested_example _nested_from_padded_tensor "
        "_nested_get_jagged_dummy _nested_get_lengths _nested_get_max_seqlen "
        "_nested_get_min_seqlen _nested_get_offsets _nested_get_ragged_idx _nested_get_values "
        "_nested_get_values_copy _nested_tensor_from_mask _nested_tensor_from_mask_left_aligned "
        "_nested_tensor_from_tensor_list _nested_tensor_size _nested_tensor_softmax_with_shape "
        "_nested_tensor_storage_offsets _nested_tensor_strides _nested_view_from_buffer "
        "_nested_view_from_buffer_copy _nested_view_from_jagged _nested_view_from_jagged_copy "
        "_pack_sequence "
        " nested_to_padded_tensor to_padded_tensor",
    ),
    (
        "is of PyTorch's own quantised tensors; export the model in floats and quantise the ONNX "
        "file, or export quantise and dequantise nodes",
        "_choose_qparams_per_tensor _convert_weight_to_int4pack "
        "_convert_weight_to_int4pack_for_cpu _dyn_quant_matmul_4bit _dyn_quant_pack_4bit_weight "
        "_empty_per_channel_affine_quantized _make_per_channel_quantized_tensor "
        "_make_per_tensor_quantized_tensor _mixed_dtypes_linear _scaled_grouped_mm "
        "_scaled_grouped_mm_v2 _scaled_addmm _scaled_mm _scaled_mm_v2 _weight_int4pack_mm "
        "_weight_int4pack_mm_for_cpu _weight_int4pack_mm_with_scales_and_zeros "
        "_wrapped_linear_prepack _wrapped_quantized_linear_prepacked choose_qparams_optimized "
        "empty_quantized fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation "
        "fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation "
        "fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 "
        "fbgemm_pack_quantized_matrix qscheme quantize_per_tensor_dynamic quantized_batch_norm "
        "quantized_gru quantized_gru_cell quantized_lstm quantized_lstm_cell "
        "quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell "
        "quantized_rnn_tanh_cell",
    ),
    (
        "takes weights that PyTorch has packed, which its exporter leaves out of the file; export "
        "the model in floats, and quantise the ONNX file",
        "linear_dynamic linear_dynamic_fp16 linear_relu_dynamic",
    ),
    (
        "is a kernel of one device or library; export the model on the CPU, or with the layer "
        "that it is part of",
        "_copy_from _copy_from_and_resize _cudnn_attention_forward "
        "_cudnn_attention_forward_no_dropout_inplace _cudnn_ctc_loss _cudnn_rnn "
        "_cudnn_rnn_flatten_weight _flash_attention_forward_no_dropout_inplace _fused_sdp_choice "
        "_lstm_mps _philox_key_fold_in _philox_key_split _philox_normal _philox_randint "
        "_philox_uniform _propagate_xla_data _thnn_fused_gru_cell _thnn_fused_lstm_cell _to_cpu "
        "_transform_bias_rescale_qkv _triton_multi_head_attention _triton_scaled_dot_attention "
        "_use_cudnn_ctc_loss _use_miopen_ctc_loss cudnn_is_acceptable miopen_ctc_loss miopen_rnn "
        "mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight mkldnn_rnn_layer to_mkldnn",
    ),
    (
        "is complex where it is read, and ONNX has no complex numbers; read it by "
        "`view_as_real`, `real`, `imag` or `abs`",
        "_fft_c2c _fft_r2c chalf complex fft_fft fft_fft2 fft_fftn fft_ifft fft_ifft2 fft_ifftn "
        "fft_ihfft fft_ihfft2 fft_ihfftn fft_rfft fft_rfft2 fft_rfftn polar view_as_complex",
    ),
    (
        "asks about memory or about the tensor object, or changes it, which a graph has no "
        "notion of; ask while exporting",
        "_debug_has_internal_overlap _has_compatible_shallow_copy_type _has_same_storage_numel "
        "_is_zerotensor _resize_output element_size get_device is_conj is_contiguous "
        "is_distributed is_inference is_neg is_non_overlapping_and_dense is_pinned is_set_to "
        "is_strides_like_format record_stream resize resize_as result_type set set_data "
        "slice_inverse storage_offset stride sym_is_contiguous sym_storage_offset sym_stride",
    ),
    (
        "takes a matrix apart into its singular values and vectors, of which ONNX has none; do it "
        "before the export where the matrix is a weight",
        "linalg_matrix_sqrth linalg_polar",
    ),
    (
        "reads factors in LAPACK's own packing of blocks; `linalg_solve` needs none",
        "linalg_ldl_solve",
    ),
    (
        "is a matter of the bits of a float, which no ONNX operator reads; compute it outside "
        "the model",
        "hash_tensor",
    ),
    (
        "places its points by a sequence, in a way that is not written; choose them outside the "
        "model",
        "_sobol_engine_draw",
    ),
    (
        "is TorchScript's own, on lists and dictionaries; trace the model instead of scripting it",
        "Complex ComplexImplicit _tensor_to_list as_tensor clear count dict get items keys popitem "
        "remove setdefault sorted update values",
    ),
    (
        "is what the exporter left of a write at indices or under a mask, and the indices and the "
        "values are lost; export at opset 11 or later, without `...` or `:` between indices and "
        "not into complex numbers, or write by `torch.where`, `torch.cat` or `scatter`",
        "Placeholder",
    ),
    (
        "is what the exporter left of a branch, and what it computes is lost; let both branches "
        "give a tensor, not None, or trace the model",
        "If",
    ),
    (
        "is a `torch.autograd.Function`, whose name and arguments the exporter left out; give it a "
        "`symbolic`, or export with ONNX_ATEN_FALLBACK, which traces what it does",
        "PythonOp",
    ),
)
REASONS: Mapping[str, str] = {name: why for why, names in _GROUPS for name in names.split()}


def refused_by_name(draft: Draft, match: Match) -> Any:
    """Nothing: says why the operator stays, and what would help."""
    name = match.root.op
    domain = "prim" if name == "PythonOp" else "aten"
    raise Refused(f"`{domain}.{name}` {REASONS[name]}")
