"""The walk: infer, match, rewrite, fold, node by node, producers first, until nothing changes.

Everything upstream of a node is known and repaired when its turn comes: an ATen node is lowered
with its input's shape known, and the facts behind it come from the operators that replaced it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import onnx_graphsurgeon as gs

from surgeon import dialect, opsets
from surgeon.alike import attributes_of
from surgeon.bodies.agreement import agree
from surgeon.bodies.appending import Appending
from surgeon.bodies.calls import Calls
from surgeon.bodies.chosen import put_by_both
from surgeon.bodies.unrolling import Unroller
from surgeon.candidates import Candidates, Prepared
from surgeon.errors import ModelError, SettleError
from surgeon.facts import UNKNOWN, Fact, Facts
from surgeon.facts.bodies import body_input, body_output, meet
from surgeon.facts.carried import Carried
from surgeon.facts.fact import Items
from surgeon.firing import Check, Firing
from surgeon.fold import Folder
from surgeon.housekeeping import Housekeeper, Known
from surgeon.links import bodies, toposort
from surgeon.model import Model
from surgeon.recipe import Rule
from surgeon.report import Notes
from surgeon.rewrite import Surgery
from surgeon.spelling import home
from surgeon.standard import STANDARD

MAX_SWEEPS = 12
_MOST_LOOKS = 1_000  # calls within calls, each followed for itself, which may double at each step
MAX_GENERATIONS = 64  # how often what a rule made may be rewritten in turn, within one walk


class Sweep:
    """Brings a model to the fixed point of a set of rules.

    Args:
        model: Changed in place.
        facts: Filled as the walk goes.
        surgery: The writer of wiring.
        notes: Takes what was done and what was not.
        rules: Tried in order at each node; the first that fires wins. Late ones wait for the second
            sweep.
        fold: Largest constant to compute, in bytes; None leaves all but shape arithmetic.
        tidy: Whether nodes are to be few, whatever the rules do.
        written_out: Whether calls of functions are to go, however many nodes that makes.
        turns: Of how many turns what is written out has at most, by operator; else of few.
        allow: `approximate`, `contract`: kinds of rules that may fire.
        check: Compares a match with its draft before it is spliced.
        carried: What is taken for granted of the values that Loops carry.
        progress: Called with a line of text at each sweep.
    """

    def __init__(
        self,
        model: Model,
        facts: Facts,
        surgery: Surgery,
        notes: Notes,
        rules: Sequence[Rule],
        *,
        fold: int | None,
        tidy: bool = False,
        written_out: bool = False,
        turns: Mapping[str, int] | None = None,
        allow: frozenset[str] = frozenset(),
        check: Check | None = None,
        carried: Carried | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.model, self.facts, self.surgery, self.notes = model, facts, surgery, notes
        self.carried = carried or Carried()
        self.progress = progress
        self.keeper = Housekeeper(
            facts, surgery, Folder(facts, fold, notes.failures), notes.housekeeping
        )
        self.unroller = Unroller(facts, surgery, turns or {})
        self.appending = Appending(facts, surgery, self._suppose)
        self.firing = Firing(facts, surgery, notes, allow=allow, check=check)
        self.calls = Calls(
            model, surgery, facts.opset, tidy=tidy, every=written_out, wanted=self._wanted
        )
        self.given: dict[int, list[tuple[Fact, ...]]] = {}  # to a function, by its identity
        self.looks = 0
        self.places = {rule.id: rule.location for rule in rules}
        early = [rule for rule in rules if not rule.late]
        self.late = len(early) < len(rules)
        ready: dict[int, Prepared] = {}
        self.rules = self.first = Candidates(early, ready)
        self.all = Candidates(rules, ready)

    def run(self) -> int:
        """Sweep until nothing changes; gives the number of rewrites.

        Raises:
            SettleError: A rule keeps firing.
            ModelError: The graph has a cycle.
        """
        total = 0
        last: Counter[str] = Counter()
        called = self.calls.choose(swept=False)
        for count in range(MAX_SWEEPS):
            # late rules wait until everything was seen once, what is inlined too
            every = not self.late or (count > 0 and not called)
            self.rules = self.all if every else self.first
            self.firing.telling = every
            before = len(self.notes.changes)
            self.notes.misses.clear()
            if self.progress:
                self.progress(f"sweep {count + 1}")
            quiet = self._whole()
            if uncalled := self.calls.forget():
                self.notes.housekeeping["functions dropped that nothing calls"] += uncalled
            last = Counter(change.rule for change in self.notes.changes[before:])
            total += last.total()
            called = self.calls.choose(swept=True)
            sharper = self.facts.sharpen()
            if sharper:
                self._tell(sharper)
            if quiet and not last and every and not called and not sharper:
                return total
        name = last.most_common(1)[0][0] if last else "folding"
        raise self._unsettled(name, f"rule `{name}` still fires after {MAX_SWEEPS} sweeps")

    def _tell(self, names: Sequence[str]) -> None:
        least = self.facts.fitting.least
        self.notes.remarks.extend(
            f"dimension `{name}` is {least[name]} or more wherever the model has a value: "
            "below, a Conv has a kernel larger than its input"
            for name in names
        )

    def _unsettled(self, rule: str, what: str) -> SettleError:
        error = SettleError(
            what,
            where=self.places.get(rule) or str(self.model.path or "model"),
            mend="Give the rule a condition that its own replacement does not meet.",
        )
        error.rule = rule
        return error

    def _whole(self) -> bool:
        """One sweep over the model; True where housekeeping changed nothing."""
        housekept = self.notes.housekeeping.total()
        self.given.clear()
        self.looks = 0
        self.facts.enter(self.model.graph)
        self._graph(self.model.graph, Known())
        for function in self.calls.called_unseen():
            self.given.setdefault(id(function), []).append((UNKNOWN,) * len(function.inputs))
        for function in self.calls.callers_first():
            seen = self.given.get(id(function), [])
            with self._inside(f"{function.domain}.{function.name}"):
                for index, tensor in enumerate(function.inputs):
                    given = [call[index] for call in seen if index < len(call)]
                    tensor.fact = meet(given, partial(self.facts.lengths.new, tensor.name))
                self._graph(function, Known())
        return self.notes.housekeeping.total() == housekept

    def _graph(self, graph: gs.Graph, known: Known) -> None:
        try:
            order = toposort(graph)
        except ValueError as error:
            raise ModelError(
                f"the graph has a cycle through node `{error}`",
                where=str(self.model.path or "model"),
                mend="Export the model again.",
            ) from None
        # From the end, and before anything is merged: of two twins the one that only unread nodes
        # need must not become the one that stays.
        for node in reversed(order):
            if self.surgery.is_dead(node):
                self._drop_unread(node)
        pending = list(reversed(order))
        done: list[gs.Node] = []
        while pending:
            node = pending.pop()
            if self.surgery.is_dead(node) or node.__dict__.get("gone"):
                self._drop_unread(node)
                continue
            new = self._visit(node, graph, known)
            if new is None:
                node.__dict__[dialect.PASSED] = graph is self.model.graph
                done.append(node)
            else:
                pending.extend(reversed(new))
        graph.nodes = [node for node in done if not node.__dict__.get("gone")]

    def _drop_unread(self, node: gs.Node) -> None:
        if not node.__dict__.get("gone"):
            self.surgery.removed.cause = "was dropped: nothing reads it"
            self.surgery.release(node)
            self.notes.housekeeping["unread nodes dropped"] += 1

    def _visit(self, node: gs.Node, graph: gs.Graph, known: Known) -> list[gs.Node] | None:
        """The nodes that took this one's place; None where it stays."""
        self._normalise(node)
        stays = self.surgery.spared.holds(node)
        if not stays and self.keeper.unwrap(node, graph):
            return []
        self.facts.infer(node)
        inner = {}
        if attributes_of(node) is None:  # which holds more than numbers and texts
            inner = {k: v for k, v in node.attrs.items() if isinstance(v, gs.Graph)}
        if inner:
            stays = stays or self.surgery.parted([node]) is not None
            if not stays and (moved := self.keeper.inline(node, graph)) is not None:
                return moved
            place = self._bodies(node, inner, known)
            if not stays and (apart := self._apart(node, graph, place)) is not None:
                return apart
        elif (function := self.calls.function(node)) is not None:
            self.surgery.removed.cause = "was inlined: it calls a function of the model's own"
            if not stays and (copies := self.calls.inline(node, graph)) is not None:
                self.notes.housekeeping["function calls inlined"] += 1
                return copies
            self._call(node, function)
        if stays:  # what rules would do is told
            pass
        elif self.surgery.gives_output(node):
            if (made := self.keeper.known_output(node, graph, known, fold=not inner)) is not None:
                return made
        elif (not inner and self.keeper.fold(node, graph)) or self.keeper.merge(node, known):
            return []
        # Of ATen nodes, which have to go, everything that was tried is told.
        every = self.firing.telling and (self.notes.every or node.domain == dialect.ATEN)
        for prepared in self.rules.at(node, self.facts, every=every):
            new = self.firing.at(prepared, node, graph)
            if new is not None:
                generation, began = getattr(node, "generation", (0, None))
                if generation >= MAX_GENERATIONS:
                    rule = prepared.rule.id
                    raise self._unsettled(
                        rule, f"rule `{rule}` keeps firing on what it made of {began}"
                    )
                began = began or self.notes.changes[-1].node
                for drafted in new:
                    drafted.__dict__["generation"] = generation + 1, began
                return new
        return None

    def _apart(self, node: gs.Node, graph: gs.Graph, place: str) -> list[gs.Node] | None:
        """What took the place of a node with bodies; None where it stays.

        Args:
            node: The node, after its bodies.
            graph: Where it is.
            place: That of its last body.
        """
        self.surgery.removed.cause = "was unrolled, or its bodies were taken apart"
        if not self.surgery.spared.holds_inside(node):
            if (apart := put_by_both(self.facts, self.surgery, node, graph)) is not None:
                return apart
            if (without := self.appending.unlist(node, graph, place)) is not None:
                self.notes.housekeeping["Loops whose lists became results of their turns"] += 1
                return without
        if (copies := self.unroller.unroll(node, graph)) is not None:
            self.notes.housekeeping[f"{node.op} nodes unrolled, turn by turn"] += 1
            return copies
        return None

    def _wanted(self, node: gs.Node) -> bool:
        """Whether a node is of no operator that runtimes know, and there are rules for it."""
        domain = home(node.domain or "", node.op)
        if node.op != "ATen" and domain in (*STANDARD, opsets.LEGACY):
            return False
        self._normalise(node)  # which needs no facts of these
        return bool(self.rules.at(node, self.facts, every=True))

    def _normalise(self, node: gs.Node) -> None:
        if node.__dict__.get("normal"):
            return
        if node.domain == opsets.LEGACY:  # too little was known of what it reads
            if not self._is_typed(node):
                return
            node.domain = ""
        dialect.normalise(node, self.facts.opset, self.facts, self.surgery.is_output)
        node.__dict__["normal"] = node.domain != opsets.LEGACY or self._is_typed(node)

    def _is_typed(self, node: gs.Node) -> bool:
        """Whether the dtype and the rank of what a node reads first are known."""
        fact = self.facts.of(node.inputs[0]) if node.inputs else None
        return fact is None or bool(fact.dtype and fact.rank is not None)

    def _bodies(self, node: gs.Node, inner: Mapping[str, gs.Graph], known: Known) -> str:
        """Sweep the bodies of a node; then say what is known of its outputs.

        Returns:
            The place of the last body, with which the names of its dimensions begin.
        """
        for key, body in inner.items():
            with self._inside(f"{_label(node)}.{key}") as place:
                self._enter(node, body, place)
                if node.op == "Loop" and self.carried.is_new(place):
                    self._foresee(node, body, place)
                self._graph(body, Known(known))
        if cast := agree(node, self.facts, self.surgery):
            self.notes.housekeeping["results of branches and turns cast to one type"] += cast
            self.model.changed = True
        self._leave(node, place)
        return place

    def _enter(self, node: gs.Node, body: gs.Graph, place: str) -> None:
        """Say what a body may count on."""
        for index, tensor in enumerate(body.inputs):
            tensor.fact = body_input(self.facts, node, index, tensor, self.carried, place)

    def _suppose(self, node: gs.Node, given: gs.Tensor, items: Items) -> Items:
        """Fill the facts of a Loop's body as if this held of a list; gives what did before."""
        body = node.attrs["body"]
        with self._inside(f"{_label(node)}.body") as place:
            before = self.carried.items(place, given)
            self.carried.fill(place, given, items)
            self._enter(node, body, place)
            self._look(body)
        return before

    def _leave(self, node: gs.Node, place: str) -> None:
        """Say what is known of the outputs of a node; its last body was at that place."""
        if node.op == "Loop":
            self.carried.judge(self.facts, node, place, final=False)
        for index, tensor in enumerate(node.outputs):
            tensor.fact = body_output(self.facts, node, index, self.carried, place)

    def _foresee(self, node: gs.Node, body: gs.Graph, place: str) -> None:
        """Take no more for granted of what a Loop carries than what its body, as it came, shows."""
        try:
            self._look(body)
            final = all(
                (inner.domain or "") in STANDARD
                for graph in (body, *bodies(body))
                for inner in graph.nodes
            )
            while self.carried.judge(self.facts, node, place, final=final):
                self._enter(node, body, place)
                self._look(body)
        except ValueError:
            return  # a cycle, which the sweep of the body names

    def _look(self, graph: gs.Graph) -> None:
        """Fill the facts of a graph, and change nothing in it."""
        for node in toposort(graph):
            self._normalise(node)
            self.facts.infer(node)
            if (function := self.calls.function(node)) is not None and self.looks < _MOST_LOOKS:
                self.looks += 1
                self._call(node, function)
            inner = [(k, v) for k, v in node.attrs.items() if isinstance(v, gs.Graph)]
            for key, body in inner:
                with self._inside(f"{_label(node)}.{key}") as place:
                    self._enter(node, body, place)
                    self._look(body)
            if inner:
                self._leave(node, place)

    @contextmanager
    def _inside(self, label: str) -> Iterator[str]:
        """New dimensions are named after where they are: siblings may use the same names."""
        outer = self.facts.lengths.scope
        self.facts.lengths.scope = f"{outer}{label}/"
        try:
            yield self.facts.lengths.scope
        finally:
            self.facts.lengths.scope = outer

    def _call(self, node: gs.Node, function: gs.Function) -> None:
        """The outputs' facts of a call: the function is analysed with this call's operands."""
        facts = tuple(self.facts.of(t) for t in node.inputs)
        self.given.setdefault(id(function), []).append(facts)
        given = (*facts, *[UNKNOWN] * (len(function.inputs) - len(facts)))
        for tensor, fact in zip(function.inputs, given, strict=False):
            tensor.fact = fact
        with self.facts.breadth.called(node, function), self._inside(_label(node)):
            self._look(function)
        self.calls.heed(node, function, self.facts)
        for tensor, inner_tensor in zip(node.outputs, function.outputs, strict=False):
            tensor.fact = self.facts.of(inner_tensor)


def _label(node: gs.Node) -> str:
    """What a node's place is called, also when another node took it."""
    label: str | None = node.__dict__.get("label")
    return label or next((t.name for t in node.outputs if t.name), "")
