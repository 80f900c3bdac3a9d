"""Contractions, as einsum has them, in Transpose, Reshape, ReduceSum, Mul and MatMul.

An axis has a label. Two operands at a time: a label that only one of them has and nobody needs
later is summed at once, what both have and somebody needs is a batch of the MatMul, what both have
and nobody needs is what it sums over, and the rest are rows and columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product as combinations

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import NARROW, TYPE, Bench, Size, dim_of, same_length
from surgeon.rewrite import Refused

DOTS = "."  # begins the label of an axis under an ellipsis, numbered from behind


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor and the label of each of its axes."""

    tensor: gs.Tensor
    labels: tuple[str, ...]


# ------------------------------------------------------------------ equations


def parse(equation: str, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand's axes, and of the result's.

    Without an arrow the result has the axes of the ellipsis, and then in alphabetical order every
    letter that stands once.

    Raises:
        Refused: The equation does not fit the operands.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise Refused(f"`{equation}` has {len(terms)} operands, {len(ranks)} are given")
    labels = [_labels(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    flat = [label for term in labels for label in term]
    dotted = sorted({one for one in flat if one[0] == DOTS}, key=lambda one: -int(one[1:]))
    if not arrow:
        return labels, [*dotted, *sorted(o for o in flat if o[0] != DOTS and flat.count(o) == 1)]
    before, dots, after = right.partition("...")
    return labels, [*before, *(dotted if dots else ()), *after]


def _labels(term: str, rank: int) -> list[str]:
    before, dots, after = term.partition("...")
    count = rank - len(before) - len(after)
    if count < 0 or (count and not dots):
        raise Refused(f"`{term}` does not fit an operand of rank {rank}")
    letters = [*before, *after]
    if not all(letter.isascii() and letter.isalpha() for letter in letters):
        raise Refused(f"`{term}` holds more than letters and one ellipsis")
    return [*before, *(f"{DOTS}{i}" for i in reversed(range(count))), *after]


# ------------------------------------------------------------------ contraction


def contract(
    c: Bench,
    tensors: Sequence[gs.Tensor],
    labels: Sequence[Sequence[str]],
    wanted: Sequence[str],
    *,
    repeats: bool = True,
) -> gs.Tensor:
    """The contraction of the operands.

    Args:
        c: Where the nodes are made.
        tensors: The operands, of one dtype.
        labels: The label of each of their axes.
        wanted: Those of the result, each once.
        repeats: Whether a size of 1 stands for any size under the same label.
    """
    if len(set(wanted)) != len(wanted):
        raise Refused("an output label stands twice")
    work = [_without_repeats(c, t, list(has)) for t, has in zip(tensors, labels, strict=True)]
    missing = [one for one in wanted if not any(one in o.labels for o in work)]
    if missing:
        raise Refused(f"the output label {missing[0]} is no operand's")
    while len(work) > 1:
        first = work.pop(0)
        partner = next((o for o in work if set(o.labels) & set(first.labels)), work[0])
        work = [o for o in work if o is not partner]
        later = {one for o in work for one in o.labels} | set(wanted)
        work.insert(0, _pair(c, first, partner, later, wanted, repeats))
    result = _summed(c, work[0], set(wanted))
    return c.permute(result.tensor, [result.labels.index(one) for one in wanted])


def product(c: Bench, a: gs.Tensor, b: gs.Tensor, by: str = "MatMul") -> gs.Tensor:
    """The matrix product, or that of the elements; narrow integers through int32, which wraps."""
    dtype = c.facts.of(a).dtype
    if dtype in NARROW:
        if dtype == TYPE.BOOL and by == "MatMul":
            raise Refused("PyTorch has no product of booleans")
        return c.cast(c.op(by, c.cast(a, TYPE.INT32), c.cast(b, TYPE.INT32)), dtype)
    return c.op(by, a, b)


def _sides(c: Bench, offset: Size | int) -> tuple[Size | int, Size | int]:
    """How many rows below and columns to the right of the main diagonal another one begins."""
    if isinstance(offset, int):
        return max(-offset, 0), max(offset, 0)
    below, right = (
        c.op("Max", c.vector([amount]), c.ints([0], "zero"))
        for amount in (c.sub(0, offset), offset)
    )
    return Size(None, lambda: below), Size(None, lambda: right)


def diagonal(c: Bench, x: gs.Tensor, offset: Size | int, first: int, second: int) -> gs.Tensor:
    """The diagonal of two axes, as a last axis."""
    rank = c.rank(x)
    if first == second:
        raise Refused(f"dim1 and dim2 are both {first}")
    x = c.permute(x, [i for i in range(rank) if i not in (first, second)] + [first, second])
    *batch, rows, columns = c.sizes(x)
    down, right = _sides(c, offset)
    row_room, column_room = c.sub(rows, down), c.sub(columns, right)
    if isinstance(row_room, int) and isinstance(column_room, int):
        length: Size | int = max(min(row_room, column_room), 0)
    else:
        least = c.op("Min", c.vector([row_room]), c.vector([column_room]))
        some = c.op("Max", least, c.ints([0], "zero"))
        length = Size(None, lambda: some)
    steps = c.op("Mul", c.count(length), c.vector([c.add(columns, 1)], "stride"))
    begin = c.add(c.mul(columns, down), right)
    index = c.op("Add", steps, c.vector([begin], "begin"))
    flat = c.reshape(x, [*batch, c.mul(rows, columns)])
    return c.op("Gather", flat, index, axis=rank - 2)


def _without_repeats(c: Bench, x: gs.Tensor, has: list[str]) -> Operand:
    """A label that one operand has twice is its diagonal."""
    while (twice := next((one for one in has if has.count(one) > 1), None)) is not None:
        first = has.index(twice)
        second = has.index(twice, first + 1)
        x = diagonal(c, x, 0, first, second)
        has = [one for i, one in enumerate(has) if i not in (first, second)] + [twice]
    return Operand(x, tuple(has))


def _summed(c: Bench, x: Operand, needed: set[str]) -> Operand:
    """With the labels that nobody needs summed away."""
    gone = [i for i, one in enumerate(x.labels) if one not in needed]
    if not gone:
        return x
    if all(c.size(x.tensor, axis) == 1 for axis in gone):
        total = c.squeeze(x.tensor, gone)
    else:
        total = c.op("ReduceSum", x.tensor, c.ints(gone, "axes"), keepdims=0)
    return Operand(total, tuple(one for one in x.labels if one in needed))


# ------------------------------------------------------------------ two operands


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a pair becomes one MatMul: the operands in its order, and their labels sorted.

    Attributes:
        first: The left operand: batch, rows, inner.
        second: The right one: batch, lone, inner, columns.
        batch: What both have and somebody needs.
        lone: Batches that the right operand has alone, for which the left one is the same.
    """

    first: Operand
    second: Operand
    batch: tuple[str, ...]
    lone: tuple[str, ...]
    rows: tuple[str, ...]
    inner: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def left(self) -> tuple[str, ...]:
        return (*self.batch, *self.rows, *self.inner)

    @property
    def right(self) -> tuple[str, ...]:
        return (*self.batch, *self.lone, *self.inner, *self.columns)

    @property
    def result(self) -> tuple[str, ...]:
        return (*self.batch, *self.lone, *self.rows, *self.columns)

    def moved(self, wanted: Sequence[str]) -> int:
        """How many Transposes of computed values it takes; the result's if it is the last."""
        last = set(self.result) == set(wanted) and self.result != tuple(wanted)
        return (
            _is_moved(self.first, self.left)
            + _is_moved(self.second, self.right)
            + (2 if last else 0)
        )


def _is_moved(operand: Operand, labels: tuple[str, ...]) -> int:
    """1 for a Transpose of a constant, which folds, and 2 for one of a computed value."""
    if operand.labels == labels:
        return 0
    return 1 if isinstance(operand.tensor, gs.Constant) else 2


def _pair(
    c: Bench, a: Operand, b: Operand, later: set[str], wanted: Sequence[str], repeats: bool
) -> Operand:
    a = _summed(c, a, later | set(b.labels))
    b = _summed(c, b, later | set(a.labels))
    if repeats:
        a, b = _of_one_depth(c, a, b, later)
    shared = [one for one in a.labels if one in b.labels]
    if all(one in later for one in shared):
        return _elementwise(c, a, b)
    if _is_by_vector(c, a, b):
        return _summed(c, _elementwise(c, a, b), later)
    plan = min(_plans(a, b, later), key=lambda one: one.moved(wanted))
    return _multiplied(c, plan)


def _is_by_vector(c: Bench, a: Operand, b: Operand) -> bool:
    """Whether one has no axis of its own, and the other several of run-time length.

    A MatMul would take a Reshape to computed lengths; a Mul and a ReduceSum cost no more.
    """
    for one, other in ((a, b), (b, a)):
        if set(one.labels) <= set(other.labels):
            own = [i for i, label in enumerate(other.labels) if label not in one.labels]
            return sum(not isinstance(c.size(other.tensor, i), int) for i in own) > 1
    return False


def _plans(a: Operand, b: Operand, later: set[str]) -> Iterator[_Plan]:
    shared = set(a.labels) & set(b.labels)
    orders = combinations(((a, b), (b, a)), (a, b), (a, b), (False, True))
    for (one, other), by_batch, by_inner, alone in orders:
        batch = tuple(x for x in by_batch.labels if x in shared and x in later)
        inner = tuple(x for x in by_inner.labels if x in shared and x not in later)
        rows = tuple(x for x in one.labels if x not in shared)
        columns = tuple(x for x in other.labels if x not in shared)
        first = min(other.labels.index(x) for x in inner)
        lone = tuple(x for x in columns if other.labels.index(x) < first) if alone else ()
        if not alone or (lone and not batch):
            columns = tuple(x for x in columns if x not in lone)
            yield _Plan(one, other, batch, lone, rows, inner, columns)


def _elementwise(c: Bench, a: Operand, b: Operand) -> Operand:
    """Nothing is summed over: a Mul that broadcasts."""
    batch = [one for one in a.labels if one in b.labels]
    rows = [one for one in a.labels if one not in batch]
    columns = [one for one in b.labels if one not in batch]
    x = c.permute(a.tensor, [a.labels.index(one) for one in [*batch, *rows]])
    y = c.permute(b.tensor, [b.labels.index(one) for one in [*batch, *columns]])
    x = c.unsqueeze(x, range(len(a.labels), len(a.labels) + len(columns)))
    y = c.unsqueeze(y, range(len(batch), len(batch) + len(rows)))
    return Operand(product(c, x, y, "Mul"), (*batch, *rows, *columns))


def _multiplied(c: Bench, plan: _Plan) -> Operand:
    """One MatMul; its batches broadcast, so a batch of 1 needs nothing."""
    lots, alone, high = len(plan.batch), len(plan.batch) + len(plan.lone), len(plan.rows)
    a, b = _ordered(c, plan.first, plan.left), _ordered(c, plan.second, plan.right)
    one_each = len(plan.inner) == len(plan.columns) == 1
    if one_each and (high == 1 or (high and not alone)):
        return Operand(product(c, a, b), plan.result)
    if len(plan.inner) == 1 and high < 2 and len(plan.columns) < 2:
        return _by_vectors(c, plan, a, b)
    sizes, its = c.sizes(a), c.sizes(b)
    rows, depth = sizes[lots : lots + high], c.product(sizes[lots + high :])
    columns = its[alone + len(plan.inner) :]
    a = c.reshape(a, [*sizes[:lots], c.product(rows), depth])
    b = c.reshape(b, [*its[:alone], depth, c.product(columns)])
    y = product(c, a, b)
    return Operand(c.reshape(y, [*c.sizes(y)[:alone], *rows, *columns]), plan.result)


def _by_vectors(c: Bench, plan: _Plan, a: gs.Tensor, b: gs.Tensor) -> Operand:
    """Where rows or columns are none, an axis of 1 stands for them; no length is inferred."""
    rows = len(plan.batch)
    a = a if plan.rows else c.unsqueeze(a, [rows])
    b = b if plan.columns else c.unsqueeze(b, [c.rank(b)])
    y = product(c, a, b)
    last = c.rank(y) - 1
    gone = [axis for axis, some in ((last - 1, plan.rows), (last, plan.columns)) if not some]
    return Operand(c.squeeze(y, gone), plan.result)


def _ordered(c: Bench, x: Operand, labels: Sequence[str]) -> gs.Tensor:
    return c.permute(x.tensor, [x.labels.index(one) for one in labels])


def _of_one_depth(c: Bench, a: Operand, b: Operand, later: set[str]) -> tuple[Operand, Operand]:
    """What is summed over is made as long in both: 1 stands for any size, which MatMul lacks."""
    for label in [one for one in a.labels if one in b.labels and one not in later]:
        mine, its = c.size(a.tensor, a.labels.index(label)), c.size(b.tensor, b.labels.index(label))
        if mine == 1 or its == 1:  # the factor of 1 comes out of the sum
            if mine == 1:
                a = _dropped(c, a, label)
            if its == 1:
                b = _dropped(c, b, label)
            a, b = (_summed(c, x, set(x.labels) - {label}) for x in (a, b))
        elif not same_length(mine, its):
            if _may_be_one(mine):
                a = _repeated(c, a, label, its)
            if _may_be_one(its):
                b = _repeated(c, b, label, mine)
    return a, b


def _dropped(c: Bench, x: Operand, label: str) -> Operand:
    axis = x.labels.index(label)
    return Operand(c.squeeze(x.tensor, [axis]), tuple(one for one in x.labels if one != label))


def _repeated(c: Bench, x: Operand, label: str, length: Size | int) -> Operand:
    """Repeated along the label to this length where it is 1 there."""
    target: list[Size | int] = [length if one == label else 1 for one in x.labels]
    return Operand(c.op("Expand", x.tensor, c.vector(target, "sizes")), x.labels)


def _may_be_one(size: Size | int) -> bool:
    dim = dim_of(size)
    return dim is None or dims.equal(dim, 1) is not False
