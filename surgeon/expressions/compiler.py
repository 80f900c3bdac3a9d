"""Reads an expression by Python's own grammar, admits a closed kind, and makes closures of it."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from surgeon.document import suggest
from surgeon.errors import Location, RecipeError
from surgeon.expressions import operators
from surgeon.expressions.evaluation import Run, Scope, compare, comprehend, given_by, shown
from surgeon.expressions.kinds import faults, makers_in
from surgeon.expressions.properties import PROPERTIES
from surgeon.expressions.source import Source
from surgeon.functions import DTYPES, FUNCTIONS
from surgeon.functions.values import (
    Unknown,
    decided,
    describe,
    is_captured,
    scalar_of,
)

MAX_LENGTH = 4000
MAX_NESTING = 60
_ARITHMETIC: Mapping[type[ast.operator], str] = MappingProxyType(
    {
        ast.Add: "+",
        ast.Sub: "-",
        ast.Mult: "*",
        ast.FloorDiv: "//",
        ast.Mod: "%",
        ast.Div: "/",
        ast.Pow: "**",
    }
)
_COMPARISONS: Mapping[type[ast.cmpop], str] = MappingProxyType(
    {
        ast.Eq: "==",
        ast.NotEq: "!=",
        ast.Lt: "<",
        ast.LtE: "<=",
        ast.Gt: ">",
        ast.GtE: ">=",
        ast.In: "in",
        ast.NotIn: "not in",
    }
)
_WORDS: Mapping[type[ast.AST], str] = MappingProxyType(
    {
        ast.Lambda: "a lambda",
        ast.JoinedStr: "an f-string",
        ast.NamedExpr: "an assignment",
        ast.Dict: "a dictionary",
        ast.Set: "a set",
        ast.DictComp: "a dictionary",
        ast.SetComp: "a set",
        ast.Starred: "a `*`",
        ast.Await: "an `await`",
        ast.Yield: "a `yield`",
        ast.YieldFrom: "a `yield`",
        ast.Call: "a call of what is no function's name",
    }
)


class Compiled(NamedTuple):
    """An expression as closures.

    Attributes:
        text: The expression, white space made plain.
        places: The names it reads from the scope, and where each stands first.
        run: Computes it.
        because: Says why it is false, in a scope where it is.
        makers: The operators that a `.maker` is compared with, and where each stands.
    """

    text: str
    places: Mapping[str, Location]
    run: Run
    because: Callable[[Scope], str]
    makers: tuple[tuple[str, Location], ...]


def compile_expression(text: str, location: Location, functions: frozenset[str]) -> Compiled:
    """Read an expression; see `Expression.parse`."""
    if len(text) > MAX_LENGTH:
        raise RecipeError(
            f"the expression is longer than {MAX_LENGTH} characters",
            where=location,
            mend="Split it by `let`, or write a builder.",
        )
    return _Compiler(text, location, functions).compile()


class _Compiler:
    def __init__(self, text: str, location: Location, functions: frozenset[str]) -> None:
        self._text, self._functions = Source(text, location), functions
        self._places: dict[str, Location] = {}  # of the names read from the scope
        self._makers: list[tuple[str, Location]] = []
        self._bound: list[str] = []  # the names of comprehensions around the node
        self._depth = 0

    def compile(self) -> Compiled:
        tree = self._text.parse()
        run = self._run_of(tree)
        because = self._because_of(tree)
        places, makers = MappingProxyType(self._places), tuple(dict.fromkeys(self._makers))
        return Compiled(self._text.plain, places, run, because, makers)

    def _run_of(self, node: ast.expr) -> Run:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            self._text.refuse_use(node, _WORDS.get(type(node)))
        if self._depth >= MAX_NESTING:
            self._text.refuse("the expression is nested too deeply", "Split it by `let`.")
        self._depth += 1
        run: Run = method(node)
        self._depth -= 1
        return run

    def _constant(self, node: ast.Constant) -> Run:
        value = node.value
        if not (value is None or isinstance(value, int | float | str)):
            self._text.refuse_use(node)
        if isinstance(value, int) and abs(value) > 2**63:
            self._text.refuse_at(node, "the integer does not fit 64 bits", "Write a smaller one.")
        return lambda scope: value

    def _name(self, node: ast.Name) -> Run:
        name = node.id
        if name not in self._bound and name not in DTYPES:
            self._places.setdefault(name, self._text.place_of(node))
        default: object = name if name in DTYPES else Unknown(f"`{name}` is not bound")

        def run(scope: Scope) -> object:
            try:
                return scope[name]
            except KeyError:
                return default

        return run

    def _attribute(self, node: ast.Attribute) -> Run:
        inner, name, subject = self._run_of(node.value), node.attr, self._text.segment(node.value)
        if name not in PROPERTIES:
            near = difflib.get_close_matches(name, PROPERTIES, n=1)
            listed = ", ".join(f"`.{known}`" for known in PROPERTIES)
            mend = f"Did you mean `.{near[0]}`?" if near else f"Known are {listed}."
            self._text.refuse_at(node, f"unknown property `.{name}` of `{subject}`", mend)
        if isinstance(node.value, ast.Constant):
            mend = "Write a name of the match; `True`, `False` and `None` are none."
            self._text.refuse_at(node, f"`{subject}` is no value of the graph", mend)

        def run(scope: Scope) -> object:
            value = inner(scope)
            if is_captured(value):
                found = value.attribute(name)  # type: ignore[attr-defined]
                if isinstance(found, Unknown):
                    return Unknown(f"{subject}: {found.reason}")
                return found
            if isinstance(value, Unknown):
                return value
            if value is None:
                return Unknown(f"`{subject}` is missing")
            return Unknown(f"{subject} is {describe(value)}, which has no `.{name}`")

        return run

    def _list(self, node: ast.List | ast.Tuple) -> Run:
        runs = [self._run_of(item) for item in node.elts]
        return lambda scope: [run(scope) for run in runs]

    _tuple = _list

    def _subscript(self, node: ast.Subscript) -> Run:
        value, subject = self._run_of(node.value), self._text.segment(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = [self._index_of(part) for part in parts]

        def run(scope: Scope) -> object:
            found = value(scope)
            if isinstance(found, Unknown):
                return found
            if found is None:
                return Unknown(f"`{subject}` is missing")
            keys = [index(scope) for index in indices]
            for key in keys:
                if isinstance(key, Unknown):
                    return key
            item = operators.item_of(found, tuple(keys))
            return Unknown(f"{subject}: {item.reason}") if isinstance(item, Unknown) else item

        return run

    def _index_of(self, node: ast.expr) -> Run:
        if not isinstance(node, ast.Slice):
            return self._run_of(node)
        runs = [None if p is None else self._run_of(p) for p in (node.lower, node.upper, node.step)]
        return lambda scope: operators.slice_of(*(run and run(scope) for run in runs))

    def _unaryop(self, node: ast.UnaryOp) -> Run:
        operand = self._run_of(node.operand)
        if isinstance(node.op, ast.USub):
            return lambda scope: operators.negative(operand(scope))
        if not isinstance(node.op, ast.Not):
            self._text.refuse_use(node)
        truth = self._truth_of(node.operand, operand)

        def run(scope: Scope) -> object:
            verdict = truth(scope)
            return verdict if isinstance(verdict, Unknown) else not verdict

        return run

    def _truth_of(self, node: ast.expr, run: Run) -> Callable[[Scope], bool | Unknown]:
        subject = self._text.segment(node)

        def truth(scope: Scope) -> bool | Unknown:
            value = run(scope)
            if value is True or value is False:
                return value
            value = scalar_of(value)
            if isinstance(value, bool | Unknown):
                return value
            return Unknown(f"{subject} is {describe(value)}, neither true nor false")

        return truth

    def _boolop(self, node: ast.BoolOp) -> Run:
        truths = [self._truth_of(value, self._run_of(value)) for value in node.values]
        decisive = isinstance(node.op, ast.Or)

        def run(scope: Scope) -> object:
            unknown = None
            for truth in truths:
                verdict = truth(scope)
                if verdict is decisive:
                    return decisive
                if isinstance(verdict, Unknown):
                    unknown = unknown or verdict
            return unknown or (not decisive)

        return run

    def _binop(self, node: ast.BinOp) -> Run:
        if type(node.op) not in _ARITHMETIC:
            self._text.refuse_use(node)
        symbol = _ARITHMETIC[type(node.op)]
        left, right = self._run_of(node.left), self._run_of(node.right)
        text = self._text.segment(node)

        def run(scope: Scope) -> object:
            first, second = left(scope), right(scope)
            if isinstance(first, Unknown):
                return first
            if isinstance(second, Unknown):
                return second
            result = operators.combine(symbol, first, second)
            return Unknown(f"{text}: {result.reason}") if isinstance(result, Unknown) else result

        return run

    def _compare(self, node: ast.Compare) -> Run:
        symbols = []
        for op in node.ops:
            if type(op) not in _COMPARISONS:
                self._text.refuse_at(node, "`is` cannot be used in an expression", "Write `==`.")
            symbols.append(_COMPARISONS[type(op)])
        operands = [node.left, *node.comparators]
        runs = [self._run_of(operand) for operand in operands]
        for symbol, *pair in zip(symbols, operands, operands[1:], strict=False):
            for text, name in makers_in(*pair):
                self._makers.append((name, self._text.place_of(text)))
            for operand, what, mend in faults(symbol, *pair):
                self._text.refuse_at(operand, what, mend)
        texts = [self._text.segment(operand) for operand in operands]

        def run(scope: Scope) -> object:
            unknown = None
            left = runs[0](scope)
            for index, symbol in enumerate(symbols):
                right = runs[index + 1](scope)
                verdict = compare(symbol, left, right)
                if verdict is False:
                    return False
                if isinstance(verdict, Unknown):
                    said = any(isinstance(v, Unknown) or is_captured(v) for v in (left, right))
                    words = "" if said else shown(texts[index : index + 2], [left, right])
                    unknown = unknown or (Unknown(words) if words else verdict)
                left = right
            return unknown or True

        return run

    def _ifexp(self, node: ast.IfExp) -> Run:
        test = self._truth_of(node.test, self._run_of(node.test))
        body, otherwise = self._run_of(node.body), self._run_of(node.orelse)

        def run(scope: Scope) -> object:
            verdict = test(scope)
            if isinstance(verdict, Unknown):
                return verdict
            return body(scope) if verdict else otherwise(scope)

        return run

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> Run:
        first = node.generators[0]
        if len(node.generators) > 1 or self._bound:
            mend = "Use one `for`; a builder can do more."
            self._text.refuse_at(node, "a comprehension within a comprehension", mend)
        if not isinstance(first.target, ast.Name) or first.is_async:
            mend = "Write `[... for item in items]`."
            self._text.refuse_at(first.target, "a comprehension needs one name", mend)
        name, source = first.target.id, self._run_of(first.iter)
        self._bound.append(name)
        tests = [self._truth_of(test, self._run_of(test)) for test in first.ifs]
        element = self._run_of(node.elt)
        self._bound.pop()
        return lambda scope: comprehend(scope, name, source, tests, element)

    _generatorexp = _listcomp

    def _call(self, node: ast.Call) -> Run:
        if not isinstance(node.func, ast.Name):
            self._text.refuse_at(node.func, f"{_WORDS[ast.Call]} cannot be used in an expression")
        name = node.func.id
        own = name in self._functions
        if not own and name not in FUNCTIONS:
            known = {*FUNCTIONS, *self._functions}
            mend = suggest(name, known, "`surgeon recipes functions` lists them.")
            self._text.refuse_at(node, f"unknown function `{name}`", mend)
        for keyword in node.keywords:
            if keyword.arg is None:
                self._text.refuse_at(keyword.value, "`**` cannot be used in an expression")
        names = [keyword.arg or "" for keyword in node.keywords]
        args = [self._run_of(arg) for arg in node.args]
        kwargs = [self._run_of(keyword.value) for keyword in node.keywords]
        if not own:
            self._check_arity(node, name, len(args), names)

        def run(scope: Scope) -> object:
            function = FUNCTIONS.get(name)
            if own:
                given = given_by(scope, name)
                function = decided(name, given) if callable(given) else None
            if function is None:
                return Unknown(f"no function `{name}` is given")
            values = {key: value(scope) for key, value in zip(names, kwargs, strict=True)}
            return function(*(arg(scope) for arg in args), **values)

        return run

    def _check_arity(self, node: ast.Call, name: str, count: int, names: list[str]) -> None:
        signature = inspect.signature(FUNCTIONS[name])
        try:
            signature.bind(*[None] * count, **dict.fromkeys(names))
        except TypeError as error:
            listed = ", ".join(signature.parameters)
            what = f"`{name}` cannot be called so: {error}"
            self._text.refuse_at(node, what, f"Write `{name}({listed})`.")

    def _because_of(self, node: ast.expr) -> Callable[[Scope], str]:
        """Says why the node is false: by the values of what it compares."""
        if isinstance(node, ast.BoolOp):
            parts = [
                (self._run_of(value), self._because_of(value), self._text.segment(value))
                for value in node.values
            ]
            together = isinstance(node.op, ast.And)

            def of_parts(scope: Scope) -> str:
                false = [
                    why(scope) or f"{text} is false"
                    for run, why, text in parts
                    if scalar_of(run(scope)) is False
                ]
                return " and ".join(dict.fromkeys(filter(None, false[:1] if together else false)))

            return of_parts
        compared = node.operand if isinstance(node, ast.UnaryOp) else node
        operands: list[ast.expr]
        if isinstance(compared, ast.Compare):
            operands = [compared.left, *compared.comparators]
        elif isinstance(node, ast.Call):
            operands = list(node.args)
        else:
            operands = []
        texts = [self._text.segment(operand) for operand in operands]
        runs = [self._run_of(operand) for operand in operands]
        return lambda scope: shown(texts, [run(scope) for run in runs])
