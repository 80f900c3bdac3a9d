"""Computes what depends on constants alone: moves by numpy, arithmetic by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.chance import RANDOM
from surgeon.errors import ForeignError
from surgeon.external import bytes_outside
from surgeon.facts import Facts
from surgeon.facts.fact import Array, Fact
from surgeon.facts.values import MOVES, evaluate
from surgeon.isolation import open_session
from surgeon.links import named_inputs
from surgeon.runtime import NotRunnable, RunFailed
from surgeon.standard import STANDARD

DEFAULT_LIMIT = 1 << 20  # bytes: a larger result stays computed, unless its operands are larger
_TOGETHER = 16 * DEFAULT_LIMIT  # so much may be added by larger results, less what they replace,
_REPEATING = frozenset(  # but not by operators whose result says no more than their operands
    "Expand Tile ConstantOfShape Range EyeLike OneHot Pad Concat Gather Resize Upsample".split()
)
# Bytes from which on what such an operator adds is counted: as much as the file, and the default
# limit, may come of it. Networks without their weights make each by such a node.
_SMALL = 1 << 8
_CHOOSE = frozenset({"NonZero", "Compress", "Unique"})  # as many elements as the data say
# Weights in few bits and what widens them belong together: runtimes find them so.
_QUANTIZED = frozenset({"QuantizeLinear", "DequantizeLinear"})
_WIDENED = 1024  # elements from which on a Cast of theirs is left to the run
_FEW_BITS = frozenset(
    {onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.INT4, onnx.TensorProto.UINT4}
)
_FLOATS = frozenset({onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16})
_PRODUCTS = frozenset({"Gemm", "MatMul", "Conv"})  # all of them together up to the file's size
# Bytes of a model from which on no weight in external data is folded: what is made of it stands in
# the protobuf, which ends at 2 GiB, and in memory.
_STAYS_OUTSIDE = 1 << 30
_GROWTH = 4  # how much larger than the whole file one of these may be
_OF_BOUNDS = frozenset({"Cast", "Clip"})  # what may say how many bits levels have


class Folder:
    """Folds nodes of one model.

    Args:
        facts: Asked for values.
        limit: Largest result in bytes; None folds only what facts already know.
        failures: Takes where onnxruntime crashed, hung or ran out of memory.
    """

    def __init__(self, facts: Facts, limit: int | None, failures: list[str]) -> None:
        self.facts, self.limit, self.failures = facts, limit, failures
        self._size: int | None = None
        self._large = 0  # bytes of products above the limit
        self._left = _TOGETHER if limit == DEFAULT_LIMIT else 0  # where a recipe names none
        self._repeated = 0  # bytes of those whose result says no more than their operands

    def fold(self, node: gs.Node) -> Sequence[Array | None] | None:
        """The outputs of a node that depends on constants alone; None for any other.

        An output of unknown size that nothing reads is None.
        """
        if node.op in _OF_BOUNDS and _bounds_levels(node):
            return None
        if node.outputs and _known(self.facts.of(node.outputs[0])) is not None:
            known = [_known(self.facts.of(t)) for t in node.outputs]
            if all(value is not None for value in known):
                return known
        for tensor in node.inputs:
            if not tensor.name or isinstance(tensor, gs.Constant):
                continue
            if self.facts.of(tensor).concrete is None:  # what is an output may be known, and stays
                return None
        if self.limit is None or not node.inputs or not self._allowed(node):
            return None
        overridable = self.facts.model.overridable
        if any(t.name in overridable for t in node.inputs):
            return None
        if not self._fits(node):
            return None
        arrays = [None if t.is_empty() else self.facts.array(t) for t in node.inputs]
        if node.op in MOVES:
            result = evaluate(node.op, arrays, node.attrs)
            if result is not None and all(a.dtype != object for a in result):
                return [np.asarray(a) for a in result]
        return self._run(node, arrays)

    def _allowed(self, node: gs.Node) -> bool:
        return (
            (node.domain or "") in STANDARD
            and node.op not in RANDOM
            and node.op not in _QUANTIZED
            and not (node.op == "Cast" and self._widens(node))
            and node.origin is not None
            and not any(
                isinstance(v, (gs.Graph, gs.Node.AttributeRef)) for v in node.attrs.values()
            )
        )

    def _widens(self, node: gs.Node) -> bool:
        """Whether a Cast makes floats of weights in few bits, or places in a table of theirs."""
        read, made = self.facts.of(node.inputs[0]), self.facts.of(node.outputs[0])
        many = (self._size_of(node.inputs[0]) or 0) > _WIDENED
        if not many or read.dtype not in _FEW_BITS:
            return False
        readers = node.outputs[0].outputs
        looked_up = all(r.op == "Gather" and node.outputs[0] is r.inputs[1] for r in readers)
        return made.dtype in _FLOATS or (bool(readers) and looked_up)

    def _fits(self, node: gs.Node) -> bool:
        """Whether every output's size is known and small enough, before anything is computed."""
        assert self.limit is not None
        out = 0
        for tensor in node.outputs:
            fact = self.facts.of(tensor)
            size = self._size_of(tensor)
            if size is None and node.op in _CHOOSE:
                size = self._most(node)
            if size is not None and fact.dtype:
                out += size * _itemsize(fact.dtype)
            elif tensor.outputs or len(node.outputs) == 1:
                return False
        if out <= self.limit:
            return self.limit != DEFAULT_LIMIT or self._counted(node, out)
        if node.op in _PRODUCTS and self._large + out <= self._model_size():
            self._large += out  # a step on the way, most likely, to something small
            return True
        operands = {id(t): t for t in node.inputs if not t.is_empty()}.values()
        outside = any(map(self.facts.model.bytes_outside, operands))
        if outside and self._model_size() > _STAYS_OUTSIDE:
            return False
        into = sum(map(self._bytes_of, operands))
        # as large as its operands, but not by operands that were themselves made large
        if out <= min(into, _GROWTH * self._model_size()):
            return True
        added = out - sum(self._bytes_of(t) for t in operands if all(n is node for n in t.outputs))
        if added > self._left or node.op in _REPEATING:
            return False
        self._left -= added
        return True

    def _counted(self, node: gs.Node, out: int) -> bool:
        """Whether what repeats its operands may add this much to the file, which is counted."""
        if node.op not in _REPEATING or out <= _SMALL:
            return True
        if self._repeated + out > DEFAULT_LIMIT + self._model_size():
            return False
        self._repeated += out
        return True

    def _bytes_of(self, tensor: gs.Tensor) -> int:
        return (self._size_of(tensor) or 0) * _itemsize(self.facts.of(tensor).dtype)

    def _size_of(self, tensor: gs.Tensor) -> int | None:
        """How many elements a value has, where that is a number."""
        shape = self.facts.of(tensor).shape
        size = None if shape is None else dims.product(shape)
        return size if isinstance(size, int) else None

    def _most(self, node: gs.Node) -> int | None:
        """How many elements each output of a node that chooses among its input's has at most."""
        size, rank = self._size_of(node.inputs[0]), self.facts.of(node.inputs[0]).rank
        return None if size is None or rank is None else size * max(rank, 1)

    def _model_size(self) -> int:
        """Bytes of the model as it came, with its external data."""
        if self._size is None:
            proto = self.facts.model.proto
            self._size = proto.ByteSize() + bytes_outside(proto)
        return self._size

    def _run(self, node: gs.Node, arrays: Sequence[Array | None]) -> list[Array | None] | None:
        """onnxruntime's own kernel, on a model of this node alone."""
        proto = onnx.NodeProto()
        proto.CopyFrom(node.origin)
        graph = onnx.GraphProto(name="fold")
        done: set[str] = set()
        for index, tensor in enumerate(named_inputs(node)):
            if tensor.is_empty():
                continue
            name = proto.input[index] = f"i{index}"
            array = self.facts.array(tensor)
            if array is None:
                return None
            if name not in done:
                graph.initializer.append(onnx.numpy_helper.from_array(array, name))
                done.add(name)
        names = []
        for index, tensor in enumerate(node.outputs):
            names.append("")
            if proto.output[index]:
                proto.output[index] = f"o{index}"
                if not self.facts.of(tensor).dtype:
                    continue
                names[-1] = f"o{index}"
                graph.output.append(
                    onnx.helper.make_tensor_value_info(
                        f"o{index}", self.facts.of(tensor).dtype, None
                    )
                )
        graph.node.append(proto)
        model = onnx.helper.make_model(
            graph,
            opset_imports=[onnx.helper.make_opsetid("", self.facts.opset)],
            ir_version=min(max(self.facts.model.proto.ir_version, 4), 10),
        )
        try:
            found = open_session(model).run({})
        except (NotRunnable, RunFailed):
            return None
        except ForeignError as error:
            self.failures.append(f"a constant {node.op} stays computed: {error.what[:500]}")
            return None
        return [found.get(name) for name in names]


