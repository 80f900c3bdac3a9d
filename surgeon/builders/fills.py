"""Values that hold one number everywhere, and are as large as something else."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.builders.spreads import least_of, not_given, vanishes
from surgeon.facts import Facts
from surgeon.facts.fact import Array
from surgeon.facts.kinds import FLOATS, TRUTH, WHOLE
from surgeon.match import Match, producer_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_SAME = frozenset("Reshape Flatten Squeeze Unsqueeze Transpose Expand Tile Slice Identity".split())
_DEEP = 8  # nodes that are followed


def without_fill(draft: Draft, match: Match) -> gs.Tensor:
    """What is computed with one number everywhere is computed with that number.

    Where the result is no longer as large then, it is repeated behind, if nothing needs it so.
    """
    root, facts, e = match.root, draft.facts, match.values["e"]
    assert e is not None
    number = fill_of(facts, e)
    if number is None:
        raise Refused("it does not provably hold one number everywhere")
    others = [t for t in root.inputs if t is not e]
    missing = not_given(facts, root, (), others)
    own = facts.of(others[0]).shape if len(others) == 1 else None
    if missing and (own is None or not vanishes(draft, root.outputs[0], own)):
        raise Refused(missing)
    draft.premises.append(e)
    single = draft.constant(number.reshape(()), "number")
    made: gs.Tensor = draft.op(
        root.op, *(single if t is e else t for t in root.inputs), **root.attrs
    )
    if missing:
        draft.leans.append(e.inputs[0])
        made = draft.op("Expand", made, draft.op("Shape", e))
    return made


def holds(draft: Draft, tensor: gs.Tensor, number: float) -> bool:
    """Whether a value is provably this number everywhere; a premise of the draft then."""
    array = draft.facts.array(tensor)
    if array is None or array.dtype == object:
        array = fill_of(draft.facts, tensor)
    if array is None or not array.size or bool((array != number).any()):
        return False
    if not isinstance(tensor, gs.Constant):
        draft.premises.append(tensor)
    return True


def number_of(node: gs.Node) -> Array:
    """What a ConstantOfShape fills with, as a list of one; 0 where it does not say."""
    value = node.attrs.get("value")
    if value is None:
        return np.zeros(1, np.float32)
    given: Array = np.asarray(getattr(value, "values", value)).reshape(-1)
    return given


def fill_of(facts: Facts, tensor: gs.Tensor, left: int = _DEEP) -> Array | None:
    """The one number that a value holds everywhere; None where that is not provable."""
    node = producer_of(tensor)
    if node is None or not left or (node.domain or "") not in STANDARD:
        return None
    if node.op == "ConstantOfShape":
        given = number_of(node)
        return given if given.size == 1 and given.dtype.kind in "fiub" else None
    if node.op == "GreaterOrEqual":  # a count beside its least number, as masks of nothing are
        bound, least = facts.array(node.inputs[1]), least_of(facts, node.inputs[0])
        always = bound is not None and least is not None and bound.size and bound.max() <= least
        return np.ones(1, bool) if always else None
    if node.op == "Where":
        return _chosen(facts, node, left - 1)
    if node.op not in _SAME and node.op != "Cast":
        return None
    found = fill_of(facts, node.inputs[0], left - 1)
    if node.op != "Cast" or found is None:
        return found
    return cast_number(found, facts.of(node.outputs[0]).dtype or 0)


def cast_number(number: Array, dtype: int) -> Array | None:
    """What a Cast of this type makes of a number; None where runtimes may not agree on it.

    They do on what is kept, and on what a float rounds to in the next narrower type: from double
    precision to halves some round twice.
    """
    if dtype not in TRUTH | WHOLE | FLOATS:
        return None
    kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(dtype))
    if kind.kind not in "fiub" or number.dtype.kind not in "fiub":
        return None
    with np.errstate(all="ignore"):
        turned = number.astype(kind)
        kept = (turned.astype(number.dtype) == number).all()
    if number.dtype.kind == kind.kind == "f":
        once = (number.dtype.itemsize, kind.itemsize) != (8, 2)
        return turned if once or kept else None
    if not np.isfinite(number).all():
        return None
    return turned if kept or kind.kind == "b" else None


def filled_as_cast(draft: Draft, match: Match) -> gs.Tensor:
    """What is filled with a number and then cast, or turned, filled with what that gives."""
    node, filled = match.root, match.nodes[1]
    number = number_of(filled)
    if node.op == "Not":
        other: gs.Tensor = draft.op("ConstantOfShape", filled.inputs[0], value=~number)
        return other
    turned = cast_number(number, draft.facts.of(node.outputs[0]).dtype or 0)
    if turned is None:
        raise Refused("runtimes may not agree on what the Cast makes of its number")
    made: gs.Tensor = draft.op("ConstantOfShape", filled.inputs[0], value=turned)
    return made


def _chosen(facts: Facts, node: gs.Node, left: int) -> Array | None:
    """What a choice always takes, where that is one number."""
    condition = fill_of(facts, node.inputs[0], left)
    if condition is None:
        return None
    taken = node.inputs[1 if condition.item() else 2]
    array = facts.array(taken)
    if array is not None and array.size == 1 and array.dtype.kind in "fiub":
        return array.reshape(1)
    return fill_of(facts, taken, left)
