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
    "a mask of columns for each, beside rows of all": """(float[1,2,3,4] x, float[1,4] m)
        => (float[1,2,3,4] y) <float[1,1,3,1] q> { a = Mul (q, m) y = Add (x, a) }""",
    "a mask of columns for each, beside rows alone": """(float[1,2,3,4] x, float[1,4] m)
        => (float[1,2,3,4] y) <float[3,1] q, float[4] c> { a = Mul (q, m) n = Neg (a) b = Sub (c, n)
        y = Add (x, b) }""",
    "a mask of columns for each, in front of which is an axis": """(float[1,4] m, float[1,3,4] x)
        => (float[1,3,4] y) <float[1,1,4] c> { a = Add (c, m) y = Mul (a, x) }""",
    "a mask whose batch is not in front": """(float[1,4] m, float[1,2,3,4] x) => (float[1,2,3,4] y)
        <float[2,1,4] c, float[3,1] q> { a = Add (c, m) b = Mul (a, q) y = Mul (b, x) }""",
    "rows of all items beside the items": """(float[1,3,2] x) => (float[1,3,2] y)
        <float[2,2] w, int64[2] s = {-1, 2}> { r = Reshape (x, s) p = MatMul (r, w)
        y = Add (p, x) }""",
    "rows of all items beside items of any length": """(float[1,k,2] x) => (float[1,k,2] y)
        <float[2,2] w, int64[2] s = {-1, 2}> { r = Reshape (x, s) p = MatMul (r, w)
        y = Add (p, x) }""",
    "rows of all items beside rows elsewhere": """(float[1,2] x, float[1,2,1,1] z)
        => (float[1,2,2,1] y) <int64[2] s = {2, 1}> { r = Reshape (x, s) y = Mul (r, z) }""",
    "places of each item, of all in a row": """(float[1,4] x) => (float[1,1,2,1] y)
        <int64[1,1,2] i = {3, -3}> { f = Flatten <axis = 2> (x) y = Gather <axis = 0> (f, i) }""",
    "places of each item behind one another": """(float[1,4] x) => (float[2,1,3] y)
        <int64[2,1] i = {3, 1}, float[1,3] r> { f = Flatten <axis = 2> (x)
        g = Gather <axis = 0> (f, i) y = Mul (g, r) }""",
    "the row of each item that it names": """(float[1,4,3] x, int64[1] i) => (float[1,3] y)
        { f = Flatten <axis = 2> (x) y = Gather <axis = 0> (f, i) }""",
    "rows of each item that it names, along its own axis": """(float[1,4,3] x, int64[1,2] i)
        => (float[1,1,2,3] y) { y = Gather <axis = 1> (x, i) }""",
    "places of each item that it names": """(float[1,4,3] x, int64[1,2] i, int64[1,2] j)
        => (float[1,2] y) <int64[1,2,1] z = {0, 0}, int64[1] last = {-1}> {
        k = Unsqueeze (i, last) l = Unsqueeze (j, last)
        c = Concat <axis = -1> (z, k, l) y = GatherND (x, c) }""",
    "a slope of each head, by the places of each item": """(float[1,4] m, float[1,2,3,4] x)
        => (float[1,2,3,4] y) <float[2,1] q, int64[3] s = {2, 1, 4}, int64[3] r = {2, 3, 4},
         int64[4] o = {1, 2, 3, 4}> { a = Mul (q, m) b = Reshape (a, s) w = Reshape (x, r)
        c = Add (w, b) y = Reshape (c, o) }""",
    "one head of keys for all": """(float[1,2,3,4] q, float[1,1,4,3] k) => (float[1,2,3,3] y)
        { t = Transpose <perm = [1, 0, 2, 3]> (k) y = MatMul (q, t) }""",
    "a layer that adds rows of each": """(float[1,3] x, float[1,2] c) => (float[1,2] y)
        <float[3,2] w> { y = Gemm (x, w, c) }""",
    "sizes of other axes": """(float[1,k,2] x) => (float[1,k,2] y) <float[1,1] c> {
        s = Shape <start = -2> (x) e = Expand (c, s) y = Mul (x, e) }""",
    "sizes of axes beside rows of all items": """(float[1,3,2,4] x) => (float[1,3,2,4] y)
        <float[1] c, int64[2] s = {3, 8}, int64[4] t = {3, 2, 1, 4}, int64[3] ones = {-1, 1, 1}> {
        a = Transpose <perm = [1, 2, 0, 3]> (x) r = Reshape (a, s) q = Shape <end = 1> (r)
        e = Expand (c, q) f = Reshape (e, ones) k = Relu (r) b = Reshape (k, t)
        d = Transpose <perm = [2, 0, 1, 3]> (b) y = Mul (d, f) }""",
    "sizes of the batch beside others": """(float[1,k,2] x) => (float[1,k,2] y) <float[1,1] c> {
        s = Shape (x) e = Expand (c, s) r = Reshape (x, s) y = Mul (r, e) }""",
    "sizes of the batch, of all axes by another order": """(float[1,k,2] x) => (float[2,k,1] y)
        <int64[3] o = {2, 1, 0}> { s = Shape (x) p = Gather (s, o) t = Transpose (x)
        y = Reshape (t, p) }""",
    "up to where run time tells": """(float[1,k] x, float[1,9,9] z) => (float[1,p,9] y)
        <int64[1] a = {0}, int64[1] one = {1}> { s = Shape <start = 1> (x)
        y = Slice (z, a, s, one) }""",
    "as large as run time tells": """(float[1,1,k] x) => (float[1,4,k] y)
        <int64[2] f = {1, 4}> { s = Shape <start = 2> (x) t = Concat <axis = 0> (f, s)
        y = Expand (x, t) }""",
    "resized to sizes that run time tells": """(float[1,2,h,w] x) => (float[1,2,h,w] y)
        { p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) s = Shape (x)
        r = Resize <mode = "nearest"> (p, , , s) y = Add (r, x) }""",
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
    "(float[1,4] m, float[3] x) => (float[3,4] y) <float[3,1] q> { "
    "a = Mul (q, m) y = Softmax (a) }": "the batch is an axis more, in front of those of `a`",
    "(float[1,4] m, float[3] x) => (float[3,4,1] y) <float[3,1] q, int64[3] p = {0, 0, 1}> { "
    "a = Mul (q, m) y = Reshape (a, p) }": "it copies sizes, and the batch is an axis more",
    "(float[1,2,3] x, float[1,3] z) => (float[1,2,3] y) { t = Transpose (z) "
    "y = MatMul (x, t) }": "its operands hold the batch along different axes",
    "(float[1,4] x) => (float[2] y) <int64[2] i = {0, 3}> { f = Flatten <axis = 2> (x) "
    "g = Gather <axis = 0> (f, i) y = Squeeze (g) }": "it takes some of the batch",
    "(float[1,4,3] x, int64[1,1] i) => (float[1,3] y) { c = Concat <axis = -1> (i, i) "
    "y = GatherND (x, c) }": "`c` is computed",
    "(float[1,4,3] x, int64[1,1] i) => (float[1,3] y) <int64[1,1] one = {1}> { "
    "c = Concat <axis = -1> (one, i) y = GatherND (x, c) }": "it takes some of the batch",
    "(float[1,2,4] x, int64[1] i) => (float[1,2,1] y) { y = Gather <axis = 2> (x, i) }": (
        "its operands hold the batch along different axes"
    ),
    "(float[1,4,3] x, int64[1,2] i) => (float[1,2,3] y) <int64[1] s = {2}> { r = Reshape (i, s) "
    "y = Gather <axis = 1> (x, r) }": "its operands hold the batch along different axes",
    "(float[3,1] x, float[1,2] c) => (float[1,2] y) <float[3,2] w> { "
    "y = Gemm <transA = 1> (x, w, c) }": "it sums over the batch",
    "(float[1,k] x) => (int64[2] s) { s = Shape (x) }": "the batch's among them",
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
