"""The walk: infer, match, rewrite, fold, node by node in topological order, until nothing changes.

Everything upstream of a node is known and repaired when its turn comes: an ATen node is lowered with
its input's shape known, and the facts behind it come from the operators that replaced it.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import onnx
import onnx_graphsurgeon as gs

from surgeon import dialect, opsets
from surgeon.builders import BUILDERS
from surgeon.errors import ModelError, SettleError
from surgeon.expressions import truth
from surgeon.facts import UNKNOWN, Fact, Facts
from surgeon.facts.fact import INT64
from surgeon.fold import Folder
from surgeon.match import CapturedValue, Match, Matcher, Miss
from surgeon.model import Model, describe
from surgeon.recipe import BuilderCall, Rule
from surgeon.report import Change, MissRecord, Notes
from surgeon.rewrite import Draft, Refused, Surgery, toposort
from surgeon.template import instantiate

MAX_SWEEPS = 12


@dataclass(frozen=True, slots=True)
class Prepared:
    """A rule and its pattern, made ready once."""

    rule: Rule
    matcher: Matcher


class Sweep:
    """Brings a model to the fixed point of a set of rules.

    Args:
        model: Changed in place.
        facts: Filled as the walk goes.
        surgery: The writer of wiring.
        notes: Takes what was done and what was not.
        allow: `approximate`, `contract`: kinds of rules that may fire.
        check: Compares a match with its draft before it is spliced; gives the reason to refuse.
        progress: Called with a line of text now and then.
    """

    def __init__(
        self,
        model: Model,
        facts: Facts,
        surgery: Surgery,
        notes: Notes,
        *,
        allow: frozenset[str] = frozenset(),
        check: Callable[[Rule, Match, Draft], str | None] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.model, self.facts, self.surgery, self.notes = model, facts, surgery, notes
        self.allow, self.check, self.progress = allow, check, progress
        self.opset = model.opset
        self.functions = {(f.domain, f.name): f for f in model.graph.functions}
        self.calls: dict[tuple[str, str], list[tuple[Fact, ...]]] = {}
        self.rules: dict[tuple[str, str], list[Prepared]] = {}
        self.folder: Folder | None = None

    def run(self, rules: Sequence[Rule], *, fold: int | None, keep_misses: bool = True) -> int:
        """Sweep until nothing changes; gives the number of rewrites.

        Args:
            rules: Tried in order at each node; the first that fires wins.
            fold: Largest constant to compute, in bytes; None leaves all but shape arithmetic.
            keep_misses: Record the nearest misses of the last sweep.

        Raises:
            SettleError: A rule keeps firing.
            ModelError: The graph has a cycle.
        """
        self.rules = {}
        for rule in rules:
            prepared = Prepared(rule, Matcher(rule.match))
            for root in prepared.matcher.roots:
                self.rules.setdefault(root, []).append(prepared)
        self.folder = Folder(self.facts, fold)
        total = 0
        last: Counter[str] = Counter()
        with _collector_paused():
            for count in range(MAX_SWEEPS):
                before = len(self.notes.changes)
                self.notes.misses.clear()
                if self.progress:
                    self.progress(f"sweep {count + 1}")
                quiet = self._whole()
                last = Counter(change.rule for change in self.notes.changes[before:])
                total += sum(last.values())
                if quiet and not last:
                    if not keep_misses:
                        self.notes.misses.clear()
                    return total
        rule = last.most_common(1)[0][0] if last else "folding"
        raise SettleError(
            f"rule `{rule}` still fires after {MAX_SWEEPS} sweeps",
            where=str(self.model.path or "model"),
            mend="Give the rule a condition that its own replacement does not meet.",
        )

    def _whole(self) -> bool:
        """One sweep over the model; True where housekeeping changed nothing either."""
        housekept = self.notes.housekeeping.total()
        self.calls.clear()
        self.facts.enter(self.model.graph)
        self._graph(self.model.graph, _Known(None))
        for function in self.model.graph.functions:
            seen = self.calls.get((function.domain, function.name), [])
            for index, tensor in enumerate(function.inputs):
                tensor.fact = meet([call[index] for call in seen if index < len(call)])
            self._graph(function, _Known(None))
        return self.notes.housekeeping.total() == housekept

    def _graph(self, graph: gs.Graph, known: _Known) -> None:
        try:
            order = toposort(graph)
        except ValueError as error:
            raise ModelError(
                f"the graph has a cycle through node `{error}`",
                where=str(self.model.path or "model"),
                mend="Export the model again.",
            ) from None
        pending = list(reversed(order))
        done: list[gs.Node] = []
        while pending:
            node = pending.pop()
            if getattr(node, "gone", False):
                continue
            if self.surgery.is_dead(node):
                self.surgery.release(node)
                self.notes.housekeeping["unread nodes dropped"] += 1
                continue
            new = self._visit(node, graph, known)
            if new is None:
                done.append(node)
            else:
                pending.extend(reversed(new))
        graph.nodes = [node for node in done if not getattr(node, "gone", False)]

    def _visit(self, node: gs.Node, graph: gs.Graph, known: _Known) -> list[gs.Node] | None:
        """The nodes that took this one's place; None where it stays."""
        if not getattr(node, "normal", False):
            dialect.normalise(node, self.opset, self.facts)
            node.normal = True
        if self._housekeep(node, graph):
            return []
        self.facts.infer(node)
        for attribute in node.attrs.values():
            if isinstance(attribute, gs.Graph):
                self._body(node, attribute, known)
        if any(isinstance(v, gs.Graph) for v in node.attrs.values()):
            self._leave_bodies(node)
        elif ((node.domain or ""), node.op) in self.functions:
            self._call(node, self.functions[((node.domain or ""), node.op)])
        if self._fold(node, graph) or self._merge(node, known):
            return []
        for prepared in self.rules.get(_key(node), ()):
            new = self._try(prepared, node, graph)
            if new is not None:
                return new
        return None

    # --- housekeeping ----------------------------------------------------------------------------

    def _housekeep(self, node: gs.Node, graph: gs.Graph) -> bool:
        """Constant nodes become constants, Identity goes; True where the node went."""
        if node.op not in ("Constant", "Identity") or (node.domain or "") not in opsets.STANDARD:
            return False
        out = node.outputs[0]
        if self.surgery.is_output(out):
            return False
        if node.op == "Identity":
            source = node.inputs[0]
            self.surgery.hand_over(node, [(out, source)])
            self.notes.housekeeping["Identity nodes dropped"] += 1
            return True
        array = constant_value(node, self.model)
        if array is None:
            return False
        if isinstance(array, gs.Constant):
            self.surgery.to_constant(out, array._values, graph)
        else:
            self.surgery.to_constant(out, array, graph)
        self.notes.housekeeping["Constant nodes made initializers"] += 1
        return True

    def _fold(self, node: gs.Node, graph: gs.Graph) -> bool:
        assert self.folder is not None
        if any(self.surgery.is_output(t) for t in node.outputs):
            return False
        arrays = self.folder.fold(node)
        if arrays is None:
            return False
        for tensor, array in zip(list(node.outputs), arrays, strict=True):
            self.surgery.to_constant(tensor, array, graph)
        self.notes.housekeeping["constants folded"] += 1
        return True

    def _merge(self, node: gs.Node, known: _Known) -> bool:
        """Let the readers of a node read an equal one that came before."""
        if any(self.surgery.is_output(t) for t in node.outputs):
            return False
        key = self._spelling(node)
        fact = self.facts.of(node.outputs[0])
        twin = None
        if key is not None:
            twin = known.find(key)
        if twin is None and fact.symbolic and len(node.outputs) == 1 and fact.value is not None:
            key_by_value = ("value", fact.dtype, fact.shape, tuple(fact.value.reshape(-1).tolist()))
            twin = known.find(key_by_value)
            if twin is None:
                known.add(key_by_value, node)
        if twin is None or twin is node or getattr(twin, "gone", False):
            if key is not None:
                known.add(key, node)
            return False
        if len(twin.outputs) != len(node.outputs):
            return False
        self.surgery.hand_over(node, list(zip(list(node.outputs), twin.outputs, strict=True)))
        self.notes.housekeeping["equal nodes merged"] += 1
        return True

    def _spelling(self, node: gs.Node) -> tuple[Any, ...] | None:
        """What makes two nodes equal; None for those that are never merged."""
        if node.op in dialect.RANDOM or node.domain not in (None, "", "ai.onnx", dialect.ATEN):
            return None
        attributes = []
        for key, value in node.attrs.items():
            if isinstance(value, (int, float, str, bytes)):
                attributes.append((key, type(value), value))
            elif isinstance(value, (list, tuple)) and all(
                isinstance(v, (int, float, str, bytes)) for v in value
            ):
                attributes.append((key, list, tuple(value)))
            else:
                return None
        inputs = tuple(self._identity(t) for t in node.inputs)
        return (
            node.domain or "",
            node.op,
            len(node.outputs),
            inputs,
            tuple(sorted(attributes, key=str)),
        )

    def _identity(self, tensor: gs.Tensor) -> Any:
        if tensor.is_empty():
            return None
        value = self.facts.of(tensor).concrete
        if value is not None and value.dtype.kind in "iubf":
            return (value.dtype.str, value.shape, value.tobytes())
        return id(tensor)

    # --- bodies and functions --------------------------------------------------------------------

    def _body(self, node: gs.Node, body: gs.Graph, known: _Known) -> None:
        for index, tensor in enumerate(body.inputs):
            tensor.fact = self._body_input(node, index)
        self._graph(body, _Known(known))

    def _body_input(self, node: gs.Node, index: int) -> Fact:
        if node.op == "Loop":
            if index == 0:
                return Fact(INT64, ())
            if index == 1:
                return Fact(onnx.TensorProto.BOOL, ())
            source = node.inputs[index] if index < len(node.inputs) else None
        elif node.op == "Scan":
            source = node.inputs[index] if index < len(node.inputs) else None
        else:
            return UNKNOWN
        return UNKNOWN if source is None else Fact(self.facts.of(source).dtype)

    def _leave_bodies(self, node: gs.Node) -> None:
        bodies = [v for v in node.attrs.values() if isinstance(v, gs.Graph)]
        for index, tensor in enumerate(node.outputs):
            if node.op == "If":
                tensor.fact = meet([self.facts.of(body.outputs[index]) for body in bodies])
            elif node.op == "Loop" and index + 1 < len(bodies[0].outputs):
                tensor.fact = Fact(self.facts.of(bodies[0].outputs[index + 1]).dtype)

    def _call(self, node: gs.Node, function: gs.Function) -> None:
        """The outputs' facts of a call: the body is analysed with this call's operands."""
        facts = tuple(self.facts.of(t) for t in node.inputs)
        self.calls.setdefault((function.domain, function.name), []).append(facts)
        for tensor, fact in zip(function.inputs, facts, strict=False):
            tensor.fact = fact
        for inner in toposort(function):
            if not getattr(inner, "normal", False):
                dialect.normalise(inner, self.opset, self.facts)
                inner.normal = True
            self.facts.infer(inner)
        for tensor, inner_tensor in zip(node.outputs, function.outputs, strict=False):
            tensor.fact = self.facts.of(inner_tensor)

    # --- rules -----------------------------------------------------------------------------------

    def _try(self, prepared: Prepared, node: gs.Node, graph: gs.Graph) -> list[gs.Node] | None:
        """The new nodes where the rule fired."""
        rule = prepared.rule
        outcome = prepared.matcher.at(node, self.facts, self.surgery.is_output)
        if isinstance(outcome, Miss):
            self._miss(rule, node, outcome.matched, outcome.total, outcome.reason)
            return None
        total = prepared.matcher.total
        scope = _Scope(rule, outcome, self.facts, self.surgery.is_output)
        for condition in rule.where:
            verdict, reason = truth(condition, scope)
            if not verdict:
                self._miss(
                    rule, node, total, total, lambda reason=reason: reason, condition.location
                )  # type: ignore[misc]
                return None
        forbidden = self._forbidden(rule)
        if forbidden:
            self._miss(rule, node, total, total, lambda: forbidden)
            return None
        origins = [n.name or n.outputs[0].name for n in outcome.nodes if n.outputs]
        made = {"surgeon.rule": f"{rule.recipe}/{rule.id}", "surgeon.from": ", ".join(origins)}
        draft = self.surgery.draft(graph, node.outputs[0].name, made)
        try:
            pairs = self._draft(rule, outcome, scope, draft)
            reason = _unchanged(node, draft) or (
                self.check(rule, outcome, draft) if self.check is not None else None
            )
            if reason:
                raise Refused(reason)
        except (Refused, opsets.Unavailable) as error:
            text = str(error)
            draft.discard()
            self._miss(rule, node, total, total, lambda: text)
            return None
        location = str(rule.location)
        self.notes.changes.append(
            Change(
                rule=rule.id,
                recipe=rule.recipe,
                why=rule.why,
                exact=rule.exact,
                contract=rule.contract,
                node=describe(node),
                before=tuple(n.op for n in outcome.nodes),
                after=tuple(n.op for n in draft.nodes),
                location=location,
            )
        )
        new = draft.nodes
        self.surgery.hand_over(node, pairs)
        for other, others in draft.also:
            self.surgery.hand_over(other, others)
        return new

    def _draft(
        self, rule: Rule, match: Match, scope: _Scope, draft: Draft
    ) -> list[tuple[gs.Tensor, gs.Tensor]]:
        """Draft the replacement; gives which new tensor takes the place of which output."""
        root = match.root
        names = prepared_outputs(rule)
        if isinstance(rule.replace, BuilderCall) or callable(rule.replace):
            if isinstance(rule.replace, BuilderCall):
                arguments = {
                    key: expression.evaluate(scope)
                    for key, expression in rule.replace.arguments.items()
                }
                result = BUILDERS[rule.replace.name](draft, match, **arguments)
            else:
                result = rule.replace(draft, match)
            results = result if isinstance(result, tuple) else (result,)
            found = dict(zip([n for n in names if n], results, strict=True))
        else:
            instantiate(draft, rule.replace, match, scope)
            found = draft.results
        pairs: list[tuple[gs.Tensor, gs.Tensor]] = []
        taken: set[int] = set()
        drafted = {id(t) for n in draft.nodes for t in n.outputs}
        for name, old in zip(names, root.outputs, strict=False):
            if not name or not old.name:
                continue
            new = found[name]
            if self.surgery.is_output(old) and (id(new) not in drafted or id(new) in taken):
                new = draft.op("Identity", new)
            taken.add(id(new))
            pairs.append((old, new))
        return pairs

    def _forbidden(self, rule: Rule) -> str | None:
        if rule.exact == "approximate" and "approximate" not in self.allow:
            return "it is approximate; allow it with `--allow approximate`"
        if rule.contract and "contract" not in self.allow:
            return f"it changes what the model promises ({rule.contract}); allow it with `--allow contract`"
        return None

    def _miss(
        self,
        rule: Rule,
        node: gs.Node,
        matched: int,
        total: int,
        reason: Callable[[], str],
        location: Any = None,
    ) -> None:
        self.notes.misses.append(
            MissRecord(
                rule.id, rule.recipe, node, matched, total, reason, location or rule.location
            )
        )


