"""The `simplify: onnxsim` step: another project's simplifier, in the worker, held to the interface.

onnxsim takes seconds to import and is native code: it runs in a subprocess, never here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

from surgeon.errors import ForeignError, VerifyError
from surgeon.external import LARGEST, bytes_outside
from surgeon.isolation import cell
from surgeon.workers import Worker

TOOLS = ("onnxsim",)
_TASK = "surgeon.steps.simplify:run_onnxsim"
TIMEOUT = 1800.0  # seconds; onnxsim takes about a minute for 100,000 nodes


def simplify(
    model: onnx.ModelProto,
    *,
    tool: str = "onnxsim",
    folder: Path | None = None,
) -> onnx.ModelProto:
    """The model as the tool simplifies it; the interface and the envelope stay as they are.

    Whether it still computes the same is for the caller to check.

    Args:
        model: Read, not changed.
        tool: `onnxsim`.
        folder: Where the model's external data lie; they come back inside the model.

    Raises:
        ForeignError: The tool crashed, hung, or refused the model.
        VerifyError: What it made has other inputs or outputs.
    """
    step = f"simplify: {tool}"
    if tool not in TOOLS:
        raise ForeignError(
            f"`{tool}` is not a tool known here", where=step, mend=f"Use {' or '.join(TOOLS)}."
        )
    here = cell()
    timeout, memory = (TIMEOUT, None) if here is None else (here.timeout, here.memory)
    initializers = {tensor.name for tensor in model.graph.initializer}
    overridable = any(value.name in initializers for value in model.graph.input)
    try:
        with Worker() as worker:
            simplified: onnx.ModelProto = worker.call(
                _TASK,
                _whole(model, folder, step),
                overridable,
                timeout=timeout,
                memory=memory,
            )
    except ForeignError as error:
        what = error.what.replace(f"`{_TASK}`", f"`{tool}`")
        raise ForeignError(what, where=step, mend=error.mend) from None
    except Exception as error:  # onnxsim raises what it likes
        raise ForeignError(
            f"`{tool}` refuses the model: {' '.join(str(error).split())[:500]}",
            where=step,
            mend="Leave the step out, or repair first what it complains about.",
        ) from None
    return _held(model, simplified, step)


def _whole(model: onnx.ModelProto, folder: Path | None, step: str) -> onnx.ModelProto:
    """The model with its external data inside: to fold constants onnxsim wants their values."""
    from onnx import external_data_helper

    if not any(map(external_data_helper.uses_external_data, model.graph.initializer)):
        return model
    if folder is None or model.ByteSize() + bytes_outside(model) > LARGEST:
        raise ForeignError(
            "the weights do not fit into one message" if folder else "the weights lie elsewhere",
            where=step,
            mend="Leave the step out for this model.",
        )
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    external_data_helper.load_external_data_for_model(whole, str(folder))
    return whole


def run_onnxsim(model: onnx.ModelProto, overridable: bool) -> onnx.ModelProto:
    """What the worker calls: onnxsim without a check of its own."""
    import onnxsim

    options: dict[str, Any] = {"check_n": 0, "mutable_initializer": overridable}
    simplified: onnx.ModelProto = onnxsim.simplify(model, **options)[0]
    return simplified


def _held(before: onnx.ModelProto, after: onnx.ModelProto, step: str) -> onnx.ModelProto:
    """The simplified graph under the interface and envelope of the original."""
    for kind in ("input", "output"):
        old, new = getattr(before.graph, kind), getattr(after.graph, kind)
        names, found = [v.name for v in old], [v.name for v in new]
        if names != found:
            raise VerifyError(
                f"the {kind}s were {names} and are {found}",
                where=step,
                mend="Leave the step out for this model.",
            )
        for was, became in zip(old, new, strict=True):
            if _elements(was) != _elements(became):
                raise VerifyError(
                    f"the {kind} `{was.name}` has another type",
                    where=step,
                    mend="Leave the step out for this model.",
                )
            became.CopyFrom(was)
    held = onnx.ModelProto()
    held.CopyFrom(after)
    for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        held.ClearField(name)
        if before.HasField(name):
            setattr(held, name, getattr(before, name))
    del held.metadata_props[:]
    held.metadata_props.extend(before.metadata_props)
    held.graph.name = before.graph.name
    return held


def _elements(value: onnx.ValueInfoProto) -> tuple[str | None, int]:
    return value.type.WhichOneof("value"), value.type.tensor_type.elem_type
