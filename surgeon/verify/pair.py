"""Two small models side by side on given inputs: a match, and what takes its place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx

from surgeon.chance import drawn_outputs
from surgeon.errors import SurgeonError
from surgeon.isolation import in_cell, open_session
from surgeon.reference import NoWitness, Undefined, open_reference
from surgeon.reference.arguments import is_foreign
from surgeon.reference.plan import holds_foreign
from surgeon.runtime import Feeds, NotRunnable, RunFailed, Runner
from surgeon.verify.compare import Exact, compare_arrays, compare_drawn, faulty
from surgeon.verify.verdict import OutputCheck

NOT_RUN = "it does not run"  # how the fault of a second model that fails begins
Checks = list[tuple[OutputCheck, ...] | SurgeonError]


def check_pair(
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    *,
    feeds_list: Sequence[Feeds],
    exact: Exact,
    tolerance: float | None = None,
    folder: Path | None = None,
) -> Checks:
    """Compare two small models: for each set of inputs one check an output, or why there is none.

    Where the second does not run and the first does, no output agrees. There is none where the
    first does not run, or the second does not for lack of a kernel or a witness. Of what is drawn
    at random dtype and shape are compared. Where a worker is used all of it happens there, in one
    message.

    Args:
        before: May hold ATen nodes: the witness runs it then.
        after: The same inputs and outputs, by name. Opened where `before` has run.
        feeds_list: One set of inputs for each run.
        exact: What the rule promises.
        tolerance: Relative to the spread, where the rule states its own.
        folder: Where external data lie.

    Raises:
        NotRunnable: The first does not load.
        ForeignError: The worker crashed, hung or ran out of memory.
    """
    arguments = (before, after, feeds_list, exact, tolerance, folder)
    found: Checks = in_cell(_check_pair, *arguments, called="onnxruntime")
    return found


def _check_pair(
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    feeds_list: Sequence[Feeds],
    exact: Exact,
    tolerance: float | None,
    folder: Path | None,
) -> Checks:
    first, second = open_runner(before, folder), None
    names = [value.name for value in before.graph.output]
    drawn = {**drawn_outputs(before), **drawn_outputs(after)}
    found: Checks = []
    for feeds in feeds_list:
        try:
            expected = first.run(feeds, names)
        except (NotRunnable, RunFailed, Undefined, NoWitness) as error:
            found.append(error)
            continue
        try:
            second = second or open_runner(after, folder)
            actual = second.run(feeds, names)
        except NoWitness as error:
            found.append(error)
        except (NotRunnable, RunFailed, Undefined) as error:
            fault = f"{NOT_RUN}: {error.what[:200]}"
            lacking = not isinstance(error, Undefined) and error.lacking
            faults = tuple(faulty(name, expected[name], fault) for name in names)
            found.append(error if lacking else faults)
        else:
            found.append(
                tuple(
                    compare_drawn(name, expected[name], actual[name], sized=drawn[name])
                    if name in drawn
                    else compare_arrays(
                        name, expected[name], actual[name], exact=exact, tolerance=tolerance
                    )
                    for name in names
                )
            )
    return found


def open_runner(model: onnx.ModelProto, folder: Path | None = None) -> Runner:
    """onnxruntime for a model of standard operators, the witness for one with PyTorch's own.

    Raises:
        NotRunnable: onnxruntime does not load it.
    """
    if is_plain(model):
        return open_session(model, folder=folder)
    return open_reference(model, folder)


def is_plain(model: onnx.ModelProto) -> bool:
    """Whether no node, however deep, is PyTorch's own."""
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    return not any(is_foreign(node) or holds_foreign(node) for node in nodes)
