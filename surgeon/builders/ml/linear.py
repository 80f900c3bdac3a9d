"""Linear models."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import Bench
from surgeon.builders.ml.columns import computed_in, listed, plane
from surgeon.builders.ml.labels import chosen_label, count_of_labels, targets_of, transformed
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

TYPE = onnx.TensorProto


def linear_regressor(draft: Draft, match: Match) -> gs.Tensor:
    """`LinearRegressor (x)`: a product and a summand."""
    bench, node = Bench(draft), match.root
    targets = targets_of(node, "targets")
    return transformed(bench, node, _product(bench, node, targets))


def linear_classifier(draft: Draft, match: Match) -> tuple[gs.Tensor, gs.Tensor]:
    """`LinearClassifier (x)`: the label of the largest score, and the scores."""
    bench, node = Bench(draft), match.root
    classes = count_of_labels(node)
    if classes < 2 or listed(node, "intercepts").size not in (0, classes):
        raise Refused("it does not have a score for each of its classes")
    scores = _product(bench, node, classes)
    place = bench.op("ArgMax", scores, axis=1, keepdims=0)
    return chosen_label(bench, node, place, TYPE.INT64), transformed(bench, node, scores)


def _product(bench: Bench, node: gs.Node, columns: int) -> gs.Tensor:
    x = plane(bench, node.inputs[0])
    if computed_in(bench, x) != TYPE.FLOAT:
        raise Refused("its input is in double precision, in which kernels differ")
    weights, shift = listed(node, "coefficients"), listed(node, "intercepts")
    if weights.size % columns or shift.size not in (0, columns):
        raise Refused(f"its coefficients are not those of {columns} columns")
    shape = bench.shape(x)
    if not shape or dims.equal(shape[1], weights.size // columns) is not True:
        raise Refused(f"it is not known that `{x.name}` has {weights.size // columns} columns")
    if not shift.size:
        shift = np.zeros(columns, np.float32)
    weight = np.ascontiguousarray(weights.reshape(columns, -1).T)
    made: gs.Tensor = bench.op(
        "Gemm",
        bench.cast(x, TYPE.FLOAT),
        bench.draft.constant(weight, "coefficients"),
        bench.draft.constant(shift, "intercepts"),
    )
    return made
