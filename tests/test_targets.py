"""The runtimes that models are repaired for take the result, and compute it right.

OpenVINO runs on any CPU; TensorRT-RTX parses and builds without a GPU, and is an optional extra.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

import surgeon

MODELS = [
    ("dymn", "dymn_tiny/dymn_tiny.onnx"),
    ("dymn", "dymn_tiny/dymn_tiny_static.onnx"),
    ("adaptive-pool,shape-chains", "flatten_pool/flatten_pool_uneven.onnx"),
    ("shape-chains", "flatten_pool/flatten_pool.onnx"),
]


def optional(name: str) -> Any:
    """The module, or a skip that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return pytest.skip(f"{name} is not installed; `make test-targets` installs it")


@pytest.fixture(params=MODELS, ids=[path.rpartition("/")[2] for _, path in MODELS])
def repaired(request: pytest.FixtureRequest, samples: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The original and what surgeon made of it."""
    recipes, name = request.param
    source, target = samples / name, tmp_path / "out.onnx"
    surgeon.apply(source, *recipes.split(",")).model.save(target)
    return source, target


@pytest.mark.targets
@pytest.mark.slow
def test_openvino_computes_what_pytorch_computed(repaired: tuple[Path, Path]) -> None:
    openvino = optional("openvino")
    source, target = repaired
    core = openvino.Core()
    # bfloat16 is OpenVINO's choice on some processors; what is compared here is the graph.
    model = core.compile_model(str(target), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    recorded = sorted(source.parent.glob(f"{source.stem}.*.npz"))
    assert recorded
    for file in recorded:
        data = np.load(file)
        inputs = {key[3:]: data[key] for key in data.files if key.startswith("in.")}
        outputs = model(inputs)
        for key in data.files:
            if key.startswith("out."):
                expected, got = data[key], outputs[key[4:]]
                assert got.shape == expected.shape
                assert np.abs(got - expected).max() <= 1e-4 * np.abs(expected).max(), file.name


RARE = [
    "(float[n,3,3] x) => (float[n] y) { y = Det (x) }",
    "(float[n] x) => (float[n] y) { y = Softmax (x) }",
    """(float[n,2,9] x) => (float[n,2,7] y) {
      y = MaxPool <dilations = [2], kernel_shape = [2]> (x)
    }""",
    """(float[n,1,5] x) => (float[n,1,12] y) <float[1,1,2] w = {1, 2}> {
      y = ConvTranspose <dilations = [3], strides = [2]> (x, w)
    }""",
]


@pytest.mark.targets
@pytest.mark.slow
@pytest.mark.parametrize("text", RARE)
def test_tensorrt_rtx_parses_what_rare_forms_makes(text: str) -> None:
    trt = optional("tensorrt_rtx")
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> g {text}')
    mended = surgeon.apply(model, "rare-forms").model.to_proto()
    log = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(log)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    reader = trt.OnnxParser(network, log)
    parsed = reader.parse(mended.SerializeToString())
    assert parsed, [reader.get_error(i).desc() for i in range(reader.num_errors)]


@pytest.mark.targets
@pytest.mark.slow
def test_tensorrt_rtx_parses_and_builds_it(repaired: tuple[Path, Path]) -> None:
    trt = optional("tensorrt_rtx")
    _, target = repaired
    log = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(log)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, log)
    parsed = parser.parse_from_file(str(target))
    assert parsed, [parser.get_error(i).desc() for i in range(parser.num_errors)]
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1  # without a GPU the target has to be named
    config.set_compute_capability(trt.ComputeCapability.SM80, 0)
    profile = builder.create_optimization_profile()
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        small, usual, large = (
            [size if dim < 0 else dim for dim, size in zip(tensor.shape, sizes, strict=True)]
            for sizes in ([1, 1, 32, 16], [2, 1, 32, 40], [4, 1, 32, 80])
        )
        profile.set_shape(tensor.name, small, usual, large)
    config.add_optimization_profile(profile)
    assert builder.build_serialized_network(network, config) is not None
