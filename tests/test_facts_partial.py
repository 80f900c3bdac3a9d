"""Facts where little is known: an element type, a rank or an equal length follows all the same."""

from __future__ import annotations

import onnx
import pytest
from truth import fact_of, parse


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("y = Cast <to = 7> (u)", "INT64"),
        ("y = Less (u, u)", "BOOL"),
        ("y = Not (u)", "BOOL"),
        ("y = MatMul (u, x)", "FLOAT"),
        ("y = Where (u, u, x)", "FLOAT"),
        ("v, y = TopK (u, n)", "INT64"),
        ("y = NonZero (u)", "INT64"),
        ("y = Gather (u, n)", "UNDEFINED"),
        ("y = Relu (u)", "UNDEFINED"),
    ],
)
def test_an_element_type_follows_although_an_operand_has_none(body: str, name: str) -> None:
    text = f"g (float[b,3] x, int64[1] n) => (y) {{ u = my.own (x) {body} }}"
    found = fact_of(parse(text, domains=', "my": 1'), "y")
    assert onnx.TensorProto.DataType.Name(found.dtype) == name
    assert found.shape is None


def test_what_one_mask_selects_is_equally_long() -> None:
    proto = parse(
        "g (float[4,t] x, float[4] z, bool[4] c, bool[4] d) => (y, a, n, b) { "
        "y = Compress <axis = 0> (x, c) "
        "a = Compress <axis = 0> (z, c) n = NonZero (c) b = Compress <axis = 0> (z, d) }"
    )
    lengths = {name: fact_of(proto, name).shape for name in "yanb"}
    assert {name: str(shape) for name, shape in lengths.items()} == {
        "y": "(c.held, t)",
        "a": "(c.held,)",
        "n": "(1, c.held)",
        "b": "(d.held,)",
    }


def test_a_window_that_begins_in_the_padding_is_no_window_and_onnx_counts_it() -> None:
    pool = "y = MaxPool <kernel_shape = [2], strides = [2], pads = [1, 1], ceil_mode = 1> (x)"
    found = fact_of(parse(f"g (float[b,3,1] x) => (y) {{ {pool} }}"), "y")
    assert str(found.shape) == "(b, 3, y.2)"  # 1, but no runtime would load what rests on it
    assert str(fact_of(parse(f"g (float[b,3,4] x) => (y) {{ {pool} }}"), "y").shape) == "(b, 3, 3)"


def test_a_concat_has_the_rank_and_the_other_dimensions_of_any_operand() -> None:
    text = "g (float[b,3] x) => (y) { u = my.own (x) y = Concat <axis = 0> (u, x) }"
    found = fact_of(parse(text, domains=', "my": 1'), "y")
    assert found.dtype == onnx.TensorProto.FLOAT
    assert found.shape is not None
    assert (found.rank, found.shape[1]) == (2, 3)
    assert str(found.shape[0]) == "y.0"


@pytest.mark.parametrize(
    "large",
    [
        "Conv <pads = [9223372036854775807, 1, 5, 1]> (x, w)",
        'Resize <mode = "nearest"> (x, , scales)',
    ],
)
@pytest.mark.parametrize("reader", ["Det", "Bernoulli", "Flatten <axis = 0>"])
def test_a_size_that_onnx_cannot_count_is_not_known(large: str, reader: str) -> None:
    """And onnx is asked of what reads it all the same."""
    proto = parse(
        f"""g (float[1,1,8,8] x, float[1,1,3,3] w) => (float[N] y)
        <float[4] scales = {{1.0, 1.0, 1e19, 1.0}}> {{
          large = {large}
          y = {reader} (large)
        }}""",
        opset=16,
    )
    shape = fact_of(proto, "large").shape
    assert shape is None or not isinstance(shape[2], int)
    assert not any(isinstance(dim, int) and dim > 8 for dim in fact_of(proto, "y").shape or ())


def test_truths_are_no_sizes() -> None:
    """Nothing loads it; and onnx is asked of what reads a part all the same."""
    proto = parse(
        """g (float[2,4,4] x) => (float[N] y) <bool[2] sizes = {1, 1}> {
          first, second = Split <axis = 0> (x, sizes)
          y = Det (first)
        }"""
    )
    assert fact_of(proto, "first").value is None
    assert fact_of(proto, "y").value is None
