"""The recipes `tensorrt-plugins`, `openmmlab` and `caffe2`: numbers worked out by hand.

Each is asked of the witness, which runs the file as it came, and of onnxruntime, which runs what
the recipe makes of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import surgeon
from surgeon.builders.plugins.refused import REASONS
from surgeon.inspection import inspect
from surgeon.recipe import Recipe
from surgeon.reference import Reference
from surgeon.reference.errors import NoWitness
from surgeon.runtime import Session
from surgeon.spelling import home

F = np.float32
RECIPES = ("tensorrt-plugins", "openmmlab", "caffe2", "openvino", "autograd-functions")
# The second overlaps the first by 12 of 16, the fourth the third by 1 of 4; the fifth is by itself.
BOXES = np.array(
    [[[0, 0, 4, 4], [0, 0, 4, 3], [10, 10, 12, 12], [11, 10, 13, 12], [20, 20, 24, 24]]], F
)
SCORES = np.array([[[0.9, 0.1], [0.8, 0.7], [0.3, 0.6], [0.2, 0.5], [0.1, 0.4]]], F)


def both(text: str, recipe: str, feeds: dict[str, Any]) -> list[list[Any]]:
    """What the witness says of a model, and what onnxruntime says of the result."""
    model = parser.parse_model(text)
    result = surgeon.apply(model, recipe).model.to_proto()
    assert all(node.domain in ("", "ai.onnx") for node in result.graph.node)
    onnx.checker.check_model(result, full_check=True)
    return [
        list(Reference(model).run(feeds).values()),
        list(Session(result).run(feeds).values()),
    ]


def efficient(
    said: str, scores: Any = SCORES, boxes: Any = BOXES, most: int = 4
) -> list[list[Any]]:
    count, classes = scores.shape[1:]
    text = f"""
        <ir_version: 8, opset_import: ["": 11, "TRT": 1]>
        g (float{list(boxes.shape)} b, float[1,{count},{classes}] s)
            => (int32[1,1] n, float[1,{most},4] boxes, float[1,{most}] scores, int32[1,M] labels)
        {{
          n, boxes, scores, labels = TRT.EfficientNMS_TRT <max_output_boxes = {most}, {said}> (b, s)
        }}
    """
    return both(text, "tensorrt-plugins", {"b": boxes, "s": scores})


@pytest.mark.parametrize(
    ("said", "kept"),  # rows of boxes, and classes
    [
        ("score_threshold = 0.35, iou_threshold = 0.5", [(0, 0), (1, 1), (2, 1), (3, 1)]),
        # as much overlap as the threshold is too much
        ("score_threshold = 0.75, iou_threshold = 0.75", [(0, 0)]),
        ("score_threshold = 0.75, iou_threshold = 0.76", [(0, 0), (1, 0)]),
        # and as much of a score is enough
        ("score_threshold = 0.9, iou_threshold = 0.5", [(0, 0)]),
        ("score_threshold = 0.5, iou_threshold = 0.3", [(0, 0), (1, 1), (2, 1)]),
        ("score_threshold = 0.35, iou_threshold = 0.5, background_class = 0",
         [(1, 1), (2, 1), (3, 1), (4, 1)]),
        ("score_threshold = 0.35, iou_threshold = 0.5, class_agnostic = 1",
         [(0, 0), (2, 1), (3, 1), (4, 1)]),
        ("score_threshold = 0.35, iou_threshold = 0.5, class_agnostic = 1, background_class = 1",
         [(0, 0)]),
        ("score_threshold = 0.95, iou_threshold = 0.5", []),
    ],
)  # fmt: skip
def test_efficient_nms_keeps_what_its_attributes_say(
    said: str, kept: list[tuple[int, int]]
) -> None:
    for count, boxes, scores, labels in efficient(said):
        assert count.tolist() == [[len(kept)]]
        rest = [0] * (4 - len(kept))
        assert labels[0].tolist() == [label for _, label in kept] + rest
        assert boxes[0].tolist() == [BOXES[0, row].tolist() for row, _ in kept] + [[0] * 4] * len(
            rest
        )
        assert scores[0].tolist() == [SCORES[0, row, label] for row, label in kept] + rest


def test_scores_before_their_activation_are_compared_after_it() -> None:
    logits = np.array([[[0.0], [2.0], [-2.0], [-0.1], [5.0]]], F)
    said = "score_threshold = 0.5, iou_threshold = 0.5, score_activation = 1"
    for count, boxes, scores, _ in efficient(said, logits):
        assert count.tolist() == [[2]]  # the second takes the first away, which is sure by a half
        assert boxes[0, :2].tolist() == [[20, 20, 24, 24], [0, 0, 4, 3]]
        wanted = 1 / (1 + np.exp(-np.array([5.0, 2.0])))
        np.testing.assert_allclose(scores[0], [*wanted, 0, 0], rtol=1e-6)


def test_middles_and_sizes_come_out_as_corners() -> None:
    boxes = np.array([[[2, 3, 4, 6], [10, 10, 2, 2]]], F)
    scores = np.array([[[0.5], [0.9]]], F)
    said = "score_threshold = 0.1, iou_threshold = 0.5, box_coding = 1"
    for _, found, _, _ in efficient(said, scores, boxes, most=2):
        assert found[0].tolist() == [[9, 9, 11, 11], [0, 0, 4, 6]]


def test_of_equal_scores_the_first_leads_and_the_lower_class() -> None:
    boxes = np.array([[[8, 0, 9, 1], [4, 0, 5, 1], [0, 0, 1, 1]]], F)
    scores = np.full((1, 3, 2), 0.5, F)
    for _, found, _, labels in efficient(
        "score_threshold = 0.1, iou_threshold = 0.5", scores, boxes
    ):
        assert found[0, :, 0].tolist() == [8, 8, 4, 4]
        assert labels.tolist() == [[0, 1, 0, 1]]


def test_boxes_without_area_take_nothing_away() -> None:
    boxes = np.array([[[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 2]]], F)
    scores = np.array([[[0.9], [0.8], [0.7]]], F)
    said = "score_threshold = 0.1, iou_threshold = 0.5, class_agnostic = 1"
    for count, *_ in efficient(said, scores, boxes):
        assert count.tolist() == [[3]]


def test_what_the_network_says_is_added_to_anchors() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 11, "TRT": 1]>
        g (float[1,1,4] b, float[1,1,1] s, float[1,1,4] a)
            => (int32[1,1] n, float[1,1,4] boxes, float[1,1] scores, int32[1,1] labels)
        {
          n, boxes, scores, labels = TRT.EfficientNMS_TRT
            <max_output_boxes = 1, score_threshold = 0.1, iou_threshold = 0.5, box_coding = CODE>
            (b, s, a)
        }
    """
    feeds = {"s": np.full((1, 1, 1), 0.5, F)}
    feeds |= {"b": np.array([[[3, 4, 1, 2]]], F), "a": np.array([[[10, 10, 20, 20]]], F)}
    for _, found, _, _ in both(text.replace("CODE", "0"), "tensorrt-plugins", feeds):
        assert found.tolist() == [[[11, 12, 23, 24]]]  # corners are put in order before
    feeds |= {"b": np.array([[[0.5, -0.5, 0, np.log(2)]]], F), "a": np.array([[[10, 10, 4, 2]]], F)}
    for _, found, _, _ in both(text.replace("CODE", "1"), "tensorrt-plugins", feeds):
        np.testing.assert_allclose(found, [[[10, 7, 14, 11]]], rtol=1e-6)


