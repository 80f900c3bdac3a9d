"""The samples: they are what their scripts make, and hard in the ways that their README says."""

import importlib.util
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

SAMPLES = Path(__file__).parent.parent / "samples"

SETS = {  # file: the sizes recorded
    "dymn_tiny/dymn_tiny": [(2, 1, 32, 40), (1, 1, 32, 33), (3, 1, 32, 51), (4, 1, 32, 27)],
    "dymn_tiny/dymn_tiny_static": [(2, 1, 32, 40), (2, 1, 32, 40)],
    "flatten_pool/flatten_pool": [(2, 3, 28, 28), (1, 3, 28, 28), (3, 3, 28, 28)],
    "flatten_pool/flatten_pool_uneven": [(2, 3, 28, 28), (1, 3, 28, 28), (3, 3, 28, 28)],
}

FALLBACK = {
    "dymn_tiny/dymn_tiny": {"_convolution": 8, "adaptive_avg_pool2d": 6},
    "dymn_tiny/dymn_tiny_static": {},
    "flatten_pool/flatten_pool": {},
    "flatten_pool/flatten_pool_uneven": {"adaptive_avg_pool1d": 1},
}

MADE_WITH = "2.13.0"

each = pytest.mark.parametrize("name", SETS)


def load(name: str) -> onnx.ModelProto:
    return onnx.load(SAMPLES / f"{name}.onnx")


def operator(node: onnx.NodeProto) -> str:
    """The ATen operator, in either spelling."""
    named = {a.name: a.s.decode() for a in node.attribute if a.name == "operator"}
    return named.get("operator", node.op_type)


@each
def test_the_recorded_sets_fit_the_inputs_and_are_of_the_sizes_meant(name: str) -> None:
    graph = load(name).graph
    (value,) = graph.input
    dims = value.type.tensor_type.shape.dim
    for at, shape in enumerate(SETS[name]):
        recorded = np.load(SAMPLES / f"{name}.{at}.npz")
        outputs = {f"out.{output.name}" for output in graph.output}
        assert set(recorded) == {f"in.{value.name}", *outputs}
        given = recorded[f"in.{value.name}"]
        assert given.shape == shape
        assert given.dtype == np.float32
        assert all(d.dim_param or d.dim_value == n for d, n in zip(dims, shape, strict=True))
        assert all(recorded[key].shape[0] == shape[0] for key in outputs)
    assert not (SAMPLES / f"{name}.{len(SETS[name])}.npz").exists()


@each
def test_samples_of_a_batch_differ_in_every_output(name: str) -> None:
    """Else a mended file that mixes the samples up would be taken for right."""
    recorded = np.load(SAMPLES / f"{name}.0.npz")
    for key in recorded:
        if key.startswith("out."):
            first, second = recorded[key]
            assert np.abs(first - second).max() > 0.02 * np.abs(first).max()


@each
def test_holds_the_fallback_nodes_that_the_readme_names(name: str) -> None:
    nodes = load(name).graph.node
    found = Counter(operator(node) for node in nodes if node.domain == "org.pytorch.aten")
    assert found == FALLBACK[name]


def test_the_traced_batch_is_frozen_into_the_groups() -> None:
    graph = load("dymn_tiny/dymn_tiny").graph
    constants = {
        node.output[0]: onnx.numpy_helper.to_array(node.attribute[0].t)
        for node in graph.node
        if node.op_type == "Constant"
    }
    groups = [
        int(constants[node.input[8]]) for node in graph.node if operator(node) == "_convolution"
    ]
    assert groups == [16, 2, 2, 40, 2, 2, 56, 2]


@each
def test_the_files_stay_small(name: str) -> None:
    assert sum(path.stat().st_size for path in (SAMPLES / name).parent.iterdir()) < 420_000


def _weights(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """The floating-point numbers of a model: initializers and constants."""
    constants = [a.t for n in model.graph.node if n.op_type == "Constant" for a in n.attribute]
    return [t for t in [*model.graph.initializer, *constants] if t.data_type == t.FLOAT]


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["dymn_tiny", "flatten_pool"])
def test_the_script_makes_the_sample(folder: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if torch.__version__.split("+")[0] != MADE_WITH:
        pytest.skip(f"the samples were made with PyTorch {MADE_WITH}")
    spec = importlib.util.spec_from_file_location("make", SAMPLES / folder / "make.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for path in script.make(tmp_path):
        model, sample = onnx.load(path), onnx.load(SAMPLES / folder / path.name)
        # PyTorch's random weights differ in the last bit from one processor to the next.
        for ours, theirs in zip(_weights(model), _weights(sample), strict=True):
            np.testing.assert_allclose(
                onnx.numpy_helper.to_array(ours),
                onnx.numpy_helper.to_array(theirs),
                rtol=1e-5,
                atol=1e-7,
            )
            ours.ClearField("raw_data")
            theirs.ClearField("raw_data")
        assert model == sample
    for path in sorted(tmp_path.glob("*.npz")):
        made, kept = np.load(path), np.load(SAMPLES / folder / path.name)
        assert set(made) == set(kept)
        for key in kept:
            np.testing.assert_allclose(made[key], kept[key], rtol=1e-4, atol=1e-5)
