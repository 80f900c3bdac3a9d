"""`--shape` and `--assume`: what they add to the facts, and what is wrong with one."""

from __future__ import annotations

from typing import Any

import pytest
from truth import model_of, parse

import surgeon
from surgeon import dims
from surgeon.assumptions import parse_assumptions
from surgeon.errors import RecipeError, VerifyError
from surgeon.model import Model

MODEL = Model(model_of("float[b,3,h,w] x, float[n] z", "y = Relu (x)", "y"))


@pytest.mark.parametrize(
    ("text", "name", "prints", "sizes"),
    [
        ("h % 32 == 0", "h", "32*h/32", (32, 64, 96)),
        ("h%32==0", "h", "32*h/32", (32, 64, 96)),
        ("h % 4 == 1", "h", "4*h/4 + 1", (5, 9, 13)),
        ("h == 7", "h", "7", (7,)),
        ("h >= 16", "h", "h-16 + 16", (16, 17, 23)),
        ("h > 16", "h", "h-17 + 17", (17, 18, 24)),
        ("h >= 0", "h", "h-0", (1, 1, 7)),
        ("h <= 512", "h", "h<=512", (1, 7, 512)),
        ("h < 6", "h", "h<=5", (1, 5)),
    ],
)
def test_assumptions_as_symbols_and_sizes(
    text: str, name: str, prints: str, sizes: tuple[int, ...]
) -> None:
    axioms = parse_assumptions(MODEL, {}, [text])
    assert str(axioms.symbols[name]) == prints
    assert axioms.sizes[name] == sizes
    assert axioms.texts == (text,)


@pytest.mark.parametrize(
    ("texts", "prints", "sizes"),
    [
        (["h % 32 == 0", "h >= 64"], "32*h/32-2 + 64", (64, 96, 128)),
        (["h > 64", "h % 32 == 0"], "32*h/32-3 + 96", (96, 128, 160)),
        (["h % 8 == 3", "h >= 2"], "8*h/8 + 3", (11, 19, 27)),
        (["h >= 16", "h <= 20"], "h-16<=20 + 16", (16, 17, 20)),
        (["h % 32 == 0", "h < 65"], "32*h/32<=64", (32, 64)),
    ],
)
def test_two_assumptions_about_one_dimension(
    texts: list[str], prints: str, sizes: tuple[int, ...]
) -> None:
    axioms = parse_assumptions(MODEL, {}, texts)
    assert str(axioms.symbols["h"]) == prints
    assert axioms.sizes["h"] == sizes


def test_an_upper_bound_is_known_to_the_facts() -> None:
    assert dims.bounds(parse_assumptions(MODEL, {}, ["h <= 512"]).symbols["h"]) == (0, 512)
    both = parse_assumptions(MODEL, {}, ["h % 4 == 1", "h >= 3", "h <= 12"]).symbols["h"]
    assert dims.bounds(both) == (5, 9)


def test_bounds_that_leave_no_size() -> None:
    with pytest.raises(RecipeError, match="no size of `h` meets what is assumed of it"):
        parse_assumptions(MODEL, {}, ["h >= 16", "h <= 12"])


@pytest.mark.parametrize(
    "texts",
    [
        ["h % 2 == 0", "h % 3 == 0"],
        ["h == 7", "h == w"],
        ["h >= 3", "h == 7"],
        ["h == w", "h % 2 == 0"],
        ["h >= 3", "h > 4"],
    ],
)
def test_two_assumptions_that_do_not_go_together(texts: list[str]) -> None:
    with pytest.raises(RecipeError) as caught:
        parse_assumptions(MODEL, {}, texts)
    assert str(caught.value) == (
        f"assume: two assumptions about `h` do not go together: `{texts[1]}` is the second\n"
        "  mend: Give one that says both."
    )


def test_two_dimensions_that_are_one() -> None:
    axioms = parse_assumptions(MODEL, {}, ["h == w"])
    assert axioms.symbols == {"h": dims.symbol("w")}
    assert axioms.sizes == {"h": "w"}
    both = parse_assumptions(MODEL, {}, ["h == w", "w % 2 == 0"])
    assert both.symbols["h"] == both.symbols["w"] == dims.symbol("w/2") * 2


def test_a_shape_that_leaves_nothing_to_compute() -> None:
    model = parse("g (float[n,3] x) => (float[n,3] y) { y = Relu (x) }")
    with pytest.raises(RecipeError, match="length of 0 all outputs are empty, or constant"):
        surgeon.apply(model, "clean", shape={"x": (0, 3)})
    longer = parse(
        "g (float[n,3] x, float[1,3] z) => (float[m,3] y) { y = Concat <axis=0> (x, z) }"
    )
    assert surgeon.apply(longer, "clean", shape={"x": (0, 3)}).report.status != "differs"


