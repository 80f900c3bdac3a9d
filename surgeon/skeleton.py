"""A recipe to begin with: one rule that holds, and its cases, with a word on every key."""

from __future__ import annotations

import re
from pathlib import Path

from surgeon.errors import OutputError, RecipeError
from surgeon.files import cannot_write
from surgeon.recipe import bundled

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

_RECIPE = """\
# Run its cases:  surgeon test NAME.yaml
# Use it:         surgeon apply ./NAME.yaml in.onnx out.onnx
# The language:   docs/language.md; `surgeon recipes functions`, `surgeon recipes builders`
# Another result: `changes` in place of `rules`, docs/surgeries.md
surgeon: 1
name: NAME
about: What it is for, in one or two sentences.
rules:
  - id: NAME-relu-twice
    why: A Relu leaves what another one gives as it is.
    exact: bit                  # bit | rounding | approximate
    match: |                    # the last node is the root; `x` is any value
      h = Relu (x)
      y = Relu (h)
    where:                      # all must be provably true
      - h.consumers == 1        # nothing else reads `h`
    replace: y = Relu (x)
"""

_CASES = """\
# The format: docs/language.md; `surgeon recipes schema --cases`
cases:
  - case: twice
    fires: NAME-relu-twice
    before: |
      <ir_version: 8, opset_import: ["": 17]>
      g (float[n, 4] x) => (float[n, 4] y) {
        a = Relu (x)
        b = Relu (a)
        y = Sin (b)
      }
    after: |                    # written by hand, not copied from what came out
      <ir_version: 8, opset_import: ["": 17]>
      g (float[n, 4] x) => (float[n, 4] y) {
        a = Relu (x)
        y = Sin (a)
      }

  - case: what is between is read elsewhere
    refuses: {rule: NAME-relu-twice, because: h.consumers is 2}
    before: |
      <ir_version: 8, opset_import: ["": 17]>
      g (float[n, 4] x) => (float[n, 4] y) {
        a = Relu (x)
        b = Relu (a)
        y = Add (a, b)
      }
"""


def write_skeleton(name: str, texts: tuple[str, str] | None = None) -> tuple[Path, Path]:
    """Write a recipe and its cases.

    Args:
        name: The recipe's name, or the path of its file; `.yaml` may be left out.
        texts: What to write; by default a rule to begin with.

    Returns:
        The two files.

    Raises:
        RecipeError: It is no name, or that of a recipe that comes with surgeon.
        OutputError: One of the files is there already, or cannot be written.
    """
    first, second = files_of(name)
    stem = first.stem
    recipe, cases = texts or (_RECIPE.replace("NAME", stem), _CASES.replace("NAME", stem))
    for file, text in ((first, recipe), (second, cases)):
        try:
            with file.open("x", encoding="utf-8", newline="\n") as out:
                out.write(text)
        except OSError as error:
            raise cannot_write(file, error) from None
    return first, second


def files_of(name: str) -> tuple[Path, Path]:
    """Where a new recipe and its cases go.

    Raises:
        RecipeError: It is no name, or that of a recipe that comes with surgeon.
        OutputError: One of the files is there already.
    """
    path = Path(name.removesuffix(".yaml") + ".yaml")
    stem = path.stem
    if not _NAME.fullmatch(stem):
        raise RecipeError(
            f"`{stem}` is no name of a recipe",
            where="surgeon recipes new",
            mend="Use small letters, digits and single hyphens.",
        )
    if stem in bundled():
        raise RecipeError(
            f"a recipe `{stem}` comes with surgeon",
            where="surgeon recipes new",
            mend="Choose another name.",
        )
    files = path, path.with_name(f"{stem}.cases.yaml")
    for file in files:
        if file.exists() or file.is_symlink():
            raise OutputError(
                "there is such a file already", where=str(file), mend="Choose another name."
            )
    return files
