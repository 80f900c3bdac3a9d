"""Models in ONNX's text syntax, as cases hold them: parsed, and inputs filled by seed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.parser

from surgeon import opsets
from surgeon.errors import Location, RecipeError
from surgeon.notation.operators import OF_RUNTIMES
from surgeon.parsed import of_parser
from surgeon.reference.early import SINCE
from surgeon.spelling import is_plugin
from surgeon.standard import STANDARD

_DEPRECATED = "is deprecated in domain_version"
_LEFT_OUT = "is marked single but has an empty string"  # an operand, as PyTorch 2.1 writes a norm
_UNKNOWN = re.compile(r"Unrecognized attribute: (\w+) for operator (\w+)")
_ABSENT = re.compile(r"No Op registered for (\w+) with domain_version")
# What onnxruntime saves in ONNX's own domain: never an operator there, or not at every opset.
_OF_RUNTIMES = OF_RUNTIMES | {"LayerNormalization", *SINCE}


@dataclass(frozen=True, slots=True)
class Filling:
    """How an input of a case's text is filled, which makes it an initializer.

    Attributes:
        seed: What its numbers are drawn from.
        scale: The standard deviation of normal numbers.
        between: Instead of normal numbers, uniform ones between these two; of integers, both
            ends included.
    """

    seed: int
    scale: float = 1.0
    between: tuple[float, float] | None = None

    def array(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
        """The numbers: the same ones for the same seed."""
        generator = np.random.default_rng([self.seed, 20])
        if dtype.kind in "iub":
            low, high = self.between or (0, 1)
            return generator.integers(int(low), int(high) + 1, shape).astype(dtype)
        if self.between is not None:
            return generator.uniform(*self.between, shape).astype(dtype)
        return (generator.normal(size=shape) * self.scale).astype(dtype)


@dataclass(frozen=True, slots=True)
class Text:
    """A model in ONNX's text syntax, and where it stands."""

    text: str
    location: Location

    def model(self, values: Mapping[str, Filling], opset: int | None = None) -> onnx.ModelProto:
        """The model, with the inputs of these names filled, at another opset if one is given.

        An operator that is deprecated at the opset is taken as it is.

        Raises:
            RecipeError: The text is no model, or one that ONNX's checker refuses.
        """
        model = self.parsed()
        for entry in model.opset_import:
            if opset is not None and entry.domain in STANDARD:
                entry.version = opset
        for value in list(model.graph.input):
            if value.name in values:
                model.graph.initializer.append(self._filled(value, values[value.name]))
                model.graph.input.remove(value)
        try:
            onnx.checker.check_model(model)
        except onnx.checker.ValidationError as error:
            if _is_met(str(error)):
                return model
            at = f" at opset {opset}" if opset is not None else ""
            raise RecipeError(
                f"ONNX's checker refuses this model{at}: {str(error).splitlines()[0]}",
                where=self.location,
                mend="Write a model that is valid.",
            ) from None
        return model

    def parsed(self) -> onnx.ModelProto:
        """The model as it is written, which no checker has seen.

        Raises:
            RecipeError: The text is no model.
        """
        try:
            return onnx.parser.parse_model(self.text)
        except onnx.parser.ParseError as error:
            raise self._error(error) from None

    def _filled(self, value: onnx.ValueInfoProto, filling: Filling) -> onnx.TensorProto:
        tensor = value.type.tensor_type
        shape = [dim.dim_value for dim in tensor.shape.dim]
        if not all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            raise RecipeError(
                f"`{value.name}` has values, and a shape that is not fixed",
                where=self.location,
                mend="Declare it with numbers only.",
            )
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        return onnx.numpy_helper.from_array(filling.array(shape, dtype), value.name)

    def _error(self, error: Exception) -> RecipeError:
        context, place = of_parser(error)
        where = self.location.shifted(*place) if place else self.location
        return RecipeError(
            f"this is no model in ONNX's text syntax: {context}",
            where=where,
            mend="See https://onnx.ai/onnx/repo-docs/Syntax.html.",
        )


def _is_met(refusal: str) -> bool:
    """Whether files hold what the checker refuses: of an older opset, or a runtime's own."""
    absent = _ABSENT.search(refusal)
    if absent is not None:
        return absent.group(1) in _OF_RUNTIMES or is_plugin(absent.group(1))
    unknown = _UNKNOWN.search(refusal)
    if unknown is None:
        return _DEPRECATED in refusal or _LEFT_OUT in refusal
    attribute, operator = unknown.groups()
    return any(move.attribute == attribute for move in opsets.MOVED.get(operator, ()))
