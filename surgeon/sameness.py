"""What a node computes, said so that nodes that compute the same say the same.

However they are spelled: operands that may change places in either order, axes from the front or
from behind, attributes that say what is meant without them. Only what is the same bit for bit (but
for which NaN it is) is said alike: never the order of a Sub, nor that of floats in a Max.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import is_, itemgetter
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon import dialect, opsets, standard
from surgeon.alike import Key, attributes_of, spelled
from surgeon.chance import RANDOM
from surgeon.facts import Facts
from surgeon.facts.elementwise import REDUCTIONS
from surgeon.facts.fact import INTEGERS, Array
from surgeon.links import current

_DOMAINS = frozenset({None, "", "ai.onnx", dialect.ATEN})
_MOST_VALUES = 200  # of the bodies of a node: what is larger is equal to nothing
_MOST_DEEP = 8  # bodies in bodies
_MOST_ELEMENTS = 1024  # of a tensor that is looked at one by one
_LOOKED_AT = 64  # elements of a larger one, before all are
# An attribute `axis` of theirs counts along input 0; OneHot's along a rank that is one more.
_WITH_AXIS: Mapping[str, int] = {
    **dict.fromkeys(
        "ArgMax ArgMin Compress Concat DequantizeLinear Flatten Gather GatherElements Hardmax "
        "LayerNormalization LogSoftmax LpNormalization QuantizeLinear RMSNormalization "
        "ScatterElements Softmax Split SplitToSequence TopK Unique".split(),
        0,
    ),
    "OneHot": 1,
    "Transpose": 0,
}

Inside = dict[int, int]  # values of bodies by their identity: the how many-th each is
Inputs = Any  # a tuple, or a set where any order is the same


class Large:
    """The values of a large constant: equal to those that are the same to the bit.

    They are read where all else of two nodes is the same, and to their end where they begin alike.
    """

    def __init__(self, facts: Facts, constant: gs.Constant, kind: tuple[Any, ...]) -> None:
        self.facts, self.constant, self.kind = facts, constant, kind
        self._begin: bytes | None = None

    def __hash__(self) -> int:
        return hash(self.kind)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Large) or self.kind != other.kind:
            return False
        if self.constant is other.constant:
            return True
        return self.begin == other.begin and self._bytes() == other._bytes()

    @property
    def begin(self) -> bytes:
        """The first elements."""
        if self._begin is None:
            self._begin = self._bytes(_LOOKED_AT)
        return self._begin

    def _bytes(self, count: int | None = None) -> bytes:
        array = self.facts.array(self.constant, decides=False)
        if array is None or array.dtype.kind == "O":  # texts: each is equal to itself alone
            return str(id(self.constant)).encode()
        return array.reshape(-1)[:count].tobytes()


class Sameness:
    """Says what nodes compute.

    Args:
        facts: Asked for ranks, lengths and small values.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._large: dict[int, Large] = {}
        self._forms: dict[tuple[Any, ...], Key] = {}
        self._meant: dict[str, Key] = {}

    def of(self, node: gs.Node, inside: Inside | None = None, deep: int = 0) -> Any:
        """What makes two nodes equal, to compare; None for those that are never merged.

        Args:
            node: In normal form, its inputs' facts filled.
            inside: In a body that is compared, its values so far and those of bodies around it.
            deep: How many such bodies are around it.
        """
        op, domain = node.op, node.domain
        if op in RANDOM or domain not in _DOMAINS:
            return None
        attributes: Any = attributes_of(node)
        inputs: Inputs
        if inside is None:
            inputs = tuple(map(self._identity, node.inputs))
        else:
            inputs = tuple([self._place(t, inside) for t in node.inputs])
        if attributes is None:
            if inside is None and op == "Constant":  # one that is still there gives an output
                return None
            attributes = self._with_more(node, {} if inside is None else inside, deep + 1)
            if attributes is None:
                return None
        elif domain == dialect.ATEN:
            return (domain, op, len(node.outputs), inputs, attributes)
        elif attributes or op in _WITH_AXIS:
            attributes = self._form(node, op, attributes)
        if inputs and inputs[-1] is None:
            inputs = _trimmed(inputs)
        reorder = _OPERANDS.get(op)
        if reorder is not None and inputs:  # a broken file may give it none
            inputs = reorder(self.facts, node, inputs)
        return (op, len(node.outputs), inputs, attributes)

    def holds(self, key: Any, found: gs.Node, node: gs.Node) -> bool:
        """Whether a node that was found by what another computes is still equal to it.

        What it, or its bodies, read then may have become something else, and another value have
        got its place in memory.
        """
        reads, others = node.inputs, found.inputs
        unmoved = len(reads) == len(others) and all(map(is_, reads, others))
        if unmoved and attributes_of(node) is not None:
            return True
        return bool(self.of(found) == key)

    def _identity(self, tensor: gs.Tensor) -> Any:
        fields = tensor.__dict__
        if not fields["name"]:
            return None
        fact = fields.get("fact") or self.facts.of(tensor)
        value = fact.value
        if value is None and isinstance(tensor, gs.Constant):
            # what is not of this file may be missing, and is not read to compare it
            if self.facts.model.bytes_outside(tensor):
                return id(tensor)
            if math.prod(tensor.shape) > _MOST_ELEMENTS:
                return self._large_one(tensor, (fact.dtype, fact.shape))
            value = self.facts.array(tensor, decides=False)
        if value is not None and value.dtype.kind in "iubf":
            return _said(value)
        return id(tensor)

    def _large_one(self, constant: gs.Constant, kind: tuple[Any, ...]) -> Large:
        known = self._large.get(id(constant))
        if known is None or known.constant is not constant or known.kind != kind:
            known = self._large[id(constant)] = Large(self.facts, constant, kind)
        return known

    def _place(self, tensor: gs.Tensor, inside: Inside) -> Any:
        """Which value of the bodies a tensor is; of one from around them, its identity."""
        place = inside.get(id(tensor))
        return self._identity(tensor) if place is None else ("inside", place)

    def _form(self, node: gs.Node, op: str, attributes: Key) -> Key:
        """Attributes without those that say what is meant anyway, axes from the front."""
        rank = None
        if op in _WITH_AXIS and node.inputs:
            rank = self.facts.of(node.inputs[0]).rank
        key = (op, attributes, rank)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._formed(op, attributes, rank)
        return form

    def _formed(self, op: str, attributes: Key, rank: int | None) -> Key:
        if op not in self._meant:
            self._meant[op] = self._defaults(op)
        defaults = self._meant[op]
        meant = {**{entry[0]: entry for entry in defaults}, **{e[0]: e for e in attributes}}
        kept = [entry for entry in attributes if entry not in defaults]
        if rank is None:
            return tuple(kept)
        name, kind, value = meant.get("axis", ("axis", None, None))
        if kind is int and op != "Transpose":
            around = rank + _WITH_AXIS[op]
            kept = [entry for entry in kept if entry[0] != "axis"]
            kept.append((name, kind, value + around if -around <= value < 0 else value))
        elif op == "Transpose" and "perm" not in meant:
            kept.append(("perm", list, tuple(range(rank)[::-1])))
        return tuple(kept)

    def _defaults(self, op: str) -> Key:
        """What attributes of a node in normal form mean where they are not given."""
        newest = op in opsets.CHANGED_MEANING  # older ones are of another domain in memory
        opset = standard.newest_opset() if newest else self.facts.opset
        return spelled(standard.defaults(op, opset)) or ()

    def _with_more(self, node: gs.Node, inside: Inside, deep: int) -> Any:
        """Attributes that hold bodies or tensors, by what these are; None where not said."""
        if node.domain == dialect.ATEN or deep > _MOST_DEEP:
            return None
        found: list[Any] = []
        for name in sorted(node.attrs):
            value = node.attrs[name]
            if isinstance(value, gs.Graph):
                said = self._body(value, inside, deep)
            elif isinstance(value, gs.Constant | np.ndarray):  # an array where a rule wrote it
                said = _small(value)
            else:
                said = spelled({name: value})
            if said is None:
                return None
            found.append((name, said))
        return tuple(found)

    def _body(self, body: gs.Graph, inside: Inside, deep: int) -> Any:
        for tensor in body.inputs:
            inside[id(tensor)] = len(inside)
        found = []
        for node in body.nodes:
            said = self.of(node, inside, deep)
            for tensor in node.outputs:
                inside[id(tensor)] = len(inside)
            if said is None or len(inside) > _MOST_VALUES:
                return None
            found.append(said)
        outputs = [self._place(current(tensor), inside) for tensor in body.outputs]
        return (len(body.inputs), tuple(found), tuple(outputs))


