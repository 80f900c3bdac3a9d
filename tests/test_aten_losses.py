"""Lowered losses, by every reduction."""

from __future__ import annotations

import numpy as np
import pytest
from aten_call import call, check_all
from aten_operands import UNIT, X, Y, floats, integers

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
