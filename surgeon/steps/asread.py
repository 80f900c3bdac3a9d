"""Takes what is only cast, or only turned, at the ends of a model out of it: its caller does it.

An input that is cast before anything computes with it is given in that type, and one that is
turned, from rows of pixels to planes of channels say, in that order; outputs are given in the order
that they were computed in. What was taken out is kept, and put back where the result is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

import onnx

from surgeon.errors import SurgeonError
from surgeon.nested import every_body, every_node
from surgeon.steps.ends import FRACTIONS, Ends, Typed, rename

STEP = "as-read"
WHY = "What stands at an end of the network and computes nothing is the caller's."
CONTRACT = "changes the interface: {what}"
COMPARED = "for the comparison with the original the interface was put back"
_TYPE = onnx.TensorProto
_ALONE_READS = "before anything else reads it, and by a node that alone does"
_NO_CAST_BEHIND = (
    "no output is cast from what it could be given in, and by a node that alone does; a Cast in a "
    "recipe's `behind` gives another type"
)
_Done = Callable[[onnx.ValueInfoProto], onnx.NodeProto | None]


@dataclass
class Layer:
    """What one step left to the caller.

    Attributes:
        inputs: Of inputs, what the file said of each, and the node in front of it.
        outputs: The same of outputs, and the node behind.
        names: What ends are called now, and what they were called.
        gone: Inputs that are there no longer, and the places they had.
        constants: Those of them that have a value in the file.
        inside: Whether casts came in, where others were taken out.
    """

    inputs: dict[str, tuple[onnx.ValueInfoProto, onnx.NodeProto]] = field(default_factory=dict)
    outputs: dict[str, tuple[onnx.ValueInfoProto, onnx.NodeProto]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    gone: list[tuple[int, onnx.ValueInfoProto]] = field(default_factory=list)
    constants: tuple[str, ...] = ()
    inside: bool = False

    def told(self) -> str:
        """What changed, in words."""
        said = [
            f"{kind} `{name}` " + (_widened(original) if self.inside else _without(node))
            for kind, ends in (("input", self.inputs), ("output", self.outputs))
            for name, (original, node) in ends.items()
        ]
        said += [f"`{old}` is called `{new}`" for new, old in self.names.items()]
        said += [f"`{value.name}`, which nothing reads, is no input" for _, value in self.gone]
        said += [f"`{name}` is a constant and no input" for name in self.constants]
        return ", ".join(said[:6]) + f" and {len(said) - 6} more" * (len(said) > 6)

    @property
    def exact(self) -> str:
        """How exact the model is with it put back: `bit`, or `rounding`.

        onnxruntime computes halves in float32 and rounds them behind each node, but not in front
        of a Cast to float32: where such a Cast came in, or stands elsewhere, that differs.
        """
        casts = [node for _, node in self.outputs.values() if node.op_type == "Cast"]
        floats = any(node.attribute[0].i in FRACTIONS for node in casts)
        return "rounding" if self.inside or floats else "bit"

    def put_back(self, graph: onnx.GraphProto, place: int) -> None:
        """The interface as it was before the step, in a graph of one's own.

        Args:
            graph: Is changed.
            place: Of this layer among all.
        """
        for new, old in self.names.items():
            rename(graph, new, f"{old}/was")  # two may have changed names
        for old in self.names.values():
            rename(graph, f"{old}/was", old)
        if self.gone:
            inputs = list(graph.input)
            for at, value in self.gone:
                inputs.insert(at, value)
            del graph.input[:]
            graph.input.extend(inputs)
        before: list[onnx.NodeProto] = []
        for value in (*graph.input, *graph.output, *graph.initializer):
            value.name = self.names.get(value.name, value.name)
        for value in graph.input:
            if value.name in self.inputs:
                original, node = self.inputs[value.name]
                if self.inside and _undone(graph, original):
                    value.CopyFrom(original)
                    continue
                inner = f"{value.name}/as-read/{place}"
                rename(graph, value.name, inner)
                before.append(_between(node, value.name, inner))
                value.CopyFrom(original)
        done: set[str] = set()
        for value in graph.output:
            if value.name in self.outputs:
                original, node = self.outputs[value.name]
                inner = f"{value.name}/as-made/{place}"
                if value.name not in done:  # a file may give it twice
                    rename(graph, value.name, inner)
                    graph.node.append(_between(node, inner, value.name))
                done.add(value.name)
                value.CopyFrom(original)
        kept = list(graph.node)
        del graph.node[:], graph.value_info[:]
        graph.node.extend([*before, *kept])


@dataclass
class Handed:
    """What the caller does since, step by step."""

    layers: list[Layer] = field(default_factory=list)

    def put_back(self, proto: onnx.ModelProto) -> onnx.ModelProto:
        """The model with the interface of the original."""
        if not self.layers:
            return proto
        whole = onnx.ModelProto()
        whole.CopyFrom(proto)
        for place, layer in reversed([*enumerate(self.layers)]):
            layer.put_back(whole.graph, place)
        return whole


def as_read(
    proto: onnx.ModelProto,
    what: str,
    handed: Handed,
    fixed: Collection[str] = (),
    typed: Typed = lambda _: 0,
) -> onnx.ModelProto:
    """The model without casts of inputs or of outputs, or without Transposes at its ends.

    Args:
        proto: A model without functions around its ends.
        what: `types`, `output-types` or `order`; or `halves`, which are given as float32, with a
            Cast inside.
        handed: Is given what was taken out, or came in.
        fixed: Inputs of which somebody told the shape, which is that of the file.
        typed: Says of a value what element type it has.

    Raises:
        SurgeonError: There is nothing of the kind.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    ends, layer = Ends(changed), Layer(inside=what == "halves")
    steps: dict[str, tuple[_Done, _Done, str]] = {
        "types": (ends.cast_of, _stays, f"no input is cast {_ALONE_READS}"),
        "output-types": (_stays, partial(ends.cast_behind, typed=typed), _NO_CAST_BEHIND),
        "order": (ends.turn_of, ends.turn_behind, f"no input is turned {_ALONE_READS}"),
        "halves": (ends.widen_input, ends.widen_output, "no input or output is of halves"),
    }
    at_input, at_output, none = steps[what]
    for value in changed.graph.input:
        if value.name in ends.defaults or (what == "order" and value.name in fixed):
            continue
        _do(at_input, value, layer.inputs)
    given: dict[str, onnx.ValueInfoProto] = {}
    for value in changed.graph.output:
        if value.name in given:  # the file gives it twice
            value.CopyFrom(given[value.name])
            continue
        _do(at_output, value, layer.outputs)
        given[value.name] = value
    if not layer.inputs and not layer.outputs:
        mend = "Put `clean` in front, or leave the step out."
        raise SurgeonError(none, where=f"{STEP}: {what}", mend=mend)
    handed.layers.append(layer)
    return changed


