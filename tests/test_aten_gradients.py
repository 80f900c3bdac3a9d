"""Gradients, which models leave whose result is a derivative: forces of an energy, say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from aten_node import Calls, agrees, each

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

R = np.random.default_rng(0)
F = np.float32
CALLS = Calls()
add = CALLS.add


def normal(*shape: int, dtype: Any = F) -> Any:
    return np.asarray(R.normal(size=shape) * 2).astype(dtype)


# activations: at their bends, where they are flat, and where they overflow
ENDS = np.array([0, -0.0, 1, -1, 0.5, -0.5, 6, 20, 20.5, -20, 90, -90, np.inf, -np.inf], F)
X = np.concatenate([normal(20), ENDS])
G = normal(X.size)
BENT = X[np.isfinite(X)]
for x in (X, X.astype(np.float64), BENT.astype(np.float16)):
    g = G[: x.size].astype(x.dtype)
    add("threshold_backward", g, x, 0)
    add("threshold_backward", g, x, 0.5)
    add("hardtanh_backward", g, x, -1.0, 0.5)
    add("softshrink_backward", g, x, 0.5)
    add("hardshrink_backward", g, x, 0.5)
for x in (X, X.astype(np.float64)):
    g = G[: x.size].astype(x.dtype)
    add("leaky_relu_backward", g, x, 0.01, False)
    add("leaky_relu_backward", g, x, 0.2, True)
    add("hardsigmoid_backward", g, x)
    add("hardswish_backward", g, x)
    add("log_sigmoid_backward", g, x, np.exp(-np.abs(x)))
    add("rrelu_with_noise_backward", g, x, np.abs(g), 0.1, 0.3, False, False)
    add("rrelu_with_noise_backward", g, x, np.abs(g), 0.1, 0.3, True, False)
    add("_prelu_kernel_backward", g, x, np.full(1, 0.25, x.dtype), outputs=2)
for x in (BENT, BENT.astype(np.float64)):
    g = G[: x.size].astype(x.dtype)
    add("sigmoid_backward", g, 1 / (1 + np.exp(-np.clip(x, -80, 80))))
    add("tanh_backward", g, np.tanh(x))
    add("silu_backward", g, x)
    add("mish_backward", g, x)
    add("gelu_backward", g, x, "tanh")
    for beta, threshold in ((1, 20), (2.0, 5.0), (0.5, 1)):
        add("softplus_backward", g, x, beta, threshold)
    for numbers in ((1, 1, 1), (1.5, 1.1, 0.5)):
        add("elu_backward", g, *numbers, False, x)
        add("elu_backward", g, *numbers, True, np.maximum(x, -0.9))
add("gelu_backward", G[: BENT.size], BENT, "none")
add("infinitely_differentiable_gelu_backward", G[: BENT.size], BENT)
SHARES = np.array([0.1, 0.5, 0.999, 0.0, 1.0, -0.5, 1.5, 1e-6], F)
for eps in (None, 1e-3, 0.2):
    add("logit_backward", np.ones(8, F), SHARES, eps)
for dim in (-1, 0, 1):
    half = [n // 2 if i == dim % 3 else n for i, n in enumerate((4, 6, 2))]
    add("glu_backward", normal(*half), normal(4, 6, 2), dim)
    y = np.exp(normal(4, 6, 2))
    y /= y.sum(dim, keepdims=True)
    add("_softmax_backward_data", normal(4, 6, 2), y, dim, 6)
    add("_log_softmax_backward_data", normal(4, 6, 2), np.log(y), dim, 6)
add("native_dropout_backward", normal(4, 5), normal(4, 5) > 0, 1.25)
add("_prelu_kernel_backward", normal(2, 3, 4), normal(2, 3, 4), normal(1, 3, 1), outputs=2)

# what read a part
for index in (0, 2, -1, -3):
    add("select_backward", normal(4, 5), [4, 3, 5], 1, index, still=True)
add("select_backward", normal(), [3], 0, 1, still=True)
for start, end, step in (
    (0, 2, 1),
    (1, 2**63 - 1, 1),
    (-2, -1, 1),
    (0, 100, 2),
    (1, 6, 3),
    (4, 2, 1),
):
    taken = len(range(6)[start:end:step])
    add("slice_backward", normal(4, taken, 5), [4, 6, 5], 1, start, end, step, still=True)
for offset in (0, 1, -2, 7):
    count = np.diagonal(np.zeros((4, 6)), offset).size
    add("diagonal_backward", normal(3, count), [4, 3, 6], offset, 0, 2, still=True)
for size, step in ((3, 1), (3, 2), (2, 4), (7, 1)):
    windows = (7 - size) // step + 1
    add("unfold_backward", normal(2, windows, 3, size), [2, 7, 3], 1, size, step, still=True)
for dim in (0, 1, -1):
    add("gather_backward", normal(2, 3), normal(4, 3), dim, R.integers(0, 3, (2, 3)), False)
for dim, sizes in ((0, [3, 4, 2]), (1, [4, 3, 2]), (-1, [4, 2, 3])):
    read = [5 if n == 3 else n for n in sizes]
    add("index_select_backward", normal(*read), sizes, dim, R.integers(0, 3, 5), still=True)
for keepdim in (False, True):
    shape = (4, 1, 3) if keepdim else (4, 3)
    found = R.integers(0, 5, shape)
    add(
        "value_selecting_reduction_backward",
        normal(*shape),
        1,
        found,
        [4, 5, 3],
        keepdim,
        still=True,
    )
for padding in (-1, 2):
    add("embedding_dense_backward", normal(2, 4, 3), R.integers(0, 5, (2, 4)), 5, padding, False)
ROWS, OTHERS = normal(2, 4, 3), normal(2, 5, 3)
ROWS[0, 1] = OTHERS[0, 2]
for p in (2.0, 1.0, 0.0, math.inf, 3.0, 1.5):
    apart = np.abs(ROWS[:, :, None] - OTHERS[:, None])
    far = (
        apart.max(-1)
        if math.isinf(p)
        else (apart > 0).sum(-1)
        if p == 0
        else (apart**p).sum(-1) ** (1 / p)
    )
    add("_cdist_backward", normal(2, 4, 5), ROWS, OTHERS, p, far.astype(F))
LINE = normal(4, 3)
LINE[1, 1], LINE[3] = LINE[2, 1], LINE[0]
for p in (2.0, 1.0, 0.0, math.inf, 3.0, 1.5):
    apart = np.abs(LINE[:, None] - LINE)[np.triu_indices(4, 1)]
    powers = (apart > 0).sum(-1) if p == 0 else apart.max(-1)
    far = powers if p in (0, math.inf) else (apart**p).sum(-1) ** (1 / p)
    add("_pdist_backward", normal(6), LINE, p, far.astype(F), still=True)
for sizes in ([3, 3], [2, 4], [5, 2]):
    add("trace_backward", normal(), sizes)
KEPT = R.uniform(size=(3, 4)) > 0.5
for mask in (KEPT, KEPT[0], KEPT[:, :1]):
    whole = np.broadcast_to(mask, (3, 4))
    add("masked_select_backward", normal(int(whole.sum())), normal(3, 4), mask, least=11)
    add("masked_scatter_backward", normal(3, 4), mask, [2, 7], least=11)
add("masked_select_backward", normal(int(KEPT.sum())), normal(4), KEPT, least=11)
for dim in (0, 1, -1):
    index = np.maximum.accumulate(R.integers(0, 3, (3, 3)), axis=dim)
    add("cummaxmin_backward", normal(3, 3), normal(3, 3), index, dim, least=11)
PLACES = np.stack([R.permutation(30)[:6].reshape(2, 3) for _ in range(6)]).reshape(2, 3, 2, 3)
add("adaptive_max_pool2d_backward", normal(2, 3, 2, 3), normal(2, 3, 5, 6), PLACES)
add(
    "max_pool2d_with_indices_backward",
    normal(2, 3, 2, 3),
    normal(2, 3, 5, 6),
    [3, 2],
    [2, 2],
    [0, 0],
    [1, 1],
    False,
    np.array([[0, 2, 2], [12, 14, 12]]).reshape(1, 1, 2, 3).repeat(2, 0).repeat(3, 1),
)

# averages, pads, resampling
for lengths, counts in (((6, 4), (3, 2)), ((5, 7), (3, 4)), ((3, 3), (5, 1))):
    add("_adaptive_avg_pool2d_backward", normal(2, 3, *counts), normal(2, 3, *lengths), still=True)
add("_adaptive_avg_pool3d_backward", normal(3, 2, 2, 3), normal(3, 5, 2, 7), still=True)
for kernel, stride, padding, ceil, whole, divisor, counts in (
    ([2, 2], [2, 2], [0, 0], False, True, None, (3, 4)),
    ([2, 3], [], [0, 1], False, True, None, (3, 3)),
    ([3, 3], [2, 2], [1, 1], True, True, None, (4, 5)),
    ([3, 3], [2, 2], [1, 1], True, False, None, (4, 5)),
    ([3, 2], [2, 1], [1, 0], False, False, 5, (3, 7)),
):
    add(
        "avg_pool2d_backward",
        normal(2, 3, *counts),
        normal(2, 3, 6, 8),
        kernel,
        stride,
        padding,
        ceil,
        whole,
        divisor,
        still=True,
    )
add(
    "avg_pool3d_backward",
    normal(2, 2, 3, 2),
    normal(2, 4, 6, 5),
    [2],
    [2],
    [0],
    False,
    True,
    None,
    still=True,
)
add("reflection_pad1d_backward", normal(2, 3, 9), normal(2, 3, 4), [3, 2], still=True)
add("reflection_pad2d_backward", normal(2, 7, 8), normal(2, 4, 6), [1, 1, 3, 0], still=True)
add("replication_pad2d_backward", normal(2, 3, 9, 8), normal(2, 3, 4, 6), [1, 1, 5, 0], still=True)
add(
    "replication_pad3d_backward",
    normal(2, 3, 5, 4, 6),
    normal(2, 3, 4, 3, 4),
    [2, 0, 0, 1, 1, 0],
    still=True,
)
for corners in (False, True):
    for sizes in ([8, 10], [3, 7]):
        for kind in ("bilinear2d", "bicubic2d"):
            for name in (f"upsample_{kind}_backward", f"_upsample_{kind}_aa_backward"):
                add(
                    name, normal(2, 3, *sizes), sizes, [2, 3, 4, 5], corners, None, None, still=True
                )
    add("upsample_linear1d_backward", normal(2, 3, 7), [7], [2, 3, 4], corners, None, still=True)
    add(
        "upsample_trilinear3d_backward",
        normal(1, 2, 4, 3, 5),
        [4, 3, 5],
        [1, 2, 2, 3, 3],
        corners,
        2.0,
        None,
        None,
        still=True,
    )
add(
    "upsample_bicubic2d_backward.vec",
    normal(2, 3, 8, 7),
    [8, 7],
    [2, 3, 4, 5],
    True,
    None,
    still=True,
)
add("upsample_nearest2d_backward.vec", normal(2, 3, 8, 7), [8, 7], [2, 3, 4, 5], None, still=True)
for name in ("upsample_nearest2d_backward", "_upsample_nearest_exact2d_backward"):
    add(name, normal(2, 3, 9, 7), [9, 7], [2, 3, 4, 5], None, None, still=True)
    add(name, normal(2, 3, 9, 7), [9, 7], [2, 3, 4, 5], 2.3, 1.5, still=True)
add("upsample_nearest1d_backward", normal(2, 3, 5), [5], [2, 3, 9], None, still=True)

# attention
Q, K, V = normal(2, 3, 5, 4), normal(2, 3, 6, 4), normal(2, 3, 6, 4)
MASK = normal(2, 1, 5, 6)
MASK[0, 0, 1, 2:] = MASK[1, 0, 3] = -np.inf
for mask in (None, MASK):
    for causal in (False, True) if mask is None else (False,):
        scores = Q @ K.swapaxes(-1, -2) * F(0.3) + (0 if mask is None else mask)
        if causal:
            scores = np.where(np.tri(5, 6, dtype=bool), scores, -np.inf)
        with np.errstate(all="ignore"):
            sums = np.logaddexp.reduce(scores, axis=-1)
            shares = np.nan_to_num(np.exp(scores - sums[..., None]))
        sums = np.where(np.isfinite(sums), sums, 0).astype(F)
        name = "_scaled_dot_product_flash_attention_for_cpu"
        add(name, Q, K, V, 0.0, causal, mask, 0.3, outputs=2)
        add(
            f"{name}_backward",
            normal(2, 3, 5, 4),
            Q,
            K,
            V,
            (shares @ V).astype(F),
            sums,
            0.0,
            causal,
            mask,
            0.3,
            outputs=3,
        )


@pytest.mark.parametrize(("operator", "arguments", "options", "opset", "dynamic"), each(CALLS))
def test_lowered_as_the_witness(
    operator: str, arguments: list[Any], options: dict[str, Any], opset: int, dynamic: bool
) -> None:
    agrees(operator, arguments, options, opset, dynamic=dynamic)
