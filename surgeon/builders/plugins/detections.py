"""TensorRT's and OpenMMLab's suppression of boxes that overlap better ones, by ONNX's own.

What these plugins compute is told by the README beside each: TensorRT's plugin/efficientNMSPlugin
and plugin/batchedNMSPlugin, mmdeploy's docs/en/06-custom-ops/tensorrt.md, and mmcv's
docs/en/deployment/mmcv_ops_definition.md.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import TYPE, Bench, Size, operand
from surgeon.builders.plugins import called
from surgeon.builders.plugins.chosen import (
    LEAST,
    Chosen,
    at,
    corners_of,
    in_order,
    in_row,
    just_below,
    keys_of,
    never_none,
    suppressed,
    without_turned,
)
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_CONSIDERED = 4096  # scores of an image that EfficientNMS looks at


def efficient_nms(draft: Draft, match: Match) -> Any:
    """`EfficientNMS_TRT (boxes, scores, anchors?)`, and with the boxes' places `EfficientNMSX`.

    The best scores of an image are sorted once, of all classes together; what NonMaxSuppression
    leaves of them is taken in that order.
    """
    c, node = Bench(draft), match.root
    said = called.said(node)
    most = _positive(said.get("max_output_boxes", 100), "max_output_boxes")
    boxes, scores = _boxes_and_scores(c, node)
    dtype = c.dtype(node.inputs[0])
    boxes = _decoded(c, boxes, operand(node, 2), int(said.get("box_coding", 0)))
    boxes, scores = never_none(c, boxes, scores, 1)
    images, anchors, classes = (c.size(scores, axis) for axis in range(3))
    all_scores = c.mul(anchors, classes)
    flat = c.op("Reshape", scores, c.vector([images if images == 1 else 0, -1], "pairs"))
    considered = _at_most(c, all_scores, _CONSIDERED)
    best, pairs = c.op(
        "TopK", flat, c.vector([considered], "considered"), outputs=2, axis=1, largest=1, sorted=1
    )
    if classes == 1:
        label, anchor = None, pairs
    else:
        by = c.vector([classes], "classes")
        anchor = c.op("Div", pairs, by)
        label = c.op("Sub", pairs, c.op("Mul", anchor, by))
    shared = c.rank(boxes) == 3
    count = anchors if shared else all_scores
    read = in_row(c, anchor if shared else pairs, images, count)
    candidates = at(c, boxes if shared else _joined(c, boxes), read)
    found = suppressed(
        c,
        candidates,
        _by_class(c, best, label, classes, said),
        most,
        _least_overlap(float(said.get("iou_threshold", 0.5))),
        just_below(_least_score(said)),
    )
    keys = keys_of(c, best, found, [images, considered], [considered, 0, 1])
    chosen = Chosen(c, keys, most)
    places = in_row(c, chosen.places, images, considered)
    taken = chosen.scores
    if said.get("score_activation", 0):
        taken = c.op("Sigmoid", taken)
    none = c.op("Mul", pairs, c.ints([0], "none")) if label is None else label
    outputs = [
        chosen.count(),
        c.cast(chosen.or_else(at(c, candidates, places), 0), dtype),
        c.cast(chosen.or_else(taken, 0), dtype),
        c.cast(chosen.or_else(at(c, none, places), 0), TYPE.INT32),
    ]
    if len(node.outputs) > 4:
        return (*outputs, c.cast(chosen.or_else(at(c, anchor, places), -1), TYPE.INT32))
    return (*outputs, outputs[0])  # the last is read by nobody


def _least_overlap(threshold: float) -> float:
    """What overlaps by as much is suppressed as well; ONNX suppresses what overlaps by more."""
    if threshold <= 0:
        raise Refused("an `iou_threshold` of 0 leaves one box, whether or not others touch it")
    return min(just_below(threshold), 1.0)


def _least_score(said: dict[str, Any]) -> float:
    """The threshold as the scores come: before the activation."""
    least = float(said.get("score_threshold", 0.5))
    if not said.get("score_activation", 0):
        return least
    if least <= 0:
        return LEAST / 2
    return -LEAST if least >= 1 else math.log(least / (1 - least))


def _by_class(
    c: Bench, best: gs.Tensor, label: gs.Tensor | None, classes: Size | int, said: dict[str, Any]
) -> gs.Tensor:
    """Scores [images, classes, count]: each in the row of its class, and nowhere else."""
    least = c.number(LEAST, TYPE.FLOAT)
    background = int(said.get("background_class", -1))
    row = c.unsqueeze(best, [1])
    if label is None:
        return (
            c.op("Where", c.draft.constant(np.asarray([False])), row, least)
            if (background == 0)
            else row
        )
    if said.get("class_agnostic", 0):
        if background < 0:
            return row
        label = c.unsqueeze(label, [1])
        return c.op("Where", c.op("Equal", label, c.ints([background], "no")), least, row)
    each = c.column(c.count(classes))
    own = c.op("Equal", c.unsqueeze(label, [1]), each)
    if background >= 0:
        counts = c.op("Not", c.op("Equal", each, c.ints([background], "background")))
        own = c.op("And", own, counts)
    return c.op("Where", own, row, least)


def _boxes_and_scores(c: Bench, node: gs.Node) -> tuple[gs.Tensor, gs.Tensor]:
    """Boxes [images, count, 4] or [images, count, classes, 4], and scores [images, count, classes].

    All in single precision, in which ONNX compares boxes.
    """
    boxes, scores = (c.cast(t, TYPE.FLOAT) for t in node.inputs[:2])
    if c.rank(scores) == 4:
        scores = c.squeeze(scores, [3])
    if c.rank(scores) != 3 or c.rank(boxes) not in (3, 4):
        raise Refused("its boxes and scores have other ranks than the plugin takes")
    if c.rank(boxes) == 4:
        own = c.size(boxes, 2)
        if not isinstance(own, int):
            raise Refused("whether classes share their boxes is known at run time only")
        if own == 1:
            boxes = c.squeeze(boxes, [2])
    return boxes, scores


def _joined(c: Bench, boxes: gs.Tensor) -> gs.Tensor:
    """Boxes of each class, [images, count * classes, 4]."""
    return c.op("Reshape", boxes, c.ints([0, -1, 4], "joined"))


def _decoded(c: Bench, boxes: gs.Tensor, anchors: gs.Tensor | None, coding: int) -> gs.Tensor:
    """Boxes by their corners; with anchors, what the network says of each is added to it."""
    if coding not in (0, 1):
        raise Refused(f"its `box_coding` is {coding}, not 0 or 1")
    if anchors is None:
        return corners_of(c, boxes) if coding == 1 else boxes
    anchors = c.cast(anchors, TYPE.FLOAT)
    if c.rank(boxes) == 4:
        anchors = c.unsqueeze(anchors, [2])
    axis = c.rank(boxes) - 1
    if coding == 0:
        sides = [c.concat([*in_order(c, x)], axis) for x in (boxes, anchors)]
        made: gs.Tensor = c.op("Add", *sides)
        return made
    (moved, grown), (middle, size) = (
        (c.slice(x, axis, 0, 2), c.slice(x, axis, 2, 4)) for x in (boxes, anchors)
    )
    middles = c.op("Add", c.op("Mul", moved, size), middle)
    return corners_of(c, c.concat([middles, c.op("Mul", size, c.op("Exp", grown))], axis))


def _at_most(c: Bench, size: Size | int, most: int) -> Size | int:
    if isinstance(size, int):
        return min(size, most)

    def make() -> gs.Tensor:
        limit = c.number(most, TYPE.FLOAT)
        return c.cast(c.op("Min", c.cast(size.tensor, TYPE.FLOAT), limit), TYPE.INT64)

    return Size(None, make)


def _positive(value: Any, name: str) -> int:
    if not isinstance(value, int) or value <= 0:
        raise Refused(f"its `{name}` is {value!r}, not a number above 0")
    return value


def batched_nms(draft: Draft, match: Match, *, pixels: bool = False) -> Any:
    """`BatchedNMS_TRT` and `BatchedNMSDynamic_TRT` (boxes, scores).

    Args:
        draft: Where the nodes go.
        match: The node.
        pixels: Whether coordinates may be in pixels, of which boxes hold the last one too.
    """
    c, node = Bench(draft), match.root
    said = called.said(node)
    whole = not said.get("isNormalized", 1)
    if whole and not pixels:
        raise Refused("its coordinates are in pixels: allow the contract of that rule")
    clips = bool(said.get("clipBoxes", 1))
    if whole and clips:
        raise Refused(
            "`clipBoxes` is not 0: pixels would be cut to [0, 1] by its kernel, and by its "
            "documentation not; write `clipBoxes = 0`"
        )
    kept = _Kept(
        c,
        node,
        top=_positive(said.get("topK"), "topK"),
        keep=_positive(said.get("keepTopK"), "keepTopK"),
        overlap=float(said.get("iouThreshold", 0.5)),
        score=float(said.get("scoreThreshold", 0.5)),
        background=int(said.get("backgroundLabelId", -1)),
        extra=1.0 if whole and said.get("caffeSemantics", 1) else 0.0,
    )
    dtype = c.dtype(node.inputs[0])
    boxes = kept.boxes(clips=clips)
    return kept.chosen.count(), *(c.cast(x, dtype) for x in (boxes, kept.scores(), kept.labels()))


def trt_batched_nms(draft: Draft, match: Match) -> Any:
    """`mmdeploy.TRTBatchedNMS (boxes, scores)`: boxes with scores, classes, and maybe places."""
    c, node = Bench(draft), match.root
    said = called.said(node)
    top = int(said.get("topk", -1))
    kept = _Kept(
        c,
        node,
        top=top if top > 0 else None,
        keep=_positive(said.get("keep_topk"), "keep_topk"),
        overlap=float(said.get("iou_threshold", 0.5)),
        score=float(said.get("score_threshold", 0.5)),
        background=int(said.get("background_label_id", -1)),
        turned=False,
    )
    boxes = kept.boxes(clips=bool(said.get("clip_boxes", 1)))
    rows = c.concat([boxes, c.unsqueeze(kept.scores(), [2])], 2)
    labels = c.cast(kept.labels(), TYPE.INT32)
    if len(node.outputs) > 2:
        return rows, labels, c.cast(kept.places(), TYPE.INT32)
    return rows, labels, labels  # the last is read by nobody


class _Kept:
    """Class by class the best boxes are kept, and of all classes the best again."""

    def __init__(
        self,
        c: Bench,
        node: gs.Node,
        *,
        top: int | None,
        keep: int,
        overlap: float,
        score: float,
        background: int,
        extra: float = 0.0,
        turned: bool = True,
    ) -> None:
        if score < 0:
            raise Refused("a threshold below 0: the plugin puts such scores behind what it leaves")
        if top is not None and keep > top:
            raise Refused(f"it keeps {keep} of {top} boxes: the plugin then gives nothing")
        self.c = c
        boxes, scores = never_none(c, *_boxes_and_scores(c, node), 1)
        self.images, self.anchors, classes = (c.size(scores, axis) for axis in range(3))
        self.shared = c.rank(boxes) == 3
        by_class = c.permute(scores, [0, 2, 1])
        if not self.shared:
            boxes = c.permute(boxes, [0, 2, 1, 3])
        if background >= 0:
            each = c.column(c.count(classes))
            own = c.op("Equal", each, c.ints([background], "background"))
            by_class = c.op("Where", own, c.number(LEAST, TYPE.FLOAT), by_class)
        if top is not None and not (isinstance(self.anchors, int) and self.anchors <= top):
            by_class = self._cut(by_class, top)
        compared = boxes if turned else without_turned(c, boxes, extra)
        if turned and extra:
            compared = self._grown(boxes, extra)
        given, whole = by_class, c.mul(self.anchors, classes)
        weights: list[Size | int] = [whole, self.anchors, 1]
        if not self.shared:  # an image for each class
            compared = c.op("Reshape", compared, c.vector([-1, self.anchors, 4], "apart"))
            given = c.op("Reshape", by_class, c.vector([-1, 1, self.anchors], "apart"))
            weights = [self.anchors, 0, 1]
        most: Size | int = self.anchors if top is None else top
        found = suppressed(c, compared, given, most, overlap, score)
        self.chosen = Chosen(c, keys_of(c, by_class, found, [self.images, whole], weights), keep)
        self.whole = whole
        self.all = boxes if self.shared else _joined(c, boxes)

    def _cut(self, by_class: gs.Tensor, top: int) -> gs.Tensor:
        """The best of each class where they stand, and nothing elsewhere."""
        c = self.c
        count = c.vector([_at_most(c, self.anchors, top)], "top")
        best, places = c.op("TopK", by_class, count, outputs=2, axis=2, largest=1, sorted=1)
        none = c.filled(c.sizes(by_class), LEAST, TYPE.FLOAT)
        made: gs.Tensor = c.op("ScatterElements", none, places, best, axis=2)
        return made

    def _grown(self, boxes: gs.Tensor, extra: float) -> gs.Tensor:
        c = self.c
        lower, upper = in_order(c, boxes)
        upper = c.op("Add", upper, c.number(extra, TYPE.FLOAT))
        return c.concat([lower, upper], c.rank(boxes) - 1)

    @cached_property
    def _label(self) -> gs.Tensor:
        made: gs.Tensor = self.c.op("Div", self.chosen.places, self.c.vector([self.anchors], "by"))
        return made

    @cached_property
    def _anchor(self) -> gs.Tensor:
        c = self.c
        before = c.op("Mul", self._label, c.vector([self.anchors], "by"))
        made: gs.Tensor = c.op("Sub", self.chosen.places, before)
        return made

    def boxes(self, *, clips: bool) -> gs.Tensor:
        """Their corners [images, keep, 4], 0 where there is none."""
        c = self.c
        places = self._anchor if self.shared else self.chosen.places
        count = self.anchors if self.shared else self.whole
        found = at(c, self.all, in_row(c, places, self.images, count))
        if clips:
            found = c.op("Clip", found, *(c.number(limit, TYPE.FLOAT) for limit in (0, 1)))
        return self.chosen.or_else(found, 0)

    def scores(self) -> gs.Tensor:
        """0 where there is none."""
        return self.chosen.or_else(self.chosen.scores, 0)

    def labels(self) -> gs.Tensor:
        """Their classes, -1 where there is none."""
        return self.chosen.or_else(self._label, -1)

    def places(self) -> gs.Tensor:
        """Which boxes they are, -1 where there is none."""
        return self.chosen.or_else(self._anchor, -1)


def mmcv_nms(draft: Draft, match: Match) -> gs.Tensor:
    """`mmcv.NonMaxSuppression (boxes, scores)` of one class: the places of what stays."""
    c, node = Bench(draft), match.root
    boxes, scores = (c.cast(t, TYPE.FLOAT) for t in node.inputs)
    if c.rank(boxes) != 2 or parts.rank_of(draft, scores) != 1:
        raise Refused("its boxes are of several images, for which nothing is written")
    boxes = without_turned(c, boxes, float(called.said(node).get("offset", 0)))
    overlap = _least_overlap(float(called.said(node).get("iou_threshold", 0.0)))
    found = suppressed(
        c, c.unsqueeze(boxes, [0]), c.unsqueeze(scores, [0, 1]), c.size(scores, 0), overlap, None
    )
    made: gs.Tensor = c.op("Gather", found, c.number(2, TYPE.INT64), axis=1)
    return made
