"""TensorRT's quantisers (domain `trt`), which NVIDIA's Model Optimizer writes, as ONNX's.

What they compute is told by onnx-tensorrt's `docs/TRT_custom_ops.md`: the rounding of
QuantizeLinear to a dtype that the operator's name tells, without a zero point.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, operand
from surgeon.builders.pairs import divided_in_float32
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_NUMBERS = {TYPE.FLOAT, TYPE.FLOAT16, TYPE.BFLOAT16}
_FOUR_BITS = frozenset({TYPE.INT4, TYPE.UINT4})
_SINCE = {"FP8": 19, "INT4": 21, "MXFP8": 21}  # the opset from which ONNX has it
_PER_BLOCK = 21
_BIAS = 127  # of the exponents that MXFP8's scales are


def trt_quantize(draft: Draft, match: Match) -> gs.Tensor:
    """`TRT_FP8QuantizeLinear`, `TRT_INT4QuantizeLinear (x, scale)`."""
    c, node = Bench(draft), match.root
    kind, scale = _checked(c, node), _scale(c, node)
    low: Any = ml_dtypes.float8_e4m3fn if kind == "FP8" else ml_dtypes.int4
    shape = c.shape(scale)
    if shape is None or not all(isinstance(size, int) for size in shape):
        raise Refused("how many scales there are is not known")
    zero = draft.constant(np.zeros([int(str(size)) for size in shape], low), "zero_point")
    x, said = node.inputs[0], _where(c, node, scale)
    said |= divided_in_float32(c, x)
    made: gs.Tensor = c.op("QuantizeLinear", x, scale, zero, **said)
    return made


def trt_dequantize(draft: Draft, match: Match) -> gs.Tensor:
    """`TRT_FP8DequantizeLinear`, `TRT_INT4DequantizeLinear`, `TRT_MXFP8DequantizeLinear`."""
    c, node = Bench(draft), match.root
    kind, scale = _checked(c, node), _scale(c, node)
    x = node.inputs[0]
    found = c.dtype(x)
    array = c.facts.array(x) if found == TYPE.UINT8 and kind != "INT4" else None
    if array is not None:  # its bytes, as exporters without that dtype hold them
        x = draft.constant(array.view(ml_dtypes.float8_e4m3fn), "levels")
    elif kind == "INT4" and found not in _FOUR_BITS:
        raise Refused("what it reads is not in 4 bits; how it is packed the file does not tell")
    elif kind != "INT4" and found != TYPE.FLOAT8E4M3FN:
        raise Refused("what it reads is not known to be floats of 8 bits")
    if kind == "MXFP8":
        scale = _powers(c, node, scale)
    made: gs.Tensor = c.op("DequantizeLinear", x, scale, **_where(c, node, scale))
    return made


def trt_refused(draft: Draft, match: Match) -> Any:
    """Nothing: says why the operator stays."""
    raise Refused(
        f"`trt.{match.root.op}` chooses its scales while it runs, as TensorRT's kernels round "
        "them and no document tells; quantise with static scales"
    )


def _checked(c: Bench, node: gs.Node) -> str:
    """The dtype that the operator's name tells; it is in the model's opset, and without a zero."""
    kind = str(node.op).removeprefix("TRT_").partition("Q")[0].partition("D")[0]
    since = _SINCE[kind]
    if c.opset < since:
        name = {"FP8": "floats of 8 bits", "INT4": "4 bits", "MXFP8": "scales of blocks"}[kind]
        raise Refused(f"{name} need opset {since}, and the model has {c.opset}")
    zero = operand(node, 2)
    if zero is not None:
        known = c.facts.array(zero)
        if known is None or np.asarray(known, np.float32).any():
            raise Refused("its zero point is not known to be 0")
    return kind


def _scale(c: Bench, node: gs.Node) -> gs.Tensor:
    """The scale; one alone as a number."""
    scale = operand(node, 1)
    if scale is None:
        raise Refused("its scale is missing")
    if c.shape(scale) == (1,):
        made: gs.Tensor = c.op("Reshape", scale, c.ints([]))
        return made
    return scale


def _powers(c: Bench, node: gs.Node, scale: gs.Tensor) -> gs.Tensor:
    """Scales that are exponents, as floats of the dtype that is given out."""
    exponents = c.facts.array(scale)
    out = int(node.attrs.get("output_dtype", TYPE.FLOAT))
    if exponents is None or c.dtype(scale) != TYPE.UINT8:
        raise Refused("its scales are known at run time only")
    if out not in _NUMBERS:
        raise Refused("it gives out other than floats")
    powers = np.exp2(exponents.astype(np.float64) - _BIAS)
    dtype: Any = onnx.helper.tensor_dtype_to_np_dtype(out)
    with np.errstate(over="ignore", under="ignore"):
        narrow = powers.astype(dtype)
    if (narrow.astype(np.float64) != powers).any():
        raise Refused("its dtype does not hold its scales")
    return c.draft.constant(narrow, "scale")


def _where(c: Bench, node: gs.Node, scale: gs.Tensor) -> dict[str, int]:
    """The axis, and how many places of it have one scale."""
    rank, block = c.rank(scale), int(node.attrs.get("block_size", 0))
    if not rank:
        return {}
    axis = int(node.attrs.get("axis", 1))
    if block:
        if c.opset < _PER_BLOCK:
            raise Refused(f"scales of blocks need opset {_PER_BLOCK}, and the model has {c.opset}")
        return {"axis": axis, "block_size": block}
    if rank != 1:
        raise Refused("its scales stand along several axes, and it says no size of blocks")
    return {"axis": axis}
