"""Convolutions with any computed weight, as products: MatMul takes two computed operands.

A kernel larger than 1x1 is met by columns: a convolution with a constant identity kernel lays the
elements of each window one behind another, and what is left is a 1x1 convolution.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders import parts
from surgeon.builders.views import KEEP_ORDER, as_shape, source_of
from surgeon.chance import RANDOM
from surgeon.dims import Dim, constant_target
from surgeon.facts.fact import same_dims
from surgeon.links import captured_by
from surgeon.match import Match, attribute_of, producer_of
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

_WINDOWS = ("auto_pad", "dilations", "output_padding", "output_shape", "pads", "strides")
_COPIES = ("Expand", "Tile", "Cast")
LARGEST_IDENTITY = 1 << 22  # elements of a constant identity kernel


@dataclass(frozen=True, slots=True)
class Frame:
    """A Conv with a computed weight, taken apart.

    Attributes:
        x: The input, [images, groups*cin, ...].
        weight: The weight, [groups*cout, cin, ...].
        bias: The bias, or None.
        images: The batch, which shares one weight; 1 where samples became groups.
        groups: How many groups there are *for the weight at hand*: channels of x over cin.
        cin: Input channels of a group.
        cout: Output channels of a group.
        kernel: The dims of the weight behind its channels.
        spatial: The dims of x behind the channels.
        out: The dims of the output behind the channels.
    """

    x: gs.Tensor
    weight: gs.Tensor
    bias: gs.Tensor | None
    images: Dim
    groups: Dim
    cin: int
    cout: Dim
    kernel: tuple[Dim, ...]
    spatial: tuple[Dim, ...]
    out: tuple[Dim, ...]

    @property
    def lead(self) -> tuple[Dim, ...]:
        """The dims that the product is repeated over."""
        if self.images == 1:
            return (self.groups,)
        return (self.images,) if self.groups == 1 else (self.images, self.groups)

    @property
    def channels(self) -> Dim:
        """The output's channels, where the first of `lead` stands before them."""
        return self.cout if len(self.lead) == 1 else self.groups * self.cout


def frame_of(draft: Draft, match: Match) -> Frame:
    """Take the root Conv apart.

    Raises:
        Refused: A shape is not known, or a size that must be a number is not one.
    """
    node, facts = match.root, draft.facts
    x, weight = node.inputs[0], node.inputs[1]
    bias = bias_of(node)
    shape, kernel, out = (facts.of(t).shape for t in (x, weight, node.outputs[0]))
    if shape is None or kernel is None or out is None or len(shape) != len(kernel):
        raise Refused("the shape of its input or weight is not known")
    if facts.array(weight) is not None:
        raise Refused("its weight is constant")
    if (made := _out_of_constants(weight)) is not None:
        raise Refused(
            f"its weight is made of constants alone, by `{made.domain}.{made.op}`, and is one "
            "once a recipe for that stands in front"
        )
    groups = dims.exact_quotient(shape[1], kernel[1])
    if groups is None or not isinstance(kernel[1], int):
        raise Refused(f"the channels {shape[1]} are no multiple of the weight's {kernel[1]}")
    if shape[0] != 1 and groups != (attribute_of(node, "group") or 1):
        raise Refused(f"its input has a batch of {shape[0]}, and {groups} groups")
    cout = dims.exact_quotient(kernel[0], groups)
    if cout is None:
        raise Refused(f"the weight's {kernel[0]} output channels do not split into {groups} groups")
    return Frame(x, weight, bias, shape[0], groups, kernel[1], cout, kernel[2:], shape[2:], out[2:])


def _out_of_constants(tensor: gs.Tensor) -> gs.Node | None:
    """The first foreign operator behind a value that no input of a graph reaches, or None.

    Such a value does not change from run to run, though what makes it cannot be run here.
    """
    strange: gs.Node | None = None
    seen, waiting = {id(tensor)}, [tensor]
    while waiting:
        value = waiting.pop()
        if isinstance(value, gs.Constant) or value.is_empty():
            continue
        if not value.inputs or value.inputs[0].op in RANDOM:
            return None
        made = value.inputs[0]
        if strange is None and (made.domain or "") not in STANDARD:
            strange = made
        for read in (*made.inputs, *captured_by(made)):
            if id(read) not in seen:
                seen.add(id(read))
                waiting.append(read)
    return strange


