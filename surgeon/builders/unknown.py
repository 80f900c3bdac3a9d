"""What a builder raises that has to know the dtype or the rank of a value."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.rewrite import Refused


class NotKnown(Refused):
    """Nothing is known of a value: no fact says it, or it is complex, which no fact says.

    Attributes:
        value: The value.
        called: What the text calls it.
    """

    def __init__(self, value: gs.Tensor, what: str, called: str = "") -> None:
        self.value, self.called = value, called or f"`{value.name}`"
        super().__init__(f"the {what} of {self.called} is not known")
