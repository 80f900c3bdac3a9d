"""Models that are damaged as protobufs can be: a result comes out of them, or a `SurgeonError`.

    python tests/damaging.py FOLDER [SECONDS] [SEED]

The models are those of the cases beside all recipes, through a recipe drawn at random, and in part
through the check, `inspect`, `difference` and `explain`. The first file of each kind of finding
goes into FOLDER. What is found becomes a case of `hostile_broken.py`.
"""

from __future__ import annotations

import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx

import surgeon
from surgeon.cases.reading import Case, read_cases
from surgeon.errors import SurgeonError
from surgeon.explaining import explain
from surgeon.nested import every_body, every_node
from surgeon.recipe import Recipe, bundled

ROOT = Path(__file__).parent.parent
NUMBERS = (-(2**63), 2**63 - 1, -1, 0, 7, 99)
DIMS = (-1, 0, 3, 2**40)
OPSETS = (-1, 0, 5, 9, 13, 99, 2**40)
DOMAINS = ("", "ai.onnx", "org.pytorch.aten", "com.microsoft", "own")
TYPES = 30  # a few more than there are
CHECKED = 0.2
LOOKED_AT = 0.3


def sources() -> Iterator[tuple[str, Case]]:
    """All recipes' cases, with the recipes that they are beside."""
    for path in sorted((ROOT / "recipes").glob("*.cases.yaml")):
        recipe = Recipe.load(str(path).replace(".cases", ""))
        if not recipe.remakes:
            rules = [rule.id for rule in (*recipe.rules, *recipe.changes)]
            yield from ((recipe.name, case) for case in read_cases(path, rules))


def damaged(model: onnx.ModelProto, r: random.Random) -> None:
    """Change a model in place as no exporter would, once to three times."""
    for _ in range(r.randint(1, 3)):
        nodes = [*every_node(model.graph.node)]
        if nodes:
            r.choice(DAMAGES)(model, r.choice(nodes), nodes, r)


def _lacks(model: onnx.ModelProto, node: onnx.NodeProto, nodes: object, r: random.Random) -> None:
    held = r.choice(
        (node.input, node.output, node.attribute, model.graph.output, model.graph.input)
    )
    if held:
        at = r.randrange(len(held))
        del held[at : r.choice((at + 1, len(held)))]


def _unnamed(model: onnx.ModelProto, node: onnx.NodeProto, nodes: object, r: random.Random) -> None:
    held = r.choice((node.input, node.output))
    if held:
        held[r.randrange(len(held))] = ""


def _another(
    model: onnx.ModelProto, node: onnx.NodeProto, nodes: list[onnx.NodeProto], r: random.Random
) -> None:
    other = r.choice(nodes)
    kind = r.randrange(4)
    if kind == 0:
        node.op_type = other.op_type
    elif kind == 1:
        node.domain = r.choice(DOMAINS)
    elif kind == 2:
        model.graph.node.add().CopyFrom(other)
    elif node.input and other.output:
        node.input[r.randrange(len(node.input))] = r.choice(other.output)


def _says(model: onnx.ModelProto, node: onnx.NodeProto, nodes: object, r: random.Random) -> None:
    if not node.attribute:
        return
    attribute = r.choice(node.attribute)
    if r.random() < 0.3:
        attribute.type = r.choice(onnx.AttributeProto.AttributeType.values())
    elif attribute.ints:
        attribute.ints[r.randrange(len(attribute.ints))] = r.choice(NUMBERS)
    else:
        attribute.i = r.choice(NUMBERS)


def _tensor(model: onnx.ModelProto, node: object, nodes: object, r: random.Random) -> None:
    if not model.graph.initializer:
        return
    tensor = r.choice(model.graph.initializer)
    kind = r.randrange(3)
    if kind == 0:
        tensor.data_type = r.randrange(TYPES)
    elif kind == 1 and tensor.dims:
        tensor.dims[r.randrange(len(tensor.dims))] = r.choice(DIMS)
    else:
        tensor.raw_data = tensor.raw_data[: r.randrange(len(tensor.raw_data) + 1)]


def _type(model: onnx.ModelProto, node: object, nodes: object, r: random.Random) -> None:
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    if not values:
        return
    kind = r.choice(values).type
    if r.random() < 0.3:
        kind.Clear()
    elif r.random() < 0.5 or not kind.tensor_type.shape.dim:
        kind.tensor_type.elem_type = r.randrange(TYPES)
    else:
        r.choice(kind.tensor_type.shape.dim).dim_value = r.choice(DIMS)


def _opset(model: onnx.ModelProto, node: object, nodes: object, r: random.Random) -> None:
    if model.opset_import:
        r.choice(model.opset_import).version = r.choice(OPSETS)


def _body(
    model: onnx.ModelProto, node: object, nodes: list[onnx.NodeProto], r: random.Random
) -> None:
    inside = [*every_body(nodes)]
    if inside:
        body = r.choice(inside)
        held = r.choice((body.input, body.output, body.node))
        del held[r.randrange(len(held) + 1) :]


DAMAGES: tuple[Callable[..., None], ...] = (
    *(_lacks, _unnamed, _another, _another, _says, _says, _tensor, _type, _opset, _body),
)


def tried(model: onnx.ModelProto, recipe: str, r: random.Random) -> str:
    """What came of a model: the status of the result, or the kind of the error.

    Raises:
        Exception: Of any other kind than `SurgeonError`: a finding.
    """
    try:
        if r.random() < LOOKED_AT:
            surgeon.inspect(model)
            surgeon.difference(model, model)
            explain(model, recipe)
        return surgeon.apply(model, recipe, verify=r.random() < CHECKED).report.status
    except SurgeonError as error:
        return type(error).__name__


def main(folder: Path, seconds: float = 300, seed: int = 0) -> int:
    """The number of kinds of findings."""
    folder.mkdir(parents=True, exist_ok=True)
    r = random.Random(seed)
    cases = [*sources()]
    names = [*bundled()]
    counts: dict[str, int] = {}
    found: set[str] = set()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        own, case = r.choice(cases)
        model = case.before.model(case.values, r.choice(case.opsets))
        damaged(model, r)
        recipe = r.choice((own, r.choice(names)))
        (folder / "current.onnx").write_bytes(model.SerializeToString())  # should it end us
        try:
            with surgeon.isolation():
                outcome = tried(model, recipe, r)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            outcome = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
            if outcome not in found:
                found.add(outcome)
                path = folder / f"{seed}-{len(found)}.onnx"
                path.write_bytes(model.SerializeToString())
                print(f"{path} {recipe}: {outcome}: {error}"[:300], flush=True)
        counts[outcome] = counts.get(outcome, 0) + 1
    print(counts)
    return len(found)


if __name__ == "__main__":
    where, *numbers = sys.argv[1:]
    sys.exit(bool(main(Path(where), *map(int, numbers))))
