"""Calls of operators that few models leave behind: operator, arguments, and options."""

from __future__ import annotations

import numpy as np
from aten_node import Calls

R = np.random.default_rng(0)
F = np.float32
X = R.normal(size=(3, 4, 5)).astype(F)
GAPS = X.copy()
GAPS[0, 1, 2] = GAPS[2, :3, 0] = np.nan
INTS = R.integers(0, 4, (3, 7))
Q = np.array([0.1, 0.5, 1.0], F)
CALLS = Calls()
add = CALLS.add

# lengths of one, numbers of rank 0, and nothing at all
add("cosine_similarity", X[:1, :, :3], X[:, :1, :3], -2, 1e-8)
add("cosine_similarity", X[0], X[0, 0], 0, 1e-8)
add("cosine_similarity", X[:1], X, 0, 1e-8)
for name in ("cov", "corrcoef"):
    rest = [1, None, None] if name == "cov" else []
    add(name, X[0, :1], *rest, still=True)
    add(name, X[0], *rest, still=True)
add("prelu", np.asarray(-2, F), Q[:1])
add("gather", np.asarray(3, F), 0, np.zeros(1, np.int64), False, still=True)
add("cdist", np.zeros((2, 3, 5), F), np.zeros((1, 0, 5), F), 2.0, None, still=True)
add("linalg_pinv", R.normal(size=(2, 4, 4)).astype(F), 1e-9, True, least=11, still=True)
add("feature_alpha_dropout", X, 0.5, False)
# what has no axis is a line of one element
ONE, NO_PLACE, PLACE = np.asarray(1.5, F), np.asarray(0), np.zeros(1, np.int64)
for name in ("softmax.int", "log_softmax.int", "_safe_softmax"):
    add(name, ONE, -1, None)
for name in ("_softmax", "_log_softmax"):
    add(name, ONE, 0, False)
for at in (NO_PLACE, PLACE):
    add("index_fill.int_Scalar", ONE, -1, at, 2.0)
    add("index_fill.int_Tensor", ONE, 0, at, np.asarray(3, F))
add("index_add", ONE, 0, NO_PLACE, np.asarray(2, F), 3)
add("index_copy", ONE, 0, NO_PLACE, np.asarray(2, F))
add("index_reduce", ONE, 0, NO_PLACE, np.asarray(2, F), "amin", True)
add("scatter.value", ONE, 0, NO_PLACE, 2.0)
add("scatter_add", ONE, 0, NO_PLACE, np.asarray(2, F))
add("scatter_add", np.asarray(3), 0, np.zeros(2, np.int64), np.array([4, 5]))
add("scatter_reduce.two", ONE, 0, NO_PLACE, np.asarray(2, F), "mean", True)
for value in (ONE, np.asarray(0, F), np.asarray(True)):
    add("nonzero", value)
    add("argwhere", value)
    add("nonzero_static", value, 2, -1)
# one sample by itself
SCORES, WEIGHTS = X[0, 0], np.abs(X[1, 1])
for reduction in (0, 1, 2):
    for ignored in (-100, 2):
        add("nll_loss_nd", SCORES, np.asarray(2), WEIGHTS, reduction, ignored)
        add(
            "cross_entropy_loss",
            SCORES,
            np.asarray(2),
            WEIGHTS,
            reduction,
            ignored,
            0.2,
        )
    add("cross_entropy_loss", SCORES, WEIGHTS, None, reduction, -100, 0.1)
    add("multi_margin_loss", SCORES, np.array([2]), 2, 0.5, WEIGHTS, reduction)
