"""torchvision's operators, in its own domain and as ATen: onnxruntime against the witness."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from aten_node import Left, Written, close, expected, lowered

R = np.random.default_rng(2)
F = np.float32
CORNERS = R.uniform(0, 20, (40, 2))
BOXES = np.concatenate([CORNERS, CORNERS + R.uniform(1, 12, (40, 2))], 1).astype(F)
SCORES = np.round(R.random(40), 1).astype(F)  # with ties
X = R.normal(size=(2, 3, 11, 13)).astype(F)
ROIS = np.array([[0, 2, 3, 20, 15], [1, -3, 1, 9, 30], [1, 5, 5, 5.2, 5.1], [0, 0, 0, 26, 22]], F)
CALLS: list[tuple[str, list[Any], int]] = [
    *(("nms", [BOXES, SCORES, t], 10) for t in (0.1, 0.5, 0.9)),
    *(("roi_align", [X, ROIS, 0.5, 3, 2, ratio, False], 10) for ratio in (2, 0, -1)),
    *(("roi_align", [X, ROIS, 0.5, 2, 4, ratio, True], 16) for ratio in (3, -1)),
]


def _deformed(groups: int, parts: int, *, masked: bool) -> list[Any]:
    x = R.normal(size=(2, 4, 6, 7)).astype(F)
    weight = R.normal(size=(6, 4 // groups, 3, 2)).astype(F)
    size = (3, 9)
    offset = (R.normal(size=(2, 2 * parts * 6, *size)) * 1.5).astype(F)
    mask = R.random((2, parts * 6, *size)).astype(F) if masked else np.zeros((2, 1), F)
    bias = R.normal(size=6).astype(F)
    return [x, weight, offset, mask, bias, 2, 1, 1, 2, 1, 2, groups, parts, masked]


CALLS += [
    ("deform_conv2d", _deformed(groups, parts, masked=masked), 19)
    for groups, parts, masked in ((1, 1, False), (2, 1, True), (1, 2, True), (2, 4, False))
]


@pytest.mark.parametrize("domain", ["torchvision", "org.pytorch.aten"])
@pytest.mark.parametrize(
    ("operator", "arguments", "least"), CALLS, ids=[f"{i}-{c[0]}" for i, c in enumerate(CALLS)]
)
def test_regions_as_torchvision_has_them(
    operator: str, arguments: list[Any], least: int, domain: str
) -> None:
    wanted = expected(operator, arguments)
    dynamic = operator != "deform_conv2d"
    written = Written(operator, arguments, "N", max(least, 13), dynamic=dynamic)
    written.main = onnx.helper.make_node(operator, written.main.input, [], domain=domain)
    (found,) = lowered(written, wanted, recipe="aten")
    assert found.dtype == wanted[0].dtype
    assert found.shape == wanted[0].shape
    close(found, wanted[0])


@pytest.mark.parametrize(
    ("operator", "arguments", "opset", "because"),
    [
        ("roi_align", CALLS[-5][1], 13, "aligned pixels needs opset 16"),
        ("deform_conv2d", CALLS[-1][1], 18, "needs opset 19"),
        ("nms", [BOXES, SCORES, 0.5], 9, "needs opset 10"),
        ("nms", [BOXES.astype("d"), SCORES.astype("d"), 0.5], 13, "in single precision alone"),
        ("ps_roi_align", [X, ROIS, 0.5, 3, 2, 2], 13, "ONNX has no `ps_roi_align`"),
        ("roi_pool", [X, ROIS, 0.5, 3, 2], 13, "ONNX has no `roi_pool`"),
    ],
)
def test_what_an_opset_or_onnx_lacks_is_refused(
    operator: str, arguments: list[Any], opset: int, because: str
) -> None:
    with pytest.raises(Left, match=because):
        lowered(Written(operator, arguments, "N", opset, dynamic=False), [X], recipe="aten")


def test_known_boxes() -> None:
    boxes = np.array([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]], F)
    (found,) = lowered(
        Written("nms", [boxes, np.array([0.5, 0.9, 0.1], F), 0.5], "N", 13, dynamic=True),
        [np.zeros(2, np.int64)],
        recipe="aten",
    )
    assert found.tolist() == [1, 2]
