"""Operators that no other test calls: second names, and what few exporters leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_node import Calls, agrees, each

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

R = np.random.default_rng(5)
F = np.float32
X = R.normal(size=(3, 4, 5)).astype(F)
WITHIN = R.uniform(-0.9, 0.9, (3, 4)).astype(F)
ABOVE = R.uniform(1.1, 4, (3, 4)).astype(F)
LINES = R.normal(size=(2, 3, 7)).astype(F)
PLANES = R.normal(size=(2, 3, 6, 5)).astype(F)
VOLUMES = R.normal(size=(2, 3, 4, 6, 5)).astype(F)
INTS = R.integers(-9, 9, (3, 7))
CALLS = Calls()
add = CALLS.add

# element by element
for name in "arcsin arccos arctan arctanh special_erf special_erfc special_log1p".split():
    add(name, WITHIN)
for name in "arcsinh special_exp2 special_expit special_expm1 special_sinc arccosh".split():
    add(name, ABOVE)
for name in ("special_gammaln", "special_psi"):
    add(name, ABOVE)
for name in ("special_modified_bessel_i0", "special_modified_bessel_i1"):
    add(name, ABOVE)
add("special_multigammaln", ABOVE + 1, 2)
add("special_polygamma", 1, ABOVE)
add("special_logit", ABOVE / 5, 0.1)
add("special_logit", ABOVE / 5, None)
add("special_xlogy", WITHIN, ABOVE)
add("special_xlogy.other_scalar", WITHIN, 2.0)
add("special_xlogy.self_scalar", 2.0, ABOVE)
add("arctan2", WITHIN, ABOVE)
add("subtract.Tensor", X, X[0], 2)
add("subtract.Scalar", INTS, 3, 2)
for name in ("greater_equal", "less_equal", "not_equal"):
    add(f"{name}.Tensor", INTS, INTS[::-1].copy())
    add(f"{name}.Scalar", X, 0.5)
for name in ("__ilshift__", "__irshift__"):
    add(f"{name}.Tensor", np.abs(INTS), np.abs(INTS) // 3)
for name in ("__ior__", "__ixor__", "__iand__"):
    add(f"{name}.Tensor", INTS, INTS[::-1].copy(), least=18)
    add(f"{name}.Tensor", INTS > 0, INTS > 3)
for name in ("conj_physical", "_conj_physical", "lift", "lift_fresh"):
    add(name, X)
add("_neg_view_copy", X)
add("_prelu_kernel", PLANES, np.array([0.1, -0.2, 0.3], F).reshape(1, 3, 1, 1))
for name, dtypes in {
    "_cast_Byte": "u1", "_cast_Char": "i1", "_cast_Short": "i2", "_cast_Int": "i4",
    "_cast_Long": "i8", "_cast_Half": "f2", "_cast_Float": "f4", "_cast_Double": "f8",
}.items():  # fmt: skip
    add(name, np.abs(INTS).astype(F if dtypes[0] != "f" else np.int64), False)
add("_to_copy", X, 7, None, None, None, False, None)
add("_to_copy", X, None, None, None, None, False, None)

# shapes
for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    for array in (np.asarray(2.0, F), X[0, 0].copy(), X[0].copy(), X):
        add(name, array)
    add(f"{name}.Sequence", [np.asarray(2.0, F), X[0, 0].copy()], listed=True, least=11)
for offset in (0, 1, -2):
    add("diagflat", X[0, 0].copy(), offset)
    add("diagflat", X[0].copy(), offset)
add("diagflat", np.asarray(2.0, F), 0)
for name in ("_unsafe_view", "_reshape_copy", "_mkldnn_reshape"):
    add(name, X, [3, 20])
    add(name, X, [-1, 4])
add("_reshape_alias_copy", X, [12, 5], [5, 1])
add("_mkldnn_transpose", X, 0, 2)
add("row_stack", [X, X[:1].copy()])
add("row_stack", [X[0, 0].copy(), X[0, 1].copy()])
for name in ("split_copy.Tensor", "unsafe_split.Tensor"):
    add(name, X, 2, 2, listed=True)
for name in ("split_with_sizes_copy", "unsafe_split_with_sizes"):
    add(name, X, [1, 3], 1, listed=True)
add("unsafe_chunk", X, 2, 2, listed=True)
add("unbind_copy.int", X, 1, listed=True)
for pad in ([1, 2], [0, 3], [2, 0, 1, 1]):
    add("_pad_circular", PLANES if len(pad) == 4 else LINES, pad)
add("reflection_pad3d", VOLUMES, [1, 2, 0, 3, 2, 1])
add("unique_dim", INTS % 3, 0, True, True, True, least=11)
add("_unique", INTS, True, True, least=11)
add("new_ones", X, [2, 3], 6, None, None, None)
add("new_ones", X, [2, 3], None, None, None, None)

# overloads
places = np.array([[0, 1, 2, 0], [1, 1, 2, 0]])
for reduce in ("add", "multiply"):
    add("scatter.value_reduce", X[0, :, :].copy(), 0, places, 2.0, reduce, least=11)
HALF = X[0].astype(np.float16)
ACROSS = HALF.T.copy()
add("mm.dtype", HALF, ACROSS, 6, least=13)
add("bmm.dtype", HALF[None].copy(), ACROSS[None].copy(), 6, least=13)
add("addmm.dtype", HALF[:, :4].copy(), HALF, ACROSS, 6, 0.5, 2, least=13)
add(
    "baddbmm.dtype",
    HALF[None, :, :4].copy(),
    HALF[None].copy(),
    ACROSS[None].copy(),
    6,
    1,
    1,
    least=13,
)
add("view.dtype", X, 6)
for kind in (np.int32, np.int64):
    add("repeat_interleave.Tensor", np.array([2, 0, 3], kind), None)

# pools, resampling and borders, and their gradients
add("_adaptive_avg_pool3d", VOLUMES, [2, 3, 1])
add("mkldnn_adaptive_avg_pool2d", PLANES, [3, 5])
add("mkldnn_max_pool3d", VOLUMES, [2, 2, 2], [2, 1, 1], [0, 1, 0], [1, 1, 1], False)
add("max_pool1d_with_indices", LINES, [3], [2], [1], [1], False)
grid2, grid3 = (
    R.uniform(-1.2, 1.2, (2, *size, len(size))).astype(F) for size in ((3, 4), (2, 3, 4))
)
for mode in (0, 1):
    for border in (0, 1, 2):
        add("grid_sampler_2d", PLANES, grid2, mode, border, border == 1)
        add("_grid_sampler_2d_cpu_fallback", PLANES, grid2, mode, border, border == 1)
        add("grid_sampler_3d", VOLUMES, grid3, mode, border, border == 1)
add(
    "reflection_pad3d_backward",
    np.pad(VOLUMES, ((0, 0), (0, 0), (1, 2), (0, 1), (2, 1))),
    VOLUMES,
    [2, 1, 0, 1, 1, 2],
    still=True,
)
add("replication_pad1d_backward", R.normal(size=(2, 3, 10)).astype(F), LINES, [1, 2], still=True)
grown = R.normal(size=(2, 3, 12)).astype(F)
add("_upsample_nearest_exact1d_backward", grown, [12], [2, 3, 7], None, still=True)
for name in ("upsample_nearest3d_backward", "_upsample_nearest_exact3d_backward"):
    add(
        name,
        R.normal(size=(1, 2, 5, 6, 7)).astype(F),
        [5, 6, 7],
        [1, 2, 3, 4, 5],
        None,
        None,
        None,
        still=True,
    )
add(
    "_upsample_lanczos2d_aa_backward",
    R.normal(size=(1, 2, 4, 3)).astype(F),
    [4, 3],
    [1, 2, 7, 5],
    False,
    None,
    None,
    still=True,
)

# layers
weight, bias, mean = (R.normal(size=3).astype(F) for _ in range(3))
var = R.uniform(0.5, 2, 3).astype(F)
add("_native_batch_norm_legit_no_training", PLANES, weight, bias, mean, var, 0.1, 1e-5, outputs=1)
add("_batch_norm_no_update", PLANES, weight, bias, mean, var, 0.1, 1e-5, outputs=1)
kernel = R.normal(size=(4, 3, 3, 3)).astype(F)
add("miopen_convolution_relu", PLANES, kernel, np.ones(4, F), [2, 1], [1, 1], [1, 1], 1)
add(
    "miopen_convolution_transpose",
    PLANES,
    kernel.swapaxes(0, 1).copy(),
    None,
    [1, 1],
    [0, 0],
    [2, 1],
    [1, 1],
    1,
    False,
    False,
)
add(
    "slow_conv_transpose3d",
    VOLUMES,
    R.normal(size=(3, 2, 2, 2, 2)).astype(F),
    [2, 2, 2],
    np.ones(2, F),
    [2, 1, 1],
    [0, 1, 0],
    [1, 0, 0],
    [1, 1, 1],
)
table = R.normal(size=(6, 4)).astype(F)
add(
    "_embedding_bag",
    table,
    np.array([0, 5, 2, 2, 1]),
    np.array([0, 2]),
    False,
    1,
    False,
    None,
    False,
    -1,
    outputs=1,
)
add(
    "embedding_backward",
    R.normal(size=(5, 4)).astype(F),
    np.array([0, 5, 2, 2, 1]),
    6,
    2,
    False,
    False,
    still=True,
)
add("nll_loss2d", PLANES, R.integers(0, 3, (2, 6, 5)), np.array([1, 2, 0.5], F), 1, 1)
for dim in (0, -1):
    add("special_softmax", X, dim, None)
    add("special_log_softmax", X, dim)
add("special_logsumexp", X, [0, 2], True)
q, k, v = (R.normal(size=(2, 3, 5, 4)).astype(F) for _ in range(3))
add("_scaled_dot_product_attention_math_for_mps", q, k, v, None, 0.0, False, None, outputs=1)
index = np.array([2, 0])
add("_index_put_impl", X, [index], X[:2].copy(), False, False, least=11)

# matrices
positive = (lambda a: a @ a.swapaxes(-1, -2) + 2 * np.eye(3, dtype=F))(
    R.normal(size=(2, 3, 3)).astype(F)
)
add(
    "_cholesky_solve_helper",
    R.normal(size=(2, 3, 2)).astype(F),
    np.linalg.cholesky(positive).astype(F),
    False,
)
add("_lu_with_info", positive, True, False, least=11)

# levels
add(
    "fake_quant_per_channel",
    PLANES,
    np.array([0.1, 0.2, 0.05], F),
    np.array([0, 3, -2]),
    1,
    -128,
    127,
)


@pytest.mark.parametrize(("operator", "arguments", "options", "opset", "dynamic"), each(CALLS))
def test_lowered_as_the_witness(
    operator: str, arguments: list[Any], options: dict[str, Any], opset: int, dynamic: bool
) -> None:
    agrees(operator, arguments, options, opset, dynamic=dynamic)
