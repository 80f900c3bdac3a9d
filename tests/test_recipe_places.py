"""Where errors of recipes are, when text is escaped; and forms that are nearly right."""

import pytest
from recipe_texts import HEAD, error_of, rule


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ({"match": r'"a = Relu (x)\ny = Rleu (a)"'}, "7:27"),
        ({"match": r'"a = Relu (x)\u003b y = Rleu (a)"'}, "7:32"),
        ({"match": '"a = Relu (x);\\\n      y = Rleu (a)"'}, "8:7"),
        ({"match": '"a = Relu\n      (x)\\x3b y = Rleu (a)"'}, "8:15"),
        ({"where": "['x.maker == ''Relu'' and x.rnk == 1']"}, "9:38"),
    ],
)
def test_behind_escapes_the_place_is_that_of_the_file(parts: dict[str, str], place: str) -> None:
    """Where it is the node that is wrong, its first output is named."""
    text = rule().replace("match: y = Relu (x)", f"match: {parts.pop('match', 'y = Relu (x)')}")
    if parts:
        text = rule(**parts)
    assert error_of(text).startswith(f"r.yaml:{place}: unknown ")


STEP = "{id: a, why: w, exact: bit, match: y = Relu (x), replace: y = Abs (x)}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "steps: [clean]\n", "`clean`, not a mapping\n  mend: Write `use: clean` for the"),
        (HEAD + "steps: clean\n", "not a list\n  mend: Write `steps: [use: clean]`."),
        (HEAD + "steps: []\n", "3:1: `steps` is empty"),
        (HEAD + "steps: [rules: []]\n", "3:9: `rules` is empty"),
        (HEAD + f"rules: {STEP}\n", "not a list\n  mend: Write `- ` in front of each item"),
        ("surgeon: '1'\nname: a\n", "is a text, not a number\n  mend: Write `surgeon: 1`, without"),
        ("surgeon: 2\nname: a\n", "that this surgeon knows\n  mend: Take a newer surgeon"),
        ("surgeon: 1\nname: a/b\n", "2:7: `name` is `a/b`\n  mend: Write a name without `/`"),
        (HEAD + "steps: [lower-opset: 3]\n", "`lower-opset` is 3, and not 11 or more"),
        (rule(let="{c: x.rank}"), "`c` is computed and used by nothing"),
        (rule(replace=f"y = Abs ({'x' * 5000})"), f"unknown name `{'x' * 200}...`"),
    ],
)
def test_what_is_nearly_right_is_told_how_to_write(text: str, message: str) -> None:
    assert message in error_of(text)