def batched(said: str) -> list[list[Any]]:
    text = f"""
        <ir_version: 8, opset_import: ["": 11, "TRT": 1]>
        g (float[1,5,1,4] b, float[1,5,2] s)
            => (int32[1,1] n, float[1,4,4] boxes, float[1,4] scores, float[1,4] labels)
        {{
          n, boxes, scores, labels = TRT.BatchedNMS_TRT <keepTopK = 4, {said}> (b, s)
        }}
    """
    return both(text, "tensorrt-plugins", {"b": BOXES[:, :, None], "s": SCORES})


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("topK = 5, iouThreshold = 0.5, scoreThreshold = 0.35, clipBoxes = 0",
         [(0, 0), (1, 1), (2, 1), (3, 1)]),
        # as much overlap as the threshold is not too much, and as much of a score not enough
        ("topK = 5, iouThreshold = 0.75, scoreThreshold = 0.75, clipBoxes = 0", [(0, 0), (1, 0)]),
        ("topK = 5, iouThreshold = 0.5, scoreThreshold = 0.9, clipBoxes = 0", []),
        ("topK = 5, iouThreshold = 0.5, scoreThreshold = 0.35, clipBoxes = 0, "
         "backgroundLabelId = 1", [(0, 0)]),
        # the fourth holds its last pixels too, and shares 2 x 3 of 12 with the third
        ("topK = 5, iouThreshold = 0.4, scoreThreshold = 0.35, clipBoxes = 0, isNormalized = 0",
         [(0, 0), (1, 1), (2, 1), (4, 1)]),
        ("topK = 5, iouThreshold = 0.4, scoreThreshold = 0.35, clipBoxes = 0, isNormalized = 0, "
         "caffeSemantics = 0", [(0, 0), (1, 1), (2, 1), (3, 1)]),
    ],
)  # fmt: skip
def test_batched_nms_keeps_what_its_attributes_say(said: str, kept: list[tuple[int, int]]) -> None:
    for count, boxes, scores, labels in batched(said):
        assert count.tolist() == [[len(kept)]]
        rest = 4 - len(kept)
        assert labels[0].tolist() == [label for _, label in kept] + [-1] * rest
        assert boxes[0].tolist() == [BOXES[0, row].tolist() for row, _ in kept] + [[0] * 4] * rest
        assert scores[0].tolist() == [SCORES[0, row, label] for row, label in kept] + [0] * rest


