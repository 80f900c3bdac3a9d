"""A run's whole result beside the original: the verdict, and which rewrites are at fault."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import onnx

from surgeon.aside import is_heavy
from surgeon.assumptions import Axioms, see_sizes
from surgeon.choices import Data, Reference
from surgeon.culprits import Kept, Place, find_culprits
from surgeon.errors import SurgeonError
from surgeon.helpful import recipes_for
from surgeon.model import Model
from surgeon.operation import Operation
from surgeon.recipe import Recipe, granted
from surgeon.report import Refusal
from surgeon.values import see_values
from surgeon.weights import weights_of

if TYPE_CHECKING:
    from surgeon.verify import Verdict
    from surgeon.verify.given import Given
    from surgeon.verify.verdict import Comparison as Compared


class Comparison:
    """How the results of one run are compared with the original.

    Args:
        original: The model before any step.
        axioms: The shapes and sizes that were stated.
        reference: What stands for the original, as `apply` says.
        inputs: By input name, how it is drawn.
        data: Files with real inputs.

    Attributes:
        given: What was said of inputs, read; None where nothing was.
    """

    def __init__(
        self,
        original: Model,
        axioms: Axioms,
        *,
        reference: Reference,
        inputs: Mapping[str, str] | None,
        data: Data,
    ) -> None:
        self.original, self._axioms = original, axioms
        self._told: dict[str, Any] = {
            "reference": reference,
            "shape": axioms.shapes or None,
            "sizes": axioms.sizes or None,
            "inputs": inputs,
            "data": data,
        }
        self.given = self._read() if inputs or data else None

    def _read(self) -> Given:
        from surgeon.verify.given import read_given

        told = {key: self._told[key] for key in ("inputs", "data", "shape", "reference")}
        return read_given(self.original.proto, **told)

    def see_values(self, values: Mapping[str, Any]) -> None:
        """Whether the data hold, of inputs that became constants, the values that were stated.

        Raises:
            RecipeError: They hold others.
        """
        for each in self.given.sets if self.given is not None and values else ():
            see_values(values, self.original, each.feeds, each.label)

    def see_sizes(self) -> None:
        """Whether the data have sizes as assumed.

        Raises:
            RecipeError: They have others.
        """
        for each in self.given.sets if self.given is not None else ():
            see_sizes(self._axioms, self.original, each.feeds, each.label)

    def how_far(self, steps: Sequence[tuple[Model, Model]], recipes: Sequence[Recipe]) -> list[str]:
        """How far what recipes change moves the outputs; what is recorded is of the changed."""
        if not steps:
            return []
        from surgeon.changing import how_far

        told = {**self._told, "reference": None}
        return [how_far(before, after, recipes, **told) for before, after in steps]

    def verdict(
        self,
        work: Operation,
        progress: Callable[[str], None] | None,
        at: Compared | None = None,
    ) -> Verdict:
        """What the comparison finds of a result; `at`: on the drawn inputs of this one alone."""
        from surgeon.isolation import lightened
        from surgeon.verify import verify

        custom: frozenset[str] = frozenset().union(*(recipe.custom for recipe in work.recipes))
        proto, initializers = work.model.written()
        light, folder = lightened(proto, self.original.folder, initializers)
        told = dict(self._told)
        if at is not None:
            sizes = {dim: (size,) for dim, size in at.sizes.items()}  # of tied dims it has none
            told |= {"seeds": (at.seed,), "sizes": {**(told["sizes"] or {}), **sizes}}
        found = verify(
            self.original.proto,
            work.handed.put_back(light),
            **told,
            folder_original=self.original.folder,
            folder_result=folder,
            custom=custom,
            functions=[text for recipe in work.recipes for text in recipe.functions],
            retyped=work.notes.retyped,
            allow_approximate=_granted(work),
            narrowed=False,
            progress=progress,
        )
        if is_heavy(self.original.proto.graph.initializer):
            gc.collect()  # graphs are circles, and hold the result until Python looks for some
        found = replace(found, mend="")  # its mends are for two files; a run that fails has its own
        if found.original == "broken" and any(recipe.remakes for recipe in work.recipes):
            # what was compared with is not the file as it came
            said = found.detail.replace("the original", "the file as the recipe changes it", 1)
            found = replace(found, detail=said)
        runs = found.status in ("equivalent", "runs") and not found.custom_operators
        if not runs or not work.handed.layers:
            return found
        # what was compared has the original's interface, and what is saved another
        why = self._fault_of(work.model.to_proto(), work.recipes)
        said = f"it does not load with the interface that it is given: {why}"
        return replace(found, status="broken", detail=said) if why else found

    def fault(self, recipes: Sequence[Recipe]) -> str:
        """Why onnxruntime does not load what nothing changed; "" where it does, or is not asked."""
        why = self._fault_of(self.original.proto, recipes)
        if not why:
            return ""
        from surgeon.isolation import unknown_operators

        used = {recipe.name for recipe in recipes}
        found = {
            each: names
            for each in unknown_operators(self.original.proto)
            if (names := sorted(set(recipes_for(each, foreign=True)) - used))
        }
        better = "".join(f"; `{names[0]}` has rules for `{each}`" for each, names in found.items())
        return f"nothing was changed, although {why}{better}"

    def _fault_of(self, proto: onnx.ModelProto, recipes: Sequence[Recipe]) -> str:
        """Why onnxruntime does not load a model; "" where it does, or is not asked."""
        from surgeon.isolation import MOST_LOADED, fault_of, unknown_operators
        from surgeon.verify.originals import is_declared

        if proto.functions or weights_of(proto.graph).size > MOST_LOADED:
            return ""
        why = fault_of(proto, folder=self.original.folder)
        custom = frozenset().union(*(recipe.custom for recipe in recipes))
        unknown = unknown_operators(proto) if why and custom else ()
        if not why or (unknown and all(is_declared(name, custom) for name in unknown)):
            return ""
        return why

    def culprits(self, work: Operation, verdict: Verdict) -> frozenset[Place]:
        """The rewrites with which the result differs; none where they cannot be told."""
        if verdict.original == "broken":
            return frozenset()
        if work.progress:
            work.progress("look for the rewrites at fault")

        fails = _Failing(self, work, verdict)
        refused = frozenset((r.recipe, r.rule, r.node) for r in work.notes.refusals)
        try:
            made = work.notes.changes[len(work.begun.changes) :]  # what was joined is in both
            return find_culprits(made, refused, fails) or frozenset()
        except SurgeonError:  # with some rewrites left out a recipe may not settle
            return frozenset()

    def keep(self, work: Operation, verdict: Verdict) -> None:
        """Keep what shows that the result differs, in the folder for evidence if there is one."""
        if work.evidence is None:
            return
        from surgeon.evidence import keep
        from surgeon.verify.differing import differing_feeds

        feeds = differing_feeds(self.original.proto, verdict, **self._told)
        label = f"the whole model, with {', '.join(recipe.name for recipe in work.recipes)}"
        keep(work.evidence, label, verdict.detail, self.original, work.model, feeds or {})


class _Failing:
    """Whether the result differs with some of the rewrites: looked for where it did before.

    Most of a comparison is the search for sizes and numbers at which the original runs and tells
    something, and these are known by then.

    Args:
        beside: What compares.
        work: The run, with all rewrites.
        verdict: What was found of its result.
    """

    def __init__(self, beside: Comparison, work: Operation, verdict: Verdict) -> None:
        self._beside, self._work, self._status = beside, work, verdict.status
        self._at: Compared | None = None
        self._look_where(work, verdict)

    def __call__(self, kept: Kept, *, anywhere: bool = False) -> bool:
        work = self._work.again(kept, check=False)
        if not work.changed:
            return False
        found = self._beside.verdict(work, None, None if anywhere else self._at)
        if found.status != self._status:
            return False
        if anywhere:
            self._look_where(work, found)
        return True

    def _look_where(self, work: Operation, verdict: Verdict) -> None:
        """Look from now on where this result differs, if it does when only that is looked at."""
        bad = next((c for c in verdict.comparisons if not c.agrees), None)
        self._at = None
        if bad is not None and bad.seed >= 0:
            found = self._beside.verdict(work, None, bad)
            self._at = bad if found.status == self._status else None


def unbounded(work: Operation) -> list[str]:
    """The approximate rules that fired, and say nothing of how large an error they make."""
    rules = (rule for recipe in work.recipes for rule in recipe.rules)
    free = {(r.recipe, r.id) for r in rules if r.exact == "approximate" and r.bound is None}
    fired = dict.fromkeys((c.recipe, c.rule) for c in work.notes.changes)
    return [f"{recipe}/{rule}" for recipe, rule in fired if (recipe, rule) in free]


def held_back(work: Operation, at_fault: Sequence[Refusal]) -> dict[str, list[str]]:
    """Rules that may do without rewrites at fault, by what has to be allowed for them.

    Those of the same recipes that match operators at which the rewrites began.
    """
    rules = [(rule, work.allow | recipe.allow) for recipe in work.recipes for rule in recipe.rules]
    blamed = {(refusal.recipe, refusal.rule) for refusal in at_fault}
    begun = {
        (rule.recipe, operator)
        for rule, _ in rules
        if (rule.recipe, rule.id) in blamed
        for operator in rule.match.root.operators
    }
    found: dict[str, list[str]] = {}
    for rule, allow in rules:
        matched = {(rule.recipe, each) for node in rule.match.nodes for each in node.operators}
        if (kind := rule.waits(allow)) and not begun.isdisjoint(matched):
            found.setdefault(kind, []).append(f"{rule.recipe}/{rule.id}")
    return found


def _granted(work: Operation) -> float | None:
    """The error that the approximate rules that fired may make together."""
    rules = (rule for recipe in work.recipes for rule in recipe.rules)
    return granted(rules, Counter((c.recipe, c.rule) for c in work.notes.changes))
