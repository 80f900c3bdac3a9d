"""Draws inputs by seed: of the declared dtypes, within the range that the inputs' readers allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx

from surgeon.declared import is_sequence, length_of, tensor_of
from surgeon.verify.limits import FREE, Bound, Dim, Input
from surgeon.verify.specs import Spec, fitting

DRAWN = ("normal", "plain", "uniform", "positive")  # by seed
STRATEGIES = (*DRAWN, "ones", "zeros")
WORDS = ("", "a", "surgeon", "onnx", "Ärzte", "0", "two words")
_WORDS = {"i": "small integers", "u": "small integers", "b": "true or false", "O": "words"}


def required_inputs(
    model: onnx.ModelProto,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    tied: Mapping[str, str] | None = None,
) -> tuple[Input, ...]:
    """The inputs without an initializer, with the shapes as given or else as declared.

    Args:
        model: The model.
        shapes: By input name, in place of what is declared.
        tied: By dim name, another dim that has the same size.

    Raises:
        ValueError: An input cannot be drawn: it holds no tensors, or their rank or dtype is not
            known.
    """
    initializers = {tensor.name for tensor in model.graph.initializer}
    return tuple(
        _input(value, (shapes or {}).get(value.name), tied or {})
        for value in model.graph.input
        if value.name not in initializers
    )


def _input(
    value: onnx.ValueInfoProto, given: Sequence[Dim] | None, tied: Mapping[str, str]
) -> Input:
    tensor, is_list = tensor_of(value.type), is_sequence(value.type)
    if tensor is None:
        raise ValueError(f"input `{value.name}` is neither a tensor nor a sequence of tensors")
    if given is None and not tensor.HasField("shape"):
        raise ValueError(f"the rank of input `{value.name}` is not declared; give its shape")
    dims: list[Dim] = []
    if given is not None:
        dims = list(given)
    else:
        for axis, dim in enumerate(tensor.shape.dim):
            length = length_of(dim)
            dims.append(dim.dim_param or f"{value.name}.{axis}" if length is None else length)
    if tensor.elem_type == onnx.TensorProto.STRING:
        dtype: np.dtype[Any] = np.dtype(object)
    else:
        try:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        except KeyError:
            raise ValueError(
                f"input `{value.name}` is of dtype {tensor.elem_type}, which ONNX lacks"
            ) from None
    same = tuple(tied.get(dim, dim) if isinstance(dim, str) else dim for dim in dims)
    return Input(value.name, dtype, (f"{value.name}.length", *same) if is_list else same, is_list)


def draw(
    inputs: Sequence[Input],
    sizes: Mapping[str, int],
    seed: int,
    *,
    allowed: Mapping[str, Bound] | None = None,
) -> dict[str, Any]:
    """One array an input, of a sequence a list of them; the same for the same seed.

    Args:
        inputs: What to draw.
        sizes: The dynamic dims' sizes.
        seed: Any non-negative number.
        allowed: Bounds of integer inputs.
    """
    return Drawing(inputs, allowed or {}, "normal").feeds(sizes, seed)


def _array(
    generator: np.random.Generator,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strategy: str,
    bound: Bound | None,
) -> Any:
    if dtype.kind in "iu":
        return _integers(generator, dtype, shape, strategy, bound)
    if dtype == np.bool_:
        if strategy in ("ones", "zeros"):
            return np.full(shape, strategy == "ones")
        return np.asarray(generator.random(shape) < 0.5)
    if dtype.kind == "O":
        return np.asarray(generator.choice(np.array(WORDS, object), shape), object)
    if dtype.kind == "c":
        imaginary = _floats(generator, shape, strategy)
        return (_floats(generator, shape, strategy) + 1j * imaginary).astype(dtype)
    return _floats(generator, shape, strategy).astype(dtype)


def _integers(
    generator: np.random.Generator,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strategy: str,
    bound: Bound | None,
) -> Any:
    if bound is not None:
        low, high = bound.low, max(bound.low + 1, int(bound.high))
    elif dtype.itemsize == 1 and strategy == "normal":
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max) + 1  # pixels, quantities
    else:
        low, high = FREE
    if strategy in ("ones", "zeros"):
        return np.full(shape, min(high - 1, max(low, int(strategy == "ones"))), dtype)
    return np.asarray(generator.integers(low, high, shape)).astype(dtype)


def _marked(generator: np.random.Generator, array: Any, marks: tuple[int, ...]) -> Any:
    """Every fourth number is a mark."""
    chosen = generator.choice(np.array(marks, array.dtype), array.shape)
    return np.where(generator.random(array.shape) < 0.25, chosen, array)


def _floats(generator: np.random.Generator, shape: tuple[int, ...], strategy: str) -> Any:
    if strategy in ("ones", "zeros"):
        return np.full(shape, float(strategy == "ones"))
    if strategy == "uniform":
        return np.asarray(generator.random(shape))
    if strategy == "positive":
        return np.asarray(generator.random(shape) + 0.5)
    array = np.asarray(generator.normal(size=shape))
    flat = array.reshape(-1)
    few = (
        0 if strategy == "plain" else flat.size // 64
    )  # large and small magnitudes, and zeros, among the normal ones
    if few:
        places = generator.choice(flat.size, 3 * few, replace=False)
        flat[places[:few]] *= 8.0
        flat[places[few : 2 * few]] *= 1e-3
        flat[places[2 * few :]] = 0.0
    return flat.reshape(shape)


@dataclass(frozen=True)
class Drawing:
    """A way of drawing inputs.

    Attributes:
        inputs: What to draw.
        allowed: Bounds of integer inputs.
        strategy: One of STRATEGIES.
        specs: How the user wants inputs drawn, by name: whatever the strategy.
        fixed: What inputs of one number hold, by name.
    """

    inputs: Sequence[Input]
    allowed: Mapping[str, Bound]
    strategy: str
    specs: Mapping[str, Spec] = field(default_factory=dict)
    fixed: Mapping[str, int] = field(default_factory=dict)

    def feeds(self, sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
        """One set of inputs."""
        shapes = {each.name: each.shape(sizes) for each in self.inputs}
        feeds: dict[str, Any] = {}
        for place, each in enumerate(self.inputs):
            array = self._values(place, each, sizes, shapes, seed)
            feeds[each.name] = [array[n, ...] for n in range(len(array))] if each.is_list else array
        return feeds

    def _values(
        self,
        place: int,
        each: Input,
        sizes: Mapping[str, int],
        shapes: Mapping[str, tuple[int, ...]],
        seed: int,
    ) -> Any:
        """What one input holds: an array, also of a sequence."""
        shape = shapes[each.name]
        if each.name in self.fixed:
            return np.full(shape, self.fixed[each.name], each.dtype)
        generator = np.random.default_rng([seed, place])
        bound, spec = self._bound(each, sizes), self._spec(each)
        if spec is not None:
            return spec.draw(generator, each.dtype, shape, shapes)
        array = _array(generator, each.dtype, shape, self.strategy, bound)
        if bound is None:
            return array
        if bound.marks and self.strategy in DRAWN and array.size > 1:
            array = _marked(generator, array, bound.marks)
        return np.sort(array)[::-1] if bound.falls else array

    def _bound(self, each: Input, sizes: Mapping[str, int]) -> Bound | None:
        """What an integer may be; below a length, by how long that is."""
        bound = self.allowed.get(each.name)
        if bound is not None and isinstance(bound.high, str):
            return replace(bound, high=sizes.get(bound.high, 2))
        return bound

    def _spec(self, each: Input) -> Spec | None:
        """How the user says that an input is drawn, or its name where nothing bounds it."""
        spec = self.specs.get(each.name)
        if spec is None and each.name not in self.allowed:
            spec = fitting(each.name, each.dtype, len(each.dims))
        return spec

    def at_marks(self) -> Iterator[Drawing]:
        """Where a single number is one that the model asks for: other nodes may run there."""
        for each in self.inputs:
            if each.name not in self.specs and all(dim == 1 for dim in each.dims):
                bound = self.allowed.get(each.name)
                for mark in bound.marks if bound else ():
                    yield replace(self, fixed={each.name: mark})

    def at_others(
        self, sizes: Mapping[str, int], seeds: Sequence[int]
    ) -> Iterator[tuple[Drawing, bool]]:
        """Where a single truth or small number is one that no seed draws: a branch may run there.

        Args:
            sizes: Of the dynamic dims.
            seeds: Those that are compared anyway: a few, which may all draw the same.

        Yields:
            The drawing, and whether the model has to take it: a truth, as every other.
        """
        for place, each in enumerate(self.inputs):
            if any(dim != 1 for dim in each.dims) or each.name in self.fixed or self._spec(each):
                continue
            bound = self._bound(each, sizes)
            if each.dtype == np.bool_:
                few = range(2)
            elif each.dtype.kind in "iu" and (bound or each.dtype.itemsize > 1):
                if bound and bound.marks:  # `at_marks` has what matters
                    continue
                low, high = (bound.low, bound.high) if bound else FREE
                few = range(low, min(int(high), low + FREE[1]))
            else:
                continue
            shapes = {each.name: each.shape(sizes)}
            values = (self._values(place, each, sizes, shapes, seed) for seed in seeds)
            drawn = {int(np.reshape(value, -1)[0]) for value in values}
            for number in few:
                if number not in drawn:
                    yield replace(self, fixed={each.name: number}), each.dtype == np.bool_

    def describe(self) -> dict[str, str]:
        """How each input is drawn, in words."""
        found = {}
        for each in self.inputs:
            bound, spec = self.allowed.get(each.name), self._spec(each)
            if spec is not None:
                found[each.name] = spec.text
            elif bound is not None:
                free = (bound.low, bound.high) == FREE
                range_ = _WORDS["i"] if free else f"from {bound.low} to below {bound.high}"
                range_ += ", falling" if bound.falls else ""
                among = bound.marks and any(dim != 1 for dim in each.dims)
                found[each.name] = (
                    f"{range_}, {_listed(bound.marks)} among them" if among else range_
                )
            else:
                found[each.name] = self._of_its_kind(each.dtype)
        return found

    def _of_its_kind(self, dtype: np.dtype[Any]) -> str:
        if dtype.kind in "iu" and dtype.itemsize == 1 and self.strategy == "normal":
            return "any number of its type"
        return _WORDS.get(dtype.kind, self.strategy)


def _listed(numbers: Sequence[int]) -> str:
    *rest, last = map(str, numbers)
    return f"{', '.join(rest)} and {last}" if rest else last
