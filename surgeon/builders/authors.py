"""Builders of the recipe `autograd-functions`: what authors of networks export by names of theirs.

A `torch.autograd.Function` with a kernel of its own is written by the name that its `symbolic`
says, in whatever domain. Its attributes are the function's arguments, spelled in several ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.bench import Bench, operand
from surgeon.builders.plugins.called import of_rank, said
from surgeon.builders.plugins.regions import deformed
from surgeon.builders.trials import hard_swish, mish
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_GROUPS = ("deformable_groups", "deformable_group", "deform_groups", "deform_group")
_SIZES = ("stride", "padding", "dilation")
# Attributes that change nothing: names of plugins, and what the weights say as well.
_IDLE = frozenset(
    "name info plugin_version plugin_namespace im2col_step kernel kernel_size kernel_shape "
    "in_channels out_channels inplace module outputs".split()
)
_MISH, _HARD_SWISH = 18, 14  # the opsets from which ONNX has these


def deform_conv(draft: Draft, match: Match, modulated: bool = True) -> gs.Tensor:
    """`DCNv2 (x, offset, mask, weight, bias?)`, or without the mask.

    Args:
        draft: Where the nodes go.
        match: The function.
        modulated: Whether it has a mask.
    """
    node, c = match.root, Bench(draft)
    count = 4 if modulated else 3
    _is_open(draft, node)
    missing = any(operand(node, place) is None for place in range(count))
    if missing or len(node.inputs) > count + 1:
        raise Refused(f"it does not have {count} operands and a bias")
    x, offset, *mask, weight = node.inputs[:count]
    of_rank(c, 4, x, offset, *mask, weight)
    given = _arguments(node)
    _fits(c, given["deformable_groups"], offset, weight, *mask)
    bias = operand(node, count)
    return deformed(
        draft, node, given, x, offset, weight, bias=bias, mask=mask[0] if mask else None
    )


def _is_open(draft: Draft, node: gs.Node) -> None:
    """Refuse what the model has a function for: that may be another of the name."""
    functions = draft.surgery.model.graph.functions
    if any(f.name == node.op and (f.domain or "") == (node.domain or "") for f in functions):
        raise Refused("the file says what it computes, as a function")


def _arguments(node: gs.Node) -> dict[str, Any]:
    """Strides, pads, dilations and groups, each once; texts of numbers are numbers.

    Raises:
        Refused: One that its result depends on is not said, or there is more.
    """
    given = {key: _number(value) for key, value in said(node).items() if key not in _IDLE}
    found: dict[str, Any] = {"groups": given.pop("groups", given.pop("group", 1))}
    for name in _SIZES:
        sides = [given.pop(f"{name}_{axis}", None) for axis in "hw"]
        value = given.pop(name, None if None in sides else sides)
        if value is None:
            raise Refused(f"it does not state its `{name}`")
        found[name] = value
    said_groups = [given.pop(name) for name in _GROUPS if name in given]
    if not said_groups:
        raise Refused("it does not state its `deformable_groups`")
    found["deformable_groups"] = said_groups[0]
    if given:
        raise Refused(f"what its `{next(iter(given))}` means is not known")
    whole = [found["groups"], found["deformable_groups"]]
    for name in _SIZES:
        whole += found[name] if isinstance(found[name], list) else [found[name]]
    if not all(isinstance(number, int) for number in whole) or min(whole[:2]) < 1:
        raise Refused("its arguments are no whole numbers")
    return found


def _number(value: Any) -> Any:
    """The number that a text is."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return int(text) if isinstance(text, str) and text.isdecimal() else value


def _fits(c: Bench, groups: int, offset: gs.Tensor, weight: gs.Tensor, *mask: gs.Tensor) -> None:
    """Refuse offsets and masks of other sizes than the kernel and the groups ask for."""
    shape = c.shape(weight)
    if shape is None or not all(isinstance(size, int) for size in shape[2:]):
        raise Refused("the size of its kernel is known at run time only")
    taps = int(shape[2]) * int(shape[3]) * groups  # type: ignore[arg-type]
    for x, wanted, what in ((offset, 2 * taps, "offsets"), *((m, taps, "shares") for m in mask)):
        channels = (c.shape(x) or (None, None))[1]
        if isinstance(channels, int) and channels != wanted:
            raise Refused(f"its {what} have {channels} channels, where its kernel has {wanted}")


def activation(draft: Draft, match: Match) -> gs.Tensor:
    """Mish, Swish and HardSwish by any of their names."""
    node, c = match.root, Bench(draft)
    _is_open(draft, node)
    (x,) = node.inputs
    more: Mapping[str, Any] = {k: v for k, v in said(node).items() if k not in _IDLE}
    if more:
        raise Refused(f"what its `{next(iter(more))}` means is not known")
    name = str(node.op).lower()
    if "mish" in name:
        made: gs.Tensor = c.op("Mish", x) if c.opset >= _MISH else mish(c, x)
    elif name.startswith("h"):
        made = c.op("HardSwish", x) if c.opset >= _HARD_SWISH else hard_swish(c, x)
    else:
        made = c.op("Mul", x, c.op("Sigmoid", x))
    return made


authors_activation, authors_deform_conv = activation, deform_conv