def test_a_shape() -> None:
    axioms = parse_assumptions(MODEL, {"x": (1, 3, "h", 200), "z": ("k",)}, ["k >= 2"])
    assert axioms.shapes == {"x": (1, 3, "h", 200), "z": ("k",)}
    assert axioms.texts == ("x=[1, 3, h, 200]", "z=[k]", "k >= 2")


@pytest.mark.parametrize(
    ("shape", "assume", "message"),
    [
        (
            {"x": (1 << 31, 3, 4, 4)},
            [],
            "shape: 2147483648 is no length of a dimension of input `x`\n"
            "  mend: Give a number below 2^31, or a name.",
        ),
        ({"xx": (1,)}, [], "shape: the model has no input `xx`\n  mend: Did you mean `x`?"),
        (
            {"h": (7,)},
            [],
            'shape: the model has no input `h`\n  mend: `h` is a size: say `assume="h == 7"`.',
        ),
        (
            {"x": (1, 3)},
            [],
            "shape: input `x` has 4 dimensions, not 2\n"
            "  mend: Give one number or name for each dimension.",
        ),
        (
            {"x": (1, 4, 2, 2)},
            [],
            "shape: input `x` declares 3 where 4 is given\n"
            "  mend: A fixed dimension cannot be changed; give its number.",
        ),
        (
            {},
            ["h is large"],
            "assume: surgeon cannot use the assumption `h is large`\n"
            "  mend: Write it as `t % 32 == 0`, `t == 64`, `h == w`, `t >= 16` or "
            "`t <= 512`.",
        ),
        (
            {},
            ["time >= 3"],
            "assume: no input has a dimension named `time`\n  mend: Known are `b`, `h`, `n`, `w`.",
        ),
    ],
)
def test_what_is_wrong_with_one(shape: Any, assume: list[str], message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse_assumptions(MODEL, shape, assume)
    assert str(caught.value) == message
    assert caught.value.exit_code == 2


def decoder(mask: str = "p + s") -> Model:
    text = "int64[b,s] ids, int64[b,t] mask, float[b,2,p,8] past"
    made = model_of(text, "y = Identity (past) z = Identity (ids) w = Identity (mask)", "y z w")
    made.graph.input[1].type.tensor_type.shape.dim[1].dim_param = mask
    return Model(made)


def test_a_number_holds_wherever_the_name_stands() -> None:
    axioms = parse_assumptions(decoder(), {"ids": [1, "s"]}, [])
    assert axioms.fixed == {"b": 1}
    assert axioms.sizes == {"b": (1,)}
    two = {"ids": [1, "s"], "past": [2, 2, "p", 8]}
    assert not parse_assumptions(decoder(), two, []).fixed, "nobody knows which"
    named = {"ids": [1, "s"], "past": ["b", 2, "p", 8]}
    assert not parse_assumptions(decoder(), named, []).fixed
    result = surgeon.apply(decoder(), "clean", shape={"ids": [1, 4]})
    declared = [
        [d.dim_value or d.dim_param for d in value.type.tensor_type.shape.dim]
        for value in result.model.to_proto().graph.input
    ]
    assert declared == [[1, 4], [1, "p + s"], [1, 2, "p", 8]]


@pytest.mark.parametrize(
    ("shape", "assume"),
    [
        ({}, ["p == 127", "s == 1"]),
        ({"ids": [2, 1]}, ["p == 127"]),
        ({}, ["s == p", "p == 64"]),
        ({}, ["p + s == 128"]),
    ],
)
def test_a_size_that_is_called_by_a_formula(shape: dict[str, Any], assume: list[str]) -> None:
    assert parse_assumptions(decoder(), shape, assume).fixed["p + s"] == 128


def test_a_formula_of_sizes_that_are_not_known_is_what_it_says() -> None:
    found = parse_assumptions(decoder(), {}, ["s == 1"])
    assert found.fixed == {"s": 1}
    assert str(found.symbols["p + s"]) == "p + 1"
    assert found.texts[0] == "the size called `p + s` is what that says"
    assert "p - s" not in parse_assumptions(decoder("p - s"), {}, []).symbols
    assert "p + u" not in parse_assumptions(decoder("p + u"), {}, []).symbols
    for strange in ("2 * 3", "(" * 9000, "p" + " + p" * 9000, "p + ", "p ** s", "p + s.t"):
        assert strange not in parse_assumptions(decoder(strange), {}, ["s == 1"]).symbols
    given = parse_assumptions(decoder(), {"mask": [1, 64]}, ["p == 127", "s == 1"])
    assert given.fixed["p + s"] == 64, "what is said of it holds"


def test_a_size_that_was_told_to_be_two_numbers_is_named() -> None:
    proto = model_of("float[b,3] x, float[b,3] z", "y = Add (x, z)", "y")
    with pytest.raises(VerifyError, match=r"`b` is 2 in `x` and 4 in `z`; give one"):
        surgeon.apply(proto, "clean", shape={"x": (2, 3), "z": (4, 3)})
