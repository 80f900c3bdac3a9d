"""Asks a check of a model, or of parts of one, each written into a file, and counts."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from surgeon.choices import Data, check_integer
from surgeon.errors import RecipeError, SurgeonError, VerifyError
from surgeon.external import INLINE, bytes_outside
from surgeon.extraction.parts import Nodes, Parts
from surgeon.leftovers import Folder
from surgeon.model import Model
from surgeon.pairwise import verify
from surgeon.reducing.search import Spent
from surgeon.reference import open_reference
from surgeon.verify.datasets import read_data
from surgeon.verify.inputs import draw, required_inputs
from surgeon.verify.limits import Input
from surgeon.verify.recording import packed

_LARGE = 1 << 30  # bytes of weights outside that are not copied for each run

Ask = Callable[[Path], bool]


class Runs:
    """How often a check was asked, of how often it may be.

    Attributes:
        done: How often it was.
        most: How often it may be.

    Raises:
        RecipeError: It may not be asked at all.
    """

    def __init__(self, most: int, progress: Callable[[str], None] | None) -> None:
        check_integer("most", most)
        if most is None or most < 1:
            raise RecipeError(
                f"{most} is no number of runs", where="--most", mend="Give 1 at the least."
            )
        self.done, self.most, self._progress = 0, most, progress

    def begin(self, what: str) -> None:
        """Count one.

        Raises:
            Spent: There were as many as may be.
        """
        if self.done >= self.most:
            raise Spent
        self.done += 1
        if self._progress:
            self._progress(f"run {self.done}: {what}")


@contextmanager
def _written(part: Model) -> Iterator[Path]:
    """A file of a part, as long as it is looked at, in a folder of its own.

    Weights that lie outside are put into it; but many stay where they are, and it is beside them.
    """
    if part.folder is not None and bytes_outside(part.proto) > _LARGE:
        path = part.folder / f".surgeon-{uuid.uuid4().hex}.onnx"
        try:
            part.save(path)
            yield path
        finally:
            for each in part.folder.glob(f"{path.stem}.*"):  # its data, and what the check makes
                if each.is_file() or each.is_symlink():
                    each.unlink(missing_ok=True)
        return
    with Folder() as folder:
        path = Path(folder, "alone", "part.onnx")  # the check finds nothing else beside it
        path.parent.mkdir()
        part.save(path, external_data=INLINE)
        yield path


class _Values:
    """The values of the whole model on one set of inputs, each computed when it is asked for."""

    def __init__(self, whole: Model, data: Data) -> None:
        inputs = required_inputs(whole.proto)
        if data:
            names = [value.name for value in whole.proto.graph.input]
            paths = [data] if isinstance(data, str | Path) else data
            self.known = dict(read_data(paths, inputs, names)[0].feeds)
        elif any(isinstance(dim, str) for each in inputs for dim in each.dims):
            self.known = _at_sizes_that_run(whole, inputs)
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
        path.write_bytes(packed(arrays))


def _at_sizes_that_run(whole: Model, inputs: Sequence[Input]) -> dict[str, Any]:
    """Inputs of a model with dynamic dimensions, at the first sizes that `verify` would compare.

    Raises:
        RecipeError: It runs at none of them.
    """
    with Folder() as folder:
        path = Path(folder, "run.npz")
        try:
            verify(whole, whole, record=path)
        except VerifyError as error:
            raise RecipeError(
                f"no sizes of its dynamic dimensions were found at which it runs: {error.what}",
                where=str(whole.path or "model"),
                mend="Give `--data` with inputs, or fix them first: surgeon apply clean --shape.",
            ) from None
        names = [value.name for value in whole.proto.graph.input]
        return dict(read_data([path], inputs, names)[0].feeds)


class Asked:
    """Asks of one model and its parts.

    Args:
        whole: The model, with names told apart.
        runs: Counted on.
        data: Files with real inputs of the model, none to have inputs drawn, or None: no values
            are wanted beside the files.
    """

    def __init__(self, whole: Model, runs: Runs, data: Data | None) -> None:
        self.whole, self.runs = whole, runs
        self._values = None if data is None else _Values(whole, data)

    @cached_property
    def parts(self) -> Parts:
        """Its parts."""
        return Parts(self.whole)

    def part(self, nodes: Nodes, check: Ask) -> bool:
        """What a check says of a part; False of one that cannot be made.

        Raises:
            Spent: Nothing may be asked again.
        """
        try:
            part = self.parts.model_of(nodes)
        except SurgeonError:
            return False
        return self.model(part, f"{len(nodes)} of {len(self.parts.nodes)} nodes", check)

    def mended(self, part: Model, check: Ask) -> bool:
        """What a check says of a part behind a recipe; False where nothing may be asked again."""
        try:
            return self.model(part, "the part behind a recipe", check)
        except (Spent, SurgeonError):
            return False

    def model(self, model: Model, what: str, check: Ask) -> bool:
        """What a check says of a model, which is the whole or made of it.

        Raises:
            Spent: Nothing may be asked again.
        """
        self.runs.begin(what)
        with _written(model) as path:
            if self._values is not None:
                graph, constants = model.proto.graph, self.parts.wiring.constants
                given = [v.name for v in graph.input if v.name not in constants]
                made = [v.name for v in graph.output]
                self._values.save(path.with_suffix(".npz"), given, made)
            return check(path)
