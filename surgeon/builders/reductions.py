"""Reductions beside views: of what they reduce, and of what they reduce to."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.views import as_shape
from surgeon.dims import Dim
from surgeon.facts.fact import same_dims
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused


def reduced_axes(draft: Draft, match: Match) -> gs.Tensor:
    """Axes of length 1 that a reduction keeps and a view drops, or the other way round."""
    return reduced_as(draft, match.nodes[1], draft.facts.of(match.root.outputs[0]).shape)


def reduced_as(draft: Draft, work: gs.Node, out: Sequence[Dim] | None) -> gs.Tensor:
    """What a node reduces, in the dims that it has where its axes are kept, or where they are not.

    Raises:
        Refused: The dims are others.
    """
    shape = draft.facts.of(work.inputs[0]).shape
    if shape is None or out is None:
        raise Refused("a shape is not known")
    axes = _axes(draft, work, len(shape))
    dropped = [size for axis, size in enumerate(shape) if axis not in axes]
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    keeps = same_dims(tuple(out), tuple(kept))
    if not keeps and not same_dims(tuple(out), tuple(dropped)):
        raise Refused("the view does more than drop or put in the reduced axes")
    attributes = dict(work.attrs)
    attributes["keepdims"] = int(keeps)
    operands = [work.inputs[0]]
    if work.op not in ("ArgMax", "ArgMin"):
        operands.append(draft.constant(sorted(axes), "axes"))
        attributes.pop("noop_with_empty_axes", None)
    y: gs.Tensor = draft.op(work.op, *operands, **attributes)
    return y


def reduced_before_view(draft: Draft, match: Match) -> gs.Tensor:
    """Axes that a view joins or parts, and that are reduced then: those of the value viewed."""
    work, view = match.root, match.nodes[1]
    x = view.inputs[0]
    shape, inside = draft.facts.of(x).shape, draft.facts.of(view.outputs[0]).shape
    if shape is None or inside is None:
        raise Refused("a shape is not known")
    axes = _axes(draft, work, len(inside))
    gone: set[int] = set()
    for own, seen in _alike(shape, inside):
        if axes.issuperset(seen):
            gone.update(own)
        elif not axes.isdisjoint(seen):
            raise Refused("axes that belong together are reduced only in part")
    if not gone:
        raise Refused("nothing but axes of length 1 is reduced")
    keeps = bool(attribute_of(work, "keepdims"))
    # Axes of length 1 are in no group: they may stay or go.
    for more in (gone, gone | {axis for axis, size in enumerate(shape) if size == 1}):
        left = [1 if i in more else n for i, n in enumerate(shape) if keeps or i not in more]
        if same_dims(draft.facts.of(work.outputs[0]).shape, tuple(left)):
            reduced = draft.constant(sorted(more), "axes")
            y: gs.Tensor = draft.op(work.op, x, reduced, keepdims=int(keeps))
            return y
    raise Refused("the view changes what stays")


def _alike(shape: Sequence[Dim], inside: Sequence[Dim]) -> list[tuple[list[int], list[int]]]:
    """Axes in front of a view and in it that hold the same, in the smallest groups; no 1 in any.

    Raises:
        Refused: Sizes are not known to come together.
    """
    own, seen = ([i for i, size in enumerate(sizes) if size != 1] for sizes in (shape, inside))
    groups: list[tuple[list[int], list[int]]] = []
    while own or seen:
        ends = itertools.product(range(1, len(own) + 1), range(1, len(seen) + 1))
        for i, j in sorted(ends, key=sum):
            sizes = (shape[axis] for axis in own[:i]), (inside[axis] for axis in seen[:j])
            if dims.equal(*map(dims.product, sizes)):
                groups.append((own[:i], seen[:j]))
                own, seen = own[i:], seen[j:]
                break
        else:
            raise Refused("which axes belong together is known at run time only")
    return groups


def pooled_before_view(draft: Draft, match: Match) -> gs.Tensor:
    """A pool over all places between two views: over the places as they stood before the first."""
    root, pool, view = match.nodes[:3]
    x = view.inputs[0]
    shape, inside = draft.facts.of(x).shape, draft.facts.of(pool.inputs[0]).shape
    out = draft.facts.of(root.outputs[0]).shape
    if shape is None or inside is None or out is None:
        raise Refused("a shape is not known")
    # Runtimes pool images, and few of them anything else.
    if len(shape) != 4 and len(shape) != len(inside):
        raise Refused("the value in front of the views is no image")
    if not same_dims(shape[:2], inside[:2]):
        raise Refused("the view in front changes the samples or channels")
    pooled: gs.Tensor = draft.op(pool.op, x)
    return as_shape(draft, pooled, out)


def mean_times_count(draft: Draft, match: Match) -> gs.Tensor:
    """A mean times how many elements it is of, in floats: their sum."""
    root, work = match.root, match.nodes[1]
    facts, x = draft.facts, work.inputs[0]
    shape = facts.of(x).shape
    if shape is None:
        raise Refused("its shape is not known")
    axes = _axes(draft, work, len(shape))
    factor = next(t for t in root.inputs if t is not work.outputs[0])
    maker = producer_of(factor)
    if facts.of(x).dtype not in FLOATS:
        raise Refused("the mean of whole numbers lost its fraction")
    whole = maker.inputs[0] if maker is not None and maker.op == "Cast" else factor
    known = facts.of(whole).value
    count = None if known is None or known.size != 1 else known.reshape(-1).tolist()[0]
    total = dims.product(shape[axis] for axis in axes)
    if count is None or isinstance(count, float) or isinstance(total, int):
        raise Refused("it is not multiplied by how many elements it is of, as run time tells")
    if dims.equal(count, total) is not True:
        raise Refused("it is not multiplied by how many elements it is of, as run time tells")
    if (facts.of(factor).rank or 0) > (facts.of(work.outputs[0]).rank or 0):
        raise Refused("the number has more axes than the mean")
    draft.premises.append(factor)
    keeps = bool(attribute_of(work, "keepdims"))
    reduced = draft.constant(sorted(axes), "axes")
    y: gs.Tensor = draft.op("ReduceSum", x, reduced, keepdims=int(keeps))
    return y


def sum_as_mean(draft: Draft, match: Match) -> gs.Tensor:
    """A sum divided by how many elements it is of, a known number: their mean."""
    root, work = match.root, match.nodes[1]
    facts, x, number = draft.facts, work.inputs[0], match.values["n"]
    shape = facts.of(x).shape
    array = None if number is None else facts.array(number)
    if shape is None or array is None or array.size != 1:
        raise Refused("its shape or the number is not known")
    axes = _axes(draft, work, len(shape))
    total = dims.product(shape[axis] for axis in axes)
    if not isinstance(total, int) or not total or total != array.reshape(-1)[0]:
        raise Refused("it is not divided by how many elements it is of")
    if not same_dims(facts.of(work.outputs[0]).shape, facts.of(root.outputs[0]).shape):
        raise Refused("the number makes the result larger")
    reduced = draft.constant(sorted(axes), "axes")
    keeps = int(bool(attribute_of(work, "keepdims")))
    y: gs.Tensor = draft.op("ReduceMean", x, reduced, keepdims=keeps)
    return y


# What reduces what was reduced by another operator, where it is not that operator once more.
_OUTER = {"ReduceL1": "ReduceSum", "ReduceSumSquare": "ReduceSum"}
_INNER = {"ReduceLogSum": "ReduceSum"}
_WITH_FRACTIONS = frozenset({"ReduceL2", "ReduceLogSumExp", "ReduceMean"})  # of whole numbers, too
_ALONG = 2  # axes that a runtime reduces at once


def two_axes_at_a_time(draft: Draft, match: Match) -> gs.Tensor:
    """A reduction along three axes or more as several, each along two at the most."""
    work = match.root
    x: gs.Tensor = work.inputs[0]
    rank = draft.facts.of(x).rank
    if rank is None:
        raise Refused("its rank is not known")
    named = len(work.inputs) > 1 and not work.inputs[1].is_empty()
    axes = sorted(_axes(draft, work, rank)) if named else list(range(rank))
    if len(axes) <= _ALONG:
        raise Refused(f"it is along {len(axes)} of the axes, which is few")
    if work.op in _WITH_FRACTIONS and draft.facts.of(x).dtype not in FLOATS:
        raise Refused("of whole numbers each step would lose its fraction")
    keepdims = int(attribute_of(work, "keepdims"))
    operator = _INNER.get(work.op, work.op)
    while axes:  # from behind, so that the numbers of those in front stay
        now, axes = axes[-_ALONG:], axes[:-_ALONG]
        last = work.op if not axes and work.op in _INNER else operator
        x = draft.op(last, x, draft.constant(now, "axes"), keepdims=keepdims)
        operator = _OUTER.get(operator, operator)
    return x


def _axes(draft: Draft, node: gs.Node, rank: int) -> set[int]:
    """The axes that a node reduces, from 0."""
    if node.op in ("ArgMax", "ArgMin"):
        return {int(attribute_of(node, "axis")) % rank}
    given = len(node.inputs) > 1 and not node.inputs[1].is_empty()
    array = draft.facts.array(node.inputs[1]) if given else None
    if array is None or not array.size:
        raise Refused("its axes are not named")
    return {int(axis) % rank for axis in array.reshape(-1).tolist()}
