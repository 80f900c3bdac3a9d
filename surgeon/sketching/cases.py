"""The cases of a rule that was taken out of a model: the part where it fires, and one it leaves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from surgeon.declared import length_of
from surgeon.facts.fact import Array
from surgeon.model import Model
from surgeon.notation import Pattern, print_pattern
from surgeon.notation.pattern import word_of
from surgeon.sketching.piece import Piece, imports, no_rule
from surgeon.verify import verify
from surgeon.writer import FIRST_IR_WITH_FREE_INITIALIZERS

_SYMBOL = re.compile(r"[A-Za-z_]\w*", re.ASCII)

_CASES = """\
# The format: docs/language.md; `surgeon recipes schema --cases`
cases:
  - case: as in the model
    fires: {rule}
    before: |
      {head}
      g ({inputs}) => ({outputs}) {{
{lines}
      }}
    after: |
      {other}
      g ({inputs}) => ({outputs}) {{
        {call}
      }}
{values}
  - case: {why}
    refuses: {{rule: {rule}, because: "{because}"}}
    before: |
      {head}
      g ({given}) => ({made}) {{
{left}
      }}
{kept}"""


def cases_of(rule: str, piece: Piece, domain: str, op: str) -> str:
    """The text of the cases.

    The part is run once, for sizes at which it does.

    Raises:
        RecipeError: The shape of an end is not known.
    """
    proto = _with_plain_sizes(piece.model)
    ends = {piece.names[v.name]: v.type for v in (*proto.graph.input, *proto.graph.output)}
    weights = [_declared(name, value) for name, value in piece.weights.items()]
    inputs = [*(_typed(name, ends[name]) for name in piece.inputs), *weights]
    outputs = [_typed(name, ends[name]) for name in piece.outputs]
    why, because, given, made, left = _left_alone(piece, inputs, outputs)
    version = max(proto.ir_version, FIRST_IR_WITH_FREE_INITIALIZERS)
    head = f"<ir_version: {version}, opset_import: [{imports(proto)}]>"
    return _CASES.format(
        rule=rule,
        head=head,
        other=f"<ir_version: {version}, opset_import: [{imports(proto, domain)}]>",
        inputs=", ".join(inputs),
        outputs=", ".join(outputs),
        lines=_block(piece.lines.splitlines()),
        call=piece.call(f"{domain}.{op}"),
        values=_values(piece.weights) + _sizes(proto, piece.model.folder),
        why=why,
        because=because,
        given=", ".join(given),
        made=", ".join(made),
        left=_block(left),
        kept=_values(piece.weights if piece.between else {}),
    )


def _with_plain_sizes(part: Model) -> onnx.ModelProto:
    """The part with names for its dynamic sizes that text can have."""
    proto = onnx.ModelProto()
    proto.CopyFrom(part.proto)
    taken: dict[str, str] = {}
    for value in (*proto.graph.input, *proto.graph.output):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if length_of(dim) is None and not _SYMBOL.fullmatch(dim.dim_param):
                key = dim.dim_param or f"{value.name}, {axis}"
                dim.dim_param = taken.setdefault(key, f"size{len(taken) + 1}")
    return proto


def _sizes(proto: onnx.ModelProto, folder: Path | None) -> str:
    """The entry `sizes`: at which the part runs; nothing where it has no dynamic ones."""
    dynamic = {d.dim_param for v in proto.graph.input for d in v.type.tensor_type.shape.dim} - {""}
    if not dynamic:
        return ""
    part = Model(proto, folder=folder)
    ran = [each.sizes for each in verify(part, part).comparisons]
    distinct = [at for place, at in enumerate(ran) if at not in ran[:place]]
    known = sorted(name for name in dynamic if distinct and all(name in at for at in distinct))
    said = ", ".join(f"{name}: {[at[name] for at in distinct]}" for name in known)
    return f"    sizes: {{{said}}}\n" if said else ""


def _left_alone(
    piece: Piece, inputs: list[str], outputs: list[str]
) -> tuple[str, str, list[str], list[str], list[str]]:
    """A graph that the rule leaves: its title, words of the reason, its ends and its nodes."""
    lines = piece.lines.splitlines()
    if piece.between:
        name, count = list(piece.between.items())[-1]
        lines.append(f"places = NonZero ({name})")  # of any type; a Shape may be known, and go
        why, because = f"{name} is read elsewhere too", f"consumers == {count}"
        return why, because, inputs, [*outputs, "int64[axes, found] places"], lines
    if piece.weights:
        name = next(iter(piece.weights))
        return f"{name} is computed", "is_constant", inputs, outputs, lines
    if piece.numbers:
        name, value = next(iter(piece.numbers.items()))
        given = [*inputs, _declared(name, value)]
        return f"{name} is computed", "it is computed at run time", given, outputs, lines[1:]
    if found := _other_attribute(piece):
        key, line = found  # what the node gives may have another shape then
        name = piece.outputs[0]
        left = [line, f"places = NonZero ({name})"]
        ends = ["int64[axes, found] places"]
        return f"another {key}", f"attribute `{key}` of", inputs, ends, left
    other = inputs[0].rpartition(" ")
    lines = [f"z = Identity ({other[2]})"]
    return "another operator", "it was tried at no node", inputs, [f"{other[0]} z"], lines


def _other_attribute(piece: Piece) -> tuple[str, str] | None:
    """A number among the attributes that the rule asks for, and its one node with another."""
    (node, *more), asked = piece.written, piece.found[-1].attributes
    for key, value in asked.items():
        if isinstance(value, int | float) and not more:
            other = 0 if value == 1 and key != "to" else value + 1  # a flag is 0 or 1
            changed = node._replace(attributes={**node.attributes, key: other})
            return key, print_pattern(Pattern((changed,)))
    return None


def _values(weights: Mapping[str, Array]) -> str:
    """The entry `values`, with numbers as large as those of the model."""
    if not weights:
        return ""
    return "    values:\n" + "".join(
        f"      {name}: {{seed: {seed}{_between(value)}}}\n"
        for seed, (name, value) in enumerate(weights.items(), 1)
    )


def _between(value: Array) -> str:
    if value.dtype.kind not in "iuf" or not value.size:
        return ""
    low, high = value.min(), value.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        return ""
    if value.dtype.kind in "iu":
        return f", between: [{int(low)}, {int(high)}]"
    return f", between: [{float(low):.3g}, {float(high):.3g}]"


def _typed(name: str, type_: onnx.TypeProto) -> str:
    """An end as ONNX's text declares it."""
    tensor = type_.tensor_type
    if not tensor.HasField("shape"):
        mend = "Take it from what `surgeon apply aten clean` makes of the model."
        raise no_rule(f"how many axes `{name}` has is not known", mend)
    dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param for d in tensor.shape.dim]
    return _of(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type), dims, name)


def _declared(name: str, value: Array) -> str:
    return _of(value.dtype, list(map(str, value.shape)), name)


def _of(dtype: np.dtype[Any], dims: Sequence[str], name: str) -> str:
    word = word_of(dtype)
    if word is None:
        raise no_rule(f"{name} is of {dtype}, which no text declares")
    return f"{word}[{', '.join(dims)}] {name}" if dims else f"{word} {name}"


def _block(lines: Sequence[str]) -> str:
    return "\n".join(f"        {line}" for line in lines)
