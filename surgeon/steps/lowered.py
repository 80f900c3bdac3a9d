"""Operators at an older opset that take more than leaving newer attributes out.

Each function brings one node there, in place, or says that it cannot be.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field

import numpy as np
import onnx

from surgeon.opsets import PRECISION

Dims = list[int | None]
_SCALARS = {"value_float": np.float32, "value_int": np.int64}
_LISTS = {"value_floats": np.float32, "value_ints": np.int64}


class Not(Exception):
    """What the older opset lacks.

    Attributes:
        operator: Of which operator.
    """

    operator: str = ""


@dataclass
class Where:
    """What is known where a node stands.

    Attributes:
        opset: The older opset.
        constants: Tensors that have one value, by name.
        dims: The dims of a value, None for those that are not known; None of unknown rank.
        added: Tensors that the model needs besides.
    """

    opset: int
    constants: MutableMapping[str, onnx.TensorProto]
    dims: Callable[[str], Dims | None]
    added: dict[str, onnx.TensorProto] = field(default_factory=dict)

    def inside(self, constants: dict[str, onnx.TensorProto]) -> Where:
        """The same in a body, which sees what is outside."""
        return Where(self.opset, ChainMap(constants, self.constants), self.dims, self.added)


def constant(node: onnx.NodeProto, where: Where) -> None:
    """A Constant that says numbers: a tensor, before opset 12."""
    if where.opset >= 12:
        return
    for attribute in list(node.attribute):
        kind = _SCALARS.get(attribute.name) or _LISTS.get(attribute.name)
        if kind is None and attribute.name.startswith("value_"):
            raise Not("Constant of texts is of a newer opset")
        if kind is not None:
            array = np.array(onnx.helper.get_attribute_value(attribute), kind)
            node.attribute.remove(attribute)
            tensor = onnx.numpy_helper.from_array(array)
            node.attribute.append(onnx.helper.make_attribute("value", tensor))


def dropout(node: onnx.NodeProto, where: Where) -> None:
    """A Dropout that does not train, which the older one never does; its ratio means nothing."""
    if where.opset >= 12:
        return
    if len(node.input) > 2 and node.input[2]:
        trains = where.constants.get(node.input[2])
        if trains is None or onnx.numpy_helper.to_array(trains).any():
            raise Not("Dropout that trains, or may, means something else before opset 12")
    if len(node.output) > 1 and node.output[1]:
        raise Not("Dropout with a mask means something else before opset 12")
    del node.input[1:]
    for attribute in [a for a in node.attribute if a.name == "seed"]:
        node.attribute.remove(attribute)


def resize(node: onnx.NodeProto, where: Where) -> None:
    """A Resize whose region or scales are left out: empty lists, before opset 13."""
    if where.opset >= 13:
        return
    for place, name in ((1, "surgeon/no_region"), (2, "surgeon/no_scales")):
        if len(node.input) > place and not node.input[place]:
            where.added[name] = onnx.numpy_helper.from_array(np.zeros(0, np.float32), name)
            node.input[place] = name


def softmax(node: onnx.NodeProto, where: Where) -> None:
    """Before opset 13 it is over all axes from one on: the same of the last one alone."""
    if where.opset >= 13:
        return
    told = next((a for a in node.attribute if a.name == "axis"), None)
    axis = -1 if told is None else told.i
    dims = where.dims(node.input[0])
    if axis != -1 and dims is None:
        raise Not(f"{node.op_type} over axis {axis} of an unknown rank")
    if dims is not None:
        axis %= max(len(dims), 1)
        if any(dim != 1 for dim in dims[axis + 1 :]):
            raise Not(f"{node.op_type} over an axis that is not the last")
    if told is not None:
        node.attribute.remove(told)
    node.attribute.append(onnx.helper.make_attribute("axis", axis))


def _leave_out(node: onnx.NodeProto, name: str, value: int) -> None:
    """Take out an attribute where it says what older opsets do anyway."""
    for attribute in [a for a in node.attribute if a.name == name and a.i == value]:
        node.attribute.remove(attribute)


def quantized(node: onnx.NodeProto, where: Where) -> None:
    """Scales along an axis came with opset 13, and halves divided as such with `PRECISION`."""
    if where.opset < PRECISION:
        _leave_out(node, "precision", onnx.TensorProto.FLOAT)
    if where.opset >= 13:
        return
    scale = where.constants.get(node.input[1])
    if (where.dims(node.input[1]) if scale is None else [*scale.dims]) not in ([], [1]):
        raise Not(f"{node.op_type} of several scales is of a newer opset")
    for attribute in [a for a in node.attribute if a.name == "axis"]:
        node.attribute.remove(attribute)


def average_pool(node: onnx.NodeProto, where: Where) -> None:
    """What the last windows of sizes that are rounded up average is said from opset 19 on."""
    if where.opset < 19 and any(a.name == "ceil_mode" and a.i for a in node.attribute):
        raise Not("AveragePool with `ceil_mode` means something else before opset 19")


def batch_normalization(node: onnx.NodeProto, where: Where) -> None:
    """In inference it gives one value; whether it trains, others say otherwise at each opset."""
    if any(node.output[1:]):
        said = f"means something else at opset {where.opset}"
        raise Not(f"BatchNormalization that trains {said}")


def roi_align(node: onnx.NodeProto, where: Where) -> None:
    """Before opset 16 places are not shifted, which the default of the attribute then is."""
    if where.opset >= 16:
        return
    name = "coordinate_transformation_mode"
    told = next((a for a in node.attribute if a.name == name), None)
    if told is None:
        raise Not(f"RoiAlign without `{name}` means something else before it had one")
    if told.s != b"output_half_pixel":
        raise Not(f"RoiAlign of `{told.s.decode()}` is of a newer opset")
    node.attribute.remove(told)


FORMS: Mapping[str, Callable[[onnx.NodeProto, Where], None]] = {
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalization,
    "Constant": constant,
    "Dropout": dropout,
    "Resize": resize,
    "RoiAlign": roi_align,
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), softmax),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), quantized),
}
