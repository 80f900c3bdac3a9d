"""Time, nodes and latency of the `dymn` recipe, beside onnxsim, in one run.

Run: python tests/benchmarks/dymn.py MODEL... (exports of DyMN; default: samples/dymn_tiny)

For each model: seconds of the whole process (the best of three without verification, one with),
nodes without Constant before and after, and the best of 50 runs in onnxruntime on one thread, its
own optimisations off and on, at usual sizes. onnxsim gets the same file.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from running import nodes, session

SAMPLES = Path(__file__).parents[2] / "samples" / "dymn_tiny"
SURGEON = [sys.executable, "-m", "surgeon", "apply", "dymn"]
ONNXSIM = [sys.executable, "-m", "onnxsim"]


def seconds(command: list[str], runs: int = 3) -> float | None:
    """The best wall-clock time of a whole process; None where it fails."""
    best: float | None = None
    for _ in range(runs):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            return None
        best = min(time.perf_counter() - start, best or 1e9)
    return best


def latency(path: Path, *, optimised: bool) -> float | None:
    """The best of 50 runs in milliseconds; None where onnxruntime does not load the model."""
    found = session(path, optimise=optimised)
    if found is None:
        return None
    usual = {0: 2, 3: 100}
    feeds = {
        value.name: np.random.default_rng(0)
        .normal(
            size=[d if isinstance(d, int) else usual.get(i, 32) for i, d in enumerate(value.shape)]
        )
        .astype(np.float32)
        for value in found.get_inputs()
    }
    best = 1e9
    for _ in range(50):
        start = time.perf_counter()
        found.run(None, feeds)
        best = min(best, time.perf_counter() - start)
    return best * 1000


def shown(value: float | None, unit: str) -> str:
    """A figure, or that there is none."""
    return "-" if value is None else f"{value:.2f} {unit}"


def main() -> None:
    """Print one row for each model and tool."""
    models = [Path(name) for name in sys.argv[1:]] or sorted(SAMPLES.glob("*.onnx"))
    for source in models:
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = Path(folder) / "surgeon.onnx", Path(folder) / "onnxsim.onnx"
            bare = seconds([*SURGEON, str(source), str(ours), "--no-verify", "-q"])
            checked = seconds([*SURGEON, str(source), str(ours), "-q"], runs=1)
            other = seconds([*ONNXSIM, str(source), str(theirs)], runs=1)
            sys.stdout.write(
                f"{source.name}: surgeon {shown(bare, 's')}, with verification "
                f"{shown(checked, 's')}; onnxsim {shown(other, 's')}\n"
            )
            for name, path in (("original", source), ("surgeon", ours), ("onnxsim", theirs)):
                if path.exists():
                    off, on = latency(path, optimised=False), latency(path, optimised=True)
                    sys.stdout.write(
                        f"  {name:9} {nodes(path):6} nodes   onnxruntime {shown(off, 'ms')}, "
                        f"optimised {shown(on, 'ms')}\n"
                    )


if __name__ == "__main__":
    main()
