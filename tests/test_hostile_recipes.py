"""Recipes, expressions and patterns that mean harm: one error, soon, and nothing is run."""

import json
import sys
from pathlib import Path

import pytest
from hostile_command import Runner, attempt, save, surgeon
from hostile_models import network
from shares import every

__all__ = ["surgeon"]  # a fixture of `hostile_command`

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork, and no limits, here")

ALIASES = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(24)
)
RECIPES: dict[str, str] = {
    "a name that no file has": f"surgeon: 1\nname: x\nsteps: [{{use: {'s' * 5000}}}]\n",
    "a path that no file has": f"surgeon: 1\nname: x\nsteps: [{{use: ./{'s' * 5000}.yaml}}]\n",
    "alias bomb": ALIASES,
    "alias of itself": "a: &a [*a]\n",
    "merge": "surgeon: 1\n<<: {name: x}\n",
    "100,000 lists": "a: " + "[" * 100_000,
    "100,000 mappings": "a: " + "{a: " * 100_000,
    "1,000 levels": "".join(f"{' ' * i}a:\n" for i in range(1000)),
    "tag": "surgeon: !!python/object/apply:os.system [touch evil]\n",
    "binary": "surgeon: !!binary aGVsbG8=\n",
    "5 MB": "a: " + "x" * (5 << 20),
    "key of 1 MB": "k" * (1 << 20) + ": 1\n",
    "escape codes": 'surgeon: 1\nname: "\\e[2J\\a"\nrules: []\n',
    "a key of escape codes": 'surgeon: 1\n"\\e[2J\\a\\n": 1\n',
    "raw escape codes": "surgeon: 1\nname: \x1b[2J\n",
    "a recipe that uses itself": "surgeon: 1\nname: x\nsteps: [{use: ./bad.yaml}]\n",
    "a path up": "surgeon: 1\nname: x\nsteps: [{use: ../../../../etc/passwd}]\n",
    "a device": "surgeon: 1\nname: x\nsteps: [{use: /dev/zero}]\n",
    "not UTF-8": "surgeon: \udcff\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", RECIPES)
def test_a_recipe(kind: str, surgeon: Runner, tmp_path: Path) -> None:
    path = save(tmp_path, network())
    (tmp_path / "bad.yaml").write_bytes(RECIPES[kind].encode(errors="surrogateescape"))
    harmless = kind == "escape codes"
    attempt(surgeon, tmp_path / "bad.yaml", path, (0,) if harmless else (2,))


RULE = """\
surgeon: 1
name: bad
rules:
  - id: bad
    why: Because a test says so.
    exact: bit
    match: {match}
    where:
      - "{where}"
    let:
      v: "{let}"
    replace: {replace}
"""
EXPRESSIONS = [
    "9**9**9",
    "9**9**9 > 1",
    "[0]*10**12",
    "[0] * 1000000000000 == []",
    "'x' * 10**12",
    "range(10**12) == []",
    "[[i for i in range(10**6)] for j in range(10**6)]",
    "zeros([100000, 100000])",
    "ones([10**6, 10**6]) == 0",
    "arange(10**12)",
    "full([10**9], 1)",
    "reshape(range(4), [2**40, 2**40])",
    "1 << 10**12",
    "(1 << 60) << 60",
    "x.__class__",
    "x.shape.__class__.__mro__",
    "().__class__.__bases__[0].__subclasses__()",
    "__import__('os').system('touch evil')",
    "open('/etc/passwd')",
    "getattr(x, 'gs')",
    "eval('1')",
    "lambda: 1",
    "[y for y in iter(int, 1)]",
    "x.shape[10**30]",
    "x.name",
    "f'{x}'",
    "x := 1",
    "0" * 3000,
    "(" * 2000 + ")" * 2000,
    "not " * 1500 + "1",
    "pooling_matrix(10**6, 10**6)",
    "repeat(range(1000), 10**9)",
    "concat([range(1000)] * 1000)",
    "sum([i * j for i in range(1000) for j in range(1000)])",
    "1 / 0 > 0",
    "5 % 0 == 0",
    "x.shape[0] ** 5000 == 1",
    "((x.shape[0] + 1) ** 64 + 1) ** 64 == 1",
    "(x.shape[0] + x.shape[1] + 1) ** 200 == 1",
    "max(x.shape[0], 2) // (x.shape[0] - x.shape[0]) == 1",
]


@pytest.mark.slow
@pytest.mark.parametrize("index", range(0, len(EXPRESSIONS), every(3)))
def test_an_expression(index: int, surgeon: Runner, tmp_path: Path) -> None:
    path = save(tmp_path, network())
    for where, let in ((EXPRESSIONS[index], "1"), ("1 == 1", EXPRESSIONS[index])):
        recipe = RULE.format(match="y = Sin (x)", where=where, let=let, replace="y = Sin (x)")
        (tmp_path / "bad.yaml").write_text(recipe)
        attempt(surgeon, tmp_path / "bad.yaml", path, (0, 2, 6))


PATTERNS = [
    "y = Sin (x)" * 5000,
    "(" * 10_000,
    "y = " + "Neg (" * 3000 + "x" + ")" * 3000,
    "y = Sin <" + "a = 1, " * 5000 + "b = 2> (x)",
    "y = \x1b[2J (x)",
    "y = Sin <a = 9999999999999999999999999999> (x)",
    "",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", PATTERNS, ids=range(len(PATTERNS)))
def test_a_pattern(text: str, surgeon: Runner, tmp_path: Path) -> None:
    path = save(tmp_path, network())
    for match, replace in ((text, "y = Sin (x)"), ("y = Sin (x)", text)):
        quoted = [json.dumps(part) for part in (match, replace)]
        recipe = RULE.format(match=quoted[0], where="1 == 1", let="1", replace=quoted[1])
        (tmp_path / "bad.yaml").write_text(recipe)
        attempt(surgeon, tmp_path / "bad.yaml", path, (2,))
