"""A part, put behind the beginning of the model that it was cut out of, and compared with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import onnx

from surgeon.errors import ForeignError
from surgeon.extraction.cut import Cut, Wiring, renamed
from surgeon.isolation import open_session, unknown_operators
from surgeon.model import Model
from surgeon.runtime import NotRunnable
from surgeon.standard import STANDARD
from surgeon.verify import Verdict, verify
from surgeon.verify.originals import recorded_files
from surgeon.wire import copy_field

# What they give is free: any numbers may have been drawn.
_NOISE = frozenset({"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"})


def compare(
    whole: Model,
    wiring: Wiring,
    part: Cut,
    made: onnx.ModelProto,
    types: Mapping[str, onnx.TypeProto],
    *,
    progress: Callable[[str], None] | None,
    **settings: Any,
) -> Verdict:
    """The model, asked for the part's outputs, beside its own beginning with the part behind it.

    Args:
        whole: The model.
        wiring: Of its main graph.
        part: Where it is cut.
        made: The part as a model.
        types: Of the values at which it is cut.
        progress: Told what is being compared.
        settings: Of `verify`.
    """
    free = _noise(wiring, part) if not _has_files(settings) else frozenset()
    asked = _asked(whole.proto, part, types, free)
    again = _rejoined(asked, wiring, part, made, free)
    verdict = verify(
        *(asked, again),
        folder_original=whole.folder,
        folder_result=whole.folder,
        narrowed=False,
        progress=progress,
        **settings,
    )
    if verdict.status == "equivalent" and not unknown_operators(made):
        try:  # by itself too, with the types that it declares
            open_session(made, folder=whole.folder)
        except (NotRunnable, ForeignError) as error:
            return replace(
                verdict, status="broken", detail=f"it does not load by itself: {error.what}"
            )
    return verdict


def _has_files(settings: Mapping[str, Any]) -> bool:
    """Whether inputs come from files, which know nothing of values in the middle."""
    return bool(settings.get("data") or recorded_files(settings.get("reference")))


def _noise(wiring: Wiring, part: Cut) -> frozenset[str]:
    """The values at which it is cut that are noise, which nobody draws twice the same."""
    made = {end.value: wiring.makers.get(end.value) for end in part.inputs}
    return frozenset(
        name
        for name, place in made.items()
        if place is not None
        and wiring.nodes[place].op_type in _NOISE
        and wiring.nodes[place].domain in STANDARD
    )


def _asked(
    proto: onnx.ModelProto,
    part: Cut,
    types: Mapping[str, onnx.TypeProto],
    free: Collection[str],
) -> onnx.ModelProto:
    """The model with the part's outputs for its own, and free values for inputs."""
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    for node in [node for node in out.graph.node if {*node.output} & {*free}]:
        out.graph.node.remove(node)
    for name in sorted(free):
        out.graph.input.add(name=name, type=types[name])
    del out.graph.output[:]
    for end in part.outputs:
        out.graph.output.add(name=end.value, type=types[end.value])
    return out


def _rejoined(
    asked: onnx.ModelProto,
    wiring: Wiring,
    part: Cut,
    made: onnx.ModelProto,
    free: Collection[str],
) -> onnx.ModelProto:
    """The model's nodes before the part, whose values have names of their own, and the part's.

    The part calls its outputs as the model does again; it reads the weights of the model.
    """
    before, _ = wiring.behind([end.value for end in part.inputs], set())
    nodes = [wiring.nodes[index] for index in before]
    nodes = [node for node in nodes if not {*node.output} & {*free}]
    taken = {*wiring.makers, *wiring.inputs, *(name for end in part.inputs for name in [end.name])}
    prefix = "before"
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    aside = {name: f"{prefix}:{name}" for node in nodes for name in node.output if name}
    back = {end.name: end.value for end in part.outputs if end.name != end.value}
    back |= {end.name: aside.get(end.value, end.value) for end in part.inputs}
    out = onnx.ModelProto()
    for field, value in asked.ListFields():
        if field.name not in ("graph", "training_info"):
            copy_field(field.name, value, out)
    for field, value in asked.graph.ListFields():
        if field.name not in ("node", "value_info", "quantization_annotation"):
            copy_field(field.name, value, out.graph)
    out.graph.node.extend(renamed(nodes, aside))
    for node in out.graph.node:
        node.name = ""  # the part has nodes of these names, where one is behind another
    out.graph.node.extend(renamed(list(made.graph.node), back))
    return out
