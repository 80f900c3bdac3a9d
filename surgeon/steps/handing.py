"""Steps that leave something of the interface to the caller: what each is called, and does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import onnx

from surgeon.steps import asread, plainnames, unread
from surgeon.steps.asread import Handed

Done = Callable[[onnx.ModelProto], onnx.ModelProto]


def handing_over(what: str | None, handed: Handed, fixed: Sequence[str]) -> tuple[str, str, Done]:
    """The rule that such a step is told as, why, and what makes the model.

    Args:
        what: Of a step `as-read`; None for `plain-names`.
        handed: Where it is noted.
        fixed: Inputs whose shapes are told.
    """
    if what is None:
        done = partial(plainnames.plain_names, handed=handed, fixed=fixed)
        return plainnames.STEP, plainnames.WHY, done
    rule = f"{asread.STEP}-{what}"
    return rule, asread.WHY, partial(unread.as_read, what=what, handed=handed, fixed=fixed)
