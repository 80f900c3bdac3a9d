"""Initializers that are inputs too are compared with other values than those of the file."""

from __future__ import annotations

import numpy as np
import pytest
from verdicts import parse

from surgeon.verify import verify
from surgeon.verify.differing import differing_feeds

GIVEN = "g (float[n,3] x, float[3] w) => (float[n,3] y) <float[3] w = {1.0, 1.0, 1.0}> "
SIZED = "g (float[n,6] x, int64[2] s) => (float[m,k] y) <int64[2] s = {-1, 3}> "


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{ y = Mul (x, w) }", "{ y = Identity (x) }"),
        ("{ a = Abs (w) y = Mul (x, a) }", "{ y = Mul (x, w) }"),
    ],
)
def test_what_is_right_for_the_values_in_the_file_alone_differs(before: str, after: str) -> None:
    verdict = verify(parse(GIVEN + before), parse(GIVEN + after))
    assert verdict.status == "differs"
    assert "with initializers that are inputs" in verdict.detail


def test_what_reads_them_is_equivalent() -> None:
    verdict = verify(
        parse(GIVEN + "{ y = Mul (x, w) }"), parse(GIVEN + "{ z = Mul (w, x) y = Identity (z) }")
    )
    assert verdict.status == "equivalent"
    assert any("initializers that are inputs" in each.by for each in verdict.comparisons)


def test_values_at_which_the_original_does_not_run_tell_nothing() -> None:
    verdict = verify(
        parse(SIZED + "{ y = Reshape (x, s) }"),
        parse(SIZED + "{ z = Identity (x) y = Reshape (z, s) }"),
    )
    assert verdict.status == "equivalent"


def test_a_weight_that_is_no_input_of_the_result_is_as_the_file_has_it() -> None:
    plain = "g (float[n,3] x) => (float[n,3] y) { y = Identity (x) }"
    assert verify(parse(GIVEN + "{ y = Mul (x, w) }"), parse(plain)).status == "equivalent"


def test_the_inputs_of_a_difference_have_those_values() -> None:
    """They are what `--bisect` and `--keep-evidence` run."""
    before = parse(GIVEN + "{ a = Abs (w) y = Mul (x, a) }")
    after = parse(GIVEN + "{ y = Mul (x, w) }")
    feeds = differing_feeds(before, verify(before, after), result=after)
    assert feeds is not None
    assert (np.asarray(feeds["w"]) == -1).all()
