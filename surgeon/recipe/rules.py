"""Rules and steps as data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from surgeon.errors import Location
from surgeon.expressions import Expression
from surgeon.notation import (
    Pattern,
)

ASKED = "asked for"  # in the place of `exact`: a change, which promises nothing
_REFUSING = frozenset(
    {"contrib_refused", "ml_refused", "plugin_refused", "quark_refused"}
    | {"refused_by_name", "trt_refused"}
)


class BuilderCall(NamedTuple):
    """A replacement that a builder computes.

    Attributes:
        name: The builder's name in its table.
        arguments: What it is given by keyword, beyond the match.
        location: Where the name stands.
    """

    name: str
    arguments: Mapping[str, Expression]
    location: Location

    @property
    def only_refuses(self) -> bool:
        """Whether it never puts anything, and only says why a node stays."""
        return self.name in _REFUSING


class Rule(NamedTuple):
    """What to look for, when, and what to write in its place.

    Attributes:
        exact: `bit`, `rounding` or `approximate`; `asked for` of a change.
        contract: What it changes in what the model promises, or None.
        let: Computed values in the order written.
        replace: A template, a builder of the table, or a function of (draft, match).
        recipe: The name of the recipe that defines it.
        relative_to: What the tolerance of `exact: rounding` is relative to, where terms cancel.
        since_opset: The oldest opset the rule is for, or None.
        bound: The error that an approximate rule may make, relative to the spread of what it
            replaces; each rewrite is held to it, and a model to the sum of them.
        whole: In place of that sum, where errors do not add up.
        optional: Of a change, whether it may find no place in a model.
        late: Whether it is tried from the second sweep on alone, when nodes that others made
            needless have gone.
    """

    id: str
    why: str
    exact: str
    contract: str | None
    match: Pattern
    where: tuple[Expression, ...]
    let: tuple[tuple[str, Expression], ...]
    replace: Pattern | BuilderCall | Callable[[Any, Any], Any]
    recipe: str
    location: Location
    relative_to: str | None = None
    since_opset: int | None = None
    bound: float | None = None
    late: bool = False
    whole: float | None = None
    optional: bool = False

    @property
    def only_refuses(self) -> bool:
        """Whether it never fires, and only says why a node stays."""
        return isinstance(self.replace, BuilderCall) and self.replace.only_refuses

    def waits(self, allow: Collection[str]) -> str:
        """`approximate` or `contract`, which it needs to be allowed and is not; else nothing."""
        needs = {"approximate": self.exact == "approximate", "contract": bool(self.contract)}
        return next((kind for kind, is_so in needs.items() if is_so and kind not in allow), "")


_TOGETHER = 0.1


def granted(rules: Iterable[Rule], fired: Mapping[tuple[str, str], int]) -> float | None:
    """The error that approximate rules may make together; None where none says how much.

    What many make adds up to a tenth of the spread at most, or to what one alone may make: beyond
    it nothing that is compared would differ.

    Args:
        rules: Of one recipe or several.
        fired: How often each fired, as (recipe, id).
    """
    known = {(rule.recipe, rule.id): rule for rule in rules}
    found = [(known[key], count) for key, count in fired.items() if key in known and count]
    bounds = [(rule.bound or 0.0, count) for rule, count in found if rule.whole is None]
    added = sum(count * bound for bound, count in bounds)
    added = min(added, max([_TOGETHER, *(bound for bound, _ in bounds)]))
    return added + max((rule.whole or 0.0 for rule, _ in found), default=0.0) or None


class RulesStep(NamedTuple):
    """Sweeps with these rules until nothing changes.

    Attributes:
        tidy: What the normal form does on the way counts as a change, also where no rule fires.
        keep: What is to stay as it is: operators, nodes by name, or values that nodes give.
    """

    rules: tuple[Rule, ...]
    tidy: bool = False
    keep: tuple[str, ...] = ()


class FoldStep(NamedTuple):
    """Folds constants; results larger than `max_bytes` stay computed, and so does what is kept."""

    max_bytes: int | None = None
    keep: tuple[str, ...] = ()


IN_TURNS = ("Loop", "Scan", "SequenceMap")


class UnrollStep(NamedTuple):
    """Writes out nodes of these operators and of so many turns at most, but for what is kept."""

    turns: int
    keep: tuple[str, ...] = ()
    operators: tuple[str, ...] = IN_TURNS


class SimplifyStep(NamedTuple):
    """Hands the model to another simplifier."""

    tool: str = "onnxsim"


FOR_TARGET = "<target>"  # the source of a recipe that is made for a runtime


class RaiseOpsetStep(NamedTuple):
    """Converts the model to a newer opset."""

    opset: int


class LowerOpsetStep(NamedTuple):
    """Takes the model to an older opset, where that says the same of what is used."""

    opset: int


class FreeBatchStep(NamedTuple):
    """Makes the first dimension dynamic, under a name, where every item is computed apart."""

    dim: str


class FreeSizesStep(NamedTuple):
    """Makes sizes of inputs dynamic, under names, where what depends on them is written for any."""

    names: tuple[str, ...]


class IrVersionStep(NamedTuple):
    """Writes the model in an older format, where that has all that is in it."""

    version: int


class AsReadStep(NamedTuple):
    """Takes casts or Transposes at the ends, or inputs that are none, out of the model."""

    what: str


class NamesStep(NamedTuple):
    """Calls values, nodes and sizes by identifiers, or some by the names that they are given."""

    names: tuple[tuple[str, str], ...] = ()


class PlainAttributesStep(NamedTuple):
    """Takes out attributes that say what their operator did before there was one."""


class PlainMetadataStep(NamedTuple):
    """Takes out doc strings and metadata.

    Attributes:
        inside: Whether those of the model as a whole stay.
    """

    inside: bool


class HeaderStep(NamedTuple):
    """Sets what the file says of itself.

    Attributes:
        metadata: Entries by their keys; None for one that leaves.
        fields: `doc-string`, `graph-name`, `domain` and `model-version`, those that are set.
    """

    metadata: tuple[tuple[str, str | None], ...] = ()
    fields: tuple[tuple[str, Any], ...] = ()


class ShareWeightsStep(NamedTuple):
    """Keeps one of weights that stand in the file twice."""


class StateShapesStep(NamedTuple):
    """Writes what is proven of every value's type and shape into the file.

    Attributes:
        formulas: Whether sizes that are computed from inputs' are written, `h//2` say.
        keep: As in `RulesStep`, of what is folded on the way.
    """

    formulas: bool
    keep: tuple[str, ...] = ()


Step: TypeAlias = (
    RulesStep
    | FoldStep
    | UnrollStep
    | SimplifyStep
    | RaiseOpsetStep
    | LowerOpsetStep
    | FreeBatchStep
    | FreeSizesStep
    | IrVersionStep
    | AsReadStep
    | NamesStep
    | PlainAttributesStep
    | PlainMetadataStep
    | HeaderStep
    | ShareWeightsStep
    | StateShapesStep
)
