"""What drawn graphs compute stays, in `clean` and other recipes, without any verification."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from drawn_steps import KINDS, Drawn
from shares import some

import surgeon
from surgeon.runtime import Session

OTHERS = """for-opencv-4 for-ncnn for-tensorrt for-tflite for-rknn for-qnn for-tract for-tvm
for-iree for-mnn for-nncase for-onnx2torch for-tpu-mlir int64-in-int32 few-axes mask-forms
logic-forms range-forms arithmetic-decompose reductions-decompose indexing-decompose""".split()
TYPED = {"numbers": "int64-in-int32", "floats": "float64-in-float32"}
MANY, FEW = range(some(16, of=300)), range(some(4, of=60))


def check(drawn: Drawn, recipe: str, rough: float = 1e-4) -> onnx.ModelProto:
    allow = ["contract", "approximate"] if recipe in TYPED.values() else ["contract"]
    result = surgeon.apply(drawn.model, recipe, verify=False, allow=allow)
    failed = [failure for failure in result.report.failures if "was skipped" not in failure]
    assert not failed
    made = result.model.to_proto()
    before, after = Session(drawn.model), Session(made)
    for feeds in drawn.feeds:
        wanted, found = before.run(feeds), after.run(feeds)
        assert wanted.keys() == found.keys()
        for name, array in wanted.items():
            assert found[name].dtype == array.dtype
            assert found[name].shape == array.shape
            if array.dtype == object:
                assert (found[name] == array).all()
                continue
            rough = 4e-3 if "h" in drawn.types.values() else rough
            np.testing.assert_allclose(found[name], array, rough, rough)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_drawn_graphs_compute_stays_and_a_second_run_changes_nothing(kind: str) -> None:
    for seed in FEW if kind in ("bodies", "domains", "maybe") else MANY:
        drawn = Drawn(seed, kind)
        made = check(drawn, "clean")
        assert not surgeon.apply(made, "clean", verify=False).report.changes, f"seed {seed}"
        other = OTHERS[seed % len(OTHERS)]
        made = check(drawn, other)
        again = surgeon.apply(made, other, verify=False, allow=["contract"])
        assert not again.report.changes, f"seed {seed}, {other}"
        if kind in TYPED:
            check(drawn, TYPED[kind], 1e-3)
