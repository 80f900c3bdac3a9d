"""Functions of expressions that make arrays."""

from __future__ import annotations

import numpy as np

from surgeon.functions.values import (
    MAX_ITEMS,
    Array,
    Undecided,
    Unknown,
    array_of,
    cast_array,
    dtype_of,
    integer_of,
    is_captured,
    items_of,
    require_room,
    shape_of,
)


def const(value: object, dtype: object = None, like: object = None) -> object:
    """An array of a value, in a dtype or in that `like` another value; floats alone are float32."""
    array = array_of(value)
    if like is not None:
        if dtype is not None:
            raise Undecided("`const` takes a dtype or `like`, not both")
        if is_captured(like):
            dtype = like.attribute("dtype")  # type: ignore[attr-defined]
            if isinstance(dtype, Unknown):
                return dtype
        else:
            dtype = "string" if array_of(like).dtype.hasobject else str(array_of(like).dtype)
    if dtype is None:
        dtype = "float32" if array.dtype == np.float64 else None
    return array if dtype is None else cast_array(array, dtype_of(dtype))


def full(fill: int, shape: object, dtype: object) -> Array:
    """An array of one number."""
    sizes, kind = shape_of(shape), dtype_of(dtype)
    require_room(sizes, kind)
    return np.full(sizes, fill, dtype=kind)


def zeros(shape: object, dtype: object) -> Array:
    """An array of zeros."""
    return full(0, shape, dtype)


def ones(shape: object, dtype: object) -> Array:
    """An array of ones."""
    return full(1, shape, dtype)


def arange(start: object, stop: object = None, step: object = 1, dtype: object = "int64") -> Array:
    """Numbers from start (0) to stop, as an array."""
    first, last = (0, integer_of(start)) if stop is None else (integer_of(start), integer_of(stop))
    values, kind = range(first, last, integer_of(step)), dtype_of(dtype)
    require_room([len(values)], np.dtype(np.int64))
    return cast_array(np.arange(values.start, values.stop, values.step, dtype=np.int64), kind)


def eye(size: object, dtype: object = "float32") -> Array:
    """The identity matrix."""
    length, kind = integer_of(size), dtype_of(dtype)
    require_room([length, length], kind)
    return np.eye(length, dtype=kind)


def transpose(array: object, perm: object = None) -> Array:
    """The array with its axes permuted, reversed without `perm`."""
    axes = None if perm is None else shape_of(perm)
    return np.ascontiguousarray(np.transpose(array_of(array), axes))


def reshape(array: object, shape: object) -> Array:
    """The array in another shape; one size may be -1."""
    return array_of(array).reshape(shape_of(shape))


def concat(arrays: object, axis: object = 0) -> Array:
    """A list of arrays, joined along an axis."""
    parts = [array_of(part) for part in items_of(arrays)]
    require_room([sum(part.nbytes for part in parts)], np.dtype(np.uint8))
    return np.concatenate(parts, axis=integer_of(axis))


def stack(arrays: object, axis: object = 0) -> Array:
    """A list of arrays, joined along a new axis."""
    parts = [array_of(part) for part in items_of(arrays)]
    require_room([sum(part.nbytes for part in parts)], np.dtype(np.uint8))
    return np.stack(parts, axis=integer_of(axis))


def squeeze(array: object, axis: object = None) -> Array:
    """The array without axes of size 1, all of them or those named."""
    return np.squeeze(array_of(array), None if axis is None else shape_of(axis))


def expand_dims(array: object, axis: object) -> Array:
    """The array with new axes of size 1."""
    return np.expand_dims(array_of(array), shape_of(axis))


def pooling_matrix(length: object, count: object, dtype: object) -> Array:
    """[O, I]: row i averages `floor(i * I / O)` to `ceil((i + 1) * I / O)`, as PyTorch does."""
    size, bins, kind = integer_of(length), integer_of(count), dtype_of(dtype)
    if not (0 < size <= MAX_ITEMS and 0 < bins <= MAX_ITEMS):
        raise Undecided(f"no pooling matrix is made from {size} to {bins}")
    require_room([size, bins], np.dtype(np.float64))
    matrix = np.zeros((bins, size))
    for row in range(bins):
        start, end = row * size // bins, -(-(row + 1) * size // bins)
        matrix[row, start:end] = 1 / (end - start)
    return matrix.astype(kind)


def cast_to(array: object, dtype: object) -> Array:
    """The array in another dtype; not decided where an integer would not fit it."""
    return cast_array(array_of(array), dtype_of(dtype))
