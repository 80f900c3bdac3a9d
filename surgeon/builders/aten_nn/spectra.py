"""Fourier transforms whose complex values never leave the graph, as products of real matrices.

ONNX has no complex dtype: a complex value is carried as two real ones from where it is made to
where real values are read from it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.builders.parts import Array, Length
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_SAME = frozenset({"resolve_conj", "clone", "contiguous", "Identity"})


class _Complex(NamedTuple):
    """A value in two parts; the imaginary one is None for a real value."""

    real: gs.Tensor
    imaginary: gs.Tensor | None


def real_of_complex(draft: Draft, match: Match) -> Any:
    """`aten.view_as_real`, `real`, `imag` and `abs` of a complex value made in the graph."""
    value = _complex(draft, match.root.inputs[0])
    if value.imaginary is None:
        raise Refused("its input is real")
    operator = match.root.op
    if operator == "real":
        return value.real
    if operator == "imag":
        return value.imaginary
    if operator == "abs":
        squares = [draft.op("Mul", part, part) for part in (value.real, value.imaginary)]
        return draft.op("Sqrt", draft.op("Add", *squares))
    return paired(draft, value)


def paired(draft: Draft, value: _Complex) -> gs.Tensor:
    """Both parts on a new last axis."""
    rank = parts.rank_of(draft, value.real)
    assert value.imaginary is not None
    both = [parts.unsqueeze(draft, part, rank) for part in (value.real, value.imaginary)]
    return draft.op("Concat", *both, axis=rank)


def _complex(draft: Draft, tensor: gs.Tensor) -> _Complex:
    """Both parts of a value, from the node that makes it.

    Raises:
        Refused: That node has no real form here.
    """
    node = tensor.inputs[0] if tensor.inputs else None
    if node is None or (node.domain or "") not in ("aten", "", "ai.onnx"):
        raise Refused("a complex value comes from outside the graph")
    if node.op == "view_as_complex":
        pairs = node.inputs[0]
        last = parts.rank_of(draft, pairs) - 1
        return _Complex(
            *(
                draft.op("Gather", pairs, draft.constant(np.array(i), "part"), axis=last)
                for i in (0, 1)
            )
        )
    if node.op in ("fft_fft", "fft_ifft", "fft_rfft"):
        return _transform(draft, node)
    if node.op == "stft":
        return _stft(draft, bind(node, draft.facts))
    if node.op in _SAME:
        return _complex(draft, node.inputs[0])
    if node.op in ("conj", "_conj", "conj_physical"):
        value = _complex(draft, node.inputs[0])
        assert value.imaginary is not None
        return _Complex(value.real, draft.op("Neg", value.imaginary))
    if node.op in ("mul", "Mul"):
        return _product(draft, *(_factor(draft, t) for t in node.inputs[:2]))
    raise Refused(f"complex values of `{node.op}` have no standard form here")


def _is_complex(tensor: gs.Tensor) -> bool:
    node = tensor.inputs[0] if tensor.inputs else None
    if node is None:
        return False
    if node.op in ("view_as_complex", "fft_fft", "fft_ifft", "fft_rfft", "stft"):
        return True
    follows = (*_SAME, "conj", "_conj", "conj_physical", "mul", "Mul")
    return node.op in follows and any(_is_complex(t) for t in node.inputs[:2])


def _factor(draft: Draft, tensor: gs.Tensor) -> _Complex | gs.Tensor:
    return _complex(draft, tensor) if _is_complex(tensor) else tensor


def _product(draft: Draft, a: _Complex | gs.Tensor, b: _Complex | gs.Tensor) -> _Complex:
    if not isinstance(a, _Complex):
        a, b = b, a
    assert isinstance(a, _Complex)
    assert a.imaginary is not None
    if not isinstance(b, _Complex):
        factor = _like(draft, b, a.real)
        return _Complex(*(draft.op("Mul", part, factor) for part in (a.real, a.imaginary)))
    assert b.imaginary is not None
    real = draft.op(
        "Sub", draft.op("Mul", a.real, b.real), draft.op("Mul", a.imaginary, b.imaginary)
    )
    imaginary = draft.op(
        "Add", draft.op("Mul", a.real, b.imaginary), draft.op("Mul", a.imaginary, b.real)
    )
    return _Complex(real, imaginary)


def _like(draft: Draft, value: gs.Tensor, like: gs.Tensor) -> gs.Tensor:
    """A real factor in the dtype of the parts; a number has no dtype of its own."""
    dtype = parts.numpy_dtype(draft, like)
    array = draft.facts.array(value)
    if array is not None and array.size == 1:
        return draft.constant(array.astype(dtype), "factor")
    return parts.cast(draft, value, draft.facts.of(like).dtype)


# ----------------------------------------------------------------------------------- transforms


def _scale(norm: Any, size: int, *, inverse: bool) -> float:
    """What the sum is multiplied by; `backward` when it is not said."""
    if norm == "ortho":
        return 1.0 / math.sqrt(size)
    divides = inverse if norm in (None, "backward") else not inverse
    return 1.0 / size if divides else 1.0


def _angles(rows: int, columns: int, size: int) -> Array:
    """2 pi k t / n, the product reduced first so that it stays exact."""
    return np.outer(np.arange(rows), np.arange(columns)) % size * (2 * math.pi / size)


def _transform(draft: Draft, node: gs.Node) -> _Complex:
    """`fft_fft`, `fft_ifft` and `fft_rfft` (x, n, dim, norm)."""
    args = bind(node, draft.facts)
    x = args.tensor("self")
    value = _complex(draft, x) if _is_complex(x) else _Complex(x, None)
    rank = parts.rank_of(draft, value.real)
    axis = int(args.value("dim")) % rank
    inverse, half = node.op == "fft_ifft", node.op == "fft_rfft"
    dtype = parts.numpy_dtype(draft, value.real)
    if not parts.is_float(dtype):
        raise Refused(f"no standard form transforms {dtype.name}")
    length = parts.lengths_of(draft, value.real, rank)[axis]
    if length.static is None:
        if args.has("n") or args.has("norm"):
            raise Refused(f"axis {axis} has {length.dim} elements; fix it with `--shape`")
        matrices = _computed_matrices(draft, length, dtype, inverse=inverse, half=half)
    else:
        size = int(args.value("n") or length.static)
        matrices = _matrices(
            draft, length.static, size, dtype, args.value("norm"), inverse=inverse, half=half
        )
    cosine, sine = matrices

    def along(part: gs.Tensor, matrix: Any) -> gs.Tensor:
        return parts.multiply_axis(draft, part, axis, rank, matrix)

    # (a + ib)(c + is) summed over the axis, s with its sign
    if value.imaginary is None:
        return _Complex(along(value.real, cosine), along(value.real, sine))
    real = draft.op("Sub", along(value.real, cosine), along(value.imaginary, sine))
    imaginary = draft.op("Add", along(value.real, sine), along(value.imaginary, cosine))
    return _Complex(real, imaginary)


def _matrices(
    draft: Draft,
    length: int,
    size: int,
    dtype: np.dtype[Any],
    norm: Any,
    *,
    inverse: bool,
    half: bool,
) -> tuple[Any, Any]:
    """The cosines and signed sines [frequencies, length] of a transform over `size` elements."""
    rows = size // 2 + 1 if half else size
    angles = _angles(rows, length, size)
    scale = _scale(norm, size, inverse=inverse)
    kept = (np.arange(length) < size) * scale
    cosine = np.cos(angles) * kept
    sine = np.sin(angles) * kept * (1 if inverse else -1)
    return parts.constant_matrix(draft, cosine, dtype), parts.constant_matrix(draft, sine, dtype)


def _computed_matrices(
    draft: Draft, length: Length, dtype: np.dtype[Any], *, inverse: bool, half: bool
) -> tuple[Any, Any]:
    """The same over a length that is known at run time."""
    number = int(onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def make(function: str, sign: int, turned: bool) -> gs.Tensor:
        size = length.make()
        rows = length
        if half:
            two, one = draft.constant([2], "two"), draft.constant([1], "one")
            rows = Length(None, lambda: draft.op("Add", draft.op("Div", size, two), one))
        k = parts.unsqueeze(draft, parts.counting(draft, rows), 0 if turned else 1)
        t = parts.unsqueeze(draft, parts.counting(draft, length), 1 if turned else 0)
        product = draft.op("Mul", k, t)
        turns = draft.op("Mul", draft.op("Div", product, size), size)
        rest = draft.op("Cast", draft.op("Sub", product, turns), to=number)
        wide = draft.op("Cast", size, to=number)
        step = draft.op("Div", draft.constant(np.array([2 * math.pi], dtype), "turn"), wide)
        matrix = draft.op(function, draft.op("Mul", rest, step))
        if inverse:
            matrix = draft.op("Div", matrix, wide)
        return draft.op("Neg", matrix) if sign < 0 else matrix

    return (
        lambda turned: make("Cos", 1, turned),
        lambda turned: make("Sin", 1 if inverse else -1, turned),
    )


def fft_irfft(draft: Draft, match: Match) -> Any:
    """`aten.fft_irfft (x, n, dim, norm)`: the half that is left out is the other's conjugate."""
    args = bind(match.root, draft.facts)
    x = args.tensor("self")
    value = _complex(draft, x)
    rank = parts.rank_of(draft, value.real)
    axis = int(args.value("dim")) % rank
    length = parts.lengths_of(draft, value.real, rank)[axis].static
    if length is None:
        raise Refused(f"axis {axis} has a length known at run time; fix it with `--shape`")
    size = int(args.value("n") or 2 * (length - 1))
    dtype = parts.numpy_dtype(draft, value.real)
    cosine, sine = _half_inverse(length, size, _scale(args.value("norm"), size, inverse=True))
    y = parts.multiply_axis(
        draft, value.real, axis, rank, parts.constant_matrix(draft, cosine.T, dtype)
    )
    if value.imaginary is None:
        return y
    minus = parts.multiply_axis(
        draft, value.imaginary, axis, rank, parts.constant_matrix(draft, sine.T, dtype)
    )
    return draft.op("Sub", y, minus)


