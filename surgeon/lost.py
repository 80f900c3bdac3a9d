"""What an exporter lost on the way: files that do not say what their module did.

PyTorch before 1.5 writes `x[:, 1:3] = v` only where an index is a tensor. Of an assignment to a
slice nothing is left in the file, and what was assigned is read by nothing. Of 30 such exports with
an input that nothing reads, 28 do not compute what the module did; and none of those does in which
zeros are cut, viewed or given out, or a copy is, that nothing was written to: 7 of 7. Its
`weight_norm` divides by the norm over all axes, although it scales each channel by itself: 2 of 2.

Before 1.8 a Loop that fills a list is written and gives nothing that is read, and what reads the
list joins nothing: of 94 exports of scripts by 1.4 to 1.7 all that have either are lost.

What changes a list in place must give the changed list, in files of every release. A condition of
`while` that reads a size is written as what it was at export, by exporters that know the size.
"""

from __future__ import annotations

import math
from collections import ChainMap, Counter
from collections.abc import Iterator, MutableMapping

import onnx

from surgeon.model import Model
from surgeon.nested import bodies, standard_nodes
from surgeon.spelling import is_foreign, operator_name
from surgeon.standard import STANDARD

_ZEROS = frozenset(
    f"aten.{name}"
    for name in ("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty")
)
_CUTS = frozenset(
    {"Slice", "Gather", "Reshape", "Split"}
    | {f"aten.{name}" for name in ("narrow", "slice", "select", "view", "reshape", "split")}
)
_CHANGES = frozenset(
    f"aten.{name}"
    for name in (
        *("append", "insert", "extend", "pop", "popitem", "remove", "reverse", "sort", "clear"),
        *("Delete", "_set_item"),
    )
)
_MANY = 2**40  # turns, which take days
_COUNTS = (onnx.TensorProto.BOOL, onnx.TensorProto.INT64)

LOST = (
    "PyTorch before 1.5 leaves assignments to a slice (`x[:, 1:3] = v`) out of its files, mostly "
    "without a sign: compare with the module, or with what it recorded (`--reference FILE.npz`)"
)


def may_have_lost(model: Model) -> bool:
    """Whether PyTorch before 1.5 wrote the file, with nodes of its own: it may lack assignments."""
    return model.is_before(1, 5) and any(
        is_foreign(operator_name(node)) for graph in _graphs(model.proto) for node in graph.node
    )


def unread_inputs(model: Model) -> list[str]:
    """Inputs that nothing reads, of a file that PyTorch before 1.5 wrote; none of other files."""
    if not model.is_before(1, 5):
        return []
    proto = model.proto
    read = _read(proto)
    constants = {tensor.name for tensor in proto.graph.initializer}
    return [i.name for i in proto.graph.input if i.name not in read | constants]


def unwritten_values(model: Model) -> list[str]:
    """Zeros that are cut, viewed or an output, and copies that are an output, as they were made.

    Of a file that PyTorch before 1.5 wrote; none of other files. Who wants zeros does not cut them,
    and who copies a value means to write to it. The exporter cuts those that `nn.GRU` and its like
    of several layers begin with, if they are not given.
    """
    if not model.is_before(1, 5):
        return []
    found: list[str] = []
    for graph in _graphs(model.proto):
        outputs = {output.name for output in graph.output}
        begins = _states(graph)
        cut = {
            node.input[0]
            for node in graph.node
            if node.input and operator_name(node) in _CUTS and not begins.issuperset(node.output)
        }
        for node in graph.node:
            operator = operator_name(node)
            if operator == "aten.clone":
                suspects = outputs
            elif operator in _ZEROS or (operator == "ConstantOfShape" and _is_zero(node)):
                suspects = outputs | cut
            else:
                continue
            found += [name for name in node.output if name in suspects]
    return found


def _states(graph: onnx.GraphProto) -> set[str]:
    """What recurrent layers begin with, and no other node reads, nor the graph gives."""
    begins: set[str] = set()
    others = {output.name for output in graph.output}
    for node in graph.node:
        recurrent = node.op_type in ("RNN", "GRU", "LSTM") and not is_foreign(operator_name(node))
        begins.update(node.input[5:7] if recurrent else ())
        others.update([*node.input[:5], *node.input[7:]] if recurrent else node.input)
    return begins - others


def lost_lists(model: Model) -> list[str]:
    """Loops and Ifs that give nothing that is read, and joins of nothing, by what they give.

    Of a file that PyTorch before 1.8 wrote; none of other files. The exporter leaves out what
    nothing reads, unless it changes something: a list that the turns fill, which is empty behind.
    """
    if not model.is_before(1, 8):
        return []
    read = _read(model.proto)
    return [
        node.output[0] if node.output else node.name or node.op_type
        for graph in _graphs(model.proto)
        for node in graph.node
        if (node.op_type in ("Loop", "If") and not read.intersection(node.output))
        or (node.op_type == "Concat" and not node.input)
    ]


