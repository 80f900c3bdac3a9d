"""Limits that projects publish: each is told of a node that is beyond it, and of none within."""

from __future__ import annotations

import onnx.parser
import pytest

from surgeon.limits import beyond
from surgeon.model import Model
from surgeon.targets import target, targets

# What nodes of the cases read: inputs of 2 to 6 axes, and constants.
_INPUTS = """
float[4,4] m, float[1,4,8] l, float[1,4,8,8] x, float[1,4,8,8,8] v, float[1,4,8,8,8,8] f,
float[2,4,1,1] w, float[4] r, int8[4] q, int64[1] i, int64[2] ii, int64[4] iiii, int64 j, float k,
int64[4] places, int64[4,1] rows, bool b, float16[4] h, float[4,8,8,2] grid,
float[1,8,4] lw, float[1,8,2] lr, float[1,4,8,8,3] cells, int64[1,4,1] line
"""
_CONSTANTS = """
float ck = {0.5}, float[4] cr = {1, 1, 1, 1}, int64[1] one = {1}, int64[2] two = {2, 2},
int64[4] sizes = {1, 4, 9, 9}, int64[8] pads = {0, 0, 0, 0, 0, 0, 1, 1}, int64 cj = {1},
float[2,4,1,1] cw = {1, 1, 1, 1, 1, 1, 1, 1}, float[2,4,1] clw = {1, 1, 1, 1, 1, 1, 1, 1},
float[2,4,1,1,1] cvw = {1, 1, 1, 1, 1, 1, 1, 1},
float[4,2,1,1] ctw = {1, 1, 1, 1, 1, 1, 1, 1}, float[2] kk = {1, 1},
float[4,2] cm = {1, 1, 1, 1, 1, 1, 1, 1},
int64[8] cut = {0, 0, 0, 0, 0, 0, -1, 0}, int64[4] shape = {4, 1, 8, 8}, int64[1] many = {4000},
int8 z0 = {0}, int8 z3 = {3}, uint8 z128 = {128}, int8[4] zz = {0, 0, 1, 0},
bool yes = {1}, bool no = {0}
"""
_ASYMMETRIC = 'coordinate_transformation_mode = "asymmetric"'
_Q = "QuantizeLinear"

