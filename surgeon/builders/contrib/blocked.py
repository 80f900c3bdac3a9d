"""Channels in blocks, as onnxruntime saves CNNs that it optimised, one behind the other again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import blocks
from surgeon.blocks import DOMAIN
from surgeon.builders import parts
from surgeon.builders.bench import Bench, operand
from surgeon.builders.contrib.fused import behind_conv
from surgeon.builders.contrib.regions import Region
from surgeon.builders.contrib.settings import settings
from surgeon.builders.layouts import channels_first, channels_last
from surgeon.match import Match
from surgeon.model import describe
from surgeon.rewrite import Draft, Refused
from surgeon.runtime import block_here

_UNTOLD = (
    "its channels stand in blocks of 8 or of 16, by the machine that saved the file, and nothing "
    "in the file tells which{}: on a machine of that kind put `blocks-as-here` in front, with "
    "`--allow contract`; or save it with `GraphOptimizationLevel.ORT_ENABLE_EXTENDED`"
)
# Attributes of the Convs and pools, and the values at which they say nothing.
_NOTHING_SAID = {"auto_pad": "NOTSET", "ceil_mode": 0, "storage_order": 0, "count_include_pad": 0}
_POOLS = {
    **{"auto_pad": "NOTSET", "kernel_shape": None, "dilations": None, "strides": None},
    **{"pads": None, "ceil_mode": 0, "storage_order": 0, "count_include_pad": 0},
}
_CONVS = {
    **{"auto_pad": "NOTSET", "kernel_shape": None, "dilations": None, "strides": None},
    **{"pads": None, "group": 1, "activation": "", "activation_params": None},
}


def channels_in_blocks(draft: Draft, match: Match) -> gs.Tensor:
    """A stretch of `com.microsoft.nchwc` that ends here, and wherever else it ends, on N, C, H, W.

    Raises:
        Refused: The file leaves open how many channels a block has.
    """
    block = _told(draft)
    if block is None:
        look = _likelier(draft)
        raise Refused(_UNTOLD.format("" if look is None else f" (its weights look like {look})"))
    return _plain(draft, match.root, block)


def blocks_as_here(draft: Draft, match: Match) -> gs.Tensor:
    """The same; where the file leaves it open, blocks have as many channels as on this machine."""
    told, here = _told(draft), block_here()
    if told is None and here is None:
        raise Refused("onnxruntime has no blocks of channels on this machine")
    if told is None and _likelier(draft) not in (None, here):
        raise Refused(
            f"blocks have {here} channels on this machine, and the weights look like others: go to "
            "a machine like the one that saved the file"
        )
    return _plain(draft, match.root, told or here or blocks.LARGE)


def _told(draft: Draft) -> int | None:
    return _asked(draft, blocks.told)


def _likelier(draft: Draft) -> int | None:
    return _asked(draft, blocks.likelier)


def _asked(
    draft: Draft, question: Callable[[onnx.ModelProto, Path | None], int | None]
) -> int | None:
    """What the file as it was read answers, which is asked once."""
    found, key = draft.surgery.findings, f"blocks {question.__name__}"
    if key not in found:
        found[key] = question(draft.surgery.model.proto, draft.surgery.model.folder)
    answer: int | None = found[key]
    return answer


def _plain(draft: Draft, root: gs.Node, block: int) -> gs.Tensor:
    region = Region(draft, root, block)
    stretch = _Stretch(draft, region)
    for node in region.nodes:
        stretch.write(node)
    ends = {id(end): stretch.end(end) for end in region.ends}
    draft.leans.extend(region.nodes)
    draft.also.extend((e, [(e.outputs[0], ends[id(e)])]) for e in region.ends if e is not root)
    return ends[id(root)]


class _Stretch:
    """The nodes of a region once more, on values whose channels are in no blocks."""

    def __init__(self, draft: Draft, region: Region) -> None:
        self.draft, self.region, self.c = draft, region, Bench(draft)
        self.made: dict[int, gs.Tensor] = {}

    def write(self, node: gs.Node) -> None:
        self.made[id(node.outputs[0])] = self._written(node)

    def end(self, node: gs.Node) -> gs.Tensor:
        """`ReorderOutput`: as it is, or with the channels last."""
        last = settings(node, 1, 1, {"channels": None, "channels_last": 0})["channels_last"]
        y = self.made[id(node.inputs[0])]
        return channels_last(self.c, y) if last else y

    def _written(self, node: gs.Node) -> Any:
        if node.domain != DOMAIN:
            return self._as_it_is(node)
        if node.op == "ReorderInput":
            last = settings(node, 1, 1, {"channels_last": 0})["channels_last"]
            return channels_first(self.c, node.inputs[0]) if last else node.inputs[0]
        if node.op == "Conv":
            return self._conv(node)
        if node.op == "Upsample":
            return self._upsample(node)
        settings(node, 1, 1, _POOLS)
        return self.draft.op(node.op, self.made[id(node.inputs[0])], **_said(node))

    def _as_it_is(self, node: gs.Node) -> Any:
        """What goes over blocks as over anything; between two Reshapes they have an axis."""
        operands = [self.made[id(t)] for t in self.region.sources(node)]
        if node.op == "Reshape":
            if not self._is_view(node):
                raise Refused(f"{describe(node)} views blocks otherwise than onnxruntime does")
            return operands[0]
        if node.op == "Concat" and node.attrs.get("axis") != 1:
            raise Refused(f"{describe(node)} joins blocks along another axis than the channels")
        return self.draft.op(node.op, *operands, domain=node.domain or "", **node.attrs)

    def _is_view(self, node: gs.Node) -> bool:
        """Whether a Reshape gives blocks an axis behind the others, or takes it away again."""
        target = self.draft.facts.array(node.inputs[1])
        if target is None or node.attrs.get("allowzero", 0) or target.ndim != 1:
            return False
        block, padded = self.region.block, self.region.padded(node.outputs[0])
        if len(target) == 5:
            return target.tolist() in ([0, -1, 0, 0, block], [0, padded // block, 0, 0, block])
        return target.tolist() in ([0, -1, 0, 0], [0, padded, 0, 0])

    def _conv(self, node: gs.Node) -> gs.Tensor:
        settings(node, 2, 4, _CONVS)
        weight, region = self.region.weights[id(node)], self.region
        x, b, z = node.inputs[0], operand(node, 2), operand(node, 3)
        made = region.width(node.outputs[0])
        array, said = weight.array[:made], _said(node)
        if weight.apart:
            said["group"] = made
        elif not weight.direct and node.attrs.get("group", 1) == 1:
            array = array[:, : region.width(x)]
        bias = None
        if b is not None:
            held = self.draft.facts.array(b, decides=False)
            assert held is not None  # the region would not be one
            bias = self.draft.constant(np.ascontiguousarray(held[:made]), "bias")
        held = self.draft.constant(np.ascontiguousarray(array), "weight")
        y = self.draft.op("Conv", x if weight.direct else self.made[id(x)], held, bias, **said)
        return behind_conv(self.draft, node, y, None if z is None else self.made[id(z)])

    def _upsample(self, node: gs.Node) -> gs.Tensor:
        usual = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "scales": None}
        given = settings(node, 1, 1, usual)
        scales, x = given["scales"] or [1] * 4, self.made[id(node.inputs[0])]
        if list(scales[:2]) != [1, 1] or len(scales) != 4:
            raise Refused(f"{describe(node)} repeats more than rows and columns")
        where = {"coordinate_transformation_mode": given["coordinate_transformation_mode"]}
        if given["mode"] == "nearest":
            where["nearest_mode"] = "floor"
        return parts.resized(self.draft, x, scales, mode=given["mode"], **where)


def _said(node: gs.Node) -> dict[str, Any]:
    """The attributes of a Conv or pool that say something."""
    own = {k: v for k, v in node.attrs.items() if not k.startswith("activation")}
    return {k: v for k, v in own.items() if k not in _NOTHING_SAID or v != _NOTHING_SAID[k]}
