"""A replacement written as text, made into nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from surgeon import opsets
from surgeon.dims import Expr
from surgeon.expressions import Unknown
from surgeon.match import Match
from surgeon.notation import NodePattern, Pattern
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD
from surgeon.typed import NotOfType, type_beside, typed

_COMPUTED = (np.float64, np.int64)  # in what expressions compute


class NotPlain(Refused):
    """Something computed is no plain value, or not of the type that it has to be.

    Attributes:
        name: What it is called in the rule.
    """

    def __init__(self, name: str, why: str) -> None:
        """It is `why`."""
        super().__init__(why)
        self.name = name


def instantiate(
    draft: Draft, template: Pattern, pattern: Pattern, match: Match, scope: Mapping[str, Any]
) -> None:
    """Add the template's nodes to the draft and name its results in `draft.results`.

    Args:
        draft: Where the nodes go.
        template: The text after `replace:`.
        pattern: The text after `match:`.
        match: Gives the values that the pattern named.
        scope: Gives what `@name` stands for.

    Raises:
        Refused: Something computed is not a plain value.
        surgeon.opsets.Unavailable: The opset has no such operator or form.
    """
    made: dict[str, gs.Tensor | None] = dict(match.values)
    for node in template.nodes:
        attributes = _attributes(node, match, scope)
        operator = _operator(node, pattern, match)
        operands: list[gs.Tensor | None] = []
        computed: dict[int, str] = {}
        for argument in node.inputs:
            if argument.rest:
                operands.extend(match.rests[argument.name])
            elif argument.computed:
                computed[len(operands)] = argument.name
                operands.append(None)
            elif argument.name == "":
                operands.append(None)
            else:
                operands.append(made[argument.name])
        for place, name in computed.items():
            value = plain(scope[name], name)
            operands[place] = draft.constant(
                _typed(draft, node.domain, operator, operands, place, value, name), name
            )
        if operator == "Identity" and node.domain in STANDARD and operands[0] is not None:
            made[node.outputs[0]] = operands[0]  # whoever hands it over makes one where it must
            continue
        for move in opsets.MOVED.get(operator, ()):
            if move.attribute in attributes:
                value = attributes.pop(move.attribute)
                while len(operands) <= move.index:
                    operands.append(None)
                operands[move.index] = _moved(draft, move, value, operands[0])
        names = node.outputs
        outputs = draft.op(
            operator,
            *operands,
            domain=node.domain,
            outputs=[name or f"unused_{i}" for i, name in enumerate(names)],
            also=attributes,
        )
        tensors = outputs if isinstance(outputs, tuple) else (outputs,)
        made.update((n, t) for n, t in zip(names, tensors, strict=True) if n not in ("", "_"))
    draft.results = {k: v for k, v in made.items() if v is not None}


def _operator(node: NodePattern, pattern: Pattern, match: Match) -> str:
    """What a node is to be; of `A | B`, what the node of the match is that may be these."""
    if len(node.operators) == 1:
        return node.operators[0]
    (asked,) = pattern.of_operators(node)
    given = next(match.values[name] for name in asked.outputs if name not in ("", "_"))
    assert given is not None, "an output that has a name is there"
    found: str = given.inputs[0].op
    return found


def _attributes(node: NodePattern, match: Match, scope: Mapping[str, Any]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    if node.rest is not None:
        attributes.update(match.attributes[f"*{node.rest}"])
    for key, value in node.attributes.items():
        attributes[key] = list(value) if isinstance(value, tuple) else value
    for key, name in node.captures.items():
        attributes[key] = plain(scope[name], name)
    return attributes


def plain(value: Any, name: str) -> Any:
    """A computed value as an attribute takes it.

    Raises:
        NotPlain: It is symbolic or unknown; says what it is.
    """
    if isinstance(value, Unknown):
        raise NotPlain(name, f"`{name}` is not provable: {value.reason}")
    if isinstance(value, Expr):
        raise NotPlain(name, f"`{name}` is {value}, which is known at run time only")
    if isinstance(value, (list, tuple)):
        return [plain(item, name) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, bool):
        return int(value)
    return value


def _typed(
    draft: Draft,
    domain: str,
    operator: str,
    operands: Sequence[gs.Tensor | None],
    place: int,
    value: Any,
    name: str,
) -> NDArray[Any]:
    """A computed operand, in the type of those that have to have the same.

    Numbers are computed in float64 and int64 (as `w.value * 2` is), whatever the weights they are
    made of.

    Raises:
        NotPlain: They are none of that type.
    """
    array = np.asarray(value)
    if array.dtype not in _COMPUTED:
        return array
    dtype = type_beside(draft.facts, domain, operator, operands, place)
    try:
        return typed(array, dtype) if dtype else array
    except NotOfType as error:
        raise NotPlain(name, f"`@{name}` {error}") from None


def _moved(draft: Draft, move: opsets.Moved, value: Any, first: gs.Tensor | None) -> gs.Tensor:
    dtype: Any = np.int64
    if move.like_input and first is not None:
        known = draft.facts.of(first).dtype
        dtype = onnx.helper.tensor_dtype_to_np_dtype(known) if known else np.float32
    array = np.asarray(value, dtype)
    return draft.constant(array if move.scalar else np.atleast_1d(array), move.attribute)