def test_batched_nms_looks_at_the_best_of_each_class_and_cuts_to_the_image() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 11]>
        g (float[1,3,1,4] b, float[1,3,2] s)
            => (int32[1,1] n, float[1,2,4] boxes, float[1,2] scores, float[1,2] labels)
        {
          n, boxes, scores, labels = BatchedNMSDynamic_TRT
            <topK = 2, keepTopK = 2, iouThreshold = 0.5, scoreThreshold = 0.1> (b, s)
        }
    """
    boxes = np.array([[[-0.5, 0, 0.5, 2], [0, 0, 0.1, 0.1], [0.8, 0.8, 1.5, 1.5]]], F)
    scores = np.array([[[0.2, 0.3], [0.5, 0.2], [0.4, 0.9]]], F)
    for count, found, best, labels in both(
        text, "tensorrt-plugins", {"b": boxes[:, :, None], "s": scores}
    ):
        assert count.tolist() == [[2]]
        np.testing.assert_array_equal(found[0], np.array([[0.8, 0.8, 1, 1], [0, 0, 0.1, 0.1]], F))
        np.testing.assert_array_equal(best[0], np.array([0.9, 0.5], F))
        assert labels.tolist() == [[1, 0]]


def test_the_boxes_of_mmdeploy_say_where_they_stood() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 11, "mmdeploy": 1]>
        g (float[1,5,1,4] b, float[1,5,2] s) => (float[1,4,5] rows, int32[1,4] labels, int32[1,4] i)
        {
          rows, labels, i = mmdeploy.TRTBatchedNMS <topk = -1, keep_topk = 4, iou_threshold = 0.5,
            score_threshold = 0.55, clip_boxes = 0, is_normalized = 0, return_index = 1> (b, s)
        }
    """
    feeds = {"b": BOXES[:, :, None], "s": SCORES}
    for rows, labels, places in both(text, "openmmlab", feeds):
        assert rows[0, :, :4].tolist() == [*BOXES[0, :3].tolist(), [0] * 4]
        np.testing.assert_array_equal(rows[0, :, 4], np.array([0.9, 0.7, 0.6, 0], F))
        assert labels.tolist() == [[0, 1, 1, -1]]
        assert places.tolist() == [[0, 1, 2, -1]]


