"""One value's fact, and small questions about it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx

from surgeon.dims import Dim

Array = npt.NDArray[Any]
INT64 = onnx.TensorProto.INT64
BOOL = onnx.TensorProto.BOOL
STRING = onnx.TensorProto.STRING
FIRST_STATE = 2  # of the inputs of a Loop: before are how often, and whether at all
INTEGERS = frozenset(
    {
        onnx.TensorProto.INT8,
        onnx.TensorProto.INT16,
        onnx.TensorProto.INT32,
        onnx.TensorProto.INT64,
        onnx.TensorProto.UINT8,
        onnx.TensorProto.UINT16,
        onnx.TensorProto.UINT32,
        onnx.TensorProto.UINT64,
    }
)


class Items(NamedTuple):
    """What is proven of each item of a list.

    Attributes:
        dtype: The number of `onnx.TensorProto.DataType`; 0 where unknown.
        shape: Dimensions, None each where the items may differ in it; None where not even the rank
            is known, or is not the same for all.
        empty: Whether there is provably none.
    """

    dtype: int = 0
    shape: tuple[Dim | None, ...] | None = None
    empty: bool = False


class Fact(NamedTuple):
    """What is proven of one value.

    Attributes:
        dtype: The number of `onnx.TensorProto.DataType`; 0 where unknown.
        shape: Dimensions, or None where not even the rank is known.
        value: The elements where known: a plain numpy array, or an object array of `Dim` where
            some are symbolic. Small arrays only; `Facts.array` has those of constants.
        unit_axis: The axis (from 0) along which the elements sum to 1, as behind a Softmax.
        not_negative: Whether every element is proven to be at least 0, or NaN, which Relu keeps.
        not_zero: Whether every element is proven to be another number than 0, or NaN: true is.
        items: Of a list, which has no dtype and no shape of its own, what is known of its items.
    """

    dtype: int = 0
    shape: tuple[Dim, ...] | None = None
    value: Array | None = None
    unit_axis: int | None = None
    not_negative: bool = False
    not_zero: bool = False
    items: Items | None = None

    @property
    def rank(self) -> int | None:
        """The number of dimensions, where known."""
        return None if self.shape is None else len(self.shape)

    @property
    def symbolic(self) -> bool:
        """Whether the value is known and holds symbolic elements."""
        return self.value is not None and self.value.dtype == object

    @property
    def concrete(self) -> Array | None:
        """The value where every element is a plain number."""
        return None if self.value is None or self.value.dtype == object else self.value


UNKNOWN = Fact()


def of_value(value: Array, dtype: int) -> Fact:
    """The fact of a value that is known; object arrays without symbols become plain ones."""
    if value.dtype == object and dtype in INTEGERS and not has_symbols(value):
        plain = onnx.helper.tensor_dtype_to_np_dtype(dtype)
        limits = np.iinfo(plain)
        numbers = value.reshape(-1).tolist()
        if any(not limits.min <= number <= limits.max for number in numbers):
            return Fact(dtype, tuple(int(d) for d in value.shape))
        value = np.array(numbers, plain).reshape(value.shape)
    return Fact(dtype, tuple(int(d) for d in value.shape), value)


def has_symbols(value: Array) -> bool:
    """Whether an object array holds anything but plain integers."""
    return any(not isinstance(item, int) for item in value.reshape(-1).tolist())


def same_dims(first: tuple[Dim, ...] | None, second: tuple[Dim, ...] | None) -> bool:
    """Whether both shapes are known and provably equal.

    Dimensions are in normal form, so those that are equal for every value of their symbols are one.
    """
    return first is not None and first == second
