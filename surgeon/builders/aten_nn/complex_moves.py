"""What moves complex values or is linear in them: the same on either part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.builders.aten_nn import fold
from surgeon.builders.aten_nn.complex_arithmetic import (
    Operands,
    Value,
    alike,
    as_complex,
    as_factor,
    both_of,
    certain,
    four_products,
    in_one_precision,
    only,
    over,
    plus,
    refuse_mixed,
    scaled,
    times,
    turned,
)
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.builders.aten_shape.lists import LISTS, MOST_SLOPES, element, every_part
from surgeon.builders.aten_shape.slices import from_front
from surgeon.builders.aten_shape.slopes import gradient
from surgeon.builders.scalar_types import COMPLEX_TYPES, PARTS, number_of
from surgeon.rewrite import Draft, Refused

if TYPE_CHECKING:
    from surgeon.builders.aten_shape.call import Call

UNPACKING = ("ListUnpack", "TupleUnpack")
PLACES = ("__getitem__", "SequenceAt")
SLOPES = ("gradient",)  # which make a list of one, of weighted sums of neighbours
BROADCASTS = ("broadcast_tensors",)  # which make a list of one
# What writes values into others at places, and what it calls them.
WRITES = (
    *("index_put", "_index_put_impl", "index_copy", "index_add", "index_fill", "put"),
    *("scatter", "scatter_add", "masked_scatter", "select_scatter", "slice_scatter"),
    *("diagonal_scatter", "fill"),
)
WRITTEN = ("value", "values", "src", "source")


def same(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """The value as it is."""
    return only(operands)


def each(value: Complex, by: Callable[[gs.Tensor], gs.Tensor]) -> Complex:
    """The same done to either part."""
    return Complex(*(by(part) for part in both_of(value)))


def windowed(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`im2col` and `col2im`, on either part."""
    by = {"im2col": fold.columns_of, "col2im": fold.plane_of}[node.op]
    args = bind(node, draft.facts)
    return each(only(operands), lambda x: by(draft, args, x))


def by_lowering(draft: Draft, node: gs.Node, **given: gs.Tensor | list[gs.Tensor] | None) -> Any:
    """What the node makes of other arguments than its own, by its lowering for real values."""
    from surgeon.builders import aten_linalg, aten_math, aten_shape  # whose rooms are asked here
    from surgeon.builders.aten_math.work import Work

    if node.op in aten_math.FUNCTIONS:
        work = Work(draft, node)
        work.args = _args(draft, node, given)
        return aten_math.FUNCTIONS[node.op](work)
    lowerings = aten_shape.LOWERINGS if node.op in aten_shape.LOWERINGS else aten_linalg.LOWERINGS
    made = lowerings[node.op](called(draft, node, given))
    return made[0] if isinstance(made, tuple) else made


def _args(draft: Draft, node: gs.Node, given: Mapping[str, Any]) -> Arguments:
    bound = bind(node, draft.facts)
    return Arguments(bound.schema, {**bound.given, **given}, draft.facts)


def called(draft: Draft, node: gs.Node, given: Mapping[str, Any]) -> Call:
    """The node with other arguments than its own."""
    from surgeon.builders.aten_shape.call import Call

    call = Call(draft, node)
    call.args = _args(draft, node, given)
    return call


def split(draft: Draft, node: gs.Node, operands: Operands) -> list[Complex]:
    """`split`, `unbind` and kin, and `Split`: a value for each output."""
    count, both = len(node.outputs), both_of(only(operands))
    if node.domain == "aten":
        return _pieces(draft, node, both, lambda call: LISTS[node.op](call, count))
    pieces = [draft.op("Split", p, *node.inputs[1:], outputs=count, **node.attrs) for p in both]
    return [Complex(*pair) for pair in zip(*pieces, strict=True)]


