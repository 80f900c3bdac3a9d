"""Convolutions whose weight is one constant kernel times factors of each sample (StyleGAN 2).

sum_i x_i s_i W_oi d_o = d_o sum_i (s_i x_i) W_oi: what belongs to an input channel scales the
input, what belongs to an output channel the output, and the kernel is constant. Undone with it is
the trick (x as [1, b*C, h, w], as many groups as samples) that gives each sample its weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.computed_conv import as_one, bias_of, windows_of
from surgeon.builders.samples import refuse_unnamed
from surgeon.builders.views import KEEP_ORDER, as_shape
from surgeon.dims import Dim
from surgeon.facts import Facts
from surgeon.facts.fact import Array
from surgeon.links import maker_of
from surgeon.match import Match, attribute_of, is_one_of
from surgeon.rewrite import Draft, Refused


@dataclass(frozen=True, slots=True)
class Product:
    """A weight of each sample as constants times what is computed.

    Attributes:
        shape: [samples, first, second, ...kernel].
        constants: To be multiplied with one another.
        factors: Those computed, each with the axis of `shape` it belongs to (1 or 2), and whether
            it divides.
    """

    shape: tuple[Dim, ...]
    constants: list[Array] = field(default_factory=list)
    factors: list[tuple[gs.Tensor, int, bool]] = field(default_factory=list)

    def kernel(self) -> Array:
        """The constants' product, [first, second, ...kernel].

        Raises:
            Refused: There is none, or the samples' kernels differ.
        """
        if not self.constants:
            raise Refused("no factor of its weight is constant")
        wanted = [1, *(d for d in self.shape[1:] if isinstance(d, int))]
        found = self.constants[0]
        for other in self.constants[1:]:
            found = found * other
        if len(wanted) < len(self.shape) or found.ndim > len(wanted):
            raise Refused("the size of its kernel is not known")
        if found.ndim == len(wanted) and found.shape[0] != 1:
            raise Refused("its constant kernels differ from sample to sample")
        return np.ascontiguousarray(np.broadcast_to(found, wanted)[0])


def modulated_convolution(draft: Draft, match: Match) -> gs.Tensor:
    """A Conv or ConvTranspose with weight W * s * d of each sample, with W alone as its weight."""
    y, samples = _modulated(draft, match.root)
    if match.root.op == "ConvTranspose" and (attribute_of(match.root, "group") or 1) != samples:
        raise Refused(f"it has another number of groups than {samples} samples")
    return as_one(draft, y, (draft.facts.of(y).rank or 0) - 2)


def modulated_any_batch(draft: Draft, match: Match) -> gs.Tensor:
    """A ConvTranspose whose groups are the batch of the trace, and the Reshape into samples.

    Of the shapes of a ConvTranspose any number of groups could be meant: that it was one of each
    sample the Reshape says, which at another batch has another number of elements than it names.
    """
    made = match.values["c"]
    assert made is not None
    y, samples = _modulated(draft, made.inputs[0])
    refuse_unnamed(draft.facts, match, y, samples)
    return y


def _modulated(draft: Draft, node: gs.Node) -> tuple[gs.Tensor, Dim]:
    """What it gives as [samples, channels, ...], and how many samples."""
    facts = draft.facts
    x, weight = node.inputs[0], node.inputs[1]
    bias = bias_of(node)
    given, sizes = facts.of(x).shape, facts.of(weight).shape
    if given is None or sizes is None or len(given) != len(sizes):
        raise Refused("the shape of its input or weight is not known")
    if facts.array(weight) is not None:
        raise Refused("its weight is constant")
    made, turned = _of_samples(weight, facts, sizes)
    product = _product(made, facts)
    samples, first, second = product.shape[:3]
    transposed = node.op == "ConvTranspose"
    inner = 1 if transposed != turned else 2  # the axis of input channels
    channels, wanted = (first, second) if inner == 1 else (second, first)
    if given[0] != 1 or dims.equal(given[1], samples * channels) is not True:
        raise Refused(f"its channels {given[1]} are not {channels} of each sample")
    kernel = product.kernel()
    ones = [1] * (len(given) - 2)
    x = as_shape(draft, x, (samples, channels, *given[2:]))
    for tensor, axis, divides in product.factors:
        if axis == inner:
            x = draft.op("Div" if divides else "Mul", x, _line(draft, tensor, axis, ones))
    attributes = windows_of(node)
    constant = draft.constant(np.swapaxes(kernel, 0, 1) if turned else kernel, "kernel")
    y = draft.op(node.op, x, constant, kernel_shape=list(kernel.shape[2:]), **attributes)
    for tensor, axis, divides in product.factors:
        if axis != inner:
            y = draft.op("Div" if divides else "Mul", y, _line(draft, tensor, axis, ones))
    if bias is not None:
        y = draft.op("Add", y, as_shape(draft, bias, (samples, wanted, *ones)))
    return y, samples


def _line(draft: Draft, factor: gs.Tensor, axis: int, ones: list[int]) -> gs.Tensor:
    """A factor as [samples, channels, 1, ...]."""
    shape = _padded(draft.facts.of(factor).shape or (), len(ones) + 3)
    return as_shape(draft, factor, (shape[0], shape[axis], *ones))


def _of_samples(weight: gs.Tensor, facts: Facts, sizes: tuple[Dim, ...]) -> tuple[gs.Tensor, bool]:
    """The weight before samples and channels were made one axis, and whether channels swap behind.

    Raises:
        Refused: It is not [samples, channels, channels, ...kernel] behind views.
    """
    tensor = weight
    while tensor.inputs:
        node = tensor.inputs[0]
        shape = facts.of(tensor).shape or ()
        if len(shape) == len(sizes) + 1 and shape[2:] == sizes[1:]:
            merged = dims.equal(shape[0] * shape[1], sizes[0]) is True
            if merged and is_one_of(node, {"Transpose"}):
                swapped = [0, 2, 1, *range(3, len(shape))]
                if list(attribute_of(node, "perm") or ()) != swapped:
                    break
                return node.inputs[0], True
            if merged and not is_one_of(node, KEEP_ORDER):
                return tensor, False
        if not is_one_of(node, KEEP_ORDER):
            break
        tensor = node.inputs[0]
    raise Refused("its weight is not of [samples, channels, channels] and a kernel behind a view")


def _product(made: gs.Tensor, facts: Facts) -> Product:
    """Take a weight of each sample apart.

    Raises:
        Refused: Something computed in it belongs to more than one kind of channels.
    """
    shape = facts.of(made).shape
    assert shape is not None
    product = Product(shape)
    stack = [(made, False)]
    while stack:
        tensor, divides = stack.pop()
        array = facts.array(tensor)
        if array is not None:
            product.constants.append(1 / array if divides else array)
            continue
        axis = _axis(facts.of(tensor).shape, len(shape))
        if axis is not None:
            product.factors.append((tensor, axis, divides))
            continue
        node = maker_of(tensor)
        if node is None or node.domain or node.op not in ("Mul", "Div"):
            raise Refused("its weight is not one kernel times factors of samples and channels")
        stack.append((node.inputs[1], divides != (node.op == "Div")))
        stack.append((node.inputs[0], divides))
    return product


def _axis(shape: tuple[Dim, ...] | None, rank: int) -> int | None:
    """Which kind of channels a factor belongs to: 1 or 2; None where to both, or to elements."""
    if shape is None or len(shape) > rank:
        return None
    _, first, second, *kernel = _padded(shape, rank)
    if any(d != 1 for d in kernel) or (first != 1 and second != 1):
        return None
    return 2 if second != 1 else 1


def _padded(shape: Sequence[Dim], rank: int) -> tuple[Dim, ...]:
    return (*[1] * (rank - len(shape)), *shape)
