"""`clean` over onnx's own tests: every operator, type and form that the standard describes.

Its node tests, the models that PyTorch once wrote for it, and whole networks whose weights are a
ConstantOfShape each.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx_cases import cases
from shares import every

import surgeon

PARTS = 8
EVERY = every(8)  # part is run
DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


def required(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def run(model: onnx.ModelProto, inputs: list[Any]) -> list[Any]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options)
    names = [value.name for value in required(model)]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if not isinstance(one, np.ndarray) or one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    # onnxruntime computes some float16 operators in float32, and rounds between those it finds
    loose = 2e-3 if one.dtype == np.float16 else 1e-5
    close = np.allclose(one, other, rtol=loose, atol=loose, equal_nan=True)
    return one.dtype == other.dtype and one.shape == other.shape and close


def _listed(model: onnx.ModelProto) -> list[str]:
    return [value.name for value in model.graph.input]


def fault(case: Any) -> str | None:
    """What is wrong with what `clean` makes of a case; None where nothing is."""
    before = case.model
    data = before.SerializeToString()
    after = surgeon.apply(before, "clean", verify=False).model.to_proto()
    if before.SerializeToString() != data:
        return "the argument was changed"
    if required(before) != required(after) or set(_listed(after)) > set(_listed(before)):
        return "the inputs are declared otherwise"
    if list(before.graph.output) != list(after.graph.output):
        return "the outputs are declared otherwise"
    if after.SerializeToString() == data:
        return None
    inputs = list(case.data_sets[0][0])
    try:
        wanted = run(before, inputs)
    except Exception:  # an operator, type or input that onnxruntime lacks
        return None
    try:
        found = run(after, inputs)
    except Exception:
        return refusal(before)
    return None if same(wanted, found) else "it computes something else"


def refusal(model: onnx.ModelProto) -> str | None:
    """onnxruntime's own inference may find a fault once the branch that hid it is inlined."""
    try:
        surgeon.apply(model, "clean")
    except surgeon.SurgeonError as error:
        return None if "does not load" in error.what else error.what
    return "the result does not run, and was not refused"


def stored(folder: Path) -> Any:
    """A model of onnx's data with its first inputs, in the form of its node tests."""
    model = onnx.load(folder / "model.onnx")
    given = []
    for index, value in enumerate(required(model)):
        path = folder / "test_data_set_0" / f"input_{index}.pb"
        kind = onnx.SequenceProto if value.type.HasField("sequence_type") else onnx.TensorProto
        proto = kind.FromString(path.read_bytes())
        to = onnx.numpy_helper.to_list if kind is onnx.SequenceProto else onnx.numpy_helper.to_array
        given.append(to(proto))
    return SimpleNamespace(name=folder.name, model=model, data_sets=[(given, [])])


@pytest.mark.parametrize("kind", ["simple", "pytorch-operator", "pytorch-converted"])
def test_every_model_that_onnx_brings_along_computes_what_it_did(kind):
    mine = [stored(path.parent) for path in sorted((DATA / kind).glob("*/model.onnx"))]
    assert len(mine) > 15
    faults = {case.name: found for case in mine if (found := fault(case)) is not None}
    assert faults == {}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((DATA / "light").glob("*.onnx")), ids=lambda p: p.stem)
def test_networks_with_computed_weights_do_not_grow(path):
    """Their weights are up to 400 MB, made by nodes: what is folded of them is less than a file."""
    model = onnx.load(path)
    result = surgeon.apply(model, "clean", verify=False)
    after = result.model.to_proto()
    onnx.checker.check_model(after)
    assert list(after.graph.output) == list(model.graph.output)
    assert after.ByteSize() < 3 * model.ByteSize() + (2 << 20)
    assert len(after.graph.node) <= len(model.graph.node)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(0, PARTS, EVERY))
def test_every_node_test_of_onnx_computes_what_it_did(part):
    mine = cases()[part::PARTS]
    assert len(mine) > 100
    faults = {case.name: found for case in mine if (found := fault(case)) is not None}
    assert faults == {}