def listed(draft: Draft, node: gs.Node, cut: gs.Node, operands: Operands) -> list[Complex]:
    """What a node reads of the list that an operator cuts of a value, or makes of several."""
    if cut.op in BROADCASTS:
        both: tuple[Any, Any] = _parts_of_each(operands)
    else:
        both = both_of(only(operands))
    if cut.op in SLOPES:
        return _slopes(draft, node, cut, both)
    if node.op in UNPACKING:
        return _pieces(draft, cut, both, lambda c: LISTS[cut.op](c, len(node.outputs)))
    if node.op not in PLACES:
        return _pieces(draft, cut, both, every_part)
    at = draft.facts.array(node.inputs[1])
    if at is None and cut.op == "unbind":
        return _pieces(draft, cut, both, lambda c: [_taken(c, node.inputs[1])])
    if at is None:
        raise Refused("which of the complex values of a list it reads is known at run time only")
    return _pieces(draft, cut, both, lambda c: [element(c, int(at.item()))])


def _slopes(
    draft: Draft, node: gs.Node, cut: gs.Node, both: Iterable[gs.Tensor | list[gs.Tensor]]
) -> list[Complex]:
    """The slopes along each axis, or one of them."""
    found = _pieces(draft, cut, both, lambda c: gradient(c, MOST_SLOPES))
    if node.op in UNPACKING:
        if len(found) != len(node.outputs):
            raise Refused(f"its list has {len(found)} elements for {len(node.outputs)} outputs")
        return found
    at = draft.facts.array(node.inputs[1]) if node.op in PLACES else None
    if at is None or not -len(found) <= at.item() < len(found):
        raise Refused("which of the complex slopes of a list it reads is not known")
    return [found[int(at.item())]]


def _taken(call: Call, place: gs.Tensor) -> gs.Tensor:
    """One of the lines of an axis, at a place that the graph computes."""
    x = call.tensor()
    axis = call.axis(call.integer("dim"), call.rank(x))
    index = from_front(call, call.cast(place, onnx.TensorProto.INT64), call.size(x, axis))
    made: gs.Tensor = call.op("Gather", x, index, axis=axis)
    return made


def _parts_of_each(operands: Operands) -> tuple[list[gs.Tensor], list[gs.Tensor]]:
    """The real parts of some values, and their imaginary parts; each stays of its own dtype."""
    values = [value for value in operands if isinstance(value, Complex)]
    if len(values) < len(operands):
        raise Refused("some values of a list are complex and others real")
    real, imaginary = zip(*map(both_of, values), strict=True)
    return list(real), list(imaginary)


def _pieces(
    draft: Draft,
    cut: gs.Node,
    both: Iterable[gs.Tensor | list[gs.Tensor]],
    by: Callable[[Call], list[gs.Tensor]],
) -> list[Complex]:
    """The pieces of either part, by which the lowering for real values makes them."""
    name = bind(cut, draft.facts).schema.parameters[0].name
    pieces = [by(called(draft, cut, {name: part})) for part in both]
    return [Complex(*pair) for pair in zip(*pieces, strict=True)]


