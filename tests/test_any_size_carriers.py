"""What becomes of dynamic sizes in operators that `test_any_size.py` has no network of."""

import pytest
from test_any_size import NAMES, Text, agrees, model

from surgeon.anysize import free_sizes
from surgeon.errors import SurgeonError

FREED: dict[str, Text] = {
    "a transposed convolution": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,3,a,b] y) <float[2,3,2,2] k> {{
        y = ConvTranspose <strides = [2, 2]> (x, k) }}"""
    ),
    "blocks of the plane": lambda h, w: (
        f"""(float[1,2,{4 * h},{4 * w}] x) => (float[1,8,a,b] y) {{
        y = SpaceToDepth <blocksize = 2> (x) }}"""
    ),
    "a norm of channels": lambda h, w: (
        f"""(float[1,6,{h},{w}] x) => (float[1,a,b,6] y) <float[6] s, float[6] b> {{
        t = Transpose <perm = [0, 2, 3, 1]> (x) y = LayerNormalization (t, s, b) }}"""
    ),
    "heads by Einsum": lambda h, w: (
        f"""(float[1,6,{h},{w}] x) => (float[1,2,3,a] y)
        <int64[4] g = {{1, 2, 3, {h * w}}}> {{ r = Reshape (x, g)
        s = Einsum <equation = "bhci,bhcj->bhij"> (r, r) a = Softmax (s)
        y = Einsum <equation = "bhij, bhcj -> bhci"> (a, r) }}"""
    ),
    "quantised": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,2,a,b] y)
        <float s = {{0.05}}, int8 z = {{3}}, float[2] c = {{0.05, 0.1}}, int8[2] o = {{0, 1}}> {{
        q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z)
        p = QuantizeLinear (d, c, o) y = DequantizeLinear (p, c, o) }}"""
    ),
    "samples at places that are computed": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,2,a,b] y) <float[2,2,1,1] k> {{
        c = Conv (x, k) t = Tanh (c) g = Transpose <perm = [0, 2, 3, 1]> (t)
        y = GridSample (x, g) }}"""
    ),
    "held between bounds that are no sizes": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,2,a,b] y) <float l = {{0}}, float h = {{6}}> {{
        y = Clip (x, l, h) }}"""
    ),
    "a product of rows and columns": lambda h, w: (
        f"""(float[1,1,{h},{w}] x) => (float[a,5] y)
        <int64[2] s = {{{h * w}, 1}}, float[1,5] m, float[5] c> {{
        r = Reshape (x, s) y = Gemm (r, m, c) }}"""
    ),
    "as many as there are already": lambda h, w: (
        f"""(float[1,2,{h},{w}] x, float[1,1,{h},{w}] m) => (float[1,2,a,b] y)
        <int64[4] s = {{1, 2, {h}, {w}}}> {{ e = Expand (m, s) y = Mul (x, e) }}"""
    ),
    "an axis of one taken away": lambda h, w: (
        f"""(float[1,1,{h},{w}] x) => (float[1,a,b] y) <int64[1] i = {{1}}> {{
        y = Squeeze (x, i) }}"""
    ),
    "a sixth beside twelve": lambda h, w: (
        f"""(float[1,2,{h - 5},{w}] x) => (float[1,2,a,b] y) <float t = {{0.16666667}}> {{
        y = Mul (x, t) }}"""
    ),
    "as many times as large as another, at any size": lambda h, w: (
        f"""(float[1,3,{2 * h},{2 * w}] x) => (float[1,3,a,b] y)
        <float[3,3,2,2] k, int64 l = {{3}}, int64[1] r = {{2}}, int64[1] e = {{4}},
        int64[2] n = {{1, 3}}, float two = {{2}}> {{
        c = Conv <strides = [2, 2]> (x, k) s = Shape (x) sc = Shape (c)
        w = Gather (s, l) wf = Cast <to = 1> (w) wc = Gather (sc, l) wcf = Cast <to = 1> (wc)
        ratio = Div (wf, wcf) p = Slice (sc, r, e) pf = Cast <to = 1> (p) q = Mul (pf, two)
        f = Floor (q) i = Cast <to = 7> (f) t = Concat <axis = 0> (n, i)
        u = Resize (c, , , t) y = Mul (u, ratio) }}"""
    ),
}
_PLACE = "(float[1,17,96,64] x) => ({}) <float[17,17,8,8] k, int64[3] s = {{1, 17, 96}}{}> {{ "
_PLACE += "c = Conv <strides = [8, 8]> (x, k) r = Reshape (c, s) "
_PLACE += "a = ArgMax <axis = 2, keepdims = 0> (r) {} }}"
_ASKED = "(float[1,3,24,20] x) => (float[1,3,24,20] y, float[1,3,24,20] z) <int64 l = {3}, "
_ASKED += "float[1,1,24,20] g, float h = {0.05}, int64[1] r = {2}, int64[1] e = {4}, "
_ASKED += "int64[2] n = {1, 3}, float two = {1}> { s = Shape (x) p = Slice (s, r, e) "
_ASKED += "pf = Cast <to = 1> (p) q = Mul (pf, two) f = Floor (q) i = Cast <to = 7> (f) "
_ASKED += "t = Concat <axis = 0> (n, i) z = Resize (x, , , t) "
_ASKED += "w = Gather (s, l) wf = Cast <to = 1> (w) ratio = Mul (wf, h) y = Mul (x, ratio) }"
REFUSED = {
    _PLACE.format("int64[1,17] y", ", int64 t = {8}", "y = Div (a, t)"): "`t` holds 8",
    _PLACE.format("int64[1,17] y", ", int64 t = {8}", "y = Mod (a, t)"): "`t` holds 8",
    _PLACE.format("float[1,17,2] y", ", float[96,2] t", "y = Gather (t, a)"): "a place in planes",
    _PLACE.format(
        "float[1,17,96] y",
        ", int64 d = {96}, float[2] v = {0, 1}",
        "y = OneHot <axis = -1> (a, d, v)",
    ): "a place in planes",
    "(float[1,3,9,8] x) => (float[1,3,1,1] y) <float t = {72}> "
    "{ m = GlobalAveragePool (x) y = Mul (m, t) }": "`t` holds 72",
    "(float[1,3,9,8] x) => (float[1,3,3] y) <int64[3] s = {1, 3, 72}, float t = {216}> "
    "{ a = Reshape (x, s) b = Transpose <perm = [0, 2, 1]> (a) m = MatMul (a, b) "
    "y = Div (m, t) }": "`t` holds 216",
    "(float[1,2,24,20] x) => (float[1,2,1,1] y) <float t = {6.1737862}> "
    "{ a = ReduceLogSumExp <axes = [2, 3]> (x) y = Sub (a, t) }": "`t` holds 6.17",
    "(float[1,1,24,20] x) => (float[1,1,24] y) <int64[1] c = {3}, float w = {0.10526316}> "
    "{ s = Softmax (x) q = ReduceSum <keepdims = 0> (s, c) y = Mul (q, w) }": "`w` holds 0.105",
    "(float[1,2,24,20] x) => (float[1,2,2,2] y) <float[1,4] r = {0, 0, 20, 24}, int64[1] i = {0}> "
    "{ y = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 2> (x, r, i) }": (
        "`r` may be for one size"
    ),
    "(float[1,3,9,8] x) => (float[1,3,1,1] y) <int64[1] a = {2}, int64[1] b = {3}, float t = {72}> "
    "{ s = ReduceSum (x, a) r = ReduceSum (s, b) y = Div (r, t) }": "`t` holds 72",
    "(float[1,3,9,8] x) => (float[1,3,3] y) <float t = {216}> "
    '{ m = Einsum <equation = "bchw,bdhw->bcd"> (x, x) y = Div (m, t) }': "`t` holds 216",
    "(float[1,3,24,24] x) => (float[1,3,24,24] y) <int64[4] s = {1, 3, 24, 24}> "
    "{ t = Transpose <perm = [0, 1, 3, 2]> (x) p = ReduceMean <axes = [3]> (t) "
    "y = Expand (p, s) }": "24, which it makes of one, may depend on the sizes",
    "(float[1,3,9,8] x) => (float[1,3,1,1] y) <float t = {72}> "
    "{ m = AveragePool <kernel_shape = [9, 8]> (x) y = Mul (m, t) }": "`t` holds 72",
    "(float[1,2,96,96] x) => (float[1,2,12,12] y) <float[2,2,8,8] k, float t = {0.18181818}> "
    "{ c = Conv <strides = [8, 8]> (x, k) y = Mul (c, t) }": "`t` holds 0.18",
    _ASKED: "`ratio` is computed of the sizes",
    "(float[1,3,24,20] x) => (float[20] y) <int64 z = {0}, int64 o = {1}, int64 l = {3}, "
    "float e = {19}> { s = Shape (x) w = Gather (s, l) r = Range (z, w, o) "
    "f = Cast <to = 1> (r) y = Div (f, e) }": "`y` is computed of the sizes alone",
    "(float[1,2,8,8] x) => (float[1,2,16,16] y) <float[2,2,3,3] k> "
    "{ y = ConvTranspose <strides = [2, 2], output_shape = [16, 16]> (x, k) }": "output_shape",
    "(float[1,2,8,9] x) => (float[1,2,8,9] y) <float[9] s> "
    "{ y = LayerNormalization (x, s) }": "its weights are for one size",
    "(float[1,2,8,8] x) => (float[1,2,8,8] y) <float[8] s, int8[8] z> "
    "{ q = QuantizeLinear <axis = 2> (x, s, z) y = DequantizeLinear <axis = 2> (q, s, z) }": (
        "its scales go along the sizes"
    ),
    "(float[1,2,8,8] x) => (float[1,2,8,8] y) <float[1,8,8,2] g> "
    "{ y = GridSample (x, g) }": "`g` may be for one size",
    "(float[1,2,24,24] x) => (float[1,2,24,24] y) <float z = {0}, float e = {23}, "
    "float[2,2,1,1] k> { c = Conv (x, k) y = Clip (c, z, e) }": "`e` holds 23",
    "(float[1,2,48,48] x) => (float[1,2] y) <float e = {23}, float[2,2,3,3] k> "
    "{ c = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, k) "
    "m = ReduceMax <axes = [2, 3], keepdims = 0> (c) y = Min (m, e) }": "`e` holds 23",
    "(float[1,2,8,8] x) => (float[1,2,8,8] y) "
    '{ y = Einsum <equation = "...ij,...ij->...ij"> (x, x) }': "leaves letters out",
    "(float[1,2,8,8] x) => (float[1,2,8,5] y) <float[8,5] m> "
    '{ y = Einsum <equation = "bcij,jk->bcik"> (x, m) }': "`j` of its equation is",
    "(float[1,2,8,8] x) => (float[1,3,8,8] y) <float[1,1,8,8] p> "
    "{ y = Concat <axis = 1> (x, p) }": "`p` has 8 beside the height (8)",
    "(float[1,2,8,8] x) => (float[1,2,24,8] y) <int64[4] s = {1, 1, 8, 1}> "
    "{ y = Tile (x, s) }": "it repeats the height (8) 8 times",
}


@pytest.mark.parametrize("text", FREED.values(), ids=FREED)
def test_a_file_gives_at_another_size_what_the_file_for_that_gives(text: Text) -> None:
    agrees(model(text(17, 25)), model(text(21, 33)))


@pytest.mark.parametrize(("text", "reason"), REFUSED.items(), ids=REFUSED.values())
def test_what_may_hang_on_the_size_is_named(text: str, reason: str) -> None:
    with pytest.raises(SurgeonError) as caught:
        free_sizes(model(text), NAMES)
    assert reason in caught.value.what
