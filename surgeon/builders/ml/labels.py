"""Labels and categories that are numbers, and the scores of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench
from surgeon.builders.ml.columns import computed_in, listed
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

TYPE = onnx.TensorProto
_KINDS = {"int64s": np.int64, "floats": np.float32}
_WIDEST = 1 << 12  # keys that are compared with every element


def label_encoder(draft: Draft, match: Match) -> gs.Tensor:
    """`LabelEncoder (x)`: what stands beside the key that each element is, or a default."""
    bench, node = Bench(draft), match.root
    keys, _ = _numbers(node, "keys")
    values, kind = _numbers(node, "values")
    if kind == np.int64:
        default = node.attrs.get("default_int64", -1)
    else:
        default = node.attrs.get("default_float", -0.0)
    if keys.size != values.size:
        raise Refused("it does not have as many values as keys")
    if keys.size > _WIDEST:
        raise Refused(f"it has {keys.size} keys, each of which would be compared")
    if np.isnan(keys.astype(np.float64)).any():
        raise Refused("NaN is one of its keys, and is equal to nothing")
    x = node.inputs[0]
    if bench.dtype(x) != onnx.helper.np_dtype_to_tensor_dtype(keys.dtype):
        raise Refused("its keys are not of its input's dtype")
    _, first = np.unique(keys, return_index=True)  # of keys that come twice the first counts
    keys, values = keys[np.sort(first)], values[np.sort(first)]
    rank = bench.rank(x)
    same = bench.op("Equal", bench.unsqueeze(x, [rank]), draft.constant(keys, "keys"))
    numbered = bench.ints(range(1, keys.size + 1), "places")
    place = bench.where(same, numbered, bench.number(0, TYPE.INT64))
    place = bench.op("ReduceMax", place, bench.ints([rank], "axes"), keepdims=0)
    table = np.concatenate([np.asarray([default], kind), values])
    made: gs.Tensor = bench.op("Gather", draft.constant(table, "values"), place, axis=0)
    return made


def one_hot_encoder(draft: Draft, match: Match) -> gs.Tensor:
    """`OneHotEncoder (x)`, where what is of no category is all zeros."""
    if not match.root.attrs.get("zeros", 1):
        raise Refused("with `zeros = 0` it fails at other categories")
    return one_hot_encoder_of_any(draft, match)


def one_hot_encoder_of_any(draft: Draft, match: Match) -> gs.Tensor:
    """`OneHotEncoder (x)`: 1 for the category that each element is, on an axis behind."""
    bench, node = Bench(draft), match.root
    if node.attrs.get("cats_strings"):
        raise Refused("its categories are strings, which stay outside of a network")
    x = node.inputs[0]
    computed_in(bench, x)
    categories = listed(node, "cats_int64s", np.int64)
    if not categories.size or np.unique(categories).size != categories.size:
        raise Refused("its categories are none, or one comes twice")
    column = bench.unsqueeze(bench.cast(x, TYPE.INT64), [bench.rank(x)])
    same = bench.op("Equal", column, draft.constant(categories, "categories"))
    return bench.cast(same, TYPE.FLOAT)


def zip_map(draft: Draft, match: Match) -> gs.Tensor:
    """`ZipMap (scores)`: the scores themselves, where labels stand in order."""
    bench, node = Bench(draft), match.root
    strings = [
        t.decode() if isinstance(t, bytes) else t for t in node.attrs.get("classlabels_strings", ())
    ]
    labels = strings or listed(node, "classlabels_int64s", np.int64).tolist()
    if labels != sorted(set(labels)):
        raise Refused("its labels are not in order, and a table does not say whose a column is")
    scores = node.inputs[0]
    if bench.dtype(scores) != TYPE.FLOAT or bench.rank(scores) != 2:
        raise Refused("it is not of rows of scores")
    made: gs.Tensor = bench.op("Identity", scores)
    return made


def chosen_label(bench: Bench, node: gs.Node, place: gs.Tensor, dtype: int) -> gs.Tensor:
    """The label at a place, of `dtype`: the place itself where labels count from 0."""
    strings = node.attrs.get("classlabels_strings", ())
    numbers = listed(node, "classlabels_int64s", np.int64)
    if not numbers.size:
        numbers = listed(node, "classlabels_ints", np.int64)
    if len(strings):
        texts = [t.decode() if isinstance(t, bytes) else t for t in strings]
        labels: npt.NDArray[Any] = np.asarray(texts, object)
    elif np.array_equal(numbers, np.arange(numbers.size)):
        return bench.cast(place, dtype)
    else:
        labels = numbers
    made: gs.Tensor = bench.op("Gather", bench.draft.constant(labels, "labels"), place, axis=0)
    return made


def count_of_labels(node: gs.Node) -> int:
    """How many classes a classifier tells apart."""
    found = (
        len(node.attrs.get(key, ()))
        for key in ("classlabels_strings", "classlabels_int64s", "classlabels_ints")
    )
    return max(found)


def targets_of(node: gs.Node, key: str) -> int:
    """How many numbers a regressor gives for a row.

    Raises:
        Refused: It gives one, transformed, of which ONNX and onnxruntime say two things.
    """
    targets = int(node.attrs.get(key, 1))
    if targets == 1 and str(node.attrs.get("post_transform", "NONE")) != "NONE":
        raise Refused("it transforms one target, which onnxruntime leaves as it is")
    return targets


def transformed(bench: Bench, node: gs.Node, scores: gs.Tensor) -> gs.Tensor:
    """What `post_transform` makes of scores, a column for each class or target."""
    name = str(node.attrs.get("post_transform", "NONE"))
    if name == "NONE":
        return scores
    if name == "LOGISTIC":
        made: gs.Tensor = bench.op("Sigmoid", scores)
    elif name == "SOFTMAX":
        made = bench.op("Softmax", scores, axis=1)
    else:
        raise Refused(f"nothing is written for the transform {name!r}")
    return made


def _numbers(node: gs.Node, side: str) -> tuple[npt.NDArray[Any], Any]:
    """Keys or values of a LabelEncoder, and their dtype."""
    for ending, kind in _KINDS.items():
        if f"{side}_{ending}" in node.attrs:
            return listed(node, f"{side}_{ending}", kind), kind
    if f"{side}_tensor" in node.attrs:
        raise Refused(f"its {side} are a tensor, for which nothing is written")
    raise Refused(f"its {side} are strings, which stay outside of a network")
