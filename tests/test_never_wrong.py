"""What simplifiers get wrong: a small model for each, which `clean` leaves as right as it was.

The result computes the same to the bit, or within rounding where a rule may round, and declares the
inputs and outputs of the original, or it is the original. Here: rules that look easy.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from never_wrong import EVERY, F32, given, hold, ints, noise, ops
from onnx import helper, numpy_helper
from truth import parse

import surgeon


@pytest.mark.parametrize("recipe", EVERY)
@pytest.mark.parametrize("opset", [10, 13, 19])
@pytest.mark.parametrize(
    "window",
    [
        "AveragePool <kernel_shape = [2, 2], pads = [1, 1, 1, 1]>",
        "AveragePool <kernel_shape = [2, 2], count_include_pad = 1>",
        "AveragePool <kernel_shape = [2, 2]>",
        "AveragePool <kernel_shape = [3, 3], ceil_mode = 1, strides = [2, 2]>",
        'AveragePool <kernel_shape = [2, 2], auto_pad = "SAME_UPPER">',
        "MaxPool <kernel_shape = [2, 2]>",
        "MaxPool <kernel_shape = [3, 3], pads = [1, 0, 1, 0]>",
        "LpPool <kernel_shape = [2, 2]>",
    ],
)
def test_a_pad_in_front_of_a_pool(window: str, opset: int, recipe: str) -> None:
    """Padded zeros count in the mean, and are larger than what is negative."""
    pad = "Pad <pads = [0, 0, 1, 1, 0, 0, 1, 1]> (x)" if opset == 10 else "Pad (x, p)"
    proto = parse(
        f"g (float[N,2,5,5] x) => (float[N,2,h,w] y) {{ a = {pad} y = {window} (a) }}", opset
    )
    if opset > 10:
        given(proto, p=ints(0, 0, 1, 1, 0, 0, 1, 1))
    hold(proto, {"x": -np.abs(noise(2, 2, 5, 5))}, rounding=True, recipe=recipe)


@pytest.mark.parametrize(
    "cut", ["start = 0", "start = 1", "start = 1, end = 2", "end = -1", "start = -9"]
)
def test_a_shape_has_a_start_and_an_end(cut: str) -> None:
    proto = parse(f"g (float[2,3,N] x) => (int64[k] y) {{ y = Shape <{cut}> (x) }}")
    hold(proto, {"x": noise(2, 3, 4)}, {"x": noise(2, 3, 1)})
    text = (
        f"g (float[2,3,4] x) => (int64[k] y) {{ a = Shape <{cut}> (x) b = Shape (x) "
        "y = Concat <axis = 0> (a, b) }"
    )
    after = hold(parse(text), {"x": noise(2, 3, 4)})
    assert ops(after.graph) == ["Constant"]


def test_the_bounds_of_a_clip_are_told_apart() -> None:
    proto = given(
        parse(
            "g (float[N] x) => (float[N] p, float[N] q, float[N] r) "
            "{ a = Clip (x, , c) b = Clip (x, c) d = Clip (x, c, c) "
            "p = Neg (a) q = Neg (b) r = Neg (d) }"
        ),
        c=F32(0.5),
    )
    after = hold(proto, {"x": np.array([-1, 0.25, 2], F32)})
    assert ops(after.graph).count("Clip") == 3


@pytest.mark.parametrize("opset", [7, 10, 12, 17])
def test_the_mask_of_a_dropout_is_no_copy_of_its_input(opset: int) -> None:
    mask = "float" if opset < 10 else "bool"
    proto = parse(
        f"g (float[N] x) => (float[N] y, {mask}[N] m) {{ y, m = Dropout (x) }}", opset, ir=7
    )
    after = hold(proto, {"x": noise(5)})
    assert ops(after.graph) == ["Dropout"]
    proto = parse(
        "g (float[N] x) => (float[N] y) "
        "{ a, m = Dropout (x) k = Cast <to = 1> (m) y = Sub (a, k) }",
        max(opset, 10),
        ir=7,
    )
    hold(proto, {"x": noise(5)})


@pytest.mark.parametrize("inner", ["Log", "Exp", "Sqrt", "Sigmoid", "Relu", "Floor"])
@pytest.mark.parametrize("outer", ["ArgMax", "ArgMin"])
def test_the_place_of_the_largest_is_not_taken_from_before(inner: str, outer: str) -> None:
    """The logarithm of what is negative is NaN, an exponential may be infinite, both may round."""
    proto = parse(
        f"g (float[N,5] x) => (int64[N,1] y) {{ a = {inner} (x) y = {outer} <axis = 1> (a) }}"
    )
    rows = np.array([[1, -1, 3, 0, 2], [200, 300, 1, 2, 3], [1, 1 + 2**-23, 1, 1, 1]], F32)
    after = hold(proto, {"x": rows})
    assert ops(after.graph) == [inner, outer]


def test_a_constant_keeps_the_dtype_of_its_attribute() -> None:
    proto = parse(
        """g (float[N] x) => (float[N] y, int64[2] i, float f, float[2] fs) {
          a = Constant <value_float = 0.1> ()
          f = Constant <value_float = 0.1> ()
          i = Constant <value_ints = [1, 2]> ()
          fs = Constant <value_floats = [0.1, 2.0]> ()
          b = Constant <value_int = 3> ()
          c = Cast <to = 1> (b)
          d = Mul (x, a)
          y = Add (d, c)
        }"""
    )
    after = hold(proto, {"x": noise(4)})
    kept = [numpy_helper.to_array(t) for t in after.graph.initializer]
    assert {array.dtype for array in kept} == {np.dtype(F32)}


def test_attributes_of_other_domains_keep_their_types() -> None:
    """An ai.onnx.ml node lists floats that are whole, and an empty list."""
    node = helper.make_node("Scaler", ["b"], ["y"], domain="ai.onnx.ml")
    node.attribute.append(helper.make_attribute("offset", [0.0, 1.0]))
    node.attribute.append(helper.make_attribute("scale", [1.0, 2.0]))
    other = helper.make_node("Mine", ["b"], ["z"], domain="my")
    empty = onnx.AttributeProto(name="none", type=onnx.AttributeProto.INTS)
    other.attribute.extend([empty, helper.make_attribute("texts", ["", "a"])])
    proto = parse(
        "g (float[N,2] x) => (float[N,2] y) { a = Neg (x) c = Identity (a) b = Neg (c) }",
        domains=', "ai.onnx.ml": 3, "my": 1',
    )
    proto.graph.node.append(node)
    after = hold(proto, {"x": noise(3, 2)})
    assert after.graph.node[-1].attribute == node.attribute
    proto.graph.node.append(other)
    proto.graph.output.append(helper.make_tensor_value_info("z", 1, None))
    after = surgeon.apply(proto, "clean", verify=False).model.to_proto()
    assert next(n for n in after.graph.node if n.domain == "my").attribute == other.attribute


@pytest.mark.parametrize(("rest", "groups"), [(-1, 2), (4, -1), (4, 2)])
def test_a_reshape_to_numbers_that_are_fed(rest: int, groups: int) -> None:
    """Either may be -1 when the model runs, and a Reshape infers one length."""
    proto = parse(
        "g (float[n,t,6] x, int64[1] rest, int64[1] groups) => (float[a,b,c,d] y) { "
        "s = Shape (x) n = Slice (s, zero, one) "
        "k = Concat <axis = 0> (n, rest, three, groups) y = Reshape (x, k) }"
    )
    given(proto, zero=ints(0), one=ints(1), three=ints(3))
    hold(proto, {"x": noise(2, 4, 6), "rest": ints(rest), "groups": ints(groups)})


def test_a_reshape_of_what_a_mask_may_leave_empty() -> None:
    """A Reshape infers no length beside one that the data make 0."""
    proto = parse(
        "g (float[n,f] x) => (float[k,a,2] y) { b = Greater (x, low) m = ReduceMax <axes = [1], "
        "keepdims = 0> (x) h = Greater (m, low) z = NonZero (h) i = Squeeze (z, zero) "
        "s = Gather <axis = 0> (x, i) shape = Shape (s) rows = Gather (shape, zero) "
        "columns = Gather (shape, one) half = Div (columns, two) "
        "t = Concat <axis = 0> (rows, half, two) y = Reshape (s, t) }",
        opset=17,
    )
    given(proto, low=F32(0), zero=ints(0), one=ints(1), two=ints(2))
    hold(proto, *({"x": F32(sign) * np.ones((3, 4), F32)} for sign in (1, -1)))
