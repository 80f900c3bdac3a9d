"""Loops and Scans whose turns are known are written out; what they compute stays."""

from pathlib import Path

import pytest
from truth import parse

import surgeon
from surgeon.recipe import Recipe, UnrollStep

WHILE = """
    g (float[2] x) => (float[2] y, float[q,2] z)
    <int64 zero = {0}, int64 end = {%(end)s}, int64 step = {%(step)s}> {
      n, y, z = Loop <body = turn (int64 k, bool c, int64 i, float[2] a) =>
          (bool go, int64 j, float[2] d, float[2] e) {
        j = Add (i, step)
        l = %(condition)s
        go = Cast <to = 9> (l)
        d = Sin (a)
        e = Mul (d, x)
      }> (%(count)s, , zero, x)
    }
"""
SCAN = """
    g (float[3] s, float[%(n)s,3] x, float[3,%(n)s] w) => (float[3] t, float[3,%(n)s] z)
    <float one = {1}> {
      m = Add (x, one)
      t, z = Scan <num_scan_inputs = 2, scan_input_axes = [0, -1],
          scan_input_directions = [%(in)s, 0], scan_output_axes = [%(axis)s],
          scan_output_directions = [%(out)s],
          body = turn (float[3] a, float[3] p, float[3] q) => (float[3] b, float[3] c) {
        d = Mul (a, p)
        e = Add (d, q)
        b = Tanh (e)
        c = Sub (b, s)
      }> (s, m, w)
    }
"""


def operators(model: surgeon.Model) -> list[str]:
    return [node.op_type for node in model.to_proto().graph.node]


@pytest.mark.parametrize(
    ("condition", "end", "step", "turns"),
    [
        ("Less (j, end)", 4, 1, 4),
        ("Less (i, end)", 4, 1, 5),
        ("LessOrEqual (j, end)", 9, 3, 4),
        ("Not (c)", 1, 1, 1),
        ("Less (i, j)", 0, 1, None),
        ("Less (k, end)", 7, 0, 8),
        ("Less (j, end)", 40, 1, 40),
    ],
)
def test_a_condition_that_counts(condition: str, end: int, step: int, turns: int | None) -> None:
    told = {"condition": condition, "end": end, "step": step, "count": ""}
    model = parse(WHILE % told)
    if turns is None:  # it never ends, and nobody runs it
        stays = surgeon.apply(model, "unroll", verify=False).model
        assert operators(stays) == ["Loop"]
        return
    result = surgeon.apply(model, "unroll", require="equivalent")
    assert operators(result.model).count("Sin") == turns
    assert "Loop" not in operators(result.model)
    few = surgeon.apply(model, "clean").model
    assert ("Loop" in operators(few)) == (turns > 16)


def test_a_count_ends_what_its_condition_does_not() -> None:
    told = {"condition": "Less (j, end)", "end": 9, "step": 1, "count": "step"}
    model = parse(WHILE % told)
    result = surgeon.apply(model, "unroll", require="equivalent")
    assert operators(result.model).count("Sin") == 1


@pytest.mark.parametrize("condition", ["Less (s, e)", "Equal (s, s)"])
def test_a_condition_on_what_is_computed_stays(condition: str) -> None:
    model = parse(
        """
        g (float[2] x) => (float[2] y) <float e = {5}> {
          y = Loop <body = turn (int64 k, bool c, float[2] a) => (bool go, float[2] d) {
            s = ReduceSum <keepdims = 0> (a)
            l = CONDITION
            go = Not (l)
            d = Add (a, a)
          }> (, , x)
        }
        """.replace("CONDITION", condition)
    )
    result = surgeon.apply(model, "unroll", verify=False)
    assert "Loop" in operators(result.model)


