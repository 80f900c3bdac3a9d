"""Plugins for boxes that are turned: polygons cut by the sides of one another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surgeon.reference.errors import NoWitness, Unsuited
from surgeon.reference.operators.precision import narrow, wide

Array = NDArray[Any]
Said = Mapping[str, Any]


def _polygons(boxes: Array) -> Array:
    """The corners [count, 4, 2] of boxes (x, y, width, height, angle)."""
    x, y, w, h, angle = (boxes[:, i, None] for i in range(5))
    right, down = np.array([-0.5, 0.5, 0.5, -0.5]) * w, np.array([-0.5, -0.5, 0.5, 0.5]) * h
    across = right * np.cos(angle) - down * np.sin(angle)
    return np.stack([x + across, y + right * np.sin(angle) + down * np.cos(angle)], -1)


def _cut(polygons: Array, normal: Array, reach: float) -> Array:
    """Polygons without what lies beyond a line.

    Corners beyond it are put onto it, and the places where edges cross it are put in; what then
    runs to and fro along the line has no area.
    """
    beyond = polygons @ normal - reach
    after = np.roll(beyond, -1, 1)
    crosses = beyond * after < 0
    share = np.where(crosses, beyond / np.where(crosses, beyond - after, 1), 0)
    edges = np.roll(polygons, -1, 1) - polygons
    kept = polygons - np.maximum(beyond, 0)[..., None] * normal
    crossing = np.where(crosses[..., None], polygons + share[..., None] * edges, kept)
    return np.stack([kept, crossing], 2).reshape(len(polygons), 2 * polygons.shape[1], 2)


def _shared(one: Array, others: Array) -> Array:
    """The area that a box has of each of others."""
    polygons = _polygons(others) - one[:2]
    for side, angle in ((one[2], one[4]), (one[3], one[4] + math.pi / 2)):
        normal = np.array([math.cos(angle), math.sin(angle)])
        for way in (normal, -normal):
            polygons = _cut(polygons, way, abs(side) / 2)
    x, y = polygons[..., 0], polygons[..., 1]
    area: Array = np.abs((x * np.roll(y, -1, 1) - y * np.roll(x, -1, 1)).sum(1)) / 2
    return area


def _left(boxes: Array, overlap: float) -> list[int]:
    """Which of the boxes, the best first, no better one that is left overlaps by more."""
    alive, left = np.ones(len(boxes), bool), list[int]()
    areas = boxes[:, 2] * boxes[:, 3]
    for i in range(len(boxes)):
        if alive[i]:
            left.append(i)
            shared = _shared(boxes[i], boxes[i + 1 :])
            share = shared / (areas[i] + areas[i + 1 :] - shared)
            alive[i + 1 :] &= ~(share > overlap)
    return left


def nms_rotated(values: list[Any], said: Said) -> Array:
    """`NMSRotated` of mmdeploy's docs/en/06-custom-ops/onnxruntime.md; angles are radians."""
    boxes, scores = wide(values[0]), np.asarray(values[1])
    single = boxes.ndim == 2
    least = said.get("score_threshold", -math.inf if single else 0.0)
    if single:
        boxes, scores = boxes[None], scores[None, None]
    if boxes.shape[::2] != (len(scores), 5) or boxes.shape[1] != scores.shape[2]:
        raise Unsuited(f"boxes {list(boxes.shape)} for scores {list(scores.shape)}")
    found = [np.zeros((0, 3), np.int64)]
    for image, label in np.ndindex(*scores.shape[:2]):
        line = scores[image, label]
        order = np.argsort(-line, kind="stable")
        order = order[line[order] > np.float32(least)]
        kept = order[_left(boxes[image, order], float(np.float32(said["iou_threshold"])))]
        found.append(np.stack([np.full(len(kept), image), np.full(len(kept), label), kept], 1))
    rows = np.concatenate(found).astype(np.int64)
    return rows[:, 2] if single else rows


def roi_align_rotated(values: list[Any], said: Said) -> Array:
    """`RoIAlignRotated` of mmdeploy's docs/en/06-custom-ops/onnxruntime.md.

    Regions are (image, x, y, width, height, angle). A sample less than a pixel outside the image is
    the border's, and one further off is 0.
    """
    x, rois = wide(values[0]), wide(values[1])
    bins, ratio = (said["output_height"], said["output_width"]), said.get("sampling_ratio", 0)
    if ratio <= 0:
        raise NoWitness("MMCVRoIAlignRotated", where="", why="as many samples as a region wants")
    scale, aligned = said.get("spatial_scale", 1.0), bool(said.get("aligned", 1))
    sides = x.shape[2:]
    found = np.zeros((len(rois), x.shape[1], *bins))
    for n, (image, right, down, width, height, angle) in enumerate(rois):
        if not 0 <= int(image) < len(x) or image < 0:
            raise Unsuited(f"a region of image {image}")
        middle = np.array([down, right]) * scale - (0.5 if aligned else 0)
        size = np.array([height, width]) * scale
        size = size if aligned else np.maximum(size, 1)
        angle = -angle if said.get("clockwise", 0) else angle
        turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        for i, j in np.ndindex(*bins):
            for a, b in np.ndindex(ratio, ratio):
                inner = np.array([i + (a + 0.5) / ratio, j + (b + 0.5) / ratio]) / bins
                place = turn @ ((inner - 0.5) * size) + middle
                if (place < -1).any() or (place > sides).any():
                    continue
                place = np.clip(place, 0, np.array(sides) - 1)
                for more in itertools.product((0, 1), (0, 1)):
                    row, column = np.floor(place).astype(int) + more
                    share = (1 - abs(place[0] - row)) * (1 - abs(place[1] - column))
                    if share > 0:
                        found[n, :, i, j] += share * x[int(image), :, row, column]
    return narrow(found / ratio**2, values[0])


TABLE: Mapping[str, Callable[[list[Any], dict[str, Any]], Any]] = {
    "NMSRotated": nms_rotated,
    "MMCVRoIAlignRotated": roi_align_rotated,
    "RoIAlignRotated": roi_align_rotated,
}
