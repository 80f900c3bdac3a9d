"""`reduce`: the smallest part of a model that something of the user's still refuses."""

from __future__ import annotations

import math
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from surgeon.errors import RecipeError, SurgeonError, VerifyError
from surgeon.external import INLINE, external_tensors
from surgeon.extraction import extract
from surgeon.extraction.parts import Nodes, Parts
from surgeon.helpful import recipes_about
from surgeon.inspection import Value, value_of
from surgeon.model import Model
from surgeon.opening import ModelLike, as_model, told_apart
from surgeon.reducing.mends import Mend, mends_of
from surgeon.reducing.search import Search, Spent
from surgeon.reference import open_reference
from surgeon.spelling import operator_name
from surgeon.verify.datasets import read_data
from surgeon.verify.inputs import draw, required_inputs

MOST = 200  # runs
_LARGE = 1 << 30  # bytes of weights outside that are not copied for each run


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
        inputs: As it declares them.
        outputs: As it declares them.
        nodes: Its nodes of the main graph, without constants.
        of: How many the whole has.
        runs: How often the check was asked.
        is_smallest: Whether nothing more can be left out; else the runs were spent before.
        mends: Bundled recipes behind which the part passes, those first that leave fewest nodes.
    """

    model: Model
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[PartNode, ...]
    of: int
    runs: int
    is_smallest: bool
    mends: tuple[Mend, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        values = {
            side: [{"name": v.name, "kind": v.kind, "shape": v.shape} for v in ends]
            for side, ends in (("inputs", self.inputs), ("outputs", self.outputs))
        }
        nodes = [asdict(node) for node in self.nodes]
        counts = {"of": self.of, "runs": self.runs, "is_smallest": self.is_smallest}
        mends = [asdict(mend) for mend in self.mends]
        return {**values, "nodes": nodes, **counts, "mends": mends}


def reduce(
    model: ModelLike,
    fails: Callable[[Path], bool],
    *,
    passes: Callable[[Path], bool] | None = None,
    data: Sequence[str | Path] | None = None,
    most: int = MOST,
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
        progress: Called with a line of text before each.
        date: When, for the log that the part keeps of its making.

    Raises:
        ModelError: The model cannot be read.
        RecipeError: The whole model does not fail; or nothing can be drawn for it.
        VerifyError: What failed does not fail again.
    """
    source = as_model(model)
    whole, _ = told_apart(source)
    parts = Parts(whole)
    asked = _Asked(parts, fails, None if data is None else _Values(whole, data), most, progress)
    if not asked.of(whole, "the whole model"):
        raise RecipeError(
            "the whole model does not fail",
            where=str(whole.path or "model"),
            mend="Give a check that fails on it: a command that ends with another status than 0.",
        )
    search = Search(asked.fails, parts.whole, parts.makes)
    kept = search.smallest(parts.nodes)
    runs = asked.runs
    result = source
    asked.most = max(most, runs + 1)  # once more, to see the same
    if len(kept) < len(parts.nodes):
        if not asked.fails(kept):
            raise VerifyError(
                "what failed does not fail again",
                where=str(whole.path or "model"),
                mend="Give a check that says the same of one file each time.",
            )
        inputs, outputs = parts.ends(kept)
        result = extract(whole, inputs=inputs, outputs=outputs, verify=False, date=date).model
    mends = mends_of(result, asked.passing(passes))
    graph = result.proto.graph
    return Reduction(
        result,
        tuple(map(value_of, graph.input)),
        tuple(map(value_of, graph.output)),
        tuple(_shown(parts.wiring.nodes[at]) for at in sorted(kept)),
        len(parts.nodes),
        asked.runs,
        runs < most,
        mends,
    )


def _shown(node: onnx.NodeProto) -> PartNode:
    operator = operator_name(node)
    name = node.name or next(filter(None, node.output), "")
    return PartNode(name, operator, recipes_about(operator))


