"""Which rules are tried at a node: what cannot fire there is passed over, and told if asked."""

from __future__ import annotations

from pathlib import Path

from truth import infer, model_of

from surgeon.candidates import Candidates
from surgeon.recipe import Recipe

RULES = """surgeon: 1
name: targets
rules:
  - id: computed
    why: It is so.
    exact: rounding
    match: y = Reshape (x, t)
    where: [not t.is_constant]
    replace: y = Relu (x)
  - id: either
    why: It is so.
    exact: rounding
    match: y = Add (a, b)
    where: [not b.is_constant]
    replace: y = Relu (a)
  - id: behind
    why: It is so.
    exact: rounding
    match: |
      m = Relu (x)
      y = Reshape (m, t)
    replace: y = Relu (x)
  - id: with-constant
    why: It is so.
    exact: rounding
    match: y = Sub | Add (a, b)
    where: [a.is_constant or b.is_constant]
    replace: y = Relu (a)
  - id: of-part
    why: It is so.
    exact: rounding
    match: y = Relu (p)
    where: ['p.maker == "Split"']
    replace: y = Abs (p)
  - id: of-part-behind
    why: It is so.
    exact: rounding
    match: y = Relu (p~)
    where: ['p.maker == "Split"']
    replace: y = Abs (p)
  - id: of-one
    why: It is so.
    exact: rounding
    match: y = Concat (x)
    replace: y = Relu (x)
"""


def test_rules_that_cannot_fire_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "targets.yaml"
    path.write_text(RULES)
    rules = Candidates(Recipe.load(str(path)).rules)
    body = (
        "c = Reshape (x, k)  d = Reshape (x, n)  e = Add (x, w)  r = Relu (x)  f = Reshape (r, k) "
        "g = Add (x, r)  s = Shape (w)  h = Sub (n, s)  o, p = Split <axis = 1> (x, parts) "
        "i = Relu (p)  j = Concat <axis = 0> (r, r)  l = Concat <axis = 0> (x)"
    )
    inputs, constants = (
        "float[2,3] x, int64[2] n",
        {"k": [3, 2], "w": [1.0, 2.0, 3.0], "parts": [1, 2]},
    )
    facts, tensors = infer(model_of(inputs, body, "c d e f g h i j l", 17, constants))
    tried = {
        name: [
            [each.rule.id for each in rules.at(tensors[name].inputs[0], facts, every=every)]
            for every in (False, True)
        ]
        for name in "cdefghirjl"
    }
    assert tried == {
        "c": [[], ["computed", "behind"]],
        "d": [["computed"], ["computed", "behind"]],
        # operands may stand in the other order
        "e": [["either", "with-constant"], ["either", "with-constant"]],
        "f": [["behind"], ["computed", "behind"]],
        "g": [["either"], ["either", "with-constant"]],
        "h": [["with-constant"], ["with-constant"]],  # of a value that is known, and computed
        "i": [["of-part", "of-part-behind"], ["of-part", "of-part-behind"]],
        "r": [["of-part-behind"], ["of-part", "of-part-behind"]],  # views may stand between
        "j": [[], ["of-one"]],
        "l": [["of-one"], ["of-one"]],
    }
