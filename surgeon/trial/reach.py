"""How large the values of a model become, for rewrites that leave them less room.

They are measured on the user's own inputs, and on drawn ones as the whole comparison draws them,
before the first such rewrite: the largest number alone of each value is kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from surgeon.errors import SurgeonError
from surgeon.inferring import NotInferred, inferred
from surgeon.isolation import lightened, open_session
from surgeon.reference.plan import without_calls
from surgeon.renaming import unused
from surgeon.verify.demands import demanded_sizes
from surgeon.verify.growth import Growth
from surgeon.verify.inputs import Drawing, required_inputs
from surgeon.verify.limits import bounds
from surgeon.verify.sizes import candidates, dynamic_dims, first_choices, fits

if TYPE_CHECKING:
    from surgeon.assumptions import Axioms
    from surgeon.model import Model
    from surgeon.recipe import Rule
    from surgeon.verify.given import Given

_FLOAT = onnx.TensorProto.FLOAT
_LARGEST = 2.0**14  # a quarter of the largest half: other inputs may give more
_LEAST = 2.0**-13  # twice the least half of full precision
_SEEDS = (0, 1)
_SETS = 4  # of the user's inputs
_TRIED = 6  # sizes, until the model runs
_HEAVY = 1024  # elements of a constant from which on its numbers decide no type


@dataclass
class Reach:
    """The largest magnitude of every value of float32.

    Attributes:
        model: What is rewritten; without one nothing is known.
        folder: Where its external data lie.
        axioms: What else is said of its shapes.
        given: What the user says of inputs.
    """

    model: Model | None = None
    folder: Path | None = None
    axioms: Axioms | None = None
    given: Given | None = None
    _before: onnx.ModelProto | None = field(default=None, repr=False)
    _folder: Path | None = field(default=None, repr=False)
    _found: dict[str, float] | None = field(default=None, repr=False)

    def begin(self, rules: Sequence[Rule], allow: Collection[str]) -> None:
        """Keep the model as it is, before the first rules that narrow values."""
        narrow = "approximate" in allow and any(rule.whole for rule in rules)
        if narrow and self.model is not None and self._before is None:
            proto, initializers = self.model.written()
            light, self._folder = lightened(proto, self.folder, initializers)
            self._before = without_calls(light)

    def outside(self, names: Sequence[str]) -> str:
        """Why halves do not hold what these values become; "" where they do, or nothing is known.

        Args:
            names: Of values.
        """
        if self._before is None:
            return ""
        if self._found is None:
            try:
                self._found = self._measured(self._before)
            except (SurgeonError, ValueError, NotInferred):
                # it does not run: nothing is known
                self._found = {}
        found = [self._found[name] for name in names if name in self._found]
        if any(size > _LARGEST for size in found):
            return (
                f"values reach beyond {_LARGEST:.0f} on the inputs compared, near where halves end"
            )
        if any(0 < size < _LEAST for size in found):
            return (
                f"all values are below {_LEAST:.2g} on the inputs compared, where halves are coarse"
            )
        return ""

    def _measured(self, before: onnx.ModelProto) -> dict[str, float]:
        model, names = _measuring(before)
        runner = open_session(model, folder=self._folder)
        found: dict[str, float] = {}
        for feeds in self._feeds(before):
            try:
                made = runner.run(feeds, [*names.values()])
            except SurgeonError:
                continue
            for name, output in names.items():
                size = float(made[output])
                found[name] = max(found.get(name, 0.0), size if np.isfinite(size) else np.inf)
        return found

    def _feeds(self, flat: onnx.ModelProto) -> Iterator[Mapping[str, Any]]:
        sets = self.given.sets if self.given else ()
        yield from (each.feeds for each in sets[:_SETS])
        shapes, said = (self.axioms.shapes, self.axioms.sizes) if self.axioms else ({}, {})
        tied = {dim: other for dim, other in said.items() if isinstance(other, str)}
        wanted = required_inputs(flat, shapes, tied)
        hints = {dim: list(s) for dim, s in said.items() if not isinstance(s, str)}
        growth = Growth(flat)
        lists = candidates(
            dynamic_dims(wanted), wanted, demanded_sizes(flat, wanted) | hints, growth
        )
        specs = self.given.specs if self.given else {}
        drawing = Drawing(wanted, bounds(flat, wanted), "normal", specs)
        for sizes in itertools.islice(first_choices(lists), _TRIED):
            if fits(sizes, wanted, growth):
                yield from (drawing.feeds(sizes, seed) for seed in _SEEDS)


def _measuring(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, str]]:
    """A model that gives the largest magnitude of each value, and which output is whose."""
    measuring = onnx.ModelProto()
    measuring.CopyFrom(model)
    graph = measuring.graph
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    kinds = _kinds(model)
    values = [value.name for value in graph.input]
    values += [name for node in graph.node for name in node.output]
    names: dict[str, str] = {}
    del graph.output[:]
    for place, name in enumerate(n for n in values if kinds.get(n) == _FLOAT):
        size = unused(f"surgeon_size_{place}", taken)
        names[name] = f"{size}_most"
        graph.node.append(onnx.helper.make_node("Abs", [name], [size]))
        graph.node.append(onnx.helper.make_node("ReduceMax", [size], [names[name]], keepdims=0))
        graph.output.append(onnx.helper.make_tensor_value_info(names[name], _FLOAT, []))
    return measuring, names


def _kinds(model: onnx.ModelProto) -> dict[str, int]:
    """The element types of values; large constants are not looked at for them."""
    light = onnx.ModelProto()
    light.ir_version = model.ir_version
    light.opset_import.extend(model.opset_import)
    light.graph.name = model.graph.name
    light.graph.node.extend(model.graph.node)
    light.graph.input.extend(model.graph.input)
    light.graph.output.extend(model.graph.output)
    declared = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:
        outside = tensor.data_location == onnx.TensorProto.EXTERNAL
        if not outside and np.prod(tensor.dims) < _HEAVY:
            light.graph.initializer.append(tensor)
        elif tensor.name not in declared:
            light.graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    graph = inferred(light).graph
    constants = {tensor.name for tensor in model.graph.initializer}
    values = (*graph.value_info, *graph.output, *model.graph.input)
    return {v.name: v.type.tensor_type.elem_type for v in values if v.name not in constants}
