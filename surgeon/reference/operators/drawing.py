"""PyTorch operators that draw at random (torch.random, torch.Tensor.*_), by numpy's generator.

No two runs are the same: what depends on them is compared by dtype and shape.
"""

# ruff: noqa: D103 - each function means what PyTorch documents for its schema, in TABLE

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_types import cut
from surgeon.reference.operators.precision import Array, Row, is_float, limits

_GENERATOR: list[np.random.Generator] = []


def _generator() -> np.random.Generator:
    if not _GENERATOR:
        _GENERATOR.append(np.random.default_rng())
    return _GENERATOR[0]


def _new(draw: Callable[[Any], Any]) -> Callable[..., Array]:
    def run(size: Sequence[int], dtype: Any, **rest: Any) -> Array:
        return cut(draw(tuple(size)), np.dtype(dtype or np.float32))

    return run


def _like(draw: Callable[[Any], Any]) -> Callable[..., Array]:
    def run(self: Array, dtype: Any, **rest: Any) -> Array:
        return cut(draw(self.shape), np.dtype(dtype or self.dtype))

    return run


def _uniform(size: Any) -> Any:
    return _generator().random(size)


def _normal(size: Any) -> Any:
    return _generator().standard_normal(size)


def randint(size: Sequence[int], high: int, dtype: Any, **rest: Any) -> Array:
    whole = _generator().integers(rest.get("low", 0), high, tuple(size))
    return cut(whole, np.dtype(dtype or np.int64))


def randint_like(self: Array, high: int, dtype: Any, **rest: Any) -> Array:
    return randint(self.shape, high, dtype or self.dtype, **rest)


def random(self: Array, generator: Any, **bounds: Any) -> Array:
    low, to = int(bounds.get("from", 0)), bounds.get("to")
    if to is None:
        info = limits(self.dtype) if is_float(self) else np.iinfo(self.dtype)
        to = 2 ** (info.nmant + 1) + 1 if is_float(self) else min(int(info.max), 2**62)  # type: ignore[union-attr]
    return cut(_generator().integers(low, to, self.shape), self.dtype)


def bernoulli(self: Array, p: Any = None, generator: Any = None) -> Array:
    chance = np.broadcast_to(self if p is None else np.asarray(p), self.shape).astype(np.float64)
    if ((chance < 0) | (chance > 1)).any():
        raise Unsuited("a chance is not between 0 and 1")
    return cut(_generator().binomial(1, chance, self.shape), self.dtype)


def normal_of_numbers(mean: float, std: float, size: Any, dtype: Any, **rest: Any) -> Array:
    return cut(_generator().normal(mean, std, tuple(size)), np.dtype(dtype or np.float32))


def normal(mean: Any, std: Any, generator: Any) -> Array:
    tensors = [x for x in (mean, std) if isinstance(x, np.ndarray)]
    kind = np.result_type(*([x for x in tensors if x.ndim] or tensors))
    m, s = np.broadcast_arrays(np.asarray(mean, np.float64), np.asarray(std, np.float64))
    return cut(_generator().normal(m, s), kind)


def multinomial(self: Array, num_samples: int, replacement: bool, generator: Any) -> Array:
    rows = self.reshape(-1, self.shape[-1]).astype(np.float64)
    if (rows < 0).any() or (rows.sum(-1) <= 0).any():
        raise Unsuited("its weights are no weights")
    picks = [
        _generator().choice(len(row), num_samples, replace=replacement, p=row / row.sum())
        for row in rows
    ]
    return np.asarray(picks, np.int64).reshape(*self.shape[:-1], num_samples)


def randperm(n: int, dtype: Any, **rest: Any) -> Array:
    return cut(_generator().permutation(n), np.dtype(dtype or np.int64))


def _of(draw: Callable[..., Any]) -> Callable[..., Array]:
    """What fills a tensor from a distribution with these parameters."""

    def run(self: Array, generator: Any = None, **parameters: Any) -> Array:
        return cut(draw(_generator(), self.shape, **parameters), self.dtype)

    return run


def native_dropout(input: Array, p: float, train: bool | None) -> tuple[Array, Array]:
    if train is not None and not train:
        return input, np.ones(input.shape, np.bool_)
    mask = _generator().binomial(1, 1 - p, input.shape).astype(np.bool_)
    return cut(np.where(mask, input / (1 - p) if p < 1 else 0, 0), input.dtype), mask


def dropout(input: Array, p: float, train: bool) -> Array:
    return native_dropout(input, p, train)[0]


def feature_dropout(input: Array, p: float, train: bool) -> Array:
    if not train:
        return input
    ones = np.ones((*input.shape[:2], *[1] * (input.ndim - 2)))
    return cut(input * dropout(ones, p, True), input.dtype)


def alpha_dropout(input: Array, p: float, train: bool) -> Array:
    if not train or p == 0:
        return input
    least = -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717
    kept = _generator().binomial(1, 1 - p, input.shape)
    mixed = np.where(kept, input.astype(np.float64), least)
    # its mean is p * least, its variance that of the mixture, of an input of mean 0 and variance 1
    return cut((mixed - p * least) / np.sqrt((1 - p) + p * (1 - p) * least**2), input.dtype)


def feature_alpha_dropout(input: Array, p: float, train: bool) -> Array:
    return alpha_dropout(input, p, train)


def rrelu(self: Array, lower: float, upper: float, training: bool, **rest: Any) -> Array:
    slope = _generator().uniform(lower, upper, self.shape) if training else (lower + upper) / 2
    return cut(np.where(self > 0, self, self * slope), self.dtype)


def rrelu_with_noise(self: Array, noise: Array, **rest: Any) -> tuple[Array, Array]:
    y = rrelu(self, **rest)
    return y, cut(np.where(self > 0, 1, y / np.where(self == 0, 1, self)), self.dtype)


