"""Trees: all of them are walked at once, a level at a time, from their roots to their leaves.

Nodes of all trees stand in one list, the two children of each side by side, so that a step is the
place of the first child and 0 or 1. A leaf is its own child, and stands twice, so that whatever a
comparison says leads to the same weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import Bench
from surgeon.builders.ml.columns import computed_in, listed, plane
from surgeon.builders.ml.labels import chosen_label, count_of_labels, targets_of, transformed
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

Array = npt.NDArray[Any]
TYPE = onnx.TensorProto
_DEEPEST = 64  # levels, each of which is seven nodes
_REDUCED = {"SUM": "ReduceSum", "AVERAGE": "ReduceSum", "MIN": "ReduceMin", "MAX": "ReduceMax"}
# By mode: what holds where the first of two children is *not* taken, of numbers and of NaN alike,
# and whether the first is the one on the side of truth; without and with NaN on that side.
# Nodes that differ in that are brought to one comparison by `_TURNED`.
_STEPS: Mapping[str, tuple[tuple[str, bool], tuple[str, bool]]] = {
    "BRANCH_LEQ": (("LessOrEqual", False), ("Greater", True)),
    "BRANCH_LT": (("Less", False), ("GreaterOrEqual", True)),
    "BRANCH_GT": (("Greater", False), ("LessOrEqual", True)),
    "BRANCH_GTE": (("GreaterOrEqual", False), ("Less", True)),
}

_TURNED = {"LessOrEqual": "Greater", "Less": "GreaterOrEqual"}


class _Node(NamedTuple):
    feature: int
    threshold: float
    mode: str
    true: tuple[int, int]
    false: tuple[int, int]
    missing: bool


@dataclass
class _Forest:
    """Nodes of all trees in one list.

    Attributes:
        first: The place of the first child of each; a leaf's own.
        feature: The column that each compares.
        threshold: With what.
        relation: By what, as an operator.
        filled: Whether it reads the column in which what is missing is above all numbers.
        roots: Places of the roots.
        leaves: Places of every leaf by tree and node: two.
        depth: How many steps lead to the furthest leaf.
    """

    first: Array
    feature: Array
    threshold: Array
    relation: str
    filled: Array
    roots: Array
    leaves: dict[tuple[int, int], tuple[int, int]]
    depth: int


def tree_regressor(draft: Draft, match: Match) -> gs.Tensor:
    """`TreeEnsembleRegressor (x)`: weights of the leaves, put together over the trees."""
    bench, node = Bench(draft), match.root
    forest = _read(node)
    targets = targets_of(node, "n_targets")
    together = str(node.attrs.get("aggregate_function", "SUM"))
    if together not in _REDUCED:
        raise Refused(f"nothing is known of `aggregate_function` {together!r}")
    weights, told = _weights(node, forest, targets, "target")
    if together in ("MIN", "MAX") and not told.all():
        raise Refused(f"not every leaf has a weight for each target, of which the {together} is")
    if targets > 1 and listed(node, "base_values").any() and not _always_scored(forest, told).all():
        raise Refused("a target may be without a weight, and then without its base value")
    scores = _walked(bench, node, forest, weights, _REDUCED[together])
    if together == "AVERAGE":
        count = bench.number(forest.roots.size, TYPE.FLOAT)
        scores = bench.op("Div", scores, count)
    return transformed(bench, node, _with_base(bench, node, scores, targets))


def tree_classifier(draft: Draft, match: Match) -> tuple[gs.Tensor, gs.Tensor]:
    """`TreeEnsembleClassifier (x)`: the label, and the score of each class."""
    bench, node = Bench(draft), match.root
    forest, classes = _read(node), count_of_labels(node)
    used = np.unique(listed(node, "class_ids", np.int64))
    base = listed(node, "base_values").size
    if classes < 2:
        raise Refused("it tells no classes apart")
    alone = classes == 2 and used.tolist() == [0]
    if classes == 2 and base > alone:
        raise Refused("it has base values for the scores of two classes")
    limit = 0.5 if (listed(node, "class_weights") >= 0).all() else 0.0
    if alone:
        weights, _ = _weights(node, forest, 1, "class")
        scores = _walked(bench, node, forest, weights, "ReduceSum")
        return _of_one_score(bench, node, _with_base(bench, node, scores, 1), limit)
    weights, told = _weights(node, forest, classes, "class")
    if not _always_scored(forest, told)[used].all() or used.size < classes > 2:
        raise Refused("a class may be without a score, and then is not chosen")
    scores = _walked(bench, node, forest, weights, "ReduceSum")
    scores = _with_base(bench, node, scores, classes)
    if classes == 2:
        second = bench.op("Gather", scores, bench.ints([1], "second"), axis=1)
        if used.size == 2:
            return _signed(bench, node, second), transformed(bench, node, scores)
        return _above(bench, node, second, limit), transformed(bench, node, scores)
    place = bench.op("ArgMax", scores, axis=1, keepdims=0)
    return chosen_label(bench, node, place, TYPE.INT64), transformed(bench, node, scores)


def _signed(bench: Bench, node: gs.Node, score: gs.Tensor) -> gs.Tensor:
    """The label of two classes with scores of their own: that of the sign of the second."""
    for key in ("classlabels_int64s", "classlabels_ints"):
        if listed(node, key, np.int64).tolist() == [0, 1]:
            return _above(bench, node, score, 0.0)
    raise Refused("its two classes are not 0 and 1, of which runtimes make labels otherwise")


def _above(bench: Bench, node: gs.Node, score: gs.Tensor, limit: float) -> gs.Tensor:
    """The label of the second of two classes where its score is above a limit."""
    above = bench.op("Greater", score, bench.number(limit, TYPE.FLOAT))
    place = bench.cast(bench.squeeze(above, [1]), TYPE.INT64)
    return chosen_label(bench, node, place, TYPE.INT64)


def _of_one_score(
    bench: Bench, node: gs.Node, score: gs.Tensor, limit: float
) -> tuple[gs.Tensor, gs.Tensor]:
    """Label and scores of two classes of which one has a score: a chance, or one that is signed."""
    transform = str(node.attrs.get("post_transform", "NONE"))
    if transform not in ("NONE", "LOGISTIC", "SOFTMAX"):
        raise Refused(f"nothing is written for the transform {transform!r}")
    logistic, one = transform == "LOGISTIC", bench.number(1, TYPE.FLOAT)
    chance = limit and not logistic
    other = bench.op("Sub", one, score) if chance else bench.op("Neg", score)
    scores = bench.concat([other, score], 1)
    if logistic:
        scores = bench.op("Sigmoid", scores)
    return _above(bench, node, score, limit), scores


def _with_base(bench: Bench, node: gs.Node, scores: gs.Tensor, columns: int) -> gs.Tensor:
    base = listed(node, "base_values")
    if "base_values_as_tensor" in node.attrs:
        raise Refused("its numbers are tensors, in double precision")
    if base.size not in (0, 1, columns):
        raise Refused("it does not have one base value, or as many as scores")
    if not base.any():
        return scores
    made: gs.Tensor = bench.op("Add", scores, bench.draft.constant(base, "base"))
    return made


def _read(node: gs.Node) -> _Forest:
    """The trees of a node's attributes."""
    for key in ("nodes_values_as_tensor", "class_weights_as_tensor", "target_weights_as_tensor"):
        if key in node.attrs:
            raise Refused("its numbers are tensors, in double precision")
    tree, own = (listed(node, f"nodes_{k}", np.int64) for k in ("treeids", "nodeids"))
    feature, true, false = (
        listed(node, f"nodes_{k}", np.int64) for k in ("featureids", "truenodeids", "falsenodeids")
    )
    values = listed(node, "nodes_values")
    tracks = listed(node, "nodes_missing_value_tracks_true", np.int64)
    modes = [m.decode() if isinstance(m, bytes) else str(m) for m in node.attrs["nodes_modes"]]
    if not tracks.size:
        tracks = np.zeros(tree.size, np.int64)
    lists = (tree, own, feature, true, false, values, tracks, modes)
    if not tree.size or len({len(each) for each in lists}) != 1:
        raise Refused("its lists of nodes are not equally long")
    nodes: dict[tuple[int, int], _Node] = {}
    for index, (t, n) in enumerate(zip(tree.tolist(), own.tolist(), strict=True)):
        nodes[t, n] = _Node(
            int(feature[index]),
            float(values[index]),
            modes[index],
            (t, int(true[index])),
            (t, int(false[index])),
            bool(tracks[index]),
        )
    if len(nodes) != tree.size:
        raise Refused("two of its nodes have one name")
    return _laid_out(nodes)


