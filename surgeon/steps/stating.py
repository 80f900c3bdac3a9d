"""Writes what is proven of values' types and shapes into the file, for tools that infer none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx

from surgeon.declared import length_of
from surgeon.dims import Dim
from surgeon.facts import Fact, Facts
from surgeon.links import bodies
from surgeon.model import Model
from surgeon.recipe import StateShapesStep
from surgeon.sizenames import SizeNames, is_formula, names_of


def state_shapes(model: Model, facts: Facts, step: StateShapesStep) -> int:
    """Say of each value what is proven: its dtype, its rank, numbers, and sizes of inputs by name.

    A size that is computed from those is a formula, `h//2`; one that is computed otherwise is left
    open. What the file said of a value is replaced; where nothing is proven it stays, and so does
    the name that an output has for a size that is no input's. Gives of how many values the file
    said something else, or nothing.

    Args:
        model: Its graphs are given `stated`, `corrected` and `declared`, which the writer uses.
        facts: What is proven.
        step: Says whether formulas are written. Where they are not, outputs have no names of their
            own either: who takes names for sizes takes these for others.
    """
    names = names_of(model, facts, getattr(model.graph, "declared", {}))
    sizes = _Sizes(names, computed=step.formulas)
    news = _state_outputs(model, facts, sizes)  # first: they have names of their own
    news += _open_inputs(model)
    for graph in (model.graph, *bodies(model.graph)):
        origin: Any = getattr(graph, "origin", None)
        if not isinstance(origin, onnx.GraphProto):
            continue
        said = {value.name: value for value in origin.value_info}
        outputs = {value.name for value in origin.output}
        stated = {value.name: value for value in getattr(graph, "stated", ())}
        corrected = dict(getattr(graph, "corrected", {}))
        for node in graph.nodes:
            for tensor in node.outputs:
                fact = facts.of(tensor)
                if not tensor.name or tensor.name in outputs or not _is_known(fact):
                    continue
                shape = [sizes.said(dim) for dim in fact.shape or ()]
                value = onnx.helper.make_tensor_value_info(tensor.name, fact.dtype, shape)
                (corrected if tensor.name in said else stated)[tensor.name] = value
                news += said.get(tensor.name) != value
        graph.stated, graph.corrected = list(stated.values()), corrected
    return news


class _Sizes:
    """What is written of sizes.

    Args:
        names: What the inputs' are called.
        computed: Whether anything is written of what is no input's.
    """

    def __init__(self, names: SizeNames, *, computed: bool) -> None:
        self.names = names
        self.computed = computed
        self._kept: dict[str, Dim] = {}  # names that outputs alone have

    def keep(self, shape: Sequence[Dim], called: Sequence[str]) -> None:
        """Take note of the names that an output keeps for its sizes."""
        for dim, name in zip(shape, called, strict=False):
            if name and self._keeps(dim, name):
                self._kept.setdefault(name, dim)

    def said(self, dim: Dim, called: str = "") -> int | str | None:
        """A size as it is written.

        Args:
            dim: What is proven.
            called: What the output calls it whose size it is.
        """
        if isinstance(dim, int):
            return dim
        if name := self.names.of(dim, called):
            return name
        if not self.computed:
            return None
        if called and self._keeps(dim, called):
            return called
        text = self.names.formula(dim)
        return None if self._kept.get(str(text), dim) != dim else text

    def _keeps(self, dim: Dim, called: str) -> bool:
        """Whether an output's own name stands: not for what is another size for all that is known.

        A formula is no name: it is written anew where it can be.
        """
        if isinstance(dim, int) or self.names.of(dim) is not None:
            return False
        if called in self.names.sizes:
            return not self.names.tells(dim)
        return not is_formula(called) or self.names.formula(dim) is None


def _is_known(fact: Fact) -> bool:
    return fact.items is None and bool(fact.dtype) and fact.rank is not None


def _state_outputs(model: Model, facts: Facts, sizes: _Sizes) -> int:
    """Outputs of the model; a size that is proven to be an input's has its name."""
    origin: Any = getattr(model.graph, "origin", None)
    declared = dict(getattr(model.graph, "declared", {}))
    known = [
        (value, facts.of(tensor), _called(declared.get(value.name, value)))
        for value, tensor in zip(origin.output, model.graph.outputs, strict=False)
        if tensor.inputs and _is_known(facts.of(tensor))
    ]
    for _, fact, called in known:
        sizes.keep(fact.shape or (), called)
    news = 0
    for value, fact, called in known:
        names = called if len(called) == fact.rank else [""] * (fact.rank or 0)
        shape = [sizes.said(*pair) for pair in zip(fact.shape or (), names, strict=True)]
        declared[value.name] = onnx.helper.make_tensor_value_info(value.name, fact.dtype, shape)
        news += value != declared[value.name]
    model.graph.declared = declared
    return news


def _open_inputs(model: Model) -> int:
    """Leave sizes open that inputs declare to be below 0; gives of how many."""
    origin: Any = getattr(model.graph, "origin", None)
    declared = dict(getattr(model.graph, "declared", {}))
    news = 0
    for value in origin.input:
        opened = onnx.ValueInfoProto()
        opened.CopyFrom(declared.get(value.name, value))
        for dim in opened.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and length_of(dim) is None:
                dim.ClearField("dim_value")
        if opened != declared.get(value.name, value):
            declared[value.name] = opened
            news += 1
    model.graph.declared = declared
    return news


def _called(value: onnx.ValueInfoProto) -> list[str]:
    """What a value's declaration calls its sizes, each; empty for numbers."""
    return [dim.dim_param for dim in value.type.tensor_type.shape.dim]
