"""A stretch of a graph whose values hold channels in blocks, as onnxruntime saves CNNs.

It begins at ReorderInput, or at a Conv that reads fewer channels than a block has, and ends at
ReorderOutput. How many channels a value has is not said between them: padded ones are zeros.

Source: onnxruntime's `nchwc_transformer.cc`, and `reorder.cpp` of its MLAS.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.blocks import DOMAIN
from surgeon.builders.bench import operand
from surgeon.facts.fact import Array
from surgeon.links import maker_of, producers_first
from surgeon.model import describe
from surgeon.rewrite import Draft, Refused

_OVER_PLANES = {"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "Upsample"}
# What onnxruntime lets go over blocks as they are: functions of each element, sums, products.
_OF_ONE = {
    *[("", name) for name in ("Gelu", "HardSigmoid", "HardSwish", "Relu", "Sigmoid", "Tanh")],
    *[("com.microsoft", name) for name in ("FastGelu", "Gelu", "QuickGelu")],
}
_OF_SEVERAL = {("", name) for name in ("Add", "Mul", "Sum")}


class Weight:
    """The weight of a Conv of blocks, in the order that ONNX has.

    Attributes:
        array: [made, read, height, width], padded channels too.
        direct: Whether the Conv reads channels that are in no blocks.
        apart: Whether it goes over each channel by itself.
    """

    def __init__(self, draft: Draft, node: gs.Node, block: int) -> None:
        held = draft.facts.array(node.inputs[1], decides=False)
        group = node.attrs.get("group", 1)
        if held is None or held.ndim != 4:
            raise Refused(f"the weight of {describe(node)} is no constant of four axes")
        made, read, *kernel = held.shape
        self.direct = group == 1 and read < block
        self.apart = group == made > 1 and read == 1
        if made % block or not (self.direct or self.apart or read % block == 0):
            raise Refused(f"the weight of {describe(node)} is in no blocks of {block} channels")
        if self.direct or self.apart:
            lanes = held.reshape(made // block, read, *kernel, block)
            turned = lanes.transpose(0, 4, 1, 2, 3)
        else:
            lanes = held.reshape(made // block, read // block, *kernel, block, block)
            turned = lanes.transpose(0, 5, 1, 4, 2, 3)
        self.array: Array = turned.reshape(held.shape)

    def least(self, bias: Array | None) -> tuple[int, int]:
        """How many channels it makes and reads at least: those behind are zeros."""
        made, read = (np.any(self.array, axis) for axis in ((1, 2, 3), (0, 2, 3)))
        if bias is not None:
            made = np.logical_or(made, bias != 0)
        return _behind_the_last(made), _behind_the_last(read)


def _behind_the_last(is_set: Array) -> int:
    places = np.flatnonzero(is_set)
    return int(places[-1]) + 1 if places.size else 0


class Region:
    """Values in blocks that hang together, and what makes and reads them.

    Attributes:
        nodes: What makes such values, producers first.
        ends: The ReorderOutputs.
        weights: Those of the Convs, by the identity of the node.

    Raises:
        Refused: Something else reads or makes such a value.
    """

    def __init__(self, draft: Draft, end: gs.Node, block: int) -> None:
        self.draft, self.block = draft, block
        self.ends: list[gs.Node] = []
        self.weights: dict[int, Weight] = {}
        self._makers: dict[int, gs.Node] = {}
        waiting = [end.inputs[0]]
        while waiting:
            waiting.extend(self._take(waiting.pop()))
        self.nodes = producers_first([*self._makers.values()], self.sources)
        self._widths = _Widths()
        self._padded: dict[int, int] = {}
        self._find_widths()

    def width(self, tensor: gs.Tensor) -> int:
        """How many channels a value in blocks has."""
        return self._widths.of(tensor)

    def padded(self, tensor: gs.Tensor) -> int:
        """How many channels a value has with those that fill its last block."""
        return self._padded[id(tensor)]

    def sources(self, node: gs.Node) -> list[gs.Tensor]:
        """Which of a node's operands are in blocks."""
        if (node.domain, node.op) == (DOMAIN, "ReorderInput"):
            return []
        if (node.domain, node.op) == (DOMAIN, "Conv"):
            added = operand(node, 3)
            read = [] if self.weights[id(node)].direct else [node.inputs[0]]
            return read if added is None else [*read, added]
        return list(node.inputs[:1] if node.op == "Reshape" or node.domain else node.inputs)

    def _take(self, tensor: gs.Tensor) -> Iterator[gs.Tensor]:
        """Take the maker of a value into the region; gives the values to go on from."""
        node = maker_of(tensor)
        if node is None or id(node) in self._makers:
            return
        if not self.draft.holds(node) or not _makes_blocks(node):
            raise Refused(
                f"{describe(node)} makes channels in blocks, for which nothing is written"
            )
        self._makers[id(node)] = node
        if (node.domain, node.op) == (DOMAIN, "Conv"):
            self.weights[id(node)] = Weight(self.draft, node, self.block)
        for source in self.sources(node):
            if maker_of(source) is None:
                raise Refused(f"`{source.name}` holds channels in blocks, and nothing makes it")
            yield source
        if self.draft.surgery.is_output(tensor):
            raise Refused(f"`{tensor.name}`, whose channels are in blocks, is an output")
        for reader in tensor.outputs:
            if (reader.domain, reader.op) == (DOMAIN, "ReorderOutput"):
                self.ends.append(reader)
            elif not _makes_blocks(reader):
                raise Refused(f"{describe(reader)} reads channels in blocks")
            else:
                yield from reader.outputs[:1]

    def _find_widths(self) -> None:
        padded = self._padded
        for node in self.nodes:
            y, sources = node.outputs[0], self.sources(node)
            if (node.domain, node.op) == (DOMAIN, "ReorderInput"):
                channels = self._channels(node)
                self._widths.set(y, channels)
                padded[id(y)] = -(-channels // self.block) * self.block
            elif (node.domain, node.op) == (DOMAIN, "Conv"):
                padded[id(y)] = self.weights[id(node)].array.shape[0]
                self._of_conv(node)
            elif node.op == "Concat":
                for source in sources:
                    self._widths.set(source, padded[id(source)])
                padded[id(y)] = sum(padded[id(source)] for source in sources)
                self._widths.set(y, padded[id(y)])
            else:
                padded[id(y)] = padded[id(sources[0])]
                for source in sources:
                    self._widths.join(source, y)
        for end in self.ends:
            self._widths.set(end.inputs[0], int(end.attrs.get("channels", 0)))

    def _of_conv(self, node: gs.Node) -> None:
        weight, x, y = self.weights[id(node)], node.inputs[0], node.outputs[0]
        b, added = operand(node, 2), operand(node, 3)
        bias = None if b is None else self.draft.facts.array(b, decides=False)
        if b is not None and (bias is None or bias.shape != weight.array.shape[:1]):
            raise Refused(f"the bias of {describe(node)} is no constant of as many numbers")
        made, read = weight.least(bias)
        self._widths.least(y, made)
        if added is not None:
            self._widths.join(added, y)
        if weight.apart:
            self._widths.join(x, y)
        elif node.attrs.get("group", 1) > 1:
            self._widths.set(x, weight.array.shape[1] * node.attrs["group"])
            self._widths.set(y, weight.array.shape[0])
        elif not weight.direct:
            self._widths.least(x, read)

    def _channels(self, node: gs.Node) -> int:
        shape = self.draft.facts.of(node.inputs[0]).shape
        channels = shape[-1 if node.attrs.get("channels_last") else 1] if shape else None
        if not isinstance(channels, int):
            raise Refused(f"how many channels `{node.inputs[0].name}` has is not known")
        return channels


def _makes_blocks(node: gs.Node) -> bool:
    if node.domain == DOMAIN:
        return node.op in {"Conv", "ReorderInput", *_OVER_PLANES}
    named = (node.domain or "", node.op)
    if named in _OF_ONE:
        return len(node.inputs) == 1
    return named in _OF_SEVERAL or (not node.domain and node.op in ("Concat", "Reshape"))


class _Widths:
    """How many channels values have, of which some have as many as others."""

    def __init__(self) -> None:
        self._like: dict[int, int] = {}
        self._exact: dict[int, int] = {}
        self._least: dict[int, int] = {}

    def of(self, tensor: gs.Tensor) -> int:
        at = self._root(id(tensor))
        least = self._least.get(at, 0)
        width = self._exact.get(at, max(least, 1))
        if width < least:
            raise Refused(f"`{tensor.name}` has {width} channels, and its weights are of {least}")
        return width

    def set(self, tensor: gs.Tensor, width: int) -> None:
        at = self._root(id(tensor))
        if self._exact.setdefault(at, width) != width:
            raise Refused(f"`{tensor.name}` has {self._exact[at]} channels, and {width}")

    def least(self, tensor: gs.Tensor, width: int) -> None:
        at = self._root(id(tensor))
        self._least[at] = max(self._least.get(at, 0), width)

    def join(self, one: gs.Tensor, other: gs.Tensor) -> None:
        first, second = self._root(id(one)), self._root(id(other))
        if first == second:
            return
        self._like[second] = first
        if second in self._least:
            self.least(one, self._least.pop(second))
        if second in self._exact:
            self.set(one, self._exact.pop(second))

    def _root(self, at: int) -> int:
        while at in self._like:
            at = self._like[at]
        return at
