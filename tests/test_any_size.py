"""Sizes of a model that was exported for one: dynamic where all that depends on them is known."""

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from command import run
from onnx import numpy_helper

import surgeon
from surgeon.anysize import carriers, free_sizes
from surgeon.errors import SurgeonError, VerifyError
from surgeon.runtime import Session

NAMES = ["depth", "height", "width"]
Text = Callable[[int, int], str]


def model(text: str, opset: int = 17) -> onnx.ModelProto:
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}')
    rng = np.random.default_rng(3)
    for value in proto.graph.value_info:  # declared, and given no values
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        array = rng.standard_normal(dims).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(array, value.name))
    del proto.graph.value_info[:]
    return proto


def with_constants(proto: onnx.ModelProto, **arrays: np.ndarray) -> onnx.ModelProto:
    for name, array in arrays.items():
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    return proto


def ran(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return session.run(None, feeds)


def agrees(before: onnx.ModelProto, other: onnx.ModelProto) -> onnx.ModelProto:
    """The file freed, which computes of another size what the file for that does."""
    freed, tried = free_sizes(before, NAMES)
    assert len(tried) == 3
    onnx.checker.check_model(freed.model, full_check=True)
    rng = np.random.default_rng(1)
    feeds = {}
    for value in other.graph.input:
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        feeds[value.name] = rng.standard_normal(dims).astype(np.float32)
    for found, wanted in zip(ran(freed.model, feeds), ran(other, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    return freed.model


FREED: dict[str, Text] = {
    "a convolution and a pool": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,3,a,b] y)
        <float[3,2,3,3] k> {{ c = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, k)
        y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c) }}"""
    ),
    "planes as rows, and back": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,2,a,b] y)
        <int64[3] r = {{1, 2, {h * w}}}, int64[4] p = {{1, 2, {h}, {w}}}> {{
        a = Reshape (x, r) t = Transpose <perm = [0, 2, 1]> (a) s = Softmax <axis = 1> (t)
        u = Transpose <perm = [0, 2, 1]> (s) y = Reshape (u, p) }}"""
    ),
    "flattened, and back": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,2,a,b] y)
        <int64[4] p = {{1, 2, {h}, {w}}}> {{
        f = Flatten <axis = 2> (x) e = Exp (f) y = Reshape (e, p) }}"""
    ),
    "groups of channels": lambda h, w: (
        f"""(float[1,8,{h},{w}] x) => (float[1,8,a,b] y)
        <int64[3] g = {{1, 4, {2 * h * w}}}, int64[4] p = {{1, 8, {h}, {w}}}, float[4] s,
         float[4] b> {{ r = Reshape (x, g) n = InstanceNormalization (r, s, b)
        y = Reshape (n, p) }}"""
    ),
    "shuffled channels": lambda h, w: (
        f"""(float[1,4,{h},{w}] x) => (float[1,4,a,b] y)
        <int64[5] g = {{1, 2, 2, {h}, {w}}}, int64[4] p = {{1, 4, {h}, {w}}}> {{
        r = Reshape (x, g) t = Transpose <perm = [0, 2, 1, 3, 4]> (r) y = Reshape (t, p) }}"""
    ),
    "rows of pixels become twice as many": lambda h, w: (
        f"""(float[1,4,{h},{w}] x)
        => (float[1,1,a,b] y) <int64[6] g = {{1, 1, 2, 2, {h}, {w}}},
         int64[4] p = {{1, 1, {2 * h}, {2 * w}}}> {{ r = Reshape (x, g)
        t = Transpose <perm = [0, 1, 4, 2, 5, 3]> (r) y = Reshape (t, p) }}"""
    ),
    "heads": lambda h, w: (
        f"""(float[1,6,{h},{w}] x) => (float[1,2,a,b] y)
        <int64[4] g = {{1, 2, 3, {h * w}}}> {{ r = Reshape (x, g)
        t = Transpose <perm = [0, 1, 3, 2]> (r) y = MatMul (t, r) }}"""
    ),
    "resized to another's size": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,2,a,b] y)
        <int64[4] s = {{1, 2, {h}, {w}}}> {{
        m = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)
        r = Resize <mode = "nearest"> (m, , , s) y = Add (r, x) }}"""
    ),
    "corners aligned": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,2,a,b] y)
        <int64[4] s = {{1, 2, {h}, {w}}}, float[2,2,3,3] k> {{
        m = Conv <strides = [2, 2]> (x, k)
        y = Resize <mode = "linear", coordinate_transformation_mode = "align_corners">
        (m, , , s) }}"""
    ),
    "one place over the plane": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,2,a,b] y)
        <int64[4] s = {{1, 2, {h}, {w}}}> {{ m = GlobalAveragePool (x)
        r = Resize <mode = "nearest"> (m, , , s) y = Add (r, x) }}"""
    ),
    "a pool of the whole plane": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,2,a,b] y)
        {{ m = AveragePool <kernel_shape = [{h}, {w}], strides = [{h}, {w}]> (x)
        y = Mul (m, x) }}"""
    ),
    "expanded over the plane": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,2,a,b] y)
        <int64[4] s = {{1, 2, {h}, {w}}}> {{ m = ReduceMax <axes = [2, 3]> (x)
        e = Expand (m, s) y = Sub (x, e) }}"""
    ),
    "tiled over the plane": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,4,a,b] y)
        <int64[4] s = {{1, 1, {h}, {w}}}> {{ m = GlobalMaxPool (x) e = Tile (m, s)
        y = Concat <axis = 1> (e, x) }}"""
    ),
    "a Slice to the end": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,2,a,b] y)
        <int64[1] s = {{1}}, int64[1] e = {{{h}}}, int64[1] a = {{2}}> {{
        y = Slice (x, s, e, a) }}"""
    ),
    "a Slice to near the end": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,2,a,b] y)
        <int64[1] s = {{2}}, int64[1] e = {{{5 * h - 3}}}, int64[1] a = {{2}},
         float[4] f = {{1, 1, 5, 5}}> {{
        r = Resize <mode = "nearest"> (x, , f) y = Slice (r, s, e, a) }}"""
    ),
    "the same all over the plane": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,2,a,b] y)
        <int64[4] s = {{1, 2, {h}, {w}}}> {{
        z = ConstantOfShape <value = float[1] {{0.5}}> (s) y = Add (x, z) }}"""
    ),
    "squeezed of axes that are not named": lambda h, w: (
        f"""(float[1,2,{h},{w}] x)
        => (float[2,a,b] y) {{ y = Squeeze (x) }}"""
    ),
    "squeezed of no axis": lambda h, w: (
        f"""(float[2,2,{h},{w}] x)
        => (float[2,2,a,b] y) {{ y = Squeeze (x) }}"""
    ),
    "two images": lambda h, w: (
        f"""(float[1,2,{h},{w}] x, float[1,1,{h},{w}] m)
        => (float[1,2,a,b] y) {{ y = Mul (x, m) }}"""
    ),
    "channels last": lambda h, w: (
        f"""(float[1,{h},{w},3] x) => (float[1,3,a,b] y)
        {{ t = Transpose <perm = [0, 3, 1, 2]> (x) y = Relu (t) }}"""
    ),
    "sizes that are asked for": lambda h, w: (
        f"""(float[1,2,{h},{w}] x) => (float[1,a,2] y)
        <int64[1] i = {{3}}, int64[1] j = {{2}}, int64[1] one = {{1}}, int64[1] two = {{2}}> {{
        s = Shape (x) b = Gather (s, i) a = Gather (s, j) n = Mul (a, b)
        z = Concat <axis = 0> (one, n, two) t = Transpose <perm = [0, 2, 3, 1]> (x)
        y = Reshape (t, z) }}"""
    ),
    "numbers beside sizes that are asked for": lambda h, w: (
        f"""(float[1,2,{h},{w}] x)
        => (float[1,2,c] y) <int64[1] i = {{3}}, int64[1] one = {{1}}, int64[1] two = {{2}},
         int64[1] h = {{{h}}}> {{ s = Shape (x) b = Gather (s, i)
        n = Mul (b, h) z = Concat <axis = 0> (one, two, n) y = Reshape (x, z) }}"""
    ),
}