# memory, diagonals, masks
add("as_strided", X, [3, 2], [4, 1], 2)
add("as_strided", X, [2, 3, 2], [1, 0, 7], None)
add("as_strided_scatter", X, np.ones((3, 2), F), [3, 2], [4, 1], 2, throughout=True)
add("as_strided_scatter", X > 0, X[0, :2, :3] > 0, [2, 3], [7, 2], 1, throughout=True)
add("linalg_diagonal", X, 1, 0, 2)
add("diagonal_scatter", X, np.ones((5, 3), F), 1, 0, 1)
add("diagonal_scatter", X, np.ones((3, 3), F), -1, 1, 2)
add("diagonal_scatter", X[0], np.arange(4, dtype=F), 0, 0, 1)
add("masked_scatter", X, X > 0, R.normal(size=70).astype(F))
add("masked_scatter", X, X[0, 0] > 0, R.normal(size=70).astype(F))
add("masked_scatter", X[0], X > 0, R.normal(size=70).astype(F), throughout=True)
add("masked_scatter", X[:, :1], X[0] > 0, R.normal(size=70).astype(F), throughout=True)
add("masked_scatter", X[0, 0] > 0, X > 1, X > 0, throughout=True)
add("masked_scatter", X, X > 9, np.zeros(0, F), still=True)
add("fill.Scalar", X, 2.5)
add("fill.Tensor", INTS, np.asarray(3, F))
add("copy", X, R.integers(0, 9, (4, 1)))
for wrapped in (False, True):
    add("fill_diagonal", X[0], 2.5, wrapped)
    add("fill_diagonal", R.integers(0, 9, (11, 3)), 4, wrapped)
add("fill_diagonal", X[:, :3, :3], 0, False)
for name in ("fft_fftshift", "fft_ifftshift"):
    add(name, X, None)
    add(name, X, [2, 0])
for name in ("mH", "adjoint", "resolve_conj", "conj"):
    add(name, X)
    add(name, X > 0)
add("matrix_H", X[0])
# tables and lines
add("tril_indices", 3, 4, 1)
add("triu_indices", 3, 4, -1)
for again in (False, True):
    for many in (1, 2, 3):
        add("combinations", X[0, 0], many, again, throughout=True)
    add("combinations", X[0, 0] > 0, 2, again)
add("combinations", INTS[0], 4, False, still=True)
add("combinations", INTS[0, :1], 2, False)
for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
    add(f"{name}_window", 9)
    add(f"{name}_window.periodic", 8, False)
add("hamming_window.periodic_alpha_beta", 7, True, 0.6, 0.3)
add("kaiser_window.beta", 7, False, 5.0)
add("fft_fftfreq", 7, 0.5)
add("fft_fftfreq", 8, 2.0)
add("fft_rfftfreq", 8, 2.0)
add("logspace", 0.0, 3.0, 5, 2.0)
# places in an order
ELEVEN = np.random.default_rng(7).normal(size=(3, 11)).astype(F)
for name in ("quantile", "nanquantile"):
    for way in ("linear", "lower", "higher", "midpoint", "nearest"):
        least = 11 if way == "nearest" else 9
        add(f"{name}.scalar", GAPS, 0.35, 1, False, way, least=least)
        add(name, GAPS, Q, -1, True, way, least=least)
    add(f"{name}.scalar", X, 0.35, None, True, "linear")
    for share in (0.7, 0.9):  # of which ten times are whole in single precision alone
        add(f"{name}.scalar", ELEVEN, share, 1, False, "lower", least=9)
        add(f"{name}.scalar", ELEVEN, share, 1, False, "higher", least=9)
    add(name, X.astype("d"), Q.astype("d"), None, False, "linear")
add("nanmedian", GAPS)
add("nanmedian.dim", GAPS, 1, False)
add("nanmedian.dim", GAPS, -1, True)
add("mode", INTS)
add("mode", INTS, -1, False)
add("mode", INTS, 0, True)
add("mode", np.round(X), 1, False, least=11)
for dtype in (np.float16, np.int8, np.uint8, np.int32, np.int64, np.bool_):
    ROUND = np.round(np.abs(X)).astype(dtype)
    add("mode", ROUND, 1, dtype == np.int8, least=11)
    if dtype != np.bool_:
        add("nanmedian", ROUND, still=True)
        add("nanmedian.dim", ROUND, -2, True, least=10)
add("nanmedian.dim", GAPS.astype(np.float16), 2, False, least=10)
# sums and norms
add("trapezoid.dx", X, 0.5, 1)
add("trapezoid.x", X, X, 1)
add("trapezoid.x", X, R.normal(size=4).astype(F), 1)
add("cumulative_trapezoid.dx", INTS, 2, -1)
add("cumulative_trapezoid.x", X, R.normal(size=5).astype(F), -1)
for length in (None, 7):
    add("vander", X[0, 0], length, False, still=length is not None)
    add("vander", X[0, 0].astype(np.float64), length, True)
add("linalg_vander", X[0], None)
add("vander", INTS[0], 4, True)
add("linalg_vander", X[0], 3)
for p in (1.0, 2.0, 3.0, float("inf")):
    add("renorm", X, p, 1, 1.5)
