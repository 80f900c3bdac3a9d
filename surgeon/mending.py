"""What to do where two files do not compare as hoped: told beside the verdict, and never done."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx

from surgeon.errors import SurgeonError, few
from surgeon.nested import every_node
from surgeon.provenance import history, recipes_of
from surgeon.recipe import Recipe, bundled
from surgeon.recipe.rules import Rule, granted
from surgeon.verify import Verdict
from surgeon.verify.compare import TOLERANCES
from surgeon.verify.originals import is_declared
from surgeon.verify.precision import coarse_outputs

_OF_LEVELS = 0.1  # of the spread: what eight bits may well be off


def with_mend(
    verdict: Verdict,
    models: tuple[onnx.ModelProto, onnx.ModelProto],
    plans: Sequence[Recipe] = (),
    *,
    searched: bool = False,
) -> Verdict:
    """The verdict, with what helps: a recipe, a tolerance that a log speaks of, or a search.

    Args:
        verdict: On the two.
        models: The first and the second.
        plans: The recipes that were named for the comparison.
        searched: Whether the first value at which they part is looked for anyway.
    """
    if verdict.status == "broken" and verdict.custom_operators:
        return replace(
            verdict, mend=_for_operators(verdict.custom_operators, models[1], verdict.mend)
        )
    if verdict.status == "differs" and verdict.original == "differs":
        return replace(
            verdict, mend="A does not give what was recorded either: record anew, by `--record`."
        )
    if verdict.status == "differs":
        search = "`surgeon verify A B --bisect` finds the first value at which they part."
        search = "" if searched else search
        rounds = " ".join(filter(None, [_for_types(verdict, models), search]))
        return replace(verdict, mend=_for_error(verdict, models, plans) or rounds)
    return verdict


def _for_operators(operators: Sequence[str], model: onnx.ModelProto, otherwise: str) -> str:
    """Which recipe says what custom operators compute, or that the file may hold them."""
    found = [
        name
        for name, path in bundled().items()
        if (custom := Recipe.load(path).custom)
        and all(is_declared(operator, custom) for operator in operators)
    ]
    if found:
        return f"Name the recipe that declares it: `--recipe {found[0]}`."
    own = [name for name in recipes_of(model.metadata_props) if name not in bundled()]
    if own:
        return f"{otherwise[:-1]}; B's log names the recipe {few(own)}."
    return otherwise


def _for_error(
    verdict: Verdict, models: tuple[onnx.ModelProto, onnx.ModelProto], plans: Sequence[Recipe]
) -> str:
    """The tolerance that was allowed when one was made of the other, as the logs have it; or ""."""
    runs = [history(model.metadata_props) or [] for model in models]
    apart = [run for mine, its in (runs, runs[::-1]) for run in mine if run not in its]
    fired = _fired(apart)
    rules = _rules({recipe for recipe, _ in fired}, plans)
    loose = [
        f"{rule.recipe}/{rule.id}"
        for rule in rules
        if rule.exact == "approximate" and fired[rule.recipe, rule.id]
    ]
    limit = granted(rules, fired) or 0.0
    bad = [check for each in verdict.comparisons for check in each.outputs if not check.agrees]
    largest = max((check.max_relative for check in bad), default=0.0)
    if not loose or any(check.fault for check in bad) or largest > limit:
        return ""
    share = f"{limit:.3g}"
    return (
        f"A log names rules that approximate ({few(loose)}), and their bound of {share} of "
        f"an output's spread holds: where that is meant, say `--tolerance {share}`."
    )


def _for_types(verdict: Verdict, models: tuple[onnx.ModelProto, onnx.ModelProto]) -> str:
    """The tolerance to ask for where one model rounds and the other does not; or ""."""
    bad = [check for each in verdict.comparisons for check in each.outputs if not check.agrees]
    largest = max((check.max_relative for check in bad), default=math.inf)
    if any(check.fault for check in bad):
        return ""
    for rounds, share, said in (
        (_is_quantised, _OF_LEVELS, "is quantised, and {} is not"),
        (coarse_outputs, TOLERANCES["float16"][0], "computes in halves, and {} does not"),
    ):
        one, other = (bool(rounds(model)) for model in models)
        if one != other and largest <= share:
            names = "AB" if one else "BA"
            return (
                f"{names[0]} {said.format(names[1])}: say how far off it may be, "
                f"`--tolerance {share:g}` at the most, and best on real inputs, `--data`."
            )
    return ""


def _is_quantised(model: onnx.ModelProto) -> bool:
    """Whether it has operators of levels, ONNX's or onnxruntime's."""
    names = (node.op_type for node in every_node(model.graph.node))
    return any("QuantizeLinear" in name or name.startswith("QLinear") for name in names)


def _fired(runs: Iterable[Mapping[str, Any]]) -> Counter[tuple[str, str]]:
    """How often each rule fired, as (recipe, id), in runs of a log."""
    found: Counter[tuple[str, str]] = Counter()
    for run in runs:
        rules = run.get("rules", {})
        for name, times in rules.items() if isinstance(rules, dict) else ():
            recipe, _, rule = str(name).partition("/")
            found[recipe, rule] += times if isinstance(times, int) and times > 0 else 0
    return found


def _rules(names: Iterable[str], plans: Sequence[Recipe]) -> list[Rule]:
    """The rules of bundled recipes of these names, and of those that the user named."""
    known = bundled()
    found = {(rule.recipe, rule.id): rule for plan in plans for rule in plan.rules}
    for name in names:
        if name in known:
            try:
                loaded = Recipe.load(known[name])
            except SurgeonError:
                continue
            found |= {(rule.recipe, rule.id): rule for rule in loaded.rules}
    return list(found.values())