def _laid_out(nodes: Mapping[tuple[int, int], _Node]) -> _Forest:
    children = {c for n in nodes.values() if n.mode != "LEAF" for c in (n.true, n.false)}
    roots = [key for key in nodes if key not in children]
    if len(roots) != len({tree for tree, _ in nodes}) or not children <= nodes.keys():
        raise Refused("its nodes are no trees")
    steps = {key: _STEPS.get(node.mode) for key, node in nodes.items() if node.mode != "LEAF"}
    if None in steps.values():
        strange = next(node.mode for key, node in nodes.items() if steps.get(key, ()) is None)
        raise Refused(f"nothing is written for nodes of `{strange}`")
    relations = {step[nodes[key].missing][0] for key, step in steps.items() if step is not None}
    several = len(relations) > 1
    if several:
        relations = {_TURNED.get(relation, relation) for relation in relations}
    if len(relations) != 1:
        raise Refused("it has no nodes, or some take equals for less and others for more")
    first = [-1] * len(roots)
    kept = [(0, 0.0, False)] * len(roots)  # as those of leaves
    leaves: dict[tuple[int, int], tuple[int, int]] = {}
    level = list(enumerate(roots))
    depth, reached = -1, 0
    while level:
        depth += 1
        if depth > _DEEPEST:
            raise Refused(f"it is deeper than {_DEEPEST} levels")
        below: list[tuple[int, tuple[int, int]]] = []
        for place, key in level:
            here, pair = nodes[key], len(first)
            reached += 1
            first[place] = pair
            kept.extend([(0, 0.0, False)] * 2)
            if here.mode == "LEAF":
                first.extend([pair, pair])
                leaves[key] = (place, pair)
                continue
            first.extend([-1, -1])
            if not np.isfinite(here.threshold):
                raise Refused("a node compares with what is not finite")
            relation, true_first = _STEPS[here.mode][here.missing]
            turned = several and relation in _TURNED
            kept[place] = (here.feature, here.threshold, turned)
            sides = (here.false, here.true)
            if true_first is not turned:
                sides = sides[::-1]
            below += [(pair, sides[0]), (pair + 1, sides[1])]
        level = below
    if reached != len(nodes):
        raise Refused("its nodes are no trees")
    return _Forest(
        np.asarray(first, np.int64),
        np.asarray([k[0] for k in kept], np.int64),
        np.asarray([k[1] for k in kept], np.float32),
        relations.pop(),
        np.asarray([k[2] for k in kept], np.int64),
        np.arange(len(roots), dtype=np.int64),
        leaves,
        depth,
    )


