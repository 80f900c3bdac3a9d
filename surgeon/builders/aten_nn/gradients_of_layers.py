"""Gradients of layers with weights: of the input, of the weight and of the bias.

`output_mask` says which of them are computed; another one is nothing, and must be unread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import onnx_graphsurgeon as gs

from surgeon.builders import parts
from surgeon.builders.aten_shape.call import TYPE, Call
from surgeon.facts.kinds import FLOATS, HALVES
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def given(c: Call, *made: gs.Tensor | None) -> tuple[gs.Tensor, ...]:
    """What was made; another one in the place of what is nothing.

    Raises:
        Refused: That is read.
    """
    first = next((t for t in made if t is not None), None)
    for tensor, output in zip(made, c.node.outputs, strict=False):
        if tensor is None and parts.is_read(c.draft, output):
            raise Refused(f"`{output.name}` is read, which `output_mask` leaves out")
    if first is None:
        raise Refused("`output_mask` leaves all of it out")
    return tuple(first if t is None else t for t in made)


def wanted(c: Call) -> list[bool]:
    """Which of the outputs are computed, and read."""
    outputs = c.node.outputs
    return [
        bool(each) and place < len(outputs) and parts.is_read(c.draft, outputs[place])
        for place, each in enumerate(c.args.dims("output_mask"))
    ]


def _sum(c: Call, x: gs.Tensor, axes: Sequence[int]) -> gs.Tensor:
    if not axes:
        return x
    made: gs.Tensor = c.op("ReduceSum", x, c.ints(axes, "axes"), keepdims=0)
    return made


def _mean(c: Call, x: gs.Tensor, axes: Sequence[int]) -> gs.Tensor:
    made: gs.Tensor = c.op("ReduceMean", x, c.ints(axes, "axes"), keepdims=1)
    return made


# ---------------------------------------------------------------------------- normalisation


class _Normal(NamedTuple):
    """What a normalisation made of its input, and what its gradient is to be made of.

    Attributes:
        gradient: What comes from behind.
        values: The input, normalised.
        inverse: The reciprocal of the deviation; it broadcasts.
        over: The axes that a mean is over.
        along: Those that a parameter is the same along.
    """

    gradient: gs.Tensor
    values: gs.Tensor
    inverse: gs.Tensor
    over: Sequence[int]
    along: Sequence[int]


def _wide(c: Call, x: gs.Tensor) -> gs.Tensor:
    """Halves in single precision, as PyTorch adds them."""
    if c.dtype(x) not in FLOATS:
        raise Refused("it is of integers")
    return c.cast(x, TYPE.FLOAT) if c.dtype(x) in HALVES else x


def _of_normal(c: Call, n: _Normal, weight: gs.Tensor | None, *, centred: bool = True) -> gs.Tensor:
    """inverse (g - mean(g) - values mean(g values)), with g by the weight."""
    behind = n.gradient if weight is None else c.op("Mul", n.gradient, weight)
    pull = c.op("Mul", n.values, _mean(c, c.op("Mul", behind, n.values), n.over))
    rest = c.op("Sub", behind, _mean(c, behind, n.over)) if centred else behind
    made: gs.Tensor = c.op("Mul", n.inverse, c.op("Sub", rest, pull))
    return made


def _of_parameters(c: Call, n: _Normal) -> tuple[gs.Tensor, gs.Tensor]:
    """Of the weight and of the bias."""
    return _sum(c, c.op("Mul", n.gradient, n.values), n.along), _sum(c, n.gradient, n.along)


def _in_dtypes(c: Call, made: Sequence[gs.Tensor | None]) -> tuple[gs.Tensor, ...]:
    """Of the input in its dtype, of the parameters in the weight's."""
    x, weight = c.tensor("input"), c.args.optional("weight")
    kinds = [c.dtype(x), *[c.dtype(x if weight is None else weight)] * 2]
    pairs = zip(made, kinds, strict=False)
    return given(c, *(None if t is None else c.cast(t, kind) for t, kind in pairs))


def layer_norm_backward(draft: Draft, match: Match) -> Any:
    """`aten.native_layer_norm_backward` and `aten._fused_rms_norm_backward`."""
    c = Call(draft, match.root)
    centred = c.args.schema.takes("mean")
    x, gradient = _wide(c, c.tensor("input")), _wide(c, c.args.first())
    rank, count = c.rank(x), len(c.listed("normalized_shape"))
    inverse = _wide(c, c.tensor("rstd"))
    apart = c.op("Sub", x, _wide(c, c.tensor("mean"))) if centred else x
    values = c.op("Mul", apart, inverse)
    over = list(range(rank - count, rank))
    normal = _Normal(gradient, values, inverse, over, list(range(rank - count)))
    weight = c.args.optional("weight")
    wide = None if weight is None else _wide(c, weight)
    asked = wanted(c)
    made = [_of_normal(c, normal, wide, centred=centred), *_of_parameters(c, normal)]
    return _in_dtypes(c, [t if w else None for t, w in zip(made, asked, strict=False)])


