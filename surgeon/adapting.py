"""`adapt`: the recipes behind which something of the user's passes, found by asking it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from surgeon.choices import Data, check_data, check_function, several
from surgeon.errors import SurgeonError, UnfitError, few
from surgeon.model import Model, ModelLike
from surgeon.nested import every_node
from surgeon.opening import RecipeLike, as_recipe, told_apart
from surgeon.recipe import Recipe
from surgeon.reducing import PartNode, Reduction, reduced
from surgeon.reducing.asking import Ask, Asked, Runs
from surgeon.reducing.mends import Mend, content_of, mends_of
from surgeon.reducing.search import Spent
from surgeon.spelling import is_foreign, operator_name
from surgeon.surgery import Result, apply

MOST = 500  # runs
_ROUNDS = 30
_OTHERS = 12  # recipes about the operators of a part that are tried on the whole
_Names = tuple[str, ...]  # of recipes


@dataclass(frozen=True, slots=True)
class Round:
    """A place at which the model failed, and what was found to help there.

    Attributes:
        nodes: Of the smallest part found that failed.
        of: How many nodes the model had then, without constants.
        recipe: The recipe that was taken; empty where none was.
        waiting: Recipes that would help, and need what was not given: to be allowed, or sizes.
    """

    nodes: tuple[PartNode, ...]
    of: int
    recipe: str
    waiting: tuple[Mend, ...]


@dataclass(frozen=True, slots=True)
class Adaptation:
    """What `adapt` gives.

    Attributes:
        result: What `apply` gives with the recipes that were found.
        recipes: Their names, in order; none where the model passes as it came.
        rounds: What failed on the way, in order.
        runs: How often the check was asked.
    """

    result: Result
    recipes: tuple[str, ...]
    rounds: tuple[Round, ...]
    runs: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, beside the report's."""
        rounds = [asdict(each) for each in self.rounds]
        return {"found": list(self.recipes), "rounds": rounds, "runs": self.runs}


def adapt(
    model: ModelLike,
    passes: Callable[[Path], bool],
    *recipes: RecipeLike,
    failing: Callable[[], Callable[[Path], bool]] | None = None,
    feeds: Data | None = None,
    most: int = MOST,
    progress: Callable[[str], None] | None = None,
    allow: str | Sequence[str] = (),
    **options: Any,
) -> Adaptation:
    """Find the recipes behind which a model passes a check, and apply them.

    Where the model fails, the smallest part that fails is looked for, as `reduce` does, and a
    recipe behind which this part passes; then the whole is asked again. Recipes that turn out not
    to be needed are left out. The result is compared with the original as by `apply`, and is the
    model that passed.

    Args:
        model: A path, a `Model`, an `onnx.ModelProto` or a graphsurgeon `Graph`; not changed.
        passes: Asked with the file of a model, in a folder of its own: whether it passes.
        recipes: Recipes to begin with, which stay.
        failing: Gives, whenever a whole model did not pass, what says whether a part fails as that
            did; by default what does not pass fails.
        feeds: As `data` of `reduce`: `model.npz` lies beside each file.
        most: How often may be asked.
        progress: Called with a line of text before each.
        allow: Kinds of rules that may fire, as of `apply`.
        options: More of `apply`: `shape`, `assume`, `values`, `data`, `opset`, and so on.

    Raises:
        UnfitError: No recipes were found; it carries the `rounds`.
        SurgeonError: As `apply` raises.
    """
    check_function("passes", passes)
    check_data(feeds, "feeds")
    search = _Search(
        Model.of(model),
        [as_recipe(recipe) for recipe in recipes],
        passes,
        failing or (lambda: lambda path: not passes(path)),
        feeds,
        Runs(most, progress),
        {"allow": several(allow), "progress": progress, **options},
    )
    chain = search.chain()
    result = search.result(chain)
    return Adaptation(result, _names(chain), tuple(search.rounds), search.runs.done)


