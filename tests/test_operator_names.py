"""Operators that nothing has are errors of the recipe, with what was meant."""

from __future__ import annotations

import pytest

from surgeon.errors import RecipeError
from surgeon.recipe import Recipe

RULE = """\
surgeon: 1
name: t
custom: [{custom}]
rules:
  - id: r
    why: w.
    exact: bit
    match: y = {match}
    where: ["{where}"]
    replace: y = {replace}
"""


def parse(
    match: str = "Exp (x)", replace: str = "Identity (x)", where: str = "True", custom: str = ""
) -> Recipe:
    text = RULE.format(match=match, replace=replace, where=where, custom=custom)
    return Recipe.parse(text)


@pytest.mark.parametrize(
    ("match", "what", "mend"),
    [
        ("aten.adaptive_avg_pol2d (x, s)", "aten.adaptive_avg_pol2d", "`adaptive_avg_pool2d`"),
        ("aten.relux (x)", "PyTorch has no operator `aten.relux`", "`relu"),
        ("aten.add:Sclar (x, s)", "`aten.add` has no overload `Sclar`", "`Scalar`"),
        ("prim.ListConstrct (x)", "PyTorch has no operator `prim.ListConstrct`", "ListConstruct"),
        ("com.microsoft.Geluu (x)", "onnxruntime has no operator", "Did you mean `Gelu`?"),
        ("com.microsoft.Gelu <alph = 1.0> (x)", "`com.microsoft.Gelu` has no attribute", ""),
        ("com.microsoft.FusedConv <strids = [1]> (x, w)", "no attribute `strids`", "`strides`"),
        ("prim.Nope (x)", "PyTorch has no operator `prim.Nope`", ""),
    ],
)
def test_in_patterns(match: str, what: str, mend: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse(match)
    assert what in caught.value.what
    assert mend in caught.value.mend
    assert ":8:" in str(caught.value.where)
    with pytest.raises(RecipeError, match=r"has no"):
        parse(replace=match.replace(", s", "").replace(", w", ""))


@pytest.mark.parametrize(
    ("where", "what", "mend"),
    [
        ("x.maker == 'Rleu'", "unknown operator `Rleu`", "Did you mean `Relu`?"),
        ("x.maker in ['Relu', 'Sofmax']", "unknown operator `Sofmax`", "Did you mean `Softmax`?"),
        ("'aten.reluu' != x.maker", "PyTorch has no operator `aten.reluu`", "relu"),
        ("x.maker == 'ai.onnx.ml.Scalr'", "unknown operator", "`Scaler`"),
        ("x.maker == 'com.microsoft.Geluu'", "onnxruntime has no operator", "`Gelu`"),
    ],
)
def test_in_conditions(where: str, what: str, mend: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse(where=where)
    assert what in caught.value.what
    assert mend in caught.value.mend
    assert ":9:" in str(caught.value.where)


@pytest.mark.parametrize(
    "match",
    [
        "aten.relu_ (x)",  # what writes into its operand
        "aten.softmax:int (x, d)",
        "aten.add_:Tensor (x, z)",
        "aten.cumsum:dimname (x, d)",  # overloads that older releases have
        "aten._s_where (c, x, z)",
        "aten.max_pool2d_with_indices_backward:grad_input (x)",
        "prim.TupleConstruct (x)",
        "com.microsoft.FusedMatMul <alpha = 1.0> (x, w)",
        "com.microsoft.nchwc.ReorderInput (x)",
        "TRT.Anything (x)",
    ],
)
def test_what_there_is(match: str) -> None:
    parse(match)


@pytest.mark.parametrize("name", ["aten.mine", "com.microsoft.Mine", "prim.Mine", "my.Mine"])
def test_what_is_declared_is_free(name: str) -> None:
    parse(f"{name} (x)", where=f"x.maker == '{name}'", custom=name)


def test_makers_that_there_are() -> None:
    parse(where="x.maker in ['', 'Relu', 'aten.relu', 'ai.onnx.ml.Scaler', 'my.Anything']")
