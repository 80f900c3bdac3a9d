"""Where complex values begin, each in two real parts, and their arithmetic.

A product of two values is four products of parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import bind
from surgeon.builders import parts
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.rewrite import Draft, Refused

_DOUBLE = onnx.TensorProto.DOUBLE
Value: TypeAlias = Complex | gs.Tensor  # of which a tensor is real
# What a node is of, as far as it was followed: complex values, and real ones beside them.
Operands: TypeAlias = Sequence[Value]


def paired(draft: Draft, value: Complex) -> gs.Tensor:
    """Both parts on a new last axis."""
    rank = parts.rank_of(draft, value.real)
    both = [parts.unsqueeze(draft, part, rank) for part in both_of(value)]
    return draft.op("Concat", *both, axis=rank)


def both_of(value: Complex) -> tuple[gs.Tensor, gs.Tensor]:
    """The parts of a value that has two."""
    assert value.imaginary is not None
    return value.real, value.imaginary


def only(operands: Operands) -> Complex:
    """The complex value of a node that is of one."""
    return certain(*operands)


def certain(value: Value) -> Complex:
    """A value that has to be complex."""
    if not isinstance(value, Complex):
        raise Refused("none of its operands is known to be complex")
    return value


# --------------------------------------------------------------------------------- where they begin


def gives_complex(draft: Draft, node: gs.Node) -> bool:
    """Whether `stft` or `istft` does: the one gave pairs of real ones, before it was asked."""
    args = bind(node, draft.facts)
    return args.schema.takes("return_complex") and bool(args.value("return_complex"))


def viewed(draft: Draft, node: gs.Node) -> Complex:
    """`view_as_complex`, whose last axis is the parts."""
    pairs = node.inputs[0]
    last = parts.rank_of(draft, pairs) - 1
    numbers = (draft.constant(np.array(i), "part") for i in (0, 1))
    return Complex(*(draft.op("Gather", pairs, number, axis=last) for number in numbers))


def joined(draft: Draft, node: gs.Node) -> Complex:
    """`complex (real, imag)`, of one shape by broadcasting each to the other."""
    real, imaginary = node.inputs[:2]
    if parts.numpy_dtype(draft, real) != parts.numpy_dtype(draft, imaginary):
        raise Refused("its parts differ in dtype")
    return alike(draft, Complex(real, imaginary))


def alike(draft: Draft, value: Complex) -> Complex:
    """Both parts in the shape that they have together."""
    shapes = [draft.facts.of(part).shape for part in both_of(value)]
    if None not in shapes and shapes[0] == shapes[1]:
        return value
    real, imaginary = both_of(value)
    return Complex(
        draft.op("Expand", real, draft.op("Shape", imaginary)),
        draft.op("Expand", imaginary, draft.op("Shape", real)),
    )


def polar(draft: Draft, node: gs.Node) -> Complex:
    """`polar (abs, angle)`."""
    args = bind(node, draft.facts)
    if not args.schema.takes("angle"):
        raise Refused("it makes one number of Python's")
    size, angle = args.tensor("abs"), args.tensor("angle")
    if parts.numpy_dtype(draft, size) != parts.numpy_dtype(draft, angle):
        raise Refused("its parts differ in dtype")
    return Complex(*(draft.op("Mul", size, draft.op(f, angle)) for f in ("Cos", "Sin")))


# --------------------------------------------------------------------------------- arithmetic


def conjugate(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """The imaginary part turned round."""
    return turned(draft, only(operands))


def turned(draft: Draft, value: Complex) -> Complex:
    """The conjugate."""
    real, imaginary = both_of(value)
    return Complex(real, draft.op("Neg", imaginary))


def negative(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """Both parts turned round."""
    return Complex(*(draft.op("Neg", p) for p in both_of(only(operands))))


def added(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`add` and `sub`, of a multiple (alpha) of the second, and `rsub`."""
    a, b = in_one_precision(draft, *operands)
    if node.domain == "aten" and bind(node, draft.facts).schema.takes("alpha"):
        if node.op == "rsub":
            a, b = b, a
        multiple = bind(node, draft.facts).value("alpha")
        if multiple != 1 and not isinstance(b, Complex):  # integers are none where it is taken
            b = as_factor(draft, b, certain(a).real)
        b = scaled(draft, b, multiple)
    return plus(draft, a, b, "Add" if node.op in ("add", "Add") else "Sub")


