"""One rule at one node: match, ask, draft, check; then fire, or say why not."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import onnx_graphsurgeon as gs

from surgeon import dims, opsets
from surgeon.builders import BUILDERS
from surgeon.candidates import Prepared, operator_of
from surgeon.captured import CapturedValue, dtype_name
from surgeon.dialect import ATEN
from surgeon.errors import Location, RecipeError
from surgeon.expressions import Expression, truth, why_not
from surgeon.facts import Fact, Facts
from surgeon.match import Match, Miss
from surgeon.meanings import full_name
from surgeon.model import describe
from surgeon.notation import Pattern
from surgeon.recipe import BuilderCall, Rule
from surgeon.report import Change, MissRecord, Notes, Refusal
from surgeon.rewrite import Draft, Refused, Surgery
from surgeon.template import NotPlain, instantiate, plain
from surgeon.typed import NotOfType

Pairs = list[tuple[gs.Tensor, gs.Tensor]]
Check = Callable[[Rule, Match, Draft, Pairs], str | None]
_NO_NAMES: Mapping[str, Any] = {}
_WAITING = {
    "approximate": "it is approximate; allow it with `--allow approximate`",
    "contract": "it changes what the model promises ({}); allow it with `--allow contract`",
}

ALREADY = "it has this form already"
# ends what is told of a rule that raised what none should
FAILED = "; mend the rule, or report it if it is of surgeon"


class Firing:
    """Tries rules.

    Args:
        facts: What is known.
        surgery: The writer of wiring.
        notes: Takes changes and misses.
        allow: `approximate`, `contract`: kinds of rules that may fire.
        check: Compares a match with its draft; gives the reason to refuse, or None.
    """

    def __init__(
        self,
        facts: Facts,
        surgery: Surgery,
        notes: Notes,
        *,
        allow: frozenset[str],
        check: Check | None,
    ) -> None:
        self.facts, self.surgery, self.notes = facts, surgery, notes
        self.allow, self.check = allow, check
        self.telling = True  # whether misses are noted; not where another sweep is sure to follow

    def at(self, prepared: Prepared, node: gs.Node, graph: gs.Graph) -> list[gs.Node] | None:
        """The nodes that took the root's place where the rule fired; else None, and a miss."""
        rule, total = prepared.rule, prepared.matcher.total
        outcome = prepared.matcher.at(node, self.facts, self.surgery.is_output)
        if isinstance(outcome, Miss):
            if self.telling:
                self._miss(rule, node, (outcome.matched, total), outcome.reason)
            return None
        outcome, scope, false = self._asked(prepared, node, outcome)
        if false is not None:
            if self.telling:
                self._miss(
                    rule, node, (total, total), partial(why_not, false, scope), false.location
                )
            return None
        draft = self.surgery.draft(graph, node.outputs[0].name)
        refusal, waits, place = None, "", rule.location
        try:
            pairs = self._draft(rule, outcome, scope, draft)
            refusal = _unchanged(node, draft) or self._forbidden(rule)
            bodies = _bodies(draft)
            refusal = refusal or self._spared(outcome, draft, pairs) or _shared(outcome, bodies)
            if refusal is None and (refusal := self._unlike(draft, pairs)):
                told = rule.id, rule.recipe, describe(node), refusal
                self.notes.refuse(Refusal(*told, {}, "proven", -1, math.inf, math.inf))
            if refusal is None and (waits := rule.waits(self.allow)):
                refusal = _WAITING[waits].format(rule.contract)
            if refusal is None and self.check is not None:
                read = [(o, n) for o, n in pairs if o.outputs or self.surgery.is_output(o)]
                refusal = self.check(rule, outcome, draft, read or pairs)  # the others are anything
                if refusal is not None and rule.contract:
                    self.surgery.unkept.update((id(old), old) for old, _ in pairs)
        except (Refused, NotOfType, opsets.Unavailable, dims.TooLarge) as error:
            refusal, place = str(error), _place(rule, error)
        except RecipeError:  # the recipe itself is wrong, at whatever node
            raise
        except Exception as error:  # a rule at fault must not end the run over a whole model
            refusal = f"the rule failed: {type(error).__name__}: {error}"
            self.notes.failures.append(
                f"rule `{rule.id}` ({rule.location}) failed at {describe(node)}, which stays as it "
                f"was: {type(error).__name__}: {error}{FAILED}"
            )
        if refusal is not None:
            draft.discard()
            if self.telling:
                why = partial(str, refusal)
                self._miss(rule, node, (total, total), why, place, waits=waits, drafted=True)
            return None
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
                location=str(rule.location),
            )
        )
        new = draft.nodes
        origins = [n.name or n.outputs[0].name for n in outcome.nodes if n.outputs]
        made = {"surgeon.rule": f"{rule.recipe}/{rule.id}", "surgeon.from": ", ".join(origins)}
        for drafted in new:
            drafted.made = made
        for key in _moved(node, bodies):  # they are the new node's, and stay as they are
            del node.attrs[key]
        self.surgery.removed.cause = f"{rule.recipe}/{rule.id}"
        self.surgery.hand_over(node, pairs)
        for other, others in draft.also:
            self.surgery.hand_over(other, others)
        return new

    def unmet(self, prepared: Prepared, node: gs.Node) -> str | None:
        """Why a node is not what a rule looks for, in words; None where it is."""
        found = prepared.matcher.at(node, self.facts, self.surgery.is_output)
        if isinstance(found, Miss):
            return found.reason()
        _, scope, false = self._asked(prepared, node, found)
        return None if false is None else why_not(false, scope)

    def _asked(
        self, prepared: Prepared, node: gs.Node, match: Match
    ) -> tuple[Match, Mapping[str, Any], Expression | None]:
        """The match with its names, and the first condition that does not hold, if one does not.

        Where the pattern leaves the order of operands open, that in which all hold, if one is.
        """
        rule, matcher = prepared.rule, prepared.matcher
        if prepared.asks_nothing:
            return match, _NO_NAMES, None
        scope = self._scope(rule, match)
        false = _false(rule, scope)
        if false is not None and matcher.turns:
            for other in matcher.others(node, self.facts, self.surgery.is_output):
                turned = self._scope(rule, other)
                if _false(rule, turned) is None:
                    return other, turned, None
        return match, scope, false

    def _scope(self, rule: Rule, match: Match) -> Mapping[str, Any]:
        return _Scope(rule, match, self.facts, self.surgery.is_output)

    def _draft(self, rule: Rule, match: Match, scope: Mapping[str, Any], draft: Draft) -> Pairs:
        """Draft the replacement; gives which new tensor takes the place of which output."""
        replace = rule.replace
        result: Any = None
        if isinstance(replace, Pattern):
            instantiate(draft, replace, rule.match, match, scope)
        elif isinstance(replace, BuilderCall):
            arguments = {
                key: plain(expression.evaluate(scope), key)
                for key, expression in replace.arguments.items()
            }
            result = BUILDERS[replace.name](draft, match, **arguments)
        else:
            result = _of_function(replace, draft, match)
        names = tuple("" if n == "_" else n for n in rule.match.root.outputs)
        found = draft.results
        if not isinstance(replace, Pattern):
            results = result if isinstance(result, tuple) else (result,)
            named = [name for name in names if name]
            there = [name for name in names[: len(match.root.outputs)] if name]
            # of a node with fewer outputs than the pattern names, these are enough
            wanted = there if len(results) == len(there) else named
            if len(results) != len(wanted):
                raise TypeError(f"it gave {len(results)} tensors for {len(wanted)} outputs")
            found = dict(zip(wanted, results, strict=True))
        pairs: Pairs = []
        taken: set[int] = set()
        drafted = {id(t) for n in draft.nodes for t in n.outputs}
        for name, old in zip(names, match.root.outputs, strict=False):
            if not name or not old.name:
                continue
            new = found[name]
            if self.surgery.is_output(old) and (id(new) not in drafted or id(new) in taken):
                new = draft.op("Identity", new)
            taken.add(id(new))
            pairs.append((old, new))
        return pairs

    def _forbidden(self, rule: Rule) -> str | None:
        if rule.since_opset is not None and self.facts.opset < rule.since_opset:
            return f"it needs opset {rule.since_opset}; the model has {self.facts.opset}"
        return None

    def _spared(self, match: Match, draft: Draft, pairs: Pairs) -> str | None:
        """A reason to refuse what would touch a node that is to stay, or leave it unread."""
        others = [other for other, _ in draft.also]
        gone = next(filter(self.surgery.spared.holds, (*match.nodes, *others)), None)
        if gone is None:
            taken = [pair for _, more in draft.also for pair in more]
            gone = self.surgery.parted([match.root, *others], [*pairs, *taken])
        return None if gone is None else f"{describe(gone)} is to stay as it is"

    def _unlike(self, draft: Draft, pairs: Pairs) -> str | None:
        """A reason to refuse an operator whose promise to keep shapes is not true here."""
        if not self.facts.same_shape:
            return None
        was = {id(new): self.facts.of(old) for old, new in pairs}
        for node in draft.nodes:
            name = full_name(node.domain or "", node.op)
            if name not in self.facts.same_shape or not node.inputs:
                continue
            given, gives = self.facts.of(node.inputs[0]), was.get(id(node.outputs[0]))
            if gives is not None and (said := _other_form(given, gives)):
                return f"`same_shape` says that `{name}` keeps shapes and types, and it {said}"
        return None

    def _miss(
        self,
        rule: Rule,
        node: gs.Node,
        found: tuple[int, int],
        reason: Callable[[], str],
        location: Location | None = None,
        *,
        waits: str = "",
        drafted: bool = False,
    ) -> None:
        # worth reading: the whole pattern was found, or the node has to go
        if found[0] >= found[1] or node.domain == ATEN or self.notes.every:
            told = rule.id, rule.recipe, node, *found, reason, location or rule.location
            self.notes.misses.append(MissRecord(*told, waits, drafted))


