"""PyTorch operators: gradients of layers with weights, one for each that `output_mask` asks for."""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide

Outputs = tuple[Array | None, ...]


def _asked(mask: list[bool], *made: Array) -> Outputs:
    return tuple(each if asked else None for each, asked in zip(made, mask, strict=False))


def _through(rows: Any, behind: Any, inverse: Any, *, centred: bool) -> Any:
    """Row by row through the matrix of what each normalised value has of each one of the input."""
    found, count = np.zeros(rows.shape), rows.shape[-1]
    for at in np.ndindex(*rows.shape[:-1]):
        steep = np.eye(count) - np.outer(rows[at], rows[at]) / count
        steep = steep - 1 / count if centred else steep
        found[at] = steep @ behind[at] * inverse[at]
    return found


def _like_parameter(values: Any, input: Array, weight: Array | None) -> Array:
    return narrow(values, input if weight is None else weight)


def native_layer_norm_backward(
    grad_out: Array,
    input: Array,
    normalized_shape: list[int],
    rstd: Array,
    weight: Array | None,
    output_mask: list[bool],
    mean: Array | None = None,
    bias: Array | None = None,
) -> Outputs:
    count = int(np.prod(normalized_shape, dtype=int))
    gradient, x = (wide(t).reshape(-1, count) for t in (grad_out, input))
    inverse = wide(rstd).reshape(-1)
    apart = x if mean is None else x - wide(mean).reshape(-1, 1)
    rows = apart * inverse[:, None]
    behind = gradient if weight is None else gradient * wide(weight).reshape(-1)
    first = _through(rows, behind, inverse, centred=mean is not None)
    of_weight, of_bias = (
        _like_parameter(t.sum(axis=0).reshape(normalized_shape), input, weight)
        for t in (gradient * rows, gradient)
    )
    return _asked(output_mask, narrow(first.reshape(input.shape), input), of_weight, of_bias)


def fused_rms_norm_backward(**given: Any) -> Outputs:
    return native_layer_norm_backward(**given)[:2]


def native_group_norm_backward(
    grad_out: Array,
    input: Array,
    mean: Array,
    rstd: Array,
    weight: Array | None,
    N: int,  # noqa: N803
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    output_mask: list[bool],
) -> Outputs:
    gradient, x = (wide(t).reshape(N, C, HxW) for t in (grad_out, input))
    each, found, rows = C // group, np.zeros((N, C, HxW)), np.zeros((N, C, HxW))
    for n, k in np.ndindex(N, group):
        part = slice(k * each, (k + 1) * each)
        scale = np.ones(each) if weight is None else wide(weight)[part]
        behind = (gradient[n, part] * scale[:, None]).reshape(1, -1)
        values = (x[n, part] - float(mean[n, k])) * float(rstd[n, k])
        rows[n, part] = values
        made = _through(values.reshape(1, -1), behind, wide(rstd)[n, k : k + 1], centred=True)
        found[n, part] = made.reshape(each, HxW)
    of_weight, of_bias = (
        _like_parameter(t.sum(axis=(0, 2)), input, weight) for t in (gradient * rows, gradient)
    )
    return _asked(output_mask, narrow(found.reshape(input.shape), input), of_weight, of_bias)


def native_batch_norm_backward(
    grad_out: Array,
    input: Array,
    weight: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    save_mean: Array | None,
    save_invstd: Array | None,
    train: bool,
    eps: float,
    output_mask: list[bool],
) -> Outputs:
    channels = input.shape[1]
    gradient, x = (np.moveaxis(wide(t), 1, 0).reshape(channels, -1) for t in (grad_out, input))
    mean, spread = (save_mean, save_invstd) if train else (running_mean, running_var)
    if mean is None or spread is None:
        raise Unsuited("it is given no statistics")
    middle, inverse = wide(mean), wide(spread)
    inverse = inverse if train else 1 / np.sqrt(inverse + eps)
    rows = (x - middle[:, None]) * inverse[:, None]
    behind = gradient if weight is None else gradient * wide(weight)[:, None]
    through = _through(rows, behind, inverse, centred=True)
    found = through if train else behind * inverse[:, None]
    turned = (channels, input.shape[0], *input.shape[2:])
    first = narrow(np.moveaxis(found.reshape(turned), 0, 1), input)
    of_weight, of_bias = (
        _like_parameter(t.sum(axis=1), input, weight) for t in (gradient * rows, gradient)
    )
    return _asked(output_mask, first, of_weight, of_bias)


