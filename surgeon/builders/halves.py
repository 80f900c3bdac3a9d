"""Halves that are joined and multiplied, as positions are turned into angles and rotated by."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs
from onnx.helper import tensor_dtype_to_np_dtype

from surgeon.builders.bench import Bench
from surgeon.dims import Dim
from surgeon.facts.fact import Array, same_dims
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD


def sign_behind_join(draft: Draft, match: Match) -> gs.Tensor:
    """Joined parts times s, some of them negative, as the parts themselves times s with signs.

    Signs are one node for all that multiply by s; each of those loses one.
    """
    c = Bench(draft)
    joined, s = match.values["r"], match.values["s"]
    assert joined is not None
    assert s is not None
    if c.facts.of(s).dtype not in FLOATS:
        raise Refused("it is no float")
    found = _signs(c, joined)
    if found is None:
        raise Refused("no part is the negative of something, or a part's size is not known")
    signs, axis = found
    rank, own = c.rank(joined), c.shape(s)
    along = axis - rank + len(own or ())
    if own is None or along < 0 or own[along] != len(signs):
        raise Refused("what it is multiplied by is one number for several parts")
    given = c.facts.array(s)
    kind = signs.reshape([-1, *[1] * (rank - 1 - axis)])
    if given is None and sum(_is_alike(c, node, s) for node in s.outputs) < 2:
        raise Refused("signs would be a node for the one that goes")
    node = producer_of(joined)
    assert node is not None
    parts = [_before_negative(t) or t for t in node.inputs]
    together = c.op("Concat", *parts, axis=axis)
    if given is not None:
        signed = draft.constant(given * kind.astype(given.dtype), "signed")
    else:
        dtype = tensor_dtype_to_np_dtype(c.dtype(s))
        signed = c.op("Mul", s, draft.constant(kind.astype(dtype), "signs"))
    y: gs.Tensor = c.op("Mul", together, signed)
    return y


def _before_negative(tensor: gs.Tensor) -> gs.Tensor | None:
    node = producer_of(tensor)
    if node is None or node.op != "Neg" or (node.domain or "") not in STANDARD:
        return None
    found: gs.Tensor = node.inputs[0]
    return found if len(tensor.outputs) == 1 else None


def _signs(c: Bench, joined: gs.Tensor) -> tuple[Array, int] | None:
    """A sign for each place along the axis that parts are joined along, and that axis."""
    node, shape = producer_of(joined), c.shape(joined)
    if node is None or shape is None or node.op != "Concat" or len(joined.outputs) != 1:
        return None
    axis = int(attribute_of(node, "axis")) % len(shape)
    negative = [_before_negative(t) is not None for t in node.inputs]
    shapes = [c.shape(t) for t in node.inputs]
    sizes: list[Dim] = [0 if own is None else own[axis] for own in shapes]
    known = [size for size in sizes if isinstance(size, int) and size]
    if not any(negative) or len(known) < len(sizes):
        return None
    return np.repeat([-1 if minus else 1 for minus in negative], known), axis


def _is_alike(c: Bench, node: gs.Node, s: gs.Tensor) -> bool:
    """Whether a node multiplies s with joined parts of which some are negative, or with signs."""
    if node.op != "Mul" or (node.domain or "") not in STANDARD:
        return False
    others = [t for t in node.inputs if t is not s]
    if len(others) != 1:
        return False
    array = c.facts.array(others[0])
    if array is not None:
        return array.size > 1 and bool((np.abs(array) == 1).all())
    return _signs(c, others[0]) is not None


def factor_of_joined(draft: Draft, match: Match) -> gs.Tensor:
    """A product with a constant that is joined to itself, as one with the constant so joined."""
    c, root, m = Bench(draft), match.root, match.values["m"]
    assert m is not None
    if any(t is not m for t in root.inputs) or any(node is not root for node in m.outputs):
        raise Refused("it joins something else too, or something else reads the product")
    node, shape = m.inputs[0], c.shape(m)
    data = 1 if c.facts.array(node.inputs[0]) is not None else 0
    x, constant = node.inputs[data], c.facts.array(node.inputs[1 - data])
    before = c.shape(x)
    if constant is None or shape is None or before is None:
        raise Refused("neither factor is constant, or a shape is not known")
    axis = int(attribute_of(root, "axis")) % len(shape)
    along = axis - len(shape)
    wide = constant.reshape([1] * (len(shape) - constant.ndim) + list(constant.shape))
    single = len(before) < -along or before[along] == 1
    if not single or wide.shape[axis] != shape[axis]:
        raise Refused("the other factor is not one number along that axis")
    small = tuple(1 if place == axis else d for place, d in enumerate(shape))
    if not same_dims((1,) * (len(shape) - len(before)) + before, small):
        raise Refused("the constant makes the result larger along another axis")
    factor = draft.constant(np.concatenate([wide] * len(root.inputs), axis), "factor")
    y: gs.Tensor = c.op("Mul", x, factor)
    return y
