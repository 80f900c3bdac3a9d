"""What is known of a model's constants, and of which of them anyone looked at the values."""

from __future__ import annotations

import math
from typing import Any

import onnx
import onnx_graphsurgeon as gs
from onnx_graphsurgeon.ir.tensor import LazyValues

from surgeon.errors import ModelError
from surgeon.facts.fact import Array, Fact
from surgeon.facts.kinds import FLOATS
from surgeon.model import Model

LARGEST_VALUE = 1024  # elements; a longer value is no shape arithmetic and is kept as a constant
_LARGEST_SCALES = 16  # elements that are fractions: scales of axes, and regions of them


class Constants:
    """The constants of a model.

    Args:
        model: What reads their values.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._facts: dict[Any, Fact] = {}
        self._read: set[int] = set()

    def fact(self, tensor: gs.Constant) -> Fact:
        """What is known of one; its values too where they are few and can be read."""
        raw, data = tensor._values, b""
        if isinstance(raw, LazyValues):
            proto = raw.tensor
            if not isinstance(proto, onnx.TensorProto):
                return Fact(proto.values.data_type, tuple(proto.dims))
            dtype, shape = proto.data_type, tuple(proto.dims)
        else:
            dtype, shape = onnx.helper.np_dtype_to_tensor_dtype(raw.dtype), tuple(raw.shape)
        largest = _LARGEST_SCALES if dtype in FLOATS else LARGEST_VALUE
        if math.prod(shape) > largest or tensor.name in self._model.overridable:
            return self._facts.setdefault((dtype, shape), Fact(dtype, shape))
        if isinstance(raw, LazyValues):
            data = proto.raw_data
        elif raw.dtype != object:
            data = raw.tobytes()
        known = self._facts.get((dtype, shape, data)) if data else None
        if known is not None:
            return known
        try:
            fact = Fact(dtype, shape, self._model.array(tensor))
        except ModelError:  # external data that is not there: whoever needs the values says so
            return Fact(dtype, shape)
        if data:
            self._facts[dtype, shape, data] = fact
        return fact

    def array(self, tensor: gs.Constant, *, decides: bool) -> Array:
        """The values of one, and whether anything is to depend on them."""
        if decides:
            self._read.add(id(tensor))
        return self._model.array(tensor)

    def is_unread(self, tensor: gs.Tensor) -> bool:
        """Whether no value of it decided anything so far, if it is a large constant."""
        return isinstance(tensor, gs.Constant) and (
            self.fact(tensor).value is None and id(tensor) not in self._read
        )