def test_a_box_of_mmcv_that_ends_before_it_begins_is_none() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 11, "mmcv": 1]>
        g (float[A,4] b, float[A] s) => (int64[K] i)
        { i = mmcv.NonMaxSuppression <iou_threshold = 0.5, offset = 0> (b, s) }
    """
    boxes = np.array([[4, 4, 0, 0], [0, 0, 4, 4], [0, 0, 4, 2], [0, 0, 4, 1.5]], F)
    scores = np.array([0.9, 0.8, 0.7, 0.6], F)
    for (found,) in both(text, "openmmlab", {"b": boxes, "s": scores}):
        assert found.tolist() == [0, 1, 3]  # a half is too much, and three eighths are not


def test_attention_reads_between_pixels_and_outside_nothing() -> None:
    text = """
        <ir_version: 8, opset_import: ["": OPSET, "TRT": 1]>
        g (float[1,5,1,1] v, float[1,1,1,2,1,2] p, float[1,1,1,2,1] w) => (float[1,1,1,1] y)
        <int64[2,2] s = {2, 2, 1, 1}, int64[2] b = {0, 4}>
        { y = TRT.MultiscaleDeformableAttnPlugin_TRT (v, s, b, p, w) }
    """
    feeds = {
        "v": np.array([1, 2, 3, 4, 100], F).reshape(1, 5, 1, 1),
        "p": np.array([[0.5, 0.25], [0.5, 1.0]], F).reshape(1, 1, 1, 2, 1, 2),
        "w": np.array([0.5, 0.1], F).reshape(1, 1, 1, 2, 1),
    }
    for opset in ("11", "16", "20"):  # 0.5 * (1 + 2) / 2, and half of 100 beyond the border
        for (y,) in both(text.replace("OPSET", opset), "tensorrt-plugins", feeds):
            np.testing.assert_allclose(y, [[[[0.75 + 5]]]], rtol=1e-6)


def test_regions_are_read_from_the_level_of_their_size() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 16, "mmdeploy": 1]>
        g (float[R,5] r, float[1,1,8,8] x, float[1,1,4,4] z) => (float[R,1,1,1] y)
        {
          y = mmdeploy.MMCVMultiLevelRoiAlign <aligned = 1, output_height = 1, output_width = 1,
            sampling_ratio = 1, featmap_strides = [4.0, 8.0], finest_scale = 8> (r, x, z)
        }
    """
    rois = np.array([[0, 0, 0, 15, 15], [0, 0, 0, 16, 16], [0, 0, 0, 30, 30]], F)
    feeds = {"r": rois, "x": np.full((1, 1, 8, 8), 1, F), "z": np.full((1, 1, 4, 4), 2, F)}
    for (y,) in both(text, "openmmlab", feeds):
        assert y.reshape(-1).tolist() == [1, 2, 2]


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [(0, [[3, 5], [3, 4]]), (1, [[1, 5], [3, 5]]), (2, [[5, 5], [4, 4]]), (3, [[1, 5], [3, 4]])],
)
def test_corners_look_to_their_side(mode: int, wanted: list[list[int]]) -> None:
    text = f"""
        <ir_version: 8, opset_import: ["": 11, "mmcv": 1]>
        g (float[1,1,2,2] x) => (float[1,1,2,2] y) {{ y = mmcv.MMCVCornerPool <mode = {mode}> (x) }}
    """
    for (y,) in both(text, "openmmlab", {"x": np.array([[[[1, 5], [3, 4]]]], F)}):
        assert y[0, 0].tolist() == wanted


