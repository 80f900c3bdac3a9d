"""What the builders of `aten-math` share: arguments, PyTorch's dtypes, and small graphs.

PyTorch's rules of promotion (torch.result_type): dimensioned tensors decide, then 0-d tensors, then
Python numbers; a lower priority only counts where its category (bool, integer, float) is higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from itertools import product
from typing import Any

import ml_dtypes  # noqa: F401 - teaches numpy bfloat16
import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders.scalar_types import SCALAR_TYPES, promote
from surgeon.builders.unknown import NotKnown
from surgeon.facts.fact import INTEGERS
from surgeon.facts.kinds import FLOATS
from surgeon.rewrite import Draft, Refused

_T = onnx.TensorProto
BOOL, INT32, INT64, FLOAT, DOUBLE, HALF = (
    int(_T.BOOL),
    int(_T.INT32),
    int(_T.INT64),
    int(_T.FLOAT),
    int(_T.DOUBLE),
    int(_T.FLOAT16),
)
UINT8 = int(_T.UINT8)
NARROW = frozenset({int(_T.INT8), int(_T.INT16), int(_T.UINT8), int(_T.UINT16)})
_SINGLE_ONLY = frozenset("Asin Acos Atan Erf Gelu".split())
_PROMOTES = (1, 3)  # the release from which on a fraction beside integers stays one
_LARGEST_CONSTANT = 1024  # elements; a longer constant is cast by a node


def numpy_dtype(dtype: int) -> np.dtype[Any]:
    """ONNX's dtype number as numpy's dtype."""
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(dtype))


def _category(dtype: int) -> int:
    return 0 if not dtype else 3 if dtype in FLOATS else 1 if dtype == BOOL else 2


def _combine(higher: int, lower: int) -> int:
    return lower if _category(lower) > _category(higher) else higher


class Work:
    """One node under replacement: an ATen node's arguments, and nodes in the dtype they need.

    Args:
        draft: Where the nodes go.
        node: The node.
    """

    def __init__(self, draft: Draft, node: gs.Node) -> None:
        self.draft, self.facts, self.node = draft, draft.facts, node
        self.opset = draft.facts.opset

    def within(self, draft: Draft) -> Work:
        """The same work in a body."""
        inner = copy(self)
        inner.draft = draft
        return inner

    @cached_property
    def args(self) -> Arguments:
        """An ATen node's arguments by name.

        Raises:
            Refused: No schema of the operator fits the node.
        """
        return bind(self.node, self.facts)

    @property
    def name(self) -> str:
        """The operator, without namespace."""
        return str(self.node.op)

    def dtype(self, x: gs.Tensor) -> int:
        """The dtype of a value.

        Raises:
            Refused: It is not known, or complex.
        """
        found = self.facts.of(x).dtype
        if not found:
            raise NotKnown(x, "dtype")
        if found not in FLOATS and found not in INTEGERS and found != BOOL:
            raise Refused(f"`{x.name}` is {_T.DataType.Name(found).lower()}")
        return int(found)

    def rank(self, x: gs.Tensor) -> int:
        """The rank of a value.

        Raises:
            Refused: It is not known.
        """
        found = self.facts.of(x).rank
        if found is None:
            raise NotKnown(x, "rank")
        return found

    def op(self, operator: str, *inputs: Any, **attributes: Any) -> Any:
        """A node; numbers among the inputs become constants like the first tensor."""
        like = next((t for t in inputs if isinstance(t, gs.Tensor)), None)
        if operator in _SINGLE_ONLY and like is not None and self.dtype(like) == DOUBLE:
            raise Refused(f"onnxruntime has no `{operator}` in double precision")
        made = [
            self.number(t, self.dtype(like))
            if isinstance(t, (int, float)) and like is not None
            else t
            for t in inputs
        ]
        return self.draft.op(operator, *made, **attributes)

    def number(self, value: float, dtype: int) -> gs.Tensor:
        """A 0-d constant."""
        return self.draft.constant(np.asarray(value, numpy_dtype(dtype)))

    def given_number(self, name: str, dtype: int, default: float | None = None) -> gs.Tensor:
        """A number among the arguments as a 0-d constant; whole where the dtype is of integers.

        Raises:
            Refused: The dtype of integers does not hold it.
        """
        value = float(self.constant_of(name, default))
        if dtype in INTEGERS:
            value, ends = int(value), np.iinfo(numpy_dtype(dtype))
            if not ends.min <= value <= ends.max:
                raise Refused(f"its {name} is {value}, which is no {ends.dtype.name}")
        return self.number(value, dtype)

    def axes(self, axes: Sequence[int]) -> gs.Tensor:
        """A list of integers as a constant."""
        return self.draft.constant(np.asarray(axes, np.int64), "axes")

    def as_list(self, x: gs.Tensor) -> gs.Tensor:
        """The value; a number as a list of one."""
        if self.rank(x):
            return x
        made: gs.Tensor = self.draft.op("Unsqueeze", x, self.axes([0]))
        return made

    def cast(self, x: gs.Tensor, dtype: int) -> gs.Tensor:
        """The value in another dtype; constants are converted here."""
        have = self.facts.of(x).dtype
        if have == dtype:
            return x
        array = self.facts.array(x)
        if array is not None and array.size <= _LARGEST_CONSTANT and array.dtype != object:
            with np.errstate(all="ignore"):
                return self.draft.constant(array.astype(numpy_dtype(dtype)))
        made: gs.Tensor = self.draft.op("Cast", x, to=dtype)
        return made

    def result_type(self, *operands: gs.Tensor) -> int:
        """PyTorch's dtype of an operation on all of them."""
        ranks = [self.facts.of(x).rank for x in operands]
        scalars = ((False, True) if rank is None else (rank == 0,) for rank in ranks)
        found = {self._result_type(operands, each) for each in product(*scalars)}
        if len(found) > 1:
            raise Refused("the rank of an operand decides on the dtype, and is not known")
        return found.pop()

    def _result_type(self, operands: Sequence[gs.Tensor], scalars: Sequence[bool]) -> int:
        dims = zeros = wrapped = 0
        for x, scalar in zip(operands, scalars, strict=True):
            dtype = self.dtype(x)
            if not scalar:
                dims = promote(dims, dtype)
            elif self.is_number(x):
                wrapped = promote(wrapped, FLOAT if dtype in FLOATS else dtype)
            else:
                zeros = promote(zeros, dtype)
        if self.node.domain == "aten" and self.facts.model.is_before(*_PROMOTES):
            if not dims and zeros and _category(wrapped) > _category(zeros):
                raise Refused("before PyTorch 1.3 a number and a tensor of one were promoted apart")
            return dims or zeros or wrapped
        return _combine(dims, _combine(zeros, wrapped))

    def is_number(self, x: gs.Tensor) -> bool:
        """Whether it is a Python number.

        Exporters write these as 0-d constants of 64 bits; where one is computed, the overload says.
        """
        if self.facts.array(x) is not None:
            return self.facts.of(x).dtype in (DOUBLE, INT64, BOOL)
        return any(x is number for number in self._numbers)

    @cached_property
    def _numbers(self) -> list[gs.Tensor]:
        """What is given for a number, where the node says by which overload it was called."""
        told = self.node.attrs.get("overload") if self.node.domain == "aten" else None
        if not told or self.args.schema.overload != told:
            return []
        names = [p.name for p in self.args.schema.parameters if p.type == "number"]
        given = [self.args.given.get(name) for name in names]
        return [one for one in given if isinstance(one, gs.Tensor)]

    def together(self, *operands: gs.Tensor, floating: bool = False) -> tuple[int, list[gs.Tensor]]:
        """The common dtype, and the operands in it.

        Args:
            operands: Tensors and numbers.
            floating: Integers become float32, as operators do that compute in real numbers.
        """
        dtype = self.result_type(*operands)
        if floating and dtype not in FLOATS:
            dtype = FLOAT
        return dtype, [self.cast(x, dtype) for x in operands]

    def floating(self, x: gs.Tensor) -> gs.Tensor:
        """The value itself where it is a float, else in float32."""
        return x if self.dtype(x) in FLOATS else self.cast(x, FLOAT)

    def widely(self, operator: str, *inputs: gs.Tensor, **attributes: Any) -> Any:
        """A node on integers of any width: those of 8 and 16 bits by way of int32, as they wrap."""
        dtype = self.dtype(inputs[0])
        if dtype in NARROW:
            wide = [self.cast(x, INT32) if self.dtype(x) == dtype else x for x in inputs]
            return self.cast(self.draft.op(operator, *wide, **attributes), dtype)
        return self.draft.op(operator, *inputs, **attributes)

    def where(self, condition: gs.Tensor, first: Any, second: Any) -> gs.Tensor:
        """`Where`, in dtypes that runtimes have it for."""
        like = first if isinstance(first, gs.Tensor) else second
        dtype = self.dtype(like)
        by_way = INT32 if dtype in NARROW or dtype == BOOL else dtype
        pair = [
            self.cast(x, by_way) if isinstance(x, gs.Tensor) else self.number(x, by_way)
            for x in (first, second)
        ]
        return self.cast(self.draft.op("Where", condition, *pair), dtype)

    def is_nan(self, x: gs.Tensor) -> gs.Tensor:
        """Where a float is no number."""
        made: gs.Tensor = self.draft.op("IsNaN", x)
        return made

    def invert(self, x: gs.Tensor) -> gs.Tensor:
        """The negation of a condition."""
        made: gs.Tensor = self.draft.op("Not", x)
        return made

    def equal(self, a: gs.Tensor, b: gs.Tensor) -> gs.Tensor:
        """`Equal`; NaN equals nothing."""
        if self.dtype(a) in NARROW:
            a, b = self.cast(a, INT32), self.cast(b, INT32)
        made: gs.Tensor = self.op("Equal", a, b)
        return made

    def less(self, a: gs.Tensor, b: gs.Tensor, *, or_equal: bool = False) -> gs.Tensor:
        """`a < b` or `a <= b`; false where either is NaN."""
        dtype = self.dtype(a)
        if dtype in NARROW or dtype == BOOL:
            a, b = self.cast(a, INT32), self.cast(b, INT32)
        if not or_equal:
            return self.op("Less", a, b)
        if self.opset >= 12:
            return self.op("LessOrEqual", a, b)
        if self.opset >= 11 and dtype in (FLOAT, DOUBLE):
            return self.op("Or", self.op("Less", a, b), self.op("Equal", a, b))
        greater = self.op("Greater", a, b)
        if dtype not in FLOATS:
            return self.invert(greater)
        return self.invert(self.op("Or", greater, self.op("Or", self.is_nan(a), self.is_nan(b))))

    def extreme(self, operator: str, a: gs.Tensor, b: gs.Tensor) -> gs.Tensor:
        """`Max` or `Min` of two values of one dtype."""
        dtype = self.dtype(a)
        if dtype == BOOL:
            return self.op("Or" if operator == "Max" else "And", a, b)
        if dtype in NARROW:
            wide = self.extreme(operator, self.cast(a, INT32), self.cast(b, INT32))
            return self.cast(wide, dtype)
        # onnxruntime compares the lower halves of int64 in Max, Min and Clip (seen in 1.31)
        if dtype in FLOATS or (self.opset >= 12 and dtype != INT64):
            return self.op(operator, a, b)
        smaller = self.op("Less", a, b)
        return self.where(smaller, b, a) if operator == "Max" else self.where(smaller, a, b)

    def is_infinite(self, x: gs.Tensor, *, is_magnitude: bool = False) -> gs.Tensor:
        """Where the magnitude of a float is infinite; of one, by Equal, which all runtimes have."""
        if is_magnitude and self.opset >= 11:
            return self.equal(x, self.number(np.inf, self.dtype(x)))
        if self.opset >= 10 and (self.dtype(x) != HALF or self.opset >= 20):
            return self.op("IsInf", x)
        return self.equal(self.op("Abs", x), self.number(np.inf, self.dtype(x)))

    def constant_of(self, name: str, default: Any = None) -> Any:
        """An argument's value; `default` where it is None."""
        found = self.args.value(name)
        return default if found is None else found

    def dtype_argument(self, name: str = "dtype") -> int | None:
        """A dtype that PyTorch's number names, as ONNX's; None where it is not given.

        Raises:
            Refused: ONNX has no such dtype.
        """
        number = self.args.value(name) if self.args.schema.takes(name) else None
        if number is None:
            return None
        if int(number) not in SCALAR_TYPES:
            raise Refused(f"ONNX has no arithmetic on PyTorch's dtype {int(number)}")
        return SCALAR_TYPES[int(number)]
