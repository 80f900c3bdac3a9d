"""What a check found, as frozen data: measured errors, what was not compared, the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Status = Literal["equivalent", "runs", "differs", "broken"]


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """How one output agrees with its reference.

    Attributes:
        name: The output's name.
        dtype: The reference's dtype.
        max_absolute: Largest absolute error.
        max_relative: That error relative to the output's own spread (the largest distance from the
            mean), or to its largest magnitude where it is constant.
        ulp: Largest error in units of the last place.
        tolerance: Largest `max_relative` allowed.
        agrees: Whether the output counts as the same.
        weak: Why the agreement says little; None where it says much.
        fault: What else is wrong: shape, dtype, places of NaN.
        doubted: Whether rounding alone moves the original by as much, or all is NaN.
    """

    name: str
    dtype: str
    max_absolute: float
    max_relative: float
    ulp: float
    tolerance: float
    agrees: bool
    weak: str | None = None
    fault: str | None = None
    doubted: bool = False

    def __str__(self) -> str:
        if self.fault:
            return f"`{self.name}`: {self.fault}"
        return (
            f"`{self.name}`: error {self.max_absolute:.3g}, which is {self.max_relative:.3g} of "
            f"its spread (allowed {self.tolerance:.3g})"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """One input on which both models ran.

    Attributes:
        sizes: The dynamic dims' sizes.
        seed: What the inputs were drawn from; -1 for recorded and given ones.
        by: What stood for the original: `onnxruntime`, `witness`, `torch`, `recorded FILE`, and
            maybe `, sample by sample`.
        outputs: One check an output.
        drawn: The way of drawing: `normal`, `uniform`, ...; the file or folder of the user's data;
            "" for recorded inputs.
        fixed: What inputs of one number held, where that was not drawn.
    """

    sizes: Mapping[str, int]
    seed: int
    by: str
    outputs: tuple[OutputCheck, ...]
    drawn: str = ""
    fixed: Mapping[str, int] = field(default_factory=dict)

    @property
    def agrees(self) -> bool:
        """Whether every output does."""
        return all(output.agrees for output in self.outputs)

    def describe(self) -> str:
        """Where this is, in words."""
        source = f"seed {self.seed}" if self.seed >= 0 else self.drawn and f"data {self.drawn}"
        return " ".join(filter(None, (describe(self.fixed), describe(self.sizes), source)))


@dataclass(frozen=True, slots=True)
class NotCompared:
    """Something that could not be compared, and why.

    Attributes:
        what: Inputs, sizes or an output, in words.
        why: The reason, in words.
    """

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Parting:
    """Where two models part.

    Attributes:
        agrees: The last values that agree, before the one that differs; none at the inputs.
        differs: The first value that differs, and by how much, as the first model calls it.
        other: What the second model calls it.
        before: The first model's nodes between the two, in order.
        after: The second model's.
        tried: How many values were compared.
        by_place: Whether the value was paired by its place and not by its name.
        unlike: What of these nodes differs, as (name, in the first, in the second): attributes,
            operands, and the values of constants.
    """

    agrees: tuple[str, ...]
    differs: OutputCheck
    other: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    tried: int
    by_place: bool
    unlike: tuple[tuple[str, str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "differs": plain_check(self.differs)}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a check.

    Attributes:
        status: `equivalent`: compared, agrees. `runs`: loads, and could not be compared; or holds
            custom operators that onnxruntime lacks. `differs`. `broken`.
        detail: The reason, in a sentence.
        comparisons: Every input on which both ran.
        not_compared: What could not be compared.
        custom_operators: Operators of the result that onnxruntime lacks, as `domain.Op`.
        inputs: How each input was drawn, in words.
        remarks: What else whoever runs the result should know.
        mend: What to do about it, in a sentence; "" where nothing is known or to be done.
        original: What is wrong with the original itself: `broken`, it does not load; `differs`, it
            computes something else than was recorded; "" where nothing is known to be.
        parting: Where the two part; None where that was not asked for, or they do not.
    """

    status: Status
    detail: str
    comparisons: tuple[Comparison, ...] = ()
    not_compared: tuple[NotCompared, ...] = ()
    custom_operators: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    mend: str = ""
    original: Literal["", "broken", "differs"] = ""
    parting: Parting | None = None

    def __bool__(self) -> bool:
        """No verdict is true or false: `runs` is neither, and each would be taken for the other.

        Raises:
            TypeError: Always.
        """
        raise TypeError(
            "a Verdict is neither true nor false: compare its status, "
            'as in `verdict.status == "equivalent"`'
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; a number that is not finite becomes None."""
        return {
            "status": self.status,
            "detail": self.detail,
            "comparisons": [
                {
                    "sizes": dict(c.sizes),
                    "seed": c.seed,
                    "by": c.by,
                    "drawn": c.drawn,
                    "fixed": dict(c.fixed),
                    "outputs": [plain_check(output) for output in c.outputs],
                }
                for c in self.comparisons
            ],
            "not_compared": [{"what": n.what, "why": n.why} for n in self.not_compared],
            "custom_operators": list(self.custom_operators),
            "inputs": dict(self.inputs),
            "remarks": list(self.remarks),
            "mend": self.mend,
            "original": self.original,
            "parting": self.parting and self.parting.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Verdict:
        """The verdict that `to_dict` wrote, without its `parting`."""
        return cls(
            status=plain["status"],
            detail=plain["detail"],
            comparisons=tuple(
                Comparison(
                    sizes=dict(c["sizes"]),
                    seed=c["seed"],
                    by=c["by"],
                    drawn=c.get("drawn", ""),
                    fixed=dict(c.get("fixed", {})),
                    outputs=tuple(_output(output) for output in c["outputs"]),
                )
                for c in plain["comparisons"]
            ),
            not_compared=tuple(NotCompared(**n) for n in plain["not_compared"]),
            custom_operators=tuple(plain["custom_operators"]),
            inputs=dict(plain.get("inputs", {})),
            remarks=tuple(plain.get("remarks", ())),
            mend=plain.get("mend", ""),
            original=plain.get("original", ""),
        )


_FIELDS = (
    *("name", "dtype", "max_absolute", "max_relative", "ulp", "tolerance"),
    *("agrees", "weak", "fault", "doubted"),
)
_NUMBERS = ("max_absolute", "max_relative", "ulp", "tolerance")


def plain_check(output: OutputCheck) -> dict[str, Any]:
    """The check as plain data for JSON."""
    plain = {name: getattr(output, name) for name in _FIELDS}
    for name in _NUMBERS:
        plain[name] = plain[name] if math.isfinite(plain[name]) else None
    return plain


def _output(plain: Mapping[str, Any]) -> OutputCheck:
    values = dict(plain)
    for name in _NUMBERS:
        values[name] = math.inf if values[name] is None else values[name]
    return OutputCheck(**values)


def describe(sizes: Mapping[str, int]) -> str:
    """`batch=2, time=37`."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items())