def scaled(draft: Draft, value: Value, multiple: float | complex) -> Value:
    """By a real number of Python's."""
    if isinstance(multiple, complex):
        raise Refused(f"it takes {multiple} times an operand")
    if multiple == 1:
        return value
    if isinstance(value, Complex):
        return Complex(*(_by(draft, part, multiple) for part in both_of(value)))
    return _by(draft, value, multiple)


def _by(draft: Draft, part: gs.Tensor, multiple: float) -> gs.Tensor:
    array = draft.facts.array(part)
    if array is not None and array.size == 1:  # a number of Python's: it has no dtype of its own
        return draft.constant(array * multiple, "multiple")
    number = np.asarray(multiple, parts.numpy_dtype(draft, part))
    return draft.op("Mul", part, draft.constant(number, "multiple"))


def plus(draft: Draft, a: Value, b: Value, operator: str = "Add") -> Complex:
    """A sum, or by `Sub` a difference; a real side adds to the real part."""
    a, b = in_one_precision(draft, a, b)
    if isinstance(a, Complex) and isinstance(b, Complex):
        refuse_mixed(draft, a, b)
        pairs = zip(both_of(a), both_of(b), strict=True)
        return Complex(*(draft.op(operator, p, q) for p, q in pairs))
    if isinstance(a, Complex):
        real, imaginary = both_of(a)
        return spread(draft, draft.op(operator, real, as_factor(draft, b, real)), imaginary)
    real, imaginary = both_of(certain(b))
    below = imaginary if operator == "Add" else draft.op("Neg", imaginary)
    return spread(draft, draft.op(operator, as_factor(draft, a, real), real), below)


def spread(draft: Draft, real: gs.Tensor, imaginary: gs.Tensor) -> Complex:
    """The imaginary part repeated as the real one was."""
    shapes = [draft.facts.of(part).shape for part in (real, imaginary)]
    if None not in shapes and shapes[0] == shapes[1]:
        return Complex(real, imaginary)
    return Complex(real, draft.op("Expand", imaginary, draft.op("Shape", real)))


