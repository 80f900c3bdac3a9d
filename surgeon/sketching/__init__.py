"""A rule to begin with, out of a model: the nodes between two values as one operator.

The pattern is what rules see, so the nodes are brought to normal form first; what the operator
computes is said in the nodes as the file has them, so that every use of the rule is compared.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from surgeon.choices import several
from surgeon.errors import RecipeError
from surgeon.explaining import explain
from surgeon.extraction import extract
from surgeon.model import Model, ModelLike
from surgeon.notation import print_pattern
from surgeon.recipe import Recipe
from surgeon.reference.plan import reads
from surgeon.schemas.names import is_operator
from surgeon.sketching.cases import cases_of
from surgeon.sketching.piece import CLEANED, Piece, piece_of
from surgeon.surgery import apply

_OPERATOR = re.compile(r"([A-Za-z_]\w*\.)*[A-Za-z_]\w*", re.ASCII)
_NOTHING = "surgeon: 1\nname: as-seen\ntidy: true\nsteps: [fold: {}]"
OWN = ("aten", "prim")  # domains whose operators every recipe knows
DOMAIN = "plugins"  # where the operator stands, if no domain is said


@dataclass(frozen=True, slots=True)
class Sketch:
    """A recipe of one rule, and its cases.

    Attributes:
        recipe: The text of `NAME.yaml`.
        cases: That of `NAME.cases.yaml`.
        rule: The rule's id.
        fires: How often it fires on the model that it was taken from.
    """

    recipe: str
    cases: str
    rule: str
    fires: int


def sketch(
    model: ModelLike,
    name: str,
    *,
    inputs: str | Sequence[str] = (),
    outputs: str | Sequence[str] = (),
    operator: str | None = None,
) -> Sketch:
    """Write a rule that finds the nodes between values wherever they stand, and makes one of them.

    The new operator is given the values at which the part begins, and then the weights that it
    reads; numbers, and lists of whole numbers, belong to the part.

    Args:
        model: A path, a `Model`, an `onnx.ModelProto` or a graphsurgeon `Graph`; not changed.
        name: The recipe's.
        inputs: The values at which the part begins, as for `extract`.
        outputs: What its last node gives.
        operator: What becomes of it, as `DOMAIN.OP`; by default `plugins.` and the name.

    Raises:
        ModelError: The model cannot be read, or the type of a value is unknown.
        RecipeError: There is no such value, the part has no single last node, or no pattern
            describes it.
    """
    domain, _, op = _operator(operator or _camel(name)).rpartition(".")
    domain = domain or DOMAIN
    whole = Model.of(model)
    seen = _as_seen(whole)
    part = _part(whole, seen, several(inputs), several(outputs))
    piece = piece_of(part, _reads(seen.proto.graph))
    rule = f"{name}-as-one"
    where = _said(whole, piece, several(inputs), several(outputs))
    recipe = _recipe(name, rule, where, piece, domain, op)
    found = explain(whole, Recipe.parse(recipe))
    fires = found.report.fired.get(f"{name}/{rule}", 0)
    if not fires:
        misses = sorted(found.report.misses, key=lambda miss: miss.matched)
        nearest = next((miss for miss in reversed(misses) if piece.last in miss.node), None)
        raise RecipeError(
            "what rules see of this part is not what stands in the file"
            + (f": {nearest.reason}" if nearest else ""),
            where=where,
            mend=CLEANED,
        )
    return Sketch(recipe, cases_of(rule, piece, domain, op), rule, fires)


def _as_seen(model: Model) -> Model:
    """A model as rules see it: constants are computed, and what stands twice stands once."""
    seen = apply(model, Recipe.parse(_NOTHING), verify=False).model
    return model.with_proto(seen.to_proto())


def _part(whole: Model, seen: Model, inputs: Sequence[str], outputs: Sequence[str]) -> Model:
    """The part of what rules see of a model."""
    extract(whole, inputs=inputs, outputs=outputs, verify=False)  # for what is wrong with the ends
    try:
        return extract(seen, inputs=inputs, outputs=outputs, verify=False).model
    except RecipeError as error:
        raise RecipeError(
            f"constants are computed before rules look, and then {error.what}",
            where=error.where,
            mend=CLEANED,
        ) from None


def _reads(graph: onnx.GraphProto) -> Counter[str]:
    """How often a model reads each value, or gives it out."""
    found = Counter(name for node in graph.node for name in reads(node))
    found.update(value.name for value in graph.output)
    return found


def _operator(text: str) -> str:
    if not _OPERATOR.fullmatch(text):
        raise RecipeError(
            f"`{text}` is no operator", where="--as", mend="Write `DOMAIN.OP`: plugins.Attention."
        )
    return text


def _camel(name: str) -> str:
    camel = "".join(word.capitalize() for word in name.split("-"))
    return camel if camel[:1].isalpha() else f"Op{camel}"


def _said(model: Model, piece: Piece, begin: Sequence[str], end: Sequence[str]) -> str:
    """From where the part was taken, for people."""
    where = model.path.name if model.path else "a model"
    begins = ", ".join(begin) or "its inputs"
    ends = ", ".join(end) or "its outputs"
    return f"{where}, from {begins} to {ends}"


_HEAD = """\
# Taken from {where}.
# Run its cases:  surgeon test {name}.yaml
# Use it:         surgeon apply ./{name}.yaml in.onnx out.onnx
# The language:   docs/language.md; `surgeon recipes functions`, `surgeon recipes builders`
surgeon: 1
name: {name}
about: {about}
custom: [{custom}]
"""
_FUNCTIONS = """\
functions:                    # what {op} computes, by which each use is compared
  - |
{function}
"""
_NO_FUNCTION = """\
# functions:                  # what {op} computes; unsaid, as {foreign} is not ONNX's
"""
_RULE = """\
rules:
  - id: {rule}
    why: {why}
    exact: rounding           # bit | rounding | approximate
    match: |                  # what it does not say is not asked for
{match}
{where}    replace: {replace}
"""


def _is_known(name: str) -> bool:
    """Whether it is an operator that some release of PyTorch has."""
    domain, _, operator = name.partition(".")
    return domain in OWN and is_operator(domain, operator)


def _recipe(name: str, rule: str, source: str, piece: Piece, domain: str, op: str) -> str:
    """The text of the recipe."""
    operator = f"{domain}.{op}"
    known: Mapping[str, str] = {
        "name": name,
        "rule": rule,
        "op": op,
        "operator": operator,
        "where": source.replace("\n", " "),
        "about": f"What stands between two values, as one {operator}.",
        "why": json.dumps(f"The runtime has these {len(piece.found)} nodes as one.")
        if len(piece.found) > 1
        else "The runtime has it under another name.",
        "foreign": ", ".join(piece.foreign),
        "custom": ", ".join([operator, *(o for o in piece.foreign if not _is_known(o))]),
        "function": _indented(piece.function(domain, op), 4),
        "match": _indented(print_pattern(piece.pattern), 6),
        "replace": piece.call(operator),
    }
    quoted = (json.dumps(line) if line.startswith("'") else line for line in piece.conditions)
    asked = "".join(f"      - {line}\n" for line in quoted)
    rules = _RULE.format_map({**known, "where": f"    where:\n{asked}" if asked else ""})
    functions = _NO_FUNCTION if piece.foreign else _FUNCTIONS
    return _HEAD.format_map(known) + functions.format_map(known) + rules


def _indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())
