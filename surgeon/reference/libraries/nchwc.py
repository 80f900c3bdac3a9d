"""onnxruntime's operators on channels in blocks (`com.microsoft.nchwc`), for blocks of any size.

Its own kernels run them for blocks of the machine's size alone. A value of N, C, H, W holds them as
N, C / b, H, W, b. Source: onnxruntime's `nchwc_ops.cc`, and `reorder.cpp` of its MLAS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from surgeon import blocks
from surgeon.nested import every_node
from surgeon.reference.errors import Unsuited
from surgeon.reference.libraries.activations import activated
from surgeon.reference.libraries.standard import standard
from surgeon.reference.operators.precision import Array
from surgeon.runtime import block_here

DOMAINS = (blocks.DOMAIN,)
Said = Mapping[str, Any]
_SIZE = "block"  # the attribute by which each node is told


def with_blocks(model: onnx.ModelProto, folder: Path | None) -> onnx.ModelProto:
    """The model, each of its nodes told how many channels a block has: what the file tells.

    A file that leaves it open means what it does on this machine.
    """
    if not blocks.has_blocks(model):
        return model
    size = blocks.told(model, folder) or block_here() or blocks.LARGE
    annotated = onnx.ModelProto()
    annotated.CopyFrom(model)
    for node in every_node(annotated.graph.node):
        if node.domain == blocks.DOMAIN:
            node.attribute.append(onnx.helper.make_attribute(_SIZE, size))
    return annotated


def _in_blocks(x: Array, block: int) -> Array:
    """N, C, H, W with zeros up to a multiple of the block, in the order of blocks."""
    count, channels, *plane = x.shape
    x = np.pad(x, [(0, 0), (0, -channels % block), (0, 0), (0, 0)])
    apart = x.reshape(count, -1, block, *plane)
    return np.ascontiguousarray(np.moveaxis(apart, 2, -1)).reshape(x.shape)


def _plain(x: Array, block: int) -> Array:
    """The channels one behind the other again."""
    count, channels, *plane = x.shape
    if channels % block:
        raise Unsuited(f"{channels} channels are no blocks of {block}")
    apart = x.reshape(count, channels // block, *plane, block)
    return np.moveaxis(apart, -1, 2).reshape(x.shape)


def reorder_input(said: Said, x: Array) -> Array:
    """Channels put into blocks; `channels_last` of N, H, W, C."""
    return _in_blocks(np.moveaxis(x, -1, 1) if said.get("channels_last") else x, said[_SIZE])


def reorder_output(said: Said, x: Array) -> Array:
    """The first of the channels taken out of blocks."""
    y = _plain(x, said[_SIZE])[:, : said["channels"]]
    return np.moveaxis(y, 1, -1) if said.get("channels_last") else y


def conv(said: Said, x: Array, w: Array, b: Array | None = None, z: Array | None = None) -> Array:
    """activation (Conv (x, w, b) + z); of fewer channels than a block x is as it was."""
    block, group = said[_SIZE], said.get("group", 1)
    made, read, *kernel = w.shape
    as_it_was = group == 1 and read < block
    if made % block:
        raise Unsuited(f"its weight makes {made} channels, which are no blocks of {block}")
    if as_it_was or (group == made and read == 1):
        w = w.reshape(made // block, read, *kernel, block).transpose(0, 4, 1, 2, 3)
    elif read % block:
        raise Unsuited(f"its weight reads {read} channels, which are no blocks of {block}")
    else:
        parts = made // block, read // block, *kernel, block, block
        w = w.reshape(parts).transpose(0, 5, 1, 4, 2, 3)
    known = {k: v for k, v in said.items() if k != _SIZE and not k.startswith("activation")}
    source = x if as_it_was else _plain(x, block)
    y = standard("Conv", known, source, w.reshape(made, read, *kernel), b)
    if z is not None:
        y = y + _plain(z, block)
    name, numbers = said.get("activation", ""), said.get("activation_params", ())
    return _in_blocks(activated(name, y.astype(np.float64), numbers).astype(y.dtype), block)


def _by_channels(operator: str) -> Callable[..., Array]:
    """What goes over each channel by itself, as the standard operator does."""

    def function(said: Said, x: Array) -> Array:
        known = {k: v for k, v in said.items() if k != _SIZE}
        return _in_blocks(standard(operator, known, _plain(x, said[_SIZE])), said[_SIZE])

    return function


def upsample(said: Said, x: Array) -> Array:
    """Whole multiples of a plane: each element repeated, or between them along lines."""
    kind = _text(said.get("mode", "nearest"))
    where = _text(said.get("coordinate_transformation_mode", "asymmetric"))
    scales = np.asarray(said["scales"], np.float32)
    known = {"mode": kind, "coordinate_transformation_mode": where, "nearest_mode": "floor"}
    y = standard("Resize", known, _plain(x, said[_SIZE]), None, scales)
    return _in_blocks(y, said[_SIZE])


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


TABLE: Mapping[str, Callable[..., Any]] = {
    "AveragePool": _by_channels("AveragePool"),
    "Conv": conv,
    "GlobalAveragePool": _by_channels("GlobalAveragePool"),
    "GlobalMaxPool": _by_channels("GlobalMaxPool"),
    "MaxPool": _by_channels("MaxPool"),
    "ReorderInput": reorder_input,
    "ReorderOutput": reorder_output,
    "Upsample": upsample,
}
