"""`apply`: load, run the recipes, compare, report; nothing calls back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surgeon.aside import room_aside
from surgeon.assumptions import Axioms, parse_assumptions
from surgeon.auditing import Asked, record
from surgeon.authoring import recipe_for_metadata, recipe_for_names
from surgeon.choices import (
    REQUIRED,
    Data,
    Reference,
    check_by_name,
    check_data,
    check_integer,
    check_options,
    check_reference,
    check_renamed,
    check_unasked,
    plain_shapes,
    several,
)
from surgeon.clock import Clock
from surgeon.collector import collector_paused
from surgeon.comparing import Comparison, held_back, unbounded
from surgeon.culprits import Kept
from surgeon.extending import extended
from surgeon.misexported import faults
from surgeon.model import Model, ModelLike
from surgeon.opening import RecipeLike, as_recipe, fewer, see_data, see_kept, see_named, told_apart
from surgeon.operation import Operation
from surgeon.planning import Plan
from surgeon.report import Report
from surgeon.returned import BACK
from surgeon.steps.asread import Handed
from surgeon.tally import is_rid_of_foreign, made_nowhere, operators, unrelated
from surgeon.targets.own import plain_target
from surgeon.values import with_values

if TYPE_CHECKING:
    from surgeon.verify import Verdict

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

    def __repr__(self) -> str:
        """One line, where a report has pages: `surgeon.shown` tells it."""
        report = self.report
        before, after = (sum(each.values()) for each in (report.before, report.after))
        nodes = f"{before:,} nodes -> {after:,}"
        return f"<surgeon.Result of {report.source}: {report.status}, {nodes}>"


@room_aside(remember=False)
def apply(
    model: ModelLike,
    *recipes: RecipeLike,
    shape: Mapping[str, Sequence[int | str]] | None = None,
    assume: str | Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
    allow: str | Sequence[str] = (),
    without: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
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
    target: str | Path | None = None,
    metadata: Mapping[str, str | None] | None = None,
    rename: Mapping[str, str] | None = None,
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
        without: Rules that are left out, by their ids, or as `recipe/id` where several have one.
        keep: Nodes that stay as they are, by operator (`LayerNormalization`, `com.microsoft.Gelu`),
            by name, or by a value that they give: no rule matches them, they are neither folded nor
            merged nor dropped, and nothing goes that would leave them unread. Steps that convert
            the whole file, to another opset say, go over them too.
        verify: Whether to compare the whole model. A model that nothing changed is not compared;
            that onnxruntime does not load it is remarked.
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
        metadata: What the result is to say of itself beside its log: texts by their keys, None for
            one that is to go.
        rename: Other names of inputs, outputs, values in between and nodes, or of sizes where
            nothing else has the name, by those that they have.
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
            wrote the file, or something was left out and the result is to be `strict`, or a size
            that was told in order to make it any stayed a number; it carries `report`.
        TimeUp, MemoryUp: The result does not load within the limits of `isolation`.
    """
    clock, checked = Clock(), verify if check is None else check
    allow, assume, without, keep = map(several, (allow, assume, without, keep))
    check_options(require, allow)
    check_data(data)
    check_reference(reference)
    if not verify:
        pieces = () if checked else (reference, inputs, data, keep_evidence)
        check_unasked(require == REQUIRED[1], save_partial, *pieces)
    check_integer("opset", opset)
    target = plain_target(target)
    check_by_name(values=values, inputs=inputs, metadata=metadata, rename=rename)
    shape = plain_shapes(shape)
    check_renamed(rename, shape=shape, value=values)
    if keep_evidence is not None:
        from surgeon.evidence import check_folder

        check_folder(Path(keep_evidence))
    values = values or {}
    with collector_paused():
        original = Model.of(model)
        see_kept(original, keep)
        named = fewer([as_recipe(recipe) for recipe in recipes], without)
        see_named(original, rename or {}, named)
        named += [recipe_for_names(rename)] if rename else []
        named += [recipe_for_metadata(metadata)] if metadata else []
        plan = Plan(named, original.opset, opset=opset, target=target, allow=allow)
        original, apart = told_apart(original)
        original, told = with_values(original, values, shape)
        came = original
        original, joined, steps = extended(original, plan.asked, allow)
    shape = {name: dims for name, dims in shape.items() if name not in values}
    axioms = parse_assumptions(original, shape, assume, frees=plan.frees_sizes)
    axioms = axioms._replace(texts=(*told, *axioms.texts), told=frozenset(values))
    beside = Comparison(original, axioms, reference=reference, inputs=inputs, data=data)
    beside.see_values(values)
    if not plan.frees_sizes:  # else what is assumed is of the file, and the data may be larger
        beside.see_sizes()
    clock.lap("load")
    with collector_paused():
        if verify:
            see_data(original)
        moved = beside.how_far(steps, plan.asked) if verify else []
        remarks = [*apart, *moved, *made_nowhere(plan.asked, joined), *faults(original.proto)]

        def operate() -> Operation:
            work = Operation(
                original,
                plan.recipes,
                axioms,
                frozenset(allow),
                keep_overridable,
                checked,
                progress,
                date,
            )
            work.given, work.notes.every = beside.given, every_miss
            work.spared.asked = frozenset(keep)
            work.evidence = None if keep_evidence is None else Path(keep_evidence)
            work.notes.remarks.extend(remarks)
            work.notes.changes.extend(joined)
            work.model.changed = bool(apart or joined or told)  # before any step
            work.run(clock)
            return work

        work = plan.run(operate)
        _refuse_emptied(work, axioms)
        report = work.report(clock)
        if joined:  # what recipes changed before any step is a change of the file
            report = report._replace(before=operators(came))
    _refuse_unseen(plan, work, report, allow, reference)
    if report.failures:
        from surgeon.refusing import refuse_unfreed

        refuse_unfreed(report, original, axioms)
    if verify and (work.changed or _is_recorded(reference)):
        work, report = _compared(beside, work, report, clock, partly=save_partial)
        _refuse_verdict(work, report, require)
    elif verify and (fault := beside.fault(plan.recipes)):
        report = report._replace(remarks=(*report.remarks, fault))
    if not work.changed and BACK not in report.remarks:  # or a rule of it did what is undone
        report = report._replace(remarks=(*report.remarks, *unrelated(work.model, plan.recipes)))
    _refuse_short(plan, work, report, opset, strict=strict)
    options = {
        "target": target,
        "opset": opset,
        "without": ", ".join(without),
        "keep": ", ".join(keep),
        "metadata": ", ".join(metadata or ()),
        "rename": ", ".join(f"{old}={new}" for old, new in (rename or {}).items()),
    }
    asked = Asked(
        source=original.path,
        recipes=len(recipes),
        options={name: value for name, value in options.items() if value not in (None, "")},
        allow=allow,
        data=data or (),
        reference=reference,
        date=date,
    )
    original.see_unchanged(model)
    record(work.model, report, asked)
    return Result(work.model, report, work.handed)


