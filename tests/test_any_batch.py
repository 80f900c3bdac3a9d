"""The batch of a model that was exported for one: made dynamic where items are computed apart."""

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from command import run
from onnx import numpy_helper

import surgeon
from surgeon.anybatch import carriers, free_batch
from surgeon.anybatch.flow import Flow
from surgeon.errors import SurgeonError, VerifyError


def model(text: str, opset: int = 17) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}')


def ran(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return session.run(None, feeds)


FREED = {
    "images": """(float[1,2,5,5] x) => (float[1,3,2,2] y)
        <float[3,2,3,3] w> { c = Conv (x, w) y = MaxPool <kernel_shape = [2, 2]> (c) }""",
    "flattened": "(float[1,2,5] x) => (float[1,10] y) { y = Flatten (x) }",
    "a bias without the batch": """(float[1,2,3] x) => (float[1,2,3] y)
        <float[2,3] b> { y = Add (x, b) }""",
    "a table for the windows of each": """(float[1,4,2,3] x) => (float[4,2,3] y)
        <float[4,1,3] t, int64[3] s = {-1, 2, 3}> { r = Reshape (x, s) y = Add (t, r) }""",
    "a token in front of each window": """(float[1,4,2,3] x) => (float[4,3,3] y)
        <float[4,1,3] t, int64[3] s = {-1, 2, 3}> {
        r = Reshape (x, s) y = Concat <axis = 1> (t, r) }""",
    "a token with its place, once for each window": """(float[1,8,3] x) => (float[4,3,3] y)
        <float[1,1,3] t, float[1,9,3] p, int64[1] zero = {0}, int64[1] one = {1},
         int64[1] last = {-8}, int64[1] end = {9223372036854775807},
         int64[3] four = {4, 1, 1}, int64[3] s = {4, 2, 3}> {
        c = Concat <axis = 1> (t, x) q = Mul (p, c) a = Sub (q, p)
        f = Slice (a, zero, one, one) b = Slice (a, last, end, one)
        r = Tile (f, four) w = Reshape (b, s) y = Concat <axis = 1> (r, w) }""",
    "of the type of what has the batch": """(float[1,2,3] x) => (float[1,2,3] y)
        <int32[3] b> { c = CastLike (b, x) d = CastLike (x, c) y = Mul (d, c) }""",
    "a product of two": """(float[1,2,3] x, float[1,3,2] z) => (float[1,2,2] y)
        { y = MatMul (x, z) }""",
    "rows by a vector, and a vector by columns": """(float[1,2,3] x) => (float[1,2] y, float[1,3] z)
        <float[3] v, float[2] w> { y = MatMul (x, v) z = MatMul (w, x) }""",
    "a vector by columns of all items": """(float[1,3] x) => (float[1] y)
        <float[3] v> { t = Transpose (x) y = MatMul (v, t) }""",
    "a fully connected layer": """(float[1,3] x) => (float[1,2] y)
        <float[2,3] w, float[2] b> { y = Gemm <transB = 1> (x, w, b) }""",
    "squeezed and unsqueezed": """(float[1,3,1] x) => (float[1,1,3] y)
        <int64[1] two = {2}, int64[1] one = {1}> { s = Squeeze (x, two) y = Unsqueeze (s, one) }""",
    "squeezed of axes that are not named": """(float[2,3,1] x) => (float[2,3] y)
        { y = Squeeze (x) }""",
    "a table's rows": """(int64[1,4] x) => (float[1,4,2] y)
        <float[3,2] t> { y = Gather (t, x) }""",
    "one of each": """(float[1,4,2] x) => (float[1,2] y)
        <int64 i = {1}> { y = Gather <axis = 1> (x, i) }""",
    "a part of each": """(float[1,4] x) => (float[1,2] y)
        <int64[1] s = {1}, int64[1] e = {3}, int64[1] a = {1}> { y = Slice (x, s, e, a) }""",
    "padded": """(float[1,3] x) => (float[1,5] y)
        <int64[4] p = {0, 1, 0, 1}> { y = Pad (x, p) }""",
    "expanded": """(float[1,1,3] x) => (float[1,4,3] y)
        <int64[3] s = {1, 4, 3}> { y = Expand (x, s) }""",
    "tiled": "(float[1,3] x) => (float[1,6] y) <int64[2] r = {1, 2}> { y = Tile (x, r) }",
    "resized to a size": """(float[1,1,2,2] x) => (float[1,1,4,4] y)
        <int64[4] s = {1, 1, 4, 4}> { y = Resize <mode = "nearest"> (x, , , s) }""",
    "resized by a factor": """(float[1,1,2,2] x) => (float[1,1,4,4] y)
        <float[4] s = {1, 1, 2, 2}> { y = Resize <mode = "nearest"> (x, , s) }""",
    "an LSTM with states": """(float[1,3,2] x) => (float[3,1,1,2] y)
        <float[1,8,2] w, float[1,8,2] r, float[1,1,2] h, int64[3] p = {0, 1, 2}> {
        t = Transpose <perm = [1, 0, 2]> (x)
        y, a, b = LSTM <hidden_size = 2> (t, w, r, , , h, h) }""",
    "sums of letters": """(float[1,2,3] x) => (float[1,2,4] y)
        <float[3,4] w> { y = Einsum <equation = "bij,jk->bik"> (x, w) }""",
    "more than one to begin with": """(float[2,3] x) => (float[6] y)
        <int64[1] s = {6}> { y = Reshape (x, s) }""",
    "its largest": """(float[1,5] x) => (float[1,2] y, int64[1,2] i)
        <int64[1] k = {2}> { y, i = TopK (x, k) }""",
    "normalised": """(float[1,2,4] x) => (float[1,2,4] y)
        <float[4] s> { y = LayerNormalization (x, s) }""",
    "put at places": """(float[1,3,4] x, float[1,2] z) => (float[1,3,4] y)
        <int64[1,2,3] i = {0, 1, 2, 0, 2, 3}> { y = ScatterND (x, i, z) }""",
    "rows that all share, put at places": """(float[1,3,4] x) => (float[1,3,4] y)
        <int64[2,2] i = {0, 1, 0, 2}, float[2,4] u> { y = ScatterND (x, i, u) }""",
    "put into what all share": """(float[1,2] x) => (float[1,3] y)
        <float[1,3] d, int64[1,2,2] i = {0, 0, 0, 2}> { y = ScatterND (d, i, x) }""",
    "added where they are put": """(float[1,3] x, float[1,2] z) => (float[1,3] y)
        <int64[1,2,2] i = {0, 1, 0, 1}> { y = ScatterND <reduction = "add"> (x, i, z) }""",
    "rows of all items, put at places": """(float[1,3] x) => (float[3,1] y)
        <int64[2,1] i = {0, 2}, float[2,1] u> { t = Transpose (x) y = ScatterND (t, i, u) }""",
    "rows of all items, put into what all share": """(float[1,2] x) => (float[3,1] y)
        <int64[2,1] i = {0, 2}, float[3,1] d> { t = Transpose (x) y = ScatterND (d, i, t) }""",
    "taken from places": """(float[1,3,4] x) => (float[1,2] y)
        <int64[1,2,3] i = {0, 1, 2, 0, 2, 3}> { y = GatherND (x, i) }""",
    "rows taken from places": """(float[1,3,4] x) => (float[1,2,4] y)
        <int64[1,2,2] i = {0, 2, 0, 1}> { y = GatherND (x, i) }""",
    "rows of all items taken": """(float[1,3] x) => (float[2,1] y)
        <int64[2,1] i = {0, 2}> { t = Transpose (x) y = GatherND (t, i) }""",
    "elements put where all share it": """(float[1,3] x) => (float[1,3] y)
        <int64[1,2] i = {0, 2}, float[1,2] u> { y = ScatterElements <axis = 1> (x, i, u) }""",
    "elements taken where all share it": """(float[1,3] x) => (float[1,2] y)
        <int64[1,2] i = {0, 2}> { y = GatherElements <axis = 1> (x, i) }""",
    "boxes in rows of all places": """(float[1,4,2,3] x) => (float[12,2] y) <int64[2] s = {-1, 2}> {
        t = Transpose <perm = [2, 3, 0, 1]> (x) y = Reshape (t, s) }""",
    "scores behind a sigmoid": """(float[1,4,2,3] x) => (float[12,2] y)
        <int64[2] s = {-1, 2}>
        { t = Transpose <perm = [2, 3, 0, 1]> (x) r = Reshape (t, s) y = Sigmoid (r) }""",
    "rows that are given out on the way": """(float[1,4,2,3] x) => (float[24,1] y, float[24,1] z)
        <int64[2] s = {-1, 1}>
        { t = Transpose <perm = [2, 3, 0, 1]> (x) y = Reshape (t, s) z = Sigmoid (y) }""",
    "rows that are read twice": """(float[1,4,2,3] x) => (float[24,1] y, float[24,1] z)
        <int64[2] s = {-1, 1}> {
        t = Transpose <perm = [2, 3, 0, 1]> (x) r = Reshape (t, s) y = Sigmoid (r) z = Exp (r) }""",
    "a constant of one item, once for each": """(float[3,2,4] x) => (float[3,2,4] y)
        <float[1,2,4] t, int64[3] r = {3, 1, 1}> { c = Tile (t, r) y = Add (c, x) }""",
    "an input that all share, once for each": """(float[3,2,4] x, float[2,4] m) => (float[3,2,4] y)
        <int64[3] s = {3, 2, 4}> { c = Expand (m, s) y = Mul (x, c) }""",
    "an input that is spread along other axes alone": """(float[3,2,4] x, float[1,2,1] m)
        => (float[3,2,4] y) <int64[2] s = {1, 4}> { c = Expand (m, s) y = Mul (x, c) }""",
    "one of it in front of each": """(float[3,2,4] x, float[1,4] m) => (float[3,3,4] y)
        <int64[3] s = {3, 1, 4}> { c = Expand (m, s) y = Concat <axis = 1> (c, x) }""",
    "matrices that are the same for each": """(float[3,2,4] x, float[4,2] m) => (float[3,2,2] y)
        <int64[3] s = {3, 4, 2}> { c = Expand (m, s) y = MatMul (x, c) }""",
    "a bias for each row": """(float[3,2] x, float[1,4] m) => (float[3,4] y)
        <float[2,4] w, int64[2] s = {3, 4}> { c = Expand (m, s) y = Gemm (x, w, c) }""",
    "what all share beside it": """(float[1,2] x, float[3,4] z) => (float[1,2] y, float[3,4] w)
        { y = Relu (x) w = Neg (z) }""",
}


def with_weights(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The same, with numbers for what the text declares and gives no values."""
    rng = np.random.default_rng(3)
    for value in proto.graph.value_info:
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        array = rng.standard_normal(dims).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(array, value.name))
    del proto.graph.value_info[:]
    return proto


@pytest.mark.parametrize("text", FREED.values(), ids=FREED)
def test_items_are_computed_as_each_by_itself(text: str) -> None:
    items_agree(with_weights(model(text)))


def items_agree(before: onnx.ModelProto) -> None:
    after = free_batch(before, "batch", check=False)
    onnx.checker.check_model(after, full_check=True)
    size = before.graph.input[0].type.tensor_type.shape.dim[0].dim_value
    rng = np.random.default_rng(1)
    feeds: dict[str, np.ndarray] = {}
    shared = set()
    for value in before.graph.input:
        dims = [dim.dim_value or 4 for dim in value.type.tensor_type.shape.dim]
        if dims[0] == size:
            dims[0] = 3 * size
        else:
            shared.add(value.name)
        ints = value.type.tensor_type.elem_type == onnx.TensorProto.INT64
        array = rng.integers(0, 3, dims) if ints else rng.standard_normal(dims).astype(np.float32)
        feeds[value.name] = array
    found = ran(after, feeds)
    groups = [
        ran(
            before,
            {
                name: array if name in shared else array[size * index : size * (index + 1)]
                for name, array in feeds.items()
            },
        )
        for index in range(3)
    ]
    for place, array in enumerate(found):
        each = [group[place] for group in groups]
        if array.shape == each[0].shape:
            np.testing.assert_array_equal(array, each[2])
            continue
        (axis,) = (at for at, size in enumerate(array.shape) if size != each[0].shape[at])
        np.testing.assert_allclose(array, np.concatenate(each, axis), rtol=1e-5, atol=1e-6)


COPIES = {
    "(float[2,2,4] x) => (float[2,2,4] y) <float[2,2,4] c> { y = Add (c, x) }": "Add",
    "(float[2,1,4] x) => (float[2,3,4] y) <float[2,2,4] c> { y = Concat <axis = 1> (x, c) }": "Cat",
    "(float[2,4,3] x) => (float[2,2,3] y) <float[2,2,4] c> { y = MatMul (c, x) }": "MatMul",
    "(float[2,3] x) => (float[2,4] y) <float[3,4] w, float[2,4] c> { y = Gemm (x, w, c) }": "Gemm",
    "(float[2,6,2,3] x) => (float[4,6,3] y) <float[4,6,3] c, int64[3] s = {-1, 6, 3}> "
    "{ t = Transpose <perm = [0, 2, 1, 3]> (x) r = Reshape (t, s) y = Add (r, c) }": "windows",
}


@pytest.mark.parametrize("text", COPIES, ids=COPIES.values())
def test_copies_of_one_constant_are_one_for_any_batch(text: str) -> None:
    before = with_weights(model(text))
    (copies,) = (tensor for tensor in before.graph.initializer if tensor.name == "c")
    array = numpy_helper.to_array(copies)
    half = array[: len(array) // 2]
    copies.CopyFrom(numpy_helper.from_array(np.concatenate([half, half]), "c"))
    items_agree(before)
    assert "c" not in {tensor.name for tensor in free_batch(before, "b").graph.initializer}
    other = array.copy()
    other[-1] = other[0] + 1
    copies.CopyFrom(numpy_helper.from_array(other, "c"))
    with pytest.raises(SurgeonError, match="along the batch, and not the same for each item"):
        free_batch(before, "batch", check=False)


def test_attention_is_of_each_item() -> None:
    text = """<ir_version: 10, opset_import: ["": 23]>
    g (float[1,2,3,4] q, float[1,2,5,4] k, float[1,2,5,4] v) => (float[1,2,3,4] y)
      <float[3,5] mask> { y = Attention (q, k, v, mask) }"""
    before = with_weights(onnx.parser.parse_model(text))
    after = free_batch(before, "batch")
    assert [v.type.tensor_type.shape.dim[0].dim_param for v in after.graph.input] == ["batch"] * 3
    shared = onnx.parser.parse_model(text.replace("float[1,2,5,4] v", "float[2,2,5,4] v"))
    with pytest.raises(SurgeonError, match="`v` is shared"):
        free_batch(with_weights(shared), "batch", check=False)
    # masks that are the same for each item, once for each
    two = text.replace("[1,", "[2,").replace("<float[3,5] mask>", "<float[2,1,3,5] mask>")
    before = with_weights(onnx.parser.parse_model(two))
    with pytest.raises(SurgeonError, match="`mask` has 2 along the batch, and not the same"):
        free_batch(before, "batch", check=False)
    copies = np.repeat(numpy_helper.to_array(before.graph.initializer[0])[:1], 2, 0)
    before.graph.initializer[0].CopyFrom(numpy_helper.from_array(copies, "mask"))
    free_batch(before, "batch")
    # the mask's first axis is of rows, not of items
    rows = text.replace("float[1,2,5,4] v)", "float[1,2,5,4] v, float[1,5] mask)")
    rows = rows.replace("<float[3,5] mask>", "")
    with pytest.raises(SurgeonError, match="first axis of `mask` is none of items"):
        free_batch(onnx.parser.parse_model(rows), "batch", check=False)


def test_scales_of_blocks_are_for_the_batch_of_the_file() -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
    g (int8[1,4] x) => (float[1,4] y)
      <float[1,2] s> { y = DequantizeLinear <axis = 1, block_size = 2> (x, s) }"""
    with pytest.raises(SurgeonError, match="its scales go along the batch"):
        free_batch(with_weights(onnx.parser.parse_model(text)), "batch", check=False)


def test_a_shape_that_may_be_fed_is_not_written_for_any_batch() -> None:
    proto = model(
        "(float[2,3] x, int64[2] s) => (float[a,b] y) <int64[2] s = {2, 3}> { y = Reshape (x, s) }"
    )
    with pytest.raises(SurgeonError, match="`s` is computed"):
        free_batch(proto, "batch", check=False)
    proto.ir_version, proto.opset_import[0].version = 3, 8  # which lists all of them so
    free_batch(proto, "batch")


REFUSED = {
    "(float[2,3] x) => (float[1,3] y) { y = ReduceMean <axes = [0]> (x) }": "goes over the batch",
    "(float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 0> (x) }": "goes along the batch",
    "(float[1,3] x) => (float[3] y) { y = Squeeze (x) }": "takes the batch away",
    "(float[3,2] x) => (float[2,2] y) { t = Transpose (x) y = MatMul (t, x) }": "sums over",
    "(float[2,4,2,3] x) => (float[24,2] y) <int64[2] s = {-1, 2}> "
    "{ t = Transpose <perm = [2, 3, 0, 1]> (x) y = Reshape (t, s) }": "an order of 2 at once",
    "(float[1,3] x) => (float[2,3] y) <float[2,3] b> { y = Add (x, b) }": "`b` has 2 along",
    "(float[1,3] x) => (float[3] y) <float[1] v> { y = MatMul (v, x) }": "it sums over the batch",
    "(float[2,8,3] x) => (float[8,2,3] y) <float[8,2,3] t, int64[3] s = {8, 2, 3}> "
    "{ r = Reshape (x, s) y = Add (r, t) }": "`t` has 8 along the batch",
    "(float[1,2,3] x) => (float[4,1,3] y) <float[1,1,3] t, int64[1] one = {1}, int64[1] two = {2}, "
    "int64[3] r = {4, 1, 1}> { c = Concat <axis = 1> (t, x) f = Slice (c, one, two, one) "
    "y = Tile (f, r) }": "it repeats the batch",
    "(float[1,3] x) => (float[3] y) <int64 i = {0}> { y = Gather (x, i) }": "some of the batch",
    "(float[1,3] x) => (float[2,3] y) { y = Concat <axis = 0> (x, x) }": "behind the batch",
    "(float[1,3] x) => (int64[2,n] y) { y = NonZero (x) }": "of this operator that is not known",
    "(float[1,3] x) => (float[1,3] y) { y = my.Relu (x) }": "of this operator that is not known",
    "(float[2,3,4] x) => (float[3,8] y) <int64[2] s = {3, 8}> "
    "{ t = Transpose <perm = [1, 0, 2]> (x) y = Reshape (t, s) u = Softmax (y) }": "goes along",
    "(float[1,3] x, bool c) => (float[1,3] y) { y = If (c) <then_branch = t () => (float[1,3] r) "
    "{ r = Neg (x) }, else_branch = u () => (float[1,3] r) { r = Exp (x) }> }": "bodies read",
    "(float[2,3] x) => (float[2,3] y) <int64[1,2] i = {1, 0}, float[1] u> "
    "{ y = ScatterND (x, i, u) }": "takes some of the batch",
    "(float[1,3] x) => (float[1,3] y) <int64[1,1] i = {0}, float[1,3] u> "
    "{ y = ScatterND (x, i, u) }": "goes along the batch",
    "(float[1,3] x) => (float[2] y) <int64[2,2] i = {0, 1, 0, 2}> "
    "{ y = GatherND (x, i) }": "no axis for the batch",
    "(float[1,2,3] x) => (float[1] y) <int64[2] s = {2, 3}, int64[1,2] i = {0, 1}> "
    "{ r = Reshape (x, s) y = GatherND (r, i) }": "takes some of the batch",
    "(float[1,3] x, int64[1,2,2] i) => (float[1,2] y) { y = GatherND (x, i) }": "is computed",
    "(float[n,3] x) => (float[n,3] y) { y = Relu (x) }": "is dynamic as it is",
    "(float x) => (float y) { y = Relu (x) }": "no input has a first dimension",
    "(float[1,batch] x) => (float[1,batch] y) { y = Relu (x) }": "is called `batch` already",
    "(float[1,3] x) => (float[1,3] y) { y = Gather (x) }": "are not those that it has",
    "(float[1,3] x) => (float[1,3] y) { y = Conv (x, x, x) }": "differs from item to item",
    "(float[1,1,4,4] x) => (float[1,1,2,2] y, int64[1,1,2,2] i) "
    "{ y, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) }": "count through all items",
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.items(), ids=REFUSED.values())
def test_what_mixes_items_is_named_and_nothing_is_done(text: str, reason: str) -> None:
    proto = with_weights(model(text))
    if "my." in text:
        proto.opset_import.add(domain="my", version=1)
    with pytest.raises(SurgeonError) as caught:
        free_batch(proto, "batch", check=False)
    assert reason in caught.value.what


def test_a_mistake_is_found_by_running_both(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(flow: Flow, node: onnx.NodeProto) -> None:
        flow.places[node.output[0]] = 0

    monkeypatch.setattr(carriers, "CARRIERS", {"CumSum": wrong})
    monkeypatch.setattr("surgeon.anybatch.CARRIERS", {"CumSum": wrong})
    proto = model("(float[1,3] x) => (float[1,3] y) <int64 a = {0}> { y = CumSum (x, a) }")
    with pytest.raises(SurgeonError, match="of 2 items at once differs"):
        free_batch(proto, "batch")


def test_the_report_says_what_changed_and_what_was_compared(tmp_path) -> None:
    path, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(with_weights(model(FREED["images"])), path)
    done = run("apply", "any-batch", path, out)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "extends: the file is for a batch of one size" in said
    assert "of 1, 2, 3 batches of the file's size at once, the result gives" in said
    dims = onnx.load(out).graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["batch", 2, 5, 5]


def test_it_wants_to_be_allowed(tmp_path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("surgeon: 1\nname: mine\nsteps:\n  - free-batch: n\n")
    proto = model("(float[1,3] x) => (float[1,3] y) { y = Relu (x) }")
    result = surgeon.apply(proto, recipe)
    assert "allow it with `--allow contract`" in result.report.failures[0]
    result = surgeon.apply(proto, recipe, allow=["contract"])
    assert result.model.to_proto().graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"


def test_a_length_that_is_called_by_a_formula_of_another_follows_it() -> None:
    proto = model("""(float[1,past,2] x, float[1,total] m) => (float[1,total,2] y)
        <float[1,1,2] c> { a = Concat <axis = 1> (x, c) one = Constant <value = int64[1] {-1}> ()
        u = Unsqueeze (m, one) y = Mul (a, u) }""")
    for value in (proto.graph.input[1], *proto.graph.output):
        value.type.tensor_type.shape.dim[1].dim_param = "past + 1"
    result = surgeon.apply(with_weights(proto), "any-batch", strict=True)
    assert surgeon.verify(proto, result.model.to_proto()).status == "equivalent"
    dims = [
        [d.dim_param for d in i.type.tensor_type.shape.dim]
        for i in result.model.to_proto().graph.input
    ]
    assert dims[1] == ["batch", "past + 1"]


def test_what_the_file_claims_of_shapes_is_not_believed() -> None:
    proto = model("""(float[1,6] x) => (float[1,6] y) <int64[2] s = {1, 6}> {
        r = Relu (x) y = Reshape (r, s) }""")
    proto.graph.value_info.append(
        onnx.helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, [6, 1])
    )
    onnx.checker.check_model(free_batch(proto, "batch"), full_check=True)


def test_a_constant_that_is_given_out_stays() -> None:
    text = (
        "(float[1,6] x) => (float[1,6] y, int64[2] s) <int64[2] s = {1, 6}> { y = Reshape (x, s) }"
    )
    after = free_batch(model(text), "batch")
    onnx.checker.check_model(after, full_check=True)
    assert "s" in {tensor.name for tensor in after.graph.initializer}


def test_recipes_that_run_twice_free_it_once() -> None:
    proto = model("(float[1,3] x) => (float[1,3] y) { y = Relu (x) }")
    result = surgeon.apply(proto, "any-batch", opset=14, strict=True)
    assert result.report.fired == {"any-batch/free-batch": 1}


def test_sizes_that_are_told_stay_but_for_the_batch() -> None:
    proto = model("""(float[1,2,h,w] x) => (float[n,1] y)
        <int64[1] s = {2}, int64[1] e = {4}, int64[1] z = {0}, int64[2] one = {1, 2},
         int64[2] rows = {-1, 1}> {
        a = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
        q = Shape (x)
        p = Slice (q, s, e, z)
        t = Concat <axis = 0> (one, p)
        r = Resize <mode = "nearest"> (a, , , t)
        b = Add (r, x)
        o = Transpose <perm = [2, 3, 0, 1]> (b)
        y = Reshape (o, rows)
    }""")
    with_sizes = surgeon.apply(proto, "any-batch", "clean", shape={"x": (1, 2, 4, 6)}, strict=True)
    dims = with_sizes.model.to_proto().graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["batch", 2, 4, 6]
    assert with_sizes.report.status == "equivalent"
    without = surgeon.apply(proto, "any-batch")
    assert "of sizes that `--shape` may tell" in without.report.failures[0]


@pytest.mark.parametrize("zeros", ["", " <allowzero = 1>"])
def test_a_shape_with_minus_one_for_sizes_that_run_time_tells_copies_the_batch(zeros) -> None:
    proto = model(f"""(float[1,2,h,w] x) => (float[1,2,n] y)
        <int64[3] s = {{1, 2, -1}}> {{ a = Relu (x) y = Reshape{zeros} (a, s) }}""")
    result = surgeon.apply(proto, "any-batch", strict=True)
    feeds = {"x": np.arange(36, dtype=np.float32).reshape(3, 2, 2, 3)}
    (found,) = ran(result.model.to_proto(), feeds)
    assert np.array_equal(found, feeds["x"].reshape(3, 2, 6))


def test_where_zeros_are_sizes_it_is_refused() -> None:
    proto = model("""(float[1,2,h,w] x) => (float[1,h,n] y)
        <int64[1] one = {1}, int64[1] rest = {-1}> { a = Shape <start = 2, end = 3> (x)
        s = Concat <axis = 0> (one, a, rest) y = Reshape <allowzero = 1> (x, s) }""")
    result = surgeon.apply(proto, "any-batch")
    assert "two of the sizes that it makes are not known" in result.report.failures[0]


def test_a_fixed_dimension_is_told_of_the_recipe(tmp_path) -> None:
    path = tmp_path / "in.onnx"
    onnx.save(model("(float[1,3] x) => (float[1,3] y) { y = Relu (x) }"), path)
    done = run("apply", "clean", path, tmp_path / "o.onnx", "--shape", "x=n,3")
    assert done.exit_code == 2
    assert "`any-batch` makes the first one dynamic" in " ".join(done.output.split())
    done = run("apply", "clean", path, tmp_path / "o.onnx", "--shape", "x=4,3")
    told = "`any-batch` makes the first one dynamic, in a run before this one: any number"
    assert told in " ".join(done.output.split())


def test_what_it_makes_dynamic_is_called_otherwise_in_the_same_run(tmp_path) -> None:
    path = tmp_path / "in.onnx"
    onnx.save(model("(float[1,3] x) => (float[1,3] y) { y = Relu (x) }"), path)
    done = run("apply", "any-batch", path, tmp_path / "o.onnx", "--shape", "x=n,3")
    assert done.exit_code == 2
    assert "`--rename batch=n`" in " ".join(done.output.split())
    done = run("apply", "any-batch", path, tmp_path / "o.onnx", "--rename", "batch=n")
    assert done.exit_code == 0, done.output
    dims = onnx.load(tmp_path / "o.onnx").graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["n", 3]


def test_a_name_that_no_step_gave_in_the_end_is_told() -> None:
    proto = model("(float[2,3] x) => (float y) { y = ReduceSum <keepdims = 0> (x) }")
    report = surgeon.apply(proto, "any-batch", rename={"batch": "n"}).report
    assert "`rename-batch` was skipped: nothing is called `batch`" in report.failures[1]


FROZEN_INSIDE = """(float[{b},6] x, float[{b},6] z) => (float[{b},2,3] y)
    <int64[3] s = {{1, 2, 3}}> {{
    p = Mul (x, z) y = Reshape (p, s) }}"""


@pytest.mark.parametrize("name", ["n", "batch"])
def test_a_dynamic_batch_that_the_trace_froze_inside_is_freed_where_it_is_told(name) -> None:
    proto = model(FROZEN_INSIDE.format(b=name))
    result = surgeon.apply(proto, "any-batch", assume=[f"{name} == 1"], strict=True)
    assert result.report.status == "equivalent"
    made = result.model.to_proto()
    for value in (*made.graph.input, *made.graph.output):
        assert value.type.tensor_type.shape.dim[0].dim_param == "batch", value.name
    feeds = {each: np.arange(18, dtype=np.float32).reshape(3, 6) for each in "xz"}
    (found,) = ran(made, feeds)
    assert np.array_equal(found, (feeds["x"] * feeds["z"]).reshape(3, 2, 3))


def test_a_dynamic_batch_that_the_trace_froze_inside_is_freed_by_shapes_too() -> None:
    proto = model(FROZEN_INSIDE.format(b="n"))
    shape = {"x": (1, 6), "z": (1, 6)}
    result = surgeon.apply(proto, "any-batch", shape=shape, strict=True)
    dims = result.model.to_proto().graph.input[1].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["batch", 6]


UNFREED = (
    "(float[N,6] x, float[6,m] z) => (float y, float[6,m] w) <int64[2] s = {1, 6}> "
    "{ r = Reshape (x, s) y = ReduceMax <keepdims = 0> (r) w = Exp (z) }"
)


@pytest.mark.parametrize("told", [{"assume": ["N == 1"]}, {"shape": {"x": (1, 6)}}])
def test_a_batch_that_was_told_to_be_freed_and_was_not_is_not_fixed_in_the_file(told) -> None:
    with pytest.raises(VerifyError) as caught:
        surgeon.apply(model(UNFREED), "any-batch", "clean", **told)
    assert caught.value.what == (
        "dimension 0 of `x` was said to be 1 so that step `free-batch` makes it any, and it was "
        "skipped: ReduceMax `y` does not treat items apart: it goes over all axes"
    )
    assert caught.value.report is not None
    # what else is told is what is wanted, whatever becomes of the batch
    fixed = UNFREED.replace("float[N,6]", "float[1,6]")
    result = surgeon.apply(model(fixed), "any-batch", "clean", assume=["m == 4"])
    assert result.report.failures
    assert result.model.to_proto().graph.input[1].type.tensor_type.shape.dim[1].dim_value == 4


def test_what_fixes_a_batch_that_is_dynamic_already_is_said() -> None:
    proto = model(FROZEN_INSIDE.format(b="batch"))
    assert (
        "`--assume 'batch == 1'` says for" in surgeon.apply(proto, "any-batch").report.failures[0]
    )
    unnamed = model("(float[1,6] x) => (float[1,6] y) { y = Relu (x) }")
    unnamed.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    assert "`--shape x=1,6` says for" in surgeon.apply(unnamed, "any-batch").report.failures[0]


def test_an_original_of_one_batch_alone_says_what_may_free_it() -> None:
    proto = model("""(float[n,6] x) => (float[n,2,3] y) <int64[3] s = {1, 2, 3}> {
        i = Identity (x) r = Reshape (i, s) y = Exp (r) }""")
    report = surgeon.apply(proto, "clean").report
    assert "`any-batch --assume 'n == 1'` may free it" in " ".join(surgeon.shown(report).split())


def test_a_false_type_of_an_output_does_not_keep_the_batch_fixed() -> None:
    proto = model(
        "(float[1,6] x) => (double[1,2,3] y) <int64[3] s = {1, 2, 3}> { y = Reshape (x, s) }"
    )
    result = surgeon.apply(proto, "any-batch", strict=True)
    assert result.report.status == "equivalent"
    made = result.model.to_proto()
    assert made.graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert "element types that outputs declare were false: `y`" in result.report.remarks
    (found,) = ran(made, {"x": np.ones((3, 6), np.float32)})
    assert found.shape == (3, 2, 3)


def test_an_output_that_several_items_share_is_not_left_behind() -> None:
    """It would go on to have as many as the file is for."""
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        g (float[2,3,4] x) => (float[2,3,4] y, float[2,1,4] z)
          <int64[3] s = {2, 1, 1}, float[1,1,4] k = {1, 2, 3, 4}> {
            e = Tile (k, s)
            y = Add (x, e)
            z = Identity (e)
        }
    """)
    result = surgeon.apply(model, "any-batch")
    assert "output `z` has 2 items" in result.report.failures[0]
    assert not result.report.changes


def test_a_part_that_all_share_is_told_no_bounds_any_more() -> None:
    """Before opset 10 they are attributes, which an Identity has none of."""
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 9]>
        g (float[1,2,3] x) => (float[1,3,3] y, float[1,1,3] z) <float[1,1,3] first = {1, 2, 3}> {
            y = Concat <axis = 1> (first, x)
            z = Slice <axes = [1], starts = [0], ends = [1]> (y)
        }
    """)
    result = surgeon.apply(model, "any-batch", strict=True)
    assert result.report.status == "equivalent"
    assert not result.model.to_proto().graph.node[-1].attribute


def test_behind_any_size_it_says_where_it_would_know_more() -> None:
    proto = model("""(float[2,2,1,8] x) => (float[8,2,2] y)
        <int64[2] s = {16, 2}, int64[3] b = {8, 2, 2}> {
        t = Transpose <perm = [3, 0, 1, 2]> (x) r = Reshape (t, s) e = Relu (r)
        y = Reshape (e, b) }""")
    told = {"x": (2, 2, 1, "width")}
    behind = surgeon.apply(proto, "any-size", "any-batch", shape=told).report
    assert behind.fired == {"any-size/free-sizes": 1}
    assert "in front of `any-size`, it knows the sizes of the file" in behind.failures[0]
    result = surgeon.apply(proto, "any-batch", "any-size", shape=told, strict=True)
    assert len(result.report.fired) == 2


def test_sizes_that_are_free_already_when_recipes_run_again_are_no_failure() -> None:
    proto = model("(float[1,2,4,6] x) => (float[1,2,4,6] y) { y = Relu (x) }", 14)
    report = surgeon.apply(proto, "any-size", opset=15, strict=True).report
    assert report.fired == {"any-size/free-sizes": 1}
    assert surgeon.apply(proto, "any-size", "any-size", strict=True).report.failures == ()
