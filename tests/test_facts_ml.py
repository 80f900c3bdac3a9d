"""What is told of the operators of `ai.onnx.ml` is what onnxruntime gives."""

from __future__ import annotations

import numpy as np
import pytest
from truth import fact_of, hold, parse

FEEDS = {"x": np.array([[1.5, -2.0], [0.25, 3.0], [0.0, 1.0]], np.float32)}
LINEAR = (
    "coefficients = [0.5, 1.0, -1.0, 2.0], intercepts = [0.5, 0.25], "
    'multi_class = 1, post_transform = "SOFTMAX"'
)
ENCODER = "ai.onnx.ml.LabelEncoder <keys_floats = [0.0]"


@pytest.mark.parametrize(
    ("body", "kind", "shape"),
    [
        (f"y, s = ai.onnx.ml.LinearClassifier <classlabels_ints = [3, 5], {LINEAR}> (x)", 7, None),
        (
            f'y, s = ai.onnx.ml.LinearClassifier <classlabels_strings = ["a", "b"], {LINEAR}> (x)',
            8,
            None,
        ),
        (f"l, y = ai.onnx.ml.LinearClassifier <classlabels_ints = [3, 5], {LINEAR}> (x)", 1, None),
        ("y = ai.onnx.ml.LinearRegressor <coefficients = [0.5, 1.0], targets = 1> (x)", 1, None),
        ("y = ai.onnx.ml.Scaler <offset = [1.0], scale = [2.0]> (x)", 1, "(n, 2)"),
        ('y = ai.onnx.ml.Normalizer <norm = "L1"> (x)', 1, "(n, 2)"),
        ("y = ai.onnx.ml.Binarizer <threshold = 0.5> (x)", 1, None),
        (f"y = {ENCODER}, values_int64s = [4], default_int64 = 9> (x)", 7, "(n, 2)"),
        (f"y = {ENCODER}> (x)", 0, "(n, 2)"),
    ],
)
def test_types_and_sizes(body: str, kind: int, shape: str | None) -> None:
    proto = parse(f"g (float[n,2] x) => (y) {{ {body} }}", domains=', "ai.onnx.ml": 3')
    found = fact_of(proto, "y")
    assert found.dtype == kind
    assert (None if found.shape is None else str(found.shape)) == shape
    if kind:
        assert hold(proto, [FEEDS]).wrong == []