def _is_recorded(reference: Reference) -> bool:
    """Whether outputs are recorded, which say of an unchanged file, too, what it is to give."""
    if reference is None:
        return False
    from surgeon.verify.originals import recorded_files  # brings numpy's files

    return bool(recorded_files(reference))


def _refuse_unseen(
    plan: Plan, work: Operation, report: Report, allow: Sequence[str], reference: Reference
) -> None:
    """What no comparison shows.

    Raises:
        LeftoverError: A recipe promises that no ATen node is left, and one is.
        VerifyError: PyTorch lost an assignment when it wrote the file.
    """
    if plan.ensures_no_aten and "leftover" not in allow:
        from surgeon.refusing import refuse_leftovers

        refuse_leftovers(report)
    if not work.changed or "unread" in allow:
        return
    # A file that no runtime took has never shown anybody what it computes.
    if plan.ensures_no_aten or is_rid_of_foreign(work.before, work.model):
        from surgeon.refusing import refuse_unread

        refuse_unread(work.original, report, reference)


def _refuse_emptied(work: Operation, axioms: Axioms) -> None:
    """Refuse sizes of 0 that were asked for, where something computes otherwise at them.

    Raises:
        VerifyError: As of `refuse_emptied`.
    """
    if empty := [name for name, dims in axioms.shapes.items() if 0 in dims]:
        from surgeon.refusing import refuse_emptied

        refuse_emptied(work.model, empty[0])


def _compared(
    beside: Comparison, work: Operation, report: Report, clock: Clock, *, partly: bool
) -> tuple[Operation, Report]:
    """The result with what its comparison found; without the rewrites at fault, if asked for.

    Raises:
        VerifyError: A Loop of the original never ends.
    """
    from surgeon.refusing import refuse_endless

    refuse_endless(work.original, report)
    if work.progress:
        work.progress("verify")
    verdict = beside.verdict(work, work.progress)
    clock.lap("verify")
    report = report._replace(verdict=verdict, seconds=dict(clock.seconds))
    if verdict.status in GOOD:
        return work, report
    return _blamed(beside, work, report, verdict, partly=partly)


def _blamed(
    beside: Comparison, work: Operation, report: Report, verdict: Verdict, *, partly: bool
) -> tuple[Operation, Report]:
    """A result that differs, with the rewrites at fault; where asked for, one without these."""
    from surgeon.refusing import blamed

    beside.keep(work, verdict)
    culprits = beside.culprits(work, verdict)
    report = report._replace(refusals=(*report.refusals, *blamed(culprits, verdict)))
    if not (partly and culprits):
        return work, report
    rest = work.again(Kept(without=culprits), check=True)
    verdict = beside.verdict(rest, work.progress)
    found = rest.report(Clock())
    found = found._replace(verdict=verdict, refusals=report.refusals)
    return rest, found._replace(seconds=report.seconds, before=report.before)


def _refuse_verdict(work: Operation, report: Report, require: str) -> None:
    """Refuse a result by its verdict.

    Raises:
        VerifyError: It does not run, or differs, or could not be compared and has to be.
    """
    verdict = report.verdict
    assert verdict is not None
    if verdict.status not in GOOD or (require == "equivalent" and verdict.status == "runs"):
        from surgeon.refusing import not_saved, told_twice

        waiting, told = held_back(work, report.at_fault), told_twice(work.original, work.axioms)
        raise not_saved(report, verdict, unbounded(work), waiting, told)


def _refuse_short(
    plan: Plan, work: Operation, report: Report, opset: int | None, *, strict: bool
) -> None:
    """Refuse a result of which something asked for is missing.

    Raises:
        VerifyError: It is not of the opset, or something was left out and it is to be strict.
    """
    short = None if opset == work.model.opset else opset
    if strict or short is not None:
        from surgeon.refusing import refuse_left_out

        refuse_left_out(report, work.model, short, work.notes.in_the_way)
    if short is not None:
        from surgeon.refusing import refuse_other_opset

        refuse_other_opset(report, work.model, short, plan.asked)
