"""`com.microsoft.GatedDeltaNet`: linear attention with its gates, its norms and a state by values.

The formulas are those of onnxruntime's `ContribOperators.md`, which computes in float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, Size, operand
from surgeon.builders.contrib.settings import refuse_read, settings
from surgeon.builders.linear_attention import Heads, Tokens, attended, rule_of, scaled
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_FLOAT = int(TYPE.FLOAT)
_USUAL: Mapping[str, Any] = {
    "update_rule": "gated_delta",
    "scale": 0.0,
    "qk_l2_norm": 0,
    "gate_activation": "none",
    "gate_lower_bound": -5.0,
    "beta_activation": "none",
    "chunk_size": 64,  # how kernels part their work
}
# What its kernel for CPUs adds to a sum of squares before the root; and where gates are bounded.
_LEAST_SQUARE, _LEAST_OF_BOUNDED = 1e-12, 1e-6
_BOUNDED, _PLAIN = ("sigmoid", "kda"), ("softplus", "qwen")
_DECAY, _RATE, _STATE, _LOG, _BIAS = 4, 5, 6, 7, 8  # operands


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Of what is computed.

    Attributes:
        batch: How many sequences.
        length: How many tokens each has; -1 for as many as there are.
        heads: How many heads, and how wide.
    """

    batch: Size | int
    length: Size | int
    heads: Heads


def gated_delta_net(draft: Draft, match: Match) -> Any:
    """`com.microsoft.GatedDeltaNet (q, k, v, lengths, decay, rate, state, a_log, dt_bias)`."""
    node, c = match.root, Bench(draft)
    given = settings(node, 1, 11, _USUAL, unwritten={"state_update_capacity": 0})
    refuse_read(draft, node, 2, "its compact state")
    if operand(node, 3) is not None:
        raise Refused("its sequences have lengths of their own (`cu_seqlens`)")
    query, state = node.inputs[0], operand(node, _STATE)
    packed = operand(node, 1) is None
    outer = c.sizes(query)[: c.rank(query) - (1 if packed else 2)]
    sizes = _sizes(c, node, outer)
    sides = _unpacked(c, query, sizes) if packed else node.inputs[:3]
    heads = sizes.heads
    q, k, v = (
        c.reshape(c.cast(x, _FLOAT), [sizes.batch, sizes.length, count, width])
        for x, count, width in zip(
            sides,
            (heads.queries, heads.keys, heads.values),
            (heads.width, heads.width, heads.wide),
            strict=True,
        )
    )
    if given["qk_l2_norm"]:
        bounded = given["gate_activation"] in _BOUNDED
        least = _LEAST_OF_BOUNDED if bounded else _LEAST_SQUARE
        q, k = (_of_length_one(c, x, least) for x in (q, k))
    decays, corrects = rule_of(given["update_rule"])
    decay = _decay(c, node, given, sizes, len(outer)) if decays else None
    rate = _rate(c, node, given, sizes) if corrects else None
    first = (
        c.filled([sizes.batch, heads.values, heads.width, heads.wide], 0, _FLOAT)
        if state is None
        else c.permute(state, [0, 1, 3, 2])
    )
    found = Tokens(scaled(c, q, given["scale"], heads.width), k, v, decay, rate)
    y, after = attended(c, found, heads, first)
    y = c.cast(c.reshape(y, [*outer, heads.read, heads.wide]), c.dtype(query))
    return y, c.permute(after, [0, 1, 3, 2])


def _sizes(c: Bench, node: gs.Node, outer: Sequence[Size | int]) -> _Sizes:
    """How many sequences, tokens, heads, and how wide.

    Raises:
        Refused: That is not known, or the query has as many axes as nothing is written for.
    """
    state = operand(node, _STATE)
    if len(outer) not in (1, 2) or (state is None and len(outer) == 1):
        raise Refused("how many sequences it has is not known")
    if len(outer) == 2:
        batch, length = outer
    else:
        batch = c.size(state, 0)
        if batch == 0:
            raise Refused("it has no sequences")
        known = c.div(outer[0], batch)
        length = known if isinstance(known, int) else -1  # which a Reshape finds out
    value = operand(node, 2)
    if (operand(node, 1) is None) != (value is None):
        raise Refused("its keys or its values are missing")
    if value is None:
        if state is None:
            raise Refused("how much of what is packed are keys is not known")
        values, wide, width = _whole(c, state, 3)
        (whole,) = _whole(c, node.inputs[0], 1)
        keys = (whole - values * wide) // (2 * width)
        return _Sizes(batch, length, Heads(keys, keys, values, width, wide))
    queries, width = _whole(c, node.inputs[0], 2)
    values, wide = _whole(c, value, 2)
    return _Sizes(batch, length, Heads(queries, queries, values, width, wide))