def _bounds_levels(node: gs.Node) -> bool:
    """Whether it is a Clip in front of a DequantizeLinear, or a Cast between the two.

    Its bounds alone say of how many bits levels in a wider type are.
    """
    made = node
    while made.op == "Cast" and made.inputs and made.inputs[0].inputs:
        made = made.inputs[0].inputs[0]
    return made.op == "Clip" and any(map(_is_of_levels, node.outputs))


def _is_of_levels(tensor: gs.Tensor) -> bool:
    return any(
        (node.op == "DequantizeLinear" and node.inputs[0] is tensor)
        or (node.op == "Cast" and any(map(_is_of_levels, node.outputs)))
        for node in tensor.outputs
    )


def _known(fact: Fact) -> Array | None:
    """The values where each is known as a number, also where there is none."""
    if (value := fact.concrete) is not None or not fact.shape:
        return value
    if not fact.dtype or fact.dtype == onnx.TensorProto.STRING:
        return None
    sizes = [d for d in fact.shape if isinstance(d, int)]
    if 0 not in sizes or fact.rank != len(sizes) or min(sizes) < 0:
        return None
    try:
        return np.zeros(sizes, onnx.helper.tensor_dtype_to_np_dtype(fact.dtype))
    except ValueError:  # the other sizes are more than numpy counts
        return None


def _itemsize(dtype: int) -> int:
    try:
        return int(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(dtype)).itemsize)
    except (KeyError, TypeError):
        return 8