@pytest.mark.parametrize("text", FREED.values(), ids=FREED)
def test_a_file_gives_at_another_size_what_the_file_for_that_gives(text: Text) -> None:
    agrees(model(text(17, 25)), model(text(21, 33)))


def test_a_line_has_one_size() -> None:
    def text(n: int) -> str:
        return f"""(float[1,1,{n}] x) => (float[1,a,4] y)
        <float[4,1,10] k, float[1,16,4] w, float[1,16,4] r> {{
        c = Conv <strides = [5]> (x, k) t = Transpose <perm = [2, 0, 1]> (c)
        s, h, e = LSTM <hidden_size = 4> (t, w, r) q = Squeeze (s) y = Unsqueeze (q, z) }}"""

    def of(n: int) -> onnx.ModelProto:
        return with_constants(model(text(n)), z=np.array([0], np.int64))

    agrees(of(100), of(135))


def head(h: int, w: int, *, normalised: bool = False) -> onnx.ModelProto:
    """The head of a detector: places of two levels, and their strides."""
    text = f"""(float[1,3,{h},{w}] x) => (float[1,2,n] y)
        <float[2,3,3,3] k, float[2,2,3,3] l, int64[3] r = {{1, 2, -1}}> {{
        a = Conv <strides = [4, 4], pads = [1, 1, 1, 1]> (x, k)
        b = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (a, l)
        p = Reshape (a, r) q = Reshape (b, r) c = Concat <axis = 2> (p, q)
        s = Sub (places, c) y = Mul (s, strides) }}"""
    places, strides = [], []
    for stride in (4, 8):
        rows, columns = np.mgrid[: h // stride, : w // stride].astype(np.float32) + 0.5
        if normalised:
            rows, columns = rows / (h // stride), columns / (w // stride)
        places.append(np.stack([columns, rows]).reshape(1, 2, -1))
        strides.append(np.full((1, places[-1].shape[2]), stride, np.float32))
    return with_constants(
        model(text), places=np.concatenate(places, 2), strides=np.concatenate(strides, 1)
    )


def test_places_of_a_detector_are_computed() -> None:
    freed = agrees(head(64, 64), head(96, 128))
    assert {"places", "strides"}.isdisjoint(t.name for t in freed.graph.initializer)
    assert sum(node.op_type == "Range" for node in freed.graph.node) == 4


def test_places_in_shares_of_the_image_are_left() -> None:
    with pytest.raises(SurgeonError, match="`places` has 320 elements along 320, of the height"):
        free_sizes(head(64, 64, normalised=True), NAMES)


def test_a_grid_of_anchors_beside_a_plane() -> None:
    def of(h: int, w: int) -> onnx.ModelProto:
        text = f"""(float[1,6,{h},{w}] x) => (float[1,n,2] y) <float[6,6,2,2] k,
            int64[5] g = {{1, 3, 2, {h // 2}, {w // 2}}}, int64[3] r = {{1, -1, 2}}> {{
            c = Conv <strides = [2, 2]> (x, k) a = Reshape (c, g)
            t = Transpose <perm = [0, 1, 3, 4, 2]> (a) b = Add (t, grid) m = Mul (b, anchors)
            y = Reshape (m, r) }}"""
        rows, columns = np.mgrid[: h // 2, : w // 2].astype(np.float32) - 0.5
        grid = np.broadcast_to(np.stack([columns, rows], 2), (1, 3, h // 2, w // 2, 2))
        anchors = np.arange(6, dtype=np.float32).reshape(1, 3, 1, 1, 2) + 10
        anchors = np.broadcast_to(anchors, grid.shape)
        return with_constants(model(text), grid=grid, anchors=anchors)

    agrees(of(32, 32), of(40, 64))


def test_steps_are_as_large_as_the_network_wants() -> None:
    text = """(float[1,1,48,50] x) => (float[1,1,a,b] y) <float[1,1,3,3] k> {
        c = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, k)
        y = Conv <strides = [3, 1], pads = [1, 1, 1, 1]> (c, k) }"""
    freed, _ = free_sizes(model(text), NAMES)
    assert [(size.name, size.number, size.step) for size in freed.sizes] == [
        ("height", 48, 6),
        ("width", 50, 2),
    ]


REFUSED = {
    "(float[1,2,8,8] x) => (float[1,8,8] y) <int64[3] s = {1, 8, 8}> "
    "{ m = ReduceMax <axes = [1, 2, 3], keepdims = 0> (x) y = Expand (m, s) }": (
        "8, which it makes of one, may depend on the sizes"
    ),
    "(float[1,2,8,8] x) => (float[1,2,64] y) <float c = {0.015625}, int64[3] s = {1, 2, 64}> "
    "{ r = Reshape (x, s) t = Transpose <perm = [0, 2, 1]> (r) m = MatMul (r, t) "
    "n = MatMul (m, r) y = Mul (n, c) }": "`c` holds 0.015625",
    "(float[1,2,2,2] x) => (float[1,2,1,1] y) <float[1,2,1,1] p, float[2,2,2,2] k> "
    "{ c = Conv <strides = [2, 2]> (x, k) y = Add (c, p) }": "`p` may be as long as 1, of the",
    "(float[1,2,8,8] x) => (float[1,5] y) <float[128,5] w> "
    "{ f = Flatten (x) y = MatMul (f, w) }": "`w` has 128 rows or columns, which depend on the 128",
    "(float[1,2,8,8] x) => (float[1,5] y) <float[5,128] w> "
    "{ f = Flatten (x) y = Gemm <transB = 1> (f, w) }": "`w` has 128 rows or columns",
    "(float[1,2,8,8] x) => (float[1,2,8,8] y) <float[2,8,8] p> { y = Add (x, p) }": "`p` has 8",
    "(float[1,2,9,9] x) => (float[1,2] y) <float c = {81}> "
    "{ s = ReduceSum <axes = [2, 3], keepdims = 0> (x) y = Div (s, c) }": "`c` holds 81",
    "(float[1,2,9,9] x) => (float[1,2] y) <float c = {1.0125}> "
    "{ m = ReduceMean <axes = [2, 3], keepdims = 0> (x) y = Mul (m, c) }": "`c` holds 1.0125",
    "(float[1,3,8,12] x) => (float[1,3] y) <float c = {0.10206207}> "
    "{ s = ReduceL2 <axes = [2, 3], keepdims = 0> (x) y = Mul (s, c) }": "`c` holds 0.102062",
    "(float[1,2,24,24] x) => (float[1,2,24,24] y) <float z = {0}, float e = {23}> "
    "{ m = Mul (x, e) y = Clip (m, z, e) }": "`e` holds 23",
    "(float[1,2,24,24] x) => (float[1,2,6,6] y) "
    "{ y = AveragePool <kernel_shape = [4, 4], strides = [4, 4]> (x) }": "share 24 among 6",
    "(float[1,2,16,16] x) => (float[1,2,8,8] y) "
    "{ y = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (x) }": "makes 8 of any size",
    "(float[1,2,8,8] x) => (float[1,2,1,1] y) "
    "{ y = AveragePool <kernel_shape = [8, 8]> (x) }": "has a window of the whole plane",
    "(float[1,2,8,8] x) => (float[1,2,2,4,2,4] y) <int64[6] s = {1, 2, 2, 4, 2, 4}> "
    "{ y = Reshape (x, s) }": "2 of its sizes is a part of the height (8)",
    "(float[1,2,8,8] x) => (float[1,2,4,4] y) <int64[4] s = {1, 2, 4, 4}> "
    "{ y = Resize (x, , , s) }": "a part of it, or of any",
    "(float[1,2,8,8] x) => (float[1,2,12,12] y) <float[4] s = {1, 1, 1.6, 1.6}> "
    "{ y = Resize (x, , s) }": "its factor 1.6 may depend on the height (8)",
    "(float[1,2,24,24] x) => (float[1,2,12,24] y) <int64[1] s = {0}, int64[1] e = {12}, "
    "int64[1] a = {2}> { y = Slice (x, s, e, a) }": "12 of its bounds may depend on the height",
    "(float[1,2,8,8] x) => (float[1,2,8] y) <int64 i = {4}> "
    "{ y = Gather <axis = 2> (x, i) }": "picks elements that may depend",
    "(float[1,2,8,8] x) => (float[1,2,8,12] y) <int64[8] p = {0, 0, 0, 4, 0, 0, 0, 4}> "
    '{ y = Pad <mode = "reflect"> (x, p) }': "a part of that",
    "(float[1,2,8,8] x) => (float[1,2,4,8] y, float[1,2,4,8] z) { y, z = Split <axis = 2> (x) }": (
        "its parts may depend on the sizes"
    ),
    "(float[1,2,8,8] x) => (float[1,2,3,8] y, int64[1,2,3,8] i) <int64[1] k = {3}> "
    "{ y, i = TopK <axis = 2> (x, k) }": "of this operator that is not known",
    "(float[1,2,9,7] x) => (float[1,2,7,7] y) { t = Transpose <perm = [0, 1, 3, 2]> (x) "
    "y = MatMul (t, x) }": "",
    "(float[1,2,8,8] x) => (float[1,2,8,8] y) { t = Transpose <perm = [0, 1, 3, 2]> (x) "
    "y = Add (t, x) }": "beside the height (8)",
    "(float[1,2,8,8] x, bool c) => (float[1,2,8,8] y) { y = If (c) <then_branch = t () => "
    "(float[1,2,8,8] r) { r = Neg (x) }, else_branch = u () => (float[1,2,8,8] r) "
    "{ r = Exp (x) }> }": "its bodies read what depends on the sizes",
    "(float[1,2,h,8] x) => (float[1,2,h,8] y) { y = Relu (x) }": "are dynamic as they are",
    "(float[3] x) => (float[3] y) { y = Relu (x) }": "no input has planes of fixed sizes",
    "(float[1,height,8,8] x) => (float[1,height,8,8] y) { y = Relu (x) }": "called `height`",
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.items(), ids=REFUSED.values())
def test_what_may_hang_on_the_size_is_named_and_nothing_is_done(text: str, reason: str) -> None:
    if not reason:
        free_sizes(model(text), NAMES)
        return
    with pytest.raises(SurgeonError) as caught:
        free_sizes(model(text), NAMES)
    assert reason in caught.value.what


def test_a_mistake_is_found_by_running_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surgeon.anysize.CARRIERS", {**carriers.CARRIERS, "MatMul": carriers.boxes})
    text = "(float[1,1,8,9] x) => (float[1,1,8,2] y) <float[9,2] w> { y = MatMul (x, w) }"
    with pytest.raises(SurgeonError, match="the result does not run at"):
        free_sizes(model(text), NAMES)


def test_sizes_at_which_a_window_finds_no_room_are_not_promised() -> None:
    text = """(float[1,1,64,48] x) => (float[1,1,h,w] y) <float[1,1,7,5] u, float[1,1,5,5] v> {
        a = Conv (x, u) b = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a) y = Conv (b, v)
    }"""
    freed, _ = free_sizes(model(text), NAMES)
    assert freed.least == (16, 14)
    for sizes, runs in (((16, 14), True), ((14, 14), False), ((16, 12), False)):
        feeds = {"x": np.zeros((1, 1, *sizes), np.float32)}
        with nullcontext() if runs else pytest.raises(SurgeonError):
            Session(freed.model).run(feeds)


def test_the_report_says_what_changed_and_what_was_compared(tmp_path) -> None:
    path, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(model(FREED["a convolution and a pool"](64, 96)), path)
    done = run("apply", "any-size", "clean", path, out)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "the file is for 64 x 96; the result computes the same layers at sizes" in said
    assert "differ from these by multiples of 4, from 8 x 12 on" in said
    assert "at 68 x 72, 48 x 124, 84 x 100 it runs" in said
    dims = onnx.load(out).graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == [1, 2, "height", "width"]
    again = tmp_path / "again.onnx"
    done = run("apply", "clean", out, again, "--shape", "x=1,2,32,48")
    assert done.exit_code == 0, done.output
    dims = onnx.load(again).graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [1, 3, 8, 12]


def test_sizes_are_named_by_shape() -> None:
    text = """(float[1,1,16,64] x) => (float[b,1,16] y) <int64[3] s = {1, 16, 64}> {
        r = Reshape (x, s) y = Transpose <perm = [2, 0, 1]> (r) }"""
    result = surgeon.apply(model(text), "any-size", shape={"x": (1, 1, 16, "steps")}, strict=True)
    dims = result.model.to_proto().graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == [1, 1, 16, "steps"]
    assert result.report.status == "equivalent"


def test_a_size_that_can_be_freed_alone_is_told() -> None:
    text = """(float[1,4,16,64] x) => (float[64,1,5] y) <float[64,5] w, int64[3] s = {1, 64, 64}> {
        r = Reshape (x, s) t = Transpose <perm = [2, 0, 1]> (r) y = MatMul (t, w) }"""
    with pytest.raises(SurgeonError) as caught:
        free_sizes(model(text), NAMES)
    assert caught.value.what.endswith("; the width alone can be freed: `--shape x=1,4,16,width`")


def test_it_wants_to_be_allowed(tmp_path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("surgeon: 1\nname: mine\nsteps:\n  - free-sizes: [h, w]\n")
    proto = model("(float[1,1,4,4] x) => (float[1,1,4,4] y) { y = Relu (x) }")
    result = surgeon.apply(proto, recipe)
    assert "allow it with `--allow contract`" in result.report.failures[0]
    result = surgeon.apply(proto, recipe, allow=["contract"])
    dims = result.model.to_proto().graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == [1, 1, "h", "w"]


def test_a_batch_that_is_dynamic_stays() -> None:
    text = """(float[b,2,8,8] x) => (float[b,2,c] y) <int64[3] s = {-1, 2, 64}> {
        y = Reshape (x, s) }"""
    freed, _ = free_sizes(model(text), NAMES)
    (found,) = ran(freed.model, {"x": np.zeros((3, 2, 5, 7), np.float32)})
    assert found.shape == (3, 2, 35)


def test_a_fixed_dimension_is_told_of_the_recipe(tmp_path) -> None:
    path = tmp_path / "in.onnx"
    onnx.save(model("(float[1,1,4,4] x) => (float[1,1,4,4] y) { y = Relu (x) }"), path)
    done = run("apply", "clean", path, tmp_path / "o.onnx", "--shape", "x=1,1,8,8")
    assert done.exit_code == 2
    assert "the recipe `any-size` makes sizes dynamic" in " ".join(done.output.split())


def test_dynamic_sizes_that_are_numbers_inside_are_freed_where_they_are_told() -> None:
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[1,2,h,w] x) => (float[1,4,h,w] y) <int64[4] s = {1, 2, 32, 48}> {
        p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
        r = Resize
          <coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (p, , , s)
        y = Concat <axis = 1> (x, r) }""")
    assert "`--shape x=...` tells them" in surgeon.apply(proto, "any-size").report.failures[0]
    result = surgeon.apply(proto, "any-size", shape={"x": (1, 2, 32, 48)}, strict=True)
    assert result.report.status == "equivalent"
    dims = result.model.to_proto().graph.input[0].type.tensor_type.shape.dim
    assert all(dim.dim_param for dim in dims[2:])


def test_sizes_that_were_told_to_be_freed_and_were_not_are_not_fixed_in_the_file() -> None:
    proto = model("(float[n,2,h,w] x) => (float[n,2,h,w] y) <float[32,48] t> { y = Add (x, t) }")
    with pytest.raises(VerifyError) as caught:
        surgeon.apply(proto, "any-size", "clean", shape={"x": ("n", 2, 32, 48)})
    said = "dimension 2 of `x` was said to be 32 so that step `free-sizes` makes it any, "
    assert caught.value.what.startswith(said)
