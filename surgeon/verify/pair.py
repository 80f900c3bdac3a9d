"""Two small models side by side on given inputs: a match, and what takes its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import onnx

from surgeon.chance import drawn_outputs
from surgeon.errors import SurgeonError
from surgeon.reference import NoWitness, Reference, Undefined
from surgeon.reference.arguments import is_foreign
from surgeon.reference.plan import holds_foreign
from surgeon.runtime import Feeds, NotRunnable, RunFailed, Runner, Session
from surgeon.verify.compare import Exact, compare_arrays, compare_drawn, faulty
from surgeon.verify.verdict import OutputCheck

NOT_RUN = "it does not run"  # how the fault of a second model that fails begins
OpenSession = Callable[..., Runner]


def check_pair(
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    *,
    feeds_list: Sequence[Feeds],
    exact: Exact,
    tolerance: float | None = None,
    folder: Path | None = None,
    open_session: OpenSession = Session,
) -> list[tuple[OutputCheck, ...] | SurgeonError]:
    """Compare two small models: for each set of inputs one check an output, or why there is none.

    Where the second does not run and the first does, no output agrees. There is none where the
    first does not run, or the second does not for lack of a kernel or a witness. Of what is drawn
    at random dtype and shape are compared.

    Args:
        before: May hold ATen nodes: the witness runs it then.
        after: The same inputs and outputs, by name. Opened where `before` has run.
        feeds_list: One set of inputs for each run.
        exact: What the rule promises.
        tolerance: Relative to the spread, where the rule states its own.
        folder: Where external data lie.
        open_session: Called as `Session` is.

    Raises:
        NotRunnable: The first does not load.
    """
    first, second = open_runner(before, folder, open_session), None
    names = [value.name for value in before.graph.output]
    drawn = {**drawn_outputs(before), **drawn_outputs(after)}
    found: list[tuple[OutputCheck, ...] | SurgeonError] = []
    for feeds in feeds_list:
        try:
            expected = first.run(feeds, names)
        except (NotRunnable, RunFailed, Undefined, NoWitness) as error:
            found.append(error)
            continue
        try:
            second = second or open_runner(after, folder, open_session)
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