def _trimmed(inputs: Inputs) -> Inputs:
    """Operands without those left out at the end."""
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return inputs


def _small(constant: gs.Constant | Array) -> Any:
    """What a tensor holds that is an attribute; None for large ones, and text."""
    if math.prod(constant.shape) > _MOST_ELEMENTS:
        return None
    value = np.asarray(constant.values if isinstance(constant, gs.Constant) else constant)
    return _said(value) if value.dtype.kind in "iubf" else None


def _said(value: Array) -> Any:
    return (value.dtype, value.shape, value.tobytes())


def _any_order(_: Facts, __: gs.Node, inputs: Inputs) -> Inputs:
    """Two operands that may change places."""
    return frozenset(inputs) if len(inputs) == 2 else inputs


def _any_order_of_integers(facts: Facts, node: gs.Node, inputs: Inputs) -> Inputs:
    """Of floats, zeros of both signs and NaN may come out by their order."""
    return frozenset(inputs) if facts.of(node.inputs[0]).dtype in INTEGERS else inputs


def _axes(facts: Facts, node: gs.Node, inputs: Inputs) -> Inputs:
    """Axes as an input, in any order, from the front."""
    rank = facts.of(node.inputs[0]).rank
    if rank is None or len(inputs) > 2:
        return inputs
    if len(inputs) < 2:
        whole = node.op.startswith("Reduce") and not node.attrs.get("noop_with_empty_axes")
        return (*inputs, tuple(range(rank))) if whole else inputs
    axes = _numbers(inputs[1])
    if not axes:
        return inputs
    around = rank + len(axes) if node.op == "Unsqueeze" else rank
    return (inputs[0], _from_front(axes, around) or inputs[1])


