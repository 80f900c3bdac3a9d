"""Which recipes a run takes: those that were named, and those that an opset or a target brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from surgeon.authoring import opset_within, recipe_for_ir_version, recipe_for_opset
from surgeon.errors import SettleError, few
from surgeon.limits import beyond
from surgeon.operation import Operation
from surgeon.recipe import FreeSizesStep, Recipe
from surgeon.tally import operators

if TYPE_CHECKING:
    from surgeon.targets import Target


class Plan:
    """The recipes of a run, in order.

    Args:
        recipes: Those that were named.
        before: The model's opset.
        opset: What the result is to be of, if that was said.
        target: The runtime that the result is for, if that was said.
        allow: Kinds of rules that may fire.

    Attributes:
        asked: Those that were named; what one changes and joins, it does once.
        recipes: All, in the order in which they are applied; some of them twice.

    Raises:
        RecipeError: There is no such target, or its list is wrong.
    """

    def __init__(
        self,
        recipes: Sequence[Recipe],
        before: int,
        *,
        opset: int | None,
        target: str | None,
        allow: Sequence[str],
    ) -> None:
        self.asked = list(recipes)
        self.recipes = list(recipes)
        self._name, self._allow = target, allow
        self._wanted: Target | None = None
        if target is not None:
            from surgeon.targets import target as target_of

            self._wanted = target_of(target)
        bounds = None if self._wanted is None else self._wanted.opsets
        reached = opset_within(bounds, before) if opset is None else opset
        if reached != before:
            # what the older opset was spelled out for, or the newer one has, they see once more
            self.recipes = [*self.recipes, recipe_for_opset(before, reached), *self.recipes]
        if opset is not None and reached >= before:
            self.recipes.append(recipe_for_ir_version(opset))
        if self._wanted is not None:
            from surgeon.fitting import recipe_for_target

            self._head, self._once_more = self.recipes, True
            self._bring(recipe_for_target(self._wanted, allow))

    @property
    def ensures_no_aten(self) -> bool:
        """Whether a recipe promises that no ATen node is left."""
        return any(recipe.ensure == "no-aten" for recipe in self.recipes)

    @property
    def frees_sizes(self) -> bool:
        """Whether a step makes sizes dynamic that are fixed in the file."""
        return any(isinstance(step, FreeSizesStep) for r in self.recipes for step in r.steps)

    def run(self, operate: Callable[[], Operation]) -> Operation:
        """The run; for a target the one without those of its rules that lead nowhere there.

        A rule may write, in one of its forms, what the target lacks as well, or go round in circles
        with another one.

        Args:
            operate: Runs the recipes as they stand in the plan.
        """
        if self._wanted is None:
            return operate()
        from surgeon.fitting import lacking, recipe_for_target

        without = frozenset[str]()
        while True:
            mine = {rule.id for rule in self.recipes[-1].rules}
            try:
                work = operate()
            except SettleError as error:
                if error.rule not in mine:
                    raise
                without |= {error.rule}
            else:
                left = lacking(self._wanted, operators(work.model))
                vain = set(left) - work.earlier.keys()
                made = [c for c in work.notes.changes if not vain.isdisjoint(c.after)]
                at_fault = {change.rule for change in made} & mine
                once_more = len(work.recipes) > len(self._head) + 1
                if not at_fault and not (vain and once_more):
                    self._tell(work, self._wanted, left)
                    return work
                self._once_more &= bool(at_fault)  # else what was named puts together what lacks
                without |= at_fault
            self._bring(recipe_for_target(self._wanted, self._allow, without))

    def _bring(self, recipe: Recipe) -> None:
        """A target's own recipe, and where it writes something, those that were named once more."""
        self.recipes = [*self._head, recipe]
        if self._once_more:
            self.recipes += [*self.asked, recipe]

    def _tell(self, work: Operation, wanted: Target, left: Sequence[str]) -> None:
        """Say what the target lacks or does not read."""
        if left:
            from surgeon.fitting import waiting_rules

            said = f"not on the list of {self._name}: {few(left)}"
            for kind, names in waiting_rules(wanted, left, self._allow).items():
                said += f"; rules for {few(names)} wait for `--allow {kind}`"
            work.notes.failures.append(said)
            where = f"`surgeon inspect OUT --target {self._name}` says where it can be cut off"
            work.notes.remarks.append(f"what {self._name} lacks: {where}, if it can")
        for each in beyond(work.model, wanted):
            said = (
                f"beyond a limit of {self._name}: {len(each.nodes)} {each.operator}, {each.limit}"
            )
            where = f" ({each.location})" if each.location else ""
            work.notes.failures.append(f"{said}{where}: {each.nodes[0]}, {each.reason}")
        if not wanted.reads(work.model.opset) and wanted.opsets:
            old, new = wanted.opsets
            said = f"{wanted.name} reads opsets {old} to {new}, and the result is of"
            work.notes.failures.append(f"{said} {work.model.opset}")
