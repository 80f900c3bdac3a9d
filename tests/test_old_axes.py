"""Operands that an attribute lines up with an axis, before opset 7."""

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

import surgeon

X = np.arange(1, 49, dtype=np.float32).reshape(2, 3, 4, 2)
CASES = {
    "a vector of channels": ("Add", "axis = 1, ", (3,), (1, 3, 1, 1)),
    "a matrix of rows": ("Mul", "axis = 1, ", (3, 4), (1, 3, 4, 1)),
    "an axis from behind": ("Sub", "axis = -2, ", (4,), (1, 1, 4, 1)),
    "the first": ("Div", "axis = 0, ", (2,), (2, 1, 1, 1)),
    "the last": ("Pow", "axis = 3, ", (2,), (1, 1, 1, 2)),
    "none": ("Add", "", (4, 2), (1, 1, 4, 2)),
    "one number": ("Mul", "axis = 1, ", (1,), (1, 1, 1, 1)),
}
NUMPY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power}


@pytest.mark.parametrize("listed", [False, True], ids=["computed", "constant"])
@pytest.mark.parametrize(("operator", "axis", "shape", "lined"), CASES.values(), ids=CASES)
def test_it_lines_up_as_before(operator: str, axis: str, shape, lined, listed: bool) -> None:
    second = np.linspace(0.5, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    sizes = ",".join(map(str, shape))
    proto = onnx.parser.parse_model(f"""<ir_version: 3, opset_import: ["": 6]>
        g (float[2,3,4,2] x, float[{sizes}] b) => (float[2,3,4,2] y) {{
        r = Relu (x) y = {operator} <{axis}broadcast = 1> (r, b) }}""")
    feeds = {"x": X, "b": second}
    if listed:
        proto.graph.initializer.append(onnx.numpy_helper.from_array(second, "b"))
        del feeds["b"]
    result = surgeon.apply(proto, "clean", opset=13, strict=True)
    assert result.report.status == "equivalent"
    made = result.model.to_proto()
    session = onnxruntime.InferenceSession(made.SerializeToString())
    (found,) = session.run(None, feeds)
    wanted = NUMPY[operator](X, second.reshape(lined))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


NETWORK = """<ir_version: 3, opset_import: ["": 6]>
    g (float[1,3,8,8] x, float[4,3,3,3] w, float[4] s, float[4] b, float[4] m, float[4] v,
       float[4] p, float[4,5] k, float[5] c) => (float[1,5] y) {
        a = Conv <kernel_shape = [3, 3]> (x, w)
        n = BatchNormalization <TEST epsilon = 0.001> (a, s, b, m, v)
        q = PRelu (n, p)
        e = AveragePool <kernel_shape = [6, 6]> (q)
        d = Dropout <is_test = 1> (e)
        f = Flatten (d)
        y = Gemm <broadcast = 1> (f, k, c) }"""


def network(test: str) -> onnx.ModelProto:
    proto = onnx.parser.parse_model(NETWORK.replace("TEST", test))
    rng = np.random.default_rng(5)
    for value in proto.graph.input[1:]:
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        array = (rng.random(dims) + 0.1).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    return proto


def test_a_network_of_opset_6_is_compared() -> None:
    result = surgeon.apply(network("is_test = 1,"), "clean", opset=13, strict=True)
    assert result.report.status == "equivalent"
    w, s, b, m, v, p, k, c = (onnx.numpy_helper.to_array(t) for t in network("").graph.initializer)
    x = np.random.default_rng(6).standard_normal((1, 3, 8, 8)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    a = np.einsum("nchwij,ocij->nohw", windows, w)
    s, b, m, v, p = (each.reshape(4, 1, 1) for each in (s, b, m, v, p))
    n = (a - m) / np.sqrt(v + 0.001) * s + b
    wanted = np.where(n < 0, p * n, n).mean((2, 3)) @ k + c
    made = result.model.to_proto().SerializeToString()
    (found,) = onnxruntime.InferenceSession(made).run(None, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_what_trains_is_not_compared() -> None:
    result = surgeon.apply(network(""), "clean", opset=13)
    assert result.report.status == "runs"
    assert "it trains" in str(result.report.verdict)
