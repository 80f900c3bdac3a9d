"""One ATen node under the knife: its arguments, its facts, and sizes that may be known later.

Nothing here knows an operator; the modules beside it do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.arguments import Arguments, bind
from surgeon.dims import Dim
from surgeon.facts.fact import INTEGERS
from surgeon.rewrite import Draft, Refused

TYPE = onnx.TensorProto
LARGEST = int(np.iinfo(np.int64).max)
FLOATS = frozenset({TYPE.FLOAT, TYPE.DOUBLE, TYPE.FLOAT16, TYPE.BFLOAT16})
NARROW = frozenset({TYPE.INT8, TYPE.INT16, TYPE.UINT8, TYPE.UINT16, TYPE.BOOL})
# PyTorch's ScalarType numbers (c10/core/ScalarType.h) as ONNX's.
SCALAR_TYPES = {
    0: TYPE.UINT8,
    1: TYPE.INT8,
    2: TYPE.INT16,
    3: TYPE.INT32,
    4: TYPE.INT64,
    5: TYPE.FLOAT16,
    6: TYPE.FLOAT,
    7: TYPE.DOUBLE,
    11: TYPE.BOOL,
    15: TYPE.BFLOAT16,
}


class Size:
    """A length that is a number, a symbol, or known at run time; nodes are made when asked for.

    Attributes:
        dim: What is proven of it; None for nothing.
        make: Gives it as an int64 tensor of one element.
    """

    __slots__ = ("_made", "dim", "make")

    def __init__(self, dim: Dim | None, make: Callable[[], gs.Tensor]) -> None:
        self.dim, self.make = dim, make
        self._made: gs.Tensor | None = None

    @property
    def tensor(self) -> gs.Tensor:
        """The int64 tensor of one element."""
        if self._made is None:
            self._made = self.make()
        return self._made


class Call:
    """A node to lower.

    Attributes:
        draft: Where the nodes go.
        node: The ATen node.
        args: Its arguments by name.
    """

    def __init__(self, draft: Draft, node: gs.Node) -> None:
        self.draft, self.node, self.facts = draft, node, draft.facts
        self.opset = draft.facts.opset
        self.args: Arguments = bind(node, draft.facts)

    # ------------------------------------------------------------------ what is known

    def tensor(self, name: str = "self") -> gs.Tensor:
        """A tensor argument."""
        return self.args.tensor(name)

    def value(self, name: str) -> Any:
        """An argument that must be a number, list, text or None."""
        return self.args.value(name)

    def has(self, name: str) -> bool:
        """Whether the argument is given."""
        return self.args.has(name)

    def is_empty_list(self, name: str) -> bool:
        """Whether it is a Constant without elements, which old exporters write as no tensor."""
        given = self.args.given.get(name)
        producer = given.inputs[0] if isinstance(given, gs.Tensor) and given.inputs else None
        if producer is None or producer.op != "Constant":
            return isinstance(given, list) and not given
        origin = getattr(producer, "origin", None)
        return origin is not None and all(
            a.type in (a.TENSORS, a.INTS) and not a.tensors and not a.ints for a in origin.attribute
        )

    def integer(self, name: str) -> int:
        """An integer that must be known."""
        return int(self.value(name))

    def rank(self, x: gs.Tensor) -> int:
        """The rank, which must be known."""
        rank = self.facts.of(x).rank
        if rank is None:
            raise Refused(f"the rank of `{x.name}` is not known")
        return rank

    def dtype(self, x: gs.Tensor) -> int:
        """The ONNX number of the element type, which must be known."""
        dtype = self.facts.of(x).dtype
        if not dtype:
            raise Refused(f"the dtype of `{x.name}` is not known")
        return dtype

    def shape(self, x: gs.Tensor) -> tuple[Dim, ...] | None:
        """The dimensions, where known."""
        return self.facts.of(x).shape

    def axis(self, dim: int, rank: int) -> int:
        """A dim counted from the front; a scalar counts as rank 1."""
        room = max(rank, 1)
        if not -room <= dim < room:
            raise Refused(f"dim {dim} is outside the rank {rank}")
        return dim % room

    # ------------------------------------------------------------------ making nodes

    def op(self, op_type: str, *inputs: gs.Tensor | None, **attributes: Any) -> Any:
        """Draft a node."""
        return self.draft.op(op_type, *inputs, **attributes)

    def ints(self, values: Sequence[int], ending: str = "constant") -> gs.Tensor:
        """An int64 constant of rank 1."""
        return self.draft.constant(np.asarray(list(values), np.int64), ending)

    def number(self, value: Any, dtype: int) -> gs.Tensor:
        """A scalar constant of an ONNX dtype."""
        kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
        if dtype in INTEGERS:
            value = int(value)
        with np.errstate(over="ignore"):
            return self.draft.constant(np.asarray(value).astype(kind), "number")

    def cast(self, x: gs.Tensor, dtype: int) -> gs.Tensor:
        """The tensor in this dtype; itself where it has it."""
        if self.facts.of(x).dtype == dtype:
            return x
        return self.op("Cast", x, to=dtype)

    def unsqueeze(self, x: gs.Tensor, axes: Sequence[int]) -> gs.Tensor:
        """With axes of 1 put in."""
        return self.op("Unsqueeze", x, self.ints(axes, "axes")) if axes else x

    def squeeze(self, x: gs.Tensor, axes: Sequence[int]) -> gs.Tensor:
        """With these axes of 1 taken out."""
        return self.op("Squeeze", x, self.ints(axes, "axes")) if axes else x

    def permute(self, x: gs.Tensor, perm: Sequence[int]) -> gs.Tensor:
        """Transposed; itself where nothing moves."""
        if list(perm) == list(range(len(perm))):
            return x
        return self.op("Transpose", x, perm=[int(p) for p in perm])

    def flat(self, x: gs.Tensor) -> gs.Tensor:
        """Of rank 1."""
        return x if self.facts.of(x).rank == 1 else self.op("Reshape", x, self.ints([-1], "target"))

    def concat(self, parts: Sequence[gs.Tensor], axis: int) -> gs.Tensor:
        """Joined along an axis."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)

    def slice(
        self, x: gs.Tensor, axis: int, start: Size | int, end: Size | int, step: int = 1
    ) -> gs.Tensor:
        """Part of an axis, with the bounds as ONNX has them."""
        bounds = [self.vector([start], "starts"), self.vector([end], "ends")]
        axes, steps = self.ints([axis], "axes"), self.ints([step], "steps")
        if step == 1:
            return self.op("Slice", x, *bounds, axes)
        return self.op("Slice", x, *bounds, axes, steps)

    # ------------------------------------------------------------------ sizes

    def size(self, x: gs.Tensor, axis: int) -> Size | int:
        """The length of an axis."""
        shape = self.shape(x)
        dim = None if shape is None else shape[axis]
        if isinstance(dim, int):
            return dim
        return Size(
            dim, lambda: self.op("Gather", self.op("Shape", x), self.ints([axis], "axis"), axis=0)
        )

    def sizes(self, x: gs.Tensor) -> list[Size | int]:
        """Every length."""
        return [self.size(x, axis) for axis in range(self.rank(x))]

    def scalar(self, tensor: gs.Tensor) -> Size | int:
        """An integer out of a tensor of one element."""
        fact = self.facts.of(tensor)
        value = fact.value if fact.value is not None else self.facts.array(tensor)
        dim = None if value is None else value.reshape(-1).tolist()[0]
        if isinstance(dim, (int, float)):
            return int(dim)

        def make() -> gs.Tensor:
            cast = self.cast(tensor, TYPE.INT64)
            if fact.shape == (1,):
                return cast
            return self.op("Reshape", cast, self.ints([1], "one"))

        return Size(dim, make)

    def listed(self, name: str) -> list[Size | int]:
        """A list of integers, each a number or known at run time; their count must be known."""
        found = self.args.given.get(name)
        if isinstance(found, list):
            return [self.scalar(t) for t in found]
        if found is None:
            default = self.value(name)
            return [int(v) for v in (default if isinstance(default, (list, tuple)) else [default])]
        fact = self.facts.of(found)
        value = fact.value if fact.value is not None else self.facts.array(found)
        if value is None and fact.shape == ():
            return [self.scalar(found)]
        if value is None and (fact.shape is None or not isinstance(fact.shape[0], int)):
            raise Refused(f"how many numbers `{name}` has is not known")
        if value is not None:
            elements = value.reshape(-1).tolist()
            return [
                int(v)
                if isinstance(v, (int, float))
                else Size(v, lambda i=i: self._element(found, i))  # type: ignore[misc]
                for i, v in enumerate(elements)
            ]
        assert fact.shape is not None
        count = fact.shape[0]
        assert isinstance(count, int)
        return [Size(None, lambda i=i: self._element(found, i)) for i in range(count)]  # type: ignore[misc]

    def _element(self, vector: gs.Tensor, index: int) -> gs.Tensor:
        cast = self.cast(vector, TYPE.INT64)
        if self.facts.of(vector).rank == 0:
            return self.unsqueeze(cast, [0])
        return self.op("Gather", cast, self.ints([index], "index"), axis=0)

    def vector(self, sizes: Sequence[Size | int], ending: str = "sizes") -> gs.Tensor:
        """An int64 tensor of rank 1."""
        plain = [s if isinstance(s, int) else s.dim for s in sizes]
        if all(isinstance(d, int) for d in plain):
            return self.ints([d for d in plain if isinstance(d, int)], ending)
        parts: list[gs.Tensor] = []
        run: list[int] = []
        for size, dim in zip(sizes, plain, strict=True):
            if isinstance(dim, int):
                run.append(dim)
                continue
            assert isinstance(size, Size)
            if run:
                parts.append(self.ints(run, ending))
                run = []
            parts.append(size.tensor)
        if run:
            parts.append(self.ints(run, ending))
        return self.concat(parts, 0)

    def reshape(self, x: gs.Tensor, wanted: Sequence[Size | int]) -> gs.Tensor:
        """In these sizes, which multiply to what `x` has; a constant target where provable."""
        shape = self.shape(x)
        plain = [s if isinstance(s, int) else s.dim for s in wanted]
        if shape is not None and None not in plain and -1 not in plain:
            known: list[Dim] = [d for d in plain if d is not None]
            if len(known) == len(shape) and all(
                dims.equal(a, b) is True for a, b in zip(shape, known, strict=True)
            ):
                return x
            target = dims.constant_target(shape, known)
            if target is not None:
                return self.op("Reshape", x, self.ints(target, "target"))
        if 0 in plain:  # no elements; before opset 14 a 0 would copy the dimension in its place
            return self.filled(wanted, 0, self.dtype(x))
        if shape is not None:
            target = _inferred(shape, plain)
            if target is not None:
                return self.op("Reshape", x, self.ints(target, "target"))
        extra = {"allowzero": 1} if self.opset >= 14 else {}
        return self.op("Reshape", x, self.vector(wanted, "target"), **extra)

    def filled(self, sizes: Sequence[Size | int], value: Any, dtype: int) -> gs.Tensor:
        """A tensor of one value everywhere."""
        kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
        with np.errstate(over="ignore"):
            array = np.asarray([value]).astype(kind)
        return self.op("ConstantOfShape", self.vector(sizes), value=array)

    def where(self, condition: gs.Tensor, yes: gs.Tensor, no: gs.Tensor) -> gs.Tensor:
        """One or the other, of dtypes for which onnxruntime has a `Where`."""
        dtype = self.dtype(yes)
        if dtype == TYPE.BOOL:
            first = self.op("And", condition, yes)
            second = self.op("And", self.op("Not", condition), no)
            return self.op("Or", first, second)
        if dtype in (TYPE.FLOAT16, TYPE.BFLOAT16) or dtype in NARROW:
            wide = TYPE.FLOAT if dtype in FLOATS else TYPE.INT32
            chosen = self.op("Where", condition, self.cast(yes, wide), self.cast(no, wide))
            return self.cast(chosen, dtype)
        return self.op("Where", condition, yes, no)

    def count(self, length: Size | int) -> gs.Tensor:
        """0, 1, ... length - 1 in int64."""
        if isinstance(length, int):
            return self.draft.constant(np.arange(max(length, 0), dtype=np.int64), "count")
        if self.opset >= 11:
            end = self.op("Reshape", length.tensor, self.ints([], "scalar"))
            return self.op("Range", self.number(0, TYPE.INT64), end, self.number(1, TYPE.INT64))
        ones = self.op("ConstantOfShape", length.tensor, value=np.asarray([1], np.int64))
        return self.flat(self.op("NonZero", ones))

    # ------------------------------------------------------------------ arithmetic on sizes

    def _both(
        self, op: str, a: Size | int, b: Size | int, known: Callable[[Any, Any], Any]
    ) -> Size | int:
        left = a if isinstance(a, int) else a.dim
        right = b if isinstance(b, int) else b.dim
        dim = None if left is None or right is None else known(left, right)
        if isinstance(dim, int):
            return dim
        return Size(dim, lambda: self.op(op, self.vector([a]), self.vector([b])))

    def add(self, a: Size | int, b: Size | int) -> Size | int:
        """a + b."""
        return self._both("Add", a, b, lambda p, q: p + q)

    def sub(self, a: Size | int, b: Size | int) -> Size | int:
        """a - b."""
        return self._both("Sub", a, b, lambda p, q: p - q)

    def mul(self, a: Size | int, b: Size | int) -> Size | int:
        """a * b."""
        return self._both("Mul", a, b, lambda p, q: p * q)

    def div(self, a: Size | int, b: Size | int) -> Size | int:
        """a // b, of numbers that are not negative."""
        return self._both("Div", a, b, lambda p, q: p // q)

    def product(self, sizes: Sequence[Size | int]) -> Size | int:
        """All multiplied; 1 for none."""
        total: Size | int = 1
        for size in sizes:
            total = self.mul(total, size)
        return total

    # ------------------------------------------------------------------ dtypes

    def wanted_dtype(self, default: int, name: str = "dtype") -> int:
        """The ONNX dtype that a ScalarType argument asks for."""
        number = self.value(name)
        if number is None:
            return default
        if int(number) not in SCALAR_TYPES:
            raise Refused(f"ONNX has no dtype for PyTorch's ScalarType {number}")
        return SCALAR_TYPES[int(number)]

    def promoted(self, tensors: Sequence[gs.Tensor]) -> list[gs.Tensor]:
        """All in one dtype, by PyTorch's promotion; as they are where a dtype is not known."""
        kinds = {self.facts.of(t).dtype for t in tensors}
        if len(kinds) <= 1 or 0 in kinds:
            return list(tensors)
        return [self.cast(t, promote(kinds)) for t in tensors]


def promote(kinds: set[int]) -> int:
    """The dtype that PyTorch computes in, of tensors that are no scalars."""
    floats = [k for k in kinds if k in FLOATS]
    if floats:
        if TYPE.DOUBLE in floats:
            return int(TYPE.DOUBLE)
        return int(floats[0] if len(set(floats)) == 1 else TYPE.FLOAT)
    order: list[int] = [TYPE.BOOL, TYPE.UINT8, TYPE.INT8, TYPE.INT16, TYPE.INT32, TYPE.INT64]
    if any(k not in order for k in kinds):
        raise Refused("its operands have dtypes that PyTorch does not mix")
    top = max(kinds, key=order.index)
    if top == TYPE.INT8 and TYPE.UINT8 in kinds:
        return int(TYPE.INT16)
    return int(top)


def _inferred(shape: Sequence[Dim], wanted: Sequence[Dim | None]) -> list[int] | None:
    """A constant target with at most one length left to the runtime, and copies where provable."""
    target: list[int] = []
    left = -1 not in wanted
    for axis, dim in enumerate(wanted):
        if isinstance(dim, int) and dim != 0:
            target.append(dim)
        elif dim is not None and axis < len(shape) and dims.equal(shape[axis], dim) is True:
            target.append(0)
        elif left:
            target.append(-1)
            left = False
        else:
            return None
    return target
