"""`reduce`: the smallest part of a model that something of the user's still refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from surgeon.choices import Data, check_data, check_function
from surgeon.ends import Value, inputs_of, value_of
from surgeon.errors import RecipeError, VerifyError
from surgeon.extraction import extract
from surgeon.helpful import recipes_about
from surgeon.model import Model, ModelLike
from surgeon.opening import told_apart
from surgeon.reducing.asking import Ask, Asked, Runs
from surgeon.reducing.mends import Mend, mends_of
from surgeon.reducing.search import Search
from surgeon.reducing.weightless import Weightless, kept_in
from surgeon.reducing.weightless import without_weights as without_weights_of
from surgeon.spelling import operator_name

MOST = 200  # runs


@dataclass(frozen=True, slots=True)
class PartNode:
    """A node that is left.

    Attributes:
        name: The node's, or its first output's.
        operator: As recipes write it.
        recipes: Bundled recipes with rules about its operator.
    """

    name: str
    operator: str
    recipes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reduction:
    """What `reduce` gives.

    Attributes:
        model: The part.
        inputs: As it declares them, but for weights that stand among them.
        outputs: As it declares them.
        nodes: Its nodes of the main graph, without constants.
        of: How many the whole has.
        runs: How often the check was asked.
        is_smallest: Whether nothing more can be left out; else the runs were spent before.
        mends: Bundled recipes behind which the part passes, those first that leave fewest nodes.
        weights_left_out: Bytes of weights in whose place numbers stand; 0 where they are in it.
        weights_kept: Where weights were to be left out, what else of 1 KiB and more is in it.
    """

    model: Model
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[PartNode, ...]
    of: int
    runs: int
    is_smallest: bool
    mends: tuple[Mend, ...] = ()
    weights_left_out: int = 0
    weights_kept: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        values = {
            side: [{"name": v.name, "kind": v.kind, "shape": v.shape} for v in ends]
            for side, ends in (("inputs", self.inputs), ("outputs", self.outputs))
        }
        nodes = [asdict(node) for node in self.nodes]
        counts = {"of": self.of, "runs": self.runs, "is_smallest": self.is_smallest}
        mends = [asdict(mend) for mend in self.mends]
        left = {"weights_left_out": self.weights_left_out}
        kept = {"weights_kept": list(self.weights_kept)}
        return {**values, "nodes": nodes, **counts, "mends": mends, **left, **kept}


def reduce(
    model: ModelLike,
    fails: Callable[[Path], bool],
    *,
    passes: Callable[[Path], bool] | None = None,
    data: Data | None = None,
    most: int = MOST,
    without_weights: bool = False,
    progress: Callable[[str], None] | None = None,
    date: str | None = None,
) -> Reduction:
    """Find the smallest part of a model that fails a check, and recipes behind which it passes.

    The part is cut where tensors are; what computes sizes stays with what reads them. No node of
    it is changed. Bodies and functions stay as a whole: `clean` takes many of them apart.

    Args:
        model: A path, a `Model`, an `onnx.ModelProto` or a graphsurgeon `Graph`; not changed.
        fails: Asked with the file of a part, in a folder of its own: whether it fails. The whole
            model is the first.
        passes: Asked of the part as each bundled recipe leaves it; by default what does not fail
            passes.
        data: An .npz file with real inputs of the whole model, or nothing to have inputs drawn, and
            `part.npz` lies beside each `part.onnx`: its inputs and outputs, as they are in the
            whole, under `in.NAME` and `out.NAME`. None: it does not.
        most: How often both may be asked.
        without_weights: Whether numbers are to stand in the place of the part's weights, where it
            still fails so: a file of a few kilobytes that shows nothing else, to be sent to others.
        progress: Called with a line of text before each.
        date: When, for the log that the part keeps of its making.

    Raises:
        ModelError: The model cannot be read.
        RecipeError: The whole model does not fail, or nothing can be drawn for it; or a check is no
            function, or the data are no files, or stand beside parts without their weights.
        VerifyError: What failed does not fail again.
    """
    check_function("fails", fails)
    if passes is not None:
        check_function("passes", passes)
    check_data(data)
    if without_weights and data is not None:
        raise RecipeError(
            "what the part gives depends on its weights",
            where="--without-weights",
            mend="Leave it out, or give a check that looks at no values.",
        )
    source = Model.of(model)
    whole, _ = told_apart(source)
    runs = Runs(most, progress)
    asked = Asked(whole, runs, data)
    if not asked.model(whole, "the whole model", fails):
        raise RecipeError(
            "the whole model does not fail",
            where=str(whole.path or "model"),
            mend="Give a check that fails on it: a command that ends with another status than 0.",
        )
    found = reduced(source, asked, fails, date)
    plain = without_weights_of(found.model) if without_weights else None
    if plain is not None and plain.left_out:
        runs.most = max(runs.most, runs.done + 1)
        if not asked.model(plain.model, "the part without its weights", fails):
            plain = Weightless(found.model, 0, kept_in(found.model))
    wanted = passes or (lambda path: not fails(path))
    mends = tuple(mends_of(found.model, lambda part: asked.mended(part, wanted)))
    found = replace(found, runs=runs.done, mends=mends)
    if plain is None:
        return found
    model, size, kept = plain
    return replace(found, model=model, weights_left_out=size, weights_kept=kept)


def reduced(source: Model, asked: Asked, fails: Ask, date: str | None = None) -> Reduction:
    """The smallest part of a model that was seen to fail; what mends it is not looked for.

    Args:
        source: As it came.
        asked: What asks of it.
        fails: Whether a file fails as the model did.
        date: When, for the log that the part keeps of its making.

    Raises:
        VerifyError: What failed does not fail again.
    """
    whole, parts, runs = asked.whole, asked.parts, asked.runs
    search = Search(lambda nodes: asked.part(nodes, fails), parts.whole, parts.makes)
    kept = search.smallest(parts.nodes)
    is_smallest = runs.done < runs.most
    runs.most = max(runs.most, runs.done + 1)  # once more, to see the same
    result = source
    if len(kept) < len(parts.nodes):
        if not asked.part(kept, fails):
            raise VerifyError(
                "what failed does not fail again",
                where=str(whole.path or "model"),
                mend="Give a check that says the same of one file each time.",
            )
        inputs, outputs = parts.ends(kept)
        result = extract(whole, inputs=inputs, outputs=outputs, verify=False, date=date).model
    graph = result.proto.graph
    return Reduction(
        result,
        inputs_of(graph),
        tuple(map(value_of, graph.output)),
        tuple(_shown(parts.wiring.nodes[at]) for at in sorted(kept)),
        len(parts.nodes),
        runs.done,
        is_smallest,
    )


def _shown(node: onnx.NodeProto) -> PartNode:
    operator = operator_name(node)
    name = node.name or next(filter(None, node.output), "")
    return PartNode(name, operator, recipes_about(operator))
