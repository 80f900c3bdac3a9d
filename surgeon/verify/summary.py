"""Words and short names for what was compared."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surgeon.verify.compare import TOLERANCES
from surgeon.verify.verdict import Comparison

_MOST = 3  # constants in words


def has_numbers(value: Any) -> bool:
    """Whether a float array holds a finite number at all."""
    if not isinstance(value, np.ndarray) or value.dtype.name not in TOLERANCES:
        return True
    return value.size == 0 or bool(np.isfinite(value.astype(np.complex128)).any())


def digest(value: Any) -> bytes:
    """A short name of an array's very content."""
    if isinstance(value, list):
        return b"".join(map(digest, value))
    array = np.ascontiguousarray(value)
    data = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return hashlib.blake2b(
        data + repr((array.shape, array.dtype)).encode(), digest_size=16
    ).digest()


def agreement(comparisons: Sequence[Comparison]) -> str:
    """How well they agree, in a sentence."""
    if not comparisons:
        return "it was not compared"
    checks = [output for each in comparisons for output in each.outputs if not output.doubted]
    inputs = f"{len(comparisons)} input{'s' * (len(comparisons) > 1)}"
    if not checks:
        return f"no output was compared at {inputs}"
    largest = max(checks, key=lambda check: check.max_relative)
    count = len({check.name for check in checks})
    said = f"{count} output{'s agree' if count > 1 else ' agrees'}"
    if len(comparisons[0].outputs) == 1:
        said = "its output agrees"
    text = f"{said} at {inputs}, "
    if largest.max_relative:
        text += f"largest error {largest.max_relative:.2g} of the spread of `{largest.name}`"
    else:
        text += "to the last bit"
    weak = {check.name: check.weak for check in checks if check.weak}
    if len(weak) == len({check.name for check in checks}):
        reasons = "; ".join(f"`{name}`: {why}" for name, why in list(weak.items())[:3])
        text += f"; the comparison is weak ({reasons})"
    return text


def apart_said(changed: Sequence[tuple[str, str, str]]) -> list[str]:
    """A remark on constants that differ where nothing else does: no draw of inputs need reach them.

    Args:
        changed: Name, what it was, what it is.
    """
    if not changed:
        return []
    few = [f"`{name}`: {after}" for name, _, after in changed[:_MOST]]
    more = [f"{len(changed) - _MOST} more"] if len(changed) > _MOST else []
    count = f"{len(changed)} constant{'s' * (len(changed) > 1)}"
    return [
        f"the graphs are the same but for {count}, whose change the compared inputs do not show, "
        f"or not beyond what is allowed: {'; '.join(few + more)}; see `surgeon diff`"
    ]


def squeezed(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> str | None:
    """Whether outputs differ in dims of size 1 alone; in words.

    A Squeeze without axes drops a batch of one too: what the file says, if not what was meant.
    """
    for name, want in expected.items():
        have = actual[name]
        shapes = [[n for n in np.shape(x) if n != 1] for x in (want, have)]
        if np.shape(want) != np.shape(have) and shapes[0] == shapes[1]:
            return (
                f"there the result's `{name}` has shape {list(np.shape(have))}, and samples of the "
                f"original put together {list(np.shape(want))}"
            )
    return None
