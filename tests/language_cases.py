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


def linear(
    rule: str, length: int = T, queries: int = 2, keys: int = 2, values: int = 2, **more: Any
) -> dict[str, Case]:
    """Keys of width 4 and values of width 3."""
    past, decay, rate = (more.pop(name, None) for name in ("past", "decay", "rate"))
    fed = {"q": (B, length, 4 * queries), "k": (B, length, 4 * keys), "v": (B, length, 3 * values)}
    extra = {
        "s": (B, values, 4, 3) if past else None,
        "g": (B, length, decay) if decay else None,
        "b": (B, length, rate) if rate else None,
    }
    order = [*fed, *(name if shape else "" for name, shape in extra.items())]
    while not order[-1]:
        order.pop()
    fed |= {name: shape for name, shape in extra.items() if shape}
    heads = {"q_num_heads": queries, "kv_num_heads": values}
    return in_both(
        "LinearAttention", fed, {}, order, {**heads, "update_rule": rule, **more}, size=0.4,
        outputs=2, floats="s" * (past == "floats"), dynamic={},
    )  # fmt: skip


def delta(length: int = T, *, spelled: str = "qkv", **more: Any) -> dict[str, Case]:
    """Two heads of keys of width 5, and four of values of width 6.

    Args:
        length: Of each sequence.
        spelled: `qkv`, with an axis for sequences; `tokens` without; `packed`: one of all three.
        more: Attributes; and `past`, `decay`, `bias`: whether it has them, or of which shape.
    """
    outer = (B, length) if spelled == "qkv" else (B * length,)
    past, decay, bias = (more.pop(name, None) for name in ("past", "decay", "bias"))
    rule = more.get("update_rule", "gated_delta")
    packed = {"q": (*outer, 2 * 2 * 5 + 4 * 6)}
    apart = {"q": (*outer, 2, 5), "k": (*outer, 2, 5), "v": (*outer, 4, 6)}
    fed = {
        **(packed if spelled == "packed" else apart),
        **({"g": (*outer, 4, *(decay or ()))} if "gated" in rule else {}),
        **({"b": (*outer, 4)} if "delta" in rule else {}),
        **({"s": (B, 4, 6, 5)} if past else {}),
    }
    held = {"a": (4,), "d": bias} if bias else {}
    names = ["q", "k", "v", "", "g", "b", "s", "a", "d"]
    order = [name if name in {**fed, **held} else "" for name in names]
    while not order[-1]:
        order.pop()
    free = range(len(outer))
    dynamic = {name: [0] if name == "s" else free for name in fed} if "qk_l2_norm" in more else {}
    return in_both(
        "GatedDeltaNet", fed, held, order, more, size=0.4, outputs=2, floats="sad", dynamic=dynamic
    )


GATES = {"qk_l2_norm": 1, "beta_activation": "sigmoid", "past": True}
STREAMS = {"x": (B, T, 3, 4)}
FLAT = {"x": (B, T, 12)}
BLOCK = {"b": (B, T, 4)}
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
        "linear attention": linear("linear"),
        "linear attention that has a past": linear("linear", past=True, scale=0.7),
        "linear attention with what its rule does not need": linear("linear", decay=2, rate=2),
        "linear attention that decays": linear("gated", past=True, decay=2),
        "linear attention that decays by width": linear("gated", decay=8),
        "linear attention that is corrected": linear("delta", past="floats", rate=2),
        "linear attention that is corrected at one rate": linear("delta", rate=1),
        "linear attention of shared values": linear("gated_delta", queries=4, decay=2, rate=2),
        "linear attention of shared keys": linear(
            "gated_delta", 7, values=4, decay=4, rate=4, past=True
        ),
        "linear attention of one key": linear(
            "gated_delta", queries=4, keys=1, decay=8, rate=1, past=True
        ),
        "linear attention of shared queries": linear(
            "gated_delta", keys=4, values=4, decay=4, rate=4, past=True
        ),
        "linear attention of a token": linear("linear", 1),
        "linear attention of a token, with a past": linear(
            "gated_delta", 1, queries=4, decay=2, rate=2, past=True
        ),
        "linear attention of a token, shared keys": linear(
            "gated_delta", 1, values=4, decay=16, rate=1, past=True
        ),
        "delta net": delta(),
        "delta net with a past": delta(past=True, qk_l2_norm=1, scale=0.7),
        "delta net by tokens": delta(spelled="tokens", past=True, qk_l2_norm=1),
        "delta net, packed": delta(spelled="packed", past=True, qk_l2_norm=1),
        "delta net of a token": delta(1, past=True),
        "delta net without a decay": delta(update_rule="delta", past=True),
        "delta net without a rate": delta(update_rule="gated"),
        "delta net without either": delta(update_rule="linear", past=True),
        "delta net that decays by width": delta(decay=(5,), past=True),
        "delta net, its gates inside": delta(bias=(4,), gate_activation="softplus", **GATES),
        "delta net, bounded gates inside": delta(
            bias=(4,), gate_activation="kda", gate_lower_bound=-2.0, **GATES
        ),
        "delta net, gates by width inside": delta(
            bias=(4, 5), decay=(5,), gate_activation="sigmoid", **GATES
        ),
        "delta net, gates by width inside, flat": delta(
            bias=(20,), decay=(5,), gate_activation="qwen", **GATES
        ),
        "streams in front": in_both("HyperConnectionPreMix", {**STREAMS, "p": (B, T, 3)}),
        "streams in front, gates by channel": in_both(
            "HyperConnectionPreMix",
            {**FLAT, "p": (B, T, 12)},
            attributes={"num_branches": 3, "reduction_scale": 0.5},
        ),
        "streams behind": in_both(
            "HyperConnectionPostMix", {**STREAMS, **BLOCK, "p": (B, T, 3, 4)}, floats="p"
        ),
        "streams behind, mixed": in_both(
            "HyperConnectionPostMix",
            {**FLAT, **BLOCK, "p": (B, T, 3, 1), "m": (B, T, 3, 3)},
            attributes={"num_branches": 3},
        ),
    }
)
