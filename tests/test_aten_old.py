"""Operators as older exporters leave them: signatures, opsets and sizes of their time."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from aten_node import Called, Calls, agrees, each, stays

import surgeon
from surgeon.errors import LeftoverError

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

R = np.random.default_rng(1)
F, H = np.float32, np.float16
X = R.normal(size=(2, 3, 6, 7)).astype(F)
GRID = R.uniform(-1.3, 1.3, size=(2, 4, 5, 2)).astype(F)
THETA = R.normal(size=(2, 2, 3)).astype(F)
HEADS = R.normal(size=(3, 2, 5, 4)).astype(F)
WITH_NAN = np.where(X > 1.2, F(np.nan), np.round(X))
INTS = R.integers(-9, 9, (3, 4))
PLACES = np.array([2, 0, 4, 5, 1])
CALLS = Calls()
add = CALLS.add

# torch 1.1 and 1.2: corners without a word
for mode in (0, 1):
    for padding in (0, 1, 2):
        add("grid_sampler", X, GRID, mode, padding)
        add("grid_sampler", X, GRID, mode, padding, False)
add("affine_grid_generator", THETA, [2, 3, 4, 5])
add("affine_grid_generator", THETA, [2, 3, 4, 5], False)
add("affine_grid_generator", R.normal(size=(2, 3, 4)).astype(F), [2, 1, 3, 4, 5])
add("max_values", X, [1, -1], True)
add("min_values", INTS, [0], False)
# torch 1.13: attention that gives its weights
for causal, mask in ((True, None), (False, None), (False, HEADS[2, 0, :, :1] > -1)):
    whole = None if mask is None else np.broadcast_to(mask, (5, 5)) | np.eye(5, dtype=bool)
    add("_scaled_dot_product_attention", *HEADS, whole, 0.0, True, causal, outputs=2)
    add("_scaled_dot_product_attention", *HEADS, whole, 0.0, False, causal, outputs=1)
add("_scaled_dot_product_attention", *HEADS, HEADS[0, 0, :, :1], 0.0, True, False, outputs=2)
# forms that older opsets lack
add("round", np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, -3.3, 1e9, np.inf, np.nan], F))
add("quantile.scalar", X, 0.35, 1, False, "nearest")
add("mode", np.round(X), 1, False)
add("mode", INTS, 0, True)
add("eq.Tensor", WITH_NAN, np.round(X))
add("eq.Tensor", np.array([np.inf, -np.inf, np.inf, 0], F), np.array([np.inf, np.inf, 1, -0.0], F))
add("unique_consecutive", np.array([1.5, 1.5, 2, 2, 1], F), False, False, None, outputs=1)
add("diagonal", X, 1, 2, 3)
add("trace", X[0, 0])
add("diag", X[0, 0], -1)
for start, end, step in ((0, 2**63 - 1, 2), (1, -1, 3), (-5, 6, 2)):
    add("slice.Tensor", X, 3, start, end, step, still=True)
add("linalg_qr", R.normal(size=(2, 4, 3)).astype(F), "reduced")
for upper in (True, False):
    add("symeig", X[0, 0, :, :6], True, upper, outputs=1)
# torch 1.7 and before: complex values as pairs
PAIRS = R.normal(size=(2, 3, 4, 2)).astype(F)
for count in (1, 2):
    for normalized in (False, True):
        add("fft", PAIRS, count, normalized)
        add("ifft", PAIRS, count, normalized)
        for onesided in (False, True):
            add("rfft", X[0], count, normalized, onesided)
            add("irfft", PAIRS, count, normalized, onesided)
    add("irfft", PAIRS, count, False, True, [3, 7][-count:])
# lengths that are known at run time only
for axis in (1, -1):
    add("cumprod", X, axis, None)
    add("logcumsumexp", X, axis)
    add("cummax", WITH_NAN, axis)
    add("cummin", INTS[None], axis)
    add("median.dim", WITH_NAN, axis, False, still=True)
    add("kthvalue", X, 2, axis, True, still=True)
add("median", X, least=11)
# arguments that newer signatures lack, or have by other names
MATRIX = np.diag(np.array([3, 1, 0.5, 0.1], F)) @ np.linalg.qr(R.normal(size=(4, 4)))[0].astype(F)
add("frobenius_norm", X)
add("nansum", WITH_NAN, None)
add("matrix_rank.tol", MATRIX, 0.7, False)
add("linalg_matrix_rank", MATRIX, 0.7, False)
add("linalg_matrix_rank", MATRIX, None, False)
# numbers
add("cosine_similarity", np.asarray(1.5, F), np.asarray(-2, F), 0, 1e-8)
add("multi_margin_loss", np.asarray(0.3, F), np.asarray(0), 1, 0.5, None, 1)
add("multilabel_margin_loss", np.asarray(0.3, F), np.asarray(0), 1)
add("linalg_vander", np.asarray(1.5, F), 3)
# without an axis
add("one_hot", np.asarray(2), 4)
add("mH", np.asarray(1.5, F))
add("matrix_H", np.asarray(1.5, F))
add("real", X)
add("hardtanh", X, 0.5, -0.5)
for swap in (True, False):
    add("triplet_margin_loss", INTS, INTS[::-1], INTS + 1, 1.0, 2.0, 1e-6, swap, 1)
    for p in (1.0, np.inf):
        add("triplet_margin_loss", X[0, 0], X[0, 1], X[1, 0], 1.0, p, 1e-6, swap, 0)
# differences of bytes wrap
BYTES = INTS.astype(np.uint8)
add("triplet_margin_loss", BYTES, BYTES[::-1], BYTES + np.uint8(1), 9.0, 2.0, 1e-6, True, 1)
add("pairwise_distance", BYTES, BYTES[::-1], 2.0, 1e-6, False)
add("pairwise_distance", INTS, X[0, 0, :3, :4], 2.0, 1e-6, False)
# single precision combines what is scattered in half
add("scatter_add", X[0, 0].astype(H), 0, INTS[:2] % 6, X[0, 1, :2, :4].astype(H), least=16)
add("index_add", X[0, 0].astype(H), 0, PLACES, X[0, 1, :5].astype(H), 1, least=16)
for kind in ("prod", "sum", "mean"):
    source = X[0, 1, :2, :4].astype(H)
    rest = [0, INTS[:2] % 6, source, kind, True]
    add("scatter_reduce.two", X[0, 0].astype(H), *rest, least=16)


@pytest.mark.parametrize(("operator", "arguments", "options", "opset", "dynamic"), each(CALLS))
def test_lowered_as_the_witness(
    operator: str, arguments: list[Any], options: dict[str, Any], opset: int, dynamic: bool
) -> None:
    agrees(operator, arguments, options, opset, dynamic=dynamic)


REFUSED: list[Called] = [
    ("_scaled_dot_product_attention", [*HEADS, None, 0.1, False, False], {"because": "at random"}),
    (
        "_scaled_dot_product_attention_math",
        [*HEADS, None, 0.0, False, True],
        {"because": "its seventh argument is no flag"},
    ),
    ("linalg_eigvals", [X[0, 0, :, :6]], {"because": "are complex"}),
    ("Placeholder", [X], {"because": "the indices and the values are lost"}),
    ("If", [X], {"because": "what it computes is lost"}),
]


@pytest.mark.parametrize(
    ("operator", "arguments", "options"),
    REFUSED,
    ids=[f"{i}-{r[0]}" for i, r in enumerate(REFUSED)],
)
def test_refused_with_the_reason(
    operator: str, arguments: list[Any], options: dict[str, Any]
) -> None:
    stays(operator, arguments, [X], options["because"])


EMPTY = """
<ir_version: 6, opset_import: ["": 11, "org.pytorch.aten": 1]>
g (float[N,M] x) => (float y) <int64 none = {0}, double two = {2}> {
  y = org.pytorch.aten.ATen <operator = "OPERATOR"> (x, ARGUMENTS)
}
"""


@pytest.mark.parametrize(
    ("operator", "arguments", "wanted"),
    [
        ("amax", "list, none", np.max),
        ("frobenius_norm", "list, none", np.linalg.norm),
        ("nansum", "list, none, ", np.sum),
        ("new_full", "list, two, , , , none", lambda x: np.asarray(2, F)),
    ],
)
def test_an_empty_list_is_a_list_of_no_tensors(operator: str, arguments: str, wanted: Any) -> None:
    text = EMPTY.replace("OPERATOR", operator).replace("ARGUMENTS", arguments)
    model = onnx.parser.parse_model(text)
    node = onnx.NodeProto(op_type="Constant", output=["list"])
    node.attribute.add(name="value", type=onnx.AttributeProto.TENSORS)
    model.graph.node.insert(0, node)
    result = surgeon.apply(model, "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    after = result.model.to_proto()
    assert not [a for n in after.graph.node for a in n.attribute if a.type == a.TENSORS]
    x = R.normal(size=(3, 4)).astype(F)
    session = ort.InferenceSession(after.SerializeToString())
    feeds = {"x": x} if session.get_inputs() else {}
    np.testing.assert_allclose(session.run(None, feeds)[0], wanted(x), rtol=1e-5)


@pytest.mark.parametrize(("version", "wanted"), [("1.11", 1.0), ("1.12", 0.01)])
def test_before_1_12_the_product_of_norms_was_held_to_eps(version: str, wanted: float) -> None:
    text = """
    <ir_version: 6, opset_import: ["": 13, "org.pytorch.aten": 1]>
    g (float[N,2] x, float[N,2] z) => (float[N] y) <int64 one = {1}, double eps = {0.1}> {
      y = org.pytorch.aten.cosine_similarity (x, z, one, eps)
    }
    """
    model = onnx.parser.parse_model(text)
    model.producer_name, model.producer_version = "pytorch", version
    result = surgeon.apply(model, "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    feeds = {"x": np.array([[1e-3, 0]], F), "z": np.array([[100, 0]], F)}
    np.testing.assert_allclose(session.run(None, feeds)[0], [wanted], rtol=1e-4)


@pytest.mark.parametrize("operator", ["cummax", "cummin"])
def test_slices_of_named_dimensions_share_no_buffer_at_opset_10(operator: str) -> None:
    text = """
    <ir_version: 6, opset_import: ["": 10, "org.pytorch.aten": 1]>
    g (float[a,b,c] x) => (float[d,e,f] v, int64[d,e,f] i) <int64 one = {1}> {
      v, i = org.pytorch.aten.OPERATOR (x, one)
    }
    """.replace("OPERATOR", operator)
    model = onnx.parser.parse_model(text)
    after = surgeon.apply(model, "aten", verify=False).model.to_proto()
    x = R.normal(size=(5, 5, 5)).astype(F)
    made, _ = ort.InferenceSession(after.SerializeToString()).run(None, {"x": x})
    running = np.maximum if operator == "cummax" else np.minimum
    np.testing.assert_array_equal(made, running.accumulate(x, 1))


SPECTRUM = """
<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
g (float[N,T] x) => (float[N,M] y) <int64 last = {-1}, int64[1] two = {2}, int64[1] none = {0}> {
  c = org.pytorch.aten.fft_rfft (x, , last, )
  s = Shape (x)
  one = Constant <value_ints = [1]> ()
  at = Gather <axis = 0> (s, one)
  n = Squeeze (at, none)
  y = org.pytorch.aten.fft_irfft (c, SIZE, last, NORM)
}
"""


@pytest.mark.parametrize("length", [1, 2, 7, 8, 13])
@pytest.mark.parametrize(("size", "norm"), [("n", ""), ("", "ortho"), ("n", "forward"), ("", "")])
def test_half_a_spectrum_of_a_length_known_at_run_time(size: str, norm: str, length: int) -> None:
    if not size and length == 1:
        pytest.skip("nothing comes back")
    text = SPECTRUM.replace("SIZE", size).replace("NORM", "norm" if norm else "")
    model = onnx.parser.parse_model(text)
    if norm:
        node = onnx.NodeProto(op_type="Constant", output=["norm"])
        word = onnx.AttributeProto(name="value", type=onnx.AttributeProto.STRING, s=norm.encode())
        node.attribute.append(word)
        model.graph.node.insert(0, node)
    after = surgeon.apply(model, "aten", verify=False).model.to_proto()
    x = R.normal(size=(2, length)).astype(F)
    session = ort.InferenceSession(after.SerializeToString())
    wanted = np.fft.irfft(np.fft.rfft(x), length if size else None, norm=norm or None)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], wanted, atol=1e-4)


@pytest.mark.parametrize("length", [40, 43])
def test_angles_of_short_frames(length: int) -> None:
    text = """
    <ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
    g (float[N,T] x) => (float[N,5,M] y)
    <int64 size = {8}, int64 hop = {4}, bool no = {0}, bool yes = {1}> {
      c = org.pytorch.aten.stft (x, size, hop, size, , no, yes, yes)
      y = org.pytorch.aten.angle (c)
    }
    """
    after = surgeon.apply(onnx.parser.parse_model(text), "aten", verify=False).model.to_proto()
    x = R.normal(size=(2, length)).astype(F)
    session = ort.InferenceSession(after.SerializeToString())
    frames = np.lib.stride_tricks.sliding_window_view(x, 8, axis=1)[:, ::4]
    wanted = np.angle(np.fft.rfft(frames)).transpose(0, 2, 1)
    found = session.run(None, {"x": x})[0]
    np.testing.assert_allclose(np.exp(1j * found), np.exp(1j * wanted), atol=1e-3)


@pytest.mark.parametrize(
    ("values", "indices", "wanted"),
    [
        # `x[:, 2] = v` with an axis of one place, of sizes that are a trace's
        ("float[2,6] v", "r, c", [2, 1, 6]),
        # `x[i, j] = v` with indices of two axes made flat
        ("float[2,2,6] v", "f, f", [4, 6]),
    ],
    ids=["an axis of one place", "flattened"],
)
def test_writes_as_torch_1_5_to_1_10_spell_them(
    values: str, indices: str, wanted: list[int]
) -> None:
    graph = f"""g (float[b,4,6] x, {values}) => (float[b,4,6] y)
    <int64[2,1] r = {{0, 1}}, int64[1] c = {{2}}, int64[4] f = {{0, 1, 1, 0}}, bool no = {{0}}> {{
        y = org.pytorch.aten.ATen <operator = "index_put"> (x, {indices}, v, no) }}"""
    header = '<ir_version: 6, opset_import: ["": 11, "org.pytorch.aten": 1]>'
    model = onnx.parser.parse_model(header + graph)
    model.producer_name, model.producer_version = "pytorch", "1.7"
    x = R.normal(size=(2, 4, 6)).astype(F)
    dims = model.graph.input[1].type.tensor_type.shape.dim
    v = R.normal(size=[dim.dim_value for dim in dims]).astype(F)
    expected = x.copy()
    if indices == "r, c":
        expected[np.array([[0], [1]]), np.array([2])] = v.reshape(wanted)
    else:
        places = np.array([0, 1, 1, 0])
        expected[places, places] = v.reshape(wanted)
    result = surgeon.apply(model, "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent", result.report.verdict.detail
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"x": x, "v": v})[0], expected)


def test_a_write_to_the_whole_names_no_index() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 6, opset_import: ["": 11, "org.pytorch.aten": 1]>
        g (float[b,3] x, float[3] v) => (float[b,3] y, float[b,3] z)
        <bool no = {0}, bool yes = {1}> {
            y = org.pytorch.aten.ATen <operator = "index_put"> (x, v, no)
            z = org.pytorch.aten.ATen <operator = "index_put"> (x, v, yes) }"""
    )
    saved = surgeon.apply(model, "aten").model.to_proto()
    x, v = np.ones((2, 3), F), np.arange(3, dtype=F)
    y, z = ort.InferenceSession(saved.SerializeToString()).run(None, {"x": x, "v": v})
    np.testing.assert_array_equal(y, np.broadcast_to(v, (2, 3)))
    np.testing.assert_array_equal(z, x + v)


