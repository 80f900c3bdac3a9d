"""What the tests share: where the samples are, and where the corpus of real exports may be."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from command import DOUBLE
from hypothesis import settings

ROOT = Path(__file__).parent.parent

pytest.register_assert_rewrite(  # what they assert is shown as in a test
    "aten_call",
    "aten_layer",
    "aten_matrices",
    "aten_node",
    "command_files",
    "expressions_judged",
    "hostile_command",
    "matching",
    "never_wrong",
    "rich_models",
    "sweeping",
)

# A runtime's sessions start at their own pace: no wall-clock limit on one example. A commit passes
# or fails each time: what is drawn is drawn anew in `make fuzz-graphs` alone.
settings.register_profile("surgeon", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None)
settings.load_profile("surgeon")


@pytest.fixture(autouse=True)
def drawn_alike() -> None:
    """Each test draws the same numbers, whichever ran before it."""
    if (layer := sys.modules.get("aten_layer")) is not None:
        layer.GENERATOR = np.random.default_rng(7)


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
