"""What rounds to levels may give the next one by a rounding: no fault of a rewrite."""

from __future__ import annotations

import numpy as np
import onnx
from verdicts import parse

from surgeon.verify import verify
from surgeon.verify.noise import moved_weights, rounds_to_levels
from surgeon.verify.originals import open_original

LEVELS = """
    g (float[b,8] x) => (float[b,1] y)
    <float[8] norm, int8[8,1] w, float scale = {0.01}, uint8 zero = {128}> {
      n = Mul (x, norm)
      q, s, z = DynamicQuantizeLinear (n)
      i = MatMulInteger (q, w, z)
      f = Cast <to = 1> (i)
      t = Mul (s, scale)
      y = Mul (f, t)
    }"""


def levels() -> onnx.ModelProto:
    """A product of levels."""
    model = parse(LEVELS.replace("<float[8] norm, int8[8,1] w, ", "<"))
    generator = np.random.default_rng(0)
    norm = generator.uniform(0.5, 1.5, 8).astype(np.float32)
    weights = generator.integers(-127, 128, (8, 1)).astype(np.int8)
    model.graph.initializer.append(onnx.numpy_helper.from_array(norm, "norm"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return model


def test_scales_and_norms_are_moved_where_weights_are_integers() -> None:
    model = levels()
    assert rounds_to_levels(model)
    moved = moved_weights(model, 0)
    assert moved is not None
    before, after = (
        {t.name: onnx.numpy_helper.to_array(t) for t in each.graph.initializer}
        for each in (model, moved)
    )
    assert not np.array_equal(before["norm"], after["norm"])
    assert np.allclose(before["norm"], after["norm"], rtol=1e-5)
    assert np.array_equal(before["w"], after["w"])
    plain = parse("g (float[b,2] x) => (float[b,2] y) <float[2] n = {1, 2}> { y = Mul (x, n) }")
    assert moved_weights(plain, 0) is None


def test_weights_are_moved_beside_inputs_where_these_are_rounded_at_once() -> None:
    feeds = {"x": np.ones((2, 8), np.float32)}
    runs = list(open_original(levels(), None, None).trembling_runs(feeds, ["y"]))
    assert len(runs) == 3 + 6
    plain = parse("g (float[b,8] x) => (float[b,8] y) { y = Neg (x) }")
    assert len(list(open_original(plain, None, None).trembling_runs(feeds, ["y"]))) == 3


def test_another_weight_is_one() -> None:
    other = levels()
    wrong = onnx.numpy_helper.to_array(other.graph.initializer[-1]).copy()
    wrong[0] += 20
    other.graph.initializer[-1].CopyFrom(onnx.numpy_helper.from_array(wrong, "w"))
    assert verify(levels(), other).status == "differs"
