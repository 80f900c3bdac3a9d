"""What nodes of chosen operators give, as outputs; and chosen weights, as inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import onnx

from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.extraction.cut import Cut, End
from surgeon.extraction.types import known_types
from surgeon.model import Model
from surgeon.spelling import operator_name

OF, WEIGHTS = "--outputs-of", "--weights-as-inputs"


def given_by(
    whole: Model, nodes: Sequence[onnx.NodeProto], operators: Sequence[str], part: Cut
) -> tuple[list[End], list[str]]:
    """What a part gives too, and what it cannot give, in the order of the nodes.

    What is no tensor few runtimes give, and what has no type none.

    Args:
        whole: The model.
        nodes: Those that are looked at.
        operators: As recipes or files write them; `*` stands for any text. Nodes `Constant` have
            to be named: nobody waits for what is written in the file.
        part: As it is without them.

    Raises:
        RecipeError: No node is of one of the operators.
    """
    taken = {end.value for end in (*part.inputs, *part.outputs)}
    every = dict.fromkeys(n for node in _of(nodes, operators) for n in node.output if n)
    names = [name for name in every if name not in taken]
    types = known_types(whole, names)
    is_tensor = {n: n in types and types[n].HasField("tensor_type") for n in names}
    return [End(n, n) for n in names if is_tensor[n]], [n for n in names if not is_tensor[n]]


def _of(nodes: Sequence[onnx.NodeProto], operators: Sequence[str]) -> Iterator[onnx.NodeProto]:
    """The nodes of some operators."""
    names = {spelled for node in nodes for spelled in _spelled(node)}
    for pattern in operators:
        if not any(_is_meant(name, pattern) for name in names):
            raise RecipeError(
                f"no node of the part is a `{pattern}`",
                where=OF,
                mend=suggest(pattern, dict.fromkeys(sorted(names))),
            )
    meant = {name for name in names if any(_is_meant(name, each) for each in operators)}
    yield from (node for node in nodes if not meant.isdisjoint(_spelled(node)))


def _spelled(node: onnx.NodeProto) -> Iterator[str]:
    """What an operator is called, in recipes and in the file."""
    yield operator_name(node)
    yield node.op_type


def _is_meant(name: str, pattern: str) -> bool:
    return name == pattern or (name != "Constant" and fnmatchcase(name, pattern))


def weights_of(graph: onnx.GraphProto, patterns: Sequence[str], part: Cut) -> list[End]:
    """The weights that a part is to be given, in the order of the file.

    Args:
        graph: The whole model's.
        patterns: Names; `*` stands for any text.
        part: What reads them.

    Raises:
        RecipeError: The part reads no weight of such a name.
    """
    read = [tensor.name for tensor in graph.initializer if tensor.name in part.reads]
    for pattern in patterns:
        if not any(name == pattern or fnmatchcase(name, pattern) for name in read):
            raise RecipeError(
                f"the part reads no weight `{pattern}`",
                where=WEIGHTS,
                mend=suggest(pattern, read, "`surgeon inspect MODEL --nodes` shows what is read."),
            )
    taken = {end.value for end in part.inputs}
    meant = (n for n in read if any(n == each or fnmatchcase(n, each) for each in patterns))
    return [End(name, name) for name in meant if name not in taken]
