"""Nodes of mixtures of experts, each with what it is fed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from language_cases import B, T, in_both, named
from onnxruntime_cases import Case, normal, whole


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

CASES: dict[str, Case] = named(
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
    "experts of 4 bits, halves": few_bits(4, 32, kind=np.float16, weights_prepacked=0),
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


def router(outputs: int = 1, **more: Any) -> dict[str, Case]:
    more = {"top_k": 3, **more}
    options = {"outputs": outputs, "without": (0,) if outputs > 1 else ()}
    fed, held = {"l": (7, 12)}, {"b": (12,)}
    return in_both("MoEGroupRouter", fed, held, [], more, floats="b", dynamic={"l": [0]}, **options)


GROUPS = {"n_group": 3, "topk_group": 2}
CASES |= named(
    {
        "router": router(),
        "router of groups": router(**GROUPS),
        "router of groups by their best": router(**GROUPS, group_topk=1, router_sentinel=-5.0),
        "router of more than a group has": router(n_group=4, top_k=6, group_topk=9),
        "router of all scores": router(3),
    }
)


def packed_rows(kind: int, block: int, width: int = 32, dtype: int = 1) -> Case:
    """A table of five rows of 512 as GGML packs it; places that it has, and that it has not."""
    table = whole(256, 5, 512 // width, block, dtype=np.uint8)
    scales = np.abs(normal(5, 512 // width, 1)).astype(np.float16).view(np.uint8)
    table[..., slice(-2, None) if kind == 14 else slice(0, 2)] = scales
    attributes = {"packed_type": kind, "K": 512, "output_dtype": dtype}
    fed = {"i": np.array([[0, 3, 4], [-1, 7, 2]])}
    held = {"d": table.reshape(5, -1)}
    return Case("GatherPacked", fed, held, ["d", "i"], attributes, dynamic={"i": [0, 1]})


CASES |= {
    "rows of 4 bits": packed_rows(2, 18),
    "rows of 4 bits, halves": packed_rows(2, 18, dtype=10),
    "rows of 5 bits": packed_rows(6, 22),
    "rows of 6 bits": packed_rows(14, 210, 256),
    "rows of 8 bits": packed_rows(8, 34),
    "rows of 4 bits, not evenly": packed_rows(20, 18),
    "rows of halves": packed_rows(1, 64)._replace(
        weights={"d": normal(5, 512).astype(np.float16).view(np.uint8)}
    ),
}

# What onnxruntime computed wrongly before 1.32: shares in halves, and some zero points of blocks.
WRONG_BEFORE = frozenset(
    name
    for name, case in CASES.items()
    if (case.op == "MoE" and name.endswith("halves")) or name.endswith("32 blocks, zeros True")
)
