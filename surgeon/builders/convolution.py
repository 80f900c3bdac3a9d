"""PyTorch's convolutions with constant arguments as Conv and ConvTranspose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import bind, text_of
from surgeon.builders import parts
from surgeon.builders.bench import LARGEST, nameless
from surgeon.builders.computed_conv import of_computed_groups
from surgeon.builders.parts import Length
from surgeon.builders.whole_numbers import convolved
from surgeon.builders.windows import Window
from surgeon.facts.fact import INTEGERS
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_HINT = "; where it follows from a size of the input, fix that with `--shape`"
_PLAIN = "bias stride padding dilation groups"
_TURNED = "bias stride padding output_padding groups dilation"
_WHOLE = "bias stride padding dilation transposed output_padding groups"
_SLOW = "kernel_size bias stride padding"
_LIBRARY = "bias padding stride dilation groups"
_ADDED = f"z alpha {_PLAIN}"
# The arguments behind (input, weight), as PyTorch's schemas have them
# (aten/src/ATen/native/native_functions.yaml); those behind them choose between kernels.
_ARGUMENTS: Mapping[str, str] = {
    **dict.fromkeys(("_convolution", "convolution", "convolution_overrideable"), _WHOLE),
    **{f"conv{n}d": _PLAIN for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _TURNED for n in (1, 2, 3)},
    "_convolution_mode": _PLAIN,
    "cudnn_convolution": "padding stride dilation groups",
    "cudnn_convolution_transpose": "padding output_padding stride dilation groups",
    **dict.fromkeys(("mkldnn_convolution", "_mps_convolution"), _LIBRARY),
    **dict.fromkeys(("miopen_convolution", "miopen_depthwise_convolution"), _LIBRARY),
    "_mps_convolution_transpose": "padding output_padding stride dilation groups",
    "_nnpack_spatial_convolution": "bias padding stride",
    "miopen_convolution_transpose": "bias padding output_padding stride dilation groups",
    **dict.fromkeys(("cudnn_convolution_relu", "miopen_convolution_relu"), _PLAIN),
    **dict.fromkeys(("cudnn_convolution_add_relu", "miopen_convolution_add_relu"), _ADDED),
    **dict.fromkeys(("thnn_conv2d", "slow_conv3d"), _SLOW),
    **dict.fromkeys(("_slow_conv2d_forward", "slow_conv3d_forward"), _SLOW),
    **dict.fromkeys(("_conv_depthwise2d", "conv_depthwise3d"), f"{_SLOW} dilation"),
    **{f"slow_conv_dilated{n}d": f"{_SLOW} dilation" for n in (2, 3)},
    **{f"slow_conv_transpose{n}d": f"{_SLOW} output_padding dilation" for n in (2, 3)},
}


def aten_convolution(draft: Draft, match: Match) -> gs.Tensor:
    """`aten.*conv*` (input, weight, bias, ...) as Conv, or ConvTranspose where it is transposed."""
    node, x = match.root, match.root.inputs[0]
    tensors, given = _arguments(draft, node)
    rank = _rank(draft, node, given)
    computed = _computed(draft, node, given, rank)
    told = _attributes(draft, node, given, rank)
    batched = draft.facts.of(x).rank in (None, rank + 2)
    activated = node.op.endswith("_relu")
    if given.get("groups", ...) is None:
        plain = not computed and batched and not activated and not tensors.keys() - {"bias"}
        if _is_transposed(node, given) or not plain:
            raise Refused("`groups` is computed at run time")
        rest = {name: told[name] for name in ("dilations", "pads", "strides")}
        return of_computed_groups(draft, x, node.inputs[1], tensors.get("bias"), rest)
    if not batched:
        x = draft.op("Unsqueeze", x, draft.constant([0], "axes"))
    extra = None
    if _is_transposed(node, given):
        extra = _per_axis(given.get("output_padding") or [0], rank)
    if "padding" in computed:
        pads = parts.shape_from(draft, [0, 0, *computed["padding"]] * 2)
        x = draft.op("Pad", x, pads)
    y = _convolved(draft, (x, node.inputs[1], tensors.get("bias")), told, extra)
    if "stride" in computed:  # of all places those that it would have stepped to
        bounds = [0] * rank, [LARGEST] * rank, list(range(2, rank + 2))
        steps = parts.shape_from(draft, computed["stride"])
        y = nameless(draft, y, bounds[2])
        y = draft.op("Slice", y, *(draft.constant(row, "bounds") for row in bounds), steps)
    if not batched:
        y = draft.op("Squeeze", y, draft.constant([0], "axes"))
    if "z" in tensors:
        y = draft.op("Add", y, _scaled(draft, tensors["z"], (given.get("alpha") or [1])[0]))
    return draft.op("Relu", y) if activated else y


def _computed(
    draft: Draft, node: gs.Node, given: dict[str, Any], rank: int
) -> dict[str, list[Length]]:
    """Strides and padding that are known at run time only; `given` has those of none instead."""
    found = {}
    for name, none in (("stride", 1), ("padding", 0)):
        if given.get(name, ...) is None:
            if _is_transposed(node, given):
                raise Refused(f"`{name}` is computed at run time{_HINT}")
            found[name] = parts.lengths_given(draft, bind(node, draft.facts), name, rank)
            given[name] = [none]
    return found


def _is_transposed(node: gs.Node, given: Mapping[str, Any]) -> bool:
    return "transpose" in node.op or bool((given.get("transposed") or [0])[0])


def _attributes(draft: Draft, node: gs.Node, given: Mapping[str, Any], rank: int) -> dict[str, Any]:
    """The attributes of the Conv or ConvTranspose, but for an output padding."""
    weight = node.inputs[1]
    strides = _per_axis(given.get("stride") or [1], rank)
    dilations = _per_axis(given.get("dilation") or [1], rank)
    groups = int((given.get("groups") or [1])[0])
    if "groups" not in _ARGUMENTS[node.op] and "depthwise" in node.op:
        groups = _channels(draft, node.inputs[0], rank)
    pads = _pads(draft, weight, given.get("padding") or [0], strides, dilations)
    told = {"dilations": dilations, "group": groups, "pads": pads, "strides": strides}
    shape = draft.facts.of(weight).shape
    if shape is not None and all(isinstance(d, int) for d in shape[2:]):
        told["kernel_shape"] = list(shape[2:])
    return told


def _convolved(
    draft: Draft,
    operands: tuple[gs.Tensor, gs.Tensor, gs.Tensor | None],
    told: Mapping[str, Any],
    extra: list[int] | None,
) -> gs.Tensor:
    """The convolution of a batch.

    Args:
        draft: Where it is made.
        operands: Input, weight, and bias or None.
        told: Its attributes, but for an output padding.
        extra: The output padding of a transposed convolution; None of any other.
    """
    x, weight, bias = operands
    if draft.facts.of(x).dtype in INTEGERS:
        return _of_integers(draft, operands, told, extra)
    if extra is not None and any(extra):
        turned = _Turned(told["strides"], told["dilations"], told["pads"], extra)
        x, further = _within_strides(draft, x, turned)
        told = {**told, **further}
    given = [x, weight] if bias is None else [x, weight, bias]
    made: gs.Tensor = draft.op("Conv" if extra is None else "ConvTranspose", *given, **told)
    return made


def _of_integers(
    draft: Draft,
    operands: tuple[gs.Tensor, gs.Tensor, gs.Tensor | None],
    told: Mapping[str, Any],
    extra: list[int] | None,
) -> gs.Tensor:
    pads, rank = told["pads"], len(told["strides"])
    if "kernel_shape" not in told:  # its windows side by side would be beyond any memory
        raise Refused("it is of integers, and the size of its kernel is known at run time only")
    rows = zip(
        told["kernel_shape"], told["strides"], pads, told["dilations"], pads[rank:], strict=False
    )
    windows = [Window(k, s, near, d, behind=far) for k, s, near, d, far in rows]
    return convolved(draft, *operands, windows, told["group"], extra)


class _Turned(NamedTuple):
    """What a transposed convolution is told of each axis; `pads` are those before, then behind."""

    strides: list[int]
    dilations: list[int]
    pads: list[int]
    extra: list[int]


def _within_strides(draft: Draft, x: gs.Tensor, told: _Turned) -> tuple[gs.Tensor, dict[str, Any]]:
    """The input, pads and output padding with which no output padding reaches its stride.

    PyTorch allows one below the dilation, onnxruntime one below the stride alone. It takes back
    what `pads` cut off behind; beyond that each zero behind the input makes the output a stride
    longer.
    """
    rank = len(told.strides)
    pads, extra, zeros = list(told.pads), list(told.extra), [0] * rank
    for i, (stride, dilation) in enumerate(zip(told.strides, told.dilations, strict=True)):
        if extra[i] < stride:
            continue
        if extra[i] >= dilation:
            raise Refused(
                f"its output padding of {extra[i]} is below neither its stride nor its dilation"
            )
        zeros[i] = max(-(-(extra[i] - pads[rank + i]) // stride), 0)
        pads[rank + i] += zeros[i] * stride - extra[i]
        extra[i] = 0
    if any(zeros):
        ends = draft.constant([0] * (rank + 4) + zeros, "zeros")
        x = draft.op("Pad", x, ends)
    return x, {"pads": pads, **({"output_padding": extra} if any(extra) else {})}


def output_padding_as_pads(draft: Draft, match: Match) -> gs.Tensor:
    """`ConvTranspose` whose output padding reaches its stride, which onnxruntime refuses."""
    node = match.root
    attributes = dict(node.attrs)
    extra = [int(n) for n in attributes.pop("output_padding", [])]
    if str(attributes.get("auto_pad", "NOTSET")) != "NOTSET" or "output_shape" in attributes:
        raise Refused("its pads are left to the runtime")
    if not any(extra):
        raise Refused("its output padding is below its strides")
    rank = len(extra)
    told = _Turned(
        [int(n) for n in attributes.get("strides", [1] * rank)],
        [int(n) for n in attributes.get("dilations", [1] * rank)],
        [int(n) for n in attributes.pop("pads", [0] * (2 * rank))],
        extra,
    )
    if all(e < s for e, s in zip(extra, told.strides, strict=True)):
        raise Refused("its output padding is below its strides")
    x, further = _within_strides(draft, node.inputs[0], told)
    made: gs.Tensor = draft.op("ConvTranspose", x, *node.inputs[1:], **attributes, **further)
    return made


def _channels(draft: Draft, x: gs.Tensor, rank: int) -> int:
    """As many as the input has, which a kernel for each of them has for groups."""
    shape = draft.facts.of(x).shape
    found = shape[-rank - 1] if shape is not None and len(shape) > rank else None
    if not isinstance(found, int):
        raise Refused("how many channels its input has is not known")
    return found


def _scaled(draft: Draft, x: gs.Tensor, factor: float) -> gs.Tensor:
    dtype = draft.facts.of(x).dtype
    if factor == 1:
        return x
    if not dtype:
        raise Refused(f"the dtype of `{x.name}` is not known")
    number = np.asarray(factor, onnx.helper.tensor_dtype_to_np_dtype(dtype))
    made: gs.Tensor = draft.op("Mul", x, draft.constant(number, "alpha"))
    return made


def _arguments(draft: Draft, node: gs.Node) -> tuple[dict[str, gs.Tensor], dict[str, Any]]:
    """The bias and what is added, and the numbers (a word, of a padding), by name."""
    tensors: dict[str, gs.Tensor] = {}
    given: dict[str, Any] = {}
    names = _ARGUMENTS[node.op].split()
    if node.op[:-2] in ("conv", "conv_transpose") and len(node.inputs) - 2 > len(names):
        raise Refused(f"PyTorch has no signature with {len(node.inputs)} arguments")  # quantised
    for name, tensor in zip(names, node.inputs[2:], strict=False):
        if tensor.is_empty():
            continue
        if name in ("bias", "z"):
            tensors[name] = tensor
            continue
        word = text_of(tensor) if name == "padding" else None
        array = draft.facts.array(tensor) if word is None else np.asarray([word])
        if array is None and name not in ("groups", "stride", "padding"):
            raise Refused(f"`{name}` is computed at run time{_HINT}")
        given[name] = None if array is None else array.reshape(-1).tolist()
    return tensors, given


def _rank(draft: Draft, node: gs.Node, given: dict[str, Any]) -> int:
    """The number of spatial dimensions, from the weight, the input or the arguments."""
    weight, x = draft.facts.of(node.inputs[1]).rank, draft.facts.of(node.inputs[0]).rank
    if weight is not None:
        if weight < 3:  # a kernel of the slow kind may come flattened
            raise Refused(f"its weight has rank {weight}")
        return weight - 2
    named = node.op[-2:]
    if named in ("1d", "2d", "3d"):
        return int(named[0])
    for name in ("stride", "padding", "dilation"):
        if len(given.get(name) or ()) > 1:
            return len(given[name])
    if x is not None:
        return x - 2
    raise Refused("neither the rank of its input nor that of its weight is known")


def _pads(
    draft: Draft, weight: gs.Tensor, given: list[Any], strides: list[int], dilations: list[int]
) -> list[int]:
    """Before and behind every axis; of an odd total that `same` needs, one more goes behind."""
    rank = len(strides)
    if given[0] not in ("same", "valid"):
        padding = _per_axis(given, rank)
        return [*padding, *padding]
    if given[0] == "valid":
        return [0] * (2 * rank)
    shape = draft.facts.of(weight).shape
    kernel = None if shape is None else [d for d in shape[2:] if isinstance(d, int)]
    if kernel is None or len(kernel) != rank:
        raise Refused("its padding is `same`, and the shape of its weight is not known")
    if any(s != 1 for s in strides):
        raise Refused("PyTorch has no padding `same` with strides")
    total = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
    return [*(t // 2 for t in total), *(t - t // 2 for t in total)]


def _per_axis(values: list[Any], rank: int) -> list[int]:
    """One number an axis; a single one holds for all, as in PyTorch."""
    if any(isinstance(v, (str, bytes)) for v in values):
        raise Refused(f"padding {values[0]!r} is not a number")
    numbers = [int(v) for v in np.asarray(values).reshape(-1)]
    return numbers * rank if len(numbers) == 1 else numbers
