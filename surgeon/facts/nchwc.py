"""Output shapes of onnxruntime's operators on channels in blocks; how many it pads is not told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from surgeon.dims import Dim
from surgeon.facts.fact import Fact
from surgeon.facts.likeness import Form
from surgeon.facts.question import Question


def _plane(question: Question, *, last: bool) -> tuple[Dim, Dim, Dim] | None:
    """N, H and W of operand 0."""
    shape = question.shape(0)
    if shape is None or len(shape) != 4:
        return None
    return (shape[0], *shape[1:3]) if last else (shape[0], *shape[2:])


def _reorder_input(question: Question) -> list[Fact] | None:
    fact, plane = question.inputs[0], _plane(question, last=_is_last(question))
    if fact is None or plane is None:
        return None
    return [Fact(fact.dtype, (plane[0], question.fresh(1), *plane[1:]))]


def _reorder_output(question: Question) -> list[Fact] | None:
    fact, plane = question.inputs[0], _plane(question, last=False)
    channels = question.attributes.get("channels")
    if fact is None or plane is None or not isinstance(channels, int):
        return None
    count, *lengths = plane
    shape = (count, *lengths, channels) if _is_last(question) else (count, channels, *lengths)
    return [Fact(fact.dtype, shape)]


def _upsample(question: Question) -> list[Fact] | None:
    fact, shape = question.inputs[0], question.shape(0)
    scales = question.attributes.get("scales") or [1] * 4
    if fact is None or shape is None or len(shape) != len(scales):
        return None
    return [Fact(fact.dtype, tuple(a * b for a, b in zip(shape, scales, strict=True)))]


def _is_last(question: Question) -> bool:
    return bool(question.attributes.get("channels_last"))


TABLE: Mapping[str, Form | Callable[[Question], list[Fact] | None]] = MappingProxyType(
    {
        "Conv": Form("Conv", (0, 1)),
        **{
            operator: Form(operator, (0,))
            for operator in ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")
        },
        "ReorderInput": _reorder_input,
        "ReorderOutput": _reorder_output,
        "Upsample": _upsample,
    }
)