def _weights(node: gs.Node, forest: _Forest, columns: int, what: str) -> tuple[Array, Array]:
    """The weights of each place and column, and whether a leaf there has one."""
    ids, trees, nodes = (
        listed(node, f"{what}_{k}", np.int64) for k in ("ids", "treeids", "nodeids")
    )
    numbers = listed(node, f"{what}_weights")
    if len({ids.size, trees.size, nodes.size, numbers.size}) != 1:
        raise Refused("its lists of weights are not equally long")
    made = np.zeros((forest.first.size, columns), np.float32)
    told = np.zeros((forest.first.size, columns), bool)
    for column, tree, own, number in zip(
        ids.tolist(), trees.tolist(), nodes.tolist(), numbers, strict=True
    ):
        places = forest.leaves.get((tree, own))
        if places is None or not 0 <= column < columns:
            raise Refused("a weight is at no leaf, or for no class or target")
        for place in (places[0], places[1], places[1] + 1):
            made[place, column] += number
            told[place, column] = True
    at_leaves = told[[place for place, _ in forest.leaves.values()]]
    return made, at_leaves


def _always_scored(forest: _Forest, told: Array) -> Array:
    """By column, whether some tree has a weight for it at each of its leaves."""
    trees = np.asarray([tree for tree, _ in forest.leaves])
    found = np.zeros(told.shape[1], bool)
    for tree in np.unique(trees):
        found |= told[trees == tree].all(axis=0)
    return found


def _walked(
    bench: Bench, node: gs.Node, forest: _Forest, weights: Array, together: str
) -> gs.Tensor:
    """The weights of the leaves that each row comes to, put together over the trees."""
    x = plane(bench, node.inputs[0])
    dtype = computed_in(bench, x)
    shape = bench.shape(x)
    assert shape is not None
    if dims.at_most(int(forest.feature.max()) + 1, shape[1]) is not True:
        raise Refused(f"it is not known that `{x.name}` has {forest.feature.max() + 1} columns")
    x = bench.cast(x, dtype)
    feature, threshold = forest.feature, forest.threshold
    threshold = threshold.astype(onnx.helper.tensor_dtype_to_np_dtype(dtype))
    if forest.filled.any():
        if not isinstance(shape[1], int):
            raise Refused("nodes differ on what is missing, and the number of columns is not known")
        x = _with_missing_above(bench, x)
        feature = feature + forest.filled * shape[1]
    draft, at = bench.draft, forest.roots
    first, features = (
        draft.constant(a, e) for a, e in ((forest.first, "child"), (feature, "column"))
    )
    thresholds = draft.constant(threshold, "threshold")
    place: gs.Tensor | None = None
    for _ in range(forest.depth):
        if place is None:  # every root is known
            value = bench.op("Gather", x, draft.constant(feature[at], "column"), axis=1)
            limit, child = (
                draft.constant(a[at], e)
                for a, e in ((threshold, "threshold"), (forest.first, "child"))
            )
        else:
            value = bench.op(
                "GatherElements", x, bench.op("Gather", features, place, axis=0), axis=1
            )
            limit, child = (bench.op("Gather", a, place, axis=0) for a in (thresholds, first))
        step = bench.cast(bench.op(forest.relation, value, limit), TYPE.INT64)
        place = bench.op("Add", child, step)
    if place is None:
        raise Refused("its trees are leaves alone, and its input decides nothing")
    table = weights[:, 0] if weights.shape[1] == 1 else weights
    found = bench.op("Gather", draft.constant(table, "weights"), place, axis=0)
    made: gs.Tensor = bench.op(
        together, found, bench.ints([1], "axes"), keepdims=int(weights.shape[1] == 1)
    )
    return made


def _with_missing_above(bench: Bench, x: gs.Tensor) -> gs.Tensor:
    """The columns, and behind them the same with what is missing above all numbers."""
    filled = bench.where(bench.op("IsNaN", x), bench.number(np.inf, bench.dtype(x)), x)
    return bench.concat([x, filled], 1)
