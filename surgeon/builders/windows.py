"""Sliding windows over an input that may come without a batch: pooling, fold and unfold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.bench import LARGEST
from surgeon.builders.parts import Length
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused
from surgeon.wordy import WEIGHTS, default_in_words


@dataclass(frozen=True, slots=True)
class Window:
    """One axis of a sliding window.

    Attributes:
        kernel: How many elements it takes.
        stride: How far it moves.
        padding: What stands in front of the input, and behind it where `behind` is None.
        dilation: How far its elements are apart.
        ceil: Whether a last window that is not full is kept.
        behind: The padding behind, where it is another than in front.
    """

    kernel: int
    stride: int
    padding: int
    dilation: int
    ceil: bool = False
    behind: int | None = None

    @property
    def pads(self) -> int:
        """The padding of both ends together."""
        return self.padding + (self.padding if self.behind is None else self.behind)

    @property
    def is_one(self) -> bool:
        """Whether each element is a window of its own."""
        return (self.kernel, self.stride, self.pads) == (1, 1, 0)

    @property
    def reach(self) -> int:
        """How many elements there are from a window's first to its last."""
        return self.dilation * (self.kernel - 1) + 1

    def count(self, length: int) -> int:
        """How many windows there are over a length."""
        room = length + self.pads - self.reach
        found = room // self.stride + 1
        if self.ceil:
            found = -(-room // self.stride) + 1
            if (found - 1) * self.stride >= length + self.padding:
                found -= 1
        if found < 1 or room < 0:  # PyTorch has a window that is not full there, and ONNX none
            raise Refused(f"no window of {self.reach} fits into {length}")
        return found

    def covered(self, length: int) -> int:
        """How far the last window reaches, padding taken off."""
        return (self.count(length) - 1) * self.stride + self.reach - self.pads

    def floors(self, length: Length) -> bool:
        """Whether the last window is full, so that `ceil_mode` says nothing."""
        if not self.ceil or self.stride == 1:
            return True
        if length.static is None:
            return False
        room = length.static + self.pads - self.reach
        return room // self.stride + 1 == self.count(length.static)

    @property
    def never_drops(self) -> bool:
        """Whether no window can begin behind the input, however long it is."""
        return self.padding + self.stride <= self.reach

    @property
    def always_reads(self) -> bool:
        """Whether each full window reads an element of the input, however long that is."""
        front, behind = self.padding, self.pads - self.padding
        return -(-front // self.dilation) - (-behind // self.dilation) < self.kernel

    def may_drop(self, length: Length) -> bool:
        """Whether it is known at run time only if the last window begins behind the input."""
        return length.static is None and not self.floors(length) and not self.never_drops

    def is_wide(self, length: Length) -> bool:
        """Whether padding is as wide as its elements side by side, which onnxruntime refuses."""
        behind, known = self.padding, length.static
        if known is not None and not self.floors(length):
            behind += self.covered(known) - known
        return max(self.padding, behind) >= self.kernel


def begun(
    draft: Draft, y: gs.Tensor, pairs: list[tuple[Length, Window]], *, first: int = 2
) -> gs.Tensor:
    """The windows of these axes that do not begin behind the input; as many as its last element."""
    axes, ends = [], []
    for axis, (length, window) in enumerate(pairs, start=first):
        if window.ceil and window.stride > 1 and not window.never_drops:
            axes.append(axis)
            ends.append(_begins(draft, length, window))
    if not axes:
        return y
    starts = draft.constant([0] * len(axes), "starts")
    return draft.op("Slice", y, starts, parts.shape_from(draft, ends), draft.constant(axes, "axes"))


def _begins(draft: Draft, length: Length, window: Window) -> Length:
    """How many windows begin in front of the input's last element or at it."""

    def make() -> gs.Tensor:
        last = draft.op("Add", length.make(), draft.constant([window.padding - 1], "padding"))
        before = draft.op("Div", last, draft.constant([window.stride], "stride"))
        made: gs.Tensor = draft.op("Add", before, draft.constant([1], "one"))
        return made

    if length.static is not None:
        return parts.constant_length(draft, window.count(length.static))
    return Length(None, make)


def gathered_places(
    draft: Draft, length: Length, kernel: Length, stride: Length, dilation: int
) -> gs.Tensor:
    """What full windows read along an axis, [count, kernel], where sizes are computed."""
    taps = parts.counting(draft, kernel)
    if dilation != 1:
        taps = draft.op("Mul", taps, draft.constant([dilation], "dilation"))
    reach = draft.op("Sub", kernel.make(), draft.constant([1], "one"))
    if dilation != 1:
        reach = draft.op("Mul", reach, draft.constant([dilation], "dilation"))
    last = draft.op(
        "Div",
        draft.op("Sub", draft.op("Sub", length.make(), draft.constant([1], "one")), reach),
        stride.make(),
    )
    count = Length(None, lambda: draft.op("Add", last, draft.constant([1], "one")))
    begins = draft.op("Mul", parts.counting(draft, count), stride.make())
    return draft.op("Add", parts.unsqueeze(draft, begins, 1), taps)


def digit_of(operator: str) -> int:
    """How many axes the operator's name says."""
    return int(next(letter for letter in operator if letter.isdigit()))


def with_batch(draft: Draft, x: gs.Tensor, spatial: int) -> tuple[gs.Tensor, bool]:
    """The input with a batch, and whether it had one."""
    rank = parts.rank_of(draft, x)
    if rank not in (spatial + 1, spatial + 2):
        raise Refused(f"its input has rank {rank}, not {spatial + 1} or {spatial + 2}")
    if rank == spatial + 2:
        return x, True
    return parts.unsqueeze(draft, x, 0), False


def adaptive_bins(length: int, out: int) -> list[tuple[int, int]]:
    """The elements [start, end) of each bin of an adaptive pool (ATen AdaptivePooling.h)."""
    return [(i * length // out, -(-(i + 1) * length // out)) for i in range(out)]


def kernel_of_weight(draft: Draft, match: Match) -> gs.Tensor:
    """A Conv or ConvTranspose with the size of its kernel that its weight has.

    Where that is known at run time only, without one: the operator takes it of the weight.
    """
    node = match.root
    attributes = {name: value for name, value in node.attrs.items() if name != "kernel_shape"}
    kernel = (draft.facts.of(node.inputs[1]).shape or ())[2:]
    if kernel and all(isinstance(size, int) for size in kernel):
        attributes["kernel_shape"] = list(kernel)
    y: gs.Tensor = draft.op(node.op, *node.inputs, **attributes)
    return y


def stated_pads(draft: Draft, match: Match) -> gs.Tensor:
    """A window whose pads are numbers, where `auto_pad` has them worked out of the length."""
    node, facts = match.root, draft.facts
    mode = attribute_of(node, "auto_pad") or "NOTSET"
    if mode == "NOTSET":
        raise Refused("its pads are numbers")
    if node.attrs.get("ceil_mode", 0):
        raise Refused("its size is rounded up")
    kernel = attribute_of(node, "kernel_shape") or default_in_words(node, "kernel_shape", facts)
    lengths = (facts.of(node.inputs[0]).shape or ())[2:]
    if not kernel or len(kernel) != len(lengths):
        raise Refused("the size of its window is not known")
    strides = attribute_of(node, "strides") or [1] * len(kernel)
    dilations = attribute_of(node, "dilations") or [1] * len(kernel)
    whole = []
    for length, size, stride, apart in zip(lengths, kernel, strides, dilations, strict=True):
        span = (size - 1) * apart + 1
        if mode == "VALID":
            whole.append(0)
        elif stride == 1:
            whole.append(span - 1)
        elif isinstance(length, int):
            whole.append(max((-(-length // stride) - 1) * stride + span - length, 0))
        else:
            raise Refused("they depend on a length that is known at run time only")
    less, more = [n // 2 for n in whole], [n - n // 2 for n in whole]
    pads = [*less, *more] if mode != "SAME_LOWER" else [*more, *less]
    kept = {name: value for name, value in node.attrs.items() if name != "auto_pad"}
    y: gs.Tensor = draft.op(node.op, *node.inputs, **{**kept, "pads": pads})
    return y


def stated_attributes(draft: Draft, match: Match) -> gs.Tensor:
    """A convolution that says what it leaves to its weight and to the standard."""
    node = match.root
    names = ["kernel_shape", "strides", "dilations"]
    if attribute_of(node, "auto_pad") in (None, "NOTSET") and "output_shape" not in node.attrs:
        names.append("pads")
    stated: dict[str, Any] = {name: default_in_words(node, name, draft.facts) for name in names}
    if not stated["kernel_shape"]:
        raise Refused(f"the size of its kernel `{node.inputs[WEIGHTS[node.op]].name}` is not known")
    stated["group"] = 1
    if not any(attribute_of(node, name) in (None, []) for name in stated):
        raise Refused("it says all of them")
    said = {name: value for name, value in node.attrs.items() if value != []}
    y: gs.Tensor = draft.op(node.op, *node.inputs, **{**stated, **said})
    return y


def uneven_pads_apart(draft: Draft, match: Match) -> gs.Tensor:
    """A Conv whose pads are the same on both sides, behind a Pad of what one side has more."""
    node = match.root
    attributes, (x, *operands) = dict(node.attrs), node.inputs
    if attribute_of(node, "auto_pad") not in (None, "NOTSET"):
        raise Refused("its pads are worked out of its lengths")
    pads = list(attributes.get("pads") or [])
    front, behind = pads[: len(pads) // 2], pads[len(pads) // 2 :]
    if front == behind:
        raise Refused("its pads are the same on both sides")
    common = [min(pair) for pair in zip(front, behind, strict=True)]
    rest = [[0, 0, *(n - c for n, c in zip(s, common, strict=True))] for s in (front, behind)]
    wide = draft.op("Pad", x, draft.constant(rest[0] + rest[1], "pads"))
    y: gs.Tensor = draft.op("Conv", wide, *operands, **{**attributes, "pads": common * 2})
    return y


def uneven_crop_apart(draft: Draft, match: Match) -> gs.Tensor:
    """A ConvTranspose whose pads are the same on both sides, and a Slice of what one has more."""
    node = match.root
    attributes = dict(node.attrs)
    if attribute_of(node, "auto_pad") not in (None, "NOTSET") or attributes.get("output_shape"):
        raise Refused("its pads are worked out of its lengths")
    pads = list(attributes.get("pads") or [])
    front, behind = pads[: len(pads) // 2], pads[len(pads) // 2 :]
    if front == behind:
        raise Refused("its pads are the same on both sides")
    if min(pads) < 0:
        raise Refused("it adds what its pads take off")
    common = [min(pair) for pair in zip(front, behind, strict=True)]
    y: gs.Tensor = draft.op("ConvTranspose", *node.inputs, **{**attributes, "pads": common * 2})
    axes = [axis for axis, pair in enumerate(zip(front, behind, strict=True)) if len(set(pair)) > 1]
    starts = [front[axis] - common[axis] for axis in axes]
    ends = [common[axis] - behind[axis] or LARGEST for axis in axes]
    places = [axis + 2 for axis in axes]
    bounds = (draft.constant(starts, "starts"), draft.constant(ends, "ends"))
    cut: gs.Tensor = draft.op("Slice", y, *bounds, draft.constant(places, "axes"))
    return cut


def output_padding_in_bounds(draft: Draft, match: Match) -> gs.Tensor:
    """A ConvTranspose whose output padding is as large as its stride, without any."""
    node = match.root
    attributes, (x, weight, *bias) = dict(node.attrs), node.inputs
    extra = attributes.pop("output_padding", None) or []
    count = len(extra)
    strides = attributes.get("strides") or [1] * count
    if not extra or all(e < s for e, s in zip(extra, strides, strict=True)):
        raise Refused("its output padding is less than its strides")
    if "output_shape" in attributes or attribute_of(node, "auto_pad") not in (None, "NOTSET"):
        raise Refused("its padding is worked out of its lengths")
    pads = list(attributes.get("pads") or [0] * (2 * count))
    behind = [p - e for p, e in zip(pads[count:], extra, strict=True)]
    attributes["pads"] = [*pads[:count], *(max(n, 0) for n in behind)]
    if min(behind) >= 0:
        y: gs.Tensor = draft.op("ConvTranspose", x, weight, *bias, **attributes)
        return y
    y = draft.op("ConvTranspose", x, weight, **attributes)
    more = [0] * (count + 4) + [max(-n, 0) for n in behind]
    y = draft.op("Pad", y, draft.constant(more, "pads"))
    if not bias or bias[0].is_empty():
        return y
    column = draft.constant([-1, *[1] * count], "column")
    biased: gs.Tensor = draft.op("Add", y, draft.op("Reshape", bias[0], column))
    return biased


def same_as_pads(draft: Draft, match: Match) -> gs.Tensor:
    """A Conv at a stride of 1 whose padding keeps the lengths, whatever they are: as numbers."""
    node = match.root
    attributes = dict(node.attrs)
    mode = attributes.pop("auto_pad")
    dilations = attributes.get("dilations") or []
    if all(n == 1 for n in dilations):
        raise Refused("runtimes take it where nothing is dilated")
    if any(n != 1 for n in attributes.get("strides") or []):
        raise Refused("its padding depends on the lengths where a stride is not 1")
    shape = draft.facts.of(node.inputs[1]).shape
    kernel = attributes.get("kernel_shape") or (shape or ())[2:]
    if len(kernel) != len(dilations) or not all(isinstance(n, int) for n in kernel):
        raise Refused("the size of its kernel is not known")
    whole = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
    less, more = [n // 2 for n in whole], [n - n // 2 for n in whole]
    pads = [*more, *less] if mode == "SAME_LOWER" else [*less, *more]
    y: gs.Tensor = draft.op("Conv", *node.inputs, **attributes, pads=pads)
    return y


def pool_without_batch(draft: Draft, match: Match) -> Any:
    """A pool over as many axes as stand behind the first: that one is the channels."""
    node = match.root
    x, spatial = node.inputs[0], len(node.attrs["kernel_shape"])
    if draft.facts.of(x).rank != spatial + 1:
        raise Refused("its input is not known to be without a batch")
    pooled = draft.op(
        node.op, parts.unsqueeze(draft, x, 0), outputs=len(node.outputs), **node.attrs
    )
    axes = draft.constant([0], "axes")
    made = [draft.op("Squeeze", y, axes) for y in (pooled if len(node.outputs) > 1 else [pooled])]
    return (*made, None)[:2] if node.op == "MaxPool" else made[0]


def pad_without_batch(draft: Draft, match: Match) -> gs.Tensor:
    """A Pad of more axes than there are, of which the first are not padded: they are left out."""
    node, facts = match.root, draft.facts
    x, pads, *more = node.inputs
    rank, amounts = facts.of(x).rank, facts.array(pads)
    if rank is None or amounts is None or amounts.ndim != 1:
        raise Refused("its rank or its padding is not known")
    pairs = amounts.reshape(2, -1) if amounts.size % 2 == 0 else amounts[:0].reshape(2, 0)
    if pairs.shape[1] <= rank:
        raise Refused("it pads no more axes than there are")
    if pairs[:, :-rank].any():
        raise Refused("it pads axes that are not there")
    kept = draft.constant(pairs[:, -rank:].reshape(-1), "pads")
    given = [None if t.is_empty() else t for t in more]
    y: gs.Tensor = draft.op("Pad", x, kept, *given, **node.attrs)
    return y


def pool_in_bounds(draft: Draft, match: Match) -> Any:
    """A pool whose strides are numbers and whose padding is narrower than its windows.

    PyTorch before 1.5 leaves strides empty that are the windows' sizes; below opset 10 its exporter
    writes `ceil_mode` as padding behind, of which windows need not reach the last.
    """
    node = match.root
    attributes = dict(node.attrs)
    kernel = attributes["kernel_shape"]
    count = len(kernel)
    if attributes.get("strides") == []:
        attributes["strides"] = list(kernel)
    pads = list(attributes.get("pads") or [0] * (2 * count))
    if _are_wide(pads, kernel):
        if attributes.get("ceil_mode") or attribute_of(node, "auto_pad") not in (None, "NOTSET"):
            raise Refused("its windows are counted otherwise")
        lengths = draft.facts.of(node.inputs[0]).shape
        strides = attributes.get("strides") or [1] * count
        dilations = attributes.get("dilations") or [1] * count
        for axis in range(count):
            length = lengths[2 + axis] if lengths else None
            if not isinstance(length, int):
                raise Refused("how many elements it pools is not known")
            front, behind = pads[axis], pads[count + axis]
            window = Window(kernel[axis], strides[axis], front, dilations[axis], behind=behind)
            unread = (length + window.pads - window.reach) % window.stride
            pads[count + axis] = behind - min(unread, behind)
        if _are_wide(pads, kernel):
            raise Refused("a window of it lies in the padding alone")
        attributes["pads"] = pads
    if attributes == dict(node.attrs):
        raise Refused("its strides are numbers and its padding is narrower than its windows")
    made = draft.op(node.op, *node.inputs, outputs=len(node.outputs), **attributes)
    return (made, None) if node.op == "MaxPool" and len(node.outputs) == 1 else made


def _are_wide(pads: list[int], kernel: list[int]) -> bool:
    """Whether the padding of an end is as wide as a window, which onnxruntime refuses."""
    return any(pad >= size for pad, size in zip(pads, [*kernel, *kernel], strict=True))
