"""Products of the complex values along an axis, and of any number of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import bind
from surgeon.builders import parts
from surgeon.builders.aten_math.ordered import scan
from surgeon.builders.aten_math.work import Work
from surgeon.builders.aten_nn import complex_moves as moves
from surgeon.builders.aten_nn.complex_arithmetic import (
    Operands,
    Value,
    alike,
    both_of,
    certain,
    number_like,
    only,
    plus,
    times,
)
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.builders.bench import Bench
from surgeon.builders.contraction import contract, parse
from surgeon.rewrite import Draft, Refused

_MOST_POWERS = 16  # a product is so many nodes


def multiplied(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`prod`, over an axis or over all."""
    args = bind(node, draft.facts)
    value = moves.in_wanted_dtype(draft, node, only(operands))
    named = args.schema.takes("dim")
    if named and parts.rank_of(draft, value.real) == 0:
        return value
    if not named:
        flat = draft.constant(np.array([-1]), "flat")
        value = Complex(*(draft.op("Reshape", part, flat) for part in both_of(value)))
    axis = int(args.value("dim")) % parts.rank_of(draft, value.real) if named else 0
    whole = _multiplied(draft, value, axis)
    if named and args.value("keepdim"):
        return whole
    return moves.each(whole, lambda x: parts.squeeze(draft, x, axis))


def _multiplied(draft: Draft, value: Complex, axis: int) -> Complex:
    """One half of an axis times the other, until there is one value; it stays as an axis of 1."""
    c = Bench(draft)
    length = c.size(value.real, axis)
    if not isinstance(length, int) or length < 1:
        raise Refused("how many complex values it multiplies is not known")
    while length > 1:
        half = length // 2
        first, second, rest = (
            moves.each(value, partial(c.slice, axis=axis, start=start, end=end))
            for start, end in ((0, half), (half, 2 * half), (2 * half, length))
        )
        value = times(draft, first, second)
        if length % 2:
            pairs = zip(both_of(value), both_of(rest), strict=True)
            value = Complex(*(draft.op("Concat", *pair, axis=axis) for pair in pairs))
        length = half + length % 2
    return value


def cumulated(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`cumprod`, in as many steps as its axis has doublings."""
    value = moves.in_wanted_dtype(draft, node, only(operands))
    rank = parts.rank_of(draft, value.real)
    if rank == 0:
        return value
    axis = int(bind(node, draft.facts).value("dim")) % rank

    def together(a: Sequence[gs.Tensor], b: Sequence[gs.Tensor]) -> Sequence[gs.Tensor]:
        return both_of(times(draft, Complex(*a), Complex(*b)))

    return Complex(*scan(Work(draft, node), both_of(value), axis, together))


def chained(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`linalg_multi_dot` and `chain_matmul`, from the first to the last."""
    found, *rest = operands
    for other in rest:
        if isinstance(found, Complex) or isinstance(other, Complex):
            found = moves.linear_in_both(draft, found, other, partial(draft.op, "MatMul"))
        else:
            found = draft.op("MatMul", found, other)
    return certain(found)


def powers(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`vander` and `linalg_vander`: few powers of each element, by products."""
    args, value = bind(node, draft.facts), only(operands)
    if parts.rank_of(draft, value.real) == 0:
        value = moves.each(value, lambda x: parts.unsqueeze(draft, x, 0))
    shape = draft.facts.of(value.real).shape
    count = args.value("N") if args.has("N") else shape[-1] if shape else None
    if not isinstance(count, int) or not 1 <= count <= _MOST_POWERS:
        raise Refused("how many powers of complex values it has is not known, or they are many")
    rank = parts.rank_of(draft, value.real)
    column = moves.each(value, lambda x: parts.unsqueeze(draft, x, rank))
    one, none = (number_like(draft, value, n) for n in (1, 0))
    found = [alike(draft, Complex(draft.op("Add", draft.op("Mul", column.real, none), one), none))]
    while len(found) < count:
        found.append(times(draft, found[-1], column))
    rising = node.op == "linalg_vander" or bool(args.value("increasing"))
    pairs = zip(*(both_of(one) for one in (found if rising else found[::-1])), strict=True)
    return Complex(*(draft.op("Concat", *some, axis=rank) for some in pairs))


# --------------------------------------------------------------------------------- side by side


def contracted(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`einsum` and `Einsum` of any number of values, two at a time."""
    standard = node.op == "Einsum"
    if len(operands) == 2:
        return (moves.of_matrices if standard else moves.bilinear)(draft, node, operands)
    equation = node.attrs["equation"] if standard else bind(node, draft.facts).value("equation")
    text = equation.decode(errors="replace") if isinstance(equation, bytes) else str(equation)
    terms, wanted = parse(text, [parts.rank_of(draft, _real(value)) for value in operands])
    work: list[tuple[Value, list[str]]] = list(zip(operands, terms, strict=True))
    while len(work) > 1:
        first, mine = work.pop(0)
        place = next((i for i, (_, its) in enumerate(work) if set(its) & set(mine)), 0)
        second, its = work.pop(place)
        later = {label for _, term in work for label in term} | set(wanted)
        left = [one for one in dict.fromkeys([*mine, *its]) if one in later] if work else wanted
        work.insert(0, (_pair(draft, (first, second), (mine, its), left), left))
    value, labels = work[0]
    if len(operands) > 1:
        return only([value])
    bench, both = Bench(draft), both_of(only([value]))
    return Complex(*(contract(bench, [part], [labels], wanted) for part in both))


def of_two_and_weight(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`bilinear` (input1, input2, weight, bias), of which any may be real."""
    first, second, weight, *bias = operands
    lots = [f"lot{i}" for i in range(parts.rank_of(draft, _real(first)) - 1)]
    half = _pair(draft, (first, weight), ([*lots, "i"], ["o", "i", "j"]), [*lots, "o", "j"])
    found = _pair(draft, (half, second), ([*lots, "o", "j"], [*lots, "j"]), [*lots, "o"])
    return plus(draft, found, bias[0]) if bias else certain(found)


def _pair(
    draft: Draft,
    values: tuple[Value, Value],
    labels: tuple[list[str], list[str]],
    wanted: list[str],
) -> Value:
    """Two of the values contracted, of which none, one or both may be complex."""

    def by(p: gs.Tensor, q: gs.Tensor) -> gs.Tensor:
        return contract(Bench(draft), [p, q], labels, wanted)

    a, b = values
    if isinstance(a, Complex) or isinstance(b, Complex):
        return moves.linear_in_both(draft, a, b, by)
    if parts.numpy_dtype(draft, a) != parts.numpy_dtype(draft, b):
        raise Refused("its real operands differ in dtype")
    return by(a, b)


def _real(value: Value) -> gs.Tensor:
    return value.real if isinstance(value, Complex) else value
