"""Reads patterns and replacements: ONNX's node text syntax, and what patterns say beyond it.

Beyond ONNX's own syntax a pattern may say `_` (any value), `x?` (an optional input), `*xs` (the
rest of a variadic), `x~` (look through views), `A | B` (either operator), `<*attrs>` (the rest of
the attributes) and `<axis = @axis>` (capture). A replacement computes where a pattern captures,
and takes computed constants as inputs (`@name`).
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from surgeon.document import suggest
from surgeon.errors import Location, RecipeError
from surgeon.notation.grammar import parser
from surgeon.notation.pattern import DTYPES, Argument, AttributeValue, NodePattern, Pattern

if TYPE_CHECKING:
    from lark import Token

    Tree = Any  # lark's own `Tree` does not say which child is a tree and which a token

_WORDS = {"NAME": "a name", "STRING": "a quoted text", "INT": "a number", "FLOAT": "a number"}
_WORDS |= {"EQUAL": "`=`", "LPAR": "`(`", "RPAR": "`)`", "COMMA": "`,`", "DOT": "`.`", "AT": "`@`"}
_WORDS |= {"COLON": "`:`", "STAR": "`*`", "VBAR": "`|`", "LSQB": "`[`", "RSQB": "`]`"}
_WORDS |= {"LESSTHAN": "`<`", "MORETHAN": "`>`", "LBRACE": "`{`", "RBRACE": "`}`"}
_WORDS |= {"OPTIONAL": "`?`", "THROUGH": "`~`", "SEMICOLON": "`;`", "$END": "the end"}
_JOINED = re.compile(r"([A-Za-z_][\w.]*)::([A-Za-z_]\w*)")
_FORM = "Write nodes as `y = Operator <attribute = 1> (x)`."


def parse_pattern(text: str, location: Location) -> Pattern:
    """Read what a rule looks for.

    Args:
        text: Nodes, separated by line ends or `;`.
        location: Where the text begins in its file.

    Raises:
        RecipeError: The text is no pattern; names the place in the file.
    """
    return _Builder(location, replacement=False).pattern(text)


def parse_replacement(text: str, location: Location) -> Pattern:
    """Read what a rule writes; arguments and errors as for `parse_pattern`."""
    return _Builder(location, replacement=True).pattern(text)


def labels_of(text: str, location: Location) -> list[tuple[str, str, Location]]:
    """The names of nodes that a pattern asks for, as `[name] y = Relu (x)`.

    Args:
        text: A pattern that was read.
        location: Where the text begins in its file.

    Returns:
        An output of each such node, the name, and where it stands.

    Raises:
        RecipeError: No output of such a node has a name.
    """
    if "[" not in text:
        return []
    found = []
    tree: Tree = parser().parse(text)
    for node in tree.children:
        parts = {str(child.data): child.children for child in node.children}
        for token in parts.get("label", ()):
            where = location.shifted(token.line or 1, token.column or 1)
            outputs = [_text(each) for each in parts["outputs"] if each is not None]
            named = [name for name in outputs if name.isidentifier() and name != "_"]
            if not named:
                mend = "Name one, so that the node can be asked for its name."
                raise RecipeError("no output of this node has a name", where=where, mend=mend)
            found.append((named[0], _text(token), where))
    return found


class _Builder:
    """Turns the syntax tree into a Pattern, and checks what the grammar cannot."""

    def __init__(self, location: Location, *, replacement: bool) -> None:
        self._location, self._replacement = location, replacement
        self._produced: dict[str, Location] = {}
        self._read: dict[str, tuple[Location, bool]] = {}  # first use, and whether as `*name`
        self._captured: dict[str, Location] = {}

    def pattern(self, text: str) -> Pattern:
        nodes = tuple(self._node(tree) for tree in self._parse(text).children)
        if not nodes:
            raise self._error(self._location, "there is no node here", _FORM)
        if not self._replacement:
            for name, where in self._captured.items():
                if name in self._produced or name in self._read:
                    mend = "Give the attribute another name behind the `@`."
                    raise self._error(where, f"`{name}` is both a value and an attribute", mend)
            self._check_connected(nodes)
        return Pattern(nodes)

    def _parse(self, text: str) -> Tree:
        from lark.exceptions import UnexpectedCharacters, UnexpectedToken

        try:
            return parser().parse(text)
        except UnexpectedCharacters as error:
            where = self._location.shifted(error.line, error.column)
            if error.char == '"':
                raise self._error(
                    where, "a quoted name does not end", 'Close it with `"`.'
                ) from None
            raise self._error(where, f"unexpected character `{error.char}`", _FORM) from None
        except UnexpectedToken as error:
            wanted = error.accepts or error.expected
            words = sorted(
                {_WORDS[name] for name in wanted}, key=lambda word: (word[0] == "`", word)
            )
            expected = " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
            if error.token.type == "$END":
                lines = text.rstrip().split("\n")
                where = self._location.shifted(len(lines), len(lines[-1]) + 1)
                raise self._error(where, f"expected {expected}, found the end", _FORM) from None
            where = self._at(error.token)
            what = f"expected {expected}, found `{error.token}`"
            raise self._error(where, what, _mend_of(text, error.token)) from None

    def _at(self, token: Token) -> Location:
        return self._location.shifted(token.line or 1, token.column or 1)

    @staticmethod
    def _error(where: Location, what: str, mend: str) -> RecipeError:
        return RecipeError(what, where=where, mend=mend)

    def _node(self, tree: Tree) -> NodePattern:
        parts: dict[str, list[Any]] = {}
        for child in tree.children:
            if child.data == "attributes" and "attributes" in parts:
                token = next(child.scan_values(lambda _: True))
                raise self._error(
                    self._at(token), "attributes are here twice", "Join them in one `<>`."
                )
            parts[str(child.data)] = child.children
        domain, operators, overload = self._operator(parts["operator"])
        listed = parts.get("attributes", [])
        attributes, captures, rest = self._attributes(listed)
        named = [tree.children[0] for tree in listed if tree is not None and tree.data != "rest"]
        places = {_text(token): self._at(token) for token in named}
        inputs = self._inputs(parts["inputs"])
        return NodePattern(
            domain=domain,
            operators=operators,
            overload=overload,
            inputs=inputs,
            outputs=self._outputs(parts["outputs"]),
            attributes=MappingProxyType(attributes),
            captures=MappingProxyType(captures),
            rest=rest,
            location=self._at(parts["outputs"][0]),
            places=MappingProxyType(places),
        )

    def _outputs(self, tokens: list[Token | None]) -> tuple[str, ...]:
        names = []
        for token in tokens:
            name = "" if token is None else _text(token)
            names.append(name)
            if token is None or not name:
                continue
            where = self._at(token)
            if name == "_":
                if self._replacement:
                    mend = "Leave the place empty: `y, , z = ...`."
                    raise self._error(where, "`_` is not for replacements", mend)
                continue
            if name in self._produced:
                what = f"`{name}` is produced twice, first in line {self._produced[name].line}"
                raise self._error(where, what, "Give one of them another name.")
            if name in self._read:
                mend = "Write the node that produces it first."
                raise self._error(
                    self._read[name][0], f"`{name}` is used before it is produced", mend
                )
            self._produced[name] = where
        return tuple(names)

    def _operator(self, children: list[Any]) -> tuple[str, tuple[str, ...], str]:
        *alternatives, overload = children
        names: list[str] = []
        domain = ""
        for tree in alternatives:
            *spaces, operator = [str(token) for token in tree.children]
            own = ".".join(spaces)
            own = "" if own == "ai.onnx" else own
            if not names:
                domain = own
            else:
                where = self._at(tree.children[0])
                if spaces and own != domain:
                    what = f"`{operator}` is not of the domain of `{names[0]}`"
                    raise self._error(where, what, "Write two rules, one a domain.")
            names.append(operator)
        return domain, tuple(names), "" if overload is None else _text(overload)

    def _inputs(self, children: list[Any]) -> tuple[Argument, ...]:
        arguments = [Argument("") if child is None else self._argument(child) for child in children]
        while arguments and not arguments[-1].name:
            arguments.pop()
        for argument, child in zip(arguments[:-1], children, strict=False):
            if argument.rest and not self._replacement:
                where = self._at(child.children[0])
                raise self._error(
                    where, f"`*{argument.name}` is not the last input", "Put it last."
                )
        return tuple(arguments)

    def _argument(self, tree: Tree) -> Argument:
        token, *marks = tree.children
        name, where = _text(token), self._at(token)
        if tree.data == "computed":
            if not self._replacement:
                mend = f"Write `{name}`, and compare its value in `where`."
                raise self._error(where, f"`@{name}` is not an input of a pattern", mend)
            return Argument(name, computed=True)
        rest, through = tree.data == "rest", any(mark.type == "THROUGH" for mark in marks)
        if self._replacement and (name == "_" or through):
            what = "`_` is not for replacements" if name == "_" else "`~` is not for replacements"
            mend = "Name the value." if name == "_" else f"Write `{name}`."
            raise self._error(where, what, mend)
        if name not in ("", "_"):
            first, as_rest = self._read.setdefault(name, (where, rest))
            if as_rest != rest or (rest and not self._replacement and first != where):
                what = f"`*{name}` is also used in line {first.line}"
                raise self._error(where, what, "Use another name.")
            if rest and name in self._produced:
                raise self._error(where, f"`{name}` is one value, not a rest", f"Write `{name}`.")
        optional = any(mark.type == "OPTIONAL" for mark in marks)
        return Argument(name, optional=optional, rest=rest, through=through)

    def _attributes(
        self, children: list[Any]
    ) -> tuple[dict[str, AttributeValue], dict[str, str], str | None]:
        attributes: dict[str, AttributeValue] = {}
        captures: dict[str, str] = {}
        rest = None
        for tree in filter(None, children):
            token = tree.children[0]
            where, name = self._at(token), _text(token)
            if tree.data == "rest":
                if rest is not None:
                    raise self._error(where, "a second rest of the attributes", "Keep one of them.")
                rest = name
                self._captured.setdefault(name, where)
                continue
            if name in attributes or name in captures:
                raise self._error(
                    where, f"the attribute `{name}` is here twice", "Keep one of them."
                )
            value = tree.children[2]
            if getattr(value, "data", "") == "computed":
                captures[name] = str(value.children[0])
                self._captured.setdefault(captures[name], self._at(value.children[0]))
            else:
                attributes[name] = self._literal(tree.children[1], value)
        return attributes, captures, rest

    def _literal(self, kind: Token | None, value: Tree) -> AttributeValue:
        data = getattr(value, "data", "")
        if data == "tensor":
            return self._typed(kind, "tensor", self._tensor(value))
        if data == "list":
            items = self._numbers(value.children)
            if kind == "floats" and items and type(items[0]) is int:
                items = tuple(float(item) for item in items)
            if not items and kind in ("ints", "floats", "strings"):
                return items
            first = type(items[0]) if items else int
            return self._typed(kind, {int: "ints", float: "floats", str: "strings"}[first], items)
        item = self._scalar(value)
        if kind == "float" and isinstance(item, int):
            item = float(item)
        return self._typed(kind, {int: "int", float: "float", str: "string"}[type(item)], item)

    def _typed(self, kind: Token | None, found: str, value: AttributeValue) -> AttributeValue:
        if kind is None or kind == found:
            return value
        if kind in ("int", "ints", "float", "floats", "string", "strings", "tensor"):
            raise self._error(self._at(kind), f"the value is no `{kind}`", f"Write `{found}`.")
        what = f"an attribute of type `{kind}` cannot be written here"
        raise self._error(self._at(kind), what, "Name a builder instead.")

    def _numbers(self, tokens: list[Token | None]) -> tuple[Any, ...]:
        """Scalars, all of one kind: where one is a float, integers beside it are floats too."""
        items = [(token, self._scalar(token)) for token in tokens if token is not None]
        kinds = {type(item) for _, item in items}
        if str in kinds and len(kinds) > 1:
            token = next(token for token, item in items if type(item) is not type(items[0][1]))
            raise self._error(self._at(token), "numbers and texts are in one list", "Use one kind.")
        return tuple(float(item) if float in kinds else item for _, item in items)

    def _scalar(self, token: Token) -> int | float | str:
        if token.type == "STRING":
            return _text(token)
        if token.type == "INT":
            if len(token) > 40 or not -(2**63) <= int(token) < 2**64:
                raise self._error(
                    self._at(token), "the integer does not fit 64 bits", "Write less."
                )
            return int(token)
        if token.type == "NAME" and token not in ("inf", "infinity", "nan"):
            mend = f'Write `"{token}"` for a text, `@{token}` for a capture.'
            raise self._error(self._at(token), f"`{token}` is no value", mend)
        return float(token)

    def _tensor(self, tree: Tree) -> np.ndarray[Any, Any]:
        kind, dims, _, *tokens = tree.children
        where = self._at(kind)
        if kind not in DTYPES:
            raise self._error(where, f"unknown element type `{kind}`", suggest(kind, DTYPES))
        items = self._numbers(tokens)
        shape = tuple(self._scalar(token) for token in dims.children if token) if dims else ()
        wanted = int(np.prod([int(dim) for dim in shape], dtype=object)) if shape else 1
        if wanted != len(items) or any(int(dim) < 0 for dim in shape):
            what = f"{len(items)} elements are given for {wanted}"
            raise self._error(where, what, "Give as many elements as the dims say.")
        numpy_kind = np.dtype(DTYPES[kind])
        if any(isinstance(item, str) != numpy_kind.hasobject for item in items) or (
            numpy_kind.kind in "iub" and any(isinstance(item, float) for item in items)
        ):
            raise self._error(
                where, f"the elements are no `{kind}`", "Change the type or the elements."
            )
        if numpy_kind.kind in "iu":
            limits = np.iinfo(numpy_kind)
            if any(not limits.min <= int(item) <= limits.max for item in items):
                what = f"an element does not fit `{kind}`"
                raise self._error(where, what, "Use a wider type.")
        array = np.array(items, dtype=numpy_kind).reshape([int(dim) for dim in shape])
        array.flags.writeable = False
        return array

    def _check_connected(self, nodes: tuple[NodePattern, ...]) -> None:
        needed = {argument.name for argument in nodes[-1].inputs}
        for node in reversed(nodes[:-1]):
            named = [name for name in node.outputs if name not in ("", "_")]
            if not needed.intersection(named):
                what = (
                    f"`{named[0] if named else node.operators[0]}` does not lead to the last node"
                )
                raise self._error(node.location, what, "Use it in a later node, or take it out.")
            needed.update(argument.name for argument in node.inputs)


def _mend_of(text: str, token: Token) -> str:
    """How to write what was meant: a domain as C++ and PyTorch spell it, or else a node."""
    if token == ":" and token.start_pos is not None:
        joined = _JOINED.search(text, max(0, text.rfind("\n", 0, token.start_pos)))
        if joined is not None:
            return f"Domains are joined by a dot: `{joined[1]}.{joined[2]}`."
    return _FORM


def _text(token: Token) -> str:
    if token.type != "STRING":
        return str(token)
    return re.sub(r"\\(.)", r"\1", token[1:-1])
