"""One run of recipes over one model: every step in order, and what was done in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import onnx

from surgeon import dialect, provenance
from surgeon.assumptions import Axioms
from surgeon.claims import correct_carried, correct_outputs, correct_types, declare
from surgeon.clock import Clock
from surgeon.collector import collector_paused
from surgeon.culprits import Kept
from surgeon.departed import Departure, fate
from surgeon.errors import OpsetError, SurgeonError
from surgeon.facts import Facts
from surgeon.facts.carried import Carried
from surgeon.fold import DEFAULT_LIMIT
from surgeon.helpful import unheard
from surgeon.housekeeping import TAKEN, rename_constants, tidied
from surgeon.lost import LOST, may_have_lost
from surgeon.meanings import Meanings
from surgeon.model import Model
from surgeon.recipe import (
    FOR_TARGET,
    AsReadStep,
    FoldStep,
    FreeBatchStep,
    FreeSizesStep,
    NamesStep,
    Recipe,
    Rule,
    RulesStep,
    StateShapesStep,
    UnrollStep,
)
from surgeon.report import Attempts, Change, Notes, Report
from surgeon.returned import BACK, is_back
from surgeon.rewrite import Surgery
from surgeon.sparing import Spared
from surgeon.steps import asread
from surgeon.steps.asread import Handed
from surgeon.steps.correcting import bring_in_line
from surgeon.steps.onprotobuf import on_protobuf, speaks_otherwise
from surgeon.steps.stating import state_shapes
from surgeon.sweep import Sweep
from surgeon.tally import (
    cost_of_sizes,
    is_rid_of_foreign,
    nearest,
    operators,
    operators_of,
    staying,
    waiting,
)
from surgeon.writer import FIRST_IR_WITH_NODE_METADATA

if TYPE_CHECKING:
    from surgeon.firing import Check
    from surgeon.trial.reach import Reach
    from surgeon.verify.given import Given

OnProtobuf: TypeAlias = Callable[[onnx.ModelProto], onnx.ModelProto]


class Operation:
    """One run of recipes over one model."""

    def __init__(
        self,
        original: Model,
        recipes: Sequence[Recipe],
        axioms: Axioms,
        allow: frozenset[str],
        keep_overridable: bool,
        check: bool,
        progress: Callable[[str], None] | None,
        date: str | None = None,
    ) -> None:
        self.original, self.recipes, self.allow = original, recipes, allow
        self.told, self.axioms = axioms, axioms  # by the user, and what holds of the model at hand
        self.keep, self.check, self.progress, self.date = keep_overridable, check, progress, date
        self.pieces: Counter[str] = Counter()
        self.evidence: Path | None = None  # where what is refused is kept
        self.given: Given | None = None  # what the user says of inputs
        self.notes = self.begun = Notes()
        self.touched = False  # whether the model was changed before any step
        self.model = original.clone()
        self.before = operators(self.model)
        self.earlier: dict[str, int] = {}  # what there was before the recipe for a target
        self.misses = Attempts()
        self.kept, self.carried, self.spared = Kept(), Carried(), Spared()
        self.stating: StateShapesStep | None = None  # the last that writes shapes into the file
        self.handed, self.ended = Handed(), ""  # and what is said of inputs taken for constants
        self.removed: list[Departure] = []  # before the last step that reads the model anew

    @property
    def changed(self) -> bool:
        """Whether the result differs from the original."""
        return self.model.changed

    def run(self, clock: Clock) -> None:
        """Every step of every recipe; anew where more was taken for granted than was shown."""
        self.touched, self.begun = self.model.changed, self.notes.anew()
        self._steps(clock)
        while self.carried.in_vain():
            self._anew()
            self.misses = Attempts()
            self._steps(clock)
        if self._is_back():
            self.misses.settle()
            notes = self.notes
            self._anew()
            self.notes.failures, self.notes.refusals = notes.failures, notes.refusals
            self.notes.remarks.append(BACK)
            self._begin()
        self._finish()

    def _anew(self) -> None:
        self.model = self.original.clone()
        self.model.changed = self.touched
        self.notes = self.begun.anew()
        self.handed, self.axioms, self.ended, self.removed = Handed(), self.told, "", []
        self.earlier = {}
        self.pieces.clear()

    def _is_back(self) -> bool:
        """Whether what some rules took apart others put together again, as in a second run."""
        if not self.changed or self.touched or self.before != operators(self.model):
            return False
        steps = [step for recipe in self.recipes for step in recipe.steps]
        other = speaks_otherwise(steps, self.original)
        return not other and is_back(self.model.to_proto(), self.original.proto)

    def _steps(self, clock: Clock) -> None:
        self._begin()
        clock.lap("import")
        for at, recipe in enumerate(self.recipes, 1):
            if recipe.source == FOR_TARGET:
                self.earlier = self.earlier or operators(self.model)
            known = self.notes.made
            allow = self.allow | recipe.allow
            for place, step in enumerate(recipe.steps):
                self.spared.begin(getattr(step, "keep", ()))
                if isinstance(step, RulesStep):
                    self._sweep(step.rules, allow, tidy=step.tidy)
                elif isinstance(step, FoldStep):
                    self._sweep((), allow, fold=step.max_bytes)
                elif isinstance(step, UnrollStep):
                    if operators(self.model).keys() & {*step.operators}:
                        self._sweep((), allow, turns=dict.fromkeys(step.operators, step.turns))
                elif isinstance(step, StateShapesStep):
                    self._sweep((), allow)
                    self.stating = step
                elif isinstance(step, AsReadStep | NamesStep):
                    self._hand_over(step, recipe, allow)
                elif isinstance(step, FreeBatchStep | FreeSizesStep):
                    self._write_out_functions(allow)
                    self._free(step, recipe, allow)
                elif found := on_protobuf(step, recipe.steps[place:], self.model):
                    if found.of_one_graph:
                        self._write_out_functions(allow)
                    self._replace_proto(found.function, found.name)
                    self.notes.remarks += filter(None, [found.said])
            clock.lap("sweep")
            if recipe.source == FOR_TARGET and self.notes.made == known:
                self.recipes = self.recipes[:at]  # those behind are for what it writes
                break

    def again(self, kept: Kept, *, check: bool) -> Operation:
        """The same on the same model, with some rewrites left out."""
        other = Operation(
            self.original, self.recipes, self.told, self.allow, self.keep, check, None
        )
        other.kept, other.given, other.spared = kept, self.given, self.spared
        other.notes, other.model.changed = self.begun.anew(), self.touched
        with collector_paused():
            other.run(Clock())
        return other

    def report(self, clock: Clock) -> Report:
        """What was done so far, frozen."""
        after = operators(self.model) if self.changed else self.before  # else it stays as it was
        misses = nearest(self.misses.all)
        names = tuple(recipe.name for recipe in self.recipes)
        idle = set(names).difference(change.recipe for change in self.notes.changes)
        undone, said = waiting(misses, idle), waiting(misses, set(names) - idle)
        hushed = idle.intersection(miss.recipe for miss in misses if miss.waits)  # told already
        said += staying(self.model, self.facts, [r for r in self.recipes if r.name not in hushed])
        gone = self.removed + self.surgery.removed.all
        costs = cost_of_sizes(self.original, self.before, after, self.told)
        said += [*filter(None, [costs]), *unheard(self.model, self.facts, after, names)]
        noted = [*self.notes.remarks, *self.spared.unfound()]
        if not self.changed and not dialect.wants_listed(self.original):
            noted = [each for each in noted if each != self.ended]  # its inputs stay as they are
        return Report(
            source=str(self.original.path or "<model>"),
            recipes=names,
            changes=tuple(self.notes.changes),
            misses=tuple(misses),
            housekeeping=dict(self.notes.housekeeping) if self.changed else {},
            pieces=dict(self.pieces),
            remarks=tuple(dict.fromkeys([*noted, *said])),
            failures=tuple(dict.fromkeys([*self.notes.failures, *undone])),
            assumptions=self.axioms.texts,
            before=self.before,
            after=after,
            verdict=None,
            seconds=dict(clock.seconds),
            opset=self.model.opset,
            refusals=tuple(self.notes.refusals),
            opset_before=self.original.opset,
            gone=dict(filter(None, map(fate, gone))) if self.notes.every else None,
        )

    def _begin(self) -> None:
        """Facts and wiring for the model at hand."""
        self.model.overridable -= self.axioms.told
        said = dialect.strip_initializer_inputs(self.model, keep=self.keep)
        if said and not self.ended:
            self.ended = said
            self.notes.remarks.append(said)
        self.facts = Facts(
            self.model,
            fixed=self.axioms.shapes,
            assumptions=self.axioms.symbols,
            same_shape=frozenset().union(*(recipe.same_shape for recipe in self.recipes)),
            meanings=Meanings([text for recipe in self.recipes for text in recipe.functions]),
        )
        self.surgery = Surgery(self.model, self.facts, self.spared)
        self.reach: Reach | None = None
        self.trial = replace(self.kept, check=self._trial() if self.check else None)

    def _trial(self) -> Check:
        """What compares each rewrite; imported when it is asked for, as it brings the witness."""
        from surgeon.trial.made import trial_of

        known = (self.original, self.model, self.facts, self.notes, self.pieces, self.axioms)
        trial, self.reach = trial_of(*known, self.given, self.recipes, self.evidence)
        return trial

    def _sweep(
        self,
        rules: Sequence[Rule],
        allow: frozenset[str],
        *,
        fold: int | None = None,
        tidy: bool = False,
        written_out: bool = False,
        turns: Mapping[str, int] | None = None,
    ) -> None:
        self.misses.settle()
        if self.reach is not None:
            self.reach.begin(rules, allow)
        sweep = Sweep(
            *(self.model, self.facts, self.surgery, self.notes, rules),
            fold=DEFAULT_LIMIT if fold is None else fold,
            tidy=tidy,
            written_out=written_out,
            turns=turns,
            allow=allow,
            check=self.trial,
            carried=self.carried,
            progress=self.progress,
        )
        fired = sweep.run()
        if tidy:
            self.notes.housekeeping.update(tidied(self.model, self.facts))
        self.misses.all.extend(self.notes.misses)
        # what an earlier recipe folded on its way counts, where this one says that it does, and so
        # does an operator that this one is about, of constants: it is not to be there
        gone = sweep.keeper.folded & operators_of(rules)
        if fired or gone or ((tidy or not rules) and self.notes.housekeeping.total()):
            self.model.changed = True

    def _write_out_functions(self, allow: frozenset[str]) -> None:
        """For a step that knows nothing of functions: their nodes in the place of calls."""
        if self.model.graph.functions:
            self._sweep((), allow, written_out=True)

    def _replace_proto(self, function: OnProtobuf, what: str) -> None:
        """A step of another tool: on the protobuf, and skipped with a remark where it fails."""
        self.misses.settle()
        if found := correct_types(self.model, self.facts):  # else nobody else loads it
            self.notes.retyped |= {*found}
            self.model.changed = True
        try:
            proto = function(self.model.to_proto())
        except SurgeonError as error:
            self.notes.failures.append(f"step `{what}` was skipped: {error.what}")
            self.notes.in_the_way = error.operator if isinstance(error, OpsetError) else ""
            return
        self.removed += self.surgery.removed.all if self.notes.every else []
        self.model = self.original.with_proto(proto)
        self.model.changed = True
        self._begin()

    def _free(
        self, step: FreeBatchStep | FreeSizesStep, recipe: Recipe, allow: frozenset[str]
    ) -> None:
        """A step that changes what sizes the model is defined for."""
        from surgeon import anysize
        from surgeon.steps.freeing import Free, freed, rule_of

        made: list[Free] = []
        failed = len(self.notes.failures)

        def done(proto: onnx.ModelProto) -> onnx.ModelProto:
            named, told, folder = recipe.name, self.axioms, self.original.folder
            made.append(freed(proto, step, named, told, check=self.check, folder=folder))
            self.axioms = made[-1].axioms
            return made[-1].model

        if declare(self.model, self.facts, self.axioms.shapes, self.axioms.fixed):
            self.model.changed = True  # else the step is given the file as it stood
        if self._promises_otherwise(rule_of(step), done, allow):
            self.notes.changes.append(made[-1].change)
            if self.check:
                self.notes.remarks.append(made[-1].compared)
            return
        behind = any(change.rule == anysize.STEP for change in self.notes.changes)
        if isinstance(step, FreeBatchStep) and behind and len(self.notes.failures) > failed:
            self.notes.failures[-1] += "; in front of `any-size`, it knows the sizes of the file"

    def _hand_over(
        self, step: AsReadStep | NamesStep, recipe: Recipe, allow: frozenset[str]
    ) -> None:
        """A step that changes the interface."""
        from surgeon.steps.handing import handing_over

        rule, why, done = handing_over(step, self.handed, self.axioms, self.model, self.facts)
        if not self._promises_otherwise(rule, done, allow):
            return
        layer = self.handed.layers[-1]
        told, exact = layer.told(), layer.exact
        contract = asread.CONTRACT.format(what=told) if told else None
        change = Change(rule, recipe.name, why, exact, contract, "the graph", (), (), "")
        self.notes.changes.append(change)
        if told and self.check and asread.COMPARED not in self.notes.remarks:
            self.notes.remarks.append(asread.COMPARED)

    def _promises_otherwise(self, rule: str, done: OnProtobuf, allow: frozenset[str]) -> bool:
        """Do a step that changes what the model promises; whether it was done.

        Args:
            rule: What it is called where it is told as a rewrite.
            done: Makes the model.
            allow: What is allowed.
        """
        if "contract" not in allow:
            said = "it changes what the model promises; allow it with `--allow contract`"
            self.notes.failures.append(f"step `{rule}` was skipped: {said}")
            return False
        if any(each.rule == rule for each in self.notes.changes):
            return False  # recipes may run twice
        before = self.model
        self._replace_proto(done, rule)
        return self.model is not before

    def _finish(self) -> None:
        """What the file says of itself, brought in line with what is proven and was done."""
        if declare(self.model, self.facts, self.axioms.shapes, self.axioms.fixed):
            self.model.changed = True
        mended = is_rid_of_foreign(self.before, self.model)
        if mended and any(recipe.ensure == "no-aten" for recipe in self.recipes):
            self.model.changed = True  # an assertion that gives nothing to anybody
        # what any runtime loads keeps the sizes that it declares
        resized = correct_outputs(self.model, self.facts, ranks=not mended)
        carried = correct_carried(self.model, self.facts) if mended else []
        news = self.stating and state_shapes(self.model, self.facts, self.stating)
        if not self.model.changed and not resized and not news:
            return
        self.model.changed = True
        if any(constant.name in TAKEN for constant in self.original.proto.graph.initializer):
            rename_constants(self.surgery, TAKEN)
        if may_have_lost(self.original):
            self.notes.remarks.append(LOST)
        self.notes.retyped, said = bring_in_line(
            self.model, self.facts, resized, carried, self.notes.retyped, stating=self.stating
        )
        self.notes.remarks.extend(said)
        self._enter_log()

    def _enter_log(self) -> None:
        """Enter this run into the log that the file carries."""
        replaced = self.notes.replaced()
        on_nodes = self.model.proto.ir_version >= FIRST_IR_WITH_NODE_METADATA
        made = provenance.entry(
            [(recipe.name, recipe.digest) for recipe in self.recipes],
            {rule: len(nodes) for rule, nodes in replaced.items()},
            self.axioms.texts,
            None if on_nodes else replaced,
            self.date,
        )
        self.model.stamps |= provenance.stamps(self.original.proto.metadata_props, made)