def windows_of(node: gs.Node) -> dict[str, Any]:
    """The attributes of a Conv or ConvTranspose that say where its windows lie."""
    return {key: node.attrs[key] for key in _WINDOWS if node.attrs.get(key) is not None}


def bias_of(node: gs.Node) -> gs.Tensor | None:
    """The bias of a Conv or ConvTranspose."""
    return node.inputs[2] if len(node.inputs) > 2 and not node.inputs[2].is_empty() else None


def computed_1x1_as_matmul(draft: Draft, match: Match) -> gs.Tensor:
    """A 1x1 Conv with any computed weight is one product a group: [g, Co, Ci] @ [g, Ci, h*w]."""
    frame = frame_of(draft, match)
    if not _is_plain(match.root, frame):
        raise Refused("its kernel is not 1x1 with stride 1 and no padding")
    return product(draft, frame, frame.x, frame.cin, frame.spatial)


def computed_conv_as_matmul(draft: Draft, match: Match) -> gs.Tensor:
    """A Conv with any computed weight is a product with the windows' elements as columns."""
    frame = frame_of(draft, match)
    if _is_plain(match.root, frame):
        return product(draft, frame, frame.x, frame.cin, frame.spatial)
    kernel = [k for k in frame.kernel if isinstance(k, int)]
    if len(kernel) != len(frame.kernel):
        text = " x ".join(map(str, frame.kernel))
        raise Refused(f"its kernel of {text} has a size known at run time only; see `--shape`")
    columns, count = _columns(draft, windows_of(match.root), frame, kernel), math.prod(kernel)
    return product(draft, frame, columns, frame.cin * count, frame.out)


def computed_conv_any_batch(draft: Draft, match: Match) -> gs.Tensor:
    """A Conv whose `group` is not proven to be what its weight makes it.

    Samples of a weight that a view mixes are no samples of their own, and what the batch of the
    trace was cannot be checked one by one.
    """
    facts, node = draft.facts, match.root
    shape, kernel = (facts.of(t).shape for t in node.inputs[:2])
    group = attribute_of(node, "group") or 1
    if shape is None or kernel is None:
        raise Refused("the shape of its input or weight is not known")
    if dims.equal(kernel[1] * group, shape[1]) is True:
        raise Refused(f"its {group} groups are those of its weight at every size")
    made = node.inputs[1]
    while (view := producer_of(made)) and view.op in (*KEEP_ORDER, *_COPIES, "Transpose"):
        made = view.inputs[0]
        if view.op == "Transpose" and (attribute_of(view, "perm") or [None])[0] != 0:
            raise Refused("a Transpose moves the samples' dimension of its weight")
    return computed_conv_as_matmul(draft, match)


def of_computed_groups(
    draft: Draft,
    x: gs.Tensor,
    weight: gs.Tensor,
    bias: gs.Tensor | None,
    windows: Mapping[str, Any],
) -> gs.Tensor:
    """A convolution of one image whose groups are known at run time: as its weight makes them.

    Args:
        draft: Where the nodes go.
        x: [1, groups*cin, ...].
        weight: [groups*cout, cin, ...].
        bias: The bias, or None.
        windows: Strides, pads and dilations, as Conv has them.
    """
    shape, form = (draft.facts.of(t).shape for t in (x, weight))
    if shape is None or form is None or len(shape) != len(form) or shape[0] != 1:
        raise Refused("its groups are computed at run time, and its input is not known to be one")
    kernel = [k for k in form[2:] if isinstance(k, int)]
    groups = dims.exact_quotient(shape[1], form[1])
    cout = None if groups is None else dims.exact_quotient(form[0], groups)
    if cout is None or not isinstance(form[1], int) or len(kernel) != len(form) - 2:
        raise Refused("its groups are computed at run time, and do not follow from its weight")
    assert groups is not None
    frame = Frame(x, weight, bias, 1, groups, form[1], cout, form[2:], shape[2:], ())
    columns = _columns(draft, windows, frame, kernel)
    out = draft.facts.of(columns).shape
    if out is None:
        raise Refused("the shape of its input is not known")
    frame = dataclasses.replace(frame, out=out[2:])
    return product(draft, frame, columns, form[1] * math.prod(kernel), out[2:])


