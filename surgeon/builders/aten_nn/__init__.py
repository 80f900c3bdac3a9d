"""Builders of the recipe `aten-nn`: PyTorch's layers that fell back, as standard operators."""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.aten_nn.adaptive import (
    adaptive_avg_pool_computed,
    adaptive_max_pool_computed,
    adaptive_max_pool_indices,
)
from surgeon.builders.aten_nn.attention import (
    attention_backward,
    attention_forward,
    attention_with_sums,
    attention_with_weights,
    native_multi_head_attention,
    scaled_dot_product_attention,
    transformer_encoder_layer,
)
from surgeon.builders.aten_nn.averaging import avg_pool
from surgeon.builders.aten_nn.bags import embedding_bag
from surgeon.builders.aten_nn.cells import gru_cell, lstm_cell, rnn_cell
from surgeon.builders.aten_nn.complex_readers import (
    eigenvectors_of_complex,
    real_of_complex,
    shape_of_complex,
    shaped_as_complex,
)
from surgeon.builders.aten_nn.complex_several import several_of_complex
from surgeon.builders.aten_nn.filters import recursive_filter
from surgeon.builders.aten_nn.fold import col2im, im2col
from surgeon.builders.aten_nn.fractional import fractional_max_pool
from surgeon.builders.aten_nn.gradients import turned
from surgeon.builders.aten_nn.gradients_of_grids import grid_sampler_backward
from surgeon.builders.aten_nn.gradients_of_layers import (
    batch_norm_backward,
    convolution_backward,
    group_norm_backward,
    layer_norm_backward,
    weight_norm_backward,
)
from surgeon.builders.aten_nn.grids import affine_grid_backward, affine_grid_generator, grid_sampler
from surgeon.builders.aten_nn.norms import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    native_batch_norm,
    native_group_norm,
    native_layer_norm,
    rms_norm,
    weight_norm,
    weight_norm_with_lengths,
)
from surgeon.builders.aten_nn.pools import max_pool
from surgeon.builders.aten_nn.recurrent import recurrent
from surgeon.builders.aten_nn.resample import interpolate, upsample
from surgeon.builders.aten_nn.spectra import fft_c2r, fft_irfft, istft, old_fft, stft_as_real
from surgeon.builders.aten_nn.unpool import max_unpool

TABLE: Mapping[str, Callable[..., Any]] = {
    "turned": turned,
    "adaptive_avg_pool_computed": adaptive_avg_pool_computed,
    "adaptive_max_pool_computed": adaptive_max_pool_computed,
    "adaptive_max_pool_indices": adaptive_max_pool_indices,
    "affine_grid_backward": affine_grid_backward,
    "affine_grid_generator": affine_grid_generator,
    "attention_backward": attention_backward,
    "attention_forward": attention_forward,
    "attention_with_sums": attention_with_sums,
    "avg_pool": avg_pool,
    "batch_norm": batch_norm,
    "batch_norm_backward": batch_norm_backward,
    "convolution_backward": convolution_backward,
    "grid_sampler_backward": grid_sampler_backward,
    "group_norm_backward": group_norm_backward,
    "layer_norm_backward": layer_norm_backward,
    "weight_norm_backward": weight_norm_backward,
    "weight_norm_with_lengths": weight_norm_with_lengths,
    "col2im": col2im,
    "eigenvectors_of_complex": eigenvectors_of_complex,
    "embedding_bag": embedding_bag,
    "fft_c2r": fft_c2r,
    "fft_irfft": fft_irfft,
    "fractional_max_pool": fractional_max_pool,
    "grid_sampler": grid_sampler,
    "group_norm": group_norm,
    "gru_cell": gru_cell,
    "im2col": im2col,
    "instance_norm": instance_norm,
    "istft": istft,
    "layer_norm": layer_norm,
    "lstm_cell": lstm_cell,
    "max_pool": max_pool,
    "max_unpool": max_unpool,
    "native_group_norm": native_group_norm,
    "native_layer_norm": native_layer_norm,
    "native_batch_norm": native_batch_norm,
    "native_multi_head_attention": native_multi_head_attention,
    "old_fft": old_fft,
    "real_of_complex": real_of_complex,
    "recurrent": recurrent,
    "recursive_filter": recursive_filter,
    "rms_norm": rms_norm,
    "several_of_complex": several_of_complex,
    "shape_of_complex": shape_of_complex,
    "shaped_as_complex": shaped_as_complex,
    "rnn_cell": rnn_cell,
    "scaled_dot_product_attention": scaled_dot_product_attention,
    "attention_with_weights": attention_with_weights,
    "stft_as_real": stft_as_real,
    "transformer_encoder_layer": transformer_encoder_layer,
    "interpolate": interpolate,
    "upsample": upsample,
    "weight_norm": weight_norm,
}
