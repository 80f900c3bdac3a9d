"""Two tensors of vectors: how far apart they are, and how alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.reductions import keeps, p_norm, reduce
from surgeon.builders.aten_math.work import BOOL, Work
from surgeon.dims import equal
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Refused


def _axis(work: Work, a: gs.Tensor, b: gs.Tensor, default: int) -> tuple[int, int]:
    """`dim` of what the two broadcast to, counted from the front, and the rank of that.

    Numbers count as vectors of one element.
    """
    dim, rank = int(work.constant_of("dim", default)), max(work.rank(a), work.rank(b))
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise Refused(f"dim {dim} is outside the rank {rank}")
    return dim % max(rank, 1), rank


def distance(work: Work) -> gs.Tensor:
    """`dist`: the norm of the difference."""
    _, (a, b) = work.together(work.args.tensor("self"), work.args.tensor("other"), floating=True)
    p = float(work.constant_of("p", 2))
    return p_norm(work, work.op("Sub", a, b), p, None, keepdim=False)


def pairwise_distance(work: Work) -> gs.Tensor:
    """`pairwise_distance`: the norm of the difference along an axis, eps added to it."""
    return distance_between(
        work, work.args.tensor("x1"), work.args.tensor("x2"), keepdim=keeps(work)
    )


def distance_between(work: Work, x: gs.Tensor, y: gs.Tensor, *, keepdim: bool) -> gs.Tensor:
    """The norm over the last axis, before PyTorch 1.10 over axis 1.

    Integers are subtracted as such, so that they wrap.
    """
    dtype, (a, b) = work.together(x, y)
    if dtype == BOOL:
        raise Refused("PyTorch subtracts no booleans")
    apart = work.floating(work.widely("Sub", a, b))
    apart = work.op("Add", apart, float(work.constant_of("eps", 1e-6)))
    p = float(work.constant_of("p", 2))
    axis = 1 if work.facts.model.is_before(1, 10) else work.rank(apart) - 1
    return p_norm(work, apart, p, [axis], keepdim=keepdim)


def product_along(work: Work) -> gs.Tensor:
    """`linalg_vecdot`: the products of two, added up along a dim."""
    dtype, (a, b) = work.together(work.args.tensor("x"), work.args.tensor("y"))
    if dtype not in FLOATS:
        raise Refused("PyTorch has no such product of integers")
    terms = work.op("Mul", a, b)
    dim, _ = _axis(work, a, b, -1)
    return reduce(work, "ReduceSum", terms, [dim], keepdim=False)


def cosine_similarity(work: Work) -> gs.Tensor:
    """`cosine_similarity`: each norm is at least eps; before PyTorch 1.12 their product is."""
    _, (a, b) = work.together(work.args.tensor("x1"), work.args.tensor("x2"), floating=True)
    dim, rank = _axis(work, a, b, 1)
    axes = [dim - rank + work.rank(x) for x in (a, b)]  # from the end: the ranks may differ
    eps = work.number(float(work.constant_of("eps", 1e-8)), work.dtype(a))
    terms = work.op("Mul", a, b)
    lengths = [work.facts.of(x).shape for x in (a, b)]
    mine, its = (s[i] if s and i >= 0 else None for s, i in zip(lengths, axes, strict=True))
    if work.facts.model.is_before(1, 10):
        # each norm was of what was given, along this axis of its own
        axes = [_axis(work, x, x, 1)[0] for x in (a, b)]
    elif mine is None or its is None or equal(mine, its) is not True:
        # A length of 1 that is stretched counts as often as it is repeated.
        a, b = (work.draft.op("Expand", x, work.draft.op("Shape", terms)) for x in (a, b))
        axes = [dim, dim]
    product = reduce(work, "ReduceSum", terms, [dim], keepdim=False)
    sizes = [
        reduce(work, "ReduceL2", x, [i], keepdim=False) for x, i in zip((a, b), axes, strict=True)
    ]
    if work.facts.model.is_before(1, 12):
        return work.op("Div", product, work.extreme("Max", work.op("Mul", *sizes), eps))
    sizes = [work.extreme("Max", size, eps) for size in sizes]
    return work.op("Div", product, work.op("Mul", *sizes))


FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    "linalg_vecdot": product_along,
    "dist": distance,
    "pairwise_distance": pairwise_distance,
    "cosine_similarity": cosine_similarity,
}
