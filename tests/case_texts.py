"""A recipe of one rule and its cases, as text, and the problems that are found in them."""

from pathlib import Path
from textwrap import dedent, indent

from surgeon.cases import run

HEAD = '<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>'

DOUBLE_NEGATION = """\
surgeon: 1
name: small
rules:
  - id: double-negation
    why: Minus times minus is plus.
    exact: bit
    match: |
      n = Neg (x)
      y = Neg (n)
    replace: y = Identity (x)
"""

FIRES = """\
  - case: it fires
    fires: double-negation
    before: |
      <ir_version: 8, opset_import: ["": 13]>
      g (float[N,3] x) => (float[N,3] y) {
        r = Relu (x)
        a = Neg (r)
        b = Neg (a)
        y = Abs (b)
      }
"""

REFUSES = """\
  - case: it refuses
    refuses: {rule: double-negation, because: "is not ai.onnx.Neg"}
    before: |
      <ir_version: 8, opset_import: ["": 13]>
      g (float[N,3] x) => (float[N,3] y) {
        r = Relu (x)
        y = Neg (r)
      }
"""


def check(folder: Path, recipe: str, cases: str) -> list[str]:
    """The problems of a recipe's cases, all in one list."""
    (folder / "small.yaml").write_text(recipe, encoding="utf-8")
    (folder / "small.cases.yaml").write_text(f"cases:\n{cases}", encoding="utf-8")
    return [problem for outcome in run([folder / "small.yaml"]) for problem in outcome.problems]


def case(keys: str, graph: str, *, after: str = "", means: str = "") -> str:
    """One case, from its keys and the graphs of its texts."""
    texts = {"before": graph, "after": after, "means": means}
    lines = [f"  - case: a case\n{indent(dedent(keys).strip(), '    ')}"]
    for key, text in texts.items():
        if text:
            body = indent(f"{HEAD}\n{dedent(text).strip()}", "      ")
            lines.append(f"    {key}: |\n{body}")
    return "\n".join(lines) + "\n"


def with_replacement(text: str, exact: str = "bit") -> str:
    return DOUBLE_NEGATION.replace("y = Identity (x)", text).replace(
        "exact: bit", f"exact: {exact}"
    )
