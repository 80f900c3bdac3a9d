from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import lark
import numpy as np
import onnx.parser
import onnx.printer
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from surgeon.document import read
from surgeon.errors import Location, RecipeError
from surgeon.notation import (
    Argument,
    NodePattern,
    Pattern,
    check_operators,
    grammar,
    parse_pattern,
    parse_replacement,
    print_pattern,
)
from surgeon.notation.syntax import _WORDS
from surgeon.recipe import bundled

HERE = Location("r.yaml", 10, 5)


def only_node(text: str) -> NodePattern:
    (node,) = parse_pattern(text, HERE).nodes
    return node


def error_of(text: str, *, replacement: bool = False) -> str:
    with pytest.raises(RecipeError) as caught:
        (parse_replacement if replacement else parse_pattern)(text, HERE)
    return str(caught.value)


def test_a_node_says_everything() -> None:
    node = only_node(
        '[label] y, , z = my.dom.A | B:over <a = 1, b: ints = [1, -2], s = "t\\"x", f: float = 3, '
        'axis = @k, *others> (x?, , _, "a/b:0", v~, *xs)  # a comment'
    )
    assert (node.domain, node.operators, node.overload) == ("my.dom", ("A", "B"), "over")
    assert node.outputs == ("y", "", "z")
    assert dict(node.attributes) == {"a": 1, "b": (1, -2), "s": 't"x', "f": 3.0}
    assert type(node.attributes["f"]) is float
    assert dict(node.captures) == {"axis": "k"}
    assert node.rest == "others"
    assert node.inputs == (
        Argument("x", optional=True),
        Argument(""),
        Argument("_"),
        Argument("a/b:0"),
        Argument("v", through=True),
        Argument("xs", rest=True),
    )
    assert node.location == Location("r.yaml", 10, 13)


def test_the_default_domain_has_two_spellings() -> None:
    assert only_node("y = ai.onnx.Relu (x)") == only_node("y = Relu (x)")
    assert only_node("y = ai.onnx.ml.Scaler (x)").domain == "ai.onnx.ml"
    assert only_node("y = aten.add | sub (x, z)").operators == ("add", "sub")
    assert only_node("y = aten.add | aten.sub (x, z)").domain == "aten"


def test_trailing_omitted_inputs_are_as_if_not_written() -> None:
    assert only_node('y = Clip (x, , "")').inputs == (Argument("x"),)
    assert only_node("y = Clip (x, , top)").inputs == (Argument("x"), Argument(""), Argument("top"))
    assert only_node("y = Constant ()").inputs == ()


def test_tensors() -> None:
    tensor = only_node("y = A <t = int64[2,1] named {1, 2}> (x)").attributes["t"]
    assert isinstance(tensor, np.ndarray)
    assert tensor.dtype == np.int64
    assert tensor.tolist() == [[1], [2]]
    assert not tensor.flags.writeable
    scalar = only_node("y = A <t: tensor = float {1.5}> (x)").attributes["t"]
    assert isinstance(scalar, np.ndarray)
    assert (scalar.shape, scalar.dtype) == ((), np.float32)
    words = only_node('y = A <t = string[1] {"a"}> (x)').attributes["t"]
    assert isinstance(words, np.ndarray)
    assert words.tolist() == ["a"]


def test_equality_sees_types_and_tensors_and_not_places() -> None:
    texts = ["a = 1", "a = 1.0", "a = [1]", "a = float[1] {1}", "a = double[1] {1}", "a = @b", "*a"]
    nodes = [only_node(f"y = A <{text}> (x)") for text in texts]
    assert len(set(nodes)) == len(nodes)
    assert only_node("y = A <t = float[1] {1}> (x)") == only_node("\n y=A<t=float[1]{1.0}>(x)")


