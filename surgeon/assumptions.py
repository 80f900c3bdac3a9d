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
        if form in ("multiple", "remainder"):
            step, rest = int(other), int(match.group(3)) if form == "remainder" else 0
            symbols[name] = dims.symbol(f"{name}/{step}") * step + rest
            sizes[name] = tuple(step * n + rest for n in (1, 2, 3))
        elif form == "number":
            symbols[name] = int(other)
            sizes[name] = (int(other),)
        elif form == "same":
            symbols[name] = dims.symbol(other)
            sizes[name] = other
        else:
            least = int(other) + (form == "more")
            symbols[name] = dims.symbol(f"{name}-{least}") + least
            sizes[name] = (max(least, 1), least + 1, least + 7)
    whole = {name: dims.substitute(value, symbols) for name, value in symbols.items()}
    return whole, sizes