def test_of_equal_values_the_later_place_counts() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 11, "mmcv": 1]>
        g (float[5] x) => (float[5] v, int64[5] i) { v, i = mmcv.cummax <dim = 0> (x) }
    """
    for values, places in both(text, "openmmlab", {"x": np.array([1, 3, 2, 3, 0], F)}):
        assert values.tolist() == [1, 3, 3, 3, 3]
        assert places.tolist() == [0, 1, 1, 3, 3]


def test_boxes_that_are_turned_share_an_octagon() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 11, "mmdeploy": 1]>
        g (float[1,5,5] b, float[1,2,5] s) => (int64[K,3] i)
        { i = mmdeploy.NMSRotated <iou_threshold = OVERLAP, score_threshold = 0.15> (b, s) }
    """
    # a square, the same turned by an eighth (they share 1 / sqrt(2) of what either has), the same
    # turned by a quarter, one beside it, and one that is not good enough
    turns = [[0, 0, 2, 2, 0], [0, 0, 2, 2, np.pi / 4], [0, 0, 2, 2, np.pi / 2], [2, 0, 2, 2, 0]]
    feeds = {
        "b": np.array([[*turns, [9, 9, 2, 2, 0]]], F),
        "s": np.array([[[0.9, 0.8, 0.7, 0.6, 0.1], [0.2, 0.9, 0.1, 0.3, 0.1]]], F),
    }
    for overlap, wanted in (
        ("0.705", [[0, 0, 0], [0, 0, 3], [0, 1, 1], [0, 1, 3]]),
        ("0.709", [[0, 0, 0], [0, 0, 1], [0, 0, 3], [0, 1, 1], [0, 1, 3], [0, 1, 0]]),
    ):
        for (found,) in both(text.replace("OVERLAP", overlap), "openmmlab", feeds):
            assert found.tolist() == wanted


def test_a_region_turned_by_a_quarter_is_read_sideways() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 11, "mmdeploy": 1]>
        g (float[1,1,4,4] x, float[R,6] r) => (float[R,1,1,2] y)
        {
          y = mmdeploy.MMCVRoIAlignRotated <aligned = 1, clockwise = CLOCKWISE, output_height = 1,
            output_width = 2, sampling_ratio = 1, spatial_scale = 1.0> (x, r)
        }
    """
    x = np.arange(16, dtype=F).reshape(1, 1, 4, 4)
    # around (1.5, 1.5) in pixels, two samples a pixel away; and one that is out of the image
    rois = np.array([[0, 2, 2, 4, 2, 0], [0, 2, 2, 4, 2, np.pi / 2], [0, 9, 9, 4, 2, 0]], F)
    for clockwise, turned in (("0", [11.5, 3.5]), ("1", [3.5, 11.5])):
        for (y,) in both(text.replace("CLOCKWISE", clockwise), "openmmlab", {"x": x, "r": rois}):
            np.testing.assert_allclose(y[:, 0, 0], [[6.5, 8.5], turned, [0, 0]], rtol=1e-5)


@pytest.mark.parametrize("opset", [11, 13])
def test_elements_of_caffe2_are_those_below(opset: int) -> None:
    text = f"""
        <ir_version: 8, opset_import: ["": {opset}, "_caffe2": 1]>
        g (float[1,1,1,4] x) => (float[1,1,2,6] y)
        {{ y = _caffe2.ResizeNearest <height_scale = 2.0, width_scale = 1.5> (x) }}
    """
    for (y,) in both(text, "caffe2", {"x": np.array([[[[1, 2, 3, 4]]]], F)}):
        assert y[0, 0].tolist() == [[1, 1, 2, 3, 3, 4]] * 2


@pytest.mark.parametrize(
    ("domain", "operator", "found"),
    [
        ("", "EfficientNMS_TRT", "TRT"),
        ("TRT", "EfficientNMS_TRT", "TRT"),
        ("nvidia", "MultiscaleDeformableAttnPlugin_TRT", "TRT"),
        ("trt.plugins", "GroupNormalizationPlugin", "TRT"),
        ("", "GroupNormalizationPlugin", "TRT"),
        ("mmcv", "grid_sampler", "mmcv"),
        ("mmdeploy", "grid_sampler", "mmcv"),
        ("", "grid_sampler", "mmcv"),
        ("aten", "grid_sampler", "aten"),
        ("", "MMCVRoiAlign", "mmcv"),
        ("", "NonMaxSuppression", ""),
        ("ai.onnx", "RoiAlign", ""),
        ("mmcv", "NonMaxSuppression", "mmcv"),
        ("org.pytorch._caffe2", "RoIAlign", "caffe2"),
        ("somebody.else", "grid_sampler", "somebody.else"),
    ],
)
def test_a_plugin_is_found_by_its_name(domain: str, operator: str, found: str) -> None:
    assert home(domain, operator) == found


def test_a_rule_of_the_users_own_names_the_domain_of_the_file() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 16, "mmdeploy": 1]>
        g (float[N,4] x) => (float[N,4] y) { y = mmdeploy.Foo (x) }
    """

    @surgeon.rule(match="y = mmdeploy.Foo (x)", why="It is one.", exact="bit", custom=["mmdeploy"])
    def foo_as_relu(build: Any, match: Any) -> Any:
        return build.op("Relu", match.values["x"])

    result = surgeon.apply(parser.parse_model(text), foo_as_relu, verify=False)
    assert [node.op_type for node in result.model.to_proto().graph.node] == ["Relu"]


