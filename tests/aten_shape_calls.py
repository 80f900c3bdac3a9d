"""Calls of PyTorch's data movement: operator, arguments, least opset, whether sizes stay fixed."""

from __future__ import annotations

from typing import Any

import numpy as np

RNG = np.random.default_rng(3)
Calls = list[tuple[str, list[Any], int, bool]]
CALLS: Calls = []
LISTS = {
    "split", "split_with_sizes", "chunk", "unbind", "tensor_split", "meshgrid",
    "broadcast_tensors", "nonzero_numpy",
}  # fmt: skip


def f(*shape: int, dtype: Any = np.float32) -> Any:
    """Distinct numbers of either sign."""
    count = int(np.prod(shape))
    values = RNG.permutation(count) - count // 2
    if np.dtype(dtype) == np.bool_:
        return (RNG.integers(0, 2, shape) > 0).astype(np.bool_)
    if np.dtype(dtype).kind == "f":
        return (values / 4).astype(dtype).reshape(shape)
    return values.astype(dtype).reshape(shape)


def ix(*values: Any, dtype: Any = np.int64) -> Any:
    return np.asarray(values[0] if len(values) == 1 else values, dtype)


def add(operator: str, *arguments: Any, least: int = 9, still: bool = False) -> None:
    CALLS.append((operator, list(arguments), least, still))


KINDS = (np.float32, np.float64, np.int64, np.int32, np.bool_)

# views
for kind in KINDS:
    x = f(2, 3, 4, dtype=kind)
    add("view", x, [6, 4])
    add("transpose.int", x, 0, -1)
    add("slice.Tensor", x, 1, 0, 2, 1)
    add("cat", [x, x], -1, still=True)
    add("select.int", x, -1, -2)
add("view", f(2, 3, 4), [-1, 4])
add("view", f(2, 3, 4), [2, -1])
add("view", f(2, 0, 4), [0, 8], still=True)
add("view", f(2, 0, 4), [8, 0, 3])
add("view", f(1), [])
add("reshape", f(), [1, 1])
add("reshape", f(2, 3), [3, 2])
add("view_as", f(2, 6), f(3, 4))
add("reshape_as", f(2, 0), f(0, 3), least=14)
add("flatten.using_ints", f(2, 3, 4, 5), 1, 2)
add("flatten.using_ints", f(2, 3, 4, 5), -2, -1)
add("flatten.using_ints", f(2, 3, 4, 5), 0, 1)
add("flatten.using_ints", f(2, 3), 0, -1)
add("flatten.using_ints", f(2, 3), 1, 1)
add("flatten.using_ints", f(), 0, -1)
add("unflatten.int", f(2, 12), 1, [3, -1])
add("unflatten.int", f(12, 2), 0, [3, 4])
add("unflatten.int", f(2, 12, 3), -2, [-1, 6])
add("t", f(2, 3))
add("t", f(3))
add("t", f())
add("numpy_T", f(2, 3, 4))
add("mT", f(2, 3, 4))
add("swapaxes", f(2, 3, 4), -1, 0)
add("transpose.int", f(), 0, -1)
add("permute", f(2, 3, 4), [2, 0, -2])
add("permute", f(), [])
add("movedim.int", f(2, 3, 4), 0, -1)
add("movedim.intlist", f(2, 3, 4, 5), [0, 1], [-1, 0])
add("unsqueeze", f(2, 3), -1)
add("unsqueeze", f(2, 3), 0)
add("unsqueeze", f(), 0)
add("squeeze", f(1, 2, 1))
add("squeeze", f())
add("squeeze.dim", f(1, 2, 1), -1, still=True)
add("squeeze.dim", f(1, 2, 1), 1, still=True)
add("squeeze.dim", f(), 0)
add("squeeze.dims", f(1, 2, 1, 1), [0, -1, 1], still=True)
add("size", f(2, 3, 0))
add("size", f())
add("size.int", f(2, 3, 0), -1)
add("size.int", f(2, 3, 0), 0)
add("numel", f(2, 3))
add("contiguous", f(2, 3))
# joins
add("cat", [f(2, 3), f(0), f(1, 3)], 0, still=True)
add("cat", [f(2, 3), f(2, 3, dtype=np.int64)], 1)
add("cat", [f(2, 0), f(2, 3)], 1, still=True)
add("stack", [f(2, 3), f(2, 3)], -1)
add("stack", [f(), f()], 0)
for operator in ("hstack", "vstack", "dstack", "column_stack"):
    add(operator, [f(3), f(3)])
    add(operator, [f(2, 3), f(2, 3)])
