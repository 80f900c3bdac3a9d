"""Fourier transforms whose complex values never leave the graph, as products of real matrices.

ONNX has no complex dtype: a complex value is carried as two real ones from where it is made to
where real values are read from it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.builders.aten_nn.transforms import (
    Complex,
    angles_of,
    half_inverse,
    matrices_of,
    real_inverse,
    transform,
)
from surgeon.builders.parts import Array
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_CONJUGATES = ("conj", "_conj", "conj_physical")
_SUMS = ("add", "sub", "Add", "Sub")
_SAME = frozenset({"resolve_conj", "clone", "contiguous", "Identity"})


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


def paired(draft: Draft, value: Complex) -> gs.Tensor:
    """Both parts on a new last axis."""
    rank = parts.rank_of(draft, value.real)
    assert value.imaginary is not None
    both = [parts.unsqueeze(draft, part, rank) for part in (value.real, value.imaginary)]
    return draft.op("Concat", *both, axis=rank)


def _complex(draft: Draft, tensor: gs.Tensor) -> Complex:
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
        return Complex(
            *(
                draft.op("Gather", pairs, draft.constant(np.array(i), "part"), axis=last)
                for i in (0, 1)
            )
        )
    if node.op in (*_SINGLE, *_SEVERAL):
        return _transform(draft, node)
    if node.op == "stft":
        return _stft(draft, bind(node, draft.facts))
    if node.op in _SAME:
        return _complex(draft, node.inputs[0])
    if node.op in _CONJUGATES:
        value = _complex(draft, node.inputs[0])
        assert value.imaginary is not None
        return Complex(value.real, draft.op("Neg", value.imaginary))
    if node.op in ("mul", "Mul"):
        return _product(draft, *(_factor(draft, t) for t in node.inputs[:2]))
    if node.op in _SUMS:
        return _sum(draft, node)
    if node.op in ("div", "Div") and len(node.inputs) == 2 and not _is_complex(node.inputs[1]):
        value = _complex(draft, node.inputs[0])
        assert value.imaginary is not None
        factor = _like(draft, node.inputs[1], value.real)
        both = (value.real, value.imaginary)
        return Complex(*(draft.op("Div", part, factor) for part in both))
    if node.op in ("neg", "Neg"):
        value = _complex(draft, node.inputs[0])
        assert value.imaginary is not None
        return Complex(draft.op("Neg", value.real), draft.op("Neg", value.imaginary))
    raise Refused(f"complex values of `{node.op}` have no standard form here")


def _is_complex(tensor: gs.Tensor) -> bool:
    node = tensor.inputs[0] if tensor.inputs else None
    if node is None:
        return False
    if node.op in ("view_as_complex", "stft", *_SINGLE, *_SEVERAL):
        return True
    follows = (*_SAME, *_CONJUGATES, *_SUMS, "mul", "Mul", "div", "Div", "neg", "Neg")
    return node.op in follows and any(_is_complex(t) for t in node.inputs[:2])


def _sum(draft: Draft, node: gs.Node) -> Complex:
    """A sum or a difference, of which a real side is one number."""
    if node.domain == "aten":
        args = bind(node, draft.facts)
        if args.schema.position("alpha") is not None and args.value("alpha") != 1:
            raise Refused("it adds a multiple of a complex value")
    operator = "Add" if node.op in ("add", "Add") else "Sub"
    a, b = (_factor(draft, t) for t in node.inputs[:2])
    if isinstance(a, Complex) and isinstance(b, Complex):
        assert a.imaginary is not None
        assert b.imaginary is not None
        return Complex(
            draft.op(operator, a.real, b.real), draft.op(operator, a.imaginary, b.imaginary)
        )
    value = a if isinstance(a, Complex) else b
    other = node.inputs[0 if value is b else 1]
    array = draft.facts.array(other)
    if array is None or array.size != 1:
        raise Refused("a complex value and a real tensor are added")
    assert isinstance(value, Complex)
    assert value.imaginary is not None
    number = _like(draft, other, value.real)
    if value is a:
        return Complex(draft.op(operator, value.real, number), value.imaginary)
    turned = value.imaginary if operator == "Add" else draft.op("Neg", value.imaginary)
    return Complex(draft.op(operator, number, value.real), turned)


def _factor(draft: Draft, tensor: gs.Tensor) -> Complex | gs.Tensor:
    return _complex(draft, tensor) if _is_complex(tensor) else tensor


def _product(draft: Draft, a: Complex | gs.Tensor, b: Complex | gs.Tensor) -> Complex:
    if not isinstance(a, Complex):
        a, b = b, a
    assert isinstance(a, Complex)
    assert a.imaginary is not None
    if not isinstance(b, Complex):
        factor = _like(draft, b, a.real)
        return Complex(*(draft.op("Mul", part, factor) for part in (a.real, a.imaginary)))
    assert b.imaginary is not None
    real = draft.op(
        "Sub", draft.op("Mul", a.real, b.real), draft.op("Mul", a.imaginary, b.imaginary)
    )
    imaginary = draft.op(
        "Add", draft.op("Mul", a.real, b.imaginary), draft.op("Mul", a.imaginary, b.real)
    )
    return Complex(real, imaginary)


def _like(draft: Draft, value: gs.Tensor, like: gs.Tensor) -> gs.Tensor:
    """A real factor in the dtype of the parts; a number has no dtype of its own."""
    dtype = parts.numpy_dtype(draft, like)
    array = draft.facts.array(value)
    if array is not None and array.size == 1:
        return draft.constant(array.astype(dtype), "factor")
    return parts.cast(draft, value, draft.facts.of(like).dtype)


# ----------------------------------------------------------------------------------- transforms

_SINGLE = ("fft_fft", "fft_ifft", "fft_rfft")
_SEVERAL = ("fft_fft2", "fft_ifft2", "fft_rfft2", "fft_fftn", "fft_ifftn", "fft_rfftn")


def _transform(draft: Draft, node: gs.Node) -> Complex:
    """`fft_fft`, `fft_ifft` and `fft_rfft` (x, n, dim, norm), and those of several axes."""
    args = bind(node, draft.facts)
    x = args.tensor("self")
    value = _complex(draft, x) if _is_complex(x) else Complex(x, None)
    inverse = node.op.startswith("fft_i")
    half = node.op.startswith("fft_r")
    norm = args.value("norm")
    axes = _axes(draft, args, value)
    for axis, size in reversed(axes):  # the half is of the last, and of real values
        value = transform(draft, value, axis, size, norm, inverse=inverse, half=half)
        half = False
    return value


def _axes(draft: Draft, args: Arguments, value: Complex) -> list[tuple[int, int | None]]:
    """The axes from 0, each with the number of elements that is asked for."""
    rank = parts.rank_of(draft, value.real)
    if args.schema.position("n") is not None:
        size = args.value("n")
        return [(int(args.value("dim")) % rank, None if size is None else int(size))]
    given, asked = args.value("s"), args.value("dim")
    sizes = None if given is None else parts.per_axis(given, len(np.ravel(given)), "s")
    if asked is None:
        axes = list(range(rank - (rank if sizes is None else len(sizes)), rank))
    else:
        axes = [int(axis) % rank for axis in np.ravel(asked)]
    if sizes is None:
        return [(axis, None) for axis in axes]
    if len(sizes) != len(axes):
        raise Refused(f"`s` has {len(sizes)} numbers for {len(axes)} axes")
    return [(a, None if n == -1 else n) for a, n in zip(axes, sizes, strict=True)]


def fft_irfft(draft: Draft, match: Match) -> Any:
    """`aten.fft_irfft` and those of several axes: what is left out is the other's conjugate."""
    args = bind(match.root, draft.facts)
    value = _complex(draft, args.tensor("self"))
    norm = args.value("norm")
    *others, (last, size) = _axes(draft, args, value)
    for axis, count in others:
        value = transform(draft, value, axis, count, norm, inverse=True)
    return real_inverse(draft, value, last, size, norm)


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


def _stft(draft: Draft, args: Arguments) -> Complex:
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
    angles = angles_of(rows, size, size)
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
    return Complex(*(parts.squeeze(draft, part, 0) if rank == 1 else part for part in both))


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
    matrices = matrices_of(draft, length, length, dtype, norm, inverse=False, half=half)
    both = [parts.multiply_axis(draft, x, rank - 1, rank, matrix) for matrix in matrices]
    return paired(draft, Complex(*both))


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
        cosine, sine = half_inverse(frequencies, size, scale)
    else:
        angles = angles_of(frequencies, size, size)
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
