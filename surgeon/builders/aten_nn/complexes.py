"""Complex values that the graph makes, each in two real parts.

What moves data moves both parts, what is linear is so in each, and a product of two values is
four products of parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.builders.aten_nn.frames import frames_of
from surgeon.builders.aten_nn.transforms import Complex, transform
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_DOUBLE = onnx.TensorProto.DOUBLE
_CONJUGATES = ("conj", "_conj", "conj_physical", "_conj_physical")
_SUMS = ("add", "sub", "Add", "Sub")
_SAME = ("resolve_conj", "clone", "contiguous", "Identity")
_SINGLE = ("fft_fft", "fft_ifft", "fft_rfft", "fft_ihfft")
_KINDS = ("fft", "ifft", "rfft", "ihfft")
_SEVERAL = tuple(f"fft_{kind}{n}" for kind in _KINDS for n in ("2", "n"))
_NAMED = ("_fft_r2c", "_fft_c2c")
# What puts elements elsewhere, or adds some up: the same on either part.
_STANDARD = tuple(
    "Reshape Transpose Unsqueeze Squeeze Slice Gather GatherElements Expand Flatten Tile "
    "ReduceSum ReduceMean".split()
)
_MOVES = tuple(
    "view reshape _unsafe_view flatten unflatten permute transpose swapaxes movedim t unsqueeze "
    "squeeze expand select slice narrow flip roll".split()
)
_BILINEAR = ("matmul", "mm", "bmm", "MatMul", "Einsum")


def paired(draft: Draft, value: Complex) -> gs.Tensor:
    """Both parts on a new last axis."""
    rank = parts.rank_of(draft, value.real)
    both = [parts.unsqueeze(draft, part, rank) for part in both_of(value)]
    return draft.op("Concat", *both, axis=rank)


def both_of(value: Complex) -> tuple[gs.Tensor, gs.Tensor]:
    """The parts of a value that has two."""
    assert value.imaginary is not None
    return value.real, value.imaginary


def is_complex(draft: Draft, tensor: gs.Tensor) -> bool:
    """Whether it is made of complex values."""
    waiting, seen = [tensor], set()
    while waiting:
        at = waiting.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if _constant(draft, at) is not None:
            return True
        node = at.inputs[0] if at.inputs else None
        if node is None or (node.domain or "") not in ("aten", "", "ai.onnx"):
            continue
        if node.op in _MADE and (node.op != "stft" or _gives_complex(draft, node)):
            return True
        if node.op in _FOLLOWS:
            several = node.op in (*_BILINEAR, "Concat")
            waiting.extend(node.inputs if several else node.inputs[:2])
    return False


def complex_of(draft: Draft, tensor: gs.Tensor) -> Complex:
    """Both parts of a value, from the node that makes it.

    Raises:
        Refused: That node has no real form here.
    """
    array = _constant(draft, tensor)
    if array is not None:
        return Complex(*(draft.constant(np.array(p), "part") for p in (array.real, array.imag)))
    node = tensor.inputs[0] if tensor.inputs else None
    if node is None or (node.domain or "") not in ("aten", "", "ai.onnx"):
        raise Refused("a complex value comes from outside the graph")
    make = {**_MADE, **_FOLLOWS}.get(node.op)
    if make is None:
        raise Refused(f"complex values of `{node.op}` have no standard form here")
    return make(draft, node)


def _gives_complex(draft: Draft, node: gs.Node) -> bool:
    """Whether `stft` gives complex values: it gave pairs of real ones, before it was asked."""
    args = bind(node, draft.facts)
    return args.schema.position("return_complex") is not None and bool(args.value("return_complex"))


def _constant(draft: Draft, tensor: gs.Tensor) -> Any:
    array = draft.facts.array(tensor)
    return array if array is not None and array.dtype.kind == "c" else None


# --------------------------------------------------------------------------------- where they begin


def _viewed(draft: Draft, node: gs.Node) -> Complex:
    pairs = node.inputs[0]
    last = parts.rank_of(draft, pairs) - 1
    numbers = (draft.constant(np.array(i), "part") for i in (0, 1))
    return Complex(*(draft.op("Gather", pairs, number, axis=last) for number in numbers))


def _joined(draft: Draft, node: gs.Node) -> Complex:
    """`complex (real, imag)`, of one shape by broadcasting each to the other."""
    real, imaginary = node.inputs[:2]
    if parts.numpy_dtype(draft, real) != parts.numpy_dtype(draft, imaginary):
        raise Refused("its parts differ in dtype")
    return _alike(draft, Complex(real, imaginary))


def _alike(draft: Draft, value: Complex) -> Complex:
    """Both parts in the shape that they have together."""
    shapes = [draft.facts.of(part).shape for part in both_of(value)]
    if None not in shapes and shapes[0] == shapes[1]:
        return value
    real, imaginary = both_of(value)
    return Complex(
        draft.op("Expand", real, draft.op("Shape", imaginary)),
        draft.op("Expand", imaginary, draft.op("Shape", real)),
    )


def _frames(draft: Draft, node: gs.Node) -> Complex:
    if not _gives_complex(draft, node):
        raise Refused("its frames are pairs of real numbers")
    return frames_of(draft, bind(node, draft.facts))


def _polar(draft: Draft, node: gs.Node) -> Complex:
    """`polar (abs, angle)`."""
    args = bind(node, draft.facts)
    if args.schema.position("angle") is None:
        raise Refused("it makes one number of Python's")
    size, angle = args.tensor("abs"), args.tensor("angle")
    if parts.numpy_dtype(draft, size) != parts.numpy_dtype(draft, angle):
        raise Refused("its parts differ in dtype")
    return Complex(*(draft.op("Mul", size, draft.op(f, angle)) for f in ("Cos", "Sin")))


# --------------------------------------------------------------------------------- arithmetic


def _conjugate(draft: Draft, node: gs.Node) -> Complex:
    real, imaginary = both_of(complex_of(draft, node.inputs[0]))
    return Complex(real, draft.op("Neg", imaginary))


def _negative(draft: Draft, node: gs.Node) -> Complex:
    return Complex(*(draft.op("Neg", p) for p in both_of(complex_of(draft, node.inputs[0]))))


def _exponential(draft: Draft, node: gs.Node) -> Complex:
    real, imaginary = both_of(complex_of(draft, node.inputs[0]))
    size = draft.op("Exp", real)
    return Complex(*(draft.op("Mul", size, draft.op(f, imaginary)) for f in ("Cos", "Sin")))


def _sum(draft: Draft, node: gs.Node) -> Complex:
    """A sum or a difference; a real side adds to the real part."""
    if node.domain == "aten":
        args = bind(node, draft.facts)
        if args.schema.position("alpha") is not None and args.value("alpha") != 1:
            raise Refused("it adds a multiple of a complex value")
    operator = "Add" if node.op in ("add", "Add") else "Sub"
    a, b = (_factor(draft, t) for t in node.inputs[:2])
    if isinstance(a, Complex) and isinstance(b, Complex):
        _refuse_mixed(draft, a, b)
        pairs = zip(both_of(a), both_of(b), strict=True)
        return Complex(*(draft.op(operator, p, q) for p, q in pairs))
    if isinstance(a, Complex):
        real, imaginary = both_of(a)
        return _spread(draft, draft.op(operator, real, _like(draft, b, real)), imaginary)
    assert isinstance(b, Complex)
    real, imaginary = both_of(b)
    turned = imaginary if operator == "Add" else draft.op("Neg", imaginary)
    return _spread(draft, draft.op(operator, _like(draft, a, real), real), turned)


def _spread(draft: Draft, real: gs.Tensor, imaginary: gs.Tensor) -> Complex:
    """The imaginary part repeated as the sum of the real one was."""
    shapes = [draft.facts.of(part).shape for part in (real, imaginary)]
    if None not in shapes and shapes[0] == shapes[1]:
        return Complex(real, imaginary)
    return Complex(real, draft.op("Expand", imaginary, draft.op("Shape", real)))


def _factor(draft: Draft, tensor: gs.Tensor) -> Complex | gs.Tensor:
    return complex_of(draft, tensor) if is_complex(draft, tensor) else tensor


def _product(draft: Draft, node: gs.Node) -> Complex:
    return _multiplied(draft, *(_factor(draft, t) for t in node.inputs[:2]))


def _multiplied(draft: Draft, a: Complex | gs.Tensor, b: Complex | gs.Tensor) -> Complex:
    if not isinstance(a, Complex):
        a, b = b, a
    assert isinstance(a, Complex)
    if not isinstance(b, Complex):
        factor = _like(draft, b, a.real)
        return Complex(*(draft.op("Mul", part, factor) for part in both_of(a)))
    _refuse_mixed(draft, a, b)
    return _four(draft, a, b, lambda p, q: draft.op("Mul", p, q))


def _four(draft: Draft, a: Complex, b: Complex, by: Callable[..., gs.Tensor]) -> Complex:
    """Any product that is linear on either side."""
    (p, q), (r, s) = both_of(a), both_of(b)
    return Complex(
        draft.op("Sub", by(p, r), by(q, s)),
        draft.op("Add", by(p, s), by(q, r)),
    )


def _quotient(draft: Draft, node: gs.Node) -> Complex:
    if len(node.inputs) != 2:
        raise Refused("complex values are not divided with rounding")
    a, b = (_factor(draft, t) for t in node.inputs)
    if not isinstance(b, Complex):
        assert isinstance(a, Complex)
        divisor = _like(draft, b, a.real)
        return Complex(*(draft.op("Div", part, divisor) for part in both_of(a)))
    real, imaginary = both_of(b)
    squares = draft.op("Add", *(draft.op("Mul", part, part) for part in (real, imaginary)))
    turned = Complex(real, draft.op("Neg", imaginary))
    return Complex(*(draft.op("Div", p, squares) for p in both_of(_multiplied(draft, a, turned))))


def _like(draft: Draft, value: gs.Tensor, like: gs.Tensor) -> gs.Tensor:
    """A real factor in the dtype of the parts; a number has no dtype of its own."""
    dtype = parts.numpy_dtype(draft, like)
    array = draft.facts.array(value)
    if array is not None and array.size == 1:
        return draft.constant(array.astype(dtype), "factor")
    parts.numpy_dtype(draft, value)  # known, and so not complex by an operator that is not here
    if draft.facts.of(value).dtype == _DOUBLE and dtype != np.float64:
        raise Refused("a complex value in single precision meets a real one in double")
    return parts.cast(draft, value, draft.facts.of(like).dtype)


def _refuse_mixed(draft: Draft, a: Complex, b: Complex) -> None:
    if parts.numpy_dtype(draft, a.real) != parts.numpy_dtype(draft, b.real):
        raise Refused("its complex operands differ in precision")


# --------------------------------------------------------------------------------- data movement


def _same(draft: Draft, node: gs.Node) -> Complex:
    return complex_of(draft, node.inputs[0])


def _moved(draft: Draft, node: gs.Node) -> Complex:
    """What moves data, by its lowering for real values, whose room is imported then alone."""
    from surgeon.builders.aten_shape import LOWERINGS
    from surgeon.builders.aten_shape.call import Call

    call = Call(draft, node)
    first = call.args.schema.parameters[0].name
    made = []
    for part in both_of(complex_of(draft, node.inputs[0])):
        given = {**call.args.given, first: part}
        call.args = Arguments(call.args.schema, given, draft.facts)
        made.append(LOWERINGS[node.op](call))
    return Complex(*made)


def _in_standard(draft: Draft, node: gs.Node) -> Complex:
    value = complex_of(draft, node.inputs[0])
    made = (draft.op(node.op, p, *node.inputs[1:], **node.attrs) for p in both_of(value))
    return Complex(*made)


def _end_to_end(draft: Draft, node: gs.Node) -> Complex:
    values = [complex_of(draft, t) for t in node.inputs]
    pairs = zip(*(both_of(value) for value in values), strict=True)
    return Complex(*(draft.op("Concat", *some, **node.attrs) for some in pairs))


def _of_matrices(draft: Draft, node: gs.Node) -> Complex:
    if len(node.inputs) != 2:
        raise Refused(f"`{node.op}` of {len(node.inputs)} complex values has no form here")
    operator = node.op if node.op == "Einsum" else "MatMul"
    attributes = node.attrs if node.op == "Einsum" else {}

    def by(p: gs.Tensor, q: gs.Tensor) -> gs.Tensor:
        made: gs.Tensor = draft.op(operator, p, q, **attributes)
        return made

    a, b = (_factor(draft, t) for t in node.inputs)
    if isinstance(a, Complex) and isinstance(b, Complex):
        _refuse_mixed(draft, a, b)
        return _four(draft, a, b, by)
    if isinstance(a, Complex):
        factor = _like(draft, b, a.real) if isinstance(b, gs.Tensor) else b
        return Complex(*(by(part, factor) for part in both_of(a)))
    assert isinstance(b, Complex)
    factor = _like(draft, a, b.real)
    return Complex(*(by(factor, part) for part in both_of(b)))


# --------------------------------------------------------------------------------- transforms


def _transform(draft: Draft, node: gs.Node) -> Complex:
    """`fft_fft` and kin (x, n, dim, norm), and those of several axes."""
    args = bind(node, draft.facts)
    value = value_of(draft, args.tensor("self"))
    kind = node.op.removeprefix("fft_").rstrip("2n")
    half = kind in ("rfft", "ihfft")
    if half and value.imaginary is not None:
        raise Refused("it is of real values, and its input is complex")
    norm = args.value("norm")
    for axis, size in reversed(axes_of(draft, args, value)):  # the half is of the last
        inverse = kind.startswith("i")
        value = transform(draft, value, axis, size, norm, inverse=inverse, half=half)
        half = False
    return value


# What a transform is multiplied by (c10 fft_norm_mode: nothing, by the root of n, by n), as
# PyTorch's word for it in each direction.
_FORWARD = (None, "ortho", "forward")
_BACKWARD = ("forward", "ortho", None)


def norm_of(args: Arguments, *, inverse: bool) -> str | None:
    """The word for a number that says how a transform is normalised."""
    return (_BACKWARD if inverse else _FORWARD)[int(args.value("normalization"))]


def _named_transform(draft: Draft, node: gs.Node) -> Complex:
    """`_fft_r2c` (self, dim, normalization, onesided) and `_fft_c2c` (..., forward)."""
    args = bind(node, draft.facts)
    value = value_of(draft, args.tensor("self"))
    rank = parts.rank_of(draft, value.real)
    inverse = node.op == "_fft_c2c" and not args.value("forward")
    half = node.op == "_fft_r2c" and bool(args.value("onesided"))
    norm = norm_of(args, inverse=inverse)
    for axis in reversed([int(d) % rank for d in np.ravel(args.value("dim"))]):
        value = transform(draft, value, axis, None, norm, inverse=inverse, half=half)
        half = False
    return value


def value_of(draft: Draft, x: gs.Tensor) -> Complex:
    """A value with one part or two."""
    if is_complex(draft, x):
        return complex_of(draft, x)
    if not parts.is_float(parts.numpy_dtype(draft, x)):
        raise Refused("its input is of integers, or complex from outside the graph")
    return Complex(x, None)


def axes_of(draft: Draft, args: Arguments, value: Complex) -> list[tuple[int, int | None]]:
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


_Maker = Callable[[Draft, gs.Node], Complex]
_MADE: Mapping[str, _Maker] = {
    "view_as_complex": _viewed,
    "complex": _joined,
    "polar": _polar,
    "stft": _frames,
    **dict.fromkeys((*_SINGLE, *_SEVERAL), _transform),
    **dict.fromkeys(_NAMED, _named_transform),
}
_FOLLOWS: Mapping[str, _Maker] = {
    **dict.fromkeys(_SAME, _same),
    **dict.fromkeys(_CONJUGATES, _conjugate),
    **dict.fromkeys(("neg", "Neg"), _negative),
    **dict.fromkeys(("exp", "Exp"), _exponential),
    **dict.fromkeys(_SUMS, _sum),
    **dict.fromkeys(("mul", "Mul"), _product),
    **dict.fromkeys(("div", "Div"), _quotient),
    **dict.fromkeys(_MOVES, _moved),
    **dict.fromkeys(_STANDARD, _in_standard),
    **dict.fromkeys(_BILINEAR, _of_matrices),
    "Concat": _end_to_end,
}


def real_of_complex(draft: Draft, match: Match) -> Any:
    """`aten.view_as_real`, `real`, `imag` and `abs` of a complex value made in the graph."""
    if not is_complex(draft, match.root.inputs[0]) and _is_real(draft, match.root.inputs[0]):
        raise Refused("its input is real")
    value = complex_of(draft, match.root.inputs[0])
    operator = match.root.op
    if operator == "real":
        return value.real
    if operator == "imag":
        return value.imaginary
    if operator == "abs":
        squares = [draft.op("Mul", part, part) for part in both_of(value)]
        return draft.op("Sqrt", draft.op("Add", *squares))
    return paired(draft, value)


def _is_real(draft: Draft, tensor: gs.Tensor) -> bool:
    dtype = draft.facts.of(tensor).dtype
    return bool(dtype) and dtype not in (
        onnx.TensorProto.COMPLEX64,
        onnx.TensorProto.COMPLEX128,
    )