add("hstack", [f(), f()])
add("vstack", [f(), f()])
add("dstack", [f(), f()])
add("expand", f(1, 3), [2, -1])
add("expand", f(3, 1), [2, -1, 4])
add("expand", f(), [2, 2])
add("expand", f(2, 3), [2, 3])
add("expand", f(1, 3), [0, 3])
add("broadcast_to", f(3), [2, 3])
add("expand_as", f(1, 3), f(2, 3))
add("repeat", f(2, 3), [2, 1, 2])
add("repeat", f(2, 3), [0, 2])
add("repeat", f(), [3])
add("tile", f(2, 3), [2])
add("tile", f(2, 3), [2, 1, 2])
add("pixel_shuffle", f(2, 8, 3, 2), 2)
add("pixel_shuffle", f(2, 8, 3, 2, dtype=np.int64), 2)
add("pixel_shuffle", f(9, 3, 2), 3)
add("pixel_unshuffle", f(2, 2, 4, 6), 2)
add("channel_shuffle", f(2, 6, 3, 4), 3)
add("kron", f(2, 3), f(3, 2))
add("kron", f(3), f(2, 2))
add("block_diag", [f(2, 3), f(2), f(), f(1, 1)])
add("one_hot", ix([0, 2, 1]), 4)
add("one_hot", ix([[0, 2], [1, 1]]), -1)
# parts
add("slice.Tensor", f(5, 4), 0, None, None, 2, least=10)
add("slice.Tensor", f(5, 4), -1, 1, 9223372036854775807, 1)
add("slice.Tensor", f(5, 4), 0, -3, -1, 1)
add("slice.Tensor", f(5, 4), 0, 3, 2, 1)
add("slice.Tensor", f(5, 4), 0, -100, 100, 3, least=10)
add("select.int", f(5, 4), 0, -1)
add("select.int", f(5, 4), 1, 2)
add("narrow", f(5, 4), 0, 1, 3)
add("narrow", f(5, 4), -1, -2, 2)
add("flip", f(3, 4), [0, -1])
add("flip", f(3, 0), [1])
add("flip", f(), [])
add("fliplr", f(3, 4))
add("flipud", f(3, 4))
for k in (-1, 0, 1, 2, 3):
    add("rot90", f(2, 3, 4), k, [0, 2])
add("roll", f(3, 4), [1], [])
add("roll", f(3, 4), [-1, 6], [0, 1])
add("roll", f(3, 0), [1], [1])
add("roll", f(3, 4, dtype=np.int64), [5], [0])
add("unfold", f(2, 7), 1, 3, 2)
add("unfold", f(7, 2), 0, 2, 1)
add("unfold", f(7, 2), -2, 7, 3)
for offset in (-1, 0, 2, 5):
    least = 12 if offset != 5 else 99
    add("diagonal", f(3, 4), offset, 0, 1, still=True)
    add("diagonal", f(2, 3, 4), offset, -1, 0, still=True)
    add("diag", f(3, 4), offset, still=True)
    add("diag", f(3), offset)
    add("diag_embed", f(2, 3), offset, 0, -1)
    add("diag_embed", f(3, dtype=np.int64), offset, -2, -1)
    add("tril", f(3, 4), offset)
    add("triu", f(2, 4, 3, dtype=np.int64), offset)
    add("triu", f(2, 4, 3, dtype=np.int32), offset)
    add("tril", f(4, 3, dtype=np.bool_), offset)
add("diagonal", f(3, 4), 1, 0, 1, least=12)
add("trace", f(3, 4), still=True)
add("trace", f(3, 4, dtype=np.int32), still=True, least=13)
# lists
add("split.Tensor", f(7, 2), 3, 0)
add("split.Tensor", f(6, 2), 3, 0, least=11)
add("split_with_sizes", f(7, 2), [3, 0, 4], 0)
add("split_with_sizes", f(2, 7), [1, 6], -1)
add("chunk", f(7, 2), 3, 0)
add("chunk", f(5, 2), 4, 0, still=True)
add("unbind.int", f(2, 3), 1)
add("tensor_split.sections", f(7, 2), 3, 0, still=True)
add("tensor_split.indices", f(7, 2), [2, 5], 0)
add("meshgrid", [f(2), f(3), f()])
add("meshgrid.indexing", [f(2), f(3)], "xy")
add("broadcast_tensors", [f(2, 1), f(3), f()])
add("nonzero_numpy", f(3, 4))
# fills
for dtype in (None, 4, 6, 11):
    add("zeros", [2, 3], dtype, None, None, None)
    add("full", [2, 0], 3, dtype, None, None, None)
    add("ones_like", f(2, 3, dtype=np.int32), dtype, None, None, None)
    add("new_full", f(2, 3, dtype=np.float64), [3], 2.5, dtype, None, None, None)
add("full", [2], 2.5, None, None, None, None)
add("full_like", f(2, 3), 7, None, None, None, None)
add("new_zeros", f(2, dtype=np.int64), [1, 2], None, None, None, None)
add("scalar_tensor", 2.5, 6, None, None, None)
add("arange", 5, None, None, None, None)
add("arange", 2.5, None, None, None, None)
add("arange.start", 1, 7, 6, None, None, None)
add("arange.start_step", 7, 1, -2, 4, None, None, None)
add("arange.start_step", 0.0, 1.0, 0.3, 7, None, None, None)
add("linspace", 0.0, 1.0, 7, 6, None, None, None)
add("linspace", 3.0, -1.0, 1, 7, None, None, None)
add("eye", 3, None, None, None, None)
add("eye.m", 2, 4, 4, None, None, None)
