"""What a simplified model computes beside the original, and how fast: for `peers.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

RUNS, SECONDS_OF_RUNS = 200, 1.0  # of one model, for its latency


def nodes(path: Path) -> int:
    """Nodes without Constant, bodies included."""
    import onnx

    def count(graph: onnx.GraphProto) -> int:
        inner = [a.g for n in graph.node for a in n.attribute if a.HasField("g")]
        own = sum(node.op_type != "Constant" for node in graph.node)
        return own + sum(count(body) for body in inner)

    return count(onnx.load(path, load_external_data=False).graph)


def session(path: Path, *, optimise: bool = False) -> Any:
    """The model in onnxruntime, as it stands by default, on one thread; None where it fails."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimise else levels.ORT_DISABLE_ALL
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception:  # onnxruntime's exceptions have no common base
        return None


def feeds(found: Any, seed: int) -> dict[str, Any]:
    """Inputs of one size for each name of a dimension, another for each seed."""
    import numpy as np

    rng = np.random.default_rng(seed)
    sizes: dict[str, int] = {}
    made = {}
    for value in found.get_inputs():
        names = [d if isinstance(d, int) else str(d) for d in value.shape]
        shape = [
            d if isinstance(d, int) else sizes.setdefault(d, 2 + seed + 5 * len(sizes))
            for d in names
        ]
        array = rng.normal(size=shape)
        kind = value.type[7:-1]
        names_of = {"float": "float32", "double": "float64"}
        made[value.name] = array.astype(names_of.get(kind, kind))
    return made


def equal(original: Any, path: Path) -> str:
    """Whether the result equals the original on three input sets, within float32's rounding."""
    import numpy as np

    if original is None:
        return "-"
    result = session(path)
    if result is None:
        return "does not load"
    compared = 0
    for seed in range(3):
        try:
            inputs = feeds(original, seed)
            expected = original.run(None, inputs)
        except Exception:  # a size that the original does not take
            continue
        try:
            found = result.run(None, inputs)
        except Exception:
            return "does not run"
        for a, b in zip(expected, found, strict=True):
            scale = float(np.abs(a.astype(np.float64)).max(initial=0)) or 1.0
            if a.shape != b.shape or a.dtype != b.dtype:
                return "other shape"
            if not np.allclose(a, b, rtol=1e-3, atol=1e-4 * scale, equal_nan=True):
                return "WRONG"
        compared += 1
    return "yes" if compared == 3 else f"yes, on {compared}" if compared else "-"


def latencies(paths: list[Path]) -> list[list[str]]:
    """Milliseconds of a run of each model, in turns, onnxruntime's optimisations off and on."""
    found: list[list[str]] = [[] for _ in paths]
    for optimise in (False, True):
        models = [_runnable(path, optimise=optimise) for path in paths]
        best = [float("inf")] * len(paths)
        start = time.perf_counter()
        for _ in range(RUNS):
            for index, run in enumerate(models):
                if run is not None:
                    before = time.perf_counter()
                    run()
                    best[index] = min(best[index], time.perf_counter() - before)
            if time.perf_counter() - start > SECONDS_OF_RUNS * len(paths):
                break
        for cells, run, value in zip(found, models, best, strict=True):
            cells.append("-" if run is None else f"{value * 1e3:.3f}")
    return found


def _runnable(path: Path, *, optimise: bool) -> Callable[[], Any] | None:
    """A run of the model at one size; None where it does not load, or does not take it."""
    found = session(path, optimise=optimise)
    if found is None:
        return None
    try:
        run = partial(found.run, None, feeds(found, 1))
        run()
    except Exception:
        return None
    return run
