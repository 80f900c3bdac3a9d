"""On graphs drawn at random: numbers stay, the argument is untouched, a second run does nothing."""

from __future__ import annotations

import os
import random

import numpy as np
import onnx
import pytest
from chains import chains
from hypothesis import HealthCheck, given, note, reject, settings
from hypothesis import strategies as st
from truth import draw

import surgeon
from surgeon.recipe import Recipe
from surgeon.runtime import NotRunnable, RunFailed, Session
from surgeon.verify import compare_arrays

RECIPE = Recipe.parse(
    """
    surgeon: 1
    name: all
    steps:
      - use: [shape-chains, affine]
      - use: merge-siblings
    """
)
POINTS = tuple(
    dict(zip("bct", sizes, strict=True))
    for sizes in ((5, 2, 3), (2, 4, 8), (3, 3, 7), (1, 6, 4), (4, 8, 16))
)
EXAMPLES = int(os.environ.get("SURGEON_EXAMPLES", "800"))  # `make fuzz-graphs` draws 10,000
TOLERANCE = 1e-3
# Of numbers of size 1: an output may be what is left where two of them cancel.
CANCELLED = 2e-6


def runs(proto: onnx.ModelProto) -> list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """Inputs and outputs at the sizes where the model is defined and gives something."""
    try:
        session = Session(proto)
    except NotRunnable:
        reject()
    found = []
    for index, point in enumerate(POINTS):
        feeds = draw(proto, point, seed=index)
        try:
            outputs = session.run(feeds)
        except RunFailed:
            continue
        if all(np.size(value) for value in outputs.values()):
            found.append((feeds, outputs))
    if not found:
        reject()
    return found


def assert_same(wanted: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> None:
    for name, found in outputs.items():
        compared = compare_arrays(name, wanted[name], found, tolerance=TOLERANCE)
        rounding = compared.fault is None and compared.max_absolute <= CANCELLED
        assert compared.agrees or rounding, str(compared)


def check(proto: onnx.ModelProto) -> None:
    before = proto.SerializeToString(deterministic=True)
    wanted = runs(proto)
    result = surgeon.apply(proto, RECIPE, verify=False)
    refused = [m for m in result.report.misses if "differs from what it replaces" in m.reason]
    assert refused == [], "a bundled rule was wrong, and the trial found it"
    assert proto.SerializeToString(deterministic=True) == before
    out = result.model.to_proto()
    note(onnx.printer.to_text(proto))
    note(onnx.printer.to_text(out))
    assert [v.name for v in out.graph.input] == [v.name for v in proto.graph.input]
    assert [v.name for v in out.graph.output] == [v.name for v in proto.graph.output]
    session = Session(out)
    for feeds, outputs in wanted:
        assert_same(outputs, session.run(feeds))
    again = surgeon.apply(out, RECIPE, verify=False)
    assert again.report.changes == ()
    assert not again.model.changed


@settings(max_examples=60, suppress_health_check=[HealthCheck.filter_too_much])
@given(chains())
def test_rewriting_keeps_what_a_graph_computes(proto: onnx.ModelProto) -> None:
    check(proto)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.filter_too_much])
@given(chains(most=16))
def test_rewriting_keeps_what_larger_graphs_compute(proto: onnx.ModelProto) -> None:
    check(proto)


@settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
@given(chains(), st.randoms(use_true_random=False))
def test_the_order_of_nodes_is_irrelevant(proto: onnx.ModelProto, chance: random.Random) -> None:
    shuffled = onnx.ModelProto()
    shuffled.CopyFrom(proto)
    nodes = list(shuffled.graph.node)
    chance.shuffle(nodes)
    del shuffled.graph.node[:]
    shuffled.graph.node.extend(nodes)
    wanted = runs(proto)
    first = surgeon.apply(proto, RECIPE, verify=False)
    second = surgeon.apply(shuffled, RECIPE, verify=False)
    # Which rules came to it may differ: what one of them leaves without a reader, another found.
    # Of two values that hold one size the first stays, and where it comes from stays with it.
    sizes = {"Shape", "Gather", "Slice"}
    assert {k: n for k, n in first.report.after.items() if k not in sizes} == {
        k: n for k, n in second.report.after.items() if k not in sizes
    }
    session = Session(second.model.to_proto())
    for feeds, outputs in wanted:
        assert_same(outputs, session.run(feeds))