def test_a_pattern_knows_its_names() -> None:
    pattern = parse_pattern("a, _ = A (x, _, w?)\nb = B (a, x, *xs) ; c = C (b, a)", HERE)
    assert pattern.root.operators == ("C",)
    assert pattern.inputs == ("x", "w", "xs")
    assert pattern.outputs == ("a", "b", "c")
    assert pattern.producer("b") is pattern.nodes[1]
    assert pattern.producer("x") is pattern.producer("_") is None
    assert parse_replacement("y = A (@k, x)", HERE).inputs == ("x",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "y = A (x)\n  z = B (y",
            "r.yaml:11:11: expected `)`, `,`, `?` or `~`, found the end\n"
            "  mend: Write nodes as `y = Operator <attribute = 1> (x)`.",
        ),
        (
            "y = A x)",
            "r.yaml:10:11: expected `(`, `.`, `:`, `<` or `|`, found `x`\n"
            "  mend: Write nodes as `y = Operator <attribute = 1> (x)`.",
        ),
        (
            "y = A ($)",
            "r.yaml:10:12: unexpected character `$`\n"
            "  mend: Write nodes as `y = Operator <attribute = 1> (x)`.",
        ),
        ('y = A ("a)', 'r.yaml:10:12: a quoted name does not end\n  mend: Close it with `"`.'),
        (
            " \n# nothing\n",
            "r.yaml:10:5: there is no node here\n"
            "  mend: Write nodes as `y = Operator <attribute = 1> (x)`.",
        ),
        (
            "y = A (x)\ny = B (y)",
            "r.yaml:11:1: `y` is produced twice, first in line 10\n"
            "  mend: Give one of them another name.",
        ),
        (
            "y = B (x, h)\nh = A (x)",
            "r.yaml:10:15: `h` is used before it is produced\n"
            "  mend: Write the node that produces it first.",
        ),
        (
            "y = A (y)",
            "r.yaml:10:12: `y` is used before it is produced\n"
            "  mend: Write the node that produces it first.",
        ),
        (
            "a = A (x)\nb = B (x)\nc = C (a)",
            "r.yaml:11:1: `b` does not lead to the last node\n"
            "  mend: Use it in a later node, or take it out.",
        ),
        (
            "y = A (@k)",
            "r.yaml:10:13: `@k` is not an input of a pattern\n"
            "  mend: Write `k`, and compare its value in `where`.",
        ),
        ("y = A (*xs, x)", "r.yaml:10:13: `*xs` is not the last input\n  mend: Put it last."),
        (
            "h = A (*xs)\ny = B (xs, h)",
            "r.yaml:11:8: `*xs` is also used in line 10\n  mend: Use another name.",
        ),
        (
            "y = A <k = @x> (x)",
            "r.yaml:10:17: `x` is both a value and an attribute\n"
            "  mend: Give the attribute another name behind the `@`.",
        ),
        (
            "y = A <k = 1, k = @k> (x)",
            "r.yaml:10:19: the attribute `k` is here twice\n  mend: Keep one of them.",
        ),
        (
            "y = A <*a, *b> (x)",
            "r.yaml:10:17: a second rest of the attributes\n  mend: Keep one of them.",
        ),
        (
            "y = A <k = 1> (x) <j = 1>",
            "r.yaml:10:24: attributes are here twice\n  mend: Join them in one `<>`.",
        ),
        (
            "y = my.A | other.B (x)",
            "r.yaml:10:16: `B` is not of the domain of `A`\n  mend: Write two rules, one a domain.",
        ),
        (
            "y = A <k = word> (x)",
            'r.yaml:10:16: `word` is no value\n  mend: Write `"word"` for a text, `@word` for a '
            "capture.",
        ),
        (
            'y = A <k = [1, "a"]> (x)',
            "r.yaml:10:20: numbers and texts are in one list\n  mend: Use one kind.",
        ),
        (
            "y = A <k: int = 1.5> (x)",
            "r.yaml:10:15: the value is no `int`\n  mend: Write `float`.",
        ),
        (
            "y = A <k: graph = 1> (x)",
            "r.yaml:10:15: an attribute of type `graph` cannot be written here\n"
            "  mend: Name a builder instead.",
        ),
        (
            f"y = A <k = {'9' * 5000}> (x)",
            "r.yaml:10:16: the integer does not fit 64 bits\n  mend: Write less.",
        ),
        (
            "y = A <k = float[3] {1, 2}> (x)",
            "r.yaml:10:16: 2 elements are given for 3\n"
            "  mend: Give as many elements as the dims say.",
        ),
        (
            "y = A <k = flaot[1] {1}> (x)",
            "r.yaml:10:16: unknown element type `flaot`\n  mend: Did you mean `float`?",
        ),
        (
            "y = A <k = uint8[1] {300}> (x)",
            "r.yaml:10:16: an element does not fit `uint8`\n  mend: Use a wider type.",
        ),
        (
            "y = A <k = int64[1] {1.5}> (x)",
            "r.yaml:10:16: the elements are no `int64`\n  mend: Change the type or the elements.",
        ),
    ],
)
def test_what_is_wrong_with_a_pattern_and_where(text: str, message: str) -> None:
    assert error_of(text) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y = A (_)", "r.yaml:10:12: `_` is not for replacements\n  mend: Name the value."),
        ("y = A (x~)", "r.yaml:10:12: `~` is not for replacements\n  mend: Write `x`."),
        (
            "y = A | B (x)",
            "r.yaml:10:13: `A | B` is not for replacements\n"
            "  mend: Write two rules, one an operator.",
        ),
        (
            "y, _ = A (x)",
            "r.yaml:10:8: `_` is not for replacements\n"
            "  mend: Leave the place empty: `y, , z = ...`.",
        ),
        (
            "h = A (x)\ny = B (*h)",
            "r.yaml:11:9: `h` is one value, not a rest\n  mend: Write `h`.",
        ),
    ],
)
def test_what_a_replacement_may_not_say(text: str, message: str) -> None:
    assert error_of(text, replacement=True) == message


