"""What the user says: how inputs are drawn, real ones, and what a result is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from surgeon.choices import Data, Reference
from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.verify.datasets import DataSet, read_data
from surgeon.verify.inputs import required_inputs
from surgeon.verify.limits import among_levels
from surgeon.verify.originals import recorded_files
from surgeon.verify.specs import Spec, read_spec


@dataclass(frozen=True, slots=True)
class Given:
    """What the user says of inputs: how they are drawn, by name, and real ones."""

    specs: Mapping[str, Spec]
    sets: tuple[DataSet, ...]


def read_given(
    model: onnx.ModelProto,
    inputs: Mapping[str, str] | None,
    data: Data,
    *,
    shape: Mapping[str, Sequence[int | str]] | None = None,
    reference: Reference = None,
    other: onnx.ModelProto | None = None,
) -> Given:
    """What the user says of inputs, held against the model.

    Args:
        model: The model.
        inputs: By input name, how it is drawn.
        data: Files with real inputs.
        shape: Shapes by input name.
        reference: What stands for the original.
        other: What it is compared with, where that is quantised and the model is not: beyond the
            ends of its levels nobody expects it to agree.

    Raises:
        RecipeError: There is no such input, it cannot be drawn so, or the data cannot be read.
    """
    usual = ({} if other is None else among_levels(other, 0.5)) | among_levels(model)
    if not inputs and not data:
        return Given(usual, ())
    if recorded_files(reference):
        raise RecipeError(
            "with recorded outputs no other inputs are compared",
            where="--input" if inputs else "--data",
            mend="Leave it out, or leave out `--reference`.",
        )
    try:
        wanted = required_inputs(model, shape)
    except ValueError as error:
        raise RecipeError(str(error), where="--input", mend="Say it with `--shape`.") from None
    by_name = {each.name: each for each in wanted}
    for name in inputs or {}:
        if name not in by_name:
            raise RecipeError(
                f"the model has no input `{name}`",
                where=f"--input {name}",
                mend=suggest(name, by_name),
            )
    specs = {n: read_spec(n, text, by_name[n].dtype) for n, text in (inputs or {}).items()}
    paths = [data] if isinstance(data, (str, Path)) else list(data)
    return Given(
        usual | specs, read_data(paths, wanted, [value.name for value in model.graph.input])
    )
