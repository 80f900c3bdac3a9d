"""Names of values and nodes as ONNX wants them: identifiers of C, without colons, slashes, dots.

Exporters write what their framework has (`StatefulPartitionedCall:0`, `/model.0/conv/Conv`), and
what makes source code of a model, or nodes of TensorFlow, takes no such names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import onnx

from surgeon.document import suggest
from surgeon.errors import SurgeonError
from surgeon.nested import every_node
from surgeon.renaming import names_of_sizes, names_of_values, rename, unused
from surgeon.steps.asread import Handed, Layer

STEP = "plain-names"
WHY = "ONNX's own document wants identifiers, and what makes source code of a model does too."
RENAME = "rename"
_SIZE = 2  # where names of sizes are, behind those of values and of nodes
ASKED = "It was asked for."
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STRANGE = re.compile(r"[^A-Za-z0-9_]+")


def plain_names(
    proto: onnx.ModelProto, handed: Handed, fixed: Collection[str] = ()
) -> onnx.ModelProto:
    """The model in which every value, node and named size is called by an identifier.

    Args:
        proto: The model; what its own functions call their values stays.
        handed: Is given what inputs and outputs were called.
        fixed: Inputs of which somebody told the shape by name.

    Raises:
        SurgeonError: Every name is one already, or a name that was told would change.
    """
    values = _renamed(dict.fromkeys(names_of_values(proto.graph)))
    nodes = _renamed(dict.fromkeys(node.name for node in every_node(proto.graph.node)))
    sizes = _renamed(dict.fromkeys(names_of_sizes(proto.graph)))
    if not values and not nodes and not sizes:
        raise SurgeonError("every name is plain", where=STEP, mend="Leave the step out.")
    return _called(proto, (values, nodes, sizes), handed, fixed)


def rename_some(
    proto: onnx.ModelProto, names: Mapping[str, str], handed: Handed, fixed: Collection[str] = ()
) -> onnx.ModelProto:
    """The model in which some values and nodes, or sizes, are called otherwise.

    Args:
        proto: The model; what its own functions call their values stays.
        names: The new names by the old ones. A size is meant where no value and no node has it.
        handed: Is given what inputs and outputs were called.
        fixed: Inputs of which somebody told the shape by name.

    Raises:
        SurgeonError: Nothing has one of the old names, something has one of the new ones, or a name
            that was told would change.
    """
    return _called(proto, found_names(proto.graph, names), handed, fixed)


def found_names(
    graph: onnx.GraphProto, names: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Which of the names are of values, of nodes, and of sizes, with what they are to be.

    Raises:
        SurgeonError: Nothing has one of the old names, or something has one of the new ones.
    """
    known = (
        {*names_of_values(graph)},
        {node.name for node in every_node(graph.node)},
        {*names_of_sizes(graph)},
    )
    found: tuple[dict[str, str], dict[str, str], dict[str, str]] = ({}, {}, {})
    for old, new in names.items():
        kinds = [at for at in (0, 1) if old in known[at]] or [_SIZE]
        if old not in known[kinds[0]]:
            mend = suggest(old, set().union(*known), "`surgeon inspect` shows what there is.")
            raise SurgeonError(f"nothing is called `{old}`", where=RENAME, mend=mend)
        for at in kinds:
            if new in known[at] and new not in names:
                mend = "Give it another, or rename that one too."
                raise SurgeonError(f"`{new}` is a name already", where=RENAME, mend=mend)
            if at == _SIZE and new.isdecimal():
                what, mend = f"`{new}` is a number", "A size is fixed by `--shape`."
                raise SurgeonError(f"{what}, and no name of a size", where=RENAME, mend=mend)
            found[at][old] = new
    if len({*names.values()}) < len(names):
        raise SurgeonError("two get one name", where=RENAME, mend="Give each its own.")
    return found


def _called(
    proto: onnx.ModelProto,
    names: tuple[dict[str, str], dict[str, str], dict[str, str]],
    handed: Handed,
    fixed: Collection[str],
) -> onnx.ModelProto:
    """The model with other names of values, of nodes and of sizes.

    Raises:
        SurgeonError: The shape of an input was told by a name that would change.
    """
    values, nodes, sizes = names
    told = [name for name in fixed if name in values]
    if told:
        raise SurgeonError(
            f"the shape of `{told[0]}` was told by that name",
            where=STEP,
            mend="Fix the shapes in a run in front of this one.",
        )
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    rename(changed.graph, values, nodes, sizes)
    ends = [value.name for value in (*proto.graph.input, *proto.graph.output)]
    handed.layers.append(Layer(names={values[n]: n for n in ends if n in values}))
    return changed


def _renamed(names: Collection[str]) -> dict[str, str]:
    """The names that are no identifiers, each with one that nothing else has."""
    taken = {name for name in names if _PLAIN.fullmatch(name)}
    found: dict[str, str] = {}
    for name in names:
        if not name or name in taken:
            continue
        stem = _STRANGE.sub("_", name).strip("_") or "value"
        stem = f"v{stem}" if stem[0].isdigit() else stem
        found[name] = unused(stem, taken)
        taken.add(found[name])
    return found
