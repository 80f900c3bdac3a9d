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


def _overlap(one: Array, other: Array, extra: float = 0.0) -> Any:
    """Intersection over union of two boxes of two corners, of whole pixels where `extra` is 1."""
    one = np.concatenate([np.minimum(one[:2], one[2:]), np.maximum(one[:2], one[2:])])
    other = np.concatenate([np.minimum(other[:2], other[2:]), np.maximum(other[:2], other[2:])])
    more = _SINGLE(extra)
    ends = np.minimum(one[2:] + more, other[2:] + more)
    sides = ends - np.maximum(one[:2], other[:2])
    if (sides <= 0).any():
        return _SINGLE(0)
    shared = sides[0] * sides[1]
    areas = [np.prod(box[2:] - box[:2] + more, dtype=_SINGLE) for box in (one, other)]
    return shared / (areas[0] + areas[1] - shared)


def _corners(boxes: Array) -> Array:
    half = boxes[..., 2:] * _SINGLE(0.5)
    return np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], -1)


def _decoded(boxes: Array, anchors: Array, coding: int) -> Array:
    """What the network says of each anchor, added to it; corners are put in order before."""
    anchors = anchors if boxes.ndim == 3 else anchors[:, :, None]
    if coding == 1:
        middles = boxes[..., :2] * anchors[..., 2:] + anchors[..., :2]
        return np.concatenate([middles, anchors[..., 2:] * np.exp(boxes[..., 2:])], -1)
    first, second = (
        np.concatenate([np.minimum(b[..., :2], b[..., 2:]), np.maximum(b[..., :2], b[..., 2:])], -1)
        for b in (boxes, anchors)
    )
    return first + second


def efficient_nms(values: list[Any], said: Said) -> tuple[Array, ...]:
    """TensorRT's plugin/efficientNMSPlugin/README.md."""
    given, like = [np.asarray(v).astype(_SINGLE) for v in values if v is not None], values[0]
    boxes, scores = given[0], given[1].reshape(given[1].shape[:3])
    coding, most = said.get("box_coding", 0), said.get("max_output_boxes", 100)
    if len(given) > 2:
        boxes = _decoded(boxes, given[2], coding)
    boxes = _corners(boxes) if coding == 1 else boxes
    boxes = boxes[:, :, None] if boxes.ndim == 3 else boxes
    _agree(boxes, scores)
    least, active = said.get("score_threshold", 0.5), said.get("score_activation", 0)
    if active:
        least = (
            -math.inf if least <= 0 else math.inf if least >= 1 else math.log(least / (1 - least))
        )
    images, _, classes = scores.shape
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
        kept: list[tuple[int, Array]] = []
        for i in order:
            anchor, label = divmod(i, classes)
            box = boxes[n, anchor, label if boxes.shape[2] > 1 else 0]
            rivals = (b for c, b in kept if c == label or said.get("class_agnostic", 0))
            if len(kept) == most:
                break
            if any(_overlap(box, b) >= _SINGLE(said.get("iou_threshold", 0.5)) for b in rivals):
                continue
            place = len(kept)
            score = 1 / (1 + np.exp(-np.float64(flat[i]))) if active else flat[i]
            chosen[0][n, place], chosen[1][n, place], labels[n, place] = box, score, label
            where[n, place] = anchor
            kept.append((label, box))
        count[n] = len(kept)
    return count, *chosen, labels, where


def _without_indices(values: list[Any], said: Said) -> tuple[Array, ...]:
    return efficient_nms(values, said)[:4]


def _batched(
    values: list[Any], said: Said, extra: float = 0.0
) -> tuple[Array, Array, Array, Array, Array]:
    """How many, boxes, scores, classes and places: class by class, and the best of all classes."""
    boxes = np.asarray(values[0]).astype(_SINGLE)
    scores = np.asarray(values[1]).astype(_SINGLE)
    scores = scores.reshape(scores.shape[:3])
    boxes = boxes[:, :, None] if boxes.ndim == 3 else boxes
    _agree(boxes, scores)
    images, anchors, classes = scores.shape
    most = said["keep"]
    most = anchors if most < 0 else most
    count = np.zeros((images, 1), np.int32)
    found = np.zeros((images, most, 4), _SINGLE)
    best, labels = np.zeros((images, most), _SINGLE), np.full((images, most), -1, np.int32)
    where = np.full((images, most), -1, np.int32)
    for n in range(images):
        left: list[tuple[float, int, int, Array]] = []
        for label in range(classes):
            if label == said["background"]:
                continue
            column = scores[n, :, label]
            order = np.argsort(-column, kind="stable")
            order = [i for i in order[: said["top"]] if column[i] > _SINGLE(said["score"])]
            kept: list[Array] = []
            for i in order:
                box = boxes[n, i, label if boxes.shape[2] > 1 else 0]
                if any(_overlap(box, b, extra) > _SINGLE(said["iou"]) for b in kept):
                    continue
                kept.append(box)
                left.append((float(column[i]), label, int(i), box))
        left.sort(key=lambda each: -each[0])
        for place, (score, label, i, box) in enumerate(left[:most]):
            found[n, place] = np.clip(box, 0, 1) if said["clip"] else box
            best[n, place], labels[n, place], where[n, place] = score, label, i
        count[n] = min(len(left), most)
    return count, found, best, labels, where


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
    """`TRTBatchedNMS` of mmdeploy's docs/en/06-custom-ops/tensorrt.md; it adds no pixel."""
    boxes = np.asarray(values[0])
    if (boxes[..., 2:] < boxes[..., :2]).any():
        raise Unsuited("a box ends before it begins")
    top = said.get("topk", -1)
    said = {
        "score": said["score_threshold"],
        "iou": said["iou_threshold"],
        "top": top if top > 0 else boxes.shape[1],
        "keep": said["keep_topk"],
        "background": said.get("background_label_id", -1),
        "clip": said.get("clip_boxes", 1),
    }
    if said["score"] < 0:
        raise Unsuited("scores below 0 come behind what is left out")
    _, found, scores, labels, where = _batched(values, said)
    return np.concatenate([found, scores[..., None]], -1), labels, where


def mmcv_nms(values: list[Any], said: Said) -> Array:
    """mmcv's own `NonMaxSuppression` of one class: the places of what stays, the best first."""
    boxes, scores = (np.asarray(v).astype(_SINGLE) for v in values[:2])
    if boxes.ndim != 2 or (boxes[:, 2:] < boxes[:, :2]).any():
        raise Unsuited("a box ends before it begins")
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        shares = (_overlap(boxes[i], boxes[j], said.get("offset", 0)) for j in kept)
        if not any(share >= _SINGLE(said["iou_threshold"]) for share in shares):
            kept.append(int(i))
    return np.asarray(kept, np.int64)


TABLE: Mapping[str, Callable[[list[Any], dict[str, Any]], Any]] = {
    "EfficientNMS_TRT": _without_indices,
    "EfficientNMSX_TRT": efficient_nms,
    "EfficientNMSX": efficient_nms,
    "BatchedNMS_TRT": batched_nms,
    "BatchedNMSDynamic_TRT": batched_nms,
    "TRTBatchedNMS": trt_batched_nms,
    "NonMaxSuppression": mmcv_nms,
}
