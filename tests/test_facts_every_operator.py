"""Facts of every operator: onnx's node tests, with names for all lengths of their inputs."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_cases import cases
from shares import every
from truth import infer

from surgeon import dims

pytestmark = pytest.mark.slow


def without_lengths(
    model: onnx.ModelProto, inputs: list[Any], without_axes: int | None = None
) -> dict[str, int] | None:
    """The lengths of a model's inputs, which lose them; None where an input is no tensor.

    Args:
        model: Changed.
        inputs: What it is given.
        without_axes: The place of an input of which not even the rank stays known.
    """
    found = {}
    for place, (value, given) in enumerate(zip(model.graph.input, inputs, strict=False)):
        if not value.type.HasField("tensor_type") or not hasattr(given, "shape"):
            return None
        if place == without_axes:
            value.type.tensor_type.ClearField("shape")
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"i{place}_{axis}"
            found[dim.dim_param] = given.shape[axis]
    for value in model.graph.output:
        value.type.Clear()
    return found


def with_few_numbers(model: onnx.ModelProto, inputs: list[Any]) -> None:
    """What inputs hold becomes constant, where it is a few whole numbers; outputs tell nothing."""
    for value, given in list(zip(model.graph.input, inputs, strict=False)):
        if isinstance(given, np.ndarray) and given.dtype.kind in "iub" and given.size <= 8:
            model.graph.initializer.append(onnx.numpy_helper.from_array(given, value.name))
            model.graph.input.remove(value)
    for value in model.graph.output:
        value.type.Clear()


def said(case: SimpleNamespace, without_axes: int | None = None) -> Iterator[tuple[str, bool]]:
    """What facts say of a case's outputs where no length is told, and whether it is so."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    lengths = without_lengths(model, case.data_sets[0][0], without_axes)
    if lengths is not None:
        yield from judged(case, model, lengths)


def judged(
    case: SimpleNamespace, model: onnx.ModelProto, lengths: dict[str, int]
) -> Iterator[tuple[str, bool]]:
    """What facts say of a model's outputs at these lengths, and whether it is so."""
    expected = case.data_sets[0][1]
    facts, tensors = infer(model)
    for value, result in zip(model.graph.output, expected, strict=False):
        shape = facts.of(tensors[value.name]).shape if value.name in tensors else None
        if shape is not None and isinstance(result, np.ndarray):
            told = f"{case.name}: `{value.name}` is {list(map(str, shape))}, and has {result.shape}"
            yield (
                told,
                len(shape) == result.ndim
                and all(
                    dims.symbols(dim) - lengths.keys() or dims.evaluate(dim, lengths) == size
                    for dim, size in zip(shape, result.shape, strict=True)
                ),
            )


def test_lengths_are_what_onnx_says_they_are() -> None:
    found = [each for case in cases() for each in said(case)]
    assert len(found) > 1500
    assert [told for told, is_so in found if not is_so] == []


def test_nor_is_anything_made_up_where_the_rank_of_one_input_is_unknown() -> None:
    found = [
        each
        for case in cases()[:: every(4)]
        for place in range(len(case.model.graph.input))
        for each in said(case, place)
    ]
    assert len(found) > 200
    assert [told for told, is_so in found if not is_so] == []


def test_what_follows_from_numbers_is_so_too() -> None:
    found = []
    for case in cases():
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        with_few_numbers(model, case.data_sets[0][0])
        found += judged(case, model, {})
    assert len(found) > 1500
    assert [told for told, is_so in found if not is_so] == []
