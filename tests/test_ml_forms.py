"""The recipe `ml-forms`: trees drawn at random, and whole files as other tools write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import surgeon
from surgeon.inspection import inspect
from surgeon.runtime import Session

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
WIDTH = 4
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"]


def trees(
    draw: np.random.Generator, count: int, modes: list[str], *, missing: bool, columns: list[int]
) -> dict[str, Any]:
    """Attributes of trees of unequal depth, with a weight for each of `columns` at each leaf."""
    keys = "treeids nodeids featureids values modes truenodeids falsenodeids".split()
    found: dict[str, list[Any]] = {f"nodes_{k}": [] for k in keys}
    found["nodes_missing_value_tracks_true"] = []
    leaves: list[tuple[int, int]] = []
    for tree in range(count):
        number, depth = 0, {0: 0}
        for own in range(64):
            if own not in depth:
                break
            leaf = depth[own] >= 4 or (own > 0 and draw.random() < 0.3)
            below = (0, 0) if leaf else (number + 1, number + 2)
            if leaf:
                leaves.append((tree, own))
            else:
                number += 2
                depth.update(dict.fromkeys(below, depth[own] + 1))
            # thresholds at which inputs stand too
            row = (tree, own, int(draw.integers(WIDTH)), float(draw.integers(-3, 4)) / 2)
            mode = "LEAF" if leaf else str(draw.choice(modes))
            for key, value in zip(keys, (*row, mode, *below), strict=True):
                found[f"nodes_{key}"].append(value)
            found["nodes_missing_value_tracks_true"].append(int(missing and draw.random() < 0.5))
    weights = [(t, n, c) for t, n in leaves for c in columns]
    for place, key in enumerate(("treeids", "nodeids", "ids")):
        found[f"WHAT_{key}"] = [w[place] for w in weights]
    found["WHAT_weights"] = draw.standard_normal(len(weights)).tolist()
    return found


def forest(op: str, attributes: dict[str, Any], columns: int) -> onnx.ModelProto:
    """One node of trees; a file that imports no operator of ONNX itself."""
    what = "target" if op.endswith("Regressor") else "class"
    named = {k.replace("WHAT", what): v for k, v in attributes.items()}
    outputs = [helper.make_tensor_value_info("scores", FLOAT, ["N", columns])]
    if what == "class":
        outputs.insert(0, helper.make_tensor_value_info("label", INT64, ["N"]))
    node = helper.make_node(op, ["x"], [o.name for o in outputs], domain="ai.onnx.ml", **named)
    x = helper.make_tensor_value_info("x", FLOAT, ["N", WIDTH])
    graph = helper.make_graph([node], "g", [x], outputs)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8
    )


def rows(draw: np.random.Generator) -> np.ndarray[Any, Any]:
    """Halves, many of them thresholds, and a few that are missing."""
    made = draw.integers(-6, 7, (200, WIDTH)).astype(np.float32) / 4
    made[draw.random(made.shape) < 0.1] = np.nan
    return made


def compared(model: onnx.ModelProto, draw: np.random.Generator) -> None:
    """What the result computes is what onnxruntime computes of the file, of missing values too."""
    result = surgeon.apply(model, "ml-forms", require="equivalent").model.to_proto()
    assert all(node.domain == "" for node in result.graph.node)
    feeds = {"x": rows(draw)}
    first, second = (Session(m).run(feeds) for m in (model, result))
    for name, wanted in first.items():
        np.testing.assert_allclose(second[name], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("missing", [False, True])
def test_trees_of_one_comparison_or_several(seed: int, missing: bool) -> None:
    draw = np.random.default_rng(seed)
    modes = [MODES[seed]] if seed < 4 else [MODES[0], MODES[2]]
    attributes = trees(draw, 5, modes, missing=missing, columns=[0, 1])
    more = {"n_targets": 2, "base_values": [0.5, -0.5]}
    together = {"aggregate_function": "AVERAGE"} if missing else {}
    compared(forest("TreeEnsembleRegressor", attributes | more | together, 2), draw)


@pytest.mark.parametrize("columns", [[0, 1, 2], [0, 1], [0], [1]])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_classes_by_trees(columns: list[int], transform: str) -> None:
    draw = np.random.default_rng(len(columns))
    attributes = trees(draw, 4, MODES[:1], missing=False, columns=columns)
    classes = max(2, len(columns))
    more = {"classlabels_int64s": list(range(classes)), "post_transform": transform}
    compared(forest("TreeEnsembleClassifier", attributes | more, classes), draw)


def test_a_chance_of_one_class() -> None:
    draw = np.random.default_rng(1)
    attributes = trees(draw, 1, MODES[:1], missing=False, columns=[0])
    attributes["WHAT_weights"] = [abs(w) / 4 for w in attributes["WHAT_weights"]]
    model = forest("TreeEnsembleClassifier", attributes | {"classlabels_int64s": [3, 7]}, 2)
    compared(model, draw)


def test_a_map_of_scores_becomes_a_table_where_that_is_allowed() -> None:
    model = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 13, "ai.onnx.ml": 3]>
        g (float[N,3] x) => (seq(map(string, float)) y) {
          s = Softmax <axis = 1> (x)
          y = ai.onnx.ml.ZipMap <classlabels_strings = ["a", "b", "c"]> (s)
        }
        """
    )
    kept = surgeon.apply(model, "ml-forms")
    assert not kept.model.changed
    result = surgeon.apply(model, "ml-forms", allow=["contract"], require="equivalent")
    (output,) = result.model.to_proto().graph.output
    assert [d.dim_param or d.dim_value for d in output.type.tensor_type.shape.dim] == ["N", 3]
    assert "a table of scores" in (result.report.changes[-1].contract or "")


def test_inspect_names_what_few_runtimes_have(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    attributes = trees(draw, 1, MODES[:1], missing=False, columns=[0])
    path = tmp_path / "trees.onnx"
    onnx.save(forest("TreeEnsembleRegressor", attributes | {"n_targets": 1}, 1), path)
    found = inspect(path)
    (foreign,) = found.foreign
    assert foreign.recipes == ("ml-forms",)
    assert foreign.runs


def test_a_file_without_such_operators_stays_where_it_is() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 4, opset_import: ["": 9]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    )
    result = surgeon.apply(model, "ml-forms")
    assert not result.model.changed
    assert not result.report.failures
