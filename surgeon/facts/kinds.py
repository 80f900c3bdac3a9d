"""Element types of numbers: which of them hold every value of which."""

from __future__ import annotations

import onnx

_T = onnx.TensorProto
TRUTH = frozenset({_T.BOOL})
_SIGNED = (_T.INT8, _T.INT16, _T.INT32, _T.INT64)
_UNSIGNED = (_T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64)
WHOLE = frozenset({*_SIGNED, *_UNSIGNED})
HALVES = frozenset({_T.FLOAT16, _T.BFLOAT16})
FLOATS = HALVES | {_T.FLOAT, _T.DOUBLE}
# Bits of each type: those of an integer without its sign, and those of a float's significand.
_BITS: dict[int, int] = {
    **{kind: 7 + 8 * ((1 << i) - 1) for i, kind in enumerate(_SIGNED)},
    **{kind: 8 << i for i, kind in enumerate(_UNSIGNED)},
    **{_T.FLOAT16: 11, _T.BFLOAT16: 8, _T.FLOAT: 24, _T.DOUBLE: 53},
}
_WIDER_FLOATS = frozenset(
    {
        (_T.FLOAT16, _T.FLOAT),
        (_T.FLOAT16, _T.DOUBLE),
        (_T.BFLOAT16, _T.FLOAT),
        (_T.BFLOAT16, _T.DOUBLE),
        (_T.FLOAT, _T.DOUBLE),
    }
)


def holds_all(source: int, target: int) -> bool:
    """Whether every value of one dtype is a value of the other."""
    if source == target or (source in TRUTH and target in WHOLE | FLOATS):
        return True
    if source in FLOATS:
        return (source, target) in _WIDER_FLOATS
    if source not in WHOLE or target not in WHOLE | FLOATS:
        return False
    if source in _SIGNED and target in _UNSIGNED:
        return False
    return _BITS[source] <= _BITS[target]


def known_type(dtype: int) -> int:
    """The number of an element type; 0 where it is none that onnx knows, as in a broken file."""
    return dtype if dtype in _KNOWN else 0


_KNOWN = frozenset(_T.DataType.values())
