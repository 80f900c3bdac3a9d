"""What becomes of the batch in operators that `test_any_batch.py` has no network of."""

import pytest
from test_any_batch import items_agree, model, with_weights

from surgeon.anybatch import free_batch
from surgeon.errors import SurgeonError

FREED = {
    "samples at the same places of each": """(float[1,2,4,4] x) => (float[1,2,3,3] y)
        <float[1,3,3,2] g> { y = GridSample (x, g) }""",
    "samples at places of its own": """(float[1,2,4,4] x, float[1,3,3,2] g) => (float[1,2,3,3] y)
        { y = GridSample (x, g) }""",
    "the same image at places of each": """(float[1,3,3,2] g) => (float[1,2,3,3] y)
        <float[1,2,4,4] x> { y = GridSample (x, g) }""",
    "sums on the way": """(float[1,3,4] x) => (float[1,3,4] y) <int64 a = {-1}> {
        y = CumSum (x, a) }""",
    "a triangle": "(float[1,3,4] x) => (float[1,3,4] y) { y = Trilu (x) }",
    "as large as it is in the file": """(float[1,3,1] x) => (float[1,3,4] y)
        <int64[3] s = {1, 3, 4}> { y = Expand (x, s) }""",
    "as large as two are": """(float[2,3,1] x) => (float[1,2,3,4] y)
        <int64[4] s = {1, 2, 3, 4}> { y = Expand (x, s) }""",
    "a size that is left open elsewhere": """(float[2,3,4] x) => (float[2,12] y)
        <int64[2] s = {2, -1}> { y = Reshape (x, s) }""",
    "a size that is another's": """(float[1,k,3] x) => (float[1,q,3] y)
        <int64 one = {1}, int64[1] none = {0}> {
        s = Shape (x) k = Gather (s, one) e = Unsqueeze (k, none)
        b = ConstantOfShape <value = float[1] {2}> (e) u = Unsqueeze (b, one) y = Mul (x, u) }""",
    "axes that are named": """(float[1,2,3,3] x) => (float[1,2,6,6] y) <float[2] f = {2, 2}> {
        y = Resize <axes = [2, 3]> (x, , f) }""",
}
REFUSED = {
    "(float[1,2,4] x) => (float[1,2,4] y) <int64 a = {0}> { y = CumSum (x, a) }": "along the batch",
    "(float[3,3] x) => (float[3,3] y) { y = Trilu (x) }": "goes along the batch",
    "(float[1,3] x) => (float[2,3] y) <int64[2] s = {2, 3}> { y = Expand (x, s) }": (
        "it repeats the batch"
    ),
    "(float[2,2,4,4] x) => (float[2,2,3,3] y) <float[1,3,3,2] g> { t = Transpose "
    "<perm = [1, 0, 2, 3]> (x) y = GridSample (t, g) }": "the batch is not its first axis",
    "(float[1,4] x) => (float[4,4] y) <float[4,1] m> { y = Mul (m, x) }": (
        "`m` has 4 along the batch, along which the one item of `x` is repeated"
    ),
    "(float[1,k] x) => (float[1,k] y) <int64[2] places = {1, 0}, float one = {1}> { "
    "s = Shape (x) t = Gather (s, places) f = Cast <to = 1> (t) y = Sub (x, one) }": (
        "the batch's among them"
    ),
    "(float[1,2,3,3] x) => (float[1,2,6,6] y) <float[3] f = {1, 2, 2}> {"
    "y = Resize <axes = [0, 2, 3]> (x, , f) }": "it names the batch among its axes",
}


@pytest.mark.parametrize("text", FREED.values(), ids=FREED)
def test_items_are_computed_as_each_by_itself(text: str) -> None:
    items_agree(with_weights(model(text, 18)))


@pytest.mark.parametrize(("text", "reason"), REFUSED.items(), ids=REFUSED.values())
def test_what_mixes_items_is_named(text: str, reason: str) -> None:
    with pytest.raises(SurgeonError) as caught:
        free_batch(with_weights(model(text, 18)), "batch", check=False)
    assert reason in caught.value.what
