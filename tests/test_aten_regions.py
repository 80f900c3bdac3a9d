"""torchvision's operators, in its own domain and as ATen: onnxruntime against the witness."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from aten_node import Left, Written, close, expected, lowered

import surgeon

R = np.random.default_rng(2)
F = np.float32
CORNERS = R.uniform(0, 20, (40, 2))
DYNAMIC = ("nms", "roi_align", "roi_pool")  # the others have a weight, or channels of each bin
BOXES = np.concatenate([CORNERS, CORNERS + R.uniform(1, 12, (40, 2))], 1).astype(F)
SCORES = np.round(R.random(40), 1).astype(F)  # with ties
X = R.normal(size=(2, 3, 11, 13)).astype(F)
ROIS = np.array([[0, 2, 3, 20, 15], [1, -3, 1, 9, 30], [1, 5, 5, 5.2, 5.1], [0, 0, 0, 26, 22]], F)
CALLS: list[tuple[str, list[Any], int]] = [
    *(("nms", [BOXES, SCORES, t], 10) for t in (0.1, 0.5, 0.9)),
    *(("roi_align", [X, ROIS, 0.5, 3, 2, ratio, False], 10) for ratio in (2, 0, -1)),
    *(("roi_align", [X, ROIS, 0.5, 2, 4, ratio, True], 16) for ratio in (3, -1)),
]


SENSITIVE = R.normal(size=(2, 12, 11, 13)).astype(F)  # channels of 3 times 2 or 2 times 3 bins
CALLS += [
    *(("ps_roi_align", [SENSITIVE, ROIS, 0.5, 3, 2, ratio], 16) for ratio in (2, 0)),
    ("ps_roi_align", [SENSITIVE, ROIS, 0.25, 2, 3, -1], 16),
    *(("roi_pool", [X, ROIS, scale, 3, 2], 9) for scale in (0.5, 0.25, 1.0)),
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
    ("deform_conv2d", _deformed(groups, parts, masked=masked), opset)
    for groups, parts, masked in ((1, 1, False), (2, 1, True), (1, 2, True), (2, 4, False))
    for opset in (9, 11, 16, 19)
]


# as torchvision 0.5 has them, without alignment and without a mask
CALLS += [
    ("roi_align", [X, ROIS, 0.5, 3, 2, 2], 10),
    *(
        ("deform_conv2d", [*given[:3], *given[4:-1]], opset)
        for given in (_deformed(1, 2, masked=False), _deformed(2, 1, masked=False))
        for opset in (9, 19)
    ),
]


@pytest.mark.parametrize("domain", ["torchvision", "org.pytorch.aten"])
@pytest.mark.parametrize(
    ("operator", "arguments", "least"), CALLS, ids=[f"{i}-{c[0]}" for i, c in enumerate(CALLS)]
)
def test_regions_as_torchvision_has_them(
    operator: str, arguments: list[Any], least: int, domain: str
) -> None:
    wanted = expected(operator, arguments)
    written = Written(operator, arguments, "N", least, dynamic=operator in DYNAMIC)
    written.main = onnx.helper.make_node(operator, written.main.input, [], domain=domain)
    (found,) = lowered(written, wanted[:1], recipe="aten")
    assert found.dtype == wanted[0].dtype
    assert found.shape == wanted[0].shape
    close(found, wanted[0])


@pytest.mark.slow
@pytest.mark.parametrize("opset", [9, 16, 19])
@pytest.mark.parametrize("batch", [1, 3])
def test_deformed_images_of_any_size(opset: int, batch: int) -> None:
    """All but the kernel's dims are dynamic."""
    draw = np.random.default_rng(5)
    weight = draw.normal(size=(4, 2, 3, 3)).astype(F)
    parameters = [2, 2, 1, 1, 1, 1, 2, 2, True]
    graph = onnx.parser.parse_graph(
        f"""g (float[N,4,H,W] x) => (y, offset, mask) <float[4] bias = {{1, 2, 3, 4}}> {{
          offset = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w_offset)
          logits = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w_mask)
          mask = Sigmoid (logits)
          y = torchvision.deform_conv2d (x, w, offset, mask, bias, {", ".join("abcdefghi")})
        }}"""
    )
    weights = {"w": weight, "w_offset": draw.normal(size=(36, 4, 3, 3)).astype(F) / 4}
    weights["w_mask"] = draw.normal(size=(18, 4, 3, 3)).astype(F)
    for name, value in weights.items():
        graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    for name, value in zip("abcdefghi", parameters, strict=True):
        graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    domains = [onnx.helper.make_opsetid("", opset), onnx.helper.make_opsetid("torchvision", 1)]
    model = onnx.helper.make_model(graph, opset_imports=domains, ir_version=8)
    result = surgeon.apply(model, "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    x = draw.normal(size=(batch, 4, 9, 6)).astype(F)
    session = onnxruntime.InferenceSession(result.model.to_proto().SerializeToString())
    found, offset, mask = session.run(["y", "offset", "mask"], {"x": x})
    operands = [x, weight, offset, mask, np.arange(1, 5).astype(F)]
    (wanted,) = expected("deform_conv2d", [*operands, *parameters])
    close(found, wanted)


@pytest.mark.parametrize(
    ("operator", "arguments", "opset", "because"),
    [
        ("roi_align", [X, ROIS, 0.5, 2, 4, 3, True], 13, "aligned pixels needs opset 16"),
        ("ps_roi_align", [SENSITIVE, ROIS, 0.5, 3, 2, 2], 13, "aligned pixels needs opset 16"),
        ("nms", [BOXES, SCORES, 0.5], 9, "needs opset 10"),
        ("nms", [BOXES.astype("d"), SCORES.astype("d"), 0.5], 13, "in single precision alone"),
        ("ps_roi_pool", [SENSITIVE, ROIS, 0.5, 3, 2], 13, "ONNX has no `ps_roi_pool`"),
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