_TAIL = "*, ScalarType? dtype=None, int? layout=None, Device? device=None, bool? pin_memory=None)"
_LIKE = _TAIL[:-1] + ", int? memory_format=None)"
_SEED = "Generator? generator=None)"
_DRAWN = _SEED.replace(")", ", " + _TAIL.removeprefix("*, "))
_DRAWN_LIKE = _SEED.replace(")", ", " + _LIKE.removeprefix("*, "))
_SLOPES = f"Scalar lower=0.125, Scalar upper=0.333333, bool training=False, {_SEED}"
TABLE: tuple[Row, ...] = (
    (f"rand(int[] size, {_TAIL} -> Tensor", _new(_uniform)),
    (f"rand.generator(int[] size, *, {_DRAWN} -> Tensor", _new(_uniform)),
    (f"randn(int[] size, {_TAIL} -> Tensor", _new(_normal)),
    (f"randn.generator(int[] size, *, {_DRAWN} -> Tensor", _new(_normal)),
    (f"rand_like(Tensor self, {_LIKE} -> Tensor", _like(_uniform)),
    (f"rand_like.generator(Tensor self, *, {_DRAWN_LIKE} -> Tensor", _like(_uniform)),
    (f"randn_like(Tensor self, {_LIKE} -> Tensor", _like(_normal)),
    (f"randn_like.generator(Tensor self, *, {_DRAWN_LIKE} -> Tensor", _like(_normal)),
    (f"randint(int high, int[] size, {_TAIL} -> Tensor", randint),
    (f"randint.generator(int high, int[] size, *, {_DRAWN} -> Tensor", randint),
    (f"randint.low(int low, int high, int[] size, {_TAIL} -> Tensor", randint),
    (f"randint.low_generator(int low, int high, int[] size, *, {_DRAWN} -> Tensor", randint),
    (f"randint_like(Tensor self, int high, {_LIKE} -> Tensor", randint_like),
    (f"randint_like.low_dtype(Tensor self, int low, int high, {_LIKE} -> Tensor", randint_like),
    (f"randint_like.generator(Tensor self, int high, *, {_DRAWN_LIKE} -> Tensor", randint_like),
    (
        f"randint_like.low_generator_dtype(Tensor self, int low, int high, *, {_DRAWN_LIKE}"
        " -> Tensor",
        randint_like,
    ),
    (f"random(Tensor self, *, {_SEED} -> Tensor", random),
    (f"random.to(Tensor self, int to, *, {_SEED} -> Tensor", random),
    (f"random.from(Tensor self, int from, int? to, *, {_SEED} -> Tensor", random),
    (f"bernoulli(Tensor self, *, {_SEED} -> Tensor", bernoulli),
    (f"bernoulli.p(Tensor self, float p, *, {_SEED} -> Tensor", bernoulli),
    (f"bernoulli.Tensor(Tensor self, Tensor p, *, {_SEED} -> Tensor", bernoulli),
    (
        f"normal.float_float(float mean, float std, int[] size, *, {_DRAWN} -> Tensor",
        normal_of_numbers,
    ),
    (f"normal.Tensor_float(Tensor mean, float std=1, *, {_SEED} -> Tensor", normal),
    (f"normal.float_Tensor(float mean, Tensor std, *, {_SEED} -> Tensor", normal),
    (f"normal.Tensor_Tensor(Tensor mean, Tensor std, *, {_SEED} -> Tensor", normal),
    (
        f"normal_functional(Tensor self, float mean=0, float std=1, *, {_SEED} -> Tensor",
        _of(lambda g, size, mean, std: g.normal(mean, std, size)),
    ),
    (
        f"uniform(Tensor self, float from=0, float to=1, *, {_SEED} -> Tensor",
        _of(lambda g, size, **ends: g.uniform(ends["from"], ends["to"], size)),
    ),
    (
        f"exponential(Tensor self, float lambd=1, *, {_SEED} -> Tensor",
        _of(lambda g, size, lambd: g.exponential(1 / lambd, size)),
    ),
    (
        f"geometric(Tensor self, float p, *, {_SEED} -> Tensor",
        _of(lambda g, size, p: g.geometric(p, size)),
    ),
    (
        f"cauchy(Tensor self, float median=0, float sigma=1, *, {_SEED} -> Tensor",
        _of(lambda g, size, median, sigma: median + sigma * g.standard_cauchy(size)),
    ),
    (
        f"log_normal(Tensor self, float mean=1, float std=2, *, {_SEED} -> Tensor",
        _of(lambda g, size, mean, std: g.lognormal(mean, std, size)),
    ),
    (
        "multinomial(Tensor self, int num_samples, bool replacement=False, *, "
        "Generator? generator=None) -> Tensor",
        multinomial,
    ),
    (f"randperm(int n, {_TAIL} -> Tensor", randperm),
    (f"randperm.generator(int n, *, {_DRAWN} -> Tensor", randperm),
    ("dropout(Tensor input, float p, bool train) -> Tensor", dropout),
    ("feature_dropout(Tensor input, float p, bool train) -> Tensor", feature_dropout),
    ("alpha_dropout(Tensor input, float p, bool train) -> Tensor", alpha_dropout),
    ("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor", feature_alpha_dropout),
    (
        "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
        native_dropout,
    ),
    (f"rrelu(Tensor self, {_SLOPES} -> Tensor", rrelu),
    *(
        (f"{name}(Tensor self, Tensor noise, {_SLOPES} -> (Tensor, Tensor)", rrelu_with_noise)
        for name in ("rrelu_with_noise", "rrelu_with_noise_functional")
    ),
)
