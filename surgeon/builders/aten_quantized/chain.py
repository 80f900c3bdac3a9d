"""The quantised values that lead to one, followed back to where they were quantised."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import bind
from surgeon.builders.aten_quantized.operators import Operands, operands
from surgeon.builders.aten_quantized.scheme import (
    KINDS,
    Scheme,
    from_whole,
    rounded,
    scheme_of,
)
from surgeon.builders.bench import TYPE, Bench
from surgeon.links import maker_of
from surgeon.rewrite import Draft, Refused

Found = tuple[gs.Tensor, Scheme]
# ONNX's operators and ATen's, whose names differ by their first letter.
# What only moves or chooses among levels: what it gives lies on them.
_MOVING = frozenset(
    "DepthToSpace Expand Flatten Gather GlobalMaxPool Identity MaxPool Relu Reshape Slice "
    "SpaceToDepth Squeeze Tile Transpose Unsqueeze "
    "alias channel_shuffle clone contiguous detach expand expand_as flatten flip index_select "
    "max_pool1d max_pool2d max_pool3d movedim narrow numpy_T permute pixel_shuffle "
    "pixel_unshuffle relu repeat reshape select slice squeeze swapaxes t transpose "
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d unflatten unsqueeze view".split()
)
# What is computed, and rounded to the levels of what it is computed of.
_ROUNDING = frozenset(
    "AveragePool Clip GlobalAveragePool LeakyRelu Pad ReduceMean Resize "
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d "
    "avg_pool3d clamp clamp_max clamp_min constant_pad_nd hardtanh leaky_relu mean relu6 "
    "threshold upsample_bilinear2d upsample_linear1d".split()
)
# What has 256 levels of its own: the least value, and how far they reach from there.
_OWN_LEVELS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("Sigmoid", "HardSigmoid", "sigmoid", "hardsigmoid"), (0.0, 1.0)),
    **dict.fromkeys(("Tanh", "tanh"), (-1.0, 2.0)),
}


class Chain:
    """Quantised values in floats.

    Args:
        draft: Where the nodes go.
        operators: Whether operators may be among them whose kernels round in ways of their own.

    Attributes:
        bench: Where the nodes are made.
        met: Whether there was such an operator.
    """

    def __init__(self, draft: Draft, *, operators: bool) -> None:
        self.bench, self.operators, self.met = Bench(draft), operators, False
        self._found: dict[int, Found] = {}

    def floats(self, value: gs.Tensor) -> Found:
        """A quantised value in floats, and how it is quantised.

        Raises:
            Refused: It is not known to be quantised, or what makes it is not known to be of
                quantised tensors.
        """
        if id(value) not in self._found:
            self._found[id(value)] = self._follow(value)
        return self._found[id(value)]

    def _follow(self, value: gs.Tensor) -> Found:
        node = maker_of(value)
        if node is None:
            raise Refused(f"`{value.name}` is not known to be quantised")
        if (node.domain, node.op) == ("prim", "TupleConstruct"):
            return self._of_parts(node)
        if node.domain == "aten" and (begin := _BEGINNINGS.get(node.op)) is not None:
            return begin(self, node)
        if node.domain == "aten" and (of := operands(node)) is not None:
            return self._of_operator(node, of)
        known = node.op in _MOVING or node.op in _ROUNDING or node.op in _OWN_LEVELS
        if len(node.outputs) != 1 or node.domain not in (None, "", "aten") or not known:
            raise Refused(f"`{node.op}` is not known of quantised tensors")
        return self._through(node)

    def _through(self, node: gs.Node) -> Found:
        """The same operator on floats; what it computes is rounded to levels."""
        c = self.bench
        x, scheme = self.floats(node.inputs[0])
        told = {key: value for key, value in node.attrs.items() if (key, value) != ("overload", "")}
        y: gs.Tensor = c.draft.op(node.op, x, *node.inputs[1:], domain=node.domain or "", **told)
        if node.op in _MOVING:
            if scheme.axis is not None:
                raise Refused(f"`{node.op}` may move the axis along which its scales stand")
            return y, scheme
        if scheme.axis is not None:
            raise Refused(f"`{node.op}` of scales along an axis is not known")
        if node.op in _OWN_LEVELS:
            scheme = self._own_levels(node.op, scheme.kind)
        return rounded(c, y, scheme), scheme

    def _own_levels(self, operator: str, kind: int) -> Scheme:
        c = self.bench
        least, reach = _OWN_LEVELS[operator]
        step = reach / 256
        lowest = -128 if kind == TYPE.INT8 else 0
        zero = lowest - int(least / step)
        return scheme_of(
            c, c.number(step, TYPE.FLOAT), c.draft.constant(np.asarray(zero, np.int64)), kind
        )

    def _of_parts(self, node: gs.Node) -> Found:
        c = self.bench
        parts = [part for part in node.inputs if not part.is_empty()]  # the axis may be left out
        if len(parts) not in (3, 4):
            raise Refused("its tuple is no quantised tensor")
        whole, scale, zero, *rest = parts
        kind = c.dtype(whole)
        if kind not in (*KINDS.values(), TYPE.INT32):
            raise Refused("its tuple is no quantised tensor")
        axis = None
        if rest:
            known = c.facts.array(rest[0])
            if known is None or known.size != 1:
                raise Refused("the axis of its scales is not known")
            axis = int(known.item())
        scheme = scheme_of(c, scale, zero, kind, axis)
        return from_whole(c, whole, scheme), scheme

    def _quantized(self, node: gs.Node) -> Found:
        c, args = self.bench, bind(node, self.bench.facts)
        per_channel = args.schema.takes("axis")
        names = ("scales", "zero_points") if per_channel else ("scale", "zero_point")
        kind = KINDS.get(int(args.value("dtype")))
        if kind is None:
            raise Refused("it is quantised to other than 8 bits")
        axis = int(args.value("axis")) if per_channel else None
        scale, zero = (args.tensor(n) for n in names)
        scheme = scheme_of(c, scale, zero, kind, axis)
        x = args.tensor("self")
        if c.dtype(x) != TYPE.FLOAT:
            raise Refused("only single precision is quantised here")
        return rounded(c, x, scheme), scheme

    def _of_operator(self, node: gs.Node, of: Operands) -> Found:
        if not self.operators:
            raise Refused(
                f"PyTorch's kernels of `quantized::{node.op}` round each in a way of its own; "
                "allow it with `--allow approximate`"
            )
        self.met = True
        found = [self.floats(value) for value in of.quantized]
        y = of.compute(self.bench, [x for x, _ in found])
        if node.op.endswith("_relu") and node.op != "leaky_relu":
            y = self.bench.op("Relu", y)
        scheme = scheme_of(self.bench, of.scale, of.zero, found[0][1].kind)
        return rounded(self.bench, y, scheme), scheme


_BEGINNINGS: Mapping[str, Callable[[Chain, gs.Node], Found]] = {
    "quantize_per_tensor": Chain._quantized,
    "quantize_per_channel": Chain._quantized,
}