@contextmanager
def _written(part: Model) -> Iterator[Path]:
    """A file of a part, as long as it is looked at, in a folder of its own.

    Weights that lie outside are put into it; but many stay where they are, and it is beside them.
    """
    if part.folder is not None and _bytes_outside(part.proto) > _LARGE:
        path = part.folder / f".surgeon-{uuid.uuid4().hex}.onnx"
        try:
            part.save(path)
            yield path
        finally:
            for each in (path, path.with_suffix(".npz")):
                each.unlink(missing_ok=True)
        return
    with tempfile.TemporaryDirectory(prefix="surgeon-") as folder:
        path = Path(folder, "part.onnx")
        part.save(path, external_data=INLINE)
        yield path


def _bytes_outside(proto: onnx.ModelProto) -> int:
    return sum(
        math.prod(tensor.dims) * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        for tensor in external_tensors(proto)
    )


class _Values:
    """The values of the whole model on one set of inputs, each computed when it is asked for."""

    def __init__(self, whole: Model, data: Sequence[str | Path]) -> None:
        inputs = required_inputs(whole.proto)
        if data:
            names = [value.name for value in whole.proto.graph.input]
            self.known = dict(read_data(data, inputs, names)[0].feeds)
        elif any(isinstance(dim, str) for each in inputs for dim in each.dims):
            raise RecipeError(
                "its inputs have dynamic dimensions, and nothing says at which sizes to draw them",
                where=str(whole.path or "model"),
                mend="Give `--data` with inputs, or fix them first: surgeon apply clean --shape.",
            )
        else:
            self.known = draw(inputs, {}, 0)
        self.feeds = dict(self.known)
        self.made = {name for node in whole.proto.graph.node for name in node.output}
        self.reference = open_reference(whole.proto, whole.folder)

    def save(self, path: Path, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Write what a part is given and gives, as far as these are tensors of the whole.

        Raises:
            SurgeonError: The whole does not run.
        """
        if missing := self.made.intersection((*inputs, *outputs)) - self.known.keys():
            self.known |= self.reference.run(self.feeds, sorted(missing))
        values = {f"in.{name}": self.known.get(name) for name in inputs}
        values |= {f"out.{name}": self.known.get(name) for name in outputs}
        arrays = {key: value for key, value in values.items() if isinstance(value, np.ndarray)}
        np.savez(path, **arrays)  # type: ignore[arg-type]


class _Asked:
    """Writes parts for the check, and counts."""

    def __init__(
        self,
        parts: Parts,
        check: Callable[[Path], bool],
        values: _Values | None,
        most: int,
        progress: Callable[[str], None] | None,
    ) -> None:
        self.parts, self.check, self.values = parts, check, values
        self.most, self.progress = most, progress
        self.runs = 0

    def fails(self, nodes: Nodes) -> bool:
        """Whether a part fails; one that cannot be made does not.

        Raises:
            Spent: Nothing may be asked again.
        """
        try:
            part = self.parts.model_of(nodes)
        except SurgeonError:
            return False
        return self.of(part, f"{len(nodes)} of {len(self.parts.nodes)} nodes")

    def passing(self, passes: Callable[[Path], bool] | None) -> Callable[[Model], bool]:
        """What says whether a mended part passes; nothing does where all runs are spent."""
        check = passes or (lambda path: not self.check(path))

        def ask(part: Model) -> bool:
            try:
                return self.of(part, "the part behind a recipe", check)
            except (Spent, SurgeonError):
                return False

        return ask

    def of(self, part: Model, what: str, check: Callable[[Path], bool] | None = None) -> bool:
        """Whether a model fails, or what else is asked of it.

        Raises:
            Spent: Nothing may be asked again.
        """
        if self.runs >= self.most:
            raise Spent
        self.runs += 1
        if self.progress:
            self.progress(f"run {self.runs}: {what}")
        with _written(part) as path:
            if self.values is not None:
                graph, constants = part.proto.graph, self.parts.wiring.constants
                given = [v.name for v in graph.input if v.name not in constants]
                made = [v.name for v in graph.output]
                self.values.save(path.with_suffix(".npz"), given, made)
            return (check or self.check)(path)
