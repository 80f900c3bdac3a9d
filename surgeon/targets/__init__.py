"""What runtimes say they take: lists of operators, as each one's project publishes them.

A list tells which operators a runtime does not have at all, and some of what nodes must be like
that it takes. What a list takes may be refused still; what was measured is in docs/runtimes.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.targets.own import is_own, plain_target, read_target
from surgeon.targets.published import published
from surgeon.targets.target import Target

__all__ = ["Beyond", "Fit", "Refused", "Target", "measured", "target", "targets"]


_NPU = (
    "Name its tool: `rknn`, `tensorrt`, `tidl`, `nxp`, `esp-dl`, `tpu-mlir`, or the recipe "
    "`for-qnn`, `for-nncase`, `for-tflite`; a YAML file of your own is a list too, `operators: "
    "[Conv, ...]`."
)
_CALLED = {  # what else users call them
    "coreml": "coreml-mlprogram",
    "trt": "tensorrt",
    "rockchip": "rknn",
    "unity": "sentis",
    "ti": "tidl",
    "litert": "tflite",
    **dict.fromkeys(("hexagon", "qualcomm", "snpe"), "qnn"),
    **dict.fromkeys(("cvitek", "sophgo"), "tpu-mlir"),
    **dict.fromkeys(("k230", "kendryte"), "nncase"),
}
# Runtimes in which repaired models were run, and the recipe that was measured to help there
# (docs/runtimes.md); most of them publish no list.
MEASURED = {
    "openvino": "clean",
    "ncnn": "for-ncnn",
    "opencv": "for-opencv-4",
    "opencv-5": "for-opencv-5",
    "mnn": "for-mnn",
    "tflite": "for-tflite",
    "iree": "for-iree",
    "qnn": "for-qnn",
    "nncase": "for-nncase",
    "tvm": "for-tvm",
    "tpu-mlir": "for-tpu-mlir",
}


@dataclass(frozen=True, slots=True)
class Refused:
    """An operator of a model that is not on a target's list.

    Attributes:
        operator: As recipes write it.
        count: How many nodes.
        recipes: Bundled recipes that spell it in others.
    """

    operator: str
    count: int
    recipes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Beyond:
    """Nodes of one operator that are beyond one limit of a target's list.

    Attributes:
        operator: As recipes write it; `input` of inputs of the model.
        limit: The limit, in words.
        location: Where it stands; empty of `types` and `axes`.
        nodes: What the nodes are called.
        reason: What the first of them is, or is not.
        recipes: Of a limit of one operator: recipes that spell it in others.
    """

    operator: str
    limit: str
    location: str
    nodes: tuple[str, ...]
    reason: str
    recipes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fit:
    """A model beside the list of a target.

    Attributes:
        target: The target's name, with its version.
        title: In words.
        source: Where the list is from.
        opset: The model's, where the target does not read it; None where it does.
        opsets: The oldest and the newest that it reads, where the list says.
        refused: Operators that are not on the list.
        partly: Operators that are taken with limits that the source tells, and `limits` do not.
        spelled: Those of `refused` that `apply --target` has rules for in operators of the list.
        folded: Those of `refused` of which any recipe leaves none: they are of constants.
        waiting: Those of `refused` that further rules are for, by what has to be allowed for these.
        command: The command line, in words, that does what can be done; none where nothing can.
        limits: How many limits its list has that were looked at.
        beyond: Nodes whose operators are on the list, and that its limits leave out.
        nearest: The opset nearest to the model's among those that it reads that `apply --target`
            goes to; the model's own where it is read.
    """

    target: str
    title: str
    source: str
    opset: int | None
    opsets: tuple[int, int] | None
    refused: tuple[Refused, ...]
    partly: tuple[str, ...]
    spelled: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    waiting: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limits: int = 0
    beyond: tuple[Beyond, ...] = ()
    command: tuple[str, ...] = ()
    nearest: int | None = None

    @property
    def fits(self) -> bool:
        """Whether the target takes the model as it is, as far as its list says."""
        return not self.refused and not self.beyond and self.opset is None

    @property
    def lasting(self) -> tuple[str, ...]:
        """Operators that stay refused: those without a rule; all that are left behind recipes."""
        return tuple(
            each.operator
            for each in self.refused
            if each.operator not in self.folded
            and (not self.command or not (each.recipes or each.operator in self.spelled))
        )


def targets() -> tuple[str, ...]:
    """The names of all there are; of several versions, the oldest first."""
    return tuple(_table())


def target(name: str | os.PathLike[str]) -> Target:
    """A target by name, without a version the newest; or by the YAML file of a list of one's own.

    Raises:
        RecipeError: There is none of this name, or the file is no such list.
    """
    name = plain_target(name) or ""
    if is_own(name):
        return read_target(name)
    table = _table()
    known = name if name in table else next((n for n in reversed(table) if _without(n) == name), "")
    if not known:
        versions = [f"`{each}`" for each in table if _without(each) == _without(name)]
        names = {*table, *map(_without, table)}
        own = "a YAML file of your own is one too, `operators: [Conv, ...]`"
        listed = f"There are {', '.join(f'`{each}`' for each in table)}; {own}."
        raise RecipeError(
            f"there is no list of what `{name}` takes",
            where="--target",
            mend=f"There is {', '.join(versions)}."
            if versions
            else _unlisted(name) or suggest(name, names, listed),
        )
    entry = table[known]
    operators = frozenset([*entry["taken"], *entry["partly"]])
    limits, stated = published(known, [*table], operators)
    return Target(
        name=known,
        title=entry["title"],
        source=entry["source"],
        opsets=tuple(entry["opsets"]) if entry["opsets"] else None,
        taken=frozenset(entry["taken"]),
        partly=frozenset(entry["partly"]),
        limits=limits,
        stated=stated,
    )


def measured(name: str) -> str | None:
    """The recipe that was measured to help a runtime; None where none was.

    `opencv-5.0` is another runtime than `opencv-4.12`; others are one whatever the version.
    """
    if is_own(name):
        return None
    return MEASURED.get(name.partition(".")[0]) or MEASURED.get(_without(name))


def _unlisted(name: str) -> str:
    """What to say of a runtime by another name, or that publishes no list and was measured."""
    if name.casefold() == "npu":
        return _NPU
    called = _CALLED.get(name.casefold(), name)
    if called in {*_table(), *map(_without, _table())}:
        return f"`{called}` is what its list is called here."
    recipe = measured(called)
    return f"It publishes none; what was measured to help it is the recipe `{recipe}`." * bool(
        recipe
    )


def _without(name: str) -> str:
    """A name without its version."""
    stem, _, last = name.rpartition("-")
    return stem if last[:1].isdigit() else name


@cache
def _table() -> dict[str, Any]:
    text = Path(__file__).with_name("table.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table