# Lists, what is within their limits, and what is beyond one: an operator, attributes and operands.
CASES = [
    ("tensorrt-10.15", f"{_Q} (x, ck, z0)", f"{_Q} (x, ck, z3)"),
    ("tensorrt-8.0", f"{_Q} (x, ck)", f"{_Q} (x, ck, z128)"),
    ("tensorrt-9.0", "DequantizeLinear (q, ck)", "DequantizeLinear <axis = 0> (q, cr, zz)"),
    (
        "tensorrt-8.6",
        f"Resize <{_ASYMMETRIC}> (x, , , sizes)",
        'Resize <coordinate_transformation_mode = "half_pixel_symmetric"> (x, , , sizes)',
    ),
    (
        "tensorrt-8.6",
        'Resize <mode = "linear"> (x, , , sizes)',
        'Resize <mode = "cubic"> (x, , , sizes)',
    ),
    (
        "tensorrt-10.0",
        'Resize <mode = "linear"> (x, , , sizes)',
        'Resize <mode = "linear", antialias = 1> (x, , , sizes)',
    ),
    (
        "tensorrt-7.0",
        "MaxPool <kernel_shape = [2, 2]> (x)",
        "MaxPool <kernel_shape = [1, 1, 1, 1]> (f)",
    ),
    (
        "tensorrt-7.0",
        "AveragePool <kernel_shape = [2, 2]> (x)",
        "AveragePool <kernel_shape = [1, 1, 1, 1]> (f)",
    ),
    ("tensorrt-8.5", "Conv (x, w)", "Conv (f, w)"),
    ("tensorrt-8.4", "Conv (x, cw)", "Conv (x, w)"),
    ("tensorrt-8.0", "Clip (x, ck)", "Clip (x, k)"),
    ("tensorrt-8.5", "InstanceNormalization (x, cr, cr)", "InstanceNormalization (x, r, cr)"),
    ("tensorrt-10.1", "Slice (x, i, i, one)", "Slice (x, i, i, i)"),
    ("tensorrt-10.15", "Squeeze (x, one)", "Squeeze (x, i)"),
    ("tensorrt-7.2", "CumSum (x, cj)", "CumSum (x, j)"),
    (
        "tensorrt-8.6",
        "MaxPool <kernel_shape = [2, 2]> (x)",
        "p; MaxPool <kernel_shape = [2, 2]> (x)",
    ),
    ("tensorrt-8.4", "p; TopK (x, one)", "p; TopK (x, i)"),
    (
        "tensorrt-8.6",
        'Einsum <equation = "abcd->acbd"> (x)',
        'Einsum <equation = "...cd->...dc"> (x)',
    ),
    ("tensorrt-9.3", "OneHot (places, cj, kk)", "OneHot (places, j, kk)"),
    (
        "tensorrt-10.0",
        "MaxPool <kernel_shape = [2, 2]> (x)",
        "MaxPool <kernel_shape = [2, 2], dilations = [2, 2]> (x)",
    ),
    (
        "tensorrt-10.0",
        "AveragePool <kernel_shape = [2, 2]> (x)",
        "LpPool <kernel_shape = [2, 2], dilations = [1, 2]> (x)",
    ),
    ("tensorrt-10.0", "GridSample (x, grid)", "GridSample (v, cells)"),
    ("tensorrt-10.0", "ReduceMax (x, one)", "ReduceMax (x, i)"),
    ("tensorrt-10.0", "Pad (x, pads, ck)", "Pad (x, ii, ck, i)"),
    ("tensorrt-10.15", "ScatterND (r, rows, r)", 'ScatterND <reduction = "add"> (r, rows, r)'),
    ("tensorrt-10.1", "Dropout (x, , no)", "Dropout (x, , yes)"),
    ("tensorrt-10.1", "LayerNormalization (m, cr)", "d; LayerNormalization (m, cr)"),
    (
        "tensorrt-10.1",
        "last, cell; LSTM <hidden_size = 2> (l, lw, lr)",
        "LSTM <hidden_size = 2, layout = 1> (l, lw, lr)",
    ),
    ("tensorrt-10.1", "p; TopK (x, one)", "p; TopK <sorted = 0> (x, one)"),
    ("tensorrt-10.1", "p; TopK (x, one)", "p; TopK (x, many)"),
    *(
        (name, "GlobalAveragePool (x)", "GlobalAveragePool (l)")
        for name in ("coreml-mlprogram", "coreml-neuralnetwork", "nnapi", "webnn")
    ),
    ("coreml-mlprogram", "Conv (x, w)", "Conv (v, cvw)"),
    ("coreml-mlprogram", "Conv (l, clw)", "Conv (x, cw, r)"),
    ("coreml-mlprogram", "ConvTranspose (x, ctw)", "ConvTranspose (x, w)"),
    (
        "coreml-mlprogram",
        "ConvTranspose <pads = [0, 0, 0, 0]> (x, ctw)",
        'ConvTranspose <auto_pad = "SAME_UPPER"> (x, ctw)',
    ),
    (
        "coreml-mlprogram",
        "ConvTranspose <strides = [2, 2]> (x, ctw)",
        "ConvTranspose <output_shape = [9, 9]> (x, ctw)",
    ),
    ("coreml-mlprogram", "GatherND (m, rows)", "GatherND <batch_dims = 1> (m, rows)"),
    ("coreml-mlprogram", "Gemm (m, cm)", "Gemm (m, m)"),
    ("coreml-mlprogram", "GridSample (x, grid)", "GridSample (v, cells)"),
    ("coreml-mlprogram", "Pow (r, ck)", "Pow (h, ck)"),
    ("coreml-mlprogram", "Slice (x, one, two)", "Slice (x, i, two)"),
    ("coreml-mlprogram", "Where (b, r, ck)", "Where (b, j, cj)"),
    ("coreml-neuralnetwork", "Conv (x, cw)", "Conv (x, w)"),
    (
        "coreml-neuralnetwork",
        "DepthToSpace <blocksize = 2> (x)",
        'DepthToSpace <blocksize = 2, mode = "CRD"> (x)',
    ),
    ("coreml-neuralnetwork", "Gather (x, i)", "Gather (x, j)"),
    ("coreml-neuralnetwork", "MatMul (m, cm)", "MatMul (m, m)"),
    ("coreml-neuralnetwork", "Pad (x, pads)", "Pad (x, iiii)"),
    ("coreml-neuralnetwork", "Pad (x, pads)", 'Pad <mode = "reflect"> (x, pads)'),
    ("coreml-neuralnetwork", "Pow (r, ck)", "Pow (h, ck)"),
    (
        "coreml-neuralnetwork",
        f'Resize <{_ASYMMETRIC}, nearest_mode = "floor"> (x, , , sizes)',
        "Resize (x, , , sizes)",
    ),
    ("coreml-neuralnetwork", "Slice (x, one, two)", "Slice (x, i, two)"),
    ("nnapi", "Conv (x, cw)", "Conv (l, clw)"),
    (
        "nnapi",
        "DepthToSpace <blocksize = 2> (x)",
        'DepthToSpace <blocksize = 2, mode = "CRD"> (x)',
    ),
    ("nnapi", f"{_Q} (x, ck, z3)", f"{_Q} (x, k, z3)"),
    ("nnapi", "Gather (x, one)", "Gather (x, i)"),
    ("nnapi", "Gemm <transB = 1> (m, m)", "Gemm (m, m)"),
    ("nnapi", "Pad (x, pads)", "Pad (x, cut)"),
    ("nnapi", "Squeeze (x, one)", "Squeeze (x, i)"),
    (
        "webnn",
        "MaxPool <kernel_shape = [2, 2]> (x)",
        "p; MaxPool <kernel_shape = [2, 2]> (x)",
    ),
    ("webnn", "Conv (x, w)", "Conv (v, cvw)"),
    ("webnn", "CumSum (x, cj)", "CumSum (x, j)"),
    ("webnn", "Reshape (x, shape)", "Reshape (x, iiii)"),
    ("webnn", "GatherND (m, rows)", "GatherND <batch_dims = 1> (m, rows)"),
    ("webnn", "GlobalLpPool <p = 2> (x)", "GlobalLpPool <p = 1> (x)"),
    (
        "webnn",
        "LSTM <hidden_size = 2> (l, lw, lr)",
        "LSTM <hidden_size = 2, clip = 1.0> (l, lw, lr)",
    ),
    ("webnn", 'Pad <mode = "edge"> (x, pads)', 'Pad <mode = "wrap"> (x, pads)'),
    ("webnn", "ReduceSum (x, one)", "ReduceSum (x, i)"),
    ("webnn", "Resize (x, , , sizes)", "Resize (x, , , iiii)"),
    ("webnn", "ScatterND (r, rows, r)", 'ScatterND <reduction = "max"> (r, rows, r)'),
    ("webnn", "Slice (x, one, two)", "Slice (x, i, two)"),
    ("webnn", "Squeeze (x, one)", "Squeeze (x, i)"),
    ("webnn", "Trilu (m, cj)", "Trilu (m, j)"),
]


