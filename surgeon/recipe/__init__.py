"""Recipes: YAML read into frozen rules and steps, with every check that needs no model."""

from __future__ import annotations

import hashlib
import os
import re
from collections import ChainMap
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from surgeon.document import read_text, suggest
from surgeon.errors import Location, RecipeError
from surgeon.extension import Extension
from surgeon.reading import is_file, open_file
from surgeon.recipe.fewer import chosen_from, kept_from
from surgeon.recipe.inverses import check_inverses
from surgeon.recipe.rules import (
    FOR_TARGET,
    IN_TURNS,
    AsReadStep,
    BuilderCall,
    FoldStep,
    FreeBatchStep,
    FreeSizesStep,
    HeaderStep,
    IrVersionStep,
    LowerOpsetStep,
    NamesStep,
    PlainAttributesStep,
    PlainMetadataStep,
    RaiseOpsetStep,
    Rule,
    RulesStep,
    ShareWeightsStep,
    SimplifyStep,
    StateShapesStep,
    Step,
    UnrollStep,
    granted,
)
from surgeon.recipe.shelf import shelved
from surgeon.recipe.written import Use, Written
from surgeon.wire import LARGEST

__all__ = [
    "FOR_TARGET",
    "IN_TURNS",
    "AsReadStep",
    "BuilderCall",
    "FoldStep",
    "FreeBatchStep",
    "FreeSizesStep",
    "HeaderStep",
    "IrVersionStep",
    "LowerOpsetStep",
    "NamesStep",
    "PlainAttributesStep",
    "PlainMetadataStep",
    "RaiseOpsetStep",
    "Recipe",
    "Rule",
    "RulesStep",
    "ShareWeightsStep",
    "SimplifyStep",
    "StateShapesStep",
    "Step",
    "UnrollStep",
    "bundled",
    "granted",
    "schema",
]

MAX_STEPS = 1000


class Recipe(NamedTuple):
    """What to do to a model, in order.

    Attributes:
        allow: `contract` and `approximate`, as far as rules of these kinds may fire. That of the
            recipe itself; recipes it uses do not decide it.
        custom: Operators (`my.domain.Op`) and domains that runtimes bring; those of used recipes
            included.
        same_shape: Those of `custom` whose first output has the dtype and shape of their first
            input, which the recipe promises; those of used recipes included.
        functions: What operators of `custom` compute, each as ONNX's text of a function; those of
            used recipes included.
        extensions: What is put in front of a model and behind it before any step; those of used
            recipes are nearer to it.
        changes: What a model is to compute otherwise, as rules that are tried once, before any
            step; those of used recipes come first.
        ensure: `no-aten` where a result with ATen nodes left is refused; that of the recipe itself.
        away_from: The element type that the recipe replaces; that of the recipe itself.
        source: The file as it was named, or `<text>`.
        digest: The sha256 of every text it was read from.
    """

    name: str
    about: str = ""
    steps: tuple[Step, ...] = ()
    allow: frozenset[str] = frozenset()
    custom: frozenset[str] = frozenset()
    same_shape: frozenset[str] = frozenset()
    functions: tuple[str, ...] = ()
    extensions: tuple[Extension, ...] = ()
    changes: tuple[Rule, ...] = ()
    ensure: str | None = None
    away_from: str | None = None
    source: str = "<text>"
    digest: str = ""

    @classmethod
    def load(
        cls,
        name_or_path: str | Path,
        *,
        functions: Collection[str] = (),
        builders: Collection[str] | None = None,
    ) -> Recipe:
        """Read a recipe; one that was read before is given again, where no file of it has changed.

        Args:
            name_or_path: A path to a YAML file, or the name of a bundled recipe.
            functions: Names of functions that expressions may call beyond the table's own.
            builders: Names of builders beyond the table's own.

        Raises:
            RecipeError: There is no such recipe, or it is wrong; names the place.
        """
        name = str(name_or_path)
        known = (name, frozenset(functions), frozenset(builders or ()))
        kept = _loaded.get(known)
        if kept is not None and all(map(_is_as_read, kept.texts)):
            return kept.recipe
        loader = _Loader(functions, builders)
        path = loader.find(name, Path(), name)
        recipe = loader.file(path, _key(path))
        if any(extension.file for extension in recipe.extensions):
            return recipe  # whether the model that it names has changed is not looked at
        if known not in _loaded and len(_loaded) >= _KEPT:
            _loaded.pop(next(iter(_loaded)), None)
        _loaded[known] = _Loaded(recipe, tuple(loader.texts))
        return recipe

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        file: str = "<text>",
        functions: Collection[str] = (),
        builders: Collection[str] | None = None,
    ) -> Recipe:
        """Read a recipe from text; `use: ./other.yaml` is looked up beside `file`."""
        return _Loader(functions, builders).recipe(text, file, _key(Path(file)))

    @property
    def remakes(self) -> bool:
        """Whether it joins something to a model, or changes what that computes, before any step."""
        return bool(self.extensions or self.changes)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of every step, in order."""
        return tuple(
            rule for step in self.steps if isinstance(step, RulesStep) for rule in step.rules
        )


def come_along(folder: str) -> Path:
    """Where a folder of a checkout lies, or what a wheel has of it."""
    package = Path(__file__).parent.parent
    is_checkout = (package.parent / "pyproject.toml").is_file()
    return package.parent / folder if is_checkout else package / "bundled"


def bundled() -> dict[str, Path]:
    """The recipes that come with surgeon, by name: of a checkout its own, else the wheel's."""
    folder = come_along("recipes")
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    ours = (n for n in names if n.endswith(".yaml") and not n.endswith(".cases.yaml"))
    return {name.removesuffix(".yaml"): folder / name for name in ours}


