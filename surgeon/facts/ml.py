"""Outputs of the operators of `ai.onnx.ml`: classifiers, regressors and what stands before them.

The documents are ONNX's `Operators-ml.md`. How many scores a classifier gives is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import onnx

from surgeon.facts.fact import Fact
from surgeon.facts.question import Question

DOMAIN = "ai.onnx.ml"
_FLOAT, _INT64, _STRING = (
    int(kind) for kind in (onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.STRING)
)
_LABELS = {
    "classlabels_ints": _INT64,
    "classlabels_int64s": _INT64,
    "classlabels_strings": _STRING,
}
_MAPPED = {"values_floats": _FLOAT, "values_int64s": _INT64, "values_strings": _STRING}


def _said(question: Question, kinds: Mapping[str, int]) -> int:
    """The dtype of the one list that is given; 0 where several are, or none."""
    found = [kind for name, kind in kinds.items() if question.attributes.get(name)]
    return found[0] if len(found) == 1 else 0


def _classified(question: Question) -> list[Fact]:
    return [Fact(_said(question, _LABELS)), Fact(_FLOAT)]


def _floats(question: Question) -> list[Fact]:
    return [Fact(_FLOAT)]


def _floats_as_they_stood(question: Question) -> list[Fact]:
    return [Fact(_FLOAT, question.shape(0))]


def _of_the_same_type(question: Question) -> list[Fact]:
    source = question.inputs[0]
    return [Fact(source.dtype if source is not None else 0)]


def _mapped(question: Question) -> list[Fact]:
    return [Fact(_said(question, _MAPPED), question.shape(0))]


TABLE: Mapping[str, Callable[[Question], list[Fact] | None]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"), _classified
        ),
        **dict.fromkeys(
            ("LinearRegressor", "SVMRegressor", "TreeEnsembleRegressor", "FeatureVectorizer"),
            _floats,
        ),
        **dict.fromkeys(("Scaler", "Normalizer"), _floats_as_they_stood),
        **dict.fromkeys(("ArrayFeatureExtractor", "Binarizer", "Imputer"), _of_the_same_type),
        "LabelEncoder": _mapped,
    }
)
