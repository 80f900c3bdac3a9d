"""Cases of recipes: runs what `NAME.cases.yaml` beside `NAME.yaml` says, and accepts nothing.

Every rule needs a case where it fires and one where it must not. A case where rules fire buys: they
fire so often and no other does; `apply` makes the rewrites, which it compares with what they
replace on edge values and at further sizes too; the result is `after`, up to names; a second run
changes nothing; the same rules fire with everything renamed and reordered; the result loads in
onnxruntime; and its numbers agree with the original's at several sizes, as the rules promise.

What a problem begins with: `Missing` (a rule did not fire), `Noisy` (one fired that must not),
`Silent` (it refused for another reason), `Wrong` (structure or numbers), `Restless` (a second run
changes something), `Fickle` (names or order matter), `Broken` (the result does not load or run),
`Weak` and `Unchecked` (the comparison says little, or was not possible), `Untested` (a rule),
`Faulty` (the case itself, or in a folder the recipe, is written wrongly).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from surgeon.authoring import PYTHON, recipe_of
from surgeon.cases.reading import Case, Unread, read_each
from surgeon.cases.running import RENAMINGS, problems_of
from surgeon.errors import Location, RecipeError
from surgeon.recipe import Recipe, Rule, bundled

__all__ = ["Case", "Outcome", "Outcomes", "run", "run_cases"]

SUFFIX = ".cases.yaml"
NOTHING = "nothing was tested: there is no case, and no rule that lacks one"
# What a recipe has and other YAML files of a folder have not; one may be forgotten.
_RECIPE = re.compile(
    r"""^[{"']*(surgeon|rules|steps|changes|in-front|behind)["']?[ \t]*:""", re.MULTILINE
)


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
    """What came of all cases, in the order they stand in.

    Attributes:
        outcomes: Of each case, and of each rule that lacks cases.
        passed: The files of folders that are no recipes, and were passed over.
    """

    outcomes: tuple[Outcome, ...]
    passed: tuple[Path, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong anywhere, and something was tested."""
        return bool(self.outcomes) and not self.failed

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Those with something wrong."""
        return tuple(outcome for outcome in self.outcomes if not outcome.ok)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    def __str__(self) -> str:
        if not self.outcomes:
            return NOTHING
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
        paths: Recipes by file or bundled name, files of cases, or folders of them, which are
            looked into with all that is in them.
        progress: Told every outcome as it comes.
        thorough: Whether each rewrite is compared with what it replaces on edge values too, as
            `apply` does; it takes half as long again.
        renamings: What the renamings are drawn from in which each case runs once more; with 0 the
            last node that can come, comes.

    Raises:
        RecipeError: A path, a recipe or a file of cases is wrong.
    """
    recipes, passed = _recipes(paths)
    alone = len(recipes) == 1
    each = (_of_recipe(path, thorough, renamings, alone=alone) for path in recipes)
    return Outcomes(_told(chain.from_iterable(each), progress), passed)


def _recipes(paths: Sequence[str | Path]) -> tuple[list[Path], tuple[Path, ...]]:
    """The recipes that the paths name, each once; and other files of their folders."""
    found: dict[Path, None] = {}
    passed: dict[Path, None] = {}
    for given in paths:
        path = Path(given)
        if path.is_dir():
            inside = _inside(path)
            recipes = [each for each in inside if _is_recipe(each)]
            if not recipes:
                raise RecipeError(
                    "there is no recipe in this folder, nor in one of its own",
                    where=str(path),
                    mend="Name a folder that holds .yaml files that begin with `surgeon: 1`.",
                )
            found.update(dict.fromkeys(recipes))
            passed.update((each, None) for each in inside if each not in found)
        elif path.name.endswith(SUFFIX):
            found[path.with_name(path.name.removesuffix(SUFFIX) + ".yaml")] = None
        elif path.suffix not in (".yaml", ".yml") and str(given) in (known := bundled()):
            found[known[str(given)]] = None
        else:
            found[path] = None
    return list(found), tuple(passed)


def _inside(folder: Path) -> list[Path]:
    """The YAML files of a folder and of those in it that are not hidden, but for cases."""
    return [
        path
        for path in sorted(folder.rglob("*.yaml"))
        if path.is_file()
        and not path.name.endswith(SUFFIX)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]


def _is_recipe(path: Path) -> bool:
    """Whether a file of a folder is a recipe, if a wrong one: other tools have YAML files too."""
    try:
        return bool(_RECIPE.search(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError):
        return False


def run_cases(
    path: str | os.PathLike[str],
    *rules: Rule,
    progress: Callable[[Outcome], None] | None = None,
) -> Outcomes:
    """Run a file of cases for rules that are written in Python, as `surgeon test` does for others.

    Args:
        path: The file, `NAME.cases.yaml`; it names the rules by their ids.
        rules: The rules, which are one recipe.
        progress: Told every outcome as it comes.

    Returns:
        What came of each case, and of each rule that lacks one; `assert outcomes.ok, outcomes`.

    Raises:
        RecipeError: The file cannot be read, or what is given is no rule.
    """
    if wrong := [rule for rule in rules if not isinstance(rule, Rule)]:
        raise RecipeError(
            f"`{type(wrong[0]).__name__}` is no rule",
            where="rules",
            mend="Give what `@surgeon.rule(...)` makes; `surgeon test` runs the cases of recipes.",
        )
    beside = Path(path)
    cases = read_each(beside, [rule.id for rule in rules])
    return Outcomes(_told(_outcomes(recipe_of(*rules), cases, beside, True, RENAMINGS), progress))


def _told(
    outcomes: Iterable[Outcome], progress: Callable[[Outcome], None] | None
) -> tuple[Outcome, ...]:
    """All of them; each is told as it comes."""
    found: list[Outcome] = []
    for outcome in outcomes:
        found.append(outcome)
        if progress:
            progress(outcome)
    return tuple(found)


def _of_recipe(
    path: Path, thorough: bool, renamings: Sequence[int], *, alone: bool
) -> Iterator[Outcome]:
    """The outcomes of one recipe; with others beside it, what is wrong with its files is one."""
    try:
        recipe, cases, beside = _read(path)
    except RecipeError as error:
        if alone:
            raise
        place = error.where if isinstance(error.where, Location) else Location(str(path))
        yield Outcome(path.stem, "its files", place, (_faulty(error),), 0.0)
        return
    yield from _outcomes(recipe, cases, beside, thorough, renamings)


def _outcomes(
    recipe: Recipe,
    cases: Sequence[Case | Unread],
    beside: Path,
    thorough: bool,
    renamings: Sequence[int],
) -> Iterator[Outcome]:
    rules = (*recipe.rules, *recipe.changes)
    own = [r for r in rules if recipe.source in (PYTHON, r.location.file)]
    read = [case for case in cases if isinstance(case, Case)]
    if len(read) == len(cases):  # else one that cannot be read may be what lacks
        yield from (_uncovered(recipe, rule, read, beside) for rule in own if _lacks(rule, read))
    for case in cases:
        if isinstance(case, Unread):
            place = case.error.where if isinstance(case.error.where, Location) else case.location
            yield Outcome(recipe.name, case.title, place, (_faulty(case.error),), 0.0)
            continue
        begin = time.perf_counter()
        location = case.location
        try:
            problems = tuple(problems_of(case, recipe, thorough=thorough, renamings=renamings))
        except RecipeError as error:
            problems, location = (_faulty(error),), _place(error, case)
        seconds = time.perf_counter() - begin
        yield Outcome(recipe.name, case.title, location, problems, seconds)


def _read(path: Path) -> tuple[Recipe, Sequence[Case | Unread], Path]:
    """A recipe, its cases, and the file where they are, or would be."""
    recipe = Recipe.load(str(path) if path.suffix else f"{path}.yaml")
    beside = path.with_name(path.stem + SUFFIX)
    if not beside.is_file():
        return recipe, (), beside
    return recipe, read_each(beside, [r.id for r in (*recipe.rules, *recipe.changes)]), beside


def _faulty(error: RecipeError) -> str:
    return f"Faulty: {error.what}\n  mend: {error.mend}"


def _place(error: RecipeError, case: Case) -> Location:
    """Where a case is wrong: at a key that an option of `apply` is like, if that is at fault."""
    if isinstance(error.where, Location):
        return error.where
    return case.keys.get(error.where.removeprefix("--"), case.location)


def _lacks(rule: Rule, cases: Sequence[Case]) -> list[str]:
    stays = rule.only_refuses
    fires = stays or any(rule.id in case.fires for case in cases)
    refuses = any(case.refuses and case.refuses.rule == rule.id for case in cases)
    return ["fires"] * (not fires) + ["must not fire"] * (not refuses)


def _uncovered(recipe: Recipe, rule: Rule, cases: Sequence[Case], beside: Path) -> Outcome:
    file = f"{beside.name} has" if beside.is_file() else f"there is no {beside.name}, and"
    problems = tuple(
        f"Untested: {file} no case where `{rule.id}` {what}" for what in _lacks(rule, cases)
    )
    return Outcome(recipe.name, f"rule `{rule.id}`", rule.location, problems, 0.0)
