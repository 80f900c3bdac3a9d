"""Plugins that choose boxes, one box after the other: what is better suppresses what is worse."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surgeon.reference.errors import Unsuited

Array = NDArray[Any]
Said = Mapping[str, Any]
_MOST_CONSIDERED = 4096  # scores of an image that EfficientNMS looks at
_SINGLE = np.float32


def _agree(boxes: Array, scores: Array) -> None:
    """Boxes [images, count, 1 or classes, 4] and scores [images, count, classes]."""
    if boxes.shape[:2] != scores.shape[:2] or boxes.shape[2:] not in ((1, 4), (scores.shape[2], 4)):
        raise Unsuited(f"boxes {list(boxes.shape)} for scores {list(scores.shape)}")


def _sorted(boxes: Array) -> Array:
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)


class _Rivals:
    """The boxes that were taken so far, each with its class.

    Args:
        extra: 1 where a box holds its last pixel as well.
        turned: Whether a box that ends before it begins is one, with its corners in order.
    """

    def __init__(self, extra: float = 0.0, *, turned: bool = True) -> None:
        self.extra = _SINGLE(extra)
        self.order = _sorted if turned else np.asarray
        self.boxes, self.labels = np.zeros((0, 4), _SINGLE), np.zeros(0, int)

    def add(self, box: Array, label: int = 0) -> None:
        self.boxes = np.concatenate([self.boxes, self.order(box)[None]])
        self.labels = np.append(self.labels, label)

    def overlap(self, box: Array) -> Array:
        """Of a box with each: what both share of what either has."""
        one, others = self.order(box), self.boxes
        ends = np.minimum(one[2:] + self.extra, others[:, 2:] + self.extra)
        sides = np.maximum(ends - np.maximum(one[:2], others[:, :2]), 0)
        shared = sides[:, 0] * sides[:, 1]
        own = np.prod(one[2:] - one[:2] + self.extra, dtype=_SINGLE)
        theirs = np.prod(others[:, 2:] - others[:, :2] + self.extra, axis=1, dtype=_SINGLE)
        return np.where(shared > 0, shared / (own + theirs - shared), _SINGLE(0))


def _corners(boxes: Array) -> Array:
    half = boxes[..., 2:] * _SINGLE(0.5)
    return np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], -1)


def _decoded(boxes: Array, anchors: Array, coding: int) -> Array:
    """What the network says of each anchor, added to it; corners are put in order before."""
    anchors = anchors if boxes.ndim == 3 else anchors[:, :, None]
    if coding == 1:
        middles = boxes[..., :2] * anchors[..., 2:] + anchors[..., :2]
        return np.concatenate([middles, anchors[..., 2:] * np.exp(boxes[..., 2:])], -1)
    return _sorted(boxes) + _sorted(anchors)


def efficient_nms(values: list[Any], said: Said) -> tuple[Array, ...]:
    """TensorRT's plugin/efficientNMSPlugin/README.md."""
    given: list[Any] = [np.asarray(v).astype(_SINGLE) for v in values if v is not None]
    boxes, scores = given[0], given[1].reshape(given[1].shape[:3])
    like = values[0]
    coding, most = said.get("box_coding", 0), said.get("max_output_boxes", 100)
    if len(given) > 2:
        boxes = _decoded(boxes, given[2], coding)
    boxes = _corners(boxes) if coding == 1 else boxes
    boxes = boxes[:, :, None] if boxes.ndim == 3 else boxes
    _agree(boxes, scores)
    least, active = said.get("score_threshold", 0.5), said.get("score_activation", 0)
    if active:
        share = least / (1 - least) if least < 1 else math.inf
        least = math.log(share) if least > 0 else -math.inf
    images, classes = len(scores), scores.shape[2]
    count, where = np.zeros((images, 1), np.int32), np.full((images, most), -1, np.int32)
    chosen = np.zeros((images, most, 4), like.dtype), np.zeros((images, most), like.dtype)
    labels = np.zeros((images, most), np.int32)
    for n in range(images):
        flat = scores[n].reshape(-1)
        order = [
            int(i)
            for i in np.argsort(-flat, kind="stable")[:_MOST_CONSIDERED]
            if flat[i] >= _SINGLE(least) and i % classes != said.get("background_class", -1)
        ]
        kept, place = _Rivals(), 0
        for i in order:
            anchor, label = divmod(i, classes)
            box = boxes[n, anchor, label if boxes.shape[2] > 1 else 0]
            if place == most:
                break
            close = kept.overlap(box) >= _SINGLE(said.get("iou_threshold", 0.5))
            if (close & ((kept.labels == label) | bool(said.get("class_agnostic", 0)))).any():
                continue
            score = 1 / (1 + np.exp(-np.float64(flat[i]))) if active else flat[i]
            chosen[0][n, place], chosen[1][n, place], labels[n, place] = box, score, label
            where[n, place] = anchor
            kept.add(box, label)
            place += 1
        count[n] = place
    return count, *chosen, labels, where


