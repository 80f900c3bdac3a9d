"""Results that are not given out: what is wrong with them, and what would mend it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from surgeon.assumptions import Axioms
from surgeon.authoring import spelling_out
from surgeon.choices import Reference
from surgeon.culprits import Place
from surgeon.declared import length_of
from surgeon.errors import LeftoverError, RecipeError, VerifyError, few
from surgeon.faults import mend_of
from surgeon.helpful import within
from surgeon.lost import (
    endless_loops,
    lost_changes,
    lost_lists,
    misnormed_weights,
    unread_inputs,
    unwritten_values,
)
from surgeon.model import Model
from surgeon.recipe import Recipe
from surgeon.recipe.rules import ASKED, LowerOpsetStep, RaiseOpsetStep
from surgeon.report import WHOLE, Refusal, Report
from surgeon.schemas.aliases import out_of_place
from surgeon.spelling import is_foreign

if TYPE_CHECKING:
    from surgeon.verify import Verdict

_NEVER = "aten-refused"  # the recipe of what cannot be written
_FOR_OTHERS = frozenset({"it is no overload of numbers alone", "it adds no lists"})


def blamed(culprits: frozenset[Place], verdict: Verdict) -> Iterator[Refusal]:
    """The rewrites with which the whole result differs, as refusals."""
    checks = [o for c in verdict.comparisons for o in c.outputs if not o.agrees]
    for recipe, rule, node in sorted(culprits):
        yield Refusal(
            rule=rule,
            recipe=recipe,
            node=node,
            reason=f"the whole result is wrong with it: {verdict.detail}",
            sizes={},
            drawn=WHOLE,
            seed=-1,
            max_absolute=max((check.max_absolute for check in checks), default=math.inf),
            max_relative=max((check.max_relative for check in checks), default=math.inf),
        )


def not_saved(
    report: Report,
    verdict: Verdict,
    unbounded: Sequence[str] = (),
    waiting: Mapping[str, Sequence[str]] = MappingProxyType({}),
    told: str = "",
) -> VerifyError:
    """The error of a result that is wrong; names the rewrites that make it so, where known.

    Args:
        report: What was done.
        verdict: What is wrong.
        unbounded: Approximate rules that fired, and state no bound of their error.
        waiting: Rules that may do without rewrites at fault, by what has to be allowed for them.
        told: What was said of sizes that contradicts itself.
    """
    blamed = [f"`{r.recipe}/{r.rule}` at {r.node}" for r in report.at_fault]
    stated = {(c.recipe, c.rule): c.contract for c in report.changes if c.contract}
    contracts = dict.fromkeys(stated.get((r.recipe, r.rule)) for r in report.at_fault)
    more = f" and {len(blamed) - 3} more" if len(blamed) > 3 else ""
    named = f"; it is so with {', '.join(blamed[:3])}{more}" if blamed else ""
    named += "".join(f"; its contract: it {each}" for each in contracts if each)
    saving = "save the rest with `--save-partial`; or " if blamed else ""
    if unbounded and verdict.status == "differs":
        rules = ", ".join(f"`{rule}`" for rule in unbounded[:3])
        saving = f"state in {rules} how large an error may be (`bound: 0.01`); {saving}"
    for kind, names in waiting.items():
        saving = (
            f"say `--allow {kind}`, for which {few(names)} wait{'s' * (len(names) == 1)}; {saving}"
        )
    mend = _mend_of_verdict(report, verdict, saving)
    if told and verdict.status == "broken" and not blamed:
        mend = f"{told}; give one."
    error = VerifyError(
        f"the result is not saved: {verdict.detail}{named}", where=report.source, mend=mend
    )
    error.report = report
    return error


def told_twice(original: Model, axioms: Axioms) -> str:
    """Which size of the file was told to be two numbers, in words; "" where none was."""
    told: dict[str, dict[int, str]] = {}
    for value in original.proto.graph.input:
        dims = value.type.tensor_type.shape.dim
        for dim, given in zip(dims, axioms.shapes.get(value.name, ()), strict=False):
            if dim.dim_param and isinstance(given, int):
                told.setdefault(dim.dim_param, {}).setdefault(given, value.name)
    for name, numbers in told.items():
        if len(numbers) > 1:
            (one, first), (other, second) = list(numbers.items())[:2]
            return f"`--shape` says that `{name}` is {one} in `{first}` and {other} in `{second}`"
    return ""


def _mend_of_verdict(report: Report, verdict: Verdict, saving: str) -> str:
    """What helps where a result is wrong; `saving` is what is to be tried before recipes go."""
    mend = (
        "Read the report (`--report out.json`) for the rewrites that were made; "
        f"{saving}leave out the recipe at fault, or give recorded outputs with "
        "`--reference FILE.npz`."
    )
    if "tensor(bfloat16)" in (verdict.detail or ""):
        mend = "Put `bfloat16-in-float32` behind the recipe, or in front of `clean`."
    elif verdict.original == "differs":
        mend = "Export the model again: the file does not compute what was recorded of its module."
    elif verdict.original == "broken":
        first = _first_of_broken(report, verdict)
        asked = [f"{c.recipe}/{c.rule}" for c in report.changes if c.exact == ASKED]
        if asked:  # what is compared is the file as they change it
            changes = few([*dict.fromkeys(asked)])
            first = f"Where the file as it came loads, mend what {changes} writes; see "
        mend = f"{first}`surgeon inspect MODEL`, or save what cannot be compared: `--no-verify`."
    return mend


def _first_of_broken(report: Report, verdict: Verdict) -> str:
    """What to try first where neither file loads, up to the command that tells more."""
    mend = mend_of(verdict.detail or "")
    recipe, _, options = ("aten" if mend is None else mend).partition(" ")
    if not recipe or any(recipe in within(name) for name in report.recipes):
        return "See "
    if mend is None:
        return "`aten` in front may help, which mends many types and forms that are refused; see "
    told = f"with `{options}`, which mends that" if options else "which mends that"
    return f"Put `{recipe}` in front, {told}; see "


def refuse_left_out(
    report: Report, model: Model, opset: int | None = None, in_the_way: str = ""
) -> None:
    """Refuse a result without all that was asked for: rewrites and steps that were left out.

    Args:
        report: What was done.
        model: The result.
        opset: What was asked for and not reached, if that is why.
        in_the_way: The operator that is why it was not, if one is.
    """
    refused = [f"`{r.recipe}/{r.rule}` at {r.node}: {r.reason}" for r in report.refusals]
    left_out = [*report.failures, *refused]
    mend = "Read the report (`--report out.json`); leave out the recipe or the rule, or "
    mend += "leave out `--strict`."
    if opset is not None:
        mend = _mend_of_opset(in_the_way, opset)
        mend += "" if is_foreign(in_the_way) else _mend_of_sizes(model)
    if left_out:
        more = f", and {len(left_out) - 1} more" if len(left_out) > 1 else ""
        error = VerifyError(
            f"not all was done that the recipes ask for: {left_out[0]}{more}",
            where=report.source,
            mend=mend,
        )
        error.report = report
        raise error


def refuse_other_opset(report: Report, model: Model, opset: int, named: Sequence[Recipe]) -> None:
    """Refuse a result of another opset than was asked for, though no step failed.

    Args:
        report: What was done.
        model: The result.
        opset: What was asked for.
        named: The recipes that were named, which bring opsets of their own.

    Raises:
        VerifyError: Always.
    """
    steps = RaiseOpsetStep | LowerOpsetStep
    bring = [r.name for r in named if any(isinstance(step, steps) for step in r.steps)]
    why = f", which {few(bring)} brings" if bring else ""
    error = VerifyError(
        f"the result is of opset {model.opset}{why}, and {opset} was asked for",
        where=report.source,
        mend=f"Leave out `--opset {opset}`, or the recipe.",
    )
    error.report = report
    raise error


def refuse_emptied(model: Model, name: str) -> None:
    """Refuse a length of 0 that has emptied all that a model gives.

    Args:
        model: As it is with that.
        name: Of the input that was given it.

    Raises:
        RecipeError: Nothing is left to compute.
    """
    if all(node.op == "Constant" for node in model.graph.nodes):
        raise RecipeError(
            f"where input `{name}` has a length of 0 all outputs are empty, or constant",
            where="--shape",
            mend="Give a number above 0, or a name where the length is to stay dynamic.",
        )


def refuse_unfreed(report: Report, original: Model, axioms: Axioms) -> None:
    """Refuse a result whose sizes are numbers that were told of them in order to make them any.

    Args:
        report: What was done.
        original: The model as it came.
        axioms: What the user told of it.
    """
    done = {change.rule for change in report.changes}
    for step, recipe, axes in _FREES:
        begin = f"step `{step}` was skipped: "
        why = next((f.removeprefix(begin) for f in report.failures if f.startswith(begin)), None)
        told = None if why is None or step in done else next(_fixed(original, axioms, axes), None)
        if told is None:
            continue
        error = VerifyError(
            f"{told} so that step `{step}` makes it any, and it was skipped: {why}",
            where=report.source,
            mend=f"Where that size alone is wanted, leave the step out (`{recipe}` has it); else "
            "leave out what is told, and the size stays dynamic.",
        )
        error.report = report
        raise error


_FREES = (  # steps, the recipes that have them, and the axes of inputs that they make any
    ("free-batch", "any-batch", slice(0, 1)),
    ("free-sizes", "any-size", slice(1, None)),
)


def _fixed(original: Model, axioms: Axioms, axes: slice) -> Iterator[str]:
    """Of which dynamic dimensions of inputs a number was told, in words."""
    for value in original.proto.graph.input:
        declared = value.type.tensor_type.shape.dim
        shape = axioms.shapes.get(value.name) or [dim.dim_param for dim in declared]
        for axis in range(len(declared))[axes]:
            size = axioms.symbols.get(str(shape[axis]), shape[axis])
            if length_of(declared[axis]) is None and isinstance(size, int):
                yield f"dimension {axis} of `{value.name}` was said to be {size}"


def _mend_of_opset(operator: str, opset: int) -> str:
    """What helps where a model was not taken to an opset."""
    if not operator:
        return (
            "`refused-forms` in front mends forms of old exporters that the converter refuses; "
            f"else ask for another opset, or export the model at {opset}."
        )
    if is_foreign(operator):
        return "Put `aten` in front, which writes PyTorch's own operators in ONNX's."
    last = f"ask for a newer opset, or export the model at {opset}."
    if not (recipes := spelling_out(operator, opset)):
        return f"No recipe of older opsets spells {operator} otherwise: {last}"
    named = " ".join(recipes)
    return f"`surgeon explain {named} MODEL` says why {operator} stays as it is; {last}"


def _mend_of_sizes(model: Model) -> str:
    """What may help where forms of operators depend on sizes that are not told."""
    for value in model.proto.graph.input:
        dims = [dim.dim_param or length_of(dim) or 0 for dim in value.type.tensor_type.shape.dim]
        if any(not isinstance(dim, int) or not dim for dim in dims):
            sizes = ",".join(str(dim or "?") for dim in dims)
            return f" Where sizes are wanted, tell them: `--shape {value.name}={sizes}` in numbers."
    return ""


def refuse_unread(original: Model, report: Report, reference: Reference) -> None:
    """Refuse to repair a file that an old PyTorch wrote wrong, unless outputs are recorded."""
    _refuse_lost_changes(original, report, reference)
    unread, unwritten = unread_inputs(original), unwritten_values(original)
    misnormed, lists = misnormed_weights(original), lost_lists(original)
    if not unread and not unwritten and not misnormed and not lists:
        return
    from surgeon.verify.originals import recorded_files

    if recorded_files(reference):
        return
    fault, fixed = "loses assignments to a slice (`x[:, 1:3] = v`)", "1.5"
    if unread:
        seen = f"nothing reads `{'`, `'.join(unread)}` among the inputs"
    elif unwritten:
        seen = f"nothing is written to `{'`, `'.join(unwritten)}`, which was made to be written to"
    elif lists:
        seen = f"`{'`, `'.join(lists)}`: a Loop or an If that nothing reads, or a join of nothing"
        fault, fixed = "loses what a script puts into lists (`items.append(x)`)", "1.8"
    else:
        seen = f"`{'`, `'.join(misnormed)}`: divided by one norm, and scaled channel by channel"
        fault = "takes the norm of `weight_norm` over all axes"
    error = VerifyError(
        f"{seen}: PyTorch before {fixed} {fault}, and then the file does not compute what the "
        "module did",
        where=report.source,
        mend="Export with a newer PyTorch, compare with recorded outputs (`--reference FILE.npz`), "
        "or say `--allow unread` if the module does no more than the file.",
    )
    error.report = report
    raise error


def refuse_endless(original: Model, report: Report) -> None:
    """Refuse to run a model that never ends."""
    loops = endless_loops(original)
    if not loops:
        return
    error = VerifyError(
        f"the Loop that gives `{'`, `'.join(loops)}` never ends: its condition is a constant, as "
        "PyTorch's exporters write it of a `while` that asks for a size they know",
        where=report.source,
        mend="Export with that size dynamic (`dynamic_axes`), or save what cannot be run: "
        "`--no-verify`.",
    )
    error.report = report
    raise error


def _refuse_lost_changes(original: Model, report: Report, reference: Reference) -> None:
    changed = lost_changes(original)
    if not changed:
        return
    from surgeon.verify.originals import recorded_files

    if recorded_files(reference):
        return
    error = VerifyError(
        f"`{'`, `'.join(changed)}`: a list that is changed in place, and what reads it behind the "
        "change does not say so; then the file does not compute what the module did",
        where=report.source,
        mend="Export with a newer PyTorch, write `items = items + [x]` in the module, compare with "
        "recorded outputs (`--reference FILE.npz`), or say `--allow unread`.",
    )
    error.report = report
    raise error


def refuse_leftovers(report: Report) -> None:
    """Refuse a result that still holds nodes of PyTorch's own, with the nearest reasons."""
    left = {name: count for name, count in report.after.items() if is_foreign(name)}
    if not left:
        return
    told = ", ".join(f"`{name}`" + (f" x{n}" if n > 1 else "") for name, n in left.items())
    rules: dict[str, dict[str, None]] = {}
    own = [miss for miss in report.misses if "(aten." in miss.node or "(prim." in miss.node]
    # what no rule can do in front of what one could not: the rest may follow from it; and behind
    # all what a rule says of nodes that are for others
    for miss in sorted(own, key=lambda m: (m.recipe != _NEVER, m.reason in _FOR_OTHERS)):
        rules.setdefault(miss.reason, {})[miss.rule] = None
    # what the check refused comes first: what reads it has no other way
    refused = [r for r in report.refusals if "(aten." in r.node or "(prim." in r.node]
    reasons = {f"{r.rule} at {r.node}: {r.reason}": None for r in refused}
    reasons |= {f"{', '.join(names)}: {reason}": None for reason, names in rules.items()}
    for name in left:
        operator = name.removeprefix("aten.")
        if operator != name and out_of_place(operator):
            reasons[
                f"`{name}` writes into its input, which other nodes read too: the file does not "
                "say whether before or after; write `y = x.add(...)` for `x.add_(...)`"
            ] = None
    why = "; ".join(list(reasons)[:4]) or "no rule of these recipes is for them"
    error = LeftoverError(
        f"{told} left, which no runtime knows ({why})",
        where=report.source,
        mend="See `surgeon explain` for each node, add a recipe that knows the operator, or keep "
        "the rest of the repair with `--allow leftover`.",
    )
    error.report = report
    raise error
