"""Lowered losses, by every reduction."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from aten_call import call, check, check_all
from aten_operands import UNIT, X, Y, floats, integers

import surgeon

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_losses(reduction: int) -> None:
    target = integers("i8", 2, low=0, high=2)
    ignored = np.array([2, -100])
    weight = np.array([1, 2, 3], np.float32)
    share = np.abs(np.tanh(Y)).astype(np.float32)
    check_all(
        [
            *(
                call(name, X, Y, reduction, tolerance=1e-4)
                for name in ("mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss")
            ),
            call("smooth_l1_loss", X, Y, reduction, 0.3, tolerance=1e-4),
            call("huber_loss", X, Y, reduction, 0.3, tolerance=1e-4),
            call("kl_div", X, share, reduction, False, tolerance=1e-4),
            call("kl_div", X, Y, reduction, True, tolerance=1e-4),
            call("binary_cross_entropy", UNIT, share, None, reduction, tolerance=1e-4),
            call(
                "binary_cross_entropy_with_logits",
                X,
                share,
                None,
                np.array([1, 2, 3, 0.5], np.float32),
                reduction,
                tolerance=1e-4,
            ),
            call("nll_loss_nd", floats("f4", 2, 3), target, None, reduction, -100),
            call("nll_loss", floats("f4", 2, 3), ignored, weight, reduction, -100),
            call("nll_loss_nd", floats("f4", 2, 3), ignored, weight, reduction, -100),
            call("nll_loss_nd", X, integers("i8", 2, 4, low=0, high=2), weight, reduction, 1),
            *(
                call("cross_entropy_loss", X, named, scale, reduction, ignore, smooth)
                for smooth in (0.0, 0.2)
                for scale in (None, weight)
                for named, ignore in (
                    (integers("i8", 2, 4, low=0, high=2), -100),
                    (integers("i8", 2, 4, low=0, high=2), 1),
                    (share, -100),
                )
            ),
            call("cross_entropy_loss", floats("f4", 2, 3), ignored, weight, reduction, -100, 0.1),
            call("triplet_margin_loss", X, Y, UNIT, 1.0, 2.0, 1e-6, True, reduction),
        ]
    )


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_targets_of_any_dtype(reduction: int) -> None:
    """-1 is 255 of unsigned ones, and what PyTorch writes a loss into says of what dtype it is."""
    a, b = floats("f4", 3, 4), floats("f4", 3, 4)
    calls = []
    for dtype in ("u1", "i1", "i8", "f8", "b1"):
        rows = np.array([255 if dtype == "u1" else -1, 1, 0]).astype(dtype)
        cells = np.resize(rows, (3, 4))
        calls += [
            call("cosine_embedding_loss", a, b, rows, 0.1, reduction),
            call("hinge_embedding_loss", a, cells, 1.0, reduction),
            call(
                "soft_margin_loss",
                a,
                np.minimum(cells, np.ones((), dtype)),
                reduction,
                tolerance=1e-4,
            ),
            call("poisson_nll_loss", a, cells, True, False, 1e-8, reduction, tolerance=1e-4),
        ]
        if dtype != "b1":
            calls.append(call("margin_ranking_loss", a, b, cells, 0.1, reduction))
            calls.append(call("huber_loss", a, cells, reduction, 0.7, tolerance=1e-4))
    for kind in (np.float16, np.float64):
        shares = np.abs(np.tanh(b)).astype(kind)
        rest = [None, None, reduction]
        loose = 4e-3 if kind == np.float16 else 1e-4
        calls.append(call("binary_cross_entropy_with_logits", a, shares, *rest, tolerance=loose))
    check_all(calls)
    check("soft_margin_loss", a.astype(np.float16), b, reduction, tolerance=8e-3)


def test_shares_that_are_too_large_for_a_number_are_no_fault_of_the_loss() -> None:
    """Of large logarithms one place is infinity, another minus infinity: their sum is no number."""
    text = """<ir_version: 7, opset_import: ["": 12, "org.pytorch.aten": 1]>
      g (float[b,t] x, float[b,t] z) => (float y)
        <int64 one = {1}, int64 mean = {1}, int64 yes = {1}> {
        p = org.pytorch.aten.log_softmax (x, one, )
        q = org.pytorch.aten.log_softmax (z, one, )
        y = org.pytorch.aten.kl_div (p, q, mean, yes)
      }"""
    verdict = surgeon.apply(onnx.parser.parse_model(text), "aten").report.verdict
    assert verdict is not None
    assert verdict.status == "equivalent"


def test_targets_that_are_neither_side_cancel_as_pytorch_rounds() -> None:
    """x + (margin - x) is the margin, of which a large x leaves few digits, in PyTorch's too."""
    text = """<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
      g (float[n,4] x, float[n,4] side) => (float y) <double margin = {0.7}, int64 mean = {1}> {
        y = org.pytorch.aten.ATen <operator = "hinge_embedding_loss"> (x, side, margin, mean)
      }"""
    verdict = surgeon.apply(onnx.parser.parse_model(text), "aten").report.verdict
    assert verdict is not None
    assert verdict.status == "equivalent"