add("nanmean", GAPS, [1], True, None)
add("nanmean", GAPS, None, False, None)
add("linalg_vecdot", X, X[0], -1)
add("linalg_vecdot", X, X, 0)
for kind in (np.int64, np.int8, np.uint8):
    WHOLE = R.integers(0, 9, (3, 7)).astype(kind)
    add("cov", WHOLE, 1, None, None, still=True)
    add("cov", WHOLE[0], 0, INTS[1], R.random(7), still=True)
    add("corrcoef", WHOLE, still=True)
add("cov", X[0], 1, None, R.random(5), still=True)
add("cov", X[0], 1, R.integers(1, 4, 5), R.random(5).astype(F), still=True)
for x in (X[0] > 0, X[0] > 9):
    for dim in ([0], None):
        add("sum.dim_IntList", x, dim, False, 11)
    add("prod.dim_int", x, 1, True, 11)
add("sum_to_size", INTS, [1, 1])
add("sum_to_size", INTS.reshape(-1)[:1].reshape(()), [])
add("clamp_max.Tensor", X > 0, X[0] > 0)
add("clamp_min.Tensor", X > 0, X[:, :1] > 0)
# elements
add("isin.Tensor_Tensor", INTS, INTS[0, :2], False, False)
add("isin.Tensor_Tensor", X, X[0], False, True)
add("isin.Tensor_Scalar", INTS, 2, False, False)
add("isin.Scalar_Tensor", 2, INTS, False, False)
add("isreal", X)
add("angle", GAPS)
add("ldexp.Tensor", X, R.integers(-3, 4, (4, 5)))
add("conv_tbc", X, R.normal(size=(2, 5, 3)).astype(F), np.ones(3, F), 1)
HOLDS = X > 0
for beta, alpha in ((1, 1), (False, True), (True, False)):
    add("addr", HOLDS[0], HOLDS[1, :, 0], HOLDS[2, 0], beta, alpha)
add("kron", HOLDS[0], HOLDS[:2, 0])
add("kron", np.asarray(True), np.asarray(False))
# losses
TWO, SIDES = R.normal(size=(2, 5, 4)).astype(F), np.sign(R.normal(size=(5, 4))).astype(F)
NAMES = np.array([[1, 2, -1, 0], [3, -1, 0, 0], [-1, 0, 0, 0], [0, 1, 2, 3], [2, 2, -1, 3]])
LOGS = R.normal(size=(9, 3, 5))
LOGS = (LOGS - np.logaddexp.reduce(LOGS, -1)[..., None]).astype(F)
BARRED = LOGS.copy()
BARRED[2:4, :, 3] = -np.inf
LABELS, STEPS = R.integers(1, 5, (3, 4)), np.array([9, 8, 7])
for kind in (0, 1, 2):
    add("cosine_embedding_loss", *TWO, np.array([1, -1, 1, -1, 0]), 0.1, kind)
    add("margin_ranking_loss", *TWO, SIDES, 0.3, kind)
    add("hinge_embedding_loss", TWO[0], SIDES, 1.0, kind)
    add("soft_margin_loss", TWO[0], SIDES, kind)
    add("poisson_nll_loss", TWO[0], np.abs(TWO[1]) * 4, True, True, 1e-8, kind)
    add("poisson_nll_loss", np.abs(TWO[0]), np.abs(TWO[1]) * 4, False, False, 1e-8, kind)
    for p in (1, 2):
        rest = [p, 0.7, np.arange(4, dtype=F), kind]
        add("multi_margin_loss", TWO[0], np.array([0, 3, 1, 1, 2]), *rest)
    add("multilabel_margin_loss", TWO[0], NAMES, kind)
    rest = [STEPS, np.array([4, 2, 0]), 0, kind, False]
    add("ctc_loss.Tensor", LOGS, LABELS, *rest, throughout=True)
    add("ctc_loss.Tensor", BARRED, LABELS, *rest, throughout=True)
    rest = [np.array([9, 0, 0]), np.array([4, 2, 0]), 0, kind, kind == 1]
    add("ctc_loss.Tensor", LOGS, LABELS, *rest, throughout=True)
    rest = [[9, 8, 2], [3, 2, 1], 0, kind, False]
    add("ctc_loss.IntList", LOGS, LABELS.reshape(-1)[:6], *rest)
    behind = [np.asarray(n) for n in rest[:2]]  # known at run time only
    add("ctc_loss.Tensor", LOGS, LABELS.reshape(-1)[:6], *behind, *rest[2:], throughout=True)
    short = [np.array([[1, 1, 1, 2]] * 3), np.array([3, 3, 3]), np.array([4, 2, 3])]
    add("ctc_loss.Tensor", LOGS[:3], *short, 0, kind, True, throughout=True)
    add("ctc_loss.Tensor", LOGS[:3], *short, 0, kind, False, throughout=True)
    rest = [np.array([1, 0, 0]), np.array(9), np.array(3), 4, kind, False]
    add("ctc_loss.Tensor", LOGS[:, 0], *rest, throughout=True)
