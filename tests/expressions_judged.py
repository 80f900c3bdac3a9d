"""A scope for expressions, and what they come to in it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surgeon import dims
from surgeon.errors import Location
from surgeon.expressions import Expression, Unknown, truth, why_not

HERE = Location("r.yaml", 3, 9)
H, W = dims.symbol("h"), dims.symbol("w", 1)


class Fake:
    """A captured value whose properties are given."""

    def __init__(self, **properties: object) -> None:
        self.properties = properties

    def attribute(self, name: str) -> object:
        return self.properties.get(name, Unknown(f"its {name} is not known"))


SCOPE = {
    "x": Fake(shape=(1, 3, H, W), rank=4, dtype="float32", is_constant=False),
    "size": Fake(value=(H, 1)),
    "k": Fake(value=np.array([1, 2, 3])),
    "tenth": Fake(value=np.array(0.1, np.float32)),
    "bias": None,
    "axis": -1,
    "mode": "reflect",
    "xs": [Fake(rank=1), Fake(rank=2)],
}


def judged(expression: Expression, scope: Mapping[str, object]) -> tuple[bool | None, str]:
    """The verdict on a condition, and why where it is not true."""
    verdict = truth(expression, scope)
    return verdict, "" if verdict else why_not(expression, scope)


def value_of(text: str, **more: object) -> object:
    return Expression.parse(text, HERE, functions=more).evaluate({**SCOPE, **more})


def verdict_of(text: str) -> bool | None:
    verdict, reason = judged(Expression.parse(text, HERE), SCOPE)
    assert bool(reason) == (verdict is not True)
    return verdict


def reason_of(text: str) -> str:
    return judged(Expression.parse(text, HERE), SCOPE)[1]
