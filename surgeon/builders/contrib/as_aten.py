"""Operators that PyTorch's exporter wrote as onnxruntime's own, as the ATen operators they were."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import operand
from surgeon.builders.contrib.settings import settings
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

# In the order of PyTorch's numbers (aten/src/ATen/native/GridSamplerUtils.h).
_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def as_aten(draft: Draft, match: Match) -> gs.Tensor:
    """The ATen operator of one of `_LIKE`."""
    return _LIKE[match.root.op](draft, match.root)


def _inverse(draft: Draft, node: gs.Node) -> gs.Tensor:
    return _aten(draft, "inverse", node.inputs[0])


def _trilu(draft: Draft, node: gs.Node) -> gs.Tensor:
    """Of the diagonal `k`, which onnxruntime takes from a vector of one as well."""
    name = "triu" if node.attrs.get("upper", 1) else "tril"
    diagonal = operand(node, 1)
    if diagonal is None:
        return _aten(draft, name, node.inputs[0])
    number = draft.facts.array(diagonal)
    if number is None or number.size != 1:
        raise Refused("its diagonal is computed where it runs")
    return _aten(draft, name, node.inputs[0], int(number.reshape(())))


def _cdist(draft: Draft, node: gs.Node) -> gs.Tensor:
    metric = str(node.attrs.get("metric", "sqeuclidean"))
    if metric not in ("euclidean", "sqeuclidean"):
        raise Refused(f"nothing is known of its metric {metric!r}")
    distances = _aten(draft, "cdist", *node.inputs, 2.0)
    if metric == "euclidean":
        return distances
    squares: gs.Tensor = draft.op("Mul", distances, distances)
    return squares


def _grid_sample(draft: Draft, node: gs.Node) -> gs.Tensor:
    mode = _number(node, "mode", _MODES)
    padding = _number(node, "padding_mode", _PADDINGS)
    aligned = bool(node.attrs.get("align_corners", 0))
    return _aten(draft, "grid_sampler", *node.inputs, mode, padding, aligned)


def _number(node: gs.Node, key: str, names: Sequence[str]) -> int:
    name = str(node.attrs.get(key, names[0]))
    if name not in names:
        raise Refused(f"its {key} is {name!r}, which PyTorch does not know")
    return names.index(name)


def _rfft(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`com.microsoft.Rfft (x)`: PyTorch's `rfft` of before 1.8, which gives pairs as well.

    Its lengths need not be even, and the sum is not divided.
    """
    return _aten(draft, "rfft", node.inputs[0], *_transformed(node))


def _irfft(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`com.microsoft.Irfft (x)`: what Rfft was of, of an even length; it is divided by its size."""
    return _aten(draft, "irfft", node.inputs[0], *_transformed(node))


def _transformed(node: gs.Node) -> tuple[int, bool, bool]:
    """How many axes, and that half of the frequencies are there and nothing is scaled."""
    given = settings(node, 1, 1, {"signal_ndim": 1, "normalized": 0, "onesided": 1})
    if given["normalized"] or not given["onesided"]:
        raise Refused("onnxruntime knows it with half of the frequencies, and not normalised, only")
    return int(given["signal_ndim"]), False, True


def _complex_mul(draft: Draft, node: gs.Node) -> gs.Tensor:
    """`com.microsoft.ComplexMul (a, b)` of pairs; ComplexMulConj has the conjugate of b."""
    settings(node, 2, 2)
    a, b = (_aten(draft, "view_as_complex", t) for t in node.inputs[:2])
    if node.op == "ComplexMulConj":
        b = _aten(draft, "conj", b)
    return _aten(draft, "view_as_real", _aten(draft, "mul", a, b))


def _aten(draft: Draft, operator: str, *arguments: Any) -> gs.Tensor:
    operands = [
        a if isinstance(a, gs.Tensor) else draft.constant(np.array(a), "argument")
        for a in arguments
    ]
    made: gs.Tensor = draft.op(operator, *operands, domain="aten")
    return made


_LIKE: Mapping[str, Callable[[Draft, gs.Node], gs.Tensor]] = {
    "CDist": _cdist,
    "ComplexMul": _complex_mul,
    "ComplexMulConj": _complex_mul,
    "GridSample": _grid_sample,
    "Inverse": _inverse,
    "Irfft": _irfft,
    "Rfft": _rfft,
    "Trilu": _trilu,
}
