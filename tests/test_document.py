from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surgeon.document import MAX_BYTES, MAX_DEPTH, Value, parse, read, suggest
from surgeon.errors import Location, RecipeError


@pytest.fixture(params=["libyaml", "PyYAML's own"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything holds with either parser: PyYAML may have been built without libyaml."""
    if request.param == "libyaml" and not yaml.__with_libyaml__:
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(yaml, "__with_libyaml__", request.param == "libyaml")
    return str(request.param)


def place(value: Value | None) -> tuple[int, int]:
    assert value is not None
    return value.location.line, value.location.column


def error_of(text: str) -> str:
    with pytest.raises(RecipeError) as caught:
        parse(text, file="a.yaml")
    return str(caught.value)


def test_scalars_follow_yaml_1_2() -> None:
    value = parse("a: no\nb: 010\nc: 0o17\nd: 0xff\ne: 1.10\nf: ~\ng: TRUE\nh: '1'\ni:\nj: -.inf")
    assert value.plain() == {
        **{"a": "no", "b": 10, "c": 15, "d": 255, "e": 1.1, "f": None},
        **{"g": True, "h": "1", "i": None, "j": float("-inf")},
    }


def test_keys_and_values_know_their_places() -> None:
    value = parse("rules:\n  - id: one\n    where: [a, 'b']\n    empty:\n")
    rule = value.find("rules", 0)
    assert rule is not None
    assert rule.key_location("where") == Location("<text>", 3, 5)
    assert rule.key_location("nothing") == rule.location == Location("<text>", 2, 5)
    assert place(rule.find("id")) == (2, 9)
    assert place(rule.find("where", 0)) == (3, 13)
    assert place(rule.find("where", 1)) == (3, 17)  # behind the quote: where the content begins
    assert place(rule.find("empty")) == (4, 11)
    assert rule.find("where", 2) is None
    assert rule.find("id", "x") is None


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("a: |\n    x = A (b)\n    y = B (@)\n", (2, 5)),
        ("a: |-  # a comment\n  x\n\n  @\n", (2, 3)),
        ("a: |\n\n   x\n   @\n", (2, 1)),
        ("a: |2\n     x\n   @\n", (2, 3)),
        ("a:\n  - |\n    x\n      @\n", (3, 5)),
        ("a: 'x @'\n", (1, 5)),
        ('a: "x @"\n', (1, 5)),
        ("a: x and\n    y @\n", (1, 4)),
        ("a:\n    x and\n      y @\n", (2, 5)),
        ("a: >\n  x\n  @\n", (2, 3)),
    ],
)
def test_a_place_inside_a_text_is_a_place_in_the_file(text: str, begin: tuple[int, int]) -> None:
    found = parse(text).find("a") or Value(None, Location(""))
    value = found.find(0) or found
    assert place(value) == begin
    lines = value.source.split("\n")
    line = next(number for number, line in enumerate(lines, 1) if "@" in line)
    where = value.location.shifted(line, lines[line - 1].index("@") + 1)
    assert text.split("\n")[where.line - 1][where.column - 1] == "@"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: 1\nb: 2\na: 3\n",
            "a.yaml:3:1: the key `a` is here twice, first in line 1\n  mend: Keep one of them.",
        ),
        (
            "a: !!python/object:os.system x\n",
            "a.yaml:1:4: unknown tag `tag:yaml.org,2002:python/object:os.system`\n"
            "  mend: Remove the tag; put quotes around a value to make it text.",
        ),
        (
            "a: &x 1\nb: *x\n",
            "a.yaml:1:4: anchors and aliases (`x`) are not read here\n"
            "  mend: Write the value out where it is needed.",
        ),
        (
            "a: 1\n---\nb: 1\n",
            "a.yaml:2:1: a second document begins here\n"
            "  mend: Put each document into a file of its own.",
        ),
        ("1: x\n", "a.yaml:1:1: a key is not text\n  mend: Put quotes around the key."),
        ("", "a.yaml:1:1: it is empty\n  mend: Write `surgeon: 1` and go on."),
        (
            "%YAML 1.1\n---\na: on\n",
            "a.yaml:1:1: YAML directives are not read here\n"
            "  mend: Remove the lines that begin with `%`.",
        ),
        (
            f"a: 1{'0' * 30}\n",
            "a.yaml:1:4: the integer does not fit 64 bits\n  mend: Write a smaller one.",
        ),
    ],
)
def test_what_a_recipe_has_no_need_of_is_refused(text: str, message: str) -> None:
    assert error_of(text) == message


def test_text_that_is_not_yaml_says_where() -> None:
    assert error_of("a: [1, 2\nb: 3\n").startswith("a.yaml:2:2: it is not YAML: ")
    assert error_of("a: 1\nb: \x07\n").startswith("a.yaml:2:4: it is not YAML: the character ")
    assert error_of('a: "\\UFFFFFFFF"\n').startswith("a.yaml:1:1: it is not YAML: ")
    assert "begins with `[`" in error_of('match: ["relu"] y = Relu (x)\n')
    assert error_of('a: "\\ud800"\n').startswith("a.yaml:1:4: it is not YAML: an escape")


def test_a_text_that_begins_with_a_tab_is_read_though_libyaml_refuses_it() -> None:
    value = parse("a: |\n  \tx\n  y\n").find("a")
    assert value is not None
    assert value.content == "\tx\ny\n"
    assert place(value) == (2, 3)


@pytest.mark.parametrize("mark", ["\x85", "\u2028", "\u2029", "\U0001f600"])
def test_lines_and_columns_are_those_of_an_editor(mark: str) -> None:
    """YAML 1.1 ends a line at three characters more, which no editor counts."""
    value = parse(f"a: '{mark}'\rb: {{c: '{mark}', d: 1}}\r\ne: |\n  x\n  y\n")
    assert value.key_location("b") == Location("<text>", 2, 1)
    assert place(value.find("b", "d")) == (2, 16)
    assert place(value.find("e")) == (4, 3)
    assert error_of(f"a: '{mark}'\nb: [1").startswith("a.yaml:2:6: it is not YAML: ")


def test_nesting_is_limited() -> None:
    within = MAX_DEPTH - 1
    assert parse("[" * within + "1" + "]" * within).location == Location("<text>")
    for begin in ("[", "{", "- ", "? ", "{a: "):
        assert f"more than {MAX_DEPTH} levels of nesting" in error_of(begin * 100_000)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    def error(path: Path) -> str:
        with pytest.raises(RecipeError) as caught:
            read(path)
        return str(caught.value)

    assert error(tmp_path) == f"{tmp_path}: it is a folder\n  mend: Name a YAML file in it."
    missing = tmp_path / "no.yaml"
    assert error(missing) == f"{missing}: there is no such file\n  mend: Check the path."
    binary = tmp_path / "model.onnx"
    binary.write_bytes(b"\x08\x07\n\x12\xff\xfe")
    assert error(binary) == (
        f"{binary}:2:2: it is not UTF-8 text\n"
        "  mend: Name a YAML file; if it is one, save it as UTF-8."
    )
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (MAX_BYTES + 1))
    assert error(large).startswith(f"{large}: it is larger than 4 MiB\n")
    assert "it cannot be read" in error(Path("a" * 5000))
    assert "it cannot be read" in error(Path("a\0b"))


def test_byte_order_mark_and_windows_line_ends_do_not_move_places(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes("\ufeffa: 1\r\nb: |\r\n  x\r\n".encode())
    value = read(path)
    assert value.plain() == {"a": 1, "b": "x\n"}
    assert place(value.find("b")) == (3, 3)


def test_suggestions() -> None:
    assert suggest("patern", ["pattern", "where"]) == "Did you mean `pattern`?"
    assert suggest("RELU", ["Relu", "Selu"]) == "Did you mean `Relu`?"
    assert suggest("zzz", ["b", "a"]) == "Known are `a`, `b`."
    assert suggest("zzz", [f"name{n:02}" for n in range(13)]).endswith("`name11` and others.")
    assert suggest("zzz", []) == "Remove `zzz`."


YAML_CHARACTERS = st.text(st.sampled_from(list("ab: \n-[]{}'\"|>&*!%#,?\\\t0.~\x00é\ud800")))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(YAML_CHARACTERS | st.text())
def test_any_text_is_a_value_or_a_recipe_error(text: str) -> None:
    with suppress(RecipeError):
        assert isinstance(parse(text), Value)
