"""Lowered activations: those with arguments, and softmax over any axis."""

from __future__ import annotations

import numpy as np
import pytest
from aten_call import OPSETS, call, check, check_all
from aten_operands import EDGED, INTS, UNIT, X

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead


@pytest.mark.parametrize("operator", ["softmax", "log_softmax"])
def test_softmax(operator: str) -> None:
    calls = [call(operator, x, d, None) for x in (X, X.astype("f8")) for d in (0, 1, -1)]
    check_all([*calls, call(operator, INTS, 1, np.float32)])


def test_activations_with_arguments() -> None:
    check_all(
        [
            call(*arguments)
            for arguments in (
                ("threshold", EDGED, 0.3, 20.0),
                ("elu", EDGED, 1.5, 2.0, 3.0),
                ("softplus", EDGED, 2, 1),
                ("hardtanh", EDGED, -0.5, 0.5),
                ("gelu", X, "tanh"),
                ("gelu", X, "none"),
                ("celu", X, 2.0),
                ("leaky_relu", X, 0.3),
                ("prelu", X, np.array([0.1, 0.2, 0.3], np.float32)),
                ("prelu", X, np.array([0.1], np.float32)),
                ("prelu", X.astype("f8"), np.array([0.1])),
                ("glu", X, -1),
                ("glu", X, 0),
                ("rrelu", X, 0.1, 0.3, False, None),
                ("logit", UNIT, 0.1),
                ("logit", np.array([0, 1e-9, 0.5, 0.9999999, 1], np.float32), 1e-6),
                ("logit", UNIT, None),
            )
        ]
    )
    for opset in OPSETS:
        check("gelu", X, "tanh", opset=opset)
        check("glu", X, -1, opset=opset, dynamic=True)
