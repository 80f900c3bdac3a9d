"""What the user adds to the axioms: `--shape x=1,1,128,t` and `--assume 't % 32 == 0'`."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import onnx

from surgeon import dims
from surgeon.declared import length_of, tensor_of
from surgeon.dims import Dim
from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.model import Model
from surgeon.numerals import NO_LENGTH

_MANY_MORE = 8  # nodes that a result has more than the model
_NAME = r"([A-Za-z_][\w.\-/:]*)"
_NUMBER = r"([0-9]{1,10})"
_FORMS = (
    (re.compile(rf"^{_NAME}\s*%\s*{_NUMBER}\s*==\s*0$"), "multiple"),
    (re.compile(rf"^{_NAME}\s*%\s*{_NUMBER}\s*==\s*{_NUMBER}$"), "remainder"),
    (re.compile(rf"^{_NAME}\s*==\s*{_NUMBER}$"), "number"),
    (re.compile(rf"^{_NAME}\s*==\s*{_NAME}$"), "same"),
    (re.compile(rf"^{_NAME}\s*>=\s*{_NUMBER}$"), "least"),
    (re.compile(rf"^{_NAME}\s*>\s*{_NUMBER}$"), "more"),
    (re.compile(rf"^{_NAME}\s*<=\s*{_NUMBER}$"), "most"),
    (re.compile(rf"^{_NAME}\s*<\s*{_NUMBER}$"), "less"),
)
_NONE_AT_ALL = (
    ", 0. Where that stands for a size that is not known, clear it first: "
    "`model.graph.input[...].type.tensor_type.shape.dim[{}].Clear()`."
)
_HOLDS = {"least": operator.ge, "more": operator.gt, "most": operator.le, "less": operator.lt}


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
    symbols, sizes = _assumed(known, assume)
    numbers = {
        dim.dim_param: given
        for name, shape in fixed.items()
        for dim, given in zip(declared[name].shape.dim, shape, strict=False)
        if dim.dim_param and isinstance(given, int)
    }
    if (unmet := _unmet(assume, numbers)) is not None:
        raise RecipeError(
            f"`{unmet}` is assumed, and not so of the shapes that are given",
            where="--assume",
            mend="Leave it out, or give other numbers with `--shape`.",
        )
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
    if (unmet := _unmet(axioms.assumed, sizes)) is not None:
        raise RecipeError(
            f"its sizes are not as assumed: `{unmet}`",
            where=f"--data {label}",
            mend="Give data of such sizes, or leave the assumption out.",
        )


def _unmet(assume: Sequence[str], sizes: Mapping[str, int]) -> str | None:
    """The first assumption that these sizes contradict; names without a size contradict none."""
    for text in assume:
        form, match = _read(text)
        name, *rest = match.groups()
        if name not in sizes or (form == "same" and rest[0] not in sizes):
            continue
        size, number = sizes[name], sizes[rest[0]] if form == "same" else int(rest[0])
        if form in ("multiple", "remainder"):
            holds = size % number == int(rest[1] if form == "remainder" else 0)
        else:
            holds = _HOLDS.get(form, operator.eq)(size, number)
        if not holds:
            return text
    return None


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


def _assumed(
    known: set[str], assume: Sequence[str]
) -> tuple[dict[str, Dim], dict[str, tuple[int, ...] | str]]:
    symbols: dict[str, Dim] = {}
    sizes: dict[str, tuple[int, ...] | str] = {}
    said: dict[str, dict[str, tuple[str, ...]]] = {}
    for text in assume:
        form, match = _read(text)
        name, other = match.group(1), match.group(2)
        for used in [name, other] if form == "same" else [name]:
            if used not in known:
                raise RecipeError(
                    f"no input has a dimension named `{used}`",
                    where="--assume",
                    mend=suggest(used, known) or f"The dimensions are {', '.join(sorted(known))}.",
                )
        kind = {"remainder": "multiple", "more": "least", "less": "most"}.get(form, form)
        about = said.setdefault(name, {})
        if kind in about or (about and {"number", "same"} & {kind, *about}):
            raise RecipeError(
                f"two assumptions about `{name}` do not go together: `{text}` is the second",
                where="--assume",
                mend="Give one that says both.",
            )
        off = {"more": 1, "less": -1}.get(form)
        about[kind] = match.groups()[1:] if off is None else (str(int(other) + off),)
    for name, about in said.items():
        symbols[name], sizes[name] = _said(name, about)
        if not sizes[name]:
            raise RecipeError(
                f"no size of `{name}` meets what is assumed of it",
                where="--assume",
                mend="Give bounds that leave one.",
            )
    whole = {name: dims.substitute(value, symbols) for name, value in symbols.items()}
    return whole, sizes


def _read(text: str) -> tuple[str, re.Match[str]]:
    """The form of an assumption, and its parts."""
    for pattern, form in _FORMS:
        match = pattern.match(text.strip())
        if match and form == "same":
            return form, match
        if match and _possible(form, *(int(number) for number in match.groups()[1:])):
            return form, match
    raise RecipeError(
        f"surgeon cannot use the assumption `{text}`",
        where="--assume",
        mend="Write it as `t % 32 == 0`, `t == 64`, `h == w`, `t >= 16` or `t <= 512`.",
    )


def _possible(form: str, number: int, rest: int = 0) -> bool:
    """Whether lengths are of these numbers, and a remainder is below what is divided by."""
    return number < NO_LENGTH and (rest < number or form not in ("multiple", "remainder"))


def _said(name: str, about: Mapping[str, Sequence[str]]) -> tuple[Dim, tuple[int, ...] | str]:
    """What stands for a dimension, and sizes that meet what is said about it."""
    if "same" in about:
        return dims.symbol(about["same"][0]), about["same"][0]
    if "number" in about:
        number = int(about["number"][0])
        return number, (number,)
    least = int(about["least"][0]) if "least" in about else 0
    most = int(about["most"][0]) if "most" in about else None
    step, rest = 1, 0
    if "multiple" in about:
        step, *more = (int(n) for n in about["multiple"])
        rest = more[0] if more else 0
    first = max(0, -((rest - least) // step))  # the least n with step * n + rest >= least
    begin = max(first, 1)
    tries: tuple[int, ...] = tuple(step * n + rest for n in range(begin, begin + 3))
    if "multiple" not in about:
        tries = (max(least, 1), least + 1, least + 7)
    high = None if most is None else (most - rest) // step - first
    symbol = dims.symbol(_named(name, about, first, most), 0, high)
    sizes = tuple(n for n in tries if most is None or n <= most)
    if high is not None and high >= 0 and len(set(sizes)) < len(tries):
        sizes = tuple(dict.fromkeys([*sizes, step * (first + high) + rest]))
    return (symbol + first) * step + rest, sizes


def _named(name: str, about: Mapping[str, Sequence[str]], first: int, most: int | None) -> str:
    """The symbol for what is over the least value, in steps: another for each thing assumed."""
    text = f"{name}/{about['multiple'][0]}" if "multiple" in about else name
    if first or ("multiple" not in about and "least" in about):
        text += f"-{first}"
    return text if most is None else f"{text}<={most}"


def cost_of_sizes(model: Model, before: Mapping[str, int], after: Mapping[str, int]) -> str | None:
    """What to add where sizes that are not known cost nodes; nothing where that is not seen.

    Args:
        model: As it came.
        before: How many nodes of each operator it has.
        after: How many the result has.
    """
    more = sum(after.values()) - sum(before.values())
    if more < _MANY_MORE:
        return None
    weights = {tensor.name for tensor in model.proto.graph.initializer}
    for value in model.proto.graph.input:
        declared = tensor_of(value.type)
        if value.name in weights or declared is None or not declared.HasField("shape"):
            continue
        dims = declared.shape.dim
        lengths = [length_of(dim) for dim in dims]
        if None in lengths[1:]:  # more than the batch
            said = ",".join(
                f"<{dim.dim_param or at}>" if length is None else str(length)
                for at, (dim, length) in enumerate(zip(dims, lengths, strict=True))
            )
            return (
                f"the result has {more:,} nodes more than the model, some to compute sizes: "
                f"give numbers for those that you know, `--shape {value.name}={said}`"
            )
    return None