def bundled_texts() -> Iterator[str]:
    """What the bundled recipes look for and write."""
    for path in bundled().values():
        content = read(path).plain()
        steps = [content, *content.get("steps", ())]
        for rule in (rule for step in steps for rule in step.get("rules", ())):
            yield from (rule[key] for key in ("match", "replace") if isinstance(rule[key], str))


def parsed(with_tables: lark.Lark, text: str) -> Any:
    """The tree with the places of its tokens, or what is wrong, and where."""
    try:
        tree = with_tables.parse(text)
    except UnexpectedCharacters as error:
        return error.line, error.column, error.char
    except UnexpectedToken as error:
        return error.token, error.line, error.column, error.accepts or error.expected
    tokens = tree.scan_values(lambda value: isinstance(value, lark.Token))
    return tree, [(token.line, token.column, token.end_column) for token in tokens]


def test_the_tables_are_of_this_grammar_and_read_as_computed_ones() -> None:
    kept = json.loads(grammar.TABLES.read_text(encoding="utf-8"))
    assert kept["grammar"] == grammar.GRAMMAR, "run python -m surgeon.notation.make"
    if kept["lark"] != lark.__version__:
        pytest.skip(f"the tables are of lark {kept['lark']}, and {lark.__version__} is installed")
    ours, other = grammar.parser(), grammar.computed()
    assert ours.source_path != other.source_path  # one of them is from the tables
    draw = random.Random(0)
    texts = list(bundled_texts())
    assert len(texts) > 200
    for text in texts:
        at, put = draw.randrange(len(text)), draw.choice('()<>=,:;@*?~|"[]{} 1a_.!')
        for each in (text, text[:at] + put + text[at:], text[:at], text[:at] + put):
            assert parsed(ours, each) == parsed(other, each)


def test_another_lark_computes_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lark, "__version__", "another")
    monkeypatch.setattr(lark.Lark, "load", None)
    grammar.parser.cache_clear()
    try:
        assert parse_pattern("y = Relu (x)", HERE).root.operators == ("Relu",)
    finally:
        grammar.parser.cache_clear()


def test_every_token_has_words() -> None:
    names = {terminal.name for terminal in grammar.computed().terminals}
    assert {name for name in names if not name.startswith("__IGNORE")} | {"$END"} == set(_WORDS)


@pytest.mark.parametrize(
    "text",
    [
        "y = Relu (x)",
        "y, z = my.domain.Op:overload <a = 1, b = 2.5> (x, , w)",
        'y = Op <s = "a", t = float[2] {1, 2}, u: floats = [1, 2], v: ints = []> (x)',
        "y, , z = Op (x) <a = -1, f = 1e-05>",
    ],
)
def test_plain_onnx_text_and_what_onnx_prints_is_read(text: str) -> None:
    printed = onnx.printer.to_text(onnx.parser.parse_node(text))
    assert parse_pattern(printed, HERE) == parse_pattern(text, HERE)