WRITE = """
<ir_version: 6, opset_import: ["": 11, "org.pytorch.aten": 1]>
g (float[b,4] x, OPERANDS) => (float[b,4] y)
<int64[1] one = {1}, float five = {5}, bool no = {0}, int64[2] column = {-1, 1},
 int64[1] minus = {-1}> {
  MADE
  y = org.pytorch.aten.ATen <operator = "index_put"> (x, i, j, five, no)
}
"""


def written_under_a_mask(made: str, opset: int) -> ort.InferenceSession:
    """What comes of a write of fives, at indices that are made so, which has to be equivalent."""
    text = WRITE.replace("OPERANDS", "bool[b] m").replace("MADE", made)
    model = onnx.parser.parse_model(text.replace('"": 11', f'"": {opset}'))
    result = surgeon.apply(model, "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent", result.report.verdict.detail
    return ort.InferenceSession(result.model.to_proto().SerializeToString())


@pytest.mark.parametrize("opset", [9, 11, 13])
def test_a_mask_beside_an_index_has_an_axis_too_many(opset: int) -> None:
    """`x[mask, 1] = 5`, which PyTorch from 1.9 on reshapes as it does lines of places."""
    made = "i = Reshape (m, column) j = Identity (one)"
    session = written_under_a_mask(made, opset)
    x, mask = R.normal(size=(5, 4)).astype(F), np.array([False, True, True, False, True])
    expected = x.copy()
    expected[mask, 1] = 5
    np.testing.assert_array_equal(session.run(None, {"x": x, "m": mask})[0], expected)


@pytest.mark.parametrize("opset", [9, 11, 13])
@pytest.mark.parametrize("selected", [0, 1, 2, 3])
def test_a_mask_beside_a_slice_says_rows(opset: int, selected: int) -> None:
    """`x[mask, 1:] = 5`: the mask is a column, and what it selects has all columns, not a pair."""
    made = "k = Constant <value = int64[3] {1, 2, 3}> () i = Reshape (m, column) j = Identity (k)"
    session = written_under_a_mask(made, opset)
    x, mask = R.normal(size=(5, 4)).astype(F), np.arange(5) < selected
    expected = x.copy()
    expected[mask, 1:] = 5
    np.testing.assert_array_equal(session.run(None, {"x": x, "m": mask})[0], expected)


@pytest.mark.parametrize(("release", "right"), [("1.5", False), ("1.8", False), ("1.9", True)])
def test_rows_and_columns_that_were_made_lines(release: str, right: bool) -> None:
    """`x[i[:, None], j[None]] = 5`, flattened: pairs, where rows and columns were meant."""
    text = WRITE.replace("OPERANDS", "int64[n,1] r, int64[1,n] c").replace(
        "MADE", "i = Reshape (r, minus) j = Reshape (c, minus)"
    )
    model = onnx.parser.parse_model(text)
    model.producer_name, model.producer_version = "pytorch", release
    if right:  # whoever flattened them there
        surgeon.apply(model, "aten", verify=False)
        return
    with pytest.raises(LeftoverError, match=r"its indices of \[n, 1\] and \[n\] are flattened"):
        surgeon.apply(model, "aten", verify=False)


def test_slices_are_rows_and_columns() -> None:
    """`x[1:3, ::2] = 5`, as PyTorch 1.5 writes it: lines of places in axes of their own."""
    text = WRITE.replace("OPERANDS", "int64[2] r, int64[3] c").replace(
        "MADE", "i = Reshape (r, column) j = Reshape (c, minus)"
    )
    model = onnx.parser.parse_model(text)
    model.producer_name, model.producer_version = "pytorch", "1.5"
    result = surgeon.apply(model, "aten")
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    x, rows, columns = R.normal(size=(5, 4)).astype(F), np.array([1, 4]), np.array([0, 1, 3])
    expected = x.copy()
    expected[np.ix_(rows, columns)] = 5
    found = session.run(None, {"x": x, "r": rows, "c": columns})[0]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("opset", [9, 11])
def test_flattened_indices_stand_in_the_axes_of_the_values(opset: int) -> None:
    """`x[rows[:, None], places] = v` of PyTorch 1.7: lines of n and 3 n places, for [n, 3, 2]."""
    text = f"""
    <ir_version: 6, opset_import: ["": {opset}, "org.pytorch.aten": 1]>
    g (float[n,7,2] x, int64[n,3] places, float[n,3,2] v) => (float[n,7,2] y)
    <int64[1] minus = {{-1}}, int64[1] first = {{0}}, bool no = {{0}}> {{
      sizes = Shape (x)
      n = Gather (sizes, first)
      filled = ConstantOfShape <value = int64[1] {{1}}> (n)
      found = NonZero (filled)
      column = Transpose <perm = [1, 0]> (found)
      i = Reshape (column, minus)
      j = Reshape (places, minus)
      y = org.pytorch.aten.ATen <operator = "index_put"> (x, i, j, v, no)
    }}"""
    model = onnx.parser.parse_model(text)
    model.producer_name, model.producer_version = "pytorch", "1.7"
    result = surgeon.apply(model, "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent", result.report.verdict.detail
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    for n in (1, 2, 5):
        x, v = R.normal(size=(n, 7, 2)).astype(F), R.normal(size=(n, 3, 2)).astype(F)
        places = np.stack([R.permutation(7)[:3] for _ in range(n)])
        expected = x.copy()
        expected[np.arange(n)[:, None], places] = v
        found = session.run(None, {"x": x, "places": places, "v": v})[0]
        np.testing.assert_array_equal(found, expected)


STEPS = """
<ir_version: 6, opset_import: ["": 11, "org.pytorch.aten": 1]>
g (float[b,t,4] x) => (float[b,s,4] y)
<int64 dim = {1}, int64 zero = {0}, int64 far = {9223372036854775807}, int64 three = {3}> {
  shape = Shape (x)
  length = Gather (shape, dim)
  third = Div (length, three)
  step = Max (third, dim)
  y = org.pytorch.aten.ATen <operator = "slice"> (x, dim, zero, far, step)
}
"""


def test_a_slice_has_a_step_that_is_known_at_run_time() -> None:
    """`x[:, ::max(1, x.size(1) // 3)]`."""
    model = onnx.parser.parse_model(STEPS.replace('"": 11', '"": 12'))
    result = surgeon.apply(model, "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent", result.report.verdict.detail
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    for length in (1, 3, 7, 11):
        x = R.normal(size=(2, length, 4)).astype(F)
        expected = x[:, :: max(1, length // 3)]
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], expected)
    early = onnx.parser.parse_model(STEPS.replace('"": 11', '"": 9').replace("Max", "Add"))
    with pytest.raises(LeftoverError, match="a Slice has steps from opset 10 on"):
        surgeon.apply(early, "aten")


@pytest.mark.parametrize(
    ("operator", "operands"),
    [("clamp", "one, two"), ("sum", "axis, no, "), ("matmul", "z"), ("neg", "")],
)
def test_what_is_written_to_stands_behind_the_arguments(operator: str, operands: str) -> None:
    """`torch.clamp(x, 1, 2, out=o)`: the result is what it is without it."""
    operands = "".join(f", {each}" for each in operands.split(", ") if each or operator == "sum")
    text = f"""
<ir_version: 6, opset_import: ["": 11, "org.pytorch.aten": 1]>
g (float[b,4] x, float[4,3] z) => (float y)
<int64 one = {{1}}, int64 two = {{2}}, int64[1] axis = {{1}}, bool no = {{0}}> {{
  shape = Shape (x)
  o = ConstantOfShape (shape)
  y = org.pytorch.aten.ATen <operator = "{operator}"> (x{operands}, o)
}}
"""
    model = onnx.parser.parse_model(text)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    result = surgeon.apply(model, "aten")
    x, z = R.normal(size=(5, 4)).astype(F), R.normal(size=(4, 3)).astype(F)
    assert result.report.verdict is not None
    if operator in ("clamp", "neg"):  # the others would have `o` resized
        assert result.report.verdict.status == "equivalent", result.report.verdict.detail
    wanted = {"clamp": x.clip(1, 2), "sum": x.sum(1), "matmul": x @ z, "neg": -x}[operator]
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    np.testing.assert_allclose(session.run(None, {"x": x, "z": z})[0], wanted, rtol=1e-5)


@pytest.mark.parametrize("release", ["1.7", "2.4"])
@pytest.mark.parametrize(
    ("call", "kind"),
    [("gt (x, half, o)", "bool"), ("mm (x, z, o)", "float"), ("div (x, half, o)", "float")],
)
def test_out_of_another_overload_is_written_to(call: str, kind: str, release: str) -> None:
    """`torch.gt(x, .5, out=o)` gives booleans; `mm` and `div` take further arguments elsewhere."""
    operator, _, operands = call.partition(" ")
    number = 11 if kind == "bool" else 6
    text = f"""
<ir_version: 6, opset_import: ["": 11, "org.pytorch.aten": 1]>
g (float[b,4] x, float[4,3] z) => ({kind} y)
<int64[1] none = {{0}}, int64 kind = {{{number}}}, int64 zero = {{0}}, bool no = {{0}},
 float half = {{0.5}}> {{
  o = org.pytorch.aten.ATen <operator = "empty"> (none, kind, zero, , no, )
  y = org.pytorch.aten.ATen <operator = "{operator}"> {operands}
}}
"""
    model = onnx.parser.parse_model(text)
    model.producer_name, model.producer_version = "pytorch", release
    model.graph.output[0].type.tensor_type.ClearField("shape")
    result = surgeon.apply(model, "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent", result.report.verdict.detail
    x, z = R.normal(size=(5, 4)).astype(F), R.normal(size=(4, 3)).astype(F)
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    wanted = {"gt": x > 0.5, "mm": x @ z, "div": x / np.float32(0.5)}[operator]
    np.testing.assert_allclose(session.run(None, {"x": x, "z": z})[0], wanted, rtol=1e-5)


def test_a_file_says_that_its_last_argument_is_written_to() -> None:
    """As a spectral norm that trains has it: `normalize(v, out=self.weight_v)`."""
    model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
g (float[3] x, float[1] n) => (float[3] y) <float[3] v = {1, 2, 3}> {
  y = org.pytorch.aten.ATen <operator = "div", overload_name = "out"> (x, n, v)
}""")
    result = surgeon.apply(model, "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent", result.report.verdict.detail
    assert [node.op_type for node in result.model.to_proto().graph.node] == ["Div"]


def test_a_file_of_operators_as_they_are_holds_numbers_of_its_own() -> None:
    """As `OperatorExportTypes.RAW` up to 1.4 writes them; a Constant without a value is None."""
    model = onnx.parser.parse_model("""
<ir_version: 4, opset_import: ["": 11, "org.pytorch.aten": 0, "org.pytorch.prim": 0]>
g (float[b,4] x) => (float[b] y) {
  axis = org.pytorch.prim.Constant <value = [1]> ()
  keep = org.pytorch.prim.Constant <value = 0> ()
  half = org.pytorch.prim.Constant <value = 0.5> ()
  none = org.pytorch.prim.Constant ()
  m = org.pytorch.aten.mul (x, half)
  y = org.pytorch.aten.sum (m, axis, keep, none)
}""")
    result = surgeon.apply(model, "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent", result.report.verdict.detail
    x = R.normal(size=(3, 4)).astype(F)
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    np.testing.assert_allclose(session.run(None, {"x": x})[0], x.sum(1) / 2, rtol=1e-5)
