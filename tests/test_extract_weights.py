"""`extract --weights-as-inputs`: weights that the caller gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from command import run
from onnx import numpy_helper, parser

import surgeon

ADAPTED = """
<ir_version: 8, opset_import: ["": 17]>
g (float[n, 4] x, bool on) => (float[n, 4] y) <
  float[4, 4] w = {1, 0, 0, 2, 0, 1, 0, 0, 3, 0, 1, 0, 0, 0, 0, 1},
  float[4, 1] "l.lora_A.weight" = {1, 2, 3, 4}, float[1, 4] "l.lora_B.weight" = {1, 0, -1, 0},
  float "lora.unread" = {2}
> {
  p = MatMul (x, w)
  y = If (on) <
    then_branch = a () => (float[n, 4] t) {
      d = MatMul (x, "l.lora_A.weight")
      u = MatMul (d, "l.lora_B.weight")
      t = Add (p, u)
    },
    else_branch = b () => (float[n, 4] e) { e = Identity (p) }
  >
}
"""
A, B = "l.lora_A.weight", "l.lora_B.weight"


def test_weights_become_inputs_behind_the_others() -> None:
    whole = parser.parse_model(ADAPTED)
    found = surgeon.extract(whole, weights_as_inputs="*lora*", require="equivalent")
    made = found.model.to_proto()
    assert [value.name for value in made.graph.input] == ["x", "on", A, B]
    assert [value.shape for value in found.inputs][2:] == [(4, 1), (1, 4)]
    assert [tensor.name for tensor in made.graph.initializer] == ["w"]
    weights = {t.name: numpy_helper.to_array(t) for t in whole.graph.initializer}
    feeds = {"x": np.ones((2, 4), np.float32), "on": np.array(True)}
    (was,) = ort.InferenceSession(whole.SerializeToString()).run(None, feeds)
    session = ort.InferenceSession(made.SerializeToString())
    (now,) = session.run(None, feeds | {A: weights[A], B: weights[B]})
    np.testing.assert_array_equal(now, was)
    (other,) = session.run(None, feeds | {A: 2 * weights[A], B: weights[B]})
    assert not np.array_equal(other, was)


def test_they_stand_beside_ends_that_are_named(tmp_path: Path) -> None:
    onnx.save(parser.parse_model(ADAPTED), tmp_path / "in.onnx")
    said = run("extract", tmp_path / "in.onnx", tmp_path / "out.onnx", "--to", "p",
               "--weights-as-inputs", "w")  # fmt: skip
    assert said.exit_code == 0, said.output
    made = onnx.load(tmp_path / "out.onnx")
    assert [value.name for value in made.graph.input] == ["x", "w"]
    assert not made.graph.initializer


@pytest.mark.parametrize("name", ["lora.unread", "l.lora_C", "x"])
def test_what_the_part_reads_no_weight_of(name: str) -> None:
    with pytest.raises(surgeon.SurgeonError, match=r"^weights_as_inputs: the part reads no"):
        surgeon.extract(parser.parse_model(ADAPTED), weights_as_inputs=name)