@lru_cache(1024)
def _from_front(axes: tuple[int, ...], around: int) -> tuple[int, ...] | None:
    """Axes in their order, none twice; None where one is none."""
    found = {axis + around if axis < 0 else axis for axis in axes}
    if len(found) < len(axes) or min(found) < 0 or max(found) >= around:
        return None
    return tuple(sorted(found))


def _indices(facts: Facts, node: gs.Node, inputs: Inputs) -> Inputs:
    """Indices of a Gather, from the front."""
    places = _numbers(inputs[1]) if len(inputs) == 2 else None
    if not places:
        return inputs
    if min(places) < 0:
        length = _length(facts, node, node.attrs.get("axis", 0))
        if length is None:
            return inputs
        places = tuple([place + length if place < 0 else place for place in places])
    return (inputs[0], inputs[1][1], places)


def _cuts(facts: Facts, node: gs.Node, inputs: Inputs) -> Inputs:
    """What a Slice takes: along which axes from where, every how many-th, up to where."""
    rank = facts.of(node.inputs[0]).rank
    starts = _numbers(inputs[1]) if len(inputs) > 2 else None
    if rank is None or not starts:
        return inputs
    count = len(starts)
    ends = _numbers(inputs[2])
    axes = tuple(range(count)) if inputs[3:4] in ((), (None,)) else _numbers(inputs[3])
    steps = _numbers(inputs[4]) if inputs[4:] else (1,) * count
    if not ends or not axes or not steps or not len(ends) == len(axes) == len(steps) == count:
        return inputs
    cuts: dict[int, object] = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        place = axis + rank if axis < 0 else axis
        if place in cuts or not 0 <= place < rank:
            return inputs
        length = _length(facts, node, place)
        if length is None or step <= 0:  # backwards, Python begins elsewhere
            cuts[place] = (start, end, step)
        else:
            cuts[place] = range(*slice(start, end, step).indices(length))
    return (inputs[0], tuple(sorted(cuts.items(), key=itemgetter(0))))


def _numbers(said: Any) -> tuple[int, ...] | None:
    """The integers of a short list, which is an input, where they are known."""
    return _read(said) if type(said) is tuple and len(said) == 3 else None


@lru_cache(1024)
def _read(said: tuple[np.dtype[Any], tuple[int, ...], bytes]) -> tuple[int, ...] | None:
    dtype, shape, elements = said
    if len(shape) > 1 or dtype.kind != "i" or len(elements) > _MOST_ELEMENTS * 8:
        return None
    return tuple(np.frombuffer(elements, dtype).tolist())


def _length(facts: Facts, node: gs.Node, axis: int) -> int | None:
    """How long input 0 is along an axis, where that is a number."""
    shape = facts.of(node.inputs[0]).shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    length = shape[axis]
    return length if isinstance(length, int) and length >= 0 else None  # none is of a broken file


_OPERANDS: Mapping[str, Callable[[Facts, gs.Node, Inputs], Inputs]] = {
    **dict.fromkeys(
        "Add Mul And Or Xor Equal Sum BitwiseAnd BitwiseOr BitwiseXor".split(), _any_order
    ),
    **dict.fromkeys(("Max", "Min"), _any_order_of_integers),
    **dict.fromkeys((*REDUCTIONS, "Squeeze", "Unsqueeze", "CumSum"), _axes),
    "Gather": _indices,
    "Slice": _cuts,
}
