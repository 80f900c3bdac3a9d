"""Lists into which branches of an If put something: results of the If, and of the turns."""

from __future__ import annotations

import numpy as np
import pytest
from test_appending import READS, X, cleaned, operators, standard
from truth import parse

import surgeon
from surgeon.runtime import Session

BRANCH = """
    two = Constant <value_int = 2> () zero = Constant <value_int = 0> ()
    odd = Mod (i, two) above = Greater (odd, zero)
    held2 = If (above) <then_branch = yes () => ({one}) {{ {yes} }},
                        else_branch = no () => ({two}) {{ {no} }}>
"""
HANDED = "handed = Identity (held)"
SCALED = "scaled2 = Mul (h2, half) put = SequenceInsert (held, scaled2)"


def branches(yes: str, no: str) -> str:
    """A turn in which the branches of an If give `put` or `handed`, one after the other."""
    ends = ["put" if "put =" in text else "handed" for text in (yes, no)]
    return BRANCH.format(yes=yes, no=no, one=ends[0], two=ends[1])


@pytest.mark.slow
@pytest.mark.parametrize("read", READS)
def test_what_every_other_turn_puts_there(read: str) -> None:
    saved = cleaned(standard(branches(HANDED, SCALED), READS[read]), 14)
    assert "Compress" in operators(saved.graph)
    cleaned(standard(branches(SCALED, HANDED), READS[read], begins="SequenceConstruct (start)"), 14)


@pytest.mark.parametrize("read", READS)
def test_what_both_branches_put_there(read: str) -> None:
    other = "put = SequenceInsert (held, row)"
    saved = cleaned(standard(branches(SCALED, other), READS[read]), 14)
    assert "Compress" not in operators(saved.graph)


@pytest.mark.parametrize("read", READS)
def test_what_is_put_in_front_of_the_others(read: str) -> None:
    front = "at = Constant <value_int = 0> () put = SequenceInsert (held, row, at)"
    begins = "SequenceConstruct (start, start)"
    cleaned(standard(branches(HANDED, front), READS[read], begins=begins), 14)
    other = "at2 = Constant <value_int = 0> () put = SequenceInsert (held, h2, at2)"
    cleaned(standard(branches(front, other), READS[read], begins=begins), 14)


def test_lists_as_long_that_the_branches_make() -> None:
    text = """
        g (float[b,4] x) => (float y) <float zero = {0.0}> {
            m = ReduceMean <keepdims = 0> (x) is = Greater (m, zero) n = Neg (x)
            one, other = If (is) <
                then_branch = yes () => (a, k) {
                    r = Relu (x) a = SequenceConstruct (r, x) k = Exp (x)
                },
                else_branch = no () => (b, l) { b = SequenceConstruct (n, x) l = Identity (n) }>
            p = ConcatFromSequence <axis = 1> (one) q = Tile (other, t) y = Add (p, q)
        }""".replace("<float", "<int64[2] t = {1, 2}, float")
    model = parse(text, opset=14)
    saved = surgeon.apply(model, "clean").model.to_proto()
    assert not [op for op in operators(saved.graph) if "Sequence" in op]
    for x in (X[0], -X[0]):
        want, got = (Session(each).run({"x": x})["y"] for each in (model, saved))
        np.testing.assert_array_equal(got, want)


def test_lists_below_the_opset_that_hands_them_on() -> None:
    """Exporters put one more into it and take it out again where there is no Identity of lists."""
    handed = "more = SequenceInsert (held, row) handed = SequenceErase (more)"
    cleaned(standard(branches(handed, SCALED), READS["stacked inside"]), 13)


def test_several_lists_and_a_state_of_one_if() -> None:
    text = """
        g (float[b,t,4] x) => (float y)
        <int64 one = {1}, bool go = {1}, int64 front = {0}, float half = {0.5}, int64 two = {2}> {
            sizes = Shape (x) count = Gather (sizes, one)
            start = Gather <axis = 1> (x, front) none = SequenceEmpty () nothing = SequenceEmpty ()
            h, all, others = Loop (count, go, start, none, nothing) <body = turn (
                int64 i, bool c, float[b,4] state, seq(float[p,q]) held, seq(float[p,q]) rest
            ) => (c2, h2, held2, rest2) {
                c2 = Identity (c) row = Gather <axis = 1> (x, i)
                odd = Mod (i, two) above = Cast <to = 9> (odd)
                held2, h2, rest2 = If (above) <
                    then_branch = yes () => (one_list, sum, other_list) {
                        sum = Add (state, row) scaled = Mul (sum, half)
                        one_list = SequenceInsert (held, scaled)
                        other_list = SequenceInsert (rest, row)
                    }, else_branch = no () => (same_list, less, last_list) {
                        less = Sub (state, row) same_list = Identity (held)
                        last_list = SequenceInsert (rest, less)
                    }>
            }>
            p = ConcatFromSequence <axis = 0> (all) q = ConcatFromSequence <axis = 0> (others)
            z = Concat <axis = 0> (p, q, h) s = ReduceSum <keepdims = 1> (z) y = Add (z, s)
        }"""
    saved = cleaned(text, 14)
    assert operators(saved.graph).count("If") == 1


def test_what_is_not_of_one_shape_stays_a_list() -> None:
    grown = "more = Concat <axis = 0> (h2, row, row) put = SequenceInsert (held, more)"
    read = READS["joined in front"]
    cleaned(standard(branches(SCALED, grown), read), 14, stays=True)
    twice = "twice = SequenceInsert (held, row) put = SequenceInsert (twice, h2)"
    cleaned(standard(branches(twice, HANDED), read), 14, stays=True)
    cleaned(standard(branches(twice, twice.replace("twice", "again")), read), 14, stays=True)


def test_what_a_branch_reads_of_the_list_stays_one() -> None:
    latest = (
        "latest = SequenceAt (held, last) more = Add (latest, row) "
        "put = SequenceInsert (held, more)"
    )
    text = standard(
        branches(latest, HANDED), READS["stacked in front"], begins="SequenceConstruct (start)"
    )
    cleaned(text, 14, stays=True)
