"""Expands in front of operators that broadcast their operands anyway."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench
from surgeon.dims import Dim
from surgeon.facts import Facts
from surgeon.facts.elementwise import BINARY, ELEMENTWISE
from surgeon.facts.fact import same_dims
from surgeon.links import maker_of
from surgeon.match import Match, attribute_of, is_one_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_MOST = 16  # nodes that an Expand may be put behind
_ORDERED = frozenset("Reshape Squeeze Unsqueeze Expand Slice Gather Identity Transpose".split())


def without_expand(draft: Draft, match: Match) -> gs.Tensor:
    """y of an Expand and other operands that give the result every axis which the Expand gives.

    Where they do not, the Expand goes behind y, if all that read it there broadcast it anyway.
    """
    root, facts = match.root, draft.facts
    expanded, x = match.values["e"], match.values["x"]
    assert expanded is not None
    assert x is not None
    shape = facts.of(x).shape
    if shape is None:
        raise Refused("a shape is not known")
    others = [t for t in root.inputs if t is not expanded]
    missing = "it gives the result its axes alone"
    if root.op in BINARY:
        missing = not_given(facts, root, shape, others)
        if missing and _as_large_as_one(facts, expanded.inputs[0].inputs[1], others):
            missing = ""
    if not missing:
        operands = [x if t is expanded else t for t in root.inputs]
        made: gs.Tensor = draft.op(root.op, *operands, **root.attrs)
        return made
    if not vanishes(draft, expanded, shape, root.outputs[0]):
        raise Refused(missing)
    operands = [_before(facts, t, expanded, shape) for t in root.inputs]
    small = draft.op(root.op, *operands, **root.attrs)
    later: gs.Tensor = draft.op("Expand", small, expanded.inputs[0].inputs[1])
    return later


def _as_large_as_one(facts: Facts, target: gs.Tensor, others: list[gs.Tensor]) -> bool:
    """Whether an Expand asks for the shape of another operand, which broadcasting gives as well."""
    sizes = facts.of(target).value
    wanted = None if sizes is None else tuple(sizes.reshape(-1).tolist())
    shapes = [facts.of(other).shape for other in others]
    return wanted is not None and any(s is not None and same_dims(s, wanted) for s in shapes)


def not_given(facts: Facts, node: gs.Node, own: tuple[Dim, ...], others: list[gs.Tensor]) -> str:
    """Which axis of its result a node has from the Expand alone; empty where from none."""
    out = facts.of(node.outputs[0]).shape
    if out is None or len(own) > len(out):
        return "a shape is not known"
    shapes = [facts.of(t).shape for t in others]
    lacking = len(out) - len(own)  # an axis of 1 is one too, where nothing else has it
    own = (1,) * lacking + tuple(own)
    for place, (mine, wanted) in enumerate(zip(own, out, strict=True)):
        behind = len(out) - place
        given = any(o is not None and len(o) >= behind and o[-behind] == wanted for o in shapes)
        if (mine != wanted or place < lacking) and not (mine == 1 and given):
            return f"nothing else provably gives the result its axis {place} of {wanted}"
    return ""


def vanishes(
    draft: Draft, expanded: gs.Tensor, own: tuple[Dim, ...], through: gs.Tensor | None = None
) -> bool:
    """Whether no Expand is needed once it is put behind all that works on each element alone.

    Args:
        draft: Asked for facts.
        expanded: A value that is one of shape `own`, repeated.
        own: The shape before the Expand.
        through: A value that must be among those.
    """
    facts, region, grown = draft.facts, {id(expanded): expanded}, True
    while grown:
        grown = False
        for node in [n for t in region.values() for n in t.outputs]:
            if id(node.outputs[0]) in region or not _each(node):
                continue
            if all(id(t) in region or _may_stay(facts, t, expanded, own) for t in node.inputs):
                region[id(node.outputs[0])], grown = node.outputs[0], True
        if len(region) > _MOST:
            return False
    if through is not None and id(through) not in region:
        return False
    for tensor in region.values():
        if draft.surgery.is_output(tensor):
            return False
        for node in tensor.outputs:
            others = [t for t in node.inputs if id(t) not in region]
            if id(node.outputs[0]) in region:
                continue
            if _by_places(node, tensor) or is_one_of(node, {"Unsqueeze"}):
                of = _of_rows if node.op == "Gather" else _with_axes
                shaped = of(facts, node, own)
                if shaped is None or not vanishes(draft, node.outputs[0], shaped):
                    return False
            elif node.op not in BINARY or not _each(node) or not_given(facts, node, own, others):
                return False
    return True


def _by_places(node: gs.Node, places: gs.Tensor) -> bool:
    """Whether a node takes rows of a table at these places."""
    if not is_one_of(node, {"Gather"}) or attribute_of(node, "axis"):
        return False
    return node.inputs[1] is places and node.inputs[0] is not places


def _of_rows(facts: Facts, node: gs.Node, places: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
    """The shape of a table's rows at places of this shape."""
    table = facts.of(node.inputs[0]).shape
    return None if table is None else (*places, *table[1:])


