"""What a caller asks of a comparison, held against the model: a typo must not pass for a check."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral, Real

from surgeon.assumptions import parse_assumptions
from surgeon.choices import check_by_name, check_data, plain_shapes
from surgeon.declared import tensor_of
from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.model import Model
from surgeon.verify.inputs import required_inputs
from surgeon.verify.limits import Dim
from surgeon.verify.sizes import dynamic_dims

Sizes = Mapping[str, Sequence[int] | str]


def check_asked(
    *, seeds: object, inputs: object, data: object, allow_approximate: float | None
) -> None:
    """See that options are of the kinds that they are to be.

    Raises:
        RecipeError: One is not.
    """
    check_by_name(inputs=inputs)
    check_data(data)
    for name, how in inputs.items() if isinstance(inputs, Mapping) else ():
        if not isinstance(how, str):
            raise RecipeError(
                f"how input `{name}` is drawn is a `{type(how).__name__}`, and no text",
                where="inputs",
                mend="Write it as `uniform(0,1)`; numbers of your own go into `data`, or `values`.",
            )
    if not (isinstance(seeds, Collection) and seeds and all(map(_is_natural, seeds))):
        raise RecipeError(
            f"`{seeds!r}` is no list of seeds",
            where="seeds",
            mend="Give whole numbers from 0, one for each draw: `seeds=(0, 1)`.",
        )
    if allow_approximate is not None and not (
        isinstance(allow_approximate, Real) and 0 <= allow_approximate < math.inf
    ):
        raise RecipeError(
            f"{allow_approximate!r} is no error that can be allowed",
            where="--tolerance",
            mend="Give a share of an output's spread, such as 0.01.",
        )


def shapes_of(model: Model, shape: Mapping[str, Sequence[Dim]] | None) -> dict[str, Sequence[Dim]]:
    """The shapes to use in place of the declared ones, seen to fit the model's inputs.

    Raises:
        RecipeError: There is no such input, or it has no such shape.
    """
    shapes = plain_shapes(shape)
    parse_assumptions(model, shapes, ())
    return dict(shapes)


def sizes_of(model: Model, shapes: Mapping[str, Sequence[Dim]], sizes: Sizes | None) -> Sizes:
    """The sizes to compare at, seen to be of dims that the model's inputs have.

    Raises:
        RecipeError: No input has a dim of this name, or what is given are no sizes.
    """
    check_by_name(sizes=sizes)
    if not sizes:
        return {}
    known = dims_of(model, shapes)
    found: dict[str, Sequence[int] | str] = {}
    for dim, given in sizes.items():
        for name in (dim, given) if isinstance(given, str) else (dim,):
            if name not in known:
                raise RecipeError(
                    f"no input has a dimension named `{name}`",
                    where="sizes",
                    mend=suggest(name, known),
                )
        found[dim] = given if isinstance(given, str) else _numbers(dim, given)
    return found


def dims_of(model: Model, shapes: Mapping[str, Sequence[Dim]]) -> set[str]:
    """The names of dims: those declared, those told in their place, and what unnamed ones get."""
    declared = (tensor_of(value.type) for value in model.proto.graph.input)
    known = {
        dim.dim_param
        for tensor in declared
        for dim in (tensor.shape.dim if tensor is not None else ())
        if dim.dim_param
    }
    known |= {dim for dims in shapes.values() for dim in dims if isinstance(dim, str)}
    try:
        return known | dynamic_dims(required_inputs(model.proto, shapes)).keys()
    except ValueError:  # what cannot be drawn is said where it is to be
        return known


def _numbers(dim: str, given: object) -> tuple[int, ...]:
    numbers = list(given) if isinstance(given, Collection) else []
    if not numbers or not all(map(_is_natural, numbers)):
        raise RecipeError(
            f"`{given!r}` is no list of sizes of `{dim}`",
            where="sizes",
            mend=f'Give whole numbers, `sizes={{"{dim}": [64, 37]}}`, or the name of a dimension '
            "that has the same size.",
        )
    return tuple(map(int, numbers))


def _is_natural(given: object) -> bool:
    """Whether it is a whole number that is not negative, numpy's too."""
    return isinstance(given, Integral) and not isinstance(given, bool) and int(given) >= 0
