"""Calls of products, distances and counts."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
from aten_shape_values import KINDS, Calls, f, ix
from packaging.version import Version

PRODUCTS = Calls()
add = PRODUCTS.add

# products
for kind in (np.float32, np.float64, np.int64, np.int32):
    add("matmul", f(2, 3, dtype=kind), f(3, 4, dtype=kind))
    add("addmm", f(4, dtype=kind), f(2, 3, dtype=kind), f(3, 4, dtype=kind), 2, 3)
    add("einsum", "ij,jk->ki", [f(2, 3, dtype=kind), f(3, 4, dtype=kind)])
add("matmul", f(3), f(3))
add("matmul", f(2, 2, 3), f(3))
add("matmul", f(2, 1, 2, 3), f(4, 3, 2))
add("matmul", f(2, 0), f(0, 3))
add("mm", f(2, 3, dtype=np.int8), f(3, 2, dtype=np.int8))
add("bmm", f(2, 2, 3), f(2, 3, 4))
add("mv", f(2, 3), f(3))
add("dot", f(3), f(3))
add("outer", f(3), f(2))
add("ger", f(3), f(2))
add("inner", f(2, 3), f(4, 3))
add("addmm", f(2, 4), f(2, 3), f(3, 4))
add("addmm", f(4), f(2, 3), f(3, 4))
add("addmm", np.full((2, 4), np.nan, np.float32), f(2, 3), f(3, 4), 0, 1)
add("addmv", f(2), f(2, 3), f(3), 2.0, 0.5)
add("baddbmm", f(2, 2, 4), f(2, 2, 3), f(2, 3, 4), 1, 1)
add("addbmm", f(2, 4), f(2, 2, 3), f(2, 3, 4), 0.5, 2)
add("addr", f(2, 4), f(2), f(4), 1, 1)
add("addr", f(2, 4, dtype=np.int64), f(2), f(4), 2, 1.5)
add("addr", f(2, 4, dtype=np.int32), f(2, dtype=np.int64), f(4, dtype=np.int64), 2, 1)
add("linear", f(2, 3), f(4, 3), f(4))
add("linear", f(5, 2, 3), f(4, 3), None)
add("chain_matmul", [f(2, 3), f(3, 4), f(4, 2)])
add("chain_matmul", [f(9, 3), f(3, 9), f(9, 1)])
add("linalg_multi_dot", [f(2, 3), f(3, 4)])
for kind in ("i1", "i4"):  # an operand summed by itself gives int64
    one, other, single = f(2, 3, dtype=kind), f(4, 3, dtype=kind), f(1, 1, dtype=kind)
    add("einsum", "ij->i", [one])
    for equation in ("ij,kl->kl", "ij,kj->kj", "i...,j...->j..."):
        add("einsum", equation, [one, other], still=True)
    add("einsum", "ij,kl->kl", [single, other], still=True)
    add("einsum", "ij,jk->ik", [f(2, 1, dtype=kind), f(3, 4, dtype=kind)], still=True)
add("einsum", "ij->ji", [f(2, 3)], None)
add("einsum", "ii->i", [f(3, 3)], still=True)
add("einsum", "ii", [f(3, 3)], still=True)
add("einsum", "ij,kj->", [f(2, 3), f(4, 3)])
add("einsum", "bij, bjk -> bik", [f(2, 2, 3), f(2, 3, 4)])
add("einsum", "...ij,...jk->...ik", [f(2, 1, 2, 3), f(2, 3, 4)], still=True)
add("einsum", "...i,...i->i", [f(2, 3, 4), f(2, 3, 4)])
add("einsum", "a...i,...ij->ja", [f(5, 2, 3, 4), f(3, 4, 2)], still=True)
add("einsum", "...->", [f(2, 3)])
add("einsum", "bhid,bhjd", [f(2, 2, 3, 4), f(2, 2, 5, 4)])
add("einsum", "i,j->ij", [f(3), f(2)])
add("einsum", "ab,bc,cd->ad", [f(2, 3), f(3, 4), f(4, 2)])
add("tensordot", f(2, 3, 4), f(4, 3, 5), [1, 2], [1, 0])
add("tensordot", f(2, 3), f(2, 3), [0, -1], [0, -1])
add("tensordot", f(2), f(3), [], [])
add("tensordot", f(3, 4, 1), f(3, 2), [-1], [0])  # an axis of one goes with any
add("tensordot", f(3, 4), f(1, 2, 4), [0, 1], [0, 2])
add("bilinear", f(2, 3), f(2, 4), f(5, 3, 4), f(5))
add("bilinear", f(2, 2, 3), f(2, 2, 4), f(5, 3, 4), None)
add("cross", f(2, 3), f(2, 3), None, still=True)
add("cross", f(3, 2), f(3, 2), 0)
add("linalg_cross", f(2, 3), f(1, 3), -1)
for p in (0.0, 1.0, 2.0, 3.0, float("inf")):
    add("cdist", f(2, 4, 3), f(2, 5, 3), p, None)
    for operator in ("pdist", "_pdist_forward"):
        add(operator, f(4, 3), p)
    add("_cdist_forward", f(2, 4, 3), f(2, 5, 3), p, None)
add("pdist", f(1, 3), 2.0, still=True)
nans = np.asarray([[np.nan, 1, 2], [3, 4, 5], [np.inf, 1, 1]], np.float32)
for kind in (np.float32, np.float64):
    add("pdist", nans.astype(kind), 0.0)
    add("pdist", nans.astype(kind), float("inf"))
    add("cdist", nans.astype(kind), nans[::-1].astype(kind), 0.0, None)
# of no elements, over which onnxruntime before 1.30 reduces nothing
for p in (0.0, 2.0, float("inf")) if Version(ort.__version__) >= Version("1.30") else ():
    add("pdist", f(3, 0), p)
    add("cdist", f(2, 0), f(3, 0), p, None)
add("_euclidean_dist", f(2, 4, 3), f(2, 5, 3))
for correction in (0, 1, 2):
    add("cov", f(3, 7), correction, None, None, still=True)
    shares = np.linspace(0.2, 1, 7, dtype=np.float32)
    add("cov", f(3, 7), correction, np.arange(1, 8), shares, still=True)
add("cov", f(7), 1, None, None)
add("cov", f(3, 4, dtype=np.float64), 1, None, np.asarray([0.5, 1, 2, 0.25]), still=True)
add("corrcoef", f(3, 7), still=True)
add("corrcoef", f(7))
# counting
for kind in (np.int64, np.int32, np.uint8):
    add("bincount", ix([3, 1, 1, 5], dtype=kind), None, 0)
    add("bincount", ix([3, 1, 1, 5], dtype=kind), f(4), 2)
add("bincount", ix([3, 1, 1]), None, 9)
for kind in (np.float32, np.float64, np.int64):
    add("bincount", ix([]), np.zeros(0, kind), 3, still=True)
add("bincount", ix([3, 1, 1]), f(3, dtype=np.float64), 0)
add("bincount", ix([3, 1, 1]), ix([3, 1, 1]), 0)
for kind in (np.float32, np.float64, np.float16):
    line = np.asarray([-1.3, 0.2, 0.21, 2.6, 1.9, 0.7, -0.1, 3.0], kind)
    few = {"still": kind == np.float16}  # of halves it has to be known how many there are
    add("histc", line.reshape(2, 4), 5, 0, 0, **few)
    add("histc", line, 4, -1, 3, **few)
    add("histc", line, 7, -0.5, 0.75, **few)
    add("histc", line, np.asarray(7), -0.5, 0.75, **few)
    add("histc", line, np.asarray(1), 0, 0, **few)
    add("histc", line, 11, -1.3, 2.1, **few)
    add("histc", np.ones(3, kind), 3, 0, 0, **few)
steps = np.asarray([-2, 0, 0, 1.5, 4], np.float32)
asked = np.asarray([[-3, -2, 0, 1], [1.5, 3, 4, 5]], np.float32)
for right in (False, True):
    for small in (False, True):
        add("searchsorted.Tensor", steps, asked, small, right, None, None)
        add("bucketize.Tensor", asked, steps, small, right)
    add("searchsorted.Tensor", np.stack([steps, steps * 2]), asked, False, right, None, None)
    add("searchsorted.Tensor", steps[::-1].copy(), asked, False, right, None, ix([4, 3, 2, 1, 0]),
        least=11)  # fmt: skip
    add("bucketize.Tensor", ix([0, 3, 9]), ix([1, 3, 3, 7]), False, right)
    nothing = np.asarray([np.nan, 1], np.float32)
    add("searchsorted.Tensor", steps, nothing, False, right, None, None)
add("searchsorted.Tensor", steps, asked, False, False, "right", None)
add("bucketize.Scalar", 2.0, steps.astype(np.float64), False, False)
for kind in KINDS:
    add("diff", f(2, 4, dtype=kind), 1, -1, None, None)
    add("diff", f(4, 3, dtype=kind), 2, 0, f(1, 3, dtype=kind), f(2, 3, dtype=kind))
    add("diff", f(4, 3, dtype=kind), 0, 0, f(1, 3, dtype=kind), None)
add("hsplit.int", f(6), 3)
add("hsplit.int", f(2, 6), 2)
add("hsplit.array", f(2, 7), [1, 4])
add("vsplit.int", f(6, 2), 3)
add("dsplit.array", f(2, 3, 5), [2])
add("cartesian_prod", [f(2), f(3)])
add("cartesian_prod", [f(2)])
