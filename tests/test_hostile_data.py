"""External data that reach out of the model's folder, or beyond their file: refused, not read."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hostile_command import EVERY, Runner, attempt, batch_of, others, rules, sampled, save, surgeon
from hostile_data import SECRET, WHERE, reaching
from hostile_models import with_tensor
from onnx import TensorProto, helper

__all__ = ["rules", "surgeon"]  # fixtures of `hostile_command`

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork, and no limits, here")


@pytest.mark.slow
@pytest.mark.parametrize("kind", sampled(WHERE))
def test_external_data(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    folder, phrase = tmp_path / "model", WHERE[kind][1]
    path = save(folder, reaching(kind, folder))
    for options in ((), ("--no-verify",)):
        attempt(surgeon, rules, path, (4,), phrase, options)
    attempt(surgeon, rules, path, (4,), phrase, ("--reference", "witness"))
    assert (tmp_path / "secret.bin").read_bytes() == SECRET


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(WHERE)[::EVERY])
def test_external_data_elsewhere(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    others(surgeon, rules, save(folder, reaching(kind, folder)), kind)
    assert (tmp_path / "secret.bin").read_bytes() == SECRET


@pytest.mark.slow
def test_a_batch_with_external_data(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    for index, kind in enumerate(WHERE):
        data = reaching(kind, folder).SerializeToString()
        (folder / f"{index}.onnx").write_bytes(data)
    batch_of(surgeon, rules, folder, len(WHERE))
    assert (tmp_path / "secret.bin").read_bytes() == SECRET
    for path in (tmp_path / "dest").rglob("*"):
        assert not path.is_file() or b"secretsecret" not in path.read_bytes(), path


@pytest.mark.slow
def test_tensors_may_share_their_data(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(np.arange(8, dtype=np.float32).tobytes())
    model = with_tensor()
    model.graph.node[2].output[0] = "c"
    model.graph.node.append(helper.make_node("Mul", ["c", "v"], ["y"]))
    model.graph.initializer.add().CopyFrom(model.graph.initializer[0])
    for index, tensor in enumerate(model.graph.initializer):
        tensor.name = "wv"[index]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="data.bin")
        tensor.external_data.add(key="offset", value=str(index * 8))
        tensor.external_data.add(key="length", value="16")
    attempt(surgeon, rules, save(tmp_path, model), (0,))
