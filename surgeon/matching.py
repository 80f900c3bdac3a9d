"""Finds a pattern's nodes behind a root: a Match or a Miss with its reason. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import onnx_graphsurgeon as gs

from surgeon.facts import Facts
from surgeon.match import Match, Miss
from surgeon.model import describe
from surgeon.notation import NodePattern, Pattern
from surgeon.searching import COMMUTATIVE, Search, State


class Matcher:
    """A pattern made ready: attributes that moved to inputs are asked for as inputs.

    Args:
        pattern: As the recipe says it, in the newest or an older form.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.total = len(pattern.nodes)
        self.producers = {
            name: node for node in pattern.nodes for name in node.outputs if name not in ("", "_")
        }
        self.root = pattern.root
        # (place, operators) of the root's inputs that are other nodes' outputs and nothing between.
        self.needs = [
            (index, self.producers[argument.name])
            for index, argument in enumerate(self.root.inputs)
            if argument.name in self.producers and not argument.through
        ]
        self.plain = not (self.root.attributes or self.root.captures or self.root.overload)
        self.operands = self._operands()

    @property
    def roots(self) -> tuple[tuple[str, str], ...]:
        """The (domain, operator) pairs that can stand for the pattern's last node."""
        return tuple((self.root.domain, operator) for operator in self.root.operators)

    def at(
        self, root: gs.Node, facts: Facts, is_output: Callable[[gs.Tensor], bool]
    ) -> Match | Miss:
        """Match with `root` as the pattern's last node."""
        if self.operands is not None and (match := self._directly(root)) is not None:
            return match
        if self.plain and (why := self._no_maker(root)) is not None:
            return Miss(root, 1, self.total, why)
        search = Search(self.producers, facts, is_output)
        for state in search.node(self.root, root, State()):
            return Match(
                root, state.nodes, state.values, state.attributes, state.rests, state.views
            )
        return Miss(root, search.deepest, self.total, search.why)

    def _operands(self) -> tuple[list[str], str] | None:
        """The names of the operands and of the rest of them; None where there is more to ask."""
        arguments, outputs = self.root.inputs, self.root.outputs
        fixed = [argument.name for argument in arguments if not argument.rest]
        rests = [argument.name for argument in arguments if argument.rest]
        if not self.plain or self.total > 1 or self.root.rest is not None or len(rests) > 1:
            return None
        names = [*fixed, *rests, *outputs]
        if len({*names, "", "_"}) < len(names) + 2 or any(a.through for a in arguments):
            return None
        return fixed, rests[0] if rests else ""

    def _directly(self, root: gs.Node) -> Match | None:
        """The match of a pattern of one node that only names operands; None: search for it."""
        assert self.operands is not None
        fixed, rest = self.operands
        want, inputs, outputs = self.root, root.inputs, root.outputs
        if root.op not in want.operators or (root.domain or "") != want.domain:
            return None
        if len(inputs) < len(fixed) or len(outputs) > len(want.outputs):
            return None
        more = inputs[len(fixed) :]
        if not rest and any(tensor.name for tensor in more):
            return None
        values: dict[str, gs.Tensor | None] = {}
        for name, tensor in zip(fixed, inputs, strict=False):
            if not tensor.name:
                return None
            values[name] = tensor
        for name, tensor in zip(want.outputs, outputs, strict=False):
            values[name] = tensor
        rests = {rest: tuple(more)} if rest else {}
        return Match(root, (root,), values, {}, rests, dict.fromkeys(fixed, ()))

    def _no_maker(self, root: gs.Node) -> Callable[[], str] | None:
        """Why no search is needed: no input comes from a node that the pattern wants there."""
        lacking = self.lacks(root.op, makers_of(root))
        if lacking is None:
            return None
        index, want = lacking
        tensor = root.inputs[1 - index if self._either(root.op, len(root.inputs)) else index]
        maker = tensor.inputs[0] if tensor.inputs else None
        return partial(_not_made, tensor, maker, self.root.inputs[index].name, want)

    def lacks(self, op: str, makers: Sequence[str | None]) -> tuple[int, NodePattern] | None:
        """The input of a root, by its place, that is not made by what the pattern wants there.

        Args:
            op: The root's operator.
            makers: The operator that makes each of its inputs.
        """
        either = self._either(op, len(makers))
        for index, want in self.needs:
            if index >= len(makers):
                return None  # the search says it better
            if makers[index] not in want.operators and not (
                either and makers[1 - index] in want.operators
            ):
                return index, want
        return None

    def _either(self, op: str, inputs: int) -> bool:
        """Whether the operands may stand in either order."""
        return op in COMMUTATIVE and len(self.root.inputs) == inputs == 2


CONSTANT = "="  # stands for no operator: what makes a constant


def makers_of(node: gs.Node) -> tuple[str | None, ...]:
    """The operator that makes each input of a node; `CONSTANT`, or None for what no node makes."""
    return tuple(
        [
            t.inputs[0].op if t.inputs else CONSTANT if isinstance(t, gs.Constant) else None
            for t in node.inputs
        ]
    )


def _not_made(tensor: gs.Tensor, maker: gs.Node | None, name: str, want: NodePattern) -> str:
    if maker is None:
        return f"`{name}` ({tensor.name!r}) is not computed by a node"
    return f"{describe(maker)} is not {want.domain or 'ai.onnx'}.{' | '.join(want.operators)}"
