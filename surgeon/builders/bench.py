"""Where standard nodes are made: facts asked for, small nodes in one call, sizes known later.

Nothing here knows the operator that is lowered; ATen's families and the builders of single
operators stand on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.unknown import NotKnown
from surgeon.builders.views import view_between
from surgeon.dims import Dim
from surgeon.facts.fact import INTEGERS, Array
from surgeon.facts.kinds import FLOATS
from surgeon.match import producer_of
from surgeon.rewrite import Draft, Refused

TYPE = onnx.TensorProto
LARGEST = int(np.iinfo(np.int64).max)
NARROW = frozenset({TYPE.INT8, TYPE.INT16, TYPE.UINT8, TYPE.UINT16, TYPE.BOOL})
_SLICE_KEEPS_NAMES = 10  # the opset whose Slice is inferred wrongly: see `nameless`


def nameless(draft: Draft, x: gs.Tensor, axes: Sequence[int]) -> gs.Tensor:
    """What a Slice of opset 10 may cut along these axes, between constant bounds.

    onnx infers of that Slice that a dimension with a name is as long as before, and onnxruntime
    then puts values of other sizes into one buffer. A Reshape takes the names away.
    """
    shape = draft.facts.of(x).shape
    if draft.facts.opset != _SLICE_KEEPS_NAMES or shape is None:
        return x
    named = [str(shape[axis]) in dims.symbols(shape[axis]) for axis in axes]
    maker = producer_of(x)
    if not any(named) or (maker is not None and maker.op == "Reshape"):
        return x
    made: gs.Tensor = draft.op("Reshape", x, draft.op("Shape", x))
    return made


def operand(node: gs.Node, index: int) -> gs.Tensor | None:
    """An operand by its place; None where it is left out."""
    if index >= len(node.inputs) or node.inputs[index].is_empty():
        return None
    tensor: gs.Tensor = node.inputs[index]
    return tensor


def whole_number(node: gs.Node, key: str) -> int:
    """An attribute that has to be there.

    Raises:
        Refused: It is not, or is no whole number.
    """
    value = node.attrs.get(key)
    if not isinstance(value, int):
        raise Refused(f"it has no `{key}`")
    return value


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


def dim_of(size: Size | int) -> Dim | None:
    """What is proven of a size; None for nothing."""
    return size if isinstance(size, int) else size.dim


def same_length(a: Size | int, b: Size | int) -> bool:
    """Whether two sizes are proven to be the same."""
    first, second = dim_of(a), dim_of(b)
    return first is not None and second is not None and dims.equal(first, second) is True


class Bench:
    """A draft to add nodes to, and what is known of the values that are there.

    Attributes:
        draft: Where the nodes go.
        facts: What is known.
        opset: The model's.
    """

    def __init__(self, draft: Draft) -> None:
        self.draft, self.facts = draft, draft.facts
        self.opset = draft.facts.opset

    # ------------------------------------------------------------------ what is known

    def rank(self, x: gs.Tensor) -> int:
        """The rank, which must be known."""
        rank = self.facts.of(x).rank
        if rank is None:
            raise NotKnown(x, "rank")
        return rank

    def dtype(self, x: gs.Tensor) -> int:
        """The ONNX number of the element type, which must be known."""
        dtype = self.facts.of(x).dtype
        if not dtype:
            raise NotKnown(x, "dtype")
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

    def ints_of(self, values: Array, ending: str = "indices") -> gs.Tensor:
        """An int64 constant of any shape."""
        return self.draft.constant(np.asarray(values).astype(np.int64), ending)

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

    def through(self, x: gs.Tensor, dtype: int) -> gs.Tensor:
        """Rounded to another dtype and in its own again: what computes in that one would have."""
        return self.cast(self.cast(x, dtype), self.dtype(x))

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

    def column(self, x: gs.Tensor, rank: int = 2) -> gs.Tensor:
        """Its elements along the first axis, and axes of 1 behind.

        OpenCV 4 holds what has one axis as two, and puts further ones behind those: only a Reshape
        says how many there are.
        """
        if rank == 1:
            return self.flat(x)
        return self.op("Reshape", x, self.ints([-1, *[1] * (rank - 1)], "column"))

    def concat(self, parts: Sequence[gs.Tensor], axis: int) -> gs.Tensor:
        """Joined along an axis."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)

    def slice(
        self,
        x: gs.Tensor,
        axis: int,
        start: Size | int,
        end: Size | int,
        step: Size | int = 1,
    ) -> gs.Tensor:
        """Part of an axis, with the bounds as ONNX has them."""
        if isinstance(start, int) and isinstance(end, int):
            x = nameless(self.draft, x, [axis])
        bounds = [self.vector([start], "starts"), self.vector([end], "ends")]
        axes = self.ints([axis], "axes")
        if step == 1:
            return self.op("Slice", x, *bounds, axes)
        return self.op("Slice", x, *bounds, axes, self.vector([step], "steps"))

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

    def vector(self, sizes: Sequence[Size | int], ending: str = "sizes") -> gs.Tensor:
        """An int64 tensor of rank 1."""
        plain = list(map(dim_of, sizes))
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
        plain = list(map(dim_of, wanted))
        if shape is not None and None not in plain and -1 not in plain:
            known: list[Dim] = [d for d in plain if d is not None]
            if len(known) == len(shape) and all(
                dims.equal(a, b) is True for a, b in zip(shape, known, strict=True)
            ):
                return x
            if (between := view_between(tuple(shape), tuple(known))) is not None:
                return between.draw(self.draft, x)
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

    def is_nought(self, x: gs.Tensor) -> gs.Tensor:
        """Where floats are 0, NaN is not.

        Runtimes hold a Cast to booleans as the number itself, and then its negation is wrong.
        """
        if self.opset < 11:  # before, Equal takes no floats
            made: gs.Tensor = self.op("Not", self.cast(x, TYPE.BOOL))
        else:
            made = self.op("Equal", x, self.number(0, self.dtype(x)))
        return made

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
        left, right = dim_of(a), dim_of(b)
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


def _inferred(shape: Sequence[Dim], wanted: Sequence[Dim | None]) -> list[int] | None:
    """A constant target with at most one length left to the runtime, and copies where provable.

    A length that is left where the caller leaves none is told by the others (`dims.infers`).
    """
    target: list[int] = []
    known = [dim for dim in wanted if dim is not None]
    left = -1 not in wanted and len(known) == len(wanted)
    for axis, dim in enumerate(wanted):
        if isinstance(dim, int) and dim != 0:
            target.append(dim)
        elif dim is not None and axis < len(shape) and dims.equal(shape[axis], dim) is True:
            target.append(0)
        elif left and dims.infers(shape, known, axis):
            target.append(-1)
            left = False
        else:
            return None
    return target
