"""`com.microsoft.GatherPacked`: rows of a table that is packed as llama.cpp packs its weights.

The layouts are those of GGML's `ggml-common.h`, which onnxruntime reads; a block has a scale in
half precision, and levels of a few bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import ml_dtypes
import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench
from surgeon.builders.contrib.settings import settings
from surgeon.facts.fact import Array
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT = int(TYPE.FLOAT)
_PLAIN: Mapping[int, type] = {0: np.float32, 1: np.float16, 30: ml_dtypes.bfloat16}
_IQ4_NL = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
_SCALES_OF_Q6 = 16  # weights that share one of its scales in 8 bits


def gather_packed(draft: Draft, match: Match) -> gs.Tensor:
    """Rows of levels are taken with their scales, and multiplied by them.

    A place that the table does not have is that of its first row.
    """
    node, c = match.root, Bench(draft)
    given = settings(
        node, 2, 2, {"packed_type": None, "K": None, "output_dtype": int(TYPE.BFLOAT16)}
    )
    data, places = c.facts.array(node.inputs[0]), node.inputs[1]
    kind, columns, dtype = (given[key] for key in ("packed_type", "K", "output_dtype"))
    if data is None or data.ndim != 2 or data.dtype != np.uint8:
        raise Refused("its table is computed where it runs, or is none of bytes")
    if not isinstance(columns, int) or dtype not in FLOATS:
        raise Refused("it does not say how wide a row is, or gives no floats")
    zero = c.number(0, c.dtype(places))
    inside = c.op("Less", places, c.number(data.shape[0], c.dtype(places)))
    inside = c.op("And", inside, c.op("Not", c.op("Less", places, zero)))
    places = c.where(inside, places, zero)

    def taken(table: Array) -> gs.Tensor:
        return c.cast(c.op("Gather", draft.constant(table, "table"), places, axis=0), _FLOAT)

    if kind in _PLAIN:
        _check(data, columns * np.dtype(_PLAIN[kind]).itemsize)
        return c.cast(taken(data.view(_PLAIN[kind])), int(dtype))
    if kind not in _LAYOUTS:
        raise Refused(f"nothing is written for rows of GGML's type {kind}")
    size, width, unpacked = _LAYOUTS[kind]
    if columns % width:
        raise Refused(f"its {columns} columns are no whole number of blocks of {width}")
    _check(data, columns // width * size)
    scales, levels = unpacked(data.reshape(-1, size))
    rows = data.shape[0]
    wide = c.op(
        "Mul",
        taken(levels.reshape(rows, -1, levels.shape[-1])),
        taken(scales.reshape(rows, -1, 1)),
    )
    shape = [*[0] * c.rank(places), columns]
    return c.cast(c.op("Reshape", wide, c.ints(shape, "rows")), int(dtype))


def _check(data: Array, size: int) -> None:
    """See that rows are as long as they say.

    Raises:
        Refused: They are not.
    """
    if data.shape[1] != size:
        raise Refused(f"its rows have {data.shape[1]} bytes, not {size}")


def _halves(part: Array) -> Array:
    return np.ascontiguousarray(part).view(np.float16)


def _nibbles(part: Array) -> Array:
    """The low ones of all bytes, and then the high ones."""
    found: Array = np.concatenate([part & 15, part >> 4], axis=1).astype(np.int8)
    return found


def _q4_0(blocks: Array) -> tuple[Array, Array]:
    return _halves(blocks[:, :2]), _nibbles(blocks[:, 2:]) - np.int8(8)


def _q5_0(blocks: Array) -> tuple[Array, Array]:
    fifth = np.unpackbits(blocks[:, 2:6], axis=1, bitorder="little").astype(np.int8)
    return _halves(blocks[:, :2]), _nibbles(blocks[:, 6:]) + np.int8(16) * fifth - np.int8(16)


def _q8_0(blocks: Array) -> tuple[Array, Array]:
    return _halves(blocks[:, :2]), np.ascontiguousarray(blocks[:, 2:]).view(np.int8)


def _iq4_nl(blocks: Array) -> tuple[Array, Array]:
    return _halves(blocks[:, :2]), np.array(_IQ4_NL, np.int8)[_nibbles(blocks[:, 2:])]


def _q6_k(blocks: Array) -> tuple[Array, Array]:
    """Four low bits of all, two high ones, a scale of 8 bits for 16, and one for them."""
    low, high = blocks[:, :128].reshape(-1, 2, 2, 32), blocks[:, 128:192].reshape(-1, 2, 1, 32)
    low = np.concatenate([low & 15, low >> 4], axis=2)
    high = (high >> np.array([0, 2, 4, 6], np.uint8).reshape(4, 1)) & 3
    levels = (low | (high << 4)).astype(np.int8) - np.int8(32)
    own = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8)
    scales = _halves(blocks[:, 208:]).astype(np.float32) * own
    return scales, levels.reshape(-1, _SCALES_OF_Q6)


# By GGML's number of a type: the bytes and the weights of a block, and what unpacks them.
_LAYOUTS: Mapping[int, tuple[int, int, Callable[[Array], tuple[Array, Array]]]] = {
    2: (18, 32, _q4_0),
    6: (22, 32, _q5_0),
    8: (34, 32, _q8_0),
    14: (210, 256, _q6_k),
    20: (18, 32, _iq4_nl),
}
