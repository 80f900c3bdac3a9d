"""What custom operators compute, said by functions of ONNX's own text: so that they are compared.

A function holds for models of another opset too, as long as every operator in it means the same
there; of several for one operator the newest that does is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import onnx
import onnx.parser

from surgeon.errors import Location, RecipeError
from surgeon.nested import every_node
from surgeon.parsed import of_parser
from surgeon.standard import STANDARD, attribute_value, opset_of

_NO_OPSET = re.compile(r"No Opset registered for domain ([\w.]+)")
_HOMELESS = "surgeon.homeless"  # where functions go of operators that a file has in no domain


def parse_function(text: str, where: Location | str) -> onnx.FunctionProto:
    """A function from its text.

    Raises:
        RecipeError: The text is none, or ONNX's checker refuses it, or the operator is ONNX's own.
    """
    try:
        function: onnx.FunctionProto = onnx.parser.parse_function(text)
        onnx.checker.check_function(function)
    except (onnx.parser.ParseError, onnx.checker.ValidationError) as error:
        said, place = of_parser(error)
        if place is not None and isinstance(where, Location):
            line, column = place
            where = where.shifted(line, column + (where.column - 1) * (line > 1))
        lacking = _NO_OPSET.search(said)
        raise RecipeError(
            f"this is no function of ONNX: {said}",
            where=where,
            mend=f'Name the domain in `opset_import` too: `"{lacking[1]}": 1`.'
            if lacking
            else 'Write `<domain: "my.domain", opset_import: ["": 17]> Op <alpha> (x) => (y) '
            "{ y = LeakyRelu <alpha: float = @alpha> (x) }`.",
        ) from None
    if function.domain in STANDARD and onnx.defs.has(function.name, ""):
        raise RecipeError(
            f"`{function.name}` is an operator of ONNX's own",
            where=where,
            mend="Say what another operator computes.",
        )
    return function


def name_of(function: onnx.FunctionProto | onnx.NodeProto) -> str:
    """As `my.domain.Op`; `Op` where it has no domain, as plugins of TensorRT have."""
    kind = function.name if isinstance(function, onnx.FunctionProto) else function.op_type
    return full_name(function.domain, kind)


def full_name(domain: str, operator: str) -> str:
    """The same, of the two."""
    return operator if domain in STANDARD else f"{domain}.{operator}"


class Meanings:
    """What custom operators compute.

    Args:
        texts: Functions, each as ONNX writes it.
    """

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._functions: dict[str, list[onnx.FunctionProto]] = {}
        for text in dict.fromkeys(texts):
            function = parse_function(text, "functions")
            told = self._functions.setdefault(name_of(function), [])
            if function.domain in STANDARD:  # where no file may have functions
                function.domain = _HOMELESS
            told.append(function)

    def of(self, model: onnx.ModelProto) -> list[str]:
        """Those operators of a model that are given a meaning here."""
        return [name for name in self._told_of(model) if self.function(name, opset_of(model) or 1)]

    def unsuited(self, model: onnx.ModelProto) -> list[str]:
        """Of those operators of a model whose functions do not hold at its opset, why not."""
        opset, found = opset_of(model) or 1, []
        for name in self._told_of(model):
            if self.function(name, opset) is None:
                function = max(self._functions[name], key=_written_at)
                written = _written_at(function)
                other = next(o for o in _operators(function.node) if not _alike(o, written, opset))
                is_there = _since(other, opset) is not None
                means = "has another version" if is_there else "is no operator"
                found.append(
                    f"the function of `{name}` is written for opset {written}, and {other} {means} "
                    f"at {opset}: give one for {opset}"
                )
        return found

    def _told_of(self, model: onnx.ModelProto) -> list[str]:
        """The operators of a model that there are functions for, at whatever opset."""
        if not self._functions:
            return []
        own = {name_of(function) for function in model.functions}
        found = dict.fromkeys(
            name_of(node)
            for top in (model.graph, *model.functions)
            for node in every_node(top.node)
        )
        return [name for name in found if name in self._functions and name not in own]

    def told(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """The model with these operators written out; itself where it has none."""
        if not self.of(model):
            return model
        from onnx import inliner

        opset = opset_of(model) or 1
        out = onnx.ModelProto()
        out.CopyFrom(model)
        own = {name_of(function) for function in model.functions}
        imported = {entry.domain for entry in out.opset_import}
        for name in self._functions:
            if name in own or (function := self.function(name, opset)) is None:
                continue
            added = out.functions.add()
            added.CopyFrom(function)
            for entry in added.opset_import:  # every operator in it is the same there
                if entry.domain in STANDARD:
                    entry.version = opset
            if added.domain not in imported:
                out.opset_import.add(domain=added.domain, version=1)
                imported.add(added.domain)
        for top in (out.graph, *out.functions):
            for node in every_node(top.node):
                if name_of(node) not in own and (said := self.function(name_of(node), opset)):
                    _check_takes(node, said)
                    node.attribute.extend(_left_out(node, said))
                    node.domain = said.domain
        flat: onnx.ModelProto = inliner.inline_local_functions(out)
        return flat

    def default(self, name: str, attribute: str, opset: int) -> Any:
        """What an attribute of an operator is where a node leaves it out; None if nothing says."""
        function = self.function(name, opset)
        for each in function.attribute_proto if function is not None else ():
            if each.name == attribute:
                return attribute_value(each)
        return None

    def tells_of(self, name: str) -> bool:
        """Whether there is a function of an operator, for whatever opset."""
        return name in self._functions

    @property
    def homeless(self) -> frozenset[str]:
        """Those of them that have no domain."""
        return frozenset(name for name in self._functions if "." not in name)

    def function(self, name: str, opset: int) -> onnx.FunctionProto | None:
        """The newest function of an operator that means at this opset what it says."""
        return max(
            (f for f in self._functions.get(name, ()) if holds_at(f.node, _written_at(f), opset)),
            key=_written_at,
            default=None,
        )


def _left_out(node: onnx.NodeProto, function: onnx.FunctionProto) -> list[onnx.AttributeProto]:
    """The attributes that a node leaves out and its function has a default of.

    onnx's inliner puts in none of them.
    """
    stated = {attribute.name for attribute in node.attribute}
    return [each for each in function.attribute_proto if each.name not in stated]


def holds_at(nodes: Iterable[onnx.NodeProto], written: int, opset: int) -> bool:
    """Whether ONNX's operators among nodes mean at an opset what they mean where they are written.

    Args:
        nodes: With what is in their bodies.
        written: The opset that they are written in.
        opset: The other.
    """
    return all(_alike(operator, written, opset) for operator in _operators(nodes))


def _operators(nodes: Iterable[onnx.NodeProto]) -> list[str]:
    """The operators of ONNX's own among nodes; no constants, which are so at each opset."""
    return [
        node.op_type
        for node in every_node(nodes)
        if node.domain in STANDARD
        and not (node.op_type == "Constant" and [a.name for a in node.attribute] == ["value"])
    ]


def _alike(operator: str, written: int, opset: int) -> bool:
    return _since(operator, written) == _since(operator, opset) is not None


@cache
def _since(operator: str, opset: int) -> int | None:
    try:
        return int(onnx.defs.get_schema(operator, opset, "").since_version)
    except onnx.defs.SchemaError:
        return None


def _check_takes(node: onnx.NodeProto, function: onnx.FunctionProto) -> None:
    """See that a node has no more inputs and outputs than the function that says what it does."""
    for what, has, takes in (
        ("inputs", node.input, function.input),
        ("outputs", node.output, function.output),
    ):
        if len(has) > len(takes):
            raise RecipeError(
                f"a node has {len(has)} {what}, and the function of "
                f"`{name_of(function)}` says {len(takes)} ({', '.join(takes)})",
                where="functions",
                mend="Write the function for all of them; a node may leave out the last ones.",
            )


def _written_at(function: onnx.FunctionProto) -> int:
    return opset_of(function) or 1