class _Search:
    """Looks for a chain of recipes; those that the user gave stand in front, and stay."""

    def __init__(
        self,
        original: Model,
        begun: list[Recipe],
        passes: Ask,
        failing: Callable[[], Ask],
        feeds: Data | None,
        runs: Runs,
        options: Mapping[str, Any],
    ) -> None:
        self.original, self.begun, self.passes = original, begun, passes
        self.failing, self.feeds, self.runs, self.options = failing, feeds, runs, options
        self.rounds: list[Round] = []
        self._contents: dict[_Names, bytes | None] = {}  # behind recipes; None where refused
        self._known: dict[bytes, Ask | None] = {}  # what fails alike; None where it passes
        self._last: tuple[_Names, tuple[Model, Asked] | None] | None = None

    def chain(self) -> list[Recipe]:
        """The recipes behind which the model passes.

        Raises:
            UnfitError: None were found.
        """
        starts = [self.begun, *self._plain()]
        try:
            for start in starts:
                if self._passes(start):
                    return self._needed(start)
            distinct = {self._content(start): start for start in reversed(starts)}
            for start in distinct.values():
                if (found := self._from(start)) is not None:
                    return self._needed(found)
        except Spent:
            mend = f"Give more runs: `--most {2 * self.runs.most}`."
            raise self._unfit(f"it was asked {self.runs.most} times", mend) from None
        raise self._stuck()

    def result(self, chain: Sequence[Recipe]) -> Result:
        """The result, compared with the original, and seen to pass."""
        result = apply(self.original, *chain, **self.options)
        self.runs.most = max(self.runs.most, self.runs.done + 1)
        made = Model.of(result.model)
        if not self._asked(made).model(made, "the result", self.passes):
            what = "what passed does not pass again"
            raise self._unfit(what, "Give a check that says the same of one file each time.")
        return result

    def _plain(self) -> Iterator[list[Recipe]]:
        """A second chain to begin with: behind a plain graph of standard nodes much passes."""
        nodes = every_node(self.original.proto.graph.node)
        foreign = any(is_foreign(operator_name(node)) for node in nodes)
        there = {recipe.name for recipe in self.begun}
        more = [name for name in (*(["aten"] if foreign else []), "clean") if name not in there]
        if more:
            yield [*self.begun, *map(Recipe.load, more)]

    def _from(self, chain: list[Recipe]) -> list[Recipe] | None:
        """The chain, and behind it recipes for one place after the other; None where one stays."""
        self.rounds = []
        tried: dict[frozenset[str], set[str]] = {}  # by the nodes that fail
        last: frozenset[str] | None = None
        for _ in range(_ROUNDS):
            if self._passes(chain):
                return chain
            made, alike = self._made(chain), self._known.get(self._content(chain) or b"")
            if made is None or alike is None:
                return None
            part = reduced(*made, alike)
            failed = frozenset(node.name for node in part.nodes)
            if failed == last:
                chain = chain[:-1]  # which did not help here
            last, before = failed, tried.setdefault(failed, set())
            recipe, waiting = self._choice(part, made[1], before)
            self.rounds.append(Round(part.nodes, part.of, recipe, waiting))
            if not recipe:
                if self.runs.done >= self.runs.most:
                    raise Spent  # before all were tried
                return self._unproven(chain, part, before)
            before.add(recipe)
            chain = [*chain, Recipe.load(recipe)]
        return None

    def _choice(
        self, part: Reduction, asked: Asked, before: Collection[str]
    ) -> tuple[str, tuple[Mend, ...]]:
        """The best recipe behind which a part passes, and those that would have to be allowed."""
        waiting: list[Mend] = []
        allow = [kind for kind in self.options["allow"] if kind in ("approximate", "contract")]
        for mend in mends_of(part.model, lambda m: asked.mended(m, self.passes), allow):
            if mend.allow or mend.shaped:
                waiting.append(mend)
            elif mend.recipe not in before:
                return mend.recipe, ()
        return "", tuple(waiting)

    def _unproven(
        self, chain: list[Recipe], part: Reduction, before: Collection[str]
    ) -> list[Recipe] | None:
        """The chain with a recipe about the part's operators behind which all of it passes.

        What fails may be another part than the smallest one found.
        """
        names = dict.fromkeys(name for node in part.nodes for name in node.recipes)
        for name in [name for name in names if name not in before][:_OTHERS]:
            if self._passes(longer := [*chain, Recipe.load(name)]):
                return longer
        return None

    def _needed(self, chain: list[Recipe]) -> list[Recipe]:
        """The chain without recipes that it passes without."""
        kept = chain
        for recipe in chain[len(self.begun) :]:
            shorter = [each for each in kept if each is not recipe]
            with suppress(Spent):
                kept = shorter if self._passes(shorter) else kept
        return kept

    def _passes(self, chain: Sequence[Recipe]) -> bool:
        """Whether the model passes behind a chain; not behind one that cannot be applied."""
        content = self._content(chain)
        if content is not None and content not in self._known:
            made = self._made(chain)
            passed = made is not None and made[1].model(made[0], _behind(chain), self.passes)
            self._known[content] = None if passed else self.failing()
        return content is not None and self._known[content] is None

    def _content(self, chain: Sequence[Recipe]) -> bytes | None:
        """What tells models apart that chains give; None where a chain is refused."""
        names = _names(chain)
        if names not in self._contents:
            made = self._made(chain)
            self._contents[names] = None if made is None else content_of(made[0])
        return self._contents[names]

    def _made(self, chain: Sequence[Recipe]) -> tuple[Model, Asked] | None:
        """The model behind a chain, not compared as a whole, and what asks of it.

        None where the chain is refused. The last one is kept.
        """
        names = _names(chain)
        if self._last is None or self._last[0] != names:
            model = self._applied(chain)
            self._last = names, None if model is None else (model, self._asked(model))
        return self._last[1]

    def _applied(self, chain: Sequence[Recipe]) -> Model | None:
        checked = self.options.get("verify", True)
        try:
            whole = {"verify": False, "require": "runs", "save_partial": False}
            options = {"check": checked, **self.options, **whole}
            return Model.of(apply(self.original, *chain, **options).model)
        except SurgeonError:
            if chain == self.begun:
                raise
            return None

    def _asked(self, model: Model) -> Asked:
        return Asked(told_apart(model)[0], self.runs, self.feeds)

    def _stuck(self) -> UnfitError:
        """The error of a place at which nothing helps."""
        last = self.rounds[-1]
        failed = few([f"{node.name} ({node.operator})" for node in last.nodes])
        mend = "Save the part with `surgeon reduce`, and write a rule for it: docs/language.md."
        if "approximate" not in self.options["allow"]:
            mend = "`--allow approximate` lets more recipes be tried. " + mend
        if last.waiting:
            one = last.waiting[0]
            given = " ".join(f"--allow {kind}" for kind in one.allow) or "--shape INPUT=..."
            mend = f"Give `{given}`: behind `{one.recipe}` this part passes then."
        return self._unfit(f"nothing that is allowed helps where it fails: {failed}", mend)

    def _unfit(self, what: str, mend: str) -> UnfitError:
        error = UnfitError(what, where=str(self.original.path or "model"), mend=mend)
        error.rounds = tuple(self.rounds)
        return error


def _names(chain: Sequence[Recipe]) -> _Names:
    return tuple(recipe.name for recipe in chain)


def _behind(chain: Sequence[Recipe]) -> str:
    return f"behind {' '.join(_names(chain))}" if chain else "as it came"
