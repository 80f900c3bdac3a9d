"""The witness beside what PyTorch recorded, and beside PyTorch itself."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference_models import normal, one_node

from surgeon.reference import NoWitness, Reference, Undefined

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)


def recorded(path: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    sets = []
    for file in sorted(
        [*path.parent.glob(path.stem + ".npz"), *path.parent.glob(path.stem + ".[0-9].npz")]
    ):
        with np.load(file) as arrays:
            feeds = {k[3:]: arrays[k] for k in arrays.files if k.startswith("in.")}
            sets.append((feeds, {k[4:]: arrays[k] for k in arrays.files if k.startswith("out.")}))
    return sets


@pytest.mark.corpus
@pytest.mark.parametrize(
    "name",
    [
        "models/dymn01_dynT__t2.13.0__fallback",
        "ops/adaptive_avg_pool2d_1_none_dynhw__t1.12.1__fallback",
        "ops/adaptive_max_pool2d_indices__t1.12.1__fallback",
        "ops/dyconv_dynt__t2.4.1__fallback",
        "ops/group_norm_plain__t1.4.0__fallback",
    ],
)
def test_the_witness_reproduces_pytorch(name: str, corpus: Path) -> None:
    path = corpus / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{name} is not in the corpus")
    reference = Reference(path)
    for feeds, outputs in recorded(path):
        found = reference.run(feeds)
        for key, want in outputs.items():
            assert found[key].shape == want.shape
            assert np.abs(found[key] - want).max() <= 2e-5 * max(1, np.abs(want).max())


@pytest.mark.corpus
def test_a_batch_that_tracing_froze_is_undefined(corpus: Path) -> None:
    path = corpus / "models/dymn01_dynB__t2.4.1__fallback.onnx"
    reference = Reference(path)
    traced, larger, *_ = recorded(path)
    assert np.allclose(reference.run(traced[0])["output0"], traced[1]["output0"], atol=1e-4)
    with pytest.raises(Undefined, match="groups=16"):
        reference.run(larger[0])


@needs_torch
def test_torch_says_the_same() -> None:
    from surgeon.reference.torch_witness import TorchWitness

    x = normal(2, 3, 7, 5)
    model = one_node("adaptive_max_pool2d", [x, [3, 2]], outputs=2)
    ours = Reference(model).run({"v0": x})
    theirs = Reference(model, witness=TorchWitness()).run({"v0": x})
    for name, value in ours.items():
        np.testing.assert_array_equal(value, theirs[name])
    with pytest.raises(NoWitness, match="torch has no such operator"):
        Reference(one_node("no_such", [x]), witness=TorchWitness()).run({"v0": x})
    with pytest.raises(Undefined):
        Reference(one_node("view", [x, [4, 4]]), witness=TorchWitness()).run({"v0": x})