@pytest.mark.parametrize("opset", [9, 11, 13, 17, 21])
@pytest.mark.parametrize("turned", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("axis", [1, -1])
def test_a_scan_each_way(opset: int, turned: tuple[int, int], axis: int) -> None:
    if opset < 11 and axis < 0:
        return  # negative axes came later
    told = {"n": 4, "in": turned[0], "out": turned[1], "axis": axis}
    text = (SCAN % told).replace("[0, -1]", "[0, 1]" if opset < 11 else "[0, -1]")
    result = surgeon.apply(parse(text, opset=opset), "unroll", require="equivalent")
    assert "Scan" not in operators(result.model)
    assert operators(result.model).count("Tanh") == 4


@pytest.mark.parametrize(
    "grows", ["Concat <axis = 0> (i, i)", "Tile (i, many)", "Mul (i, i)", "Expand (i, many)"]
)
def test_what_a_condition_counts_with_may_not_grow(grows: str) -> None:
    model = parse(
        """
        g (float[2] x) => (float[2] y) <int64[1] first = {3}, int64[1] many = {100000000}> {
          n, y = Loop <body = turn (int64 k, bool c, int64[p] i, float[2] a) =>
              (bool go, int64[q] j, float[2] d) {
            j = GROWS
            s = ReduceMax <keepdims = 0> (j)
            z = Sub (s, s)
            go = Less (z, s)
            d = Sin (a)
          }> (, , first, x)
        }
        """.replace("GROWS", grows)
    )
    assert operators(surgeon.apply(model, "unroll", verify=False).model).count("Loop") == 1


def test_a_scan_of_unknown_length_stays_and_a_shape_tells_it() -> None:
    model = parse(SCAN % {"n": "n", "in": 0, "out": 0, "axis": 1})
    assert "Scan" in operators(surgeon.apply(model, "unroll").model)
    shape = {"x": [20, 3], "w": [3, 20]}
    told = surgeon.apply(model, "unroll", shape=shape, require="equivalent").model
    assert operators(told).count("Tanh") == 20
    few = {"x": [2, 3], "w": [3, 2]}
    assert "Scan" in operators(surgeon.apply(model, "clean", shape=few).model)


def test_a_target_without_loops_gets_none(tmp_path: Path) -> None:
    lists = {"without.yaml": "", "with.yaml": ", Loop"}
    told = {"condition": "Less (j, end)", "end": 20, "step": 1, "count": ""}
    model = parse(WHILE % told)
    for name, more in lists.items():
        path = tmp_path / name
        path.write_text(f"operators: [Sin, Mul, Unsqueeze, Concat, Add, Less, Cast{more}]\n")
        result = surgeon.apply(model, "clean", target=str(path), require="equivalent")
        assert ("Loop" in operators(result.model)) == bool(more)
        assert result.report.failures == ()


def test_a_model_without_turns_stays_as_it_is() -> None:
    model = parse("g (float[2] x) => (float[2] y) <float a = {1}> { b = Exp (a) y = Add (x, b) }")
    assert surgeon.apply(model, "unroll").report.status == "unchanged"


def test_more_nodes_than_is_worth_it_stay() -> None:
    body = " ".join(f"v{n + 1} = Sin (v{n})" for n in range(40))
    text = f"""
        g (float[2] x) => (float[2] y) <int64 many = {{16}}> {{
          y = Loop <body = turn (int64 k, bool c, float[2] v0) => (bool go, float[2] v40) {{
            go = Identity (c) {body}
          }}> (many, , x)
        }}
    """
    assert operators(surgeon.apply(parse(text), "clean").model) == ["Loop"]
    assert len(operators(surgeon.apply(parse(text), "unroll").model)) == 640


def test_a_recipe_says_how_many_turns() -> None:
    text = "surgeon: 1\nname: few\nsteps:\n  - unroll: 3\n"
    recipe = Recipe.parse(text, file="few.yaml")
    assert recipe.steps == (UnrollStep(3),)
    told = {"condition": "Less (j, end)", "step": 1, "count": ""}
    for end, left in ((3, False), (4, True)):
        result = surgeon.apply(parse(WHILE % {**told, "end": end}), recipe)
        assert ("Loop" in operators(result.model)) == left


def test_constants_of_no_byte_are_kept_computed() -> None:
    text = """
        g (float[2] x) => (float[5000,2] y) <float[2] a = {1, 2}, int64[2] s = {5000, 2}> {
          b = Expand (a, s) y = Add (x, b)
        }
    """
    for most, left in ((0, 2), (100_000, 1)):
        recipe = Recipe.parse(
            f"surgeon: 1\nname: few\ntidy: true\nsteps:\n  - fold: {{max_bytes: {most}}}\n",
            file="few.yaml",
        )
        assert len(operators(surgeon.apply(parse(text), recipe).model)) == left
