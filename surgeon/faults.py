"""What onnxruntime says of a file that it does not load, and which recipe mends it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from surgeon.helpful import recipes_for

WIDELY_READ = 13
_NEWEST_WIDELY_READ = 17
_OPERANDS = "operand-types"
_MENDS = (
    ("does not match expected type", "state-shapes"),
    ("bound to different types", _OPERANDS),
    ("of input parameter", _OPERANDS),
    ("Unsupported model IR version", f"clean --opset {_NEWEST_WIDELY_READ}"),
    ("two nodes with same node name", "clean"),
    ("Duplicate definition of name", "clean"),  # equal nodes that stand twice
    # parts that are not as long as one another: nobody but the author knows which
    ("Op (Concat) [ShapeInferenceError] Can't merge shape info", ""),
    ("Can't merge shape info", "state-shapes"),
    ("existing shape differ", "state-shapes"),
    ("Incompatible dimensions", ""),  # sizes that do not fit: nobody but the author knows which
    ("does not have type information", ""),  # only the author knows of what it is
    ("is under development", f"clean --opset {_NEWEST_WIDELY_READ}"),
    ("(ConvTranspose) [ShapeInferenceError] Attribute pads must not", "plain-conv"),
)
_OF_OPERATORS = frozenset({_OPERANDS, "plain-conv"})  # these mend by rules for some alone
_NAMED = re.compile(r"(?:operator|Optype|Op) \((\w+)\)")


def mend_of(fault: str, unlike: Iterable[str] = ()) -> str | None:
    """A recipe and its options, as `surgeon apply` takes them.

    Args:
        fault: What onnxruntime says, of the first that it finds.
        unlike: Operators of nodes whose operands are of several types: whatever it says first,
            it takes no file with such.

    Returns:
        Empty where no recipe mends it; None where it is no fault that is known here.
    """
    if any(_OPERANDS in recipes_for(operator) for operator in unlike):
        return _OPERANDS
    for said, mend in _MENDS:
        if said in fault:
            named = _NAMED.search(fault)
            helps = mend not in _OF_OPERATORS or not named or mend in recipes_for(named[1])
            return mend if helps else ""
    return None