add("multi_margin_loss", TWO[0, 0], np.asarray(2), 1, 1, None, 1)
add("multilabel_margin_loss", TWO[0, 0], NAMES[0], 1)
add("cosine_embedding_loss", TWO[0, 0], TWO[1, 0], np.asarray(1), 0.1, 1)
# of integers, as they wrap
for kind in (0, 1, 2):
    for dtype in (np.int64, np.int8, np.uint8):
        WHOLE = (R.normal(size=(2, 5, 4)) * 80).astype(np.int64).astype(dtype)
        SMALL = R.integers(1, 4, (2, 5, 4)).astype(dtype)
        UP = R.choice([1, -1], 5)
        add("cosine_embedding_loss", *WHOLE, UP, 0.1, kind)
        add("margin_ranking_loss", *WHOLE, UP[:, None].astype(dtype), 0.5, kind)
        add("margin_ranking_loss", *WHOLE, UP[:, None], 0.5, kind)  # a difference wraps before
        add("poisson_nll_loss", *SMALL, True, False, 1e-8, kind)
        add("poisson_nll_loss", *SMALL, False, True, 1e-8, kind)
        if kind != 1:
            add("l1_loss", *WHOLE, kind)
    add("cosine_embedding_loss", *(TWO > 0), UP, 0.1, kind)
# steps of a quantised number; halves of steps are among them
EVEN = np.round(X * 8) / 8
add("fake_quantize_per_tensor_affine", EVEN, 0.25, 3, -8, 7)
add("fake_quantize_per_tensor_affine", X, 0.013, -2, -128, 127)
CHANNELS = [np.array([0.25, 0.5, 0.125, 1], F), np.array([0, 1, -1, 2], np.int32)]
add("fake_quantize_per_channel_affine", EVEN, *CHANNELS, 1, -4, 11)
for zero in (3.0, 2.5, 3.5, -2.5, -2.7, -20, 20):
    steps = [np.array([0.1], F), np.array([zero], F)]
    add("_fake_quantize_learnable_per_tensor_affine", X, *steps, -8, 7, 1.0)
    channels = [np.array([v] * EVEN.shape[1], F) for v in (0.1, zero)]
    add("_fake_quantize_learnable_per_channel_affine", EVEN, *channels, 1, -8, 7, 1.0)
# matrices
for order in (1, -1, float("inf"), float("-inf")):
    add("linalg_matrix_norm", X, order, [-2, -1], False, None)
    add("linalg_matrix_norm", X, order, [2, 0], True, None)
    add("linalg_norm", X[0], order, None, False, None)
add("linalg_matrix_norm.str_ord", X, "fro", [0, 1], False, None)
add("linalg_norm.ord_str", X[0], "fro", None, False, None)
FACTORS = R.normal(size=(2, 4, 4)).astype(F) + 3 * np.eye(4, dtype=F)
PIVOTS = np.array([[3, 2, 4, 4], [1, 4, 3, 4]], np.int32)
SIDE = R.normal(size=(2, 4, 3)).astype(F)
add("linalg_lu_solve", FACTORS, PIVOTS, SIDE, True, False, still=True)
add("linalg_lu_solve", FACTORS, PIVOTS, SIDE, True, True, still=True)
add("lu_solve", SIDE[0], FACTORS[0], PIVOTS[0], still=True)
# special functions
FAR = np.concatenate([R.uniform(-60, 60, 40), [0, 1e-9, -3.0, 19.99, 20.01]]).astype(F)
PLACES = np.concatenate([R.uniform(-6, 6, 40), [0, 1, -0.5, 1e-3]]).astype(F)
PLACES = np.where(np.abs(PLACES - np.round(PLACES)) < 0.05, 0.5, PLACES).astype(F)
for name in ("special_bessel_j0", "special_bessel_j1"):
    add(name, FAR)
    add(name, FAR.astype(np.float16), loose=True)
