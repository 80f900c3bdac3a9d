"""Patterns that are bound without a search: as the search binds them, or not at all."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import onnx
import onnx_graphsurgeon as gs
import pytest
from matching import F32, ints
from truth import infer, model_of

from surgeon.errors import Location
from surgeon.match import Match, Miss
from surgeon.matching import Matcher
from surgeon.notation import parse_pattern
from surgeon.recipe import Recipe
from surgeon.searching import Search, State

SAMPLES = sorted((Path(__file__).parent.parent / "samples").rglob("*.onnx"))


@cache
def patterns() -> list[Matcher]:
    """Those of the bundled recipes that need no search."""
    rules = [r for name in ("clean", "aten", "dymn") for r in every_rule(Recipe.load(name))]
    made = [Matcher(rule.match) for rule in rules]
    return [matcher for matcher in made if matcher.direct is not None]


def every_rule(recipe: Recipe) -> list[Any]:
    used = [rule for step in recipe.steps for rule in step.rules or ()]
    return [*recipe.rules, *used]


def searched(matcher: Matcher, root: gs.Node, facts: Any, outputs: set[int]) -> Match | None:
    search = Search(matcher.producers, facts, lambda tensor: id(tensor) in outputs)
    for s in search.node(matcher.root, root, State()):
        return Match(root, s.nodes, s.values, s.attributes, s.rests, s.views)
    return None


def by_identity(found: Match) -> Any:
    return (
        list(map(id, found.nodes)),
        {name: id(tensor) for name, tensor in found.values.items() if tensor is not None},
        {name for name, tensor in found.values.items() if tensor is None},
        {name: list(map(id, tensors)) for name, tensors in found.rests.items()},
        found.views,
        found.attributes,
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_bundled_patterns_bind_as_the_search_does(path: Path) -> None:
    facts, tensors = infer(onnx.load(path))
    outputs = {id(t) for t in facts.model.graph.outputs}
    nodes = {id(n): n for t in tensors.values() for n in t.inputs}
    found = 0
    for root in nodes.values():
        for matcher in patterns():
            assert matcher.direct is not None
            direct = matcher.direct.at(root)
            if direct is not None:
                wanted = searched(matcher, root, facts, outputs)
                assert wanted is not None
                assert by_identity(direct) == by_identity(wanted)
                found += 1
    assert found > 10


@pytest.mark.parametrize(
    ("pattern", "body", "bound"),
    [
        ("m = Relu (x)\ny = Add (m, b)", "a = Relu (x) y = Add (z, a)", "a z"),  # turned
        ("m = Relu (x)\ny = Add (m, b)", "a = Relu (x) y = Add (a, z)", "a z"),
        ("m = Relu (x)\ny = Sub (m, b)", "a = Relu (x) y = Sub (z, a)", None),
        ("y = Mul (x, x)", "y = Mul (x, x)", "x x"),
        ("y = Mul (x, x)", "y = Mul (x, z)", None),
        ("y = Clip (x, low?, high)", "y = Clip (x, , k)", "x k"),
        ("y = Clip (x, low, high)", "y = Clip (x, , k)", None),
        ("y = Clip (x, low)", "y = Clip (x, k, k)", None),  # an operand too many
        ("y = Max (x, *more)", "y = Max (x, z, x)", "x z x"),
        ("y = Clip (x, _, high)", "y = Clip (x, k, k)", "x k"),
        ("y = Clip (x, , high)", "y = Clip (x, k, k)", None),
        ("v, i = TopK (x, k)\ny = Relu (i)", "v, i = TopK (x, n) y = Relu (v)", None),  # the other
        ("v, i = TopK (x, k)\ny = Relu (v)", "v, i = TopK (x, n) y = Relu (v)", "v"),
        ("a = Relu (x)\nb = Relu (z)\ny = Add (a, b)", "r = Relu (x) y = Add (r, r)", None),
    ],
)
def test_what_is_bound(pattern: str, body: str, bound: str | None) -> None:
    constants = {"k": F32(1), "n": ints(2)}
    proto = model_of("float[b,4] x, float[b,4] z", body, "y", 17, constants)
    facts, tensors = infer(proto)
    matcher, root = Matcher(parse_pattern(pattern, Location("<test>"))), tensors["y"].inputs[0]
    assert matcher.direct is not None
    found = matcher.direct.at(root)
    wanted = searched(matcher, root, facts, {id(t) for t in facts.model.graph.outputs})
    if bound is None:
        assert found is None
        assert wanted is None
        return
    assert found is not None
    assert wanted is not None
    assert by_identity(found) == by_identity(wanted)
    operands = [found.values[a.name] for a in matcher.root.inputs if a.name in found.values]
    rest = [t for tensors in found.rests.values() for t in tensors]
    assert [t.name for t in (*operands, *rest) if t is not None] == bound.split()


@pytest.mark.parametrize(
    "pattern",
    ["y = Add (x~, z)", "y = Softmax <axis = 1> (x)", "y = Cast <to = @to> (x)", "_ = Relu (x)"],
)
def test_what_only_a_search_binds(pattern: str) -> None:
    assert Matcher(parse_pattern(pattern, Location("<test>"))).direct is None


@pytest.mark.parametrize("length", [40, 1200])
def test_each_node_of_a_pattern_is_one_however_many_read_it(length: int) -> None:
    """A node each of whose operands is the one before it: a tree of them would be 2^40."""
    nodes = ["a0 = Neg (x)", *(f"a{i} = Sub (a{i - 1}, a{i - 1})" for i in range(1, length))]
    matcher = Matcher(parse_pattern("\n".join(nodes), Location("r.yaml", 1, 1)))
    assert matcher.direct is not None
    model = model_of("float[n] x", " ".join(nodes), f"a{length - 1}")
    facts, tensors = infer(model)
    found = matcher.at(tensors[f"a{length - 1}"].inputs[0], facts, lambda tensor: False)
    if length < 100:
        assert isinstance(found, Match)
        assert len(found.nodes) == length
    else:  # deeper than Python calls itself
        assert isinstance(found, Miss)
        assert found.reason() == "the pattern has too many nodes in a row"