def _without_indices(values: list[Any], said: Said) -> tuple[Array, ...]:
    return efficient_nms(values, said)[:4]


def _batched(
    values: list[Any], said: Said, extra: float = 0.0, *, turned: bool = True
) -> tuple[Array, Array, Array, Array, Array]:
    """How many, boxes, scores, classes and places: class by class, and the best of all classes."""
    boxes: Any = np.asarray(values[0]).astype(_SINGLE)
    scores: Any = np.asarray(values[1]).astype(_SINGLE)
    scores = scores.reshape(scores.shape[:3])
    boxes = boxes[:, :, None] if boxes.ndim == 3 else boxes
    _agree(boxes, scores)
    images, anchors, classes = (scores.shape[axis] for axis in range(3))
    most = said["keep"]
    most = anchors if most < 0 else most
    count = np.zeros((images, 1), np.int32)
    found = np.zeros((images, most, 4), _SINGLE)
    scored, labels = np.zeros((images, most), _SINGLE), np.full((images, most), -1, np.int32)
    where = np.full((images, most), -1, np.int32)
    for n in range(images):
        left: list[tuple[float, int, int, Array]] = []
        for label in range(classes):
            if label == said["background"]:
                continue
            column = scores[n, :, label]
            best = np.argsort(-column, kind="stable")[: said["top"]]
            order = [i for i in best if column[i] > _SINGLE(said["score"])]
            kept = _Rivals(extra, turned=turned)
            for i in order:
                box = boxes[n, i, label if boxes.shape[2] > 1 else 0]
                if (kept.overlap(box) > _SINGLE(said["iou"])).any():
                    continue
                kept.add(box)
                left.append((float(column[i]), label, int(i), box))
        left.sort(key=lambda each: -each[0])
        for place, (score, label, i, box) in enumerate(left[:most]):
            found[n, place] = np.clip(box, 0, 1) if said["clip"] else box
            scored[n, place], labels[n, place], where[n, place] = score, label, i
        count[n] = min(len(left), most)
    return count, found, scored, labels, where


def batched_nms(values: list[Any], said: Said) -> tuple[Array, ...]:
    """TensorRT's plugin/batchedNMSPlugin/README.md.

    Of coordinates in pixels a box ends behind its last one, as in Caffe. What the kernel counts
    beyond that is left out: one pixel for boxes that lie apart, and without Caffe's semantics one
    more for each side of a box, but not of what two share.
    """
    whole = not said.get("isNormalized", 1) and bool(said.get("caffeSemantics", 1))
    said = {
        "score": said["scoreThreshold"],
        "iou": said["iouThreshold"],
        "top": said["topK"],
        "keep": said["keepTopK"],
        "background": said.get("backgroundLabelId", -1),
        "clip": said.get("clipBoxes", 1),
    }
    if said["score"] < 0:
        raise Unsuited("scores below 0 come behind what is left out")
    count, boxes, scores, labels, _ = _batched(values, said, 1.0 if whole else 0.0)
    kind = values[0].dtype
    return count, boxes.astype(kind), scores.astype(kind), labels.astype(kind)


def trt_batched_nms(values: list[Any], said: Said) -> tuple[Array, ...]:
    """`TRTBatchedNMS` of mmdeploy's docs/en/06-custom-ops/tensorrt.md.

    It adds no pixel, and a box that ends before it begins overlaps nothing.
    """
    top = said.get("topk", -1)
    said = {
        "score": said["score_threshold"],
        "iou": said["iou_threshold"],
        "top": top if top > 0 else values[0].shape[1],
        "keep": said["keep_topk"],
        "background": said.get("background_label_id", -1),
        "clip": said.get("clip_boxes", 1),
    }
    if said["score"] < 0:
        raise Unsuited("scores below 0 come behind what is left out")
    _, found, scores, labels, where = _batched(values, said, turned=False)
    return np.concatenate([found, scores[..., None]], -1), labels, where


def mmcv_nms(values: list[Any], said: Said) -> Array:
    """mmcv's own `NonMaxSuppression` of one class: the places of what stays, the best first.

    A box that ends before it begins overlaps nothing.
    """
    boxes, scores = (np.asarray(v).astype(_SINGLE) for v in values[:2])
    kept, left = _Rivals(said.get("offset", 0), turned=False), []
    for i in np.argsort(-scores, kind="stable"):
        if not (kept.overlap(boxes[i]) >= _SINGLE(said["iou_threshold"])).any():
            kept.add(boxes[i])
            left.append(int(i))
    return np.asarray(left, np.int64)


TABLE: Mapping[str, Callable[[list[Any], dict[str, Any]], Any]] = {
    "EfficientNMS_TRT": _without_indices,
    "EfficientNMSX_TRT": efficient_nms,
    "EfficientNMSX": efficient_nms,
    "BatchedNMS_TRT": batched_nms,
    "BatchedNMSDynamic_TRT": batched_nms,
    "TRTBatchedNMS": trt_batched_nms,
    "NonMaxSuppression": mmcv_nms,
}
