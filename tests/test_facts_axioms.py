"""What facts start from: which claims of a file and of its user are believed, and which not."""

from __future__ import annotations

import numpy as np
import onnx
from facts_case import F32, ints
from truth import fact_of, hold, model_of, parse

from surgeon import dims
from surgeon.dims import symbol


def test_a_declared_dimension_may_have_the_name_of_a_new_one() -> None:
    proto = model_of('float["y.1"] x, float[b] z', "y = NonZero (z)", "y")
    assert hold(proto, [{"x": np.ones(9, F32), "z": np.array([1, 0, 1], F32)}]).wrong == []


def test_claims_of_the_file_are_not_believed() -> None:
    """value_info and output shapes that exporters left stale."""
    proto = model_of("float[b,c,t] x", "a = Relu (x) y = Transpose (a)", "y")
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, [1, 2, 3]))
    del proto.graph.output[:]
    proto.graph.output.append(onnx.helper.make_tensor_value_info("y", 1, [3, 2, 1]))
    assert str(fact_of(proto, "a").shape) == "(b, c, t)"
    assert str(fact_of(proto, "y").shape) == "(t, c, b)"


def test_an_overridable_initializer_has_no_known_value() -> None:
    proto = model_of(
        "float[6] x, int64[2] s", "y = Reshape (x, s)", "y", constants={"s": ints(2, 3)}
    )
    fact = fact_of(proto, "y")
    assert fact.rank == 2
    assert all(not isinstance(d, int) for d in fact.shape or ())
    proto.producer_name = "pytorch"
    assert fact_of(proto, "y").shape == (2, 3)


def test_an_input_without_a_shape() -> None:
    proto = parse("g (float x0, float[] x1) => (y) { y = Relu (x1) }")
    proto.graph.input[1].type.tensor_type.ClearField("shape")
    assert fact_of(proto, "y").shape is None
    assert fact_of(proto, "y").dtype == 1


def test_dimensions_without_a_name_are_symbols_of_their_own() -> None:
    proto = model_of("float[?,?] x, float[?,3] z", "y = Add (x, z) q = Relu (x)", "y q")
    assert str(fact_of(proto, "q").shape) == "(x.0, x.1)"
    assert str(fact_of(proto, "y").shape) == "(y.0, 3)"


def test_shapes_and_assumptions_of_the_user() -> None:
    proto = model_of(
        "float[b,t] x",
        "y = MaxPool <kernel_shape = [2], strides = [2]> (q) q = Unsqueeze (x, k)",
        "y",
        constants={"k": ints(0)},
    )
    fixed_shape = fact_of(proto, "y", fixed={"x": (3, "t")})
    assert str(fixed_shape.shape) == "(1, 3, t//2)"
    options = {"assumptions": {"t": symbol("t/2") * 2}}
    assert str(fact_of(proto, "y", **options).shape) == "(1, b, t/2)"
    assert hold(proto, [{"b": 2, "t": 4}, {"b": 3, "t": 8}], **options).wrong == []


def test_long_values_are_no_shape_arithmetic() -> None:
    for body, constants in (
        ("y = ConstantOfShape (s)", {"s": ints(100_000, 100_000)}),
        ("y = Range (o, e, p)", {"o": np.int64(0), "e": np.int64(10**9), "p": np.int64(1)}),
        ("y = Tile (o, s)", {"o": np.zeros((1, 1), np.int64), "s": ints(100_000, 100_000)}),
        ("y = Expand (o, s)", {"o": np.zeros((1, 1), np.int64), "s": ints(100_000, 100_000)}),
    ):
        fact = fact_of(model_of("float x", body, "y", constants=constants), "y")
        assert fact.value is None
        assert dims.product(fact.shape or ()) in (10**10, 10**9)
