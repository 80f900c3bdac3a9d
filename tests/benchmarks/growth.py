"""What a node costs in graphs of 1,000 to 100,000, and how the cost grows.

Run: python tests/benchmarks/growth.py [SECONDS]

Each graph is mended by `clean` without verification in processes of its own, in turns, as the
machine is not equally fast all the time; the least CPU seconds from load to saved count, where
everything is loaded. The exponent is that of the line through them, both axes in logarithms.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from graphs import blocks
from peers import run, working

SIZES = (1000, 5000, 20000, 100000)
AT_ONCE = (1000, 5000, 20000, 5000, 1000, 20000, 100000)  # the quick ones more often


def main() -> None:
    """Measure, print."""
    end = time.monotonic() + float(sys.argv[1] if len(sys.argv) > 1 else 300)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "out.onnx")
        nodes, seconds = {}, dict.fromkeys(SIZES, float("inf"))
        for size in SIZES:
            model = blocks(size)
            nodes[size] = len(model.graph.node)
            onnx.save(model, Path(folder, f"{size}.onnx"))
        while time.monotonic() < end:
            for size in AT_ONCE:
                work = working(sys.executable, "surgeon", Path(folder, f"{size}.onnx"), target)
                got = run([*work, "loaded"], 600, OMP_NUM_THREADS="1")
                seconds[size] = min(seconds[size], got["cpu"])
    for size in SIZES:
        each = seconds[size] / nodes[size] * 1e6
        print(f"{nodes[size]} nodes: {seconds[size]:.2f} s, {each:.0f} microseconds a node")
    slope = np.polyfit(np.log([*nodes.values()]), np.log([*seconds.values()]), 1)[0]
    print(f"exponent {slope:.2f}")


if __name__ == "__main__":
    main()