def _false(rule: Rule, scope: Mapping[str, Any]) -> Expression | None:
    """The first condition of a rule that does not hold, if one does not."""
    for condition in rule.where:  # no generator: most rules fail here, at each node
        if not truth(condition, scope):
            return condition
    return None


def _other_form(given: Fact, gives: Fact) -> str | None:
    """How what an operator gives is proven to be unlike what it is given."""
    dtypes = given.dtype, gives.dtype
    if all(dtypes) and dtypes[0] != dtypes[1]:
        return f"is given {dtype_name(dtypes[0])} here and gives {dtype_name(dtypes[1])}"
    if given.shape is None or gives.shape is None:
        return None
    pairs = zip(given.shape, gives.shape, strict=False)
    if len(given.shape) == len(gives.shape) and all(
        dims.equal(*pair) is not False for pair in pairs
    ):
        return None
    shapes = (f"[{', '.join(map(str, each.shape or ()))}]" for each in (given, gives))
    return "is given {} here and gives {}".format(*shapes)


def _bodies(draft: Draft) -> list[int]:
    """The bodies of new nodes, by identity: those that are carried over are the root's too."""
    return [id(v) for n in draft.nodes for v in n.attrs.values() if isinstance(v, gs.Graph)]


def _moved(root: gs.Node, bodies: Collection[int]) -> list[str]:
    """The attributes of a root that are bodies of new nodes too."""
    return [key for key, value in root.attrs.items() if id(value) in bodies] if bodies else []


