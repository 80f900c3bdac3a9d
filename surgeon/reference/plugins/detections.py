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


def _left(
    boxes: Array,
    suppresses: Callable[[Array], Array],
    extra: float = 0.0,
    labels: Array | None = None,
    most: int | None = None,
) -> list[int]:
    """Which of the boxes, the best first, are left: each takes away what it overlaps too much.

    Args:
        boxes: [count, 4].
        suppresses: Tells of shares, what both boxes have of what either has, which are too much.
        extra: 1 where a box holds its last pixel as well.
        labels: Their classes, where boxes of one class alone take each other away.
        most: How many at most.
    """
    lower, upper = boxes[:, :2], boxes[:, 2:] + _SINGLE(extra)
    areas = np.prod(upper - lower, axis=1, dtype=_SINGLE)
    alive, left = np.ones(len(boxes), bool), list[int]()
    for i in range(len(boxes)):
        if not alive[i]:
            continue
        if len(left) == most:
            break
        left.append(i)
        ends, begins = np.minimum(upper[i], upper[i + 1 :]), np.maximum(lower[i], lower[i + 1 :])
        sides = np.maximum(ends - begins, 0)
        shared = sides[:, 0] * sides[:, 1]
        share = np.where(shared > 0, shared / (areas[i] + areas[i + 1 :] - shared), _SINGLE(0))
        rival = True if labels is None else labels[i + 1 :] == labels[i]
        alive[i + 1 :] &= ~(suppresses(share) & rival)
    return left


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
    overlap = _SINGLE(said.get("iou_threshold", 0.5))
    for n in range(images):
        flat = scores[n].reshape(-1)
        order = np.argsort(-flat, kind="stable")[:_MOST_CONSIDERED]
        counts = (flat[order] >= _SINGLE(least)) & (
            order % classes != said.get("background_class", -1)
        )
        order = order[counts]
        anchor, label = order // classes, order % classes
        own = boxes[n, anchor, label if boxes.shape[2] > 1 else 0]
        rivals = None if said.get("class_agnostic", 0) else label
        kept = _left(_sorted(own), lambda share: share >= overlap, 0.0, rivals, most)
        best = flat[order[kept]].astype(np.float64)
        chosen[0][n, : len(kept)] = own[kept]
        chosen[1][n, : len(kept)] = 1 / (1 + np.exp(-best)) if active else best
        labels[n, : len(kept)], where[n, : len(kept)] = label[kept], anchor[kept]
        count[n] = len(kept)
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
    overlap = _SINGLE(said["iou"])
    for n in range(images):
        left: list[tuple[float, int, int, Array]] = []
        for label in range(classes):
            if label == said["background"]:
                continue
            column = scores[n, :, label]
            best = np.argsort(-column, kind="stable")[: said["top"]]
            order = best[column[best] > _SINGLE(said["score"])]
            own = boxes[n, order, label if boxes.shape[2] > 1 else 0]
            kept = _left(_sorted(own) if turned else own, lambda share: share > overlap, extra)
            left += [(float(column[order[k]]), label, int(order[k]), own[k]) for k in kept]
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
    order = np.argsort(-scores, kind="stable")
    overlap = _SINGLE(said["iou_threshold"])
    kept = _left(boxes[order], lambda share: share >= overlap, said.get("offset", 0))
    return order[kept].astype(np.int64)


TABLE: Mapping[str, Callable[[list[Any], dict[str, Any]], Any]] = {
    "EfficientNMS_TRT": _without_indices,
    "EfficientNMSX_TRT": efficient_nms,
    "EfficientNMSX": efficient_nms,
    "BatchedNMS_TRT": batched_nms,
    "BatchedNMSDynamic_TRT": batched_nms,
    "TRTBatchedNMS": trt_batched_nms,
    "NonMaxSuppression": mmcv_nms,
}
