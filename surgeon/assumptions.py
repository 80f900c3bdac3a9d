"""What the user adds to the axioms: `--shape x=1,1,128,t` and `--assume 't % 32 == 0'`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from surgeon import dims
from surgeon.dims import Dim
from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.model import Model

_NAME = r"([A-Za-z_][\w.\-/:]*)"
_FORMS = (
    (re.compile(rf"^{_NAME}\s*%\s*(\d+)\s*==\s*0$"), "multiple"),
    (re.compile(rf"^{_NAME}\s*%\s*(\d+)\s*==\s*(\d+)$"), "remainder"),
    (re.compile(rf"^{_NAME}\s*==\s*(\d+)$"), "number"),
    (re.compile(rf"^{_NAME}\s*==\s*{_NAME}$"), "same"),
    (re.compile(rf"^{_NAME}\s*>=\s*(\d+)$"), "least"),
    (re.compile(rf"^{_NAME}\s*>\s*(\d+)$"), "more"),
)


@dataclass(frozen=True, slots=True)
class Axioms:
    """What holds beside the declared types.

    Attributes:
        shapes: By input name: numbers, or names of dimensions that stay dynamic.
        symbols: What stands for a named dimension.
        sizes: By dimension name: sizes that meet the assumptions, for the check, or the name of a
            dimension of the same size.
        texts: What the user wrote, for the report.
    """

    shapes: Mapping[str, tuple[int | str, ...]]
    symbols: Mapping[str, Dim]
    sizes: Mapping[str, tuple[int, ...] | str]
    texts: tuple[str, ...]

    @property
    def fixed(self) -> dict[str, int]:
        """The named dimensions that were given a number."""
        return {name: value for name, value in self.symbols.items() if isinstance(value, int)}


def parse_assumptions(
    model: Model, shapes: Mapping[str, Sequence[int | str]], assume: Sequence[str]
) -> Axioms:
    """Check the user's additions against the model's inputs.

    Raises:
        RecipeError: No such input or dimension, a rank that differs, or an assumption surgeon
            cannot use.
    """
    initializers = {tensor.name for tensor in model.proto.graph.initializer}
    declared = {
        v.name: v.type.tensor_type for v in model.proto.graph.input if v.name not in initializers
    }
    fixed: dict[str, tuple[int | str, ...]] = {}
    texts: list[str] = []
    for name, shape in shapes.items():
        if name not in declared:
            raise RecipeError(
                f"the model has no input `{name}`",
                where="--shape",
                mend=suggest(name, declared) or f"Its inputs are {', '.join(declared)}.",
            )
        type_ = declared[name]
        if type_.HasField("shape") and len(type_.shape.dim) != len(shape):
            raise RecipeError(
                f"input `{name}` has {len(type_.shape.dim)} dimensions, not {len(shape)}",
                where="--shape",
                mend="Give one number or name for each dimension.",
            )
        for dim, given in zip(type_.shape.dim, shape, strict=False):
            if dim.HasField("dim_value") and given != dim.dim_value:
                raise RecipeError(
                    f"input `{name}` declares {dim.dim_value} where {given} is given",
                    where="--shape",
                    mend="A fixed dimension cannot be changed; give its number.",
                )
        fixed[name] = tuple(shape)
        texts.append(f"{name}=[{', '.join(map(str, shape))}]")
    known = {
        dim.dim_param
        for type_ in declared.values()
        for dim in type_.shape.dim
        if dim.HasField("dim_param")
    } | {d for shape in fixed.values() for d in shape if isinstance(d, str)}
    symbols, sizes = _assumed(known, assume)
    return Axioms(fixed, symbols, sizes, (*texts, *assume))


def _assumed(
    known: set[str], assume: Sequence[str]
) -> tuple[dict[str, Dim], dict[str, tuple[int, ...] | str]]:
    symbols: dict[str, Dim] = {}
    sizes: dict[str, tuple[int, ...] | str] = {}
    said: dict[str, dict[str, tuple[str, ...]]] = {}
    for text in assume:
        form, match = next(
            ((kind, m) for pattern, kind in _FORMS if (m := pattern.match(text.strip()))),
            (None, None),
        )
        if form is None or match is None:
            raise RecipeError(
                f"surgeon cannot use the assumption `{text}`",
                where="--assume",
                mend="Write it as `t % 32 == 0`, `t == 64`, `h == w` or `t >= 16`.",
            )
        name, other = match.group(1), match.group(2)
        for used in [name, other] if form == "same" else [name]:
            if used not in known:
                raise RecipeError(
                    f"no input has a dimension named `{used}`",
                    where="--assume",
                    mend=suggest(used, known) or f"The dimensions are {', '.join(sorted(known))}.",
                )
        kind = {"remainder": "multiple", "more": "least"}.get(form, form)
        about = said.setdefault(name, {})
        if kind in about or (about and {"number", "same"} & {kind, *about}):
            raise RecipeError(
                f"two assumptions about `{name}` do not go together: `{text}` is the second",
                where="--assume",
                mend="Give one that says both.",
            )
        about[kind] = match.groups()[1:] if form != "more" else (str(int(other) + 1),)
    for name, about in said.items():
        symbols[name], sizes[name] = _said(name, about)
    whole = {name: dims.substitute(value, symbols) for name, value in symbols.items()}
    return whole, sizes


def _said(name: str, about: Mapping[str, Sequence[str]]) -> tuple[Dim, tuple[int, ...] | str]:
    """What stands for a dimension, and sizes that meet what is said about it."""
    if "same" in about:
        return dims.symbol(about["same"][0]), about["same"][0]
    if "number" in about:
        number = int(about["number"][0])
        return number, (number,)
    least = int(about["least"][0]) if "least" in about else 0
    if "multiple" not in about:
        return dims.symbol(f"{name}-{least}") + least, (max(least, 1), least + 1, least + 7)
    step, rest = (
        int(about["multiple"][0]),
        int(about["multiple"][1]) if about["multiple"][1:] else 0,
    )
    first = max(0, -((rest - least) // step))  # the least n with step * n + rest >= least
    sizes = tuple(step * n + rest for n in range(max(first, 1), max(first, 1) + 3))
    symbol = dims.symbol(f"{name}/{step}-{first}" if first else f"{name}/{step}")
    return (symbol + first) * step + rest, sizes