for n in (0, 1, 3):
    add("polygamma", n, np.abs(PLACES))
    add("polygamma", n, PLACES, loose=True)
add("polygamma", 2, np.abs(PLACES).astype("d"))
add("polygamma", 1, np.array([[1, 2], [3, 4]]))
add("mvlgamma", np.abs(PLACES) + 2, 3)
add("mvlgamma", np.abs(PLACES).astype("d") + 2, 1)
add("special_zeta.self_scalar", 2.0, np.abs(PLACES))
add("special_zeta.self_scalar", 4.0, np.abs(PLACES).astype("d"))


add("special_spherical_bessel_j0", np.array([0, 0.3, -2, 40, np.inf, -np.inf], F))
NEAR = np.array([-1, -0.7, -1e-3, 0, 0.2, 0.999, 1, 1.3, -2.5], F)
for shift in ("", "shifted_"):
    for kind in "tuvw":
        for n in (0, 1, 2, 5, 9, -1):
            add(f"special_{shift}chebyshev_polynomial_{kind}.n_scalar", NEAR[1:6], n)
for kind in ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l"):
    for n in (0, 1, 2, 4):
        add(f"special_{kind}.n_scalar", NEAR, n)
for n in (0, 1, 2, 7):
    add("special_legendre_polynomial_p.n_scalar", NEAR[:7].astype("d"), n)
add("linalg_matrix_norm.str_ord", X, "nuc", [0, 1], True, None)
add("nuclear_norm", X[0])
add("nuclear_norm.dim", X, [2, 0], True)
# without samples
NONE = np.zeros((0, 3), F)
add("bilinear", NONE, NONE[:, :2], X[:1, :3, :2], None)
add("bilinear", X[0], X[1, :, :2], X[:2, :2].transpose(0, 2, 1), X[0, 0, :2])
add("pixel_shuffle", NONE[None, None].astype(np.int64), 1)
# axes that may be 1, which dynamic shapes do not say
add("squeeze.dim", X[:, :1], 1)
add("squeeze.dim", X[:1], 1)
add("squeeze.dims", X[:1, :, :1], [0, -1])
add("squeeze.dims", NONE[None, :, :, None], [0, 1, -1], least=14)
add("outer", X[0, 0] > 0, X[0, 1] > 0)
# lines between ends that are computed, in one step too
for steps in (0, 1, 2, 5, 6):
    low, high = np.asarray(-1.5, F), np.asarray(2, F)
    add("linspace.Tensor_Tensor", low, high, steps, None)
    add("linspace.Tensor_Scalar", low, 3.5, steps, None)
    add("logspace.Scalar_Tensor", 0.5, high, steps, 2.0, None)
# before opset 11, which has Unique
TWICE = np.array([[3, 1, 3, 2], [1, -7, 2, 3]])
for inverse, counts in ((True, True), (False, True), (False, False)):
    add("_unique2", TWICE, True, inverse, counts, outputs=1 + inverse + counts if inverse else 1)
add("_unique2", TWICE / 2, True, True, True, outputs=3)
add("_unique2", TWICE > 1, True, True, True, outputs=3)
add("var", np.asarray(2.5, np.float32), False, still=True)
add("_unique2", TWICE[:, :0], True, True, True, outputs=3, still=True, least=11)
# degrees and exponents that are computed, one for each element
DEGREES = np.array([[0], [1], [2], [5], [7], [-1]])
for name in ("t", "u", "v", "w"):
    add(f"special_chebyshev_polynomial_{name}", NEAR[1:6], DEGREES)
    add(f"special_shifted_chebyshev_polynomial_{name}", NEAR[1:6].astype("d"), DEGREES + 0.7)
for name in ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l"):
    add(f"special_{name}", NEAR, DEGREES.astype(F))
