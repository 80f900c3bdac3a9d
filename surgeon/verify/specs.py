"""What the user says of an input, as `tokens(30522)`: a small closed language of ways to draw."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surgeon.document import suggest
from surgeon.errors import RecipeError

_FORM = re.compile(r"^\s*([a-z]+)\s*(?:\(([^()]*)\))?\s*$")
_MOST_VALUES = 1000  # arguments of one spec
_INTEGERS, _FLOATS, _BOOL = "iu", "fcV", "b"  # V: bfloat16 and the float8 kinds

Shapes = Mapping[str, Sequence[int]]  # of all inputs
Draw = Callable[[np.random.Generator, tuple[int, ...], Sequence[float], int], Any]


@dataclass(frozen=True, slots=True)
class Spec:
    """A way of drawing one input: `text` is how the user says it."""

    text: str
    name: str
    arguments: tuple[float, ...]

    def draw(
        self,
        generator: np.random.Generator,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        others: Shapes,
    ) -> Any:
        """An array.

        Args:
            generator: What it is drawn from.
            dtype: Of the input.
            shape: Of the input.
            others: The shapes of all inputs: a length is no longer than what it is the length of.
        """
        longest = max((dims[1] for dims in others.values() if len(dims) > 1), default=2)
        drawn = _KINDS[self.name].draw(generator, shape, self.arguments, longest)
        if dtype.kind in _INTEGERS and self.name == "image":
            drawn = drawn * 255
        return np.asarray(drawn).astype(dtype)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A word of the language.

    Attributes:
        form: As it is written.
        least: How many arguments it has at least, and `most` at most.
        takes: The kinds of numpy's dtypes it can be drawn for.
        draw: From a generator, a shape, the arguments and the longest sequence.
    """

    form: str
    least: int
    most: int
    takes: str
    draw: Draw


def _mask(
    generator: np.random.Generator, shape: tuple[int, ...], _: Sequence[float], __: int
) -> Any:
    """Ones, then zeros, along the last axis: at least one 1, and nothing but ones in the first."""
    if not shape:
        return np.ones(())
    lengths = generator.integers(1, max(shape[-1], 1) + 1, shape[:-1])
    if lengths.ndim and lengths.size:
        lengths.reshape(-1)[0] = shape[-1]
    return np.arange(shape[-1]) < lengths[..., None]


def _lengths(
    generator: np.random.Generator, shape: tuple[int, ...], given: Sequence[float], longest: int
) -> Any:
    """From 1 to the longest, which the first one is."""
    most = max(int(given[0]) if given else longest, 1)
    found = np.asarray(generator.integers(1, most + 1, shape))
    if found.size:
        found.reshape(-1)[0] = most
    return found