def product(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """By a complex value or by a real one."""
    return times(draft, *operands)


def times(draft: Draft, a: Value, b: Value) -> Complex:
    """A product, one side of which may be real."""
    a, b = in_one_precision(draft, a, b)
    if not isinstance(a, Complex):
        a, b = b, a
    a = certain(a)
    if not isinstance(b, Complex):
        factor = as_factor(draft, b, a.real)
        return Complex(*(draft.op("Mul", part, factor) for part in both_of(a)))
    refuse_mixed(draft, a, b)
    return four_products(draft, a, b, lambda p, q: draft.op("Mul", p, q))


def four_products(draft: Draft, a: Complex, b: Complex, by: Callable[..., gs.Tensor]) -> Complex:
    """Any product that is linear on either side."""
    (p, q), (r, s) = both_of(a), both_of(b)
    return Complex(
        draft.op("Sub", by(p, r), by(q, s)),
        draft.op("Add", by(p, s), by(q, r)),
    )


def quotient(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """By a real value, or by the conjugate over the squared magnitude."""
    if len(node.inputs) != 2:
        raise Refused("complex values are not divided with rounding")
    return over(draft, *operands)


def over(draft: Draft, a: Value, b: Value) -> Complex:
    """A quotient, one side of which may be real."""
    a, b = in_one_precision(draft, a, b)
    if not isinstance(b, Complex):
        a = certain(a)
        divisor = as_factor(draft, b, a.real)
        return Complex(*(draft.op("Div", part, divisor) for part in both_of(a)))
    largest, even = evened(draft, b)
    found = times(draft, a, turned(draft, even))
    divisors = squared_size(draft, even), largest
    return Complex(
        *(draft.op("Div", draft.op("Div", p, divisors[0]), divisors[1]) for p in both_of(found))
    )


def evened(draft: Draft, value: Complex) -> tuple[gs.Tensor, Complex]:
    """The larger part (1 of nothing), and the value over it, whose square cannot vanish."""
    zero, one = (number_like(draft, value, n) for n in (0, 1))
    largest = draft.op("Max", *(draft.op("Abs", part) for part in both_of(value)))
    largest = draft.op("Where", draft.op("Equal", largest, zero), one, largest)
    return largest, Complex(*(draft.op("Div", part, largest) for part in both_of(value)))


def squared_size(draft: Draft, value: Complex) -> gs.Tensor:
    """The square of the magnitude."""
    return draft.op("Add", *(draft.op("Mul", part, part) for part in both_of(value)))


def size(draft: Draft, value: Complex) -> gs.Tensor:
    """The magnitude."""
    return draft.op("Sqrt", squared_size(draft, value))


def number_like(draft: Draft, value: Complex, number: float) -> gs.Tensor:
    """A real number in the dtype of the parts."""
    return draft.constant(np.asarray(number, parts.numpy_dtype(draft, value.real)), "number")


def as_complex(draft: Draft, value: Value, like: Complex) -> Complex:
    """A value with two parts, of which the imaginary one of a real value is a 0 that spreads."""
    if isinstance(value, Complex):
        refuse_mixed(draft, value, like)
        return value
    return Complex(as_factor(draft, value, like.real), number_like(draft, like, 0))


def both_complex(draft: Draft, a: Value, b: Value) -> tuple[Complex, Complex]:
    """Two values, of which one may be real, with two parts each, both in one shape."""
    like = a if isinstance(a, Complex) else certain(b)
    return alike(draft, as_complex(draft, a, like)), alike(draft, as_complex(draft, b, like))


def as_factor(draft: Draft, value: gs.Tensor, like: gs.Tensor) -> gs.Tensor:
    """A real factor in the dtype of the parts; a number has no dtype of its own."""
    dtype = parts.numpy_dtype(draft, like)
    array = draft.facts.array(value)
    if array is not None and array.size == 1:
        return draft.constant(array.astype(dtype), "factor")
    parts.numpy_dtype(draft, value)  # known, and so not complex by an operator that is not here
    if draft.facts.of(value).dtype == _DOUBLE and dtype != np.float64:
        raise Refused("a complex value in single precision meets a real one in double")
    return parts.cast(draft, value, draft.facts.of(like).dtype)


def in_one_precision(draft: Draft, a: Value, b: Value) -> tuple[Value, Value]:
    """Two operands, of which a complex number without axes takes the precision of the other.

    Beside integers it is in single precision, PyTorch's default.
    """
    if _is_number(draft, b):
        return a, _as_precise(draft, certain(b), a)
    return (_as_precise(draft, certain(a), b), b) if _is_number(draft, a) else (a, b)


def _is_number(draft: Draft, value: Value) -> bool:
    array = draft.facts.array(value.real) if isinstance(value, Complex) else None
    return array is not None and array.ndim == 0


def _as_precise(draft: Draft, number: Complex, other: Value) -> Complex:
    dtype = parts.numpy_dtype(draft, other.real if isinstance(other, Complex) else other)
    if dtype.kind in "biu":
        dtype = np.dtype(np.float32)
    kind = onnx.helper.np_dtype_to_tensor_dtype(dtype)
    return Complex(*(parts.cast(draft, part, kind) for part in both_of(number)))


def refuse_mixed(draft: Draft, a: Complex, b: Complex) -> None:
    """Refuse two precisions, which PyTorch would make one."""
    if parts.numpy_dtype(draft, a.real) != parts.numpy_dtype(draft, b.real):
        raise Refused("its complex operands differ in precision")