def prepared_outputs(rule: Rule) -> tuple[str, ...]:
    """The names of the root's outputs in a rule's pattern, "" for those nobody names."""
    return tuple("" if n == "_" else n for n in rule.match.root.outputs)


def constant_value(node: gs.Node, model: Model) -> Any:
    """What a Constant node holds: a gs.Constant or an array; None for what is no tensor."""
    import numpy as np

    attrs = node.attrs
    value = attrs.get("value")
    if isinstance(value, gs.Constant):
        return value
    for key, dtype in (
        ("value_int", np.int64),
        ("value_ints", np.int64),
        ("value_float", np.float32),
        ("value_floats", np.float32),
    ):
        if key in attrs and not isinstance(attrs[key], gs.Node.AttributeRef):
            return np.asarray(attrs[key], dtype)
    return None


def meet(facts: Sequence[Fact]) -> Fact:
    """What holds whichever of the facts does."""
    if not facts:
        return UNKNOWN
    first = facts[0]
    dtype = first.dtype if all(f.dtype == first.dtype for f in facts) else 0
    shape = first.shape if all(f.shape == first.shape for f in facts) else None
    return Fact(dtype, shape)


def _key(node: gs.Node) -> tuple[str, str]:
    domain = node.domain or ""
    return ("" if domain == "ai.onnx" else domain, node.op)


