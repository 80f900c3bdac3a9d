"""Builders of the recipe `contrib`: onnxruntime's own operators as those of ONNX.

What they compute is told by onnxruntime's `ContribOperators.md`, and onnxruntime itself is their
witness: it runs the file as it came.
"""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.contrib.as_aten import as_aten
from surgeon.builders.contrib.attention import attention, multi_head_attention, rotary_embedding
from surgeon.builders.contrib.blocked import blocks_as_here, channels_in_blocks
from surgeon.builders.contrib.crops import crop_and_resize
from surgeon.builders.contrib.delta import gated_delta_net
from surgeon.builders.contrib.diffusion import (
    bias_add,
    bias_softmax,
    bias_split_gelu,
    conv_channels_last,
    fused_conv_channels_last,
    gemm_fast_gelu,
    group_norm,
    skip_group_norm,
)
from surgeon.builders.contrib.experts import mixture
from surgeon.builders.contrib.few_bits import (
    gather_block_quantized,
    matmul_bnb4,
    matmul_n_bits,
    matmul_n_bits_exactly,
)
from surgeon.builders.contrib.fused import (
    fast_gelu,
    fused_conv,
    fused_gemm,
    fused_matmul,
    fused_matmul_activation,
    gelu,
    quick_gelu,
)
from surgeon.builders.contrib.gated import (
    branchwise_rms_norm,
    engram_gate,
    gated_add,
    gated_rms_norm,
    linear_attention_gate,
    scaled_silu,
)
from surgeon.builders.contrib.grouped import group_query_attention
from surgeon.builders.contrib.internal_nhwc import internal_nhwc
from surgeon.builders.contrib.ngrams import ngram_repeat_block
from surgeon.builders.contrib.normed import (
    embed_layer_norm,
    old_layer_norm,
    rms_norm_of_runtime,
    skip_layer_norm,
    skip_rms_norm,
)
from surgeon.builders.contrib.older_forms import older_form, unique
from surgeon.builders.contrib.packed_rows import gather_packed
from surgeon.builders.contrib.places import multi_rotary_embedding
from surgeon.builders.contrib.position_bias import (
    gated_relative_position_bias,
    relative_position_bias,
)
from surgeon.builders.contrib.projections import (
    n_bits_mlp,
    n_bits_mlp_in_floats,
    n_bits_qkv,
    n_bits_qkv_in_floats,
    router_gate_up,
    swiglu,
)
from surgeon.builders.contrib.quantized import (
    dynamic_quantize_lstm,
    dynamic_quantize_matmul,
    matmul_integer_to_float,
    qgemm,
    qlinear,
    qlinear_concat,
    qlinear_where,
    quantize_linear,
)
from surgeon.builders.contrib.quantized_experts import (
    quantized_mixture,
    quantized_mixture_exactly,
)
from surgeon.builders.contrib.quantized_layers import (
    max_pool_of_bytes,
    quantized_attention,
    quantized_conv,
    quantized_embed_layer_norm,
)
from surgeon.builders.contrib.recurrence import causal_conv, linear_attention
from surgeon.builders.contrib.refused import refused
from surgeon.builders.contrib.routers import group_router
from surgeon.builders.contrib.streams import hyper_connection_behind, hyper_connection_in_front

TABLE: Mapping[str, Callable[..., Any]] = {
    "contrib_as_aten": as_aten,
    "contrib_attention": attention,
    "contrib_bias_add": bias_add,
    "contrib_bias_softmax": bias_softmax,
    "contrib_bias_split_gelu": bias_split_gelu,
    "contrib_blocks_as_here": blocks_as_here,
    "contrib_branchwise_rms_norm": branchwise_rms_norm,
    "contrib_causal_conv": causal_conv,
    "contrib_channels_in_blocks": channels_in_blocks,
    "contrib_conv_channels_last": conv_channels_last,
    "contrib_crop_and_resize": crop_and_resize,
    "contrib_dynamic_quantize_lstm": dynamic_quantize_lstm,
    "contrib_dynamic_quantize_matmul": dynamic_quantize_matmul,
    "contrib_embed_layer_norm": embed_layer_norm,
    "contrib_engram_gate": engram_gate,
    "contrib_fast_gelu": fast_gelu,
    "contrib_fused_conv": fused_conv,
    "contrib_fused_conv_channels_last": fused_conv_channels_last,
    "contrib_fused_gemm": fused_gemm,
    "contrib_fused_matmul": fused_matmul,
    "contrib_fused_matmul_activation": fused_matmul_activation,
    "contrib_gated_add": gated_add,
    "contrib_gated_delta_net": gated_delta_net,
    "contrib_gated_relative_position_bias": gated_relative_position_bias,
    "contrib_gated_rms_norm": gated_rms_norm,
    "contrib_gather_block_quantized": gather_block_quantized,
    "contrib_gather_packed": gather_packed,
    "contrib_gelu": gelu,
    "contrib_gemm_fast_gelu": gemm_fast_gelu,
    "contrib_group_norm": group_norm,
    "contrib_group_query_attention": group_query_attention,
    "contrib_group_router": group_router,
    "contrib_hyper_connection_behind": hyper_connection_behind,
    "contrib_hyper_connection_in_front": hyper_connection_in_front,
    "contrib_internal_nhwc": internal_nhwc,
    "contrib_linear_attention": linear_attention,
    "contrib_linear_attention_gate": linear_attention_gate,
    "contrib_matmul_bnb4": matmul_bnb4,
    "contrib_matmul_integer_to_float": matmul_integer_to_float,
    "contrib_matmul_n_bits": matmul_n_bits,
    "contrib_matmul_n_bits_exactly": matmul_n_bits_exactly,
    "contrib_max_pool_of_bytes": max_pool_of_bytes,
    "contrib_mixture": mixture,
    "contrib_multi_head_attention": multi_head_attention,
    "contrib_multi_rotary_embedding": multi_rotary_embedding,
    "contrib_n_bits_mlp": n_bits_mlp,
    "contrib_n_bits_mlp_in_floats": n_bits_mlp_in_floats,
    "contrib_n_bits_qkv": n_bits_qkv,
    "contrib_n_bits_qkv_in_floats": n_bits_qkv_in_floats,
    "contrib_ngram_repeat_block": ngram_repeat_block,
    "contrib_old_layer_norm": old_layer_norm,
    "contrib_older_form": older_form,
    "contrib_qgemm": qgemm,
    "contrib_qlinear": qlinear,
    "contrib_qlinear_concat": qlinear_concat,
    "contrib_qlinear_where": qlinear_where,
    "contrib_quantize_linear": quantize_linear,
    "contrib_quantized_attention": quantized_attention,
    "contrib_quantized_conv": quantized_conv,
    "contrib_quantized_embed_layer_norm": quantized_embed_layer_norm,
    "contrib_quantized_mixture": quantized_mixture,
    "contrib_quantized_mixture_exactly": quantized_mixture_exactly,
    "contrib_quick_gelu": quick_gelu,
    "contrib_refused": refused,
    "contrib_relative_position_bias": relative_position_bias,
    "contrib_rms_norm": rms_norm_of_runtime,
    "contrib_rotary_embedding": rotary_embedding,
    "contrib_router_gate_up": router_gate_up,
    "contrib_scaled_silu": scaled_silu,
    "contrib_skip_group_norm": skip_group_norm,
    "contrib_skip_layer_norm": skip_layer_norm,
    "contrib_skip_rms_norm": skip_rms_norm,
    "contrib_swiglu": swiglu,
    "contrib_unique": unique,
}