def weight_norm_interface_backward(
    grad_w: Array, saved_v: Array, saved_g: Array, saved_norms: Array, dim: int
) -> tuple[Array, Array]:
    lines, behind = (
        np.moveaxis(wide(t), dim, 0).reshape(saved_v.shape[dim], -1) for t in (saved_v, grad_w)
    )
    lengths, scale = wide(saved_norms).reshape(-1), wide(saved_g).reshape(-1)
    found = np.zeros(lines.shape)
    of_scale = np.zeros(len(lines))
    for i, (line, back) in enumerate(zip(lines, behind, strict=True)):
        unit = line / lengths[i]
        of_scale[i] = unit @ back
        found[i] = (np.eye(line.size) - np.outer(unit, unit)) @ back * (scale[i] / lengths[i])
    rest = [n for i, n in enumerate(saved_v.shape) if i != dim % saved_v.ndim]
    first = np.moveaxis(found.reshape(saved_v.shape[dim], *rest), 0, dim)
    return narrow(first, saved_v), narrow(of_scale.reshape(saved_g.shape), saved_g)


def convolution_backward(
    grad_output: Array,
    input: Array,
    weight: Array,
    bias_sizes: list[int] | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
    output_mask: list[bool],
) -> Outputs:
    """Tap by tap: what a tap of the kernel read at each window, and what that window answers for.

    A transposed convolution is the gradient of one, and so its input stands for the windows.
    """
    spatial = weight.ndim - 2
    if input.ndim != spatial + 2:
        raise Unsuited(f"an input of rank {input.ndim} for a weight of rank {weight.ndim}")
    stride, padding, dilation = (
        each * (spatial // len(each)) for each in (stride, padding, dilation)
    )
    gradient, x, w = wide(grad_output), wide(input), wide(weight)
    windows, read = (x, gradient) if transposed else (gradient, x)
    pads = [(0, 0), (0, 0), *((p, p) for p in padding)]
    room = np.pad(read, pads)
    found, of_weight = np.zeros(room.shape), np.zeros(w.shape)
    answer = np.zeros(x.shape)
    many, few = windows.shape[1] // groups, read.shape[1] // groups
    for tap in np.ndindex(*w.shape[2:]):
        reach: Any = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, s, n in zip(tap, dilation, stride, windows.shape[2:], strict=True)
        )
        for k in range(groups):
            mine, its = slice(k * many, (k + 1) * many), slice(k * few, (k + 1) * few)
            seen = room[(slice(None), its, *reach)]
            matrix = w[(mine, slice(None), *tap)]
            at = windows[:, mine]
            over = [0, *range(2, spatial + 2)]
            of_weight[(mine, slice(None), *tap)] = np.tensordot(at, seen, (over, over))
            if transposed:
                answer[:, mine] += np.moveaxis(np.tensordot(matrix, seen, (1, 1)), 0, 1)
            else:
                back = np.moveaxis(np.tensordot(matrix, at, (0, 1)), 0, 1)
                found[(slice(None), its, *reach)] += back
    if not transposed:
        inside = (slice(p, p + n) for p, n in zip(padding, x.shape[2:], strict=True))
        answer = found[(slice(None), slice(None), *inside)]
    of_bias = gradient.sum(axis=(0, *range(2, spatial + 2)))
    made = (narrow(answer, input), narrow(of_weight, weight), narrow(of_bias, weight))
    return _asked(output_mask, *made)


_G = "Tensor grad_out, Tensor input, "
_THREE = "-> (Tensor, Tensor, Tensor)"
TABLE: tuple[Row, ...] = (
    (
        f"native_layer_norm_backward({_G}SymInt[] normalized_shape, Tensor mean, Tensor rstd, "
        f"Tensor? weight, Tensor? bias, bool[3] output_mask) {_THREE}",
        native_layer_norm_backward,
    ),
    (
        f"_fused_rms_norm_backward({_G}int[] normalized_shape, Tensor rstd, Tensor? weight, "
        "bool[2] output_mask) -> (Tensor, Tensor)",
        fused_rms_norm_backward,
    ),
    (
        f"native_group_norm_backward({_G}Tensor mean, Tensor rstd, Tensor? weight, SymInt N, "
        f"SymInt C, SymInt HxW, int group, bool[3] output_mask) {_THREE}",
        native_group_norm_backward,
    ),
    (
        f"native_batch_norm_backward({_G}Tensor? weight, Tensor? running_mean, "
        "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, "
        f"bool[3] output_mask) {_THREE}",
        native_batch_norm_backward,
    ),
    (
        "_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, "
        "Tensor saved_norms, int dim) -> (Tensor, Tensor)",
        weight_norm_interface_backward,
    ),
    (
        "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, "
        "SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
        f"bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) {_THREE}",
        convolution_backward,
    ),
)
