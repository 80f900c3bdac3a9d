"""What the branches of an If give, and what a Loop carries, in one element type each.

Exporters of scripted modules write truths as int64 here and there, and floats as doubles; no
runtime loads a file whose branches or turns differ.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_graphsurgeon as gs

from surgeon.facts import Facts
from surgeon.facts.fact import FIRST_STATE
from surgeon.facts.kinds import holds_all
from surgeon.links import maker_of
from surgeon.objects import make_variable
from surgeon.rewrite import Surgery


def agree(node: gs.Node, facts: Facts, surgery: Surgery) -> int:
    """Cast what a branch or turn gives to the type that holds every value of the others.

    Args:
        node: An If or a Loop, whose bodies have facts; any other stays as it is.
        facts: Say the element types.
        surgery: The writer of wiring.

    Returns:
        How many were cast.
    """
    count = 0
    for given, kinds in _groups(node, facts):
        whole = [kind for kind in kinds if all(holds_all(other, kind) for other in kinds)]
        for body, place in given if len(whole) == 1 else ():
            own = facts.of(body.outputs[place]).dtype
            if own != whole[0] and holds_all(own, whole[0]):
                count += _end_as(body, place, whole[0], surgery)
    return count


def _groups(node: gs.Node, facts: Facts) -> Iterator[tuple[list[tuple[gs.Graph, int]], set[int]]]:
    """What bodies give that is to be of one type, by number, and the types to choose from."""
    bodies = [value for value in node.attrs.values() if isinstance(value, gs.Graph)]
    least = min((len(body.outputs) for body in bodies), default=0)  # a broken file may have fewer
    if node.op == "If":
        for index in range(min(len(node.outputs), least)):
            given = [(body, index) for body in bodies]
            yield given, {facts.of(body.outputs[index]).dtype for body in bodies}
    elif node.op == "Loop":
        for index, begins in enumerate(node.inputs[FIRST_STATE : FIRST_STATE + least - 1], start=1):
            yield [(bodies[0], index)], {facts.of(begins).dtype}


def _end_as(body: gs.Graph, place: int, dtype: int, surgery: Surgery) -> bool:
    """Let a body give one of its values in another element type, under its name."""
    out = body.outputs[place]
    producer = maker_of(out)
    if producer is None or not surgery.holds(body, producer):
        return False
    value = make_variable(surgery.fresh(out.name))
    # Who makes the output makes that value instead, and who read it there reads it here.
    surgery.adopt(producer, out, value)
    out.became = None
    surgery.names.add(out.name)
    made = surgery.draft(body, out.name)
    end = made.op("Cast", value, to=dtype)
    surgery.adopt(made.nodes[0], end, out)
    body.nodes.extend(made.nodes)
    return True