def places(name: str, node: str) -> set[str]:
    """Where the limits stand that a node is beyond; `p; ` in front names a second output."""
    second, _, call = node.rpartition("; ")
    outputs = f"y, {second}" if second else "y"
    text = (
        f'<ir_version: 9, opset_import: ["": 18]> g ({_INPUTS}) => ({outputs}) <{_CONSTANTS}> '
        f"{{ {outputs} = {call} }}"
    )
    found = beyond(Model(onnx.parser.parse_model(text)), target(name))
    return {each.location for each in found}


@pytest.mark.parametrize(("name", "within", "outside"), CASES)
def test_what_is_beyond_a_limit_is_told(name: str, within: str, outside: str) -> None:
    assert not places(name, within)
    assert len(places(name, outside)) == 1


def test_every_limit_is_shown_to_be_one() -> None:
    written = {str(limit.location) for name in targets() for limit in target(name).limits}
    assert written == {place for name, _, node in CASES for place in places(name, node)}


@pytest.mark.parametrize("opset", [9, 11, 13, 16, 19])
def test_attributes_that_an_opset_lacks_are_within(opset: int) -> None:
    text = (
        f'<ir_version: 4, opset_import: ["": {opset}]> g (float[1,4,8,8] x, float[1,4,8] l, '
        "float[1,8,4] w, float[1,8,2] r) => (y, z) { y = MaxPool <kernel_shape = [2, 2]> (x) "
        "z = LSTM <hidden_size = 2> (l, w, r) }"
    )
    model = Model(onnx.parser.parse_model(text))
    assert not beyond(model, target("tensorrt-10.1"))


def test_limits_hold_for_the_versions_that_state_them() -> None:
    computed = {name for name in targets() if places(name, "Conv (x, w)")}
    assert {"tensorrt-6.0", "tensorrt-8.4", "nnapi"} <= computed
    assert not computed & {"tensorrt-8.5", "tensorrt-10.15", "webnn"}
