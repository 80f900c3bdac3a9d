"""A model whose weights lie in a file beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx


def saved_outside(folder: Path, width: int) -> Path:
    """y = Neg(Neg(x)) @ w with w, `width` by `width`, in net.data; the folder is made."""
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[n,{width}] x) => (float[n,{width}] y)'
        "{ a = Neg(x) b = Neg(a) y = MatMul(b, w) }"
    )
    weights = np.random.default_rng(0).normal(size=(width, width)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    path = folder / "net.onnx"
    folder.mkdir()
    onnx.save(model, path, save_as_external_data=True, location="net.data", size_threshold=0)
    return path
