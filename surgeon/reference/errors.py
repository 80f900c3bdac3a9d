"""Why the witness does not run a model: it is not defined there, or an operator has no witness."""

from __future__ import annotations

from surgeon.errors import SurgeonError


class Unsuited(Exception):
    """Operands outside an operator's definition, in words; the executor adds the node."""


class Undefined(SurgeonError):
    """A node is given operands outside its operator's definition: the model has no result here."""

    exit_code = 3

    def __init__(self, reason: str, *, operator: str, where: str) -> None:
        super().__init__(
            f"`{operator}` is not defined here: {reason}",
            where=where,
            mend="Try the sizes that the model was traced with.",
        )
        self.reason, self.operator = reason, operator


class NoWitness(SurgeonError):
    """Nothing here can execute an operator, or these arguments of it."""

    exit_code = 3

    def __init__(self, operator: str, *, where: str, why: str = "") -> None:
        super().__init__(
            f"`{operator}` has no witness{': ' + why if why else ''}",
            where=where,
            mend="Use `--reference torch`, or `--reference FILE.npz` with recorded outputs.",
        )
        self.operator = operator
