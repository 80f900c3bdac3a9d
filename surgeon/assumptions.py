"""What the user adds to the axioms: `--shape x=1,1,128,t` and `--assume 't % 32 == 0'`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import onnx

from surgeon.assumed import assumed, unmet
from surgeon.declared import length_of, tensor_of
from surgeon.dims import Dim
from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.model import Model
from surgeon.numerals import NO_LENGTH

_NONE_AT_ALL = (
    ", 0. Where that stands for a size that is not known, clear it first: "
    "`model.graph.input[...].type.tensor_type.shape.dim[{}].Clear()`."
)


class Axioms(NamedTuple):
    """What holds beside the declared types.

    Attributes:
        shapes: By input name: numbers, or names of dimensions that stay dynamic.
        symbols: What stands for a named dimension.
        sizes: By dimension name: sizes that meet the assumptions, for the check, or the name of a
            dimension of the same size.
        texts: What the user wrote, for the report.
        told: Inputs whose value the user told: no inputs of the result.
        freed: By input name, the axes that are a number in the file and are to be dynamic, each
            with its name.
        assumed: What the user assumed, as it was written.
    """

    shapes: Mapping[str, tuple[int | str, ...]]
    symbols: Mapping[str, Dim]
    sizes: Mapping[str, tuple[int, ...] | str]
    texts: tuple[str, ...]
    told: frozenset[str] = frozenset()
    freed: Mapping[str, Mapping[int, str]] = MappingProxyType({})
    assumed: tuple[str, ...] = ()

    @property
    def fixed(self) -> dict[str, int]:
        """The named dimensions that were given a number."""
        return {name: value for name, value in self.symbols.items() if isinstance(value, int)}


def parse_assumptions(
    model: Model,
    shapes: Mapping[str, Sequence[int | str]],
    assume: Sequence[str],
    *,
    frees: bool = False,
) -> Axioms:
    """Check the user's additions against the model's inputs.

    The shape of a sequence is that of each tensor in it.

    Args:
        model: Its inputs are what is said of.
        shapes: By input name.
        assume: Of dimensions.
        frees: Whether a recipe makes sizes dynamic: names may stand for numbers then.

    Raises:
        RecipeError: No such input or dimension, a rank that differs, or an assumption surgeon
            cannot use.
    """
    initializers = {tensor.name for tensor in model.proto.graph.initializer}
    declared = {
        v.name: tensor_of(v.type) or onnx.TypeProto.Tensor()
        for v in model.proto.graph.input
        if v.name not in initializers
    }
    fixed: dict[str, tuple[int | str, ...]] = {}
    freed: dict[str, dict[int, str]] = {}
    texts: list[str] = []
    for name, shape in shapes.items():
        if name not in declared:
            raise RecipeError(
                f"the model has no input `{name}`",
                where="--shape",
                mend=_meant(name, shape, declared),
            )
        dims = declared[name].shape.dim
        _see_shape(name, shape, declared[name])
        named = _freed(name, dims, shape, frees=frees)
        if named:
            freed[name] = named
        fixed[name] = tuple(
            dims[axis].dim_value if axis in named else given for axis, given in enumerate(shape)
        )
        texts.append(f"{name}=[{', '.join(map(str, shape))}]")
    known = {
        dim.dim_param
        for type_ in declared.values()
        for dim in type_.shape.dim
        if dim.HasField("dim_param")
    } | {d for shape in fixed.values() for d in shape if isinstance(d, str)}
    numbers = _numbers(declared, fixed)
    symbols, sizes = assumed(known, assume, numbers)
    if (broken := unmet(assume, numbers, known)) is not None:
        raise RecipeError(
            f"`{broken}` is assumed, and not so of the shapes that are given",
            where="--assume",
            mend="Leave it out, or give other numbers with `--shape`.",
        )
    called = sorted(symbols.keys() - sizes.keys())  # as two of one name are of one size
    texts += [f"the size called `{name}` is what that says" for name in called]
    return Axioms(fixed, symbols, sizes, (*texts, *assume), freed=freed, assumed=tuple(assume))


def see_sizes(axioms: Axioms, model: Model, feeds: Mapping[str, Any], label: str) -> None:
    """See that real inputs have sizes that are assumed.

    Args:
        axioms: What is assumed.
        model: Its inputs declare the names.
        feeds: By input name.
        label: What the inputs are from.

    Raises:
        RecipeError: They have others.
    """
    sizes: dict[str, int] = {}
    for value in model.proto.graph.input:
        tensor, given = tensor_of(value.type), feeds.get(value.name)
        if tensor is None or not isinstance(given, np.ndarray):
            continue
        named = axioms.shapes.get(value.name) or [dim.dim_param for dim in tensor.shape.dim]
        there = zip(named, given.shape, strict=False)
        sizes |= {name: size for name, size in there if isinstance(name, str)}
    if (broken := unmet(axioms.assumed, sizes, axioms.sizes)) is not None:
        raise RecipeError(
            f"its sizes are not as assumed: `{broken}`",
            where=f"--data {label}",
            mend="Give data of such sizes, or leave the assumption out.",
        )


def _meant(
    name: str, shape: Sequence[int | str], declared: Mapping[str, onnx.TypeProto.Tensor]
) -> str:
    """What may be meant by a shape of no input: the size of that name, or another input."""
    sizes = {dim.dim_param for tensor in declared.values() for dim in tensor.shape.dim}
    if name in sizes and len(shape) == 1:
        return f"`{name}` is a size: say `--assume '{name} == {shape[0]}'`."
    return suggest(name, declared) or f"Its inputs are {', '.join(declared)}."


def _see_shape(name: str, shape: Sequence[int | str], type_: onnx.TypeProto.Tensor) -> None:
    """See that an input has as many dimensions, and that the numbers are lengths."""
    if type_.HasField("shape") and len(type_.shape.dim) != len(shape):
        raise RecipeError(
            f"input `{name}` has {len(type_.shape.dim)} dimensions, not {len(shape)}",
            where="--shape",
            mend="Give one number or name for each dimension.",
        )
    for given in shape:
        if isinstance(given, int) and not 0 <= given < NO_LENGTH:
            raise RecipeError(
                f"{given} is no length of a dimension of input `{name}`",
                where="--shape",
                mend="Give a number below 2^31, or a name.",
            )


def _freed(
    name: str, dims: Sequence[Any], shape: Sequence[int | str], *, frees: bool
) -> dict[int, str]:
    """By axis, the names that stand where an input declares a number; only a recipe frees them."""
    found: dict[int, str] = {}
    for axis, (dim, given) in enumerate(zip(dims, shape, strict=False)):
        if length_of(dim) in (None, given):
            continue
        if not frees or not isinstance(given, str):
            raise RecipeError(
                f"input `{name}` declares {dim.dim_value} where {given} is given",
                where="--shape",
                mend="A fixed dimension cannot be changed; give its number"
                + (_who_frees(axis, given) if dim.dim_value else _NONE_AT_ALL.format(axis)),
            )
        found[axis] = given
    return found


def _who_frees(axis: int, given: int | str) -> str:
    """Which recipe makes a dimension dynamic, if one does; ends the sentence."""
    if axis == 1:
        return "."
    named = isinstance(given, str)
    if axis == 0:
        return "; the recipe `any-batch` makes the first one dynamic" + (
            f", as `batch`, without `--shape`: `--rename batch={given}` calls it so."
            if named
            else ", in a run before this one: any number of items goes then."
        )
    return "; the recipe `any-size` makes sizes dynamic, put it in front" + (
        "." if named else ", in a run before this one."
    )


def with_dim(axioms: Axioms, model: onnx.ModelProto, name: str) -> Axioms:
    """What holds still where some of the shapes that were told have a dynamic dimension since.

    Args:
        axioms: As they were.
        model: As it is.
        name: Of that dimension.
    """
    shapes = dict(axioms.shapes)
    for value in model.graph.input:
        tensor = tensor_of(value.type)
        if value.name in shapes and tensor is not None:
            shapes[value.name] = tuple(
                name if dim.dim_param == name else told
                for dim, told in zip(tensor.shape.dim, shapes[value.name], strict=True)
            )
    symbols, sizes = dict(axioms.symbols), dict(axioms.sizes)
    if isinstance(symbols.get(name), int):  # a number that was told for what it is free of now
        del symbols[name]
        sizes.pop(name, None)
    return axioms._replace(shapes=shapes, symbols=symbols, sizes=sizes)


def _numbers(
    declared: Mapping[str, onnx.TypeProto.Tensor], shapes: Mapping[str, Sequence[int | str]]
) -> dict[str, int]:
    """Names of dimensions that shapes give a number; none that they give two, or a name too."""
    told: dict[str, set[int | str]] = {}
    for name, shape in shapes.items():
        for dim, given in zip(declared[name].shape.dim, shape, strict=False):
            if dim.dim_param:
                told.setdefault(dim.dim_param, set()).add(given)
    one = ((name, given.pop()) for name, given in told.items() if len(given) == 1)
    return {name: given for name, given in one if isinstance(given, int)}
