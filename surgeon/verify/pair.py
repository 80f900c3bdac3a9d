"""Two small models side by side on given inputs: a match, and what takes its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx

from surgeon.reference import Reference, Undefined
from surgeon.reference.arguments import is_foreign
from surgeon.reference.plan import holds_foreign
from surgeon.runtime import Feeds, NotRunnable, RunFailed, Runner, Session
from surgeon.verify.compare import Exact, compare_arrays, faulty
from surgeon.verify.verdict import OutputCheck

NOT_RUN = "it does not run"  # how the fault of a second model that fails begins
OpenSession = Callable[..., Runner]


class Pair:
    """Two models of the same inputs and outputs, opened once and compared on many inputs.

    Args:
        before: May hold ATen nodes: the witness runs it then.
        after: Opened where `before` has run.
        exact: What the rule promises.
        tolerance: Relative to the spread, where the rule states its own.
        folder: Where external data lie.
        open_session: Called as `Session` is.
    """

    def __init__(
        self,
        before: onnx.ModelProto,
        after: onnx.ModelProto,
        *,
        exact: Exact,
        tolerance: float | None = None,
        folder: Path | None = None,
        open_session: OpenSession = Session,
    ) -> None:
        self.before, self.after = before, after
        self._exact, self._tolerance = exact, tolerance
        self._folder, self._open = folder, open_session
        self._runners: list[Runner] = []

    def check(self, feeds: Feeds) -> tuple[OutputCheck, ...]:
        """How each output agrees. Where the second does not run and the first does, none does.

        Raises:
            NotRunnable, RunFailed, Undefined, NoWitness: The first does not run on these inputs;
                or the second does not for lack of a kernel or a witness.
        """
        names = [value.name for value in self.before.graph.output]
        expected = self._runner(0).run(feeds, names)
        try:
            actual = self._runner(1).run(feeds, names)
        except (NotRunnable, RunFailed, Undefined) as error:
            if not isinstance(error, Undefined) and error.lacking:
                raise
            fault = f"{NOT_RUN}: {error.what[:200]}"
            return tuple(faulty(name, expected[name], fault) for name in names)
        return tuple(
            compare_arrays(
                name, expected[name], actual[name], exact=self._exact, tolerance=self._tolerance
            )
            for name in names
        )

    def _runner(self, place: int) -> Runner:
        if place >= len(self._runners):
            model = (self.before, self.after)[place]
            self._runners.append(open_runner(model, self._folder, self._open))
        return self._runners[place]


def open_runner(
    model: onnx.ModelProto, folder: Path | None = None, open_session: OpenSession = Session
) -> Runner:
    """onnxruntime for a model of standard operators, the witness for one with PyTorch's own.

    Raises:
        NotRunnable: onnxruntime does not load it.
    """
    if is_plain(model):
        return open_session(model, folder=folder)
    return Reference(model, folder, open_session=open_session)


def is_plain(model: onnx.ModelProto) -> bool:
    """Whether no node, however deep, is PyTorch's own."""
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    return not any(is_foreign(node) or holds_foreign(node) for node in nodes)
