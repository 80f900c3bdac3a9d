"""What is kept from run to run, as the keys and values of a decoder: at first there is nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx

from surgeon.nested import every_node
from surgeon.verify.demands import THE_SAME
from surgeon.verify.limits import Input

_ALONE = 4  # dims that are tried one by one, where all together are more than what was kept


def joined_dims(model: onnx.ModelProto, inputs: Sequence[Input]) -> tuple[str, ...]:
    """The dynamic dims along which an input is joined with other values."""
    came = {each.name: each for each in inputs if not each.is_list}
    found = []
    for node in every_node(model.graph.node):
        if node.op_type in THE_SAME and node.input and node.input[0] in came:
            came[node.output[0]] = came[node.input[0]]
        elif node.op_type == "Concat" and len(set(node.input)) > 1:  # not a value with itself
            axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
            dims = [came[name].dims for name in node.input if name in came]
            found += [own[axis] for own in dims if -len(own) <= axis < len(own)]
    return tuple(dict.fromkeys(dim for dim in found if isinstance(dim, str)))


def without(base: Mapping[str, int], joined: Sequence[str]) -> Iterator[dict[str, int]]:
    """Sizes at which nothing was kept; a mask over all is shorter by what is not there.

    Args:
        base: Sizes at which the original runs.
        joined: Those dims of them; what is new may be among them, and is not nothing.
    """
    for gone in (joined, *([dim] for dim in joined[:_ALONE])) if joined else ():
        nothing = dict.fromkeys(gone, 0)
        longest = max(base[dim] for dim in gone)
        for dim, size in base.items():
            if dim not in gone and size > longest:
                yield {**base, **nothing, dim: size - longest}
        yield {**base, **nothing}


def a_step(
    base: Mapping[str, int], joined: Sequence[str], new: Sequence[str]
) -> Iterator[dict[str, int]]:
    """Sizes at which one thing more comes to what was kept, as the next token of a decoder does.

    Args:
        base: Sizes at which the original runs.
        joined: Dims of what is kept.
        new: Dims that may be of what comes; a mask over all may be among them too.
    """
    for dim in new if joined else ():
        less = base[dim] - 1
        for mask in new:
            if mask != dim and base[mask] > base[dim] > 1:
                yield {**base, dim: 1, mask: base[mask] - less}
        if less:
            yield {**base, dim: 1}
