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
