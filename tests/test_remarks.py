"""Remarks that must not exclude one another."""

import onnx.parser

import surgeon
from surgeon.recipe import Recipe
from surgeon.returned import BACK

GRAPH = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n] x) => (float[n] y) { y = Abs (x) }"""
TO_ROOT = "match: y = Abs (x), replace: 's = Mul (x, x); y = Sqrt (s)'"
FROM_ROOT = "match: 's = Mul (x, x); y = Sqrt (s)', replace: y = Abs (x)"


def test_a_recipe_whose_rule_is_undone_has_one_for_the_model() -> None:
    recipes = [
        Recipe.parse(
            f"surgeon: 1\nname: r{place}\nrules:\n  - {{id: r, why: w, exact: rounding, {rule}}}\n"
        )
        for place, rule in enumerate((TO_ROOT, FROM_ROOT))
    ]
    result = surgeon.apply(onnx.parser.parse_model(GRAPH), *recipes)
    assert result.report.remarks == (BACK,)
