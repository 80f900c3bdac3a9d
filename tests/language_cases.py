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
    }
)


def experts(
    *, count: int = 4, fused: int = 1, bias: bool = True, shape: Sequence[int] = (7,), **more: Any
) -> dict[str, Case]:
    """Tokens of width 8, experts of width 6.

    Args:
        count: How many experts.
        fused: How many layers are in the first.
        bias: Whether they have one.
        shape: Of the tokens.
        more: Attributes.
    """
    fed = {"x": (*shape, 8), "r": (int(np.prod(shape)), count)}
    layers = {"w1": (count, fused * 6, 8), "b1": (count, fused * 6), "w2": (count, 8, 6)}
    layers |= {"b2": (count, 8)}
    held = {k: v for k, v in layers.items() if bias or k[0] == "w"}
    order = ["x", "r", *(name if name in held else "" for name in layers)]
    order = order if bias else order[:-1]
    dynamic = {"x": range(len(shape)), "r": [0]}
    return in_both("MoE", fed, held, order, more, dynamic=dynamic)


def packed(levels: np.ndarray, bits: int) -> np.ndarray:
    """Levels in bytes, the first in the lowest bits."""
    each = 8 // bits
    rest = np.zeros((*levels.shape[:-1], -levels.shape[-1] % each), levels.dtype)
    parts = np.concatenate([levels, rest], -1).reshape(*levels.shape[:-1], -1, each)
    return (parts << (bits * np.arange(each))).sum(-1).astype(np.uint8)


def few_bits(
    bits: int, block: int = 0, *, zeros: bool = False, fused: int = 1, kind: Any = np.float32,
    shares: bool = False, columns: int = 64, **more: Any
) -> Case:  # fmt: skip
    """Four experts of width 32.

    Args:
        bits: Of a weight.
        block: How many weights share a scale; 0 for those of a row.
        zeros: Whether they have zero points.
        fused: How many layers are in the first.
        kind: Of the floats.
        shares: Whether these stand in an operand.
        columns: The width of a token.
        more: Attributes.
    """
    fed = {"x": normal(7, columns).astype(kind), "r": normal(7, 4).astype(kind)}
    fed |= {"q": normal(7, 4).astype(kind)} if shares else {}
    held = {}
    for number, rows, width in ((1, 32 * fused, columns), (2, columns, 32)):
        blocks = width // block if block else 1
        points = whole(1 << bits, 4, rows, blocks, dtype=np.int64)
        sizes = 0.2 / (1 << bits) * (1 + whole(5, 4, rows, blocks)).astype(kind)
        held[f"w{number}"] = packed(whole(1 << bits, 4, rows, width, dtype=np.int64), bits)
        held[f"s{number}"] = sizes.astype(kind) if block else sizes[..., 0].astype(kind)
        held[f"b{number}"] = normal(4, rows).astype(kind)
        if zeros:
            held[f"z{number}"] = packed(points if block else points[..., 0], bits)
    names = "x r w1 s1 b1 w2 s2 b2 w3 s3 b3 z1 z2 z3 q".split()
    order = [name if name in {**fed, **held} else "" for name in names]
    while not order[-1]:
        order.pop()
    attributes = {"k": 2, "normalize_routing_weights": 1, "expert_weight_bits": bits, **more}
    attributes |= {"block_size": block} if block else {}
    dynamic = {name: [0] for name in fed}
    tolerance = 4e-3 if kind == np.float16 else 1e-5
    return Case(
        "QMoE", fed, held, order, attributes, since=13, tolerance=tolerance, dynamic=dynamic
    )


SWIGLU = {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1}

CASES |= named(
    {
        "experts, one is chosen": experts(),
        "experts, all are chosen": experts(k=4),
        "experts, shares of sum one": experts(k=3, normalize_routing_weights=1),
        "experts of tokens of several sequences": experts(k=2, shape=(B, T)),
        "experts without biases": experts(k=2, bias=False, activation_type="silu"),
        "experts by gelu": experts(k=2, activation_type="gelu"),
        "experts of no function": experts(k=2, activation_type="identity"),
        "experts with gates": experts(fused=2, **SWIGLU),
        "experts with bounded gates": experts(
            fused=2, **SWIGLU, activation_alpha=1.7, activation_beta=1.0, swiglu_limit=0.5
        ),
    }
)
CASES |= {
    **{
        f"experts of {bits} bits, {block or 'no'} blocks, zeros {zeros}": few_bits(
            bits, block, zeros=zeros
        )
        for bits, block in ((2, 0), (2, 16), (4, 0), (4, 32), (8, 0))
        for zeros in (True, False)
    },
    "experts of 4 bits with gates": few_bits(4, 16, fused=2, **SWIGLU),
    "experts of 4 bits, halves": few_bits(4, 32, kind=np.float16),
    "experts of 4 bits, shares told": few_bits(4, shares=True),
    "experts of 4 bits, shares told, as they are": few_bits(
        4, shares=True, normalize_routing_weights=0
    ),
}
ROUNDED = {
    "experts of 8 bits, blocks": few_bits(8, 32, columns=512),
    "experts of 8 bits, blocks, zeros": few_bits(8, 16, zeros=True),
    "experts of 4 bits, blocks, rounded": few_bits(4, 32, zeros=True, accuracy_level=4),
}