def moved(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """What moves data or adds some up, on either part."""
    args = bind(node, draft.facts)
    first = args.schema.parameters[0].name
    value = in_wanted_dtype(draft, node, only(operands))
    rest = {"dtype": None} if args.schema.takes("dtype") else {}
    return each(value, lambda x: by_lowering(draft, node, **{first: x}, **rest))


def in_wanted_dtype(draft: Draft, node: gs.Node, value: Complex) -> Complex:
    """The value in the complex dtype that a node asks for, or in its own.

    Raises:
        Refused: It asks for a real one.
    """
    args = bind(node, draft.facts)
    told = args.value("dtype") if args.schema.takes("dtype") else None
    if told is None:
        return value
    kind = PARTS.get(COMPLEX_TYPES.get(int(told), 0), 0)
    if not kind:
        raise Refused("it is asked for in a dtype that is not complex")
    return each(value, lambda x: parts.cast(draft, x, kind))


def adjoint(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """The matrices turned, and conjugated."""
    return turned(draft, moved(draft, node, operands))


def in_standard(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """A standard operator of ONNX, on either part."""
    value = only(operands)
    made = (draft.op(node.op, p, *node.inputs[1:], **node.attrs) for p in both_of(value))
    return Complex(*made)


def differences(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`diff`, with what stands before it or behind it."""
    given = bind(node, draft.facts).given
    names = [name for name in ("self", "prepend", "append") if given.get(name) is not None]
    both = [dict(zip(names, some, strict=True)) for some in _pairs(draft, operands)]
    return Complex(*(by_lowering(draft, node, **some) for some in both))


def end_to_end(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`Concat`, of the real parts and of the imaginary ones."""
    pairs = _pairs(draft, operands)
    return Complex(*(draft.op("Concat", *some, **node.attrs) for some in pairs))


def joined(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`cat`, `stack` and kin, of the real parts and of the imaginary ones."""
    name = bind(node, draft.facts).schema.parameters[0].name
    pairs = _pairs(draft, operands)
    return Complex(*(by_lowering(draft, node, **{name: list(some)}) for some in pairs))


def _pairs(draft: Draft, operands: Operands) -> Iterator[tuple[gs.Tensor, ...]]:
    """The real parts of some values, and their imaginary parts, each of its value's shape."""
    like = next(value for value in operands if isinstance(value, Complex))
    found = [alike(draft, as_complex(draft, value, like)) for value in operands]
    return zip(*(both_of(value) for value in found), strict=True)


def chosen(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`where` and `masked_fill`: the same choice on either part."""
    both = in_one_precision(draft, *operands)
    like = next(value for value in both if isinstance(value, Complex))
    first, second = (as_complex(draft, value, like) for value in both)
    if node.op == "masked_fill":
        mask = bind(node, draft.facts).tensor("mask")
        first, second = second, first
    else:
        mask = node.inputs[0]
    mask = parts.cast(draft, mask, onnx.TensorProto.BOOL)
    pairs = zip(both_of(first), both_of(second), strict=True)
    return alike(draft, Complex(*(draft.op("Where", mask, p, q) for p, q in pairs)))


def written(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """A value with others written into it or added at places: on either part."""
    args = bind(node, draft.facts)
    if args.schema.takes("reduce"):
        raise Refused("what it writes is multiplied by what is there, or compared with it")
    like, new = in_one_precision(draft, *operands)
    like = certain(like)
    new = as_complex(draft, new, like)
    if args.schema.takes("alpha"):
        new = certain(scaled(draft, new, args.value("alpha")))
    name = next(name for name in WRITTEN if args.has(name))
    rest = {"alpha": draft.constant(np.array(1), "alpha")} if args.has("alpha") else {}
    pairs = zip(both_of(like), both_of(new), strict=True)
    return Complex(
        *(by_lowering(draft, node, **{"self": p, name: q, **rest}) for p, q in pairs),
    )


def filled(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """What is like a complex value and filled with a real number: `zeros_like`, `new_full`."""
    args, like = bind(node, draft.facts), only(operands)
    dtype = draft.facts.of(like.real).dtype
    told = args.value("dtype")
    if told is not None and PARTS.get(COMPLEX_TYPES.get(told, 0)) != dtype:
        raise Refused("it is asked for in a dtype of its own")
    number = draft.constant(np.array(number_of(dtype)), "dtype")
    real = by_lowering(draft, node, self=like.real, dtype=number)
    return Complex(real, none_beside(draft, real, int(dtype or 0)))


def none_beside(draft: Draft, real: gs.Tensor, dtype: int) -> gs.Tensor:
    """Imaginary parts of 0 beside real ones."""
    zero = np.zeros(1, onnx.helper.tensor_dtype_to_np_dtype(dtype))
    made: gs.Tensor = draft.op("ConstantOfShape", draft.op("Shape", real), value=zero)
    return made


def bilinear(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """What is linear in each of two operands, by its lowering for real ones."""
    args = bind(node, draft.facts)
    names = [p.name for p in args.schema.parameters]
    listed = isinstance(args.given.get("tensors"), list)
    if len(operands) != 2:
        raise Refused(f"`{node.op}` of {len(operands)} complex values has no form here")

    def by(p: gs.Tensor, q: gs.Tensor) -> gs.Tensor:
        given: dict[str, Any] = {"tensors": [p, q]} if listed else {names[0]: p, names[1]: q}
        made: gs.Tensor = by_lowering(draft, node, **given)
        return made

    a, b = operands
    if node.op in ("vdot", "linalg_vecdot"):
        a = turned(draft, a) if isinstance(a, Complex) else a
    return linear_in_both(draft, a, b, by)


def linear(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`linear` (input, weight, bias), the bias added behind."""
    x, weight, *bias = operands

    def by(p: gs.Tensor, q: gs.Tensor) -> gs.Tensor:
        rank = parts.rank_of(draft, q)
        q = draft.op("Transpose", q, perm=[1, 0]) if rank == 2 else q
        return draft.op("MatMul", p, q)

    found = linear_in_both(draft, x, weight, by)
    return plus(draft, found, bias[0]) if bias else found


def added_product(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`addmm` and kin: beta times the first, alpha times the product of the others."""
    args, (first, a, b) = bind(node, draft.facts), operands

    def outer(p: gs.Tensor, q: gs.Tensor) -> gs.Tensor:
        made: gs.Tensor = draft.op(
            "Mul", parts.unsqueeze(draft, p, 1), parts.unsqueeze(draft, q, 0)
        )
        return made

    by = outer if node.op == "addr" else partial(draft.op, "MatMul")
    made = linear_in_both(draft, a, b, by)
    if node.op == "addbmm":
        batches = draft.constant(np.array([0]), "axes")
        made = each(made, lambda x: draft.op("ReduceSum", x, batches, keepdims=0))
    found = scaled(draft, made, args.value("alpha"))
    return plus(draft, found, scaled(draft, first, args.value("beta")))


def added_elements(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`addcmul` and `addcdiv`: value times a product or quotient, added to the first."""
    first, a, b = operands
    made = times(draft, a, b) if node.op == "addcmul" else over(draft, a, b)
    return plus(draft, first, scaled(draft, made, bind(node, draft.facts).value("value")))


def between(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`lerp`: the first, and so much of the way to the second."""
    first, second, weight = operands
    return plus(draft, first, times(draft, plus(draft, second, first, "Sub"), weight))


def linear_in_both(
    draft: Draft, a: Value, b: Value, by: Callable[[gs.Tensor, gs.Tensor], gs.Tensor]
) -> Complex:
    """A product `by` of real values, of two of which one may be real."""
    if isinstance(a, Complex) and isinstance(b, Complex):
        refuse_mixed(draft, a, b)
        return four_products(draft, a, b, by)
    if isinstance(a, Complex):
        factor = as_factor(draft, b, a.real) if isinstance(b, gs.Tensor) else b
        return Complex(*(by(part, factor) for part in both_of(a)))
    b = certain(b)
    factor = as_factor(draft, a, b.real)
    return Complex(*(by(factor, part) for part in both_of(b)))


def of_matrices(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """A product of matrices, or `Einsum` of two."""
    if len(node.inputs) != 2:
        raise Refused(f"`{node.op}` of {len(node.inputs)} complex values has no form here")
    is_sum = node.op == "Einsum"
    attributes = node.attrs if is_sum else {}
    by = partial(draft.op, "Einsum" if is_sum else "MatMul", **attributes)
    a, b = operands
    return linear_in_both(draft, a, b, by)