def test_inspection_names_the_recipe(tmp_path: Any) -> None:
    text = """
        <ir_version: 8, opset_import: ["": 16, "mmdeploy": 1]>
        g (float[N,4,H,W] x, float[N,P,Q,2] r) => (float[N,4,P,Q] y)
        { y = mmdeploy.grid_sampler <align_corners = 0> (x, r) }
    """
    path = tmp_path / "m.onnx"
    onnx.save(parser.parse_model(text), path)
    (foreign,) = inspect(path).foreign
    assert (foreign.operator, foreign.recipes) == ("mmcv.grid_sampler", ("openmmlab",))
    assert foreign.spelled == ("mmdeploy.grid_sampler",)


def test_every_plugin_that_is_refused_has_its_reason() -> None:
    named = {
        operator
        for name in RECIPES
        for rule in Recipe.load(name).rules
        if rule.id.endswith("-refused")
        for operator in rule.match.root.operators
    }
    assert named == set(REASONS)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 6])
def test_a_plugin_that_lacks_operands_and_attributes_stays(count: int) -> None:
    for name in RECIPES:
        for rule in Recipe.load(name).rules:
            for operator in rule.match.root.operators:
                domain = rule.match.root.domain
                names = [f"x{i}" for i in range(count)]
                node = onnx.helper.make_node(operator, names, ["y"], domain=domain)
                graph = onnx.helper.make_graph(
                    [node],
                    "g",
                    [onnx.helper.make_tensor_value_info(n, 1, ["N", 3, 4, 5]) for n in names],
                    [onnx.helper.make_tensor_value_info("y", 1, None)],
                )
                imports = [onnx.helper.make_opsetid("", 13), onnx.helper.make_opsetid(domain, 1)]
                model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=8)
                result = surgeon.apply(model, name, verify=False)
                assert not [r for r in result.report.remarks if "failed" in r], operator


