"""Runs one case: every check of a case, each problem in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import onnx

from surgeon.assumptions import parse_assumptions
from surgeon.cases.names import see_sizes_named, see_values_named
from surgeon.cases.nowhere import asks_little, nowhere
from surgeon.cases.numbers import Promise, disagreements
from surgeon.cases.reading import Case, Refusal
from surgeon.cases.renaming import Names, in_other_words
from surgeon.cases.structure import difference
from surgeon.changing import MADE_NOWHERE
from surgeon.errors import RecipeError, SurgeonError
from surgeon.extending import extended
from surgeon.firing import FAILED
from surgeon.isolation import unknown_operators
from surgeon.meanings import Meanings
from surgeon.model import Model
from surgeon.recipe import NamesStep, Recipe, Rule, RulesStep, granted
from surgeon.report import Report
from surgeon.returned import BACK
from surgeon.runtime import Runner
from surgeon.surgery import apply
from surgeon.verify.originals import is_declared
from surgeon.verify.pair import is_plain, open_runner

RENAMINGS = (0, 7)  # seeds
PRINTED = 16  # elements of a constant


@dataclass(frozen=True, slots=True)
class _Applied:
    """One run of the recipe; `whole` is the model with what it left to its caller."""

    model: onnx.ModelProto
    report: Report
    whole: onnx.ModelProto

    @property
    def fired(self) -> Counter[str]:
        return Counter(change.rule for change in self.report.changes)


def problems_of(
    case: Case,
    recipe: Recipe,
    *,
    thorough: bool = True,
    renamings: Sequence[int] = RENAMINGS,
) -> Iterator[str]:
    """What is wrong with a case, at each of its opsets.

    Args:
        case: The case.
        recipe: What it is a case of.
        thorough: Whether each rewrite is compared with what it replaces, as `apply` does.
        renamings: Of names and order, which must not matter; at the first opset.

    Raises:
        RecipeError: The case itself is wrong: its text is no model, say.
    """
    met: list[str] = []
    see_values_named(case)
    for index, opset in enumerate(case.opsets):
        try:
            seeds = renamings if index == 0 else ()
            for problem in _at(case, recipe, opset, met if thorough else None, seeds):
                yield f"{problem} (opset {opset})" if len(case.opsets) > 1 else problem
        except RecipeError:
            raise
        except SurgeonError as error:
            yield f"Broken: {error.what}"
        except MemoryError:
            yield "Broken: there is not enough memory; give smaller `sizes`"
    if thorough and case.differs is not None and not any(case.differs in each for each in met):
        yield f"Silent: `apply` refuses no rewrite because {case.differs!r}"


def _at(
    case: Case,
    recipe: Recipe,
    opset: int | None,
    met: list[str] | None,
    seeds: Sequence[int],
) -> Iterator[str]:
    """What is wrong at one opset.

    Args:
        case: The case.
        recipe: What it is a case of.
        opset: For its model; None for the one it declares.
        met: Takes why rewrites are refused that differ from what they replace; None where they are
            not compared.
        seeds: Of the renamings; one opset is enough for them.
    """
    before, extends = case.before.model(case.values, opset), recipe.remakes
    if extends:  # what follows is about the model that is remade, which no run remakes again
        remade = _Remade(case, recipe, before)
        yield from remade.problems
        if remade.model is None:
            return
        case, before = remade.case, remade.model
        recipe = recipe._replace(extensions=(), changes=())
    see_sizes_named(case, before)
    if case.refuses is not None:
        yield from _refusal(case, case.refuses, recipe, before)
    first = _Applied(*_run(case, recipe, before, dict(case.shape), check=met is not None))
    if met is not None and first.report.refusals:
        reasons = {f"`{r.rule}` at {r.node}: {r.reason}" for r in first.report.refusals}
        met.extend(reasons)
        for why in sorted(reasons):
            if case.differs is None or case.differs not in why:
                yield f"Wrong: {why}"
        first = _apply(case, recipe, before)
    yield from _failures(first)
    if BACK in first.report.remarks:
        yield f"Restless: {BACK}"
        return
    if case.fires_any:
        case = replace(case, fires=first.fired)
    yield from _counts(case, recipe, first)
    changed = first.model.SerializeToString() != before.SerializeToString()
    tidied = case.fires_any and (extends or (changed and _tidies(recipe)))
    if not first.report.changes and not tidied:
        if case.fires_any:
            yield "Missing: no rule fires"
        if changed:
            yield "Wrong: nothing fired, and the model is not what it was"
        return
    if first.fired != Counter(case.fires):
        return
    if case.after is not None:
        expected = case.after.model(case.values)
        if found := difference(first.model, expected):
            yield f"Wrong: the result is not `after`: {found}\n{_text(first.model)}"
    again = _apply(case, recipe, first.model)
    if again.report.changes:
        yield f"Restless: a second run fires {_list(again.fired)}"
    if BACK in again.report.remarks:
        yield f"Restless: in a second run {BACK}"
    problems = list(_loads_and_agrees(case, recipe, before, first))
    named = any(isinstance(step, NamesStep) and step.names for step in recipe.steps)
    for seed in seeds if not named else ():
        problems = problems or list(_in_other_words(case, recipe, before, seed))
    yield from problems


class _Remade:
    """A model with what a recipe changes in it and joins to it, and what a case says of that.

    Attributes:
        model: None where there is no more to see.
        case: What is left of it: what the steps are to do.
        problems: What is wrong.
    """

    def __init__(self, case: Case, recipe: Recipe, before: onnx.ModelProto) -> None:
        asked = {rule.id for rule in recipe.changes}
        refusal = case.refuses if case.refuses and case.refuses.rule in asked else None
        self.model: onnx.ModelProto | None = None
        self.case, self.problems = case, list[str]()
        try:
            told = {refusal.rule} if refusal is not None else case.fires.keys()
            asking = tuple(
                rule._replace(optional=rule.optional and rule.id not in told)
                for rule in recipe.changes
            )
            recipe = recipe._replace(changes=asking)  # which says why there is no place
            remade, changes, _ = extended(Model(before), [recipe], case.allow)
        except RecipeError as error:
            if refusal is None:
                raise
            rule = next(rule for rule in recipe.changes if rule.id == refusal.rule)
            if error.what.endswith(MADE_NOWHERE) and not asks_little(rule):
                self.problems.extend(nowhere(rule, refusal))
            elif refusal.because not in error.what:
                said = f"`{refusal.rule}` does not say {refusal.because!r}"
                self.problems.append(f"Silent: {said}, but: {error.what}")
            return
        if refusal is not None:
            self.problems.append(f"Noisy: `{refusal.rule}` is made")
            return
        self.model = remade.to_proto()
        made = Counter(change.rule for change in changes if change.rule in asked)
        wanted = {name: count for name, count in case.fires.items() if name in asked}
        for name in asked if case.fires else ():
            if made[name] != wanted.get(name, 0):
                word = "Missing" if made[name] < wanted.get(name, 0) else "Noisy"
                said = f"`{name}` is made {made[name]} times, not {wanted.get(name, 0)}"
                self.problems.append(f"{word}: {said}")
        if asked and case.after is None:
            self.problems.append(
                "Unchecked: what a change makes is compared with nothing; say with `after` what "
                "must come out"
            )
        rest = {name: count for name, count in case.fires.items() if name not in asked}
        anything = case.fires_any or bool(wanted and not rest)
        self.case = replace(case, fires=rest, fires_any=anything)


def _tidies(recipe: Recipe) -> bool:
    """Whether the recipe changes models without a rule."""
    return any(not isinstance(step, RulesStep) or step.tidy for step in recipe.steps)


def _refusal(
    case: Case, refusal: Refusal, recipe: Recipe, before: onnx.ModelProto
) -> Iterator[str]:
    """The rule, tried by itself, must miss for the reason given."""
    rule = _rule(recipe, refusal.rule)
    alone = Recipe(recipe.name, steps=(RulesStep((rule,)),), allow=recipe.allow)
    tried = _apply(case, alone, before)
    yield from _failures(tried)
    if tried.report.changes:
        yield f"Noisy: `{rule.id}` fires, at {tried.report.changes[0].node} ({rule.location})"
        return
    reasons = [miss.reason for miss in tried.report.misses if miss.rule == rule.id]
    if not reasons:
        yield from nowhere(rule, refusal)
    elif not any(refusal.because in reason for reason in reasons):
        said = "; ".join(dict.fromkeys(reasons))
        yield f"Silent: `{rule.id}` does not say {refusal.because!r}, but: {said}"


def _failures(applied: _Applied) -> Iterator[str]:
    """A rule may refuse, and not fail: not even where it fires somewhere else."""
    for failure in applied.report.failures:
        if failure.endswith(FAILED):
            yield f"Broken: {failure.removesuffix(FAILED)}"


def _counts(case: Case, recipe: Recipe, applied: _Applied) -> Iterator[str]:
    wanted, fired = Counter(case.fires), applied.fired
    for name in sorted({*wanted, *fired}):
        if fired[name] == wanted[name]:
            continue
        rule = _rule(recipe, name)
        word = "Missing" if fired[name] < wanted[name] else "Noisy"
        text = f"{word}: `{name}` fires {fired[name]} times, not {wanted[name]} ({rule.location})"
        misses = [str(miss) for miss in applied.report.misses if miss.rule == name]
        yield "; ".join([text, *(misses[:2] if word == "Missing" else ())])


def _loads_and_agrees(
    case: Case, recipe: Recipe, before: onnx.ModelProto, applied: _Applied
) -> Iterator[str]:
    if own := _own_operators(recipe, applied.model):
        unsuited = Meanings(recipe.functions).unsuited(applied.model)
        if unsuited:
            yield f"Unchecked: {unsuited[0]}"
        elif case.after is None:
            names = ", ".join(own)
            yield f"Unchecked: nothing here runs {names}; say with `after` what must come out"
        return
    result = _runner(applied.whole, recipe)
    if isinstance(result, str):
        yield result
        return
    if not is_plain(applied.model) and case.refuses is None:
        yield "Broken: the result holds operators that no runtime knows"
    yield from _disagreements(case, recipe, before, applied, result)


def _own_operators(recipe: Recipe, model: onnx.ModelProto) -> list[str]:
    """Operators of a model that the recipe declares, and that nothing here runs."""
    unknown = unknown_operators(Meanings(recipe.functions).told(model))
    return [f"`{o}`" for o in unknown if is_declared(o, recipe.custom)]


def _in_other_words(
    case: Case, recipe: Recipe, before: onnx.ModelProto, seed: int
) -> Iterator[str]:
    """Names and order must not matter: the same rules fire, and the numbers are the same."""
    other, names = in_other_words(before, seed)
    shape = {names.get(name, name): dims for name, dims in case.shape.items()}
    applied = _Applied(*_run(case, recipe, other, shape))
    if applied.fired != Counter(case.fires):
        yield f"Fickle: renamed and in another order, {_list(applied.fired)} fires"
        return
    if _own_operators(recipe, applied.model):
        return
    result = _runner(applied.whole, recipe)
    if isinstance(result, str):
        yield f"{result} (renamed and in another order)"
        return
    renamed = _Renamed(result, names)
    for problem in _disagreements(case, recipe, before, applied, renamed):
        yield f"{problem} (renamed and in another order)"


def _disagreements(
    case: Case, recipe: Recipe, before: onnx.ModelProto, applied: _Applied, result: Runner
) -> list[str]:
    sizes = parse_assumptions(Model(before), case.shape, case.assume).sizes
    return disagreements(
        case,
        Meanings(recipe.functions).told(before),
        result,
        _promise(case, recipe, applied),
        means=None if case.means is None else case.means.model(case.values),
        hints={**sizes, **case.sizes},
    )


class _Renamed:
    """Runs a model under the names of another."""

    def __init__(self, inner: Runner, names: Names) -> None:
        self.inner, self.names = inner, names

    def run(self, feeds: object, outputs: object = None) -> dict[str, object]:
        assert isinstance(feeds, dict)
        assert isinstance(outputs, list)
        fed = {self.names[name]: array for name, array in feeds.items()}
        found = self.inner.run(fed, [self.names[name] for name in outputs])
        return {name: found[self.names[name]] for name in outputs}


def _runner(model: onnx.ModelProto, recipe: Recipe) -> Runner | str:
    try:
        onnx.checker.check_model(model, full_check=is_plain(model))
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return f"Broken: ONNX's checker refuses the result: {str(error).strip().splitlines()[0]}"
    try:
        return open_runner(Meanings(recipe.functions).told(model))
    except SurgeonError as error:
        return f"Broken: the result does not load: {error.what}"


def _promise(case: Case, recipe: Recipe, applied: _Applied) -> Promise:
    changes = applied.report.changes  # a step that is told as one has no rule
    exact = "bit" if all(change.exact == "bit" for change in changes) else "rounding"
    rules = [rule for rule in recipe.rules if rule.id in applied.fired]
    fired = {(rule.recipe, rule.id): applied.fired[rule.id] for rule in rules}
    tolerance = case.tolerance or granted(rules, fired)
    return Promise(exact, tolerance, extends=any(change.contract for change in changes))


def _apply(case: Case, recipe: Recipe, model: onnx.ModelProto) -> _Applied:
    return _Applied(*_run(case, recipe, model, dict(case.shape)))


def _run(
    case: Case,
    recipe: Recipe,
    model: onnx.ModelProto,
    shape: dict[str, tuple[int | str, ...]],
    *,
    check: bool = False,
) -> tuple[onnx.ModelProto, Report, onnx.ModelProto]:
    result = apply(
        model,
        recipe,
        shape=shape,
        assume=case.assume,
        allow=case.allow,
        verify=False,
        check=check,
        every_miss=True,
    )
    made = result.model.to_proto()
    return made, result.report, result.handed.put_back(made)


def _rule(recipe: Recipe, name: str) -> Rule:
    return next(rule for rule in recipe.rules if rule.id == name)


def _list(fired: Counter[str]) -> str:
    return ", ".join(f"`{name}` x{count}" for name, count in sorted(fired.items())) or "no rule"


def _text(model: onnx.ModelProto) -> str:
    """The graph of a model in ONNX's text syntax, with large constants as inputs."""
    graph = onnx.GraphProto()
    graph.CopyFrom(model.graph)
    for tensor in list(graph.initializer):
        dims = list(tensor.dims)
        if math.prod(dims) > PRINTED:
            kind = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, dims)
            graph.input.append(kind)
            graph.initializer.remove(tensor)
    text: str = onnx.printer.to_text(graph)
    return text