def _is_plain(node: gs.Node, frame: Frame) -> bool:
    return (
        all(k == 1 for k in frame.kernel)
        and all(s == 1 for s in attribute_of(node, "strides") or [1])
        and not any(attribute_of(node, "pads") or [0])
    )


def _columns(
    draft: Draft, windows: Mapping[str, Any], frame: Frame, kernel: list[int]
) -> gs.Tensor:
    """[images or groups, channels * elements of a window, ...]: the windows laid out."""
    size = math.prod(kernel)
    x, channels = frame.x, frame.cin
    if frame.images == 1:
        x = as_shape(draft, x, (frame.groups, frame.cin, *frame.spatial))
    elif isinstance(frame.groups, int):
        channels *= frame.groups
    if channels * size * size > LARGEST_IDENTITY:
        raise Refused(f"its windows of {size} elements would need a large constant kernel")
    dtype = onnx.helper.tensor_dtype_to_np_dtype(draft.facts.of(frame.weight).dtype)
    identity = np.tile(np.eye(size).reshape(size, 1, *kernel), (channels, 1, *[1] * len(kernel)))
    weight = draft.constant(identity.astype(dtype), "identity")
    return draft.op("Conv", x, weight, group=channels, kernel_shape=kernel, **windows)


def product(
    draft: Draft, frame: Frame, x: gs.Tensor, width: int, out: tuple[Dim, ...]
) -> gs.Tensor:
    """The products of all groups.

    Args:
        draft: Where the nodes go.
        frame: The Conv.
        x: [images, groups * width, *out], or the same elements behind views.
        width: Rows of a group's columns.
        out: The dims behind the channels.
    """
    lead, area = frame.lead, dims.product(out)
    weight = as_shape(draft, frame.weight, (frame.groups, frame.cout, width))
    result = (lead[0], frame.channels, *out)
    flat = source_of(x, draft.facts, (*lead, width, area))
    back = constant_target((*lead, frame.cout, area), result)
    if (flat is None or back is None) and len(lead) == 1:
        y = _channels_last(draft, frame, x, weight, width, out)
    else:
        if flat is None:
            raise Refused(f"no constant Reshape lays its {len(out)} spatial axes out as one")
        y = draft.op("MatMul", weight, as_shape(draft, x, (*lead, width, area)))
        if frame.bias is not None:
            bias = as_shape(draft, frame.bias, (frame.groups, frame.cout, 1))
            y = draft.op("Add", y, bias)
        if back is None:
            lengths = parts.lengths_of(draft, x, len(out) + 2)
            channels = frame.channels if isinstance(frame.channels, int) else -1
            target = parts.shape_from(draft, [0, channels, *lengths[2:]])
            y = draft.op("Reshape", y, target, allowzero=0)
        elif not same_dims(draft.facts.of(y).shape, result):
            y = draft.op("Reshape", y, draft.constant(back, "shape"), allowzero=0)
    return y if frame.images != 1 else as_one(draft, y, len(out))


def _channels_last(
    draft: Draft,
    frame: Frame,
    x: gs.Tensor,
    weight: gs.Tensor,
    width: int,
    out: tuple[Dim, ...],
) -> gs.Tensor:
    """The product with channels last: needs no Reshape, so every spatial dim may be dynamic."""
    rank, (lead,) = len(out), frame.lead
    x = as_shape(draft, x, (lead, width, *out))
    last = [0, *range(2, rank + 2), 1]
    first = [0, rank + 1, *range(1, rank + 1)]
    moved = draft.op("Transpose", x, perm=last)
    turned = draft.op("Transpose", weight, perm=[0, 2, 1])
    between = (frame.groups, *[1] * (rank - 1), width, frame.cout)
    y = draft.op("MatMul", moved, as_shape(draft, turned, between))
    if frame.bias is not None:
        wide = (frame.groups, *[1] * rank, frame.cout)
        y = draft.op("Add", y, as_shape(draft, frame.bias, wide))
    return draft.op("Transpose", y, perm=first)


def as_one(draft: Draft, y: gs.Tensor, rank: int) -> gs.Tensor:
    """[b, C, ...] as the convolution gave it: [1, b*C, ...]."""
    target = draft.constant([1, -1, *[0] * rank], "as_one")
    return draft.op("Reshape", y, target, allowzero=0)
