"""torchvision's deformable convolution: DeformConv, or samples below opset 19."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.builders.aten_shape.call import Call
from surgeon.builders.tapped import Deformation, of_samples
from surgeon.rewrite import Refused

_FIRST_OPSET = 19  # of DeformConv


def deform_conv2d(c: Call) -> gs.Tensor:
    """`torchvision.deform_conv2d`: each tap of the kernel reads at a place of its own."""
    weight, groups = c.tensor("weight"), c.integer("groups")
    shape = c.shape(weight)
    kernel = [d for d in (shape or ())[2:] if isinstance(d, int)]
    if shape is None or len(kernel) != 2:
        raise Refused("the size of its kernel is known at run time only")
    if c.opset < _FIRST_OPSET:
        return of_samples(c, _deformation(c))
    mask = [c.tensor("mask")] if _is_masked(c) else []
    pads = [c.integer(n) for n in ("pad_h", "pad_w")]
    y: gs.Tensor = c.op(
        "DeformConv",
        c.tensor("input"),
        weight,
        c.tensor("offset"),
        c.args.optional("bias"),
        *mask,
        kernel_shape=kernel,
        strides=[c.integer(n) for n in ("stride_h", "stride_w")],
        pads=pads * 2,
        dilations=[c.integer(n) for n in ("dilation_h", "dilation_w")],
        group=groups,
        offset_group=c.integer("offset_groups"),
    )
    return y


def _is_masked(c: Call) -> bool:
    """Whether samples are weighed; torchvision before 0.9 knew no mask."""
    return c.args.schema.takes("use_mask") and bool(c.value("use_mask"))


def _deformation(c: Call) -> Deformation:
    strides, pads, dilations = (
        (c.integer(f"{name}_h"), c.integer(f"{name}_w")) for name in ("stride", "pad", "dilation")
    )
    return Deformation(
        c.tensor("input"),
        c.tensor("offset"),
        c.tensor("weight"),
        c.args.optional("bias"),
        c.tensor("mask") if _is_masked(c) else None,
        strides,
        pads,
        dilations,
        c.integer("groups"),
        c.integer("offset_groups"),
    )