@pytest.mark.parametrize(
    ("recipe", "head", "outputs"),
    [
        ("tensorrt-plugins", "n, d, l, i = EfficientNMS_TRT <max_output_boxes = 3> (b3, s3)",
         "int32[1,1] n, float[1,3,4] d, float[1,3] l, int32[1,3] i"),
        ("openmmlab", "d, l = TRTBatchedNMS <keep_topk = 3, iou_threshold = 0.5, "
         "score_threshold = 0.1> (b4, s3)", "float[1,3,5] d, int32[1,3] l"),
        ("openmmlab", "l = NMSRotated <iou_threshold = 0.5> (b5, s1)", "int64[K] l"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("score", [-1.0, 1.0])
def test_where_no_box_is_left_by_a_mask_there_is_none(
    recipe: str, head: str, outputs: str, score: float
) -> None:
    text = f"""
        <ir_version: 8, opset_import: ["": 13]>
        g (float[A,5] b, float[A] s) => ({outputs})
        <float zero = {{0}}, int64[1] line = {{-1}}, int64[3] row = {{1, -1, 1}},
         int64[3] rows = {{1, -1, 4}}, int64[4] apart = {{1, -1, 1, 4}},
         int64[4] four = {{0, 1, 2, 3}}>
        {{
          good = Greater (s, zero)
          found = NonZero (good)
          at = Reshape (found, line)
          b5 = Gather (b, at)
          s1 = Gather (s, at)
          short = Gather <axis = 1> (b5, four)
          b3 = Reshape (short, rows)
          b4 = Reshape (short, apart)
          s3 = Reshape (s1, row)
          {head}
        }}
    """
    boxes = np.array([[0, 0, 2, 2, 0], [5, 5, 7, 7, 0]], F)
    feeds = {"b": boxes, "s": np.full(2, score, F)}
    said, found = both(text, recipe, feeds)
    for one, other in zip(said, found, strict=True):
        np.testing.assert_array_equal(one, other)


def turned(mode: int, angle: float, center: list[float], image: Any) -> list[Any]:
    text = f"""
        <ir_version: 8, opset_import: ["": 16]>
        g (float[C,H,W] x, float a, float[2] m) => (float[C,H,W] y)
        {{ y = RotateTRT <interpolation = {mode}> (x, a, m) }}
    """
    feeds = {"x": image, "a": np.asarray(angle, F), "m": np.asarray(center, F)}
    return [y for (y,) in both(text, "tensorrt-plugins", feeds)]


def test_an_image_is_turned_around_its_center() -> None:
    image = np.arange(9, dtype=F).reshape(1, 3, 3)
    for mode in (0, 1):  # by a quarter, against the clock
        for found in turned(mode, 90, [1.5, 1.5], image):
            np.testing.assert_allclose(found[0], [[2, 5, 8], [1, 4, 7], [0, 3, 6]], atol=1e-5)
    for found in turned(0, 90, [2, 1], image):  # around the corner of four pixels
        np.testing.assert_allclose(found[0], [[0, 2, 5], [0, 1, 4], [0, 0, 3]], atol=1e-5)
    for found in turned(0, 0, [0.3, 7], image):
        np.testing.assert_allclose(found, image, atol=1e-5)


@pytest.mark.parametrize("name", ["GridSampler2DTRT", "TRT.GridSampler2DTRT2"])
def test_a_grid_of_channels_has_its_borders_at_ten(name: str) -> None:
    text = f"""
        <ir_version: 8, opset_import: ["": 16, "TRT": 1]>
        g (float[1,1,2,3] x, float[1,2,1,3] r) => (float[1,1,1,3] y)
        {{ y = {name} <align_corners = 1, interpolation_mode = 0, padding_mode = 0> (x, r) }}
    """
    grid = np.asarray([[[[-10, 5, 10]], [[-10, 0, 30]]]], F)  # to the right, and down
    feeds = {"x": np.arange(6, dtype=F).reshape(1, 1, 2, 3), "r": grid}
    for (found,) in both(text, "tensorrt-plugins", feeds):
        np.testing.assert_allclose(found[0, 0], [[0, 3, 0]], atol=1e-5)


def test_matrices_are_inverted() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[N,2,2] x) => (float[N,2,2] y) { y = InverseTRT (x) }
    """
    x = np.asarray([[[2, 0], [0, 4]], [[0, 1], [1, 0]], [[1, 2], [3, 4]]], F)
    wanted = [[[0.5, 0], [0, 0.25]], [[0, 1], [1, 0]], [[-2, 1], [1.5, -0.5]]]
    for (found,) in both(text, "tensorrt-plugins", {"x": x}):
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("operator", ["HSwish", "Swish", "Mish"])
def test_a_name_says_nothing_of_an_operator_with_more_attributes(operator: str) -> None:
    text = '<ir_version: 8, opset_import: ["": 17, "com.chip": 1]> g (float[3] x) => (float[3] y)'
    model = parser.parse_model(f"{text} {{ y = com.chip.{operator} <scale = 4.0> (x) }}")
    with pytest.raises(NoWitness, match="what `scale` means is not known"):
        Reference(model).run({"x": np.ones(3, F)})