def _image(
    generator: np.random.Generator, shape: tuple[int, ...], _: Sequence[float], __: int
) -> Any:
    """From 0 to 1, neighbours alike: a coarse pattern, with a little noise on it."""
    noise = generator.random(shape)
    if len(shape) < 2 or 0 in shape:
        return noise
    coarse = generator.random((*shape[:-2], -(-shape[-2] // 8), -(-shape[-1] // 8)))
    pattern = coarse.repeat(8, -2).repeat(8, -1)[..., : shape[-2], : shape[-1]]
    return 0.9 * pattern + 0.1 * noise


def _scaled(drawn: Any, given: Sequence[float]) -> Any:
    low, high = given or (0.0, 1.0)
    return low + (high - low) * drawn


def _shifted(drawn: Any, given: Sequence[float]) -> Any:
    mean, deviation = given or (0.0, 1.0)
    return mean + deviation * drawn


_KINDS: Mapping[str, _Kind] = {
    "uniform": _Kind("uniform(0,1)", 0, 2, _FLOATS, lambda g, s, a, _: _scaled(g.random(s), a)),
    "normal": _Kind("normal(0,1)", 0, 2, _FLOATS, lambda g, s, a, _: _shifted(g.normal(size=s), a)),
    "ints": _Kind(
        "ints(0,1000)",
        2,
        2,
        _INTEGERS + _FLOATS,
        lambda g, s, a, _: g.integers(int(a[0]), int(a[1]), s),
    ),
    "bool": _Kind("bool", 0, 0, _INTEGERS + _FLOATS + _BOOL, lambda g, s, *_: g.random(s) < 0.5),
    "ones": _Kind("ones", 0, 0, _INTEGERS + _FLOATS + _BOOL, lambda g, s, *_: np.ones(s)),
    "zeros": _Kind("zeros", 0, 0, _INTEGERS + _FLOATS + _BOOL, lambda g, s, *_: np.zeros(s)),
    "mask": _Kind("mask", 0, 0, _INTEGERS + _FLOATS + _BOOL, _mask),
    "lengths": _Kind("lengths", 0, 1, _INTEGERS, _lengths),
    "image": _Kind("image", 0, 0, _INTEGERS + _FLOATS, _image),
    "tokens": _Kind(
        "tokens(30522)", 1, 1, _INTEGERS, lambda g, s, a, _: g.integers(0, int(a[0]), s)
    ),
    "values": _Kind(
        "values(1,2,3)",
        1,
        _MOST_VALUES,
        _INTEGERS + _FLOATS + _BOOL,
        lambda g, s, a, _: g.choice(np.array(a), s),
    ),
}


def read_spec(name: str, text: str, dtype: np.dtype[Any]) -> Spec:
    """The way of drawing that a text says.

    Args:
        name: The input's.
        text: As `uniform(0,1)`.
        dtype: The input's.

    Raises:
        RecipeError: The text says none, or none for such an input.
    """
    where = f"--input {name}={text[:200]}"
    match = _FORM.match(text)
    word = match[1] if match else text.split("(")[0].strip()
    kind = _KINDS.get(word)
    if kind is None or match is None:
        forms = ", ".join(f"`{each.form}`" for each in _KINDS.values())
        known = suggest(word[:200], _KINDS) if kind is None else ""
        raise RecipeError(
            f"`{text[:200]}` is no way to draw an input",
            where=where,
            mend=known if known.startswith("Did") else f"Write one of {forms}.",
        )
    arguments = _arguments(match[2] or "", kind, where)
    if dtype.kind not in kind.takes:
        fit = ", ".join(f"`{k.form}`" for k in _KINDS.values() if dtype.kind in k.takes)
        raise RecipeError(
            f"`{word}` does not draw {dtype.name}, which input `{name}` is",
            where=where,
            mend=f"Write one of {fit}." if fit else "Give recorded inputs with `--data`.",
        )
    return Spec(text.strip(), word, arguments)


def _arguments(text: str, kind: _Kind, where: str) -> tuple[float, ...]:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    mend = f"Write it as `{kind.form}`."
    if not kind.least <= len(parts) <= kind.most or len(parts) == 1 < kind.most == 2:
        said = f"{len(parts)} argument{'s' * (len(parts) != 1)}"
        raise RecipeError(f"`{kind.form}` is written with {said}", where=where, mend=mend)
    try:
        numbers = tuple(map(float, parts))
    except ValueError:
        raise RecipeError("an argument is no number", where=where, mend=mend) from None
    bounded = kind.form.startswith(("uniform", "ints"))
    whole = kind.form.startswith(("ints", "tokens", "lengths"))
    least = 0 if kind.form.startswith("normal") else 1
    if (
        not np.isfinite(numbers).all()
        or (bounded and len(numbers) == 2 and not numbers[0] < numbers[1])
        or (kind.form.startswith("normal") and len(numbers) == 2 and numbers[1] < least)
        or (whole and not all(n.is_integer() and abs(n) < 2**62 for n in numbers))
        or (kind.form.startswith(("tokens", "lengths")) and any(n < least for n in numbers))
    ):
        raise RecipeError(f"`{text}` bounds nothing to draw from", where=where, mend=mend)
    return numbers


def fitting(name: str, dtype: np.dtype[Any], rank: int) -> Spec | None:
    """The way of drawing an integer input that nothing else is known of, by what it is called."""
    if dtype.kind not in _INTEGERS:
        return None
    words = set(re.split(r"[^a-z]+", name.lower()))
    if words & {"mask", "masks"}:
        return Spec("mask", "mask", ())
    if rank <= 1 and words & {"len", "lens", "length", "lengths"}:
        return Spec("lengths", "lengths", ())
    return None
