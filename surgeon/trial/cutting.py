"""Cuts a match and its replacement out of a model, with what is known of what they read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.dims import Dim
from surgeon.facts import Fact, Facts
from surgeon.facts.fact import STRING, Array
from surgeon.firing import Pairs
from surgeon.links import captured_by, current, maker_of, named_inputs
from surgeon.match import Match
from surgeon.model import Model
from surgeon.rewrite import Draft
from surgeon.trial.piece import Piece
from surgeon.verify.growth import beside

NEAR = 12  # how far behind the match the replacement's operands are looked for at first
FAR = 1000
_POOLS = {"AveragePool", "LpPool", "MaxPool"}
_SKIPS = {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}
_LARGEST = 1 << 26  # bytes of constants in a piece


def cut(
    model: Model, facts: Facts, match: Match, draft: Draft, pairs: Pairs, depth: int = NEAR
) -> Piece | str:
    """The match and the replacement as a piece, or why they cannot be cut out.

    Args:
        model: Holds the match.
        facts: What is known of its values.
        match: What is replaced.
        draft: The replacement.
        pairs: Which value takes the place of which.
        depth: How many nodes behind the match the replacement's operands are looked for. One that
            lies further back, or aside, is drawn without regard to what the match computes of it.
    """
    read = [tensor for node in draft.nodes for tensor in _reads(node)]
    read += [new for _, new in pairs]
    inside = _made(draft.nodes)
    operands = {id(t): t for t in read if id(t) not in inside and not t.is_empty()}
    nodes, ends_early = _matched(facts, match, draft, pairs, operands, depth)
    if nodes is None:
        return "it reaches too far back"
    if any(isinstance(value, gs.Graph) for node in nodes for value in node.attrs.values()):
        return "it holds a body"
    made = _made(nodes)
    operands |= {id(t): t for node in nodes for t in named_inputs(node) if not t.is_empty()}
    given = _given(facts, [tensor for at, tensor in operands.items() if at not in made])
    if isinstance(given, str):
        return given
    joined = [node for node in nodes if node.op == "Concat"]
    computed = [facts.of(t).shape for node in (*nodes, *draft.nodes) for t in node.outputs]
    shapes = [*computed, *(fact.shape for _, fact in given.inputs)]
    passed = {t.name for node in nodes for t in named_inputs(node) if facts.is_unread(t)}
    passed &= {t.name for node in draft.nodes for t in named_inputs(node)}
    return Piece(
        model,
        nodes,
        _makers_among(nodes, read),
        draft.nodes,
        pairs,
        given.constants,
        frozenset(passed & given.constants.keys()),
        given.inputs,
        given.symbols,
        frozenset(given.counts),
        Counter(shape for shape in shapes if shape is not None),
        ends_early,
        [*_windows(facts, nodes)],
        [
            two
            for node in joined
            for two in beside([facts.of(t).shape for t in node.inputs], node.attrs.get("axis", 1))
        ],
        laid=[*_laid(facts, nodes)],
        broadcast=facts.lengths.spread(given.symbols),
    )


def _windows(facts: Facts, nodes: Iterable[gs.Node]) -> Iterator[tuple[Dim, int]]:
    """The lengths that pools go over, and the least of each: below, PyTorch has no pool.

    ONNX leaves it open, and onnxruntime gives one result or none, by how the quotient is rounded.
    """
    for node in nodes:
        if node.op not in _POOLS or node.attrs.get("auto_pad", "NOTSET") != "NOTSET":
            continue
        kernel = node.attrs.get("kernel_shape", ())
        steps = node.attrs.get("dilations") or [1] * len(kernel)
        pads = node.attrs.get("pads") or [0] * 2 * len(kernel)
        ends = zip(pads, pads[len(kernel) :], strict=False)
        strides = node.attrs.get("strides") or [1] * len(kernel)
        lengths = (facts.of(node.inputs[0]).shape or ())[2:]
        for length, *window in zip(lengths, kernel, steps, strides, ends, strict=False):
            size, step, stride, end = window
            hangs_over = stride - 1 if node.attrs.get("ceil_mode") else 0
            yield length, step * (size - 1) + 1 - sum(end) - hangs_over


def _laid(facts: Facts, nodes: Iterable[gs.Node]) -> Iterator[tuple[Dim, Dim]]:
    """The lengths of batches that are added to others, whose shape the sum has, each with those.

    onnxruntime asks the other lengths of these operators, and takes what there is of this one.
    """
    for node in nodes:
        if node.op in _SKIPS and len(node.inputs) > 1:
            whole, skip = (facts.of(current(t)).shape for t in node.inputs[:2])
            if whole and skip and len(whole) == len(skip):
                yield skip[0], whole[0]


@dataclass(frozen=True, slots=True)
class _Given:
    """What comes into a piece from outside, as `Piece` has it."""

    constants: dict[str, Array] = field(default_factory=dict)
    inputs: list[tuple[gs.Tensor, Fact]] = field(default_factory=list)
    symbols: dict[str, int | None] = field(default_factory=dict)
    counts: set[str] = field(default_factory=set)


def _given(facts: Facts, outside: Iterable[gs.Tensor]) -> _Given | str:
    """What is known of the values that come from outside, or why they cannot be drawn."""
    given, size = _Given(), 0
    for tensor in outside:
        array = facts.array(tensor, decides=False)
        if array is not None:
            size += array.nbytes
            if size > _LARGEST:
                return "its constants are large"
            given.constants[tensor.name] = array
            continue
        fact = facts.of(tensor)
        if fact.shape is None or not fact.dtype:
            return "an operand's shape is not known"
        made = isinstance(tensor, gs.Constant) or any(m.op == "Constant" for m in tensor.inputs)
        if fact.dtype == STRING and made:
            return "a text that it reads is a constant"  # an option, UPLO say, and not any text
        given.inputs.append((tensor, fact))
        parts = list(fact.shape)
        if fact.value is not None and fact.symbolic:
            parts += fact.value.reshape(-1).tolist()
        for part in parts:
            given.symbols.update(sorted(dims.limits(part).items()))
            given.counts.update(dims.counts(part))
    return given


def _matched(
    facts: Facts,
    match: Match,
    draft: Draft,
    pairs: Pairs,
    operands: dict[int, gs.Tensor],
    depth: int,
) -> tuple[list[gs.Node] | None, bool]:
    """The match, and the nodes between it and what the replacement reads: see `_behind`."""
    roots = [old.inputs[0] for old, _ in pairs if old.inputs]
    keep = {id(n) for n in match.nodes} | {id(n) for v in match.views.values() for n in v}
    leans = {id(n) for n in draft.leans}
    leans |= {id(n) for t in draft.premises for n in _makers(facts, t)}
    # a value that the replacement reads is drawn, unless it rests on what makes it
    stop = {at for at, t in operands.items() if not (t.inputs and id(t.inputs[0]) in leans)}
    return _behind(roots, keep | leans, stop, depth)


def _made(nodes: Iterable[gs.Node]) -> set[int]:
    return {id(tensor) for node in nodes for tensor in node.outputs}


def _reads(node: gs.Node) -> Iterator[gs.Tensor]:
    """What a drafted node reads, and what its bodies read of what stands around it."""
    yield from named_inputs(node)
    yield from captured_by(node)


def _makers_among(nodes: Sequence[gs.Node], wanted: Sequence[gs.Tensor]) -> list[gs.Node]:
    """Those of the nodes, producers first, that make the wanted tensors."""
    needed = {id(tensor) for tensor in wanted}
    found = []
    for node in reversed(nodes):
        if any(id(tensor) in needed for tensor in node.outputs):
            needed |= {id(tensor) for tensor in named_inputs(node)}
            found.append(node)
    return found[::-1]


def _makers(facts: Facts, tensor: gs.Tensor) -> Iterator[gs.Node]:
    """The nodes that make a value, back to what the facts know the value of."""
    stack, seen = [current(tensor)], set()
    while stack:
        tensor = stack.pop()
        if tensor.inputs and facts.of(tensor).value is None and id(tensor) not in seen:
            seen.add(id(tensor))
            yield tensor.inputs[0]
            stack.extend(named_inputs(tensor.inputs[0]))


def _behind(
    roots: Sequence[gs.Node], keep: set[int], stop: set[int], depth: int
) -> tuple[list[gs.Node] | None, bool]:
    """The nodes that lead from the tensors in `stop` to the roots, producers first.

    Matched nodes always belong; nodes behind them only where the replacement reads behind them too.

    Returns:
        The nodes, None where they do not reach a root; and whether there are more behind them.
    """
    belongs: dict[int, bool] = {}
    order: list[gs.Node] = []
    ends_early = False
    for root in roots:
        way = [] if id(root) in belongs else [(root, iter(named_inputs(root)))]
        belongs.setdefault(id(root), False)
        while way:
            node, operands = way[-1]
            for tensor in operands:
                maker = maker_of(tensor)
                if id(tensor) in stop:
                    belongs[id(node)] = True
                elif maker is not None and id(maker) in belongs:
                    belongs[id(node)] |= belongs[id(maker)]
                elif maker is not None and (len(way) <= depth or id(maker) in keep):
                    belongs[id(maker)] = False
                    way.append((maker, iter(named_inputs(maker))))
                    break
                else:
                    ends_early |= maker is not None
            else:
                way.pop()
                if belongs[id(node)] or id(node) in keep:
                    belongs[id(node)] = True
                    order.append(node)
                    if way:
                        belongs[id(way[-1][0])] = True
        if not belongs[id(root)]:
            return None, ends_early
    return order, ends_early
