"""`int64-in-int32`: what leaves 32 bits stays, and so does what is computed of it."""

import onnx
import pytest

import surgeon

HEADER = '<ir_version: 8, opset_import: ["": 17]> '


@pytest.mark.parametrize(
    "behind",
    [
        "y = Div(a, k)",
        "b = Reshape(a, s) y = Mod(b, seven)",
        "b = Sub(a, seven) y = Mod(b, seven)",
        "b = Concat<axis=0>(x, a) y = Max(b, seven)",
    ],
)
def test_what_is_computed_of_a_product_that_the_check_refused_stays(behind: str) -> None:
    model = onnx.parser.parse_model(
        HEADER + "g (int64[N,4] x) => (int64[M,4] y)"
        " <int64 k={1000000000}, int64 seven={7}, int64[2] s={-1,4}>"
        " { a = Mul(x, k) " + behind + " }"
    )
    result = surgeon.apply(model, "int64-in-int32")
    operators = [node.op_type for node in result.model.to_proto().graph.node]
    assert operators == [node.op_type for node in model.graph.node]
    reasons = [miss.reason for miss in result.report.misses]
    assert any("more than 32 bits" in reason for reason in reasons), reasons


def test_what_is_small_again_is_narrow_again() -> None:
    model = onnx.parser.parse_model(
        HEADER + "g (int64[N,4] x) => (int64[N,4] y) <int64 k={2654435761}, int64 seven={7}>"
        " { a = Mul(x, k) b = Mod(a, seven) c = Add(b, seven) y = Min(c, seven) }"
    )
    result = surgeon.apply(model, "int64-in-int32")
    operators = [node.op_type for node in result.model.to_proto().graph.node]
    assert operators == ["Mul", "Mod", "Cast", "Add", "Min", "Cast"]
