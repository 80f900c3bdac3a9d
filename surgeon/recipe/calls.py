"""Checks how rules call the operators whose meaning a recipe tells: as their functions declare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import onnx

from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.meanings import full_name
from surgeon.nested import every_node
from surgeon.notation import NodePattern, Pattern
from surgeon.notation.operators import kind_of
from surgeon.recipe.rules import Rule


class Declared(NamedTuple):
    """What a function takes.

    Attributes:
        attributes: The type of each, `int` or `floats`, say; "" where nothing says it.
        inputs: How many.
        outputs: How many it gives.
    """

    attributes: Mapping[str, str]
    inputs: int
    outputs: int


def declared(function: onnx.FunctionProto, text: str) -> Declared:
    """What a function takes.

    Args:
        function: It, as ONNX reads it: of attributes without a default it keeps the names alone.
        text: It as it is written, with their types.
    """
    found = dict.fromkeys(function.attribute, "")
    for node in every_node(function.node):
        for each in node.attribute:
            if each.ref_attr_name in found:
                found[each.ref_attr_name] = _type_of(each)
    head = re.search(rf"\b{re.escape(function.name)}\s*<([^>]*)>", text)
    for name, kind in re.findall(r"(\w+)\s*:\s*(\w+)", head[1] if head else ""):
        if name in found:
            found[name] = kind
    found |= {each.name: _type_of(each) for each in function.attribute_proto}
    return Declared(found, len(function.input), len(function.output))


def _type_of(attribute: onnx.AttributeProto) -> str:
    return str(onnx.AttributeProto.AttributeType.Name(attribute.type)).lower()


def check_calls(rules: Iterable[Rule], told: Mapping[str, Sequence[Declared]]) -> None:
    """See that rules ask for operators, and write them, as one of their functions declares them.

    Args:
        rules: The rules of a recipe.
        told: What the functions take, by operator; of one there may be several, for opsets.

    Raises:
        RecipeError: One has an attribute, a type of one, or a number of inputs or outputs that no
            function has.
    """
    for rule in rules if told else ():
        patterns = [rule.match, *([rule.replace] if isinstance(rule.replace, Pattern) else [])]
        for node in (node for pattern in patterns for node in pattern.nodes):
            for operator in node.operators:
                name = full_name(node.domain, operator)
                if name in told:
                    _check(node, name, told[name])


def _check(node: NodePattern, name: str, functions: Sequence[Declared]) -> None:
    known = {key: {f.attributes.get(key, "") for f in functions} for key in _keys(functions)}
    for key in (*node.attributes, *node.captures):
        if key not in known:
            near, names = suggest(key, known), ", ".join([*known, key])
            operator = name.rpartition(".")[2]
            raise RecipeError(
                f"the function of `{name}` declares no attribute `{key}`",
                where=node.place(key),
                mend=near if near.startswith("Did") else f"Declare it: `{operator} <{names}>`.",
            )
    for key, value in node.attributes.items():
        kinds, found = sorted(known[key] - {""}), kind_of(value)
        if kinds and found not in kinds and not (value == () and kinds[0].endswith("s")):
            raise RecipeError(
                f"the attribute `{key}` of `{name}` is of type {' or '.join(kinds)}, not {found}",
                where=node.place(key),
                mend=f"Write `{key}: {kinds[0]} = ...` with a value of that type.",
            )
    given = sum(not argument.rest for argument in node.inputs)
    for what, has, most in (
        ("input", given, max(f.inputs for f in functions)),
        ("output", len(node.outputs), max(f.outputs for f in functions)),
    ):
        if has > most:
            raise RecipeError(
                f"the function of `{name}` has {most} {what}{'' if most == 1 else 's'}, not {has}",
                where=node.location,
                mend=f"Declare as many {what}s as the operator has, or leave some out here.",
            )


def _keys(functions: Sequence[Declared]) -> dict[str, None]:
    return dict.fromkeys(key for function in functions for key in function.attributes)