def rows_without_expand(draft: Draft, match: Match) -> gs.Tensor:
    """Rows of a table at places that are repeated, where what reads them does that anyway."""
    root, facts = match.root, draft.facts
    x, expanded = match.values["x"], match.values["e"]
    assert expanded is not None
    own = None if x is None else facts.of(x).shape
    rows = None if own is None else _of_rows(facts, root, own)
    if rows is None or not _by_places(root, expanded):
        raise Refused("a shape is not known, or the rows are no rows")
    if not vanishes(draft, root.outputs[0], rows):
        raise Refused("something needs them repeated")
    small = draft.op("Gather", root.inputs[0], x, **root.attrs)
    widths = [d for d in rows[len(own or ()) :] if isinstance(d, int)]
    if len(widths) < len(rows) - len(own or ()):
        raise Refused("how long the rows are is known at run time only")
    draft.leans.append(expanded.inputs[0])  # its shape is read, but it has to repeat x
    target = draft.op("Shape", expanded)
    if widths:
        target = draft.op("Concat", target, draft.constant(widths, "widths"), axis=0)
    repeated: gs.Tensor = draft.op("Expand", small, target)
    return repeated


def axes_without_expand(draft: Draft, match: Match) -> gs.Tensor:
    """An Unsqueeze of what is repeated, where what reads it does that anyway: of what is not."""
    root, facts = match.root, draft.facts
    x, target = match.values["x"], match.values["s"]
    assert x is not None
    assert target is not None
    own, axes = facts.of(x).shape, facts.array(root.inputs[1])
    shaped = None if own is None else _with_axes(facts, root, own)
    if own is None or shaped is None or axes is None or facts.of(target).shape != (len(own),):
        raise Refused("a shape is not known, or what is repeated has fewer axes")
    if not vanishes(draft, root.outputs[0], shaped):
        raise Refused("something needs it repeated")
    c, parts, done = Bench(draft), [], 0
    for count, axis in enumerate(sorted(int(a) % len(shaped) for a in axes.reshape(-1))):
        if (end := axis - count) > done:
            parts.append(c.slice(target, 0, done, end))
            done = end
        parts.append(draft.constant([1], "one"))
    if done < len(own):
        parts.append(c.slice(target, 0, done, len(own)))
    y: gs.Tensor = c.op("Expand", c.op("Unsqueeze", x, root.inputs[1]), c.concat(parts, 0))
    return y


def tile_as_expand(draft: Draft, match: Match) -> gs.Tensor:
    """A Tile of axes of length 1 alone: an Expand, which says 1 where an axis stays."""
    root, facts = match.root, draft.facts
    x, counts = root.inputs
    own, times = facts.of(x).shape, facts.of(counts).value
    if own is None or times is None or times.size != len(own):
        raise Refused("a shape is not known, or how often it repeats")
    for axis, (size, count) in enumerate(zip(own, times.reshape(-1).tolist(), strict=True)):
        if size != 1 and count != 1:
            raise Refused(f"it repeats axis {axis} of {size}, as one piece")
    y: gs.Tensor = draft.op("Expand", x, counts)
    return y


