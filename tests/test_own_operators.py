"""Operators of one's own that rules write: what is promised of them, and bodies that they take."""

import onnx
import onnx.parser
import pytest

import surgeon
from surgeon.recipe import Recipe

HEAD = "surgeon: 1\nname: chip\ncustom: [chip.Op]\n"
RULE = "rules:\n  - {{id: r, why: w, exact: rounding, match: {}, replace: {}}}\n"
POOL = RULE.format("y = MaxPool <*rest> (x)", "y = chip.Op <*rest> (x)")
CAST = RULE.format("y = Cast <*rest> (x)", "y = chip.Op <*rest> (x)")
GRAPH = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n, 3, 8, 8] x) => (float[a, b, c, d] y) { p = %s (x)  y = Relu (p) }"""
IF = """
<ir_version: 8, opset_import: ["": 17]>
g (bool c, float[n] x) => (float[m] y) {
  y = If (c) <
    then_branch = t () => (float[n] u) { q = Mul (x, x)  u = Sqrt (q) },
    else_branch = e () => (float[n] v) { v = Neg (x) }
  >
}"""


def fired(graph: str, recipe: str) -> surgeon.Result:
    return surgeon.apply(onnx.parser.parse_model(graph), Recipe.parse(recipe), verify=False)


@pytest.mark.parametrize(
    ("call", "rule", "reason"),
    [
        (
            "MaxPool <kernel_shape = [2, 2], strides = [2, 2]>",
            POOL,
            "is given [n, 3, 8, 8] here and gives [n, 3, 4, 4]",
        ),
        ("Cast <to = 11>", CAST, "is given float32 here and gives float64"),
    ],
)
def test_a_promise_to_keep_shapes_that_is_proven_wrong(call: str, rule: str, reason: str) -> None:
    found = fired(GRAPH % call, f"{HEAD}same_shape: [chip.Op]\n{rule}")
    assert not found.report.changes
    (refusal,) = found.report.refusals
    assert refusal.reason.endswith(reason)


def test_a_promise_that_may_be_true_is_taken() -> None:
    call = "MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]>"
    assert fired(GRAPH % call, f"{HEAD}same_shape: [chip.Op]\n{POOL}").report.changes


def test_bodies_that_a_new_node_takes_over_stay_whole() -> None:
    taken = RULE.format("y = If <*bodies> (c)", "y = chip.Op <*bodies> (c)")
    (node,) = fired(IF, HEAD + taken).model.to_proto().graph.node
    then, other = (attribute.g for attribute in node.attribute)
    assert [[*each.input] for each in then.node] == [["x", "x"], ["q"]]
    assert [each.op_type for each in other.node] == ["Neg"]


def test_bodies_belong_to_one_node() -> None:
    twice = "'a = chip.Op <*bodies> (c); b = chip.Op <*bodies> (c); y = Add (a, b)'"
    found = fired(IF, HEAD + RULE.format("y = If <*bodies> (c)", twice))
    assert not found.report.changes


def test_a_function_for_another_opset_is_no_want_of_one() -> None:
    """What a recipe has said is not asked for; a constant is the same at every opset."""
    function = (
        'functions:\n  - |\n    <domain: "chip", opset_import: ["": 17]>\n'
        "    Op (x) => (y) { lo = Constant <value = float {0.0}> () y = Clip (x, lo) }\n"
    )
    rule = RULE.format("y = Relu (x)", "y = chip.Op (x)")
    for opset, held in ((13, True), (11, False)):
        graph = GRAPH.replace("17", str(opset)).replace("p = %s (x)  y = Relu (p)", "y = Relu (x)")
        result = surgeon.apply(onnx.parser.parse_model(graph), Recipe.parse(HEAD + function + rule))
        assert not any("no shape is known behind" in each for each in result.report.remarks)
        assert result.report.verdict is not None
        said = result.report.verdict.detail + str(result.report.verdict)
        assert ("as the recipe's functions say" in said) is held
        assert ("Clip has another version at 11" in said) is not held
        assert "Constant" not in said


@pytest.mark.parametrize(
    ("old", "new", "place", "what", "mend"),
    [
        ("Relu (x) }", "Relu (x }", "6:33", "Expected character ) not found", "Write `<domain"),
        (
            "= Relu",
            "= other.Op",
            "5:5",
            "No Opset registered",
            'in `opset_import` too: `"other": 1`',
        ),
    ],
)
def test_a_function_that_is_none(old: str, new: str, place: str, what: str, mend: str) -> None:
    text = (
        'surgeon: 1\nname: chip\nfunctions:\n  - |\n    <domain: "chip", opset_import: ["": 17]>\n'
        "    Op (x) => (y) { y = Relu (x) }\nsteps: [use: clean]\n"
    )
    Recipe.parse(text)
    with pytest.raises(surgeon.RecipeError) as caught:
        Recipe.parse(text.replace(old, new), file="r.yaml")
    assert str(caught.value.where) == f"r.yaml:{place}"
    assert what in caught.value.what
    assert "b'" not in caught.value.what
    assert mend in caught.value.mend
