"""Which bundled recipes change a part so that it passes what it failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from surgeon.errors import SurgeonError
from surgeon.helpful import breadth, helpful
from surgeon.model import Model
from surgeon.nested import every_node
from surgeon.spelling import operator_name
from surgeon.surgery import apply

# What has to be allowed, and whether sizes have to be given: the less the better.
_WAYS: tuple[tuple[tuple[str, ...], bool], ...] = (
    ((), False),
    ((), True),
    (("approximate",), False),
    (("contract",), False),
)
_SIZE = 8  # of a dimension that has to be a number


@dataclass(frozen=True, slots=True)
class Mend:
    """A recipe behind which a part passes.

    Attributes:
        recipe: Its name.
        allow: What has to be allowed for it.
        shaped: Whether the dimensions of inputs have to be numbers.
        nodes: How many nodes the part has then, without constants.
    """

    recipe: str
    allow: tuple[str, ...]
    shaped: bool
    nodes: int


def mends_of(
    part: Model, passes: Callable[[Model], bool], allow: Sequence[str] = ()
) -> Iterator[Mend]:
    """The recipes behind which a part passes, those first that leave the fewest nodes.

    Of several that leave as many, those with the fewest rules. Sizes as numbers, what is only
    approximate, and what changes what a model promises are tried where nothing else helps.

    Args:
        part: Not changed.
        passes: Asked of each result that is not like one before, when it is that mend's turn.
        allow: Kinds of rules that may fire in any case.
    """
    known: dict[bytes, bool] = {}
    for kinds, shaped in _WAYS:
        more = tuple(kind for kind in kinds if kind not in allow)
        if kinds and not more:
            continue  # as it was tried before
        found = False
        results = _results(part, [*allow, *more], shaped=shaped)
        for name, result, nodes in sorted(results, key=_simplest_first):
            content = result.to_proto().graph.SerializeToString(deterministic=True)
            if content not in known:
                known[content] = passes(result)
            if known[content]:
                found = True
                yield Mend(name, more, shaped, nodes)
        if found:
            return


def _simplest_first(found: tuple[str, Model, int]) -> tuple[int, int]:
    name, _, nodes = found
    return nodes, breadth(name)


def _results(
    part: Model, allow: Sequence[str], *, shaped: bool
) -> Iterator[tuple[str, Model, int]]:
    """What each recipe with rules for its operators makes of it, where it makes something else."""
    shape = _shapes(part) if shaped else {}
    if shaped and not shape:
        return
    operators = Counter(operator_name(node) for node in every_node(part.proto.graph.node))
    for name in ["clean"] if shaped else helpful(operators):
        try:
            result = apply(part, name, allow=allow, shape=shape, verify=False)
        except SurgeonError:
            continue
        if result.report.changes or shaped:
            yield name, result.model, sum(result.report.after.values())


def _shapes(part: Model) -> dict[str, list[int]]:
    """Numbers for the dimensions of inputs that are names; of inputs that have such."""
    found = {}
    for value in part.proto.graph.input:
        dims = value.type.tensor_type.shape.dim
        if any(not dim.HasField("dim_value") for dim in dims):
            found[value.name] = [
                dim.dim_value if dim.HasField("dim_value") else _SIZE for dim in dims
            ]
    return found
