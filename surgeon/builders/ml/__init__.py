"""Builders of the recipe `ml-forms`: operators of `ai.onnx.ml` as those of ONNX.

What they compute is told by ONNX's `Operators-ml.md`, and onnxruntime, which has all of them, is
their witness: it runs the file as it came.
"""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.ml.columns import (
    array_feature_extractor,
    binarizer,
    feature_vectorizer,
    imputer,
    normalizer,
    scaler,
)
from surgeon.builders.ml.labels import (
    label_encoder,
    one_hot_encoder,
    one_hot_encoder_of_any,
    zip_map,
)
from surgeon.builders.ml.linear import linear_classifier, linear_regressor
from surgeon.builders.ml.refused import refused
from surgeon.builders.ml.trees import tree_classifier, tree_regressor

TABLE: Mapping[str, Callable[..., Any]] = {
    "ml_array_feature_extractor": array_feature_extractor,
    "ml_binarizer": binarizer,
    "ml_feature_vectorizer": feature_vectorizer,
    "ml_imputer": imputer,
    "ml_label_encoder": label_encoder,
    "ml_linear_classifier": linear_classifier,
    "ml_linear_regressor": linear_regressor,
    "ml_normalizer": normalizer,
    "ml_one_hot_encoder": one_hot_encoder,
    "ml_one_hot_encoder_of_any": one_hot_encoder_of_any,
    "ml_refused": refused,
    "ml_scaler": scaler,
    "ml_tree_classifier": tree_classifier,
    "ml_tree_regressor": tree_regressor,
    "ml_zip_map": zip_map,
}
