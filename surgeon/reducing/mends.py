"""Which bundled recipes change a part so that it passes what it failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from surgeon.declared import length_of
from surgeon.errors import SurgeonError
from surgeon.helpful import breadth, helpful, of_any_model
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
    known = {content_of(part): False}
    for kinds, shaped in _WAYS:
        more = tuple(kind for kind in kinds if kind not in allow)
        if kinds and not more:
            continue  # as it was tried before
        found = False
        results = _results(part, [*allow, *more], shaped=shaped)
        for name, result, nodes in sorted(results, key=_simplest_first):
            content = content_of(result)
            if content not in known:
                known[content] = passes(result)
            if known[content]:
                found = True
                yield Mend(name, more, shaped, nodes)
        if found:
            return


def content_of(model: Model) -> bytes:
    """What tells a model from others, but for its log, into which each recipe enters its name."""
    proto = model.to_proto()
    found = sha256(f"{proto.ir_version}".encode())
    for part in (*proto.opset_import, *proto.functions, proto.graph):
        found.update(part.SerializeToString(deterministic=True))
    return found.digest()


def _simplest_first(found: tuple[str, Model, int]) -> tuple[int, int]:
    name, _, nodes = found
    return nodes, breadth(name)


def _results(
    part: Model, allow: Sequence[str], *, shaped: bool
) -> Iterator[tuple[str, Model, int]]:
    """What each recipe that may help makes of it, where it makes something else."""
    shape = _shapes(part) if shaped else {}
    if shaped and not shape:
        return
    operators = Counter(operator_name(node) for node in every_node(part.proto.graph.node))
    for name in ["clean"] if shaped else dict.fromkeys([*helpful(operators), *of_any_model()]):
        try:
            result = apply(part, name, allow=allow, shape=shape, verify=False)
        except SurgeonError:
            continue
        if result.model.changed or shaped:
            yield name, result.model, sum(result.report.after.values())


def _shapes(part: Model) -> dict[str, list[int]]:
    """Numbers for the dimensions of inputs that are names; of inputs that have such."""
    found = {}
    for value in part.proto.graph.input:
        dims = value.type.tensor_type.shape.dim
        lengths = [length_of(dim) for dim in dims]
        if None in lengths:
            found[value.name] = [_SIZE if length is None else length for length in lengths]
    return found