def group_norm_backward(draft: Draft, match: Match) -> Any:
    """`aten.native_group_norm_backward`: as a layer's, by groups of channels."""
    c = Call(draft, match.root)
    x, gradient = _wide(c, c.tensor("input")), _wide(c, c.args.first())
    groups, channels = c.integer("group"), c.integer("C")
    shape = c.ints([0, groups, channels // groups, -1], "groups")
    sizes = c.sizes(x)
    x, gradient = (c.op("Reshape", t, shape) for t in (x, gradient))
    inverse = c.unsqueeze(_wide(c, c.tensor("rstd")), [2, 3])
    apart = c.op("Sub", x, c.unsqueeze(_wide(c, c.tensor("mean")), [2, 3]))
    normal = _Normal(gradient, c.op("Mul", apart, inverse), inverse, [2, 3], [0, 3])
    weight = c.args.optional("weight")
    if weight is not None:
        columns = c.ints([1, groups, channels // groups, 1], "columns")
        weight = c.op("Reshape", _wide(c, weight), columns)
    first, *rest = _of_normal(c, normal, weight), *_of_parameters(c, normal)
    made = [c.reshape(first, sizes), *(c.op("Reshape", t, c.ints([-1], "row")) for t in rest)]
    return _in_dtypes(c, [t if w else None for t, w in zip(made, wanted(c), strict=False)])


def batch_norm_backward(draft: Draft, match: Match) -> Any:
    """`aten.native_batch_norm_backward`, by the batch's statistics or, at inference, by others."""
    c = Call(draft, match.root)
    x, gradient = _wide(c, c.tensor("input")), _wide(c, c.args.first())
    rank, trains = c.rank(x), bool(c.value("train"))
    if rank < 2:
        raise Refused(f"its input has rank {rank}")
    names = ("save_mean", "save_invstd") if trains else ("running_mean", "running_var")
    middle, spread = (c.column(_wide(c, c.tensor(name)), rank - 1) for name in names)
    if not trains:
        eps = c.number(float(c.value("eps")), c.dtype(spread))
        spread = c.op("Reciprocal", c.op("Sqrt", c.op("Add", spread, eps)))
    along = [0, *range(2, rank)]
    values = c.op("Mul", c.op("Sub", x, middle), spread)
    normal = _Normal(gradient, values, spread, along, along)
    weight = c.args.optional("weight")
    column = None if weight is None else c.column(_wide(c, weight), rank - 1)
    if trains:
        first = _of_normal(c, normal, column)
    else:
        behind = gradient if column is None else c.op("Mul", gradient, column)
        first = c.op("Mul", behind, spread)
    made = [first, *_of_parameters(c, normal)]
    return _in_dtypes(c, [t if w else None for t, w in zip(made, wanted(c), strict=False)])


def weight_norm_backward(draft: Draft, match: Match) -> Any:
    """`aten._weight_norm_interface_backward`: of the directions, and of the lengths."""
    c = Call(draft, match.root)
    gradient, v, g = c.args.first(), c.tensor("saved_v"), c.tensor("saved_g")
    lengths, rank = c.tensor("saved_norms"), c.rank(v)
    dim = c.integer("dim")
    axes = [axis for axis in range(rank) if dim == -1 or axis != dim % rank]
    along = c.op("Mul", gradient, v)
    along = c.op("ReduceSum", along, c.ints(axes, "axes"), keepdims=1) if axes else along
    along, lengths = (c.reshape(t, c.sizes(g)) for t in (along, lengths))
    shrunk = c.op("Div", along, c.op("Mul", lengths, lengths))
    first = c.op("Sub", gradient, c.op("Mul", v, shrunk))
    return c.op("Mul", c.op("Div", g, lengths), first), c.op("Div", along, lengths)


# ---------------------------------------------------------------------------- convolution


class _Convolution(NamedTuple):
    """The settings of a convolution, and the lengths of its kernel and of what it strides over."""

    stride: list[int]
    padding: list[int]
    dilation: list[int]
    groups: int
    kernel: list[int]
    long: list[int | None]

    @property
    def settings(self) -> dict[str, Any]:
        """As ONNX has them."""
        return {
            "kernel_shape": self.kernel,
            "strides": self.stride,
            "pads": [*self.padding, *self.padding],
            "dilations": self.dilation,
            "group": self.groups,
        }


def convolution_backward(draft: Draft, match: Match) -> Any:
    """`aten.convolution_backward`, of a convolution or of a transposed one."""
    c = Call(draft, match.root)
    gradient, x, weight = c.args.first(), c.tensor("input"), c.tensor("weight")
    turned, asked = bool(c.value("transposed")), wanted(c)
    # which of the two the kernel strides over; of it each step of the other is made
    short, long = (x, gradient) if turned else (gradient, x)
    told = _told(c, weight, long)
    rank = len(told.kernel) + 2
    if c.rank(x) != rank or c.rank(gradient) != rank:
        raise Refused(f"its weight has rank {rank}, its input {c.rank(x)}")
    made: list[gs.Tensor | None] = [None, None, None]
    if asked[0]:
        made[0] = (
            _of_turned(c, told, gradient, weight, x)
            if turned
            else _of_input(c, told, gradient, weight)
        )
    if asked[1]:
        made[1] = _of_weight(c, told, short, long)
    if asked[2]:
        made[2] = _sum(c, gradient, [0, *range(2, rank)])
    return given(c, *made)


def _told(c: Call, weight: gs.Tensor, long: gs.Tensor) -> _Convolution:
    kernel = c.sizes(weight)[2:]
    if not all(isinstance(n, int) for n in kernel):
        raise Refused("the lengths of its kernel are not known")
    spatial = len(kernel)
    stride, padding, dilation = (
        [int(n) for n in parts.per_axis(c.value(name), spatial, name)]
        for name in ("stride", "padding", "dilation")
    )
    known = [n for n in kernel if isinstance(n, int)]
    lengths = [n if isinstance(n, int) else None for n in c.sizes(long)[2:]]
    return _Convolution(stride, padding, dilation, c.integer("groups"), known, lengths)


def _of_input(c: Call, told: _Convolution, gradient: gs.Tensor, weight: gs.Tensor) -> gs.Tensor:
    """The transposed convolution, as long as the input: what no window reached gets zeros."""
    extra = []
    sizes = c.sizes(gradient)[2:]
    for axis, step in enumerate(told.stride):
        long, short = told.long[axis], sizes[axis]
        if step == 1:
            extra.append(0)
            continue
        if long is None or not isinstance(short, int):
            raise Refused("a length is known at run time only; fix it with `--shape`")
        reach = told.dilation[axis] * (told.kernel[axis] - 1) + 1
        extra.append(long - ((short - 1) * step - 2 * told.padding[axis] + reach))
    made: gs.Tensor = c.op("ConvTranspose", gradient, weight, output_padding=extra, **told.settings)
    return made


def _of_turned(
    c: Call, told: _Convolution, gradient: gs.Tensor, weight: gs.Tensor, x: gs.Tensor
) -> gs.Tensor:
    """Of a transposed convolution it is the convolution, over no more than the input's length."""
    made: gs.Tensor = c.op("Conv", gradient, weight, **told.settings)
    for axis, extra in enumerate(c.args.dims("output_padding")):
        if int(extra) >= told.stride[axis % len(told.stride)]:
            made = c.slice(made, axis + 2, 0, c.size(x, axis + 2))
    return made


def _of_weight(c: Call, told: _Convolution, short: gs.Tensor, long: gs.Tensor) -> gs.Tensor:
    """The long one convolved by the short one: samples and channels have changed places.

    Steps between taps and steps between windows have as well, and behind the kernel's length there
    are windows that it did not have. Groups lie beside each other, each with its samples.
    """
    rank, groups = len(told.kernel) + 2, told.groups
    rest = list(range(2, rank))
    if groups == 1:
        values, kernel = c.permute(long, [1, 0, *rest]), c.permute(short, [1, 0, *rest])
    else:
        values, kernel = _in_groups(c, long, groups), c.permute(short, [1, 0, *rest])
    settings = told.settings | {
        "strides": told.dilation,
        "dilations": told.stride,
        "group": groups,
    }
    del settings["kernel_shape"]
    made = c.op("Conv", values, kernel, **settings)
    for axis, length in enumerate(told.kernel):
        if told.stride[axis] > 1 or c.value("transposed"):
            made = c.slice(made, axis + 2, 0, length)
    return c.permute(made, [1, 0, *rest])


def _in_groups(c: Call, x: gs.Tensor, groups: int) -> gs.Tensor:
    """[samples, groups x channels, ...] as [channels, groups x samples, ...]."""
    samples, channels, *rest = c.sizes(x)
    if not isinstance(channels, int):
        raise Refused("how many channels it has is not known")
    each = channels // groups
    y = c.reshape(x, [samples, groups, each, *rest])
    y = c.permute(y, [2, 1, 0, *range(3, 3 + len(rest))])
    return c.reshape(y, [each, c.product([groups, samples]), *rest])
