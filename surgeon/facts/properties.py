"""What is proven of an output beside dtype and shape: a sum of 1, nothing negative, nothing 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.dims import Dim
from surgeon.facts.fact import BOOL, INTEGERS, Array, Fact

# Operators whose first output keeps "every element is at least 0".
_KEEP_SIGN = frozenset(
    "Relu Identity Reshape Transpose Flatten Squeeze Unsqueeze Slice Gather MaxPool AveragePool "
    "GlobalAveragePool GlobalMaxPool Expand Tile Split Concat ReduceMean ReduceMax ReduceMin "
    "ReduceSum Sqrt GatherElements GatherND TopK".split()
)
# Operators whose first output holds numbers of its operand alone.
_KEEP_NUMBERS = frozenset(
    "Identity Reshape Transpose Flatten Squeeze Unsqueeze Slice Gather Expand Tile Split "
    "Concat".split()
)
_MAKE_SIGN = frozenset(
    "Relu Sigmoid Softmax HardSigmoid Abs Exp Softplus ArgMax ArgMin NonZero Shape Size".split()
)
# Of integers these may leave the type's range: the least number has no opposite in it, and
# onnxruntime adds up a mean in the type of its elements.
_MAY_WRAP = frozenset({"Abs", "ReduceSum", "ReduceMean"})


def unit_axis(
    node: gs.Node, inputs: Sequence[Fact | None], shape: tuple[Dim, ...] | None
) -> int | None:
    """The axis along which the output sums to 1, if that is proven."""
    if shape is None or not inputs or inputs[0] is None:
        return None
    if node.op == "Softmax":
        return int(node.attrs.get("axis", -1)) % len(shape)
    source = inputs[0]
    if source.unit_axis is None or source.shape is None:
        return None
    if node.op == "Identity":
        return source.unit_axis
    if node.op == "Transpose":
        perm = node.attrs.get("perm") or range(len(shape) - 1, -1, -1)
        return list(perm).index(source.unit_axis)
    if node.op in ("Reshape", "Squeeze", "Unsqueeze", "Flatten"):
        return _follow_axis(source.shape, source.unit_axis, shape)
    return None


def not_negative(
    node: gs.Node,
    inputs: Sequence[Fact | None],
    index: int,
) -> bool:
    """Whether every element of an output is proven to be at least 0, or NaN.

    It follows from the facts alone: those of equal facts are kept for the next node.

    Args:
        node: What makes it.
        inputs: The facts of what that reads.
        index: Which of its outputs.
    """
    first = inputs[0] if inputs else None
    whole = first is not None and first.dtype in INTEGERS
    if whole and node.op in _MAY_WRAP:
        return False
    if node.op in _MAKE_SIGN or (node.op == "TopK" and index == 1):
        return True
    if node.op == "MaxPool" and _may_be_of_pads(node):
        return False
    if node.op in _KEEP_SIGN:
        data = inputs if node.op == "Concat" else inputs[:1]
        return all(fact is not None and fact.not_negative for fact in data)
    if first is not None and whole and node.op in ("Div", "Mod"):
        by = inputs[1].concrete if len(inputs) > 1 and inputs[1] is not None else None
        if by is None or not (by > 0).all():
            return False  # a remainder has the sign of what divides, but for `fmod`
        has_its_sign = node.op == "Mod" and not node.attrs.get("fmod", 0)
        return has_its_sign or first.not_negative
    return False


def _may_be_of_pads(node: gs.Node) -> bool:
    """Whether a window of a MaxPool may hold nothing of its input: the least number, then."""
    attributes = node.attrs
    if attributes.get("ceil_mode", 0):
        return True
    told = attributes.get("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER")
    pads = attributes.get("pads") or []
    if not told and not any(pads):
        return False
    if any(step != 1 for step in attributes.get("dilations") or ()):
        return True
    kernel = attributes.get("kernel_shape") or []
    return any(pad >= size for pad, size in zip(pads, [*kernel] * 2, strict=False))


def not_zero(
    node: gs.Node, inputs: Sequence[Fact | None], array: Callable[[gs.Constant], Array | None]
) -> bool:
    """Whether every element of the output is proven not to be 0.

    Args:
        node: What makes it.
        inputs: The facts of what that reads.
        array: Gives the values of a constant.
    """
    if node.op == "ConstantOfShape":
        value = node.attrs.get("value")
        values = array(value) if isinstance(value, gs.Constant) else value
        return isinstance(values, np.ndarray) and values.size == 1 and bool(values.all())
    if node.op in _KEEP_NUMBERS:
        data = inputs if node.op == "Concat" else inputs[:1]
        return all(fact is not None and fact.not_zero for fact in data)
    if node.op == "Cast" and inputs and inputs[0] is not None and inputs[0].not_zero:
        return BOOL in (inputs[0].dtype, node.attrs.get("to"))  # others may be rounded to 0
    return False


def _follow_axis(before: tuple[Dim, ...], axis: int, after: tuple[Dim, ...]) -> int | None:
    """Where an axis went when a view kept it whole: same size, same product in front of it."""
    front = dims.product(before[:axis])
    running: Dim = 1
    for index, dim in enumerate(after):
        if dim == before[axis] and running == front:  # dimensions are in normal form
            return index
        running = running * dim
    return None
