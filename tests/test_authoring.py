"""Rules from Python: they fire, refuse, give several outputs, and say what is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from truth import model_of

import surgeon
from surgeon.authoring import recipe_of, rule
from surgeon.errors import RecipeError
from surgeon.match import Match
from surgeon.recipe import Recipe
from surgeon.rewrite import Draft, Refused

F32 = np.float32
MODEL = model_of(
    "float[b,4] x",
    "a = Neg (x) y, q = Split <axis = 1> (a, s)",
    "y q",
    constants={"s": np.array([1, 3])},
)


@rule("y = Neg (x)", exact="rounding", where=["x.rank == 2"])
def neg_by_sub(draft: Draft, match: Match) -> Any:
    """Negation as a difference.

    More that reports leave out.
    """
    return draft.op("Sub", draft.constant(np.zeros((), F32)), match.values["x"])


@rule("y = Neg (x)")
def never(draft: Draft, match: Match) -> Any:
    """Always refuses."""
    raise Refused("it is Tuesday")


@rule("y, q = Split <axis = 1> (x, s)", exact="bit", id="by-slices")
def by_slices(draft: Draft, match: Match) -> Any:
    """Two slices."""
    one, four, zero = (draft.constant([n]) for n in (1, 4, 0))
    x = match.values["x"]
    return draft.op("Slice", x, zero, one, one), draft.op("Slice", x, one, four, one)


def test_a_rule_fires() -> None:
    result = surgeon.apply(MODEL, neg_by_sub)
    (change,) = result.report.changes
    assert (change.rule, change.why) == ("neg-by-sub", "Negation as a difference.")
    assert change.recipe == __name__
    assert change.location.startswith(__file__)
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


def test_a_rule_refuses_with_its_own_reason() -> None:
    result = surgeon.apply(MODEL, never)
    assert result.report.changes == ()
    assert [m.reason for m in result.report.misses] == ["it is Tuesday"]
    assert surgeon.apply(MODEL, never, neg_by_sub).report.fired.total() == 1


def test_a_rule_gives_several_outputs() -> None:
    result = surgeon.apply(MODEL, by_slices)
    assert result.report.after == {"Slice": 2, "Neg": 1}
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


def test_a_condition_is_asked_first() -> None:
    flat = model_of("float[b] x", "y = Neg (x)", "y")
    assert surgeon.apply(flat, neg_by_sub).report.changes == ()


def test_rules_of_one_recipe_are_tried_in_order() -> None:
    both = recipe_of(never, neg_by_sub, by_slices)
    result = surgeon.apply(MODEL, both)
    assert sorted(c.rule for c in result.report.changes) == ["by-slices", "neg-by-sub"]
    assert both.name == f"{__name__}/never, {__name__}/neg-by-sub, {__name__}/by-slices"


@pytest.mark.parametrize("domain", ["my.domain", "my", "plugins"])
def test_own_operators(domain: str) -> None:
    @rule(f"y = {domain}.Op (x)", exact="bit")
    def own(draft: Draft, match: Match) -> Any:
        return draft.op("Relu", match.values["x"])

    proto = model_of("float[b] x", "y = Relu (x)", "y")
    proto.graph.node[0].domain, proto.graph.node[0].op_type = domain, "Op"
    proto.opset_import.add(domain=domain, version=1)
    result = surgeon.apply(proto, own, verify=False)
    assert result.report.after == {"Relu": 1}


@pytest.mark.parametrize(
    ("match", "options", "what"),
    [
        (
            "y = Neg (x)",
            {"exact": "mostly"},
            "`exact` is one of bit, rounding, approximate, not `mostly`",
        ),
        ("y = Negg (x)", {}, "`Negg`"),
        ("y = atn.relu (x)", {}, "unknown domain `atn`"),
        ("y = com.microsoft.Geluu (x)", {}, "`com.microsoft.Geluu`"),
        ("y = Neg (x", {}, ""),
        ("y = Neg (x)", {"where": ["x.rank =="]}, ""),
    ],
)
def test_what_is_wrong_with_a_rule(match: str, options: dict[str, Any], what: str) -> None:
    with pytest.raises(RecipeError) as caught:

        @rule(match, **options)
        def wrong(draft: Draft, match: Match) -> Any:
            """Is never made."""

    assert what in caught.value.what
    assert "exact" in options or str(caught.value.where).startswith(__file__)


def test_replacements_that_the_opset_has_not_are_misses() -> None:
    @rule("y = Neg (x)")
    def newer(draft: Draft, match: Match) -> Any:
        return draft.op("Gelu", match.values["x"])

    @rule("y = Neg (x)")
    def attribute(draft: Draft, match: Match) -> Any:
        return draft.op("ReduceMax", match.values["x"], match.values["x"])

    reasons = [m.reason for m in surgeon.apply(MODEL, newer).report.misses]
    assert reasons == ["`Gelu` needs opset 20"]
    reasons = [m.reason for m in surgeon.apply(MODEL, attribute).report.misses]
    assert reasons == ["`ReduceMax` with computed `axes` needs opset 18"]


def test_attributes_are_called_as_they_are_whatever_they_are_called() -> None:
    recipe = Recipe.parse(
        """
surgeon: 1
name: chip
custom: [com.chip]
rules:
  - id: relu
    why: The chip has one.
    exact: rounding
    match: y = Relu (x)
    replace: y = com.chip.R <name = "n", domain = "d", outputs = 2, op_type = "o", self = 1> (x)
"""
    )
    model = model_of("float[3] x", "y = Relu (x)", "y")
    (node,) = surgeon.apply(model, recipe).model.to_proto().graph.node
    said = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    assert said == {"name": b"n", "domain": b"d", "outputs": 2, "op_type": b"o", "self": 1}
    assert (node.op_type, node.domain, list(node.output)) == ("R", "com.chip", ["y"])
