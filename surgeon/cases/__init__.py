"""Cases of recipes: runs what `NAME.cases.yaml` beside `NAME.yaml` says, and accepts nothing.

Every rule needs a case where it fires and one where it must not. A case where rules fire buys: they
fire so often and no other does; `apply` makes the rewrites, which it compares with what they
replace on edge values and at further sizes too; the result is `after`, up to names; a second run
changes nothing; the same rules fire with everything renamed and reordered; the result loads in
onnxruntime; and its numbers agree with the original's at several sizes, as the rules promise.

What a problem begins with: `Missing` (a rule did not fire), `Noisy` (one fired that must not),
`Silent` (it refused for another reason), `Wrong` (structure or numbers), `Restless` (a second run
changes something), `Fickle` (names or order matter), `Broken` (the result does not load or run),
`Weak` and `Unchecked` (the comparison says little, or was not possible), `Untested` (a rule).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from surgeon.cases.reading import Case, read_cases
from surgeon.cases.running import RENAMINGS, problems_of
from surgeon.errors import Location, RecipeError
from surgeon.recipe import Recipe, Rule, bundled

__all__ = ["Case", "Outcome", "Outcomes", "run"]

SUFFIX = ".cases.yaml"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one case, or of a rule that lacks cases.

    Attributes:
        recipe: The recipe's name.
        case: The case's title.
        location: Where it begins.
        problems: What is wrong, each beginning with a word of the module's list.
        seconds: Wall-clock time.
    """

    recipe: str
    case: str
    location: Location
    problems: tuple[str, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        lines = [f"{self.location}: {self.recipe}: {self.case}", *self.problems]
        return "\n  ".join(lines)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What came of all cases, in the order they stand in."""

    outcomes: tuple[Outcome, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong anywhere."""
        return not self.failed

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Those with something wrong."""
        return tuple(outcome for outcome in self.outcomes if not outcome.ok)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    def __str__(self) -> str:
        return "\n".join(str(outcome) for outcome in self.failed) or f"{len(self)} cases hold"


def run(
    paths: Sequence[str | Path],
    *,
    progress: Callable[[Outcome], None] | None = None,
    thorough: bool = True,
    renamings: Sequence[int] = RENAMINGS,
) -> Outcomes:
    """Run the cases of recipes.

    Args:
        paths: Recipes by file or bundled name, files of cases, or folders of them.
        progress: Told every outcome as it comes.
        thorough: Whether each rewrite is compared with what it replaces on edge values too, as
            `apply` does; it takes half as long again.
        renamings: What the renamings are drawn from in which each case runs once more; with 0 the
            last node that can come, comes.

    Raises:
        RecipeError: A path, a recipe or a file of cases is wrong.
    """
    found: list[Outcome] = []
    for path in _recipes(paths):
        for outcome in _of_recipe(path, thorough, renamings):
            found.append(outcome)
            if progress:
                progress(outcome)
    return Outcomes(tuple(found))


def _recipes(paths: Sequence[str | Path]) -> list[Path]:
    """The recipes that the paths name, each once."""
    found: dict[Path, None] = {}
    for given in paths:
        path = Path(given)
        if path.is_dir():
            inside = [p for p in sorted(path.glob("*.yaml")) if not p.name.endswith(SUFFIX)]
            if not inside:
                raise RecipeError(
                    "there is no recipe in this folder",
                    where=str(path),
                    mend="Name a folder that holds .yaml files.",
                )
            found.update(dict.fromkeys(inside))
        elif path.name.endswith(SUFFIX):
            found[path.with_name(path.name.removesuffix(SUFFIX) + ".yaml")] = None
        elif path.suffix not in (".yaml", ".yml") and str(given) in (known := bundled()):
            found[known[str(given)]] = None
        else:
            found[path] = None
    return list(found)


def _of_recipe(path: Path, thorough: bool, renamings: Sequence[int]) -> Iterator[Outcome]:
    recipe = Recipe.load(str(path) if path.suffix else f"{path}.yaml")
    beside = path.with_name(path.stem + SUFFIX)
    rules = (*recipe.rules, *recipe.changes)
    own = [rule for rule in rules if rule.location.file == recipe.source]
    cases: tuple[Case, ...] = ()
    if beside.is_file():
        cases = read_cases(beside, [rule.id for rule in rules])
    yield from (_uncovered(recipe, rule, cases, beside) for rule in own if _lacks(rule, cases))
    for case in cases:
        begin = time.perf_counter()
        problems = tuple(problems_of(case, recipe, thorough=thorough, renamings=renamings))
        seconds = time.perf_counter() - begin
        yield Outcome(recipe.name, case.title, case.location, problems, seconds)


def _lacks(rule: Rule, cases: Sequence[Case]) -> list[str]:
    stays = rule.only_refuses
    fires = stays or any(rule.id in case.fires for case in cases)
    refuses = any(case.refuses and case.refuses.rule == rule.id for case in cases)
    return ["fires"] * (not fires) + ["must not fire"] * (not refuses)


def _uncovered(recipe: Recipe, rule: Rule, cases: Sequence[Case], beside: Path) -> Outcome:
    problems = tuple(
        f"Untested: {beside.name} has no case where `{rule.id}` {what}"
        for what in _lacks(rule, cases)
    )
    return Outcome(recipe.name, f"rule `{rule.id}`", rule.location, problems, 0.0)