add("special_legendre_polynomial_p", NEAR[:7].astype("d"), DEGREES)
add("special_legendre_polynomial_p", np.asarray(0.3, F), np.asarray(4, F))
add("special_hermite_polynomial_he", NEAR[:0], DEGREES[:, :0])
add("special_legendre_polynomial_p.n_scalar", NEAR[:7].astype("d"), 70)
EXPONENTS = np.array([[1.5], [2], [3], [7.25], [1], [0.5]])
AT = np.array([0.1, 1, 2.75, 30, 0, -3, np.nan])
add("special_zeta", EXPONENTS, AT)
add("special_zeta", EXPONENTS.astype(F), AT.astype(F))
add("special_zeta", np.array([[2.0], [3], [6]]), np.array([-0.5, -7.25]))
add("special_zeta.self_scalar", 2.5, AT.astype(F))
add("special_zeta.other_scalar", EXPONENTS.astype(F), 1.5)
add("polygamma", 5, AT[:-1].astype(F))
add("polygamma", 6, np.array([-0.5, -2.5, 3]))
# integers and their divisors
COUNTS = np.array([[0, 12, -18, 35], [7, 0, 2**31 - 1, -100]], np.int64)
FIBONACCI = np.array([[0, 89, 27, -14], [5, 0, 1134903170, 75]], np.int64)
INT32_MAX = 2**31 - 1  # products of two such wrap in 32 bits
for dtype in (np.int64, np.int32):
    add("gcd", COUNTS.astype(dtype), FIBONACCI.astype(dtype))
    add("lcm", np.array([INT32_MAX - 1, -(2**30)], dtype), np.array([INT32_MAX - 4, 77777], dtype))
    add("lcm", (COUNTS % 999).astype(dtype), (FIBONACCI % 997).astype(dtype))
add("gcd", np.array([144, 89, 200], np.uint8), np.array([89, 144, 0], np.uint8))
add("gcd", np.array([4181, -6765], np.int64), np.array([6765, -4181], np.int64))
# what falls on one place, before runtimes combined it
HERE = np.array([[2, 0, 2, 1, 2], [2, 2, 0, 1, 1], [0, 0, 0, 0, 3]])
for x in (X, INTS.reshape(3, 7)[:, :5], X > 0, X.astype(np.float16)):
    AT = x[:, 0] if x.ndim == 3 else x
    for kind in ("sum", "prod", "amax", "amin"):
        rest = [kind, kind != "amin"]
        add("scatter_reduce.two", AT, 1, HERE, AT[::-1].copy(), *rest, throughout=True, loose=True)
    add("scatter_add", AT, 1, HERE[:2, :3], AT, throughout=True, loose=True)
    NONE = np.zeros((3, 0), np.int64)
    add("scatter_add", AT, 1, NONE, AT[:, :0], throughout=True, loose=True)
for own in (True, False):
    add("scatter_reduce.two", X[:, 0], 1, HERE, X[:, 1], "mean", own, throughout=True)
    add("scatter_reduce.two", INTS - 2, 1, HERE, INTS[::-1], "mean", own, throughout=True)
    for kind in ("prod", "mean", "amax", "amin"):
        ROWS = np.array([2, 0, 2, 2])
        add("index_reduce", X, 1, ROWS, R.normal(size=(3, 4, 5)).astype(F), kind, own,
            throughout=True)  # fmt: skip
add("index_add", X, 1, np.array([2, 0, 2, 2]), X[:, ::-1], 3, throughout=True)
add("index_add", X, 1, np.zeros(0, np.int64), X[:, :0], 1, throughout=True)
add("index_put", X[0], [np.array([0, 0, 2]), np.array([1, 1, 2])], Q, True, throughout=True)
add("put", X[0], np.array([5, 5, -1]), Q, True, throughout=True)
add("sort", INTS, 1, True, throughout=True)
for down in (False, True):
    for x in (X, X.astype(np.float16), np.round(X).astype("d"), np.where(X > 1, np.inf, -X)):
        add("sort.stable", x, True, 1, down, throughout=True)
add("argsort", INTS > 1, 0, False, throughout=True)
add("median.dim", X, 1, False, throughout=True, outputs=1)
add("kthvalue", X, 2, 1, True, throughout=True)
add("slice.Tensor", X, 1, 1, -1, 2, throughout=True)
# whole lines on one
for kind in ("prod", "mean", "amax", "amin"):
    for own in (True, False):
        ROWS = np.array([2, 0, 2, 2, 0])
        add("index_reduce", X, 1, ROWS, R.normal(size=(3, 5, 5)).astype(F), kind, own)
