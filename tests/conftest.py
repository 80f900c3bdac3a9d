"""What the tests share: where the samples are, and where the corpus of real exports may be."""

import os
from pathlib import Path

import pytest
from command import DOUBLE
from command_files import save
from hypothesis import settings

ROOT = Path(__file__).parent.parent

# A runtime's sessions start at their own pace: no wall-clock limit on one example.
settings.register_profile("surgeon", deadline=None)
settings.load_profile("surgeon")


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder `samples/`."""
    return ROOT / "samples"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real exports (`$SURGEON_CORPUS`, else `../shared/corpus`); skips without it."""
    folder = Path(os.environ.get("SURGEON_CORPUS") or ROOT.parent / "shared" / "corpus")
    if not folder.is_dir():
        pytest.skip("no corpus of real exports: name its folder in SURGEON_CORPUS")
    return folder


@pytest.fixture
def double(tmp_path: Path) -> Path:
    """A recipe that is right."""
    path = tmp_path / "double.yaml"
    path.write_text(DOUBLE)
    return path


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """y = Neg(Neg(x)) + Sin(x), with a dynamic batch."""
    body = "net (float[n,4] x) => (float[n,4] y) {a = Neg(x) b = Neg(a) c = Sin(x) y = Add(b, c)}"
    return save(tmp_path / "net.onnx", body)
