"""Sizes computed in floating point over the sizes they came from: scale factors, as exported."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.dims import Dim
from surgeon.facts import Facts
from surgeon.facts.fact import INT64
from surgeon.links import maker_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

Scaled = tuple[float, Dim]  # a size as a float has it, times a power of two

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
_SAME = frozenset({"Floor", "Ceil", "Round", "Identity"})  # of numbers that are whole
_VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze"})


def ratio_of_sizes(draft: Draft, match: Match) -> gs.Tensor:
    """y = a / b of sizes, each of a being one of b times a power of two: these powers.

    A size too large for the float is rounded in both the same way, and a power of two moves the
    exponent alone; so the quotient is exact. A size of 0, which would give NaN, is left out of
    account, as everywhere.
    """
    facts, root = draft.facts, match.root
    out = facts.of(root.outputs[0])
    if out.dtype not in _FLOATS:
        raise Refused("it is not computed in floats")
    over, under = (_scaled(facts, tensor, out.dtype) for tensor in root.inputs)
    if not over or not under or len(over) != len(under):
        raise Refused("its operands are not as many sizes")
    ratios = []
    for (factor, size), (divisor, own) in zip(over, under, strict=True):
        if dims.equal(size, own) is not True:
            raise Refused(f"{size} and {own} are not provably one size")
        ratios.append(factor / divisor)
    shape = (len(ratios),) if out.rank is None else out.shape
    if shape not in ((len(ratios),), ()):
        raise Refused("it is no list of sizes")
    dtype = onnx.helper.tensor_dtype_to_np_dtype(out.dtype)
    draft.premises.extend(root.inputs)
    return draft.constant(np.array(ratios, dtype).reshape(shape), "ratios")


def _scaled(facts: Facts, tensor: gs.Tensor, dtype: int) -> list[Scaled] | None:
    """The elements of a float as multiples of sizes; None where one is something else."""
    node = maker_of(tensor)
    if node is None or (node.domain or "") not in STANDARD:
        return None
    if node.op == "Concat":
        parts = [_scaled(facts, part, dtype) for part in node.inputs]
        if any(part is None for part in parts):
            return None
        return [element for part in parts if part for element in part]
    first = node.inputs[0] if node.inputs else None
    if first is None:
        return None
    if node.op in _SAME or node.op in _VIEWS:
        return _scaled(facts, first, dtype)
    if node.op == "Cast":
        known = facts.of(first)
        if known.value is not None and known.dtype == INT64:
            return [(1.0, size) for size in known.value.reshape(-1).tolist()]
        # a whole number as a float has it is the same as an int64, and back
        return _scaled(facts, first, dtype) if known.dtype in (dtype, INT64) else None
    if node.op == "Mul":
        return _multiplied(facts, node, dtype)
    return None


def _multiplied(facts: Facts, node: gs.Node, dtype: int) -> list[Scaled] | None:
    for tensor, other in zip(node.inputs, reversed(node.inputs), strict=True):
        factor = facts.array(other)
        if factor is None or factor.size != 1:
            continue
        number = float(factor.reshape(-1)[0])
        inner = _scaled(facts, tensor, dtype)
        if inner is None or number < 1 or math.frexp(number)[0] != 0.5:
            return None
        return [(before * number, size) for before, size in inner]
    return None