def _unchanged(root: gs.Node, draft: Draft) -> str | None:
    """A reason to refuse a replacement that says again what is there."""
    if len(draft.nodes) != 1:
        return None
    new = draft.nodes[0]
    same = (
        _key(new) == _key(root)
        and len(new.inputs) == len(root.inputs)
        and all(
            a is b or (a.is_empty() and b.is_empty())
            for a, b in zip(new.inputs, root.inputs, strict=True)
        )
        and dict(new.attrs) == dict(root.attrs)
    )
    return "it has this form already" if same else None


class _Known:
    """Nodes by what they compute, in a scope and those around it."""

    def __init__(self, outer: _Known | None) -> None:
        self.outer, self.nodes = outer, {}  # type: ignore[var-annotated]

    def find(self, key: tuple[Any, ...]) -> gs.Node | None:
        scope: _Known | None = self
        while scope is not None:
            if key in scope.nodes:
                return scope.nodes[key]
            scope = scope.outer
        return None

    def add(self, key: tuple[Any, ...], node: gs.Node) -> None:
        self.nodes[key] = node


class _Scope(dict[str, Any]):
    """Names in expressions: values, attributes, and `let`s computed when they are first asked."""

    def __init__(
        self, rule: Rule, match: Match, facts: Facts, is_output: Callable[[gs.Tensor], bool]
    ) -> None:
        super().__init__(match.attributes)
        for name, tensor in match.values.items():
            views = match.views.get(name, ())
            self[name] = (
                None if tensor is None else CapturedValue(tensor, facts, is_output, tuple(views))
            )
        for name, tensors in match.rests.items():
            self[name] = [CapturedValue(t, facts, is_output) for t in tensors]
        self._lets: Mapping[str, Any] = dict(rule.let)

    def __missing__(self, name: str) -> Any:
        value = self._lets[name].evaluate(self)
        self[name] = value
        return value


@contextmanager
def _collector_paused() -> Iterator[None]:
    """The cyclic collector finds nothing here and costs a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
