"""Convolution and transposed convolution: torch.nn.functional.conv2d, conv_transpose2d and kin.

One product of matrices for each position in the kernel: the sum over kernel positions needs no
im2col buffer, and is quick for grouped and dense kernels alike.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.precision import Array, Row, narrow, wide


def convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
) -> Array:
    """General form: input [N, C, ...], weight [O, C/groups, ...]; transposed [C, O/groups, ...]."""
    axes = weight.ndim - 2
    if axes < 1 or input.ndim != weight.ndim:
        raise Unsuited(f"its input has rank {input.ndim}, its weight rank {weight.ndim}")
    stride, padding = _each(stride, axes, "stride"), _each(padding, axes, "padding")
    dilation = _each(dilation, axes, "dilation")
    output_padding = _each(output_padding, axes, "output_padding")
    if min(stride) < 1 or min(dilation) < 1 or min(padding) < 0 or min(output_padding) < 0:
        raise Unsuited(f"stride {stride}, padding {padding}, dilation {dilation}")
    if input.dtype != weight.dtype:
        raise Unsuited(f"its input is {input.dtype.name}, its weight {weight.dtype.name}")
    _check_channels(input, weight, bias, groups, transposed=transposed)
    if transposed:
        y = _transposed(input, weight, stride, padding, dilation, output_padding, groups)
    else:
        y = _plain(input, weight, stride, padding, dilation, groups)
    if bias is not None:
        y += _summed(bias).reshape(-1, *[1] * axes)
    return narrow(y, input)


def _summed(x: Array) -> Array:
    """In the dtype of the sums: integers wrap in int64 as they do in any narrower one."""
    return x.astype(np.int64) if x.dtype.kind in "iu" else wide(x)


def _each(numbers: Sequence[int], axes: int, name: str) -> list[int]:
    found = list(numbers) * (axes if len(numbers) == 1 else 1)
    if len(found) != axes:
        raise Unsuited(f"its `{name}` has {len(found)} numbers, not {axes}")
    return found


def _check_channels(
    x: Array, weight: Array, bias: Array | None, groups: int, *, transposed: bool
) -> None:
    if groups < 1 or weight.shape[0] < groups or weight.shape[0] % groups:
        raise Unsuited(f"groups={groups} does not divide the weight's shape {list(weight.shape)}")
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if x.shape[1] != channels:
        raise Unsuited(
            f"groups={groups} and a weight of shape {list(weight.shape)} need an input of "
            f"{channels} channels; it has {x.shape[1]}"
        )
    made = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and bias.shape != (made,):
        raise Unsuited(f"its bias has shape {list(bias.shape)}, not {[made]}")


def _plain(
    x: Array,
    weight: Array,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Array:
    axes = range(weight.ndim - 2)
    extent = [dilation[i] * (weight.shape[2 + i] - 1) + 1 for i in axes]
    room = [x.shape[2 + i] + 2 * padding[i] - extent[i] for i in axes]
    if min(room) < 0 or 0 in weight.shape[2:]:
        raise Unsuited(
            f"the kernel's extent {extent} is more than the padded input "
            f"{[x.shape[2 + i] + 2 * padding[i] for i in axes]}"
        )
    plane = [room[i] // stride[i] + 1 for i in axes]
    padded = np.pad(_summed(x), [(0, 0), (0, 0), *[(p, p) for p in padding]])
    source = padded.reshape(x.shape[0], groups, weight.shape[1], *padded.shape[2:])
    kernel = _summed(weight).reshape(groups, -1, *weight.shape[1:])
    y = np.zeros((x.shape[0], groups, kernel.shape[1], math.prod(plane)), source.dtype)
    for at in itertools.product(*(range(n) for n in weight.shape[2:])):
        tap: tuple[Any, ...] = (..., *at)
        box: tuple[Any, ...] = (
            ...,
            *(
                slice(
                    at[i] * dilation[i],
                    at[i] * dilation[i] + stride[i] * (plane[i] - 1) + 1,
                    stride[i],
                )
                for i in axes
            ),
        )
        piece = source[box].reshape(*source.shape[:3], -1)
        y += _product(kernel[tap], piece)
    return y.reshape(x.shape[0], -1, *plane)


def _product(matrix: Array, piece: Array) -> Array:
    """[G, O, C] times [N, G, C, P]; one channel a group needs no product of matrices."""
    product: Array = matrix * piece if matrix.shape[2] == 1 else np.matmul(matrix, piece)
    return product


def _transposed(
    x: Array,
    weight: Array,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    output_padding: list[int],
    groups: int,
) -> Array:
    axes = range(weight.ndim - 2)
    for i in axes:
        if output_padding[i] >= max(stride[i], dilation[i]):
            raise Unsuited(f"output_padding {output_padding} is no less than the stride {stride}")
    extent = [dilation[i] * (weight.shape[2 + i] - 1) + 1 for i in axes]
    full = [(x.shape[2 + i] - 1) * stride[i] + extent[i] for i in axes]
    plane = [full[i] - 2 * padding[i] + output_padding[i] for i in axes]
    if min(plane) < 1:
        raise Unsuited(f"its output would have the shape {plane}")
    source = _summed(x).reshape(x.shape[0], groups, weight.shape[0] // groups, -1)
    kernel = np.swapaxes(_summed(weight).reshape(groups, -1, *weight.shape[1:]), 1, 2)
    buffer = [max(full[i], padding[i] + plane[i]) for i in axes]
    y = np.zeros((x.shape[0], groups, weight.shape[1], *buffer), source.dtype)
    for at in itertools.product(*(range(n) for n in weight.shape[2:])):
        tap: tuple[Any, ...] = (..., *at)
        box: tuple[Any, ...] = (
            ...,
            *(
                slice(
                    at[i] * dilation[i],
                    at[i] * dilation[i] + stride[i] * (x.shape[2 + i] - 1) + 1,
                    stride[i],
                )
                for i in axes
            ),
        )
        piece = _product(kernel[tap], source)
        y[box] += piece.reshape(*y.shape[:3], *x.shape[2:])
    crop: tuple[Any, ...] = (..., *(slice(padding[i], padding[i] + plane[i]) for i in axes))
    cropped: Array = y[crop].reshape(x.shape[0], -1, *plane)
    return cropped


def legacy_convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
    benchmark: bool,
    deterministic: bool,
    cudnn_enabled: bool,
    allow_tf32: bool = True,
) -> Array:
    """`_convolution`, whose further arguments choose an implementation and no result."""
    return convolution(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


def conv(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: list[int],
    padding: list[int] | str,
    dilation: list[int],
    groups: int,
) -> Array:
    """conv1d, conv2d, conv3d: an input without batch, and padding by word."""
    batched = _batched(input, weight)
    axes = weight.ndim - 2
    if isinstance(padding, str):
        if padding == "same":
            batched, padding = _pad_same(batched, weight, stride, dilation)
        elif padding == "valid":
            padding = [0]
        else:
            raise Unsuited(f"padding {padding!r}")
    y = convolution(batched, weight, bias, stride, padding, dilation, False, [0] * axes, groups)
    return y if input.ndim == weight.ndim else y[0]


def conv_transpose(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: list[int],
    padding: list[int],
    output_padding: list[int],
    groups: int,
    dilation: list[int],
) -> Array:
    """conv_transpose1d, 2d, 3d."""
    batched = _batched(input, weight)
    y = convolution(batched, weight, bias, stride, padding, dilation, True, output_padding, groups)
    return y if input.ndim == weight.ndim else y[0]


def _of_library(name: str, order: str) -> Row:
    """A convolution whose schema gives the same arguments in an order of its own."""
    turned = "transpose" in name
    listed = ("stride", "padding", "dilation", "output_padding", "kernel_size")

    def run(self: Array, weight: Array, **given: Any) -> Array:
        axes = weight.ndim - 2
        if list(given.get("kernel_size", weight.shape[2:])) != list(weight.shape[2:]):
            raise Unsuited(f"a kernel of {given['kernel_size']}")
        x = _batched(self, weight)
        groups = int(x.shape[1]) if "depthwise" in name else 1
        y = convolution(
            x,
            weight,
            given.get("bias"),
            given["stride"],
            given["padding"],
            given.get("dilation", [1] * axes),
            turned,
            given.get("output_padding", [0] * axes),
            given.get("groups", groups),
        )
        y = y if self.ndim == weight.ndim else y[0]
        if "z" in given:
            alpha = 1 if given["alpha"] is None else given["alpha"]
            y = narrow(wide(y) + wide(given["z"]) * alpha, self)
        return np.maximum(y, 0) if name.endswith("_relu") else y

    kinds = {
        "bias": "Tensor?",
        "z": "Tensor",
        "alpha": "Scalar?",
        "groups": "SymInt",
        **dict.fromkeys(listed, "SymInt[]"),
    }
    rest = ", ".join(f"{kinds.get(word, 'bool')} {word}" for word in order.split())
    return f"{name}(Tensor self, Tensor weight, {rest}) -> Tensor", run


def _batched(x: Array, weight: Array) -> Array:
    if x.ndim not in (weight.ndim, weight.ndim - 1):
        raise Unsuited(f"its input has rank {x.ndim}, its weight rank {weight.ndim}")
    return x if x.ndim == weight.ndim else x[None]


def _pad_same(
    x: Array, weight: Array, stride: list[int], dilation: list[int]
) -> tuple[Array, list[int]]:
    """An odd total goes to the end, as torch.nn.functional.conv2d says of padding='same'."""
    axes = weight.ndim - 2
    if any(step != 1 for step in stride):
        raise Unsuited("padding='same' with a stride")
    total = [
        d * (k - 1)
        for d, k in zip(_each(dilation, axes, "dilation"), weight.shape[2:], strict=True)
    ]
    return np.pad(x, [(0, 0), (0, 0), *[(t // 2, t - t // 2) for t in total]]), [0]


_CONV = (
    "conv{n}d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{n}] stride=1, "
    "SymInt[{n}] padding=0, SymInt[{n}] dilation=1, SymInt groups=1) -> Tensor"
)
_CONV_BY_WORD = (
    "conv{n}d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{n}] stride=1, "
    'str padding="valid", SymInt[{n}] dilation=1, SymInt groups=1) -> Tensor'
)
_TRANSPOSED = (
    "conv_transpose{n}d{overload}(Tensor input, Tensor weight, Tensor? bias=None, "
    "SymInt[{n}] stride=1, SymInt[{n}] padding=0, SymInt[{n}] output_padding=0, "
    "SymInt groups=1, SymInt[{n}] dilation=1) -> Tensor"
)
_GENERAL = (
    "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups"
)

_KERNEL = "kernel_size bias stride padding"
_OTHERS = (
    ("cudnn_convolution", "padding stride dilation groups benchmark deterministic allow_tf32"),
    ("cudnn_convolution_relu", "bias stride padding dilation groups"),
    (
        "cudnn_convolution_transpose",
        "padding output_padding stride dilation groups benchmark deterministic allow_tf32",
    ),
    ("miopen_convolution", "bias padding stride dilation groups benchmark deterministic"),
    ("miopen_convolution_relu", "bias stride padding dilation groups"),
    (
        "miopen_convolution_transpose",
        "bias padding output_padding stride dilation groups benchmark deterministic",
    ),
    ("mkldnn_convolution", "bias padding stride dilation groups"),
    ("miopen_depthwise_convolution", "bias padding stride dilation groups benchmark deterministic"),
    *(
        (f"{library}_convolution_add_relu", "z alpha bias stride padding dilation groups")
        for library in ("cudnn", "miopen")
    ),
    ("_mps_convolution", "bias padding stride dilation groups"),
    ("_mps_convolution_transpose", "padding output_padding stride dilation groups"),
    ("_nnpack_spatial_convolution", "bias padding stride"),
    ("_slow_conv2d_forward", _KERNEL),
    ("slow_conv3d_forward", _KERNEL),
    ("_conv_depthwise2d", f"{_KERNEL} dilation"),
    ("conv_depthwise3d", f"{_KERNEL} dilation"),
    ("thnn_conv2d", _KERNEL),
    ("slow_conv3d", _KERNEL),
    *((f"slow_conv_dilated{n}d", f"{_KERNEL} dilation") for n in (2, 3)),
    *((f"slow_conv_transpose{n}d", f"{_KERNEL} output_padding dilation") for n in (2, 3)),
)

TABLE: tuple[Row, ...] = (
    *(_of_library(name, order) for name, order in _OTHERS),
    (f"convolution_overrideable{_GENERAL}) -> Tensor", convolution),
    (
        "_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, "
        "str padding, SymInt[] dilation, SymInt groups) -> Tensor",
        conv,
    ),
    (f"convolution{_GENERAL}) -> Tensor", convolution),
    (
        f"_convolution.deprecated{_GENERAL}, bool benchmark, bool deterministic, "
        "bool cudnn_enabled) -> Tensor",
        legacy_convolution,
    ),
    (
        f"_convolution{_GENERAL}, bool benchmark, bool deterministic, bool cudnn_enabled, "
        "bool allow_tf32) -> Tensor",
        legacy_convolution,
    ),
    *((_CONV.format(n=n), conv) for n in (1, 2, 3)),
    *((_CONV_BY_WORD.format(n=n), conv) for n in (1, 2, 3)),
    *(
        (_TRANSPOSED.format(n=n, overload="" if n == 1 else ".input"), conv_transpose)
        for n in (1, 2, 3)
    ),
)
