"""Transposed convolutions with any computed weight, as products, which take computed operands.

Each element of the input is multiplied with a kernel for each output channel, and the products are
added where the kernels lie one over another: a product of matrices, and a transposed convolution
with a constant identity kernel, which only lays out and adds.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.computed_conv import LARGEST_IDENTITY, Frame, bias_of, product, windows_of
from surgeon.builders.samples import refuse_unnamed
from surgeon.builders.views import as_shape
from surgeon.dims import Dim
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def transposed_any_batch(draft: Draft, match: Match) -> gs.Tensor:
    """A ConvTranspose whose groups are the batch of the trace, and the Reshape into samples.

    Of the shapes of a ConvTranspose any number of groups could be meant: that it was one of each
    sample the Reshape says, which at another batch has another number of elements than it names.
    """
    named, made = draft.facts.of(match.root.inputs[1]).value, match.values["c"]
    assert made is not None
    samples = 0 if named is None or not named.size else named.reshape(-1).tolist()[0]
    if isinstance(samples, int):
        raise Refused("what is behind it does not name its samples")
    y = _of_samples(draft, made.inputs[0], samples)
    refuse_unnamed(draft.facts, match, y, samples)
    return y


def _of_samples(draft: Draft, node: gs.Node, samples: Dim) -> gs.Tensor:
    """What it gives where each sample is a group, as [samples, channels, ...]."""
    facts, (x, weight) = draft.facts, node.inputs[:2]
    given, sizes = facts.of(x).shape, facts.of(weight).shape
    if given is None or sizes is None or len(given) != len(sizes) or given[0] != 1:
        raise Refused("the shape of its input or weight is not known, or has a batch")
    if facts.array(weight) is not None or bias_of(node) is not None:
        raise Refused("its weight is constant, or it has a bias")
    inner, channels = dims.exact_quotient(given[1], samples), sizes[1]
    kernel = [size for size in sizes[2:] if isinstance(size, int)]
    if not isinstance(inner, int) or not isinstance(channels, int):
        raise Refused(f"its channels {given[1]} are no number of each of {samples} samples")
    if dims.equal(given[1], sizes[0]) is not True or len(kernel) != len(sizes) - 2:
        raise Refused("its weight has other channels, or a size that is known at run time only")
    count = math.prod(kernel)
    if channels * count * count > LARGEST_IDENTITY:
        raise Refused(f"its kernels of {count} elements would need a large constant one")
    # [samples, inner, channels * count], and each sample's matrix turned
    bank = as_shape(draft, weight, (samples, inner, channels * count))
    bank = draft.op("Transpose", bank, perm=[0, 2, 1])
    ones, spatial = (1,) * len(kernel), given[2:]
    frame = Frame(x, bank, None, 1, samples, inner, channels * count, ones, spatial, spatial)
    products = product(draft, frame, x, inner, spatial)
    products = as_shape(draft, products, (samples, channels * count, *spatial))
    dtype = onnx.helper.tensor_dtype_to_np_dtype(facts.of(weight).dtype)
    identity = np.tile(np.eye(count).reshape(count, 1, *kernel), (channels, 1, *ones))
    return draft.op(
        "ConvTranspose",
        products,
        draft.constant(identity.astype(dtype), "identity"),
        group=channels,
        kernel_shape=kernel,
        **windows_of(node),
    )
