"""Convolutions whose weight is a weighted sum of kernels: static kernels, and the sum behind.

conv(x, sum_k a_k W_k) = sum_k a_k conv(x, W_k), because a convolution is linear in its weight. The
usual trick (x as [1, b*C, h, w], groups = g*b) makes one convolution of b; undone here, so that the
batch is free again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.computed_conv import as_one, frame_of, windows_of
from surgeon.builders.views import KEEP_ORDER, as_shape
from surgeon.dims import Dim, constant_target
from surgeon.facts import Facts
from surgeon.facts.fact import Array
from surgeon.match import VIEWS, Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused


def stacked_convolution(draft: Draft, match: Match) -> gs.Tensor:
    """A Conv with weight sum_k a_k W_k as one Conv with all W_k and a weighted sum over k.

    The weight must be `MatMul(a, bank)` with a constant bank, behind views; a may have several rows
    (attention groups), each for its own output channels.
    """
    node, facts = match.root, draft.facts
    frame = frame_of(draft, match)
    if frame.images != 1:
        raise Refused(f"its input has a batch of {frame.images} that shares one weight")
    if not isinstance(frame.cout, int):
        raise Refused(f"the weight's {frame.cout} output channels are known at run time only")
    mix = mixture(frame.weight, facts)
    samples = mix.samples
    per = dims.exact_quotient(frame.groups, samples)
    if not isinstance(per, int):
        raise Refused(f"its {frame.groups} groups do not split among {samples} samples")
    channels = per * frame.cout
    kernels = mix.kernels(channels)  # [channels, K, Cin, kh, kw]
    count = kernels.shape[1]
    stacked = kernels.reshape(channels * count, *kernels.shape[2:])
    x = as_shape(draft, frame.x, (samples, per * frame.cin, *frame.spatial))
    attributes = windows_of(node)
    operands = [x, draft.constant(np.ascontiguousarray(stacked), "kernels")]
    biases = None if frame.bias is None else _bank_of_biases(frame.bias, mix, facts, channels)
    if biases is not None:
        operands.append(draft.constant(biases, "biases"))
    kernel = list(stacked.shape[2:])
    wide = draft.op("Conv", *operands, group=per, kernel_shape=kernel, **attributes)
    area = dims.product(frame.out)
    wanted = (samples, channels, *frame.out)
    flat = constant_target(
        (samples, channels * count, *frame.out), (samples, channels, count, area)
    )
    back = constant_target((samples, channels, 1, area), wanted)
    if mix.rows == 1 and flat is not None and back is not None:
        parts = draft.op("Reshape", wide, draft.constant(flat, "parts"), allowzero=0)
        attention = as_shape(draft, mix.attention, (samples, 1, 1, count))
        y = draft.op("MatMul", attention, parts)
        y = draft.op("Reshape", y, draft.constant(back, "shape"), allowzero=0)
    else:
        y = _sum_by_ones(draft, mix, wide, channels, count, len(frame.out))
    if frame.bias is not None and biases is None:
        ones = [1] * len(frame.out)
        y = draft.op("Add", y, as_shape(draft, frame.bias, (samples, channels, *ones)))
    return as_one(draft, y, len(frame.out))


def _bank_of_biases(bias: gs.Tensor, mix: Mixture, facts: Facts, channels: int) -> Array | None:
    """The biases of the stacked kernels, where the bias is mixed by the same attentions."""
    try:
        other = mixture(bias, facts)
        kernels = other.kernels(channels)  # [channels, K]
    except Refused:
        return None
    same = all(other.row_of(c, channels) == mix.row_of(c, channels) for c in range(channels))
    if _behind_views(other.attention) is not _behind_views(mix.attention) or not same:
        return None
    return np.ascontiguousarray(kernels).reshape(-1)


def _behind_views(tensor: gs.Tensor) -> gs.Tensor:
    """What a chain of views that keep the order shows."""
    while (node := producer_of(tensor)) and node.op in KEEP_ORDER:
        tensor = node.inputs[0]
    return tensor


def _sum_by_ones(
    draft: Draft, mix: Mixture, wide: gs.Tensor, channels: int, count: int, rank: int
) -> gs.Tensor:
    """The weighted sum over k as a grouped Conv of ones: needs no Reshape of the activations."""
    dtype = mix.bank.dtype
    spread = np.zeros((mix.rows * count, channels * count), dtype)
    for channel in range(channels):
        for k in range(count):
            spread[mix.row_of(channel, channels) * count + k, channel * count + k] = 1
    attention = as_shape(draft, mix.attention, (mix.samples, mix.rows * count))
    weights = draft.op("MatMul", attention, draft.constant(spread, "spread"))
    factor = as_shape(draft, weights, (mix.samples, channels * count, *[1] * rank))
    ones = draft.constant(np.ones((channels, count, *[1] * rank), dtype), "ones")
    scaled = draft.op("Mul", wide, factor)
    return draft.op("Conv", scaled, ones, group=channels, kernel_shape=[1] * rank)


@dataclass(frozen=True, slots=True)
class Mixture:
    """A computed weight as sum over k of attention[sample, row, k] * bank[lead, k, n].

    Attributes:
        samples: How many weights there are, one for each sample.
        attention: The tensor of attentions; the last axis is k.
        rows: Rows of attentions for one sample.
        bank: The constant, [lead, K, N].
        elements: For each element of one sample's weight [Co, Cin, kh, kw]: which bank entry,
            as (row, lead, n) in three arrays of that shape.
        product: The MatMul node.
    """

    samples: Dim
    attention: gs.Tensor
    rows: int
    bank: Array
    elements: tuple[Array, Array, Array]
    product: gs.Node

    def kernels(self, channels: int) -> Array:
        """The K static kernels, [channels, K, Cin, kh, kw].

        Raises:
            Refused: One output channel's weights come from several attentions.
        """
        self._rows(channels)
        _, lead, n = self._by_channel(channels)
        picked = self.bank[lead, :, n]  # [channels, Cin, kh, kw, K]
        return np.moveaxis(picked, -1, 1)

    def row_of(self, channel: int, channels: int) -> int:
        """Which row of attentions weighs an output channel."""
        return int(self._rows(channels)[channel])

    def _rows(self, channels: int) -> Array:
        rows = self._by_channel(channels)[0].reshape(channels, -1)
        if (rows != rows[:, :1]).any():
            raise Refused("the weights of one output channel come from several attentions")
        return rows[:, 0]

    def _by_channel(self, channels: int) -> tuple[Array, Array, Array]:
        row, lead, n = self.elements
        if row.shape[0] != channels:
            raise Refused(f"the weight of a sample has {row.shape[0]} channels, not {channels}")
        return row, lead, n


def mixture(weight: gs.Tensor, facts: Facts) -> Mixture:
    """Trace a computed weight back to `MatMul(a, bank)`, element by element.

    The trace is a proof: along the chain the leading dimension is the samples', every view keeps it
    in place, and what happens within one sample is static and is followed on an array of indices.

    Raises:
        Refused: The weight is something else; says what stands in the way.
    """
    tensor, chain = _unviewed(weight)
    node = producer_of(tensor)
    if node is None or node.op != "MatMul":
        raise Refused("its weight is not a MatMul of attentions and a constant bank")
    attention, constant = node.inputs
    bank = facts.array(constant)
    rows, made = facts.of(attention).shape, facts.of(tensor).shape
    if bank is None or rows is None or made is None or bank.ndim < 2:
        raise Refused("its weight is a MatMul without a constant bank, or of unknown shape")
    samples, inner = made[0], made[1:]
    if len(made) == 2:
        inner = (1, *inner)
    static = [d for d in inner if isinstance(d, int)]
    if len(static) != len(inner) or any(not isinstance(d, int) for d in rows[1:]):
        raise Refused("more than the leading dimension of its weight is dynamic")
    if len(rows) < 2 or dims.equal(rows[0], samples) is not True:
        raise Refused("the attentions and the weights have different leading dimensions")
    if bank.ndim > 2 and bank.ndim >= len(made) and bank.shape[-len(made)] != 1:
        raise Refused("the bank has a leading dimension of its own")
    per_sample = [d for d in rows[1:-1] if isinstance(d, int)]
    elements = _elements(static, per_sample, bank, flat=len(made) == 2)
    row, lead, n = (_trace(chain, facts, samples, each) for each in elements)
    flat_bank = bank.reshape(-1, *bank.shape[-2:])
    return Mixture(samples, attention, _size(per_sample), flat_bank, (row, lead, n), node)


def _unviewed(tensor: gs.Tensor) -> tuple[gs.Tensor, list[gs.Node]]:
    """What a tensor is a view of, and the views, the last first."""
    chain: list[gs.Node] = []
    while (node := producer_of(tensor)) is not None:
        if node.op not in VIEWS - {"Cast"}:
            break
        chain.append(node)
        tensor = node.inputs[0]
    return tensor, chain


def _elements(
    shape: Sequence[int], per_sample: Sequence[int], bank: Array, *, flat: bool
) -> tuple[Array, Array, Array]:
    """Where each element of one sample of `MatMul(a, bank)` comes from: row, lead and column.

    Args:
        shape: Of one sample of the product; with a 1 in front where it is a vector.
        per_sample: The shape of one sample's attentions, without the last axis.
        bank: The constant operand.
        flat: Whether it is a vector.
    """
    row = np.arange(_size(per_sample)).reshape(per_sample or [1])
    row = np.zeros(shape, int) if flat else np.broadcast_to(row[..., None], shape)
    depth = len(shape) - 2
    leads = bank.shape[:-2][-depth:] if depth and bank.ndim > 2 else ()
    lead = np.arange(_size(leads)).reshape(leads or (1,) * max(depth, 0))
    lead = np.broadcast_to(lead[..., None, None], shape) if depth else np.zeros(shape, int)
    column = np.broadcast_to(np.arange(bank.shape[-1]), shape)
    row, lead, column = (np.ascontiguousarray(a).reshape(shape) for a in (row, lead, column))
    return (row.reshape(-1), lead.reshape(-1), column.reshape(-1)) if flat else (row, lead, column)


def _trace(chain: Sequence[gs.Node], facts: Facts, samples: Dim, index: Array) -> Array:
    """Follow one sample's elements through the views, nearest to the MatMul last in `chain`."""
    merged = False
    for node in reversed(chain):
        out = facts.of(node.outputs[0]).shape
        if out is None or not out:
            raise Refused("a view of its weight has no known shape")
        rest = out[1:]
        if any(not isinstance(d, int) for d in rest):
            raise Refused("a view of its weight mixes the samples' dimension with others")
        shape = [d for d in rest if isinstance(d, int)]
        if node.op == "Transpose":
            perm = attribute_of(node, "perm")
            if not perm or perm[0] != 0:
                raise Refused("a Transpose moves the samples' dimension of its weight")
            inside = perm if merged else [p - 1 for p in perm[1:]]
            index = index.transpose(inside)
            continue
        if node.op not in KEEP_ORDER:
            raise Refused(f"{node.op} stands between its weight and the bank")
        if not merged and dims.equal(out[0], samples) is True and _size(shape) == index.size:
            index = index.reshape(shape)
            continue
        lead = dims.exact_quotient(out[0], samples)
        if not isinstance(lead, int) or lead * _size(shape) != index.size:
            raise Refused("a view of its weight mixes the samples' dimension with others")
        index = index.reshape([lead, *shape])
        merged = True
    return index if merged else index[None]  # one output channel a sample


def _size(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64)) if shape else 1