def _whole(c: Bench, x: gs.Tensor, count: int) -> list[int]:
    """The last sizes.

    Raises:
        Refused: They are not known.
    """
    found = [dim for dim in (c.shape(x) or ())[-count:] if isinstance(dim, int)]
    if len(found) != count:
        raise Refused(f"how many heads `{x.name}` has, and how wide, is not known")
    return found


def _unpacked(c: Bench, packed: gs.Tensor, sizes: _Sizes) -> list[gs.Tensor]:
    """Queries, keys and values that lie side by side."""
    keys = sizes.heads.keys * sizes.heads.width
    widths = c.ints([keys, keys, sizes.heads.values * sizes.heads.wide], "sizes")
    return list(c.op("Split", packed, widths, outputs=3, axis=c.rank(packed) - 1))


def _of_length_one(c: Bench, x: gs.Tensor, least: float) -> gs.Tensor:
    squares = c.op("ReduceSum", c.op("Mul", x, x), c.ints([-1], "axes"), keepdims=1)
    safe = c.op("Add", squares, c.number(least, _FLOAT))
    made: gs.Tensor = c.op("Div", x, c.op("Sqrt", safe))
    return made


def _decay(
    c: Bench, node: gs.Node, given: Mapping[str, Any], sizes: _Sizes, outer: int
) -> gs.Tensor:
    """[batch, length, heads of values, 1 or width]: the logarithm of what a state is multiplied by.

    By `gate_activation` it is d as it comes, -exp (a) softplus (d + b), or the lower bound times
    sigmoid (exp (a) (d + b)).
    """
    decay = operand(node, _DECAY)
    if decay is None:
        raise Refused("it has no decay, which its rule needs")
    width = sizes.heads.width if c.rank(decay) == outer + 2 else 1
    shape = [sizes.batch, sizes.length, sizes.heads.values, width]
    decay = c.reshape(c.cast(decay, _FLOAT), shape)
    kind = given["gate_activation"]
    if kind == "none":
        return decay
    log, bias = operand(node, _LOG), operand(node, _BIAS)
    if log is None or bias is None:
        raise Refused("it has no `a_log` or no `dt_bias`, which its gate needs")
    size = c.op("Exp", c.op("Reshape", log, c.ints([sizes.heads.values, 1], "heads")))
    bias = c.op("Reshape", bias, c.ints([sizes.heads.values, -1], "heads"))
    moved = c.op("Add", decay, bias)
    if kind in _PLAIN:
        return c.op("Mul", c.op("Neg", size), c.op("Softplus", moved))
    if kind in _BOUNDED:
        low = c.number(float(given["gate_lower_bound"]), _FLOAT)
        return c.op("Mul", c.op("Sigmoid", c.op("Mul", size, moved)), low)
    raise Refused(f"no function is known for its gate {kind!r}")


def _rate(c: Bench, node: gs.Node, given: Mapping[str, Any], sizes: _Sizes) -> gs.Tensor:
    """[batch, length, heads of values, 1]: how much of what it corrects a state takes up."""
    rate = operand(node, _RATE)
    if rate is None:
        raise Refused("it has no rate, which its rule needs")
    if given["beta_activation"] not in ("none", "sigmoid"):
        raise Refused(f"no function is known for its rate {given['beta_activation']!r}")
    shape = [sizes.batch, sizes.length, sizes.heads.values, 1]
    wide = c.reshape(c.cast(rate, _FLOAT), shape)
    return c.op("Sigmoid", wide) if given["beta_activation"] == "sigmoid" else wide