def _shared(match: Match, bodies: Collection[int]) -> str | None:
    """A reason to refuse where a body would belong to two nodes."""
    if not bodies:
        return None
    others = [id(v) for n in match.nodes if n is not match.root for v in n.attrs.values()]
    if len(bodies) > len(set(bodies)) or not set(bodies).isdisjoint(others):
        return "a body can be carried over once, and from the last node of the pattern"
    return None


def _place(rule: Rule, error: Exception) -> Location:
    """Where a rule says what could not be written: what it computes, if that is at fault."""
    if not isinstance(error, NotPlain):
        return rule.location
    arguments = rule.replace.arguments if isinstance(rule.replace, BuilderCall) else {}
    told = {**arguments, **dict(rule.let)}.get(error.name)
    return rule.location if told is None else told.location


def _of_function(function: Callable[[Draft, Match], Any], draft: Draft, match: Match) -> Any:
    """What a rule's function in Python gives: a tensor, or several.

    Raises:
        TypeError, ValueError, LookupError: It gives something else, reads what it replaces, or
            makes a node of no operator or with no attribute of it.
    """
    try:
        result = function(draft, match)
    except opsets.Unknown as error:  # a slip of the function's, and nothing about the model
        raise LookupError(f"{error}; with a domain of its own it may be a plugin") from None
    except opsets.UnknownAttribute as error:
        raise LookupError(str(error)) from None
    given = result if isinstance(result, tuple) else (result,)
    for each in given:
        if not isinstance(each, gs.Tensor):
            raise TypeError(f"its function gave {type(each).__name__}, not a tensor that `op` made")
    replaced = {id(tensor) for tensor in match.root.outputs}
    if any(id(t) in replaced for t in (*given, *(t for n in draft.nodes for t in n.inputs))):
        raise ValueError("what its function gives is made of the value that it replaces")
    return result


def _unchanged(root: gs.Node, draft: Draft) -> str | None:
    """A reason to refuse a replacement that says again what is there."""
    if len(draft.nodes) != 1:
        return None
    new = draft.nodes[0]
    same = (
        operator_of(new) == operator_of(root)
        and len(new.inputs) == len(root.inputs)
        and all(
            a is b or (a.is_empty() and b.is_empty())
            for a, b in zip(new.inputs, root.inputs, strict=True)
        )
        and dict(new.attrs) == dict(root.attrs)
        and len(new.outputs) <= len(root.outputs)
    )
    return ALREADY if same else None


class _Scope(dict[str, Any]):
    """Names in expressions: values, attributes, and `let`s computed when they are first asked."""

    __slots__ = ("_facts", "_is_output", "_lets", "_match")

    def __init__(
        self, rule: Rule, match: Match, facts: Facts, is_output: Callable[[gs.Tensor], bool]
    ) -> None:
        super().__init__(match.attributes)
        self._match, self._facts, self._is_output = match, facts, is_output
        self._lets = rule.let

    def __missing__(self, name: str) -> Any:
        match = self._match
        value: Any
        if name in match.values:
            tensor, views = match.values[name], tuple(match.views.get(name, ()))
            value = None
            if tensor is not None:
                value = CapturedValue(tensor, self._facts, self._is_output, views)
        elif name in match.rests:
            value = [CapturedValue(t, self._facts, self._is_output) for t in match.rests[name]]
        else:
            value = dict(self._lets)[name].evaluate(self)
        self[name] = value
        return value