def _do(
    done: _Done,
    value: onnx.ValueInfoProto,
    ends: dict[str, tuple[onnx.ValueInfoProto, onnx.NodeProto]],
) -> None:
    """Do it at one end, and note what it was."""
    original = onnx.ValueInfoProto()
    original.CopyFrom(value)
    made = done(value)
    if made is not None:
        ends[value.name] = (original, made)


def _stays(_: onnx.ValueInfoProto) -> None:
    """What is done to the ends that a step is not about."""


def could_be_left(proto: onnx.ModelProto) -> dict[str, tuple[str, ...]]:
    """Which inputs' and outputs' Casts or Transposes could be left to the caller.

    Gives names by the kind of step, as far as the file itself says the types of its values.
    """
    ends = Ends(proto)
    given = [value for value in proto.graph.input if value.name not in ends.defaults]
    said = {value.name: value.type.tensor_type.elem_type for value in proto.graph.value_info}
    return {
        "types": tuple(v.name for v in given if ends.casts(v)),
        "order": tuple(v.name for v in given if ends.turns(v)),
        "output-types": tuple(
            v.name for v in proto.graph.output if ends.casts_behind(v, lambda n: said.get(n, 0))
        ),
    }


def _without(node: onnx.NodeProto) -> str:
    """What was taken out, with what it does."""
    if node.op_type == "Cast":
        return f"is without its Cast to {_TYPE.DataType.Name(node.attribute[0].i).lower()}"
    return f"is without its Transpose by {list(node.attribute[0].ints)}"


def _widened(value: onnx.ValueInfoProto) -> str:
    """What came in, by what the end was."""
    was = _TYPE.DataType.Name(value.type.tensor_type.elem_type).lower()
    return f"is float, no longer {was}"


def _undone(graph: onnx.GraphProto, value: onnx.ValueInfoProto) -> bool:
    """Take the Cast that came in behind an input out again, where it alone reads it.

    Between two Casts onnxruntime 1.31 loses a value that a body reads.
    """
    name, wanted = value.name, value.type.tensor_type.elem_type
    readers = [node for node in every_node(graph.node) if name in node.input]
    casts = [n for n in graph.node if n.op_type == "Cast" and name in n.input]
    given = {each.name for each in graph.output}
    seen = given | {each.name for body in every_body(graph.node) for each in body.output}
    if len(readers) != 1 or len(casts) != 1 or name in seen:
        return False
    (cast,) = casts
    if cast.attribute[0].i != wanted or cast.output[0] in given:
        return False
    made = cast.output[0]
    graph.node.remove(cast)
    rename(graph, made, name)
    return True


def _between(node: onnx.NodeProto, first: str, last: str) -> onnx.NodeProto:
    """A copy of a node that reads one value and makes the other."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[0], copy.output[0] = first, last
    return copy
