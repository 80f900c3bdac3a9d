"""A pattern held against a node: what it binds, or why it is not found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from truth import infer, model_of

from surgeon.errors import Location
from surgeon.match import Match, Miss
from surgeon.matching import Matcher
from surgeon.notation import parse_pattern

F32 = np.float32
Constants = Mapping[str, Any]


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


def attempt(
    pattern: str,
    body: str,
    *,
    inputs: str = "float[b,t] x, float[b,t] z",
    root: str = "y",
    opset: int = 17,
    constants: Constants | None = None,
    outputs: str = "y",
) -> Match | Miss:
    """Match a pattern at the node that makes `root`; facts known, nothing rewritten."""
    proto = model_of(inputs, body, outputs, opset, constants)
    proto.opset_import.append(onnx.helper.make_opsetid("my", 1))
    return attempt_in(pattern, proto, root)


def attempt_in(pattern: str, proto: onnx.ModelProto, root: str = "y") -> Match | Miss:
    facts, tensors = infer(proto)
    matcher = Matcher(parse_pattern(pattern, Location("<test>")))
    ends = {id(t) for t in facts.model.graph.outputs}
    return matcher.at(tensors[root].inputs[0], facts, lambda t: id(t) in ends)


def names(found: Match | Miss) -> dict[str, str | None]:
    """What each name is bound to."""
    assert isinstance(found, Match), found.reason()
    return {key: None if t is None else t.name for key, t in found.values.items()}


def reason(found: Match | Miss) -> str:
    assert isinstance(found, Miss)
    return found.reason()