@pytest.mark.parametrize(
    "text",
    [
        "y = ReduceMean <axes = [3]> (x)",
        "y = ReduceMean (x, axes)",
        "y = Concat <axis = @axis> (*xs)",
        "y = Clip (x, , top)",
        "y = Add | Mul (a, b)",
        "y = Gelu | Erf (x)",
        "y = ai.onnx.ml.Scaler (x)",
        "y = aten.anything <odd = 1> (x)",
        "y = Unsqueeze <axes = []> (x)",
        "y = my.domain.Op (x)",
        "y = other.Op (x)",
        "y = Plugin (x)",
    ],
)
def test_operators_of_any_version_and_declared_ones_pass(text: str) -> None:
    custom = frozenset({"my.domain.Op", "other", "Plugin"})
    check_operators(parse_pattern(text, HERE), custom=custom)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y = Rellu (x)", "unknown operator `Rellu`\n  mend: Did you mean `Relu`?"),
        ("y = Add | Mull (a, b)", "unknown operator `Mull`\n  mend: Did you mean `Mul`?"),
        ("y = Zzzz (x)", "unknown operator `Zzzz`\n  mend: Declare it: `custom: [Zzzz]`."),
        ("y = a.b.C (x)", "unknown domain `a.b`\n  mend: Declare it: `custom: [a.b.C]`."),
        (
            "y = my.domain.Opp (x)",
            "unknown domain `my.domain`\n  mend: Did you mean `my.domain.Op`?",
        ),
        (
            "y = LeakyRelu <alfa = 1.0> (x)",
            "`LeakyRelu` has no attribute `alfa`\n  mend: Did you mean `alpha`?",
        ),
        (
            "y = Concat <axes = @axis> (a)",
            "`Concat` has no attribute `axes`\n  mend: Did you mean `axis`?",
        ),
        (
            "y = LeakyRelu <alpha = 1> (x)",
            "the attribute `alpha` of `LeakyRelu` is of type float, not int\n"
            "  mend: Write `alpha: float = ...` with a value of that type.",
        ),
        (
            "y = Relu (x, z)",
            "`Relu` has 1 input, not 2\n  mend: Write as many inputs as the operator has; "
            "leave the place of an omitted one empty.",
        ),
        (
            "y = TopK (x, k)",
            "`TopK` has 2 outputs, not 1\n  mend: Write as many outputs as the operator has; "
            "leave the place of an omitted one empty.",
        ),
    ],
)
def test_operators_that_no_version_has(text: str, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        check_operators(parse_pattern(text, HERE), custom=frozenset({"my.domain.Op"}))
    assert str(caught.value) == f"r.yaml:10:5: {message}"


def test_what_is_written_needs_its_required_attributes() -> None:
    bare = parse_replacement("y = Concat (a, b)", HERE)
    check_operators(bare)
    with pytest.raises(RecipeError, match=r"`Concat` needs the attribute `axis`"):
        check_operators(bare, complete=True)
    check_operators(parse_replacement("y = Concat <*same> (a, b)", HERE), complete=True)
    check_operators(parse_replacement("y = Concat <axis = @k> (a, b)", HERE), complete=True)


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,3}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=5)
INTEGERS, FLOATS = st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=True)
TENSORS = st.lists(st.floats(width=32, allow_nan=False) | st.just(np.nan), max_size=3).map(
    lambda x: np.array(x, np.float32)
) | st.lists(st.booleans(), min_size=2, max_size=2).map(lambda x: np.array(x).reshape(1, 2, 1))
VALUES = st.one_of(
    INTEGERS,
    FLOATS,
    TEXTS,
    TENSORS,
    *(st.lists(x, max_size=3).map(tuple) for x in (INTEGERS, FLOATS)),
)


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """A chain in which every node also reads values of its own."""
    nodes: list[NodePattern] = []
    for index in range(draw(st.integers(1, 3))):
        outputs = draw(st.permutations([f"out{index}", *draw(st.sampled_from([[], [""], ["_"]]))]))
        flags = st.booleans()
        values = st.tuples(TEXTS.map("v ".__add__), flags, flags).map(
            lambda drawn: Argument(drawn[0], optional=drawn[1], through=drawn[2])
        )
        odd = st.sampled_from([Argument(""), Argument("_"), Argument("_", optional=True)])
        inputs = draw(st.lists(values | odd, max_size=3))
        inputs += [Argument(f"out{index - 1}")] if index else []
        inputs += draw(st.sampled_from([[], [Argument(f"rest{index}", rest=True)]]))
        while inputs and not inputs[-1].name:
            inputs.pop()
        attributes = draw(st.dictionaries(NAMES, VALUES, max_size=2))
        captures = draw(
            st.dictionaries(NAMES.map("c_".__add__), NAMES.map("k_".__add__), max_size=2)
        )
        nodes.append(
            NodePattern(
                domain=draw(st.sampled_from(["", "aten", "my.domain"])),
                operators=draw(st.lists(NAMES, min_size=1, max_size=2).map(tuple)),
                overload=draw(st.just("") | NAMES),
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                attributes=MappingProxyType(attributes),
                captures=MappingProxyType(captures),
                rest=draw(st.none() | NAMES.map("r_".__add__)),
                location=HERE,
            )
        )
    return Pattern(tuple(nodes))


@given(patterns())
def test_what_is_printed_is_read_again(pattern: Pattern) -> None:
    assert parse_pattern(print_pattern(pattern), HERE) == pattern


PIECES = ["y", "=", "A", ".", "(", "x", ")", ",", "<", ">", "*", "@", "?", "~", "_", "|", ":", "1"]
PIECES += ["\n", " ", ";", "#", '"', "[", "]", "{", "}", "1.5", "-inf", "float", "é", "\\", "\0"]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text())
def test_any_text_is_a_pattern_or_a_recipe_error(text: str) -> None:
    for parse in (parse_pattern, parse_replacement):
        with suppress(RecipeError):
            assert parse(text, HERE).nodes
