"""`apply`: load, run the recipes, compare, report; nothing calls back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surgeon.asread import Handed
from surgeon.assumptions import parse_assumptions
from surgeon.auditing import Asked, record
from surgeon.authoring import opset_within, recipe_for_ir_version, recipe_for_opset
from surgeon.choices import check_options
from surgeon.clock import Clock
from surgeon.collector import collector_paused
from surgeon.culprits import Kept, Place, find_culprits
from surgeon.errors import SettleError, SurgeonError, few
from surgeon.model import Model
from surgeon.opening import ModelLike, RecipeLike, as_model, as_recipe, see_data, told_apart
from surgeon.operation import Operation
from surgeon.recipe import FreeSizesStep, Recipe, granted
from surgeon.report import Change, Report
from surgeon.tally import operators
from surgeon.values import see_values, with_values

if TYPE_CHECKING:
    from surgeon.targets import Target
    from surgeon.verify import Reference, Verdict
    from surgeon.verify.whole import Data, Given

GOOD = ("equivalent", "runs")


@dataclass(frozen=True, slots=True)
class Result:
    """What `apply` gives.

    Attributes:
        model: The repaired model; the argument's where nothing was changed.
        report: What was done and checked.
        handed: What the model left to its caller, casts of inputs say.
    """

    model: Model
    report: Report
    handed: Handed = field(default_factory=Handed)


def apply(
    model: ModelLike,
    *recipes: RecipeLike,
    shape: Mapping[str, Sequence[int | str]] | None = None,
    assume: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
    allow: Sequence[str] = (),
    verify: bool = True,
    check: bool | None = None,
    reference: Reference = None,
    require: str = "runs",
    keep_overridable: bool = False,
    progress: Callable[[str], None] | None = None,
    every_miss: bool = False,
    keep_evidence: Path | str | None = None,
    inputs: Mapping[str, str] | None = None,
    data: Data = (),
    save_partial: bool = False,
    strict: bool = False,
    opset: int | None = None,
    target: str | None = None,
    date: str | None = None,
) -> Result:
    """Repair a model with recipes, and compare the result with the original.

    onnxruntime runs in this process, except inside `with surgeon.isolation():`, which a file that
    is not yours asks for: then its crash, its hanging or its thirst for memory is a finding.

    Args:
        model: A path, a `Model`, an `onnx.ModelProto` or a graphsurgeon `Graph`; not changed.
        recipes: Bundled names, paths of YAML files, `Recipe`s or single `Rule`s, in order.
        shape: Shapes to fix, by input name: numbers, or names for dimensions that stay dynamic.
        assume: What else holds, as `t % 32 == 0`, `t >= 64` or `h == w`; goes into the report.
        values: Inputs that always have one value, by name: a number, several, an array, or a text
            of them; the result has them as constants, and goes into the report what they are.
        allow: `approximate` and `contract`, beside what the recipes themselves allow; `leftover`
            keeps a result with ATen nodes left, although a recipe promises none; `unread` repairs a
            file of PyTorch before 1.5 although nothing reads one of its inputs.
        verify: Whether to compare the whole model. A model that nothing changed is not compared.
        check: Whether each rewrite is compared with what it replaces; as `verify` says by default.
        reference: `onnxruntime`, `witness`, `torch`, or recorded outputs: an .npz file, a folder or
            pattern of them, or several.
        require: `equivalent` refuses a result that could not be compared.
        keep_overridable: Keep initializers that are graph inputs overridable, also where PyTorch's
            exporter lists every weight so.
        progress: Called with a line of text when a stage begins.
        every_miss: Record every attempt that failed, not only the near ones.
        keep_evidence: A folder for what is found wrong: for each refused rewrite, and for a result
            that differs, both models with inputs and outputs, and a script that runs them.
        inputs: By input name, how it is drawn, as `uniform(0,1)`, `mask` or `tokens(30522)`.
        data: Files with real inputs, compared beside drawn ones, for each rewrite too: .npz by
            input name, or folders of them or of ONNX's own `test_data_set_*`.
        save_partial: Where the whole result differs, leave out the rewrites that make it so, and
            give the rest.
        strict: Refuse a result from which a rewrite or a step was left out: because it differs
            from what it would replace, failed, or could not be done (an opset that does not hold
            every operator, say).
        opset: What the result is to be of, behind all recipes, which run once more where it is an
            older one; refused where it is not reached.
        target: A runtime, as `surgeon.targets` names it, or the YAML file of a list: the opset is
            brought among those that it reads, unless `opset` is given, and what its list of
            operators lacks is at last spelled out in operators that it has, where there are rules
            for it. What is not reached is among the report's `failures`.
        date: When, for the log that the model keeps of its making (see `surgeon log`). Without one
            equal runs give equal bytes.

    Returns:
        The repaired model and the report.

    Raises:
        ModelError: The model cannot be read or carried.
        RecipeError: A recipe, a shape, an assumption or another option is wrong, or data do not
            fit the model.
        SettleError: A rule keeps firing.
        LeftoverError: A recipe promises that no ATen node is left, and one is; carries `report`.
        VerifyError: The result does not run, or differs, or PyTorch lost an assignment when it
            wrote the file, or something was left out and the result is to be `strict`; it carries
            `report`.
        TimeUp, MemoryUp: The result does not load within the limits of `isolation`.
    """
    clock, checked = Clock(), verify if check is None else check
    check_options(require, allow)
    if keep_evidence is not None:
        from surgeon.evidence import check_folder

        check_folder(Path(keep_evidence))
    wanted: Target | None = None
    with collector_paused():
        original = as_model(model)
        plans = [as_recipe(recipe) for recipe in recipes]
        options = {"target": target, "opset": opset}
        asked = Asked(
            source=original.path,
            recipes=len(plans),
            options={name: value for name, value in options.items() if value is not None},
            allow=allow,
            data=data,
            reference=reference,
            date=date,
        )
        if target is not None:
            from surgeon.fitting import recipe_for_target
            from surgeon.targets import target as target_of

            wanted = target_of(target)
        bounds = None if wanted is None else wanted.opsets
        reached = opset_within(bounds, original.opset) if opset is None else opset
        if reached != original.opset:
            # what was spelled out behind them for the older opset they make plain once more
            again = plans if reached < original.opset else []
            plans = [*plans, recipe_for_opset(original.opset, reached), *again]
        elif opset is not None:
            plans.append(recipe_for_ir_version(opset))
        if wanted is not None:
            plans.append(recipe_for_target(wanted, allow))
        original, apart = told_apart(original)
        original, told = with_values(original, values or {}, shape)
        joined: list[Change] = []
        steps: list[tuple[Model, Model]] = []  # what recipes change, before and after
        if any(recipe.remakes for recipe in plans):
            from surgeon.extending import extended

            original, joined = extended(original, plans, allow, lambda *two: steps.append(two))
    shape = {name: dims for name, dims in (shape or {}).items() if name not in (values or {})}
    frees = any(isinstance(step, FreeSizesStep) for plan in plans for step in plan.steps)
    axioms = parse_assumptions(original, shape, assume, frees=frees)
    axioms = axioms._replace(texts=(*told, *axioms.texts), told=frozenset(values or ()))
    checking: dict[str, Any] = {
        "reference": reference,
        "shape": axioms.shapes or None,
        "sizes": axioms.sizes or None,
        "inputs": inputs,
        "data": data,
    }
    given = _given(original, checking) if inputs or data else None
    for each in given.sets if given is not None and values else ():
        see_values(values or {}, original, each.feeds, each.label)
    clock.lap("load")
    with collector_paused():
        if verify:
            see_data(original)
        moved = _moved(steps, plans, checking) if verify else []

        def operate() -> Operation:
            work = Operation(
                original, plans, axioms, frozenset(allow), keep_overridable, checked, progress, date
            )
            work.given, work.notes.every = given, every_miss
            work.evidence = None if keep_evidence is None else Path(keep_evidence)
            work.notes.remarks.extend([*apart, *moved])
            work.notes.changes.extend(joined)
            work.model.changed = bool(apart or joined or told)
            work.run(clock)
            return work

        work = operate() if wanted is None else _fitted(operate, plans, wanted, allow, str(target))
        report = work.report(clock)
    ensured = any(recipe.ensure == "no-aten" for recipe in plans)
    if ensured and "leftover" not in allow:
        from surgeon.refusing import refuse_leftovers

        refuse_leftovers(report)
    # A file that no runtime took has never shown anybody what it computes.
    if work.changed and "unread" not in allow and (ensured or work.is_rid_of_foreign()):
        from surgeon.refusing import refuse_unread

        refuse_unread(original, report, reference)
    if not work.changed or not verify:
        return _whole(work, report, asked, strict=strict, opset=opset)
    if progress:
        progress("verify")
    verdict = _verdict(original, work, checking, progress)
    clock.lap("verify")
    report = report._replace(verdict=verdict, seconds=dict(clock.seconds))
    if verdict.status not in GOOD:
        from surgeon.refusing import blamed

        if work.evidence is not None:
            _keep_models(original, work, verdict, checking)
        culprits = _culprits(work, verdict, original, checking)
        report = report._replace(refusals=(*report.refusals, *blamed(culprits, verdict)))
        if save_partial and culprits:
            rest = work.again(Kept(without=culprits), check=True)
            rest.model.changed = rest.model.changed or bool(apart or joined or told)
            verdict = _verdict(original, rest, checking, progress)
            found = rest.report(clock)
            report = found._replace(verdict=verdict, refusals=report.refusals)
            work = rest
    if verdict.status not in GOOD or (require == "equivalent" and verdict.status == "runs"):
        from surgeon.refusing import not_saved

        raise not_saved(report, verdict, _unbounded(work))
    return _whole(work, report, asked, strict=strict, opset=opset)


def _moved(
    steps: Sequence[tuple[Model, Model]], plans: Sequence[Recipe], checking: Mapping[str, Any]
) -> list[str]:
    """How far what recipes change moves the outputs; recorded are those of the changed."""
    if not steps:
        return []
    from surgeon.changing import how_far

    given = {**checking, "reference": None}
    return [how_far(before, after, plans, **given) for before, after in steps]


def _fitted(
    operate: Callable[[], Operation],
    plans: list[Recipe],
    wanted: Target,
    allow: Sequence[str],
    name: str,
) -> Operation:
    """A run whose last recipe is for a target, without the rules that lead nowhere there.

    A rule may write, in one of its forms, what the target lacks as well, or go round in circles
    with another one.
    """
    from surgeon.fitting import lacking, recipe_for_target

    without = frozenset[str]()
    while True:
        mine = {rule.id for rule in plans[-1].rules}
        try:
            work = operate()
        except SettleError as error:
            if error.rule not in mine:
                raise
            without |= {error.rule}
        else:
            left = lacking(wanted, operators(work.model))
            vain = set(left) - work.earlier.keys()
            at_fault = {c.rule for c in work.notes.changes if not vain.isdisjoint(c.after)} & mine
            if not at_fault:
                break
            without |= at_fault
        plans[-1] = recipe_for_target(wanted, allow, without)
    if left:
        work.notes.failures.append(f"not on the list of {name}: {few(left)}")
        where = f"`surgeon inspect OUT --target {name}` says where it can be cut off, if it can"
        work.notes.remarks.append(f"what {name} lacks: {where}")
    if not wanted.reads(work.model.opset) and wanted.opsets:
        old, new = wanted.opsets
        said = f"{wanted.name} reads opsets {old} to {new}, and the result is of {work.model.opset}"
        work.notes.failures.append(said)
    return work


def _whole(
    work: Operation, report: Report, asked: Asked, *, strict: bool, opset: int | None
) -> Result:
    """The result, which is all that was asked for.

    Raises:
        VerifyError: Something was left out, or another opset was asked for.
    """
    if strict or opset not in (None, work.model.opset):
        from surgeon.refusing import refuse_left_out

        refuse_left_out(report, work.model, None if opset == work.model.opset else opset)
    record(work.model, report, asked)
    return Result(work.model, report, work.handed)


def _culprits(
    work: Operation, verdict: Verdict, original: Model, checking: Mapping[str, Any]
) -> frozenset[Place]:
    """The rewrites with which the result differs; none where they cannot be told."""
    from surgeon.verify.verdict import NEITHER

    if verdict.detail.startswith(NEITHER):
        return frozenset()
    if work.progress:
        work.progress("look for the rewrites at fault")

    def fails(kept: Kept) -> bool:
        other = work.again(kept, check=False)
        if not other.changed:
            return False
        return _verdict(original, other, checking, None).status == verdict.status

    refused = frozenset((r.recipe, r.rule, r.node) for r in work.notes.refusals)
    try:
        made = work.notes.changes[len(work.begun.changes) :]  # what was joined is in both models
        return find_culprits(made, refused, fails) or frozenset()
    except SurgeonError:  # with some rewrites left out a recipe may not settle
        return frozenset()


def _given(original: Model, checking: Mapping[str, Any]) -> Given:
    from surgeon.verify.whole import read_given

    told = {key: checking[key] for key in ("inputs", "data", "shape", "reference")}
    return read_given(original.proto, **told)


def _keep_models(
    original: Model, work: Operation, verdict: Verdict, checking: Mapping[str, Any]
) -> None:
    """What shows that the whole result differs from the original."""
    from surgeon.evidence import keep
    from surgeon.verify.whole import differing_feeds

    assert work.evidence is not None
    feeds = differing_feeds(original.proto, verdict, **checking)
    label = f"the whole model, with {', '.join(recipe.name for recipe in work.recipes)}"
    keep(work.evidence, label, verdict.detail, original, work.model, feeds or {})


def _verdict(
    original: Model,
    work: Operation,
    checking: Mapping[str, Any],
    progress: Callable[[str], None] | None,
) -> Verdict:
    from surgeon.verify import verify

    custom: frozenset[str] = frozenset().union(*(recipe.custom for recipe in work.recipes))
    found = verify(
        original.proto,
        work.handed.put_back(work.model.to_proto()),
        **checking,
        folder_original=original.folder,
        folder_result=original.folder,
        custom=custom,
        functions=[text for recipe in work.recipes for text in recipe.functions],
        retyped=work.notes.retyped,
        allow_approximate=_granted(work),
        narrowed=False,
        progress=progress,
    )
    return replace(found, mend="")  # what it says is for two files; a run that fails has its own


def _unbounded(work: Operation) -> list[str]:
    """The approximate rules that fired, and say nothing of how large an error they make."""
    rules = (rule for recipe in work.recipes for rule in recipe.rules)
    free = {(r.recipe, r.id) for r in rules if r.exact == "approximate" and r.bound is None}
    fired = dict.fromkeys((c.recipe, c.rule) for c in work.notes.changes)
    return [f"{recipe}/{rule}" for recipe, rule in fired if (recipe, rule) in free]


def _granted(work: Operation) -> float | None:
    """The error that the approximate rules that fired may make together."""
    rules = (rule for recipe in work.recipes for rule in recipe.rules)
    return granted(rules, Counter((c.recipe, c.rule) for c in work.notes.changes))
