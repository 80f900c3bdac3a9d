"""Nodes that onnxruntime-genai and Olive write for language models, each with what it is fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnxruntime_cases import Case, normal, whole

B, T = 2, 5  # sequences, and their tokens
OF_TYPES = {"": (np.float32, 1e-5), ", halves": (np.float16, 4e-3)}


def in_both(
    op: str,
    inputs: Mapping[str, Sequence[int]],
    weights: Mapping[str, Sequence[int]] = {},
    order: Sequence[str] = (),
    attributes: Mapping[str, Any] = {},
    *,
    whole_numbers: Mapping[str, np.ndarray] = {},
    floats: Sequence[str] = (),
    size: float = 1.0,
    **more: Any,
) -> dict[str, Case]:
    """Cases by the ending of their name: of float32, and of float16.

    Args:
        op: The operator.
        inputs: The shapes of what is fed.
        weights: The shapes of initializers.
        order: The node's inputs.
        attributes: As the node has them.
        whole_numbers: Inputs that are of no float.
        floats: Operands that are float32 in both.
        size: What all the numbers are multiplied by.
        more: As of `Case`.
    """
    found = {}
    for ending, (kind, tolerance) in OF_TYPES.items():

        def drawn(name: str, shape: Sequence[int], kind: Any = kind) -> np.ndarray:
            return size * normal(*shape).astype(np.float32 if name in floats else kind)

        fed = {name: drawn(name, shape) for name, shape in inputs.items()}
        held = {name: drawn(name, shape) for name, shape in weights.items()}
        dynamic = more.get("dynamic", dict.fromkeys({**inputs, **whole_numbers}, (0, 1)))
        found[ending] = Case(
            op,
            {**fed, **whole_numbers},
            held,
            order or [*inputs, *whole_numbers, *weights],
            attributes,
            **{"tolerance": tolerance, **more, "dynamic": dynamic},
        )
    return found


def named(cases: Mapping[str, Mapping[str, Case]]) -> dict[str, Case]:
    return {
        f"{name}{ending}": case for name, both in cases.items() for ending, case in both.items()
    }


def rotary(shape: Sequence[int], width: int = 8, **attributes: Any) -> dict[str, Case]:
    sections = attributes.pop("sections", [2, 1, 1])
    tables = {"c": (16, width // 2), "s": (16, width // 2)}
    places = {"p": whole(16, 3, B, T, dtype=np.int64)}
    return in_both(
        "MRotaryEmbedding",
        {"x": shape},
        tables,
        attributes={"mrope_section": sections, **attributes},
        whole_numbers=places,
        dynamic={"x": (0, 1) if len(shape) == 3 else (0, 2), "p": (1, 2)},
    )


def gate(activation: str, scale: int) -> dict[str, Case]:
    attributes = {"activation": activation, "epsilon": 0.01}
    shapes = {"x": (B, T, 8), "g": (B, T, 8)}
    return in_both("GatedRMSNorm", shapes, {"s": (scale,)}, ["x", "s", "g"], attributes)


def branches(shape: Sequence[int], scale: Sequence[int] | None, count: int = 0) -> dict[str, Case]:
    attributes = {"num_branches": count} if count else {}
    weights = {} if scale is None else {"s": scale}
    return in_both("BranchwiseRMSNorm", {"x": shape}, weights, [], attributes, dynamic={"x": (0,)})


def conv(shape: Sequence[int], past: Sequence[int] | None, **attributes: Any) -> dict[str, Case]:
    last = bool(attributes.get("channels_last"))
    fed = {"x": shape, **({} if past is None else {"p": past})}
    order = ["x", "w", "b", *([] if past is None else ["p"])]
    dynamic = {"x": (0, 1) if last else (0, 2), "p": (0,)}
    weights = {"w": (4, 1, 3), "b": (4,)}
    return in_both(
        "CausalConvWithState", fed, weights, order, attributes, outputs=2, dynamic=dynamic
    )


ENGRAM = {"k": (B, T, 3, 7), "q": (B, T, 3, 7), "v": (B, T, 7)}

CASES: dict[str, Case] = named(
    {
        "three places, in sections": rotary((B, T, 16), num_heads=2),
        "three places, one of which has no section": rotary(
            (B, 2, T, 8), sections=[0, 3, 1], interleaved=1
        ),
        "three places, part of a head": rotary((B, T, 24), num_heads=2, rotary_embedding_dim=8),
        "three places in turn": rotary(
            (B, 2, T, 32), 32, sections=[6, 5, 5], mrope_layout=1, interleaved=1
        ),
        "three places in turn, part of a head": rotary(
            (B, T, 24), num_heads=2, rotary_embedding_dim=8, mrope_layout=1
        ),
        "three places in turn, more than fit": rotary(
            (B, T, 16), sections=[0, 0, 4], num_heads=2, mrope_layout=1
        ),
        "gated norm": gate("silu", 8),
        "gated norm of heads": gate("swish", 4),
        "gated norm by a share": gate("sigmoid", 2),
        "norm of branches": branches((B, 3, 4), (4,)),
        "norm of branches, a scale each": branches((B, 3, 4), (3, 4)),
        "norm of branches, no scale": branches((B, 3, 4), None),
        "norm of branches in one axis": branches((B, T, 12), (12,), 3),
        "norm of branches in one axis, one scale": branches((B, T, 12), (4,), 3),
        "decay": in_both(
            "LinearAttentionGate", {"a": (B, T, 4)}, {"d": (4,), "s": (4,)}, floats="ds"
        ),
        "decay and rate, large": in_both(
            "LinearAttentionGate",
            {"a": (B, T, 4), "b": (B, T, 4)},
            {"d": (4,), "s": (4,)},
            ["a", "d", "s", "b"],
            floats="ds",
            outputs=2,
            size=9,
        ),
        "gated sum": in_both("GatedAdd", {"x": (B, T, 4), "y": (B, T, 4), "g": (B, T, 1)}),
        "scaled silu": in_both("ScaledSiLU", {"x": (B, T)}, attributes={"alpha": 2.7}),
        "silu by another number": in_both("ScaledSiLU", {"x": (B, T)}, {"s": ()}, floats="s"),
        "silu, not scaled": in_both("ScaledSiLU", {"x": (B, T)}),
        "engram": in_both("EngramGate", ENGRAM, {"a": (3, 7), "b": (3, 7)}),
        "engram, normalised": in_both(
            "EngramGate",
            ENGRAM,
            {"a": (3, 7), "b": (3, 7), "c": (3, 7)},
            attributes={"epsilon": 0.01},
            outputs=2,
        ),
        "causal conv": conv((B, 4, T), None),
        "causal conv with a past": conv((B, 4, T), (B, 4, 2), activation="silu"),
        "causal conv of one token": conv((B, 4, 1), (B, 4, 4), activation="swish", dilation=2),
        "causal conv, channels last": conv((B, T, 4), None, channels_last=1, dilation=2),
        "causal conv, channels last in two axes": conv(
            (B, T, 2, 2), (B, 2, 2, 2), channels_last=1, activation="silu"
        ),
    }
)
