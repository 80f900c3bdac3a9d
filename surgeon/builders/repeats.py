"""What is done twice and can be done once, bounds above all; and reductions of one element."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.parts import squeeze
from surgeon.facts.fact import Array
from surgeon.facts.kinds import FLOATS, TRUTH, WHOLE
from surgeon.links import maker_of
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_ROUNDING = frozenset({"Ceil", "Floor", "Round"})
_KINDS = "iuf"  # of numpy: those that bounds are compared in


def twice_the_same(draft: Draft, match: Match) -> gs.Tensor:
    """What is whole already is not rounded again, and Relu, Abs and Sign do nothing twice."""
    node = match.root
    x: gs.Tensor = node.inputs[0]
    inner = x.inputs[0]
    whole = inner.op in _ROUNDING or inner.op == "Sign"
    if inner.op == "Cast":
        whole = draft.facts.of(inner.inputs[0]).dtype in WHOLE | TRUTH
    if node.op == inner.op or (whole and node.op in _ROUNDING):
        draft.premises.append(x)
        return x
    raise Refused(f"{node.op} may change what {inner.op} gives")


def whole_already(draft: Draft, match: Match) -> gs.Tensor:
    """Whole numbers within the range of an integer type, which a Cast there and back leaves."""
    clip, facts = match.nodes[2], draft.facts
    clipped, between = clip.outputs[0], facts.of(match.root.inputs[0]).dtype
    if between not in WHOLE or facts.of(clipped).dtype != facts.of(match.root.outputs[0]).dtype:
        raise Refused("it is not cast to whole numbers and back")
    if facts.of(clipped).dtype not in FLOATS or not _is_whole(draft, clip.inputs[0]):
        raise Refused("what is clipped is not known to be whole")
    bounds = [facts.array(t) for t in clip.inputs[1:] if not t.is_empty()]
    ends = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(between))
    if len(bounds) != 2 or not all(
        b is not None and b.size == 1 and float(b.item()).is_integer() for b in bounds
    ):
        raise Refused("it is not clipped to whole numbers that are known")
    if not all(ends.min <= int(b.item()) <= ends.max for b in bounds if b is not None):
        raise Refused("it may leave the range of the whole numbers")
    draft.premises.append(clipped)
    return clipped


def _is_whole(draft: Draft, tensor: gs.Tensor) -> bool:
    """Whether a float is a whole number, infinity or NaN, by what makes it."""
    waiting, seen = [tensor], set()
    while waiting:
        at = waiting.pop()
        if id(at) in seen:  # values that are added to themselves, again and again
            continue
        seen.add(id(at))
        array = draft.facts.array(at)
        if array is not None:
            if array.dtype.kind != "f" or (np.trunc(array) != array).any():
                return False
            continue
        node = maker_of(at)
        if node is None or (node.domain or "") not in STANDARD:
            return False
        if node.op in ("Add", "Sub"):  # of whole numbers; what rounds is larger, and is whole too
            waiting += node.inputs
        elif node.op == "Cast":
            if draft.facts.of(node.inputs[0]).dtype not in WHOLE | TRUTH:
                return False
        elif node.op not in _ROUNDING:
            return False
    return True


# ----------------------------------------------------------------------------------------- bounds


def clip_chain(draft: Draft, match: Match) -> gs.Tensor:
    """A Clip or Relu of a Clip or Relu, as one Clip.

    A bound that is left out is the largest number of the dtype in onnxruntime, and not infinity: it
    stays left out.
    """
    outer, inner = match.root, match.nodes[1]
    dtype = draft.facts.of(outer.inputs[0]).dtype
    if not dtype:
        raise Refused("its dtype is not known")
    kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(dtype))
    if kind.kind not in _KINDS:
        raise Refused(f"its dtype is {kind.name}")
    first, second = (_limits(draft, node, kind) for node in (inner, outer))
    made: list[gs.Tensor | None] = []
    for index, name in enumerate(("least", "most")):
        limit = min(max(first[index], second[0]), second[1])
        pairs = ((first, inner), (second, outer))
        open_side = limit in (_lowest(kind), _highest(kind)) and any(
            given[index] == limit and not _given(node, index) for given, node in pairs
        )
        made.append(None if open_side else draft.constant(np.array(limit, kind), name))
    result: gs.Tensor = draft.op("Clip", inner.inputs[0], *made)
    return result


def _limits(draft: Draft, node: gs.Node, kind: np.dtype[Any]) -> tuple[float, float]:
    """The bounds of a Clip or Relu; whole numbers stay such."""
    if node.op == "Relu":
        return 0, _highest(kind)
    found: list[float] = []
    for index in (0, 1):
        array = draft.facts.array(node.inputs[index + 1]) if _given(node, index) else None
        if array is not None and array.size == 1:
            found.append(array.item())
        elif _given(node, index):
            raise Refused("a bound is computed at run time")
        else:
            found.append(_highest(kind) if index else _lowest(kind))
    least, most = found
    if not least <= most or np.inf in (least, -most):  # NaN too
        raise Refused("its bounds leave nothing between them")
    return least, most


def _given(node: gs.Node, index: int) -> bool:
    """Whether a Clip states this bound; Relu states its first, and its second is infinity."""
    if node.op == "Relu":
        return True
    return len(node.inputs) > index + 1 and not node.inputs[index + 1].is_empty()


def _lowest(kind: np.dtype[Any]) -> float:
    return -np.inf if kind.kind == "f" else int(np.iinfo(kind).min)


def _highest(kind: np.dtype[Any]) -> float:
    return np.inf if kind.kind == "f" else int(np.iinfo(kind).max)


# ------------------------------------------------------------------------------------- reductions


def reduced_nothing(draft: Draft, match: Match) -> gs.Tensor:
    """A reduction over axes of one element, or over none: its input, which may lose these axes."""
    node, facts = match.root, draft.facts
    x: gs.Tensor = node.inputs[0]
    given = len(node.inputs) > 1 and not node.inputs[1].is_empty()
    array: Array | None = facts.array(node.inputs[1]) if given else None
    if given and array is None:
        raise Refused("its axes are computed at run time")
    named = [] if array is None else [int(n) for n in array.reshape(-1)]
    if not named and attribute_of(node, "noop_with_empty_axes"):
        if node.op == "ReduceL1":
            raise Refused("what it does to each element without axes is told in two ways")
        return x
    shape = facts.of(x).shape
    if shape is None:
        raise Refused("the shape of its input is not known")
    axes = sorted(axis % max(len(shape), 1) for axis in named) or list(range(len(shape)))
    if any(axis >= len(shape) or shape[axis] != 1 for axis in axes):
        raise Refused("an axis that it reduces may have more than one element")
    if node.op == "ReduceL1":
        if facts.of(x).dtype not in FLOATS:
            raise Refused("the smallest integer has no size, and runtimes do not agree on one")
        if axes and not attribute_of(node, "keepdims"):
            raise Refused("its size and its axes apart would be two nodes")
        x = draft.op("Abs", x)
    return x if attribute_of(node, "keepdims") or not axes else squeeze(draft, x, *axes)
