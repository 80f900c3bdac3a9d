"""Products around a softmax as ONNX's Attention, which `attention` writes out again.

As its text has them, queries, keys and values are `[batch, heads, length, width]`; scores are
multiplied by `scale`, and what is added to them, or hides some of them, is its mask.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench, same_length
from surgeon.builders.scalar_types import finfo
from surgeon.facts.kinds import HALVES
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused

_RANK = 4
_RANKS = (3, 4)
_LEAST_MASK = 2  # axes
_LOW = -1e38
_FAR, _FAR_IN_HALVES = -1e9, -65504.0  # a score in place of one that is hidden, at the most


class _Scores(NamedTuple):
    """What scores are made of: products of queries and turned keys, and by what they are scaled."""

    query: gs.Tensor
    turned: gs.Tensor
    scale: float


def products_as_attention(
    draft: Draft, match: Match, *, hidden: bool = False, guarded: bool = False
) -> gs.Tensor:
    """y = MatMul (Softmax (scores), values), with the products that the scores are made of.

    Args:
        draft: What is written.
        match: The softmax and the product behind it.
        hidden: Whether a mask may hide every key of a query, for which Softmax gives NaN and
            Attention zeros; or selects, and may hide what is no number.
        guarded: Whether zeros stand already where the softmax gives NaN, whatever the mask.
    """
    c = Bench(draft)
    shares, value = match.root.inputs[:2]
    if guarded:  # Where (IsNaN (p), 0, p)
        select = producer_of(shares)
        assert select is not None
        shares = select.inputs[2]
    softmax = producer_of(shares)
    assert softmax is not None
    axis = attribute_of(softmax, "axis")
    if int(-1 if axis is None else axis) not in (-1, c.rank(shares) - 1):
        raise Refused("the softmax is not along the keys")
    scores, mask = _masked(c, softmax.inputs[0])
    rank = c.rank(scores.query)
    if rank not in _RANKS or {c.rank(scores.turned), c.rank(value)} != {rank}:
        raise Refused("queries, keys and values do not all have three axes, or all four")
    if c.rank(shares) != rank:
        raise Refused(
            "what is multiplied with the scores, or added to them, gives them an axis more"
        )
    query, key = scores.query, _turned_back(c, scores.turned, rank)
    if rank < _RANK:  # batches and heads are one axis, which stands for heads
        query, key, value = (c.unsqueeze(t, [0]) for t in (query, key, value))
        if mask is not None and c.rank(mask.values) == rank:
            mask = mask._replace(values=c.unsqueeze(mask.values, [0]))
    for axis in (0, 1):
        sizes = [c.size(t, axis) for t in (query, key, value)]
        if not all(same_length(sizes[0], size) for size in sizes[1:]):
            raise Refused("batches and heads of queries, keys and values may differ")
    may_hide = mask is not None and _may_hide_all(c, mask, c.dtype(query))
    if not guarded and may_hide != hidden:
        raise Refused(
            "no mask hides every key of a query, or a score that is none: another rule is for that"
            if hidden
            else "its mask may hide every key of a query, or scores that are no numbers"
        )
    bias = [] if mask is None else [_bias(c, mask, query, key)]
    made: gs.Tensor = c.op("Attention", query, key, value, *bias, scale=scores.scale)
    return made if rank == _RANK else c.squeeze(made, [0])


class _Mask(NamedTuple):
    """What is added to scores; or where they are hidden or seen, and what stands for them there."""

    values: gs.Tensor
    hidden: float | None = None
    where: bool = True


def _masked(c: Bench, t: gs.Tensor) -> tuple[_Scores, _Mask | None]:
    """The scores in front of a softmax, and their mask.

    Raises:
        Refused: There are none.
    """
    if (found := _scores(c, t)) is not None:
        return found, None
    node = producer_of(t)
    if node is not None and node.op == "Add" and _is_alone(c, t):
        for one, other in (node.inputs, node.inputs[::-1]):
            if (found := _scores(c, one)) is not None:
                return found, _Mask(other)
    if node is not None and node.op == "Where" and _is_alone(c, t):
        far = _FAR_IN_HALVES if c.dtype(t) in HALVES else _FAR
        for where, (one, other) in ((False, node.inputs[1:]), (True, node.inputs[:0:-1])):
            lowest = _number(c, other)
            if lowest is not None and lowest <= far and (found := _scores(c, one)) is not None:
                return found, _Mask(node.inputs[0], lowest, where)
    raise Refused("what the softmax is of is no product of queries and keys")


def _may_hide_all(c: Bench, mask: _Mask, dtype: int) -> bool:
    """Whether minus infinity, or what kernels take for it, may stand for every key of a query.

    What selects scores hides infinite ones too, of which a sum with minus infinity is none.
    """
    c.draft.premises.append(mask.values)  # as it is made: what is drawn hides anything
    if mask.hidden is not None:
        return True
    if (chosen := _chosen(c, mask.values)) is not None and dtype not in HALVES:
        return -math.inf in chosen.numbers  # the lowest is written as one that is none
    array = c.facts.array(mask.values)
    return array is None or not bool((array > _lowest(dtype)).any(axis=-1).all())


def _lowest(dtype: int) -> float:
    return float(finfo(onnx.helper.tensor_dtype_to_np_dtype(dtype)).min)


class _Chosen(NamedTuple):
    """What a mask is that a condition chooses from two numbers."""

    condition: gs.Tensor
    numbers: tuple[float, float]


def _chosen(c: Bench, t: gs.Tensor) -> _Chosen | None:
    """How a mask chooses from two numbers; None of another."""
    node = producer_of(t)
    if node is None or node.op != "Where":
        return None
    one, other = (_number(c, each) for each in node.inputs[1:])
    return None if one is None or other is None else _Chosen(node.inputs[0], (one, other))


def _bias(c: Bench, mask: _Mask, query: gs.Tensor, key: gs.Tensor) -> gs.Tensor:
    """What is added to scores, of as many queries and keys as they have.

    What is added to a hidden score is so low that the score is rounded away, but not the lowest
    number, which onnxruntime takes for minus infinity. An axis of queries of length 1 is written
    out: onnxruntime takes none.

    Raises:
        Refused: The mask is of other sizes, or that is not known.
    """
    rank = c.rank(mask.values)
    if not _LEAST_MASK <= rank <= _RANK:
        raise Refused(f"the mask has {rank} axes, and Attention wants two to four")
    wanted = [c.size(query, 0), c.size(query, 1), c.size(query, 2), c.size(key, 2)]
    own = c.sizes(mask.values)
    for axis, (size, whole) in enumerate(zip(own[::-1], wanted[::-1], strict=False)):
        if not same_length(size, whole) and (size != 1 or axis == 0):
            raise Refused("the mask may be of other sizes than the scores: `--assume` says if not")
    bias, dtype = mask.values, c.dtype(query)
    chosen = _chosen(c, bias)
    if chosen is not None and dtype not in HALVES and _lowest(dtype) in chosen.numbers:
        raised = (_LOW if number == _lowest(dtype) else number for number in chosen.numbers)
        bias = c.where(chosen.condition, *(c.number(number, dtype) for number in raised))
    if mask.hidden is not None:
        low = mask.hidden if mask.hidden == -math.inf or dtype in HALVES else _LOW
        numbers = [c.number(number, dtype) for number in (low, 0)]
        bias = c.where(bias, *(numbers if mask.where else numbers[::-1]))
    if own[-2] == 1 and wanted[-2] != 1:
        bias = c.op("Expand", bias, c.vector([*[1] * (rank - 2), wanted[-2], 1]))
    return bias


def _scores(c: Bench, t: gs.Tensor) -> _Scores | None:
    """A product, scaled before or behind; None of anything else."""
    factor, t = _unscaled(c, t)
    node = producer_of(t)
    if node is None or node.op != "MatMul" or not _is_alone(c, t):
        return None
    (one, query), (other, turned) = (_unscaled(c, each) for each in node.inputs)
    scale = factor * one * other
    if not 0 < scale < math.inf:
        return None
    return _Scores(query, turned, scale)


def _unscaled(c: Bench, t: gs.Tensor) -> tuple[float, gs.Tensor]:
    """What a value is multiplied by, and what it is without."""
    node = producer_of(t)
    if node is None or node.op not in ("Mul", "Div") or not _is_alone(c, t):
        return 1.0, t
    left, right = node.inputs
    if (number := _number(c, right)) is not None and number:
        return (number if node.op == "Mul" else 1 / number), left
    if node.op == "Mul" and (number := _number(c, left)) is not None and number:
        return number, right
    return 1.0, t


def _number(c: Bench, t: gs.Tensor) -> float | None:
    """The one element of a constant that adds no axes to scores."""
    array = c.facts.array(t)
    if array is None or array.size != 1 or array.ndim > _RANK or array.dtype.kind not in "fV":
        return None
    return float(array.reshape(()))


def _is_alone(c: Bench, t: gs.Tensor) -> bool:
    """Whether one node alone reads a value, which would be computed twice otherwise."""
    return len(t.outputs) == 1 and not c.draft.surgery.is_output(t)


def _turned_back(c: Bench, turned: gs.Tensor, rank: int) -> gs.Tensor:
    """Keys with their width last."""
    node, perm = producer_of(turned), [*range(rank - 2), rank - 1, rank - 2]
    if node is not None and node.op == "Transpose":
        was = [int(axis) for axis in attribute_of(node, "perm") or range(rank)[::-1]]
        turned, perm = node.inputs[0], [was[axis] for axis in perm]
    return turned if perm == [*range(rank)] else c.permute(turned, perm)
