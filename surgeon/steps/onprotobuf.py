"""The steps that work on the protobuf alone, each as what it makes of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import onnx

from surgeon.model import Model
from surgeon.recipe import (
    HeaderStep,
    IrVersionStep,
    LowerOpsetStep,
    NamesStep,
    PlainAttributesStep,
    PlainMetadataStep,
    RaiseOpsetStep,
    ShareWeightsStep,
    SimplifyStep,
    Step,
)
from surgeon.tally import has_withdrawn, is_concerned


class OnProtobuf(NamedTuple):
    """A step, as a function.

    Attributes:
        name: In words, for the report.
        function: From the model to what the step makes of it; raises `SurgeonError`.
        of_one_graph: Whether it knows nothing of a model's own functions.
        said: What it does, where that is told beside the report's figures.
    """

    name: str
    function: Callable[[onnx.ModelProto], onnx.ModelProto]
    of_one_graph: bool = False
    said: str = ""


def speaks_otherwise(steps: Iterable[Step], model: Model) -> bool:
    """Whether steps change what a file says beside what it computes: names, or texts."""
    return any(
        isinstance(step, NamesStep)
        or (isinstance(step, PlainMetadataStep | HeaderStep) and _on_metadata(step, model))
        for step in steps
    )


def on_protobuf(step: Step, behind: Sequence[Step], model: Model) -> OnProtobuf | None:
    """What a step does; None where it is of another kind, or has nothing to do.

    Args:
        step: The step.
        behind: The steps that follow: an opset is raised where one of them has a use for it, or
            the model has an operator that the opset lacks.
        model: The model as it stands.
    """
    # each tool is imported where a recipe asks for it
    if isinstance(step, SimplifyStep):
        from surgeon.steps.simplify import simplify

        kept = bool(model.overridable)
        return OnProtobuf(
            f"simplify: {step.tool}",
            partial(simplify, tool=step.tool, folder=model.folder, kept=kept),
        )
    if isinstance(step, RaiseOpsetStep):
        if model.opset < step.opset and (
            is_concerned(model, behind) or has_withdrawn(model, step.opset)
        ):
            from surgeon.steps.raising import raise_opset

            return OnProtobuf("raise-opset", _to(raise_opset, step.opset, model), True)
    elif isinstance(step, LowerOpsetStep):
        if model.opset > step.opset:
            from surgeon.steps.lowering import lower_opset

            return OnProtobuf("lower-opset", _to(lower_opset, step.opset, model), True)
    elif isinstance(step, PlainAttributesStep):
        from surgeon.steps.plainattributes import STEP, has_such, plain_attributes

        if has_such(model.to_proto()):
            return OnProtobuf(STEP, plain_attributes)
    elif isinstance(step, PlainMetadataStep | HeaderStep):
        return _on_metadata(step, model)
    elif isinstance(step, ShareWeightsStep):
        from surgeon.steps.sharing import STEP, share_weights, twins_of

        if twins := twins_of(model.to_proto(), model.folder):
            return OnProtobuf(STEP, partial(share_weights, found=twins), said=str(twins))
    elif isinstance(step, IrVersionStep) and model.proto.ir_version > step.version:
        from surgeon.steps.irversion import lower_ir_version

        return OnProtobuf("ir-version", partial(lower_ir_version, version=step.version))
    return None


def _on_metadata(step: PlainMetadataStep | HeaderStep, model: Model) -> OnProtobuf | None:
    from surgeon.steps import metadata

    if isinstance(step, HeaderStep):
        if metadata.says(model.proto, step):
            return None
        change = partial(metadata.with_header, step=step)
        return OnProtobuf(metadata.HEADER, change, said=metadata.changes_of(model.proto, step))
    size = metadata.size_of_metadata(model.to_proto(), inside=step.inside)
    if not size:
        return None
    return OnProtobuf(
        metadata.PLAIN,
        partial(metadata.without_metadata, inside=step.inside),
        said=f"doc strings and metadata left out: {size:,} characters",
    )


def _to(
    change: Callable[..., onnx.ModelProto], opset: int, model: Model
) -> Callable[[onnx.ModelProto], onnx.ModelProto]:
    return partial(change, opset=opset, folder=model.folder)