def _with_axes(facts: Facts, node: gs.Node, own: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
    """The shape behind an Unsqueeze of a value of this shape, where it is repeated to that rank."""
    told = node.attrs.get("axes")  # so before opset 13, until the walk comes to it
    axes = facts.array(node.inputs[1]) if told is None else np.array(told, np.int64)
    if axes is None or facts.of(node.inputs[0]).rank != len(own):
        return None
    places = {int(axis) % (len(own) + axes.size) for axis in axes.reshape(-1)}
    rest = iter(own)
    return tuple(1 if i in places else next(rest) for i in range(len(own) + axes.size))


def _each(node: gs.Node) -> bool:
    """Whether it computes each element alone, of as many operands as the rules have patterns of."""
    known = node.op in ELEMENTWISE and (node.domain or "") in STANDARD
    return known and (node.op == "Where" or len(node.inputs) <= 2)


def _may_stay(facts: Facts, t: gs.Tensor, expanded: gs.Tensor, own: tuple[Dim, ...]) -> bool:
    """Whether a value makes no more of one of shape `own`, or is expanded as the other is."""
    shape = facts.of(t).shape
    if shape is None:
        return False
    behind = own[len(own) - len(shape) :]
    if len(shape) <= len(own) and all(d in (1, o) for d, o in zip(shape, behind, strict=True)):
        return True
    return _source(t) is not None and _alike(facts, t, expanded, own)


def _alike(facts: Facts, t: gs.Tensor, expanded: gs.Tensor, own: tuple[Dim, ...]) -> bool:
    source = _source(t)
    if source is None or not same_dims(facts.of(t).shape, facts.of(expanded).shape):
        return False
    return same_dims(facts.of(source).shape, own)


def _source(t: gs.Tensor) -> gs.Tensor | None:
    """What an Expand repeats."""
    node = maker_of(t)
    if node is None or node.op != "Expand" or (node.domain or "") not in STANDARD:
        return None
    source: gs.Tensor = node.inputs[0]
    return source


def _before(facts: Facts, t: gs.Tensor, expanded: gs.Tensor, own: tuple[Dim, ...]) -> gs.Tensor:
    """The operand that stands for `t` where nothing is expanded yet."""
    source = _source(t)
    if source is not None and _alike(facts, t, expanded, own):
        return source
    if not _may_stay(facts, t, expanded, own):
        raise Refused("an Expand goes behind another of its operands first")
    return t


def beside_truth(draft: Draft, match: Match) -> gs.Tensor:
    """m of `v >= c and m`, where v is counted from no less than c.

    Where m is smaller than the result, only if what reads it broadcasts it anyway.
    """
    facts, m, v, c = draft.facts, *(match.values[name] for name in "mvc")
    assert m is not None
    assert v is not None
    assert c is not None
    bound, least = facts.array(c), least_of(facts, v)
    if bound is None or least is None or not bound.size or bound.max() > least:
        raise Refused("it may not hold everywhere")
    own, out = facts.of(m).shape, facts.of(match.root.outputs[0]).shape
    draft.premises.append(v)
    if own is not None and same_dims(own, out):
        return m
    single = bound.size == 1 and bound.ndim <= (facts.of(v).rank or 0)
    if own is None or not single or not vanishes(draft, match.root.outputs[0], own):
        raise Refused("it may make the result larger")
    draft.leans.append(v.inputs[0])  # its shape is read, but it has to be what counts
    expanded: gs.Tensor = draft.op("Expand", m, draft.op("Shape", v))
    return expanded


def least_of(facts: Facts, tensor: gs.Tensor) -> int | None:
    """A whole number that no element is below, where a count from it made them."""
    node = maker_of(tensor)
    if node is None or (node.domain or "") not in STANDARD:
        return None
    if node.op in _ORDERED:
        return least_of(facts, node.inputs[0])
    if node.op != "Range":
        return None
    start, step = facts.array(node.inputs[0]), facts.array(node.inputs[2])
    if start is None or step is None or step.item() <= 0 or start.dtype.kind != "i":
        return None
    return int(start.item())