def misnormed_weights(model: Model) -> list[str]:
    """Weights divided by their one norm, and multiplied by a number for each channel.

    Of a file that PyTorch before 1.5 wrote and that holds nodes of its own; none of other files.
    `weight_norm` divides each channel by its own norm, or has one factor for the whole.
    """
    if not may_have_lost(model):
        return []
    sizes = {t.name: list(t.dims) for graph in _graphs(model.proto) for t in graph.initializer}
    norms: dict[str, str] = {}  # of which weight
    shares: dict[str, str] = {}
    found = []
    for node in (node for graph in _graphs(model.proto) for node in graph.node):
        first, *rest = node.input or [""]
        if node.op_type == "ReduceL2" and first in sizes:
            axes = next((list(a.ints) for a in node.attribute if a.name == "axes"), None)
            if axes is None or len(axes) == len(sizes[first]):
                norms[node.output[0]] = first
        elif node.op_type == "Div" and rest and norms.get(rest[0]) == first:
            shares[node.output[0]] = first
        elif node.op_type == "Mul" and len(rest) == 1:
            pairs = ((first, rest[0]), (rest[0], first))
            found += [
                shares[a] for a, b in pairs if a in shares and math.prod(sizes.get(b, [])) > 1
            ]
    return found


def lost_changes(model: Model) -> list[str]:
    """Lists that a node changes in place, giving nothing that is read, and that are read behind it.

    TorchScript's changes give nothing, or the element that was taken out. The exporter makes them
    give the changed list, and has what follows read that: where it did not, the file does not say
    what the list holds then.
    """
    if not any(operator_name(n) in _CHANGES for g in _graphs(model.proto) for n in g.node):
        return []
    steps = list(_in_order(model.proto.graph, None))
    read = Counter(name for _, inputs, _ in steps for name in inputs)
    found = []
    for index, (node, _, turn) in enumerate(steps):
        if node is None or operator_name(node) not in _CHANGES or not node.input:
            continue
        listed = node.input[0]
        if any(read[name] for name in node.output):
            continue
        # what a turn changes is read by the next one
        again = turn is not None and listed not in turn and read[listed] > 1
        if again or any(listed in inputs for _, inputs, _ in steps[index + 1 :]):
            found.append(listed)
    return list(dict.fromkeys(found))


def endless_loops(model: Model) -> list[str]:
    """Loops that no count and no condition ends, by what they give.

    A `while` is written as a Loop of as many turns as 64 bits count.
    """
    graph = model.proto.graph
    if not any(standard_nodes(graph, "Loop")):
        return []
    return [*_endless(graph, _constants(graph, {}))]


def _endless(graph: onnx.GraphProto, known: MutableMapping[str, onnx.TensorProto]) -> Iterator[str]:
    for node in graph.node:
        for body in bodies(node):
            inside = _constants(body, known)
            yield from _endless(body, inside)
            if node.op_type != "Loop" or node.domain not in STANDARD or not body.output:
                continue
            count, begins = [*node.input, "", ""][:2]
            goes_on = inside.get(body.output[0].name)
            if (
                (not count or _is_least(known.get(count), _MANY))
                and (not begins or _is_least(known.get(begins), 1))
                and _is_least(goes_on, 1)
            ):
                yield next(iter(node.output), "") or node.name or node.op_type


def _constants(
    graph: onnx.GraphProto, outer: MutableMapping[str, onnx.TensorProto]
) -> MutableMapping[str, onnx.TensorProto]:
    """What is constant in a graph, by name; siblings of it may call other values so."""
    known = ChainMap({tensor.name: tensor for tensor in graph.initializer}, outer)
    for node in graph.node:
        value = next((a.t for a in node.attribute if a.name == "value"), None)
        made = next(iter(node.output), "")
        if node.op_type == "Constant" and value is not None:
            known[made] = value
        elif node.op_type in ("Identity", "Cast") and next(iter(node.input), "") in known:
            known[made] = known[node.input[0]]
    return known


def _is_least(tensor: onnx.TensorProto | None, least: int) -> bool:
    """Whether all numbers of a tensor are known, and no less."""
    if tensor is None or tensor.data_type not in _COUNTS or tensor.data_location == tensor.EXTERNAL:
        return False
    return bool((onnx.numpy_helper.to_array(tensor) >= least).all())


def _in_order(
    graph: onnx.GraphProto, turn: frozenset[str] | None
) -> Iterator[tuple[onnx.NodeProto | None, list[str], frozenset[str] | None]]:
    """Nodes as they run, what each reads, and what the turn makes in which it runs, if in any.

    What a graph gives stands at its end, as read by no node.
    """
    for node in graph.node:
        yield node, list(node.input), turn
        for attribute in node.attribute:
            if attribute.HasField("g"):
                body = attribute.g
                made = {v.name for v in body.input} | {o for n in body.node for o in n.output}
                again = node.op_type in ("Loop", "Scan") or turn is not None
                around = frozenset() if node.op_type in ("Loop", "Scan") else turn or frozenset()
                yield from _in_order(body, around | made if again else None)
    yield None, [output.name for output in graph.output], turn


def _is_zero(node: onnx.NodeProto) -> bool:
    """Whether a ConstantOfShape makes zeros, as it does when it names no value."""
    values = [onnx.numpy_helper.to_array(a.t) for a in node.attribute if a.name == "value"]
    return not any(value.any() for value in values)


def _read(proto: onnx.ModelProto) -> set[str]:
    """What nodes read and what graphs give."""
    read = {name for graph in _graphs(proto) for node in graph.node for name in node.input}
    return read | {output.name for graph in _graphs(proto) for output in graph.output}


def _graphs(proto: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The graph of a model and every body in it; PyTorch before 1.5 writes no functions."""
    stack = [proto.graph]
    while stack:
        graph = stack.pop()
        yield graph
        for node in graph.node:
            stack.extend(a.g for a in node.attribute if a.HasField("g"))
