"""Nodes of onnxruntime's own layers on quantized values, and of its older forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnxruntime_cases import Case, bytes_of, half, normal, quantized, single, whole, zero

_BYTES = {"x": bytes_of(2, 5, 8)}
_WIDE = {"w": bytes_of(8, 24, dtype=np.int8), "b": normal(24)}


def _attention(columns: int = 1, mask: Any = None, past: Any = None, **attributes: Any) -> Case:
    count = () if columns == 1 else (columns,)
    weights = {
        **_WIDE,
        "xs": single(0.02),
        "ws": np.abs(0.01 + 0.001 * normal(*count)).astype(np.float32),
        "xz": zero(119),
        "wz": np.zeros(count, np.int8),
    }
    inputs = dict(_BYTES)
    for name, value in (("mask", mask), ("past", past)):
        if value is not None:
            inputs[name] = value
    order = ["x", "w", "b", "xs", "ws", "mask" if mask is not None else "", "xz", "wz"]
    if past is not None:
        order.append("past")
    return Case(
        "QAttention",
        inputs,
        weights,
        order,
        {"num_heads": 2, **attributes},
        outputs=2 if past is not None else 1,
    )


def _embedding(segments: bool, mask: bool) -> Case:
    tables: dict[str, Any] = {"words": bytes_of(9, 8), "places": bytes_of(6, 8)}
    tables |= {"g": bytes_of(8), "b": bytes_of(8)}
    tables |= {"segs": bytes_of(2, 8)} if segments else {}
    weights = dict(tables)
    for at, name in enumerate(tables):
        weights |= quantized(name, 0.01 + 0.003 * at, 100 + 9 * at)
    inputs = {"ids": whole(9, 2, 5)}
    if segments:
        inputs["kinds"] = whole(2, 2, 5)
    if mask:
        inputs["mask"] = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    kinds, segs = ("kinds", "segs") if segments else ("", "")
    order = ["ids", kinds, "words", "places", segs, "g", "b", "mask" if mask else ""]
    for ending in "sz":
        order += [
            f"words{ending}",
            f"places{ending}",
            f"segs{ending}" if segments else "",
            *(f"g{ending}", f"b{ending}"),
        ]
    return Case("QEmbedLayerNormalization", inputs, weights, order, outputs=2, tolerance=2e-5)


def _named(kind: int, rows: int, columns: int, size: int) -> Case:
    count = rows * columns
    return Case(
        "MatMulBnb4",
        {"a": normal(3, columns)},
        {
            "b": bytes_of(-(-count // 2)),
            "m": np.abs(normal(-(-count // size))),
        },
        attributes={"K": columns, "N": rows, "block_size": size, "quant_type": kind},
        tolerance=1e-4,
    )


def _conv(last: int, **attributes: Any) -> Case:
    x = bytes_of(1, 6, 7, 4) if last else bytes_of(1, 4, 6, 7)
    return Case(
        "QLinearConv",
        {"x": x},
        {
            **quantized("x", 0.03, 120),
            "w": bytes_of(6, 4 // attributes.get("group", 1), 3, 3, dtype=np.int8),
            **quantized("w", 0.02, 0, np.int8),
            **quantized("y", 0.5, 128),
            "b": whole(500, 6),
        },
        ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"],
        {"channels_last": last, **attributes},
    )


LAYERS: Mapping[str, Case] = {
    "quantized attention": _attention(),
    "quantized attention, a scale a column": _attention(24),
    "quantized attention, lengths": _attention(mask=np.array([5, 3], np.int32)),
    "quantized attention, masked": _attention(mask=whole(2, 2, 5)),
    "quantized attention, causal": _attention(unidirectional=1),
    "quantized attention, continued": _attention(past=normal(2, 2, 2, 3, 4), unidirectional=1),
    "quantized attention, scaled": _attention(
        scale=0.25, mask_filter_value=-100.0, mask=whole(2, 2, 5)
    ),
    "quantized embedding": _embedding(segments=True, mask=True),
    "quantized embedding of words": _embedding(segments=False, mask=False),
    "nf4": _named(1, 6, 32, 16),
    "fp4": _named(0, 6, 32, 32),
    "nf4, blocks across rows": _named(1, 5, 24, 16),
    "nf4, odd": _named(1, 3, 17, 16),
    "quantized conv": _conv(0, pads=[1, 1, 1, 1]),
    "quantized conv, channels last": _conv(1, strides=[2, 1]),
    "quantized conv, channels last, grouped": _conv(1, group=2, pads=[0, 1, 2, 1]),
    "pool of bytes": Case(
        "NhwcMaxPool",
        {"x": bytes_of(1, 6, 7, 3)},
        attributes={"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]},
    ),
    "pool of signed bytes": Case(
        "NhwcMaxPool",
        {"x": bytes_of(1, 6, 7, 3, dtype=np.int8)},
        attributes={"kernel_shape": [3, 3], "ceil_mode": 1, "strides": [2, 2]},
    ),
    "new axis": Case("ExpandDims", {"x": normal(2, 3)}, {"a": whole(1, 1) + 1}, ["x", "a"]),
    "new axis from behind": Case("ExpandDims", {"x": normal(2, 3)}, {"a": np.int32([-1])}),
    "pad": Case("Pad", {"x": normal(2, 3)}, {"p": np.int64([[0, 1, 2, 0]]), "v": np.float32([2])}),
    "pad by edges": Case(
        "Pad", {"x": normal(2, 3)}, {"p": np.int64([0, 1, 2, 0])}, attributes={"mode": "edge"}
    ),
    "range": Case("Range", {"a": np.int64([2]), "b": np.int64([9]), "c": np.int64([3])}),
    "range by one": Case("Range", {"a": single(0.5), "b": single(4)}),
    "gather nd": Case("GatherND", {"x": normal(3, 4, 2)}, {"i": np.int32([[0, 1], [2, 3]])}),
    "unique": Case("Unique", {"x": np.float32([2, 1, 1, 3, 4, 3])}, outputs=3),
    "unfold": Case(
        "UnfoldTensor", {"x": normal(2, 9, 3)}, attributes={"dim": 1, "size": 3, "step": 2}
    ),
    "unfold the last": Case("UnfoldTensor", {"x": normal(2, 7)}, attributes={"size": 4}),
    "nf4 of halves": Case(
        "MatMulBnb4",
        {"a": half(3, 32)},
        {"b": bytes_of(96), "m": np.abs(half(12))},
        attributes={"K": 32, "N": 6, "block_size": 16, "quant_type": 1},
        tolerance=5e-2,
    ),
}