def schema() -> dict[str, Any]:
    """The JSON schema of a recipe file, for editors."""
    from surgeon.recipe.models import RecipeModel

    return RecipeModel.model_json_schema(by_alias=True)


def _key(path: Path) -> str:
    return os.path.realpath(path)


class _Text(NamedTuple):
    """A file as it was read."""

    path: Path
    key: str
    text: str


def _is_as_read(read: _Text) -> bool:
    """Whether a file is still there with the same text."""
    try:
        return _key(read.path) == read.key and read_text(read.path) == read.text
    except RecipeError:
        return False


class _Loaded(NamedTuple):
    """A recipe, and every file it came from."""

    recipe: Recipe
    texts: tuple[_Text, ...]


_loaded: dict[tuple[str, frozenset[str], frozenset[str]], _Loaded] = {}
_KEPT = 64  # recipes; of a folder of models, all are given the same few


@dataclass(frozen=True, slots=True)
class _Loader:
    """Reads a recipe and those it uses, each file once."""

    functions: Collection[str]
    builders: Collection[str] | None
    read: dict[str, Recipe] = field(default_factory=dict)
    reading: list[str] = field(default_factory=list)
    texts: list[_Text] = field(default_factory=list)
    shelf: dict[str, Path] = field(default_factory=bundled)
    digest: Any = field(default_factory=hashlib.sha256)

    def find(self, name: str, folder: Path, where: Location | str) -> Path:
        """The file of a recipe named by path (relative to a folder) or by a bundled name."""
        if name.endswith((".yaml", ".yml")) or "/" in name or "\\" in name:
            return folder / name
        if name in self.shelf:
            return self.shelf[name]
        path = folder / f"{name}.yaml"
        if is_file(path):
            mend = f"Write `./{path.name}` for the file beside it."
        else:
            words = f"`surgeon recipes which {name}` looks for them by words."
            mend = suggest(name, self.shelf, words) if self.shelf else "Name a YAML file."
        raise RecipeError(f"there is no recipe `{name}`", where=where, mend=mend)

    def file(self, path: Path, key: str, by: Location | None = None) -> Recipe:
        """The recipe in a file.

        Args:
            path: The file.
            key: What it is known by.
            by: Where another recipe uses it: that may be a stranger's, and name any file. Of one
                that is no recipe nothing is said, since what is wrong would be quoted.
        """
        text = read_text(path)
        if by is not None and not _BEGIN.search(text):
            mend = "A recipe has a line `surgeon: 1`."
            raise RecipeError(f"`{path}` is no recipe", where=by, mend=mend)
        self.texts.append(_Text(path, key, text))
        return self.recipe(text, str(path), key)

    def recipe(self, text: str, file: str, key: str) -> Recipe:
        self.reading.append(key)
        data = text.encode("utf-8", "replace")
        self.digest.update(b"%d\n" % len(data) + data)
        written = self._written(text, file)
        used: list[Recipe] = []
        steps: list[Step] = []
        for step, place in zip(written.steps, written.places, strict=True):
            steps += self._used(step, file, used) if isinstance(step, Use) else [step]
            if len(steps) > MAX_STEPS:
                raise RecipeError(
                    f"more than {MAX_STEPS} steps", where=place, mend="Use fewer recipes."
                )
        changes = (*(c for recipe in used for c in recipe.changes), *written.changes)
        rules = [rule for s in steps if isinstance(s, RulesStep) for rule in s.rules]
        _check_ids([*rules, *changes])
        for step in steps:
            if isinstance(step, RulesStep):
                check_inverses(step.rules)
        for extension in written.extensions:
            if extension.file:
                with open_file(extension.path, LARGEST) as held:
                    self.digest.update(held.read())
        self.reading.pop()
        return Recipe(
            name=written.name,
            about=written.about,
            steps=tuple(steps),
            allow=written.allow,
            custom=written.custom.union(*(recipe.custom for recipe in used)),
            same_shape=written.same_shape.union(*(recipe.same_shape for recipe in used)),
            functions=(*written.functions, *(f for recipe in used for f in recipe.functions)),
            extensions=(*(e for recipe in used for e in recipe.extensions), *written.extensions),
            changes=changes,
            ensure=written.ensure,
            away_from=written.away_from,
            source=file,
            digest=self.digest.hexdigest(),
        )

    def _written(self, text: str, file: str) -> Written:
        """What one file says: a bundled one from the shelf, where it is as it was read."""
        path = Path(file)
        if not self.functions and not self.builders and self.shelf.get(path.stem) == path:
            kept = _shelved(path.stem, text, file)
            if kept is not None:
                return kept
        from surgeon.builders import BUILDERS
        from surgeon.recipe.file import read_file
        from surgeon.recipe.reading import Known

        builders: Any = ChainMap(dict.fromkeys(self.builders or ()), BUILDERS)  # type: ignore[arg-type]
        return read_file(text, file, Known(frozenset(), frozenset(self.functions), builders))

    def _used(self, use: Use, file: str, used: list[Recipe]) -> list[Step]:
        """What is used: without rules that are left out, or of these alone; and what is kept."""
        steps = kept_from(self._all_of(use, file, used), use.keep)
        return chosen_from(steps, use)

    def _all_of(self, use: Use, file: str, used: list[Recipe]) -> list[Step]:
        """The steps of a recipe; or one step of the rules of several, in order, each rule once."""
        if not use.together:
            recipe = self._use(use.names[0], use.places[0], file)
            used.append(recipe)
            return list(recipe.steps)
        rules: dict[Location, Rule] = {}
        tidy, keep = False, dict[str, None]()
        for name, where in zip(use.names, use.places, strict=True):
            recipe = self._use(name, where, file)
            used.append(recipe)
            for step in recipe.steps:
                if not isinstance(step, RulesStep):
                    raise RecipeError(
                        f"`{name}` has steps that are no rules, which cannot be put together",
                        where=where,
                        mend=f"Make it a step of its own: `- use: {name}`.",
                    )
                tidy = tidy or step.tidy
                keep |= dict.fromkeys(step.keep)
                for rule in step.rules:
                    rules.setdefault(rule.location, rule)
        return [RulesStep(tuple(rules.values()), tidy, tuple(keep))]

    def _use(self, name: str, where: Location, file: str) -> Recipe:
        path = self.find(name, Path(file).parent if file != "<text>" else Path(), where)
        if not os.path.isfile(path):  # which takes any text for a path, as `Path.is_file` does not
            raise RecipeError(f"there is no file `{path}`", where=where, mend="Check the path.")
        if not all(each.suffix in (".yaml", ".yml") for each in (path, path.resolve())):
            raise RecipeError(
                f"`{path}` is no recipe",
                where=where,
                mend="A recipe is used by its name, or by the path of a .yaml file.",
            )
        key = _key(path)
        if key in self.reading:
            raise RecipeError(
                f"`{name}` uses itself, by way of this", where=where, mend="Take this step out."
            )
        if key not in self.read:
            self.read[key] = self.file(path, key, where)
        return self.read[key]


def _shelved(stem: str, text: str, file: str) -> Written | None:
    """What a bundled recipe says; recipes use one another, and what one says is thawed once."""
    key = stem, text, file
    if key not in _thawed:
        found = shelved(stem, text, file)
        if found is None:
            return None
        if len(_thawed) >= _MOST_THAWED:
            _thawed.clear()
        _thawed[key] = found
    return _thawed[key]


_BEGIN = re.compile(r"^[ {\"']*surgeon[\"']?[ \t]*:", re.MULTILINE)
_thawed: dict[tuple[str, str, str], Written] = {}
_MOST_THAWED = 256


def _check_ids(rules: list[Rule]) -> None:
    """Ids name rules in reports: two rules that meet in a recipe must differ."""
    seen: dict[str, Rule] = {}
    for rule in rules:
        other = seen.setdefault(rule.id, rule)
        if other.location != rule.location:
            raise RecipeError(
                f"the rule `{rule.id}` is here twice, first at {other.location}",
                where=rule.location,
                mend="Give one of them another id.",
            )
