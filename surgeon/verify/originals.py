"""What stands for the two models: a session, the witness, torch, or recorded outputs."""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from surgeon.errors import RecipeError, SurgeonError, TimeUp
from surgeon.isolation import open_session, unknown_operators
from surgeon.nested import with_stated_loops
from surgeon.reading import open_file
from surgeon.reference import NoWitness, open_reference
from surgeon.reference.early import stops, with_sizes_together
from surgeon.runtime import NotRunnable, Runner
from surgeon.verify.limits import Input
from surgeon.verify.noise import (
    FORGIVEN,
    OF_WEIGHTS,
    has_float,
    moved_weights,
    perturbed,
    rounds_to_levels,
)
from surgeon.verify.recording import as_declared, dtypes_of
from surgeon.verify.widened import narrowed, wide_feeds, widened

WAYS = ("onnxruntime", "witness", "torch")
_TURNS = 3  # of values moved by rounding, each time four times as far
_TURNS_OF_LEVELS = 6  # few values stand so near to the next level that less would do


@dataclass(frozen=True, slots=True)
class Side:
    """A model ready to run, and in whose words.

    Attributes:
        by: Who runs it.
        runner: What does.
        model: The original, for onnxruntime, where its weights are asked to move.
        folder: Where its external data lie.
    """

    by: str
    runner: Runner
    model: onnx.ModelProto | None = None
    folder: Path | None = None

    def run(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """The named outputs."""
        return self.runner.run(feeds, names)

    def forgiven(self, feeds: Mapping[str, Any]) -> float:
        """How many times its own movement a difference from it may be."""
        return OF_WEIGHTS if self.by == "onnxruntime" and not has_float(feeds) else FORGIVEN

    def trembling_runs(
        self, feeds: Mapping[str, Any], names: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        """The named outputs where values move by rounding: first the inputs, then those on the way.

        A run that fails is left out: what moved there decides on a size, and tells nothing.
        """
        for turn, steps in enumerate((1.0, 4.0, 16.0)):
            moved = perturbed(feeds, turn, steps=steps)
            yield from _unless_failed(partial(self.runner.run, moved, names))
        levels = self.model is not None and rounds_to_levels(self.model)
        for seed in range(_TURNS_OF_LEVELS if levels else _TURNS):
            yield from _unless_failed(partial(self._trembling, feeds, names, seed))

    def in_doubles(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any] | None:
        """The named outputs as computed in double precision; None where that cannot be had."""
        wide = None if self.model is None else widened(self.model)
        if wide is None:
            return None
        try:
            return narrowed(open_reference(wide, self.folder).run(wide_feeds(feeds), names))
        except TimeUp:
            raise
        except SurgeonError:
            return None

    def _trembling(
        self, feeds: Mapping[str, Any], names: Sequence[str], seed: int
    ) -> dict[str, Any] | None:
        """None where the runner cannot.

        In onnxruntime they are the weights, where no input is a float that may be moved instead,
        or all are rounded to levels at once.
        """
        if self.by == "onnxruntime":
            if self.model is None or (has_float(feeds) and not rounds_to_levels(self.model)):
                return None
            moved = moved_weights(self.model, seed)
            return moved and open_session(moved, folder=self.folder).run(feeds, names)
        trembling: Any = self.runner
        found: dict[str, Any] = trembling.run_trembling(feeds, names, seed)
        return found


def _unless_failed(run: Callable[[], dict[str, Any] | None]) -> Iterator[dict[str, Any]]:
    try:
        found = run()
    except (NoWitness, TimeUp):  # it would again
        raise
    except SurgeonError:
        return
    if found is not None:
        yield found


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded run: the inputs, and what the original made of them."""

    file: Path
    feeds: Mapping[str, Any]
    outputs: Mapping[str, Any]


def open_original(model: onnx.ModelProto, folder: Path | None, way: str | None) -> Side:
    """The original, run as asked for; by default in onnxruntime if it loads, else by the witness.

    By the witness too where onnxruntime loads it and stops in it.

    Raises:
        NotRunnable: onnxruntime was asked for, and does not load it.
        RecipeError: There is no such way, or torch is not installed.
    """
    if way not in (None, *WAYS):
        raise RecipeError(
            f"`{way}` is no reference",
            where="--reference",
            mend=f"Use {', '.join(WAYS)}, or the path of an .npz file.",
        )
    if way == "onnxruntime" or (way is None and not stops(model)):
        try:
            runner = open_session(with_stated_loops(with_sizes_together(model)), folder=folder)
            return Side("onnxruntime", runner, model, folder)
        except NotRunnable:
            if way is not None:
                raise
    if way == "torch":
        return Side("torch", open_reference(model, folder, torch=True))
    return Side("witness", open_reference(model, folder))


def open_result(
    model: onnx.ModelProto,
    folder: Path | None,
    original: onnx.ModelProto,
    custom: Collection[str],
) -> tuple[Side, tuple[str, ...]]:
    """The result in onnxruntime; and the operators it lacks, where it may lack them.

    Custom operators are those the original has too, and those declared. A result that holds them is
    run by the witness, and so is one in which onnxruntime stops as it does in the original.

    Raises:
        NotRunnable: It does not load, for another reason than a custom operator.
    """
    if stops(model) and stops(original):
        return Side("witness", open_reference(model, folder)), ()
    try:
        return Side("onnxruntime", open_session(model, folder=folder)), ()
    except NotRunnable as error:
        known = {*unknown_operators(original), *_operators(original)}
        lacking = error.operators
        allowed = [name in known or is_declared(name, custom) for name in lacking]
        if not lacking or not all(allowed):
            raise
    return Side("witness", open_reference(model, folder)), lacking


def is_declared(operator: str, custom: Collection[str]) -> bool:
    """Whether a recipe declares `domain.Op`: by its name, as `domain.*`, or as `domain`."""
    domain = operator.rpartition(".")[0]
    return any(domain == entry or fnmatchcase(operator, entry) for entry in custom)


def _operators(model: onnx.ModelProto) -> Iterator[str]:
    for node in model.graph.node:
        yield f"{node.domain or 'ai.onnx'}.{node.op_type}"


def recorded_files(reference: str | Path | Sequence[str | Path] | None) -> list[Path]:
    """The .npz files a reference names: a file, a folder, a pattern, or several of them."""
    if reference is None or (isinstance(reference, str) and reference in WAYS):
        return []
    if isinstance(reference, (str, Path)):
        path = Path(reference)
        if path.is_dir():
            return sorted(path.glob("*.npz"))
        if path.suffix == ".npz" and not path.is_file():
            return sorted(map(Path, glob.glob(str(reference))))
        return [path] if path.suffix == ".npz" else []
    return [file for each in reference for file in recorded_files(each)]


def read_recorded(file: Path, model: onnx.ModelProto, inputs: Sequence[Input]) -> Recorded:
    """Inputs and outputs from a file: keys `in.NAME` and `out.NAME`, or the plain names.

    Args:
        file: An .npz file.
        model: Of the inputs and outputs.
        inputs: What has to be given.

    Raises:
        RecipeError: An input is missing, or no output is there.
    """
    try:
        with open_file(file) as held, np.load(held, allow_pickle=False) as arrays:
            found = {key: arrays[key] for key in arrays.files}
    except (OSError, ValueError) as error:
        raise RecipeError(
            f"it cannot be read: {error}",
            where=str(file),
            mend="Name an .npz file of plain arrays.",
        ) from None
    declared = {each.name: each.dtype for each in inputs}
    feeds = _picked(found, "in", model.graph.input, declared)
    made = _picked(found, "out", model.graph.output, {})
    if missing := [each.name for each in inputs if each.name not in feeds]:
        raise RecipeError(
            f"it holds nothing for input `{missing[0]}`",
            where=str(file),
            mend=f"Save it under the key `in.{missing[0]}`.",
        )
    if not made:
        outputs = [value.name for value in model.graph.output]
        raise RecipeError(
            "it holds none of the model's outputs",
            where=str(file),
            mend=f"Save them under keys such as `out.{outputs[0] if outputs else 'NAME'}`.",
        )
    return Recorded(file, feeds, made)


def _picked(
    arrays: Mapping[str, Any],
    prefix: str,
    values: Sequence[onnx.ValueInfoProto],
    declared: dict[str, np.dtype[Any]],
) -> dict[str, Any]:
    """What a file holds of a model's inputs, or of its outputs."""
    dtypes, found = dtypes_of(*values) | declared, {}
    for name in (value.name for value in values):
        array = arrays.get(f"{prefix}.{name}", arrays.get(name))
        if array is not None:
            found[name] = as_declared(array, dtypes.get(name))
    return found


def by_samples(
    side: Side,
    feeds: Mapping[str, Any],
    split: Collection[str],
    block: int,
    names: Sequence[str],
) -> dict[str, Any] | str:
    """The outputs at a larger batch, from runs of `block` samples each; or why that cannot be.

    Args:
        side: The original.
        feeds: Inputs at the larger batch.
        split: The inputs whose first dim is the batch.
        block: The batch at which the original is defined.
        names: The outputs wanted.
    """
    whole = len(next(feeds[name] for name in split))
    pieces: dict[str, list[Any]] = {name: [] for name in names}
    for begin in range(0, whole, block):
        rows = np.minimum(np.arange(begin, begin + block), whole - 1)  # the last one fills up
        part = {name: x[rows] if name in split else x for name, x in feeds.items()}
        for name, value in side.run(part, names).items():
            if not isinstance(value, np.ndarray) or value.ndim == 0 or len(value) != block:
                return f"output `{name}` does not follow the batch"
            pieces[name].append(value)
    return {name: np.concatenate(values)[:whole] for name, values in pieces.items()}
