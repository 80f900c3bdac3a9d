"""Facts of bodies: what a Loop keeps, what an If reads, and names that two bodies share."""

from __future__ import annotations

import pytest
from truth import fact_of, infer, parse


def test_two_bodies_may_use_the_same_names() -> None:
    body = (
        "<then_branch = p () => (q) {{ q = NonZero ({0}) }}, "
        "else_branch = n () => (q) {{ q = NonZero ({0}) }}>"
    )
    proto = parse(
        "g (bool k, float[b] x, float[n] z) => (y, a) { y = If (k) "
        + body.format("x")
        + " a = If (k) "
        + body.format("z")
        + "}"
    )
    facts, tensors = infer(proto)
    y, a = facts.of(tensors["y"]).shape, facts.of(tensors["a"]).shape
    assert y is not None
    assert a is not None
    assert len(y) == len(a) == 2
    assert y[1] != a[1]


@pytest.mark.parametrize(
    ("work", "shape"),
    [
        ("u = Relu (v)", "(b, t)"),
        ("n = Identity (v) u = Add (n, x)", "(b, t)"),
        ("u = Concat <axis = 0> (v, v)", "(y.0, y.1)"),
        ("u = Transpose (v)", "(y.0, y.1)"),
        ("a = Constant <value = int64[1] {0}> () u = Unsqueeze (v, a)", "None"),
    ],
)
def test_a_loop_carries_on_what_its_body_is_shown_to_keep(work: str, shape: str) -> None:
    proto = parse(
        "g (float[b,t] x, int64 count) => (float[p,q] y) { y = Loop (count, , x) <body = "
        "l (int64 i, bool k, float[c,d] v) => (bool o, float[e,f] u) "
        f"{{ o = Identity (k) {work} }}> }}"
    )
    facts, tensors = infer(proto)
    assert str(facts.of(tensors["y"]).shape) == shape
    assert facts.of(tensors["y"]).dtype == 1


def test_what_two_carried_values_keep_is_shown_of_both_at_once() -> None:
    """Each turn they change places, and the second is of another size."""
    for second, shape in (("x", "(b, t)"), ("z", "(p.0, p.1)")):
        proto = parse(
            "g (float[b,t] x, float[b,s] z, int64 count) => (float[k,l] p, float[m,n] q) "
            f"{{ p, q = Loop (count, , x, {second}) <body = "
            "l (int64 i, bool k, float[c,d] v, float[e,f] w) "
            "=> (bool o, float[r,s] u, float[t,s] a) "
            "{ o = Identity (k) u = Relu (w) a = Neg (v) }> }"
        )
        facts, tensors = infer(proto)
        assert str(facts.of(tensors["p"]).shape) == shape


def test_a_body_reads_facts_of_outer_values() -> None:
    proto = parse(
        "g (bool k, float[b,t] x) => (y) { a = Transpose (x) "
        "y = If (k) <then_branch = p () => (q) { q = Relu (a) }, else_branch = n () => (r) { r = "
        "Neg (a) }> }"
    )
    assert str(fact_of(proto, "y").shape) == "(t, b)"
