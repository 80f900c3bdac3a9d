"""PyTorch operators: those of TorchScript's numbers and lists (torch.jit's builtin functions).

The exporter makes a change of a list give the changed list; Python's lists say what that is.
"""

# ruff: noqa: D103 - each function means what Python documents for its operation, in TABLE

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.math_types import common, cut
from surgeon.reference.operators.precision import Array, Row

Listed = Any  # a list of arrays, or numbers in an array of one axis


def not_(self: bool) -> Array:
    return np.asarray(not self)


def is_(self: Any, obj: Any) -> Array:
    if self is not None and obj is not None:
        raise Unsuited("two values, of which one cannot tell whether they are one object")
    return np.asarray(self is obj)


def is_not(self: Any, obj: Any) -> Array:
    return np.asarray(not is_(self, obj))


def contains(l: Sequence[Any], item: Any) -> Array:  # noqa: E741 - PyTorch's name
    return np.asarray(item in l)


def to_int(a: Array) -> Array:
    return np.asarray(int(a.reshape(())), np.int64)


def to_float(a: Array) -> Array:
    return np.asarray(float(a.reshape(())), np.float64)


def to_bool(a: Array) -> Array:
    return np.asarray(bool(a.reshape(())))


def to_scalar(a: Array) -> Array:
    return a.reshape(())


def floordiv(a: Array, b: Array) -> Array:
    if not np.all(b):
        raise Unsuited("a division by 0")
    return np.asarray(np.floor_divide(a, b))


def _of_fractions(function: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    """In double precision, but where a number was rounded to single precision before."""

    def run(a: Array, b: Array) -> Array:
        if np.float32 in (a.dtype, b.dtype):
            first, second, dtype = common(a, b)
            with np.errstate(all="ignore"):
                return cut(function(first, second), dtype)
        try:
            return np.asarray(function(a.item(), b.item()), np.float64)
        except ArithmeticError as error:
            raise Unsuited(str(error)) from None

    return run


def _power(a: Any, b: Any) -> Any:
    """As C has it: of -1 the root is no number, and not Python's complex one."""
    with np.errstate(all="ignore"):
        return np.power(np.asarray(a, np.float64), np.asarray(b, np.float64))


def _to_whole(function: Callable[[float], int]) -> Callable[..., Array]:
    def run(a: Array) -> Array:
        if a.dtype.kind not in "iuf" or not np.isfinite(a):
            raise Unsuited(f"no whole number is next to {a}")
        return np.asarray(function(a.item()), np.int64)

    return run


def nth(index: int, start: int, step: int) -> Array:
    return np.asarray(start + index * step, np.int64)


def range_length(lo: int, hi: int, step: int) -> Array:
    if not step:
        raise Unsuited("a range in steps of 0")
    return np.asarray(len(range(int(lo), int(hi), int(step))), np.int64)


def total(self: Listed) -> Array:
    """Python's own `sum`, of numbers."""
    return np.asarray(sum(self[1:], self[0]) if len(self) else 0)


def length(a: Listed) -> Array:
    return np.asarray(len(a), np.int64)


def same(l: Listed) -> Listed:  # noqa: E741
    return l


def _changing(change: Callable[..., None]) -> Callable[..., Any]:
    """The list after a change, with the list that was given left as it is."""

    def run(self: Listed, **rest: Any) -> Listed:
        if isinstance(self, np.ndarray):
            mine = [np.asarray(x) for x in self]
            change(mine, **rest)
            return np.asarray(mine, self.dtype)
        mine = list(self)
        change(mine, **rest)
        return mine

    return run


def _append(mine: list[Any], el: Any) -> None:
    mine.append(el)


def _insert(mine: list[Any], idx: int, el: Any) -> None:
    mine.insert(idx, el)


def _pop(mine: list[Any], idx: int) -> None:
    mine.pop(idx)


def _set(mine: list[Any], idx: int, el: Any) -> None:
    mine[idx] = el


def _reverse(mine: list[Any]) -> None:
    mine.reverse()


def together(a: Listed, b: Listed) -> Listed:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.concatenate([a, b.astype(a.dtype)])
    return [*a, *b]


def list_with_default(list: list[int], defaults: list[int]) -> Array:
    return np.array(list, np.int64)  # of which none is None


def put(l: dict[str, Any], idx: str, v: Any) -> dict[str, Any]:  # noqa: E741
    return {**l, idx: v}


def value_of(self: dict[str, Any], key: str) -> Any:
    return self[key]


def without(self: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in self.items() if name != key}


_CHANGES = (
    ("append.t(List self, t el) -> t[]", _append),
    ("insert.t(List self, int idx, t el) -> t[]", _insert),
    ("pop.t(List self, int idx=-1) -> t[]", _pop),
    ("Delete.t(List self, int idx) -> t[]", _pop),
    ("_set_item.t(List self, int idx, t el) -> t[]", _set),
    ("reverse.t(List self) -> t[]", _reverse),
)
_MIXED = "float int_float float_int"
_FRACTIONS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("add", _MIXED, operator.add),
    ("sub", _MIXED, operator.sub),
    ("mul", _MIXED, operator.mul),
    ("div", "int float", operator.truediv),
    ("pow", f"int {_MIXED} Scalar_Scalar", _power),
)
TABLE: tuple[Row, ...] = (
    ("__not__(bool self) -> bool", not_),
    ("__is__(t? self, t? obj) -> bool", is_),
    ("__isnot__(t? self, t? obj) -> bool", is_not),
    ("__contains__.int_list(int[] l, int item) -> bool", contains),
    ("__contains__.str_list(str[] l, str item) -> bool", contains),
    *((f"{name}(Tensor a) -> int", to_int) for name in ("Int", "IntImplicit")),
    *((f"{name}(Tensor a) -> float", to_float) for name in ("Float", "FloatImplicit")),
    ("Bool(Tensor a) -> bool", to_bool),
    ("ScalarImplicit(Tensor a) -> Scalar", to_scalar),
    ("floordiv(Tensor a, Tensor b) -> Scalar", floordiv),
    *(
        (f"{name}.{overload}(Tensor a, Tensor b) -> float", _of_fractions(function))
        for name, overloads, function in _FRACTIONS
        for overload in overloads.split()
    ),
    *(
        (f"{name}.{overload}(Tensor a) -> int", _to_whole(function))
        for name, function in (("floor", math.floor), ("ceil", math.ceil))
        for overload in ("int", "float", "Scalar")
    ),
    ("__derive_index(int index, int start, int step) -> int", nth),
    ("__range_length(int lo, int hi, int step) -> int", range_length),
    ("list_with_default(int[] list, int[] defaults) -> int[]", list_with_default),
    ("len.t(List a) -> int", length),
    ("len.Tensor(Tensor a) -> int", length),
    ("sum.int(List self) -> int", total),
    ("list.t(List l) -> t[]", same),
    ("copy.t(List l) -> t[]", same),
    *((schema, _changing(change)) for schema, change in _CHANGES),
    ("_set_item.str(Dictionary l, str idx, t v) -> t", put),
    ("__getitem__.Dict_str(Dictionary self, str key) -> t", value_of),
    ("__contains__.str(Dictionary l, str item) -> bool", contains),
    ("len.Dict_str(Dictionary a) -> int", length),
    *((f"{n}.Dict_str(Dictionary self, str key) -> t", without) for n in ("pop", "Delete")),
    ("extend.t(List a, List b) -> t[]", together),
)
