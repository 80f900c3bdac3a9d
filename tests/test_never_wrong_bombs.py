"""What simplifiers get wrong of bombs: a file that grows to what its constants come to."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import onnx
import pytest
from never_wrong import EVERY, F32, I64, given, ints, ops
from truth import parse

import surgeon
from surgeon.fold import DEFAULT_LIMIT


def doubling(of: str) -> str:
    steps = [f"d{i + 1} = Concat <axis = 0> (d{i}, d{i})" for i in range(40)]
    return f"d0 = Concat <axis = 0> ({of}, {of}) {' '.join(steps)} b = Identity (d40)"


BOMBS: dict[str, tuple[str, dict[str, Any]]] = {
    "ConstantOfShape": ("b = ConstantOfShape (s)", {"s": ints(100_000, 100_000)}),
    "Tile": ("b = Tile (o, s)", {"o": np.ones((1, 1), F32), "s": ints(10_000, 10_000)}),
    "Expand": ("b = Expand (o, s)", {"o": np.ones((1, 1), F32), "s": ints(10_000, 10_000)}),
    "Range": ("b = Range (n, m, d)", {"n": I64(0), "m": I64(10**10), "d": I64(1)}),
    "doubled constant": (doubling("o"), {"o": np.ones(1, F32)}),
    "doubled input": (doubling("x"), {}),
    "Loop": (
        "t, b = Loop (n, yes, o) <body = "
        "l (int64 i, bool c, float v) => (bool k, float u, float s) "
        "{ k = Identity (c) u = Add (v, v) s = Neg (v) }>",
        {"n": I64(10**12), "yes": np.array(True), "o": F32(1)},
    ),
    "Loop of a Loop": (
        "t, b = Loop (n, yes, o) <body = "
        "l (int64 i, bool c, float v) => (bool k, float u, float s) "
        "{ k = Identity (c) u, s = Loop (n, yes, v) <body = "
        "l2 (int64 i2, bool c2, float v2) => (bool k2, float u2, float s2) "
        "{ k2 = Identity (c2) u2 = Add (v2, v2) s2 = Neg (v2) }> }>",
        {"n": I64(16), "yes": np.array(True), "o": F32(1)},
    ),
}


@pytest.mark.parametrize("recipe", EVERY)
@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_stays_as_small_as_it_is(kind: str, recipe: str) -> None:
    body, constants = BOMBS[kind]
    proto = given(
        parse(
            f"g (float[n] x) => (float[n] y, int64[k] q) {{ {body} q = Shape (b) y = Relu (x) }}"
        ),
        **constants,
    )
    start = time.process_time()
    after = surgeon.apply(proto, recipe, verify=False).model.to_proto()
    assert time.process_time() - start < 5
    assert after.ByteSize() < proto.ByteSize() + 64_000
    assert "Relu" in ops(after.graph)
    proto.graph.output[1].CopyFrom(onnx.ValueInfoProto(name="b"))
    after = surgeon.apply(proto, recipe, verify=False).model.to_proto()
    assert after.ByteSize() < proto.ByteSize() + DEFAULT_LIMIT + 64_000


def steps(step: str, count: int) -> str:
    return " ".join(step.format(a=f"v{i}", b=f"v{i + 1}") for i in range(count))


JOINED = f"v0 = Add (i, i) {steps('{b} = Concat <axis = 0> ({a}, {a})', 24)}"
# What says the last twice at each step: followed by every way it is as many as there are ways.
TWICE = {
    "a limit": (
        "range-forms",
        "(int64[1] i) => (int64[k] y) <int64 zero = {0}, int64 one = {1}> "
        f"{{ v0 = ReduceMax <keepdims = 0> (i) {steps('{b} = Add ({a}, {a})', 60)} "
        "y = Range (zero, v60, one) }",
    ),
    "a target": (
        "clean",
        f"(float[n] x, int64[1] i) => (float y) {{ {JOINED} y = Reshape (x, v24) }}",
    ),
    "a whole number": (
        "clean",
        "(float[n] x) => (float[n] y) <float low = {0.0}, float high = {255.0}> "
        f"{{ v0 = Round (x) {steps('{b} = Add ({a}, {a})', 60)} "
        "c = Clip (v60, low, high) q = Cast <to = 2> (c) y = Cast <to = 1> (q) }",
    ),
    "sizes": (
        "resize-decompose",
        "(float[n] x, int64[1] i) => (float y) "
        f'{{ {JOINED} y = Resize <mode = "linear"> (x, , , v24) }}',
    ),
}


@pytest.mark.parametrize("kind", TWICE)
def test_what_says_the_last_twice_is_followed_once(kind: str) -> None:
    recipe, text = TWICE[kind]
    start = time.process_time()
    surgeon.apply(parse(f"g {text}"), recipe, verify=False)
    assert time.process_time() - start < 5