def _half_inverse(length: int, size: int, scale: float) -> tuple[Array, Array]:
    """[length, size]: cosines and sines of the half spectrum, twice where there is a conjugate."""
    counts = np.full(length, 2.0)
    counts[0] = 1
    if size % 2 == 0 and size // 2 < length:
        counts[size // 2] = 1
    counts[size // 2 + 1 :] = 0
    angles = _angles(length, size, size)
    weight = (counts * scale)[:, None]
    return np.cos(angles) * weight, np.sin(angles) * weight


# --------------------------------------------------------------------------------- short frames


def _window(draft: Draft, args: Arguments, size: int) -> Array:
    """The window in the middle of a frame; all ones where none is given."""
    width = int(args.value("win_length") or size)
    if not args.has("window"):
        values = np.ones(width)
    else:
        found = draft.facts.array(args.tensor("window"))
        if found is None:
            raise Refused("its window is computed at run time")
        values = found.astype(np.float64)
    if width > size or values.shape != (width,):
        raise Refused(f"a window of {values.shape} in frames of {size}")
    whole = np.zeros(size)
    start = (size - width) // 2
    whole[start : start + width] = values
    return whole


def stft_as_real(draft: Draft, match: Match) -> Any:
    """`aten.stft` that gives pairs of real numbers, as before there were complex tensors."""
    args = bind(match.root, draft.facts)
    if args.schema.position("return_complex") is not None and args.value("return_complex"):
        raise Refused("its complex result is read as it is")
    return paired(draft, _stft(draft, args))


def _stft(draft: Draft, args: Arguments) -> _Complex:
    """Frames times windowed cosines and sines: one convolution. [B, F, T] or [F, T]."""
    x = args.tensor("self")
    rank = parts.rank_of(draft, x)
    if rank not in (1, 2):
        raise Refused(f"its input has rank {rank}, not 1 or 2")
    dtype = parts.numpy_dtype(draft, x)
    if dtype.name not in ("float32", "float16"):
        raise Refused(f"onnxruntime has no convolution of {dtype.name}")
    size = int(args.value("n_fft"))
    hop = int(args.value("hop_length") or size // 4)
    onesided = args.value("onesided")
    rows = size if onesided is not None and not onesided else size // 2 + 1
    scale = 1.0 / math.sqrt(size) if args.value("normalized") else 1.0
    weighted = _window(draft, args, size) * scale
    angles = _angles(rows, size, size)
    kernel = np.concatenate([np.cos(angles) * weighted, -np.sin(angles) * weighted])[:, None]
    x = parts.unsqueeze(draft, x, *([0, 1] if rank == 1 else [1]))
    if args.schema.position("center") is not None and args.value("center"):
        mode = args.value("pad_mode") or "reflect"
        mode = {"replicate": "edge"}.get(mode, mode)
        edge = size // 2
        pads = draft.constant([0, 0, edge, 0, 0, edge], "pads")
        x = draft.op("Pad", x, pads, mode=mode)
    filters = draft.constant(kernel.astype(dtype), "filters")
    y = draft.op("Conv", x, filters, kernel_shape=[size], strides=[hop])
    both = [
        draft.op(
            "Slice",
            y,
            draft.constant([first], "starts"),
            draft.constant([first + rows], "ends"),
            draft.constant([1], "axes"),
        )
        for first in (0, rows)
    ]
    return _Complex(*(parts.squeeze(draft, part, 0) if rank == 1 else part for part in both))


def old_rfft(draft: Draft, match: Match) -> Any:
    """`aten.rfft (x, signal_ndim, normalized, onesided)` of torch 1.7 and before."""
    args = bind(match.root, draft.facts)
    x = args.tensor("self")
    if int(args.value("signal_ndim")) != 1:
        raise Refused("it transforms more than one axis")
    rank = parts.rank_of(draft, x)
    length = parts.lengths_of(draft, x, rank)[rank - 1].static
    if length is None:
        raise Refused("its last axis has a length known at run time; fix it with `--shape`")
    norm = "ortho" if args.value("normalized") else None
    dtype = parts.numpy_dtype(draft, x)
    half = bool(args.value("onesided"))
    matrices = _matrices(draft, length, length, dtype, norm, inverse=False, half=half)
    both = [parts.multiply_axis(draft, x, rank - 1, rank, matrix) for matrix in matrices]
    return paired(draft, _Complex(*both))


def istft(draft: Draft, match: Match) -> Any:
    """`aten.istft`: windowed frames added up, divided by the windows' squares added up."""
    args = bind(match.root, draft.facts)
    value = _complex(draft, args.tensor("self"))
    if value.imaginary is None or args.value("return_complex"):
        raise Refused("its result is complex")
    rank = parts.rank_of(draft, value.real)
    dtype = parts.numpy_dtype(draft, value.real)
    if dtype.name not in ("float32", "float16") or rank not in (2, 3):
        raise Refused(f"a spectrum of {dtype.name} and rank {rank}")
    size = int(args.value("n_fft"))
    hop = int(args.value("hop_length") or size // 4)
    window = _window(draft, args, size)
    frequencies = parts.lengths_of(draft, value.real, rank)[rank - 2].static
    if frequencies is None:
        raise Refused("the number of its frequencies is not known; fix it with `--shape`")
    scale = 1.0 / math.sqrt(size) if args.value("normalized") else 1.0 / size
    onesided = args.value("onesided")
    if onesided is None:
        onesided = frequencies != size
    if onesided:
        cosine, sine = _half_inverse(frequencies, size, scale)
    else:
        angles = _angles(frequencies, size, size)
        cosine, sine = np.cos(angles) * scale, np.sin(angles) * scale
    kernel = (np.concatenate([cosine, -sine]) * window)[:, None].astype(dtype)
    both = draft.op("Concat", value.real, value.imaginary, axis=rank - 2)
    if rank == 2:
        both = parts.unsqueeze(draft, both, 0)

    def added(frames: gs.Tensor, filters: Array) -> gs.Tensor:
        made = draft.op(
            "ConvTranspose",
            frames,
            draft.constant(filters.astype(dtype), "filters"),
            kernel_shape=[size],
            strides=[hop],
        )
        return _cut(draft, made, args, size)

    count = parts.lengths_of(draft, both, 3)[2]
    ones = parts.filled(draft, parts.shape_from(draft, [1, 1, count]), dtype.type(1))
    y = draft.op("Div", added(both, kernel), added(ones, (window * window)[None, None]))
    return parts.squeeze(draft, y, *([0, 1] if rank == 2 else [1]))


def _cut(draft: Draft, made: gs.Tensor, args: Arguments, size: int) -> gs.Tensor:
    """What `center` and `length` keep."""
    start = size // 2 if args.value("center") else 0
    length = args.value("length")
    if length is None and not start:
        return made
    end = start + int(length) if length is not None else -start
    whole = draft.facts.of(made).shape
    if length is not None and (
        whole is None or not isinstance(whole[2], int) or whole[2] < start + int(length)
    ):
        raise Refused("its `length` may be longer than its frames reach")
    return draft.op(
        "Slice",
        made,
        draft.constant([start], "starts"),
        draft.constant([end], "ends"),
        draft.constant([2], "axes"),
    )
